//! Training: what to train on and for how long, and what happens before the first step.

use std::fmt;

use estimand_data::{Dataset, Position};
use estimand_graph::checkpoint::BundleReader;
use estimand_tensor::{Error, ErrorKind, Mode, Result};
use tracing::{info, warn};

use super::Estimator;
use super::build::Opened;
use super::train_loop::Run;
use crate::RunConfig;
use crate::hook::{CheckpointListener, Hook, Stop};
use crate::input_fn::InputFn;
use crate::model_folder::FolderLock;
use crate::model_folder::newest::{read_newest, recover_state};
use crate::model_folder::owner::Owner;
use crate::own_entries;
use crate::session::InputPlace;
use crate::unfinished::Unfinished;

/// What to train on, and for how long.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) is one by itself: training then ends with the input.
pub struct TrainSpec<'a> {
    pub(super) input: Box<dyn InputFn + 'a>,
    pub(crate) steps: Option<u64>,
    pub(crate) max_steps: Option<u64>,
    pub(super) hooks: Vec<Box<dyn Hook + 'a>>,
    pub(super) listeners: Vec<Box<dyn CheckpointListener + 'a>>,
    report: Option<Dataset>,
}

impl<'a> TrainSpec<'a> {
    /// Trains on an input until it ends.
    pub fn new(input: impl InputFn + 'a) -> TrainSpec<'a> {
        let (hooks, listeners) = (Vec::new(), Vec::new());
        TrainSpec { input: Box::new(input), steps: None, max_steps: None, hooks, listeners, report: None }
    }

    /// Trains for so many steps more. By default, until the input ends. If the run is killed before
    /// its end, the next call with the same number does the steps that are left of it.
    pub fn steps(mut self, n: u64) -> TrainSpec<'a> {
        self.steps = Some(n);
        self
    }

    /// Trains until the global step is this. By default, until the input ends.
    pub fn max_steps(mut self, step: u64) -> TrainSpec<'a> {
        self.max_steps = Some(step);
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl Hook + 'a) -> TrainSpec<'a> {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Adds a listener that is told of every checkpoint.
    pub fn listener(mut self, listener: impl CheckpointListener + 'a) -> TrainSpec<'a> {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Writes the [report](crate::report) to `report.html` in the model folder, however the training ends, with a look at the columns of
    /// these rows: those of the input, before they are repeated and batched. By default, none is written.
    pub fn report(mut self, data: &Dataset) -> TrainSpec<'a> {
        self.report = Some(data.clone());
        self
    }

    /// Whether anything asks for checkpoints. A training without them, as that of a worker beside the
    /// chief, needs no lock.
    pub(super) fn saves_checkpoints(&self, config: &RunConfig) -> bool {
        !config.save_checkpoints.is_never() || self.hooks.iter().any(|hook| hook.saves_checkpoints())
    }

    /// The steps that are asked for and the one that they end at, if they are counted. Where a run
    /// that was killed goes on, those are left that it had not done.
    fn count_steps(&mut self, step: u64, killed: Option<&Unfinished>) -> Option<(u64, u64)> {
        let n = self.steps?;
        match killed.and_then(|run| run.last_step(n)).filter(|&last| last >= step) {
            Some(last) => {
                (self.steps, self.max_steps) = (None, Some(last));
                Some((n, last))
            }
            None => Some((n, step.saturating_add(n))),
        }
    }

    fn check(&self) -> Result<()> {
        match (self.steps, self.max_steps) {
            (Some(_), Some(_)) => Err(Error::config("both steps and max_steps").help("give one of the two")),
            (Some(0), _) => Err(Error::config("train for 0 steps; expected at least 1")),
            (_, Some(0)) => Err(Error::config("max_steps of 0; expected at least 1")),
            _ => Ok(()),
        }
    }
}

impl From<Dataset> for TrainSpec<'_> {
    fn from(data: Dataset) -> Self {
        TrainSpec::new(data)
    }
}

impl<'a> From<&'a Dataset> for TrainSpec<'a> {
    fn from(data: &'a Dataset) -> Self {
        TrainSpec::new(data)
    }
}

/// How a training ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The number of training steps done in all.
    pub global_step: u64,
    /// The steps of this call.
    pub n_steps: u64,
    /// The loss of the last step; `None` if there was none.
    pub loss: Option<f32>,
    /// Why it ended.
    pub reason: String,
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "training ended at step {}, after {} steps: {}", self.global_step, self.n_steps, self.reason)?;
        match self.loss {
            Some(loss) => write!(f, "; loss {loss}"),
            None => Ok(()),
        }
    }
}

