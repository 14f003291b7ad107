//! Initial values of a model whose folder has no checkpoint.

use std::sync::Arc;

use estimand_graph::Body;
use estimand_tensor::{Array, Error, Mode, Result, warn};

use super::Estimator;
use crate::manifest::Meant;
use crate::model_folder::Which;
use crate::session::TrainSession;

/// How to treat a model whose weights nobody has set: neither a checkpoint, nor a warm start, nor
/// the model function.
#[derive(Clone, Copy)]
pub(super) enum FreshWeights {
    Allow,
    Warn,
    Refuse,
}

impl Estimator {
    /// Checks the weights of a model whose folder has no checkpoint.
    pub(super) fn check_weights(
        &self,
        session: &TrainSession,
        initial_values: &[(String, Array)],
        fresh: FreshWeights,
    ) -> Result<()> {
        if self.warm_start_from.is_some() || !initial_values.is_empty() || !session.has_weights() {
            return Ok(());
        }
        let folder = self.model_dir.display();
        match fresh {
            FreshWeights::Allow => Ok(()),
            FreshWeights::Warn => {
                warn!(
                    "The model was never trained: there is no checkpoint in {folder}, and its initial weights are \
                     evaluated. Check model_dir, or train first"
                );
                Ok(())
            }
            FreshWeights::Refuse => Err(Error::config(format!(
                "the model was never trained: there is no checkpoint in {folder}, so it would predict with its \
                 initial weights"
            ))
            .help(
                "check model_dir, or train first; PredictSpec::untrained() predicts with initial weights, as \
                 TensorFlow does",
            )),
        }
    }

    /// Makes a session of a model with the weights of a checkpoint, or else with those of the warm
    /// start or the model function. It is an error if nobody has set the weights.
    pub(crate) fn session_to_export(
        &self,
        body: Arc<Body>,
        initial_values: Vec<(String, Array)>,
        which: &Which,
    ) -> Result<TrainSession> {
        let meant = Meant::new(&body, Mode::Predict, None, &self.config);
        let mut session = TrainSession::new(body, meant, &self.config, 0)?;
        if self.restore(&mut session, which)?.is_none() {
            if self.warm_start_from.is_none() && initial_values.is_empty() && session.has_weights() {
                let folder = self.model_dir.display();
                return Err(Error::config(format!("there is no checkpoint in {folder} to export"))
                    .help("check model_dir, or train first"));
            }
            self.initialize(&mut session, initial_values)?;
        }
        Ok(session)
    }

    /// Sets the initial values of the model function, and then those of the warm start.
    pub(super) fn initialize(&self, session: &mut TrainSession, initial_values: Vec<(String, Array)>) -> Result<()> {
        session.place()?;
        for (name, value) in initial_values {
            session.set_value(&name, &value).map_err(|e| e.context("in the initial values of the model"))?;
        }
        match &self.warm_start_from {
            Some(settings) => settings.apply(session),
            None => Ok(()),
        }
    }
}
