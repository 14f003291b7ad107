//! Exports: a model as a SavedModel that TensorFlow, TensorFlow Serving and this library load.
//!
//! `receiver.rs` has the inputs of an export, `signatures.rs` the ways to call it, and `folder.rs`
//! the folder, which appears only when it is complete. `guard.rs` compares the export with the
//! model on the rows of `feeds.rs`, and `document.rs` writes them beside it. `exporters.rs` exports
//! during a training, and `modes/` exports graphs for training and evaluation too.

mod document;
mod exporters;
mod feeds;
mod folder;
mod guard;
mod modes;
#[cfg(feature = "onnx")]
mod onnx;
#[cfg(feature = "onnx")]
mod onnx_guard;
mod receiver;
mod signatures;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_data::Statistics;
use estimand_graph::{Body, State, VarId};
use estimand_nn::column::make_parse_example_spec;
use estimand_tensor::{Array, Error, Mode, Result, warn};
use estimand_tf::golden::{DOCUMENT, Golden};
pub use estimand_tf::golden::{Verified, verify};
use estimand_tf::saved_model_writer::{SERVE, SignatureOf, SignedGraph, WrittenGraph, meta_graph, write};
use serde_json::Value as Json;
use tracing::info;

use crate::Estimator;
use crate::adapt::{read_statistics, statistics_to_json};
use crate::kept_rows::TrainingRows;
use crate::manifest::Manifest;
use crate::model_fn::GLOBAL_STEP;
use crate::model_folder::Which;
use crate::session::TrainSession;
use document::Document;
pub use exporters::{BestExporter, FinalExporter, LatestExporter};
use folder::Unpublished;
pub use modes::{ExportAllSpec, MetricOps, SupervisedInputReceiver, SupervisedOutput, SupervisedReceiver};
#[cfg(feature = "onnx")]
pub(crate) use onnx::OnnxGraph;
pub use receiver::{Receiver, ServingInputReceiver};

/// What to export, and from which checkpoint. A [`Receiver`] converts to it. The default has the
/// [receiver of the training](Estimator::serving_receiver).
#[derive(Clone, Debug)]
#[must_use]
pub struct ExportSpec {
    /// `None` for that of the training.
    receiver: Option<Receiver>,
    checkpoint: Which,
    assets_extra: Vec<(PathBuf, PathBuf)>,
    with_rows: bool,
    statistics: Option<Json>,
}

impl From<Receiver> for ExportSpec {
    fn from(receiver: Receiver) -> ExportSpec {
        ExportSpec::new(receiver)
    }
}

impl Default for ExportSpec {
    fn default() -> ExportSpec {
        ExportSpec {
            receiver: None,
            checkpoint: Which::Newest,
            assets_extra: Vec::new(),
            with_rows: true,
            statistics: None,
        }
    }
}

impl ExportSpec {
    /// Exports the newest checkpoint with these inputs.
    pub fn new(receiver: Receiver) -> ExportSpec {
        ExportSpec { receiver: Some(receiver), ..ExportSpec::default() }
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

    /// Leaves the rows of the training out of the export, because they are private. It is checked
    /// with rows that are made up.
    pub fn without_rows(mut self) -> ExportSpec {
        self.with_rows = false;
        self
    }

    /// Adds the statistics of the training data, with which a server can tell that its requests
    /// are different. By default, those that [`adapt_once`](crate::adapt_once) left in the model
    /// folder.
    pub fn statistics(mut self, statistics: &Statistics) -> ExportSpec {
        self.statistics = Some(statistics_to_json(statistics));
        self
    }
}

impl Estimator {
    /// Returns the receiver of a trained model: named features, with the formats that the training
    /// had. A premade estimator takes those that its columns read, and has signatures over
    /// `tf.Example`s too. The model folder knows the formats, so no data is needed.
    ///
    /// ```
    /// use estimand::export::ExportSpec;
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-serving-{}", std::process::id()));
    /// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
    /// let data = Dataset::from_arrays(rows).label("y").batch(4);
    /// let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.join("model")).build()?;
    /// model.train(data.repeat(100))?;
    /// let export = model.export_saved_model(folder.join("export"), ExportSpec::default())?;
    /// let saved = estimand::graph::saved_model::SavedModel::open(&export)?;
    /// let names: Vec<String> = saved.signatures().map(|(name, _)| name.to_string()).collect();
    /// assert_eq!(names, ["classification", "predict", "regression", "serving_default"]);
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    pub fn serving_receiver(&self) -> Result<Receiver> {
        let Some(mut kept) = TrainingRows::read(self.model_dir())? else {
            let folder = self.model_dir().display();
            return Err(Error::config(format!("{folder} does not say which features the model was trained with"))
                .help("train it with this version, or name the features: Receiver::like(&data)"));
        };
        let columns = self.columns().filter(|columns| !columns.is_empty());
        let Some(columns) = columns else { return Ok(Receiver::raw(kept.features)) };
        let read = make_parse_example_spec(columns.clone())?;
        kept.features.retain(|name, _| read.contains_key(name));
        Receiver::raw(kept.features).and_examples(columns)
    }

