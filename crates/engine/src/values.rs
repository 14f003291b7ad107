//! Replaces the values of all variables at once: read from a checkpoint, checked, then written to a
//! state.

use estimand_graph::{Role, State, VarId, VarSpec, Variables};
use estimand_tensor::{Array, Error, Result};

/// The variables that a checkpoint holds: all but those that live only for one run.
pub fn saved_variables(variables: &Variables) -> impl Iterator<Item = (VarId, &VarSpec)> {
    variables.iter().filter(|(_, spec)| spec.role != Role::Local)
}

/// Replaces the values of some variables of a state, and gives variables that the state lacks their
/// initial values. Nothing changes unless all values fit.
pub fn replace_values(
    state: &mut dyn State,
    variables: &Variables,
    seed: u64,
    values: Vec<(VarId, Array)>,
) -> Result<()> {
    for (id, value) in &values {
        let spec = variables.spec(*id);
        if value.dtype() != spec.dtype || value.dims() != &spec.dims[..] {
            let (given, sizes, dims) = (value.dtype(), value.dims(), &spec.dims[..]);
            return Err(Error::shape(format!(
                "variable `{}` is {given}{sizes:?} in the checkpoint and {}{dims:?} in the graph",
                spec.name, spec.dtype
            ))
            .at(spec.site));
        }
    }
    state.extend_with(variables, seed, values)
}
