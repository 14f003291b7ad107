//! Cases 69 to 76 of the specification: a few steps of each rule with numbers known from TensorFlow
//! 2.15.
//!
//! Unless a test says otherwise, weights are (1, 2) and the gradients (.1, .2), (.1, .2), (-.3,
//! .05).

// The numbers as the specification has them.
#![allow(clippy::excessive_precision)]

use estimand_update::{Adagrad, Adam, Ftrl, RmsProp, Sgd, UpdateRule};

const GRADIENTS: [[f32; 2]; 3] = [[0.1, 0.2], [0.1, 0.2], [-0.3, 0.05]];

/// Weights after each step, and the slots at the end.
fn train(rule: impl UpdateRule, rate: f64, mut w: [f32; 2]) -> (Vec<[f32; 2]>, Vec<[f32; 2]>) {
    rule.check().unwrap();
    let mut state: Vec<[f32; 2]> = rule.slots().iter().map(|slot| [slot.initial; 2]).collect();
    let mut trace = Vec::new();
    for (step, g) in GRADIENTS.iter().enumerate() {
        let mut slots: Vec<&mut [f32]> = state.iter_mut().map(|slot| &mut slot[..]).collect();
        rule.update(&rule.hyper(step as u64, rate), &mut w, g, &mut slots);
        trace.push(w);
    }
    (trace, state)
}

#[track_caller]
fn assert_near(got: [f32; 2], expected: [f32; 2]) {
    let largest = expected[0].abs().max(expected[1].abs());
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6 * largest), "{got:?}, expected {expected:?}");
}

#[test]
fn case_69_adagrad_small_rate() {
    let (w, slots) = train(Adagrad::default(), 0.001, [1.0, 2.0]);
    assert_near(w[0], [0.99969846, 1.99946547]);
    assert_near(w[1], [0.99940979, 1.99899411]);
    assert_near(w[2], [1.00006449, 1.99887705]);
    assert_near(slots[0], [0.21, 0.1825]);
}

#[test]
fn case_70_adagrad_large_rate() {
    let (w, _) = train(Adagrad::default(), 0.05, [1.0, 2.0]);
    assert_near(w[0], [0.98492444, 1.97327387]);
    assert_near(w[1], [0.97049069, 1.94970369]);
    assert_near(w[2], [1.00322342, 1.94385159]);
}

#[test]
fn case_71_ftrl_from_zero() {
    let (w, _) = train(Ftrl::default(), 0.2, [0.0, 0.0]);
    assert_near(w[0], [-0.06030227, -0.10690449]);
    assert_near(w[1], [-0.11803730, -0.20118541]);
    assert_near(w[2], [0.01289344, -0.22459364]);
}

#[test]
fn case_72_ftrl_forgets_initial_weights() {
    let (w, slots) = train(Ftrl::default(), 0.2, [1.0, 2.0]);
    assert_near(w[0], [-0.01376486, 0.20278703]);
    assert_near(w[1], [-0.07149989, 0.10850614]);
    assert_near(w[2], [0.05943085, 0.08509791]);
    assert_near(slots[1], [-0.13617319, -0.18176921]);
}

#[test]
fn case_73_ftrl_l1_l2() {
    let (w, _) = train(Ftrl::default().l1(0.05).l2(0.1), 0.2, [1.0, 2.0]);
    assert_near(w[0], [0.0, 0.15905701]);
    assert_near(w[2], [0.04258591, 0.05149505]);
}

#[test]
fn case_74_ftrl_shrinkage_and_beta() {
    let (w, _) = train(Ftrl::default().l2_shrinkage(0.1), 0.2, [1.0, 2.0]);
    assert_near(w[2], [-0.03024412, -0.11790944]);
    let (w, _) = train(Ftrl::default().beta(0.5), 0.2, [1.0, 2.0]);
    assert_near(w[2], [0.03349509, 0.03273531]);
}

#[test]
fn case_75_adam_rmsprop_sgd() {
    let (w, _) = train(Adam::default(), 0.001, [1.0, 2.0]);
    assert_near(w[2], [0.99824852, 1.99712765]);
    let (w, _) = train(RmsProp::default(), 0.001, [1.0, 2.0]);
    assert_near(w[0], [0.99683774, 1.99683774]);
    let (w, _) = train(Sgd::default(), 0.01, [1.0, 2.0]);
    assert_near(w[2], [1.00100005, 1.99550009]);
}

/// The slots of the specification are those of step 1; at step 3, by hand: .9 * (.9 * .901 + .1 *
/// .01) + .1 * .09 = .73971 and .9 * (.9 * .904 + .1 * .04) + .1 * .0025 = .73609.
#[test]
fn case_76_rmsprop_v1() {
    let (w, slots) = train(RmsProp::v1(), 0.05, [1.0, 2.0]);
    assert_near(w[0], [0.99473244, 1.98948240]);
    assert_near(slots[0], [0.73971, 0.73609]);
}
