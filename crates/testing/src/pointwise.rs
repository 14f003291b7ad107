//! Element-wise steps on one, two or three values with broadcasting, each in the range where the
//! operation is well behaved.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Dim, Result, Shape};

use super::facts::Facts;
use super::generator::{Generator, MOST_ELEMENTS, PoolValue};
use super::leaves;

/// Returns the value itself, or a positive function of it: at least 0.5, and at most slightly
/// larger than the value.
pub(super) fn positive(item: &PoolValue) -> (Tensor, Facts) {
    if item.facts.low >= 0.25 {
        return (item.tensor.clone(), item.facts);
    }
    (item.tensor.softplus() + 0.5, item.facts.rising(|v| v.exp().ln_1p() + 0.51))
}

/// Scales the value into [-limit, limit] if it exceeds it.
fn shrunk(item: &PoolValue, limit: f64) -> (Tensor, Facts) {
    let size = item.facts.size();
    if size <= limit {
        return (item.tensor.clone(), item.facts);
    }
    (&item.tensor * (limit / size), item.facts.rising(|v| v * limit / size))
}

/// Returns the value itself if it is exact. Otherwise shifts it, so that a sum that is 0 up to
/// rounding does not lie on a kink at 0.
fn off_kink(item: &PoolValue) -> (Tensor, Facts) {
    if item.facts.is_exact() {
        return (item.tensor.clone(), item.facts);
    }
    (&item.tensor + 0.137, item.facts.rising(|v| v + 0.137))
}

pub(super) fn unary(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| i.is_float() || (is_int(i) && i.facts.size() < 30.0)) else { return Ok(false) };
    if is_int(&x) {
        return int_unary(g, &x);
    }
    if x.facts.is_exact() && g.dice.chance(30) {
        return jump(g, &x);
    }
    match g.dice.below(28) {
        n @ 0..6 => positive_unary(g, &x, n),
        n @ 6..14 => narrow_unary(g, &x, n - 6),
        n @ 14..20 => kinked_unary(g, &x, n - 14),
        n => smooth_unary(g, &x, n - 20),
    }
}

/// Discontinuous functions, for exact values.
fn jump(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let (t, whole) = (&x.tensor, Facts::whole(x.facts.low.floor(), x.facts.high.ceil()));
    match g.dice.below(4) {
        0 => g.push(t.floor(), whole),
        1 => g.push(t.ceil(), whole),
        2 => g.push(t.round(), whole),
        _ => g.push(t.sign(), Facts::whole(-1.0, 1.0)),
    }
}

/// Functions that are smooth everywhere.
fn smooth_unary(g: &mut Generator, x: &PoolValue, which: usize) -> Result<bool> {
    let (t, f) = (&x.tensor, x.facts);
    let above = f.high.max(0.0);
    match which {
        0 => g.push(-t, f.negated()),
        1 => g.push(t.square(), f.times(&f).within(0.0, f.size() * f.size())),
        2 => g.push(t.softsign(), f.rising(|v| v / (1.0 + v.abs()))),
        3 => g.push(t.softplus(), f.rising(|v| v.exp().ln_1p())),
        4 => g.push(t.elu(), Facts::real(f.low.max(-1.0), above)),
        5 => g.push(t.stop_gradient(), f),
        6 => g.push(t.swish(), Facts::real(-0.3, above)),
        _ => g.push(t.is_finite(), Facts::whole(0.0, 1.0)),
    }
}

/// Functions whose derivative is discontinuous.
fn kinked_unary(g: &mut Generator, x: &PoolValue, which: usize) -> Result<bool> {
    let (t, f) = off_kink(x);
    let above = f.high.max(0.0);
    match which {
        0 => g.push(t.abs(), f.within(0.0, f.size())),
        1 => g.push(t.relu(), f.within(0.0, above)),
        2 => g.push(t.relu6(), f.within(0.0, above.min(6.0))),
        3 => g.push(t.selu(), Facts::real(-1.8, above * 1.06)),
        4 => g.push(t.leaky_relu(0.25), Facts::real(f.low, above)),
        _ => g.push(t.clip(-0.75, 1.25), f.within(f.low.clamp(-0.75, 1.25), f.high.clamp(-0.75, 1.25))),
    }
}

/// Functions with a pole at 0.
fn positive_unary(g: &mut Generator, x: &PoolValue, which: usize) -> Result<bool> {
    let (t, f) = positive(x);
    match which {
        0 => g.push(t.log(), f.rising(f64::ln)),
        1 => g.push(t.log1p(), f.rising(f64::ln_1p)),
        2 => g.push(t.sqrt(), f.rising(f64::sqrt)),
        3 => g.push(t.rsqrt(), Facts::real(f.high.powf(-0.5), f.low.powf(-0.5))),
        _ => g.push(t.reciprocal(), Facts::real(1.0 / f.high, 1.0 / f.low)),
    }
}

