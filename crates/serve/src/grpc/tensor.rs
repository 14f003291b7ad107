//! Outputs as tensors of the typed fields that clients read: `float_val`, not `tensor_content`.

use estimand_tensor::{Array, DType};
use estimand_wire::{DataType, TensorProto, TensorShapeProto};

use crate::status::Answer;

pub(super) fn typed(array: &Array) -> Answer<TensorProto> {
    let mut proto = TensorProto {
        dtype: DataType::from(array.dtype()).into(),
        tensor_shape: Some(TensorShapeProto::of(array.dims().iter().map(|&n| n as i64))),
        ..Default::default()
    };
    match array.dtype() {
        DType::F32 => proto.float_val = array.as_slice()?.to_vec(),
        DType::F64 => proto.double_val = array.as_slice()?.to_vec(),
        DType::I32 => proto.int_val = array.as_slice()?.to_vec(),
        DType::I64 => proto.int64_val = array.as_slice()?.to_vec(),
        DType::U8 => proto.int_val = array.as_slice::<u8>()?.iter().map(|&value| value.into()).collect(),
        DType::Bool => proto.bool_val = array.as_slice()?.to_vec(),
        DType::Str => proto.string_val = array.strings()?.map(<[u8]>::to_vec).collect(),
    }
    Ok(proto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_field_of_their_type() {
        for array in [
            Array::from([1.5f32, -0.0]),
            Array::from([1e300]),
            Array::from([i32::MIN]),
            Array::from([i64::MAX]),
            Array::from([255u8]),
            Array::from([true, false]),
            Array::from_strings([1, 2], [&b"\xff"[..], b""]).unwrap(),
            Array::zeros(DType::F32, [0, 3]).unwrap(),
        ] {
            let proto = typed(&array).unwrap();
            assert!(proto.tensor_content.is_empty());
            assert_eq!(proto.to_array().unwrap(), array);
        }
    }
}
