//! What the host runs before or after the steps, before it is compiled.

use std::sync::Arc;

use estimand_graph::{Body, Step, Value};

/// What the host runs before or after the steps.
pub(super) struct HostSection<'a> {
    pub body: Arc<Body>,
    pub steps: &'a [Step],
    /// What it is called with.
    pub given: Vec<Value>,
    /// What it returns.
    pub results: &'a [Value],
}
