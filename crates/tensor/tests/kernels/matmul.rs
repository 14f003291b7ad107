use estimand_tensor::cpu::matmul::{
    Epilogue, Only, PackedShape, Pieces, Product, batched_matmul, matmul, matmul_of, matmul_packed,
};
use estimand_tensor::parallel::Pool;

use crate::numbers::{assert_close, assert_same_bits, on_every_machine, random};

/// Element (i, kk) of A and (kk, j) of B.
fn elements<'a>(p: &'a Product, a: &'a [f32], b: &'a [f32]) -> impl Fn(usize, usize, usize) -> (f32, f32) + 'a {
    move |i, j, kk| {
        let a = if p.transpose_a { a[kk * p.m + i] } else { a[i * p.k + kk] };
        let b = if p.transpose_b { b[j * p.k + kk] } else { b[kk * p.n + j] };
        (a, b)
    }
}

/// The law of the tile kernels: chains over 256 k begun at zero, added in order.
fn chain(p: &Product, a: &[f32], b: &[f32]) -> Vec<f32> {
    let at = elements(p, a, b);
    let element = |i: usize, j: usize| {
        let block = |first: usize| {
            (first..p.k.min(first + 256)).map(|kk| at(i, j, kk)).fold(0.0_f32, |sum, (a, b)| a.mul_add(b, sum))
        };
        (0..p.k).step_by(256).map(block).reduce(|c, block| c + block).unwrap_or(0.0)
    };
    (0..p.m * p.n).map(|c| element(c / p.n, c % p.n)).collect()
}

/// The law of one column: 16 lanes, zeros behind the end, then halves added.
fn lanes(p: &Product, a: &[f32], b: &[f32]) -> Vec<f32> {
    let at = elements(p, a, b);
    let row = |i: usize| {
        let mut lane = [0.0_f32; 16];
        for kk in 0..p.k.next_multiple_of(16) {
            let (a, b) = if kk < p.k { at(i, 0, kk) } else { (0.0, 0.0) };
            lane[kk % 16] = a.mul_add(b, lane[kk % 16]);
        }
        for half in [8, 4, 2, 1] {
            for j in 0..half {
                lane[j] += lane[j + half];
            }
        }
        lane[0]
    };
    (0..p.m).map(row).collect()
}

fn law(p: &Product, a: &[f32], b: &[f32]) -> Vec<f32> {
    if p.n == 1 && !p.transpose_a { lanes(p, a, b) } else { chain(p, a, b) }
}

fn product(pool: &Pool, p: &Product, a: &[f32], b: &[f32], epilogue: Epilogue) -> Vec<f32> {
    // What the outputs hold before must not matter.
    let (mut c, mut scratch) = (vec![f32::NAN; p.m * p.n], vec![f32::NAN; p.scratch_len()]);
    matmul(pool, p, a, b, &mut c, epilogue, &mut scratch);
    c
}

const LAYOUTS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

/// Every element is the naive loop's, bit for bit, with every layout, instruction set and number of
/// threads.
#[test]
fn every_bit_is_that_of_the_law() {
    let sizes = [
        (1, 1, 1),
        (1, 1, 300),
        (5, 1, 17),
        (1, 7, 5),
        (3, 16, 1),
        (2, 100, 64),
        (4, 130, 33),
        (13, 5, 9),
        (32, 10, 10),
        (25, 33, 257),
        (24, 48, 300),
        (7, 80, 513),
        (100, 65, 31),
        (130, 50, 260),
        (1, 300, 90),
        (64, 1, 48),
    ];
    for (m, n, k) in sizes {
        for (transpose_a, transpose_b) in LAYOUTS {
            let p = Product { m, n, k, transpose_a, transpose_b };
            let (a, b) = (random(m * k, 1), random(k * n, 2));
            let got = on_every_machine(&format!("{p:?}"), |pool| product(pool, &p, &a, &b, Epilogue::default()));
            assert_same_bits(&got, &law(&p, &a, &b), &format!("{p:?}"));
        }
    }
}

/// The same for sizes that are cut into tasks, that copy blocks of A, and that pack B.
#[test]
fn large_products_obey_the_law_too() {
    let sizes = [
        (130, 300, 70, false),
        (1030, 260, 20, true),
        (100, 260, 1024, false),
        (6, 700, 600, false),
        (3, 1040, 700, true),
    ];
    for (m, n, k, transpose_a) in sizes {
        let p = Product { m, n, k, transpose_a, transpose_b: false };
        let (a, b) = (random(m * k, 3), random(k * n, 4));
        let want = law(&p, &a, &b);
        for n_threads in [1, 2, 3, 8] {
            assert_same_bits(
                &product(&Pool::new(n_threads), &p, &a, &b, Epilogue::default()),
                &want,
                &format!("{p:?}"),
            );
        }
    }
}

