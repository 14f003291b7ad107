//! String kernels and vocabularies against TensorFlow, and against hostile input.

mod counts;
mod cross;
mod expressions;
mod hash;
mod ops;
mod vocabulary;

use estimand_fixture::Case;
use estimand_tensor::Strings;

/// The strings of a case.
fn strings(case: &Case, key: &str) -> Strings {
    case.strings(key).into_iter().collect()
}
