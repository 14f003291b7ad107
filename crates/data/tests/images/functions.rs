//! Resizing and normalisation, within rounding of TensorFlow's.

use estimand_data::Dataset;
use estimand_data::image::{Method, per_image_standardization, resize, standardize, to_unit};
use estimand_fixture::cases_of;
use estimand_tensor::{Array, DType, Result};

use crate::pixels;

#[track_caller]
fn close(found: &Array, expected: &[f32], tolerance: f32) {
    let found = found.as_slice::<f32>().unwrap();
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * e.abs().max(1.0), "{f} for {e} at {i}");
    }
}

#[test]
fn resizing_is_tensorflows() -> Result<()> {
    let cases = cases_of("images", "resize");
    assert_eq!(cases.len(), 9);
    for case in cases {
        let (x, target) = (pixels(&case, "x")?, <[usize; 2]>::from(case.setting::<(usize, usize)>("target")));
        let sizes = x.dims();
        let expected_dims = [sizes[0], target[0], target[1], sizes[3]];
        let nearest = resize(&x, target, Method::Nearest)?;
        assert_eq!((&nearest, nearest.dims()), (&pixels(&case, "nearest")?, &expected_dims[..]), "{case}");
        let bilinear = resize(&x, target, Method::Bilinear)?;
        assert_eq!(bilinear.dims(), expected_dims);
        close(&bilinear, &case.numbers::<f32>("bilinear"), 1e-5);
        // One image of the batch alone, and as f32.
        let second = Array::from_slice(&sizes[1..], x.rows(1..2)?.as_slice::<u8>()?)?;
        let alone = resize(&second, target, Method::Bilinear)?;
        assert_eq!(alone.as_slice::<f32>()?, bilinear.rows(1..2)?.as_slice::<f32>()?);
        let floats = Array::from_vec(sizes, case.numbers::<f32>("x"))?;
        assert_eq!(resize(&floats, target, Method::Bilinear)?, bilinear);
        assert_eq!(resize(&floats, target, Method::Nearest)?.dtype(), DType::F32);
    }
    Ok(())
}

#[test]
fn normalisation_is_tensorflows() -> Result<()> {
    for case in cases_of("images", "standardization") {
        close(&per_image_standardization(&pixels(&case, "x")?)?, &case.numbers::<f32>("y"), 1e-5);
    }
    for case in cases_of("images", "unit") {
        // TensorFlow multiplies by 1 / 255, which may differ in the last bit.
        close(&to_unit(&pixels(&case, "x")?)?, &case.numbers::<f32>("y"), 1e-7);
    }
    // (10 - 4) / 2, (20 - 8) / 4, ...
    let image = Array::from_vec([1, 2, 2], vec![10u8, 20, 4, 8])?;
    let expected = Array::from_vec([1, 2, 2], vec![3.0f32, 3.0, 0.0, 0.0])?;
    assert_eq!(standardize(&image, &[4.0, 8.0], &[2.0, 4.0])?, expected);
    Ok(())
}

#[test]
fn mistakes() -> Result<()> {
    let image = Array::zeros(DType::U8, [2, 3, 1])?;
    let data = Dataset::from_arrays([("image", Array::zeros(DType::I64, [2, 2, 2, 1])?)]);
    let fails = |data: Dataset| data.iter().next().unwrap().unwrap_err().to_string();
    for (error, text) in [
        (
            resize(&image, [0, 4], Method::Nearest).unwrap_err().to_string(),
            "images of 2 x 3 cannot be resized to 0 x 4",
        ),
        (resize(&image, [1 << 40, 1 << 40], Method::Nearest).unwrap_err().to_string(), "address space"),
        (resize(&Array::from([1u8]), [2, 2], Method::Nearest).unwrap_err().to_string(), "the array has the shape [1]"),
        (standardize(&image, &[1.0; 3], &[1.0; 3]).unwrap_err().to_string(), "3 means and 3 deviations were given"),
        (standardize(&image, &[1.0], &[0.0]).unwrap_err().to_string(), "the deviation of a channel is 0"),
        (fails(data.map_feature("image", to_unit)), "in the feature `image`"),
        (fails(data.map_feature("imag", to_unit)), "did you mean `image`?"),
        (
            fails(data.map_feature("image", |x| resize(x, [4, 4], Method::Nearest))),
            "the images are i64; expected u8 or f32",
        ),
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
    Ok(())
}