impl Estimator {
    /// Trains, and returns why it ended. Goes on from the newest checkpoint of the model folder, at the very next row of the input.
    pub fn train<'a>(&self, spec: impl Into<TrainSpec<'a>>) -> Result<Finished> {
        let mut spec = spec.into();
        spec.check()?;
        self.check_may_train()?;
        if let Some(finished) = self.is_done(spec.max_steps)? {
            return Ok(finished);
        }
        // What is read from here on must not change: nobody else writes checkpoints to the folder.
        let saves = spec.saves_checkpoints(&self.config);
        let lock = if saves { self.config.folder_lock } else { FolderLock::Ignore };
        let owner = Owner::take(&self.model_dir, lock)?;
        recover_state(&self.model_dir, self.config.missing_state)?;
        let checkpoint = self.latest_checkpoint()?;
        if let Some(finished) = self.is_done(spec.max_steps)? {
            return Ok(finished);
        }
        let reader = checkpoint.as_ref().map(BundleReader::open).transpose()?;
        let saved_step = reader.as_ref().map(own_entries::global_step).transpose()?;
        let killed = saves.then(|| Unfinished::of(&self.model_dir, saved_step)).flatten();
        let seed = self.seed(reader.as_ref())?;
        let place = reader.as_ref().map(InputPlace::read).transpose()?.unwrap_or_default();
        let (opened, place) = self.open_training_input(&*spec.input, seed, place, killed.is_some())?;
        let built = self.build(Mode::Train, &opened.spec)?;
        let report = spec.report.take();
        let steps = spec.count_steps(saved_step.unwrap_or(0), killed.as_ref());
        let mut run = Run::new(self, owner, built, opened, spec, seed)?;
        run.goes_on = killed.is_some();
        match &checkpoint {
            Some(prefix) => {
                info!("Restoring parameters from {}", prefix.display());
                run.session.restore(prefix)?;
                run.saver.is_saved(run.session.step);
            }
            None => run.initialize(self)?,
        }
        run.session.input = place;
        if let Some(reader) = &reader {
            run.hooks.restore(|key| own_entries::hook_state(reader, key))?;
            run.requests.stop = own_entries::stop_reason(reader)?.filter(|_| run.goes_on).map(Stop::decided);
        }
        if saves {
            run.unfinished = Some(Unfinished::begin(&self.model_dir, saved_step, killed, steps)?);
        }
        self.forget_resident();
        let ended = run.train();
        if let Some(data) = report {
            self.write_report(&data);
        }
        let finished = ended?;
        run.unfinished.take().map_or(Ok(()), Unfinished::end)?;
        Ok(finished)
    }

    /// How a training ends for which nothing is left to do.
    fn is_done(&self, max_steps: Option<u64>) -> Result<Option<Finished>> {
        let Some(max) = max_steps else { return Ok(None) };
        let (folder, missing) = (&self.model_dir, self.config.missing_state);
        let newest = read_newest(folder, missing, |prefix| own_entries::global_step(&BundleReader::open(prefix)?))?;
        // A killed run may have reached the step and not told of it.
        let is_told = |step| Unfinished::of(folder, Some(step)).is_none();
        let is_past = |&(_, step): &(_, u64)| max < step || (max == step && is_told(step));
        let Some((_, step)) = newest.filter(is_past) else { return Ok(None) };
        let reason = format!("step {step} was reached before, and max_steps is {max}");
        info!("Skipping training since {reason}");
        Ok(Some(Finished { global_step: step, n_steps: 0, loss: None, reason }))
    }

    /// A report that cannot be written takes nothing from what was learnt.
    fn write_report(&self, data: &Dataset) {
        let path = self.model_dir.join("report.html");
        let written = self.report().and_then(|report| report.examine(data)?.write_html(&path));
        match written {
            Ok(()) => info!("The report is in {}", path.display()),
            Err(error) => warn!("There is no report: {error}"),
        }
    }

    /// Only chief and workers train, and for now only one of them.
    fn check_may_train(&self) -> Result<()> {
        let Some(cluster) = &self.config.cluster else { return Ok(()) };
        let refused = |message: String, help: &str| Err(Error::new(ErrorKind::Cluster, message).help(help));
        match cluster.task_type() {
            task @ ("evaluator" | "ps") => refused(
                format!("TF_CONFIG makes this process {task}, which does not train"),
                "an evaluator and a parameter server run train_and_evaluate",
            ),
            _ if cluster.is_distributed() => refused(
                format!("TF_CONFIG names {} workers; this version trains with one", cluster.n_workers()),
                "unset TF_CONFIG, or name this process alone in it",
            ),
            _ => Ok(()),
        }
    }

    /// The seed of the configuration, of the checkpoint, or a new one.
    fn seed(&self, reader: Option<&BundleReader>) -> Result<u64> {
        let stored = reader.map(|reader| own_entries::own_number(reader, "seed")).transpose()?.flatten();
        let seed = match (self.config.tf_random_seed, stored) {
            (Some(seed), Some(stored)) if seed != stored => {
                warn!(
                    "tf_random_seed is {seed}; the checkpoint was trained with {stored}. The value of the program wins"
                );
                seed
            }
            (Some(seed), _) | (None, Some(seed)) => seed,
            (None, None) => {
                let seed = drawn_seed();
                info!("tf_random_seed is not set; {seed} was drawn and is kept in the checkpoint");
                seed
            }
        };
        Ok(seed)
    }

    /// The input where it was left, if it is the same; otherwise from its beginning.
    fn open_training_input(
        &self,
        input: &dyn InputFn,
        seed: u64,
        place: InputPlace,
        goes_on: bool,
    ) -> Result<(Opened, InputPlace)> {
        let cx = self.input_context(Mode::Train, seed, place.epoch);
        let data = self.dataset(input, cx)?;
        let mut place = place;
        if let Err(error) = data.check_position(&place.position) {
            warn!("the input is read from its beginning: {}", error.message());
            place.position = Position::default();
        }
        let opened = self.open(data, &cx, &place.position)?;
        if opened.first.is_none() && !goes_on && place.position != Position::default() {
            // The checkpoint is of the last batch, and the run that saved it ended with its input:
            // this one has another epoch.
            let next = InputPlace { epoch: place.epoch + 1, position: Position::default() };
            return self.open_training_input(input, seed, next, goes_on);
        }
        Ok((opened, place))
    }
}

fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The standard library's only source of randomness; 31 bits, so that it is a TensorFlow seed too.
    RandomState::new().build_hasher().finish() >> 33
}
