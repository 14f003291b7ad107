//! Constants and shapes in a graph: `TensorProto`, `TensorShapeProto` and the codes of element
//! types.

use estimand_tensor::DType;

/// TensorFlow's code of an element type. The `_REF` types of old graphs are these codes plus 100
/// and have no name here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, prost::Enumeration)]
#[repr(i32)]
pub enum DataType {
    /// Not set.
    Invalid = 0,
    /// `f32`
    Float = 1,
    /// `f64`
    Double = 2,
    /// `i32`
    Int32 = 3,
    /// `u8`
    Uint8 = 4,
    /// `i16`
    Int16 = 5,
    /// `i8`
    Int8 = 6,
    /// Byte strings
    String = 7,
    /// Two `f32`
    Complex64 = 8,
    /// `i64`
    Int64 = 9,
    /// One byte, 0 or 1
    Bool = 10,
    /// Quantized `i8`
    Qint8 = 11,
    /// Quantized `u8`
    Quint8 = 12,
    /// Quantized `i32`
    Qint32 = 13,
    /// The upper half of an `f32`
    Bfloat16 = 14,
    /// Quantized `i16`
    Qint16 = 15,
    /// Quantized `u16`
    Quint16 = 16,
    /// `u16`
    Uint16 = 17,
    /// Two `f64`
    Complex128 = 18,
    /// IEEE half precision
    Half = 19,
    /// Handle of a variable or table
    Resource = 20,
    /// Anything
    Variant = 21,
    /// `u32`
    Uint32 = 22,
    /// `u64`
    Uint64 = 23,
    /// 8-bit float, 5 bits of exponent
    Float8E5m2 = 24,
    /// 8-bit float, 4 bits of exponent, no infinities
    Float8E4m3fn = 25,
    /// Half a byte, signed
    Int4 = 29,
    /// Half a byte, unsigned
    Uint4 = 30,
}

impl From<DType> for DataType {
    fn from(dtype: DType) -> DataType {
        match dtype {
            DType::F32 => DataType::Float,
            DType::F64 => DataType::Double,
            DType::I32 => DataType::Int32,
            DType::I64 => DataType::Int64,
            DType::U8 => DataType::Uint8,
            DType::Bool => DataType::Bool,
            DType::Str => DataType::String,
        }
    }
}

impl DataType {
    /// The dtype of the same elements, if arrays support it.
    pub fn dtype(self) -> Option<DType> {
        DType::ALL.into_iter().find(|&dtype| DataType::from(dtype) == self)
    }

    /// The name of a code for messages: TensorFlow's spelling, or the number of a code that has no
    /// name.
    pub fn describe(code: i32) -> String {
        DataType::try_from(code).map_or_else(|_| format!("element type {code}"), |known| known.tf_name().to_string())
    }

    /// TensorFlow's spelling, such as `DT_FLOAT`.
    pub fn tf_name(self) -> &'static str {
        match self {
            DataType::Invalid => "DT_INVALID",
            DataType::Float => "DT_FLOAT",
            DataType::Double => "DT_DOUBLE",
            DataType::Int32 => "DT_INT32",
            DataType::Uint8 => "DT_UINT8",
            DataType::Int16 => "DT_INT16",
            DataType::Int8 => "DT_INT8",
            DataType::String => "DT_STRING",
            DataType::Complex64 => "DT_COMPLEX64",
            DataType::Int64 => "DT_INT64",
            DataType::Bool => "DT_BOOL",
            DataType::Qint8 => "DT_QINT8",
            DataType::Quint8 => "DT_QUINT8",
            DataType::Qint32 => "DT_QINT32",
            DataType::Bfloat16 => "DT_BFLOAT16",
            DataType::Qint16 => "DT_QINT16",
            DataType::Quint16 => "DT_QUINT16",
            DataType::Uint16 => "DT_UINT16",
            DataType::Complex128 => "DT_COMPLEX128",
            DataType::Half => "DT_HALF",
            DataType::Resource => "DT_RESOURCE",
            DataType::Variant => "DT_VARIANT",
            DataType::Uint32 => "DT_UINT32",
            DataType::Uint64 => "DT_UINT64",
            DataType::Float8E5m2 => "DT_FLOAT8_E5M2",
            DataType::Float8E4m3fn => "DT_FLOAT8_E4M3FN",
            DataType::Int4 => "DT_INT4",
            DataType::Uint4 => "DT_UINT4",
        }
    }
}

