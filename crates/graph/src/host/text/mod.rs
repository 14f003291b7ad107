//! String ops: hash, cross, compare, edit, measure, split and join strings; format numbers as text.

mod as_string;
mod cross;
mod edit;
mod equal;
mod hash_bucket;
mod join;
mod measure;
mod split;

pub use as_string::AsString;
pub use cross::Cross;
pub use edit::Edit;
pub use equal::StringEqual;
pub use hash_bucket::HashBucket;
pub use join::{ReduceJoin, StringJoin};
pub use measure::{FullMatch, StringLength, ToNumber};
pub use split::StringSplit;
