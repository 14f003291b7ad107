//! Training: the work before the first step.

use estimand_checkpoint::BundleReader;
use estimand_data::{Dataset, Position};
use estimand_tensor::{Error, ErrorKind, FeatureSpec, Mode, Result, warn};
use tracing::info;

use super::build::Opened;
use super::train_input::nothing_to_train_on;
use super::train_loop::{INPUT_ENDED, Run};
use super::train_spec::{Finished, TrainSpec};
use super::{Estimator, default_hooks};
use crate::hook::Stop;
use crate::input_fn::InputFn;
use crate::kept_rows::{KeptRows, TrainingRows};
use crate::model_folder::FolderLock;
use crate::model_folder::newest::{read_newest, recover_state};
use crate::model_folder::owner::Owner;
use crate::own_entries;
use crate::report::last_reason;
use crate::session::InputPlace;
use crate::unfinished::Unfinished;

impl Estimator {
    /// Trains, and returns why training ended. Resumes from the newest checkpoint of the model
    /// folder, at the exact next row of the input.
    pub fn train<'a>(&self, spec: impl Into<TrainSpec<'a>>) -> Result<Finished> {
        let mut spec = spec.into();
        spec.check()?;
        self.check_may_train()?;
        if let Some(finished) = self.is_done(spec.max_steps)? {
            return Ok(finished);
        }
        // The files read from here on must not change, so no other process may write checkpoints to
        // the folder.
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
        if !saves && default_hooks::saves(&built.spec) {
            // Begins again with the lock, and with all that a training with checkpoints keeps.
            spec.model_saves = true;
            return self.train(spec);
        }
        let report = spec.report.take();
        let input = saves.then(|| training_rows(&opened));
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
            run.hooks.restore(reader, |key| own_entries::hook_state(reader, key))?;
            run.running_metrics.restore(reader)?;
            run.requests.stop = own_entries::stop_reason(reader)?.filter(|_| run.goes_on).map(Stop::decided);
        }
        let n_rows = self.config.kept_rows;
        run.kept_rows = input.map(|input| KeptRows::begin(&self.model_dir, input, run.session.step, n_rows));
        if saves {
            self.description.write(&self.model_dir)?;
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

    /// Returns the result of a training that has no steps left to do.
    fn is_done(&self, max_steps: Option<u64>) -> Result<Option<Finished>> {
        let Some(max) = max_steps else { return Ok(None) };
        let (folder, missing) = (&self.model_dir, self.config.missing_state);
        let newest = read_newest(folder, missing, |prefix| own_entries::global_step(&BundleReader::open(prefix)?))?;
        // A killed run may have reached the step without notifying its listeners.
        let is_told = |step| Unfinished::of(folder, Some(step)).is_none();
        let is_past = |&(_, step): &(_, u64)| max < step || (max == step && is_told(step));
        let Some((_, step)) = newest.filter(is_past) else { return Ok(None) };
        let reason = format!("step {step} was reached before, and max_steps is {max}");
        info!("Skipping training since {reason}");
        Ok(Some(Finished { global_step: step, n_steps: 0, loss: None, reason }))
    }

    /// Writes the report. If that fails, the trained model is unaffected.
    fn write_report(&self, data: &Dataset) {
        let path = self.model_dir.join("report.html");
        let written = self.report().and_then(|report| report.examine(data)?.write_html(&path));
        match written {
            Ok(()) => info!("The report is in {}", path.display()),
            Err(error) => warn!("The report could not be written: {error}"),
        }
    }

    /// Checks that this process may train: only chief and workers do, and for now only one of them.
    pub(crate) fn check_may_train(&self) -> Result<()> {
        let Some(cluster) = &self.config.cluster else { return Ok(()) };
        let refused = |message: String, help: &str| Err(Error::new(ErrorKind::Cluster, message).help(help));
        match cluster.task_type() {
            "evaluator" => refused(
                "TF_CONFIG makes this process evaluator, which does not train".to_string(),
                "an evaluator calls Estimator::train_and_evaluate, or runs the schedule continuous_eval of its \
                 Experiment",
            ),
            "ps" => refused(
                "TF_CONFIG makes this process ps, and this version has no parameter servers: it trains in one process"
                    .to_string(),
                "leave out the ps tasks of TF_CONFIG, and start no process for them",
            ),
            _ if cluster.is_distributed() => refused(
                format!("TF_CONFIG names {} workers; this version trains with one", cluster.n_workers()),
                "unset TF_CONFIG, or name this process alone in it",
            ),
            _ => Ok(()),
        }
    }

    /// Returns the seed of the configuration, or of the checkpoint, or a new one.
    fn seed(&self, reader: Option<&BundleReader>) -> Result<u64> {
        let stored = reader.map(|reader| own_entries::own_number(reader, "seed")).transpose()?.flatten();
        let seed = match (self.config.tf_random_seed, stored) {
            (Some(seed), Some(stored)) if seed != stored => {
                warn!(
                    "tf_random_seed is {seed}; the checkpoint was trained with {stored}. The program's value is used"
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

    /// Opens the input where the last run stopped, if it is the same input; otherwise at its
    /// beginning.
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
            // An input that was read to its end has no place to lose. If the last step had a
            // checkpoint before the end was found, only the log knows.
            let has_ended = || last_reason(&self.model_dir).is_some_and(|reason| reason.starts_with(INPUT_ENDED));
            if !place.position.is_beginning() && !has_ended() {
                warn!("The input is read from its beginning: {}", error.message());
            }
            place.position = Position::default();
        }
        let opened = self.open_input(data, &cx, &place.position)?;
        if opened.first.is_none() && !opened.is_late && !goes_on && place.position != Position::default() {
            // The checkpoint was saved at the last batch, and its run ended with the input. This
            // run reads the next epoch.
            let next = InputPlace { epoch: place.epoch + 1, position: Position::default() };
            return self.open_training_input(input, seed, next, goes_on);
        }
        if opened.first.is_none() && !opened.is_late && place.position.is_beginning() {
            return Err(nothing_to_train_on());
        }
        Ok((opened, place))
    }
}

/// What is known of the input before the first step.
fn training_rows(opened: &Opened) -> TrainingRows {
    let mut features = opened.spec.features.clone();
    // The first batch does not tell which of its axes are padded.
    if let Ok(planned) = opened.data.spec() {
        for (name, spec) in planned {
            if matches!(spec, FeatureSpec::Padded { .. }) && features.contains_key(&name) {
                features.insert(name, spec);
            }
        }
    }
    // An input whose files cannot be listed has been opened nevertheless.
    TrainingRows::new(features, &opened.data.files().unwrap_or_default())
}

fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The standard library's only source of randomness. 31 bits, so that it is a valid TensorFlow
    // seed too.
    RandomState::new().build_hasher().finish() >> 33
}
