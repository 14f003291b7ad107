//! Recurrent layers, their wrappers and attention against Keras's: results, last states, gradients
//! of everything.

use std::collections::{BTreeMap, BTreeSet};

use estimand_cpu::Cpu;
use estimand_engine::{Eval, Session};
use estimand_graph::{Graph, Tensor, gradients};
use estimand_nn::*;
use estimand_tensor::{Array, DType, Dim, Shape};

use crate::fixture::{Case, assert_close, cases};

fn flag(case: &Case, key: &str, default: bool) -> bool {
    case.settings.option(key).unwrap_or(default)
}

fn activation(case: &Case, key: &str, default: Activation) -> Activation {
    case.settings.option::<String>(key).map_or(default, |name| name.parse().unwrap())
}

/// A tensor for every array of a case that is fed.
type Fed<'a> = BTreeMap<&'a str, Tensor>;

/// A layer with the options of a case.
macro_rules! with_options {
    ($layer:expr, $case:expr) => {
        $layer
            .use_bias(flag($case, "use_bias", true))
            .return_sequences(flag($case, "return_sequences", false))
            .go_backwards(flag($case, "go_backwards", false))
            .zero_output_for_mask(flag($case, "zero_output_for_mask", false))
            .activation(activation($case, "activation", Activation::Tanh))
    };
}

/// A cell by its name, with the options of a case.
fn stack(case: &Case) -> StackedRnnCells {
    let units: usize = case.settings.setting("units");
    let names: String = case.settings.setting("cells");
    let (use_bias, reset_after) = (flag(case, "use_bias", true), flag(case, "reset_after", true));
    names.split(' ').enumerate().fold(StackedRnnCells::new(), |stack, (i, name)| match name {
        "simple_rnn_cell" => stack.cell(SimpleRnnCell::new(units + i).use_bias(use_bias)),
        "lstm_cell" => stack.cell(LstmCell::new(units + i).use_bias(use_bias)),
        _ => stack.cell(GruCell::new(units + i).use_bias(use_bias).reset_after(reset_after)),
    })
}

fn rnn(case: &Case) -> Rnn {
    let units: usize = case.settings.setting("units");
    let (use_bias, reset_after) = (flag(case, "use_bias", true), flag(case, "reset_after", true));
    let rnn = match case.settings.setting::<String>("cells").as_str() {
        _ if flag(case, "stacked", false) => Rnn::new(stack(case)),
        "simple_rnn_cell" => Rnn::new(SimpleRnnCell::new(units).use_bias(use_bias)),
        "lstm_cell" => Rnn::new(LstmCell::new(units).use_bias(use_bias)),
        _ => Rnn::new(GruCell::new(units).use_bias(use_bias).reset_after(reset_after)),
    };
    rnn.return_sequences(flag(case, "return_sequences", false))
        .go_backwards(flag(case, "go_backwards", false))
        .zero_output_for_mask(flag(case, "zero_output_for_mask", false))
}

/// A layer whose sizes are those of a case.
macro_rules! conv_lstm {
    ($layer:ident, $case:expr, $size:expr) => {{
        let case: &Case = $case;
        let size = |key: &str| case.settings.option::<Vec<usize>>(key).map_or(1.into(), $size);
        let layer = $layer::new(2, size("kernel_size"))
            .strides(size("strides"))
            .dilation(size("dilation_rate"))
            .recurrent_activation(activation(case, "recurrent_activation", Activation::HardSigmoid));
        let layer = if case.settings.option::<String>("padding").is_some() { layer.same() } else { layer };
        with_options!(layer, case)
    }};
}

fn conv_lstm1d(case: &Case) -> ConvLstm1d {
    conv_lstm!(ConvLstm1d, case, |n: Vec<usize>| Size1d::from(n[0]))
}

fn conv_lstm2d(case: &Case) -> ConvLstm2d {
    conv_lstm!(ConvLstm2d, case, |n: Vec<usize>| Size2d::from((n[0], n[1])))
}

