//! Measures the peak rates of this machine: a product in the cache, and a copy that is too large
//! for a core's cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use estimand_graph::Rates;
use estimand_tensor::cpu::matmul::{Epilogue, Product, matmul};
use estimand_tensor::parallel::{DisjointMut, Pool};

/// The time for which each measurement is repeated.
const TIME: Duration = Duration::from_millis(5);
/// Rows and columns of the product.
const SIDE: usize = 384;
/// Floats of the copy: 8 MiB.
const COPIED: usize = 2 << 20;

/// Measures both rates on the threads of a pool. Takes the best of many short runs, because
/// disturbances only make a run slower.
pub(super) fn measure(pool: &Pool) -> Rates {
    let product = Product::new(SIDE, SIDE, SIDE);
    let (a, b, mut c) = (vec![1.0f32; SIDE * SIDE], vec![0.5f32; SIDE * SIDE], vec![0.0f32; SIDE * SIDE]);
    let mut scratch = vec![0.0f32; product.scratch_len()];
    let multiply = || {
        matmul(pool, &product, &a, &b, &mut c, Epilogue::default(), &mut scratch);
        black_box(&mut c);
    };
    let flops = 2.0 * (SIDE * SIDE * SIDE) as f64 / shortest(multiply);

    const TASK: usize = 1 << 16;
    // Not zeros: zero pages would all be read from one physical page.
    let (from, mut to) = (vec![1.0f32; COPIED], vec![1.0f32; COPIED]);
    let copy = || {
        let shared = DisjointMut::new(&mut to);
        pool.run(COPIED / TASK, &|task| {
            // SAFETY: each task has a range of its own.
            unsafe { shared.slice(task * TASK, TASK) }.copy_from_slice(&from[task * TASK..][..TASK]);
        });
        black_box(&mut to);
    };
    let bytes = 2.0 * size_of_val(&from[..]) as f64 / shortest(copy);
    Rates { flops, bytes }
}

/// Returns the time in seconds of the shortest run. Runs at least twice, and until the time is
/// over.
fn shortest(mut run: impl FnMut()) -> f64 {
    // The first run is not counted: it wakes threads and touches memory.
    run();
    let (began, mut best) = (Instant::now(), f64::INFINITY);
    while best.is_infinite() || began.elapsed() < TIME {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    // A clock that does not advance must not make a rate infinite.
    best.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_some_machine() {
        let rates = measure(&Pool::new(1));
        assert!((1e6..1e15).contains(&rates.flops) && (1e6..1e13).contains(&rates.bytes), "{rates:?}");
    }
}
