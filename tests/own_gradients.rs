//! `compute_gradients` and `apply_gradients`: gradients that a program changes before they are
//! applied, and the state of optimizers. The numbers are derived by hand, or are TensorFlow's
//! (`oracles/gen/own_gradients.py`).

use estimand::graph::{ApplyGradients, Clip, Cpu, Executor, Gradient, Minimize, Reference, Role};
use estimand::prelude::*;
use estimand::update::{Adadelta, Adamax, Nadam};
use estimand_fixture::{Case, cases_of};

/// Runs a test on both executors.
fn on_both(test: impl Fn(Box<dyn Fn(&Graph) -> Session>)) {
    test(Box::new(|g| session(g, Cpu::with_threads(2))));
    test(Box::new(|g| session(g, Reference)));
}

fn session(g: &Graph, executor: impl Executor + 'static) -> Session {
    Session::with(g, executor, 3).unwrap()
}

fn sgd(rate: f64) -> Optimizer {
    Optimizer::new(Sgd::default(), rate)
}

fn floats(session: &Session, name: &str) -> Vec<f32> {
    session.value(name).unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// All variables by name, as bytes.
fn state(session: &Session) -> Vec<(String, Vec<u8>)> {
    let names: Vec<String> = session.graph().body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    names.into_iter().map(|name| (name.clone(), session.value(&name).unwrap().bytes().to_vec())).collect()
}

/// A table and a dense layer; its rows are fed. Returns the ids and the loss.
fn with_table(g: &Graph) -> (Tensor, Tensor) {
    let ids = g.placeholder("ids", DType::I32, [Dim::BATCH]);
    let table = g.variable("table", [7, 3], Initializer::RandomUniform { low: -1.0, high: 1.0 });
    let w = g.variable("w", [3, 2], Initializer::GlorotUniform);
    let _unused = g.variable("unused", [2], Initializer::Ones);
    let loss = table.gather(&ids).matmul(&w).tanh().square().mean();
    (ids, loss)
}

#[test]
fn minimize_is_compute_and_apply() {
    let optimizers = [
        sgd(0.1),
        Optimizer::new(Sgd::default().momentum(0.9), 0.1),
        Optimizer::new(Adagrad::default(), 0.1).clip(Clip::Norm(0.1)),
        Optimizer::new(Adam::default(), 0.1).clip(Clip::GlobalNorm(0.1)),
        Optimizer::new(Adam::default(), 0.1).lazy(),
        Optimizer::new(Ftrl::default().l1(0.01), 0.1),
        Optimizer::new(RmsProp::default(), 0.1).clip(Clip::Value(0.01)),
        Optimizer::new(Adadelta::default(), 1.0),
        Optimizer::new(Adamax::default(), 0.1),
        Optimizer::new(Nadam::default(), 0.1),
    ];
    for optimizer in optimizers {
        let trained = |train: &dyn Fn(&Tensor) -> Tensor| {
            let g = Graph::new();
            let (ids, loss) = with_table(&g);
            let train = train(&loss);
            let mut session = session(&g, Cpu::with_threads(1));
            for batch in [[2i32, 0, 2], [6, 6, 1], [2, 3, 4]] {
                session.run(&[&train], &[(&ids, Array::from(batch))]).unwrap();
            }
            (g.to_string(), state(&session))
        };
        let at_once = trained(&|loss| optimizer.minimize(loss));
        let in_parts = trained(&|loss| {
            let pairs = optimizer.compute_gradients(loss);
            let kinds: Vec<&str> = pairs.iter().map(|(gradient, _)| kind(gradient)).collect();
            assert_eq!(kinds, ["rows", "dense", "none"]);
            optimizer.apply_gradients(pairs)
        });
        assert_eq!(at_once, in_parts, "{optimizer:?}");
        assert!(at_once.0.contains("Apply("), "{}", at_once.0);
    }
}

fn kind(gradient: &Gradient) -> &'static str {
    match gradient {
        Gradient::None => "none",
        Gradient::Dense(_) => "dense",
        Gradient::Rows { .. } => "rows",
    }
}