fn conv_lstm3d(case: &Case) -> ConvLstm3d {
    conv_lstm!(ConvLstm3d, case, |n: Vec<usize>| Size3d::from((n[0], n[1], n[2])))
}

/// What a recurrent layer of a case is called with.
fn recurrent_inputs(fed: &Fed<'_>) -> LayerInputs {
    let mut inputs = LayerInputs::of(&fed["in"]);
    if let Some(mask) = fed.get("mask") {
        inputs = inputs.mask(&mask.not_equal(0));
    }
    let states: Vec<Tensor> = (0..9).filter_map(|i| fed.get(format!("state:{i}").as_str()).cloned()).collect();
    if states.is_empty() { inputs } else { inputs.initial_state(&states) }
}

/// The result of a case's layer, its further results, and the scope of its variables.
fn apply(case: &Case, fed: &Fed<'_>) -> (Tensor, Vec<Tensor>) {
    let x = &fed["in"];
    let settings = &case.settings;
    let units = settings.option("units").unwrap_or(1);
    let gate = activation(case, "recurrent_activation", Activation::Sigmoid);
    let simple = || with_options!(SimpleRnn::new(units), case);
    let lstm = || with_options!(Lstm::new(units).recurrent_activation(gate), case);
    let gru = || {
        let gru = Gru::new(units).recurrent_activation(gate).reset_after(flag(case, "reset_after", true));
        with_options!(gru, case)
    };
    match case.name() {
        "simple_rnn" => simple().apply_states(&recurrent_inputs(fed)),
        "lstm" => lstm().apply_states(&recurrent_inputs(fed)),
        "gru" => gru().apply_states(&recurrent_inputs(fed)),
        "rnn" => rnn(case).apply_states(&recurrent_inputs(fed)),
        "conv_lstm1d" => conv_lstm1d(case).apply_states(&recurrent_inputs(fed)),
        "conv_lstm2d" => conv_lstm2d(case).apply_states(&recurrent_inputs(fed)),
        "conv_lstm3d" => conv_lstm3d(case).apply_states(&recurrent_inputs(fed)),
        "stacked_rnn_cells" => stack(case).apply_states(&recurrent_inputs(fed)),
        "simple_rnn_cell" => {
            let cell = SimpleRnnCell::new(units).use_bias(flag(case, "use_bias", true));
            cell.apply_states(&recurrent_inputs(fed))
        }
        "lstm_cell" => LstmCell::new(units).use_bias(flag(case, "use_bias", true)).apply_states(&recurrent_inputs(fed)),
        "gru_cell" => {
            let cell = GruCell::new(units).use_bias(flag(case, "use_bias", true));
            cell.reset_after(flag(case, "reset_after", true)).apply_states(&recurrent_inputs(fed))
        }
        "bidirectional" => {
            let both = match settings.setting::<String>("layer").as_str() {
                "simple_rnn" => Bidirectional::new(simple()),
                "lstm" => Bidirectional::new(lstm()),
                _ => Bidirectional::new(gru()),
            };
            let mode = match settings.setting::<String>("merge_mode").as_str() {
                "concat" => MergeMode::Concat,
                "sum" => MergeMode::Sum,
                "mul" => MergeMode::Mul,
                _ => MergeMode::Ave,
            };
            both.merge_mode(mode).apply_states(&recurrent_inputs(fed))
        }
        "multi_head_attention" => {
            let mut layer = MultiHeadAttention::new(settings.setting("num_heads"), settings.setting("key_dim"))
                .use_bias(flag(case, "use_bias", true));
            if let Some(n) = settings.option("value_dim") {
                layer = layer.value_dim(n);
            }
            if let Some(n) = settings.option("output_dim") {
                layer = layer.output_dim(n);
            }
            let value = fed.get("value").or(fed.get("key").map(|_| x));
            let tensors: Vec<&Tensor> = [Some(x), value, fed.get("key")].into_iter().flatten().collect();
            let mut inputs = LayerInputs::of(&tensors).use_causal_mask(flag(case, "use_causal_mask", false));
            if let Some(mask) = fed.get("mask") {
                inputs = inputs.attention_mask(&mask.not_equal(0));
            }
            let (y, scores) = layer.apply_scores(&inputs);
            (y, vec![scores])
        }
        "time_distributed" => {
            let layer = match settings.setting::<String>("layer").as_str() {
                "dense" => TimeDistributed::new(Dense::new(3).relu()),
                "conv2d" => TimeDistributed::new(Conv2d::new(2, 2)),
                _ => TimeDistributed::new(LayerNorm::new()),
            };
            (layer.apply(x), Vec::new())
        }
        "masking" => {
            let layer = Masking::new(settings.setting("mask_value"));
            (layer.apply(x), vec![layer.compute_mask(x).cast(DType::F32)])
        }
        other => panic!("the fixture has a kind `{other}` that the test does not know"),
    }
}

