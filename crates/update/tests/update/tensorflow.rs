//! Every rule and schedule against TensorFlow: the fixture explains itself in
//! `oracles/gen/update_rules.py`.

use estimand_fixture::{Case, FromJson, cases, cases_of};
use estimand_update::{
    Adadelta, Adagrad, Adam, Adamax, Ema, Extended, Ftrl, Lion, Nadam, RmsProp, Schedule, Sgd, SparseRule, UpdateRule,
};
use std::collections::{BTreeMap, BTreeSet};

const COLUMNS: usize = 3;

/// The settings of a case. Each that is read is noted, so that none is overlooked.
struct Settings {
    all: Case,
    read: BTreeSet<String>,
}

impl Settings {
    fn of(case: &Case) -> Settings {
        Settings { all: case.object("settings"), read: BTreeSet::new() }
    }

    fn option<T: FromJson>(&mut self, key: &str) -> Option<T> {
        self.read.insert(key.to_string());
        self.all.option(key)
    }

    fn number(&mut self, key: &str, default: f64) -> f64 {
        self.option(key).unwrap_or(default)
    }

    fn flag(&mut self, key: &str) -> bool {
        self.option(key).unwrap_or(false)
    }

    fn assert_all_read(&self) {
        let unread: Vec<&str> = self.all.keys().filter(|key| !self.read.contains(*key)).collect();
        assert!(unread.is_empty(), "{}: {unread:?} were not read", self.all);
    }
}

fn rule(name: &str, s: &mut Settings) -> Box<dyn UpdateRule> {
    match name {
        "SGD" => Box::new(Sgd::default().momentum(s.number("momentum", 0.0)).nesterov(s.flag("nesterov"))),
        "Momentum" => Box::new(Sgd::v1(s.number("momentum", 0.0)).nesterov(s.flag("nesterov"))),
        "Adagrad" => Box::new(
            Adagrad::default()
                .initial_accumulator(s.number("initial_accumulator_value", 0.1))
                .epsilon(s.number("epsilon", 1e-7)),
        ),
        "Adam" => Box::new(adam(s)),
        "AdamW" => Box::new(adam(s).weight_decay(s.number("weight_decay", 0.004))),
        "Ftrl" => Box::new(
            Ftrl::default()
                .learning_rate_power(s.number("learning_rate_power", -0.5))
                .initial_accumulator(s.number("initial_accumulator_value", 0.1))
                .l1(s.number("l1_regularization_strength", 0.0))
                .l2(s.number("l2_regularization_strength", 0.0))
                .l2_shrinkage(s.number("l2_shrinkage_regularization_strength", 0.0))
                .beta(s.number("beta", 0.0)),
        ),
        "RMSprop" => Box::new(rmsprop(RmsProp::default(), s).epsilon(s.number("epsilon", 1e-7))),
        "RMSProp" => Box::new(rmsprop(RmsProp::v1(), s)),
        "Adadelta" => Box::new(Adadelta::default().rho(s.number("rho", 0.95)).epsilon(s.number("epsilon", 1e-7))),
        "Adamax" => Box::new(
            Adamax::default()
                .beta_1(s.number("beta_1", 0.9))
                .beta_2(s.number("beta_2", 0.999))
                .epsilon(s.number("epsilon", 1e-7)),
        ),
        "Nadam" => Box::new(
            Nadam::default()
                .beta_1(s.number("beta_1", 0.9))
                .beta_2(s.number("beta_2", 0.999))
                .epsilon(s.number("epsilon", 1e-7))
                .schedule_decay(s.number("schedule_decay", 0.004)),
        ),
        "Lion" => Box::new(Lion::default().beta_1(s.number("beta_1", 0.9)).beta_2(s.number("beta_2", 0.99))),
        other => panic!("rule {other}"),
    }
}

