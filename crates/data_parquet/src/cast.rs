//! Converts numbers to the dtype of a declared spec.

use arrow_buffer::NullBuffer;
use estimand_tensor::{Array, DType, Error, Result};

use crate::bad::Bad;

/// Whether values of one dtype can be read as another: integers as other integers or floats, floats
/// as floats.
pub(crate) fn is_castable(from: DType, to: DType) -> bool {
    use DType::*;
    match (from, to) {
        (from, to) if from == to => true,
        (Bool | U8 | I32 | I64, U8 | I32 | I64 | F32 | F64) => true,
        (F32, F64) | (F64, F32) => true,
        _ => false,
    }
}

/// Converts numbers to another dtype. An integer that does not fit is an error, unless `nulls`
/// marks it as missing.
pub(crate) fn cast(array: Array, to: DType, nulls: Option<&NullBuffer>) -> Result<Array, Bad> {
    let dims = [array.len()];
    let from = array.dtype();
    if from == to {
        return Ok(array);
    }
    Ok(match (from, to) {
        (DType::F32, DType::F64) => {
            Array::from_vec(dims, array.as_slice::<f32>()?.iter().map(|&v| f64::from(v)).collect())?
        }
        (DType::F64, DType::F32) => {
            Array::from_vec(dims, array.as_slice::<f64>()?.iter().map(|&v| v as f32).collect())?
        }
        _ => {
            let whole = integers(&array)?;
            match to {
                DType::F32 => Array::from_vec(dims, whole.iter().map(|&v| v as f32).collect())?,
                DType::F64 => Array::from_vec(dims, whole.iter().map(|&v| v as f64).collect())?,
                DType::I64 => Array::from_vec(dims, whole)?,
                DType::I32 => Array::from_vec(dims, narrow::<i32>(&whole, to, nulls)?)?,
                DType::U8 => Array::from_vec(dims, narrow::<u8>(&whole, to, nulls)?)?,
                DType::Bool | DType::Str => {
                    return Err(Error::internal(format!("a column of {from} passed as castable to {to}")).into());
                }
            }
        }
    })
}

fn integers(array: &Array) -> Result<Vec<i64>> {
    Ok(match array.dtype() {
        DType::Bool => array.as_slice::<bool>()?.iter().map(|&v| v.into()).collect(),
        DType::U8 => array.as_slice::<u8>()?.iter().map(|&v| v.into()).collect(),
        DType::I32 => array.as_slice::<i32>()?.iter().map(|&v| v.into()).collect(),
        _ => array.as_slice::<i64>()?.to_vec(),
    })
}

fn narrow<T: TryFrom<i64> + Default>(whole: &[i64], to: DType, nulls: Option<&NullBuffer>) -> Result<Vec<T>, Bad> {
    let mut narrow = Vec::with_capacity(whole.len());
    for (i, &value) in whole.iter().enumerate() {
        narrow.push(match T::try_from(value) {
            Ok(value) => value,
            Err(_) if nulls.is_some_and(|nulls| nulls.is_null(i)) => T::default(),
            Err(_) => return Err(Bad::at(i, format!("{value} does not fit into {to}"))),
        });
    }
    Ok(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_pair() {
        let mut n_castable = 0;
        for from in DType::ALL {
            for to in DType::ALL.into_iter().filter(|&to| is_castable(from, to) && from != DType::Str) {
                let found = cast(Array::zeros(from, [2]).unwrap(), to, None).unwrap();
                assert_eq!(found, Array::zeros(to, [2]).unwrap(), "{from} to {to}");
                n_castable += 1;
            }
        }
        // Two pairs of floats; four integers to five dtypes, without themselves except bool; and
        // six identical pairs.
        assert_eq!(n_castable, 2 + 4 * 5 - 3 + 6);
        assert!(!is_castable(DType::F32, DType::I64) && !is_castable(DType::Str, DType::I64));
    }

    #[test]
    fn what_does_not_fit() {
        let numbers = Array::from([1i64, -1, 300, 7]);
        assert_eq!(cast(numbers.clone(), DType::F32, None).unwrap(), Array::from([1.0f32, -1.0, 300.0, 7.0]));
        let bad = cast(numbers.clone(), DType::U8, None).unwrap_err();
        assert_eq!((bad.row, bad.error.message()), (Some(1), "-1 does not fit into u8"));
        let nulls = NullBuffer::from(vec![true, false, false, true]);
        assert_eq!(cast(numbers, DType::U8, Some(&nulls)).unwrap(), Array::from([1u8, 0, 0, 7]));
    }
}
