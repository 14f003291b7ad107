//! Wrong shapes, dtypes, ranks, names and graphs give an error with the problem, the place and the
//! fix; never a panic.

use std::collections::BTreeSet;

use estimand::graph::RecurrentInputs;
use estimand::graph::custom::CustomOp;
use estimand::graph::op::{Cell, CellFunction};
use estimand::graph::{
    ApplyGradients, Axes, Combiner, Cpu, CrossKey, Encoding, Gradient, Lookup, LookupTable, Minimize, Mirror, Padding,
    RaggedTensor, Role, Running, Transposed,
};
use estimand::prelude::*;
use estimand::tensor::TensorSpec;

fn message(graph: &Graph) -> String {
    graph.check().expect_err("the graph should have an error").to_string()
}

/// Checks that an error has all of these parts and names this file.
fn expect(graph: &Graph, parts: &[&str]) {
    let text = message(graph);
    for part in parts.iter().chain(&["bad_input.rs:"]) {
        assert!(text.contains(part), "{text}\nshould contain {part}");
    }
}

#[test]
fn shapes_that_do_not_fit() {
    let g = Graph::new();
    let _scope = g.scope("dnn");
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    let w = g.variable("kernel", [5, 10], Initializer::GlorotUniform);
    let y = x.matmul(&w).relu() + 1.0;
    expect(&g, &["inner sizes 4 and 5 differ", "MatMul of `x` f32[batch, 4] and", "f32[5, 10]", "in scope `dnn`"]);
    // Everything that follows from the error is silent, and the first error stays.
    let _ = y.concat_with_itself();
    expect(&g, &["inner sizes"]);
    assert!(Session::new(&g).is_err());
}

trait Twice {
    fn concat_with_itself(&self) -> Tensor;
}

impl Twice for Tensor {
    fn concat_with_itself(&self) -> Tensor {
        Tensor::concat(&[self, self], 7)
    }
}

/// A mistake, and what its error must contain.
type Case = (fn(&Graph), &'static [&'static str]);

/// Applies pairs that are made from a graph and its variable `w`.
#[track_caller]
fn apply(g: &Graph, pairs: fn(&Graph, &Tensor) -> Vec<(Gradient, Tensor)>) {
    let w = g.variable("w", [2, 3], Initializer::Zeros);
    let _ = Optimizer::new(Sgd::default(), 0.1).apply_gradients(pairs(g, &w));
}

fn rows(indices: Tensor, values: Tensor) -> Gradient {
    Gradient::Rows { indices, values }
}

