//! The four models that benchmarks and golden tests share: linear, a small network, the MNIST CNN, and an embedding lookup.
//!
//! Each is built with the low-level API alone and comes with feeds of its sizes.

use estimand::prelude::*;
use estimand::tensor::random::{Key, Stream};

/// A graph with what is needed to train it.
pub struct Model {
    pub graph: Graph,
    pub placeholders: Vec<Tensor>,
    pub logits: Tensor,
    pub loss: Tensor,
    pub train: Tensor,
}

impl Model {
    /// Pairs placeholders with values, as a session wants them.
    pub fn feeds<'a>(&'a self, values: &[Array]) -> Vec<(&'a Tensor, Array)> {
        self.placeholders.iter().zip(values.iter().cloned()).collect()
    }
}

fn dense(x: &Tensor, name: &str, units: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [x.dim(1), units], Init::GlorotUniform);
    let bias = g.variable("bias", [units], Init::Zeros);
    x.matmul(&kernel) + bias
}

fn conv(x: &Tensor, name: &str, filters: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [5, 5, x.dim(3), filters], Init::GlorotUniform);
    let bias = g.variable("bias", [filters], Init::Zeros);
    (x.conv2d(&kernel, (1, 1), Padding::Valid) + bias).relu().max_pool((2, 2), (2, 2), Padding::Valid)
}

/// Logistic regression on four numbers, with Ftrl.
pub fn linear() -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let logits = dense(&x, "linear", 1);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Ftrl::default(), 0.2).minimize(&loss);
    Model { graph: g, placeholders: vec![x, y], logits, loss, train }
}

/// The network of the iris example: 4-10-10-3, with Adagrad.
pub fn iris() -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    let y = g.placeholder("y", DType::I64, [Dim::BATCH]);
    let hidden = dense(&x, "hiddenlayer_0", 10).relu();
    let hidden = dense(&hidden, "hiddenlayer_1", 10).relu();
    let logits = dense(&hidden, "logits", 3);
    let loss = logits.sparse_softmax_cross_entropy(&y).mean();
    let train = Optimizer::new(Adagrad::default(), 0.001).minimize(&loss);
    Model { graph: g, placeholders: vec![x, y], logits, loss, train }
}

/// The MNIST network: two convolutions, two layers of 256 with dropout, with Adam.
pub fn cnn() -> Model {
    let g = Graph::new();
    let x = g.placeholder("image", DType::F32, [Dim::BATCH, 28.into(), 28.into(), 1.into()]);
    let y = g.placeholder("label", DType::I64, [Dim::BATCH]);
    let net = conv(&conv(&x, "conv1", 20), "conv3", 40).reshape([-1, 640]);
    let net = dense(&net, "fn5", 256).relu().dropout(0.5);
    let net = dense(&net, "fn6", 256).relu().dropout(0.5);
    let logits = dense(&net, "output", 10);
    let loss = logits.sparse_softmax_cross_entropy(&y).mean();
    let train = Optimizer::new(Adam::default(), 0.002).minimize(&loss);
    Model { graph: g, placeholders: vec![x, y], logits, loss, train }
}

/// Rows of an embedding table, summed for each example and regressed on a number, with Adagrad.
pub fn lookup(n_rows: usize, width: usize, per_example: usize) -> Model {
    let g = Graph::new();
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH, per_example.into()]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let table = g.variable("embedding_weights", [n_rows, width], Init::TruncatedNormal { mean: 0.0, stddev: 0.1 });
    let pooled = table.gather(&ids).sum_axes(&[1], false);
    let logits = dense(&pooled, "logits", 1);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Adagrad::default(), 0.05).minimize(&loss);
    Model { graph: g, placeholders: vec![ids, y], logits, loss, train }
}

/// The update of a lookup alone: rows of a table get the gradients that are fed, with Adagrad.
pub fn sparse_update(n_rows: usize, width: usize) -> Model {
    let g = Graph::new();
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
    let rows = g.placeholder("rows", DType::F32, [Dim::BATCH, width.into()]);
    let table = g.variable("table", [n_rows, width], Init::Zeros);
    let logits = table.gather(&ids) * &rows;
    let loss = logits.sum();
    let train = Optimizer::new(Adagrad::default(), 0.05).minimize(&loss);
    Model { graph: g, placeholders: vec![ids, rows], logits, loss, train }
}

/// Uniform numbers of some sizes, always the same.
pub fn uniform(name: &str, dims: &[usize]) -> Result<Array> {
    let mut values = vec![0.0; dims.iter().product()];
    let width = values.len().max(1);
    Stream::new(Key::new(7, name), 0).fill_uniform_f32(0, width, &mut values);
    Array::from_vec(dims, values)
}

/// Integers below `limit` of some sizes, always the same.
pub fn integers(name: &str, dims: &[usize], limit: i64) -> Result<Array> {
    let mut values = vec![0; dims.iter().product()];
    let width = values.len().max(1);
    Stream::new(Key::new(7, name), 0).fill_integers_i64(0, width, 0, limit, &mut values);
    Array::from_vec(dims, values)
}
