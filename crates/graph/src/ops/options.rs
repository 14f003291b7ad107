//! Options of ops: values with names, where a bare flag would say nothing at the call.

pub use estimand_tensor::cpu::layout::Mirror;

/// The axes of a reduction, counted from the end if negative. A number, an array or a slice becomes
/// one.
///
/// ```
/// # use estimand_graph::{Axes, Graph};
/// # use estimand_tensor::DType;
/// # let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [2, 3]);
/// assert_eq!(x.sum_axes(0).rank(), 1);
/// assert_eq!(x.sum_axes(Axes::of([0, -1]).keep_dims()).rank(), 2);
/// # g.check().unwrap();
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Axes {
    pub(crate) axes: Vec<i64>,
    pub(crate) keep_dims: bool,
}

impl Axes {
    /// Some axes. By default the result does not have them.
    pub fn of(axes: impl Into<Axes>) -> Axes {
        axes.into()
    }

    /// The result keeps the axes, with size 1.
    pub fn keep_dims(mut self) -> Axes {
        self.keep_dims = true;
        self
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Axes {
        Axes::from(vec![axis])
    }
}

impl From<Vec<i64>> for Axes {
    fn from(axes: Vec<i64>) -> Axes {
        Axes { axes, keep_dims: false }
    }
}

impl From<&[i64]> for Axes {
    fn from(axes: &[i64]) -> Axes {
        Axes::from(axes.to_vec())
    }
}

impl From<&Vec<i64>> for Axes {
    fn from(axes: &Vec<i64>) -> Axes {
        Axes::from(axes.clone())
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Axes {
        Axes::from(axes.to_vec())
    }
}

/// The axis of a running sum or product, counted from the end if negative. A number becomes one.
///
/// ```
/// # use estimand_graph::{Graph, Running};
/// # let g = Graph::new();
/// let x = g.constant([1.0f32, 2.0, 3.0]);
/// let after = x.cumsum(Running::along(0).exclusive().reverse()); // 5, 3, 0
/// # g.check().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Running {
    pub(crate) axis: i64,
    pub(crate) exclusive: bool,
    pub(crate) reverse: bool,
}

impl Running {
    /// From the first element on, each element included in its own result.
    pub fn along(axis: i64) -> Running {
        Running { axis, exclusive: false, reverse: false }
    }

    /// Leaves each element out of its own result: a sum begins with 0, a product with 1.
    pub fn exclusive(mut self) -> Running {
        self.exclusive = true;
        self
    }

    /// Starts from the last element.
    pub fn reverse(mut self) -> Running {
        self.reverse = true;
        self
    }
}

impl From<i64> for Running {
    fn from(axis: i64) -> Running {
        Running::along(axis)
    }
}

/// The characters of a string: TensorFlow's `encoding` and `unit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Each byte is a character; only ASCII letters have a case.
    Bytes,
    /// The characters of UTF-8, of all scripts.
    Utf8,
}

impl Encoding {
    pub(crate) fn is_utf8(self) -> bool {
        self == Encoding::Utf8
    }
}

/// The factor of a matrix product that is transposed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transposed {
    /// The first.
    Left,
    /// The second.
    Right,
    /// Both.
    Both,
}
