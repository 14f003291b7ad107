//! What is known of each version of a model: [`VersionStatus`].

use std::collections::BTreeMap;
use std::time::Instant;

use crate::status::{Code, Status};

/// The number of ended versions that are remembered.
const ENDED_KEPT: usize = 16;

/// The state of a version, with TensorFlow Serving's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum State {
    /// It has been seen.
    Start = 10,
    /// It is being loaded.
    Loading = 20,
    /// It answers requests.
    Available = 30,
    /// It answers only requests that have begun.
    Unloading = 40,
    /// It is not in memory: it could not be loaded, or has been dropped.
    End = 50,
}

impl State {
    /// TensorFlow Serving's spelling, such as `AVAILABLE`.
    pub fn name(self) -> &'static str {
        match self {
            State::Start => "START",
            State::Loading => "LOADING",
            State::Available => "AVAILABLE",
            State::Unloading => "UNLOADING",
            State::End => "END",
        }
    }
}

/// The state of a version, and why it could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionStatus {
    /// The number of the version.
    pub version: i64,
    /// Its state.
    pub state: State,
    /// The reason of a failure.
    pub error: Option<Status>,
}

/// A failed attempt to load a version.
#[derive(Clone)]
pub(super) struct Failure {
    /// The files as they were. Other files are tried at once.
    pub(super) fingerprint: u64,
    pub(super) n_tries: u32,
    pub(super) last: Instant,
}

#[derive(Clone)]
struct Entry {
    state: State,
    error: Option<Status>,
    failure: Option<Failure>,
}

/// The states of a model's versions.
#[derive(Clone, Default)]
pub(super) struct Statuses {
    entries: BTreeMap<i64, Entry>,
}

impl Statuses {
    pub(super) fn set(&mut self, version: i64, state: State) {
        self.entries.insert(version, Entry { state, error: None, failure: None });
        self.forget();
    }

    pub(super) fn fail(&mut self, version: i64, message: &str, failure: Failure) {
        let error = Some(Status::new(Code::FailedPrecondition, message));
        self.entries.insert(version, Entry { state: State::End, error, failure: Some(failure) });
        self.forget();
    }

    pub(super) fn failure(&self, version: i64) -> Option<&Failure> {
        self.entries.get(&version)?.failure.as_ref()
    }

    /// Lets versions that could not be loaded be tried again at once.
    pub(super) fn forgive(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.failure = None);
    }

    /// The versions in a state.
    pub(super) fn in_state(&self, state: State) -> Vec<i64> {
        self.entries.iter().filter(|(_, entry)| entry.state == state).map(|(&version, _)| version).collect()
    }

    /// The reason why the newest version that failed did so.
    pub(super) fn newest_failure(&self) -> Option<String> {
        let (version, error) =
            self.entries.iter().rev().find_map(|(version, entry)| Some((version, entry.error.as_ref()?)))?;
        Some(format!("version {version} could not be loaded: {}", error.message))
    }

    pub(super) fn all(&self) -> Vec<VersionStatus> {
        let status = |(&version, entry): (&i64, &Entry)| VersionStatus {
            version,
            state: entry.state,
            error: entry.error.clone(),
        };
        self.entries.iter().rev().map(status).collect()
    }

    /// Removes old entries of versions that have ended. Models may be swapped for years.
    fn forget(&mut self) {
        let ended = self.in_state(State::End);
        for version in ended.iter().take(ended.len().saturating_sub(ENDED_KEPT)) {
            self.entries.remove(version);
        }
    }
}
