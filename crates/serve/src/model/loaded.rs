//! A version of a model in memory: its signatures, ready to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_tensor::{Array, Dim, Error, Result, TensorSpec};
use estimand_tf::golden::{Golden, read_document};
use estimand_tf::saved_model::{SavedModel, SignatureModel};
use estimand_wire::SignatureDef;

use super::{About, Column, Surroundings};
use crate::batch::Queue;
use crate::drift::{self, Drift, Watch};
use crate::json::Input;
use crate::status::{Answer, Code, Status};

/// The name of the signature that a request without a name gets.
pub(crate) const DEFAULT_SIGNATURE: &str = "serving_default";

/// A version of a model.
pub(crate) struct Loaded {
    pub(crate) version: i64,
    /// The folder that it was read from.
    pub(crate) folder: PathBuf,
    /// The signatures as the export describes them.
    pub(crate) defs: BTreeMap<String, SignatureDef>,
    /// The signatures that can run, and why the others cannot.
    signatures: BTreeMap<String, Result<Arc<Signature>>>,
    /// What requests held, beside the statistics of the training.
    pub(crate) drift: Drift,
}

impl Loaded {
    /// Reads all signatures of an export. Fails if none of them can be read.
    pub(crate) fn open(version: i64, folder: &Path, surroundings: &Surroundings) -> Result<Loaded> {
        let model = SavedModel::open(folder)?;
        let document = read_document(folder)?;
        let golden = document.as_ref().map(Golden::of).transpose()?;
        let about = document.as_ref().zip(golden.as_ref()).map(|(document, golden)| About::of(document, golden));
        let (about, mut drift) = (about.unwrap_or_default(), Drift::default());
        let mut signatures = BTreeMap::new();
        let mut problem = None;
        for name in model.signature_defs().keys() {
            // TensorFlow's own bookkeeping, which is no signature to call.
            if name.starts_with("__saved_model") {
                continue;
            }
            let signature = Signature::read(&model, name, &about, &mut drift, surroundings).map(Arc::new);
            if let Err(error) = &signature {
                tracing::warn!("version {version} in {}: signature `{name}`: {error}", folder.display());
                problem.get_or_insert_with(|| error.clone());
            }
            signatures.insert(name.clone(), signature);
        }
        match problem {
            Some(error) if signatures.values().all(Result::is_err) => return Err(error),
            None if signatures.is_empty() => {
                return Err(Error::config("the export has no signature").context(format!("in {}", folder.display())));
            }
            _ => {}
        }
        let loaded =
            Loaded { version, folder: folder.to_path_buf(), defs: model.signature_defs().clone(), signatures, drift };
        if let Some(golden) = golden.filter(|_| surroundings.checks_answers) {
            loaded.check_answers(folder, &golden)?;
        }
        let n = super::warmup::replay(&loaded, folder)?;
        if n > 0 {
            tracing::info!("version {version} in {} has answered {n} warm-up requests", folder.display());
        }
        Ok(loaded)
    }

    /// Asks the version the questions that its export carries, and compares the answers with those
    /// of the model that was exported. TensorFlow's exports carry none.
    fn check_answers(&self, folder: &Path, golden: &Golden) -> Result<()> {
        golden
            .check(|name| match self.signatures.get(name) {
                Some(Ok(signature)) => Ok(signature.model.clone()),
                Some(Err(error)) => Err(error.clone()),
                None => Err(Error::unknown("signature", name, self.signatures.keys().map(String::as_str))),
            })
            .map_err(|e| {
                e.context(format!("in {}", folder.display()))
                    .help("export the model again, or serve it all the same with --accept_changed_answers")
            })?;
        tracing::info!("version {} in {} has answered {} golden rows", self.version, folder.display(), golden.n_rows());
        Ok(())
    }

    /// The signatures that can run.
    pub(crate) fn runnable(&self) -> impl Iterator<Item = &Signature> {
        self.signatures.values().filter_map(|signature| signature.as_ref().ok().map(|signature| &**signature))
    }

    /// The signature with a name, or the default one if the name is empty. `missing` makes the
    /// error of a name that does not exist, which each call words in its own way.
    pub(crate) fn signature(&self, name: &str, missing: impl FnOnce(&str) -> Status) -> Answer<Arc<Signature>> {
        let name = if name.is_empty() { DEFAULT_SIGNATURE } else { name };
        match self.signatures.get(name) {
            Some(Ok(signature)) => Ok(Arc::clone(signature)),
            Some(Err(error)) => Err(Status::new(
                Code::FailedPrecondition,
                format!("signature `{name}` cannot be run by this server: {error}"),
            )),
            None => {
                let mut status = missing(name);
                let known: Vec<&str> = self.signatures.keys().map(String::as_str).collect();
                status.message.push_str(&format!(" (the model has {})", known.join(", ")));
                Err(status)
            }
        }
    }
}

/// A signature of a loaded version.
pub(crate) struct Signature {
    pub(crate) name: String,
    model: SignatureModel,
    /// The inputs, in the order of `specs`.
    pub(crate) inputs: Vec<Input>,
    pub(crate) specs: Vec<TensorSpec>,
    /// Names and specs of the outputs.
    pub(crate) outputs: Vec<(String, TensorSpec)>,
    /// Joins the rows of requests, where rows do not depend on each other.
    pub(crate) queue: Option<Queue>,
    /// The columns, each with the further output that shows what it made of its inputs.
    pub(crate) columns: Vec<(Column, usize)>,
    watch: Watch,
}