#[test]
fn clipping_by_hand() {
    // Gradients 3 and 4, limited to 3.5: the optimizer's own clipping does the same.
    on_both(|session| {
        let step = |train: &dyn Fn(&Tensor) -> Tensor| {
            let g = Graph::new();
            let w = g.variable("w", [2], Initializer::Zeros);
            let train = train(&(&w * g.constant([3.0f32, 4.0])).sum());
            let mut session = session(&g);
            session.run(&[&train], &[]).unwrap();
            floats(&session, "w")
        };
        let by_hand = step(&|loss| {
            let pairs = sgd(1.0).compute_gradients(loss).into_iter();
            let clipped = pairs.map(|(gradient, w)| (gradient.map_values(|g| g.clip(-3.5, 3.5)), w));
            sgd(1.0).apply_gradients(clipped.collect::<Vec<_>>())
        });
        assert_eq!(by_hand, [-3.0, -3.5]);
        assert_eq!(by_hand, step(&|loss| sgd(1.0).clip(Clip::Value(3.5)).minimize(loss)));
        // The optimizer clips what it applies: 3 + 4 = 7 becomes 3.5, and so does 8.
        let added = step(&|loss| {
            let pairs = sgd(1.0).compute_gradients(loss).into_iter();
            let larger = pairs.map(|(gradient, w)| (gradient.map_values(|g| g + 4.0), w));
            sgd(1.0).clip(Clip::Value(3.5)).apply_gradients(larger.collect::<Vec<_>>())
        });
        assert_eq!(added, [-3.5, -3.5]);
    });
}

#[test]
fn noise_is_like_a_constant_of_its_values() {
    // The gradient is 2 for both elements; a step subtracts it and the noise.
    let step = |noise: &dyn Fn(&Graph) -> Tensor| {
        let g = Graph::new();
        let w = g.variable("w", [2], Initializer::Zeros);
        let noise = noise(&g);
        let adam = Optimizer::new(Adam::default(), 0.5);
        let pairs = adam.compute_gradients(&(&w * 2.0).sum()).into_iter();
        let noisy = pairs.map(|(gradient, w)| (gradient.map_values(|g| g + &noise), w));
        let train = adam.apply_gradients(noisy.collect::<Vec<_>>());
        let mut session = session(&g, Cpu::with_threads(1));
        let drawn = session.run(&[&train, &noise], &[]).unwrap().remove(0);
        (drawn, floats(&session, "w"), floats(&session, "Adam/w/m"))
    };
    let (drawn, w, m) = step(&|g| g.random_normal([2]));
    let values = drawn.as_slice::<f32>().unwrap();
    assert!(values[0] != values[1], "{values:?}");
    // m = (1 - 0.9) * gradient
    for (m, noise) in m.iter().zip(values) {
        assert!((m - 0.1 * (2.0 + noise)).abs() < 1e-6, "{m} of {noise}");
    }
    assert_eq!(step(&|g| g.constant(drawn.clone())), (drawn.clone(), w, m));
}

