//! The report of a training: why it ended, its best evaluations, learning curves, suspicious
//! columns, and fingerprints.
//!
//! It is read from the files in the model folder, so it can be made at the end of a training or
//! years later, over all its runs. Printing it gives a summary. [`Report::html`] is one
//! self-contained page.
//!
//! ```
//! use estimand::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-report-{}", std::process::id()));
//! let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
//! let data = Dataset::from_arrays(rows).label("y");
//! let classifier = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
//! classifier.train_and_evaluate(data.repeat(100).batch(4), data.batch(4))?;
//!
//! let report = classifier.report()?.examine(&data)?;
//! assert_eq!(report.end().and_then(|end| end.reason.as_deref()), Some("the input ended"));
//! report.write_html(folder.join("report.html"))?;
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! `log.rs` reads event files, `evaluations.rs` the evaluations and which was best, `columns/`
//! looks at a dataset, `fingerprints.rs` at checkpoints; `next.rs` says what to do; `text.rs` and
//! `html.rs` with `chart.rs` show it. `comparison.rs` is the page that compares several models, and
//! `page.rs` what both pages share. `markup.rs` escapes all text of the pages.

mod chart;
mod columns;
mod comparison;
mod evaluations;
mod fingerprints;
mod html;
mod log;
mod markup;
mod next;
mod page;
mod text;

pub use columns::{ColumnCheck, Examined, Finding, Suspicion};
pub(crate) use comparison::{Compared, page as comparison_page};
pub use log::TrainingRun;
pub(crate) use log::last_reason;
pub(crate) use markup::escape;

use std::path::Path;

use estimand_checkpoint::{BundleReader, write_text};
use estimand_data::Dataset;
use estimand_tensor::{Error, Result};

use crate::model_folder::MissingState;
use crate::model_folder::newest::{is_there, read_newest};
use crate::{Estimator, Evaluated};
use log::{Curves, Log};

/// The report of a training. Made by [`Estimator::report`].
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    name: String,
    runs: Vec<TrainingRun>,
    curves: Curves,
    evaluations: Vec<Evaluated>,
    examined: Option<Examined>,
    fingerprints: Vec<(String, String)>,
    parameters: Vec<(String, String)>,
    notes: Vec<String>,
}

impl Estimator {
    /// Makes the report of all trainings of the model folder.
    pub fn report(&self) -> Result<Report> {
        let mut report = Report::read(self.model_dir())?;
        let parameters = self.params().iter().map(|(name, value)| (name.to_string(), value.to_string()));
        report.parameters = parameters.collect();
        let threads = match self.config().threads {
            0 => "one for each core; results do not depend on it".to_string(),
            n => format!("{n}; results do not depend on it"),
        };
        report.fingerprints.push(("threads".to_string(), threads));
        Ok(report)
    }
}

impl Report {
    /// Makes the report of all trainings of a model folder from its files only.
    pub fn read(model_dir: impl AsRef<Path>) -> Result<Report> {
        let model_dir = model_dir.as_ref();
        let mut log = Log::read(model_dir)?;
        let checkpoint = read_newest(model_dir, MissingState::UseNewest, |prefix| BundleReader::open(prefix))?;
        let mut evaluations = evaluations::read(model_dir, &mut log)?;
        if log.runs.is_empty() && checkpoint.is_none() && evaluations.is_empty() {
            let message =
                format!("there is nothing to report: {} has no event files and no checkpoint", model_dir.display());
            return Err(Error::config(message).help("train first, or name the folder of a model that was trained"));
        }
        let mut fingerprints = Vec::new();
        if let Some((prefix, reader)) = &checkpoint {
            evaluations::choose(&mut evaluations, model_dir, Some(reader), &mut log.notes);
            fingerprints = fingerprints::of_checkpoint(reader)?;
            fingerprints.extend(learnt(model_dir, (prefix, reader), &evaluations)?);
        } else {
            evaluations::choose(&mut evaluations, model_dir, None, &mut log.notes);
        }
        fingerprints.push(("estimand".to_string(), env!("CARGO_PKG_VERSION").to_string()));
        let is_run = |run: &TrainingRun| run.first_step.is_some() || run.reason.is_some();
        Ok(Report {
            name: folder_name(model_dir),
            runs: log.runs.into_iter().filter(is_run).collect(),
            curves: log.curves,
            evaluations,
            examined: None,
            fingerprints,
            parameters: Vec::new(),
            notes: log.notes,
        })
    }

