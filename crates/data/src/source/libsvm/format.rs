//! The format of LIBSVM text: turns chunks of files into rows.

use std::path::Path;

use estimand_tensor::Limits;

use super::line::{Fault, Layout, Rows, content};
use crate::files::chunk::{Bad, Chunk, Cut, Format, Parsed};
use crate::files::{BYTE_ORDER_MARK, Files, line_place};

#[derive(Debug)]
pub(super) struct LibSvmFormat {
    pub(super) layout: Layout,
}

impl Format for LibSvmFormat {
    const RECORD: &'static str = "row";

    fn longest(limits: &Limits) -> (usize, &'static str) {
        (limits.line_bytes, "line_bytes")
    }

    fn cut(&self, bytes: &[u8], _: u64, is_last: bool) -> Cut {
        let end = if is_last { bytes.len() } else { memchr::memrchr(b'\n', bytes).map_or(0, |i| i + 1) };
        Cut { end, damage: None }
    }

    fn parse(&self, chunk: &Chunk) -> Parsed {
        let mut parsed = Parsed::default();
        let mut rows = Rows::new(&self.layout);
        for (start, end, content) in lines(chunk) {
            match rows.add(content) {
                Ok(()) => parsed.ends.push(end),
                Err(Fault { message, help }) => {
                    parsed.bad.push_back(Bad { n_good: parsed.ends.len(), start, end, column: None, message, help });
                }
            }
        }
        match rows.batch() {
            Ok(batch) => parsed.batch = batch,
            Err(error) => parsed.fatal = Some(error),
        }
        parsed
    }

    fn place(&self, files: &Files, path: &Path, offset: u64) -> String {
        line_place(files, path, offset)
    }
}

/// The lines of a chunk that hold a row: the start and the end of each, and its content.
fn lines(chunk: &Chunk) -> impl Iterator<Item = (usize, usize, &[u8])> {
    let bytes = &chunk.bytes;
    let mark = if chunk.offset == 0 && bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let line_ends = memchr::memchr_iter(b'\n', bytes).map(|i| i + 1);
    let unended = (bytes.last() != Some(&b'\n')).then_some(bytes.len());
    let mut start = mark;
    line_ends.chain(unended).filter_map(move |end| {
        let line = std::mem::replace(&mut start, end)..end;
        let content = content(&bytes[line.clone()]);
        (!content.is_empty()).then_some((line.start, line.end, content))
    })
}
