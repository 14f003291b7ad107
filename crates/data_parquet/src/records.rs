//! Converts features to record batches, for the writers.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array,
    ListArray, RecordBatch, StringArray, UInt8Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use estimand_data::Dataset;
use estimand_data::writer::{columns, each_piece};
use estimand_tensor::{Array, DType, Error, Feature, FeatureSpec, Ragged, Result};

/// The options for writing the rows of a dataset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// Columns of strings that need not be UTF-8.
    pub(crate) binary: Vec<String>,
    /// The name of the column for weights.
    pub(crate) weights: Option<String>,
}

impl Rows {
    /// Passes all rows to `write`, piece by piece, with their schema. For a dataset without rows,
    /// calls `write` once, without rows.
    pub(crate) fn each(
        &self,
        data: &Dataset,
        mut write: impl FnMut(&SchemaRef, Option<&RecordBatch>) -> Result<()>,
    ) -> Result<u64> {
        let mut layout: Option<Layout> = None;
        let n_rows = each_piece(data, |n_before, batch| {
            let columns = columns(batch, self.weights.as_deref())?;
            let layout = match &mut layout {
                Some(layout) => layout,
                empty => {
                    let specs = columns.iter().map(|(name, feature)| (name.as_str(), spec_of(feature)));
                    empty.insert(Layout::new(specs, &self.binary)?)
                }
            };
            write(&layout.schema, Some(&layout.records(&columns, n_before)?))
        })?;
        if layout.is_none() {
            let (features, labels) = (data.spec()?, data.label_spec()?);
            let specs = features.iter().chain(&labels).map(|(name, spec)| (name.as_str(), spec.clone()));
            write(&Layout::new(specs, &self.binary)?.schema, None)?;
        }
        Ok(n_rows)
    }
}

/// The columns of a file to write.
struct Layout {
    schema: SchemaRef,
}

impl Layout {
    /// Creates the columns for these features. Strings of the columns in `binary` need not be
    /// UTF-8.
    fn new<'a>(columns: impl IntoIterator<Item = (&'a str, FeatureSpec)>, binary: &[String]) -> Result<Layout> {
        let mut fields = Vec::new();
        for (name, spec) in columns {
            let is_binary = binary.iter().any(|binary| binary == name);
            fields.push(Field::new(name, type_of(name, &spec, is_binary)?, false));
        }
        if let Some(name) = binary.iter().find(|name| fields.iter().all(|field| field.name() != *name)) {
            return Err(Error::config(format!("`binary` names `{name}`, but there is no such column")));
        }
        Ok(Layout { schema: Arc::new(Schema::new(fields)) })
    }

    /// Converts features to a record batch; they must match the layout. `n_before` is the number of
    /// rows written before.
    fn records(&self, columns: &[(String, Feature)], n_before: u64) -> Result<RecordBatch> {
        let expected = self.schema.fields();
        let mut arrays = Vec::with_capacity(columns.len());
        for (i, (name, feature)) in columns.iter().enumerate() {
            let place = || format!("in column `{name}`, in or after row {}", n_before + 1);
            let field = expected.get(i).filter(|field| field.name() == name);
            let Some(field) = field else { return Err(self.changed(columns, n_before)) };
            let array = column(feature, field.data_type()).map_err(|e| e.context(place()))?;
            if array.data_type() != field.data_type() {
                return Err(self.changed(columns, n_before));
            }
            arrays.push(array);
        }
        if arrays.len() != expected.len() {
            return Err(self.changed(columns, n_before));
        }
        RecordBatch::try_new(self.schema.clone(), arrays).map_err(|e| Error::internal(e.to_string()))
    }

    fn changed(&self, columns: &[(String, Feature)], n_before: u64) -> Error {
        let found: Vec<String> =
            columns.iter().map(|(name, feature)| format!("`{name}` {}", shape_of(feature))).collect();
        let expected: Vec<String> =
            self.schema.fields().iter().map(|field| format!("`{}` {}", field.name(), field.data_type())).collect();
        Error::shape(format!(
            "the rows from row {} on have the columns {}; earlier rows were written as {}",
            n_before + 1,
            found.join(", "),
            expected.join(", ")
        ))
        .help("give all rows the same columns with `map`: a file has one schema")
    }
}

fn shape_of(feature: &Feature) -> String {
    match feature {
        Feature::Dense(array) => format!("{}{:?}", array.dtype(), array.dims().get(1..).unwrap_or_default()),
        Feature::Ragged(ragged) => format!("lists of {}", ragged.values().dtype()),
    }
}

/// The spec of a feature's rows.
fn spec_of(feature: &Feature) -> FeatureSpec {
    match feature {
        Feature::Dense(array) => FeatureSpec::dense(array.dtype(), array.dims().get(1..).unwrap_or_default()),
        Feature::Ragged(ragged) => FeatureSpec::ragged(ragged.values().dtype()),
    }
}

