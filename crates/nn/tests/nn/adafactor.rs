//! Adafactor against tf.keras: the fixture explains itself in `oracles/gen/adafactor.py`. Its step
//! needs whole variables, so it runs as nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_fixture::{Case, cases};
use estimand_graph::{Executor, Gradient, Graph, Initializer, Optimizer, Tensor};
use estimand_nn::config::CustomObjects;
use estimand_nn::optimizer::from_json;
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Dim, Result};
use estimand_update::{Adafactor, Ema, MaxNorm, Schedule};

/// The variables and gradients of the fixture.
#[derive(Default)]
struct Given {
    values: BTreeMap<String, Array>,
    dense: Vec<Case>,
    sparse: Vec<Case>,
}

fn array(found: &estimand_fixture::Array) -> Array {
    match found.dtype.as_str() {
        "i64" => Array::from_vec(found.dims.clone(), found.numbers::<i64>()).unwrap(),
        _ => Array::from_vec(found.dims.clone(), found.numbers::<f32>()).unwrap(),
    }
}

/// A graph that trains the variables of a case by gradients that are fed.
struct Training {
    session: Session,
    train: Tensor,
    fed: Vec<(String, Tensor)>,
}

impl Training {
    fn new(optimizer: &Optimizer, given: &Given, is_sparse: bool, executor: impl Executor + 'static) -> Result<Self> {
        let g = Graph::new();
        let (mut pairs, mut fed) = (Vec::new(), Vec::new());
        for (name, value) in given.values.iter().filter(|(name, _)| !is_sparse || *name == "table") {
            let variable = g.variable(name, value.dims(), Initializer::Zeros);
            let gradient = if is_sparse {
                let indices = g.placeholder("rows", DType::I64, [Dim::BATCH]);
                let values = g.placeholder("values", DType::F32, [Dim::BATCH, value.dims()[1].into()]);
                fed.extend([("rows".to_string(), indices.clone()), ("values".to_string(), values.clone())]);
                Gradient::Rows { indices, values }
            } else {
                let gradient = g.placeholder(&format!("{name}_gradient"), DType::F32, value.dims());
                fed.push((name.clone(), gradient.clone()));
                Gradient::Dense(gradient)
            };
            pairs.push((gradient, variable));
        }
        let train = optimizer.apply_gradients(pairs);
        let mut session = Session::with(&g, executor, 1)?;
        for (name, value) in given.values.iter().filter(|(name, _)| !is_sparse || *name == "table") {
            session.set_value(name, value)?;
        }
        Ok(Training { session, train, fed })
    }

    fn step(&mut self, gradient: &Case) -> Result<()> {
        let feeds: Vec<(&Tensor, Array)> =
            self.fed.iter().map(|(key, tensor)| (tensor, array(&gradient.array(key)))).collect();
        self.session.run(&[&self.train], &feeds).map(|_| ())
    }
}

/// The largest difference, relative to the largest expected number.
fn distance(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let differences = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
    differences.fold(0.0, |worst, x| if x <= worst { worst } else { x })
}

fn name_of(place: &str) -> String {
    if place.contains('/') { format!("Adafactor/{place}") } else { place.to_string() }
}

