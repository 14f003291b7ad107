//! The low-level API with sessions: feeds, fetches, variables that persist, and train ops run by
//! hand.

use estimand::graph::custom::CustomOp;
use estimand::graph::{
    Clip, Cpu, Executor, Gradient, GradientMut, Padding, Program, Reference, Role, RunArgs, State, VarId,
};
use estimand::prelude::*;
use estimand::tensor::TensorSpec;

#[test]
fn gradient_descent_by_hand() {
    // loss = (w * 2 - 1)^2 at w = 0: gradient 2 * (0 - 1) * 2 = -4; w becomes 0.4.
    let g = Graph::new();
    let w = g.variable("w", [], Initializer::Zeros);
    let loss = (&w * 2.0 - 1.0).square();
    let train = Optimizer::new(Sgd::default(), 0.1).minimize(&loss);
    let mut session = Session::new(&g).unwrap();
    let seen = session.run(&[&train, &loss, &w], &[]).unwrap();
    // A run reads the variables as they were before it.
    assert_eq!((seen[0].item::<f32>().unwrap(), seen[1].item::<f32>().unwrap()), (1.0, 0.0));
    assert_eq!(session.value("w").unwrap().item::<f32>().unwrap(), 0.4);
    assert_eq!((session.step(), session.value("SGD/iter").unwrap().item::<i64>().unwrap()), (1, 1));
}

#[test]
fn assignments_of_a_run_see_the_values_before_it() {
    // a, b = b, a
    let g = Graph::new();
    let a = g.variable("a", [2], Initializer::Value(Array::from([1.0f32, 2.0])));
    let b = g.variable("b", [2], Initializer::Value(Array::from([3.0f32, 4.0])));
    let swap = g.group(&[&a.assign(&b), &b.assign(&a)]);
    let mut session = Session::new(&g).unwrap();
    session.run(&[&swap], &[]).unwrap();
    assert_eq!(session.value("a").unwrap(), Array::from([3.0f32, 4.0]));
    assert_eq!(session.value("b").unwrap(), Array::from([1.0f32, 2.0]));
}

#[test]
fn a_lookup_trains_only_the_rows_it_touches() {
    // Two ids, one of them twice: its two gradients of 1 are added, so it moves by 2 * 0.5.
    let g = Graph::new();
    let table = g.variable("table", [4, 2], Initializer::Zeros);
    let ids = g.placeholder("ids", DType::I32, [Dim::BATCH]);
    let loss = table.gather(&ids).sum();
    assert!(matches!(gradients(&loss, &[&table])[0], Gradient::Rows { .. }));
    let train = Optimizer::new(Sgd::default(), 0.5).minimize(&loss);
    let mut session = Session::new(&g).unwrap();
    session.run(&[&train], &[(&ids, Array::from([2i32, 0, 2]))]).unwrap();
    let expected = Array::from_vec([4, 2], vec![-0.5f32, -0.5, 0.0, 0.0, -1.0, -1.0, 0.0, 0.0]).unwrap();
    assert_eq!(session.value("table").unwrap(), expected);
    // A table used twice: rows from both lookups.
    let both = table.gather(&ids).sum() + table.gather(&ids).mean();
    assert!(matches!(gradients(&both, &[&table])[0], Gradient::Rows { .. }));
}

#[test]
fn lazy_adam_leaves_other_rows_alone_and_exact_adam_does_not() {
    for (lazy, moves) in [(false, true), (true, false)] {
        let g = Graph::new();
        let table = g.variable("table", [3, 1], Initializer::Ones);
        let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
        let loss = table.gather(&ids).sum();
        let adam = Optimizer::new(Adam::default(), 0.1);
        let train = if lazy { adam.lazy() } else { adam }.minimize(&loss);
        let mut session = Session::new(&g).unwrap();
        session.run(&[&train], &[(&ids, Array::from([0i64]))]).unwrap();
        let first = session.value("table").unwrap().as_slice::<f32>().unwrap()[0];
        session.run(&[&train], &[(&ids, Array::from([1i64]))]).unwrap();
        let second = session.value("table").unwrap().as_slice::<f32>().unwrap()[0];
        // TF: the first row's momentum moves it further in the second step, though it has no
        // gradient there.
        assert_eq!(first != second, moves, "lazy {lazy}");
    }
}

#[test]
fn gradients_are_clipped_as_asked() {
    // Gradients (3, 4) and (0): the global norm is 5.
    let step = |clip: Clip| {
        let g = Graph::new();
        let a = g.variable("a", [2], Initializer::Zeros);
        let b = g.variable("b", [], Initializer::Zeros);
        let loss = (&a * g.constant([3.0f32, 4.0])).sum() + &b * 0.0;
        let train = Optimizer::new(Sgd::default(), 1.0).clip(clip).minimize(&loss);
        let mut session = Session::new(&g).unwrap();
        session.run(&[&train], &[]).unwrap();
        session.value("a").unwrap().as_slice::<f32>().unwrap().to_vec()
    };
    assert_eq!(step(Clip::Value(3.5)), [-3.0, -3.5]);
    for clip in [Clip::Norm(1.0), Clip::GlobalNorm(1.0)] {
        let moved = step(clip);
        assert!((moved[0] + 0.6).abs() < 1e-6 && (moved[1] + 0.8).abs() < 1e-6, "{clip:?}: {moved:?}");
    }
    assert_eq!(step(Clip::GlobalNorm(10.0)), [-3.0, -4.0]);
}

