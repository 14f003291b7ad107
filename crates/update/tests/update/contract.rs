//! What holds for every rule, whatever its formula.

use estimand_update::{ALL_RULES, Adadelta, Adagrad, Adam, Adamax, Ftrl, Nadam, RmsProp, Sgd, SparseRule, UpdateRule};

/// One weight and its slots.
struct Weight {
    w: [f32; 1],
    slots: Vec<[f32; 1]>,
}

impl Weight {
    fn new(rule: &dyn UpdateRule, w: f32) -> Weight {
        Weight { w: [w], slots: rule.slots().iter().map(|slot| [slot.initial]).collect() }
    }

    /// A gradient of none is a decay.
    fn step(&mut self, rule: &dyn UpdateRule, step: u64, rate: f64, gradient: Option<f32>) {
        let h = rule.hyper(step, rate);
        assert!(h.0.iter().all(|scalar| scalar.is_finite()), "{rule:?} at {step}: {h:?}");
        let mut slots: Vec<&mut [f32]> = self.slots.iter_mut().map(|slot| &mut slot[..]).collect();
        match gradient {
            Some(g) => rule.update(&h, &mut self.w, &[g], &mut slots),
            None => rule.decay(&h, &mut self.w, &mut slots),
        }
    }

    fn bits(&self) -> Vec<u32> {
        std::iter::once(&self.w).chain(&self.slots).map(|[x]| x.to_bits()).collect()
    }
}

/// The rules that run over slices.
fn defaults() -> impl Iterator<Item = Box<dyn UpdateRule>> {
    ALL_RULES.iter().map(|make| make()).filter(|rule| !rule.is_whole())
}

/// (w - 3)^2 / 2 has the gradient w - 3 and its minimum at 3.
#[test]
fn every_rule_descends() {
    for rule in defaults() {
        let mut weight = Weight::new(&*rule, 0.0);
        let rate = if rule.name() == "Adadelta" { 100.0 } else { 0.1 };
        for step in 0..500 {
            let g = weight.w[0] - 3.0;
            weight.step(&*rule, step, rate, Some(g));
        }
        let rest = (weight.w[0] - 3.0).abs();
        assert!(rest < 1.0, "{rule:?} is {rest} away after 500 steps");
    }
}

#[test]
fn defaults_are_valid_and_names_are_distinct() {
    let all = || ALL_RULES.iter().map(|make| make());
    let names: std::collections::BTreeSet<_> = all().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), ALL_RULES.len());
    for rule in all() {
        rule.check().unwrap();
    }
}

/// What a lazy caller sees: a row that meets its first gradient after a million steps of others.
#[test]
fn a_late_first_gradient_moves_the_weight_against_it() {
    for rule in defaults() {
        let mut weight = Weight::new(&*rule, 0.0);
        weight.step(&*rule, 1_000_000, 0.1, Some(0.5));
        assert!(weight.w[0] < 0.0 && weight.w[0] > -1.0, "{rule:?}: {:?}", weight.w);
    }
}

#[test]
fn touched_rows_rules_do_not_decay() {
    for rule in defaults().filter(|rule| rule.sparse() == SparseRule::TouchedRows) {
        let mut weight = Weight::new(&*rule, 1.0);
        weight.step(&*rule, 0, 0.1, Some(0.5));
        let before = weight.bits();
        weight.step(&*rule, 1, 0.1, None);
        assert_eq!(before, weight.bits(), "{rule:?}");
    }
}

/// TF: Nadam and RMSprop decay their slots in all rows but move only the weights that have a
/// gradient.
#[test]
fn nadam_and_rmsprop_decay_slots_alone() {
    let centered = RmsProp::default().centered(true);
    for (rule, factors) in [(&Nadam::default() as &dyn UpdateRule, [0.9, 0.999]), (&centered, [0.9, 0.9])] {
        let mut weight = Weight::new(rule, 1.0);
        weight.step(rule, 0, 0.1, Some(0.5));
        let (w, slots) = (weight.w, weight.slots.clone());
        weight.step(rule, 1, 0.1, None);
        assert_eq!(weight.w, w);
        for ((after, before), factor) in weight.slots.iter().zip(slots).zip(factors) {
            assert_eq!(after[0], before[0] * factor, "{rule:?}");
        }
    }
}

