//! Times of element-wise programs, reductions and softmax:
//! `cargo bench -p estimand-tensor --bench elementwise`, with the names of parts (`-- large small`)
//! to run only those.
//!
//! Every figure is the minimum of many runs. Next to times that memory decides stand the bytes
//! moved.
#![allow(clippy::print_stdout)] // a bench prints

use std::hint::black_box;
use std::time::Instant;

use estimand_tensor::Reduction;
use estimand_tensor::cpu::elementwise::{InputView, Instruction, TileProgram};
use estimand_tensor::cpu::reduce::{reduce, scratch_len};
use estimand_tensor::cpu::softmax::{cross_entropy, softmax, sparse_cross_entropy};
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, Binary, DType, Unary};

const F32: DType = DType::F32;

/// The least nanoseconds of one call.
fn time(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    f();
    let once = start.elapsed().as_nanos().max(1);
    let inner = (200_000 / once).clamp(1, 10_000) as usize;
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_millis() < 60 {
        let start = Instant::now();
        for _ in 0..inner {
            f();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / inner as f64);
    }
    best
}

fn unary(op: Unary, dst: u8, x: u8) -> Instruction {
    Instruction::Unary { op, dtype: F32, dst, x }
}

fn binary(op: Binary, dst: u8, x: u8, y: u8) -> Instruction {
    Instruction::Binary { op, dtype: F32, dst, x, y }
}

/// Loads the inputs into registers 0.., runs `body`, stores register 2.
fn program(n_inputs: usize, body: &[Instruction], output: DType) -> TileProgram {
    let mut instructions: Vec<_> = (0..n_inputs as u8).map(|i| Instruction::Load { dst: i, input: i }).collect();
    instructions.extend(body);
    instructions.push(Instruction::Store { src: 2, output: 0 });
    TileProgram::new(&vec![F32; n_inputs], &[output], instructions).expect("a valid program")
}

/// Times a program on inputs with their strides.
fn time_program(
    program: &TileProgram,
    pool: &Pool,
    dims: &[usize],
    inputs: &[(&[f32], &[usize])],
    out: &mut [f32],
) -> f64 {
    let views: Vec<InputView> = inputs.iter().map(|(x, strides)| InputView::new(x.as_ptr().cast(), strides)).collect();
    let outputs = [out.as_mut_ptr().cast()];
    time(|| {
        // SAFETY: every caller below passes arrays of the sizes its dims and strides ask for.
        unsafe { program.run(pool, black_box(dims), &views, &outputs) };
    })
}

fn operations(pool: &Pool) {
    let n = 8192;
    let x: Vec<f32> = (0..n).map(|i| 0.001 + (i as f32 * 0.618).fract() * 4.0).collect();
    let y: Vec<f32> = x.iter().rev().copied().collect();
    let mut out = vec![0f32; 2 * n];
    println!("single operations, {n} f32 in cache, 1e9 elements/s:");
    let mut line = String::new();
    for &op in Unary::ALL.iter().filter(|op| op.accepts(F32)) {
        let p = program(1, &[unary(op, 2, 0)], op.output(F32));
        line += &format!("{op:?} {:.2}  ", n as f64 / time_program(&p, pool, &[n], &[(&x, &[1])], &mut out));
    }
    line += "\n";
    for &op in Binary::ALL.iter().filter(|op| op.accepts(F32)) {
        let p = program(2, &[binary(op, 2, 0, 1)], op.output(F32));
        let t = time_program(&p, pool, &[n], &[(&x, &[1]), (&y, &[1])], &mut out);
        line += &format!("{op:?} {:.2}  ", n as f64 / t);
    }
    println!("{line}");
}

fn small(pool: &Pool) {
    let x = vec![0.5f32; 131072];
    let mut out = vec![0f32; 131072];
    let p = program(2, &[binary(Binary::Add, 2, 0, 1), unary(Unary::Relu, 2, 2)], F32);
    for n in [1usize, 10, 64, 320, 1024, 4096] {
        let dense = time_program(&p, pool, &[n], &[(&x, &[1]), (&x, &[1])], &mut out);
        println!("relu(x + y), {n} elements: {dense:.0} ns");
    }
    for (rows, columns) in [(32usize, 10usize), (128, 10), (128, 64), (128, 100), (128, 256), (100, 1024)] {
        let bias = time_program(&p, pool, &[rows, columns], &[(&x, &[columns, 1]), (&x, &[0, 1])], &mut out);
        let column = time_program(&p, pool, &[rows, columns], &[(&x, &[columns, 1]), (&x, &[1, 0])], &mut out);
        let scalar = time_program(&p, pool, &[rows, columns], &[(&x, &[columns, 1]), (&x, &[0, 0])], &mut out);
        let dense = time_program(&p, pool, &[rows, columns], &[(&x, &[columns, 1]), (&x, &[columns, 1])], &mut out);
        println!(
            "relu(x + b), {rows}x{columns}: row {bias:.0} ns, column {column:.0}, scalar {scalar:.0}, dense {dense:.0}"
        );
    }
}

/// Six operations in one pass beside a copy of the same bytes. A square root alone takes about as
/// long as the copy, so a program with one is limited by arithmetic: it has its own line.
fn large(pool: &Pool, n_threads: usize) {
    let light = [
        binary(Binary::Mul, 2, 0, 0),
        binary(Binary::Add, 2, 2, 1),
        unary(Unary::Neg, 2, 2),
        binary(Binary::Sub, 2, 2, 0),
        unary(Unary::Relu, 2, 2),
        binary(Binary::Mul, 2, 2, 0),
    ];
    let mut root = light;
    root[2] = unary(Unary::Sqrt, 2, 2);
    six_operations("6 operations", &light, pool, n_threads);
    six_operations("6 operations with a root", &root, pool, n_threads);
}