#[test]
fn each_kind_of_mistake_has_its_message() {
    let cases: Vec<Case> = vec![
        (|g| drop(g.constant([1.0f32, 2.0]) + g.constant([1.0f32, 2.0, 3.0])), &["[2] and [3] cannot be broadcast"]),
        (|g| drop(g.constant([1.0f32]) + g.constant([1i64])), &["dtypes f32 and i64 differ", "help: use .cast"]),
        (|g| drop(g.constant([1i64]) / 2.0), &["not defined on i64", "help:"]),
        (|g| drop(g.constant([1i64]) + 0.5), &["the number 0.5 is not a i64"]),
        (|g| drop(g.constant([true]).exp()), &["not defined on bool"]),
        (|g| drop(g.constant([1.0f32]).sum_axes([1])), &["axis 1 is out of range for a tensor with 1 axes", "-1 to 0"]),
        (
            |g| drop(g.constant([1.0f32, 2.0]).reshape([3])),
            &["cannot reshape [2] to [3]", "the first has 2 elements, the second 3"],
        ),
        (|g| drop(g.constant([1.0f32, 2.0, 3.0]).reshape([-1, 2])), &["the other sizes do not divide"]),
        (|g| drop(g.constant([1.0f32]).reshape([-1, -1])), &["only one size can be -1"]),
        (|g| drop(g.constant([1.0f32]).gather(&g.constant([0.5f32]))), &["indices are f32, expected i32 or i64"]),
        (
            |g| drop(g.constant([1.0f32, 2.0]).slice(&[1], &[2])),
            &["the slice 1..3 is outside axis 0, which has size 2"],
        ),
        (|g| drop(g.constant([1.0f32, 2.0]).split(&[1, 2], 0)), &["the sum of the sizes is not 2"]),
        (|g| drop(g.constant([1.0f32]).transpose(&[0, 0])), &["the permutation is [0, 0]"]),
        (|g| drop(g.constant([1.0f32]).dropout(1.0)), &["the dropout rate is 1; expected 0 <= rate < 1"]),
        (|g| drop(g.constant([1.0f32, 2.0]).top_k(3)), &["k = 3, but the last axis has 2"]),
        (|g| drop(g.get_variable("w")), &["there is no variable `w`"]),
        (|g| drop(g.variable("w", [usize::MAX, 2], Initializer::Zeros)), &["does not fit into the address space"]),
        (|g| drop(g.fill([usize::MAX / 2, 4], DType::F32, 0.0)), &["does not fit"]),
        (|g| drop(g.constant([1.0f32]).tile(&[usize::MAX])), &["does not fit"]),
        (|g| drop(g.constant([1.0f32, 2.0]).tile(&[usize::MAX])), &["overflows"]),
        (|g| drop(g.constant([0i64]).one_hot(usize::MAX, DType::F32)), &["does not fit"]),
        (|g| drop(g.constant([1.0f32]).pad(&[(usize::MAX, 1)], 0.0)), &["overflows"]),
        (|g| drop(g.constant([1.0f32]).crop(&[(1, 1)])), &["cannot crop 1 and 1 from axis 0 of", "f32[1]"]),
        (|g| drop(g.constant([1.0f32]).crop(&[(usize::MAX, 1)])), &["and 1 from axis 0"]),
        (|g| drop(g.constant([1.0f32]).crop(&[])), &["0 borders for", "expected one for each axis"]),
        (|g| drop(g.placeholder("x", DType::F32, [1usize; 9])), &["9 axes, at most 8"]),
        (
            |g| drop(Optimizer::new(Sgd::default(), 0.1).minimize(&g.constant([1.0f32]).sum())),
            &["no trainable variable"],
        ),
        (
            |g| {
                let _w = g.variable("w", [], Initializer::Zeros);
                let _ = Optimizer::new(Sgd::default(), 0.1).minimize(&g.constant(1.0f32));
            },
            &["does not depend on any of the variables", "help:"],
        ),
        (
            |g| {
                let w = g.variable("w", [], Initializer::Zeros);
                let _ = Optimizer::new(Sgd::default(), -0.1).minimize(&w);
            },
            &["SGD", "-0.1"],
        ),
        (
            |g| apply(g, |_, w| vec![(Gradient::Dense(w.clone()), w.clone()), (Gradient::None, w.clone())]),
            &["variable `w` f32[2, 3] has two gradients", "help: add them"],
        ),
        (|g| apply(g, |g, _| vec![(Gradient::Dense(g.constant(1.0f32)), g.constant(2.0f32))]), &["is not a variable"]),
        (|g| apply(g, |_, w| vec![(Gradient::None, w.clone())]), &["no variable of the list has one", "help:"]),
        (
            |g| {
                apply(g, |g, _| {
                    let frozen = Role::Model { trainable: false };
                    let mean = g.variable_with("mean", DType::F32, [], Initializer::Zeros, frozen);
                    vec![(Gradient::Dense(mean.clone()), mean)]
                })
            },
            &["variable `mean` is not trainable", "help: leave it out"],
        ),
        (
            |g| {
                apply(g, |g, _| {
                    let step = g.variable_with("step", DType::I64, [], Initializer::Zeros, Role::Step);
                    vec![(Gradient::Dense(step.clone()), step)]
                })
            },
            &["variable `step` counts steps"],
        ),
        (
            |g| {
                apply(g, |g, _| {
                    let wide = Role::Model { trainable: true };
                    let wide = g.variable_with("wide", DType::F64, [], Initializer::Zeros, wide);
                    vec![(Gradient::Dense(wide.clone()), wide)]
                })
            },
            &["variable `wide` is f64; optimizers train only f32"],
        ),
        (
            |g| {
                apply(g, |_, w| {
                    let other = Graph::new().variable("other", [2, 3], Initializer::Zeros);
                    vec![(Gradient::Dense(w.clone()), w.clone()), (Gradient::Dense(w.clone()), other)]
                })
            },
            &["`other` f32[2, 3] is trained, and belongs to another graph"],
        ),
        (
            |g| {
                apply(g, |_, w| {
                    let other = Graph::new().constant(vec![0f32; 6]).reshape([2, 3]);
                    vec![(Gradient::Dense(other), w.clone())]
                })
            },
            &["f32[2, 3] belongs to another graph, as the gradient of variable `w` f32[2, 3]"],
        ),
        (
            |g| apply(g, |g, w| vec![(Gradient::Dense(g.constant([1f32, 2.0])), w.clone())]),
            &["f32[2], as the gradient of variable `w` f32[2, 3]", "help: a gradient has the shape of its variable"],
        ),
        (
            |g| apply(g, |_, w| vec![(Gradient::Dense(w.cast(DType::F64)), w.clone())]),
            &["f64[2, 3], as the gradient of variable `w` f32[2, 3]", "help: use .cast"],
        ),
        (|g| apply(g, |g, w| vec![(Gradient::Dense(g.group(&[])), w.clone())]), &["which has no value"]),
        (
            |g| apply(g, |g, w| vec![(rows(g.constant([0.0f32]), w.slice(&[0, 0], &[1, 3])), w.clone())]),
            &["f32[1], as the gradient of variable `w`", "help: indices are i32 or i64"],
        ),
        (
            |g| apply(g, |g, w| vec![(rows(g.constant([0i64, 1, 1]), w.clone()), w.clone())]),
            &["rows `w` f32[2, 3] at", "i64[3], as the gradient", "help: n indices and n rows"],
        ),
        (
            |g| apply(g, |g, w| vec![(rows(g.constant([0i64]), g.constant([0i64])), w.clone())]),
            &["rows", "i64[1], as the gradient", "help: use .cast"],
        ),
        (
            |g| {
                apply(g, |g, _| {
                    let single = g.variable("single", [], Initializer::Zeros);
                    vec![(rows(g.constant(0i64), g.constant(1.0f32)), single)]
                })
            },
            &["of variable `single` f32[]", "help: n indices and n rows"],
        ),
        (
            |g| {
                let w = g.variable("w", [], Initializer::Zeros);
                let pairs = vec![(Gradient::Dense(w.clone()), w.clone())];
                let _ = Optimizer::new(Sgd::default(), 0.1).apply_gradients(ApplyGradients::new(pairs).global_step(&w));
            },
            &["the step counter is `w` f32[]", "expected an i64 variable"],
        ),
        (
            |g| {
                let w = g.variable("w", [], Initializer::Zeros);
                let step = g.variable_with("step", DType::I64, [], Initializer::Zeros, Role::Step);
                Optimizer::new(Sgd::default(), 0.1).compute_gradients(Minimize::new(&w).global_step(&step));
            },
            &["gradients do not count steps", "help: give it to ApplyGradients::global_step"],
        ),
        (
            |g| {
                let w = g.variable("w", [], Initializer::Zeros);
                let other = Graph::new().variable("other", [], Initializer::Zeros);
                let _ = Optimizer::new(Sgd::default(), 0.1).minimize(Minimize::new(&w).variables([&other]));
            },
            &["`other` f32[] is trained, and belongs to another graph"],
        ),
        (
            |g| {
                let _one = g.variable("w", [], Initializer::Zeros);
                let _two = g.variable("w", [], Initializer::Zeros);
            },
            &["variable `w` already exists; it was created at", "help: open a scope"],
        ),
        (
            |g| {
                let other = Graph::new();
                let _ = g.constant(1.0f32) + other.constant(2.0f32);
            },
            &["tensors of two graphs", "help: build both in one graph"],
        ),
        (
            |g| {
                let _ = g.placeholder("x", DType::F32, [Dim::BATCH]).dim(0);
            },
            &["axis 0 of `x` f32[batch] is known only at run time", "help: use tensor.size(axis)"],
        ),
    ];
    for (build, parts) in cases {
        let g = Graph::new();
        build(&g);
        expect(&g, parts);
    }
}

