//! Reductions against naive loops in `f64`, their bits on every instruction set and number of
//! threads, empty and huge arrays.

use crate::naive::Random;
use estimand_tensor::DType;
use estimand_tensor::Reduction;
use estimand_tensor::cpu::isa::Isa;
use estimand_tensor::cpu::reduce::{Extreme, arg_extreme, reduce, scratch_len};
use estimand_tensor::parallel::Pool;

const NUMBERS: [Reduction; 5] = [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod];

/// Reduces an array of a Rust type that is an element.
fn run<T: estimand_tensor::Element>(pool: &Pool, kind: Reduction, dims: &[usize], axes: u32, x: &[T]) -> Vec<T> {
    assert_eq!(x.len(), dims.iter().product::<usize>());
    let n_out = dims.iter().enumerate().filter(|(d, _)| axes >> d & 1 == 0).map(|(_, n)| n).product();
    let mut out = vec![T::default(); n_out];
    let mut scratch = vec![0u64; scratch_len(dims, axes).div_ceil(8)];
    // SAFETY: sizes as asserted and computed; a vector of words is aligned to 8.
    unsafe {
        let bytes = std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), scratch.len() * 8);
        reduce(pool, kind, T::DTYPE, dims, axes, x.as_ptr().cast(), out.as_mut_ptr().cast(), bytes).unwrap();
    }
    out
}

/// For every result the positions of its elements, in ascending order.
fn groups(dims: &[usize], axes: u32) -> Vec<Vec<usize>> {
    let kept = |flat: usize| {
        let (mut rest, mut index, mut scale) = (flat, 0, 1);
        for d in (0..dims.len()).rev() {
            if axes >> d & 1 == 0 {
                index += rest % dims[d] * scale;
                scale *= dims[d];
            }
            rest /= dims[d];
        }
        index
    };
    let n_out = dims.iter().enumerate().filter(|(d, _)| axes >> d & 1 == 0).map(|(_, n)| n).product();
    let mut groups = vec![Vec::new(); n_out];
    (0..dims.iter().product()).for_each(|i| groups[kept(i)].push(i));
    groups
}

fn naive_f64(kind: Reduction, x: impl Iterator<Item = f64>) -> f64 {
    let x: Vec<f64> = x.collect();
    let extreme = |better: fn(f64, f64) -> bool, start| {
        x.iter().fold(start, |a: f64, b| if a.is_nan() || better(a, *b) { a } else { *b })
    };
    match kind {
        Reduction::Sum => x.iter().sum(),
        Reduction::Mean => x.iter().sum::<f64>() / x.len() as f64,
        Reduction::Prod => x.iter().product(),
        Reduction::Max => extreme(|a, b| a >= b, f64::NEG_INFINITY),
        Reduction::Min => extreme(|a, b| a <= b, f64::INFINITY),
        Reduction::All | Reduction::Any => unreachable!("of booleans"),
    }
}

const SHAPES: [&[usize]; 15] = [
    &[],
    &[1],
    &[5],
    &[16],
    &[17],
    &[1025],
    &[32, 10],
    &[7, 3],
    &[300, 16],
    &[3, 700],
    &[5, 600, 2],
    &[4, 1, 9, 5],
    &[2, 3, 4, 5, 6],
    &[2, 2, 2, 2, 2, 2, 2, 3],
    &[9, 1100],
];

#[test]
fn every_set_of_axes_is_a_naive_loop() {
    let pool = Pool::new(2);
    let mut random = Random(5);
    for dims in SHAPES {
        let len = dims.iter().product();
        let x: Vec<f32> = (0..len).map(|_| random.unit() as f32 * 2.0 - 0.7).collect();
        let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        let ints: Vec<i32> = (0..len).map(|_| random.below(19) as i32 - 9).collect();
        for axes in 0..1u32 << dims.len() {
            let groups = groups(dims, axes);
            for kind in NUMBERS {
                let of = |g: &Vec<usize>| naive_f64(kind, g.iter().map(|i| wide[*i]));
                let size = |g: &Vec<usize>| g.iter().map(|i| wide[*i].abs()).sum::<f64>();
                for ((g, a), b) in
                    groups.iter().zip(run(&pool, kind, dims, axes, &x)).zip(run(&pool, kind, dims, axes, &wide))
                {
                    let (want, slack) =
                        (of(g), if matches!(kind, Reduction::Sum | Reduction::Mean) { size(g) } else { 0.0 });
                    let relative = if kind == Reduction::Prod { 1e-7 * (g.len() + 1) as f64 } else { 2e-7 };
                    assert!(
                        (f64::from(a) - want).abs() <= relative * (want.abs() + slack) + 1e-37,
                        "{kind:?} {dims:?} {axes:b}: {a} {want}"
                    );
                    assert!(
                        (b - want).abs() <= 1e-13 * (want.abs() + slack + 1e-300),
                        "{kind:?} {dims:?} {axes:b}: {b} {want}"
                    );
                }
            }
            for (g, got) in groups.iter().zip(run(&pool, Reduction::Sum, dims, axes, &ints)) {
                assert_eq!(got, g.iter().map(|i| ints[*i]).sum::<i32>());
            }
            for (g, got) in groups.iter().zip(run(&pool, Reduction::Mean, dims, axes, &ints)) {
                assert_eq!(got, g.iter().map(|i| ints[*i]).sum::<i32>() / g.len() as i32);
            }
            let bools: Vec<bool> = ints.iter().map(|i| *i > -8).collect();
            for (g, got) in groups.iter().zip(run(&pool, Reduction::All, dims, axes, &bools)) {
                assert_eq!(got, g.iter().all(|i| bools[*i]));
            }
            let bools: Vec<bool> = ints.iter().map(|i| *i == 8).collect();
            for (g, got) in groups.iter().zip(run(&pool, Reduction::Any, dims, axes, &bools)) {
                assert_eq!(got, g.iter().any(|i| bools[*i]));
            }
        }
    }
}

