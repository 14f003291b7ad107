//! Graphs of a given number of nodes, each of a shape that some pass might be slow on.

use estimand_graph::{Encoding, Graph, Initializer, LookupTable, Optimizer, Padding, Tensor};
use estimand_tensor::{Array, DType, Dim};
use estimand_update::{Adagrad, Sgd};

/// A graph with what to run.
pub struct Model {
    pub graph: Graph,
    pub fetches: Vec<Tensor>,
    pub feeds: Vec<(Tensor, Array)>,
    /// Whether it can be written as a GraphDef: train ops cannot.
    pub is_written: bool,
}

/// Builds a graph of about this many nodes.
pub type Build = fn(usize) -> Model;

pub const ALL: [(&str, Build); 17] = [
    ("element-wise chain", chain),
    ("chain that does not fuse", products),
    ("dense chain, trained", dense),
    ("convolutions and poolings, trained", convolutions),
    ("one value, many consumers and outputs", fan_out),
    ("one value, many consumers, trained", fan_out_trained),
    ("one long concat", fan_in),
    ("one long concat of unknown sizes", fan_in_unknown),
    ("sizes that are sums of sums", deep_sizes),
    ("many variables", variables),
    ("many placeholders", placeholders),
    ("many constants", constants),
    ("equal sub-expressions", equal),
    ("scopes and names", names),
    ("host chain of strings and numbers", host_chain),
    ("host features with sizes of their own", host_features),
    ("strings that are moved", moved_strings),
];

fn forward(graph: &Graph, fetches: Vec<Tensor>, feeds: Vec<(Tensor, Array)>) -> Model {
    Model { graph: graph.clone(), fetches, feeds, is_written: true }
}

fn trained(graph: &Graph, loss: &Tensor, feeds: Vec<(Tensor, Array)>) -> Model {
    let train = Optimizer::new(Sgd::default(), 0.01).minimize(loss);
    Model { graph: graph.clone(), fetches: vec![train, loss.clone()], feeds, is_written: false }
}

fn ones(dims: &[usize]) -> Array {
    Array::from_vec(dims, vec![1f32; dims.iter().product()]).unwrap()
}

fn chain(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let mut y = x.clone();
    for i in 0..n / 2 {
        y = match i % 3 {
            0 => y.tanh(),
            1 => &y + &x,
            _ => y * 0.5,
        };
    }
    forward(&g, vec![y], vec![(x, ones(&[3]))])
}

fn products(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    let w = g.variable("w", [2, 2], Initializer::Constant(0.5));
    let mut y = x.clone();
    for _ in 0..n {
        y = y.matmul(&w);
    }
    forward(&g, vec![y], vec![(x, ones(&[3, 2]))])
}

fn dense(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    let mut y = x.clone();
    // A layer has 5 nodes, and as many for its gradients.
    for i in 0..n / 12 {
        let _scope = g.scope(&format!("layer_{i}"));
        let (w, b) = (g.variable("w", [2, 2], Initializer::Constant(0.5)), g.variable("b", [2], Initializer::Zeros));
        y = (y.matmul(&w) + &b).relu();
    }
    trained(&g, &y.square().mean(), vec![(x, ones(&[3, 2]))])
}

fn convolutions(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into(), 2.into(), 1.into()]);
    let mut y = x.clone();
    for i in 0..n / 16 {
        let w = g.variable(&format!("w{i}"), [1, 1, 1, 1], Initializer::Ones);
        let b = g.variable(&format!("b{i}"), [1], Initializer::Zeros);
        let wide = (y.conv2d(&w, (1, 1), Padding::Same) + &b).relu();
        y = wide.max_pool((1, 1), (1, 1), Padding::Same);
    }
    trained(&g, &y.square().mean(), vec![(x, ones(&[2, 2, 2, 1]))])
}

fn fan_out(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let y = x.tanh();
    let consumers = (0..n / 2).map(|i| &y + i as f64).collect();
    forward(&g, consumers, vec![(x, ones(&[2]))])
}

fn fan_out_trained(n: usize) -> Model {
    let g = Graph::new();
    let w = g.variable("w", [2], Initializer::Ones);
    let consumers: Vec<Tensor> = (0..n / 8).map(|i| (&w + i as f64).tanh().sum()).collect();
    let loss = consumers.iter().cloned().reduce(|a, b| a + b).unwrap();
    trained(&g, &loss, Vec::new())
}

fn fan_in(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 1.into()]);
    let parts: Vec<Tensor> = (0..n / 2).map(|i| &x + i as f64).collect();
    let all = Tensor::concat(&parts.iter().collect::<Vec<_>>(), 1);
    forward(&g, vec![all.sum()], vec![(x, ones(&[2, 1]))])
}

fn fan_in_unknown(n: usize) -> Model {
    let g = Graph::new();
    let parts: Vec<Tensor> = (0..n / 2).map(|i| g.placeholder(&format!("x{i}"), DType::F32, [Graph::ANY])).collect();
    let mut all = Tensor::concat(&parts.iter().collect::<Vec<_>>(), 0);
    // All of these have a size that is a sum of all the others.
    for _ in 0..n / 2 {
        all = all.cumsum(0);
    }
    let feeds = parts.into_iter().map(|part| (part, ones(&[0]))).collect();
    forward(&g, vec![all], feeds)
}

