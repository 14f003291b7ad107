//! Lines of text files.

use std::path::PathBuf;
use std::sync::Arc;

use estimand_tensor::{Array, Batch, BatchSpec, DType, FeatureSpec, Limits, Result, Strings};

use crate::files::Files;
use crate::files::chunk::{Chunk, Cut, Format, Parsed};
use crate::files::stream::FileStream;
use crate::stage::{InputContext, Stage, Stream};
use crate::{Dataset, Position};

impl Dataset {
    /// Creates a dataset from the lines of text files, as one unnamed feature without line ends
    /// (`\n` or `\r\n`), like `tf.data.TextLineDataset`.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("estimand-lines-{}.txt", std::process::id()));
    /// # std::fs::write(&path, "to be\r\n\nor not").unwrap();
    /// use estimand_data::Dataset;
    ///
    /// let lines = Dataset::from_text_lines(&path).batch(10).iter().next().unwrap()?;
    /// let expected = estimand_tensor::Array::from_strings([3], ["to be", "", "or not"])?;
    /// assert_eq!(lines.features()[""], expected.into());
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn from_text_lines(files: impl Into<Files>) -> Dataset {
        Dataset::new(TextLines { files: files.into() })
    }
}

struct TextLines {
    files: Files,
}

impl Stage for TextLines {
    fn describe(&self) -> String {
        format!("text lines: {}", self.files.describe())
    }

    fn identity(&self, cx: &InputContext) -> String {
        self.describe() + &self.files.identity(cx)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.files.resolve()?.to_vec())
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok([(String::new(), FeatureSpec::dense(DType::Str, []))].into_iter().collect())
    }

    fn reshuffles(&self) -> bool {
        self.files.is_shuffled()
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        Ok(Box::new(FileStream::open(&self.files, Arc::new(Lines), cx, from)?))
    }
}

/// The format of text: bytes up to a line end. Any bytes are valid.
struct Lines;

impl Format for Lines {
    const RECORD: &'static str = "line";

    fn longest(limits: &Limits) -> (usize, &'static str) {
        (limits.line_bytes, "line_bytes")
    }

    fn cut(&self, bytes: &[u8], _: u64, is_last: bool) -> Cut {
        let end = if is_last { bytes.len() } else { memchr::memrchr(b'\n', bytes).map_or(0, |i| i + 1) };
        Cut { end, damage: None }
    }

    fn parse(&self, chunk: &Chunk) -> Parsed {
        let mut parsed = Parsed::default();
        let mut lines = Strings::default();
        lines.reserve_bytes(chunk.bytes.len());
        let mut start = 0;
        let line_ends = memchr::memchr_iter(b'\n', &chunk.bytes).map(|i| i + 1);
        let unended = (chunk.bytes.last() != Some(&b'\n')).then_some(chunk.bytes.len());
        for end in line_ends.chain(unended) {
            let line = &chunk.bytes[start..end];
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            lines.push(line.strip_suffix(b"\r").unwrap_or(line));
            parsed.ends.push(end);
            start = end;
        }
        let batch =
            Array::from_string_list([lines.len()], lines).and_then(|lines| Batch::new().with_feature("", lines));
        match batch {
            Ok(batch) => parsed.batch = batch,
            Err(error) => parsed.fatal = Some(error),
        }
        parsed
    }
}