/// Keras' newer form of a rule, with the options that all its optimizers have.
fn newer(rule: Box<dyn UpdateRule>, s: &mut Settings) -> Box<dyn UpdateRule> {
    let rule = rule.newer().unwrap();
    let ema = s.flag("use_ema").then(|| {
        let ema = Ema::default().momentum(s.number("ema_momentum", 0.99));
        s.option("ema_overwrite_frequency").map_or(ema, |steps| ema.overwrite_frequency(steps))
    });
    let decay: Option<f64> = s.option("weight_decay").filter(|_| rule.name() != "AdamW");
    Box::new(Extended::new(rule, decay, ema))
}

fn adam(s: &mut Settings) -> Adam {
    Adam::default()
        .beta_1(s.number("beta_1", 0.9))
        .beta_2(s.number("beta_2", 0.999))
        .epsilon(s.number("epsilon", 1e-7))
        .amsgrad(s.flag("amsgrad"))
}

fn rmsprop(rule: RmsProp, s: &mut Settings) -> RmsProp {
    rule.rho(s.number("rho", 0.9)).momentum(s.number("momentum", 0.0)).centered(s.flag("centered"))
}

fn schedule(name: &str, s: &mut Settings) -> Schedule {
    if name == "piecewise" {
        return Schedule::Piecewise {
            boundaries: s.option("boundaries").unwrap(),
            values: s.option("values").unwrap(),
        };
    }
    let initial = s.number("initial_learning_rate", 0.0);
    let decay_steps = s.number("decay_steps", 0.0) as u64;
    match name {
        "exponential" => Schedule::Exponential {
            initial,
            decay_steps,
            decay_rate: s.number("decay_rate", 0.0),
            staircase: s.flag("staircase"),
        },
        "inverse_time" => Schedule::InverseTime {
            initial,
            decay_steps,
            decay_rate: s.number("decay_rate", 0.0),
            staircase: s.flag("staircase"),
        },
        "polynomial" => Schedule::Polynomial {
            initial,
            decay_steps,
            end: s.number("end_learning_rate", 0.0),
            power: s.number("power", 1.0),
            cycle: s.flag("cycle"),
        },
        "cosine" => {
            let (steps, target) = (s.number("warmup_steps", 0.0) as u64, s.number("warmup_target", initial));
            let then = Schedule::Cosine { initial: target, decay_steps, alpha: s.number("alpha", 0.0) };
            Schedule::WarmUp { steps, from: initial, then: Box::new(then) }
        }
        "cosine_restarts" => Schedule::CosineRestarts {
            initial,
            first_decay_steps: s.number("first_decay_steps", 0.0) as u64,
            t_mul: s.number("t_mul", 2.0),
            m_mul: s.number("m_mul", 1.0),
            alpha: s.number("alpha", 0.0),
        },
        other => panic!("schedule {other}"),
    }
}

/// One gradient of the fixture; `rows` is none for a dense one.
struct Gradient {
    rows: Option<Vec<usize>>,
    values: Vec<f32>,
}

/// A table in training.
struct Table {
    w: Vec<f32>,
    slots: Vec<Vec<f32>>,
    n_steps: u64,
}

