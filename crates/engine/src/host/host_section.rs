//! A host part of a program before it is compiled.

use std::sync::Arc;

use estimand_graph::{Body, Step, Value};

/// The steps that the host runs before or after those of the executor.
pub(super) struct HostSection<'a> {
    pub body: Arc<Body>,
    pub steps: &'a [Step],
    /// The values it gets.
    pub given: Vec<Value>,
    /// The values it returns.
    pub results: &'a [Value],
}
