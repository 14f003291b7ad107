//! Times of the update rules: `cargo bench -p estimand-update`.
//!
//! Every figure is the minimum of many runs on one thread, in nanoseconds for one weight. Weights,
//! gradient and slots fit into a core's cache, so the figures show the arithmetic.
#![allow(clippy::print_stdout)] // a bench prints

use std::hint::black_box;
use std::time::Instant;

use estimand_update::{Adadelta, Adagrad, Adam, Adamax, Ftrl, Nadam, RmsProp, Sgd, UpdateRule};

/// Weights of a call: a row of an embedding, and a part of a dense layer.
const SIZES: [usize; 2] = [32, 4096];

fn rules() -> Vec<(&'static str, Box<dyn UpdateRule>)> {
    vec![
        ("sgd", Box::new(Sgd::default())),
        ("sgd_momentum", Box::new(Sgd::default().momentum(0.9))),
        ("sgd_nesterov", Box::new(Sgd::default().momentum(0.9).nesterov(true))),
        ("adagrad", Box::new(Adagrad::default())),
        ("adam", Box::new(Adam::default())),
        ("adam_amsgrad", Box::new(Adam::default().amsgrad(true))),
        ("ftrl", Box::new(Ftrl::default().l1(0.01))),
        ("ftrl_power", Box::new(Ftrl::default().learning_rate_power(-0.7))),
        ("rmsprop", Box::new(RmsProp::default())),
        ("rmsprop_centered", Box::new(RmsProp::default().centered(true))),
        ("rmsprop_momentum", Box::new(RmsProp::default().momentum(0.9))),
        ("rmsprop_both", Box::new(RmsProp::default().momentum(0.9).centered(true))),
        ("adadelta", Box::new(Adadelta::default())),
        ("adamax", Box::new(Adamax::default())),
        ("nadam", Box::new(Nadam::default())),
    ]
}

/// Weights, a gradient and slots.
struct Table {
    w: Vec<f32>,
    g: Vec<f32>,
    slots: Vec<Vec<f32>>,
}

impl Table {
    /// The least nanoseconds of one call, for one weight.
    fn time(&mut self, call: impl Fn(&mut [f32], &[f32], &mut [&mut [f32]])) -> f64 {
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        while begin.elapsed().as_millis() < 100 {
            // Slots that decay for long become subnormal, which is slow.
            self.slots.iter_mut().for_each(|slot| slot.fill(0.1));
            let mut slots: Vec<&mut [f32]> = self.slots.iter_mut().map(|slot| &mut slot[..]).collect();
            let start = Instant::now();
            for _ in 0..64 {
                call(black_box(&mut self.w), black_box(&self.g), &mut slots);
            }
            best = best.min(start.elapsed().as_nanos() as f64 / 64.0);
        }
        best / self.w.len() as f64
    }
}

fn main() {
    for (name, rule) in rules() {
        let h = rule.hyper(10, 1e-6);
        for n in SIZES {
            let g = (0..n).map(|i| if i % 2 == 0 { 0.01 } else { -0.02 }).collect();
            let mut table = Table { w: vec![0.5; n], g, slots: vec![vec![0.1; n]; rule.slots().len()] };
            let update = table.time(|w, g, slots| rule.update(black_box(&h), w, g, slots));
            let decay = table.time(|w, _, slots| rule.decay(black_box(&h), w, slots));
            println!("{name:<17} {n:>5} weights: update {update:.3} ns, decay {decay:.3} ns");
        }
    }
}
