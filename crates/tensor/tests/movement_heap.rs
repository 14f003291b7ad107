//! The data-movement kernels allocate nothing: a training step calls them thousands of times a
//! second.

use estimand_tensor::cpu::gather::{GatherDims, gather, gather_nd};
use estimand_tensor::cpu::layout::*;
use estimand_tensor::cpu::resize::{Resize, resize_bilinear, resize_nearest_grad};
use estimand_tensor::cpu::scan::{Direction, Running, cumulative};
use estimand_tensor::cpu::scatter::{scatter_add, scatter_nd, unique_rows, unique_scratch_len};
use estimand_tensor::cpu::segment::{Reduction, segment, unsorted_segment};
use estimand_tensor::cpu::sort::top_k;
use estimand_tensor::parallel::Pool;
use estimand_tensor::random::{Key, Stream};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) };
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test, so that no other allocates meanwhile.
#[test]
#[cfg_attr(debug_assertions, ignore = "with debug assertions, `DisjointMut` keeps a ledger on the heap")]
fn no_kernel_touches_the_heap() {
    let pool = Pool::new(2);
    let stream = Stream::new(Key::new(0, "heap"), 0);
    let (n, width) = (20_000, 24);
    let (x, mut y) = (vec![1.0f32; n * width], vec![0.0f32; n * width]);
    let (bytes, mut out) = (vec![1u8; n * width], vec![0u8; 4 * n * width]);
    let ids: Vec<i64> = (0..n as i64).collect();
    let (mut unique, mut inverse, mut scratch) = (vec![0i64; n], vec![0i32; n], vec![0u32; unique_scratch_len(n)]);
    let (mut largest, mut places) = (vec![0.0f32; n * 3], vec![0i32; n * 3]);
    let table = GatherDims { batch: 1, outer: 1, limit: n, n_ids: n, inner: width };
    let image = Resize { from: [20, 24], to: [40, 12], channels: 1, align_corners: false, half_pixel_centers: true };

    let mut step = || {
        stream.fill_uniform_f32(0, width, &mut y);
        stream.fill_truncated_normal_f32(0, width, &mut y);
        stream.fill_integers_i64(0, 1, 0, n as i64, &mut unique);
        transpose(&pool, &[100, 200, 4, 6], &[2, 0, 3, 1], 1, &bytes, &mut out[..n * width]);
        tile(&pool, &[100, 200, 4, 6], &[2, 1, 1, 2], 1, &bytes, &mut out);
        strided_slice(&pool, &[n, width], &[n - 1, 0], &[-1, 2], &[n, 12], 1, &bytes, &mut out[..n * 12]);
        strided_slice_grad(&pool, &[n, width], &[0, 0], &[1, 2], &[n, 12], 1, &bytes[..n * 12], &mut out[..n * width]);
        concat(&pool, n, &[&bytes, &bytes], &mut out[..2 * n * width]);
        pad(&pool, &[n, width], &[(0, 0), (2, 2)], &[0], &bytes, &mut out[..n * (width + 4)]);
        mirror_pad(&pool, &[n, width], &[(0, 0), (2, 2)], Mirror::Reflect, 1, &bytes, &mut out[..n * (width + 4)]);
        one_hot(&pool, [n, 20, 1], &ids, &[1], &[0], &mut out[..n * 20]);
        gather(&pool, table, 1, &bytes, &ids, &mut out[..n * width]).unwrap();
        gather_nd(&pool, &[n], width, 1, &bytes, &ids, &mut out[..n * width]).unwrap();
        scatter_add(&pool, width, &ids, &x, &mut y).unwrap();
        scatter_nd(&pool, &[n], width, &ids, &x, &mut y).unwrap();
        unique_rows(&pool, width, &ids, &x, &mut unique, &mut inverse, &mut y, &mut scratch);
        segment(&pool, Reduction::Mean, width, &ids, &x, &mut y).unwrap();
        unsorted_segment(&pool, Reduction::Mean, width, &ids, &x, &mut y, &mut scratch).unwrap();
        top_k(&pool, width, 3, &x, &mut largest, &mut places);
        cumulative(&pool, Running::Sum, Direction::default(), [n, width, 1], &x, &mut y);
        resize_bilinear(&pool, &image, &x, &mut y);
        resize_nearest_grad(&pool, &image, &x, &mut y);
    };
    step();
    // The least of three rounds: an allocation of a kernel shows in all of them, one of the test
    // runner in one.
    let allocations = (0..3).map(|_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        step();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    assert_eq!(allocations.min(), Some(0));
}
