//! The handling of bad rows. The quarantine counts them, writes them to a file with the reason, and
//! fails if there are too many.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use estimand_tensor::{Error, ErrorKind, Result};

use crate::stage::InputContext;

/// The handling of rows that a source cannot read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Ends the reading with an error that names the file, row and column.
    #[default]
    Fail,
    /// Leaves the row out. A warning gives the number of these rows and the first of them, once, at
    /// the end of the first pass.
    Skip,
    /// Leaves the row out and writes it to a file.
    Quarantine {
        /// A CSV file of `file,row,column,reason,text`. The first worker writes it in the first
        /// epoch. When reading resumes from a position, the file is continued.
        file: PathBuf,
        /// The number of bad rows allowed in an epoch; one more is an error.
        budget: u64,
    },
}

/// A bad row to write to the quarantine.
pub(crate) struct Record<'a> {
    pub(crate) path: &'a Path,
    pub(crate) row: u64,
    pub(crate) column: Option<&'a str>,
    pub(crate) message: &'a str,
    pub(crate) text: &'a [u8],
}

/// The quarantine of one reader.
pub(crate) struct Quarantined {
    path: PathBuf,
    budget: u64,
    n: u64,
    /// `None` for readers that do not write the file.
    file: Option<File>,
}

const HEADER: &str = "file,row,column,reason,text\n";

/// The largest number of bytes of a row that is written.
const LONGEST: usize = 64 << 10;

impl Quarantined {
    /// Opens the quarantine after `n` bad rows. Later rows in the file are cut off, because reading
    /// will find them again.
    pub(crate) fn open(path: &Path, budget: u64, cx: &InputContext, n: u64) -> Result<Quarantined> {
        let mut file = None;
        if cx.worker == 0 && cx.epoch == 0 {
            let failed = |error| Error::io(path, "write", &error);
            let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
            let mut opened = options.map_err(failed)?;
            let mut text = Vec::new();
            if n > 0 {
                opened.read_to_end(&mut text).map_err(failed)?;
            }
            let kept = kept(&text, n);
            opened.set_len(kept as u64).map_err(failed)?;
            opened.seek(SeekFrom::End(0)).map_err(failed)?;
            if kept == 0 {
                opened.write_all(HEADER.as_bytes()).map_err(failed)?;
            }
            file = Some(opened);
        }
        Ok(Quarantined { path: path.to_path_buf(), budget, n, file })
    }

    pub(crate) fn add(&mut self, record: &Record<'_>) -> Result<()> {
        self.n += 1;
        if let Some(file) = &mut self.file {
            let mut line = String::new();
            let text = &record.text[..record.text.len().min(LONGEST)];
            let text = String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(text));
            for (i, field) in [
                &record.path.display().to_string(),
                &record.row.to_string(),
                record.column.unwrap_or(""),
                record.message,
                &*text,
            ]
            .into_iter()
            .enumerate()
            {
                line.push_str(if i > 0 { ",\"" } else { "\"" });
                line.push_str(&field.replace('"', "\"\""));
                line.push('"');
            }
            line.push('\n');
            file.write_all(line.as_bytes()).map_err(|e| Error::io(&self.path, "write", &e))?;
        }
        if self.n > self.budget {
            let Record { path, row, column, message, .. } = record;
            let kind =
                ErrorKind::Data { path: Some(path.to_path_buf()), row: Some(*row), column: column.map(str::to_string) };
            let message = format!(
                "there are {} bad rows, but only {} were allowed; the last one: {message}",
                self.n, self.budget
            );
            return Err(Error::new(kind, message)
                .help(format!("see the bad rows in {}; correct the data, or raise the budget", self.path.display())));
        }
        Ok(())
    }
}

/// The length of the header and the first `n` rows in the text of the file.
fn kept(text: &[u8], n: u64) -> usize {
    let (mut quoted, mut n_lines) = (false, 0);
    for (i, byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => {
                n_lines += 1;
                if n_lines > n {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    0
}
