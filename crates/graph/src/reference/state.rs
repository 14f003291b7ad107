//! The live variables of the reference executor.

use std::any::Any;
use std::sync::Arc;

use estimand_tensor::{Array, Error, Result};

use super::value::Wide;
use crate::executor::State;
use crate::variables::{VarId, Variables};

/// Every variable's value, shared with the runs that read it.
#[derive(Default)]
pub(super) struct Live {
    variables: Vec<(String, Arc<Wide>)>,
}

impl Live {
    /// The value now.
    pub fn value(&self, id: VarId) -> Result<&Arc<Wide>> {
        let found = self.variables.get(id.0 as usize).map(|(_, value)| value);
        found.ok_or_else(|| {
            Error::config(format!("variable {} was made after the state was placed", id.0))
                .help("add it with State::extend")
        })
    }

    /// Replaces a value by one of the same dtype and sizes.
    pub fn replace(&mut self, id: VarId, value: Arc<Wide>) -> Result<()> {
        self.value(id)?;
        let (name, old) = &mut self.variables[id.0 as usize];
        if old.dtype != value.dtype || old.dims != value.dims {
            return Err(Error::shape(format!(
                "{}{:?} for variable `{name}`, which is {}{:?}",
                value.dtype,
                value.dims(),
                old.dtype,
                old.dims()
            )));
        }
        *old = value;
        Ok(())
    }
}

impl State for Live {
    fn holds(&self, id: VarId) -> bool {
        (id.0 as usize) < self.variables.len()
    }

    fn read(&self, id: VarId) -> Result<Array> {
        self.value(id)?.to_array()
    }

    fn write(&mut self, id: VarId, value: &Array) -> Result<()> {
        self.replace(id, Arc::new(Wide::from_array(value)?))
    }

    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()> {
        for (id, spec) in variables.iter().skip(self.variables.len()) {
            let initial = Wide::from_array(&variables.initial(id, seed)?)?;
            self.variables.push((spec.name.clone(), Arc::new(initial)));
        }
        Ok(())
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
