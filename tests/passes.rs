//! Passes do not change a bit: every variable is compared after three steps with all passes,
//! without each of them, and with none.

use std::sync::Arc;

use estimand::graph::{Body, Clip, Compiled, Cpu, Executor, RunArgs, Value};
use estimand::nn::column::linear_model;
use estimand::nn::{Bidirectional, LayerNorm, MultiHeadAttention};
use estimand::prelude::*;
use estimand::tensor::{BatchSpec, FeatureSpec, Shape};
use estimand_graph::op::{Cell, CellFunction};
use estimand_graph::{Program, RecurrentInputs, pass};

use crate::models::{self, Model, integers, uniform};

/// The names of all passes: those of every program, then those of the CPU.
fn pass_names() -> impl Iterator<Item = &'static str> {
    pass::WHOLE.iter().map(|pass| pass.name).chain(Cpu::pass_names())
}

/// A model that trains, with a batch for it.
struct Case {
    name: &'static str,
    body: Arc<Body>,
    /// The loss, and what a step of training does.
    fetches: Vec<Value>,
    feeds: Vec<(Tensor, Array)>,
}

impl Case {
    fn new(name: &'static str, loss: &Tensor, train: &Tensor, feeds: Vec<(Tensor, Array)>) -> Case {
        let g = loss.graph();
        let step = g.group(&std::iter::once(train).chain(&g.updates()).collect::<Vec<_>>());
        g.check().unwrap();
        Case { name, body: Arc::new(g.body().clone()), fetches: vec![loss.value(), step.value()], feeds }
    }

    fn of_model(name: &'static str, model: Model, values: Vec<Array>) -> Case {
        let feeds = model.placeholders.iter().cloned().zip(values).collect();
        Case::new(name, &model.loss, &model.train, feeds)
    }

    fn compile(&self) -> Compiled {
        self.without(&[])
    }

    /// What a step runs without some passes.
    fn without(&self, passes: &[&'static str]) -> Compiled {
        let program = Program::with_passes(self.body.clone(), &self.fetches, |name| !passes.contains(&name)).unwrap();
        Compiled::new(&Cpu::with_threads(2).without(passes), program).unwrap()
    }

    /// All losses and all variables after three steps, by name, as bytes.
    fn trained(&self, compiled: &Compiled) -> Vec<(String, Vec<u8>)> {
        let mut state = Cpu::new().place(self.body.variables(), 1).unwrap();
        let fed = |id| self.feeds.iter().find(|(tensor, _)| tensor.value().node == id).unwrap().1.clone();
        let feeds: Vec<Array> = compiled.program().placeholders().iter().map(|&id| fed(id)).collect();
        let (mut all, mut outputs) = (Vec::new(), Vec::new());
        for step in 0..3 {
            let args = RunArgs { feeds: &feeds, step, seed: 1, ..RunArgs::default() };
            compiled.step(&mut *state, args, &mut outputs).unwrap();
            all.push((format!("loss of step {step}"), outputs[0].bytes().to_vec()));
        }
        for (_, spec) in self.body.variables().iter() {
            all.push((spec.name.clone(), state.read(&spec.name).unwrap().bytes().to_vec()));
        }
        all
    }

    /// Asserts that another program of this case trains to the same bits.
    fn assert_same(&self, expected: &[(String, Vec<u8>)], other: &Compiled, what: &str) {
        for ((name, bytes), (_, other)) in expected.iter().zip(self.trained(other)) {
            assert!(*bytes == other, "{}: {name} differs {what}", self.name);
        }
    }
}

fn dense_placeholder(g: &Graph, name: &str, dims: &[usize]) -> Tensor {
    let shape: Shape = std::iter::once(Dim::BATCH).chain(dims.iter().map(|&n| n.into())).collect();
    g.placeholder(name, DType::F32, shape)
}

/// Strings through a vocabulary, hash buckets and a cross: wide weights with Ftrl's rows, deep
/// embeddings.
fn wide_and_deep() -> Case {
    let g = Graph::new();
    let text = FeatureSpec::dense(DType::Str, [1]);
    let spec = BatchSpec::from([
        ("age".to_string(), FeatureSpec::dense(DType::F32, [1])),
        ("job".to_string(), text.clone()),
        ("city".to_string(), text),
    ]);
    let features = estimand::Inputs::new(&g, "feature", &spec);
    let y = dense_placeholder(&g, "y", &[1]);
    let age = numeric_column("age");
    let job = categorical_column_with_vocabulary_list("job", ["clerk", "cook", "smith"]).n_oov_buckets(2);
    let city = categorical_column_with_hash_bucket("city", 20);
    let cross = crossed_column(["job", "city"], 50);
    let wide: [FeatureColumn; 3] = [(&job).into(), (&city).into(), cross.into()];
    let deep: [FeatureColumn; 4] = [
        (&age).into(),
        indicator_column(&job).into(),
        embedding_column(&city, 5).into(),
        bucketized_column(&age, [0.25, 0.5, 0.75]).into(),
    ];
    let x = Dense::new(16).relu().apply(&input_layer(&features, &deep));
    let logits = Dense::new(1).apply(&x) + linear_model(&features, &wide);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Ftrl::default().l1(0.01), 0.1).minimize(&loss);
    let n = 37;
    let words = |all: &[&str], step: usize| {
        Array::from_strings([n, 1], (0..n).map(|i| all[i * step % all.len()].to_string()).collect::<Vec<_>>()).unwrap()
    };
    let feeds = vec![
        (features.dense("age"), uniform("age", &[n, 1]).unwrap()),
        (features.dense("job"), words(&["clerk", "cook", "", "smith", "pilot"], 3)),
        (features.dense("city"), words(&["Bern", "Oslo", "Rome", "Lima", "", "Kiel", "Graz"], 2)),
        (y, uniform("y", &[n, 1]).unwrap()),
    ];
    Case::new("wide and deep", &loss, &train, feeds)
}