/// Eight rows in four batches of two: their gradients are added up in a variable, and every fourth
/// run applies the mean. All numbers have few bits, so that no sum is rounded.
#[test]
fn gradients_of_micro_batches_add_up_to_one_large_batch() {
    let x: Vec<f32> = vec![1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 1.0, 4.0];
    let y: Vec<f32> = vec![2.0, 1.0, 0.0, -1.0, 2.0, 2.0, 1.0, 0.5];
    let line = |g: &Graph| {
        let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
        let y = g.placeholder("y", DType::F32, [Dim::BATCH]);
        let w = g.variable("w", [], Initializer::Constant(0.5));
        let b = g.variable("b", [], Initializer::Zeros);
        let loss = (&x * &w + &b - &y).square().mean();
        (x, y, loss)
    };
    let momentum = || Optimizer::new(Sgd::default().momentum(0.5), 0.25);
    let rows = |from: &[f32], range: std::ops::Range<usize>| Array::from(from[range].to_vec());
    on_both(|session| {
        let g = Graph::new();
        let (x_fed, y_fed, loss) = line(&g);
        let train = momentum().minimize(&loss);
        let mut large = session(&g);
        for _ in 0..2 {
            large.run(&[&train], &[(&x_fed, rows(&x, 0..8)), (&y_fed, rows(&y, 0..8))]).unwrap();
        }

        let g = Graph::new();
        let (x_fed, y_fed, loss) = line(&g);
        let optimizer = momentum();
        let (mut add, mut reset, mut means) = (Vec::new(), Vec::new(), Vec::new());
        for (gradient, variable) in optimizer.compute_gradients(&loss) {
            let gradient = gradient.to_dense(variable.shape()).unwrap();
            let (name, kept) = (format!("{}/sum", variable.name()), Role::Model { trainable: false });
            let sum = g.variable_with(&name, DType::F32, [], Initializer::Zeros, kept);
            add.push(sum.assign_add(&gradient));
            // The run applies the sum with the last gradient, and begins a new sum.
            means.push((Gradient::Dense((&sum + &gradient) / 4.0), variable));
            reset.push(sum.assign(&(&sum * 0.0)));
        }
        let add = g.group(&add.iter().collect::<Vec<_>>());
        let apply = optimizer.apply_gradients(means);
        let apply = g.group(&std::iter::once(&apply).chain(&reset).collect::<Vec<_>>());
        let mut small = session(&g);
        for run in 0..8 {
            let range = run % 4 * 2..run % 4 * 2 + 2;
            let op = if run % 4 == 3 { &apply } else { &add };
            small.run(&[op], &[(&x_fed, rows(&x, range.clone())), (&y_fed, rows(&y, range))]).unwrap();
        }
        for name in ["w", "b", "SGD/w/momentum", "SGD/b/momentum", "SGD/iter"] {
            assert_eq!(small.value(name).unwrap(), large.value(name).unwrap(), "{name}");
        }
        assert_eq!(floats(&small, "w/sum"), [0.0]);
    });
}

#[test]
fn a_variable_without_a_pair_stays() {
    on_both(|session| {
        let g = Graph::new();
        let a = g.variable("a", [], Initializer::Constant(1.0));
        let b = g.variable("b", [], Initializer::Constant(2.0));
        let sgd = sgd(0.5);
        let mut pairs = sgd.compute_gradients(&(&a * &b));
        // The gradient of b is a.
        assert_eq!(pairs.remove(0).1.name(), "a");
        let train = sgd.apply_gradients(pairs);
        let mut session = session(&g);
        session.run(&[&train], &[]).unwrap();
        assert_eq!((floats(&session, "a"), floats(&session, "b")), (vec![1.0], vec![1.5]));
        // None is the same as no pair.
        let train = sgd.apply_gradients([(Gradient::None, a), (Gradient::Dense(b.clone()), b)]);
        session.run(&[&train], &[]).unwrap();
        assert_eq!((floats(&session, "a"), floats(&session, "b")), (vec![1.0], vec![0.75]));
    });
}

#[test]
fn rows_of_ones_own() {
    // Row 2 twice, with 1 and 3, and row 0 once.
    let step = |optimizer: Optimizer, dense: bool| {
        let g = Graph::new();
        let table = g.variable("table", [3, 2], Initializer::Zeros);
        let indices = g.constant([2i32, 0, 2]);
        let values = g.constant(Array::from_vec([3, 2], vec![1f32, 1.0, 5.0, 6.0, 3.0, 3.0]).unwrap());
        let gradient = Gradient::Rows { indices, values };
        let gradient = if dense { Gradient::Dense(gradient.to_dense(table.shape()).unwrap()) } else { gradient };
        let train = optimizer.apply_gradients([(gradient, table)]);
        let mut session = session(&g, Cpu::with_threads(1));
        session.run(&[&train], &[]).unwrap();
        floats(&session, "table")
    };
    assert_eq!(step(sgd(0.5), false), [-2.5, -3.0, 0.0, 0.0, -2.0, -2.0]);
    assert_eq!(step(sgd(0.5), true), step(sgd(0.5), false));
    let adam = || Optimizer::new(Adam::default(), 0.5);
    assert_eq!(step(adam(), true), step(adam(), false));
}