#[test]
fn adam_decays_as_if_the_gradient_were_zero() {
    for rule in [Adam::default(), Adam::default().amsgrad(true), Adam::default().weight_decay(0.01)] {
        let (mut sparse, mut dense) = (Weight::new(&rule, 1.0), Weight::new(&rule, 1.0));
        for step in 0..10 {
            let g = (step % 3 == 0).then_some(0.5);
            sparse.step(&rule, step, 0.1, g);
            dense.step(&rule, step, 0.1, g.or(Some(0.0)));
        }
        assert_eq!(sparse.bits(), dense.bits(), "{rule:?}");
    }
}

/// Schedules that warm up begin at zero, where Ftrl's formula has no value.
#[test]
fn ftrl_rests_at_a_rate_of_zero() {
    let rule = Ftrl::default().l2(0.1).beta(0.5);
    let mut w = [1.0];
    let (mut accumulator, mut linear) = ([0.1], [0.0]);
    rule.update(&rule.hyper(0, 0.0), &mut w, &[0.5], &mut [&mut accumulator, &mut linear]);
    assert_eq!((w, accumulator, linear), ([1.0], [0.1], [0.0]));
}

#[test]
fn bad_settings_are_refused_in_words() {
    let cases: [(&dyn UpdateRule, &str); 12] = [
        (&Sgd::default().momentum(1.5), "`momentum` must be between 0 and 1, got 1.5"),
        (&Sgd::default().momentum(f64::NAN), "`momentum` must be between 0 and 1, got NaN"),
        (&Adagrad::default().initial_accumulator(-1.0), "`initial_accumulator` must be zero or positive, got -1.0"),
        (
            &Adagrad::default().initial_accumulator(0.0).epsilon(0.0),
            "`initial_accumulator + epsilon` must be positive, got 0.0",
        ),
        (&Adam::default().beta_1(1.0), "`beta_1` must be at least 0 and less than 1, got 1.0"),
        (&Adam::default().epsilon(1e-50), "`epsilon` must be positive, got 1e-50"),
        (&Adam::default().weight_decay(-0.1), "`weight_decay` must be zero or positive, got -0.1"),
        (&Ftrl::default().learning_rate_power(0.5), "`learning_rate_power` must be zero or negative, got 0.5"),
        (&RmsProp::default().rho(-0.1), "`rho` must be at least 0 and less than 1, got -0.1"),
        (&Adadelta::default().epsilon(0.0), "`epsilon` must be positive, got 0.0"),
        (&Adamax::default().beta_2(2.0), "`beta_2` must be at least 0 and less than 1, got 2.0"),
        (&Nadam::default().schedule_decay(-1.0), "`schedule_decay` must be zero or positive, got -1.0"),
    ];
    for (rule, message) in cases {
        assert_eq!(rule.check(), Err(message.to_string()));
    }
}

/// As listed by `tf.train.list_variables` of TensorFlow 2.15 after one step of each optimizer of
/// `tf.keras.optimizers.legacy`.
#[test]
fn scalars_have_tensorflow_s_names_and_values() {
    let expected: [(&str, &[(&str, f64)]); 8] = [
        ("SGD", &[("decay", 0.0), ("momentum", 0.0)]),
        ("Adagrad", &[("decay", 0.0)]),
        ("Adam", &[("beta_1", 0.9), ("beta_2", 0.999), ("decay", 0.0)]),
        (
            "Ftrl",
            &[
                ("beta", 0.0),
                ("decay", 0.0),
                ("l1_regularization_strength", 0.0),
                ("l2_regularization_strength", 0.0),
                ("learning_rate_power", -0.5),
            ],
        ),
        ("RMSprop", &[("decay", 0.0), ("momentum", 0.0), ("rho", 0.9)]),
        ("Adadelta", &[("decay", 0.0), ("rho", 0.95)]),
        ("Adamax", &[("beta_1", 0.9), ("beta_2", 0.999), ("decay", 0.0)]),
        ("Nadam", &[("beta_1", 0.9), ("beta_2", 0.999), ("decay", 0.004), ("momentum_cache", 0.45007348)]),
    ];
    for (rule, (name, scalars)) in defaults().zip(expected) {
        assert_eq!(rule.name(), name);
        let found = rule.scalars(1);
        assert_eq!(found.len(), scalars.len(), "{name}: {found:?}");
        for ((name, value), (other, expected)) in found.into_iter().zip(scalars) {
            assert!(name == *other && (value - expected).abs() < 1e-7, "{name} {value}");
        }
    }
}
