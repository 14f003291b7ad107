//! Strings: lengths.

mod length;

pub(crate) use length::StringLength;
