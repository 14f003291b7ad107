//! Contract checks for columns, layers, losses and metrics. They also run on custom ones.
//!
//! ```
//! use estimand_nn::Dense;
//! use estimand_nn::testing::{check_layer, spread};
//! check_layer(&Dense::new(2).tanh(), &spread(&[3, 4])?)?;
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod column;
mod differences;
mod layer;
mod loss;
mod metric;

use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, Dim, Error, Result, Shape};

pub use column::check_column;
pub use layer::{check_layer, check_layer_of};
pub use loss::check_loss;
pub use metric::{check_metric, metric_array, metric_value};

/// Floats between -1 and 1 in no order. No two are close to each other, so no maximum is a tie.
pub fn spread(dims: &[usize]) -> Result<Array> {
    let n = estimand_tensor::element_count(dims)?;
    // Multiples of the golden ratio are spread as evenly as possible.
    let value = |i: usize| ((i as f64 + 0.5) * 0.618_033_988_75).fract() * 2.0 - 1.0;
    Array::from_vec(dims, (0..n).map(|i| value(i) as f32).collect())
}

/// A placeholder for any number of rows like those of the array.
fn rows(graph: &Graph, name: &str, like: &Array) -> Tensor {
    let mut shape = Shape::from(like.dims());
    if let Some(first) = shape.0.first_mut() {
        *first = Dim::BATCH;
    }
    graph.placeholder(name, like.dtype(), shape)
}

/// Returns a contract error unless `holds` is true.
fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::config(broken())) }
}

/// Returns an error unless two arrays are equal to the last bit.
fn ensure_same(what: &str, a: &Array, b: &Array) -> Result<()> {
    ensure(a.dims() == b.dims() && a.bytes() == b.bytes(), || format!("{what}: {a:?} is not {b:?}"))
}
