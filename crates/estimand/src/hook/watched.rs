//! A tensor that a hook watches, given directly or by name.

use std::panic::Location;

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};

use super::{BeginContext, Fetch, HookContext};

/// A watched tensor, before and after it was requested.
pub(super) enum Watched {
    Tensor(Tensor),
    /// Its name, and the line that named it.
    Named(String, &'static Location<'static>),
    Fetched(Fetch),
}

impl Watched {
    /// Requests the tensor, in every step or on request.
    pub(super) fn ask(&mut self, cx: &mut BeginContext<'_>, on_request: bool) -> Result<()> {
        let tensor = match self {
            Watched::Tensor(tensor) => tensor.clone(),
            Watched::Named(name, site) => cx.graph().find(name).map_err(|error| error.at(site))?,
            Watched::Fetched(_) => return Ok(()),
        };
        let fetch = if on_request { cx.fetch_on_request(&tensor)? } else { cx.fetch(&tensor)? };
        *self = Watched::Fetched(fetch);
        Ok(())
    }

    /// Returns its value in the last step, if it was computed.
    pub(super) fn value<'a>(&self, cx: &'a HookContext<'_>) -> Option<&'a Array> {
        match self {
            Watched::Fetched(fetch) => cx.value(*fetch),
            Watched::Tensor(_) | Watched::Named(..) => None,
        }
    }
}