fn six_operations(what: &str, body: &[Instruction], pool: &Pool, n_threads: usize) {
    let n = 16 << 20;
    // Arrays of the engine, which are aligned and ask for large pages.
    let [mut x, mut out] = [(); 2].map(|()| Array::zeros(F32, [n]).expect("two arrays of 64 MiB"));
    let x: &mut [f32] = x.as_mut_slice().expect("not shared");
    let out: &mut [f32] = out.as_mut_slice().expect("not shared");
    x.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32 * 1e-7);
    let x = &*x;
    let mut code = vec![Instruction::Constant { dst: 1, dtype: F32, bits: u64::from(1f32.to_bits()) }];
    code.extend_from_slice(body);
    let p = program(1, &code, F32);
    let part = n / n_threads;
    let view = [InputView::new(x.as_ptr().cast(), &[1])];
    let to = out.as_mut_ptr();
    let address = to as usize;
    // In turns, so that a busy machine disturbs both alike.
    let (mut copy, mut six) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..40 {
        let start = Instant::now();
        pool.run(n_threads, &|i| {
            // SAFETY: the parts are disjoint and within both arrays.
            unsafe {
                std::ptr::copy_nonoverlapping(x.as_ptr().add(i * part), (address as *mut f32).add(i * part), part)
            };
        });
        copy = copy.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        // SAFETY: input and output have `n` elements.
        unsafe { p.run(pool, &[n], &view, &[to.cast()]) };
        six = six.min(start.elapsed().as_secs_f64());
    }
    let mebibytes = (2 * n * 4) >> 20;
    let (copy, six) = (copy * 1e3, six * 1e3);
    println!(
        "{what} on 16M f32 ({mebibytes} MiB moved), {n_threads} threads: {six:.2} ms, memcpy {copy:.2} ms, ratio {:.2}",
        six / copy
    );
}

fn reductions(one: &Pool, two: &Pool) {
    let x: Vec<f32> = (0..16 << 20).map(|i| (i as f32 * 0.618).fract()).collect();
    let mut out = vec![0f32; 1 << 20];
    let mut scratch = vec![0u64; 1 << 20];
    // SAFETY: the scratch memory has that many bytes.
    let scratch = unsafe { std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), 8 << 20) };
    let shapes: [(&[usize], u32, &str); 9] = [
        (&[32, 10], 0b01, "columns"),
        (&[32, 10], 0b10, "rows"),
        (&[128, 64], 0b01, "columns"),
        (&[128, 64], 0b10, "rows"),
        (&[128, 1024], 0b01, "columns"),
        (&[128, 1024], 0b10, "rows"),
        (&[1 << 20, 16], 0b01, "columns"),
        (&[1 << 14, 1 << 10], 0b10, "rows"),
        (&[1 << 24], 0b1, "all"),
    ];
    for (dims, axes, what) in shapes {
        let len: usize = dims.iter().product();
        assert!(scratch_len(dims, axes) <= scratch.len());
        for kind in [Reduction::Sum, Reduction::Max] {
            let [alone, both] = [one, two].map(|pool| {
                time(|| {
                    let (x, out) = (x.as_ptr().cast(), out.as_mut_ptr().cast());
                    // SAFETY: the arrays hold the largest of the shapes.
                    unsafe { reduce(pool, kind, F32, black_box(dims), axes, x, out, scratch) }.expect("defined on f32");
                })
            });
            let rate = len as f64 * 4.0 / both;
            println!("{kind:?} of {what} of {dims:?}: {alone:.0} ns, 2 threads {both:.0} ns ({rate:.1} GB/s)");
        }
    }
}

fn softmaxes(one: &Pool) {
    for shape in [[32, 3], [128, 10], [128, 16], [128, 17], [128, 100], [128, 1000]] {
        let [rows, classes] = shape;
        let x: Vec<f32> = (0..rows * classes).map(|i| (i as f32 * 0.618).fract() * 8.0).collect();
        let labels = vec![1i32; rows];
        let (mut out, mut loss) = (vec![0f32; x.len()], vec![0f32; rows]);
        let (logits, out, loss) = (x.as_ptr().cast(), out.as_mut_ptr().cast(), loss.as_mut_ptr().cast());
        // SAFETY: the arrays have the shape's sizes.
        let soft = time(|| unsafe { softmax(one, F32, shape, logits, out) }.expect("defined on f32"));
        let dense = time(|| {
            // SAFETY: as above; the logits serve as labels.
            unsafe { cross_entropy(one, F32, shape, logits, logits, loss, out) }.expect("defined on f32");
        });
        let sparse = time(|| {
            let labels = labels.as_ptr().cast();
            // SAFETY: as above.
            unsafe { sparse_cross_entropy(one, F32, shape, logits, DType::I32, labels, loss, out) }
                .expect("class 1 exists");
        });
        println!("{rows}x{classes}: softmax {soft:.0} ns, cross entropy {dense:.0}, sparse {sparse:.0}");
    }
}

fn main() {
    let (one, two) = (Pool::new(1), Pool::new(2));
    let names: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    if wanted("operations") {
        operations(&one);
    }
    if wanted("small") {
        small(&one);
    }
    if wanted("large") {
        large(&one, 1);
        large(&two, 2);
    }
    if wanted("reductions") {
        reductions(&one, &two);
    }
    if wanted("softmax") {
        softmaxes(&one);
    }
}
