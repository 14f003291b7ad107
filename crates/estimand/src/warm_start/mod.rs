//! Warm start: a model that starts with the values of another training.
//!
//! [`WarmStartSettings`] selects variables and their source. `choice.rs` finds them in the model,
//! `values.rs` in the checkpoint. `vocab_info.rs` maps the rows of the old table to those of the
//! new one, `remap.rs` moves the rows, and `meaning.rs` checks that they keep their meaning.
//! Everything is read before any variable is changed.
//!
//! ```
//! use estimand::VocabInfo;
//! use estimand::nn::column::linear_model;
//! use estimand::prelude::*;
//!
//! # let base = std::env::temp_dir().join(format!("estimand-doc-warm-start-{}", std::process::id()));
//! # let (first, second) = (base.join("first"), base.join("second"));
//! let columns = |jobs: &[&str]| Columns::from([categorical_column_with_vocabulary_list("job", jobs).into()]);
//! let rows = |jobs: &[&str]| -> Result<Dataset> {
//!     let labels: Vec<i64> = jobs.iter().map(|job| i64::from(*job == "cook")).collect();
//!     let jobs = Array::from_strings([jobs.len()], jobs)?;
//!     Ok(Dataset::from_arrays([("job", jobs), ("y", Array::from(labels))]).label("y").batch(4))
//! };
//! let weights = "linear/linear_model/job/weights";
//! let old = LinearClassifier::new(columns(&["baker", "cook"])).model_dir(&first).build()?;
//! old.train(rows(&["cook", "baker"])?)?;
//!
//! let settings = WarmStartSettings::new(&first).vocab_info(weights, VocabInfo::new(["cook", "clerk", "baker"], ["baker", "cook"]));
//! let new = LinearClassifier::new(columns(&["cook", "clerk", "baker"])).warm_start_from(settings).model_dir(&second).build()?;
//! new.train(rows(&["clerk"])?)?;
//! let (before, after) = (old.variable_value(weights)?, new.variable_value(weights)?);
//! assert_eq!(after.as_slice::<f32>()?[0], before.as_slice::<f32>()?[1]); // the cook's row has moved
//! # std::fs::remove_dir_all(base).unwrap();
//! # Ok::<(), Error>(())
//! ```

mod choice;
mod meaning;
mod remap;
mod values;
mod vocab_info;

pub use vocab_info::{VocabInfo, VocabSource};

use std::path::{Path, PathBuf};

use estimand_tensor::{Array, Error, Limits, Result};
use indexmap::IndexMap;
use tracing::info;

use crate::keras::is_hdf5;
use crate::model_fn::GLOBAL_STEP;
use crate::model_folder::newest::read_at;
use crate::session::TrainSession;
use choice::{Chosen, Selection};
use values::Values;
use vocab_info::OldRows;

/// Selects the variables of a model that start with the values of a checkpoint, their names there,
/// and their vocabularies.
///
/// For all trainable variables a path is enough:
/// [`EstimatorBuilder::warm_start_from`](crate::EstimatorBuilder::warm_start_from) takes either.
/// The warm start applies only while the model folder has no checkpoint of its own. During that
/// time it also applies to evaluate and predict.
#[derive(Clone, Debug)]
#[must_use]
pub struct WarmStartSettings {
    checkpoint: PathBuf,
    selection: Selection,
    vocab_infos: IndexMap<String, VocabInfo>,
    prev_var_names: IndexMap<String, String>,
    prev_scopes: IndexMap<String, String>,
    optimizer_slots: bool,
    accept_changed_meaning: bool,
    limits: Limits,
}

impl WarmStartSettings {
    /// Starts from a checkpoint, the newest checkpoint of a folder, or the variables of a
    /// SavedModel, ours or TensorFlow's. By default, all trainable variables, matched by name.
    ///
    /// With the feature `keras_files`, also from a file of Keras. In a `.keras` file and a legacy
    /// `.h5` file weights have the names of variables, such as `dense/kernel`; in a `.weights.h5`
    /// file they are called by their places, such as `layers/dense/vars/0`.
    pub fn new(checkpoint: impl Into<PathBuf>) -> WarmStartSettings {
        WarmStartSettings {
            checkpoint: checkpoint.into(),
            selection: Selection::Trainable(".*".to_string()),
            vocab_infos: IndexMap::new(),
            prev_var_names: IndexMap::new(),
            prev_scopes: IndexMap::new(),
            optimizer_slots: false,
            accept_changed_meaning: false,
            limits: Limits::default(),
        }
    }