/// Two recurrent layers over sequences of different lengths, some of them empty. Their mask is
/// computed from a feed that the graph reads after the first product.
fn sequences_that_end() -> Case {
    let g = Graph::new();
    let (time, n) = (9, 41);
    let x = dense_placeholder(&g, "x", &[time, 6]);
    let y = dense_placeholder(&g, "y", &[1]);
    let variable = |name: &str, dims: [usize; 2]| g.variable(name, dims, Initializer::GlorotUniform);
    let product = x.reshape([-1, 6]).matmul(&variable("first", [6, 20])) + g.variable("bias", [20], Initializer::Ones);
    let lengths = g.placeholder("lengths", DType::F32, [Dim::BATCH, 1.into()]);
    let steps = g.constant(Array::from((0..time).map(|step| step as f32).collect::<Vec<_>>()));
    let mask = steps.expand_dims(0).less(&lengths);
    let layer = |product: &Tensor, name: &str, width: usize, cell: Cell| {
        let n_states = if cell == Cell::Lstm { 2 } else { 1 };
        let others = RecurrentInputs {
            kernel: variable(name, [5, width]),
            bias: None,
            states: vec![g.fill([Dim::BATCH, 5.into()], DType::F32, 0.0); n_states],
            mask: Some(mask.clone()),
            keep: None,
        };
        product.reshape([-1, time as i64, width as i64]).recurrent(
            cell,
            CellFunction::Tanh,
            CellFunction::Sigmoid,
            &others,
        )
    };
    let first = layer(&product, "first/recurrent", 20, Cell::Lstm).sequence;
    let product = first.reshape([-1, 5]).matmul(&variable("second", [5, 15]));
    let second = layer(&product, "second/recurrent", 15, Cell::Gru { reset_after: false });
    let loss = (second.states[0].sum_axes([-1]).expand_dims(-1) - &y).square().mean();
    let train = Optimizer::new(Adam::default(), 0.01).minimize(&loss);
    let ends: Vec<f32> = (0..n).map(|row| (row * 7 % (time + 1)) as f32).collect();
    let feeds = vec![
        (x, uniform("x", &[n, time, 6]).unwrap()),
        (y, uniform("y", &[n, 1]).unwrap()),
        (lengths, Array::from_vec([n, 1], ends).unwrap()),
    ];
    Case::new("sequences that end", &loss, &train, feeds)
}

/// Batch norm between layers, whose statistics are updates of their own.
fn batch_norm() -> Case {
    let g = Graph::new();
    let x = dense_placeholder(&g, "x", &[9]);
    let y = dense_placeholder(&g, "y", &[1]);
    let hidden = BatchNorm::new().apply(&Dense::new(12).apply(&x)).relu();
    let hidden = BatchNorm::new().momentum(0.9).apply(&Dense::new(7).apply(&hidden)).tanh();
    let loss = (Dense::new(1).apply(&hidden) - &y).square().mean();
    let train = Optimizer::new(Adam::default(), 0.01).clip(Clip::GlobalNorm(1.0)).minimize(&loss);
    let feeds = vec![(x, uniform("x", &[45, 9]).unwrap()), (y, uniform("y", &[45, 1]).unwrap())];
    Case::new("batch norm", &loss, &train, feeds)
}