    /// Exports the model as a SavedModel to `base/SECONDS`, where SECONDS is the time in seconds
    /// since 1970, and returns that folder. It appears only when it is complete; a failed export
    /// leaves nothing.
    ///
    /// The same model and checkpoint give the same bytes. See [`Receiver`] for an example.
    pub fn export_saved_model(&self, base: impl AsRef<Path>, spec: impl Into<ExportSpec>) -> Result<PathBuf> {
        let spec = spec.into();
        let export = Unpublished::new(base.as_ref())?;
        let written = self.write_export(&export, &spec)?;
        written.check(export.path())?;
        for (to, source) in &spec.assets_extra {
            export.copy_extra(to, source)?;
        }
        let path = export.publish()?;
        info!("SavedModel written to: {}", path.display());
        Ok(path)
    }

    /// Writes the files of an export to a folder that has no name yet.
    fn write_export(&self, export: &Unpublished, spec: &ExportSpec) -> Result<Written> {
        let receiver = match &spec.receiver {
            Some(receiver) => receiver.clone(),
            None => self.serving_receiver()?,
        };
        let sources = receiver.0.iter();
        let mut built = sources.map(|source| Built::new(self, source)).collect::<Result<Vec<_>>>()?;
        built.retain(|built| !built.signatures.is_empty());
        let first = built.first_mut().ok_or_else(|| Error::internal("a receiver without a source"))?;
        let initial_values = std::mem::take(&mut first.initial_values);
        let session = self.session_to_export(first.body.clone(), initial_values, &spec.checkpoint)?;
        let (serve, model) = (serve_graph(&built)?, Frozen::new(session));
        let checksums = write_values(export.path(), std::slice::from_ref(&serve), &model)?;
        let rows = Rows { with_rows: spec.with_rows, statistics: spec.statistics.clone() };
        self.write_document(export, (&built, &serve), model, checksums, rows)
    }

    /// The rows that the training has kept, if they can be read.
    fn kept_rows(&self) -> Option<TrainingRows> {
        TrainingRows::read(self.model_dir()).unwrap_or_else(|error| {
            warn!("The export is not checked with rows of the training: {error}");
            None
        })
    }

    /// Asks the live model, and writes its answers and what it is beside the graph for serving.
    fn write_document(
        &self,
        export: &Unpublished,
        (built, written): (&[Built], &WrittenGraph),
        model: Frozen,
        checksums: BTreeMap<String, u32>,
        rows: Rows,
    ) -> Result<Written> {
        let kept = self.kept_rows();
        let Frozen { state, manifest, global_step } = model;
        let feeds = |receiver: &ServingInputReceiver| feeds::feeds(receiver, kept.as_ref(), rows.with_rows);
        let golden = guard::ask(built, feeds, &*self.config().executor(), &*state)?;
        let read = self.columns().and_then(|columns| make_parse_example_spec(columns).ok());
        let document = Document {
            global_step,
            manifest: &manifest,
            kept: kept.as_ref(),
            read: read.as_ref(),
            statistics: rows.statistics.or_else(|| read_statistics(self.model_dir())),
            built,
            written,
            golden: &golden,
        };
        export.write_extra(DOCUMENT, &document.text()?)?;
        Ok(Written { golden, state, checksums })
    }
}

/// What an export says of the rows of the training.
struct Rows {
    with_rows: bool,
    statistics: Option<Json>,
}

/// Joins the graphs of all receivers.
fn serve_graph(built: &[Built]) -> Result<WrittenGraph> {
    let signed = built.iter().map(|built| {
        let (signatures, variables) = (built.signatures.clone(), built.step.into_iter().collect());
        SignedGraph { body: &built.body, signatures, variables }
    });
    meta_graph(&[SERVE], &signed.collect::<Vec<_>>())
}

/// A restored model. Nobody writes to its variables, so their memory is shared and not copied.
struct Frozen {
    state: Arc<dyn State>,
    manifest: Manifest,
    global_step: u64,
}

impl Frozen {
    fn new(session: TrainSession) -> Frozen {
        let (manifest, global_step) = (session.manifest().clone(), session.global_step());
        Frozen { state: session.freeze(), manifest, global_step }
    }
}

/// Writes graphs and the values of their variables. Returns the checksums of the values.
fn write_values(folder: &Path, graphs: &[WrittenGraph], model: &Frozen) -> Result<BTreeMap<String, u32>> {
    write(folder, graphs, |name| {
        let help = "the signatures of a model must use the same variables";
        model.state.read(name).map_err(|e| e.context("in the export").help(help))
    })
}

/// An export whose files are written, and what they must agree with.
struct Written {
    golden: Golden,
    state: Arc<dyn State>,
    checksums: BTreeMap<String, u32>,
}

impl Written {
    /// Compares the files with the live model.
    fn check(&self, folder: &Path) -> Result<()> {
        guard::check(folder, &self.golden, &self.state, &self.checksums)
    }
}

/// The model with one set of inputs.
struct Built {
    body: Arc<Body>,
    receiver: ServingInputReceiver,
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
        Ok(Built { body, receiver, initial_values: spec.initial_values, signatures, step })
    }
}