/// The only test that limits the instruction set: the limit holds for the whole process.
#[test]
fn bits_depend_on_the_shape_alone() {
    let mut random = Random(9);
    let shapes: [(&[usize], u32); 9] = [
        (&[200_000], 1),
        (&[1_000, 300], 0b10),
        (&[1_000, 300], 0b01),
        (&[40_000, 10], 0b01),
        (&[40_000, 3], 0b10),
        (&[40_000, 20], 0b01),
        (&[50, 600, 7], 0b010),
        (&[50, 60, 70], 0b101),
        (&[3, 1_500], 0b01),
    ];
    for (dims, axes) in shapes {
        let x: Vec<f32> = (0..dims.iter().product()).map(|_| random.unit() as f32 - 0.3).collect();
        for kind in NUMBERS {
            let mut first = None;
            for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
                Isa::limit(isa);
                for threads in [1, 2, 3, 8] {
                    let got: Vec<u32> =
                        run(&Pool::new(threads), kind, dims, axes, &x).into_iter().map(f32::to_bits).collect();
                    let first = first.get_or_insert_with(|| got.clone());
                    assert!(*first == got, "{kind:?} {dims:?} {axes:b} on {threads} threads, {isa:?}");
                }
            }
        }
    }
    Isa::limit(Isa::Avx512);
    // A row alone, and in batches of 7 and 128.
    for n in [1, 10, 16, 17, 100, 5_000] {
        let x: Vec<f32> = (0..128 * n).map(|_| random.unit() as f32 - 0.3).collect();
        let pool = Pool::new(2);
        let all = run(&pool, Reduction::Sum, &[128, n], 0b10, &x);
        assert_eq!(run(&pool, Reduction::Sum, &[7, n], 0b10, &x[..7 * n]), all[..7]);
        for (row, want) in x.chunks(n).zip(&all) {
            assert_eq!(run(&pool, Reduction::Sum, &[1, n], 0b10, row)[0].to_bits(), want.to_bits());
        }
    }
}

#[test]
fn ten_million_numbers_keep_their_digits() {
    // Far out there are only 0.1 and 0.6 left: roundings that all go the same way.
    let x: Vec<f32> = (0..10_000_000).map(|i| (i as f32 * 0.618_034).fract() + 0.1).collect();
    let exact: f64 = x.iter().map(|x| f64::from(*x)).sum();
    let pool = Pool::new(2);
    let got = run(&pool, Reduction::Sum, &[10_000_000], 1, &x)[0];
    assert!((f64::from(got) / exact - 1.0).abs() < 1e-6, "{got} {exact}");
    // As 2 columns of 5 million.
    let got = run(&pool, Reduction::Sum, &[5_000_000, 2], 0b01, &x);
    assert!(((f64::from(got[0]) + f64::from(got[1])) / exact - 1.0).abs() < 1e-6);
}

/// As TensorFlow 2.15.1 on CPU: reduce_max -inf, reduce_min inf, reduce_mean NaN (0 of integers),
/// reduce_prod 1.
#[test]
fn nothing_reduces_to_the_neutral_element() {
    let pool = Pool::new(1);
    for (dims, axes) in [(&[0usize, 3][..], 0b01), (&[3, 0], 0b10), (&[3, 0, 700], 0b010), (&[2, 3, 0], 0b101)] {
        for (kind, want) in [
            (Reduction::Sum, 0.0),
            (Reduction::Prod, 1.0),
            (Reduction::Max, f32::NEG_INFINITY),
            (Reduction::Min, f32::INFINITY),
        ] {
            let got = run::<f32>(&pool, kind, dims, axes, &[]);
            assert!(!got.is_empty() && got.iter().all(|x| *x == want), "{kind:?} {dims:?}");
        }
        assert!(run::<f32>(&pool, Reduction::Mean, dims, axes, &[]).iter().all(|x| x.is_nan()));
        assert!(run::<i32>(&pool, Reduction::Mean, dims, axes, &[]).iter().all(|x| *x == 0));
        assert!(run::<i32>(&pool, Reduction::Max, dims, axes, &[]).iter().all(|x| *x == i32::MIN));
        assert!(run::<i64>(&pool, Reduction::Min, dims, axes, &[]).iter().all(|x| *x == i64::MAX));
        assert!(run::<bool>(&pool, Reduction::All, dims, axes, &[]).iter().all(|x| *x));
        assert!(run::<bool>(&pool, Reduction::Any, dims, axes, &[]).iter().all(|x| !*x));
    }
    assert!(run::<f32>(&pool, Reduction::Sum, &[0, 3], 0b10, &[]).is_empty());
}

