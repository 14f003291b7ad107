//! The lines for Prometheus.

use std::sync::atomic::Ordering;

use super::ColumnCounts;
use crate::metrics::{label, line};
use crate::model::Models;

/// A metric of a column: its name, its type, what it is, and its value.
type Metric = (&'static str, &'static str, &'static str, fn(&ColumnCounts) -> Option<f64>);

const METRICS: [Metric; 10] = [
    ("column_values_total", "counter", "values in requests", |c| Some(c.n_values.load(Ordering::Relaxed) as f64)),
    ("column_missing_total", "counter", "missing values", |c| Some(c.n_missing.load(Ordering::Relaxed) as f64)),
    ("column_unknown_total", "counter", "terms that the vocabulary does not have", |c| c.unknown().map(|n| n as f64)),
    ("column_out_of_range_total", "counter", "numbers outside of the training's range", |c| {
        c.out_of_range().map(|n| n as f64)
    }),
    ("column_mean", "gauge", "the mean of the numbers", ColumnCounts::mean),
    ("column_drift", "gauge", "the population stability index against the training", ColumnCounts::drift),
    ("training_missing_ratio", "gauge", "the share of missing values in the training", |c| {
        Some(c.training.as_ref()?.missing_ratio)
    }),
    ("training_min", "gauge", "the smallest number of the training", |c| {
        Some(c.training.as_ref()?.numbers.as_ref()?.min)
    }),
    ("training_max", "gauge", "the largest number of the training", |c| {
        Some(c.training.as_ref()?.numbers.as_ref()?.max)
    }),
    ("training_mean", "gauge", "the mean of the training", |c| Some(c.training.as_ref()?.numbers.as_ref()?.mean)),
];

/// Appends the lines of all columns.
pub(crate) fn lines(models: &Models, page: &mut String) {
    let all = models.all();
    for (metric, kind, help, value) in METRICS {
        let mut lines = String::new();
        for (name, model) in all.iter() {
            for (version, loaded) in model.served().iter() {
                for (column, counts) in &loaded.drift.columns {
                    let Some(value) = value(counts) else { continue };
                    let (name, column) = (label(name), label(column));
                    line(
                        &mut lines,
                        format_args!(
                            "estimand_{metric}{{model_name=\"{name}\",version=\"{version}\",column=\"{column}\"}} {value}"
                        ),
                    );
                }
            }
        }
        if !lines.is_empty() {
            line(page, format_args!("# HELP estimand_{metric} {help}"));
            line(page, format_args!("# TYPE estimand_{metric} {kind}"));
            page.push_str(&lines);
        }
    }
}
