//! The sources of rows, one per file.

pub(crate) mod csr;
pub(crate) mod csv;
pub(crate) mod generator;
pub(crate) mod libsvm;
pub(crate) mod loaded;
pub(crate) mod memory;
pub(crate) mod placeholders;
mod records;
mod sequence;
mod text;
mod tfrecord;

/// Formats the text of a file for messages.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 80;
    let more = if text.len() > MOST { "..." } else { "" };
    format!("{}{more}", text[..text.len().min(MOST)].escape_ascii())
}