/// Ids that do not exist change nothing: not even the variable that comes first.
#[test]
fn a_row_that_does_not_exist_changes_nothing() {
    on_both(|session| {
        let g = Graph::new();
        let w = g.variable("w", [], Initializer::Ones);
        let table = g.variable("table", [3, 1], Initializer::Ones);
        let indices = g.placeholder("ids", DType::I64, [Dim::BATCH]);
        let values = g.placeholder("rows", DType::F32, [Dim::BATCH, 1.into()]);
        let rows = Gradient::Rows { indices: indices.clone(), values: values.clone() };
        let train =
            Optimizer::new(Adam::default(), 0.5).apply_gradients([(Gradient::Dense(w.clone()), w), (rows, table)]);
        let mut session = session(&g);
        let before = state(&session);
        for id in [3i64, -1] {
            let feeds = [(&indices, Array::from([0i64, id])), (&values, Array::zeros(DType::F32, [2, 1]).unwrap())];
            let error = session.run(&[&train], &feeds).unwrap_err().to_string();
            assert!(error.contains(&id.to_string()) && error.contains("own_gradients.rs:"), "{error}");
            assert_eq!(state(&session), before);
        }
    });
}

/// Two optimizers that count the global step: both see the count from before the run.
#[test]
fn optimizers_of_one_step_share_its_counter() {
    on_both(|session| {
        let trained = |shared: bool| {
            let g = Graph::new();
            let a = g.variable("a", [], Initializer::Constant(1.0));
            let b = g.variable("b", [], Initializer::Constant(1.0));
            let step = g.variable_with("global_step", DType::I64, [], Initializer::Zeros, Role::Step);
            let rate = Schedule::Piecewise { boundaries: vec![0], values: vec![0.5, 0.125] };
            let train = |variable: &Tensor| {
                let optimizer = Optimizer::new(Adam::default(), rate.clone());
                let what =
                    ApplyGradients::new(optimizer.compute_gradients(Minimize::new(&(&a * &b)).variables([variable])));
                optimizer.apply_gradients(if shared { what.global_step(&step) } else { what })
            };
            let both = g.group(&[&train(&a), &train(&b)]);
            let mut session = session(&g);
            for _ in 0..2 {
                session.run(&[&both], &[]).unwrap();
            }
            let steps = session.value("global_step").unwrap().item::<i64>().unwrap();
            (floats(&session, "a"), floats(&session, "b"), steps)
        };
        let (a, b, steps) = trained(true);
        assert_eq!((a.clone(), b.clone(), 0), trained(false));
        // a and b are alike, and Adam's first step is the rate: 0.5, then 0.125.
        assert_eq!((a, steps), (b.clone(), 2));
        assert!((b[0] - 0.375).abs() < 0.01, "{b:?}");
    });
}

#[test]
fn slots_and_iterations_can_be_read() -> Result<()> {
    let g = Graph::new();
    let w = g.variable("w", [], Initializer::Zeros);
    let other = g.variable("other", [], Initializer::Zeros);
    let adam = Optimizer::new(Adam::default(), 0.1);
    let text = |error: Error| error.to_string();
    assert!(text(adam.iterations(&g).unwrap_err()).contains("Adam has no train op in the graph"));
    assert!(text(adam.slot(&w, "m").unwrap_err()).contains("help: call minimize or apply_gradients first"));

    let train = adam.apply_gradients([(Gradient::Dense(&w + 2.0), w.clone())]);
    let (m, v, count) = (adam.slot(&w, "m")?, adam.slot(&w, "v")?, adam.iterations(&g)?);
    assert_eq!((m.name(), v.name(), count.name()), ("Adam/w/m".into(), "Adam/w/v".into(), "Adam/iter".into()));
    assert_eq!(adam.slot_names(), ["m", "v"]);
    let slots = adam.clone().slots(&w)?;
    assert_eq!(
        slots.iter().map(|(name, slot)| (*name, slot.name())).collect::<Vec<_>>(),
        [("m", m.name()), ("v", v.name())]
    );
    let mut session = Session::new(&g)?;
    session.run(&[&train], &[])?;
    let found = session.run(&[&m, &v, &count], &[])?;
    // The gradient was 2: (1 - 0.9) * 2 and (1 - 0.999) * 4. As f32, 1 - 0.999 is 0.00100005.
    assert!((found[0].item::<f32>()? - 0.2).abs() < 1e-6 && (found[1].item::<f32>()? - 0.004).abs() < 1e-6);
    assert_eq!(found[2].item::<i64>()?, 1);

    let unknown = text(adam.slot(&w, "momentum").unwrap_err());
    assert!(unknown.contains("there is no slot of Adam `momentum`"), "{unknown}");
    let untrained = text(adam.slot(&other, "m").unwrap_err());
    assert!(untrained.contains("`other` f32[] has no slot `m`: Adam does not train it"), "{untrained}");
    assert!(text(adam.slot(&(&w + 1.0), "m").unwrap_err()).contains("is not a variable"));
    assert!(sgd(0.1).slots(&w)?.is_empty());
    let stranger = Optimizer::new(Adam::default(), 0.1);
    assert!(text(stranger.slot(&w, "m").unwrap_err()).contains("no train op"), "another optimizer of the same kind");

    // A second train op of the same optimizer has slots of its own.
    let _again = adam.minimize(Minimize::new(&(&w * &other)).variables([&w, &other]));
    let two = text(adam.slot(&w, "m").unwrap_err());
    assert!(two.contains("has 2 slots `m` of Adam"), "{two}");
    assert_eq!(adam.slot(&other, "m")?.name(), "Adam_1/other/m");
    let two = text(adam.iterations(&g).unwrap_err());
    assert!(two.contains("2 counters in the graph: `Adam/iter`, `Adam_1/iter`"), "{two}");
    g.check()
}

