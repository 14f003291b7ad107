//! Finds columns that alone reveal the label. Such a column is rarely available when the model
//! predicts.

use super::alone::finding;
use super::association::{Guesses, auc, correlation, explained, groups};
use super::table::{Column, MISSING};
use super::{Finding, Suspicion, percent};

/// The AUC from which a number leaks a label of two classes.
const AUC: f64 = 0.99;
/// The share of wrong guesses that a leaking column avoids.
const SAVED: f64 = 0.98;
/// The share of the variance that a leaking column explains.
const EXPLAINED: f64 = 0.98;
/// Labels with more values than this are not classes.
const MAX_CLASSES: usize = 100;
/// Float labels with more values than this are not classes.
const MAX_FLOAT_CLASSES: usize = 20;

const ADVICE: &str = "leave it out if it is not known before the label is";

/// Returns a finding if a feature leaks a label.
pub(super) fn look(feature: &Column, label: &Column) -> Option<Finding> {
    let evidence = match is_classes(label) {
        true => of_classes(feature, label),
        false if label.is_number() => of_numbers(feature, label),
        false => None,
    };
    evidence.map(|evidence| finding(feature, Suspicion::Leaking, evidence, ADVICE))
}

fn is_classes(label: &Column) -> bool {
    let whole = || label.numbers.iter().all(|number| number.is_nan() || number.fract() == 0.0);
    match label.is_float() {
        true => label.values.len() <= MAX_FLOAT_CLASSES && whole(),
        false => label.values.len() <= MAX_CLASSES,
    }
}

fn of_classes(feature: &Column, label: &Column) -> Option<String> {
    if feature.is_number() && label.values.len() == 2 {
        let truth: Vec<Option<bool>> = label.codes.iter().map(|&code| (code != MISSING).then_some(code == 1)).collect();
        let (area, n_rows) = auc(&feature.numbers, &truth).unwrap_or_default();
        let area = area.max(1.0 - area);
        if area >= AUC && 2 * n_rows >= label.codes.len() {
            return Some(format!("it alone has an AUC of {area:.4} for label `{}`", label.name));
        }
    }
    let guesses = Guesses::of(&groups(feature), &label.codes);
    (guesses.saved() >= SAVED).then(|| {
        format!(
            "guessing label `{}` from it alone is right in {} of rows, and in {} without it",
            label.name,
            percent(guesses.with),
            percent(guesses.without)
        )
    })
}

fn of_numbers(feature: &Column, label: &Column) -> Option<String> {
    let linear = if feature.is_number() { correlation(&feature.numbers, &label.numbers).powi(2) } else { 0.0 };
    let share = linear.max(explained(&groups(feature), &label.numbers));
    (share >= EXPLAINED)
        .then(|| format!("it alone explains {} of the variance of label `{}`", percent(share), label.name))
}
