//! Exports to ONNX: `model.onnx`, and beside it rows with the answers of the model, in the layout
//! that ONNX's own tools read (`test_data_set_0/input_0.pb`, `output_0.pb`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_graph::{Executor, Graph, State, Tensor};
use estimand_onnx::message::{ModelProto, StringStringEntryProto};
use estimand_onnx::{Interface, decode, encode, onnx_model, tensor_proto};
use estimand_tensor::{Array, DType, Error, Result};
use estimand_tf::golden::{Feed, Golden};
use estimand_wire::Message;
use estimand_wire::temporary::{make_folders, write_whole};
use indexmap::IndexMap;
use tracing::info;

use super::feeds::feeds;
use super::folder::Unpublished;
use super::receiver::{Outputs, ServingInputReceiver};
use super::{Built, ExportSpec, Frozen, guard};
use crate::adapt::read_statistics;
use crate::{Estimator, ExportOutput, SERVING_DEFAULT};

/// The file of the model.
const MODEL: &str = "model.onnx";
/// Rows that are not stored: their numbers are so large that another order of sums is another
/// answer.
const EXTREME: [&str; 2] = ["largest", "smallest"];

impl Estimator {
    /// Exports the model as an ONNX file to `base/SECONDS/model.onnx`, where SECONDS is the time in
    /// seconds since 1970, and returns the folder. It appears only when it is complete; a failed
    /// export leaves nothing. The feature `onnx` is needed.
    ///
    /// The file has opset 17. Its inputs and outputs are those of the signature `serving_default`,
    /// over named features; strings are strings, and the size of the batch is free. An output that
    /// has the name of an input is called `NAME_output`. Vocabularies, boundaries and class names
    /// are part of the file. ONNX has no TensorFlow hash: a model with hash buckets or crosses is
    /// refused, with the name of the column.
    ///
    /// ```
    /// use estimand::export::ExportSpec;
    /// use estimand::prelude::*;
    ///
    /// # let folder = std::env::temp_dir().join(format!("estimand-doc-onnx-{}", std::process::id()));
    /// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
    /// let data = Dataset::from_arrays(rows).label("y").batch(4);
    /// let model = LinearClassifier::new([numeric_column("x").into()]).model_dir(folder.join("model")).build()?;
    /// model.train(data.repeat(100))?;
    /// let export = model.export_onnx(folder.join("onnx"), ExportSpec::default())?;
    /// assert!(export.join("model.onnx").exists());
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), Error>(())
    /// ```
    pub fn export_onnx(&self, base: impl AsRef<Path>, spec: impl Into<ExportSpec>) -> Result<PathBuf> {
        let spec = spec.into();
        let receiver = match &spec.receiver {
            Some(receiver) => receiver.clone(),
            None => self.serving_receiver()?,
        };
        let source = receiver.0.iter().find(|source| source.outputs != Outputs::OfExamples);
        let source = source.ok_or_else(|| Error::config("the receiver has inputs of Examples only"))?;
        let mut built = Built::new(self, source)?;
        let initial_values = std::mem::take(&mut built.initial_values);
        let session = self.session_to_export(built.body.clone(), initial_values, &spec.checkpoint)?;
        let Frozen { state, global_step, .. } = Frozen::new(session);
        let mut facts = vec![("global_step", global_step.to_string())];
        let statistics = spec.statistics.clone().or_else(|| read_statistics(self.model_dir()));
        facts.extend(statistics.map(|statistics| ("statistics", statistics.to_string())));

        let kept = self.kept_rows();
        let rows = |receiver: &ServingInputReceiver| feeds(receiver, kept.as_ref(), spec.with_rows);
        let export = Unpublished::new(base.as_ref())?;
        write(&export, &built, &rows, &*self.config().executor(), &*state, &facts)?;
        for (to, source) in &spec.assets_extra {
            export.copy_extra(to, source)?;
        }
        publish(export)
    }
}

/// A graph that is exported as it is, such as that of a Keras model.
pub(crate) struct OnnxGraph<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) inputs: IndexMap<String, Tensor>,
    pub(crate) outputs: IndexMap<String, Tensor>,
}

impl OnnxGraph<'_> {
    /// Writes the graph with the variables of a state. Returns the folder.
    pub(crate) fn export(self, base: &Path, executor: &dyn Executor, state: &dyn State) -> Result<PathBuf> {
        let signature = ExportOutput::Predict(self.outputs).as_signature_def(SERVING_DEFAULT, &self.inputs)?;
        let features = self.inputs.clone().into_iter().map(|(name, tensor)| (name, crate::Input::Dense(tensor)));
        let built = Built {
            body: Arc::new(self.graph.body().clone()),
            receiver: ServingInputReceiver::new(features, self.inputs),
            initial_values: Vec::new(),
            signatures: vec![signature],
            step: None,
        };
        let export = Unpublished::new(base)?;
        write(&export, &built, &|receiver| feeds(receiver, None, false), executor, state, &[])?;
        publish(export)
    }
}