#[test]
fn products_are_close_to_f64() {
    for (transpose_a, transpose_b) in LAYOUTS {
        let p = Product { m: 37, n: 41, k: 600, transpose_a, transpose_b };
        let (a, b) = (random(p.m * p.k, 5), random(p.k * p.n, 6));
        let at = elements(&p, &a, &b);
        let element =
            |c: usize| (0..p.k).map(|kk| at(c / p.n, c % p.n, kk)).map(|(a, b)| f64::from(a) * f64::from(b)).sum();
        let want: Vec<f64> = (0..p.m * p.n).map(element).collect();
        assert_close(&product(Pool::global(), &p, &a, &b, Epilogue::default()), &want, 1.0, &format!("{p:?}"));
    }
}

/// A row alone, in a batch of 7 and in one of 128 has the same bits.
#[test]
fn a_row_does_not_feel_its_batch() {
    for (n, k) in [(1, 50), (10, 256), (16, 20), (100, 69), (256, 640), (1000, 300)] {
        let (a, b) = (random(128 * k, 7), random(k * n, 8));
        let bias = random(n, 9);
        let epilogue = Epilogue { bias: Some(&bias), relu: true, ..Epilogue::default() };
        let rows = |m: usize, first: usize| {
            product(Pool::global(), &Product::new(m, n, k), &a[first * k..(first + m) * k], &b, epilogue)
        };
        let all = rows(128, 0);
        for batch in [1, 7] {
            for first in (0..=128 - batch).step_by(batch) {
                let want = &all[first * n..(first + batch) * n];
                assert_same_bits(&rows(batch, first), want, &format!("rows {first}+{batch} of 128x{k}x{n}"));
            }
        }
    }
}

#[test]
fn the_epilogue_is_applied_once_at_the_end() {
    for (m, n, k) in [(30, 20, 600), (3, 17, 0), (9, 1, 40), (9, 1, 0), (200, 96, 700), (2, 1, 300)] {
        for transpose_a in [false, true] {
            let p = Product { m, n, k, transpose_a, transpose_b: false };
            let (a, b, bias) = (random(m * k, 10), random(k * n, 11), random(n, 12));
            let plain = law(&p, &a, &b);
            for (with_bias, relu) in [(true, false), (false, true), (true, true)] {
                let finish = |(i, &x): (usize, &f32)| {
                    let x = if with_bias { x + bias[i % n] } else { x };
                    if relu && x < 0.0 { 0.0 } else { x }
                };
                let want: Vec<f32> = plain.iter().enumerate().map(finish).collect();
                let epilogue = Epilogue { bias: with_bias.then_some(&bias[..]), relu, ..Epilogue::default() };
                let what = format!("{p:?}, bias {with_bias}, relu {relu}");
                let got = on_every_machine(&what, |pool| product(pool, &p, &a, &b, epilogue));
                assert_same_bits(&got, &want, &what);
            }
        }
    }
}

#[test]
fn relu_keeps_nan() {
    let epilogue = Epilogue { bias: None, relu: true, ..Epilogue::default() };
    for n in [1, 2] {
        let got = on_every_machine("relu of NaN", |pool| {
            product(pool, &Product::new(1, n, 1), &[f32::NAN], &vec![1.0; n], epilogue)
        });
        assert!(got.iter().all(|x| x.is_nan()));
    }
}

#[test]
fn empty_sizes() {
    for (transpose_a, transpose_b) in LAYOUTS {
        for (m, n, k) in [(0, 3, 2), (3, 0, 2), (0, 0, 0), (2, 3, 0), (2, 1, 0), (1, 0, 0), (0, 1, 4)] {
            let p = Product { m, n, k, transpose_a, transpose_b };
            let (a, b) = (vec![1.0; m * k], vec![1.0; k * n]);
            assert_eq!(product(Pool::global(), &p, &a, &b, Epilogue::default()), vec![0.0; m * n], "{p:?}");
        }
    }
}

#[test]
fn packed_weights_give_the_same_bits() {
    for (m, n, k) in [(1, 10, 300), (5, 40, 20), (33, 80, 270), (100, 300, 64), (3, 17, 0), (4, 0, 3), (7, 1, 30)] {
        for (transpose_a, transpose_b) in LAYOUTS {
            let p = Product { m, n, k, transpose_a, transpose_b };
            let (a, b) = (random(m * k, 13), random(k * n, 14));
            let got = on_every_machine(&format!("packed {p:?}"), |pool| {
                let shape = PackedShape { k, n };
                let (mut packed, mut c) = (vec![f32::NAN; shape.packed_len()], vec![f32::NAN; m * n]);
                shape.pack(pool, &b, transpose_b, &mut packed);
                matmul_packed(pool, m, transpose_a, &a, shape, &packed, &mut c, Epilogue::default());
                c
            });
            assert_same_bits(&got, &chain(&p, &a, &b), &format!("packed {p:?}"));
        }
    }
}

