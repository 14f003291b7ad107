//! `fit`: the training loop of a model.

use estimand_tensor::{Error, Mode, Result, warn};

use super::callback::Callbacks;
use super::evaluate::Evaluate;
use super::fit::Fit;
use super::history::{History, Logs};
use super::model::{Model, Place};
use super::programs::Running;
use super::source::{Source, no_batches};
use super::verbose::EpochLine;

impl Model {
    /// Trains the model. Returns the losses and metrics of each epoch.
    ///
    /// As in Keras, the numbers of an epoch are means over its batches, while the weights change;
    /// those of the validation are measured after the epoch.
    pub fn fit<'a>(&mut self, fit: impl Into<Fit<'a>>) -> Result<History> {
        let mut fit = fit.into();
        let place = |error: Error, model: &Model| error.context(format!("in fit of model `{}`", model.name()));
        self.check_compiled().and_then(|_| fit.check()).map_err(|error| place(error, self))?;
        let mut callbacks = Callbacks::new(std::mem::take(&mut fit.callbacks));
        self.run_fit(&fit, &mut callbacks).map_err(|error| place(error, self))
    }

    fn run_fit(&mut self, fit: &Fit<'_>, callbacks: &mut Callbacks<'_>) -> Result<History> {
        let (data, validation) = match fit.validation_split {
            Some(fraction) => fit.data.split(fraction).map(|(train, rest)| (train, Some(rest)))?,
            None => (fit.data.clone(), fit.validation.clone()),
        };
        let batches = data.batches(self, fit.batch_size, fit.shuffle)?;
        if batches.dataset.is_endless() && fit.steps_per_epoch.is_none() {
            return Err(Error::config("the dataset never ends").help("set steps_per_epoch"));
        }
        let classes = fit.classes()?;
        let n_steps = fit.steps_per_epoch.or(batches.n_batches);
        self.stop_training = false;
        let mut history = History::default();
        (self.place, self.resume) = (None, None);
        callbacks.on_train_begin(self)?;
        let mut resume = self.resume.take();
        let mut kept: Option<Source> = None;
        let mut last = Logs::new();
        if let Some(resume) = resume.as_mut().filter(|resume| fit.steps_per_epoch.is_some_and(|n| resume.batch >= n)) {
            (resume.epoch, resume.batch) = (resume.epoch + 1, 0);
        }
        for epoch in resume.as_ref().map_or(fit.initial_epoch, |resume| resume.epoch)..fit.epochs {
            let resumed = resume.take().unwrap_or_default();
            let source = match kept.take() {
                Some(source) => source,
                None => {
                    let place = resumed.place.unwrap_or(Place { epoch, ..Place::default() });
                    match self.open_at(&batches, Mode::Train, place, classes.as_deref())? {
                        Some(source) => source,
                        // A backup of the last batch of an epoch: the next epoch follows.
                        None if resumed.batch > 0 => continue,
                        None => return Err(no_batches()),
                    }
                }
            };
            self.check_restored()?;
            callbacks.on_epoch_begin(self, epoch)?;
            let mut line = EpochLine::begin(fit.verbose, epoch, fit.epochs, n_steps);
            let (source, mut logs, has_ended) =
                self.train_epoch(source, resumed.batch, fit.steps_per_epoch, callbacks, &mut line)?;
            // With a number of steps, the next epoch goes on with the same stream.
            kept = source.filter(|_| fit.steps_per_epoch.is_some());
            self.place = self.place.take().filter(|_| kept.is_some());
            if let Some(data) = validation.as_ref().filter(|_| (epoch + 1).is_multiple_of(fit.validation_freq)) {
                let size = fit.validation_batch_size.or(fit.batch_size);
                let spec = Evaluate::new(data.clone()).maybe_batch_size(size);
                let found = self.evaluate_with(&spec, callbacks)?;
                logs.extend(found.into_iter().map(|(name, value)| (format!("val_{name}"), value)));
            }
            callbacks.on_epoch_end(self, epoch, &mut logs)?;
            // TF: the progress bar and the history are the last callbacks.
            line.end(&logs);
            history.add(epoch, &logs);
            last = logs;
            if has_ended {
                warn!(
                    "The data ended before steps_per_epoch * epochs steps were done: training stops at epoch {epoch}"
                );
                break;
            }
            if self.stop_training {
                break;
            }
        }
        self.finalize_averages()?;
        callbacks.on_train_end(self, &last)?;
        Ok(history)
    }

    /// Trains on the batches of one epoch. Returns the source unless it has ended, the logs, and
    /// whether it ended before the asked number of steps.
    fn train_epoch(
        &mut self,
        mut source: Source,
        first: usize,
        steps: Option<usize>,
        callbacks: &mut Callbacks<'_>,
        line: &mut EpochLine,
    ) -> Result<(Option<Source>, Logs, bool)> {
        let (mut running, mut outputs, mut batch) = (Running::default(), Vec::new(), first);
        let mut has_ended = false;
        while steps.is_none_or(|n| batch < n) && !self.stop_training {
            let Some(mut fed) = source.next()? else {
                has_ended = true;
                break;
            };
            callbacks.on_train_batch_begin(self, batch)?;
            let place = self.place.get_or_insert_default();
            place.epoch = source.epoch;
            std::mem::swap(&mut place.position, &mut fed.after);
            source.program.run(&mut self.weights, &fed.feeds, &mut outputs)?;
            running.add(&source.program, &outputs, fed.batch().n_rows())?;
            source.recycle(fed);
            if callbacks.want_batch_logs() {
                let logs: Logs = running.values(&source.program)?.into_iter().collect();
                callbacks.on_train_batch_end(self, batch, &logs)?;
            }
            batch += 1;
            line.step(batch, || running.values(&source.program).ok());
        }
        if batch == 0 && first == 0 && !self.stop_training {
            return Err(no_batches());
        }
        let logs = running.values(&source.program)?.into_iter().collect();
        Ok(((!has_ended).then_some(source), logs, has_ended && steps.is_some()))
    }
}