fn publish(export: Unpublished) -> Result<PathBuf> {
    let path = export.publish()?;
    info!("ONNX model written to: {}", path.join(MODEL).display());
    Ok(path)
}

/// Writes the model and its golden rows.
fn write(
    export: &Unpublished,
    built: &Built,
    rows: &dyn Fn(&ServingInputReceiver) -> Vec<Feed>,
    executor: &dyn Executor,
    state: &dyn State,
    facts: &[(&str, String)],
) -> Result<()> {
    let place = |e: Error| e.context("in the export to ONNX");
    let signature = built.signatures.iter().find(|signature| signature.name == SERVING_DEFAULT);
    let signature = signature.or(built.signatures.first());
    let signature = signature.ok_or_else(|| Error::internal("an export without a signature"))?;
    let interface = Interface { inputs: signature.inputs.clone(), outputs: signature.outputs.clone() };
    let mut model = onnx_model(&built.body, &interface, |name| state.read(name)).map_err(place)?;
    let entry = |(key, value): &(&str, String)| {
        let (key, value) = (format!("estimand.{key}"), value.clone());
        StringStringEntryProto { key, value }
    };
    model.metadata_props = facts.iter().map(entry).collect();
    let path = export.path().join(MODEL);
    write_whole(&path, &encode(&model).map_err(place)?)?;
    check(&path, &model)?;

    let text_rows = |receiver: &ServingInputReceiver| -> Vec<Feed> {
        let kept = rows(receiver).into_iter().filter(|feed| !EXTREME.contains(&feed.rows.as_str()));
        kept.map(as_text).chain(zeros(receiver)).collect()
    };
    let golden = guard::ask(std::slice::from_ref(built), text_rows, executor, state)?;
    write_rows(export.path(), &golden, &signature.name, &interface)
}

/// Reads the file, and compares it with the model that was to be written.
fn check(path: &Path, model: &ModelProto) -> Result<()> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, "read", &e))?;
    match decode(&bytes) {
        Ok(found) if found == *model => Ok(()),
        _ => Err(Error::data("the file is not the model that was written to it")
            .help("nothing was published; check the disk")
            .in_file(path)),
    }
}

/// Two rows of zeros: a model of ids may refuse all other rows that are made up.
fn zeros(receiver: &ServingInputReceiver) -> Option<Feed> {
    let zeros = |tensor: &Tensor| {
        let rest = tensor.shape().dims().iter().skip(1).map(|dim| dim.known().unwrap_or(1));
        let dims: Vec<usize> = [2].into_iter().chain(rest).collect();
        match tensor.dtype() {
            DType::Str => Array::from_strings(&dims, vec![""; dims.iter().product()]),
            dtype => Array::zeros(dtype, &dims),
        }
    };
    let inputs = receiver.receiver_tensors.iter().map(|(name, tensor)| Some((name.clone(), zeros(tensor).ok()?)));
    Some(Feed { rows: "zeros".to_string(), inputs: inputs.collect::<Option<_>>()? })
}

/// ONNX has strings of UTF-8 only, and some runtimes end them at a zero.
fn as_text(mut feed: Feed) -> Feed {
    for (_, array) in &mut feed.inputs {
        if array.dtype() != DType::Str {
            continue;
        }
        let text = |text: &[u8]| String::from_utf8_lossy(text).replace('\0', " ");
        let texts = array.strings().map(|strings| strings.map(text).collect::<Vec<String>>());
        if let Ok(texts) = texts.and_then(|texts| Array::from_strings(array.dims(), texts)) {
            *array = texts;
        }
    }
    feed
}

/// Writes each feed and its answers as a folder of tensors.
fn write_rows(folder: &Path, golden: &Golden, signature: &str, interface: &Interface) -> Result<()> {
    let names = interface.output_names();
    let answers = golden.answers.iter().find(|answers| answers.signature == signature);
    let first = answers
        .and_then(|answers| answers.same_as.as_ref())
        .and_then(|same_as| golden.answers.iter().find(|answers| answers.signature == *same_as));
    for (n, (feed, outputs)) in first.or(answers).into_iter().flat_map(|answers| &answers.of).enumerate() {
        let set = folder.join(format!("test_data_set_{n}"));
        make_folders(&set).map_err(|e| Error::io(&set, "make", &e))?;
        let write = |kind: &str, i: usize, name: &str, array: &Array| {
            write_whole(set.join(format!("{kind}_{i}.pb")), &tensor_proto(name, array)?.encode_to_vec())
        };
        for (i, (name, _)) in interface.inputs.iter().enumerate() {
            let given = golden.feeds[*feed].inputs.iter().find(|(known, _)| known == name);
            let (_, array) = given.ok_or_else(|| Error::internal(format!("the rows have no input `{name}`")))?;
            write("input", i, name, array)?;
        }
        for (i, (name, (_, array))) in names.iter().zip(outputs).enumerate() {
            write("output", i, name, array)?;
        }
    }
    Ok(())
}
