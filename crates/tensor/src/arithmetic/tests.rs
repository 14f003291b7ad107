use super::*;

fn array<T: Element>(dims: &[usize], values: &[T]) -> Array {
    Array::from_slice(dims, values).unwrap()
}

fn error(computed: Computed) -> String {
    computed.array().unwrap_err().to_string()
}

#[test]
fn numbers_take_the_dtype_of_the_array() {
    let x = Array::from([1.0f32, 4.0]);
    for (computed, expected) in [
        (&x + 1.0, [2.0f32, 5.0]),
        (&x - 1, [0.0, 3.0]),
        (&x * 2.0f32, [2.0, 8.0]),
        (&x / 2i64, [0.5, 2.0]),
        (1.0 + &x, [2.0, 5.0]),
        (1 - &x, [0.0, -3.0]),
        (2.0 * x.clone(), [2.0, 8.0]),
        (8.0 / &x, [8.0, 2.0]),
        (-&x, [-1.0, -4.0]),
        (-(&x - 2.0) * &x, [1.0, -8.0]),
        ((1.0 - &x) / (&x + 1), [0.0, -0.6]),
    ] {
        assert_eq!(computed.array().unwrap(), Array::from(expected));
    }
    assert_eq!((&Array::from([1i64, -2]) * 3).array().unwrap(), Array::from([3i64, -6]));
    assert_eq!((&Array::from([1u8, 2]) + 3).array().unwrap(), Array::from([4u8, 5]));
    assert_eq!((-&Array::from([1i32, -2])).array().unwrap(), Array::from([-1i32, 2]));
    assert_eq!((&Array::from([0.5f64]) + 0.25).array().unwrap(), Array::from([0.75f64]));
    // 0.1 as f32, not as f64.
    assert_eq!((&Array::from([0.0f32]) + 0.1).array().unwrap(), Array::from([0.1f32]));
}

#[test]
fn a_float_beside_integers_makes_floats_of_its_type() {
    let cents = Array::from([1i64, 250]);
    assert_eq!((&cents / 100.0).array().unwrap(), Array::from([0.01f64, 2.5]));
    assert_eq!((&cents / 100.0f32).array().unwrap(), Array::from([0.01f32, 2.5]));
    assert_eq!((1.5 - &Array::from([1u8])).array().unwrap(), Array::from([0.5f64]));
    // Integers are divided as NumPy's `/` divides them.
    assert_eq!((&cents / 100).array().unwrap(), Array::from([0.01f64, 2.5]));
    let (a, b) = (Array::from([7i32, -7, 0]), Array::from([2i32, 0, 0]));
    let quotients = (&a / &b).array().unwrap();
    assert_eq!(quotients.as_slice::<f64>().unwrap()[..2], [3.5, f64::NEG_INFINITY]);
    assert!(quotients.as_slice::<f64>().unwrap()[2].is_nan());
}

/// The shapes of NumPy's documentation of broadcasting, and empty arrays.
#[test]
fn shapes_are_broadcast() {
    let rows = array(&[2, 3], &[1i64, 2, 3, 4, 5, 6]);
    let row = Array::from([10i64, 20, 30]);
    let column = array(&[2, 1], &[100i64, 200]);
    assert_eq!((&rows + &row).array().unwrap(), array(&[2, 3], &[11i64, 22, 33, 14, 25, 36]));
    assert_eq!((&row + &rows).array().unwrap(), array(&[2, 3], &[11i64, 22, 33, 14, 25, 36]));
    assert_eq!((&rows - &column).array().unwrap(), array(&[2, 3], &[-99i64, -98, -97, -196, -195, -194]));
    assert_eq!((&column + &row).array().unwrap(), array(&[2, 3], &[110i64, 120, 130, 210, 220, 230]));
    let (outer, inner) = (array(&[2, 1, 2], &[1i64, 2, 3, 4]), array(&[3, 1], &[10i64, 20, 30]));
    let expected = array(&[2, 3, 2], &[10i64, 20, 20, 40, 30, 60, 30, 40, 60, 80, 90, 120]);
    assert_eq!((&outer * &inner).array().unwrap(), expected);
    assert_eq!((&Array::from(2i64) * &Array::from(3i64)).array().unwrap(), Array::from(6i64));
    let empty = Array::zeros(DType::I64, [0, 3]).unwrap();
    assert_eq!((&empty + &row).array().unwrap(), empty);
    assert_eq!((&empty * 2).array().unwrap(), empty);
    assert_eq!((&Array::zeros(DType::I64, [2, 0]).unwrap() + &column).array().unwrap().dims(), [2, 0]);
    // A range of rows does not begin with its buffer.
    assert_eq!((rows.rows(1..2).unwrap() + 1).array().unwrap(), array(&[1, 3], &[5i64, 6, 7]));
}

