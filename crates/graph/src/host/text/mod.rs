//! Strings: hashed, crossed, changed, measured, split and joined.

mod cross;
mod edit;
mod hash_bucket;
mod join;
mod measure;
mod split;

pub(crate) use cross::Cross;
pub(crate) use edit::Edit;
pub(crate) use hash_bucket::HashBucket;
pub(crate) use join::{ReduceJoin, StringJoin};
pub(crate) use measure::{FullMatch, StringLength, ToNumber};
pub(crate) use split::StringSplit;