/// Everything of a case that is an input, as placeholders: of any number of rows, and of steps if
/// the time is open.
fn feeds<'a>(g: &Graph, case: &'a Case, open_time: bool) -> Vec<(&'a str, Tensor, &'a Array)> {
    let is_fed = |key: &str| matches!(key, "in" | "mask" | "value" | "key") || key.starts_with("state:");
    let placeholder = |key: &'a str, array: &'a Array| {
        let mut shape = Shape::from(array.dims());
        shape.0[0] = Dim::BATCH;
        if open_time && matches!(key, "in" | "mask") {
            shape.0[1] = Graph::ANY;
        }
        (key, g.placeholder(key, array.dtype(), shape), array)
    };
    case.with_prefix("").filter(|(key, _)| is_fed(key)).map(|(key, array)| placeholder(key, array)).collect()
}

fn check(case: &Case, open_time: bool) {
    let g = Graph::new();
    let fed = feeds(&g, case, open_time);
    let by_key: Fed<'_> = fed.iter().map(|(key, tensor, _)| (*key, tensor.clone())).collect();
    let (y, last) = apply(case, &by_key);
    g.check().unwrap_or_else(|e| panic!("{}: {e}", case.settings));
    let weighted = |y: &Tensor, key: &str| (y * &g.constant(case.array(key).clone())).sum();
    let others = last.iter().enumerate().map(|(i, s)| weighted(s, &format!("coef:{i}")));
    let total = others.fold(weighted(&y, "coef"), |a, b| a + b);

    let full = |name: &str| format!("{}/{name}", case.name());
    let weights: Vec<(&str, &Array)> = case.with_prefix("weight:").collect();
    assert_eq!(g.body().variables().len(), weights.len(), "{}: variables of\n{g}", case.settings);
    let wanted: Vec<(&str, &Array)> = case.with_prefix("grad:").collect();
    let source = |name: &&str| by_key.get(name).cloned().unwrap_or_else(|| g.get_variable(&full(name)));
    let sources: Vec<Tensor> = wanted.iter().map(|(name, _)| source(name)).collect();
    let found = gradients(&total, &sources.iter().collect::<Vec<_>>());
    let dense: Vec<Tensor> = found
        .iter()
        .zip(&sources)
        .map(|(gradient, s)| gradient.to_dense(s.shape()).unwrap_or_else(|| s.zeros_like()))
        .collect();

    let mut session = Session::with(&g, Cpu::with_threads(1), 0).unwrap();
    for (name, value) in &weights {
        session.set_value(&full(name), value).unwrap();
    }
    let fetches: Vec<&Tensor> = [&y].into_iter().chain(&last).chain(&dense).collect();
    let values: Vec<(&Tensor, Array)> = fed.iter().map(|(_, tensor, array)| (tensor, (*array).clone())).collect();
    let results = session.run(&fetches, &values).unwrap_or_else(|e| panic!("{}: {e}", case.settings));
    assert_close(&case.settings.to_string(), &results[0], case.array("out"));
    for (i, actual) in results[1..1 + last.len()].iter().enumerate() {
        assert_close(&format!("{} state {i}", case.settings), actual, case.array(&format!("last:{i}")));
    }
    for ((name, expected), actual) in wanted.iter().zip(&results[1 + last.len()..]) {
        assert_close(&format!("{} gradient of {name}", case.settings), actual, expected);
    }
}

