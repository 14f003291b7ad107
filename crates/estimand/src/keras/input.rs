//! `Input`: the dtype and shape of what a model is given.

use estimand_tensor::{DType, Dim, Shape};

/// An input of a model, without its batch axis: Keras' `Input`.
///
/// ```
/// use estimand::graph::Graph;
/// use estimand::keras::Input;
/// use estimand::prelude::*;
///
/// let image = Input::new([28, 28, 1]).name("image").tensor();
/// let words = Input::new([Graph::ANY]).dtype(DType::I64).tensor();
/// assert_eq!(image.shape().to_string(), "[batch, 28, 28, 1]");
/// # assert_eq!(words.dtype(), DType::I64);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Input {
    pub(super) name: Option<String>,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
}

impl Input {
    /// Numbers of this shape in each row. Use [`Graph::ANY`] for a size that differs from batch to
    /// batch.
    ///
    /// [`Graph::ANY`]: estimand_graph::Graph::ANY
    pub fn new(shape: impl Into<Shape>) -> Input {
        let axes = shape.into();
        let shape = std::iter::once(Dim::BATCH).chain(axes.dims().iter().copied()).collect();
        Input { name: None, dtype: DType::F32, shape }
    }

    /// The name of the input. By default `input_1`, `input_2`, ...
    pub fn name(mut self, name: &str) -> Input {
        self.name = Some(name.to_string());
        self
    }

    /// The dtype. By default f32. Numbers of other dtypes are cast to it.
    pub fn dtype(mut self, dtype: DType) -> Input {
        self.dtype = dtype;
        self
    }
}

impl<S: Into<Shape>> From<S> for Input {
    fn from(shape: S) -> Input {
        Input::new(shape)
    }
}