fn deep_sizes(n: usize) -> Model {
    let g = Graph::new();
    let first = g.placeholder("x", DType::F32, [Graph::ANY]);
    let mut feeds = vec![(first.clone(), ones(&[1]))];
    let mut y = first;
    for i in 0..n / 4 {
        let x = g.placeholder(&format!("x{i}"), DType::F32, [Graph::ANY]);
        // Size s becomes (s + 0) * 1, which only the run can tell.
        y = Tensor::concat(&[&y, &x], 0).reshape([-1, 1]).reshape([-1]);
        feeds.push((x, ones(&[0])));
    }
    forward(&g, vec![y], feeds)
}

fn variables(n: usize) -> Model {
    let g = Graph::new();
    let weights: Vec<Tensor> = (0..n / 8)
        .map(|i| {
            let _scope = g.scope(&format!("part_{i}"));
            g.variable("w", [2], Initializer::Ones)
        })
        .collect();
    let loss = weights.iter().map(|w| w.square().sum()).reduce(|a, b| a + b).unwrap();
    let train = Optimizer::new(Adagrad::default(), 0.01).minimize(&loss);
    Model { graph: g, fetches: vec![train, loss], feeds: Vec::new(), is_written: false }
}

fn placeholders(n: usize) -> Model {
    let g = Graph::new();
    let x: Vec<Tensor> =
        (0..n / 3).map(|i| g.placeholder(&format!("größe {i}"), DType::F32, [Dim::BATCH, Graph::ANY])).collect();
    let total = x.iter().map(|x| x.sum()).reduce(|a, b| a + b).unwrap();
    let feeds = x.into_iter().map(|x| (x, ones(&[1, 1]))).collect();
    forward(&g, vec![total], feeds)
}

fn constants(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    let mut y = x.clone();
    for i in 0..n / 2 {
        y = y + g.constant([i as f32, 1.0]);
    }
    forward(&g, vec![y], vec![(x, ones(&[2, 2]))])
}

fn equal(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let same = || (&x * 2.0).tanh();
    let total = (0..n / 4).map(|_| same()).reduce(|a, b| a + b).unwrap();
    forward(&g, vec![total], vec![(x, ones(&[2]))])
}

fn names(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let mut y = x.clone();
    for i in 0..n / 3 {
        let _scope = g.scope("scope");
        let _inner = g.scope(if i % 2 == 0 { "inner" } else { "größe" });
        y = y.tanh();
        // A name that counting would come to later.
        let taken = g.placeholder(&format!("scope_{}", i + 2), DType::F32, [1]);
        assert!(!taken.is_poisoned());
        // The same name once the characters that TensorFlow lacks are gone.
        let letter = char::from_u32(0x4e00 + (i % 20_000) as u32).unwrap();
        g.placeholder(&letter.to_string(), DType::F32, [1]);
    }
    forward(&g, vec![y], vec![(x, ones(&[2]))])
}

fn host_chain(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::Str, [Dim::BATCH]);
    let table = LookupTable::from_list(["1", "2", "3", "4", "5", "6", "7"]).unwrap().default_id(0);
    let mut y = x.clone();
    for _ in 0..n / 6 {
        // Strings, a table, numbers, and strings again.
        let ids = table.lookup(&y.lower(Encoding::Bytes));
        y = ((ids + 3i64).minimum(5i64)).as_string();
    }
    forward(&g, vec![y.string_length(Encoding::Bytes)], vec![(x, Array::from_strings([2], ["1", "zwei"]).unwrap())])
}

fn host_features(n: usize) -> Model {
    let g = Graph::new();
    let mut fetches = Vec::new();
    let mut feeds = Vec::new();
    for i in 0..n / 8 {
        let x = g.placeholder(&format!("x{i}"), DType::I64, [Dim::BATCH]);
        let (distinct, _) = x.unique();
        let (again, place) = (distinct + 1i64).unique();
        fetches.push(again.sum() + place.cast(DType::I64).sum());
        feeds.push((x, Array::from([1i64, 2, 1])));
    }
    // TensorFlow's `Unique` numbers its ids otherwise, so it is not written.
    Model { graph: g, fetches, feeds, is_written: false }
}

fn moved_strings(n: usize) -> Model {
    let g = Graph::new();
    let x = g.placeholder("x", DType::Str, [Dim::BATCH, 2.into()]);
    let mut y = x.clone();
    for i in 0..n / 3 {
        y = match i % 3 {
            0 => y.transpose(&[1, 0]).transpose(&[1, 0]),
            1 => Tensor::concat(&[&y.slice(&[0, 0], &[1, 1]), &y.slice(&[0, 1], &[1, 1])], 1),
            _ => y.lower(Encoding::Bytes),
        };
    }
    forward(&g, vec![y.string_length(Encoding::Bytes)], vec![(x, Array::from_strings([1, 2], ["A", "B"]).unwrap())])
}
