//! The laws: a promise each, the experiment that tries it, and its tries.

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

/// What experiments start from.
pub struct Bench {
    pub place: Place,
    /// What an undisturbed run leaves.
    pub undisturbed: Outcome,
    /// The calls of an undisturbed run, with the bytes of writes.
    pub calls: Vec<SystemCall>,
    /// Whether all points are tried.
    pub is_full: bool,
}

/// A promise and how it is tried.
pub struct Law {
    /// What the names of its experiments begin with.
    pub name: &'static str,
    pub promise: &'static str,
    pub experiment: &'static str,
    pub experiments: for<'a> fn(&'a Bench) -> Vec<Experiment<'a>>,
}

/// All laws, in the order in which they are tried and printed.
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
    /// A sample in the short form, everything in the full one.
    fn choose<T>(&self, all: Vec<T>, n_short: usize) -> Vec<T> {
        match self.is_full {
            true => all,
            false => crate::experiment::spread(all, n_short),
        }
    }

    fn folder(&self) -> Result<Folder, String> {
        self.place.folder().map_err(|e| format!("no folder for the experiment: {e}"))
    }

    /// Runs the training to its end in what is left, and compares. Where the run was over already,
    /// there is nothing left to do: another call would be another training.
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

/// Whether a run ended because of the plan; otherwise why it did not.
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
