//! Sources of values: constants, variables, sizes.

use estimand_graph::op::reading::{Reading, refuse};
use estimand_graph::{Initializer, Role, VarId, VarSpec};
use estimand_tensor::{DType, Dim, Error, Result};

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs, one, shape_of};
use super::super::numbers::{MOST, Number, Numbers, are_few};

pub(super) fn constant(call: &mut NodeReader<'_, '_>) -> Outputs {
    let value = call.tensor_attr("value")?;
    let dtype = call.dtype_or("dtype", Some(value.dtype()))?;
    if value.dtype() != dtype {
        return Err(Error::dtype(
            Some(dtype),
            value.dtype(),
            format!("the constant is declared as {dtype}, but it holds {}", value.dtype()),
        ));
    }
    one(value)
}

/// Returns an error: fed placeholders have been given, so this one is needed but not fed.
pub(super) fn placeholder(_call: &mut NodeReader<'_, '_>) -> Outputs {
    Err(Error::config("this placeholder is needed, but it is not an input of the signature")
        .help("choose a signature that feeds it, or export one"))
}

pub(super) fn identity(call: &mut NodeReader<'_, '_>) -> Outputs {
    one(call.item(0)?)
}

pub(super) fn identity_n(call: &mut NodeReader<'_, '_>) -> Outputs {
    (0..call.n_inputs()).map(|i| call.item(i)).collect()
}

/// A variable of newer graphs. Other nodes read it through its handle.
pub(super) fn handle(call: &mut NodeReader<'_, '_>) -> Outputs {
    let id = variable_of(call)?;
    Ok(vec![NodeOutput::Variable(id)])
}

/// A variable of older graphs. The node itself is its value.
pub(super) fn variable(call: &mut NodeReader<'_, '_>) -> Outputs {
    let id = variable_of(call)?;
    one(call.graph().read(id, std::panic::Location::caller()))
}

fn variable_of(call: &mut NodeReader<'_, '_>) -> Result<VarId> {
    let shared = call.text_or("shared_name", "")?;
    let name = if shared.is_empty() { call.def.name.clone() } else { shared };
    let known = call.graph().body().variables().get(&name);
    if let Some(id) = known {
        call.reader.variables.push((call.def.name.clone(), id));
        return Ok(id);
    }
    let saved = call.reader.surroundings.variable(&call.def.name, &name)?;
    let declared =
        call.sizes_attr("shape")?.and_then(|sizes| sizes.into_iter().map(|n| usize::try_from(n).ok()).collect());
    let dtype = call.dtype("dtype")?;
    let dims: Vec<usize> = match (saved, declared) {
        (Some((saved_dtype, saved_dims)), declared) => {
            if saved_dtype != dtype || declared.as_ref().is_some_and(|d: &Vec<usize>| *d != saved_dims) {
                return Err(Error::shape(format!(
                    "variable `{name}` is {saved_dtype}{saved_dims:?} in the checkpoint, but {dtype}{:?} in the graph",
                    declared.unwrap_or_default()
                )));
            }
            saved_dims
        }
        (None, Some(declared)) => declared,
        (None, None) => return Err(Error::shape(format!("variable `{name}` has no known shape"))),
    };
    let role = Role::Model { trainable: dtype.is_float() };
    let site = std::panic::Location::caller();
    let spec =
        VarSpec { name, dtype, dims: dims.into(), initializer: Initializer::Zeros, role, constraint: None, site };
    let id = call.graph().add_variable(spec)?;
    call.reader.variables.push((call.def.name.clone(), id));
    Ok(id)
}

pub(super) fn read_variable(call: &mut NodeReader<'_, '_>) -> Outputs {
    one(call.variable_value(0)?)
}

pub(super) fn variable_shape(call: &mut NodeReader<'_, '_>) -> Outputs {
    let dtype = call.dtype_or("out_type", Some(DType::I32))?;
    let NodeOutput::Variable(id) = call.item(0)? else { return one(shape_of(&call.tensor(0)?, dtype)) };
    let sizes = call.graph().body().variables().spec(id).dims.iter().map(|&n| Number::Known(n as i64)).collect();
    one(Numbers::list(dtype, sizes))
}

/// (file, names, slices): tensors of the checkpoint. The file is that of the model.
pub(super) fn restore(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (names, slices) = (call.constant(1)?, call.constant(2)?);
    if let Some(slice) = slices.strings()?.find(|slice| !slice.is_empty()) {
        return Err(refuse(format!("a part `{}` of a saved tensor", String::from_utf8_lossy(slice))));
    }
    Ok(names.strings()?.map(|name| NodeOutput::Saved(String::from_utf8_lossy(name).into())).collect())
}

/// The sizes of an input: of a tensor, or of its tracked numbers.
fn sizes_of(call: &mut NodeReader<'_, '_>, i: usize, dtype: DType) -> Result<Numbers> {
    if let Some(numbers) = call.numbers(i)? {
        return Ok(Numbers::list(dtype, numbers.dims.iter().map(|&n| Number::Known(n as i64)).collect()));
    }
    Ok(shape_of(&call.tensor(i)?, dtype))
}

