//! Updates as nodes against the kernels of the rules.
//!
//! Each case trains two tables with the same gradients. An optimizer trains the first with the
//! rule's kernels; nodes train the second. After every step, weights and slots must agree.

use std::collections::BTreeSet;
use std::sync::Arc;

use estimand_engine::Session;
use estimand_graph::{Graph, Initializer, Minimize, Optimizer, Role, Tensor, gradients, symbolic_projection};
use estimand_tensor::{Array, DType, Dim, Result, Shape};
use estimand_update::{
    ALL_CONSTRAINTS, ALL_RULES, Adadelta, Adagrad, Adam, Adamax, Constraint, Ema, Extended, Ftrl, Hyper, Lion, MaxNorm,
    MinMaxNorm, N_SCALARS, Nadam, RmsProp, Schedule, Sgd, Slot, SparseRule, UnitNorm, UpdateRule,
};

const ROWS: usize = 6;
const COLUMNS: usize = 3;
const STEPS: usize = 20;

/// A rule that an optimizer can be made of again and again.
struct Rule {
    rule: Box<dyn UpdateRule>,
    optimizer: Box<dyn Fn(Schedule) -> Optimizer>,
}

fn rule(rule: impl UpdateRule + Copy + 'static) -> Rule {
    Rule { rule: Box::new(rule), optimizer: Box::new(move |rate| Optimizer::new(rule, rate)) }
}

/// Each rule, and each setting that selects another formula.
fn rules() -> Vec<Rule> {
    vec![
        rule(Sgd::default()),
        rule(Sgd::default().momentum(0.9)),
        rule(Sgd::default().momentum(0.9).nesterov(true)),
        rule(Sgd::v1(0.9)),
        rule(Sgd::v1(0.9).nesterov(true)),
        rule(Adagrad::default()),
        rule(Adam::default()),
        rule(Adam::default().amsgrad(true)),
        rule(Adam::default().weight_decay(0.004)),
        rule(Adam::default().amsgrad(true).weight_decay(0.3)),
        rule(Ftrl::default()),
        rule(Ftrl::default().l1(0.3).l2(0.1).l2_shrinkage(0.1).beta(0.5)),
        rule(Ftrl::default().learning_rate_power(-0.7)),
        rule(Ftrl::default().learning_rate_power(0.0)),
        rule(RmsProp::default()),
        rule(RmsProp::default().centered(true)),
        rule(RmsProp::default().momentum(0.9)),
        rule(RmsProp::default().momentum(0.9).centered(true)),
        rule(RmsProp::v1()),
        rule(RmsProp::v1().momentum(0.9).centered(true)),
        rule(Adadelta::default()),
        rule(Adamax::default()),
        rule(Nadam::default()),
        rule(Lion::default()),
        rule(Sgd::default().momentum(0.9).nesterov(true).newer()),
        rule(Adagrad::default().newer()),
        rule(Ftrl::default().l1(0.3).newer()),
        rule(RmsProp::default().newer()),
        rule(RmsProp::default().momentum(0.9).centered(true).newer()),
        rule(Adadelta::default().newer()),
        rule(Adamax::default().newer()),
        rule(Nadam::default().newer()),
        extended(Sgd::default(), Some(0.1), None),
        extended(Nadam::default().newer(), Some(0.1), Some(Ema::default().momentum(0.8).overwrite_frequency(3))),
    ]
}

/// A rule with weight decay and with an average.
fn extended(rule: impl UpdateRule + Copy + 'static, decay: Option<f64>, ema: Option<Ema>) -> Rule {
    let optimizer = move |rate| {
        let optimizer = Optimizer::new(rule, rate);
        let optimizer = decay.map_or(optimizer.clone(), |decay| optimizer.weight_decay(decay));
        ema.map_or(optimizer.clone(), |ema| optimizer.ema(ema))
    };
    Rule { rule: Box::new(Extended::new(Arc::new(rule), decay, ema)), optimizer: Box::new(optimizer) }
}

