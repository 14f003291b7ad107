//! A version of a model in memory: its signatures, ready to run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use estimand_tensor::{Array, Dim, Error, Result, TensorSpec};
use estimand_tf::golden::Golden;
use estimand_tf::saved_model::{SavedModel, SignatureModel};
use estimand_wire::SignatureDef;

use super::Surroundings;
use crate::batch::Queue;
use crate::json::Input;
use crate::status::{Answer, Code, Status};

/// The name of the signature that a request without a name gets.
pub(crate) const DEFAULT_SIGNATURE: &str = "serving_default";

/// A version of a model.
pub(crate) struct Loaded {
    pub(crate) version: i64,
    /// The signatures as the export describes them.
    pub(crate) defs: BTreeMap<String, SignatureDef>,
    /// The signatures that can run, and why the others cannot.
    signatures: BTreeMap<String, Result<Arc<Signature>>>,
}

impl Loaded {
    /// Reads all signatures of an export. Fails if none of them can be read.
    pub(crate) fn open(version: i64, folder: &Path, surroundings: &Surroundings) -> Result<Loaded> {
        let model = SavedModel::open(folder)?;
        let mut signatures = BTreeMap::new();
        let mut problem = None;
        for name in model.signature_defs().keys() {
            // TensorFlow's own bookkeeping, which is no signature to call.
            if name.starts_with("__saved_model") {
                continue;
            }
            let signature = model.signature(name).map(|read| Arc::new(Signature::new(name, read, surroundings)));
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
        let loaded = Loaded { version, defs: model.signature_defs().clone(), signatures };
        if surroundings.checks_answers {
            loaded.check_answers(folder)?;
        }
        let n = super::warmup::replay(&loaded, folder)?;
        if n > 0 {
            tracing::info!("version {version} in {} has answered {n} warm-up requests", folder.display());
        }
        Ok(loaded)
    }

    /// Asks the version the questions that its export carries, and compares the answers with those
    /// of the model that was exported. TensorFlow's exports carry none.
    fn check_answers(&self, folder: &Path) -> Result<()> {
        let Some(golden) = Golden::read(folder)? else { return Ok(()) };
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
}

impl AsRef<[Input]> for Signature {
    fn as_ref(&self) -> &[Input] {
        &self.inputs
    }
}

impl Signature {
    fn new(name: &str, model: SignatureModel, surroundings: &Surroundings) -> Signature {
        let program = model.program();
        let specs: Vec<TensorSpec> = model.inputs().values().map(|&value| program.spec(value).clone()).collect();
        let inputs = model.inputs().keys().zip(&specs);
        let inputs = inputs.map(|(name, spec)| Input { name: name.clone(), dtype: spec.dtype }).collect();
        let outputs = model.outputs().iter();
        let outputs: Vec<_> = outputs.map(|(name, &value)| (name.clone(), program.spec(value).clone())).collect();
        let has_rows = |spec: &TensorSpec| spec.shape.dims().first() == Some(&Dim::BATCH);
        let is_by_row = specs.iter().chain(outputs.iter().map(|(_, spec)| spec)).all(has_rows);
        let queue = surroundings.batcher.as_ref().filter(|_| is_by_row && !specs.is_empty()).map(Queue::new);
        Signature { name: name.to_string(), model, inputs, specs, outputs, queue }
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

    /// Computes all outputs, in the order of `outputs`.
    pub(crate) fn run(&self, arrays: &[Array]) -> Answer<Vec<Array>> {
        let inputs: Vec<(&str, Array)> =
            self.inputs.iter().zip(arrays).map(|(input, array)| (input.name.as_str(), array.clone())).collect();
        // A panic of a kernel must not take the server down.
        let run = std::panic::AssertUnwindSafe(|| self.model.run(&inputs));
        match std::panic::catch_unwind(run) {
            Ok(outputs) => Ok(outputs?.into_values().collect()),
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
