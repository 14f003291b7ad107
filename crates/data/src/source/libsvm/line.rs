//! Parses one line of a LIBSVM file: a label, perhaps a query, and pairs of index and value.

use estimand_tensor::cpu::text::{ParseNumber, parse_int};
use estimand_tensor::{Array, Batch, DType, Ragged, Result};

use super::{IDS, LABEL, QID, VALUES};
use crate::source::shown;

/// The options that decide how a line is read.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The index of the first feature.
    pub(super) base: u64,
    /// Larger indices are errors.
    pub(super) n_features: Option<usize>,
    pub(super) label_dtype: DType,
    pub(super) has_many_labels: bool,
    pub(super) has_query: bool,
}

/// An error in a line.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Fault {
    fn new(message: String) -> Fault {
        Fault { message, help: None }
    }

    fn help(self, help: &str) -> Fault {
        Fault { help: Some(help.to_string()), ..self }
    }
}

/// The rows of a chunk.
pub(super) struct Rows<'a> {
    layout: &'a Layout,
    ids: Vec<i64>,
    values: Vec<f32>,
    /// The end of each row in `ids` and `values`, after a 0.
    splits: Vec<i64>,
    labels: Labels,
    queries: Vec<i64>,
}

/// The labels of rows, in the dtype of their feature.
enum Labels {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Many { values: Vec<i64>, splits: Vec<i64> },
}

/// The part of a line that holds a row: without the comment and white space around. Empty if there
/// is none.
pub(super) fn content(line: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    line[..end].trim_ascii()
}

impl<'a> Rows<'a> {
    pub(super) fn new(layout: &'a Layout) -> Rows<'a> {
        let labels = match (layout.has_many_labels, layout.label_dtype) {
            (true, _) => Labels::Many { values: Vec::new(), splits: vec![0] },
            (false, DType::F64) => Labels::F64(Vec::new()),
            (false, DType::I32) => Labels::I32(Vec::new()),
            (false, DType::I64) => Labels::I64(Vec::new()),
            (false, DType::F32 | DType::U8 | DType::Bool | DType::Str) => Labels::F32(Vec::new()),
        };
        Rows { layout, ids: Vec::new(), values: Vec::new(), splits: vec![0], labels, queries: Vec::new() }
    }

    /// Adds the row of a line. Adds nothing if there is an error.
    pub(super) fn add(&mut self, content: &[u8]) -> Result<(), Fault> {
        let n_values = self.ids.len();
        let (n_labels, n_queries) = (self.labels.len(), self.queries.len());
        let added = self.try_add(content);
        match added {
            Ok(()) => self.splits.push(self.ids.len() as i64),
            Err(_) => {
                self.ids.truncate(n_values);
                self.values.truncate(n_values);
                self.labels.truncate(n_labels);
                self.queries.truncate(n_queries);
            }
        }
        added
    }

    fn try_add(&mut self, content: &[u8]) -> Result<(), Fault> {
        let mut words = content.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).peekable();
        // A row without labels begins with its first pair.
        let has_label = !self.layout.has_many_labels || words.peek().is_some_and(|word| !word.contains(&b':'));
        self.labels.add(if has_label { words.next().unwrap_or_default() } else { b"" })?;
        let query = words.next_if(|word| word.starts_with(b"qid:"));
        if self.layout.has_query {
            let Some(query) = query else {
                return Err(Fault::new("the row has no query; expected `qid:number` after the label".to_string()));
            };
            self.queries.push(parse_int(&query[b"qid:".len()..]).ok_or_else(|| {
                Fault::new(format!("the query is \"{}\"; expected `qid:` and an integer", shown(query)))
            })?);
        }
        let mut last = None;
        for pair in words {
            let (index, value) = parse_pair(pair)?;
            if let Some(last) = last.filter(|last| index <= *last) {
                return Err(Fault::new(format!("the index {index} follows {last}; expected rising indices"))
                    .help("sort the pairs of each row by their index, and give each index once"));
            }
            last = Some(index);
            self.ids.push(self.layout.id(index)?);
            self.values.push(value);
        }
        Ok(())
    }