#[test]
fn the_global_step_may_be_the_counter() -> Result<()> {
    let g = Graph::new();
    let w = g.variable("w", [], Initializer::Zeros);
    let step = g.variable_with("global_step", DType::I64, [], Initializer::Zeros, Role::Step);
    let optimizer = sgd(0.1);
    let _ = optimizer.minimize(Minimize::new(&w).global_step(&step));
    let _ = optimizer.minimize(Minimize::new(&w.square()).global_step(&step));
    assert_eq!(optimizer.iterations(&g)?.name(), "global_step");
    Ok(())
}

/// An empty list has no graph. The error is not lost, wherever the train op is used.
#[test]
fn no_gradients_are_an_error() -> Result<()> {
    let g = Graph::new();
    let w = g.variable("w", [], Initializer::Zeros);
    let train = sgd(0.1).apply_gradients(ApplyGradients::new([]));
    let check = |error: Error| {
        let text = error.to_string();
        assert!(text.contains("no gradients to apply") && text.contains("own_gradients.rs:"), "{text}");
    };
    check(Session::new(&g)?.run(&[&train], &[]).unwrap_err());
    let _both = g.group(&[&train, &w]);
    check(g.check().unwrap_err());

    let model = |cx: &ModelFnContext<'_>| {
        let w = cx.graph().variable("w", [], Initializer::Zeros);
        let loss = (cx.feature("x") * &w).mean();
        Ok(EstimatorSpec::new(cx).loss(&loss).train_op(&sgd(0.1).apply_gradients(ApplyGradients::new([]))))
    };
    let rows = Dataset::from_arrays([("x", Array::from([1f32, 2.0]))]).batch(2);
    check(Estimator::new(model).build()?.train(rows).unwrap_err());
    Ok(())
}

fn array(array: estimand_fixture::Array) -> Array {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.to_string() == array.dtype).unwrap();
    Array::from_bytes(dtype, &array.dims, &array.to_ne_bytes()).unwrap()
}

fn variable(g: &Graph, case: &Case, name: &str) -> Tensor {
    let value = array(case.array(&format!("weight:{name}")));
    g.variable(name, value.dims(), Initializer::Value(value.clone()))
}

