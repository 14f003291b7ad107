//! Builds serialized `tf.Example`s: one by one, or from a batch of arrays.
//!
//! Names are sorted and numbers packed, so equal rows have equal bytes. They are the bytes of
//! TensorFlow's deterministic serialization.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use estimand_tensor::{Array, DType, Error, Feature, Result, Strings};

use super::cursor::{DELIMITED, tag};
use super::values::ListKind;
use crate::varint;

/// A builder of one `tf.Example`.
///
/// ```
/// # use estimand_wire::example::ExampleBuilder;
/// let row = ExampleBuilder::new().ints("age", &[39]).floats("score", &[0.5, 1.0]).strings("job", ["clerk"]).build();
/// let same = ExampleBuilder::new().strings("job", ["clerk"]).floats("score", &[0.5, 1.0]).ints("age", &[39]).build();
/// assert_eq!(row, same);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExampleBuilder {
    /// Encoded `Feature`s, by name.
    features: BTreeMap<String, Vec<u8>>,
}

impl ExampleBuilder {
    /// Starts an Example without features.
    pub fn new() -> ExampleBuilder {
        ExampleBuilder::default()
    }

    /// Sets a feature to a list of integers.
    #[must_use]
    pub fn ints(mut self, name: impl Into<String>, values: &[i64]) -> ExampleBuilder {
        self.features.insert(name.into(), int_feature(values));
        self
    }

    /// Sets a feature to a list of floats.
    #[must_use]
    pub fn floats(mut self, name: impl Into<String>, values: &[f32]) -> ExampleBuilder {
        self.features.insert(name.into(), float_feature(values));
        self
    }

    /// Sets a feature to a list of byte strings.
    #[must_use]
    pub fn strings<S: AsRef<[u8]>>(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = S>,
    ) -> ExampleBuilder {
        self.features.insert(name.into(), string_feature(values));
        self
    }

    /// Adds a feature without a list, not even an empty one.
    #[must_use]
    pub fn nothing(mut self, name: impl Into<String>) -> ExampleBuilder {
        self.features.insert(name.into(), Vec::new());
        self
    }

    /// Returns the serialized Example.
    pub fn build(&self) -> Vec<u8> {
        let mut example = Vec::new();
        put_message(1, &self.features(), &mut example);
        example
    }

    /// Encodes a `Features` message.
    fn features(&self) -> Vec<u8> {
        map(self.features.iter().map(|(name, feature)| (name.as_str(), feature.as_slice())))
    }
}

/// A builder of one `tf.SequenceExample`.
#[derive(Clone, Debug, Default)]
pub struct SequenceExampleBuilder {
    context: ExampleBuilder,
    /// Encoded `FeatureList`s, by name.
    lists: BTreeMap<String, Vec<u8>>,
}

impl SequenceExampleBuilder {
    /// Starts a SequenceExample without features.
    pub fn new() -> SequenceExampleBuilder {
        SequenceExampleBuilder::default()
    }

    /// Sets the features that do not depend on the step.
    #[must_use]
    pub fn context(mut self, context: ExampleBuilder) -> SequenceExampleBuilder {
        self.context = context;
        self
    }

    /// Adds a list with this name, without steps, if it does not exist.
    #[must_use]
    pub fn list(mut self, name: impl Into<String>) -> SequenceExampleBuilder {
        self.lists.entry(name.into()).or_default();
        self
    }

    /// Appends a step of integers to a list.
    #[must_use]
    pub fn step_ints(self, name: impl Into<String>, values: &[i64]) -> SequenceExampleBuilder {
        self.step(name.into(), &int_feature(values))
    }

    /// Appends a step of floats to a list.
    #[must_use]
    pub fn step_floats(self, name: impl Into<String>, values: &[f32]) -> SequenceExampleBuilder {
        self.step(name.into(), &float_feature(values))
    }

    /// Appends a step of byte strings to a list.
    #[must_use]
    pub fn step_strings<S: AsRef<[u8]>>(
        self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = S>,
    ) -> SequenceExampleBuilder {
        self.step(name.into(), &string_feature(values))
    }

    fn step(mut self, name: String, feature: &[u8]) -> SequenceExampleBuilder {
        put(1, feature, self.lists.entry(name).or_default());
        self
    }

    /// Returns the serialized SequenceExample.
    pub fn build(&self) -> Vec<u8> {
        let mut example = Vec::new();
        put_message(1, &self.context.features(), &mut example);
        put_message(2, &map(self.lists.iter().map(|(name, list)| (name.as_str(), list.as_slice()))), &mut example);
        example
    }
}

