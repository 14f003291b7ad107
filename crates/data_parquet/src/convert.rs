//! Converts Arrow columns to features. This is the only place where their memory is copied.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array as ArrowArray, ArrayRef, ArrowPrimitiveType, OffsetSizeTrait, UInt64Array};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use estimand_tensor::{Array, DType, Element, Error, Feature, Ragged, Result, Strings};

use crate::bad::Bad;
use crate::cast::cast;
use crate::column_type::{ColumnType, Layout};

/// The type to read a column as.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) dtype: DType,
    /// The sizes of one row's axes, if the feature is dense.
    pub(crate) dims: Vec<usize>,
    /// The default for missing values: one value, or the values of a whole row. Without a default,
    /// a missing value is an error.
    pub(crate) default: Option<Array>,
}

type Converted<T> = Result<T, Bad>;

/// Converts a column of this type to a feature.
pub(crate) fn feature(column: &dyn ArrowArray, kind: &ColumnType, target: &Target) -> Converted<Feature> {
    match (&kind.layout, column.data_type()) {
        (Layout::Ragged, DataType::List(_)) => ragged::<i32>(column, target),
        (Layout::Ragged, _) => ragged::<i64>(column, target),
        (Layout::Dense(_), _) => {
            let width: usize = target.dims.iter().product();
            let n_rows = column.len();
            let flat =
                dense(column, None, target).map_err(|bad| in_rows(bad, |i| i.checked_div(width).unwrap_or(0)))?;
            if target.dims.is_empty() {
                return Ok(flat.into());
            }
            let dims: Vec<usize> = [n_rows].into_iter().chain(target.dims.iter().copied()).collect();
            Ok(flat.reshape(dims)?.into())
        }
    }
}

/// Moves a column into a feature without copying, if nobody else holds its memory. The values must
/// have the target's type, and none may be missing; otherwise returns the column.
pub(crate) fn taken_over(column: ArrayRef, target: &Target) -> Result<Result<Feature>, ArrayRef> {
    use DataType as D;
    if column.null_count() > 0 || !target.dims.is_empty() {
        return Err(column);
    }
    let array = match (column.data_type(), target.dtype) {
        (D::UInt8, DType::U8) => numbers_of::<UInt8Type>(column),
        (D::Int32, DType::I32) => numbers_of::<Int32Type>(column),
        (D::Int64, DType::I64) => numbers_of::<Int64Type>(column),
        (D::Float32, DType::F32) => numbers_of::<Float32Type>(column),
        (D::Float64, DType::F64) => numbers_of::<Float64Type>(column),
        (D::Utf8, DType::Str) => return strings_of(column).map(|strings| Ok(strings?.into())),
        _ => return Err(column),
    };
    Ok(Ok(array.into()))
}

fn numbers_of<T: ArrowPrimitiveType<Native: Element>>(column: ArrayRef) -> Array {
    let numbers = column.as_primitive::<T>().values().clone();
    // The memory is not copied if nobody else holds it.
    drop(column);
    Array::from(Vec::from(numbers))
}

/// Moves a column of strings into an array; returns the column if it is a slice.
fn strings_of(column: ArrayRef) -> Result<Result<Array>, ArrayRef> {
    let strings = column.as_bytes::<Utf8Type>();
    let offsets: Vec<u64> = strings.value_offsets().iter().map(|offset| offset.as_usize() as u64).collect();
    let (&[0, ..], &[.., end]) = (offsets.as_slice(), offsets.as_slice()) else { return Err(column) };
    let bytes = strings.values().clone();
    drop(column);
    let mut bytes = bytes.into_vec::<u8>().unwrap_or_else(|bytes| bytes.to_vec());
    bytes.truncate(end as usize);
    Ok(Strings::from_parts(offsets, bytes).map(Array::from))
}

fn in_rows(bad: Bad, row_of: impl Fn(usize) -> usize) -> Bad {
    Bad { row: bad.row.map(row_of), error: bad.error }
}

/// All values of nested lists of fixed sizes. `outer` marks the values that are missing because a
/// list around them is missing.
fn dense(column: &dyn ArrowArray, outer: Option<NullBuffer>, target: &Target) -> Converted<Array> {
    let nulls = NullBuffer::union(outer.as_ref(), column.nulls());
    match column.as_fixed_size_list_opt() {
        Some(lists) => {
            let n = lists.value_length() as usize;
            dense(lists.values(), nulls.map(|nulls| nulls.expand(n)), target)
        }
        None => values(column, nulls, target),
    }
}