#[test]
fn adafactor_does_what_keras_does() -> Result<()> {
    let (mut given, mut failures, mut n_values) = (Given::default(), Vec::new(), 0);
    for case in cases("adafactor") {
        match case.name() {
            "variables" => {
                let names: Vec<String> = case.setting("names");
                given.values = names.into_iter().map(|name| (name.clone(), array(&case.array(&name)))).collect();
            }
            "dense" => given.dense.push(case),
            "sparse" => given.sparse.push(case),
            _ => {
                let document = case.setting::<String>("document");
                let optimizer = from_json(&document, &CustomObjects::new())?;
                let is_sparse = case.bytes("gradients") == b"sparse";
                let mut one = Training::new(&optimizer, &given, is_sparse, Cpu::with_threads(1))?;
                let mut three = Training::new(&optimizer, &given, is_sparse, Cpu::with_threads(3))?;
                let mut reference = Training::new(&optimizer, &given, is_sparse, Reference)?;
                let gradients = if is_sparse { &given.sparse } else { &given.dense };
                let mut done = 0;
                for after in case.objects("after") {
                    let until: usize = after.setting("step");
                    for gradient in &gradients[done..until] {
                        [&mut one, &mut three, &mut reference].into_iter().try_for_each(|t| t.step(gradient))?;
                    }
                    done = until;
                    for (place, expected) in after.arrays("values") {
                        let found = one.session.value(&name_of(&place))?;
                        assert_eq!(found, three.session.value(&name_of(&place))?, "{place}: on three threads");
                        assert_eq!(found.dims(), expected.dims, "{place}");
                        let exact = reference.session.value(&name_of(&place))?;
                        for (found, of) in [(found, "CPU"), (exact, "reference")] {
                            let apart = distance(found.as_slice()?, &expected.numbers());
                            n_values += 1;
                            if apart > 3e-6 {
                                failures.push(format!(
                                    "{} at {done}: {place} of {of} is {apart:e} apart",
                                    case.setting::<String>("name")
                                ));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(n_values > 1000, "{n_values}");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    Ok(())
}

/// A table and a bias that learn, with everything that may surround a step.
fn model(executor: impl Executor + 'static, is_plain: bool) -> Result<(Session, Tensor)> {
    let g = Graph::new();
    let x = g.constant(Array::from_vec([4, 300], (0..1200).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<f32>>())?);
    let table = g.variable("table", [300, 200], Initializer::GlorotUniform);
    let bias = g.variable("bias", [200], Initializer::Zeros);
    g.constrain(&table, Arc::new(MaxNorm::new(0.9)));
    let loss = (x.matmul(&table) + &bias - 1.0).square().mean();
    let rate = Schedule::from(0.5).warm_up(4);
    let ema = Ema::default().momentum(0.5).overwrite_frequency(3);
    let optimizer = Optimizer::keras(Adafactor::default(), rate).weight_decay(0.01).ema(ema);
    let train = optimizer.minimize(&loss);
    assert_eq!(optimizer.slots(&bias)?.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["v", "average"]);
    let shapes: Vec<String> = optimizer.slots(&table)?.iter().map(|(_, slot)| slot.shape().to_string()).collect();
    assert_eq!(shapes, ["[300]", "[200]", "[300, 200]", "[300, 200]"]);
    let error = optimizer.slot(&bias, "r").unwrap_err();
    assert!(error.message().ends_with("has no slot `r`: Adafactor does not train it with one"), "{error}");
    let train = if is_plain { g.plain_train_op(&train)? } else { train };
    Ok((Session::with(&g, executor, 7)?, train))
}

fn values(session: &Session) -> Result<Vec<(String, Array)>> {
    let names: Vec<String> = session.graph().body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    names.into_iter().map(|name| Ok((name.clone(), session.value(&name)?))).collect()
}

fn run(session: &mut Session, train: &Tensor, n: usize) -> Result<()> {
    (0..n).try_for_each(|_| session.run(&[train], &[]).map(|_| ()))
}

#[test]
fn any_number_of_threads_gives_the_same_bits() -> Result<()> {
    let trained = |n| -> Result<Vec<(String, Array)>> {
        let (mut session, train) = model(Cpu::with_threads(n), false)?;
        run(&mut session, &train, 7)?;
        values(&session)
    };
    let one = trained(1)?;
    assert_eq!(one, trained(2)?);
    assert_eq!(one, trained(5)?);
    let (mut session, train) = model(Cpu::with_threads(2), true)?;
    run(&mut session, &train, 7)?;
    assert_eq!(one, values(&session)?, "the train op of an export");
    Ok(())
}

#[test]
fn a_training_that_is_resumed_has_the_same_bits() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand_adafactor_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut whole, train) = model(Cpu::with_threads(2), false)?;
    run(&mut whole, &train, 4)?;
    whole.save(folder.join("model"))?;
    run(&mut whole, &train, 5)?;
    let (mut resumed, train) = model(Cpu::with_threads(2), false)?;
    resumed.restore(folder.join("model"))?;
    run(&mut resumed, &train, 5)?;
    assert_eq!(values(&whole)?, values(&resumed)?);
    std::fs::remove_dir_all(&folder).unwrap();
    Ok(())
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |optimizer: Optimizer| optimizer.check().unwrap_err().message().to_string();
    let lazy = Optimizer::new(Adafactor::default(), 0.1).lazy();
    assert_eq!(refused(lazy), "Adafactor: its step needs whole variables, so it cannot be lazy");
    let rising = Optimizer::new(Adafactor::default().beta_2_decay(0.5), 0.1);
    assert_eq!(refused(rising), "Adafactor: `beta_2_decay` must be zero or negative, got 0.5");
    let none = Optimizer::new(Adafactor::default().clip_threshold(0.0), 0.1);
    assert_eq!(refused(none), "Adafactor: `clip_threshold` must be positive, got 0.0");
}
