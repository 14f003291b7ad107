//! Exports with a graph for each mode: training, evaluation and prediction, in one SavedModel with
//! one set of variables.
//!
//! `receiver.rs` has the inputs of training and evaluation, `output.rs` their outputs.

mod output;
mod receiver;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_engine::saved_variables;
use estimand_graph::{Body, Value};
use estimand_tensor::{Array, Error, Mode, Result};
use estimand_tf::golden::Golden;
use estimand_tf::saved_model_writer::{
    EVAL, SERVE, SignatureOf, SignedGraph, TRAIN, Tagged, WrittenGraph, meta_graphs,
};
use tracing::info;

use super::folder::Unpublished;
use super::{Built, Frozen, Receiver, Rows, Written, write_values};
use crate::manifest::{Manifest, listed};
use crate::model_folder::Which;
use crate::{Estimator, TrainSession};
pub use output::{MetricOps, SupervisedOutput};
pub use receiver::{SupervisedInputReceiver, SupervisedReceiver};

/// Which modes to export, each with its receiver, and from which checkpoint.
///
/// ```
/// use estimand::export::{ExportAllSpec, Receiver, SupervisedReceiver};
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-modes-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").batch(4);
/// let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.join("model")).build()?;
/// model.train(data.repeat(100))?;
///
/// let modes = ExportAllSpec::new()
///     .train(SupervisedReceiver::like(&data)?)
///     .eval(SupervisedReceiver::like(&data)?)
///     .predict(Receiver::like(&data)?);
/// let export = model.experimental_export_all_saved_models(folder.join("export"), modes)?;
/// assert!(export.join("saved_model.pb").is_file());
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ExportAllSpec {
    train: Option<SupervisedReceiver>,
    eval: Option<SupervisedReceiver>,
    predict: Option<Receiver>,
    checkpoint: Which,
    assets_extra: Vec<(PathBuf, PathBuf)>,
    with_rows: bool,
}

impl Default for ExportAllSpec {
    fn default() -> ExportAllSpec {
        ExportAllSpec {
            train: None,
            eval: None,
            predict: None,
            checkpoint: Which::default(),
            assets_extra: Vec::new(),
            with_rows: true,
        }
    }
}

impl ExportAllSpec {
    /// Exports the newest checkpoint, without a mode.
    pub fn new() -> ExportAllSpec {
        ExportAllSpec::default()
    }

    /// Adds a graph with the tag `train`. TensorFlow can train it.
    pub fn train(mut self, receiver: SupervisedReceiver) -> ExportAllSpec {
        self.train = Some(receiver);
        self
    }

    /// Adds a graph with the tag `eval`. TensorFlow can compute its metrics.
    pub fn eval(mut self, receiver: SupervisedReceiver) -> ExportAllSpec {
        self.eval = Some(receiver);
        self
    }

    /// Adds a graph with the tag `serve`, as
    /// [`export_saved_model`](Estimator::export_saved_model) does.
    pub fn predict(mut self, receiver: Receiver) -> ExportAllSpec {
        self.predict = Some(receiver);
        self
    }

    /// Sets the checkpoint to export. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> ExportAllSpec {
        self.checkpoint = Which::At(path.into());
        self
    }

    /// Exports the checkpoint of the best evaluation during training. If a training had several
    /// evaluations, it is that of the first.
    pub fn best(mut self) -> ExportAllSpec {
        self.checkpoint = Which::Best(None);
        self
    }

    /// Copies a file to a path below `assets.extra`, which TensorFlow ignores.
    pub fn asset_extra(mut self, to: impl Into<PathBuf>, source: impl Into<PathBuf>) -> ExportAllSpec {
        self.assets_extra.push((to.into(), source.into()));
        self
    }

    /// Leaves the rows of the training out of the export, because they are private.
    pub fn without_rows(mut self) -> ExportAllSpec {
        self.with_rows = false;
        self
    }
}

