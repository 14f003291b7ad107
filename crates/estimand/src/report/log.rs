//! Reads the trainings of a model folder from its event files: runs, why they ended, and the
//! numbers of their steps.

use std::collections::BTreeMap;
use std::path::Path;

use estimand_tensor::Result;
use indexmap::IndexMap;

use crate::Metrics;
use crate::events::{Event, SessionStatus, SummaryValue, What, each_event};

/// One call of `train`, read from its event file. A file may contain several runs in a row.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TrainingRun {
    /// The first step of the run; `None` if it did no step, or did not record one.
    pub first_step: Option<u64>,
    /// The last recorded step.
    pub last_step: u64,
    /// Why it ended; `None` if it was killed, or is still running.
    pub reason: Option<String>,
    /// Seconds from its first event to its last, including evaluations in between.
    pub secs: f64,
    started: f64,
    /// Whether the end was recorded.
    ended: bool,
}

impl TrainingRun {
    /// The number of steps of this run, as far as is known.
    pub fn n_steps(&self) -> u64 {
        self.first_step.map_or(0, |first| (self.last_step + 1).saturating_sub(first))
    }

    /// Returns whether an event belongs to the next run. The end of a run may be followed by the
    /// status of its parameters.
    fn is_before(&self, event: &Event) -> bool {
        self.ended && !matches!(&event.what, Some(What::Summary(_)) if event.step == 0)
    }

    fn take(&mut self, event: &Event) {
        if self.ended {
            return;
        }
        if self.started == 0.0 {
            self.started = event.wall_time;
        }
        self.secs = (event.wall_time - self.started).max(0.0);
        let step = step_of(event);
        match &event.what {
            Some(What::SessionLog(log)) if log.status == i32::from(SessionStatus::Stop) => {
                (self.last_step, self.ended) = (step, true);
                self.reason = Some(log.msg.clone()).filter(|reason| !reason.is_empty());
            }
            Some(What::SessionLog(log)) if log.status == i32::from(SessionStatus::Start) => {
                self.first_step = Some(self.first_step.map_or(step, |first| first.min(step)));
            }
            Some(What::Summary(_)) if step > 0 => {
                self.first_step = Some(self.first_step.map_or(step, |first| first.min(step)));
                self.last_step = self.last_step.max(step);
            }
            _ => {}
        }
    }

    /// Returns whether this run repeated a step that was recorded at a time.
    fn replaces(&self, step: u64, time: f64) -> bool {
        time < self.started && self.first_step.is_some_and(|first| step >= first)
    }
}

/// Why the last training of a model folder ended; `None` if it was killed or cannot be read.
pub(crate) fn last_reason(model_dir: &Path) -> Option<String> {
    let runs = Log::read(model_dir).ok()?.runs;
    runs.into_iter().rev().find(|run| run.first_step.is_some() || run.reason.is_some())?.reason
}

/// Numbers by step, under their tag.
pub(super) type Curves = IndexMap<String, BTreeMap<u64, f64>>;

/// The trainings of a model folder.
#[derive(Default)]
pub(super) struct Log {
    pub(super) runs: Vec<TrainingRun>,
    pub(super) curves: Curves,
    pub(super) notes: Vec<String>,
}

impl Log {
    pub(super) fn read(model_dir: &Path) -> Result<Log> {
        let mut runs: Vec<TrainingRun> = Vec::new();
        let mut numbers = Vec::new();
        let mut last_file = None;
        let notes = each_event(model_dir, |file, event| {
            let is_next = runs.last().is_none_or(|run| last_file != Some(file) || run.is_before(&event));
            if is_next {
                runs.push(TrainingRun::default());
            }
            last_file = Some(file);
            if let Some(run) = runs.last_mut() {
                run.take(&event);
            }
            numbers.extend(scalars(event));
        })?;
        let mut curves = Curves::new();
        for Scalar { tag, step, time, value } in numbers {
            if !runs.iter().any(|run| run.replaces(step, time)) {
                curves.entry(tag).or_default().insert(step, value);
            }
        }
        curves.sort_keys();
        Ok(Log { runs, curves, notes })
    }

    /// Returns the evaluations in a folder, in the order of their steps, without those of steps
    /// that a later run repeated. If a step was evaluated twice, the later one counts.
    pub(super) fn evaluations(&mut self, folder: &Path) -> Result<Vec<Metrics>> {
        let mut all: BTreeMap<u64, IndexMap<String, f64>> = BTreeMap::new();
        let notes = each_event(folder, |_, event| {
            for Scalar { tag, step, time, value } in scalars(event) {
                if !self.runs.iter().any(|run| run.replaces(step, time)) {
                    all.entry(step).or_default().insert(tag, value);
                }
            }
        })?;
        self.notes.extend(notes);
        Ok(all.into_iter().map(|(step, values)| Metrics::new(values, step)).collect())
    }
}

struct Scalar {
    tag: String,
    step: u64,
    time: f64,
    value: f64,
}

fn scalars(event: Event) -> Vec<Scalar> {
    let (step, time) = (step_of(&event), event.wall_time);
    let Some(What::Summary(summary)) = event.what else { return Vec::new() };
    let scalar = |value: crate::events::Value| match value.value {
        Some(SummaryValue::SimpleValue(number)) => {
            Some(Scalar { tag: value.tag, step, time, value: f64::from(number) })
        }
        _ => None,
    };
    summary.value.into_iter().filter_map(scalar).collect()
}

fn step_of(event: &Event) -> u64 {
    u64::try_from(event.step).unwrap_or(0)
}