#[test]
fn runs_say_what_was_fed() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
    let table = g.variable("table", [3, 2], Initializer::Zeros);
    let out = (&x + table.gather(&ids)).sum();
    let mut session = Session::new(&g).unwrap();
    let xs = |n: usize| Array::zeros(DType::F32, [n, 2]).unwrap();
    let other = Graph::new();
    let stranger = other.placeholder("x", DType::F32, [Dim::BATCH]);
    for (feeds, part) in [
        (vec![(&x, xs(2))], "placeholder `ids` i64[batch] was not fed"),
        (vec![(&x, xs(2)), (&ids, Array::from([0i64]))], "2 rows, but `ids` was fed 1"),
        (vec![(&x, Array::from([1.0f32])), (&ids, Array::from([0i64]))], "`x` was fed f32[1], expected f32[batch, 2]"),
        (vec![(&x, xs(1)), (&ids, Array::from([0i32]))], "`ids` was fed i32[1], expected i64[batch]"),
        (vec![(&x, xs(1)), (&ids, Array::from([3i64]))], "index 3 at position 0 is not in [0, 3)"),
        (vec![(&x, xs(1)), (&ids, Array::from([-1i64]))], "index -1 at position 0"),
        (vec![(&stranger, xs(1))], "belongs to another graph"),
        (vec![(&out, xs(1))], "it is not a placeholder"),
    ] {
        let error = session.run(&[&out], &feeds).expect_err(part).to_string();
        assert!(error.contains(part), "{error}\nshould contain {part}");
    }
    assert!(session.run(&[&stranger], &[]).unwrap_err().to_string().contains("another graph"));
    assert!(session.value("tabel").unwrap_err().to_string().contains("did you mean `table`?"));
    assert!(session.set_value("table", &Array::from([1.0f32])).unwrap_err().to_string().contains("f32[3, 2]"));
    // The session is still good.
    assert!(session.run(&[&out], &[(&x, xs(1)), (&ids, Array::from([0i64]))]).is_ok());
}

