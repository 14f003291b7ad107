//! Recurrent ops: what fits to a kernel of `[units, gates * units]`.

use estimand_tensor::{DType, Dim, Error, Result, Shape, TensorSpec};

use super::Specs;
use super::expect::{accepts, expect_dtype, expect_equal, expect_rank, same_dtype};
use crate::op::Recurrent;
use crate::slots::{KERNEL, Slots};

/// The sizes that everything else follows from.
struct Sizes {
    batch: Dim,
    time: Dim,
    units: usize,
}

/// Checks the inputs that a recurrent op and its gradient have in common; the first is only looked at for rows and steps.
fn common(step: &Recurrent, x: &[&TensorSpec]) -> Result<Sizes> {
    let slots = Slots::of(step);
    accepts(x[0].dtype.is_float(), x[0].dtype)?;
    expect_rank(3, x[0], "sequence")?;
    expect_rank(2, x[KERNEL], "recurrent kernel")?;
    let (batch, time) = (x[0].shape.dims()[0], x[0].shape.dims()[1]);
    let (units, width) = (x[KERNEL].shape.dims()[0].known(), x[KERNEL].shape.dims()[1].known());
    let Some(units) = units.filter(|&n| n > 0 && width == n.checked_mul(step.n_gates())) else {
        let expected = format!("expected [units, {} * units]", step.n_gates());
        return Err(Error::shape(format!("the recurrent kernel is {}, {expected}", x[KERNEL])));
    };
    let floats = |what: &str, at: usize, shape: Shape| {
        same_dtype(x[0], x[at])?;
        expect_equal(what, &x[at].shape, &shape)
    };
    same_dtype(x[0], x[KERNEL])?;
    if let Some(bias) = slots.bias {
        floats("recurrent bias", bias, Shape::from([step.n_gates() * units]))?;
    }
    for state in slots.states {
        floats("first state", state, Shape::from([batch, units.into()]))?;
    }
    if let Some(mask) = slots.mask {
        expect_dtype(DType::Bool, x[mask], "mask")?;
        expect_equal("mask", &x[mask].shape, &Shape::from([batch, time]))?;
    }
    if let Some(keep) = slots.keep {
        floats("dropout of the state", keep, Shape::from([batch, units.into()]))?;
    }
    Ok(Sizes { batch, time, units })
}

fn count(x: &[&TensorSpec], expected: usize) -> Result<()> {
    match x.len() == expected {
        true => Ok(()),
        false => Err(Error::config(format!("{} inputs; this cell has {expected}", x.len()))),
    }
}

/// The results of a recurrent op: the states of all steps, the last states, and what is kept.
pub(crate) fn forward(step: &Recurrent, x: &[&TensorSpec]) -> Result<Specs> {
    count(x, Slots::of(step).n)?;
    let Sizes { batch, time, units } = common(step, x)?;
    expect_equal("sequence", &x[0].shape, &Shape::from([batch, time, (step.n_gates() * units).into()]))?;
    let sequence = |n: usize| Shape::from([batch, time, (n * units).into()]);
    let states = (0..step.n_states()).map(|_| Shape::from([batch, units.into()]));
    let shapes = [sequence(1)].into_iter().chain(states).chain([sequence(step.n_kept())]);
    Ok(shapes.map(|shape| TensorSpec { dtype: x[0].dtype, shape }).collect())
}

pub(super) fn gradient(step: &Recurrent, x: &[&TensorSpec]) -> Result<Specs> {
    let slots = Slots::of(step);
    let upstream = slots.upstream(step);
    count(x, upstream.end)?;
    let Sizes { batch, time, units } = common(step, x)?;
    for at in [slots.sequence(), upstream.start] {
        same_dtype(x[0], x[at])?;
        expect_equal("sequence of states", &x[at].shape, &Shape::from([batch, time, units.into()]))?;
    }
    for at in upstream.skip(1) {
        same_dtype(x[0], x[at])?;
        expect_equal("gradient of a state", &x[at].shape, &Shape::from([batch, units.into()]))?;
    }
    let shape = |at: usize| match at {
        0 => Shape::from([batch, time, (step.n_gates() * units).into()]),
        _ => x[at].shape.clone(),
    };
    Ok(slots.differentiated().map(|at| TensorSpec { dtype: x[0].dtype, shape: shape(at) }).collect())
}
