//! Costs counted by hand.

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::Compiled;
use estimand_graph::op::{Cell, CellFunction};
use estimand_graph::{
    Combiner, Cost, Encoding, Executor, Graph, Initializer, Optimizer, Padding, Phase, Program, Rates, RecurrentInputs,
    RunArgs, Tensor, Trace, Value, gradients,
};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Dim};
use estimand_update::{Adagrad, Adam, Sgd};

fn zeros(dims: &[usize]) -> Array {
    Array::zeros(DType::F32, dims).unwrap()
}

/// What a program's steps are called and cost, in order, on an executor.
fn traced(executor: &dyn Executor, fetches: &[&Tensor], feeds: &[Array]) -> Vec<(String, Cost)> {
    let graph = fetches[0].graph();
    let values: Vec<Value> = fetches.iter().map(|fetch| fetch.value()).collect();
    let program = Program::new(Arc::new(graph.body().clone()), &values).unwrap();
    let compiled = Compiled::new(executor, program).unwrap();
    let mut state = executor.place(graph.body().variables(), 0).unwrap();
    let mut trace = Trace::new();
    let args = RunArgs { feeds, trace: Some(&mut trace), ..RunArgs::default() };
    compiled.step(&mut *state, args, &mut Vec::new()).unwrap();
    let total = trace.now();
    assert!(trace.steps().iter().map(|step| step.duration).sum::<u64>() <= total);
    assert!(trace.steps().iter().all(|step| step.start + step.duration <= total && step.thread == 0));
    let indices: Vec<_> = trace.steps().iter().filter(|step| step.part == Phase::Step).map(|step| step.index).collect();
    assert_eq!(indices, (0..compiled.program().steps().len()).collect::<Vec<_>>(), "every step once, in order");
    trace.steps().iter().map(|step| (compiled.program().describe(step).0, step.cost)).collect()
}

fn costs(fetches: &[&Tensor], feeds: &[Array]) -> Vec<(String, Cost)> {
    traced(&Cpu::with_threads(1), fetches, feeds)
}

fn cost(read: u64, written: u64, flops: u64) -> Cost {
    Cost { read, written, flops }
}

#[test]
fn products_for_batches_of_any_size() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
    let (w, b) = (g.variable("w", [3, 5], Initializer::Ones), g.variable("b", [5], Initializer::Ones));
    let y = (x.matmul(&w) + b).relu();
    for n in [0, 1, 4] {
        // n x 5 results of 3 products and 3 sums, a bias and a relu; n x 3, 3 x 5 and 5 floats are
        // read.
        let expected = cost(4 * (3 * n + 20), 4 * 5 * n, (6 + 2) * 5 * n);
        assert_eq!(costs(&[&y], &[zeros(&[n as usize, 3])]), [("MatMul+bias+relu".to_string(), expected)]);
    }
    let a = g.placeholder("a", DType::F32, [Dim::BATCH, 2.into(), 3.into()]);
    let b = g.placeholder("b2", DType::F32, [Dim::BATCH, 3.into(), 4.into()]);
    // 7 products of 2 x 3 and 3 x 4.
    let expected = cost(7 * 4 * (6 + 12), 7 * 4 * 8, 7 * 2 * 2 * 3 * 4);
    let found = costs(&[&a.matmul(&b)], &[zeros(&[7, 2, 3]), zeros(&[7, 3, 4])]);
    assert_eq!(found, [("BatchMatMulV2".to_string(), expected)]);
}

#[test]
fn a_convolution_and_its_gradients() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 6.into(), 6.into(), 2.into()]);
    let w = g.variable("w", [3, 3, 2, 4], Initializer::Ones);
    let y = x.conv2d(&w, (1, 1), Padding::Valid);
    // 5 images, 4 x 4 places, 4 filters of 3 x 3 x 2; sizes in floats: x 360, w 72, y 320.
    let products = 2 * 5 * 16 * 4 * 18;
    let images = [zeros(&[5, 6, 6, 2])];
    assert_eq!(costs(&[&y], &images), [("Conv2D".to_string(), cost(4 * 432, 4 * 320, products))]);
    let grads = gradients(&y.square().sum(), &[&x, &w]);
    let dense = |i: usize| grads[i].to_dense([&x, &w][i].shape()).unwrap();
    let found = costs(&[&dense(0), &dense(1)], &images);
    let of = |name: &str| found.iter().find(|(op, _)| op == name).unwrap().1;
    assert_eq!(of("Conv2DBackpropInput"), cost(4 * (72 + 320), 4 * 360, products));
    assert_eq!(of("Conv2DBackpropFilter"), cost(4 * (360 + 320), 4 * 72, products));
    // Each channel on its own: 5 x 4 x 4 x 2 results of 3 x 3 taps.
    let own = g.variable("own", [3, 3, 2, 1], Initializer::Ones);
    let y = x.depthwise_conv2d(&own, (1, 1), Padding::Valid);
    assert_eq!(costs(&[&y], &images)[0].1, cost(4 * (360 + 18), 4 * 160, 2 * 160 * 9));
}

