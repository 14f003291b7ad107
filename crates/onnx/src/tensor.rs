//! Arrays as ONNX tensors, and types and shapes as ONNX writes them.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};

use crate::message::{
    DimensionProto, DimensionValue, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

/// The number of an element type in ONNX.
pub(crate) fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::Str => 8,
        DType::Bool => 9,
        DType::F64 => 11,
    }
}

/// The element type of a number in ONNX.
pub(crate) fn dtype_of(number: i32) -> Result<DType> {
    let all = [DType::F32, DType::U8, DType::I32, DType::I64, DType::Str, DType::Bool, DType::F64];
    let found = all.into_iter().find(|&dtype| data_type(dtype) == number);
    found.ok_or_else(|| Error::unsupported(format!("this library has no element type {number} of ONNX")))
}

/// Returns the elements of a tensor.
pub(crate) fn array_of(tensor: &TensorProto) -> Result<Array> {
    let dtype = dtype_of(tensor.data_type.unwrap_or_default())?;
    let size = |&n: &i64| usize::try_from(n).map_err(|_| Error::shape(format!("{n} is no size of an axis")));
    let dims = tensor.dims.iter().map(size).collect::<Result<Vec<usize>>>()?;
    match &tensor.raw_data {
        _ if dtype == DType::Str => Array::from_strings(dims, &tensor.string_data),
        Some(bytes) => Array::from_bytes(dtype, dims, bytes),
        None => Err(Error::data("the tensor has no bytes")),
    }
}

/// Returns an array as a tensor. Strings must be UTF-8, as ONNX demands.
pub fn tensor_proto(name: &str, array: &Array) -> Result<TensorProto> {
    let mut tensor = TensorProto {
        dims: array.dims().iter().map(|&n| n as i64).collect(),
        data_type: Some(data_type(array.dtype())),
        name: name.to_string(),
        ..TensorProto::default()
    };
    if array.dtype() == DType::Str {
        tensor.string_data = array.strings()?.map(|text| utf8(text).map(<[u8]>::to_vec)).collect::<Result<_>>()?;
    } else {
        tensor.raw_data = Some(little_endian(array));
    }
    Ok(tensor)
}

/// The bytes of the elements, in the order that files have on every machine.
fn little_endian(array: &Array) -> Vec<u8> {
    let mut bytes = array.bytes().to_vec();
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(array.dtype().size()).for_each(<[u8]>::reverse);
    }
    bytes
}

/// Returns text unless it is not UTF-8.
pub(crate) fn utf8(text: &[u8]) -> Result<&[u8]> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(text),
        Err(_) => Err(Error::unsupported(format!(
            "the text \"{}\" is not UTF-8; strings of an ONNX model are",
            text.escape_ascii()
        ))
        .help("write the text as UTF-8, or export the model with export_saved_model")),
    }
}

/// Returns the name and type of a value. Axes of unknown size that are the batch share a name.
pub(crate) fn value_info(name: &str, spec: &TensorSpec) -> ValueInfoProto {
    let size = |dim: &Dim| match dim {
        Dim::Known(n) => Some(DimensionValue::Size(*n as i64)),
        &dim if dim == Dim::BATCH => Some(DimensionValue::Name("batch".to_string())),
        // Each other symbol is a size of its own.
        dim => Some(DimensionValue::Name(dim.to_string())),
    };
    typed(name, spec.dtype, &spec.shape, size)
}

/// Returns the name and type of a value inside a loop, where the sizes of axes have no names.
pub(crate) fn inner_value_info(name: &str, spec: &TensorSpec) -> ValueInfoProto {
    typed(name, spec.dtype, &spec.shape, |dim| dim.known().map(|n| DimensionValue::Size(n as i64)))
}

fn typed(name: &str, dtype: DType, shape: &Shape, size: impl Fn(&Dim) -> Option<DimensionValue>) -> ValueInfoProto {
    let dim = shape.dims().iter().map(|dim| DimensionProto { value: size(dim) }).collect();
    let tensor_type = TensorTypeProto { elem_type: Some(data_type(dtype)), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.to_string(), r#type: Some(TypeProto { tensor_type: Some(tensor_type) }) }
}
