//! The variables of the reference executor.

use std::any::Any;
use std::sync::Arc;

use estimand_graph::executor::{State, misfit, missing};
use estimand_graph::{VarSpec, Variables};
use estimand_tensor::{Array, Result};
use indexmap::IndexMap;

use super::value::Wide;

/// The value of every variable by name, shared with the runs that read it.
#[derive(Clone, Default)]
pub(super) struct Live {
    variables: IndexMap<String, Arc<Wide>>,
}

impl Live {
    /// Creates a state from these values.
    pub fn of(values: &IndexMap<String, Array>) -> Result<Live> {
        let wide = |(name, value): (&String, &Array)| Ok((name.clone(), Arc::new(Wide::from_array(value)?)));
        Ok(Live { variables: values.iter().map(wide).collect::<Result<_>>()? })
    }

    /// The current value of a program's variable.
    pub fn value(&self, spec: &VarSpec) -> Result<&Arc<Wide>> {
        let value = self.variables.get(&spec.name).ok_or_else(|| missing(&spec.name))?;
        match value.dtype == spec.dtype && value.dims == spec.dims {
            true => Ok(value),
            false => Err(misfit(&spec.name, (value.dtype, &value.dims), (spec.dtype, &spec.dims))),
        }
    }

    /// Replaces a value with one of the same dtype and sizes.
    pub fn replace(&mut self, name: &str, value: Arc<Wide>) -> Result<()> {
        let held = self.variables.get_mut(name).ok_or_else(|| missing(name))?;
        if held.dtype != value.dtype || held.dims != value.dims {
            return Err(misfit(name, (value.dtype, &value.dims), (held.dtype, &held.dims)));
        }
        *held = value;
        Ok(())
    }
}

impl State for Live {
    fn holds(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    fn read(&self, name: &str) -> Result<Array> {
        self.variables.get(name).ok_or_else(|| missing(name))?.to_array()
    }

    fn write(&mut self, name: &str, value: &Array) -> Result<()> {
        self.replace(name, Arc::new(Wide::from_array(value)?))
    }

    fn extend(&mut self, variables: &Variables, seed: u64) -> Result<()> {
        for (id, spec) in
            variables.iter().filter(|(_, spec)| !self.variables.contains_key(&spec.name)).collect::<Vec<_>>()
        {
            let initial = Wide::from_array(&variables.initial(id, seed)?)?;
            self.variables.insert(spec.name.clone(), Arc::new(initial));
        }
        Ok(())
    }

    fn freeze(self: Box<Self>) -> Arc<dyn State> {
        Arc::new(*self)
    }

    fn copy(&self) -> Result<Box<dyn State>> {
        // Values are replaced, never modified, so sharing them is as good as a copy.
        Ok(Box::new(self.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