fn ragged<O: OffsetSizeTrait>(column: &dyn ArrowArray, target: &Target) -> Converted<Feature> {
    let lists = column.as_list::<O>();
    let offsets = lists.value_offsets();
    let nulls = lists.nulls().filter(|nulls| nulls.null_count() > 0);
    let mut splits = Vec::with_capacity(offsets.len());
    splits.push(0);
    let flat = match nulls {
        None => {
            let (start, end) = (offsets[0], offsets[lists.len()]);
            splits.extend(offsets[1..].iter().map(|&offset| (offset - start).as_usize() as i64));
            lists.values().slice(start.as_usize(), (end - start).as_usize())
        }
        Some(nulls) => {
            if target.default.is_none() {
                let row = nulls.iter().position(|valid| !valid).unwrap_or(0);
                return Err(Bad::at(row, MISSING));
            }
            // A missing list may still cover values.
            let mut picked: Vec<u64> = Vec::new();
            for (range, valid) in offsets.windows(2).zip(nulls) {
                if valid {
                    picked.extend(range[0].as_usize() as u64..range[1].as_usize() as u64);
                }
                splits.push(picked.len() as i64);
            }
            take(lists.values(), &UInt64Array::from(picked), None).map_err(unusual)?
        }
    };
    let row_of = |i: usize| splits.partition_point(|&split| split <= i as i64).saturating_sub(1);
    let flat = values(&flat, flat.nulls().cloned(), target).map_err(|bad| in_rows(bad, row_of))?;
    Ok(Ragged::new(flat, splits)?.into())
}

/// The message of an error about a missing value.
pub(crate) const MISSING: &str = "the value is missing";

/// Converts single values; `nulls` marks the missing ones.
fn values(column: &dyn ArrowArray, nulls: Option<NullBuffer>, target: &Target) -> Converted<Array> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let plain = take(dictionary.values(), dictionary.keys(), None).map_err(unusual)?;
        let nulls = NullBuffer::union(nulls.as_ref(), plain.nulls());
        return values(&plain, nulls, target);
    }
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
        return cast(stored(column, None)?, target.dtype, None);
    };
    let Some(default) = &target.default else {
        return Err(Bad::at(nulls.iter().position(|valid| !valid).unwrap_or(0), MISSING));
    };
    let array = cast(stored(column, Some(&nulls))?, target.dtype, Some(&nulls))?;
    fill(array, &nulls, default)
}

/// Converts stored values. The result for a missing value is arbitrary.
fn stored(column: &dyn ArrowArray, nulls: Option<&NullBuffer>) -> Converted<Array> {
    use DataType as D;
    match column.data_type() {
        D::Boolean => numbers(column.as_boolean().values().iter().collect()),
        D::UInt8 => same::<UInt8Type>(column),
        D::Int32 => same::<Int32Type>(column),
        D::Int64 => same::<Int64Type>(column),
        D::Float32 => same::<Float32Type>(column),
        D::Float64 => same::<Float64Type>(column),
        D::Int8 => widened::<Int8Type, i32>(column, i32::from),
        D::Int16 => widened::<Int16Type, i32>(column, i32::from),
        D::UInt16 => widened::<UInt16Type, i32>(column, i32::from),
        D::UInt32 => widened::<UInt32Type, i64>(column, i64::from),
        D::Float16 => widened::<Float16Type, f32>(column, |v| v.to_f32()),
        D::Date32 => widened::<Date32Type, i64>(column, i64::from),
        D::Date64 => same::<Date64Type>(column),
        D::Time32(TimeUnit::Second) => widened::<Time32SecondType, i64>(column, i64::from),
        D::Time32(_) => widened::<Time32MillisecondType, i64>(column, i64::from),
        D::Time64(TimeUnit::Microsecond) => same::<Time64MicrosecondType>(column),
        D::Time64(_) => same::<Time64NanosecondType>(column),
        D::Timestamp(TimeUnit::Second, _) => same::<TimestampSecondType>(column),
        D::Timestamp(TimeUnit::Millisecond, _) => same::<TimestampMillisecondType>(column),
        D::Timestamp(TimeUnit::Microsecond, _) => same::<TimestampMicrosecondType>(column),
        D::Timestamp(TimeUnit::Nanosecond, _) => same::<TimestampNanosecondType>(column),
        D::Duration(TimeUnit::Second) => same::<DurationSecondType>(column),
        D::Duration(TimeUnit::Millisecond) => same::<DurationMillisecondType>(column),
        D::Duration(TimeUnit::Microsecond) => same::<DurationMicrosecondType>(column),
        D::Duration(TimeUnit::Nanosecond) => same::<DurationNanosecondType>(column),
        D::UInt64 => {
            let whole: &ScalarBuffer<u64> = column.as_primitive::<UInt64Type>().values();
            let is_too_large = |i: &usize| i64::try_from(whole[*i]).is_err() && nulls.is_none_or(|n| n.is_valid(*i));
            if let Some(i) = (0..whole.len()).find(is_too_large) {
                return Err(Bad::at(i, format!("{} does not fit into 64 bits with a sign", whole[i])));
            }
            numbers(whole.iter().map(|&v| v as i64).collect())
        }
        D::Utf8 => offset_strings::<Utf8Type>(column),
        D::LargeUtf8 => offset_strings::<LargeUtf8Type>(column),
        D::Binary => offset_strings::<BinaryType>(column),
        D::LargeBinary => offset_strings::<LargeBinaryType>(column),
        D::Utf8View => {
            let strings = column.as_string_view();
            strings_at(strings.len(), |i| strings.value(i).as_bytes())
        }
        D::BinaryView => {
            let strings = column.as_binary_view();
            strings_at(strings.len(), |i| strings.value(i))
        }
        D::FixedSizeBinary(_) => {
            let strings = column.as_fixed_size_binary();
            strings_at(strings.len(), |i| strings.value(i))
        }
        other => Err(Error::internal(format!("a column of {other} passed as readable")).into()),
    }
}