#[test]
fn sizes_that_clash_only_at_run_time() {
    let g = Graph::new();
    let a = g.placeholder("a", DType::F32, [Graph::ANY]);
    let b = g.placeholder("b", DType::F32, [Graph::ANY]);
    let sum = &a + &b;
    let mut session = Session::new(&g).unwrap();
    let array = |n: usize| Array::zeros(DType::F32, [n]).unwrap();
    assert_eq!(session.run(&[&sum], &[(&a, array(3)), (&b, array(1))]).unwrap()[0].dims(), [3]);
    let error = session.run(&[&sum], &[(&a, array(3)), (&b, array(2))]).unwrap_err().to_string();
    assert!(error.contains("sizes 3 and 2"), "{error}");
}

type Build = fn(&[Tensor; 3]) -> Tensor;

/// What a recurrent cell could read beside a sequence, of any kind.
fn beside(t: &[Tensor; 3], n_states: usize, mask: Option<&Tensor>) -> RecurrentInputs {
    let [_, kernel, state] = t;
    RecurrentInputs {
        kernel: kernel.clone(),
        bias: None,
        states: vec![state.clone(); n_states],
        mask: mask.cloned(),
        keep: None,
    }
}

fn recurrent(t: &[Tensor; 3], cell: Cell, n_states: usize, mask: Option<&Tensor>) -> Tensor {
    t[0].recurrent(cell, CellFunction::Tanh, CellFunction::Sigmoid, &beside(t, n_states, mask)).sequence
}

