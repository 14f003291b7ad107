//! Shapes: `Dims` of values, where all sizes are known, and `Shape` of symbolic tensors, where a
//! dimension is known or a symbol. The rank is always known.

use std::fmt;

use smallvec::SmallVec;

/// The sizes of a value's axes.
pub type Dims = SmallVec<[usize; 4]>;

/// The largest number of axes.
pub const MAX_RANK: usize = 8;

/// A size that is known only at run time. Symbol 0 is the batch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(pub u32);

impl Symbol {
    /// The number of rows in a batch.
    pub const BATCH: Symbol = Symbol(0);
}

/// One axis of a [`Shape`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Dim {
    /// A size known when the graph is built.
    Known(usize),
    /// A size known at run time.
    Sym(Symbol),
}

impl Dim {
    /// The number of rows in a batch.
    pub const BATCH: Dim = Dim::Sym(Symbol::BATCH);

    /// The size, if it is known.
    pub fn known(self) -> Option<usize> {
        match self {
            Dim::Known(n) => Some(n),
            Dim::Sym(_) => None,
        }
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Known(n)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Sym(Symbol(0)) => f.write_str("batch"),
            Dim::Sym(Symbol(s)) => write!(f, "s{s}"),
        }
    }
}

/// The shape of a symbolic tensor.
///
/// ```
/// # use estimand_tensor::{Dim, Shape};
/// let images = Shape::from([Dim::BATCH, 28.into(), 28.into(), 1.into()]);
/// assert_eq!(images.to_string(), "[batch, 28, 28, 1]");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Shape(pub SmallVec<[Dim; 4]>);

impl Shape {
    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The axes.
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }

    /// All sizes, if all are known.
    pub fn known(&self) -> Option<Dims> {
        self.0.iter().map(|d| d.known()).collect()
    }
}

impl<D: Into<Dim>, const N: usize> From<[D; N]> for Shape {
    fn from(dims: [D; N]) -> Shape {
        Shape(dims.into_iter().map(Into::into).collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(dims.iter().map(|&d| Dim::Known(d)).collect())
    }
}

impl FromIterator<Dim> for Shape {
    fn from_iter<I: IntoIterator<Item = Dim>>(dims: I) -> Shape {
        Shape(dims.into_iter().collect())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}

/// The number of elements, or `None` if it does not fit the address space.
#[inline]
pub fn checked_len(dims: &[usize]) -> Option<usize> {
    let len = match dims {
        // Most arrays have one axis, and one row has many arrays.
        &[n] => Some(n),
        // A zero anywhere makes the array empty, whatever the other sizes are.
        _ if dims.contains(&0) => Some(0),
        _ => dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)),
    };
    len.filter(|&n| n <= isize::MAX as usize / 8)
}
