//! The order in which Keras lists the variables of an optimizer.

use std::collections::HashMap;

use estimand_graph::Optimizer;
use estimand_update::{Extended, Schedule, Slot};

use crate::keras::json::KerasVersion;
use crate::keras::slots::SlotOf;

/// The generations of Keras' optimizers, whose variables have other orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Generation {
    /// `tf.keras.optimizers.legacy`.
    Legacy,
    /// `tf.keras.optimizers` of Keras 2.
    Keras2,
    Keras3,
}

impl Generation {
    pub fn of(optimizer: &Optimizer, version: KerasVersion) -> Generation {
        match version {
            _ if is_legacy(optimizer) => Generation::Legacy,
            KerasVersion::Keras2 => Generation::Keras2,
            KerasVersion::Keras3 => Generation::Keras3,
        }
    }
}

/// Whether an optimizer is one of `tf.keras.optimizers.legacy`. A rule of the user is not.
pub(super) fn is_legacy(optimizer: &Optimizer) -> bool {
    const CLASSES: [&str; 8] = ["SGD", "Adagrad", "Adam", "Ftrl", "RMSprop", "Adadelta", "Adamax", "Nadam"];
    !optimizer.rule().is_newer() && CLASSES.contains(&optimizer.rule().name())
}

/// A variable of an optimizer.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Variable {
    /// The number of updates.
    Iterations,
    LearningRate,
    /// Nadam's product of momentums, which follows from the number of updates.
    Product,
    /// A slot of a weight.
    Slot {
        of: SlotOf,
        initial: f32,
        dims: Vec<usize>,
    },
    /// A variable that Keras keeps and does not use.
    Unused {
        dims: Vec<usize>,
    },
}

impl Variable {
    pub fn dims(&self) -> &[usize] {
        match self {
            Variable::Iterations | Variable::LearningRate | Variable::Product => &[],
            Variable::Slot { dims, .. } | Variable::Unused { dims } => dims,
        }
    }

    /// Its name in a legacy file, if it is this one of all variables.
    pub fn name_in_file(&self, i: usize) -> String {
        match self {
            Variable::Iterations => "iteration:0".to_string(),
            Variable::LearningRate => "learning_rate:0".to_string(),
            Variable::Product => "momentum_cache:0".to_string(),
            Variable::Slot { of: (weight, slot), .. } => format!("{weight}/{slot}:0"),
            Variable::Unused { .. } => format!("unused_{i}:0"),
        }
    }

    /// What it is, for errors.
    pub fn describe(&self) -> String {
        match self {
            Variable::Iterations => "the number of updates".to_string(),
            Variable::LearningRate => "the learning rate".to_string(),
            Variable::Product => "the product of momentums".to_string(),
            Variable::Slot { of: (weight, slot), .. } => format!("`{slot}` of the weight `{weight}`"),
            Variable::Unused { .. } => "a variable that is not used".to_string(),
        }
    }
}

/// The variables of an optimizer that trains these weights, in Keras' order.
pub(super) fn variables(
    optimizer: &Optimizer,
    generation: Generation,
    weights: &[(String, Vec<usize>)],
) -> Vec<Variable> {
    let rule = optimizer.rule();
    let mut all = before_training(optimizer, generation);
    let by_weight: Vec<HashMap<&str, (Slot, Vec<usize>)>> = weights
        .iter()
        .map(|(_, dims)| rule.slots_of(dims).into_iter().map(|(slot, dims)| (slot.name, (slot, dims))).collect())
        .collect();
    let is_nadam = rule.name() == "Nadam";
    if is_nadam && generation == Generation::Legacy {
        all.push(Variable::Product);
    }
    if optimizer.average().is_some() {
        add(&[Extended::AVERAGE], weights, &by_weight, &mut all);
    }
    let own: Vec<&str> = rule.slots().iter().map(|slot| slot.name).filter(|name| *name != Extended::AVERAGE).collect();
    match (generation, rule.name()) {
        (Generation::Legacy, "Ftrl") => add(&own, weights, &by_weight, &mut all),
        (Generation::Legacy, _) | (_, "RMSprop") => {
            own.chunks(1).for_each(|slot| add(slot, weights, &by_weight, &mut all));
        }
        // The mean and the mean square of a weight, and after those of all weights its largest.
        (_, "Adam" | "AdamW") => own.chunks(2).for_each(|slots| add(slots, weights, &by_weight, &mut all)),
        // TF: Keras 2 keeps a momentum that is zero.
        (Generation::Keras2, "SGD") if own.is_empty() => {
            all.extend(weights.iter().map(|(_, dims)| Variable::Unused { dims: dims.clone() }));
        }
        // TF: Keras 3 keeps two numbers instead of the factors that a vector does not have.
        (Generation::Keras3, "Adafactor") => {
            for (weight, slots) in weights.iter().zip(&by_weight) {
                let n_unused = own.len().saturating_sub(slots.len() - usize::from(optimizer.average().is_some()));
                all.extend((0..n_unused).map(|_| Variable::Unused { dims: Vec::new() }));
                add(&own, std::slice::from_ref(weight), std::slice::from_ref(slots), &mut all);
            }
        }
        _ => add(&own, weights, &by_weight, &mut all),
    }
    if is_nadam && generation == Generation::Keras3 {
        all.push(Variable::Product);
    }
    all
}

/// The same variables in the order of Keras 3.6, which has Nadam's product before the slots of the
/// rule. Newer versions, such as 3.15, have it at the end.
pub(super) fn in_older_order(variables: &[Variable]) -> Vec<Variable> {
    let is_of_rule = |variable: &Variable| match variable {
        Variable::Slot { of: (_, slot), .. } => slot != Extended::AVERAGE,
        _ => false,
    };
    let mut all: Vec<Variable> = variables.iter().filter(|variable| **variable != Variable::Product).cloned().collect();
    if all.len() < variables.len() {
        let at = all.iter().position(is_of_rule).unwrap_or(all.len());
        all.insert(at, Variable::Product);
    }
    all
}

/// The variables of an optimizer that was never used.
pub(super) fn before_training(optimizer: &Optimizer, generation: Generation) -> Vec<Variable> {
    let has_rate = generation == Generation::Keras3 && matches!(optimizer.learning_rate(), Schedule::Constant(_));
    let rate = has_rate.then_some(Variable::LearningRate);
    std::iter::once(Variable::Iterations).chain(rate).collect()
}

/// Adds these slots of each weight.
fn add(
    slots: &[&str],
    weights: &[(String, Vec<usize>)],
    by_weight: &[HashMap<&str, (Slot, Vec<usize>)>],
    all: &mut Vec<Variable>,
) {
    for ((weight, _), own) in weights.iter().zip(by_weight) {
        for (slot, dims) in slots.iter().filter_map(|slot| own.get(slot)) {
            let of = (weight.clone(), slot.name.to_string());
            all.push(Variable::Slot { of, initial: slot.initial, dims: dims.clone() });
        }
    }
}