/// Every op that can be built, on three tensors of any kind.
fn every_op() -> Vec<Build> {
    vec![
        |t| t[0].abs(),
        |t| t[0].sign(),
        |t| t[0].floor(),
        |t| t[0].ceil(),
        |t| t[0].round(),
        |t| t[0].exp(),
        |t| t[0].expm1(),
        |t| t[0].log(),
        |t| t[0].log1p(),
        |t| t[0].sqrt(),
        |t| t[0].rsqrt(),
        |t| t[0].square(),
        |t| t[0].reciprocal(),
        |t| t[0].sin(),
        |t| t[0].cos(),
        |t| t[0].tanh(),
        |t| t[0].sigmoid(),
        |t| t[0].erf(),
        |t| t[0].softplus(),
        |t| t[0].softsign(),
        |t| t[0].relu(),
        |t| t[0].relu6(),
        |t| t[0].elu(),
        |t| t[0].selu(),
        |t| t[0].logical_not(),
        |t| t[0].is_nan(),
        |t| t[0].is_finite(),
        |t| -&t[0],
        |t| &t[0] + &t[1],
        |t| &t[0] - &t[1],
        |t| &t[0] * &t[1],
        |t| &t[0] / &t[1],
        |t| t[0].div_no_nan(&t[1]),
        |t| t[0].floor_div(&t[1]),
        |t| t[0].floor_mod(&t[1]),
        |t| t[0].pow(&t[1]),
        |t| t[0].maximum(&t[1]),
        |t| t[0].minimum(&t[1]),
        |t| t[0].squared_difference(&t[1]),
        |t| t[0].less(&t[1]),
        |t| t[0].less_equal(&t[1]),
        |t| t[0].greater(&t[1]),
        |t| t[0].greater_equal(&t[1]),
        |t| t[0].equal(&t[1]),
        |t| t[0].not_equal(&t[1]),
        |t| t[0].logical_and(&t[1]),
        |t| t[0].logical_or(&t[1]),
        |t| t[0].select(&t[1], &t[2]),
        |t| t[0].cast(DType::I32).cast(DType::F32),
        |t| t[0].stop_gradient(),
        |t| t[0].clip(-1.0, 1.0),
        |t| t[0].leaky_relu(0.1),
        |t| t[0].swish(),
        |t| t[0].gelu(),
        |t| t[0].sum(),
        |t| t[0].mean_axes(Axes::of([-1]).keep_dims()),
        |t| t[0].max_axes([0]),
        |t| t[0].min(),
        |t| t[0].prod(),
        |t| t[0].all(),
        |t| t[0].any(),
        |t| t[0].argmax(-1),
        |t| t[0].argmin(0),
        |t| t[0].logsumexp_axes([-1]),
        |t| t[0].cumsum(Running::along(0).exclusive()),
        |t| t[0].cumprod(Running::along(-1).reverse()),
        |t| t[0].top_k(2).0,
        |t| t[0].reshape([2, -1]),
        |t| t[0].flatten(),
        |t| t[0].expand_dims(-1),
        |t| t[0].squeeze(&[0]),
        |t| t[0].transpose(&[]),
        |t| t[0].broadcast_to([Dim::BATCH, 3.into()]),
        |t| Tensor::concat(&[&t[0], &t[1]], 0),
        |t| Tensor::stack(&[&t[0], &t[1]], -1),
        |t| t[0].unstack(-1).into_iter().next().unwrap_or_else(|| t[0].clone()),
        |t| t[0].slice(&[0, 1], &[-1, 1]),
        |t| t[0].strided_slice(&[(0, 9, 2), (-1, -9, -1)]),
        |t| t[0].pad(&[(1, 0), (0, 2)], 1.0),
        |t| t[0].truncate(-1, 1),
        |t| t[0].crop(&[(1, 0), (0, 1)]),
        |t| t[0].mirror_pad(&[(1, 0), (0, 1)], Mirror::Reflect),
        |t| t[0].tile(&[2, 1]),
        |t| t[0].reverse(&[0]),
        |t| t[0].band_part(None, Some(0)),
        |t| t[0].size(0),
        |t| t[0].zeros_like() + t[0].ones_like(),
        |t| t[0].matmul(&t[1]),
        |t| t[0].expand_dims(0).matmul_with(&t[1].expand_dims(0), Transposed::Left),
        |t| t[0].conv1d(&t[1], 1, Padding::Same),
        |t| t[0].conv2d(&t[1], (1, 2), Padding::Same),
        |t| t[0].depthwise_conv2d(&t[1], (1, 1), Padding::Valid),
        |t| t[0].conv2d_transpose(&t[1], (4, 4), (1, 1), Padding::Same),
        |t| t[0].max_pool((2, 2), (1, 1), Padding::Valid),
        |t| t[0].avg_pool((9, 9), (2, 2), Padding::Same),
        |t| t[0].max_pool((0, 1), (1, 1), Padding::Same),
        |t| t[0].max_pool((1, 1), (0, 1), Padding::Same),
        |t| t[0].max_pool((usize::MAX, 1), (1, 1), Padding::Valid),
        |t| t[0].conv2d_dilated(&t[1], (usize::MAX, 1), (usize::MAX, 2), Padding::Valid),
        |t| t[0].conv2d_dilated(&t[1], (1, 1), (usize::MAX, 2), Padding::Same),
        |t| t[0].global_avg_pool(),
        |t| t[0].softmax(),
        |t| t[0].log_softmax(),
        |t| t[0].softmax_cross_entropy(&t[1]),
        |t| t[0].sparse_softmax_cross_entropy(&t[1]),
        |t| t[0].sigmoid_cross_entropy(&t[1]),
        |t| t[0].layer_normalization(&t[1], &t[2], 1e-3),
        |t| t[0].moments(&[0]).1,
        |t| t[0].dropout(0.5),
        |t| t[0].gather(&t[1]),
        |t| t[0].gather_axis(&t[1], 1, 1),
        |t| t[0].gather_nd(&t[1]),
        |t| t[0].scatter_nd(&t[1], [3usize, 4]),
        |t| t[0].segment_sum(&t[1], 3),
        |t| t[0].segment_mean(&t[1], 3),
        |t| t[0].segment_max(&t[1], 3),
        |t| t[0].segment_min(&t[1], 0),
        |t| t[0].one_hot(3, DType::F32),
        |t| recurrent(t, Cell::Simple, 1, None),
        |t| recurrent(t, Cell::Lstm, 2, Some(&t[1])),
        |t| recurrent(t, Cell::Gru { reset_after: true }, 1, Some(&t[2])),
        |t| t[0].recurrent_unrolled(Cell::Simple, &|x| x.softmax(), &|x| x.softmax(), &beside(t, 1, None)).sequence,
        |t| {
            let x = t[0].graph().fill([Dim::BATCH, Graph::ANY, 3.into()], DType::F32, 0.5);
            x.recurrent(Cell::Simple, CellFunction::Tanh, CellFunction::Tanh, &beside(t, 1, None)).states.remove(0)
        },
        |t| {
            let kernel = t[0].graph().variable("kernel", [2, 2], Initializer::Ones);
            let states = vec![t[0].graph().fill([Dim::BATCH, 2.into()], DType::F32, 0.5)];
            let inputs = RecurrentInputs { kernel, bias: None, states, mask: None, keep: None };
            t[0].recurrent(Cell::Simple, CellFunction::Tanh, CellFunction::Tanh, &inputs).sequence
        },
        |t| t[0].resize_bilinear((3, 5)),
        |t| t[0].resize_nearest((2, 2)),
        |t| t[0].hash_bucket(10),
        |t| t[0].hash_bucket_strong(10, [1, 2]),
        |t| t[0].bucketize(&[-1.0, 1.0]),
        |t| t[0].string_length(Encoding::Utf8),
        |t| t[0].lower(Encoding::Utf8),
        |t| t[0].upper(Encoding::Bytes),
        |t| t[0].strip(),
        |t| t[0].substr(0, 1, Encoding::Utf8),
        |t| t[0].regex_replace("(a)", r"\1b"),
        |t| t[0].regex_full_match("a*"),
        |t| t[0].to_number(DType::F32),
        |t| t[0].string_split("", -1).row_splits,
        |t| Tensor::string_join(&[&t[0], &t[1]], ","),
        |t| t[0].reduce_join(Axes::of([0]).keep_dims(), ""),
        |t| t[0].unique().1,
        |t| t[0].agree(&t[1], "lengths"),
        |t| LookupTable::from_list(["", "a"]).unwrap().lookup(&t[0]),
        |t| LookupTable::from_ints([0, 3]).unwrap().n_oov_buckets(2).unwrap().lookup(&t[0]),
        |t| LookupTable::from_list(["", "a"]).unwrap().reverse(&t[0], "?"),
        |t| LookupTable::from_list(["", "a"]).unwrap().lookup_known(&t[0], "term"),
        |t| t[0].ensure_between(-1.0, 1.0, "number"),
        |t| t[0].boolean_mask(&t[1]),
        |t| RaggedTensor::from_dense(&t[0]).row_splits,
        |t| RaggedTensor::from_rows(&t[0]).row_splits,
        |t| RaggedTensor::new(&t[0], &t[1]).to_steps(&t[2], &[2], &t[2]),
        |t| RaggedTensor::new(&t[0], &t[1]).sum(),
        |t| RaggedTensor::new(&t[0], &t[1]).mean(),
        |t| RaggedTensor::new(&t[0], &t[1]).row_lengths(),
        |t| RaggedTensor::new(&t[0], &t[1]).filter(&t[2]).values,
        |t| RaggedTensor::new(&t[0], &t[1]).multi_hot(3, None),
        |t| RaggedTensor::from_dense(&t[0]).multi_hot(3, Some(&t[1])),
        |t| {
            let (a, b) = (RaggedTensor::new(&t[0], &t[1]), RaggedTensor::from_dense(&t[2]));
            RaggedTensor::concat(&[&a, &b]).values
        },
        |t| RaggedTensor::concat(&[&RaggedTensor::from_dense(&t[0]), &RaggedTensor::from_dense(&t[0])]).values,
        |t| t[0].graph().cross(&[CrossKey::from(&t[0]), CrossKey::from(&t[1])], 10, 0).values,
        |t| {
            let ragged = RaggedTensor::from_dense(&t[0]);
            t[0].graph().cross(&[CrossKey::from(&t[1]), CrossKey::from(&ragged)], 10, 0).values
        },
        |t| t[0].lookup(&RaggedTensor::new(&t[1], &t[2]), Combiner::Mean),
        |t| {
            let table = t[0].graph().variable("rows", [3, 2], Initializer::Ones);
            table.lookup(&RaggedTensor::from_dense(&t[0]), Combiner::SqrtN)
        },
        |t| {
            let table = t[0].graph().variable("rows", [3, 2], Initializer::Ones);
            table.lookup(&RaggedTensor::from_dense(&t[0]), Lookup::new(Combiner::Mean).weights(&t[1]).max_norm(1.0))
        },
        |t| t[0].graph().range(Dim::BATCH, DType::F32),
        |t| t[0].graph().random_integers([Dim::BATCH], 0, 3),
        |t| t[0].assign(&t[1]),
        |t| {
            let op = CustomOp::new("same", vec![TensorSpec::new(DType::F32, [3usize])], |x| Ok(x.to_vec()));
            t[0].graph().custom(op, &[&t[0]]).remove(0)
        },
    ]
}

