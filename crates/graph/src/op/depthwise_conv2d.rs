//! Convolutions with separate filters for each channel, and their gradients.

use super::attribute::Window;
use super::rules::*;
use super::window::{conv_shape, read_window, spell_convolution, spell_convolution_gradient, terms_depthwise as terms};

/// (x NHWC, filter [h, w, channels, multiplier]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DepthwiseConv2d {
    /// How the filter moves.
    pub window: Window,
}

impl OpRules for DepthwiseConv2d {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNative"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        one(x[0].dtype, conv_shape(&self.window, &x[0].shape, &x[1].shape, true, inference.symbols)?)
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][3] == x[1][2]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, window) = (&back.x, self.window);
        back.pair(
            || back.node(DepthwiseConv2dBackpropInput { window, shape: x[0].shape().clone() }, &[&x[1], &back.dy(0)]),
            || back.node(DepthwiseConv2dBackpropFilter { window, shape: x[1].shape().clone() }, &[&x[0], &back.dy(0)]),
        )
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(count(operands.y[0]), operands.x[1]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(spell_convolution(typed(def, "T", writer.dtype(node, 0)), &self.window))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("DepthwiseConv2dNative", read)]
    }
}

/// (filter, dy) -> dx of the given shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DepthwiseConv2dBackpropInput {
    /// How the filter moved.
    pub window: Window,
    /// The shape of the images.
    pub shape: Shape,
}

impl OpRules for DepthwiseConv2dBackpropInput {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNativeBackpropInput"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        let convolved = conv_shape(&self.window, &self.shape, &x[0].shape, true, inference.symbols)?;
        expect_equal("gradient", &x[1].shape, &convolved)?;
        one(x[1].dtype, self.shape.clone())
    }

    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool {
        x[1][0] == y[0]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, window) = (&back.x, self.window);
        back.pair(
            || back.node(DepthwiseConv2dBackpropFilter { window, shape: x[0].shape().clone() }, &[&back.dy(0), &x[1]]),
            || back.node(DepthwiseConv2d { window }, &[&back.dy(0), &x[0]]),
        )
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(count(operands.x[1]), operands.x[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        spell_convolution_gradient(def, node, &self.window, &self.shape, 0, writer)
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("DepthwiseConv2dNativeBackpropInput", read_backprop_input)]
    }
}

/// (x, dy) -> gradient of a filter of the given shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DepthwiseConv2dBackpropFilter {
    /// How the filter moved.
    pub window: Window,
    /// The shape of the filter.
    pub shape: Shape,
}

impl OpRules for DepthwiseConv2dBackpropFilter {
    fn name(&self) -> &'static str {
        "DepthwiseConv2dNativeBackpropFilter"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        floats(x)?;
        let convolved = conv_shape(&self.window, &x[0].shape, &self.shape, true, inference.symbols)?;
        expect_equal("gradient", &x[1].shape, &convolved)?;
        one(x[0].dtype, self.shape.clone())
    }

    fn fits(&self, x: &[&[usize]], _y: &[usize]) -> bool {
        x[0][0] == x[1][0]
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let (x, window) = (&back.x, self.window);
        back.pair(
            || back.node(DepthwiseConv2dBackpropInput { window, shape: x[0].shape().clone() }, &[&back.dy(0), &x[1]]),
            || back.node(DepthwiseConv2d { window }, &[&x[0], &back.dy(0)]),
        )
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(terms(count(operands.x[1]), operands.y[0]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        spell_convolution_gradient(def, node, &self.window, &self.shape, 1, writer)
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("DepthwiseConv2dNativeBackpropFilter", read_backprop_filter)]
    }
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (x, filter, window) = (reading.tensor(0)?, reading.tensor(1)?, read_window(reading)?);
    reading.add(DepthwiseConv2d { window }, &[&x, &filter])
}

fn read_backprop_input(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (shape, filter, dy) = (reading.shape(0)?, reading.tensor(1)?, reading.tensor(2)?);
    reading.add(DepthwiseConv2dBackpropInput { window: read_window(reading)?, shape }, &[&filter, &dy])
}

fn read_backprop_filter(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (x, shape, dy) = (reading.tensor(0)?, reading.shape(1)?, reading.tensor(2)?);
    reading.add(DepthwiseConv2dBackpropFilter { window: read_window(reading)?, shape }, &[&x, &dy])
}