impl Estimator {
    /// Exports a graph for each mode that has a receiver, as one SavedModel in `base/SECONDS`, and
    /// returns that folder. It appears only when it is complete.
    ///
    /// All graphs share one set of variables: those of the first mode in the order train, evaluate,
    /// predict, as in TensorFlow. It is an error if another mode has more variables.
    ///
    /// A training graph has the update of every variable as plain nodes, and TensorFlow runs it as
    /// the train op of the graph. Random ops, such as dropout, draw other numbers than ours.
    pub fn experimental_export_all_saved_models(&self, base: impl AsRef<Path>, spec: ExportAllSpec) -> Result<PathBuf> {
        let mut modes = Vec::new();
        if let Some(receiver) = &spec.train {
            modes.push(ModeGraphs::supervised(self, Mode::Train, receiver)?);
        }
        if let Some(receiver) = &spec.eval {
            modes.push(ModeGraphs::supervised(self, Mode::Eval, receiver)?);
        }
        if let Some(receiver) = &spec.predict {
            modes.push(ModeGraphs::serving(self, receiver)?);
        }
        let Some((first, others)) = modes.split_first_mut() else {
            return Err(Error::config("no mode to export").help("give ExportAllSpec a receiver for at least one mode"));
        };
        others.iter().try_for_each(|other| first.check_has_variables_of(other))?;
        let body = first.bodies.first().ok_or_else(|| Error::internal("a receiver without a source"))?.body.clone();
        let session = self.session_to_export(body, std::mem::take(&mut first.initial_values), &spec.checkpoint)?;
        self.check_meaning(&session, &modes)?;
        let graphs = written(&modes)?;
        let export = Unpublished::new(base.as_ref())?;
        let model = Frozen::new(session);
        let checksums = write_values(export.path(), &graphs, &model)?;
        let serving = modes.iter().zip(&graphs).find(|(mode, _)| mode.mode == Mode::Predict);
        let written = match serving {
            Some((mode, graph)) => {
                let rows = Rows { with_rows: spec.with_rows, statistics: None };
                self.write_document(&export, (&mode.built, graph), model, checksums, rows)?
            }
            None => Written { golden: Golden::default(), state: model.state, checksums },
        };
        written.check(export.path())?;
        for (to, source) in &spec.assets_extra {
            export.copy_extra(to, source)?;
        }
        let path = export.publish()?;
        info!("SavedModel written to: {}", path.display());
        Ok(path)
    }
}

impl Estimator {
    /// Returns an error if a mode has other vocabularies, classes or column settings than the mode
    /// whose variables are exported. That one was compared with the checkpoint.
    fn check_meaning(&self, session: &TrainSession, modes: &[ModeGraphs]) -> Result<()> {
        let bodies = modes.iter().flat_map(|mode| mode.bodies.iter().map(move |own| (mode.mode, &own.body)));
        for (mode, body) in bodies.filter(|_| !self.config().accept_changed_meaning) {
            let differences = session.manifest().diff_of_common(&Manifest::of(body));
            if !differences.is_empty() {
                let all = listed(&differences);
                return Err(Error::config(format!(
                    "mode {mode} has other vocabularies or column settings:\n    {all}"
                ))
                .help("give all modes the same, or set RunConfig::accept_changed_meaning(true)"));
            }
        }
        Ok(())
    }
}

fn written(modes: &[ModeGraphs]) -> Result<Vec<WrittenGraph>> {
    let graphs: Vec<Vec<SignedGraph<'_>>> =
        modes.iter().map(|mode| mode.bodies.iter().map(SignedBody::signed).collect()).collect();
    let tags: Vec<[&str; 1]> = modes.iter().map(|mode| [mode.tag()]).collect();
    let tagged = modes.iter().zip(&graphs).zip(&tags);
    let tagged: Vec<Tagged<'_>> =
        tagged.map(|((mode, graphs), tags)| Tagged { tags, graphs, train_op: mode.train_op }).collect();
    meta_graphs(&tagged)
}

/// A graph and the ways to call it.
struct SignedBody {
    body: Arc<Body>,
    signatures: Vec<SignatureOf>,
}

impl SignedBody {
    /// The graph to write, with all of its variables.
    fn signed(&self) -> SignedGraph<'_> {
        let variables = saved_variables(self.body.variables()).map(|(id, _)| id).collect();
        SignedGraph { body: &self.body, signatures: self.signatures.clone(), variables }
    }
}