/// Placeholders and variables of many dtypes, ranks and sizes, with values to feed.
fn zoo(g: &Graph) -> Vec<(Tensor, Option<Array>)> {
    let mut all = Vec::new();
    let shapes: Vec<(Vec<Dim>, Vec<usize>)> = vec![
        (vec![], vec![]),
        (vec![Dim::BATCH], vec![2]),
        (vec![0.into()], vec![0]),
        (vec![Dim::BATCH, 3.into()], vec![2, 3]),
        (vec![3.into(), 1.into()], vec![3, 1]),
        (vec![Graph::ANY, Graph::ANY], vec![3, 2]),
        (vec![Dim::BATCH, 0.into()], vec![2, 0]),
        (vec![1.into(), 3.into(), 2.into()], vec![1, 3, 2]),
        (vec![Dim::BATCH, 4.into(), 4.into(), 1.into()], vec![2, 4, 4, 1]),
        (vec![3.into(), 3.into(), 1.into(), 2.into()], vec![3, 3, 1, 2]),
        (vec![Dim::BATCH, Graph::ANY, Graph::ANY, 1.into()], vec![2, 5, 3, 1]),
    ];
    for dtype in [DType::F32, DType::I64, DType::Bool, DType::U8, DType::Str] {
        for (i, (dims, sizes)) in shapes.iter().enumerate() {
            let name = format!("{dtype}_{i}");
            let tensor = g.placeholder(&name, dtype, dims.iter().copied().collect::<estimand::tensor::Shape>());
            all.push((tensor, Some(Array::zeros(dtype, sizes).unwrap())));
        }
    }
    all.push((g.variable("variable", [2, 3], Initializer::Ones), None));
    all
}