/// Runs train ops in every step, and compares variables and Adam's slots with TensorFlow's.
fn check_against_tensorflow(case: &Case, g: &Graph, runs: &[Tensor], adam: &Optimizer) -> Result<()> {
    let close = |found: &Array, expected: &Array, what: &str| {
        assert_eq!(found.dims(), expected.dims(), "{what} of {case}");
        for (a, b) in found.to_f64_vec().unwrap().iter().zip(expected.to_f64_vec().unwrap()) {
            assert!((a - b).abs() < 2e-6, "{what} of {case}: {a} and {b}");
        }
    };
    for is_fast in [true, false] {
        let mut session = if is_fast { session(g, Cpu::with_threads(2)) } else { session(g, Reference) };
        for _ in 0..case.setting::<u64>("steps") {
            for train in runs {
                session.run(&[train], &[])?;
            }
        }
        for (name, expected) in case.with_prefix("after:") {
            close(&session.value(name)?, &array(expected), name);
        }
        for slot in ["m", "v"] {
            for (name, expected) in case.with_prefix(&format!("{slot}:")) {
                let found = adam.slot(&g.get_variable(name), slot)?;
                close(&session.run(&[&found], &[])?.remove(0), &array(expected), &found.name());
            }
        }
        let count = session.run(&[&adam.iterations(g)?], &[])?.remove(0);
        assert_eq!(count.item::<i64>()?, case.setting::<i64>("steps"));
    }
    Ok(())
}

/// The optimizer of the fixture.
fn adam() -> Optimizer {
    Optimizer::new(Adam::default().beta_1(0.5), 0.05)
}

#[test]
fn a_gan_as_in_tensorflow() -> Result<()> {
    for name in ["alternating", "together"] {
        let case = cases_of("own_gradients", name).remove(0);
        let g = Graph::new();
        let [g1, g2, d1, d2] = ["g1", "g2", "d1", "d2"].map(|name| variable(&g, &case, name));
        let logits = |x: &Tensor| x.matmul(&d1).tanh().matmul(&d2);
        let (real, noise) = (g.constant(array(case.array("real"))), g.constant(array(case.array("noise"))));
        let fake = (noise.matmul(&g1) + &g2).tanh();
        let d_loss = (-logits(&real)).softplus().mean() + logits(&fake).softplus().mean();
        let g_loss = (-logits(&fake)).softplus().mean();
        let (of_d, of_g) = (adam(), Optimizer::new(Adagrad::default().epsilon(0.0), 0.1));
        let d_pairs = of_d.compute_gradients(Minimize::new(&d_loss).variables([&d1, &d2]));
        let g_pairs = of_g.compute_gradients(Minimize::new(&g_loss).variables([&g1, &g2]));
        let (d_train, g_train) = (of_d.apply_gradients(d_pairs), of_g.apply_gradients(g_pairs));
        let runs = match name {
            "together" => vec![g.group(&[&d_train, &g_train])],
            _ => vec![d_train, g_train],
        };
        check_against_tensorflow(&case, &g, &runs, &of_d)?;
    }
    Ok(())
}

#[test]
fn changed_gradients_as_in_tensorflow() -> Result<()> {
    let case = cases_of("own_gradients", "changed").remove(0);
    let g = Graph::new();
    let (w, b) = (variable(&g, &case, "w"), variable(&g, &case, "b"));
    let [x, y, added] = ["x", "y", "added"].map(|name| g.constant(array(case.array(name))));
    let loss = ((x.matmul(&w) + &b).tanh() - y).square().mean();
    let adam = adam();
    let pairs = adam.compute_gradients(Minimize::new(&loss).variables([&w, &b])).into_iter();
    let changed = pairs.map(|(gradient, variable)| {
        let clipped = gradient.map_values(|g| g.clip(-0.05, 0.05));
        (if variable.name() == "w" { clipped.map_values(|g| g + &added) } else { clipped }, variable)
    });
    let train = adam.apply_gradients(changed.collect::<Vec<_>>());
    check_against_tensorflow(&case, &g, &[train], &adam)
}

#[test]
fn gradients_of_rows_as_in_tensorflow() -> Result<()> {
    let case = cases_of("own_gradients", "rows").remove(0);
    let g = Graph::new();
    let table = variable(&g, &case, "table");
    let (ids, y) = (g.constant(array(case.array("ids"))), g.constant(array(case.array("y"))));
    let loss = (table.gather(&ids) - y).square().sum();
    let adam = adam();
    let (gradient, table) = adam.compute_gradients(&loss).remove(0);
    assert_eq!(kind(&gradient), "rows");
    let train = adam.apply_gradients([(gradient.map_values(|g| g * 0.5), table)]);
    check_against_tensorflow(&case, &g, &[train], &adam)
}