#[test]
fn schedules_change_the_rate_with_the_step() {
    let g = Graph::new();
    let w = g.variable("w", [], Initializer::Zeros);
    let rate = Schedule::Piecewise { boundaries: vec![1], values: vec![1.0, 0.25] };
    let train = Optimizer::new(Sgd::default(), rate).minimize(&(&w * 1.0));
    let mut session = Session::new(&g).unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        session.run(&[&train], &[]).unwrap();
        seen.push(session.value("w").unwrap().item::<f32>().unwrap());
    }
    // TF: a boundary belongs to the interval before it.
    assert_eq!(seen, [-1.0, -2.0, -2.25]);
}

#[test]
fn custom_ops_run_host_code_and_may_have_a_gradient() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
    let cube = |arrays: &[Array]| {
        let values = arrays[0].as_slice::<f32>()?.iter().map(|v| v * v * v).collect();
        Ok(vec![Array::from_vec(arrays[0].dims(), values)?])
    };
    let slope = |arrays: &[Array]| {
        let (x, dy) = (arrays[0].as_slice::<f32>()?, arrays[1].as_slice::<f32>()?);
        let values = x.iter().zip(dy).map(|(x, dy)| 3.0 * x * x * dy).collect();
        Ok(vec![Array::from_vec(arrays[0].dims(), values)?])
    };
    let op = CustomOp::new("cube", vec![TensorSpec::new(DType::F32, [Dim::BATCH])], cube).gradient(slope);
    let y = g.custom(op, &[&x]).remove(0);
    let Gradient::Dense(dx) = gradients(&y, &[&x]).remove(0) else { panic!("a dense gradient") };
    let mut session = Session::new(&g).unwrap();
    let out = session.run(&[&y, &dx], &[(&x, Array::from([2.0f32, -1.0]))]).unwrap();
    assert_eq!(out[0], Array::from([8.0f32, -1.0]));
    assert_eq!(out[1], Array::from([12.0f32, 3.0]));
}

#[test]
fn names_are_tensorflows() {
    let g = Graph::new();
    {
        let _dnn = g.scope("dnn");
        let _layer = g.scope("hiddenlayer_0");
        let w = g.variable("kernel", [1], Initializer::Zeros);
        assert_eq!((&w + 1.0).name(), "dnn/hiddenlayer_0/AddV2");
        assert_eq!((&w + 2.0).name(), "dnn/hiddenlayer_0/AddV2_1");
    }
    let _again = g.scope("dnn");
    assert_eq!(g.scope_path(), "dnn_1");
    assert_eq!(g.body().variables().iter().next().unwrap().1.name, "dnn/hiddenlayer_0/kernel");
}

#[test]
fn values_are_kept_set_and_evaluated() {
    let g = Graph::new();
    let w = g.variable_with("w", DType::I64, [2], Initializer::Ones, Role::Model { trainable: false });
    assert_eq!((&w + 1).eval().unwrap(), Array::from([2i64, 2]));
    let mut session = Session::new(&g).unwrap();
    session.set_value("w", &Array::from([5i64, 6])).unwrap();
    assert_eq!(session.run(&[&w], &[]).unwrap()[0], Array::from([5i64, 6]));
    // Variables made later join in.
    let late = g.variable("late", [], Initializer::Constant(2.5));
    assert_eq!(session.run(&[&late], &[]).unwrap()[0].item::<f32>().unwrap(), 2.5);
}