#[test]
fn no_op_panics_on_any_input() {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let (mut built, mut refused, mut run_errors) = (0, 0, 0);
    let n = zoo(&Graph::new()).len();
    for (k, build) in every_op().into_iter().enumerate() {
        for i in 0..n {
            // A second and third operand that fit now and then; over all ops every pair of kinds
            // occurs.
            for shift in [0, 1, 3, 9, 10, 13] {
                let g = Graph::new();
                let zoo = zoo(&g);
                let operand = |j: usize| zoo[j % n].0.clone();
                let result = build(&[operand(i), operand(i + shift), operand(i + shift + k)]);
                if let Err(error) = g.check() {
                    assert!(error.to_string().contains("bad_input.rs:"), "{error}");
                    refused += 1;
                    continue;
                }
                built += 1;
                seen.extend(g.body().nodes().iter().map(|node| node.op.name().to_string()));
                let feeds: Vec<_> = zoo.iter().filter_map(|(t, a)| a.clone().map(|a| (t, a))).collect();
                let mut session = Session::with(&g, Cpu::with_threads(1), 0).unwrap();
                let mut fetches = vec![&result];
                let gradient = result.dtype().is_float().then(|| gradients(&result, &[&operand(i)]).remove(0));
                let gradient = gradient.and_then(|g| g.values().cloned());
                if g.check().is_ok()
                    && let Some(gradient) = &gradient
                {
                    fetches.push(gradient);
                } else if g.check().is_err() {
                    continue;
                }
                if session.run(&fetches, &feeds).is_err() {
                    run_errors += 1;
                }
            }
        }
    }
    assert!(built > 2_000 && refused > 5_000, "{built} built, {refused} refused, {run_errors} run errors");
    for name in [
        "MatMul",
        "StringSplitV2",
        "SparseCross",
        "SparseSegmentSqrtN",
        "LookupTableFindV2",
        "Conv2D",
        "DepthwiseConv2dNative",
        "GatherNd",
        "TopKV2",
        "ResizeBilinear",
        "Cumprod",
        "MirrorPad",
        "SimpleRnn",
    ] {
        assert!(seen.contains(name), "no input fitted {name}");
    }
}
