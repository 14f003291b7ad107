//! Other sizes of images, by the nearest pixel or a line between two.

use estimand_tensor::{Array, DType, Error, Result};

use super::call::Call;
use super::values::{Lines, Numbers, axis, sizes};

/// Gives each axis the size of the fourth input, one axis after the other.
pub(super) fn resize(call: &Call<'_>) -> Result<Array> {
    let (mut x, wanted) = (call.x(0)?.clone(), sizes(&call.ints_of(3)?)?);
    if wanted.len() != x.rank() {
        return Err(Error::shape(format!("{} sizes for {} axes", wanted.len(), x.rank())));
    }
    let mode = call.word("mode", "nearest")?;
    let is_linear = match mode {
        "nearest" => false,
        "linear" => true,
        other => return call.unknown_word("mode", other),
    };
    let centres = match call.word("coordinate_transformation_mode", "half_pixel")? {
        "half_pixel" => true,
        "asymmetric" => false,
        other => return call.unknown_word("coordinate_transformation_mode", other),
    };
    let rounding = call.word("nearest_mode", "round_prefer_floor")?;
    if !matches!(rounding, "floor" | "ceil" | "round_prefer_floor" | "round_prefer_ceil") {
        return call.unknown_word("nearest_mode", rounding);
    }
    for (number, &size) in wanted.iter().enumerate() {
        let along = axis(number as i64, x.rank())?;
        if x.dims()[along] != size {
            let is_double = is_linear && x.dtype() == DType::F64;
            let coordinates = coordinates(x.dims()[along], size, centres, is_double);
            x = along_axis(&x, along, &coordinates, (!is_linear).then_some(rounding))?;
        }
    }
    Ok(x)
}

/// The place of each new pixel among the old ones. Runtimes compute it in f32.
fn coordinates(old: usize, new: usize, centres: bool, is_double: bool) -> Vec<f64> {
    let half = if centres { 0.5 } else { 0.0 };
    let single = |i: usize| f64::from((i as f32 + half as f32) / (new as f32 / old as f32) - half as f32);
    let double = |i: usize| (i as f64 + half) * old as f64 / new as f64 - half;
    (0..new).map(|i| if is_double { double(i) } else { single(i) }).collect()
}

fn along_axis(x: &Array, axis: usize, coordinates: &[f64], rounding: Option<&str>) -> Result<Array> {
    let Numbers::Floats(old) = Numbers::of(x)? else {
        return Err(Error::dtype(Some(DType::F32), x.dtype(), "the operator takes floats"));
    };
    let lines = Lines::new(x.dims(), axis);
    let mut dims = x.dims().to_vec();
    dims[axis] = coordinates.len();
    let mut new = vec![0.0; dims.iter().product()];
    let last = lines.n.checked_sub(1).ok_or_else(|| Error::shape("an image without pixels has no other size"))? as f64;
    for (number, line) in lines.each().enumerate() {
        let (outer, inner) = (number / lines.inner, number % lines.inner);
        let at = |coordinate: f64| old[line[coordinate.clamp(0.0, last) as usize]];
        for (i, &coordinate) in coordinates.iter().enumerate() {
            let value = match rounding {
                Some("floor") => at(coordinate.floor()),
                Some("ceil") => at(coordinate.ceil()),
                Some("round_prefer_floor") => at((coordinate - 0.5).ceil()),
                Some(_) => at((coordinate + 0.5).floor()),
                None => {
                    let inside = coordinate.clamp(0.0, last);
                    let share = inside - inside.floor();
                    at(inside.floor()) * (1.0 - share) + at(inside.floor() + 1.0) * share
                }
            };
            new[(outer * coordinates.len() + i) * lines.inner + inner] = value;
        }
    }
    Numbers::Floats(new).array(x.dtype(), &dims)
}
