//! Pads an array with one value, or with its own mirror image.

use super::by_size;
use super::fill::element;
use crate::cpu::size::{product, sum};
use crate::cpu::split::for_each_rows;
use crate::parallel::Pool;
use smallvec::SmallVec;

/// The treatment of the border element in a mirror padding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mirror {
    /// The border is the mirror and is not repeated: `b | a b c | b`.
    Reflect,
    /// The mirror lies outside the border, so the border is repeated: `a | a b c | c`.
    Symmetric,
}

/// Pads `x` of `dims` with `paddings[k]` = (before, after) copies of `value`, the bytes of one
/// element.
pub fn pad(pool: &Pool, dims: &[usize], paddings: &[(usize, usize)], value: &[u8], x: &[u8], out: &mut [u8]) {
    by_size!(value.len(), N => {
        let value = element::<N>(value);
        if !check(dims, paddings, x.len() / N, out.len() / N) {
            return;
        }
        let frame = Frame::new(dims, paddings);
        let x = x.as_chunks::<N>().0;
        for_each_rows(pool, out.as_chunks_mut::<N>().0, frame.out_width(), &|first, part| {
            for (number, row) in part.chunks_mut(frame.out_width()).enumerate() {
                match frame.source(first + number, |at, len| (at >= 0 && at < len).then_some(at)) {
                    None => row.fill(value),
                    Some(from) => {
                        let (left, rest) = row.split_at_mut(frame.before);
                        let (middle, right) = rest.split_at_mut(frame.width());
                        left.fill(value);
                        middle.copy_from_slice(&x[from * frame.width()..][..frame.width()]);
                        right.fill(value);
                    }
                }
            }
        });
    });
}

/// Pads `x` of `dims` with its mirror image, `paddings[k]` = (before, after) elements wide.
///
/// A padding may be at most the axis's length, less one for [`Mirror::Reflect`].
pub fn mirror_pad(
    pool: &Pool,
    dims: &[usize],
    paddings: &[(usize, usize)],
    mode: Mirror,
    elem_size: usize,
    x: &[u8],
    out: &mut [u8],
) {
    let skip = isize::from(mode == Mirror::Symmetric);
    let reflect = |at: isize, len: isize| match at {
        _ if at < 0 => -at - skip,
        _ if at >= len => 2 * len - 2 + skip - at,
        _ => at,
    };
    by_size!(elem_size, N => {
        if !check(dims, paddings, x.len() / N, out.len() / N) {
            return;
        }
        let frame = Frame::new(dims, paddings);
        let (inner, len) = (frame.inner, frame.len as isize);
        let x = x.as_chunks::<N>().0;
        for_each_rows(pool, out.as_chunks_mut::<N>().0, frame.out_width(), &|first, part| {
            for (number, row) in part.chunks_mut(frame.out_width()).enumerate() {
                let from = frame.source(first + number, |at, len| Some(reflect(at, len)));
                let source = &x[from.unwrap_or(0) * frame.width()..][..frame.width()];
                row[frame.before..frame.before + frame.width()].copy_from_slice(source);
                let blocks = row.len() / inner;
                for block in (0..frame.before / inner).chain((frame.before + frame.width()) / inner..blocks) {
                    let at = reflect(block as isize - (frame.before / inner) as isize, len) as usize;
                    row[block * inner..(block + 1) * inner].copy_from_slice(&source[at * inner..(at + 1) * inner]);
                }
            }
        });
    });
}

/// Panics unless the lengths `x` and `out` match the dims. Returns whether there is anything to
/// write.
fn check(dims: &[usize], paddings: &[(usize, usize)], x: usize, out: usize) -> bool {
    assert_eq!(paddings.len(), dims.len(), "one padding for each axis of {dims:?}");
    let framed = dims.iter().zip(paddings).map(|(&len, &(before, after))| sum(&[before, len, after]));
    let framed = framed.collect::<SmallVec<[usize; 8]>>();
    assert_eq!((x, out), (product(dims), product(&framed)), "elements of {dims:?} and, padded, of {framed:?}");
    out > 0
}

/// The dims of a padded array. The last padded axis and all axes after it form one row.
struct Frame<'a> {
    /// The axes before the row.
    dims: &'a [usize],
    paddings: &'a [(usize, usize)],
    /// The length of the last padded axis.
    len: usize,
    /// The number of elements per position of that axis.
    inner: usize,
    /// The number of padding elements on either side of a row.
    before: usize,
    after: usize,
}

impl<'a> Frame<'a> {
    fn new(dims: &'a [usize], paddings: &'a [(usize, usize)]) -> Self {
        let last = paddings.iter().rposition(|&padding| padding != (0, 0)).unwrap_or(0);
        let inner = dims.iter().skip(last + 1).product();
        let (before, after) = paddings.get(last).copied().unwrap_or((0, 0));
        let len = dims.get(last).copied().unwrap_or(1);
        Frame {
            dims: &dims[..last],
            paddings: &paddings[..last],
            len,
            inner,
            before: before * inner,
            after: after * inner,
        }
    }

    /// The number of elements in a row of the input.
    fn width(&self) -> usize {
        self.len * self.inner
    }

    /// The number of elements in a row of the output.
    fn out_width(&self) -> usize {
        self.before + self.width() + self.after
    }

    /// The input row shown in an output row. `map(position, length)` returns the source of each
    /// leading position.
    fn source(&self, row: usize, map: impl Fn(isize, isize) -> Option<isize>) -> Option<usize> {
        let (mut rest, mut source, mut stride) = (row, 0, 1);
        for (&len, &(before, after)) in self.dims.iter().zip(self.paddings).rev() {
            let out_len = before + len + after;
            let at = map((rest % out_len) as isize - before as isize, len as isize)?;
            source += at as usize * stride;
            stride *= len;
            rest /= out_len;
        }
        Some(source)
    }
}
