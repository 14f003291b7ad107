//! Convolutions of images and their gradients.

use super::DepthwiseConv2d;
use super::attribute::Window;
use super::rules::*;
use super::window::{conv_shape, read_window, spell_convolution, spell_convolution_gradient, terms};

/// (x NHWC, filter HWIO).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conv2d {
    /// How the filter moves.
    pub window: Window,
}

impl OpRules for Conv2d {
    fn name(&self) -> &'static str {
        "Conv2D"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        one(x[0].dtype, conv_shape(&self.window, &x[0].shape, &x[1].shape, false, inference.symbols)?)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][3] == x[1][2]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, window) = (&back.x, self.window);
        back.pair(
            || back.node(Conv2dBackpropInput { window, shape: x[0].shape().clone() }, &[&x[1], &back.dy(0)]),
            || back.node(Conv2dBackpropFilter { window, shape: x[1].shape().clone() }, &[&x[0], &back.dy(0)]),
        )
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(count(operands.y[0]), operands.x[1]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(spell_convolution(typed(def, "T", writer.dtype(node, 0)), &self.window))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Conv2D", read)]
    }
}

/// (filter, dy) -> dx of the given shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conv2dBackpropInput {
    /// How the filter moved.
    pub window: Window,
    /// The shape of the images.
    pub shape: Shape,
}

impl OpRules for Conv2dBackpropInput {
    fn name(&self) -> &'static str {
        "Conv2DBackpropInput"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        let convolved = conv_shape(&self.window, &self.shape, &x[0].shape, false, inference.symbols)?;
        expect_equal("gradient", &x[1].shape, &convolved)?;
        one(x[1].dtype, self.shape.clone())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        x[1][0] == y[0]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, window) = (&back.x, self.window);
        back.pair(
            || back.node(Conv2dBackpropFilter { window, shape: x[0].shape().clone() }, &[&back.dy(0), &x[1]]),
            || back.node(Conv2d { window }, &[&back.dy(0), &x[0]]),
        )
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(count(operands.x[1]), operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        spell_convolution_gradient(def, node, &self.window, &self.shape, 0, writer)
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Conv2DBackpropInput", read_backprop_input)]
    }
}

/// (x, dy) -> gradient of a filter of the given shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conv2dBackpropFilter {
    /// How the filter moved.
    pub window: Window,
    /// The shape of the filter.
    pub shape: Shape,
}

impl OpRules for Conv2dBackpropFilter {
    fn name(&self) -> &'static str {
        "Conv2DBackpropFilter"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        let convolved = conv_shape(&self.window, &x[0].shape, &self.shape, false, inference.symbols)?;
        expect_equal("gradient", &x[1].shape, &convolved)?;
        one(x[0].dtype, self.shape.clone())
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][0] == x[1][0]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, window) = (&back.x, self.window);
        back.pair(
            || back.node(Conv2dBackpropInput { window, shape: x[0].shape().clone() }, &[&back.dy(0), &x[1]]),
            || back.node(Conv2d { window }, &[&x[0], &back.dy(0)]),
        )
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(count(operands.x[1]), operands.y[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        spell_convolution_gradient(def, node, &self.window, &self.shape, 1, writer)
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("Conv2DBackpropFilter", read_backprop_filter)]
    }
}

/// TF: filters that see a part of the channels are groups, each of which sees the next part.
fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (x, filter, window) = (reading.tensor(0)?, reading.tensor(1)?, read_window(reading)?);
    let n_groups = n_groups(&x, &filter);
    if n_groups == 1 {
        return reading.add(Conv2d { window }, &[&x, &filter]);
    }
    let channels = |t: &Tensor| t.shape().dims()[3].known().unwrap_or(0);
    if n_groups == channels(&x) {
        let mut shape = filter.shape().clone();
        (shape.0[2], shape.0[3]) = (n_groups.into(), (channels(&filter) / n_groups).into());
        return reading.add(DepthwiseConv2d { window }, &[&x, &filter.reshape_as(shape)]);
    }
    let split = |t: &Tensor| t.split(&vec![channels(t) / n_groups; n_groups], 3);
    let parts = split(&x).into_iter().zip(split(&filter));
    let parts = parts.map(|(x, filter)| Ok(reading.add(Conv2d { window }, &[&x, &filter])?.remove(0)));
    let parts: Vec<Tensor> = parts.collect::<Result<_>>()?;
    Ok(vec![Tensor::concat(&parts.iter().collect::<Vec<_>>(), 3)])
}

/// 1 also for shapes that do not fit, which `Conv2d` refuses.
fn n_groups(x: &Tensor, filter: &Tensor) -> usize {
    let sizes = |t: &Tensor, axis: usize| t.shape().dims().get(axis).and_then(|dim| dim.known());
    match (sizes(x, 3), sizes(filter, 2), sizes(filter, 3)) {
        (Some(channels), Some(seen), Some(filters)) if seen > 0 && channels.is_multiple_of(seen) => {
            let n_groups = channels / seen;
            if n_groups > 0 && filters.is_multiple_of(n_groups) { n_groups } else { 1 }
        }
        _ => 1,
    }
}

fn read_backprop_input(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (shape, filter, dy) = (reading.shape(0)?, reading.tensor(1)?, reading.tensor(2)?);
    reading.add(Conv2dBackpropInput { window: read_window(reading)?, shape }, &[&filter, &dy])
}

fn read_backprop_filter(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (x, shape, dy) = (reading.tensor(0)?, reading.shape(1)?, reading.tensor(2)?);
    reading.add(Conv2dBackpropFilter { window: read_window(reading)?, shape }, &[&x, &dy])
}
