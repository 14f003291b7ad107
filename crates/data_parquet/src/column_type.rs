//! Maps Arrow types to features: the dtype and layout of the feature, or the reason for refusing
//! the type.

use std::fmt;

use arrow_schema::{DataType, TimeUnit};
use estimand_tensor::{DType, Error, MAX_RANK, Result};

/// The type of feature that a column becomes. Files whose columns have equal types can be read one
/// after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ColumnType {
    pub(crate) dtype: DType,
    pub(crate) layout: Layout,
    /// The unit of the number, where the dtype does not imply it: days, or microseconds.
    counts: Option<&'static str>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// The sizes of one row's axes.
    Dense(Vec<usize>),
    Ragged,
}

impl ColumnType {
    /// The type for an Arrow type. If there is none, the error says how to proceed.
    pub(crate) fn of(data_type: &DataType) -> Result<ColumnType> {
        let mut dims = Vec::new();
        let mut inner = data_type;
        while let DataType::FixedSizeList(item, n) = inner {
            dims.push(usize::try_from(*n).map_err(|_| refused(data_type))?);
            inner = item.data_type();
        }
        if dims.is_empty()
            && let DataType::List(item) | DataType::LargeList(item) = data_type
        {
            let (dtype, counts) = leaf(item.data_type()).ok_or_else(|| refused(data_type))?;
            return Ok(ColumnType { dtype, layout: Layout::Ragged, counts });
        }
        // The rows take one more axis.
        let (dtype, counts) = leaf(inner).filter(|_| dims.len() < MAX_RANK).ok_or_else(|| refused(data_type))?;
        Ok(ColumnType { dtype, layout: Layout::Dense(dims), counts })
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.layout {
            Layout::Dense(dims) if dims.is_empty() => write!(f, "{}", self.dtype)?,
            Layout::Dense(dims) => write!(f, "{}{dims:?}", self.dtype)?,
            Layout::Ragged => write!(f, "lists of {}", self.dtype)?,
        }
        match self.counts {
            Some(unit) => write!(f, " ({unit})"),
            None => Ok(()),
        }
    }
}

/// The dtype of a single value, and its unit.
fn leaf(data_type: &DataType) -> Option<(DType, Option<&'static str>)> {
    use DataType as D;
    let dtype = match data_type {
        D::Boolean => DType::Bool,
        D::UInt8 => DType::U8,
        D::Int8 | D::Int16 | D::Int32 | D::UInt16 => DType::I32,
        D::UInt32 | D::Int64 | D::UInt64 => DType::I64,
        D::Float16 | D::Float32 => DType::F32,
        D::Float64 => DType::F64,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => DType::Str,
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => DType::Str,
        D::Dictionary(_, values) if !matches!(**values, D::Dictionary(..)) => return leaf(values),
        D::Date32 => return Some((DType::I64, Some("days"))),
        D::Date64 => return Some((DType::I64, Some("milliseconds"))),
        D::Timestamp(unit, _) | D::Time32(unit) | D::Time64(unit) | D::Duration(unit) => {
            return Some((DType::I64, Some(name_of(*unit))));
        }
        _ => return None,
    };
    Some((dtype, None))
}

fn name_of(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}

fn refused(data_type: &DataType) -> Error {
    use DataType as D;
    let error = Error::unsupported(format!("columns of the type {data_type} are not supported"));
    match data_type {
        D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..) => {
            error.help("write it as float64 or as int64 of the smallest unit, or leave it out with `select`")
        }
        D::Struct(_) | D::Map(..) => error.help("write its fields as separate columns, or leave it out with `select`"),
        D::Null => error.help("leave it out with `select`: every value is missing"),
        _ => error.help("leave it out with `select`"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    fn item(data_type: DataType) -> Arc<Field> {
        Arc::new(Field::new("item", data_type, true))
    }

    #[test]
    fn types_and_what_they_become() {
        use DataType as D;
        for (data_type, text) in [
            (D::Int8, "i32"),
            (D::UInt16, "i32"),
            (D::UInt32, "i64"),
            (D::UInt8, "u8"),
            (D::Float16, "f32"),
            (D::LargeBinary, "string"),
            (D::Dictionary(Box::new(D::Int8), Box::new(D::Utf8)), "string"),
            (D::Date32, "i64 (days)"),
            (D::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), "i64 (microseconds)"),
            (D::List(item(D::Float32)), "lists of f32"),
            (D::LargeList(item(D::Dictionary(Box::new(D::Int8), Box::new(D::Int64)))), "lists of i64"),
            (D::FixedSizeList(item(D::FixedSizeList(item(D::Boolean), 3)), 2), "bool[2, 3]"),
        ] {
            assert_eq!(ColumnType::of(&data_type).unwrap().to_string(), text, "{data_type}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        use DataType as D;
        let mut deep = D::Int8;
        for _ in 0..MAX_RANK {
            deep = D::FixedSizeList(item(deep), 1);
        }
        for (data_type, help) in [
            (D::Decimal128(9, 2), "write it as float64"),
            (D::Struct(vec![item(D::Int8)].into()), "separate columns"),
            (D::Null, "every value is missing"),
            (D::List(item(D::List(item(D::Int8)))), "leave it out"),
            (D::FixedSizeList(item(D::Int8), -1), "leave it out"),
            (D::FixedSizeList(item(D::List(item(D::Int8))), 2), "leave it out"),
            (deep, "leave it out"),
        ] {
            let error = ColumnType::of(&data_type).unwrap_err().to_string();
            assert!(error.contains(help) && error.contains("are not supported"), "{error}");
        }
    }
}
