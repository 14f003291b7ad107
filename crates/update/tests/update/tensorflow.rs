//! Every rule and schedule against TensorFlow: the fixture explains itself in
//! `oracles/gen/update_rules.py`.

use estimand_update::{Adadelta, Adagrad, Adam, Adamax, Ftrl, Nadam, RmsProp, Schedule, Sgd, SparseRule, UpdateRule};
use std::collections::{BTreeMap, BTreeSet};

const FIXTURE: &str = include_str!("../../../../oracles/fixtures/update_rules.txt");
const COLUMNS: usize = 3;

/// The `key=value` words of a line. Taking a setting removes it, so that none is overlooked.
struct Settings<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Settings<'a> {
    fn parse(words: &[&'a str]) -> Settings<'a> {
        Settings(words.iter().map(|word| word.split_once('=').unwrap()).collect())
    }

    fn number(&mut self, key: &str, default: f64) -> f64 {
        self.0.remove(key).map_or(default, |value| value.parse().unwrap())
    }

    fn flag(&mut self, key: &str) -> bool {
        self.0.remove(key) == Some("true")
    }

    fn list<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self, key: &str) -> Vec<T> {
        self.0.remove(key).unwrap().split(',').map(|value| value.parse().unwrap()).collect()
    }
}

fn rule(name: &str, s: &mut Settings<'_>) -> Box<dyn UpdateRule> {
    match name {
        "SGD" => Box::new(Sgd::default().momentum(s.number("momentum", 0.0)).nesterov(s.flag("nesterov"))),
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
        other => panic!("rule {other}"),
    }
}

fn adam(s: &mut Settings<'_>) -> Adam {
    Adam::default()
        .beta_1(s.number("beta_1", 0.9))
        .beta_2(s.number("beta_2", 0.999))
        .epsilon(s.number("epsilon", 1e-7))
        .amsgrad(s.flag("amsgrad"))
}

fn rmsprop(rule: RmsProp, s: &mut Settings<'_>) -> RmsProp {
    rule.rho(s.number("rho", 0.9)).momentum(s.number("momentum", 0.0)).centered(s.flag("centered"))
}

fn schedule(name: &str, s: &mut Settings<'_>) -> Schedule {
    if name == "piecewise" {
        return Schedule::Piecewise { boundaries: s.list("boundaries"), values: s.list("values") };
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

fn numbers(words: &[&str]) -> Vec<f32> {
    words.iter().map(|word| word.parse().unwrap()).collect()
}

/// The largest difference, relative to the largest expected value.
fn distance(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    let largest = expected.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
    let differences = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
    differences.fold(0.0, |worst, x| if x <= worst { worst } else { x })
}

fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    FIXTURE.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect())
}

#[test]
fn rules_do_what_tensorflow_does() {
    let (mut w0, mut dense, mut sparse) = (Vec::new(), Vec::new(), Vec::new());
    let mut case: Option<(&str, Box<dyn UpdateRule>, f64, Table)> = None;
    let (mut names, mut failures) = (BTreeSet::new(), Vec::new());
    for line in lines() {
        match (line[0], &mut case) {
            ("w0", _) => w0 = numbers(&line[1..]),
            ("dense", _) => dense.push(Gradient { rows: None, values: numbers(&line[1..]) }),
            ("sparse", _) => {
                let rows = line[1].split(',').filter(|row| *row != "-").map(|row| row.parse().unwrap()).collect();
                sparse.push(Gradient { rows: Some(rows), values: numbers(&line[2..]) });
            }
            ("case", _) => {
                let mut settings = Settings::parse(&line[3..]);
                let rate = settings.number("rate", 0.0);
                let rule = rule(line[2], &mut settings);
                assert!(settings.0.is_empty(), "{}: {:?}", line[1], settings.0);
                rule.check().unwrap();
                assert_eq!(rule.name(), line[2]);
                names.insert(rule.name());
                let slots = rule.slots().iter().map(|slot| vec![slot.initial; w0.len()]).collect();
                case = Some((line[1], rule, rate, Table { w: w0.clone(), slots, n_steps: 0 }));
            }
            ("after", Some((name, rule, rate, table))) => {
                let gradients = if name.ends_with("_dense") { &dense } else { &sparse };
                let n_steps: usize = line[1].parse().unwrap();
                for gradient in &gradients[table.n_steps as usize..n_steps] {
                    table.step(&**rule, *rate, gradient);
                }
            }
            ("w", Some((name, _, _, table))) => {
                let distance = distance(&table.w, &numbers(&line[1..]));
                failures.extend(report(name, table.n_steps, "w", distance));
            }
            ("slot", Some((name, rule, _, table))) => {
                let place = rule.slots().iter().position(|slot| slot.name == line[1]).unwrap();
                let distance = distance(&table.slots[place], &numbers(&line[2..]));
                failures.extend(report(name, table.n_steps, line[1], distance));
            }
            _ => {}
        }
    }
    for make in estimand_update::ALL_RULES {
        assert!(names.contains(make().name()), "no case for {}", make().name());
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn report(case: &str, n_steps: u64, what: &str, distance: f32) -> Option<String> {
    let agrees = distance <= 1e-6;
    (!agrees).then(|| format!("{case} after {n_steps} steps: {what} differs by {distance:e}"))
}

/// The fixture's rates were computed by TensorFlow in float64.
#[test]
fn schedules_give_tensorflows_rates() {
    let mut current = None;
    let mut n_rates = 0;
    for line in lines() {
        match (line[0], &current) {
            ("schedule", _) => {
                let mut settings = Settings::parse(&line[2..]);
                let schedule = schedule(line[1], &mut settings);
                assert!(settings.0.is_empty(), "{}: {:?}", line[1], settings.0);
                schedule.check().unwrap();
                current = Some(schedule);
            }
            ("rate", Some(schedule)) => {
                let (step, expected): (u64, f64) = (line[1].parse().unwrap(), line[2].parse().unwrap());
                let got = schedule.rate(step);
                assert!((got - expected).abs() <= 1e-9, "{schedule:?} at {step}: {got}, expected {expected}");
                n_rates += 1;
            }
            _ => {}
        }
    }
    assert!(n_rates > 200);
}
