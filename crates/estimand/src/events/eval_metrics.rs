//! Reads the results of evaluations from the event files of a folder.

use std::collections::BTreeMap;
use std::path::Path;

use estimand_tensor::Result;
use indexmap::IndexMap;

use super::folder::each_event;
use super::{SummaryValue, What};

/// Returns the metrics of every evaluated step, from all event files of a folder, in the order of
/// steps.
///
/// Numbers are `f32`, as stored. If a step was evaluated twice, the later file wins. After a
/// damaged record the rest of a file is skipped, with a warning. A folder that does not exist has
/// no evaluations yet.
///
/// ```
/// use estimand::events::{EventWriter, read_eval_metrics};
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-eval-metrics-{}", std::process::id()));
/// EventWriter::create(&folder)?.scalar(100, "loss", 0.9)?;
/// assert_eq!(read_eval_metrics(&folder)?[&100]["loss"], 0.9_f32);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), estimand::prelude::Error>(())
/// ```
pub fn read_eval_metrics(folder: impl AsRef<Path>) -> Result<BTreeMap<u64, IndexMap<String, f32>>> {
    let mut all = BTreeMap::<u64, IndexMap<String, f32>>::new();
    each_event(folder.as_ref(), |_, event| {
        let Some(What::Summary(summary)) = event.what else { return };
        for value in summary.value {
            if let Some(SummaryValue::SimpleValue(number)) = value.value {
                all.entry(u64::try_from(event.step).unwrap_or(0)).or_default().insert(value.tag, number);
            }
        }
    })?;
    Ok(all)
}