/// Functions that grow fast, or become flat where f32 loses their slope.
fn narrow_unary(g: &mut Generator, x: &PoolValue, which: usize) -> Result<bool> {
    let (t, f) = shrunk(x, 2.0);
    match which {
        0 => g.push(t.exp(), f.rising(f64::exp)),
        1 => g.push(t.expm1(), f.rising(f64::exp_m1)),
        2 => g.push(t.sin(), Facts::real(-1.0, 1.0)),
        3 => g.push(t.cos(), Facts::real(-1.0, 1.0)),
        4 => g.push(t.tanh(), f.rising(f64::tanh)),
        5 => g.push(t.sigmoid(), f.rising(|v| 1.0 / (1.0 + (-v).exp()))),
        6 => g.push(t.erf(), Facts::real(-1.0, 1.0)),
        _ => g.push(t.gelu(), Facts::real(-0.2, f.high.max(0.0))),
    }
}

fn int_unary(g: &mut Generator, x: &PoolValue) -> Result<bool> {
    let (t, f) = (&x.tensor, x.facts);
    match g.dice.below(4) {
        0 => g.push(-t, f.negated()),
        1 => g.push(t.abs(), f.within(0.0, f.size())),
        2 => g.push(t.sign(), Facts::whole(-1.0, 1.0)),
        _ => g.push(t.square(), f.within(0.0, f.size() * f.size())),
    }
}

/// Whether the value has integers for arithmetic.
fn is_int(item: &PoolValue) -> bool {
    matches!(item.tensor.dtype(), DType::I32 | DType::I64)
}

/// Whether two values can be broadcast against each other in this run.
fn meets(a: &[usize], b: &[usize]) -> bool {
    a.iter().rev().zip(b.iter().rev()).all(|(&x, &y)| x == y || x == 1 || y == 1)
}

fn broadcast_len(a: &[usize], b: &[usize]) -> usize {
    let at = |d: &[usize], i: usize| d.len().checked_sub(i + 1).map_or(1, |k| d[k]);
    (0..a.len().max(b.len())).map(|i| if at(a, i) == 1 { at(b, i) } else { at(a, i) }).product()
}

/// A second operand for a value: one of the same dtype from the pool that fits, or a new leaf that
/// is broadcast.
fn partner(g: &mut Generator, x: &PoolValue) -> Result<Option<PoolValue>> {
    let affordable = |i: &PoolValue| meets(&i.dims, &x.dims) && broadcast_len(&i.dims, &x.dims) <= MOST_ELEMENTS;
    let found = g.find(|i| i.tensor.dtype() == x.tensor.dtype() && affordable(i));
    if let Some(found) = found.filter(|f| f.tensor.value() != x.tensor.value()) {
        return Ok(Some(found));
    }
    if !x.is_float() {
        return Ok(None);
    }
    // The last axes of x, some of them with size 1.
    let skip = g.dice.below(x.dims.len() + 1);
    let symbolic = g.dice.chance(50);
    let (mut shape, mut dims) = (Shape::scalar(), Vec::new());
    for (axis, &n) in x.dims.iter().enumerate().skip(skip) {
        let one = g.dice.chance(25);
        dims.push(if one { 1 } else { n });
        let batch = symbolic && !one && x.tensor.shape().dims()[axis] == Dim::BATCH;
        shape.0.push(if batch { Dim::BATCH } else { Dim::Known(dims[dims.len() - 1]) });
    }
    leaves::float_feed(g, Some((shape, dims))).map(Some)
}

pub(super) fn binary(g: &mut Generator) -> Result<bool> {
    let Some(a) = g.find(|i| i.is_float() || is_int(i)) else { return Ok(false) };
    let Some(b) = partner(g, &a)? else { return Ok(false) };
    let (mut a, mut b) = if g.dice.chance(50) { (a, b) } else { (b, a) };
    if is_int(&a) {
        return int_binary(g, &a, &b);
    }
    let both_exact = a.facts.is_exact() && b.facts.is_exact();
    let which = g.dice.below(14);
    match which {
        0..2 => g.push(&a.tensor + &b.tensor, a.facts.plus(&b.facts)),
        2..4 => g.push(&a.tensor - &b.tensor, a.facts.plus(&b.facts.negated())),
        4..7 => g.push(&a.tensor * &b.tensor, a.facts.times(&b.facts)),
        7 | 8 => {
            if !both_exact {
                (a.tensor, a.facts) = off_kink(&a);
            }
            let either = a.facts.or(&b.facts);
            match which {
                7 => g.push(a.tensor.maximum(&b.tensor), either),
                _ => g.push(a.tensor.minimum(&b.tensor), either),
            }
        }
        9 => {
            let difference = a.facts.plus(&b.facts.negated());
            let square = difference.times(&difference);
            g.push(a.tensor.squared_difference(&b.tensor), square.within(0.0, square.high))
        }
        10 => {
            let (t, f) = positive(&b);
            let quotient = a.facts.size() / f.low;
            g.push(&a.tensor / &t, Facts::real(-quotient, quotient))
        }
        11 if b.facts.grain.is_some_and(|bits| bits <= 3) => {
            // An exact divisor is 0, or at least its grain.
            let quotient = a.facts.size() * 8.0;
            g.push(a.tensor.div_no_nan(&b.tensor), Facts::real(-quotient, quotient))
        }
        12 if both_exact => {
            // Multiples of a quarter, moved away from 0.
            b.facts = b.facts.within(0.25, b.facts.size() + 0.25);
            let divisor = b.tensor.abs() + 0.25;
            let quotient = (a.facts.size() / 0.25).ceil();
            match g.dice.chance(50) {
                true => g.push(a.tensor.floor_div(&divisor), Facts::whole(-quotient, quotient)),
                false => g.push(a.tensor.floor_mod(&divisor), a.facts.or(&b.facts).within(0.0, b.facts.high)),
            }
        }
        _ => {
            (a.tensor, a.facts) = positive(&a);
            (a.tensor, a.facts) = shrunk(&a, 3.0);
            (b.tensor, b.facts) = shrunk(&b, 2.0);
            let corner = |v: f64| v.powf(2.0).max(v.powf(-2.0));
            let high = corner(a.facts.low).max(corner(a.facts.high));
            g.push(a.tensor.pow(&b.tensor), Facts::real(0.0, high))
        }
    }
}

