//! `Border`: the sizes before and after each inner axis, given as one number, one number for each
//! axis, or two.

/// Sizes before and after each of `N` inner axes.
///
/// ```
/// use estimand_nn::Border;
/// assert_eq!(Border::<1>::from(2), Border([(2, 2)]));
/// assert_eq!(Border::<2>::from((1, 2)), Border([(1, 1), (2, 2)]));
/// assert_eq!(Border::<2>::from(((1, 0), (2, 0))), Border([(1, 0), (2, 0)]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Border<const N: usize>(pub [(usize, usize); N]);

impl<const N: usize> Border<N> {
    /// The border in the form that the engine takes: batch and channels get a border of 0.
    pub(crate) fn with_outer_axes(self) -> Vec<(usize, usize)> {
        [&[(0, 0)], &self.0[..], &[(0, 0)]].concat()
    }
}

impl<const N: usize> From<usize> for Border<N> {
    fn from(size: usize) -> Border<N> {
        Border([(size, size); N])
    }
}

/// Sizes before and after the axis.
impl From<(usize, usize)> for Border<1> {
    fn from(sizes: (usize, usize)) -> Border<1> {
        Border([sizes])
    }
}

/// One size for above and below, one for left and right.
impl From<(usize, usize)> for Border<2> {
    fn from((rows, columns): (usize, usize)) -> Border<2> {
        Border([(rows, rows), (columns, columns)])
    }
}

/// `((top, bottom), (left, right))`
impl From<((usize, usize), (usize, usize))> for Border<2> {
    fn from((rows, columns): ((usize, usize), (usize, usize))) -> Border<2> {
        Border([rows, columns])
    }
}

impl From<(usize, usize, usize)> for Border<3> {
    fn from((depth, rows, columns): (usize, usize, usize)) -> Border<3> {
        Border([(depth, depth), (rows, rows), (columns, columns)])
    }
}

impl From<[(usize, usize); 3]> for Border<3> {
    fn from(sides: [(usize, usize); 3]) -> Border<3> {
        Border(sides)
    }
}
