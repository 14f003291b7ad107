//! Element-wise kernels: unary, binary, select, cast.

use std::cmp::Ordering;

use estimand_tensor::{Binary, DType, Error, Result, Unary};

use super::value::{Data, Wide};

/// The constants of `Selu`, which keep mean 0 and variance 1 through a deep network.
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;

pub(super) fn unary(op: Unary, x: &Wide) -> Result<Wide> {
    let dims = x.dims();
    Ok(match (&x.data, op) {
        (Data::Float(v), Unary::IsNan) => Wide::bools(dims, v.iter().map(|v| v.is_nan()).collect()),
        (Data::Float(v), Unary::IsFinite) => Wide::bools(dims, v.iter().map(|v| v.is_finite()).collect()),
        (Data::Float(v), _) => Wide::floats(x.dtype, dims, v.iter().map(|&v| float_unary(op, v)).collect()),
        (Data::Int(v), _) => {
            let values: Result<Vec<i64>> = v.iter().map(|&v| int_unary(op, v)).collect();
            Wide::ints(x.dtype, dims, values?)
        }
        (Data::Bool(v), Unary::LogicalNot) => Wide::bools(dims, v.iter().map(|v| !v).collect()),
        _ => return Err(x.wrong_kind(op.tf_name())),
    })
}

fn float_unary(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign if x == 0.0 || x.is_nan() => x,
        Unary::Sign => x.signum(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Log => x.ln(),
        Unary::Log1p => x.ln_1p(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => x.sqrt().recip(),
        Unary::Square => x * x,
        Unary::Reciprocal => x.recip(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tanh => x.tanh(),
        Unary::Sigmoid => sigmoid(x),
        Unary::Erf => erf(x),
        Unary::Softplus => maximum(x, 0.0) + (-x.abs()).exp().ln_1p(),
        Unary::Softsign => x / (1.0 + x.abs()),
        Unary::Relu => maximum(x, 0.0),
        Unary::Relu6 => minimum(maximum(x, 0.0), 6.0),
        Unary::Elu if x < 0.0 => x.exp_m1(),
        Unary::Elu => x,
        Unary::Selu if x < 0.0 => SELU_SCALE * SELU_ALPHA * x.exp_m1(),
        Unary::Selu => SELU_SCALE * x,
        // Not defined on floats, or computed as booleans above.
        Unary::LogicalNot | Unary::IsNan | Unary::IsFinite => f64::NAN,
    }
}

fn int_unary(op: Unary, x: i64) -> Result<i64> {
    Ok(match op {
        Unary::Neg => x.wrapping_neg(),
        Unary::Abs => x.wrapping_abs(),
        Unary::Sign => x.signum(),
        Unary::Square => x.wrapping_mul(x),
        Unary::Relu => x.max(0),
        Unary::Relu6 => x.clamp(0, 6),
        _ => return Err(Error::internal(format!("{} of integers", op.tf_name()))),
    })
}

pub(super) fn binary(op: Binary, x: &Wide, y: &Wide, dims: &[usize]) -> Result<Wide> {
    let (a, b) = (x.broadcast_to(dims)?, y.broadcast_to(dims)?);
    Ok(match (&a.data, &b.data) {
        (Data::Float(a), Data::Float(b)) if op.is_comparison() => compare(op, dims, a, b),
        (Data::Int(a), Data::Int(b)) if op.is_comparison() => compare(op, dims, a, b),
        (Data::Bool(a), Data::Bool(b)) if op.is_comparison() => compare(op, dims, a, b),
        (Data::Float(a), Data::Float(b)) => {
            Wide::floats(x.dtype, dims, a.iter().zip(b).map(|(&a, &b)| float_binary(op, a, b)).collect())
        }
        (Data::Int(a), Data::Int(b)) => {
            let values: Result<Vec<i64>> = a.iter().zip(b).map(|(&a, &b)| int_binary(op, a, b)).collect();
            Wide::ints(x.dtype, dims, values?)
        }
        (Data::Bool(a), Data::Bool(b)) => {
            let both = |(&a, &b): (&bool, &bool)| if op == Binary::LogicalAnd { a && b } else { a || b };
            Wide::bools(dims, a.iter().zip(b).map(both).collect())
        }
        _ => return Err(x.wrong_kind(op.tf_name())),
    })
}

/// Compares element-wise. With NaN only `NotEqual` is true.
fn compare<T: PartialOrd>(op: Binary, dims: &[usize], a: &[T], b: &[T]) -> Wide {
    let holds = |order: Option<Ordering>| match op {
        Binary::Less => order == Some(Ordering::Less),
        Binary::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Binary::Greater => order == Some(Ordering::Greater),
        Binary::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Binary::Equal => order == Some(Ordering::Equal),
        _ => order != Some(Ordering::Equal),
    };
    Wide::bools(dims, a.iter().zip(b).map(|(a, b)| holds(a.partial_cmp(b))).collect())
}

fn float_binary(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::DivNoNan if b == 0.0 => 0.0,
        Binary::DivNoNan => a / b,
        Binary::FloorDiv => (a / b).floor(),
        Binary::FloorMod => match a % b {
            rest if rest != 0.0 && (rest < 0.0) != (b < 0.0) => rest + b,
            rest => rest,
        },
        Binary::Pow => a.powf(b),
        Binary::Maximum => maximum(a, b),
        Binary::Minimum => minimum(a, b),
        Binary::SquaredDifference => (a - b) * (a - b),
        Binary::ReluGrad => {
            if b > 0.0 {
                a
            } else {
                0.0
            }
        }
        Binary::Relu6Grad => {
            if b > 0.0 && b < 6.0 {
                a
            } else {
                0.0
            }
        }
        Binary::EluGrad => {
            if b < 0.0 {
                a * (b + 1.0)
            } else {
                a
            }
        }
        Binary::SeluGrad if b < 0.0 => a * (b + SELU_SCALE * SELU_ALPHA),
        Binary::SeluGrad => a * SELU_SCALE,
        Binary::SoftplusGrad => a * sigmoid(b),
        Binary::SoftsignGrad => a / ((1.0 + b.abs()) * (1.0 + b.abs())),
        Binary::TanhGrad => b * (1.0 - a * a),
        Binary::SigmoidGrad => b * a * (1.0 - a),
        Binary::SqrtGrad => b * 0.5 / a,
        Binary::RsqrtGrad => b * -0.5 * a * a * a,
        Binary::ReciprocalGrad => -b * a * a,
        // Computed as booleans above.
        Binary::Less
        | Binary::LessEqual
        | Binary::Greater
        | Binary::GreaterEqual
        | Binary::Equal
        | Binary::NotEqual
        | Binary::LogicalAnd
        | Binary::LogicalOr => f64::NAN,
    }
}

fn int_binary(op: Binary, a: i64, b: i64) -> Result<i64> {
    Ok(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Maximum => a.max(b),
        Binary::Minimum => a.min(b),
        Binary::SquaredDifference => a.wrapping_sub(b).wrapping_mul(a.wrapping_sub(b)),
        Binary::FloorDiv | Binary::FloorMod if b == 0 => {
            return Err(Error::config(format!("the integer {a} is divided by zero")));
        }
        Binary::FloorDiv | Binary::FloorMod => {
            let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
            // Division rounds towards 0; subtract one if that is above the floor.
            let above = rest != 0 && (rest < 0) != (b < 0);
            match op {
                Binary::FloorDiv => quotient - i64::from(above),
                _ => rest + if above { b } else { 0 },
            }
        }
        _ => return Err(Error::internal(format!("{} of integers", op.tf_name()))),
    })
}

