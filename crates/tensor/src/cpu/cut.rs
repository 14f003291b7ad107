//! Cuts a batch of images into tasks. The cut depends only on the sizes, never on the number of
//! threads.

use std::ops::Range;

use crate::parallel::{DisjointMut, Pool};

/// The largest number of tasks of a batch: enough for the threads to finish together, and few
/// enough to limit their scratch memory.
const TASKS: usize = 16;

/// A cut into groups of images and, if there are few images, bands of rows.
pub(crate) struct Cut {
    batch: usize,
    height: usize,
    /// The number of images of a group; the last group may have fewer.
    pub images: usize,
    n_groups: usize,
    /// The number of rows of a band; the last band may have fewer.
    pub rows: usize,
    n_bands: usize,
}

/// A band of rows of a range of images: the work of one task.
pub(crate) struct Task {
    pub images: Range<usize>,
    pub rows: Range<usize>,
}

impl Cut {
    /// The cut of `batch` images of `height` rows.
    pub fn new(batch: usize, height: usize) -> Self {
        let whole = Cut::images_only(batch, height);
        let rows = height.div_ceil(TASKS.div_ceil(whole.n_groups.max(1))).max(1);
        Cut { rows, n_bands: height.div_ceil(rows), ..whole }
    }

    /// The cut without bands.
    pub fn images_only(batch: usize, height: usize) -> Self {
        let images = batch.div_ceil(TASKS).max(1);
        Cut { batch, height, images, n_groups: batch.div_ceil(images), rows: height, n_bands: 1 }
    }

    pub fn n_tasks(&self) -> usize {
        self.n_groups * self.n_bands
    }

    pub fn task(&self, index: usize) -> Task {
        let (image, row) = (index / self.n_bands * self.images, index % self.n_bands * self.rows);
        Task { images: image..self.batch.min(image + self.images), rows: row..self.height.min(row + self.rows) }
    }

    /// Records that the task writes its rows of `out`, whose images have rows of `row_len`
    /// elements. Overlaps are checked in debug builds.
    #[inline(always)]
    pub fn claim<T>(&self, task: &Task, row_len: usize, out: &DisjointMut<T>) {
        if cfg!(debug_assertions) {
            for image in task.images.clone() {
                out.claim((image * self.height + task.rows.start) * row_len, task.rows.len() * row_len);
            }
        }
    }
}

/// Calls `body(0)` .. `body(n - 1)`, on the pool if there is enough work.
pub(crate) fn run(pool: &Pool, parallel: bool, n: usize, body: &(dyn Fn(usize) + Sync)) {
    if parallel { pool.run(n, body) } else { (0..n).for_each(body) }
}
