//! Tensors that a hook computes separately from steps.

use estimand_graph::{Tensor, Value};
use estimand_tensor::{Array, Error, Result};

use super::{BeginContext, HookContext};

/// Tensors that a hook can compute at any time: [`BeginContext::side_run`] declares them,
/// [`HookContext::run`] computes them.
#[derive(Clone, Debug)]
pub struct SideRun {
    fetches: Vec<Value>,
    feeds: Vec<(Value, Array)>,
}

impl BeginContext<'_> {
    /// Declares tensors to compute separately, and the values of the placeholders they need.
    pub fn side_run(&self, fetches: &[&Tensor], feeds: &[(&Tensor, Array)]) -> Result<SideRun> {
        let fetches = fetches.iter().map(|tensor| self.own(tensor)).collect::<Result<_>>()?;
        let feeds = feeds.iter().map(|(tensor, array)| Ok((self.own(tensor)?, array.clone())));
        Ok(SideRun { fetches, feeds: feeds.collect::<Result<_>>()? })
    }
}

impl HookContext<'_> {
    /// Computes tensors from the current variables. If one of their ops assigns a variable, the new
    /// value stays. Each call compiles a program, so use it now and then, not at every step.
    pub fn run(&mut self, run: &SideRun) -> Result<Vec<Array>> {
        let compiled = self.session.compile(&run.fetches)?;
        let program = compiled.program();
        let feed = |id: &estimand_graph::NodeId| {
            let fed = run.feeds.iter().find(|(value, _)| value.node == *id);
            fed.map(|(_, array)| array.clone()).ok_or_else(|| {
                let node = program.body().node(*id);
                Error::config(format!("placeholder `{}` has no value: no step runs here that would feed it", node.name))
                    .at(node.site)
                    .help("feed it a value, or fetch only tensors that depend on variables alone")
            })
        };
        let feeds = compiled.prepare(program.placeholders().iter().map(feed).collect::<Result<_>>()?)?;
        let mut outputs = Vec::new();
        self.session.run(&compiled, &feeds, &mut outputs)?;
        Ok(outputs)
    }
}