#[test]
fn gradients_can_be_seen_and_changed_before_they_are_applied() {
    // a and b have one and the same gradient, 1 for each element, which is a value the graph
    // computes once; the table's is fed.
    let g = Graph::new();
    let a = g.variable("a", [2], Initializer::Zeros);
    let b = g.variable("b", [2], Initializer::Zeros);
    let table = g.variable("table", [3, 1], Initializer::Zeros);
    let rows = g.placeholder("rows", DType::F32, [Dim::BATCH, 1.into()]);
    let ids = g.placeholder("ids", DType::I64, [Dim::BATCH]);
    let loss = (&a + &b).sum() + (table.gather(&ids) * &rows).sum();
    let train = Optimizer::new(Sgd::default(), 1.0).minimize(&loss);
    let program = Program::new(std::sync::Arc::new(g.body().clone()), &[train.value()]).unwrap();
    let feed = |name: &str| if name == "rows" { fed_rows() } else { Array::from([2i64, 0]) };
    let feeds: Vec<Array> = program.feeds().iter().map(|v| feed(&program.body().node(v.node).name)).collect();
    for executor in [Box::new(Cpu::with_threads(2)) as Box<dyn Executor>, Box::new(Reference)] {
        let mut state = executor.place(program.body().variables(), 0).unwrap();
        let executable = executor.compile(program.clone()).unwrap();
        // Two workers with the same gradients: everything doubles.
        let mut seen = 0;
        let mut double = |_: VarId, gradient: GradientMut<'_>| {
            seen += 1;
            let (GradientMut::Dense(values) | GradientMut::Rows { values, .. }) = gradient;
            values.iter_mut().for_each(|v| *v *= 2.0);
            Ok(())
        };
        let args = RunArgs { feeds: &feeds, on_gradient: Some(&mut double), ..RunArgs::default() };
        executable.step(&mut *state, args, &mut Vec::new()).unwrap();
        assert_eq!(seen, 3, "{}", executor.name());
        let value = |state: &dyn State, name: &str| state.read(name).unwrap();
        for (name, expected) in [("a", vec![-2.0f32, -2.0]), ("b", vec![-2.0, -2.0]), ("table", vec![-10.0, 0.0, -6.0])]
        {
            assert_eq!(value(&*state, name).as_slice::<f32>().unwrap(), expected, "{name} on {}", executor.name());
        }
        assert_eq!(feeds, program.feeds().iter().map(|v| feed(&program.body().node(v.node).name)).collect::<Vec<_>>());
        // A worker that cannot be reached: nothing is written.
        let mut calls = 0;
        let mut fail = |_: VarId, _: GradientMut<'_>| {
            calls += 1;
            if calls == 2 { Err(Error::config("worker 1 is gone")) } else { Ok(()) }
        };
        let args = RunArgs { feeds: &feeds, on_gradient: Some(&mut fail), ..RunArgs::default() };
        let error = executable.step(&mut *state, args, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("worker 1 is gone"));
        assert_eq!(value(&*state, "a").as_slice::<f32>().unwrap(), [-2.0, -2.0], "{}", executor.name());
    }
}

fn fed_rows() -> Array {
    Array::from_vec([2, 1], vec![3.0f32, 5.0]).expect("two rows")
}

/// The elements of a tensor that needs no feeds.
fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.eval().unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn assert_close(actual: &[f32], expected: &[f32]) {
    let close = |(a, e): (&f32, &f32)| (a - e).abs() <= 1e-6 * e.abs().max(1.0);
    assert!(actual.len() == expected.len() && actual.iter().zip(expected).all(close), "{actual:?} is not {expected:?}");
}

#[test]
fn case_83_batch_normalisation() {
    // Columns (1, 3) and (2, -1): means 2 and 0.5, variances 1 and 2.25, epsilon 0.001.
    let g = Graph::new();
    let x = g.constant(Array::from_vec([2, 2], vec![1.0f32, 2.0, 3.0, -1.0]).unwrap());
    let (mean, variance) = x.moments(&[0]);
    assert_close(&values(&mean), &[2.0, 0.5]);
    assert_close(&values(&variance), &[1.0, 2.25]);
    let (zero, one) = (g.constant([0.0f32, 0.0]), g.constant([1.0f32, 1.0]));
    let y = x.batch_normalization(&mean, &variance, &zero, &one, 1e-3);
    assert_close(&values(&y), &[-0.99950045, 0.99977785, 0.99950045, -0.99977785]);
}

#[test]
fn case_84_dropout_keeps_and_scales() {
    // Rate 0.4: what is kept is divided by 0.6, about 60 % are kept, and every step draws anew.
    let g = Graph::new();
    let x = g.variable("x", [100, 100], Initializer::Ones);
    let dropped = x.dropout(0.4);
    let train = Optimizer::new(Sgd::default(), 0.0).minimize(&dropped.sum());
    let mut session = Session::new(&g).unwrap();
    let masks = [(); 2].map(|()| session.run(&[&dropped, &train], &[]).unwrap().remove(0));
    for mask in &masks {
        let kept: Vec<f32> = mask.as_slice::<f32>().unwrap().iter().copied().filter(|v| *v != 0.0).collect();
        assert!(kept.iter().all(|v| (v - 1.6666666).abs() < 1e-6));
        assert!((5_800..6_200).contains(&kept.len()), "{} of 10,000 kept", kept.len());
    }
    assert_ne!(masks[0], masks[1]);
}

#[test]
fn convolution_of_a_line_and_global_pools() {
    // (1, 2, 3) with the filter (1, 10): 1 + 20 and 2 + 30; SAME adds a zero at the end: 3 + 0.
    let g = Graph::new();
    let line = g.constant(Array::from_vec([1, 3, 1], vec![1.0f32, 2.0, 3.0]).unwrap());
    let filter = g.constant(Array::from_vec([2, 1, 1], vec![1.0f32, 10.0]).unwrap());
    assert_eq!(values(&line.conv1d(&filter, 1, Padding::Valid)), [21.0, 32.0]);
    assert_eq!(values(&line.conv1d(&filter, 1, Padding::Same)), [21.0, 32.0, 3.0]);
    let image = g.constant(Array::from_vec([1, 2, 2, 1], vec![1.0f32, 2.0, 3.0, 6.0]).unwrap());
    assert_eq!((values(&image.global_avg_pool()), values(&image.global_max_pool())), (vec![3.0], vec![6.0]));
}