#[test]
fn recurrent_layers_agree_with_keras() {
    let cases = cases("recurrent");
    for case in &cases {
        check(case, false);
    }
    let kinds: BTreeSet<&str> = cases.iter().map(Case::name).collect();
    assert_eq!(kinds, BTreeSet::from(KINDS));
}

/// The layers that this file compares with Keras's.
pub const KINDS: [&str; 15] = [
    "bidirectional",
    "conv_lstm1d",
    "conv_lstm2d",
    "conv_lstm3d",
    "gru",
    "gru_cell",
    "lstm",
    "lstm_cell",
    "masking",
    "multi_head_attention",
    "rnn",
    "simple_rnn",
    "simple_rnn_cell",
    "stacked_rnn_cells",
    "time_distributed",
];

/// The number of steps may be one that only the run tells, but for functions that are computed step
/// by step.
#[test]
fn any_number_of_steps_agrees_with_keras() {
    let mut n_checked = 0;
    for case in &cases("recurrent") {
        let odd = ["softmax", "gelu", "swish", "leaky_relu"].map(String::from);
        let names = ["activation", "recurrent_activation"].map(|key| case.settings.option::<String>(key));
        // Without a time axis, or with steps one after the other.
        let one_by_one = case.name() == "time_distributed" || case.name().starts_with("conv_lstm");
        let fixed = one_by_one || case.array("in").dims().len() < 3;
        if !fixed && !names.iter().flatten().any(|name| odd.contains(name)) {
            check(case, true);
            n_checked += 1;
        }
    }
    assert!(n_checked > 50, "{n_checked} cases");
}

/// A cell of one's own that takes the steps of another: one after the other.
#[derive(Debug)]
struct StepByStep<C>(C, layer::Config);

impl<C: RnnCell> Layer for StepByStep<C> {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }
    fn config(&self) -> &layer::Config {
        &self.1
    }
    fn build(&self, build: &mut layer::Build<'_>) {
        self.0.build(build);
    }
    fn call(&self, call: &layer::LayerCall<'_>) -> Tensor {
        self.call_cell(call)
    }
}

impl<C: RnnCell> RnnCell for StepByStep<C> {
    fn state_sizes(&self) -> Vec<usize> {
        self.0.state_sizes()
    }
    fn step(&self, call: &layer::LayerCall<'_>, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        self.0.step(call, states)
    }
}

/// A cell of one's own gets masks, states and directions as the others do. Its steps are those of
/// an LSTM, so its results are those of Keras' LSTM.
#[test]
fn cells_of_ones_own_agree_with_keras() {
    let mut n_checked = 0;
    for case in cases("recurrent").iter().filter(|case| case.name() == "lstm") {
        let plain = |key: &str| case.settings.option::<String>(key).is_none();
        if !plain("activation") || !plain("recurrent_activation") || !flag(case, "use_bias", true) {
            continue;
        }
        let g = Graph::new();
        let fed = feeds(&g, case, false);
        let by_key: Fed<'_> = fed.iter().map(|(key, tensor, _)| (*key, tensor.clone())).collect();
        let cell = StepByStep(LstmCell::new(case.settings.setting("units")), layer::Config::default());
        let rnn = Rnn::new(cell)
            .return_sequences(flag(case, "return_sequences", false))
            .go_backwards(flag(case, "go_backwards", false))
            .zero_output_for_mask(flag(case, "zero_output_for_mask", false));
        let (y, last) = rnn.apply_states(&recurrent_inputs(&by_key));
        let mut session = Session::new(&g).unwrap();
        for (name, value) in case.with_prefix("weight:") {
            session.set_value(&format!("rnn/{name}"), value).unwrap();
        }
        let fetches: Vec<&Tensor> = [&y].into_iter().chain(&last).collect();
        let values: Vec<(&Tensor, Array)> = fed.iter().map(|(_, tensor, array)| (tensor, (*array).clone())).collect();
        let results = session.run(&fetches, &values).unwrap();
        assert_close(&case.settings.to_string(), &results[0], case.array("out"));
        for (i, actual) in results[1..].iter().enumerate() {
            assert_close(&format!("{} state {i}", case.settings), actual, case.array(&format!("last:{i}")));
        }
        n_checked += 1;
    }
    assert!(n_checked > 4, "{n_checked} cases");
}

