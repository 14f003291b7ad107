//! The results of a sweep: all trials, the best of them, and the report that compares them.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};

use estimand_checkpoint::write_text;
use estimand_tensor::{Error, Result};

use super::trial::TrialResult;
use crate::Report;
use crate::console::{Table, slice_of};
use crate::criterion::{Criterion, Direction};
use crate::report::{Compared, comparison_page};

/// The maximum number of metrics that the text shows.
const MAX_METRICS: usize = 6;

/// The results of a sweep. Printing it gives a table, the best trial first.
#[derive(Clone, Debug)]
pub struct Swept {
    folder: PathBuf,
    metric: String,
    direction: Direction,
    trials: Vec<TrialResult>,
}

impl Swept {
    pub(super) fn new(folder: PathBuf, metric: String, direction: Direction) -> Swept {
        Swept { folder, metric, direction, trials: Vec::new() }
    }

    /// Adds a trial. It is an error if it does not have the metric that decides.
    pub(super) fn add(&mut self, result: TrialResult) -> Result<()> {
        if let Some(metrics) = result.metrics() {
            metrics.get(&self.metric).map_err(|e| e.context("in the criterion of the sweep"))?;
        }
        self.trials.push(result);
        Ok(())
    }

    /// All trials, in the order of the sweep.
    pub fn trials(&self) -> &[TrialResult] {
        &self.trials
    }

    /// All trials, the best first. Those without a value come last.
    pub fn ranked(&self) -> Vec<&TrialResult> {
        let value = |trial: &TrialResult| trial.metrics()?.get(&self.metric).ok().filter(|value| !value.is_nan());
        let order = |a: &&TrialResult, b: &&TrialResult| match (value(a), value(b)) {
            (Some(a), Some(b)) if self.direction == Direction::Higher => b.total_cmp(&a),
            (Some(a), Some(b)) => a.total_cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        let mut all: Vec<&TrialResult> = self.trials.iter().collect();
        all.sort_by(order);
        all
    }

    /// The best trial. Of several equal ones, the first. It is an error if all trials diverged.
    pub fn best(&self) -> Result<&TrialResult> {
        let best = self.ranked().into_iter().next();
        let has_value = |trial: &&TrialResult| {
            trial.metrics().is_some_and(|metrics| metrics.get(&self.metric).is_ok_and(|value| !value.is_nan()))
        };
        best.filter(has_value).ok_or_else(|| {
            let n = self.trials.len();
            Error::config(format!("no trial of the sweep has a {}: all {n} diverged", self.metric))
                .help("sweep over lower learning rates")
        })
    }

    /// The report that compares all trials, as one self-contained HTML page.
    pub fn html(&self) -> String {
        let mut notes = Vec::new();
        let mut all = Vec::new();
        for trial in self.ranked() {
            let report = Report::read(trial.model_dir());
            if let Err(error) = &report
                && trial.metrics().is_some()
            {
                notes.push(format!("{}: there are no curves: {}", trial.name(), error.message()));
            }
            all.push(Compared {
                name: trial.name(),
                params: trial.params(),
                metrics: trial.metrics(),
                note: trial.note(),
                secs: trial.secs(),
                report: report.ok(),
                has_page: trial.model_dir().join("report.html").is_file(),
            });
        }
        comparison_page(&self.title(), &self.by(), &self.metric, &all, &notes)
    }

    /// Writes the page to a file, completely or not at all. Links to reports of trials are relative
    /// to the folder of the sweep.
    pub fn write_html(&self, path: impl AsRef<Path>) -> Result<()> {
        write_text(path, &self.html())
    }

    pub(super) fn write_report(&self) -> Result<()> {
        self.write_html(self.folder.join("report.html"))
    }

    fn title(&self) -> String {
        let whole = std::path::absolute(&self.folder);
        let name = whole.as_deref().unwrap_or(&self.folder).file_name().unwrap_or(self.folder.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn by(&self) -> String {
        Criterion::Metric { name: self.metric.clone(), direction: self.direction }.to_string()
    }
}

/// Prints a table with a line for each trial, the best first.
impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.trials.len();
        let n_earlier = self.trials.iter().filter(|trial| trial.is_earlier()).count();
        write!(f, "{n} trials, the best by {} first", self.by())?;
        if n_earlier > 0 {
            write!(f, "; {n_earlier} were read from an earlier run")?;
        }
        let mut names: Vec<&str> = vec![&self.metric];
        for metrics in self.trials.iter().filter_map(TrialResult::metrics) {
            let is_whole = |name: &str| slice_of(name, |whole| metrics.get(whole).is_ok()).is_none();
            let new = metrics.iter().map(|(name, _)| name).filter(|name| is_whole(name));
            for name in new {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names.truncate(MAX_METRICS);
        let mut table = Table::with_header(["trial"], names.iter().copied().chain(["step"]));
        for trial in self.ranked() {
            let value = |name: &&str| trial.metrics()?.get(name).ok();
            let step = trial.metrics().map(|metrics| metrics.global_step() as f64);
            table = table.row([trial.name()], names.iter().map(value).chain([step]));
        }
        write!(f, "\n{table}")?;
        for trial in &self.trials {
            if let Some(note) = trial.note() {
                write!(f, "\n{}: {note}", trial.name())?;
            }
        }
        Ok(())
    }
}
