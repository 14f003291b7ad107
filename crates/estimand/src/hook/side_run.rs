//! Tensors that a hook computes on its own, apart from steps.

use estimand_graph::{Tensor, Value};
use estimand_tensor::{Array, Error, Result};

use super::{BeginContext, HookContext};

/// Tensors that a hook computes when it wants to: [`BeginContext::side_run`] names them,
/// [`HookContext::run`] computes them.
#[derive(Clone, Debug)]
pub struct SideRun {
    fetches: Vec<Value>,
    feeds: Vec<(Value, Array)>,
}

impl BeginContext<'_> {
    /// Says what will be computed on its own, and what is fed to placeholders that it needs.
    pub fn side_run(&self, fetches: &[&Tensor], feeds: &[(&Tensor, Array)]) -> Result<SideRun> {
        let fetches = fetches.iter().map(|tensor| self.own(tensor)).collect::<Result<_>>()?;
        let feeds = feeds.iter().map(|(tensor, array)| Ok((self.own(tensor)?, array.clone())));
        Ok(SideRun { fetches, feeds: feeds.collect::<Result<_>>()? })
    }
}

impl HookContext<'_> {
    /// Computes tensors from the variables as they are now. What an op among them assigns stays. A
    /// program is compiled for it: this is for now and then, not for every step.
    pub fn run(&mut self, run: &SideRun) -> Result<Vec<Array>> {
        let compiled = self.session.compile(&run.fetches)?;
        let program = compiled.program();
        let feed = |id: &estimand_graph::NodeId| {
            let fed = run.feeds.iter().find(|(value, _)| value.node == *id);
            fed.map(|(_, array)| array.clone()).ok_or_else(|| {
                let node = program.body().node(*id);
                Error::config(format!("placeholder `{}` is needed, and no step is run that would feed it", node.name))
                    .at(node.site)
                    .help("feed it a value, or take what depends on variables alone")
            })
        };
        let feeds = compiled.prepare(program.placeholders().iter().map(feed).collect::<Result<_>>()?)?;
        let mut outputs = Vec::new();
        self.session.run(&compiled, &feeds, &mut outputs)?;
        Ok(outputs)
    }
}