fn type_of(name: &str, spec: &FeatureSpec, is_binary: bool) -> Result<DataType> {
    let value = match spec.dtype() {
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::UInt8,
        DType::Bool => DataType::Boolean,
        DType::Str if is_binary => DataType::Binary,
        DType::Str => DataType::Utf8,
    };
    match spec {
        FeatureSpec::Dense { dims, .. } => dims.iter().rev().try_fold(value, |inner, &size| {
            let size = i32::try_from(size).map_err(|_| {
                Error::shape(format!("column `{name}` has rows of {dims:?}, which has an axis too long for Arrow"))
            })?;
            Ok(DataType::FixedSizeList(item(inner), size))
        }),
        FeatureSpec::Ragged { .. } => Ok(DataType::List(item(value))),
        FeatureSpec::Padded { .. } => Err(Error::unsupported(format!(
            "column `{name}` is padded to the longest row of its batch, so its width changes"
        ))
        .help("write the ragged rows, without padding")),
    }
}

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type, false))
}

fn column(feature: &Feature, data_type: &DataType) -> Result<ArrayRef> {
    match feature {
        Feature::Dense(array) => {
            let flat = values(array, leaf_of(data_type))?;
            // From the innermost axis outwards; the first axis is the row axis.
            array.dims().get(1..).unwrap_or_default().iter().enumerate().rev().try_fold(flat, |inner, (axis, &size)| {
                let n_lists = array.dims()[..=axis].iter().product();
                let field = item(inner.data_type().clone());
                let lists = FixedSizeListArray::try_new_with_length(field, size as i32, inner, None, n_lists);
                Ok(Arc::new(lists.map_err(refused)?) as ArrayRef)
            })
        }
        Feature::Ragged(ragged) => lists(ragged, leaf_of(data_type)),
    }
}

fn lists(ragged: &Ragged, leaf: &DataType) -> Result<ArrayRef> {
    let splits: Option<Vec<i32>> = ragged.row_splits().iter().map(|&split| i32::try_from(split).ok()).collect();
    let splits = splits.ok_or_else(|| Error::shape("the lists of one piece of rows have more than 2^31 values"))?;
    let flat = values(ragged.values(), leaf)?;
    let lists = ListArray::try_new(item(flat.data_type().clone()), OffsetBuffer::new(splits.into()), flat, None);
    Ok(Arc::new(lists.map_err(refused)?))
}

fn leaf_of(mut data_type: &DataType) -> &DataType {
    while let DataType::List(item) | DataType::FixedSizeList(item, _) = data_type {
        data_type = item.data_type();
    }
    data_type
}

fn values(array: &Array, leaf: &DataType) -> Result<ArrayRef> {
    Ok(match array.dtype() {
        DType::F32 => Arc::new(Float32Array::from(array.as_slice::<f32>()?.to_vec())),
        DType::F64 => Arc::new(Float64Array::from(array.as_slice::<f64>()?.to_vec())),
        DType::I32 => Arc::new(Int32Array::from(array.as_slice::<i32>()?.to_vec())),
        DType::I64 => Arc::new(Int64Array::from(array.as_slice::<i64>()?.to_vec())),
        DType::U8 => Arc::new(UInt8Array::from(array.as_slice::<u8>()?.to_vec())),
        DType::Bool => Arc::new(BooleanArray::from(array.as_slice::<bool>()?.to_vec())),
        DType::Str => strings(array, *leaf == DataType::Binary)?,
    })
}

fn strings(array: &Array, is_binary: bool) -> Result<ArrayRef> {
    let strings = array.string_slice()?;
    let bytes = Buffer::from_slice_ref(strings.packed_bytes());
    let start = strings.offsets()[0];
    let offsets: Option<Vec<i32>> = strings.offsets().iter().map(|&o| i32::try_from(o - start).ok()).collect();
    let offsets: ScalarBuffer<i32> =
        offsets.ok_or_else(|| Error::shape("one piece of rows has more than 2 GiB of strings"))?.into();
    let offsets = OffsetBuffer::new(offsets);
    if is_binary {
        return Ok(Arc::new(BinaryArray::try_new(offsets, bytes, None).map_err(refused)?));
    }
    match StringArray::try_new(offsets, bytes, None) {
        Ok(strings) => Ok(Arc::new(strings)),
        Err(_) => {
            let bad = strings.iter().find(|string| str::from_utf8(string).is_err()).unwrap_or_default();
            Err(Error::config(format!("a string is not UTF-8: {:?}", String::from_utf8_lossy(bad)))
                .help("name the column in the writer's `binary`"))
        }
    }
}

fn refused(error: arrow_schema::ArrowError) -> Error {
    Error::internal(error.to_string())
}
