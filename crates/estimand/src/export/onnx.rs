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
use super::{Built, ExportSpec, Frozen, guard, onnx_guard};
use crate::adapt::read_statistics;
use crate::{Estimator, ExportOutput, SERVING_DEFAULT};

/// The file of the model.
const MODEL: &str = "model.onnx";
/// Rows that are not stored: their numbers are so large that another order of sums is another
/// answer.
const EXTREME: [&str; 2] = ["largest", "smallest"];
/// The sizes that axes of unknown size may have in rows that are made up.
const OPEN_SIZES: [usize; 7] = [3, 12, 48, 192, 768, 3072, 12_288];
/// The most elements of an input of such a row.
const MAX_OPEN: usize = 1 << 20;

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
    /// The file is run on golden rows before the folder appears. If its answers are not those of
    /// the model, the export is refused.
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

    let size = open_size(&model, &built.receiver)?;
    let text_rows = |receiver: &ServingInputReceiver| -> Vec<Feed> {
        let kept = rows(receiver).into_iter().filter(|feed| !EXTREME.contains(&feed.rows.as_str()));
        kept.map(as_text).chain(zeros(receiver)).chain(numbers(receiver, size)).collect()
    };
    let golden = guard::ask(std::slice::from_ref(built), text_rows, executor, state)?;
    write_checked(export.path(), &model, &golden, &signature.name, &interface)
}

/// Writes the file and the golden rows. The file is read again, and must answer the rows as the
/// model did.
fn write_checked(
    folder: &Path,
    model: &ModelProto,
    golden: &Golden,
    signature: &str,
    interface: &Interface,
) -> Result<()> {
    let path = folder.join(MODEL);
    write_whole(&path, &encode(model).map_err(|e| e.context("in the export to ONNX"))?)?;
    let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
    let written = decode(&bytes).ok().filter(|written| written == model).ok_or_else(|| {
        Error::data("the file is not the model that was written to it")
            .help("nothing was published; check the disk")
            .in_file(&path)
    })?;
    let compared = onnx_guard::check(&written, golden, signature, interface)?;
    write_rows(folder, golden, &compared, signature, interface)
}

