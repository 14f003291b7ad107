//! Operators on each element: functions, arithmetic, comparisons, conditions, conversions.

use estimand_tensor::cpu::math::erf_f64;
use estimand_tensor::{Array, DType, Error, Result};

use super::call::Call;
use super::values::{Numbers, booleans, broadcast, expand, pick, strings};
use crate::tensor::dtype_of;

/// A function of one input.
pub(super) fn unary(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let numbers = match (Numbers::of(x)?, call.op()) {
        (Numbers::Ints(v), "Neg") => Numbers::Ints(v.into_iter().map(i64::wrapping_neg).collect()),
        (Numbers::Ints(v), "Abs") => Numbers::Ints(v.into_iter().map(i64::wrapping_abs).collect()),
        (Numbers::Ints(v), "Sign") => Numbers::Ints(v.into_iter().map(i64::signum).collect()),
        (Numbers::Floats(v), _) => {
            let function = function(call)?;
            Numbers::Floats(v.into_iter().map(function).collect())
        }
        _ => return Err(Error::dtype(Some(DType::F32), x.dtype(), "the operator takes floats")),
    };
    numbers.array(x.dtype(), x.dims())
}

fn function(call: &Call<'_>) -> Result<Box<dyn Fn(f64) -> f64>> {
    Ok(match call.op() {
        "Neg" => Box::new(|x| -x),
        "Abs" => Box::new(f64::abs),
        "Sign" => Box::new(|x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
        "Floor" => Box::new(f64::floor),
        "Ceil" => Box::new(f64::ceil),
        "Round" => Box::new(f64::round_ties_even),
        "Exp" => Box::new(f64::exp),
        "Log" => Box::new(f64::ln),
        "Sqrt" => Box::new(f64::sqrt),
        "Reciprocal" => Box::new(f64::recip),
        "Sin" => Box::new(f64::sin),
        "Cos" => Box::new(f64::cos),
        "Tanh" => Box::new(f64::tanh),
        "Sigmoid" => Box::new(|x| 1.0 / (1.0 + (-x).exp())),
        "Erf" => Box::new(erf_f64),
        "Softplus" => Box::new(|x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
        "Softsign" => Box::new(|x| x / (1.0 + x.abs())),
        "Relu" => Box::new(|x| if x < 0.0 { 0.0 } else { x }),
        "Elu" => {
            let alpha = call.float("alpha", 1.0)?;
            Box::new(move |x| if x < 0.0 { alpha * x.exp_m1() } else { x })
        }
        "Selu" => {
            let (alpha, gamma) = (call.float("alpha", 1.673_263_2)?, call.float("gamma", 1.050_701)?);
            Box::new(move |x| if x <= 0.0 { gamma * alpha * x.exp_m1() } else { gamma * x })
        }
        op => return Err(Error::internal(format!("{op} is no function"))),
    })
}

/// `IsNaN`, `IsInf` and `Not`.
pub(super) fn test(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let flags = match (call.op(), x.dtype()) {
        ("Not", _) => booleans(x)?.into_iter().map(|v| !v).collect(),
        (op, DType::F32 | DType::F64) => {
            let is_it = if op == "IsNaN" { f64::is_nan } else { f64::is_infinite };
            x.to_f64_vec()?.into_iter().map(is_it).collect()
        }
        (_, dtype) => return Err(Error::dtype(Some(DType::F32), dtype, "the operator takes floats")),
    };
    Array::from_vec(x.dims(), flags)
}

/// Two inputs, broadcast to one shape.
fn pair(call: &Call<'_>) -> Result<[Array; 2]> {
    both(call.x(0)?, call.x(1)?)
}

fn both(x: &Array, y: &Array) -> Result<[Array; 2]> {
    if x.dtype() != y.dtype() {
        let text = format!("the inputs are {} and {}; expected one type", x.dtype(), y.dtype());
        return Err(Error::dtype(Some(x.dtype()), y.dtype(), text));
    }
    let dims = broadcast(x.dims(), y.dims())?;
    Ok([expand(x, &dims)?, expand(y, &dims)?])
}

/// Arithmetic on two inputs, or on all of them.
pub(super) fn arithmetic(call: &Call<'_>) -> Result<Array> {
    let fmod = call.op() == "Mod" && call.flag("fmod", false)?;
    let inputs = match call.op() {
        "Max" | "Min" => call.all()?,
        _ => vec![call.x(0)?, call.x(1)?],
    };
    let first = inputs.first().ok_or_else(|| Error::config("the node has no inputs"))?;
    let mut result = (*first).clone();
    for y in &inputs[1..] {
        let [x, y] = both(&result, y)?;
        let numbers = match (Numbers::of(&x)?, Numbers::of(&y)?) {
            (Numbers::Floats(x), Numbers::Floats(y)) => {
                let function = of_floats(call.op(), fmod)?;
                Numbers::Floats(x.into_iter().zip(y).map(|(x, y)| function(x, y)).collect())
            }
            (Numbers::Ints(x), Numbers::Ints(y)) if result.dtype() != DType::Bool => {
                let one = |(x, y)| of_ints(call.op(), fmod, x, y);
                Numbers::Ints(x.into_iter().zip(y).map(one).collect::<Result<_>>()?)
            }
            _ => return Err(Error::dtype(None, result.dtype(), "the operator takes numbers")),
        };
        result = numbers.array(x.dtype(), x.dims())?;
    }
    Ok(result)
}

fn of_floats(op: &str, fmod: bool) -> Result<fn(f64, f64) -> f64> {
    Ok(match op {
        "Add" => |x, y| x + y,
        "Sub" => |x, y| x - y,
        "Mul" => |x, y| x * y,
        "Div" => |x, y| x / y,
        // The rest has the sign of x.
        "Mod" if fmod => |x, y| x % y,
        "Mod" => return Err(Error::config("floats need `fmod` = 1")),
        "Pow" => f64::powf,
        "Max" => |x, y| if x.is_nan() || x > y { x } else { y },
        "Min" => |x, y| if x.is_nan() || x < y { x } else { y },
        op => return Err(Error::internal(format!("{op} is no arithmetic"))),
    })
}

fn of_ints(op: &str, fmod: bool, x: i64, y: i64) -> Result<i64> {
    if y == 0 && matches!(op, "Div" | "Mod") {
        return Err(Error::data("an integer is divided by zero"));
    }
    Ok(match op {
        "Add" => x.wrapping_add(y),
        "Sub" => x.wrapping_sub(y),
        "Mul" => x.wrapping_mul(y),
        // Towards zero.
        "Div" => x.wrapping_div(y),
        "Mod" => {
            let rest = x.wrapping_rem(y);
            if !fmod && rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }
        }
        "Pow" => match u32::try_from(y) {
            Ok(y) => x.wrapping_pow(y),
            Err(_) => (x as f64).powf(y as f64) as i64,
        },
        "Max" => x.max(y),
        "Min" => x.min(y),
        op => return Err(Error::internal(format!("{op} is no arithmetic"))),
    })
}

/// A comparison of two inputs.
pub(super) fn compare(call: &Call<'_>) -> Result<Array> {
    fn holds<T: PartialOrd>(op: &str, x: &T, y: &T) -> bool {
        match op {
            "Less" => x < y,
            "LessOrEqual" => x <= y,
            "Greater" => x > y,
            "GreaterOrEqual" => x >= y,
            _ => x == y,
        }
    }
    let [x, y] = pair(call)?;
    let flags = match (Numbers::of(&x)?, Numbers::of(&y)?) {
        (Numbers::Floats(x), Numbers::Floats(y)) => x.iter().zip(&y).map(|(x, y)| holds(call.op(), x, y)).collect(),
        (Numbers::Ints(x), Numbers::Ints(y)) => x.iter().zip(&y).map(|(x, y)| holds(call.op(), x, y)).collect(),
        _ => return Err(Error::internal("two inputs of one type have numbers of two kinds")),
    };
    Array::from_vec(x.dims(), flags)
}

/// `And`, `Or` and `Xor`.
pub(super) fn logic(call: &Call<'_>) -> Result<Array> {
    let [x, y] = pair(call)?;
    let one = |(x, y): (bool, bool)| match call.op() {
        "And" => x && y,
        "Or" => x || y,
        _ => x != y,
    };
    Array::from_vec(x.dims(), booleans(&x)?.into_iter().zip(booleans(&y)?).map(one).collect())
}

/// The second input where the first holds, and the third elsewhere.
pub(super) fn select(call: &Call<'_>) -> Result<Array> {
    let [x, y] = both(call.x(1)?, call.x(2)?)?;
    let dims = broadcast(call.x(0)?.dims(), x.dims())?;
    let condition = booleans(&expand(call.x(0)?, &dims)?)?;
    let [x, y] = [expand(&x, &dims)?, expand(&y, &dims)?];
    pick(&[&x, &y], &dims, condition.into_iter().enumerate().map(|(i, holds)| (usize::from(!holds), i)))
}

/// Numbers not below the second input and not above the third.
pub(super) fn clip(call: &Call<'_>) -> Result<Array> {
    let mut result = call.x(0)?.clone();
    for (i, op) in [(1, "Max"), (2, "Min")] {
        let [x, bound] = both(&result, call.x(i)?)?;
        let numbers = match (Numbers::of(&x)?, Numbers::of(&bound)?) {
            (Numbers::Floats(x), Numbers::Floats(y)) => {
                let function = of_floats(op, false)?;
                Numbers::Floats(x.into_iter().zip(y).map(|(x, y)| function(x, y)).collect())
            }
            (Numbers::Ints(x), Numbers::Ints(y)) => {
                Numbers::Ints(x.into_iter().zip(y).map(|(x, y)| of_ints(op, false, x, y)).collect::<Result<_>>()?)
            }
            _ => return Err(Error::internal("two inputs of one type have numbers of two kinds")),
        };
        result = numbers.array(x.dtype(), x.dims())?;
    }
    Ok(result)
}

/// Another type. `is_double` makes f64 of every f32.
pub(super) fn cast(call: &Call<'_>, is_double: bool) -> Result<Array> {
    let x = call.x(0)?;
    let to = match dtype_of(call.int("to", 0)? as i32)? {
        DType::F32 if is_double => DType::F64,
        to => to,
    };
    if x.dtype() == to {
        return Ok(x.clone());
    }
    if x.dtype() == DType::Str {
        let numbers = strings(x)?.into_iter().map(|text| number(text, to)).collect::<Result<Vec<Array>>>()?;
        let numbers: Vec<&Array> = numbers.iter().collect();
        return match numbers.is_empty() {
            true => Array::zeros(to, x.dims()),
            false => pick(&numbers, x.dims(), (0..numbers.len()).map(|i| (i, 0))),
        };
    }
    let numbers = match (Numbers::of(x)?, to) {
        (Numbers::Ints(v), DType::F32 | DType::F64) => {
            // One rounding: an i64 is not always an f64.
            let one = |v: i64| if to == DType::F32 { f64::from(v as f32) } else { v as f64 };
            Numbers::Floats(v.into_iter().map(one).collect())
        }
        (Numbers::Ints(v), DType::Str) if x.dtype() != DType::Bool => {
            return Array::from_strings(x.dims(), v.into_iter().map(|v| v.to_string()));
        }
        (Numbers::Floats(v), DType::Bool) => Numbers::Ints(v.into_iter().map(|v| (v != 0.0).into()).collect()),
        (Numbers::Floats(v), DType::I32) => Numbers::Ints(v.into_iter().map(|v| (v as i32).into()).collect()),
        (Numbers::Floats(v), DType::I64 | DType::U8) => Numbers::Ints(v.into_iter().map(|v| v as i64).collect()),
        (numbers @ Numbers::Ints(_), DType::I32 | DType::I64 | DType::U8 | DType::Bool)
        | (numbers @ Numbers::Floats(_), DType::F32 | DType::F64) => numbers,
        _ => return Err(Error::unsupported(format!("this library does not write {} as {to}", x.dtype()))),
    };
    numbers.array(to, x.dims())
}

/// The number that a text is.
fn number(text: &[u8], to: DType) -> Result<Array> {
    let wrong = || Error::data(format!("\"{}\" is no {to}", text.escape_ascii()));
    let text = std::str::from_utf8(text).map_err(|_| wrong())?;
    Ok(match to {
        DType::F32 => Array::scalar(text.parse::<f32>().map_err(|_| wrong())?),
        DType::F64 => Array::scalar(text.parse::<f64>().map_err(|_| wrong())?),
        DType::I32 => Array::scalar(text.parse::<i32>().map_err(|_| wrong())?),
        DType::I64 => Array::scalar(text.parse::<i64>().map_err(|_| wrong())?),
        _ => return Err(Error::unsupported(format!("this library does not write texts as {to}"))),
    })
}
