//! `Dot`: dot products of two inputs, row by row.

use std::ops::RangeInclusive;

use estimand_graph::{Axes, Graph, Tensor};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::super::{Config, Layer, LayerCall, MODULE, config_setters, resolve_axis};
use super::described;
use crate::config::{self, Described, Elements, Fields, Json};

/// The dot products of two inputs along one axis of each, for each row. Along the last axes,
/// `[batch, a, n]` and `[batch, b, n]` give `[batch, a, b]`; two vectors `[batch, n]` give
/// `[batch, 1]`.
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::Graph;
/// use estimand_nn::{Dot, Layer};
/// let g = Graph::new();
/// let a = g.constant([3.0f32, 4.0]).expand_dims(0);
/// let b = g.constant([1.0f32, 0.0]).expand_dims(0);
/// assert_eq!(Dot::new(-1).apply(&[&a, &b]).eval()?.as_slice::<f32>()?, [3.0]);
/// // The cosine of the angle between them.
/// assert!((Dot::new(-1).normalize(true).apply(&[&a, &b]).eval()?.as_slice::<f32>()?[0] - 0.6).abs() < 1e-6);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Dot {
    axes: (i64, i64),
    normalize: bool,
    config: Config,
}

impl Dot {
    /// Uses the same axis of both inputs, counted from the end if negative. Axis 0 is the batch and
    /// is refused.
    pub fn new(axis: i64) -> Dot {
        Dot::axes(axis, axis)
    }

    /// Uses one axis of the first input and one of the second.
    pub fn axes(first: i64, second: i64) -> Dot {
        Dot { axes: (first, second), normalize: false, config: Config::default() }
    }

    /// Whether the inputs are scaled to length 1 along their axes. By default they are not.
    pub fn normalize(mut self, normalize: bool) -> Dot {
        self.normalize = normalize;
        self
    }
}

config_setters!(Dot);

impl Described for Dot {
    const CLASS: &'static str = "Dot";

    fn template() -> Dot {
        Dot::new(-1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Dot {
        let axes = if self.axes.0 == self.axes.1 { vec![self.axes.0] } else { vec![self.axes.0, self.axes.1] };
        let axes = match fields.required("axes", &Elements(axes)).0[..] {
            [axis] => (axis, axis),
            [first, second] => (first, second),
            ref other => {
                fields.refuse_here(&format!("expected one or two `axes`, found {}", other.len()));
                self.axes
            }
        };
        let normalize = fields.value("normalize", &self.normalize);
        Dot { axes, normalize, config: self.config.fields(fields) }
    }
}

impl Layer for Dot {
    fn kind(&self) -> &'static str {
        "dot"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn n_inputs(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let inputs = call.inputs();
        let (a, b) = (&inputs[0], &inputs[1]);
        let inner = |x: &Tensor, axis: i64| resolve_axis(x, axis).filter(|&axis| axis > 0);
        let (Some(i), Some(j)) = (inner(a, self.axes.0), inner(b, self.axes.1)) else {
            let text = format!(
                "dot cannot use the axes {:?} of {}; expected axes after the batch",
                self.axes,
                described(inputs)
            );
            return a.graph().error(Error::shape(text));
        };
        if let (Dim::Known(m), Dim::Known(n)) = (a.shape().dims()[i], b.shape().dims()[j])
            && m != n
        {
            let text = format!(
                "dot along the axes {:?} of {} meets the sizes {m} and {n}; expected the same size",
                self.axes,
                described(inputs)
            );
            return a.graph().error(Error::shape(text));
        }
        match self.normalize {
            true => product(&unit(a, i), &unit(b, j), i, j),
            false => product(a, b, i, j),
        }
    }
}

/// Scales vectors to length 1 along an axis. TF: a vector of zeros stays unchanged.
#[track_caller]
fn unit(x: &Tensor, axis: usize) -> Tensor {
    x * x.square().sum_axes(Axes::of([axis as i64]).keep_dims()).maximum(1e-12).rsqrt()
}

/// A matrix product for each row. The other axes of each input are flattened into one.
#[track_caller]
fn product(a: &Tensor, b: &Tensor, i: usize, j: usize) -> Tensor {
    if a.rank() == 2 && b.rank() == 2 {
        return (a * b).sum_axes(Axes::of([1]).keep_dims());
    }
    let others = |x: &Tensor, axis: usize| (1..x.rank()).filter(move |&k| k != axis).collect::<Vec<usize>>();
    let (rows, columns) = (others(a, i), others(b, j));
    let matrix = |x: &Tensor, order: &[usize], axis: usize, others_first: bool| {
        let order: Vec<usize> = match others_first {
            true => [&[0], order, &[axis]].concat(),
            false => [&[0, axis], order].concat(),
        };
        let (batch, inner) = (x.shape().dims()[0], x.shape().dims()[axis]);
        let shape = if others_first { [batch, Graph::ANY, inner] } else { [batch, inner, Graph::ANY] };
        x.transpose(&order).reshape_as(shape)
    };
    let y = matrix(a, &rows, i, true).matmul(&matrix(b, &columns, j, false));
    let sizes = |x: &Tensor, axes: &[usize]| axes.iter().map(|&k| x.shape().dims()[k]).collect::<Vec<Dim>>();
    let dims = [vec![a.shape().dims()[0]], sizes(a, &rows), sizes(b, &columns)].concat();
    y.reshape_as(dims.into_iter().collect::<Shape>())
}
