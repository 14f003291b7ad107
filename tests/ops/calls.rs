//! Each operation, called once: the nodes that it adds to a graph.

use std::collections::{BTreeMap, BTreeSet};

use estimand::graph::custom::CustomOp;
use estimand::graph::op::{Cell, CellFunction};
use estimand::graph::{
    Combiner, Encoding, LookupTable, Minimize, Mirror, Padding, Parsed, RaggedTensor, RecurrentInputs,
    RecurrentOutputs, Role, Transposed,
};
use estimand::prelude::*;
use estimand::tensor::{BatchSpec, FeatureSpec, Shape, TensorSpec};

/// What a call adds to a graph.
#[derive(Debug, Default)]
pub struct Built {
    /// Names of ops in the order of their first appearance, without constants.
    pub nodes: Vec<String>,
    /// Names of ops that its gradient and a training step add.
    pub gradient: BTreeSet<String>,
    /// Variants of `Op`, of both.
    pub kinds: BTreeSet<&'static str>,
}

/// What operations are called with.
struct Given {
    g: Graph,
    /// f32 `[batch, 4]`
    x: Tensor,
    /// f32 `[batch, 4]`
    y: Tensor,
    /// f32 `[n, 4]`, n is known at run time
    some: Tensor,
    /// A variable, f32 `[4, 4]`
    w: Tensor,
    /// f32 `[batch, 8, 8, 3]`
    image: Tensor,
    /// A variable, f32 `[3, 3, 3, 2]`
    filter: Tensor,
    /// f32 `[3, 3, 2, 3]`
    transposed: Tensor,
    /// f32 `[1, 4, 4]`
    kernel: Tensor,
    /// f32 `[batch, 6, 4]`
    sequence: Tensor,
    /// f32 `[batch, 1, 4]`
    thin: Tensor,
    /// i64 `[batch]`
    ids: Tensor,
    /// i64 `[batch, 1]`
    index: Tensor,
    /// i64 `[batch, 2]`
    places: Tensor,
    /// bool `[batch, 4]`
    flags: Tensor,
    /// string `[batch]`
    text: Tensor,
    /// strings
    words: RaggedTensor,
    /// i64
    many: RaggedTensor,
    /// bool, one for each value of `many`
    kept: Tensor,
    /// i64, one number
    n_steps: Tensor,
    /// f32
    numbers: RaggedTensor,
    table: LookupTable,
}

impl Given {
    fn new() -> Given {
        let g = Graph::new();
        let rows = |name: &str, dtype, dims: &[usize]| {
            let dims: Shape = [Dim::BATCH].into_iter().chain(dims.iter().map(|&n| n.into())).collect();
            g.placeholder(name, dtype, dims)
        };
        let w = g.variable("w", [4, 4], Initializer::Ones);
        let filter = g.variable("filter", [3, 3, 3, 2], Initializer::Ones);
        let ids = rows("ids", DType::I64, &[]);
        let many = g.ragged_placeholder("many", DType::I64);
        Given {
            x: rows("x", DType::F32, &[4]),
            y: rows("y", DType::F32, &[4]),
            some: g.placeholder("some", DType::F32, [Graph::ANY, 4.into()]),
            kernel: w.reshape([1, 4, 4]),
            w,
            image: rows("image", DType::F32, &[8, 8, 3]),
            transposed: filter.transpose(&[0, 1, 3, 2]),
            filter,
            sequence: rows("sequence", DType::F32, &[6, 4]),
            thin: rows("thin", DType::F32, &[1, 4]),
            index: ids.expand_dims(1),
            ids,
            places: rows("places", DType::I64, &[2]),
            flags: rows("flags", DType::Bool, &[4]),
            text: rows("text", DType::Str, &[]),
            words: g.ragged_placeholder("words", DType::Str),
            kept: many.values.cast(DType::Bool),
            n_steps: many.row_lengths().max(),
            many,
            numbers: g.ragged_placeholder("numbers", DType::F32),
            table: LookupTable::from_list(["a", "b"]).unwrap(),
            g,
        }
    }

    /// Inputs of a simple recurrent cell of 4 units.
    fn cell(&self) -> RecurrentInputs {
        let states = vec![self.x.clone()];
        RecurrentInputs { kernel: self.w.clone(), bias: None, states, mask: None, keep: None }
    }
}

/// The tensors that an operation returns.
trait Returned {
    fn tensors(self) -> Vec<Tensor>;
}

