//! Measures the speed of the product kernels, and compares it with the bound of each.
//! `cargo bench -p estimand-kernel-bench`
//!
//! The bound of a product is the multiply-add rate measured here with all operands in registers, in
//! the same minute on the same core. Every figure is the minimum over many short runs, since other
//! programs share the machine.
#![allow(clippy::print_stdout)] // it is what a bench is for

use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

use estimand_tensor::cpu::conv::{
    ConvShape, conv2d, conv2d_backprop_filter, conv2d_backprop_filter_scratch_len, conv2d_backprop_input,
    conv2d_backprop_input_scratch_len, conv2d_scratch_len,
};
use estimand_tensor::cpu::matmul::{Epilogue, Product, matmul};
use estimand_tensor::cpu::pool2d::{PoolShape, avg_pool, avg_pool_grad, max_pool, max_pool_grad};
use estimand_tensor::cpu::window::Window;
use estimand_tensor::parallel::Pool;

/// Returns whether a row is selected: with an argument, only rows whose name contains it are run.
fn is_asked_for(name: &str) -> bool {
    std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).all(|arg| name.contains(&arg))
}

/// Floats that begin on a cache line, like those of the executor.
#[derive(Clone)]
struct Floats {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [f32; 16]); // read as a slice

impl Deref for Floats {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: a line is sixteen floats without padding, and there are lines enough for `len`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Floats {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// `n` zeros.
fn zeros(n: usize) -> Floats {
    Floats { lines: vec![Line([0.0; 16]); n.div_ceil(16)], len: n }
}

/// `n` numbers in [-0.5, 0.5).
fn numbers(n: usize) -> Floats {
    let mut floats = zeros(n);
    for (i, x) in floats.iter_mut().enumerate() {
        *x = (i.wrapping_mul(2_654_435_761) % 65_536) as f32 / 65_536.0 - 0.5;
    }
    floats
}

/// Returns the time of one call in microseconds, the minimum over `rounds` rounds of about a
/// millisecond each.
fn micros(rounds: usize, estimate_us: f64, mut call: impl FnMut()) -> f64 {
    let calls = (1000.0 / estimate_us).ceil().max(1.0) as usize;
    let round = |_| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / calls as f64
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}

/// Measures the multiply-adds of one core with operands in registers, in GFLOP/s.
fn peak() -> f64 {
    const CHAINS: usize = 24;
    const STEPS: usize = 20_000;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    #[allow(clippy::needless_range_loop)] // an iterator would keep the chains in memory
    fn chains(x: &[f32; 32]) -> f32 {
        use std::arch::x86_64::*;
        // SAFETY: both loads lie within the 32 numbers.
        let (a, b) = unsafe { (_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(x.as_ptr().add(16))) };
        let mut sum = [a; CHAINS];
        for _ in 0..STEPS {
            for i in 0..CHAINS / 2 {
                sum[2 * i] = _mm512_fmadd_ps(a, a, sum[2 * i]);
                sum[2 * i + 1] = _mm512_fmadd_ps(a, b, sum[2 * i + 1]);
            }
        }
        let mut total = sum[0];
        for i in 1..CHAINS {
            total = _mm512_add_ps(total, sum[i]);
        }
        _mm512_reduce_add_ps(total)
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        let x: [f32; 32] = std::array::from_fn(|i| numbers(32)[i]);
        let us = micros(20, 100.0, || {
            // SAFETY: the processor has AVX-512.
            black_box(unsafe { chains(black_box(&x)) });
        });
        return (STEPS * CHAINS * 32) as f64 / us / 1e3;
    }
    f64::NAN
}

/// `gemm` 0.19 on one thread, the reference of the targets.
fn peer(p: &Product, a: &[f32], b: &[f32], c: &mut [f32]) {
    let (a_row, a_k) = if p.transpose_a { (1, p.m) } else { (p.k, 1) };
    let (b_k, b_column) = if p.transpose_b { (1, p.k) } else { (p.n, 1) };
    // SAFETY: the strides describe row-major operands of the product's sizes.
    unsafe {
        gemm::gemm(
            p.m,
            p.n,
            p.k,
            c.as_mut_ptr(),
            1,
            p.n as isize,
            false,
            a.as_ptr(),
            a_k as isize,
            a_row as isize,
            b.as_ptr(),
            b_column as isize,
            b_k as isize,
            0.0_f32,
            1.0_f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn products() {
    let plain = Product::new;
    let shapes = [
        plain(128, 256, 640),
        plain(1024, 1024, 1024),
        plain(512, 256, 269),
        plain(8192, 40, 500),
        plain(128, 10, 256),
        plain(256, 100, 69),
        plain(32, 10, 10),
        plain(1, 256, 640),
        plain(256, 1, 256),
        Product { transpose_a: true, ..plain(640, 256, 128) },
        Product { transpose_b: true, ..plain(128, 640, 256) },
        Product { transpose_a: true, ..plain(1024, 1024, 1024) },
        Product { transpose_a: true, ..plain(256, 1, 256) },
    ];
    let (one, two) = (Pool::new(1), Pool::new(2));
    println!(
        "{:>26} {:>10} {:>10} {:>10} {:>10} {:>10}  us; bound: the peak on one thread",
        "m x k x n", "bound", "gemm", "1 thread", "bias+relu", "2 threads"
    );
    for p in shapes {
        let name = format!(
            "{}x{}x{}{}{}",
            p.m,
            p.k,
            p.n,
            if p.transpose_a { " At" } else { "" },
            if p.transpose_b { " Bt" } else { "" }
        );
        if !is_asked_for(&name) {
            continue;
        }
        let (a, b, bias) = (numbers(p.m * p.k), numbers(p.k * p.n), numbers(p.n));
        let (mut c, mut scratch) = (zeros(p.m * p.n), zeros(p.scratch_len()));
        let flops = 2.0 * (p.m * p.n * p.k) as f64;
        let bound = flops / peak() / 1e3;
        let finish = Epilogue { bias: Some(&bias), relu: true, ..Epilogue::default() };
        let mut us = [f64::INFINITY; 4];
        for _ in 0..6 {
            // Alternate, so that a disturbance affects all alike.
            let times = [
                micros(5, bound, || peer(&p, &a, &b, &mut c)),
                micros(5, bound, || matmul(&one, &p, &a, &b, &mut c, Epilogue::default(), &mut scratch)),
                micros(5, bound, || matmul(&one, &p, &a, &b, &mut c, finish, &mut scratch)),
                micros(5, bound, || matmul(&two, &p, &a, &b, &mut c, Epilogue::default(), &mut scratch)),
            ];
            us = std::array::from_fn(|i| us[i].min(times[i]));
        }
        print!("{name:>26} {bound:10.2}");
        us.iter().for_each(|us| print!(" {us:10.2}"));
        println!("  {:3.0} % of bound, {:3.0} % of twice gemm", 100.0 * bound / us[1], 50.0 * us[0] / us[3]);
    }
}

/// The convolution work of one training step of a digit classifier, batch 128.
fn convolutions() {
    let conv = |size, in_channels, out_channels| ConvShape {
        batch: 128,
        height: size,
        width: size,
        in_channels,
        out_channels,
        window: Window::new([5, 5], [1, 1]),
    };
    let (first, second) = (conv(28, 1, 20), conv(12, 20, 40));
    println!(
        "{:>26} {:>10} {:>10} {:>10}  us; bound: whole vectors at the peak of one thread",
        "convolution", "bound", "1 thread", "2 threads"
    );
    let (one, two) = (Pool::new(1), Pool::new(2));
    let mut total = [0.0; 3];
    let mut row = |name: &str, issued: usize, call: &mut dyn FnMut(&Pool)| {
        if !is_asked_for(name) {
            return;
        }
        let bound = issued as f64 / peak() / 1e3;
        let us = [bound, micros(40, bound, || call(&one)), micros(40, bound, || call(&two))];
        println!("{name:>26} {:10.1} {:10.1} {:10.1}", us[0], us[1], us[2]);
        total = std::array::from_fn(|i| total[i] + us[i]);
    };
    for (name, s) in [("first", first), ("second", second)] {
        let (x, filter, dy, bias) =
            (numbers(s.input_len()), numbers(s.filter_len()), numbers(s.output_len()), numbers(s.out_channels));
        let (mut y, mut dx, mut dfilter) = (dy.clone(), x.clone(), filter.clone());
        let pixels = s.batch * s.out_height() * s.out_width();
        let taps = filter.len() / s.out_channels;
        let vectors = 2 * pixels * taps * s.out_channels.next_multiple_of(16);
        let mut scratch = zeros(conv2d_scratch_len(&s));
        let finish = Epilogue { bias: Some(&bias), relu: true, ..Epilogue::default() };
        row(&format!("{name}, forward"), vectors, &mut |pool| {
            conv2d(pool, &s, &x, &filter, &mut y, finish, &mut scratch)
        });
        let mut scratch = zeros(conv2d_backprop_filter_scratch_len(&s));
        row(&format!("{name}, filter gradient"), vectors, &mut |pool| {
            conv2d_backprop_filter(pool, &s, &x, &dy, &mut dfilter, &mut scratch);
        });
        if s == second {
            let mut scratch = zeros(conv2d_backprop_input_scratch_len(&s));
            let vectors = 2 * pixels * s.out_channels * taps.next_multiple_of(16);
            row(&format!("{name}, input gradient"), vectors, &mut |pool| {
                conv2d_backprop_input(pool, &s, &filter, &dy, &mut dx, &mut scratch);
            });
        }
    }
    println!("{:>26} {:10.1} {:10.1} {:10.1}", "all", total[0], total[1], total[2]);
}

/// Poolings of 2 by 2 after the first convolution, batch 128.
fn poolings() {
    let s = PoolShape { batch: 128, height: 24, width: 24, channels: 20, window: Window::new([2, 2], [2, 2]) };
    let (x, dy) = (numbers(s.input_len()), numbers(s.output_len()));
    let (mut y, mut dx) = (dy.clone(), x.clone());
    let (one, two) = (Pool::new(1), Pool::new(2));
    max_pool(&one, &s, &x, &mut y);
    let mut copy = x.clone();
    let copied = micros(40, 500.0, || copy.copy_from_slice(black_box(&x)));
    println!(
        "{:>26} {:>10} {:>10} {:>10}  us; bound: as many bytes copied by one thread",
        "pooling", "bound", "1 thread", "2 threads"
    );
    let row = |name: &str, floats: usize, call: &mut dyn FnMut(&Pool)| {
        if is_asked_for(name) {
            let bound = copied * floats as f64 / (2 * x.len()) as f64;
            let us = [micros(40, 500.0, || call(&one)), micros(40, 500.0, || call(&two))];
            println!("{name:>26} {bound:10.1} {:10.1} {:10.1}", us[0], us[1]);
        }
    };
    let (i, o) = (s.input_len(), s.output_len());
    row("max pool", i + o, &mut |pool| max_pool(pool, &s, &x, &mut y));
    let largest = y.clone();
    row("max pool gradient", 2 * i + 2 * o, &mut |pool| max_pool_grad(pool, &s, &x, &largest, &dy, &mut dx));
    row("avg pool", i + o, &mut |pool| avg_pool(pool, &s, &x, &mut y));
    row("avg pool gradient", i + o, &mut |pool| avg_pool_grad(pool, &s, &dy, &mut dx));
}

fn main() {
    println!("peak of one core: {:.0} GFLOP/s", peak());
    convolutions();
    poolings();
    products();
}
