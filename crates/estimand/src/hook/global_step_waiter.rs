//! Delays a training until another one has reached a step.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Error, ErrorKind, Result};
use tracing::info;

use super::{Hook, HookContext};
use crate::model_folder::MissingState;
use crate::model_folder::newest::read_newest;
use crate::own_entries;
use crate::signal::Guard;

/// The period at which the other training's step is read.
const POLL: Duration = Duration::from_millis(500);
/// The progress of the other training is logged after more than this number of steps, and after the
/// time below.
const TELL_STEPS: u64 = 1000;
const TELL_TIME: Duration = Duration::from_secs(60);

/// Delays the first step until the global step has reached a number.
///
/// Processes share only the model folder, so the step is that of its newest checkpoint, read every
/// half second. The training then begins with the variables of that checkpoint. Ctrl-C and SIGTERM
/// end the wait.
///
/// ```no_run
/// use estimand::hook::GlobalStepWaiterHook;
/// use estimand::prelude::*;
///
/// # fn train(student: &Estimator, data: &Dataset) -> Result<()> {
/// // A student that begins once its teacher has learnt something.
/// student.train(TrainSpec::new(data).hook(GlobalStepWaiterHook::new(10_000).folder("teacher")))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GlobalStepWaiterHook {
    step: u64,
    folder: Option<PathBuf>,
    timeout: Option<Duration>,
}

impl GlobalStepWaiterHook {
    /// Waits for a step; 0 means no wait.
    pub fn new(wait_until_step: u64) -> GlobalStepWaiterHook {
        GlobalStepWaiterHook { step: wait_until_step, folder: None, timeout: None }
    }

    /// Waits for the checkpoints of another model, whose variables are not loaded. By default, for
    /// those of the model itself.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> GlobalStepWaiterHook {
        self.folder = Some(folder.into());
        self
    }

    /// Fails after this time. By default, it waits forever.
    pub fn timeout(mut self, timeout: Duration) -> GlobalStepWaiterHook {
        self.timeout = Some(timeout);
        self
    }

    /// Waits until a checkpoint has reached the step. Returns `false` if a signal ended the wait.
    fn wait(&self, folder: &Path) -> Result<bool> {
        let guard = Guard::install()?;
        let (started, mut told) = (Instant::now(), (Instant::now(), 0));
        let place = folder.display();
        info!("Waiting for global step {} of {place} before starting training.", self.step);
        loop {
            let newest = newest_step(folder);
            match &newest {
                Ok(Some(step)) if *step >= self.step => return Ok(true),
                _ if guard.requested().is_some() => return Ok(false),
                _ => {}
            }
            let step = newest.as_ref().ok().copied().flatten().unwrap_or(0);
            let status = match &newest {
                Err(error) => format!("Its newest checkpoint cannot be read: {}", error.message()),
                Ok(None) => "There is no checkpoint yet".to_string(),
                Ok(Some(_)) => format!("Current step is {step}"),
            };
            if self.timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
                let secs = started.elapsed().as_secs_f64();
                let message = format!("global step {} of {place} was not reached in {secs:.1} s. {status}", self.step);
                return Err(
                    Error::new(ErrorKind::Cluster, message).help("check that the process that trains there is running")
                );
            }
            if step.saturating_sub(told.1) > TELL_STEPS || told.0.elapsed() >= TELL_TIME {
                info!("Waiting for global step {} before starting training. {status}.", self.step);
                told = (Instant::now(), step);
            }
            thread::sleep(POLL);
        }
    }
}

/// Returns the step of the newest checkpoint of a folder.
fn newest_step(folder: &Path) -> Result<Option<u64>> {
    let step = |prefix: &Path| own_entries::global_step(&BundleReader::open(prefix)?);
    Ok(read_newest(folder, MissingState::UseNewest, step)?.map(|(_, step)| step))
}

impl Hook for GlobalStepWaiterHook {
    fn name(&self) -> &str {
        "global_step_waiter"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let is_there = self.folder.is_none() && cx.global_step() >= self.step;
        if self.step == 0 || is_there {
            return Ok(());
        }
        let folder = self.folder.clone().unwrap_or_else(|| cx.model_dir().to_path_buf());
        match self.wait(&folder)? {
            true if self.folder.is_some() => {}
            // Other processes have continued training, so the variables restored before the wait
            // are outdated.
            true => {
                read_newest(&folder, MissingState::UseNewest, |prefix| cx.session().restore(prefix))?;
            }
            false => cx.request_stop("waiting for a global step was interrupted"),
        }
        Ok(())
    }
}