#[test]
fn corner_cases_as_tensorflow() {
    let pool = Pool::new(1);
    let nan = f32::NAN;
    for n in [4usize, 40] {
        let mut x = vec![1.0f32; n];
        x[1] = nan;
        assert!(run(&pool, Reduction::Max, &[n], 1, &x)[0].is_nan());
        assert!(run(&pool, Reduction::Min, &[n, 1], 1, &x)[0].is_nan());
    }
    // tf.reduce_mean of [-3, 0] is -1, of [250, 250] as uint8 is 250.
    assert_eq!(run(&pool, Reduction::Mean, &[2], 1, &[-3i32, 0]), [-1]);
    assert_eq!(run(&pool, Reduction::Mean, &[2], 1, &[250u8, 250]), [250]);
    assert_eq!(run(&pool, Reduction::Sum, &[2], 1, &[i32::MAX, 1]), [i32::MIN]);
}

fn arg<T: estimand_tensor::Element>(extreme: Extreme, dims: [usize; 3], x: &[T]) -> Vec<i64> {
    let mut out = vec![-1i64; dims[0] * dims[2]];
    let mut narrow = vec![-1i32; out.len()];
    let pool = Pool::new(2);
    // SAFETY: the arrays have the sizes of the dims.
    unsafe {
        arg_extreme(&pool, extreme, T::DTYPE, dims, x.as_ptr().cast(), DType::I64, out.as_mut_ptr().cast()).unwrap();
        arg_extreme(&pool, extreme, T::DTYPE, dims, x.as_ptr().cast(), DType::I32, narrow.as_mut_ptr().cast()).unwrap();
    }
    assert!(out.iter().zip(&narrow).all(|(a, b)| *a == i64::from(*b)));
    out
}

/// Expectations from tf.argmax and tf.argmin of TensorFlow 2.15.1 on CPU.
#[test]
fn positions_of_extremes_as_tensorflow() {
    let nan = f32::NAN;
    assert_eq!(arg(Extreme::Max, [1, 4, 1], &[1.0, nan, 3.0, nan]), [2]);
    assert_eq!(arg(Extreme::Min, [1, 4, 1], &[1.0, nan, 3.0, nan]), [0]);
    assert_eq!(arg(Extreme::Max, [1, 3, 1], &[nan, 1.0, 2.0]), [2]);
    assert_eq!(arg(Extreme::Max, [1, 2, 1], &[nan, nan]), [0]);
    assert_eq!(arg(Extreme::Max, [1, 3, 1], &[1.0f32, 2.0, 2.0]), [1]);
    assert_eq!(arg(Extreme::Min, [1, 2, 1], &[-0.0f32, 0.0]), [0]);
    assert_eq!(arg(Extreme::Max, [2, 3, 1], &[nan, 1.0, 2.0, 1.0, nan, 3.0]), [2, 2]);
    assert_eq!(arg(Extreme::Max, [1, 2, 3], &[nan, 1.0, 2.0, 1.0, nan, 3.0]), [1, 0, 1]);
    let x: Vec<i64> = (0..40 * 50 * 30).map(|i| i * 7919 % 1009).collect();
    let got = arg(Extreme::Max, [40, 50, 30], &x);
    for o in 0..40 {
        for c in 0..30 {
            let column: Vec<i64> = (0..50).map(|r| x[(o * 50 + r) * 30 + c]).collect();
            let largest = column.iter().max().unwrap();
            assert_eq!(got[o * 30 + c] as usize, column.iter().position(|v| v == largest).unwrap());
        }
    }
}

#[test]
fn dtypes_without_the_reduction_are_an_error() {
    let mut out = [0u8; 8];
    // SAFETY: refused before anything is read.
    let refused =
        unsafe { reduce(&Pool::new(1), Reduction::Sum, DType::Bool, &[1], 1, out.as_ptr(), out.as_mut_ptr(), &mut []) };
    assert_eq!(refused.unwrap_err().message(), "Sum is not defined on bool");
}
