//! The laws: each has a promise, an experiment that tests it, and its test cases.

mod failure;
mod kill;
mod odd_writes;
mod owners;
mod power;
mod process_1;
mod readers;

use crate::calls::SystemCall;
use crate::experiment::Experiment;
use crate::outcome::Outcome;
use crate::victim::{End, Folder, Place, Ran};

/// The starting point of experiments.
pub struct Bench {
    pub place: Place,
    /// The outcome of an undisturbed run.
    pub undisturbed: Outcome,
    /// The calls of an undisturbed run, with the written bytes.
    pub calls: Vec<SystemCall>,
    /// Whether all points are tested.
    pub is_full: bool,
}

/// A promise and its experiments.
pub struct Law {
    /// The prefix of the names of its experiments.
    pub name: &'static str,
    pub promise: &'static str,
    pub experiment: &'static str,
    pub experiments: for<'a> fn(&'a Bench) -> Vec<Experiment<'a>>,
}

/// All laws, in the order in which they are tested and printed.
pub const LAWS: &[Law] = &[
    kill::ONCE,
    kill::TWICE,
    process_1::LAW,
    failure::ONE_CALL,
    failure::FULL,
    failure::READ_ONLY,
    odd_writes::LAW,
    power::CUT,
    power::KEPT,
    owners::BESIDE,
    owners::AFTER_DEATH,
    owners::NO_LOCKS,
    readers::LAW,
];

impl Bench {
    /// Returns a sample in a short run, everything in a full run.
    fn choose<T>(&self, all: Vec<T>, n_short: usize) -> Vec<T> {
        match self.is_full {
            true => all,
            false => crate::experiment::spread(all, n_short),
        }
    }

    fn folder(&self) -> Result<Folder, String> {
        self.place.folder().map_err(|e| format!("no folder for the experiment: {e}"))
    }

    /// Runs the training to its end from the current files, and compares the outcome. If the run
    /// had already ended, nothing is run: another call would be another training.
    fn finish_and_compare(&self, folder: &Folder) -> Result<(), String> {
        let left = Outcome::read(&folder.work(), &self.undisturbed.said)?;
        if left.check_same(&self.undisturbed).is_ok() {
            return Ok(());
        }
        let ran = self.place.train(folder).finish().map_err(|e| e.to_string())?;
        let outcome = Outcome::of(&ran, &folder.work()).map_err(|how| format!("started again: {how}"))?;
        outcome.check_same(&self.undisturbed).map_err(|how| format!("started again: {how}"))
    }
}

/// Returns whether a run ended because of the plan; otherwise an error with the reason.
fn was_killed(ran: &Ran, point: &str) -> Result<bool, String> {
    match ran.end {
        End::Killed => Ok(true),
        End::Code(0) => Ok(false),
        End::Code(code) => {
            Err(format!("before {point} the run ended with {code}: {}", crate::outcome::brief(&ran.stderr)))
        }
        End::Hung => Err(format!("the run hung before {point}")),
    }
}