/// A size that axes of unknown size may have, so that no image is smaller than a window.
fn open_size(model: &ModelProto, receiver: &ServingInputReceiver) -> Result<usize> {
    let is_open = |tensor: &Tensor| tensor.shape().dims().iter().skip(1).any(|dim| dim.known().is_none());
    if receiver.receiver_tensors.values().any(is_open) {
        for size in OPEN_SIZES {
            let Some(feed) = numbers(receiver, size) else { break };
            if feed.inputs.iter().any(|(_, array)| array.len() > MAX_OPEN) {
                break;
            }
            if onnx_guard::fits(model, &feed)? {
                return Ok(size);
            }
        }
    }
    Ok(OPEN_SIZES[0])
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

/// Two rows of numbers that differ, so that every weight counts: the other rows that are made up
/// are zeros. Axes of unknown size have one size.
fn numbers(receiver: &ServingInputReceiver, size: usize) -> Option<Feed> {
    let numbers = |tensor: &Tensor| {
        let rest = tensor.shape().dims().iter().skip(1).map(|dim| dim.known().unwrap_or(size));
        let dims: Vec<usize> = [2].into_iter().chain(rest).collect();
        // Between -1 and 1, without a pattern.
        let float = |i: usize| f64::from((i as u32 + 1).wrapping_mul(0x9e37_79b1) as i32) / f64::from(1u32 << 31);
        let is_high = |i: usize| float(i) > 0.0;
        let n: usize = dims.iter().product();
        match tensor.dtype() {
            DType::F32 => Array::from_vec(dims, (0..n).map(|i| float(i) as f32).collect()),
            DType::F64 => Array::from_vec(dims, (0..n).map(float).collect()),
            // Ids of any table of two rows.
            DType::I32 => Array::from_vec(dims, (0..n).map(|i| i32::from(is_high(i))).collect()),
            DType::I64 => Array::from_vec(dims, (0..n).map(|i| i64::from(is_high(i))).collect()),
            DType::U8 => Array::from_vec(dims, (0..n).map(|i| (float(i) * 100.0 + 100.0) as u8).collect()),
            DType::Bool => Array::from_vec(dims, (0..n).map(is_high).collect()),
            DType::Str => Array::from_strings(dims, (0..n).map(|i| if is_high(i) { "a" } else { "b" })),
        }
    };
    let inputs = receiver.receiver_tensors.iter().map(|(name, tensor)| Some((name.clone(), numbers(tensor).ok()?)));
    Some(Feed { rows: "numbers".to_string(), inputs: inputs.collect::<Option<_>>()? })
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

/// Writes the feeds that were compared, each with its answers as a folder of tensors.
fn write_rows(
    folder: &Path,
    golden: &Golden,
    compared: &[usize],
    signature: &str,
    interface: &Interface,
) -> Result<()> {
    let names = interface.output_names();
    let answers = onnx_guard::answers(golden, signature);
    for (n, (feed, outputs)) in compared.iter().map(|&i| &answers[i]).enumerate() {
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use estimand_cpu::Cpu;
    use estimand_onnx::message::{AttributeProto, NodeProto};

    use super::*;

    /// `y = softmax(x * w)`, with its answers to one feed.
    fn made() -> (ModelProto, Golden, Interface) {
        let graph = Graph::new();
        let x = graph.placeholder("x", DType::F32, [estimand_tensor::Dim::BATCH, 3.into()]);
        let y = x.matmul(&graph.variable("w", [3, 2], estimand_graph::Initializer::Zeros)).softmax();
        let weight = Array::from_vec([3, 2], vec![0.5f32, -1.0, 2.0, 0.25, -0.125, 1.5]).unwrap();
        let (inputs, outputs) = (IndexMap::from([("x".to_string(), x)]), IndexMap::from([("y".to_string(), y)]));
        let signature = ExportOutput::Predict(outputs).as_signature_def(SERVING_DEFAULT, &inputs).unwrap();
        let interface = Interface { inputs: signature.inputs.clone(), outputs: signature.outputs.clone() };
        let model = onnx_model(&graph.body(), &interface, |_| Ok(weight.clone())).unwrap();
        let features = inputs.clone().into_iter().map(|(name, tensor)| (name, crate::Input::Dense(tensor)));
        let built = Built {
            body: Arc::new(graph.body().clone()),
            receiver: ServingInputReceiver::new(features, inputs),
            initial_values: Vec::new(),
            signatures: vec![signature],
            step: None,
        };
        let mut state = Cpu::new().place(graph.body().variables(), 0).unwrap();
        state.write("w", &weight).unwrap();
        let feeds = |receiver: &ServingInputReceiver| numbers(receiver, 3).into_iter().collect();
        let golden = guard::ask(&[built], feeds, &Cpu::new(), &*state).unwrap();
        (model, golden, interface)
    }

    /// Writes a model that was changed. Returns the error and the number of files that are left.
    fn written(name: &str, change: impl Fn(&mut ModelProto)) -> (Option<String>, usize) {
        let base: PathBuf = std::env::temp_dir().join(format!("estimand-onnx-guard-{name}-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&base);
        let (mut model, golden, interface) = made();
        change(&mut model);
        let export = Unpublished::new(&base).unwrap();
        let result = write_checked(export.path(), &model, &golden, SERVING_DEFAULT, &interface);
        let result = result.and_then(|()| publish(export));
        let left = std::fs::read_dir(&base).map_or(0, |entries| entries.count());
        _ = std::fs::remove_dir_all(&base);
        (result.err().map(|error| error.to_string()), left)
    }

    fn node<'m>(model: &'m mut ModelProto, op: &str) -> &'m mut NodeProto {
        let nodes = &mut model.graph.as_mut().unwrap().node;
        nodes.iter_mut().find(|node| node.op_type == op).unwrap()
    }

    #[test]
    fn a_file_that_answers_otherwise_is_not_published() {
        assert_eq!(written("whole", |_| ()), (None, 1));

        // The sign of the first weight.
        let (error, left) = written("weight", |model| {
            model.graph.as_mut().unwrap().initializer[0].raw_data.as_mut().unwrap()[3] ^= 0x80;
        });
        let error = error.unwrap();
        for part in ["output `y`, numbers rows, row 0: expected 0.", ", found 0.", "nothing was published"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(left, 0);

        let (error, left) = written("attribute", |model| {
            node(model, "Softmax").attribute = vec![AttributeProto::int("axis", 0)];
        });
        assert!(error.unwrap().contains("output `y`"));
        assert_eq!(left, 0);

        let (error, left) = written("operator", |model| node(model, "Softmax").op_type = "Hardmax".to_string());
        let error = error.unwrap();
        assert!(error.contains("in node `Softmax/Softmax` (Hardmax)"), "{error}");
        assert_eq!(left, 0);
    }
}
