//! The models that benchmarks and golden tests share: linear, a small network, the MNIST CNN, an
//! embedding lookup, an LSTM and a GRU.
//!
//! Each is built with the low-level API alone and comes with feeds of its sizes.

use estimand::graph::op::{Cell, CellFunction};
use estimand::graph::{Combiner, Padding, RaggedTensor, RecurrentInputs, RecurrentOutputs};
use estimand::prelude::*;
use estimand::tensor::random::{Key, Stream};

/// A graph with everything needed to train it.
pub struct Model {
    pub graph: Graph,
    pub placeholders: Vec<Tensor>,
    pub logits: Tensor,
    pub loss: Tensor,
    pub train: Tensor,
}

impl Model {
    /// Pairs placeholders with values, for a session.
    pub fn feeds<'a>(&'a self, values: &[Array]) -> Vec<(&'a Tensor, Array)> {
        self.placeholders.iter().zip(values.iter().cloned()).collect()
    }
}

fn dense(x: &Tensor, name: &str, units: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [x.dim(1), units], Initializer::GlorotUniform);
    let bias = g.variable("bias", [units], Initializer::Zeros);
    x.matmul(&kernel) + bias
}

fn conv(x: &Tensor, name: &str, filters: usize) -> Tensor {
    let g = x.graph();
    let _scope = g.scope(name);
    let kernel = g.variable("kernel", [5, 5, x.dim(3), filters], Initializer::GlorotUniform);
    let bias = g.variable("bias", [filters], Initializer::Zeros);
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

/// Rows of an embedding table, summed per example and regressed on a number, with Adagrad.
pub fn lookup(n_rows: usize, width: usize, per_example: usize) -> Model {
    let g = Graph::new();
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH, per_example.into()]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let table =
        g.variable("embedding_weights", [n_rows, width], Initializer::TruncatedNormal { mean: 0.0, stddev: 0.1 });
    let pooled = table.gather(&ids).sum_axes([1]);
    let logits = dense(&pooled, "logits", 1);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Adagrad::default(), 0.05).minimize(&loss);
    Model { graph: g, placeholders: vec![ids, y], logits, loss, train }
}

/// The last state of an LSTM over rows of steps, after a GRU that skips steps whose first number is
/// below 0.1, with Adam.
pub fn sequence(time: usize, inputs: usize, units: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, time.into(), inputs.into()]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let mask = x.slice(&[0, 0, 0], &[-1, -1, 1]).squeeze(&[2]).greater_equal(0.1);
    let gru = recurrent(&x, "gru", units, Cell::Gru { reset_after: true }, Some(mask));
    let lstm = recurrent(&gru.sequence, "lstm", units, Cell::Lstm, None);
    let logits = dense(&lstm.states[0], "logits", 1);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Adam::default(), 0.001).minimize(&loss);
    Model { graph: g, placeholders: vec![x, y], logits, loss, train }
}

/// An LSTM over rows of steps and a layer on its last state, with Adam.
pub fn lstm(time: usize, inputs: usize, units: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, time.into(), inputs.into()]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let lstm = recurrent(&x, "lstm", units, Cell::Lstm, None);
    let logits = dense(&lstm.states[0], "logits", 1);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Adam::default(), 0.001).minimize(&loss);
    Model { graph: g, placeholders: vec![x, y], logits, loss, train }
}

/// A recurrent cell with its kernels, from a state of zeros.
fn recurrent(x: &Tensor, name: &str, units: usize, cell: Cell, mask: Option<Tensor>) -> RecurrentOutputs {
    let g = x.graph();
    let _scope = g.scope(name);
    let (gates, n_states) = if cell == Cell::Lstm { (4, 2) } else { (3, 1) };
    let (inputs, time) = (x.dim(2), x.dim(1));
    let kernel = g.variable("kernel", [inputs, gates * units], Initializer::GlorotUniform);
    let bias = g.variable("bias", [gates * units], Initializer::Zeros);
    let product = x.reshape([-1, inputs as i64]).matmul(&kernel) + &bias;
    let others = RecurrentInputs {
        kernel: g.variable("recurrent_kernel", [units, gates * units], Initializer::Orthogonal { gain: 1.0 }),
        bias: (cell == Cell::Gru { reset_after: true })
            .then(|| g.variable("recurrent_bias", [gates * units], Initializer::Zeros)),
        states: vec![g.fill([Dim::BATCH, units.into()], DType::F32, 0.0); n_states],
        mask,
        keep: None,
    };
    let product = product.reshape([-1, time as i64, (gates * units) as i64]);
    product.recurrent(cell, CellFunction::Tanh, CellFunction::Sigmoid, &others)
}