/// Every variant of `Schedule`, and each setting that selects another formula.
fn schedules() -> Vec<Schedule> {
    let exponential = |staircase| Schedule::Exponential { initial: 0.1, decay_steps: 6, decay_rate: 0.7, staircase };
    let inverse = |staircase| Schedule::InverseTime { initial: 0.1, decay_steps: 6, decay_rate: 0.7, staircase };
    let polynomial = |power, cycle| Schedule::Polynomial { initial: 0.1, decay_steps: 7, end: 0.01, power, cycle };
    let restarts =
        |t_mul| Schedule::CosineRestarts { initial: 0.1, first_decay_steps: 4, t_mul, m_mul: 0.8, alpha: 0.1 };
    let cosine = Schedule::Cosine { initial: 0.1, decay_steps: 12, alpha: 0.2 };
    vec![
        Schedule::Constant(0.05),
        exponential(false),
        exponential(true),
        inverse(false),
        inverse(true),
        polynomial(1.0, false),
        polynomial(0.5, true),
        cosine.clone(),
        restarts(1.0),
        restarts(1.5),
        restarts(3.0),
        Schedule::Piecewise { boundaries: vec![3, 11], values: vec![0.1, 0.05, 0.02] },
        Schedule::from(0.05).warm_up(0),
        Schedule::WarmUp { steps: 5, from: 0.02, then: Box::new(cosine.warm_up(4)) },
    ]
}

/// Numbers between -1 and 1 of different magnitudes: the fractional parts of multiples of an
/// irrational number, cubed.
fn numbers(n: usize, seed: usize) -> Vec<f32> {
    let irrational = std::f64::consts::SQRT_2 + seed as f64 / 7.0;
    (1..=n).map(|i| (2.0 * (i as f64 * irrational).fract() - 1.0).powi(3) as f32).collect()
}