/// The number of rows that count in pieces of `step` rows: all, none and some of them.
fn ends(n_pieces: usize, step: usize) -> Vec<u32> {
    let mut before = 0;
    let lens = [step, 0, step.div_ceil(2), 1.min(step), step, 0, step.saturating_sub(1)];
    (0..n_pieces)
        .map(|i| {
            before += lens[i % lens.len()] as u32;
            before
        })
        .collect()
}

/// The rows that count in each piece.
fn counts(ends: &[u32], step: usize) -> impl Fn(usize) -> bool {
    move |row| {
        let before = if row < step { 0 } else { ends[row / step - 1] };
        row % step < (ends[row / step] - before) as usize
    }
}

/// Rows that are left out are 0, and the others have the bits of the whole product.
#[test]
fn rows_that_are_left_out_are_zero() {
    for (n_pieces, step, n, k) in [
        (3, 5, 20, 17),
        (64, 50, 40, 64),
        (9, 33, 512, 64),
        (30, 40, 64, 300),
        (2, 300, 33, 1024),
        (7, 3, 1, 9),
        (0, 4, 3, 2),
    ] {
        let (m, ends) = (n_pieces * step, ends(n_pieces, step));
        let counts = counts(&ends, step);
        for (transpose_a, transpose_b) in LAYOUTS {
            let p = Product { m, n, k, transpose_a, transpose_b };
            let (a, b, bias) = (random(m * k, 21), random(k * n, 22), random(n, 23));
            let mut want = law(&p, &a, &b);
            for (i, row) in want.chunks_exact_mut(n).enumerate() {
                for (x, bias) in row.iter_mut().zip(&bias) {
                    *x = if counts(i) { *x + bias } else { 0.0 };
                }
            }
            let got = on_every_machine(&format!("rows of {p:?}"), |pool| {
                let (mut c, mut scratch) = (vec![f32::NAN; m * n], vec![f32::NAN; p.scratch_len()]);
                let (only, epilogue) =
                    (Only::Rows(Pieces { ends: &ends, step }), Epilogue { bias: Some(&bias), ..Epilogue::default() });
                matmul_of(pool, &p, only, &a, &b, &mut c, epilogue, &mut scratch);
                c
            });
            assert_same_bits(&got, &want, &format!("rows of {p:?}"));
        }
    }
}

/// Terms that are 0 may be left out: no bit changes.
#[test]
fn terms_that_are_left_out_add_nothing() {
    for (n_pieces, step, m, n) in [
        (3, 5, 20, 17),
        (64, 50, 64, 512),
        (7, 300, 40, 33),
        (11, 100, 1100, 70),
        (9, 33, 5, 16),
        (5, 7, 9, 1),
        (0, 4, 3, 2),
    ] {
        let (k, ends) = (n_pieces * step, ends(n_pieces, step));
        let counts = counts(&ends, step);
        for (transpose_a, transpose_b) in LAYOUTS {
            let p = Product { m, n, k, transpose_a, transpose_b };
            let (a, mut b) = (random(m * k, 24), random(k * n, 25));
            for (i, x) in b.iter_mut().enumerate() {
                let term = if transpose_b { i % k } else { i / n };
                *x = if counts(term) { *x } else { 0.0 };
            }
            let got = on_every_machine(&format!("terms of {p:?}"), |pool| {
                let (mut c, mut scratch) = (vec![f32::NAN; m * n], vec![f32::NAN; p.scratch_len()]);
                let only = Only::Terms(Pieces { ends: &ends, step });
                matmul_of(pool, &p, only, &a, &b, &mut c, Epilogue::default(), &mut scratch);
                c
            });
            assert_same_bits(&got, &law(&p, &a, &b), &format!("terms of {p:?}"));
        }
    }
}

#[test]
fn a_batch_of_products_is_its_products() {
    for (batch, m, n, k) in [(0, 2, 3, 4), (1, 2, 3, 4), (9, 5, 40, 20), (3, 64, 130, 140), (200, 8, 16, 64)] {
        for (transpose_a, transpose_b) in LAYOUTS {
            let p = Product { m, n, k, transpose_a, transpose_b };
            let (a, b) = (random(batch * m * k, 15), random(batch * k * n, 16));
            let mut c = vec![f32::NAN; batch * m * n];
            batched_matmul(&Pool::new(3), batch, &p, &a, &b, &mut c, &mut vec![0.0; batch * p.scratch_len()]);
            for i in 0..batch {
                let (a, b) = (&a[i * m * k..(i + 1) * m * k], &b[i * k * n..(i + 1) * k * n]);
                assert_same_bits(&c[i * m * n..(i + 1) * m * n], &law(&p, a, b), &format!("{i} of {batch} {p:?}"));
            }
        }
    }
}