/// The shape of a tensor, known, partly known or unknown.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// The dimensions, outermost first; meaningless if `unknown_rank`.
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<Dim>,
    /// Whether even the number of dimensions is unknown.
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

/// One dimension of a [`TensorShapeProto`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dim {
    /// Its size, -1 if unknown.
    #[prost(int64, tag = "1")]
    pub size: i64,
    /// A name that TensorFlow stores and never reads.
    #[prost(string, tag = "2")]
    pub name: String,
}

impl TensorShapeProto {
    /// Creates a shape with these sizes, -1 where unknown.
    pub fn of(sizes: impl IntoIterator<Item = i64>) -> TensorShapeProto {
        let dim = sizes.into_iter().map(|size| Dim { size, name: String::new() }).collect();
        TensorShapeProto { dim, unknown_rank: false }
    }

    /// Creates a shape about which nothing is known.
    pub fn unknown() -> TensorShapeProto {
        TensorShapeProto { dim: Vec::new(), unknown_rank: true }
    }

    /// The sizes, -1 where unknown; `None` if the rank is unknown.
    pub fn sizes(&self) -> Option<impl ExactSizeIterator<Item = i64> + '_> {
        (!self.unknown_rank).then(|| self.dim.iter().map(|dim| dim.size))
    }
}

/// A constant tensor. Its values are in `tensor_content` as raw little-endian bytes, or in the
/// `*_val` field of its type. If that field has fewer values than the shape requires, the last one
/// repeats.
///
/// Resource handles and variants, which exist only in a running TensorFlow, are kept as encoded
/// bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// Element type.
    #[prost(enumeration = "DataType", tag = "1")]
    pub dtype: i32,
    /// Shape, fully known.
    #[prost(message, optional, tag = "2")]
    pub tensor_shape: Option<TensorShapeProto>,
    /// Version of this format; 0.
    #[prost(int32, tag = "3")]
    pub version_number: i32,
    /// The elements as they lie in memory, little-endian. Not for strings.
    #[prost(bytes = "vec", tag = "4")]
    pub tensor_content: Vec<u8>,
    /// Half and bfloat16 values as 16-bit patterns.
    #[prost(int32, repeated, tag = "13")]
    pub half_val: Vec<i32>,
    /// `Float` values.
    #[prost(float, repeated, tag = "5")]
    pub float_val: Vec<f32>,
    /// `Double` values.
    #[prost(double, repeated, tag = "6")]
    pub double_val: Vec<f64>,
    /// Values of all integers of up to 32 bits, signed or at most 16 bits wide.
    #[prost(int32, repeated, tag = "7")]
    pub int_val: Vec<i32>,
    /// `String` values.
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub string_val: Vec<Vec<u8>>,
    /// `Complex64` values, real and imaginary parts in turn.
    #[prost(float, repeated, tag = "9")]
    pub scomplex_val: Vec<f32>,
    /// `Int64` values.
    #[prost(int64, repeated, tag = "10")]
    pub int64_val: Vec<i64>,
    /// `Bool` values.
    #[prost(bool, repeated, tag = "11")]
    pub bool_val: Vec<bool>,
    /// `Complex128` values, real and imaginary parts in turn.
    #[prost(double, repeated, tag = "12")]
    pub dcomplex_val: Vec<f64>,
    /// Handles of resources: encoded `ResourceHandleProto`s.
    #[prost(bytes = "vec", repeated, tag = "14")]
    pub resource_handle_val: Vec<Vec<u8>>,
    /// Variants: encoded `VariantTensorDataProto`s.
    #[prost(bytes = "vec", repeated, tag = "15")]
    pub variant_val: Vec<Vec<u8>>,
    /// `Uint32` values.
    #[prost(uint32, repeated, tag = "16")]
    pub uint32_val: Vec<u32>,
    /// `Uint64` values.
    #[prost(uint64, repeated, tag = "17")]
    pub uint64_val: Vec<u64>,
    /// 8-bit floats, one byte each.
    #[prost(bytes = "vec", tag = "18")]
    pub float8_val: Vec<u8>,
}
