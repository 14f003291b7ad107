//! A network of layers is the program that the same network is when written by hand: layers cost
//! nothing.

use estimand_engine::Session;
use estimand_graph::{Graph, Initializer, Optimizer, Padding, Tensor};
use estimand_nn::*;
use estimand_tensor::{DType, Dim, Mode};
use estimand_update::Adam;

fn inputs() -> (Graph, Tensor, Tensor) {
    let g = Graph::with_mode(Mode::Train);
    let x = g.placeholder("image", DType::F32, [Dim::BATCH, 28.into(), 28.into(), 1.into()]);
    let y = g.placeholder("label", DType::I64, [Dim::BATCH]);
    (g, x, y)
}

/// The steps of a training program.
fn program(g: &Graph, loss: &Tensor) -> String {
    let train = Optimizer::new(Adam::default(), 0.002).minimize(loss);
    Session::new(g).unwrap().program(&[&train, loss]).unwrap().to_string()
}

fn conv(x: &Tensor, name: &str, filters: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [5, 5, x.dim(3), filters], Initializer::GlorotUniform);
    let bias = g.variable("bias", [filters], Initializer::Zeros);
    (x.conv2d(&kernel, (1, 1), Padding::Valid) + bias).relu().max_pool((2, 2), (2, 2), Padding::Valid)
}

fn dense(x: &Tensor, name: &str, units: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [x.dim(1), units], Initializer::GlorotUniform);
    let bias = g.variable("bias", [units], Initializer::Zeros);
    x.matmul(&kernel) + bias
}

fn by_hand() -> String {
    let (g, x, y) = inputs();
    let net = conv(&conv(&x, "conv1", 20), "conv3", 40).flatten();
    let net = dense(&net, "fn5", 256).relu().dropout(0.5);
    let net = dense(&net, "fn6", 256).relu().dropout(0.5);
    program(&g, &dense(&net, "output", 10).sparse_softmax_cross_entropy(&y).mean())
}

fn by_layers() -> String {
    let (g, x, y) = inputs();
    let net = MaxPool2d::new(2).apply(&Conv2d::new(20, 5).relu().name("conv1").apply(&x));
    let net = MaxPool2d::new(2).apply(&Conv2d::new(40, 5).relu().name("conv3").apply(&net));
    let net = Flatten::new().apply(&net);
    let net = Dropout::new(0.5).apply(&Dense::new(256).relu().name("fn5").apply(&net));
    let net = Dropout::new(0.5).apply(&Dense::new(256).relu().name("fn6").apply(&net));
    let logits = Dense::new(10).name("output").apply(&net);
    program(&g, &SparseSoftmaxCrossEntropy::new().apply(&y, &logits))
}

/// The steps up to the losses, and those from the gradient of the losses on, without the numbers of
/// values.
fn around_the_loss(program: &str) -> (Vec<String>, Vec<String>) {
    let steps: Vec<String> = program.lines().map(without_numbers).collect();
    let losses = steps.iter().position(|s| s.contains("SparseSoftmaxCrossEntropy")).unwrap();
    let gradient =
        losses + steps[losses..].iter().position(|s| s.contains("f32[batch, 10], % f32[10] = Mul+Sum(")).unwrap();
    (steps[..=losses].to_vec(), steps[gradient..].to_vec())
}

fn without_numbers(step: &str) -> String {
    let mut parts = step.split('%');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + "%" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Only the mean differs: that of a loss is 0 for an empty batch, where the reduction's is NaN.
#[test]
fn the_mnist_network_is_the_program_written_by_hand() {
    let (hand, layers) = (by_hand(), by_layers());
    assert_eq!(around_the_loss(&hand), around_the_loss(&layers), "{layers}");
    assert!(layers.lines().count() <= hand.lines().count() + 1, "{layers}");
}
