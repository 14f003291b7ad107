//! Resizes images, and the gradient.

use super::rules::*;

/// Resizes NHWC images to another height and width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resize {
    /// Interpolates between the four nearest pixels; otherwise takes the nearest one.
    pub bilinear: bool,
    /// Height and width of the result.
    pub size: (usize, usize),
    /// TensorFlow 2's rule for the positions of pixel centres.
    pub half_pixel_centers: bool,
}

impl OpRules for Resize {
    fn name(&self) -> &'static str {
        if self.bilinear { "ResizeBilinear" } else { "ResizeNearestNeighbor" }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::F32, x[0], "image")?;
        expect_rank(4, x[0], "image")?;
        if self.size.0 == 0 || self.size.1 == 0 {
            return Err(Error::config(format!("the new size is {:?}; expected positive sizes", self.size)));
        }
        let d = x[0].shape.dims();
        one(x[0].dtype, Shape::from([d[0], self.size.0.into(), self.size.1.into(), d[3]]))
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        let op = ResizeGrad { resize: *self, shape: back.x[0].shape().clone() };
        dense([back.node(op, &[&back.dy(0)])])
    }

    /// Three interpolations, each with a difference, a product and a sum.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(if self.bilinear { product(&[9, count(operands.y[0])]) } else { 0 })
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let sizes = [self.size.0 as i64, self.size.1 as i64];
        let size = writer.ints(&def.name, "size", &mut sizes.into_iter())?;
        Ok(self.spelled(typed(def.input(size), "T", writer.dtype(node, 0))))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("ResizeBilinear", read), ("ResizeNearestNeighbor", read)]
    }
}

impl Resize {
    fn spelled(&self, def: NodeDef) -> NodeDef {
        def.attr("align_corners", false).attr("half_pixel_centers", self.half_pixel_centers)
    }
}

/// dy -> dx of the given shape.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ResizeGrad {
    /// The op that is differentiated.
    pub resize: Resize,
    /// The shape of the images.
    pub shape: Shape,
}

impl OpRules for ResizeGrad {
    fn name(&self) -> &'static str {
        if self.resize.bilinear { "ResizeBilinearGrad" } else { "ResizeNearestNeighborGrad" }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_rank(4, x[0], "gradient")?;
        one(x[0].dtype, self.shape.clone())
    }

    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        dense([back.node(self.resize, &[&back.dy(0)])])
    }

    /// Four products and sums, or one sum.
    fn cost(&self, operands: &Operands<'_>) -> Cost {
        let per_element = if self.resize.bilinear { 8 } else { 1 };
        operands.all(product(&[per_element, count(operands.x[0])]))
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let restored = if self.resize.bilinear {
            // TF: the gradient takes the image as input, but reads only its shape.
            let sizes = writer.shape(&def.name, "sizes", self.shape.dims(), DType::I32)?;
            let zero = writer.constant(&def.name, "zero", &Array::scalar(0f32))?;
            let image = writer.part(&def.name, "image", "Fill").input(sizes).input(zero);
            writer.add(typed(typed(image, "T", DType::F32), "index_type", DType::I32))
        } else {
            writer.shape(&def.name, "size", &self.shape.dims()[1..3], DType::I32)?
        };
        Ok(self.resize.spelled(typed(def.input(restored), "T", writer.dtype(node, 0))))
    }

    fn readers() -> Vec<(&'static str, ReadRule)> {
        vec![("ResizeBilinearGrad", read_gradient), ("ResizeNearestNeighborGrad", read_gradient)]
    }
}

fn read_resize(reading: &dyn Reading, bilinear: bool, size: (usize, usize)) -> Result<Resize> {
    if reading.flag("align_corners", false)? {
        return Err(refuse("`align_corners`"));
    }
    Ok(Resize { bilinear, size, half_pixel_centers: reading.flag("half_pixel_centers", false)? })
}

fn read(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let (image, size) = (reading.tensor(0)?, reading.integers(1)?);
    let size = match size[..] {
        [h, w] if h > 0 && w > 0 => (h as usize, w as usize),
        _ => return Err(Error::config(format!("the new size is {size:?}; expected a positive height and width"))),
    };
    reading.add(read_resize(reading, reading.op() == "ResizeBilinear", size)?, &[&image])
}

fn read_gradient(reading: &mut dyn Reading) -> Result<Vec<Tensor>> {
    let dy = reading.tensor(0)?;
    let bilinear = reading.op() == "ResizeBilinearGrad";
    let &[batch, h, w, channels] = dy.shape().dims() else {
        return Err(Error::shape(format!("the gradient is {}; expected an image of four axes", dy.spec())));
    };
    let (Some(h), Some(w)) = (h.known(), w.known()) else {
        return Err(refuse("the gradient of a resize to a size known only at run time"));
    };
    let shape = match bilinear {
        true => reading.tensor(1)?.shape().clone(),
        false => match reading.sizes(1, false)?[..] {
            [height, width] => Shape::from([batch, height, width, channels]),
            _ => return Err(Error::config("input 1 is not a size; expected height and width")),
        },
    };
    reading.add(ResizeGrad { resize: read_resize(reading, bilinear, (h, w))?, shape }, &[&dy])
}
