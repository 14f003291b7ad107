//! The batches of a training: prepared ahead, and reopened after a transient error.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use estimand_data::{Dataset, InputContext, Position, Stream};
use estimand_engine::Compiled;
use estimand_tensor::{Batch, Error, ErrorKind, Result, warn};

use super::build::Opened;
use crate::RunConfig;
use crate::feeding::{BatchNumbers, Binding, Fed, Feeder};
use crate::from_input::FromBeginning;
use crate::signal::Guard;

/// The pause before the first retry. Each following pause is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The input of a training.
pub(super) struct TrainInput {
    data: Dataset,
    cx: InputContext,
    binding: Binding,
    step: Arc<Compiled>,
    n_threads: usize,
    n_retries: u32,
    feeder: Feeder,
    /// Whether the input is opened with its first batch, which was not read yet.
    is_late: bool,
}

/// The next event of the input.
#[allow(
    clippy::large_enum_variant,
    reason = "it is handed over once and never kept; a box would be an allocation in every step"
)]
pub(super) enum Next {
    Batch(Fed),
    End,
    /// A signal arrived during the wait before a retry.
    Interrupted,
}

impl TrainInput {
    pub(super) fn new(opened: Opened, binding: Binding, step: Arc<Compiled>, config: &RunConfig) -> TrainInput {
        let Opened { data, cx, stream, first, is_late, .. } = opened;
        let n_threads = config.n_input_threads();
        let feeder = Feeder::new(first, stream, binding.clone(), step.clone(), n_threads);
        TrainInput { data, cx, binding, step, n_threads, n_retries: config.input_retries, feeder, is_late }
    }

    /// Returns a position together with the names of its pipeline stages.
    pub(super) fn marked(&self, position: &Position) -> Position {
        self.data.marked(position)
    }

    /// Looks for NaN and infinite values in a batch.
    pub(super) fn numbers(&self, fed: &Fed) -> BatchNumbers {
        self.binding.numbers(fed)
    }

    /// Takes back feeds that a step no longer needs.
    pub(super) fn recycle(&mut self, fed: Fed) {
        self.feeder.recycle(fed);
    }

    /// Returns the next batch after `behind`, the position of the last trained batch.
    #[inline]
    pub(super) fn next(&mut self, behind: &Position, signals: &Guard) -> Result<Next> {
        match self.feeder.next() {
            Ok(Some(fed)) => {
                self.is_late = false;
                Ok(Next::Batch(fed))
            }
            Ok(None) if self.is_late && behind.is_beginning() => Err(nothing_to_train_on()),
            Ok(None) => Ok(Next::End),
            Err(error) => self.retry(error, behind, signals),
        }
    }

    /// Opens the input at the beginning of this epoch if it ended before its first batch: the
    /// checkpoint was saved at the last one. Returns whether it did. Inputs that are opened before
    /// the session was created are checked there.
    pub(super) fn goes_on_in(&mut self, epoch: u64) -> Result<bool> {
        if !std::mem::take(&mut self.is_late) {
            return Ok(false);
        }
        self.cx.epoch = epoch;
        self.reopen(&Position::default())?;
        Ok(true)
    }

    /// Reopens the input if the error is transient. The model is complete in memory, so no step is
    /// lost. TensorFlow goes back to the last checkpoint.
    fn retry(&mut self, error: Error, behind: &Position, signals: &Guard) -> Result<Next> {
        let n_retries = self.n_retries;
        let found = retried(error, n_retries, signals, || self.reopen(behind).and_then(|()| self.feeder.next()))?;
        Ok(match found {
            Some(Some(fed)) => Next::Batch(fed),
            Some(None) => Next::End,
            None => Next::Interrupted,
        })
    }

    fn reopen(&mut self, behind: &Position) -> Result<()> {
        let stream = self.data.open(&self.cx, behind)?;
        self.feeder = Feeder::new(None, stream, self.binding.clone(), self.step.clone(), self.n_threads);
        Ok(())
    }
}

/// The batches of the input once more, from its beginning. Those of the training stay as they are.
pub(super) struct Anew<'a> {
    input: &'a TrainInput,
    signals: &'a Guard,
    stream: Option<Box<dyn Stream>>,
    /// Where the next batch begins.
    place: Position,
}

impl<'a> Anew<'a> {
    pub(super) fn new(input: &'a TrainInput, signals: &'a Guard) -> Anew<'a> {
        Anew { input, signals, stream: None, place: Position::default() }
    }

    fn pull(&mut self) -> Result<Option<Batch>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.input.data.open(&self.input.cx, &self.place)?),
        };
        let Some(item) = stream.pull(1)? else { return Ok(None) };
        self.place = item.after;
        Ok(Some(item.batch))
    }
}

impl FromBeginning for Anew<'_> {
    fn next(&mut self) -> Result<Option<Batch>> {
        let interrupted = || {
            let text = "training was interrupted before its first step, while initial values were chosen";
            Error::new(ErrorKind::Interrupted, text).help("run the program again")
        };
        if self.signals.requested().is_some() {
            return Err(interrupted());
        }
        let (n_retries, signals) = (self.input.n_retries, self.signals);
        match self.pull() {
            Ok(batch) => Ok(batch),
            Err(error) => {
                let again = || {
                    self.stream = None;
                    self.pull()
                };
                retried(error, n_retries, signals, again)?.ok_or_else(interrupted)
            }
        }
    }

    fn restart(&mut self) {
        (self.stream, self.place) = (None, Position::default());
    }
}

/// Reads again after a transient error, up to `n_retries` times, each time after a longer pause.
/// `None` if a signal arrived meanwhile.
fn retried<T>(
    mut error: Error,
    n_retries: u32,
    signals: &Guard,
    mut read: impl FnMut() -> Result<T>,
) -> Result<Option<T>> {
    let mut pause = FIRST_PAUSE;
    for retry in 1..=n_retries {
        if !error.is_transient() {
            return Err(error);
        }
        warn!("The input is opened again in {pause:?}, retry {retry} of {n_retries}: {}", error.message());
        if !wait(pause, signals) {
            return Ok(None);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        match read() {
            Ok(found) => return Ok(Some(found)),
            Err(again) => error = again,
        }
    }
    Err(match (error.is_transient(), n_retries) {
        (true, 0) => error.help("the error may be temporary: set RunConfig::input_retries to open the input again"),
        (true, n) => error.context(format!("after {n} retries")),
        (false, _) => error,
    })
}

/// Waits for a time. Returns whether no signal arrived meanwhile.
fn wait(pause: Duration, signals: &Guard) -> bool {
    let started = Instant::now();
    while started.elapsed() < pause {
        if signals.requested().is_some() {
            return false;
        }
        thread::sleep(Duration::from_millis(20).min(pause));
    }
    true
}

/// The error of an input without a batch.
pub(super) fn nothing_to_train_on() -> Error {
    Error::config("nothing to train on: the input has no batch").help(
        "check the input's files, its filters and its shard; `drop_remainder` leaves out a last batch that is not full",
    )
}