/// Categories of eight fields hashed into a million buckets each, embedded, and 13 numbers: a
/// network of 256 and 128, with Adagrad.
pub fn ctr(n_buckets: usize, width: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 13.into()]);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let fields: Vec<Tensor> = (0..8).map(|i| g.placeholder(&format!("c{i}"), DType::I64, [Dim::BATCH])).collect();
    let embed = |(i, field): (usize, &Tensor)| {
        let _scope = g.scope(&format!("c{i}_embedding"));
        let present = RaggedTensor::from_dense(field);
        let ids = present.with_values(present.values.hash_bucket(n_buckets as i64));
        let initializer = Initializer::TruncatedNormal { mean: 0.0, stddev: 1.0 / (width as f64).sqrt() };
        g.variable("embedding_weights", [n_buckets, width], initializer).lookup(&ids, Combiner::Mean)
    };
    let mut inputs: Vec<Tensor> = fields.iter().enumerate().map(embed).collect();
    inputs.push(x.clone());
    let net = Tensor::concat(&inputs.iter().collect::<Vec<_>>(), 1);
    let net = dense(&dense(&net, "hiddenlayer_0", 256).relu(), "hiddenlayer_1", 128).relu();
    let logits = dense(&net, "logits", 1);
    let loss = logits.sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Adagrad::default(), 0.001).minimize(&loss);
    let placeholders = [x, y].into_iter().chain(fields).collect();
    Model { graph: g, placeholders, logits, loss, train }
}

/// Feeds of `ctr`: ids by Zipf's law with exponent 1.2, up to ten million.
pub fn ctr_batch(seed: u64, rows: usize) -> Result<Vec<Array>> {
    let mut feeds = vec![uniform(&format!("x{seed}"), &[rows, 13])?, uniform(&format!("y{seed}"), &[rows, 1])?];
    for field in 0..8 {
        let ids = uniform(&format!("c{field}/{seed}"), &[rows])?;
        let zipf = |&u: &f32| f64::from(1.0 - u).powi(-5).min(1e7) as i64;
        feeds.push(Array::from(ids.as_slice::<f32>()?.iter().map(zipf).collect::<Vec<i64>>()));
    }
    Ok(feeds)
}

/// Rows of a table by id, with duplicate ids removed on the host, with Adagrad.
pub fn unique_lookup(n_rows: usize, width: usize) -> Model {
    let g = Graph::new();
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
    let rows = g.placeholder("rows", DType::F32, [Dim::BATCH, width.into()]);
    let table = g.variable("table", [n_rows, width], Initializer::Zeros);
    let logits = table.lookup(&RaggedTensor::from_dense(&ids), Combiner::Sum) * &rows;
    let loss = logits.sum();
    let train = Optimizer::new(Adagrad::default(), 0.05).minimize(&loss);
    Model { graph: g, placeholders: vec![ids, rows], logits, loss, train }
}

/// Only the update of a lookup: rows of a table get the fed gradients, with Adagrad.
pub fn sparse_update(n_rows: usize, width: usize) -> Model {
    let g = Graph::new();
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
    let rows = g.placeholder("rows", DType::F32, [Dim::BATCH, width.into()]);
    let table = g.variable("table", [n_rows, width], Initializer::Zeros);
    let logits = table.gather(&ids) * &rows;
    let loss = logits.sum();
    let train = Optimizer::new(Adagrad::default(), 0.05).minimize(&loss);
    Model { graph: g, placeholders: vec![ids, rows], logits, loss, train }
}

/// Uniform numbers of a shape, always the same.
pub fn uniform(name: &str, dims: &[usize]) -> Result<Array> {
    let mut values = vec![0.0; dims.iter().product()];
    let width = values.len().max(1);
    Stream::new(Key::new(7, name), 0).fill_uniform_f32(0, width, &mut values);
    Array::from_vec(dims, values)
}

/// Integers below `limit` of a shape, always the same.
pub fn integers(name: &str, dims: &[usize], limit: i64) -> Result<Array> {
    let mut values = vec![0; dims.iter().product()];
    let width = values.len().max(1);
    Stream::new(Key::new(7, name), 0).fill_integers_i64(0, width, 0, limit, &mut values);
    Array::from_vec(dims, values)
}
