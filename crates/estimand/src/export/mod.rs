//! Exports: a model as a SavedModel that TensorFlow, TensorFlow Serving and this library load.
//!
//! `receiver.rs` has the inputs of an export, `signatures.rs` the ways to call it, and `folder.rs`
//! the folder, which appears only when it is complete. `exporters.rs` exports during a training.
//! `modes/` exports graphs for training and evaluation too.

mod exporters;
mod folder;
mod modes;
mod receiver;
mod signatures;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_graph::{Body, VarId};
use estimand_tensor::{Array, Error, Mode, Result};
use estimand_tf::saved_model_writer::{SERVE, SignatureOf, SignedGraph, meta_graph, write};
use tracing::info;

use crate::Estimator;
use crate::model_fn::GLOBAL_STEP;
use crate::model_folder::Which;
pub use exporters::{BestExporter, FinalExporter, LatestExporter};
use folder::Unpublished;
pub use modes::{ExportAllSpec, MetricOps, SupervisedInputReceiver, SupervisedOutput, SupervisedReceiver};
pub use receiver::{Receiver, ServingInputReceiver};

/// What to export, and from which checkpoint. A [`Receiver`] converts to it.
#[derive(Clone, Debug)]
#[must_use]
pub struct ExportSpec {
    receiver: Receiver,
    checkpoint: Which,
    assets_extra: Vec<(PathBuf, PathBuf)>,
}

impl From<Receiver> for ExportSpec {
    fn from(receiver: Receiver) -> ExportSpec {
        ExportSpec::new(receiver)
    }
}

impl ExportSpec {
    /// Exports the newest checkpoint.
    pub fn new(receiver: Receiver) -> ExportSpec {
        ExportSpec { receiver, checkpoint: Which::Newest, assets_extra: Vec::new() }
    }

    /// Sets the checkpoint to export. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> ExportSpec {
        self.checkpoint = Which::At(path.into());
        self
    }

    /// Exports the checkpoint of the best evaluation during training. If a training had several
    /// evaluations, it is that of the first.
    pub fn best(mut self) -> ExportSpec {
        self.checkpoint = Which::Best(None);
        self
    }

    /// Returns an error if it names a checkpoint: an exporter is told which one to export.
    fn check_for_exporter(&self) -> Result<()> {
        match self.checkpoint {
            Which::Newest => Ok(()),
            _ => {
                Err(Error::config("the spec of an exporter names a checkpoint; it exports the one that was evaluated")
                    .help("leave out checkpoint(..) and best()"))
            }
        }
    }

    /// Copies a file to a path below `assets.extra`, which TensorFlow ignores.
    pub fn asset_extra(mut self, to: impl Into<PathBuf>, source: impl Into<PathBuf>) -> ExportSpec {
        self.assets_extra.push((to.into(), source.into()));
        self
    }
}

impl Estimator {
    /// Exports the model as a SavedModel to `base/SECONDS`, where SECONDS is the time in seconds
    /// since 1970, and returns that folder. It appears only when it is complete; a failed export
    /// leaves nothing.
    ///
    /// The same model and checkpoint give the same bytes. See [`Receiver`] for an example.
    pub fn export_saved_model(&self, base: impl AsRef<Path>, spec: impl Into<ExportSpec>) -> Result<PathBuf> {
        let spec = spec.into();
        let sources = spec.receiver.0.iter();
        let mut built = sources.map(|source| Built::new(self, source)).collect::<Result<Vec<_>>>()?;
        let first = built.first_mut().ok_or_else(|| Error::internal("a receiver without a source"))?;
        let initial_values = std::mem::take(&mut first.initial_values);
        let session = self.session_to_export(first.body.clone(), initial_values, &spec.checkpoint)?;
        let graphs: Vec<SignedGraph<'_>> = built
            .iter()
            .map(|built| {
                let (signatures, variables) = (built.signatures.clone(), built.step.into_iter().collect());
                SignedGraph { body: &built.body, signatures, variables }
            })
            .collect();
        let serve = meta_graph(&[SERVE], &graphs)?;
        let export = Unpublished::new(base.as_ref())?;
        write(export.path(), &[serve], |name| {
            session
                .value(name)
                .map_err(|e| e.context("in the export").help("the signatures of a model must use the same variables"))
        })?;
        for (to, source) in &spec.assets_extra {
            export.copy_extra(to, source)?;
        }
        let path = export.publish()?;
        info!("SavedModel written to: {}", path.display());
        Ok(path)
    }
}

/// The model with one set of inputs.
struct Built {
    body: Arc<Body>,
    initial_values: Vec<(String, Array)>,
    signatures: Vec<SignatureOf>,
    /// The variable that counts steps. It is exported, though no signature needs it.
    step: Option<VarId>,
}

impl Built {
    fn new(estimator: &Estimator, source: &receiver::Source) -> Result<Built> {
        let place = |e: Error| e.context("in the receiver of the export");
        let (graph, spec, receiver) = estimator.build_for(Mode::Predict, |graph| {
            let receiver = (source.make)(graph).map_err(place)?;
            receiver.check(graph).map_err(place)?;
            Ok(receiver)
        })?;
        let signatures = signatures::of(&spec, &receiver, source.outputs)?;
        let body = Arc::new(graph.body().clone());
        let step = body.variables().iter().find(|(_, spec)| spec.name == GLOBAL_STEP).map(|(id, _)| id);
        Ok(Built { body, initial_values: spec.initial_values, signatures, step })
    }
}