/// The largest difference, relative to the largest expected number.
fn distance(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let differences = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
    differences.fold(0.0, |worst, x| if x <= worst { worst } else { x })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Gradients {
    Dense,
    Rows,
}

impl Gradients {
    fn placeholders(self, g: &Graph) -> Vec<Tensor> {
        match self {
            Gradients::Dense => vec![g.placeholder("gradient", DType::F32, [ROWS, COLUMNS])],
            Gradients::Rows => vec![
                g.placeholder("ids", DType::I64, [Dim::BATCH]),
                g.placeholder("rows", DType::F32, [Dim::BATCH, COLUMNS.into()]),
            ],
        }
    }

    /// A loss whose gradient is the fed one.
    fn loss(self, table: &Tensor, fed: &[Tensor]) -> Tensor {
        match self {
            Gradients::Dense => (table * &fed[0]).sum(),
            Gradients::Rows => (table.gather(&fed[0]) * &fed[1]).sum(),
        }
    }

    /// The feeds of a step. One dense gradient is zero. Ids of rows repeat; one step has no ids;
    /// the last row has a gradient only at the first and the last step.
    fn fed(self, step: usize) -> Result<Vec<Array>> {
        if self == Gradients::Dense {
            let mut values = numbers(ROWS * COLUMNS, step + 1);
            if step == 4 {
                values.fill(0.0);
            }
            return Ok(vec![Array::from_vec([ROWS, COLUMNS], values)?]);
        }
        let mut ids: Vec<i64> = [step, step * 3 + 1, step, step / 2].iter().map(|i| (i % (ROWS - 1)) as i64).collect();
        match step {
            0 | 19 => ids[1] = ROWS as i64 - 1,
            6 => ids.clear(),
            _ => {}
        }
        let n = ids.len();
        Ok(vec![Array::from_vec([n], ids)?, Array::from_vec([n, COLUMNS], numbers(n * COLUMNS, step + 1))?])
    }
}

/// Trains both tables with one optimizer.
fn train(
    optimizer: &Optimizer,
    rule: &dyn UpdateRule,
    gradient: Gradients,
    constraint: Option<Arc<dyn Constraint>>,
) -> Result<f32> {
    train_both([optimizer, optimizer], rule, gradient, constraint)
}

/// Trains the first table with the kernels of one optimizer, the second with the nodes of another.
/// Returns the largest distance of weights and slots after any step.
fn train_both(
    [optimizer, symbolic]: [&Optimizer; 2],
    rule: &dyn UpdateRule,
    gradient: Gradients,
    constraint: Option<Arc<dyn Constraint>>,
) -> Result<f32> {
    let g = Graph::new();
    let fixed = Role::Model { trainable: false };
    let fed = gradient.placeholders(&g);
    let step = g.variable_with("step", DType::I64, [], Initializer::Zeros, Role::Step);
    let kernels = g.variable("kernels", [ROWS, COLUMNS], Initializer::Zeros);
    if let Some(constraint) = &constraint {
        g.constrain(&kernels, constraint.clone());
    }
    let loss = gradient.loss(&kernels, &fed);
    let mut train = vec![optimizer.minimize(Minimize::new(&loss).variables([&kernels]).global_step(&step))];

    let variable = |slot: &Slot, dims: &[usize]| {
        g.variable_with(
            &format!("nodes/{}", slot.name),
            DType::F32,
            dims,
            Initializer::Constant(slot.initial.into()),
            fixed,
        )
    };
    let nodes = variable(&Slot { name: "weights", initial: 0.0 }, &[ROWS, COLUMNS]);
    let slots: Vec<Tensor> = rule.slots().iter().map(|slot| variable(slot, &[ROWS, COLUMNS])).collect();
    let update = symbolic.symbolic()?;
    let carried = update.carried().map(|slot| variable(&slot, &[]));
    let scalars = update.scalars(&step, carried.as_ref())?;
    let found = gradients(&gradient.loss(&nodes, &fed), &[&nodes]);
    let mut new = update.update(&scalars.scalars, &nodes, &found[0], &slots)?;
    if let Some(constraint) = &constraint {
        new.weights = symbolic_projection(&**constraint, &new.weights)?;
    }
    train.push(nodes.assign(&new.weights));
    train.extend(slots.iter().zip(&new.slots).map(|(slot, new)| slot.assign(new)));
    train.extend(carried.iter().zip(&scalars.carried).map(|(carried, new)| carried.assign(new)));
    let train = g.group(&train.iter().collect::<Vec<_>>());

    let mut session = Session::new(&g)?;
    let start = Array::from_vec([ROWS, COLUMNS], numbers(ROWS * COLUMNS, 0))?;
    session.set_value("kernels", &start)?;
    session.set_value("nodes/weights", &start)?;
    let mut worst = 0.0;
    for step in 0..STEPS {
        let feeds: Vec<(&Tensor, Array)> = fed.iter().zip(gradient.fed(step)?).collect();
        session.run(&[&train], &feeds)?;
        let slot = |slot: &Slot| (format!("nodes/{}", slot.name), format!("{}/kernels/{}", rule.name(), slot.name));
        let pairs =
            rule.slots().iter().map(slot).chain([("nodes/weights".into(), "kernels".into())]).collect::<Vec<_>>();
        for (nodes, kernels) in pairs {
            let (nodes, kernels) = (session.value(&nodes)?, session.value(&kernels)?);
            let found = distance(nodes.as_slice()?, kernels.as_slice()?);
            worst = if found <= worst { worst } else { found };
        }
        if let Some(carried) = update.carried() {
            let (_, expected) = *rule.scalars(step as u64 + 1).iter().find(|(name, _)| *name == carried.name).unwrap();
            let got = session.value(&format!("nodes/{}", carried.name))?.item::<f32>()?;
            assert!((f64::from(got) / expected - 1.0).abs() < 1e-5, "{}: {got}, expected {expected}", carried.name);
        }
    }
    assert_ne!(session.value("kernels")?, start, "{optimizer:?} trains");
    Ok(worst)
}

#[track_caller]
fn assert_near(distance: f32, what: &str) {
    assert!(distance <= 1e-6, "{what}: nodes and kernels differ by {distance:e}");
}

#[test]
fn every_rule_has_a_case() {
    let cases: BTreeSet<_> = rules().iter().map(|rule| rule.rule.name()).collect();
    // A rule that needs whole variables has no kernels to compare with.
    for make in ALL_RULES.iter().filter(|make| !make().is_whole()) {
        assert!(cases.contains(make().name()), "no case for {}", make().name());
    }
}

#[test]
fn dense_updates_are_those_of_the_kernels() -> Result<()> {
    for Rule { rule, optimizer } in rules() {
        let found = train(&optimizer(0.05.into()), &*rule, Gradients::Dense, None)?;
        assert_near(found, &format!("{rule:?}"));
    }
    Ok(())
}

#[test]
fn updates_of_rows_are_those_of_the_kernels() -> Result<()> {
    for Rule { rule, optimizer } in rules() {
        let optimizer = optimizer(0.05.into());
        let found = train(&optimizer, &*rule, Gradients::Rows, None)?;
        assert_near(found, &format!("{rule:?}"));
        let found = train(&optimizer.lazy(), &*rule, Gradients::Rows, None)?;
        assert_near(found, &format!("lazy {rule:?}"));
    }
    Ok(())
}

#[test]
fn schedules_are_read_as_nodes() -> Result<()> {
    // Plain descent shows the rate itself. Ftrl divides by it, and rests where it is zero.
    for Rule { rule, optimizer } in [rule(Sgd::default()), rule(Adam::default()), rule(Ftrl::default().beta(0.5))] {
        for schedule in schedules() {
            let found = train(&optimizer(schedule.clone()), &*rule, Gradients::Dense, None)?;
            assert_near(found, &format!("{rule:?} with {schedule:?}"));
        }
    }
    Ok(())
}

/// The comparison fails if the rate differs, or if rows do not decay.
#[test]
fn other_updates_are_seen() -> Result<()> {
    for Rule { rule, optimizer } in rules() {
        let both = [&optimizer(0.05.into()), &optimizer(0.06.into())];
        for gradient in [Gradients::Dense, Gradients::Rows] {
            let found = train_both(both, &*rule, gradient, None)?;
            assert!(found > 1e-6, "{rule:?}: {found:e} with another rate");
        }
        let both = [&optimizer(0.05.into()), &optimizer(0.05.into()).lazy()];
        let found = train_both(both, &*rule, Gradients::Rows, None)?;
        assert_eq!(found > 1e-5, rule.sparse() == SparseRule::DecayWholeTable, "{rule:?}: {found:e} without decay");
    }
    Ok(())
}

/// Scalars of steps that no short training reaches.
#[test]
fn scalars_are_those_of_the_rules() -> Result<()> {
    let steps = [0u64, 1, 3, 4, 5, 11, 12, 13, 19, 52, 53, 160, 1_000, 1_000_000];
    for Rule { rule, optimizer } in rules() {
        for schedule in schedules() {
            let g = Graph::new();
            let step = g.placeholder("step", DType::I64, Shape::scalar());
            let carried = g.placeholder("carried", DType::F64, Shape::scalar());
            let optimizer = optimizer(schedule.clone());
            let update = optimizer.symbolic()?;
            let scalars = update.scalars(&step, update.carried().map(|_| &carried))?.scalars;
            let scalars = Tensor::stack(&scalars.iter().collect::<Vec<_>>(), 0);
            let mut session = Session::new(&g)?;
            for at in steps {
                let product =
                    rule.scalars(at).iter().find(|(name, _)| *name == "momentum_cache").map(|(_, value)| *value);
                let mut feeds = vec![(&step, Array::scalar(at as i64))];
                feeds.extend(product.map(|product| (&carried, Array::scalar(product))));
                let got = session.run(&[&scalars], &feeds)?;
                let Hyper(expected) = rule.hyper(at, schedule.rate(at));
                for (got, expected) in got[0].as_slice::<f32>()?.iter().zip(expected) {
                    // At a rate of zero, Ftrl has scalars that are not numbers.
                    let agrees = (got - expected).abs() <= 1e-6 * expected.abs()
                        || *got == expected
                        || got.is_nan() && expected.is_nan();
                    assert!(agrees, "{rule:?} with {schedule:?} at {at}: {got}, expected {expected}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn constraints_are_read_as_nodes() -> Result<()> {
    let others: [Box<dyn Constraint>; 4] = [
        Box::new(MaxNorm::new(0.5).axes([-1])),
        Box::new(UnitNorm::new().axes([0, 1])),
        Box::new(MinMaxNorm::new(0.5, 0.7).rate(0.3)),
        Box::new(MinMaxNorm::new(0.5, 0.7).axes([1])),
    ];
    for constraint in ALL_CONSTRAINTS.iter().map(|make| make()).chain(others) {
        let constraint: Arc<dyn Constraint> = constraint.into();
        for Rule { rule, optimizer } in [rule(Sgd::default()), rule(Adam::default())] {
            for gradient in [Gradients::Dense, Gradients::Rows] {
                let found = train(&optimizer(0.3.into()), &*rule, gradient, Some(constraint.clone()))?;
                assert_near(found, &format!("{constraint:?} after {rule:?}, {gradient:?}"));
            }
        }
    }
    Ok(())
}

/// Trains a table and its limited twin, which share an optimizer and a group of another one, with
/// the rules' kernels or with plain nodes. Returns all variables.
fn trained(optimizer: &Optimizer, gradient: Gradients, is_plain: bool) -> Result<Vec<(String, Array)>> {
    let g = Graph::new();
    let fed = gradient.placeholders(&g);
    let step = g.variable_with("step", DType::I64, [], Initializer::Zeros, Role::Step);
    let free = g.variable("free", [ROWS, COLUMNS], Initializer::Constant(0.25));
    let limited = g.variable("limited", [ROWS, COLUMNS], Initializer::Constant(0.5));
    let other = g.variable("other", [], Initializer::Ones);
    g.constrain(&limited, Arc::new(MaxNorm::new(0.9)));
    let loss = gradient.loss(&free, &fed) + gradient.loss(&limited, &fed);
    let both = optimizer.minimize(Minimize::new(&loss).variables([&free, &limited]).global_step(&step));
    let sgd = Optimizer::new(Sgd::default(), 0.125).minimize(Minimize::new(&other.square()).variables([&other]));
    let mut train = g.group(&[&g.group(&[&both, &sgd]), &both]);
    if is_plain {
        train = g.plain_train_op(&train)?;
    }
    let mut session = Session::new(&g)?;
    for step in 0..STEPS {
        let feeds: Vec<(&Tensor, Array)> = fed.iter().zip(gradient.fed(step)?).collect();
        session.run(&[&train], &feeds)?;
    }
    let names: Vec<String> = g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    names.into_iter().map(|name| Ok((name.clone(), session.value(&name)?))).collect()
}

/// A member that is in the train op twice runs once.
#[test]
fn plain_train_ops_train_as_the_kernels_do() -> Result<()> {
    for Rule { rule, optimizer } in rules() {
        for gradient in [Gradients::Dense, Gradients::Rows] {
            let optimizer = optimizer(Schedule::from(0.05).warm_up(3));
            let (kernels, nodes) = (trained(&optimizer, gradient, false)?, trained(&optimizer, gradient, true)?);
            for (name, expected) in &kernels {
                let (_, found) = nodes.iter().find(|(known, _)| known == name).unwrap();
                let what = format!("{name} of {rule:?}, {gradient:?}");
                match expected.as_slice::<f32>() {
                    Ok(expected) => assert_near(distance(found.as_slice()?, expected), &what),
                    Err(_) => assert_eq!(found, expected, "{what}"),
                }
            }
            // Nadam's product is a variable of its own.
            let more: Vec<&String> = nodes[kernels.len()..].iter().map(|(name, _)| name).collect();
            assert_eq!(
                more,
                optimizer.symbolic()?.carried().map(|_| "Nadam/momentum_cache").into_iter().collect::<Vec<_>>()
            );
        }
    }
    Ok(())
}

/// A rule and a constraint that are written for slices alone.
#[derive(Clone, Copy, Debug)]
struct Foreign;

impl UpdateRule for Foreign {
    fn name(&self) -> &'static str {
        "Halving"
    }
    fn slots(&self) -> Vec<Slot> {
        Vec::new()
    }
    fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
    fn hyper(&self, _step: u64, _learning_rate: f64) -> Hyper {
        Hyper([0.0; N_SCALARS])
    }
    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }
    fn update(&self, _h: &Hyper, w: &mut [f32], _g: &[f32], _slots: &mut [&mut [f32]]) {
        w.iter_mut().for_each(|w| *w /= 2.0);
    }
}

impl Constraint for Foreign {
    fn name(&self) -> &'static str {
        "Whole"
    }
    fn project(&self, _dims: &[usize], weights: &mut [f32]) {
        weights.iter_mut().for_each(|w| *w = w.round());
    }
}

#[test]
fn a_rule_for_slices_alone_trains_and_is_refused_by_name() -> Result<()> {
    let g = Graph::new();
    let w = g.variable("w", [2], Initializer::Constant(5.0));
    g.constrain(&w, Arc::new(Foreign));
    let optimizer = Optimizer::new(Foreign, 0.1);
    let train = optimizer.minimize(&w.sum());
    let mut session = Session::new(&g)?;
    session.run(&[&train], &[])?;
    assert_eq!(session.value("w")?.as_slice::<f32>()?, [3.0; 2]);

    let Err(error) = optimizer.symbolic() else { panic!("a rule for slices has no nodes") };
    assert_eq!(
        error.message(),
        "the optimizer `Halving` cannot become nodes of a graph: it is written for slices alone"
    );
    let error = symbolic_projection(&Foreign, &w).unwrap_err();
    assert_eq!(
        error.message(),
        "the constraint `Whole` cannot become nodes of a graph: it is written for slices alone"
    );
    Ok(())
}

#[test]
fn settings_are_checked() {
    let g = Graph::new();
    let w = g.variable("w", [2], Initializer::Zeros);
    let symbolic = |optimizer: Optimizer| optimizer.symbolic().map(|_| ()).unwrap_err().message().to_string();
    let bad = Optimizer::new(Adam::default().beta_1(1.0), 0.1);
    assert_eq!(symbolic(bad), "Adam: `beta_1` must be at least 0 and less than 1, got 1.0");
    let empty = Schedule::Piecewise { boundaries: vec![], values: vec![] };
    let bad = Optimizer::new(Sgd::default(), empty);
    assert_eq!(symbolic(bad), "SGD: `values` must be one more than `boundaries`, got 0 and 0");
    let error = symbolic_projection(&UnitNorm::new().axes([1]), &w).unwrap_err();
    assert_eq!(error.message(), "UnitNorm: axis 1 of weights [2], which have 1 axes");
}

#[test]
fn missing_values_are_refused() -> Result<()> {
    let g = Graph::new();
    let w = g.variable("w", [2], Initializer::Zeros);
    let step = g.variable_with("step", DType::I64, [], Initializer::Zeros, Role::Step);
    let nadam = Optimizer::new(Nadam::default(), 0.1);
    let error = nadam.symbolic()?.scalars(&step, None).unwrap_err();
    assert_eq!(error.message(), "Nadam carries the scalar `momentum_cache` from step to step, and none was given");
    let adam = Optimizer::new(Adam::default(), 0.1);
    let scalars = adam.symbolic()?.scalars(&step, None)?.scalars;
    let found = gradients(&w.sum(), &[&w]);
    let error = adam.symbolic()?.update(&scalars, &w, &found[0], &[]).unwrap_err();
    assert_eq!(error.message(), "Adam has 2 slots, got 0");
    Ok(())
}