/// Copies numbers whose stored type is the dtype.
fn same<T: ArrowPrimitiveType<Native: Element>>(column: &dyn ArrowArray) -> Converted<Array> {
    numbers(column.as_primitive::<T>().values().to_vec())
}

/// Widens numbers that are stored in fewer bits.
fn widened<T: ArrowPrimitiveType, E: Element>(
    column: &dyn ArrowArray,
    widen: impl Fn(T::Native) -> E,
) -> Converted<Array> {
    numbers(column.as_primitive::<T>().values().iter().map(|&v| widen(v)).collect())
}

fn numbers<E: Element>(numbers: Vec<E>) -> Converted<Array> {
    Ok(Array::from_vec([numbers.len()], numbers)?)
}

/// Copies strings that lie one after another in memory, as in our arrays.
fn offset_strings<T: ByteArrayType>(column: &dyn ArrowArray) -> Converted<Array> {
    let strings = column.as_bytes::<T>();
    let offsets = strings.value_offsets();
    let (start, end) = (offsets[0].as_usize(), offsets[strings.len()].as_usize());
    let offsets = offsets.iter().map(|offset| (offset.as_usize() - start) as u64).collect();
    let strings = Strings::from_parts(offsets, strings.value_data()[start..end].to_vec())?;
    Ok(Array::from(strings))
}

fn strings_at<'a>(n: usize, get: impl Fn(usize) -> &'a [u8]) -> Converted<Array> {
    let mut strings = Strings::with_capacity(n);
    (0..n).for_each(|i| strings.push(get(i)));
    Ok(Array::from(strings))
}

/// Replaces missing values by the default: one for each place in a row, or one for all.
fn fill(mut array: Array, nulls: &NullBuffer, default: &Array) -> Converted<Array> {
    match array.dtype() {
        DType::F32 => fill_numbers::<f32>(&mut array, nulls, default)?,
        DType::F64 => fill_numbers::<f64>(&mut array, nulls, default)?,
        DType::I32 => fill_numbers::<i32>(&mut array, nulls, default)?,
        DType::I64 => fill_numbers::<i64>(&mut array, nulls, default)?,
        DType::U8 => fill_numbers::<u8>(&mut array, nulls, default)?,
        DType::Bool => fill_numbers::<bool>(&mut array, nulls, default)?,
        DType::Str => {
            let (found, default) = (array.string_slice()?, default.string_slice()?);
            let mut strings = Strings::with_capacity(found.len());
            for (i, (string, valid)) in found.iter().zip(nulls).enumerate() {
                strings.push(if valid { string } else { default.get(i % default.len()) });
            }
            return Ok(strings.into());
        }
    }
    Ok(array)
}

fn fill_numbers<E: Element>(array: &mut Array, nulls: &NullBuffer, default: &Array) -> Result<()> {
    let default = default.as_slice::<E>()?;
    for (i, (number, valid)) in array.as_mut_slice::<E>()?.iter_mut().zip(nulls).enumerate() {
        if !valid {
            *number = default[i % default.len()];
        }
    }
    Ok(())
}

fn unusual(error: arrow_schema::ArrowError) -> Bad {
    Error::config(error.to_string()).into()
}