    pub(super) fn batch(self) -> Result<Batch> {
        let batch = Batch::new()
            .with_feature(IDS, Ragged::new(Array::from(self.ids), self.splits.clone())?)?
            .with_feature(VALUES, Ragged::new(Array::from(self.values), self.splits)?)?;
        let batch = match self.layout.has_query {
            true => batch.with_feature(QID, Array::from(self.queries))?,
            false => batch,
        };
        match self.labels {
            Labels::F32(values) => batch.with_feature(LABEL, Array::from(values)),
            Labels::F64(values) => batch.with_feature(LABEL, Array::from(values)),
            Labels::I32(values) => batch.with_feature(LABEL, Array::from(values)),
            Labels::I64(values) => batch.with_feature(LABEL, Array::from(values)),
            Labels::Many { values, splits } => batch.with_feature(LABEL, Ragged::new(Array::from(values), splits)?),
        }
    }
}

impl Layout {
    /// The id of a feature, counted from 0.
    fn id(&self, index: u64) -> Result<i64, Fault> {
        let Some(id) = index.checked_sub(self.base) else {
            return Err(Fault::new("the index is 0, but the first feature has index 1".to_string())
                .help("if the files count from 0, set index_base(IndexBase::Zero)"));
        };
        if let Some(n) = self.n_features.filter(|&n| id >= n as u64) {
            let last = n as u64 - 1 + self.base;
            return Err(Fault::new(format!(
                "the index {index} is beyond the last feature of {n}, which has index {last}"
            ))
            .help("raise n_features"));
        }
        i64::try_from(id).map_err(|_| Fault::new(format!("the index {index} does not fit 63 bits")))
    }
}

/// The index and the value of a pair.
fn parse_pair(pair: &[u8]) -> Result<(u64, f32), Fault> {
    let fault = |what: &str| Fault::new(format!("\"{}\" {what}; expected `index:value`", shown(pair)));
    let colon = memchr::memchr(b':', pair).ok_or_else(|| fault("has no colon"))?;
    let (index, value) = (&pair[..colon], &pair[colon + 1..]);
    let index = parse_int(index).and_then(|index| u64::try_from(index).ok());
    let index = index.ok_or_else(|| fault("does not begin with an index, an integer from 0 to 2^63 - 1"))?;
    let value = f32::parse(value).ok_or_else(|| fault("does not end with a number"))?;
    Ok((index, value))
}

impl Labels {
    fn len(&self) -> usize {
        match self {
            Labels::F32(values) => values.len(),
            Labels::F64(values) => values.len(),
            Labels::I32(values) => values.len(),
            Labels::I64(values) => values.len(),
            Labels::Many { splits, .. } => splits.len(),
        }
    }

    fn truncate(&mut self, n: usize) {
        match self {
            Labels::F32(values) => values.truncate(n),
            Labels::F64(values) => values.truncate(n),
            Labels::I32(values) => values.truncate(n),
            Labels::I64(values) => values.truncate(n),
            Labels::Many { values, splits } => {
                splits.truncate(n);
                values.truncate(splits.last().map_or(0, |&end| end as usize));
            }
        }
    }

    fn add(&mut self, text: &[u8]) -> Result<(), Fault> {
        let fault = |expected: &str| Fault::new(format!("the label is \"{}\"; expected {expected}", shown(text)));
        let integer = |text: &[u8]| parse_integer(text);
        match self {
            Labels::F32(values) => values.push(f32::parse(text).ok_or_else(|| fault("a number"))?),
            Labels::F64(values) => values.push(f64::parse(text).ok_or_else(|| fault("a number"))?),
            Labels::I32(values) => {
                let value = integer(text).and_then(|value| i32::try_from(value).ok());
                values.push(value.ok_or_else(|| fault("an integer (i32)"))?);
            }
            Labels::I64(values) => values.push(integer(text).ok_or_else(|| fault("an integer"))?),
            Labels::Many { values, splits } => {
                for label in text.split(|&byte| byte == b',').filter(|_| !text.is_empty()) {
                    let label = integer(label);
                    values.push(label.ok_or_else(|| fault("integers with commas between them"))?);
                }
                splits.push(values.len() as i64);
            }
        }
        Ok(())
    }
}

