//! Sizes of windows, given as one number or one for each axis.

/// Height and width.
///
/// ```
/// use estimand_nn::Size2d;
/// assert_eq!(Size2d::from(3), Size2d::from((3, 3)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size2d {
    /// The size along the image's second axis.
    pub height: usize,
    /// The size along the image's third axis.
    pub width: usize,
}

impl Size2d {
    /// The size in the form that the engine takes.
    pub(crate) fn pair(self) -> (usize, usize) {
        (self.height, self.width)
    }
}

impl From<usize> for Size2d {
    fn from(side: usize) -> Size2d {
        Size2d { height: side, width: side }
    }
}

impl From<(usize, usize)> for Size2d {
    fn from((height, width): (usize, usize)) -> Size2d {
        Size2d { height, width }
    }
}

/// The size of a window over a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size1d(
    /// The number of steps.
    pub usize,
);

impl From<usize> for Size1d {
    fn from(size: usize) -> Size1d {
        Size1d(size)
    }
}

/// The size of a volume's window: one number for all sides, or `(depth, height, width)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size3d {
    /// The size along the volume's second axis.
    pub depth: usize,
    /// The size along its third axis.
    pub height: usize,
    /// The size along its fourth axis.
    pub width: usize,
}

impl Size3d {
    /// Height and width, in the form that the engine takes.
    pub(crate) fn plane(self) -> (usize, usize) {
        (self.height, self.width)
    }
}

impl From<usize> for Size3d {
    fn from(side: usize) -> Size3d {
        Size3d { depth: side, height: side, width: side }
    }
}

impl From<(usize, usize, usize)> for Size3d {
    fn from((depth, height, width): (usize, usize, usize)) -> Size3d {
        Size3d { depth, height, width }
    }
}