pub(super) fn shape(call: &mut NodeReader<'_, '_>) -> Outputs {
    let dtype = call.dtype_or("out_type", Some(DType::I32))?;
    one(sizes_of(call, 0, dtype)?)
}

pub(super) fn shape_n(call: &mut NodeReader<'_, '_>) -> Outputs {
    let dtype = call.dtype_or("out_type", Some(DType::I32))?;
    (0..call.n_inputs()).map(|i| Ok(sizes_of(call, i, dtype)?.into())).collect()
}

pub(super) fn size(call: &mut NodeReader<'_, '_>) -> Outputs {
    let dtype = call.dtype_or("out_type", Some(DType::I32))?;
    let sizes = sizes_of(call, 0, dtype)?;
    let dims: Vec<Dim> = sizes.elements.iter().filter_map(Number::dim).collect();
    let total = call.graph().symbols_mut(|s| s.product(&dims))?;
    one(Numbers::scalar(dtype, Number::of(total)))
}

pub(super) fn rank(call: &mut NodeReader<'_, '_>) -> Outputs {
    let sizes = sizes_of(call, 0, DType::I32)?;
    one(Numbers::scalar(DType::I32, Number::Known(sizes.elements.len() as i64)))
}

pub(super) fn fill(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (shape, value) = (call.elements(0)?, call.numbers(1)?);
    // A short list filled with one number stays a list of tracked numbers.
    if let (Some(dims), Some(value)) = (shape.known(), value)
        && let Ok(dims) = dims.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<usize>, _>>()
        && are_few(&dims)
        && value.elements.len() == 1
    {
        let n = dims.iter().product();
        return one(Numbers { dtype: value.dtype, dims, elements: vec![value.elements[0].clone(); n] });
    }
    let shape = call.shape(0)?;
    one(call.tensor(1)?.broadcast_to(shape))
}

pub(super) fn like(call: &mut NodeReader<'_, '_>) -> Outputs {
    let is_one = call.def.op == "OnesLike";
    if let Some(numbers) = call.numbers(0)? {
        let elements = vec![Number::Known(is_one.into()); numbers.elements.len()];
        return one(Numbers { elements, ..numbers });
    }
    let tensor = call.tensor(0)?;
    if tensor.dtype() == DType::Str {
        let empty = call.graph().constant(estimand_tensor::Array::zeros(DType::Str, [])?);
        return one(empty.broadcast_to(tensor.shape().clone()));
    }
    one(if is_one { tensor.ones_like() } else { tensor.zeros_like() })
}

/// start, start + delta, ... below a limit.
pub(super) fn range(call: &mut NodeReader<'_, '_>) -> Outputs {
    let dtype = call.dtype_or("Tidx", Some(DType::I32))?;
    if !matches!(dtype, DType::I32 | DType::I64) {
        let bounds = (0..3).map(|i| Ok(call.constant(i)?.to_f64_vec()?[..].first().copied().unwrap_or(0.0)));
        let [start, limit, delta] = bounds.collect::<Result<Vec<f64>>>()?[..] else {
            return Err(Error::config("a range needs three inputs: start, limit and delta"));
        };
        let n = ((limit - start) / delta).ceil();
        if !(0.0..=1e9).contains(&n) {
            return Err(refuse(format!("a range from {start} to {limit} by {delta}")));
        }
        let numbers = call.graph().range(n as usize, dtype);
        return one(numbers * delta + start);
    }
    let (start, delta) = (call.integer(0)?, call.integer(2)?);
    let limit = call.elements(1)?;
    if delta == 0 {
        return Err(Error::config("the step of the range is 0; expected any other number"));
    }
    let n = match limit.elements[..] {
        [Number::Known(limit)] => {
            let span = i128::from(limit) - i128::from(start);
            let (span, step) = if delta > 0 { (span, i128::from(delta)) } else { (-span, -i128::from(delta)) };
            let n = if span <= 0 { 0 } else { (span + step - 1) / step };
            Dim::Known(usize::try_from(n).map_err(|_| Error::shape("the range is too long"))?)
        }
        [_] if start == 0 && delta > 0 => {
            let limit = call.size(1)?;
            call.graph().symbols_mut(|s| s.ceil_div(limit, delta as usize))
        }
        [_] if start > 0 && delta > 0 => {
            let limit = call.size(1)?;
            call.graph().symbols_mut(|s| {
                let span = s.sub(limit, Dim::Known(start as usize));
                s.ceil_div(span, delta as usize)
            })
        }
        _ => return Err(refuse(format!("a range from {start} by {delta} to a limit known only at run time"))),
    };
    if let Dim::Known(n) = n
        && n <= MOST
    {
        // They are between start and limit, also where the product alone overflows.
        let at = |i: i64| Number::Known(start.wrapping_add(i.wrapping_mul(delta)));
        return one(Numbers::list(dtype, (0..n as i64).map(at).collect()));
    }
    let mut numbers = call.graph().range(n, dtype);
    if delta != 1 {
        numbers = numbers * delta;
    }
    one(if start != 0 { numbers + start } else { numbers })
}