    /// Selects trainable variables by a regular expression that matches the beginning of the name.
    /// By default, `.*`.
    pub fn vars(mut self, pattern: impl Into<String>) -> WarmStartSettings {
        self.selection = Selection::Trainable(pattern.into());
        self
    }

    /// Selects among all saved variables by regular expressions that match the beginning of the
    /// name. These include slots of optimizers, moving statistics and `global_step`, which then
    /// continues from its old value.
    pub fn saved_vars<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> WarmStartSettings {
        self.selection = Selection::Saved(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Selects the variables with exactly these names.
    pub fn named_vars<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> WarmStartSettings {
        self.selection = Selection::Named(names.into_iter().map(Into::into).collect());
        self
    }

    /// Selects only the trainable variables that have a
    /// [`vocab_info`](WarmStartSettings::vocab_info).
    pub fn only_vocab_vars(mut self) -> WarmStartSettings {
        self.selection = Selection::Vocabularies;
        self
    }

    /// Sets the vocabularies of a variable whose rows or columns belong to terms of a changed
    /// vocabulary. By default, no variable has one.
    pub fn vocab_info(mut self, variable: impl Into<String>, vocab_info: VocabInfo) -> WarmStartSettings {
        self.vocab_infos.insert(variable.into(), vocab_info);
        self
    }

    /// Sets the name that a variable has in the checkpoint. This only renames; selections use the
    /// name in the model. By default, both names are the same.
    pub fn prev_var_name(mut self, variable: impl Into<String>, in_checkpoint: impl Into<String>) -> WarmStartSettings {
        self.prev_var_names.insert(variable.into(), in_checkpoint.into());
        self
    }

    /// Sets the names of several variables in the checkpoint, by their names in the model.
    pub fn prev_var_names<V: Into<String>, C: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = (V, C)>,
    ) -> WarmStartSettings {
        self.prev_var_names.extend(names.into_iter().map(|(variable, prev)| (variable.into(), prev.into())));
        self
    }

    /// Sets the scope that the variables of a scope have in the checkpoint, unless they have a name
    /// of their own there. An empty scope has all variables: `prev_scope("base", "")` finds
    /// `base/conv/kernel` as `conv/kernel`. By default, both scopes are the same.
    pub fn prev_scope(mut self, scope: impl Into<String>, in_checkpoint: impl Into<String>) -> WarmStartSettings {
        self.prev_scopes.insert(scope.into(), in_checkpoint.into());
        self
    }

    /// Sets whether optimizer slots are loaded with their variables, under the same vocabularies.
    /// New rows get the slot's initial value. Steps are still counted from 0. By default, slots
    /// start with their initial values.
    pub fn optimizer_slots(mut self, with_slots: bool) -> WarmStartSettings {
        self.optimizer_slots = with_slots;
        self
    }

    /// Sets whether to load rows whose ids now stand for other terms or hashes, without a
    /// [`vocab_info`](WarmStartSettings::vocab_info) that moves them. The differences are logged.
    /// By default, they are refused with a list of the differences.
    pub fn accept_changed_meaning(mut self, accept: bool) -> WarmStartSettings {
        self.accept_changed_meaning = accept;
        self
    }

    /// Sets how much the file may demand of its reader. By default, [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> WarmStartSettings {
        self.limits = limits;
        self
    }

    /// Checks everything that needs neither a model nor a file.
    pub(crate) fn check(&self) -> Result<()> {
        if self.checkpoint.as_os_str().is_empty() {
            return Err(
                Error::config("the path of the warm start is empty").help("name a checkpoint or a folder of them")
            );
        }
        self.selection.check()?;
        for (name, info) in &self.vocab_infos {
            info.check().map_err(|e| e.context(format!("in the vocabulary of `{name}`")))?;
        }
        Ok(())
    }

