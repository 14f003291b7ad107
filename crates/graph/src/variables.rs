//! The schema of a model's state: names, shapes, roles and initial values. An executor's `State`
//! holds the live values.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

use estimand_tensor::{Array, DType, Dims, Error, Result, element_count};
use estimand_update::Constraint;

use crate::Initializer;

/// The index of a variable in its graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VarId(pub u32);

/// The role of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Part of the model.
    Model {
        /// Whether optimizers change it.
        trainable: bool,
    },
    /// A slot: state that an optimizer keeps for another variable.
    Slot {
        /// The variable it belongs to.
        of: VarId,
    },
    /// Counts training steps.
    Step,
    /// Holds the sums of a metric; never saved.
    Local,
}

/// The specification of one variable.
#[derive(Clone, Debug)]
pub struct VarSpec {
    /// The full name with scopes, as in a checkpoint.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Dims,
    /// Its value before training.
    pub initializer: Initializer,
    /// The role of the variable.
    pub role: Role,
    /// The constraint that holds after an optimizer has changed the variable.
    pub constraint: Option<Arc<dyn Constraint>>,
    /// The source line that made the variable.
    pub site: &'static Location<'static>,
}

/// All variables of a graph, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    specs: Vec<VarSpec>,
    by_name: HashMap<String, VarId>,
}

impl Variables {
    pub(crate) fn add(&mut self, spec: VarSpec) -> Result<VarId> {
        let place = |e: Error| e.context(format!("in variable `{}`", spec.name));
        element_count(&spec.dims).map_err(place)?;
        if spec.name.is_empty() {
            return Err(Error::config("a variable needs a name"));
        }
        spec.initializer.check(spec.dtype, &spec.dims).map_err(place)?;
        if let Some(first) = self.by_name.get(&spec.name) {
            let first = self.spec(*first).site;
            return Err(Error::config(format!(
                "variable `{}` already exists; it was created at {}:{}",
                spec.name,
                first.file(),
                first.line()
            ))
            .help("open a scope around one of them, or use graph.get_variable to share it"));
        }
        let id = VarId(self.specs.len() as u32);
        self.by_name.insert(spec.name.clone(), id);
        self.specs.push(spec);
        Ok(id)
    }

    /// Sets the constraint that holds after every update of a variable.
    pub(crate) fn constrain(&mut self, id: VarId, constraint: Arc<dyn Constraint>) -> Result<()> {
        let spec = &mut self.specs[id.0 as usize];
        let place = |e: Error| e.context(format!("in variable `{}`", spec.name));
        if spec.dtype != DType::F32 {
            let text = format!(
                "the constraint {} was given a variable of {}; constraints need f32",
                constraint.name(),
                spec.dtype
            );
            return Err(place(Error::dtype(Some(DType::F32), spec.dtype, text)));
        }
        let refusal = |text: String| place(Error::config(format!("{}: {text}", constraint.name())));
        constraint.check(&spec.dims).map_err(refusal)?;
        spec.constraint = Some(constraint);
        Ok(())
    }

    /// The number of variables.
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// One variable.
    pub fn spec(&self, id: VarId) -> &VarSpec {
        &self.specs[id.0 as usize]
    }

    /// All variables in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (VarId, &VarSpec)> {
        self.specs.iter().enumerate().map(|(i, s)| (VarId(i as u32), s))
    }

    /// Returns the variable with a name, if there is one.
    pub fn get(&self, name: &str) -> Option<VarId> {
        self.by_name.get(name).copied()
    }

    /// Returns the variable with a name. The error suggests the nearest name.
    pub fn find(&self, name: &str) -> Result<VarId> {
        let known = || self.specs.iter().map(|s| s.name.as_str());
        self.get(name).ok_or_else(|| Error::missing_variable(name, known()))
    }

    /// Returns the value of a variable before training: a pure function of the seed and the name.
    pub fn initial(&self, id: VarId, seed: u64) -> Result<Array> {
        let spec = self.spec(id);
        spec.initializer.sample(spec.dtype, &spec.dims, seed, &spec.name)
    }
}
