//! Strings: hashes, crosses, lengths.

mod cross;
mod hash_bucket;
mod length;

pub(crate) use cross::Cross;
pub(crate) use hash_bucket::HashBucket;
pub(crate) use length::StringLength;