impl Table {
    fn step(&mut self, rule: &dyn UpdateRule, rate: f64, gradient: &Gradient) {
        let h = rule.hyper(self.n_steps, rate);
        self.n_steps += 1;
        let Some(rows) = &gradient.rows else {
            let mut slots: Vec<&mut [f32]> = self.slots.iter_mut().map(|slot| &mut slot[..]).collect();
            return rule.update(&h, &mut self.w, &gradient.values, &mut slots);
        };
        let mut sums = BTreeMap::<usize, [f32; COLUMNS]>::new();
        for (row, values) in rows.iter().zip(gradient.values.chunks(COLUMNS)) {
            let sum = sums.entry(*row).or_default();
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        for (row, w) in self.w.chunks_mut(COLUMNS).enumerate() {
            let mut slots: Vec<&mut [f32]> =
                self.slots.iter_mut().map(|slot| &mut slot[row * COLUMNS..][..COLUMNS]).collect();
            match sums.get(&row) {
                Some(g) => rule.update(&h, w, g, &mut slots),
                None if rule.sparse() == SparseRule::DecayWholeTable => rule.decay(&h, w, &mut slots),
                None => {}
            }
        }
    }
}

/// The largest difference, relative to the largest expected value.
fn distance(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let differences = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
    differences.fold(0.0, |worst, x| if x <= worst { worst } else { x })
}

#[test]
fn rules_do_what_tensorflow_does() {
    let (mut w0, mut dense, mut sparse) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut failures, mut n_cases) = (BTreeSet::new(), Vec::new(), 0);
    for case in cases("update_rules") {
        match case.name() {
            "table" => w0 = case.numbers::<f32>("w"),
            "dense" => dense.push(Gradient { rows: None, values: case.numbers("gradient") }),
            "sparse" => sparse.push(Gradient { rows: Some(case.numbers("rows")), values: case.numbers("values") }),
            "rule" => {
                let (name, rule_name) = (case.setting::<String>("name"), case.setting::<String>("rule"));
                let mut settings = Settings::of(&case);
                let rate = settings.number("rate", 0.0);
                let rule = match case.setting("newer") {
                    true => newer(rule(&rule_name, &mut settings), &mut settings),
                    false => rule(&rule_name, &mut settings),
                };
                assert_eq!(rule.is_newer(), case.setting::<bool>("newer"));
                settings.assert_all_read();
                rule.check().unwrap();
                assert_eq!(rule.name(), rule_name);
                names.insert(rule.name());
                let slots = rule.slots().iter().map(|slot| vec![slot.initial; w0.len()]).collect();
                let mut table = Table { w: w0.clone(), slots, n_steps: 0 };
                let gradients = if case.bytes("gradients") == b"dense" { &dense } else { &sparse };
                for after in case.objects("after") {
                    for gradient in &gradients[table.n_steps as usize..after.setting("step")] {
                        table.step(&*rule, rate, gradient);
                    }
                    let distance_of_w = distance(&table.w, &after.numbers("w"));
                    failures.extend(report(&name, table.n_steps, "w", distance_of_w));
                    for (slot, expected) in after.arrays("slots") {
                        let place = rule.slots().iter().position(|known| known.name == slot).unwrap();
                        let distance = distance(&table.slots[place], &expected.numbers());
                        failures.extend(report(&name, table.n_steps, &slot, distance));
                    }
                }
                n_cases += 1;
            }
            _ => {}
        }
    }
    // Rules that need whole variables run as nodes: `crates/nn/tests/nn/adafactor.rs`.
    for make in estimand_update::ALL_RULES.iter().filter(|make| !make().is_whole()) {
        assert!(names.contains(make().name()), "no case for {}", make().name());
    }
    assert_eq!(n_cases, 112);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn report(case: &str, n_steps: u64, what: &str, distance: f32) -> Option<String> {
    // TF: for a sparse gradient, Lion computes `(1 - beta_2 / beta_1) * g + m * beta_2 / beta_1`,
    // whose parts cancel each other.
    let agrees = distance <= if case == "newer_lion_sparse" { 3e-6 } else { 1e-6 };
    (!agrees).then(|| format!("{case} after {n_steps} steps: {what} differs by {distance:e}"))
}

/// The fixture's rates were computed by TensorFlow in float64.
#[test]
fn schedules_give_tensorflows_rates() {
    let mut n_rates = 0;
    for case in cases_of("update_rules", "schedule") {
        let mut settings = Settings::of(&case);
        let schedule = schedule(&case.setting::<String>("name"), &mut settings);
        settings.assert_all_read();
        schedule.check().unwrap();
        for (step, expected) in case.setting::<Vec<(u64, f64)>>("rates") {
            let got = schedule.rate(step);
            assert!((got - expected).abs() <= 1e-9, "{schedule:?} at {step}: {got}, expected {expected}");
            n_rates += 1;
        }
    }
    assert!(n_rates > 200);
}
