//! Attributes shared by several ops.

/// An ordered list of axes.
pub type Axes = smallvec::SmallVec<[u8; 8]>;

/// A set of axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AxisSet(pub u32);

impl AxisSet {
    /// The axes 0 to `rank`.
    pub fn all(rank: usize) -> AxisSet {
        AxisSet((1 << rank) - 1)
    }

    /// Whether an axis is in the set.
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }

    /// The axes in rising order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&a| self.contains(a))
    }
}

impl FromIterator<usize> for AxisSet {
    fn from_iter<I: IntoIterator<Item = usize>>(axes: I) -> AxisSet {
        AxisSet(axes.into_iter().fold(0, |set, a| set | 1 << a))
    }
}

/// How a window treats the border of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Padding {
    /// The result has `ceil(size / stride)` positions; zeros are added around the image.
    Same,
    /// Only positions where the window lies inside the image; nothing is added.
    Valid,
}

impl Padding {
    /// TensorFlow's spelling.
    pub fn tf_name(self) -> &'static str {
        match self {
            Padding::Same => "SAME",
            Padding::Valid => "VALID",
        }
    }

    /// Output size and padding before and after, for one axis. `None` if the window does not fit.
    pub fn place(self, size: usize, window: usize, stride: usize, dilation: usize) -> Option<(usize, usize, usize)> {
        let span = (window.checked_sub(1)?).checked_mul(dilation)?.checked_add(1)?;
        match self {
            // TF: an image smaller than the window has no position, not a negative number of
            // positions.
            Padding::Valid => Some((size.saturating_add(stride).saturating_sub(span) / stride, 0, 0)),
            // TF: an empty image has no position, however wide its border is.
            Padding::Same if size == 0 => Some((0, 0, 0)),
            Padding::Same => {
                let out = size.div_ceil(stride);
                let total = (out.saturating_sub(1) * stride).saturating_add(span).saturating_sub(size);
                Some((out, total / 2, total - total / 2))
            }
        }
    }
}

/// How a filter moves over an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// Vertical and horizontal step.
    pub strides: (usize, usize),
    /// Vertical and horizontal distance between filter taps.
    pub dilations: (usize, usize),
    /// The treatment of the border.
    pub padding: Padding,
}

/// How a pooling window moves over an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PoolWindow {
    /// Height and width.
    pub size: (usize, usize),
    /// Vertical and horizontal step.
    pub strides: (usize, usize),
    /// The treatment of the border.
    pub padding: Padding,
}