/// Batch norm of images, enough of them for several tasks: sums over all axes but the last, of
/// results that are stored and of those that are not.
fn batch_norm_of_images() -> Case {
    let g = Graph::new();
    let x = dense_placeholder(&g, "x", &[12, 12, 3]);
    let y = dense_placeholder(&g, "y", &[1]);
    let wide = BatchNorm::new().apply(&Conv2d::new(20, 3).apply(&x)).relu();
    let narrow = BatchNorm::new().apply(&Conv2d::new(5, 3).apply(&wide)).relu();
    let loss = (Dense::new(1).apply(&narrow.mean_axes([1, 2])) - &y).square().mean();
    let train = Optimizer::new(Adam::default(), 0.01).minimize(&loss);
    let feeds = vec![(x, uniform("x", &[40, 12, 12, 3]).unwrap()), (y, uniform("y", &[40, 1]).unwrap())];
    Case::new("batch norm of images", &loss, &train, feeds)
}

/// A frozen start of a network, as in transfer learning: batch norm with fixed statistics, with and
/// without a bias and a relu, one of them computed from its statistics after the convolution.
fn frozen_images() -> Case {
    let g = Graph::new();
    let x = dense_placeholder(&g, "x", &[9, 8, 3]);
    let y = dense_placeholder(&g, "y", &[1]);
    let row = |name: &str, n: usize| g.constant(uniform(name, &[1, 1, 1, n]).unwrap());
    let first = Conv2d::new(20, 3).trainable(false).apply(&x);
    let first = (first * (row("variance", 20) + 0.1).rsqrt() + row("shift", 20)).relu();
    let second = Conv2d::new(5, 3).trainable(false).use_bias(false).apply(&first);
    let second = row("shift 2", 5) + row("factor", 5) * second;
    let loss = (Dense::new(1).apply(&second.mean_axes([1, 2])) - &y).square().mean();
    let train = Optimizer::new(Adam::default(), 0.01).minimize(&loss);
    let feeds = vec![(x, uniform("x", &[10, 9, 8, 3]).unwrap()), (y, uniform("y", &[10, 1]).unwrap())];
    Case::new("frozen images", &loss, &train, feeds)
}

/// Causal attention with layer norms and a residual.
fn attention() -> Case {
    let g = Graph::new();
    let x = dense_placeholder(&g, "x", &[6, 8]);
    let y = dense_placeholder(&g, "y", &[1]);
    let mixed = MultiHeadAttention::new(2, 4).apply(&LayerInputs::of(&x).use_causal_mask(true));
    let x1 = LayerNorm::new().apply(&(&x + mixed));
    let x2 = LayerNorm::new().apply(&(&x1 + Dense::new(8).apply(&Dense::new(16).relu().apply(&x1))));
    let loss = (Dense::new(1).apply(&x2.mean_axes([1])) - &y).square().mean();
    let train = Optimizer::new(RmsProp::default().centered(true), 0.01).minimize(&loss);
    let feeds = vec![(x, uniform("x", &[11, 6, 8]).unwrap()), (y, uniform("y", &[11, 1]).unwrap())];
    Case::new("attention", &loss, &train, feeds)
}

/// An LSTM of the layer library, in both directions.
fn lstm() -> Case {
    let g = Graph::new();
    let x = dense_placeholder(&g, "x", &[7, 5]);
    let y = dense_placeholder(&g, "y", &[1]);
    let both = Bidirectional::new(Lstm::new(6)).apply(&x);
    let loss = (Dense::new(1).apply(&both) - &y).square().mean();
    let train = Optimizer::new(Sgd::default().momentum(0.9), 0.05).minimize(&loss);
    let feeds = vec![(x, uniform("x", &[19, 7, 5]).unwrap()), (y, uniform("y", &[19, 1]).unwrap())];
    Case::new("lstm", &loss, &train, feeds)
}

fn images(n: usize) -> Vec<Array> {
    vec![uniform("x", &[n, 28, 28, 1]).unwrap(), integers("y", &[n], 10).unwrap()]
}

