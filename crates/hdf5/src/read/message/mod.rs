//! The meanings of messages, a file for each type.

pub(super) mod attribute;
pub(super) mod dataspace;
pub(super) mod datatype;
pub(super) mod fill;
pub(super) mod layout;
pub(super) mod link;
pub(super) mod pipeline;
