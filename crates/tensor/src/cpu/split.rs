//! Cuts the output of data-movement kernels into tasks, by bytes and never by the number of
//! threads.

use crate::parallel::{DisjointMut, Pool};

/// The number of output bytes per task: about 10 us of copying, well above the cost of starting a
/// task.
const GRAIN: usize = 128 << 10;

/// The number of elements of `size` bytes in one task.
pub(super) fn grain(size: usize) -> usize {
    GRAIN / size.max(1)
}

/// Calls `work(first element, part)` for consecutive parts of `out` with `part_len` elements; the
/// last part may be shorter.
pub(crate) fn for_each_part<T: Send>(
    pool: &Pool,
    out: &mut [T],
    part_len: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let len = out.len();
    let part_len = part_len.max(1);
    if len <= part_len {
        if len > 0 {
            work(0, out);
        }
        return;
    }
    let parts = DisjointMut::new(out);
    pool.run(len.div_ceil(part_len), &|task| {
        let start = task * part_len;
        // SAFETY: task numbers are distinct, so the parts [task * part_len, (task + 1) * part_len)
        // are disjoint.
        work(start, unsafe { parts.slice(start, part_len.min(len - start)) });
    });
}

/// Like [`for_each_part`], with parts of whole rows of `width` elements: calls
/// `work(first row, rows)`.
pub(super) fn for_each_rows<T: Send>(
    pool: &Pool,
    out: &mut [T],
    width: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let width = width.max(1);
    let rows = (grain(size_of::<T>()) / width).max(1);
    for_each_part(pool, out, rows * width, &|start, part| work(start / width, part));
}
