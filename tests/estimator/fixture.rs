//! Arrays of fixtures.

use estimand::prelude::*;

pub fn array(array: &estimand_fixture::Array) -> Array {
    let dtype = DType::ALL.into_iter().find(|dtype| dtype.to_string() == array.dtype).unwrap();
    match dtype {
        DType::Str => Array::from_strings(&array.dims, array.strings()),
        _ => Array::from_bytes(dtype, &array.dims, &array.to_ne_bytes()),
    }
    .unwrap()
}