/// The result of a run: the outputs of a signature, and the tensors that are watched.
pub(crate) struct Computed {
    pub(crate) outputs: Vec<Array>,
    pub(crate) more: Vec<Array>,
}

/// The name of a further output. It comes after all names that a signature has.
fn more_name(i: usize) -> String {
    format!("\u{10ffff}{i:06}")
}

impl AsRef<[Input]> for Signature {
    fn as_ref(&self) -> &[Input] {
        &self.inputs
    }
}

impl Signature {
    fn read(
        saved: &SavedModel,
        name: &str,
        about: &About,
        drift: &mut Drift,
        surroundings: &Surroundings,
    ) -> Result<Signature> {
        let mut plan = drift::plan(about, name);
        let more: Vec<_> =
            plan.tensors.iter().enumerate().map(|(i, tensor)| (more_name(i), tensor.to_string())).collect();
        let model = match saved.signature_with(name, &more) {
            Ok(model) => model,
            // The tensors are a convenience: a signature answers without them.
            Err(error) => {
                let model = saved.signature(name)?;
                tracing::warn!("signature `{name}` cannot be explained: {error}");
                plan = drift::Plan::default();
                model
            }
        };
        let program = model.program();
        let specs: Vec<TensorSpec> = model.inputs().values().map(|&value| program.spec(value).clone()).collect();
        let inputs = model.inputs().keys().zip(&specs);
        let inputs: Vec<Input> = inputs.map(|(name, spec)| about.input(name, spec)).collect();
        let n_outputs = model.outputs().len() - plan.tensors.len();
        let outputs = model.outputs().iter().take(n_outputs);
        let outputs: Vec<_> = outputs.map(|(name, &value)| (name.clone(), program.spec(value).clone())).collect();
        let has_rows = |spec: &TensorSpec| spec.shape.dims().first() == Some(&Dim::BATCH);
        let is_by_row = specs.iter().chain(outputs.iter().map(|(_, spec)| spec)).all(has_rows);
        let queue = surroundings.batcher.as_ref().filter(|_| is_by_row && !specs.is_empty()).map(Queue::new);
        let watch = Watch::new(about, &plan, &inputs, drift);
        let columns = plan.columns.into_iter().map(|(column, place)| (column.clone(), place)).collect();
        Ok(Signature { name: name.to_string(), model, inputs, specs, outputs, queue, columns, watch })
    }

    /// Checks the shapes of a request, and returns its number of rows.
    pub(crate) fn check(&self, arrays: &[Array]) -> Answer<usize> {
        let mut n_rows: Option<(usize, &str)> = None;
        for ((input, spec), array) in self.inputs.iter().zip(&self.specs).zip(arrays) {
            let (expected, found) = (spec.shape.dims(), array.dims());
            let fits = |(expected, found): (&Dim, &usize)| expected.known().is_none_or(|size| size == *found);
            if array.dtype() != spec.dtype || expected.len() != found.len() || !expected.iter().zip(found).all(fits) {
                return Err(Status::invalid(format!(
                    "input `{}` of signature `{}` was given as {}{found:?}; expected {}{}",
                    input.name,
                    self.name,
                    array.dtype(),
                    spec.dtype,
                    sizes(expected)
                )));
            }
            if expected.first() == Some(&Dim::BATCH) {
                let (rows, first) = *n_rows.get_or_insert((found[0], &input.name));
                if rows != found[0] {
                    return Err(Status::invalid(format!(
                        "input `{}` has {} rows, but input `{first}` has {rows}; all inputs need the same number",
                        input.name, found[0]
                    )));
                }
            }
        }
        Ok(n_rows.map_or(1, |(rows, _)| rows))
    }

    /// Computes all outputs, in the order of `outputs`, and counts the values of the inputs.
    pub(crate) fn run(&self, arrays: &[Array]) -> Answer<Vec<Array>> {
        let computed = self.compute(arrays)?;
        self.count(arrays, &computed.more);
        Ok(computed.outputs)
    }

    /// Counts the values of a run that has been answered.
    pub(crate) fn count(&self, arrays: &[Array], more: &[Array]) {
        self.watch.count(arrays, more);
    }

    /// Counts rows that took the default of an input: `defaulted` has those of each input.
    pub(crate) fn count_defaults(&self, defaulted: &[Vec<usize>]) {
        self.watch.count_defaults(defaulted);
    }

    /// Computes all outputs. Nothing is counted.
    pub(crate) fn compute(&self, arrays: &[Array]) -> Answer<Computed> {
        // A panic of a kernel must not take the server down.
        let run = std::panic::AssertUnwindSafe(|| self.model.run_in_order(arrays));
        match std::panic::catch_unwind(run) {
            Ok(outputs) => {
                let mut outputs = outputs?;
                let more = outputs.split_off(self.outputs.len().min(outputs.len()));
                Ok(Computed { outputs, more })
            }
            Err(_) => Err(Status::new(
                Code::Internal,
                format!("signature `{}` panicked; this is a bug in Estimand, please report it", self.name),
            )),
        }
    }
}

/// Sizes as the export describes them: `[-1, 3]`.
pub(crate) fn sizes(dims: &[Dim]) -> String {
    let sizes: Vec<String> =
        dims.iter().map(|dim| dim.known().map_or_else(|| "-1".to_string(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}