/// The steps of such a cell must be known, and a wrong number of states is refused.
#[test]
fn cells_refuse_what_they_cannot_read() {
    let g = Graph::new();
    let open = g.placeholder("open", DType::F32, [Dim::BATCH, Graph::ANY, 4.into()]);
    let _ = Rnn::new(StepByStep(LstmCell::new(3), layer::Config::default())).apply(&open);
    let error = g.check().unwrap_err().to_string();
    assert!(error.contains("known only at run time") && error.contains("declare the size of its time axis"), "{error}");

    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    let _ = LstmCell::new(3).apply(&LayerInputs::of(&x).initial_state(std::slice::from_ref(&x)));
    assert!(g.check().unwrap_err().to_string().contains("the cell got 1 states; expected 2"));

    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
    let _ = Rnn::new(StackedRnnCells::new()).apply(&x);
    assert!(g.check().unwrap_err().to_string().contains("there are no cells"));
}

/// `[1, 4, 1]` of ones.
fn ones(g: &Graph) -> Tensor {
    g.fill([1, 4, 1], DType::F32, 1.0)
}

/// Lengths are masks: of the first steps.
#[test]
fn lengths_are_masks() {
    let g = Graph::new();
    let x = g.constant(Array::from_vec([3, 2, 1], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap());
    // h = x + h: sums of the steps that count.
    let sums = |inputs: LayerInputs| {
        let one = Initializer::Ones;
        let rnn = SimpleRnn::new(1).activation(Activation::Linear);
        rnn.kernel_initializer(one.clone()).recurrent_initializer(one).apply(&inputs)
    };
    let by_length = sums(LayerInputs::of(&x).lengths(&g.constant([0i64, 1, 2])));
    let mask = Array::from_vec([3, 2], vec![false, false, true, false, true, true]).unwrap();
    let by_mask = sums(LayerInputs::of(&x).mask(&g.constant(mask.clone())));
    // Both together: a step counts if both say so.
    let both = sums(LayerInputs::of(&x).mask(&g.constant(mask)).lengths(&g.constant([2i64, 2, 1])));
    let results = Session::new(&g).unwrap().run(&[&by_length, &by_mask, &both], &[]).unwrap();
    assert_eq!(results[0].as_slice::<f32>().unwrap(), [0.0, 3.0, 11.0]);
    assert_eq!(results[1].as_slice::<f32>().unwrap(), [0.0, 3.0, 11.0]);
    assert_eq!(results[2].as_slice::<f32>().unwrap(), [0.0, 3.0, 5.0]);
}

use estimand_graph::Initializer;

/// With linear units of weight 1 that read only the first step, h is what dropout makes of it, step
/// after step: 0, or 2^t at a rate of a half, since the same units are left out at every step.
#[test]
fn dropout_is_the_same_at_all_steps() {
    let g = Graph::with_mode(estimand_tensor::Mode::Train);
    let first = g.constant(Array::from_vec([1, 4, 1], vec![1.0f32, 0.0, 0.0, 0.0]).unwrap());
    let layer = |rnn: SimpleRnn| {
        rnn.activation(Activation::Linear).kernel_initializer(Initializer::Ones).return_sequences(true).use_bias(false)
    };
    let identity = || layer(SimpleRnn::new(64).recurrent_initializer(Initializer::Identity { gain: 1.0 }));
    let recurrent = identity().recurrent_dropout(0.5).apply(&first);
    // Without recurrence, h is what dropout makes of the input: of one input, the same number at
    // all steps.
    let inputs = layer(SimpleRnn::new(1).recurrent_initializer(Initializer::Zeros)).dropout(0.5).apply(&g.fill(
        [32, 4, 1],
        DType::F32,
        1.0,
    ));
    let results = Session::new(&g).unwrap().run(&[&recurrent, &inputs], &[]).unwrap();
    let units = results[0].as_slice::<f32>().unwrap();
    let mut n_kept = 0;
    for unit in 0..64 {
        let over_time: Vec<f32> = (0..4).map(|t| units[t * 64 + unit]).collect();
        assert!(over_time == [1.0, 2.0, 4.0, 8.0] || over_time == [1.0, 0.0, 0.0, 0.0], "{over_time:?}");
        n_kept += usize::from(over_time[1] > 0.0);
    }
    assert!((16..=48).contains(&n_kept), "{n_kept} of 64 units are kept");
    let rows = results[1].as_slice::<f32>().unwrap();
    assert!(rows.chunks(4).all(|row| row == [2.0; 4] || row == [0.0; 4]), "{rows:?}");
    assert!(rows.contains(&0.0) && rows.contains(&2.0));
    // Outside of training nothing is left out.
    let all = identity().recurrent_dropout(0.5).dropout(0.5).apply(&LayerInputs::of(&ones(&g)).training(false));
    assert_eq!(all.eval().unwrap().as_slice::<f32>().unwrap()[3 * 64], 4.0);
}

#[test]
fn both_directions_can_stay_apart() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into(), 2.into()]);
    let (forward, backward) = Bidirectional::new(Gru::new(3).return_sequences(true)).apply_both(&x);
    g.check().unwrap();
    assert_eq!(forward.shape(), backward.shape());
}

