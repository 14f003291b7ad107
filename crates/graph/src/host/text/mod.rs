//! Strings: hashed, crossed, compared, changed, measured, split and joined; and numbers as strings.

mod as_string;
mod cross;
mod edit;
mod equal;
mod hash_bucket;
mod join;
mod measure;
mod split;

pub(crate) use as_string::AsString;
pub(crate) use cross::Cross;
pub(crate) use edit::Edit;
pub(crate) use equal::StringEqual;
pub(crate) use hash_bucket::HashBucket;
pub(crate) use join::{ReduceJoin, StringJoin};
pub(crate) use measure::{FullMatch, StringLength, ToNumber};
pub(crate) use split::StringSplit;
