//! A kernel never touches the heap: what it needs beyond its operands is passed in.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_tensor::cpu::conv::{
    ConvShape, conv2d, conv2d_backprop_filter, conv2d_backprop_filter_scratch_len, conv2d_backprop_input,
    conv2d_backprop_input_scratch_len, conv2d_scratch_len,
};
use estimand_tensor::cpu::matmul::{Epilogue, Product, matmul};
use estimand_tensor::cpu::pool2d::{PoolShape, avg_pool, avg_pool_grad, max_pool, max_pool_grad};
use estimand_tensor::cpu::window::Window;
use estimand_tensor::parallel::Pool;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The least of three calls: an allocation of the kernel shows in all of them, one of the test
/// runner in one.
fn assert_no_allocation(what: &str, mut call: impl FnMut()) {
    let allocations = (0..3).map(|_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        call();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    assert_eq!(allocations.min(), Some(0), "allocations of {what}");
}

/// One test, since the count is the process's.
#[test]
#[cfg_attr(debug_assertions, ignore = "with debug assertions, `DisjointMut` keeps a ledger on the heap")]
fn kernels_do_not_allocate() {
    let pool = Pool::new(3);
    // A thread allocates when it starts: wait until all three have met inside a run.
    let met = AtomicUsize::new(0);
    pool.run(3, &|_| {
        met.fetch_add(1, Ordering::Relaxed);
        while met.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
    });
    for (m, n, k, transpose_a, transpose_b) in [
        (1, 40, 300, false, false),
        (200, 100, 300, false, false),
        (130, 1, 90, false, false),
        (90, 256, 1024, false, true),
        (1100, 260, 64, true, false),
    ] {
        let p = Product { m, n, k, transpose_a, transpose_b };
        let (a, b, mut c) = (vec![0.5; m * k], vec![0.5; k * n], vec![0.0; m * n]);
        let (bias, mut scratch) = (vec![1.0; n], vec![0.0; p.scratch_len()]);
        let epilogue = Epilogue { bias: Some(&bias), relu: true, ..Epilogue::default() };
        assert_no_allocation("matmul", || matmul(&pool, &p, &a, &b, &mut c, epilogue, &mut scratch));
    }
    for padding in [0, 1] {
        let mut window = Window::new([3, 3], [1, 1]);
        (window.padding_before, window.padding_after) = ([padding; 2], [padding; 2]);
        let s = ConvShape { batch: 20, height: 12, width: 10, in_channels: 8, out_channels: 20, window };
        let (x, filter, dy) = (vec![0.5; s.input_len()], vec![0.5; s.filter_len()], vec![0.5; s.output_len()]);
        let (mut y, mut dx, mut dfilter) = (dy.clone(), x.clone(), filter.clone());
        let mut scratch = vec![0.0; conv2d_scratch_len(&s)];
        assert_no_allocation("conv2d", || {
            conv2d(&pool, &s, &x, &filter, &mut y, Epilogue::default(), &mut scratch);
        });
        let mut scratch = vec![0.0; conv2d_backprop_input_scratch_len(&s)];
        assert_no_allocation("conv2d_backprop_input", || {
            conv2d_backprop_input(&pool, &s, &filter, &dy, &mut dx, &mut scratch);
        });
        let mut scratch = vec![0.0; conv2d_backprop_filter_scratch_len(&s)];
        assert_no_allocation("conv2d_backprop_filter", || {
            conv2d_backprop_filter(&pool, &s, &x, &dy, &mut dfilter, &mut scratch);
        });
        let s = PoolShape { batch: 20, height: 12, width: 10, channels: 8, window };
        let (y, dy) = (vec![0.5; s.output_len()], vec![0.5; s.output_len()]);
        let mut out = y.clone();
        assert_no_allocation("pooling", || {
            max_pool(&pool, &s, &x, &mut out);
            max_pool_grad(&pool, &s, &x, &y, &dy, &mut dx);
            avg_pool(&pool, &s, &x, &mut out);
            avg_pool_grad(&pool, &s, &dy, &mut dx);
        });
    }
}
