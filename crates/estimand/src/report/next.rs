//! Advice on the next steps, derived from the numbers of a report.

use super::{Report, Suspicion};
use crate::Metrics;

/// Returns short advice, the most urgent first.
pub(super) fn advice(report: &Report) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((step, loss)) = report.curves.get("loss").and_then(|curve| curve.last_key_value())
        && !loss.is_finite()
    {
        all.push(format!(
            "the training loss is {loss} at step {step}: lower the learning rate, or look for odd numbers in the input"
        ));
    }
    let leaking = report.findings().iter().filter(|finding| finding.suspicion == Suspicion::Leaking);
    let leaking: Vec<String> = leaking.map(|finding| format!("`{}`", finding.column)).collect();
    if !leaking.is_empty() {
        all.push(format!("believe no metric before you know why {} tells the label", leaking.join(", ")));
    }
    if report.evaluations.is_empty() {
        all.push("evaluate on rows that it is not trained on: train_and_evaluate does so in between".to_string());
    }
    let (mut earlier, mut at_end) = (Vec::new(), Vec::new());
    for set in &report.evaluations {
        let name = set.name.as_deref().map_or("the evaluation".to_string(), |name| format!("`{name}`"));
        let (Some(best), Some(last)) = (&set.best, set.history.last()) else { continue };
        let (best, last) = (best.global_step(), last.global_step());
        let n_later = set.history.iter().map(Metrics::global_step).filter(|&step| step > best).count();
        if n_later > 0 {
            let checkpoint = format!("model.ckpt-{best}");
            let is_kept = report.fingerprints.iter().any(|(name, _)| *name == checkpoint);
            let where_is = match is_kept {
                true => format!("that model is {checkpoint}"),
                false => {
                    "its checkpoint is not there: save one with each evaluation, and keep more of them".to_string()
                }
            };
            earlier.push(format!("{name} was best ({}) at step {best}, not at step {last}: {where_is}", set.by));
        } else if set.history.len() > 1 {
            at_end.push(format!("{name} was best ({}) when it ended: train longer", set.by));
        }
    }
    // Metrics on training rows improve to the end; those on other rows decide.
    all.extend(if earlier.is_empty() { at_end } else { earlier });
    all
}