fn int_binary(g: &mut Generator, a: &PoolValue, b: &PoolValue) -> Result<bool> {
    let (s, t) = (&a.tensor, &b.tensor);
    let size = a.facts.size();
    match g.dice.below(7) {
        0 => g.push(s + t, a.facts.plus(&b.facts)),
        1 => g.push(s - t, a.facts.plus(&b.facts.negated())),
        2 => g.push(s * t, a.facts.times(&b.facts)),
        3 => g.push(s.maximum(t), a.facts.or(&b.facts)),
        4 => g.push(s.minimum(t), a.facts.or(&b.facts)),
        5 => g.push(s.floor_div(t.abs() + t.ones_like()), Facts::whole(-size, size)),
        _ => g.push(s.floor_mod(t.abs() + t.ones_like()), Facts::whole(0.0, b.facts.size())),
    }
}

/// Booleans: comparisons of exact values, and logic.
pub(super) fn compare(g: &mut Generator) -> Result<bool> {
    let bools = |i: &PoolValue| i.tensor.dtype() == DType::Bool;
    let fact = Facts::whole(0.0, 1.0);
    if g.dice.chance(30)
        && let Some(a) = g.find(bools)
        && let Some(b) = g.find(|i| bools(i) && meets(&a.dims, &i.dims))
    {
        return match g.dice.below(3) {
            0 => g.push(a.tensor.logical_and(&b.tensor), fact),
            1 => g.push(a.tensor.logical_or(&b.tensor), fact),
            _ => g.push(a.tensor.logical_not(), fact),
        };
    }
    let Some(a) = g.find(|i| i.facts.is_exact() && (i.is_float() || is_int(i))) else { return Ok(false) };
    let fits = |i: &PoolValue| i.facts.is_exact() && i.tensor.dtype() == a.tensor.dtype() && meets(&i.dims, &a.dims);
    let Some(b) = g.find(|i| fits(i) && broadcast_len(&i.dims, &a.dims) <= MOST_ELEMENTS) else { return Ok(false) };
    let (s, t) = (&a.tensor, &b.tensor);
    match g.dice.below(6) {
        0 => g.push(s.less(t), fact),
        1 => g.push(s.less_equal(t), fact),
        2 => g.push(s.greater(t), fact),
        3 => g.push(s.greater_equal(t), fact),
        4 => g.push(s.equal(t), fact),
        _ => g.push(s.not_equal(t), fact),
    }
}

pub(super) fn select(g: &mut Generator) -> Result<bool> {
    let Some(c) = g.find(|i| i.tensor.dtype() == DType::Bool) else { return compare(g) };
    let Some(a) = g.find(|i| (i.is_float() || is_int(i)) && meets(&i.dims, &c.dims)) else { return Ok(false) };
    let Some(b) = partner(g, &a)? else { return Ok(false) };
    let fits = meets(&c.dims, &b.dims)
        && meets(&a.dims, &b.dims)
        && broadcast_len(&a.dims, &b.dims).max(1) * c.len() <= MOST_ELEMENTS;
    // Three values can be broadcast if all pairs can, except where sizes of 1 hide the third.
    if !fits {
        return Ok(false);
    }
    g.push(c.tensor.select(&a.tensor, &b.tensor), a.facts.or(&b.facts))
}

/// Conversions to other dtypes. A conversion that rounds is applied only to exact values.
pub(super) fn convert(g: &mut Generator) -> Result<bool> {
    let Some(x) = g.find(|i| i.facts.is_exact()) else { return Ok(false) };
    let (f, target) = (x.facts, g.dice.pick(&[DType::F32, DType::F32, DType::I32, DType::I64, DType::Bool]));
    if target == x.tensor.dtype() {
        return Ok(false);
    }
    let facts = match target {
        DType::Bool => Facts::whole(0.0, 1.0),
        DType::F32 => f,
        _ => Facts::whole(f.low.trunc(), f.high.trunc()),
    };
    g.push(x.tensor.cast(target), facts)
}