/// Serializes each row of a batch as a `tf.Example`. Integers and booleans become `int64_list`s.
///
/// ```
/// # use estimand_tensor::{Array, Feature};
/// # use estimand_wire::example::{ExampleBuilder, encode_batch};
/// let age = Feature::Dense(Array::from([39i64, 50]));
/// let rows = encode_batch([("age", &age)])?;
/// assert_eq!(rows.get(1), ExampleBuilder::new().ints("age", &[50]).build());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn encode_batch<'a>(features: impl IntoIterator<Item = (&'a str, &'a Feature)>) -> Result<Strings> {
    let mut columns = BTreeMap::new();
    let mut n_rows = None;
    for (name, feature) in features {
        let column = Column::new(feature).map_err(|e| e.context(format!("in feature `{name}`")))?;
        let rows = feature.n_rows().ok_or_else(|| Error::shape(format!("feature `{name}` has no axis of rows")))?;
        let expected = *n_rows.get_or_insert(rows);
        if rows != expected {
            return Err(Error::shape(format!(
                "feature `{name}` has {rows} rows, but the features before it have {expected}"
            )));
        }
        columns.insert(name, column);
    }
    let mut all = Strings::default();
    for row in 0..n_rows.unwrap_or(0) {
        let features: Vec<_> = columns.iter().map(|(name, column)| (*name, column.feature(row))).collect();
        let mut example = Vec::new();
        put_message(1, &map(features.iter().map(|(name, feature)| (*name, feature.as_slice()))), &mut example);
        all.push(&example);
    }
    Ok(all)
}

/// One feature of a batch, prepared for encoding row by row.
struct Column<'a> {
    values: Slice<'a>,
    /// The number of values in a row, or in a step of a ragged row.
    width: usize,
    row_splits: Option<&'a [i64]>,
}

enum Slice<'a> {
    F32(&'a [f32]),
    I64(Cow<'a, [i64]>),
    Str(Vec<&'a [u8]>),
}

impl<'a> Column<'a> {
    fn new(feature: &'a Feature) -> Result<Column<'a>> {
        let (array, row_splits) = match feature {
            Feature::Dense(array) => (array, None),
            Feature::Ragged(ragged) => (ragged.values(), Some(ragged.row_splits())),
        };
        let width = array.dims().iter().skip(1).product();
        Ok(Column { values: Slice::new(array)?, width, row_splits })
    }

    /// Encodes the `Feature` of a row.
    fn feature(&self, row: usize) -> Vec<u8> {
        let rows = match self.row_splits {
            None => row..row + 1,
            Some(splits) => splits[row] as usize..splits[row + 1] as usize,
        };
        let range: Range<usize> = rows.start * self.width..rows.end * self.width;
        match &self.values {
            Slice::F32(values) => float_feature(&values[range]),
            Slice::I64(values) => int_feature(&values[range]),
            Slice::Str(values) => string_feature(&values[range]),
        }
    }
}

impl<'a> Slice<'a> {
    fn new(array: &'a Array) -> Result<Slice<'a>> {
        Ok(match array.dtype() {
            DType::F32 => Slice::F32(array.as_slice()?),
            DType::I64 => Slice::I64(Cow::Borrowed(array.as_slice()?)),
            DType::I32 => Slice::I64(array.as_slice::<i32>()?.iter().map(|&v| v.into()).collect()),
            DType::U8 => Slice::I64(array.as_slice::<u8>()?.iter().map(|&v| v.into()).collect()),
            DType::Bool => Slice::I64(array.as_slice::<bool>()?.iter().map(|&v| v.into()).collect()),
            DType::Str => Slice::Str(array.strings()?.collect()),
            DType::F64 => {
                let message = "a tf.Example holds f32, not f64";
                return Err(Error::dtype(Some(DType::F32), DType::F64, message).help("cast it to f32 first"));
            }
        })
    }
}

/// Appends a length-delimited field.
fn put(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag(number, DELIMITED));
    varint::put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a message, unless it is empty.
fn put_message(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        put(number, bytes, out);
    }
}

/// Encodes the entries of a map, in the given order.
fn map<'a>(entries: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let (mut all, mut entry) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        entry.clear();
        put(1, key.as_bytes(), &mut entry);
        put(2, value, &mut entry);
        put(1, &entry, &mut all);
    }
    all
}

fn feature(kind: ListKind, list: &[u8]) -> Vec<u8> {
    let mut feature = Vec::with_capacity(list.len() + 6);
    put(kind as u8, list, &mut feature);
    feature
}

/// Encodes a packed list of numbers; an empty list has no field.
fn packed(kind: ListKind, numbers: &[u8]) -> Vec<u8> {
    let mut list = Vec::with_capacity(numbers.len() + 6);
    if !numbers.is_empty() {
        put(1, numbers, &mut list);
    }
    feature(kind, &list)
}

fn int_feature(values: &[i64]) -> Vec<u8> {
    let mut numbers = Vec::with_capacity(values.len());
    values.iter().for_each(|&value| varint::put(value as u64, &mut numbers));
    packed(ListKind::Int64, &numbers)
}

fn float_feature(values: &[f32]) -> Vec<u8> {
    let numbers: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    packed(ListKind::Float, &numbers)
}

fn string_feature<S: AsRef<[u8]>>(values: impl IntoIterator<Item = S>) -> Vec<u8> {
    let mut list = Vec::new();
    values.into_iter().for_each(|value| put(1, value.as_ref(), &mut list));
    feature(ListKind::Bytes, &list)
}
