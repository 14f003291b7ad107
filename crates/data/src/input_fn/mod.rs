//! Input functions that ported programs call: over arrays (`numpy_input_fn`), over tables
//! (`pandas_input_fn`), and over records of `tf.Example`s (`make_batched_features_dataset`). A
//! batch may hold rows of two epochs.
//!
//! ```
//! use estimand_data::input_fn;
//! use estimand_tensor::{Array, Result};
//!
//! let x = [("age", Array::from([39i64, 50, 38])), ("hours", Array::from([40.0f32, 13.0, 40.0]))];
//! let train = input_fn::arrays(x).labels(Array::from([0i64, 0, 1])).batch_size(4).n_epochs(Some(2)).shuffle(true);
//! let sizes: Vec<usize> = train.iter().map(|batch| Ok(batch?.n_rows())).collect::<Result<_>>()?;
//! assert_eq!(sizes, [4, 2]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! There are no options `queue_capacity` and `num_threads`: there is no queue. To prepare batches
//! ahead, add [`prefetch`](crate::Dataset::prefetch) to the dataset.

mod arrays;
mod features;
mod table;

pub use arrays::{ArraysInput, Columns, arrays};
pub use features::{FeaturesInput, batched_features};
pub use table::{TableInput, table};

use crate::Dataset;

/// The number of rows in a batch unless another is set, as in TensorFlow.
const BATCH_SIZE: usize = 128;

/// Makes batches of rows: shuffles all rows of each epoch, or keeps their order.
fn batches(rows: Dataset, shuffle: bool, n_epochs: Option<u64>, batch_size: usize) -> Dataset {
    let rows = if shuffle { rows.shuffle(usize::MAX, 0) } else { rows };
    let rows = match n_epochs {
        Some(n) => rows.repeat(n),
        None => rows.repeat_forever(),
    };
    rows.batch(batch_size)
}