#[test]
fn errors_name_the_operands_and_the_line() {
    let x = Array::from([1.0f32, 2.0, 3.0]);
    let words = Array::from_strings([1], ["a"]).unwrap();
    let bytes = Array::from([200u8, 100]);
    for (computed, text) in [
        (&x + &Array::from([1i64]), "f32[3] + i64[1]: the dtypes differ"),
        (&x * &Array::from([1.0f32, 2.0]), "f32[3] * f32[2]: the sizes 3 and 2 of axis 0 do not fit together"),
        (&words / 2.0, "string[1] / 2.0: a string has no arithmetic"),
        (1 - &Array::from([true]), "1 - bool[1]: a bool has no arithmetic"),
        (&bytes + 300, "the number 300 is not a u8\n  in u8[2] + 300"),
        (&bytes + 56, "200 + 56 does not fit u8, at position 0"),
        (&bytes - &Array::from([1u8, 101]), "100 - 101 does not fit u8, at position 1"),
        (&Array::from([i64::MAX]) * 2, "9223372036854775807 * 2 does not fit i64, at position 0"),
        (-&bytes, "-u8[2]: a u8 has no negative"),
        (-&Array::from([i32::MIN]), "the smallest i32 has no negative"),
        ((&x + 1.0).cast(DType::Str), "an array of f32 cannot be cast to strings"),
    ] {
        let error = error(computed);
        assert!(error.contains(text), "{error} should contain {text}");
        assert!(error.contains("arithmetic/tests.rs:"), "{error}");
    }
    let error_of_sizes = Paired::new(&[1 << 31, 1], &[1, 1 << 31]).err().unwrap().to_string();
    assert!(error_of_sizes.contains("does not fit into the address space"), "{error_of_sizes}");
    // The first error stays, with its own line.
    let line = line!() + 1;
    let wrong = &x + &bytes;
    let text = error(-(&wrong * 2.0) / wrong.clone() + 1);
    assert!(text.contains("f32[3] + u8[2]") && text.contains(&format!("tests.rs:{line}")), "{text}");
    assert!(format!("{wrong:?}").contains("the dtypes differ"));
    assert_eq!(format!("{:?}", &Array::from([1i64]) + 1), "i64[1] [2]");
}

#[test]
fn casts() {
    let x = Array::from([1.9f32, -1.9, f32::NAN, 1e20]);
    assert_eq!(x.cast(DType::I32).unwrap(), Array::from([1i32, -1, 0, i32::MAX]));
    assert_eq!(x.cast(DType::U8).unwrap(), Array::from([1u8, 0, 0, 255]));
    assert_eq!(x.cast(DType::Bool).unwrap(), Array::from([true; 4]));
    assert!(x.cast(DType::F32).unwrap().shares_buffer(&x));
    assert_eq!(Array::from([true, false]).cast(DType::F64).unwrap(), Array::from([1.0f64, 0.0]));
    assert_eq!(array(&[1, 2], &[3i64, 4]).cast(DType::F32).unwrap(), array(&[1, 2], &[3.0f32, 4.0]));
    assert_eq!((&Array::from([1i64]) / 2).cast(DType::F32).array().unwrap(), Array::from([0.5f32]));
    let error = Array::from_strings([1], ["1"]).unwrap().cast(DType::I64).unwrap_err().to_string();
    assert!(error.contains("an array of strings cannot be cast to i64"), "{error}");
}