/// The defaults are Keras's: Glorot's kernels, orthogonal recurrent kernels, biases at 0 but the
/// forget gate's at 1.
#[test]
fn recurrent_variables_begin_as_keras_ones() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into(), 2.into()]);
    let _ = (Lstm::new(1).apply(&x), Gru::new(1).apply(&x), MultiHeadAttention::new(1, 1).apply(&x));
    let orthogonal = Initializer::Orthogonal { gain: 1.0 };
    let attention = ["query", "key", "value", "attention_output"].into_iter().flat_map(|part| {
        let name = |what: &str| format!("multi_head_attention/{part}/{what}");
        [(name("kernel"), Initializer::GlorotUniform), (name("bias"), Initializer::Zeros)]
    });
    let expected: Vec<(String, Initializer)> = [
        ("lstm/lstm_cell/kernel", Initializer::GlorotUniform),
        ("lstm/lstm_cell/recurrent_kernel", orthogonal.clone()),
        ("lstm/lstm_cell/bias", Initializer::Runs(vec![(0.0, 1), (1.0, 1), (0.0, 2)])),
        ("gru/gru_cell/kernel", Initializer::GlorotUniform),
        ("gru/gru_cell/recurrent_kernel", orthogonal),
        ("gru/gru_cell/bias", Initializer::Zeros),
    ]
    .into_iter()
    .map(|(name, initializer)| (name.to_string(), initializer))
    .chain(attention)
    .collect();
    let body = g.body();
    let actual: Vec<(String, Initializer)> =
        body.variables().iter().map(|(_, v)| (v.name.clone(), v.initializer.clone())).collect();
    assert_eq!(actual, expected);
}