#[test]
fn a_convolution_merged_with_its_pooling() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 10.into(), 10.into(), 1.into()]);
    let (w, b) = (g.variable("w", [3, 3, 1, 16], Initializer::Ones), g.variable("b", [16], Initializer::Ones));
    let y = (x.conv2d(&w, (1, 1), Padding::Valid) + b).relu().max_pool((2, 2), (2, 2), Padding::Valid);
    let loss = y.square().mean();
    let train = Optimizer::new(Sgd::default(), 0.1).minimize(&loss);
    let found = costs(&[&loss, &train], &[zeros(&[3, 10, 10, 1])]);
    let of = |name: &str| found.iter().find(|(op, _)| op == name).unwrap_or_else(|| panic!("{name}: {found:?}")).1;
    // Results: 3 x 8 x 8 x 16 = 3072 of 9 taps, each with bias and relu; 3 x 4 x 4 x 16 = 768
    // pooled of 4 each, and which.
    let forward = cost(4 * (300 + 144 + 16), 4 * 2 * 768, 2 * 3072 * 9 + 2 * 3072 + 4 * 768);
    assert_eq!(of("Conv2D+bias+relu+MaxPool+which"), forward);
    // Reads the images, which, and the gradient of what was pooled.
    let backward = cost(4 * (300 + 2 * 768), 4 * (144 + 16), 2 * 3072 * 9 + 3072 + 768);
    assert_eq!(of("MaxPoolGrad+Conv2DBackpropFilter+bias"), backward);
}

#[test]
fn a_recurrent_network_and_its_gradient() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 20.into()]);
    let zeros_of = || g.fill([Dim::BATCH, 5.into()], DType::F32, 0.0);
    let kernel = g.variable("kernel", [5, 20], Initializer::Ones);
    let inputs = RecurrentInputs {
        kernel: kernel.clone(),
        bias: None,
        states: vec![zeros_of(), zeros_of()],
        mask: None,
        keep: None,
    };
    let last = x.recurrent(Cell::Lstm, CellFunction::Tanh, CellFunction::Sigmoid, &inputs).states[0].clone();
    let gradient = gradients(&last.sum(), &[&kernel])[0].to_dense(kernel.shape()).unwrap();
    let found = costs(&[&last, &gradient], &[zeros(&[3, 7, 20])]);
    let of = |name: &str| found.iter().find(|(op, _)| op == name).unwrap_or_else(|| panic!("{name}: {found:?}")).1;
    // Four gates of 5 units, 3 rows, 7 steps: 420 numbers, each with 5 products and sums, and 3
    // operations more. In floats: x 420, kernel 100, states 2 x 15; the sequence 105, the last
    // states 2 x 15, and 6 x 105 kept.
    let flops = 420 * (2 * 5 + 3);
    assert_eq!(of("Lstm"), cost(4 * (420 + 100 + 30), 4 * (105 + 30 + 630), flops));
    // Reads what was kept, the kernel, first states, the sequence, and the gradients of sequence
    // and states.
    assert_eq!(of("LstmGrad"), cost(4 * (630 + 100 + 30 + 105 + 105 + 30), 4 * (420 + 100 + 30), 2 * flops));
}

