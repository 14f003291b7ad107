//! Convolutions, pooling and resizing: windows as attributes, the shapes that gradients restore as inputs.

use estimand_tensor::{Array, DType, Result, Shape};
use estimand_wire::NodeDef;

use super::{Writer, typed};
use crate::graph::Node;
use crate::op::{PoolWindow, Resize, Window};

/// (vertical, horizontal) as TensorFlow's list for NHWC.
fn nhwc(pair: (usize, usize)) -> Vec<i64> {
    vec![1, pair.0 as i64, pair.1 as i64, 1]
}

pub(super) fn convolution(def: NodeDef, window: &Window) -> NodeDef {
    def.attr("strides", nhwc(window.strides))
        .attr("dilations", nhwc(window.dilations))
        .attr("padding", window.padding.tf_name())
        .attr("data_format", "NHWC")
}

pub(super) fn pooling(def: NodeDef, window: &PoolWindow) -> NodeDef {
    def.attr("ksize", nhwc(window.size))
        .attr("strides", nhwc(window.strides))
        .attr("padding", window.padding.tf_name())
        .attr("data_format", "NHWC")
}

impl Writer<'_> {
    /// The shape of what is differentiated stands in its place among the inputs: first the image, then the filter.
    pub(super) fn convolution_gradient(
        &mut self,
        mut def: NodeDef,
        node: &Node,
        window: &Window,
        shape: &Shape,
        place: usize,
    ) -> Result<NodeDef> {
        let sizes = self.shape(&def.name, "sizes", shape.dims(), DType::I32)?;
        def.input.insert(place, sizes);
        Ok(convolution(typed(def, "T", self.dtype(node, 0)), window))
    }

    pub(super) fn avg_pool_gradient(
        &mut self,
        mut def: NodeDef,
        node: &Node,
        window: &PoolWindow,
        shape: &Shape,
    ) -> Result<NodeDef> {
        let sizes = self.shape(&def.name, "sizes", shape.dims(), DType::I32)?;
        def.input.insert(0, sizes);
        Ok(pooling(typed(def, "T", self.dtype(node, 0)), window))
    }

    pub(super) fn resize(&mut self, def: NodeDef, node: &Node, resize: &Resize) -> Result<NodeDef> {
        let size = self.ints(&def.name, "size", [resize.size.0 as i64, resize.size.1 as i64])?;
        let def = typed(def.input(size), "T", self.dtype(node, 0));
        Ok(def.attr("align_corners", false).attr("half_pixel_centers", resize.half_pixel_centers))
    }

    pub(super) fn resize_gradient(
        &mut self,
        def: NodeDef,
        node: &Node,
        resize: &Resize,
        shape: &Shape,
    ) -> Result<NodeDef> {
        let restored = if resize.bilinear {
            // TF: the gradient wants the image itself, but reads only its shape.
            let sizes = self.shape(&def.name, "sizes", shape.dims(), DType::I32)?;
            let zero = self.constant(&def.name, "zero", &Array::scalar(0f32))?;
            let image = self.part(&def.name, "image", "Fill").input(sizes).input(zero);
            self.add(typed(typed(image, "T", DType::F32), "index_type", DType::I32))
        } else {
            self.shape(&def.name, "size", &shape.dims()[1..3], DType::I32)?
        };
        let def = typed(def.input(restored), "T", self.dtype(node, 0));
        Ok(def.attr("align_corners", false).attr("half_pixel_centers", resize.half_pixel_centers))
    }
}