/// An integer, perhaps with a `+`, or written as a float without a fraction: `+1`, `2.0`.
fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    parse_int(digits).or_else(|| {
        let value = f64::parse(text)?;
        // Integers of this size are exact.
        (value.fract() == 0.0 && value.abs() <= (1u64 << 53) as f64).then_some(value as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(base: u64) -> Layout {
        Layout { base, n_features: None, label_dtype: DType::F32, has_many_labels: false, has_query: false }
    }

    #[test]
    fn lines_by_the_definition_of_the_format() {
        let layout = layout(1);
        let mut rows = Rows::new(&layout);
        for line in ["+1 1:0.5 3:-2e-1 # 9:9", "  -1.5\t2:inf \r", "0 qid:7 1:0x10", "1", "3 10:nan"] {
            rows.add(content(line.as_bytes())).unwrap();
        }
        assert_eq!(rows.ids, [0, 2, 1, 0, 9]);
        assert_eq!(rows.values[..4], [0.5, -0.2, f32::INFINITY, 16.0]);
        assert!(rows.values[4].is_nan());
        assert_eq!(rows.splits, [0, 2, 3, 4, 4, 5]);
        assert!(matches!(&rows.labels, Labels::F32(labels) if *labels == [1.0, -1.5, 0.0, 1.0, 3.0]));
        for blank in ["", " \t\r", "# a comment", "  #"] {
            assert!(content(blank.as_bytes()).is_empty());
        }
    }

    #[test]
    fn a_bad_line_leaves_nothing() {
        let many = Layout { has_many_labels: true, has_query: true, n_features: Some(9), ..layout(1) };
        let mut rows = Rows::new(&many);
        rows.add(b"1,2 qid:1 1:1").unwrap();
        for (line, text) in [
            ("1,x qid:1 1:1", "the label is \"1,x\"; expected integers with commas between them"),
            ("1,,2 qid:1 1:1", "expected integers with commas"),
            ("1 1:1", "no query"),
            ("1 qid: 1:1", "the query is \"qid:\""),
            ("1 qid:x 1:1", "the query is \"qid:x\""),
            ("1 qid:1 1:1 2", "\"2\" has no colon; expected `index:value`"),
            ("1 qid:1 1:1 x:2", "does not begin with an index"),
            ("1 qid:1 1:1 -2:2", "does not begin with an index"),
            ("1 qid:1 99999999999999999999:2", "does not begin with an index"),
            ("1 qid:1 9223372036854775807:2", "beyond the last feature of 9, which has index 9"),
            ("1 qid:1 1:1 2:", "does not end with a number"),
            ("1 qid:1 1:1 2:3:4", "does not end with a number"),
            ("1 qid:1 1:1 2:x", "does not end with a number"),
            ("1 qid:1 0:1", "the index is 0, but the first feature has index 1"),
            ("1 qid:1 2:1 2:1", "the index 2 follows 2; expected rising indices"),
            ("1 qid:1 3:1 2:1", "the index 2 follows 3"),
            ("1 qid:1 10:1", "the index 10 is beyond"),
        ] {
            let fault = rows.add(line.as_bytes()).unwrap_err();
            assert!(fault.message.contains(text), "{line}: {}", fault.message);
        }
        rows.add(b"qid:2 9:2").unwrap();
        let batch = rows.batch().unwrap();
        assert_eq!(batch.n_rows(), 2);
        assert_eq!(batch.features()[QID], Array::from([1i64, 2]).into());
        assert_eq!(batch.features()[LABEL], Ragged::new(Array::from([1i64, 2]), [0, 2, 2]).unwrap().into());
        assert_eq!(batch.features()[IDS], Ragged::new(Array::from([0i64, 8]), [0, 1, 2]).unwrap().into());
    }

    #[test]
    fn labels_of_each_dtype() {
        for (dtype, text, expected) in [
            (DType::I64, "+1", Some(1.0)),
            (DType::I64, "-1", Some(-1.0)),
            (DType::I32, "2.0", Some(2.0)),
            (DType::I32, "3000000000", None),
            (DType::I64, "1.5", None),
            (DType::I64, "nan", None),
            (DType::I64, "1e300", None),
            (DType::F64, "1.5", Some(1.5)),
            (DType::F32, "one", None),
            (DType::F32, "1:2", None),
        ] {
            let layout = Layout { label_dtype: dtype, ..layout(0) };
            let mut rows = Rows::new(&layout);
            let added = rows.add(text.as_bytes());
            match expected {
                None => assert!(added.unwrap_err().message.contains("the label is"), "{text}"),
                Some(expected) => {
                    let batch = rows.batch().unwrap();
                    let estimand_tensor::Feature::Dense(label) = &batch.features()[LABEL] else { panic!("dense") };
                    assert_eq!((label.dtype(), label.to_f64_vec().unwrap()), (dtype, vec![expected]), "{text}");
                }
            }
        }
    }
}