    /// Examines the columns of a dataset, usually the training rows, in one pass over its first
    /// 100,000 rows.
    pub fn examine(self, data: &Dataset) -> Result<Report> {
        Ok(self.examined(ColumnCheck::new().run(data)?))
    }

    /// Adds the results of a [`ColumnCheck`].
    #[must_use]
    pub fn examined(mut self, examined: Examined) -> Report {
        self.examined = Some(examined);
        self
    }

    /// All trainings of the model folder, in order.
    pub fn runs(&self) -> &[TrainingRun] {
        &self.runs
    }

    /// The last training; `None` if there is none with event files.
    pub fn end(&self) -> Option<&TrainingRun> {
        self.runs.last()
    }

    /// The evaluations of each input, of all runs. Values are `f32`, as in event files.
    pub fn evaluations(&self) -> &[Evaluated] {
        &self.evaluations
    }

    /// The evaluations on the input with this name; `None` is the one without a name.
    pub fn evaluation(&self, name: Option<&str>) -> Result<&Evaluated> {
        let names = self.evaluations.iter().filter_map(|set| set.name.as_deref());
        self.evaluations.iter().find(|set| set.name.as_deref() == name).ok_or_else(|| match name {
            Some(name) => Error::unknown("evaluation named", name, names),
            None => Error::config("there are no evaluations without a name").suggest("", names),
        })
    }

    /// The numbers that training has recorded under a tag, such as `loss`, by step. If a later run
    /// repeated a step, its number counts.
    pub fn curve(&self, tag: &str) -> Result<Vec<(u64, f64)>> {
        match self.curves.get(tag) {
            Some(curve) => Ok(curve.iter().map(|(&step, &value)| (step, value)).collect()),
            None => {
                let names = self.curves.keys().map(String::as_str);
                Err(Error::config(format!("training has recorded no `{tag}`")).suggest(tag, names))
            }
        }
    }

    /// The findings in the columns, the worst first; empty if no dataset was examined.
    pub fn findings(&self) -> &[Finding] {
        self.examined.as_ref().map_or(&[], |examined| &examined.findings)
    }

    /// Fingerprints of model, data and seed, as short texts by name. Two runs with equal
    /// fingerprints are the same.
    pub fn fingerprints(&self) -> Vec<(String, String)> {
        let mut all = self.fingerprints.clone();
        if let Some(examined) = &self.examined {
            all.push(("data plan".to_string(), fingerprints::hex(examined.plan)));
            all.push(("data".to_string(), format!("{} ({})", fingerprints::hex(examined.rows), examined.extent())));
        }
        all
    }

    /// Descriptions of the parts that could not be read.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The report as one self-contained HTML page. The same report gives the same bytes.
    pub fn html(&self) -> String {
        html::page(self).into_string()
    }

    /// Writes the page to a file, completely or not at all.
    pub fn write_html(&self, path: impl AsRef<Path>) -> Result<()> {
        write_text(path, &self.html())
    }
}

/// Returns fingerprints of the newest checkpoint, and of each best evaluation's checkpoint that
/// still exists.
fn learnt(
    model_dir: &Path,
    (newest, reader): (&Path, &BundleReader),
    evaluations: &[Evaluated],
) -> Result<Vec<(String, String)>> {
    let text = |reader: &BundleReader| fingerprints::of_values(reader).map(fingerprints::hex);
    let mut all = vec![(folder_name(newest), text(reader)?)];
    for best in evaluations.iter().filter_map(|set| set.best.as_ref()) {
        let name = format!("model.ckpt-{}", best.global_step());
        if all.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let prefix = model_dir.join(&name);
        match BundleReader::open(&prefix) {
            Ok(reader) => all.push((name, text(&reader)?)),
            Err(_) if !is_there(&prefix) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Returns the last part of a path.
fn folder_name(path: &Path) -> String {
    // `.` has no name of its own.
    let whole = std::path::absolute(path);
    let name = whole.as_deref().unwrap_or(path).file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