    /// Sets the variables of a session to the values of the checkpoint, whether or not the model
    /// folder has a checkpoint. This is for hooks that warm-start themselves. If any part cannot be
    /// read, nothing changes.
    pub fn apply(&self, session: &mut TrainSession) -> Result<()> {
        self.check()?;
        let (prefix, old) = match is_hdf5(&self.checkpoint) && !self.checkpoint.is_dir() {
            true => (self.checkpoint.clone(), Values::open_keras(&self.checkpoint, &self.limits)?),
            false => read_at(&self.checkpoint, |prefix| Values::open(prefix, &self.limits))?,
        };
        info!("Warm-starting from {}", prefix.display());
        let body = session.body().clone();
        let chosen = self.choose(&body)?;
        let mut old_rows = OldRows::default();
        let mut values = Vec::with_capacity(chosen.len());
        for one in &chosen {
            let value = read(one, &old, &mut old_rows, session.seed());
            values.push(value.map_err(|e| e.context(format!("in the warm start of `{}`", one.spec.name)))?);
        }
        meaning::check(&chosen, old.manifest()?, session.manifest(), &prefix, self.accept_changed_meaning)?;
        for (one, value) in chosen.iter().zip(&values) {
            session.set_value(&one.spec.name, value)?;
            if one.spec.name == GLOBAL_STEP {
                session.step = u64::try_from(value.item::<i64>()?).unwrap_or(0);
            }
        }
        let names: Vec<&str> = chosen.iter().map(|one| one.spec.name.as_str()).collect();
        info!("Warm-started {} variables: {}", names.len(), names.join(", "));
        Ok(())
    }
}

macro_rules! from_paths {
    ($($path:ty),*) => {
        $(impl From<$path> for WarmStartSettings {
            fn from(checkpoint: $path) -> WarmStartSettings {
                WarmStartSettings::new(checkpoint)
            }
        })*
    };
}
from_paths!(&str, &String, String, &Path, &PathBuf, PathBuf);

impl From<&WarmStartSettings> for WarmStartSettings {
    fn from(settings: &WarmStartSettings) -> WarmStartSettings {
        settings.clone()
    }
}

/// Reads the value of one variable: unchanged from the checkpoint, or with its rows moved to their
/// new positions.
fn read<'a>(one: &Chosen<'a>, values: &Values, old_rows: &mut OldRows<'a>, seed: u64) -> Result<Array> {
    let spec = one.spec;
    let absent = |e: Error| match one.is_slot {
        true => e.help(
            "leave out optimizer_slots, so that slots start anew: only the optimizer that wrote a checkpoint finds its \
             slots there",
        ),
        false => e,
    };
    let old = values.read(&one.prev_name, spec.dtype).map_err(absent)?;
    let Some((info, fresh)) = one.vocab else {
        if old.dtype() != spec.dtype || old.dims() != &spec.dims[..] {
            let (given, dims) = (old.dtype(), old.dims());
            let expected = format!("{}{:?}", spec.dtype, &spec.dims[..]);
            let message =
                format!("`{}` is {given}{dims:?} in the checkpoint and {expected} in the model", one.prev_name);
            return Err(Error::shape(message).help(
                "if rows belong to the terms of a vocabulary that has changed, say so with vocab_info; or choose other variables",
            ));
        }
        return Ok(old);
    };
    let old_rows = old_rows.of(info)?;
    let fresh = fresh.sample(spec.dtype, &spec.dims, seed, &spec.name)?;
    let value = remap::remap(&old, &fresh, info.axis_number(), old_rows)?;
    let n_kept = old_rows.iter().flatten().count();
    let what = if info.axis_number() == 0 { "rows" } else { "columns" };
    info!(
        "Warm-starting {}: {n_kept} of {} {what} from the checkpoint, {} new",
        spec.name,
        old_rows.len(),
        old_rows.len() - n_kept
    );
    Ok(value)
}