/// The graphs of one mode, one for each set of inputs.
struct ModeGraphs {
    mode: Mode,
    bodies: Vec<SignedBody>,
    initial_values: Vec<(String, Array)>,
    train_op: Option<Value>,
    /// The model for serving, with its receivers.
    built: Vec<Built>,
}

impl ModeGraphs {
    /// Calls the model function for prediction.
    fn serving(estimator: &Estimator, receiver: &Receiver) -> Result<ModeGraphs> {
        let mut built = receiver.0.iter().map(|source| Built::new(estimator, source)).collect::<Result<Vec<_>>>()?;
        built.retain(|built| !built.signatures.is_empty());
        let initial_values = built.first().map(|first| first.initial_values.clone()).unwrap_or_default();
        let signed = |built: &Built| SignedBody { body: built.body.clone(), signatures: built.signatures.clone() };
        let bodies = built.iter().map(signed).collect();
        Ok(ModeGraphs { mode: Mode::Predict, bodies, initial_values, train_op: None, built })
    }

    /// Calls the model function for training or evaluation.
    fn supervised(estimator: &Estimator, mode: Mode, receiver: &SupervisedReceiver) -> Result<ModeGraphs> {
        let mut has_labels = false;
        let built = estimator.build_for(mode, |graph| {
            let made = receiver.make(graph).map_err(|e| e.context(format!("in the receiver of mode {mode}")))?;
            has_labels = !made.labels.is_empty();
            Ok(made)
        });
        let (graph, spec, received) = built.map_err(|e| match has_labels {
            true => e,
            false => e.help(format!("the receiver of mode {mode} has no labels; give it those of the model")),
        })?;
        let mut output = SupervisedOutput { loss: spec.loss, predictions: spec.predictions, ..Default::default() };
        for (name, metric) in &spec.metrics {
            output.metrics.insert(name.clone(), MetricOps::new(&graph, name, metric)?);
        }
        let (signature, train_op) = match mode {
            Mode::Train => {
                if let Some(trainer) = spec.trained_by {
                    let text = format!("{trainer} trains in a hook, which an exported training does not have");
                    return Err(Error::unsupported(text).help("export the other modes, or use another optimizer"));
                }
                let train_op =
                    spec.train_op.ok_or_else(|| Error::internal("a model without train op was let through"))?;
                let updates = graph.updates();
                let all = graph.group(&std::iter::once(&train_op).chain(&updates).collect::<Vec<_>>());
                let plain = graph.plain_train_op(&all).map_err(|e| e.context("in the exported training"))?;
                (output.as_train_signature_def(&received.receiver_tensors), Some(plain.value()))
            }
            _ => (output.as_eval_signature_def(&received.receiver_tensors), None),
        };
        graph.check()?;
        let bodies = vec![SignedBody { body: Arc::new(graph.body().clone()), signatures: vec![signature] }];
        Ok(ModeGraphs { mode, bodies, initial_values: spec.initial_values, train_op, built: Vec::new() })
    }

    fn tag(&self) -> &'static str {
        match self.mode {
            Mode::Train => TRAIN,
            Mode::Eval => EVAL,
            Mode::Predict => SERVE,
        }
    }

    fn variables(&self) -> BTreeSet<&str> {
        let all = self.bodies.iter().flat_map(|own| saved_variables(own.body.variables()));
        all.map(|(_, spec)| spec.name.as_str()).collect()
    }

    /// Returns an error that names the variables of another mode that this one does not have.
    fn check_has_variables_of(&self, other: &ModeGraphs) -> Result<()> {
        let own = self.variables();
        let more: Vec<String> =
            other.variables().into_iter().filter(|name| !own.contains(name)).map(|name| format!("`{name}`")).collect();
        if more.is_empty() {
            return Ok(());
        }
        let text = format!(
            "the model has variables in mode {} that it does not have in mode {}, whose variables are exported: {}",
            other.mode,
            self.mode,
            more.join(", ")
        );
        Err(Error::config(text).help("make the same variables in all modes, or export the modes one by one"))
    }
}