fn all_cases() -> Vec<Case> {
    let pair = |x: &[usize], y: &[usize]| vec![uniform("x", x).unwrap(), uniform("y", y).unwrap()];
    vec![
        Case::of_model("linear", models::linear(), pair(&[37, 4], &[37, 1])),
        Case::of_model(
            "iris",
            models::iris(),
            vec![uniform("x", &[128, 4]).unwrap(), integers("y", &[128], 3).unwrap()],
        ),
        Case::of_model("cnn", models::cnn(), images(9)),
        Case::of_model(
            "lookup",
            models::lookup(5_000, 32, 8),
            vec![integers("ids", &[512, 8], 5_000).unwrap(), uniform("y", &[512, 1]).unwrap()],
        ),
        Case::of_model("sequence", models::sequence(7, 5, 19), pair(&[37, 7, 5], &[37, 1])),
        Case::of_model("ctr", models::ctr(300, 8), models::ctr_batch(3, 64).unwrap()),
        wide_and_deep(),
        sequences_that_end(),
        batch_norm(),
        batch_norm_of_images(),
        frozen_images(),
        attention(),
        lstm(),
    ]
}

fn text(compiled: &Compiled) -> String {
    compiled.program().to_string()
}

#[test]
fn fused_and_plain_programs_train_to_the_same_bits() {
    let all: Vec<&str> = pass_names().collect();
    for case in all_cases() {
        let fused = case.trained(&case.compile());
        case.assert_same(&fused, &case.without(&all), "without passes");
        // A run of no effect would pass, too.
        assert_ne!(fused[0].1, fused[2].1, "{}: the loss does not change", case.name);
    }
}

#[test]
fn every_pass_alone_changes_no_bit() {
    let mut cases = all_cases();
    // Several images for each thread, so that a convolution is cut into tasks.
    cases.push(Case::of_model("cnn", models::cnn(), images(64)));
    for case in cases {
        let fused = case.trained(&case.compile());
        for pass in pass_names() {
            let other = case.without(&[pass]);
            if text(&other) != text(&case.compile()) {
                case.assert_same(&fused, &other, &format!("without the pass `{pass}`"));
            }
        }
    }
}

/// What only convolutions have: without all three, a pooling's gradient goes through memory.
#[test]
fn merged_convolutions_train_to_the_same_bits() {
    for n in [1, 9, 64] {
        let case = Case::of_model("cnn", models::cnn(), images(n));
        let other = case.without(&["which", "pooled", "convolve"]);
        assert_ne!(text(&other), text(&case.compile()));
        let fused = case.trained(&case.compile());
        case.assert_same(&fused, &other, &format!("without merged convolutions, {n} images"));
    }
}

/// The products of both layers, the gradients of their kernels, and the gradient between them.
#[test]
fn five_products_leave_out_steps_after_the_end() {
    let text = text(&sequences_that_end().compile());
    assert_eq!(text.matches("+ended(").count(), 5, "{text}");
}

/// No pass is dead: each changes the program of one of these models.
#[test]
fn every_pass_changes_a_program() {
    let cases = all_cases();
    for pass in pass_names() {
        let changes = |case: &Case| text(&case.without(&[pass])) != text(&case.compile());
        assert!(cases.iter().any(changes), "the pass `{pass}` changes none of these programs");
    }
}

/// The mask of another batch is refused before anything is computed.
#[test]
fn masks_of_other_batches_are_refused() {
    let g = Graph::new();
    let x = dense_placeholder(&g, "x", &[4, 3]);
    let mask = g.placeholder("mask", DType::Bool, [Graph::ANY, 4.into()]);
    let kernel = g.variable("kernel", [3, 5], Initializer::GlorotUniform);
    let others = RecurrentInputs {
        kernel: g.variable("recurrent", [5, 5], Initializer::GlorotUniform),
        bias: None,
        states: vec![g.fill([Dim::BATCH, 5.into()], DType::F32, 0.0)],
        mask: Some(mask.clone()),
        keep: None,
    };
    let product = x.reshape([-1, 3]).matmul(&kernel).reshape([-1, 4, 5]);
    let y = product.recurrent(Cell::Simple, CellFunction::Tanh, CellFunction::Sigmoid, &others).sequence;
    let mut session = Session::new(&g).unwrap();
    for (n, fits) in [(2, true), (3, false), (1, false), (0, false)] {
        let mask_of = Array::from_vec([n, 4], vec![true; 4 * n]).unwrap();
        let found = session.run(&[&y], &[(&x, uniform("x", &[2, 4, 3]).unwrap()), (&mask, mask_of)]);
        assert_eq!(found.is_ok(), fits, "{found:?}");
    }
}