#[cfg(test)]
mod tests {
    use estimand_checkpoint::{BundleReader, BundleWriter};
    use estimand_data::Dataset;
    use estimand_nn::column::numeric_column;

    use super::*;
    use crate::premade::LinearRegressor;

    /// An export whose weights or graph are not those of the model is refused. Damaged bytes are
    /// found by the checksum of the file; whole values of another model by the checksum of the live
    /// ones; another graph by its answers.
    #[test]
    fn an_export_that_was_changed_behind_its_back_is_refused() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("estimand-export-guard-{}", std::process::id()));
        let rows = [("x", Array::from([1f32, 2.0, 3.0])), ("y", Array::from([2f32, 4.0, 6.0]))];
        let data = Dataset::from_arrays(rows).label("y").batch(3);
        let model = LinearRegressor::new([numeric_column("x").into()]).model_dir(folder.join("model")).build()?;
        model.train(data.repeat(30))?;
        let refused = |change: &dyn Fn(&Path), expected: &[&str]| -> Result<()> {
            let export = Unpublished::new(&folder.join("exports"))?;
            let written = model.write_export(&export, &ExportSpec::default())?;
            written.check(export.path())?;
            change(export.path());
            let error = written.check(export.path()).unwrap_err().to_string();
            for part in expected.iter().chain(&["the export was refused"]) {
                assert!(error.contains(part), "{error}");
            }
            Ok(())
        };
        refused(
            &|path| {
                let data = path.join("variables/variables.data-00000-of-00001");
                let mut bytes = std::fs::read(&data).unwrap();
                bytes[5] ^= 1;
                std::fs::write(data, bytes).unwrap();
            },
            &["its checksum is wrong"],
        )?;
        refused(
            &|path| {
                let prefix = path.join("variables/variables");
                let reader = BundleReader::open(&prefix).unwrap();
                let mut writer = BundleWriter::create(&prefix).unwrap();
                for name in reader.names() {
                    let value = reader.read(name).unwrap();
                    let is_weight = name.ends_with("x/weights");
                    writer
                        .add(name, &if is_weight { Array::from_vec([1, 1], vec![0.5f32]).unwrap() } else { value })
                        .unwrap();
                }
                writer.finish().unwrap();
            },
            &["the values of variable `linear/linear_model/x/weights` are not those of the model"],
        )?;
        // The graph of a model that adds an offset to x.
        let shifted = LinearRegressor::new([numeric_column("x").normalizer(|x| x + 1.0).into()]);
        let shifted = shifted.model_dir(folder.join("shifted")).build()?;
        shifted.train(data.repeat(30))?;
        refused(
            &|path| {
                let other = shifted.export_saved_model(folder.join("other"), ExportSpec::default()).unwrap();
                std::fs::copy(other.join("saved_model.pb"), path.join("saved_model.pb")).unwrap();
            },
            &[
                "signature `predict` answers differently from the model: output `predictions`, training rows, row 0: expected",
                "found",
            ],
        )?;
        assert!(std::fs::read_dir(folder.join("exports")).unwrap().next().is_none(), "nothing is left");
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    }
}