#[test]
fn elements_rows_and_sums() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    let twice = |x: &Tensor| (x.exp() * x).tanh();
    // Three nodes in one pass: x is read once.
    assert_eq!(costs(&[&twice(&x)], &[zeros(&[6, 4])])[0].1, cost(96, 96, 3 * 24));
    assert_eq!(costs(&[&x.sum()], &[zeros(&[6, 4])])[0].1, cost(96, 4, 24));
    assert_eq!(costs(&[&x.softmax()], &[zeros(&[6, 4])])[0].1, cost(96, 96, 5 * 24));
    // Another shape moves nothing; a part reads only itself.
    assert_eq!(costs(&[&x.reshape([-1])], &[zeros(&[6, 4])])[0].1, cost(0, 0, 0));
    assert_eq!(costs(&[&x.transpose(&[1, 0])], &[zeros(&[6, 4])])[0].1, cost(96, 96, 0));
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let feeds = [zeros(&[6, 4]), Array::zeros(DType::I64, [6]).unwrap()];
    let loss = x.sparse_softmax_cross_entropy(&labels);
    // Loss and gradient; 5 for each of 24 logits, 2 for each of 6 labels.
    assert_eq!(costs(&[&loss], &feeds)[0].1, cost(96 + 48, 24 + 96, 5 * 24 + 12));
    let pooled = g.placeholder("i", DType::F32, [Dim::BATCH, 4.into(), 4.into(), 1.into()]);
    let pooled = pooled.avg_pool((2, 2), (2, 2), Padding::Valid);
    assert_eq!(costs(&[&pooled], &[zeros(&[2, 4, 4, 1])])[0].1, cost(128, 32, 8 * 4));
}

#[test]
fn lookups_and_updates_touch_rows() {
    let of = |found: &[(String, Cost)], name: &str| {
        found.iter().find(|(op, _)| op == name).unwrap_or_else(|| panic!("{name}: {found:?}")).1
    };
    let run = |optimizer: Optimizer| {
        let g = Graph::new();
        let ids = g.ragged_placeholder("ids", DType::I64);
        let table = g.variable("table", [100, 8], Initializer::Ones);
        let loss = table.lookup(&ids, Combiner::Mean).square().mean();
        let train = optimizer.minimize(&loss);
        // Rows of 3 and 1 ids, of which two are the same: three rows of the table.
        let feeds = [Array::from([7i64, 9, 7, 50]), Array::from([0i64, 3, 4])];
        costs(&[&loss, &train], &feeds)
    };
    let found = run(Optimizer::new(Adagrad::default(), 0.1));
    // 3 ids of 8 bytes; 3 rows of 8 floats.
    assert_eq!(of(&found, "GatherV2"), cost(24 + 96, 96, 0));
    // 4 rows are added, 2 are divided; reads three rows, 4 places (i32), 3 splits (i64).
    assert_eq!(of(&found, "SparseSegmentMean"), cost(96 + 16 + 24, 64, 4 * 8 + 2 * 8));
    // Three ids and rows; three rows of the table and of its one slot; 2 + 4 operations on each
    // element.
    assert_eq!(of(&found, "ApplyAdagrad"), cost(24 + 96 + 2 * 96, 2 * 96, 24 * 6));
    // All of the table and of two slots: rows without gradient decay, unless that is switched off.
    let found = run(Optimizer::new(Adam::default(), 0.1));
    assert_eq!(of(&found, "ApplyAdam"), cost(24 + 96 + 3 * 3200, 3 * 3200, 800 * 10));
    let found = run(Optimizer::new(Adam::default(), 0.1).lazy());
    assert_eq!(of(&found, "ApplyAdam"), cost(24 + 96 + 3 * 96, 3 * 96, 24 * 10));
    // The counter of updates: 8 bytes.
    assert_eq!(of(&found, "Assign"), cost(8, 8, 0));
}

#[test]
fn both_executors_and_the_host_are_timed() {
    let g = Graph::new();
    let words = g.placeholder("words", DType::Str, [Dim::BATCH]);
    let w = g.variable("w", [1, 2], Initializer::Ones);
    let y = words.string_length(Encoding::Bytes).cast(DType::F32).reshape([-1, 1]).matmul(&w);
    let feeds = [Array::from_strings([2], ["wide", "deep"]).unwrap()];
    let found = traced(&Reference, &[&y], &feeds);
    assert_eq!(found, traced(&Cpu::with_threads(2), &[&y], &feeds));
    // Eight letters become two numbers (i32), on the host.
    assert_eq!(found[0], ("StringLength".to_string(), cost(8, 8, 0)));
    assert_eq!(found.last(), Some(&("MatMul".to_string(), cost(8 + 8, 16, 2 * 2 * 2))));
}

#[test]
fn the_bound_is_what_takes_longer() {
    let rates = Rates { flops: 1e9, bytes: 1e8 };
    assert_eq!(rates.bound(&cost(50, 50, 100)), 1e-6);
    assert_eq!(rates.bound(&cost(50, 50, 10_000)), 1e-5);
}
