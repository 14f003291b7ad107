//! Custom ops: host code as a node, for computations that no op offers.
//!
//! A custom op runs a closure over arrays. It cannot be exported: the GraphDef writer refuses it
//! and names it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use estimand_tensor::{Array, Error, Result, TensorSpec};

use crate::sizes::{Sizes, resolve};

type Kernel = dyn Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync;

/// A closure with the specs of its results, and optionally its gradient.
#[derive(Clone)]
pub struct CustomOp {
    pub(crate) name: Arc<str>,
    pub(crate) outputs: Vec<TensorSpec>,
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) gradient: Option<Arc<Kernel>>,
}

impl CustomOp {
    /// Creates an op with a name that calls `kernel` with the values of its inputs. The kernel must
    /// return one array for each of `outputs`.
    pub fn new(
        name: &str,
        outputs: impl Into<Vec<TensorSpec>>,
        kernel: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
    ) -> CustomOp {
        CustomOp { name: name.into(), outputs: outputs.into(), kernel: Arc::new(kernel), gradient: None }
    }

    /// Sets the gradient. It is called with the inputs, followed by the gradients of the outputs,
    /// and returns the gradients of the inputs.
    ///
    /// By default a custom op is not differentiable.
    pub fn gradient(mut self, gradient: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static) -> CustomOp {
        self.gradient = Some(Arc::new(gradient));
        self
    }

    /// Calls the closure and checks its results against the declared specs. `sizes` holds the
    /// values of the symbols in the specs.
    pub fn call(&self, inputs: &[Array], sizes: &Sizes) -> Result<Vec<Array>> {
        let results = (self.kernel)(inputs).map_err(|e| e.context(format!("in custom op `{}`", self.name)))?;
        if results.len() != self.outputs.len() {
            return Err(Error::config(format!(
                "custom op `{}` returned {} arrays, expected {}",
                self.name,
                results.len(),
                self.outputs.len()
            )));
        }
        for (i, (array, spec)) in results.iter().zip(&self.outputs).enumerate() {
            let dims = resolve(&spec.shape, sizes)?;
            if array.dtype() != spec.dtype || array.dims() != dims.as_slice() {
                return Err(Error::shape(format!(
                    "custom op `{}` returned {}{:?} as output {i}, expected {}{:?}",
                    self.name,
                    array.dtype(),
                    array.dims(),
                    spec.dtype,
                    dims.as_slice()
                )));
            }
        }
        Ok(results)
    }

    /// Returns the name of the op.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Two custom ops are equal if they are clones of the same op.
impl PartialEq for CustomOp {
    fn eq(&self, other: &CustomOp) -> bool {
        Arc::ptr_eq(&self.kernel, &other.kernel)
    }
}

impl Eq for CustomOp {}

impl Hash for CustomOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for CustomOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomOp({})", self.name)
    }
}
