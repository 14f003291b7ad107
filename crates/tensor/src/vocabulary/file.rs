//! Vocabulary files: one term per line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::terms::{Data, Terms, Text};
use super::{Vocabulary, index::MAX_TERMS};
use crate::cpu::text::parse_int;
use crate::{Error, ErrorKind, Limits, Result};

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// A file of terms, one per line; the first line is term 0.
///
/// Lines follow TensorFlow's rules. A line ends at `\n` or at the end of the file; the last line
/// needs no `\n`. One `\r` right before the end of a line is not part of the term. Every other byte
/// is part of it, including spaces and a byte-order mark. An empty line is an error, and so is a
/// term that occurs on two lines. After the first [`size`](VocabularyFile::size) lines the file may
/// hold anything.
///
/// ```no_run
/// # use estimand_tensor::vocabulary::{Unknown, VocabularyFile};
/// let vocabulary = VocabularyFile::new("words.txt").size(50_000).read()?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct VocabularyFile {
    path: PathBuf,
    size: Option<usize>,
    limits: Limits,
}

impl VocabularyFile {
    /// Reads all lines of a file.
    pub fn new(path: impl AsRef<Path>) -> VocabularyFile {
        VocabularyFile { path: path.as_ref().to_path_buf(), size: None, limits: Limits::default() }
    }

    /// Reads only the first `size` lines. A file with fewer lines is an error. By default, all
    /// lines are read.
    pub fn size(self, size: usize) -> VocabularyFile {
        VocabularyFile { size: Some(size), ..self }
    }

    /// The limits; [`Limits::field_bytes`] limits the length of a line. By default, 64 MiB: a file
    /// without line ends is no vocabulary.
    pub fn limits(self, limits: Limits) -> VocabularyFile {
        VocabularyFile { limits, ..self }
    }

    /// Reads a vocabulary of strings.
    pub fn read(&self) -> Result<Vocabulary> {
        self.in_file(Vocabulary::from_terms(self.terms()?, "line", 1))
    }

    /// Reads a vocabulary of integers. They may be surrounded by spaces.
    pub fn read_ints(&self) -> Result<Vocabulary> {
        self.in_file(Vocabulary::from_terms(self.int_terms()?, "line", 1))
    }

    /// Reads the strings in order; they may repeat. A table from ids to strings needs this form.
    pub fn terms(&self) -> Result<Terms> {
        // A file that is too large is refused while it is read. Reserving too little only costs
        // copies.
        let length = self.open()?.1.min(u32::MAX as usize);
        let mut text = self.in_file(Text::with_capacity(length))?;
        self.each_line(|_, term| text.push(term))?;
        text.shrink();
        Ok(Terms(Data::Text(text)))
    }

    fn int_terms(&self) -> Result<Terms> {
        let mut ints = Vec::new();
        self.each_line(|line, term| {
            // TF: TensorFlow stops reading a number at a NUL byte; here it is an error like any
            // other byte.
            let value = parse_int(term).ok_or_else(|| {
                let text = String::from_utf8_lossy(&term[..term.len().min(80)]).into_owned();
                self.bad_line(line, format!("\"{text}\" is not a 64-bit integer"))
            })?;
            ints.push(value);
            Ok(())
        })?;
        ints.shrink_to_fit();
        Ok(Terms::from_ints(ints))
    }

    fn open(&self) -> Result<(File, usize)> {
        let io = |error| Error::io(&self.path, "read the vocabulary", &error);
        let file = File::open(&self.path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        // A device or a pipe may never end.
        if !metadata.is_file() {
            return self.in_file(Err(Error::config("the vocabulary is not a regular file")));
        }
        Ok((file, usize::try_from(metadata.len()).unwrap_or(usize::MAX)))
    }

    /// Calls `each` with the number of each line, from 1, and its term.
    fn each_line(&self, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let size = self.size.unwrap_or(MAX_TERMS).min(MAX_TERMS);
        if self.size == Some(0) {
            return self.in_file(Err(Error::config("the size of the vocabulary is 0 lines; expected at least 1")));
        }
        let (mut file, _) = self.open()?;
        let mut n_lines = 0;
        let mut line = |term: &[u8]| {
            n_lines += 1;
            let term = term.strip_suffix(b"\r").unwrap_or(term);
            if term.is_empty() {
                return Err(self
                    .bad_line(n_lines, "the line is empty")
                    .help("remove it, or read fewer lines with size"));
            }
            each(n_lines, term).map_err(|error| match error.kind() {
                ErrorKind::Data { .. } => error,
                _ => error.context(format!("in {}", self.path.display())),
            })?;
            Ok(n_lines as usize == size)
        };
        let mut chunk = vec![0; CHUNK];
        // The bytes of an incomplete line.
        let mut rest = Vec::new();
        let complete = 'file: loop {
            let n = file.read(&mut chunk).map_err(|error| Error::io(&self.path, "read the vocabulary", &error))?;
            if n == 0 {
                // TF: the rest at the end is a line unless it is empty or a lone carriage return.
                let ended = matches!(&rest[..], b"" | b"\r");
                break !ended && line(&rest)?;
            }
            let mut parts = chunk[..n].split(|&byte| byte == b'\n');
            let last = parts.next_back().unwrap_or_default();
            for part in parts {
                let is_last = if rest.is_empty() {
                    line(part)?
                } else {
                    rest.extend_from_slice(part);
                    let is_last = line(&rest)?;
                    rest.clear();
                    is_last
                };
                if is_last {
                    break 'file true;
                }
            }
            rest.extend_from_slice(last);
            if rest.len() > self.limits.field_bytes {
                let limit = self.limits.field_bytes;
                let what = format!("the line has more than {limit} bytes; the limit is {limit} (`field_bytes`)");
                return Err(self.bad_line(n_lines + 1, what).help(Limits::remedy("field_bytes")));
            }
        };
        match self.size {
            Some(size) if !complete => self.in_file(Err(Error::config(format!(
                "the size of the vocabulary is {size} lines, but the file has {n_lines}"
            ))
            .help("pass a smaller size, or none to read all lines"))),
            None if complete => {
                self.in_file(Err(Error::config(format!("the vocabulary has more than {MAX_TERMS} lines"))))
            }
            _ => Ok(()),
        }
    }

    fn bad_line(&self, line: u64, what: impl Into<String>) -> Error {
        let kind = ErrorKind::Data { path: Some(self.path.clone()), row: Some(line), column: None };
        Error::new(kind, what).context(format!("in line {line} of {}", self.path.display()))
    }

    fn in_file<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.context(format!("in {}", self.path.display())))
    }
}