/// The larger value; NaN if either is NaN, unlike `f64::max`.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller value; NaN if either is NaN, unlike `f64::min`.
pub(super) fn minimum(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `2 / sqrt(pi) * e^(-x^2) * (x + 2 x^3 / 3 + 4 x^5 / (3 * 5) + ...)`: all terms have the same
/// sign, so nothing cancels.
fn erf(x: f64) -> f64 {
    // 1 - erf(6) is below half a bit of 1.
    if x.abs() >= 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > sum.abs() * 1e-17 {
        n += 2.0;
        term *= 2.0 * x * x / n;
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// (condition, x, y), broadcast to `dims`.
pub(super) fn select(condition: &Wide, x: &Wide, y: &Wide, dims: &[usize]) -> Result<Wide> {
    fn choose<T: Clone>(condition: &[bool], x: &[T], y: &[T]) -> Vec<T> {
        condition.iter().zip(x.iter().zip(y)).map(|(&c, (x, y))| if c { x.clone() } else { y.clone() }).collect()
    }
    let condition = condition.broadcast_to(dims)?;
    let (c, x, y) = (condition.as_bools()?, x.broadcast_to(dims)?, y.broadcast_to(dims)?);
    let data = match (&x.data, &y.data) {
        (Data::Float(x), Data::Float(y)) => Data::Float(choose(c, x, y)),
        (Data::Int(x), Data::Int(y)) => Data::Int(choose(c, x, y)),
        (Data::Bool(x), Data::Bool(y)) => Data::Bool(choose(c, x, y)),
        (Data::Str(x), Data::Str(y)) => Data::Str(choose(c, x, y)),
        _ => return Err(x.wrong_kind("two branches of one dtype")),
    };
    Ok(Wide { data, ..x })
}

/// Converts a value. Floats lose their fraction and saturate at the ends of the range; integers
/// wrap; a number is true unless it is 0.
pub(super) fn cast(x: &Wide, to: DType) -> Result<Wide> {
    let dims = x.dims();
    let whole = |v: f64| match to {
        DType::I32 => i64::from(v as i32),
        DType::U8 => i64::from(v as u8),
        _ => v as i64,
    };
    Ok(match (&x.data, to) {
        (Data::Float(v), DType::F32 | DType::F64) => Wide::floats(to, dims, v.clone()),
        (Data::Int(v), DType::F32 | DType::F64) => Wide::floats(to, dims, v.iter().map(|&v| v as f64).collect()),
        (Data::Float(v), DType::Bool) => Wide::bools(dims, v.iter().map(|&v| v != 0.0).collect()),
        (Data::Int(v), DType::Bool) => Wide::bools(dims, v.iter().map(|&v| v != 0).collect()),
        (Data::Bool(v), DType::Bool) => Wide::bools(dims, v.clone()),
        (Data::Bool(v), _) => Wide::counts(to, dims, v.iter().map(|&v| usize::from(v))),
        (Data::Float(v), _) => Wide::ints(to, dims, v.iter().map(|&v| whole(v))),
        (Data::Int(v), _) => Wide::ints(to, dims, v.iter().copied()),
        (Data::Str(_), _) => return Err(x.wrong_kind("numbers")),
    })
}