impl Returned for Tensor {
    fn tensors(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl Returned for Vec<Tensor> {
    fn tensors(self) -> Vec<Tensor> {
        self
    }
}

impl Returned for (Tensor, Tensor) {
    fn tensors(self) -> Vec<Tensor> {
        vec![self.0, self.1]
    }
}

impl Returned for RaggedTensor {
    fn tensors(self) -> Vec<Tensor> {
        vec![self.values, self.row_splits]
    }
}

impl Returned for RecurrentOutputs {
    fn tensors(self) -> Vec<Tensor> {
        vec![self.sequence]
    }
}

impl<K> Returned for indexmap::IndexMap<K, Parsed> {
    fn tensors(self) -> Vec<Tensor> {
        self.values().map(|feature| feature.values().clone()).collect()
    }
}

type Call = (&'static str, fn(&Given) -> Vec<Tensor>);

/// Calls by their paths: the name in the table is the path that is called.
macro_rules! calls {
    ($($path:path = |$given:ident| $arguments:tt),* $(,)?) => {
        vec![$((stringify!($path), (|$given| $path $arguments.tensors()) as fn(&Given) -> Vec<Tensor>)),*]
    };
}

/// All operations with what they add.
pub fn built() -> BTreeMap<String, Built> {
    let operators: [Call; 5] = [
        ("x + y", |i| (&i.x + &i.y).tensors()),
        ("x - y", |i| (&i.x - &i.y).tensors()),
        ("x * y", |i| (&i.x * &i.some).tensors()),
        ("x / y", |i| (&i.x / &i.y).tensors()),
        ("-x", |i| (-&i.x).tensors()),
    ];
    let methods =
        [elements(), reductions(), windows(), networks(), shapes(), indices(), strings(), ragged(), sources()];
    let methods = methods.concat().into_iter().map(|(path, call)| (path.replace(' ', ""), call));
    let all = operators.map(|(name, call)| (name.to_string(), call)).into_iter().chain(methods);
    all.map(|(name, call)| {
        let built = build(&name, call);
        (name, built)
    })
    .collect()
}

/// Nodes of gradients and training steps that no operation adds by itself.
pub fn gradient_nodes(built: &BTreeMap<String, Built>) -> BTreeSet<String> {
    let called: BTreeSet<&String> = built.values().flat_map(|built| &built.nodes).collect();
    built.values().flat_map(|built| &built.gradient).filter(|node| !called.contains(node)).cloned().collect()
}

fn build(name: &str, call: fn(&Given) -> Vec<Tensor>) -> Built {
    let given = Given::new();
    let graph = &given.g;
    let first = graph.body().nodes().len();
    let outputs = call(&given);
    graph.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut built = Built::default();
    let last = graph.body().nodes().len();
    for node in &graph.body().nodes()[first..last] {
        built.kinds.insert(node.op.kind());
        let op = node.op.name().to_string();
        // What a constant operation adds is a constant.
        if (op != "Const" || name == "Graph::constant") && !built.nodes.contains(&op) {
            built.nodes.push(op);
        }
    }
    // Ops that only change state have no value.
    let has_value = |output: &&Tensor| !graph.body().node(output.value().node).outputs.is_empty();
    for output in outputs.iter().filter(has_value).filter(|output| output.dtype() == DType::F32) {
        let loss = output.sum();
        for input in [&given.x, &given.some, &given.image, &given.sequence, &given.numbers.values] {
            gradients(&loss, &[input]);
        }
        for variable in [&given.w, &given.filter] {
            if !matches!(gradients(&loss, &[variable])[..], [estimand::graph::Gradient::None]) {
                Optimizer::new(Sgd::default(), 0.1).minimize(Minimize::new(&loss).variables([variable]));
            }
        }
    }
    for node in &graph.body().nodes()[last..] {
        built.kinds.insert(node.op.kind());
        built.gradient.insert(node.op.name().to_string());
    }
    built.gradient.remove("Const");
    built
}

fn elements() -> Vec<Call> {
    calls![
        Tensor::abs = |i| (&i.x),
        Tensor::sign = |i| (&i.x),
        Tensor::floor = |i| (&i.x),
        Tensor::ceil = |i| (&i.x),
        Tensor::round = |i| (&i.x),
        Tensor::exp = |i| (&i.x),
        Tensor::expm1 = |i| (&i.x),
        Tensor::log = |i| (&i.x),
        Tensor::log1p = |i| (&i.x),
        Tensor::sqrt = |i| (&i.x),
        Tensor::rsqrt = |i| (&i.x),
        Tensor::square = |i| (&i.x),
        Tensor::reciprocal = |i| (&i.x),
        Tensor::sin = |i| (&i.x),
        Tensor::cos = |i| (&i.x),
        Tensor::tanh = |i| (&i.x),
        Tensor::sigmoid = |i| (&i.x),
        Tensor::erf = |i| (&i.x),
        Tensor::softplus = |i| (&i.x),
        Tensor::softsign = |i| (&i.x),
        Tensor::relu = |i| (&i.x),
        Tensor::relu6 = |i| (&i.x),
        Tensor::elu = |i| (&i.x),
        Tensor::selu = |i| (&i.x),
        Tensor::leaky_relu = |i| (&i.x, 0.2),
        Tensor::swish = |i| (&i.x),
        Tensor::gelu = |i| (&i.x),
        Tensor::div_no_nan = |i| (&i.x, &i.y),
        Tensor::floor_div = |i| (&i.x, &i.y),
        Tensor::floor_mod = |i| (&i.x, &i.y),
        Tensor::pow = |i| (&i.x, &i.y),
        Tensor::maximum = |i| (&i.x, &i.y),
        Tensor::minimum = |i| (&i.x, &i.y),
        Tensor::clip = |i| (&i.x, 0.0, 1.0),
        Tensor::squared_difference = |i| (&i.x, &i.y),
        Tensor::less = |i| (&i.x, &i.y),
        Tensor::less_equal = |i| (&i.x, &i.y),
        Tensor::greater = |i| (&i.x, &i.y),
        Tensor::greater_equal = |i| (&i.x, &i.y),
        Tensor::equal = |i| (&i.x, &i.y),
        Tensor::not_equal = |i| (&i.x, &i.y),
        Tensor::logical_not = |i| (&i.flags),
        Tensor::logical_and = |i| (&i.flags, &i.flags),
        Tensor::logical_or = |i| (&i.flags, &i.flags),
        Tensor::is_nan = |i| (&i.x),
        Tensor::is_finite = |i| (&i.x),
        Tensor::select = |i| (&i.flags, &i.x, &i.y),
        Tensor::cast = |i| (&i.ids, DType::F32),
        Tensor::stop_gradient = |i| (&i.x),
        Tensor::print = |i| (&i.x, "x"),
    ]
}

fn reductions() -> Vec<Call> {
    calls![
        Tensor::sum = |i| (&i.x),
        Tensor::sum_axes = |i| (&i.x, [1]),
        Tensor::mean = |i| (&i.x),
        Tensor::mean_axes = |i| (&i.x, [1]),
        Tensor::max = |i| (&i.x),
        Tensor::max_axes = |i| (&i.x, [1]),
        Tensor::min = |i| (&i.x),
        Tensor::min_axes = |i| (&i.x, [1]),
        Tensor::prod = |i| (&i.x),
        Tensor::prod_axes = |i| (&i.x, [1]),
        Tensor::all = |i| (&i.flags),
        Tensor::all_axes = |i| (&i.flags, [1]),
        Tensor::any = |i| (&i.flags),
        Tensor::any_axes = |i| (&i.flags, [1]),
        Tensor::logsumexp_axes = |i| (&i.x, [1]),
        Tensor::moments = |i| (&i.x, &[0]),
        Tensor::argmax = |i| (&i.x, 1),
        Tensor::argmin = |i| (&i.x, 1),
        Tensor::cumsum = |i| (&i.x, 1),
        Tensor::cumprod = |i| (&i.x, 1),
        Tensor::top_k = |i| (&i.x, 2),
    ]
}

fn windows() -> Vec<Call> {
    calls![
        Tensor::matmul = |i| (&i.x, &i.w),
        Tensor::matmul_with = |i| (&i.sequence, &i.sequence, Transposed::Right),
        Tensor::conv1d = |i| (&i.sequence, &i.kernel, 1, Padding::Valid),
        Tensor::conv2d = |i| (&i.image, &i.filter, (1, 1), Padding::Same),
        Tensor::conv2d_dilated = |i| (&i.image, &i.filter, (1, 1), (2, 2), Padding::Same),
        Tensor::conv2d_transpose = |i| (&i.image, &i.transposed, (16, 16), (2, 2), Padding::Same),
        Tensor::conv2d_transpose_dilated = |i| (&i.image, &i.transposed, (8, 8), (1, 1), (2, 2), Padding::Same),
        Tensor::depthwise_conv2d = |i| (&i.image, &i.filter, (1, 1), Padding::Same),
        Tensor::depthwise_conv2d_dilated = |i| (&i.image, &i.filter, (1, 1), (2, 2), Padding::Same),
        Tensor::max_pool = |i| (&i.image, (2, 2), (2, 2), Padding::Valid),
        Tensor::avg_pool = |i| (&i.image, (2, 2), (2, 2), Padding::Valid),
        Tensor::global_max_pool = |i| (&i.image),
        Tensor::global_avg_pool = |i| (&i.image),
        Tensor::resize_bilinear = |i| (&i.image, (16, 16)),
        Tensor::resize_nearest = |i| (&i.image, (16, 16)),
    ]
}

fn networks() -> Vec<Call> {
    calls![
        Tensor::softmax = |i| (&i.x),
        Tensor::log_softmax = |i| (&i.x),
        Tensor::softmax_cross_entropy = |i| (&i.x, &i.y),
        Tensor::sparse_softmax_cross_entropy = |i| (&i.x, &i.ids),
        Tensor::sigmoid_cross_entropy = |i| (&i.x, &i.y),
        Tensor::batch_normalization = |i| (&i.x, &i.y, &i.y, &i.y, &i.y, 0.001),
        Tensor::layer_normalization = |i| (&i.x, &i.y, &i.y, 0.001),
        Tensor::dropout = |i| (&i.x, 0.5),
        Tensor::recurrent = |i| (&i.sequence, Cell::Simple, CellFunction::Tanh, CellFunction::Linear, &i.cell()),
        Tensor::recurrent_unrolled = |i| (&i.sequence, Cell::Simple, &Tensor::tanh, &Tensor::tanh, &i.cell()),
    ]
}

fn shapes() -> Vec<Call> {
    calls![
        Tensor::reshape = |i| (&i.x, [-1, 2, 2]),
        Tensor::reshape_as = |i| (&i.x, [Dim::BATCH, 2.into(), 2.into()]),
        Tensor::flatten = |i| (&i.image),
        Tensor::expand_dims = |i| (&i.x, 1),
        Tensor::squeeze = |i| (&i.thin, &[1]),
        Tensor::transpose = |i| (&i.x, &[1, 0]),
        Tensor::broadcast_to = |i| (&i.thin, [Dim::BATCH, 3.into(), 4.into()]),
        Tensor::concat = |i| (&[&i.x, &i.y], 1),
        Tensor::stack = |i| (&[&i.x, &i.y], 1),
        Tensor::unstack = |i| (&i.x, 1),
        Tensor::split = |i| (&i.x, &[1, 3], 1),
        Tensor::slice = |i| (&i.x, &[0, 1], &[-1, 2]),
        Tensor::strided_slice = |i| (&i.w, &[(0, 4, 2), (0, 4, 2)]),
        Tensor::truncate = |i| (&i.x, 1, 2),
        Tensor::crop = |i| (&i.x, &[(0, 0), (1, 1)]),
        Tensor::pad = |i| (&i.x, &[(0, 0), (1, 1)], 0.0),
        Tensor::mirror_pad = |i| (&i.x, &[(0, 0), (1, 1)], Mirror::Reflect),
        Tensor::tile = |i| (&i.x, &[1, 2]),
        Tensor::reverse = |i| (&i.x, &[1]),
        Tensor::band_part = |i| (&i.w, Some(0), None),
        Tensor::size = |i| (&i.x, 0),
        Tensor::zeros_like = |i| (&i.x),
        Tensor::ones_like = |i| (&i.x),
    ]
}

fn indices() -> Vec<Call> {
    calls![
        Tensor::gather = |i| (&i.x, &i.ids),
        Tensor::gather_axis = |i| (&i.x, &i.ids, 1, 0),
        Tensor::gather_nd = |i| (&i.x, &i.places),
        Tensor::scatter_nd = |i| (&i.x, &i.index, [10, 4]),
        Tensor::one_hot = |i| (&i.ids, 3, DType::F32),
        Tensor::where_true = |i| (&i.flags),
        Tensor::boolean_mask = |i| (&i.x, &i.flags),
        Tensor::boolean_mask_at = |i| (&i.x, &i.flags, &i.many.values),
        Tensor::unique = |i| (&i.ids),
        Tensor::segment_sum = |i| (&i.x, &i.ids, 3),
        Tensor::segment_mean = |i| (&i.x, &i.ids, 3),
        Tensor::segment_max = |i| (&i.x, &i.ids, 3),
        Tensor::segment_min = |i| (&i.x, &i.ids, 3),
        Tensor::ensure_between = |i| (&i.x, 0.0, 1.0, "x"),
        Tensor::ensure_between_or_help = |i| (&i.x, 0.0, 1.0, "x", "help"),
        Tensor::agree = |i| (&i.ids, &i.ids, "lengths"),
    ]
}

fn strings() -> Vec<Call> {
    calls![
        Tensor::lower = |i| (&i.text, Encoding::Utf8),
        Tensor::upper = |i| (&i.text, Encoding::Utf8),
        Tensor::strip = |i| (&i.text),
        Tensor::substr = |i| (&i.text, 0, 1, Encoding::Utf8),
        Tensor::regex_replace = |i| (&i.text, "a", "b"),
        Tensor::regex_replace_first = |i| (&i.text, "a", "b"),
        Tensor::regex_full_match = |i| (&i.text, "a"),
        Tensor::string_length = |i| (&i.text, Encoding::Utf8),
        Tensor::string_split = |i| (&i.text, " ", -1),
        Tensor::string_join = |i| (&[&i.text, &i.text], " "),
        Tensor::reduce_join = |i| (&i.text, [0], " "),
        Tensor::string_equal = |i| (&i.text, &i.text),
        Tensor::as_string = |i| (&i.ids),
        Tensor::to_number = |i| (&i.text, DType::F32),
        Tensor::hash_bucket = |i| (&i.text, 10),
        Tensor::hash_bucket_strong = |i| (&i.text, 10, [1, 2]),
        Tensor::bucketize = |i| (&i.x, &[0.0, 1.0]),
        Tensor::parse_example = |i| (&i.text, &BatchSpec::from([("a".into(), FeatureSpec::dense(DType::F32, []))])),
    ]
}

fn ragged() -> Vec<Call> {
    calls![
        RaggedTensor::from_dense = |i| (&i.ids),
        RaggedTensor::from_rows = |i| (&i.ids),
        RaggedTensor::row_ids = |i| (&i.words),
        RaggedTensor::row_lengths = |i| (&i.words),
        RaggedTensor::filter = |i| (&i.many, &i.kept),
        RaggedTensor::concat = |i| (&[&i.many, &i.many]),
        RaggedTensor::sum = |i| (&i.numbers),
        RaggedTensor::mean = |i| (&i.numbers),
        RaggedTensor::max = |i| (&i.numbers),
        RaggedTensor::min = |i| (&i.numbers),
        RaggedTensor::multi_hot = |i| (&i.many, 3, None),
        RaggedTensor::to_steps = |i| (&i.numbers, &i.n_steps, &[], 0.0),
        RaggedTensor::ensure_between = |i| (&i.many, 0.0, 1.0, "ids"),
        Graph::cross = |i| (&i.g, &[(&i.words).into(), (&i.many).into()], 100, 0),
        Tensor::lookup = |i| (&i.w, &i.many, Combiner::Mean),
        LookupTable::lookup = |i| (&i.table, &i.text),
        LookupTable::lookup_known = |i| (&i.table, &i.text, "word"),
        LookupTable::lookup_known_ragged = |i| (&i.table, &i.words, "words"),
        LookupTable::reverse = |i| (&i.table, &i.ids, "?"),
    ]
}

fn sources() -> Vec<Call> {
    calls![
        Graph::placeholder = |i| (&i.g, "another", DType::F32, [Dim::BATCH]),
        Graph::ragged_placeholder = |i| (&i.g, "others", DType::F32),
        Graph::constant = |i| (&i.g, [1.0f32, 2.0]),
        Graph::fill = |i| (&i.g, [2, 3], DType::F32, 1.0),
        Graph::range = |i| (&i.g, 3, DType::I64),
        Graph::variable = |i| (&i.g, "v", [2], Initializer::Zeros),
        Graph::variable_with = |i| (&i.g, "v", DType::F32, [2], Initializer::Zeros, Role::Model { trainable: false }),
        Tensor::assign = |i| (&i.w, &i.w),
        Tensor::assign_add = |i| (&i.w, 1.0),
        Graph::random_uniform = |i| (&i.g, [2, 3]),
        Graph::random_normal = |i| (&i.g, [2, 3]),
        Graph::truncated_normal = |i| (&i.g, [2, 3]),
        Graph::random_integers = |i| (&i.g, [2, 3], 0, 9),
        Graph::group = |i| (&i.g, &[&i.x]),
        Graph::custom = |i| (&i.g, copy(), &[&i.x]),
    ]
}

/// An op of one's own, with its gradient.
fn copy() -> CustomOp {
    let spec = TensorSpec::new(DType::F32, [Dim::BATCH, 4.into()]);
    CustomOp::new("copy", [spec], |x| Ok(vec![x[0].clone()])).gradient(|x| Ok(vec![x[1].clone()]))
}
