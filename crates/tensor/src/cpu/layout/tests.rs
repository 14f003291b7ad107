//! Compares the kernels with naive loops over coordinates, on random dims that include 0 and 1, for
//! every element size.

use super::*;
use crate::cpu::testing::{Dice, coordinates, pools, row_major};

/// Distinct-looking bytes for `n` elements.
fn bytes(n: usize, elem_size: usize, dice: &mut Dice) -> Vec<u8> {
    dice.floats(n * elem_size).into_iter().map(|v| (v * 128.0) as i8 as u8).collect()
}

/// Compares a kernel with `source(coordinates) = Some(coordinates in x)`; `None` means `filler`.
fn check(
    case: &str,
    (dims, out_dims): (&[usize], &[usize]),
    elem_size: usize,
    x: &[u8],
    filler: &[u8],
    source: impl Fn(&[usize]) -> Option<Vec<usize>>,
    kernel: impl Fn(&Pool, &mut [u8]),
) {
    let n: usize = out_dims.iter().product();
    let mut expected = vec![0; n * elem_size];
    for (i, value) in expected.chunks_exact_mut(elem_size).enumerate() {
        value.copy_from_slice(match source(&coordinates(out_dims, i)) {
            Some(at) => &x[row_major(dims, &at) * elem_size..][..elem_size],
            None => filler,
        });
    }
    for pool in pools() {
        let mut out = vec![0xaa; n * elem_size];
        kernel(&pool, &mut out);
        assert!(out == expected, "{case} {dims:?} -> {out_dims:?}, {elem_size} bytes");
    }
}

/// Runs `case` over random dims, some of them large enough for several tasks.
fn over_dims(name: &str, case: impl Fn(&mut Dice, &[usize], usize)) {
    let mut dice = Dice::new(name);
    for elem_size in [1, 4, 8] {
        for round in 0..40 {
            let rank = dice.below(5);
            let dims: Vec<usize> = (0..rank).map(|_| if round < 5 { dice.below(3) } else { dice.below(9) }).collect();
            case(&mut dice, &dims, elem_size);
        }
        for dims in [&[70, 33, 50][..], &[300, 200], &[40_000], &[3, 17, 19, 40]] {
            case(&mut dice, dims, elem_size);
        }
    }
}

#[test]
fn transpose_matches() {
    over_dims("transpose", |dice, dims, size| {
        let mut perm: Vec<usize> = (0..dims.len()).collect();
        for last in (1..perm.len()).rev() {
            perm.swap(last, dice.below(last + 1));
        }
        let out_dims: Vec<usize> = perm.iter().map(|&k| dims[k]).collect();
        let x = bytes(dims.iter().product(), size, dice);
        let source = |at: &[usize]| {
            let mut from = vec![0; at.len()];
            perm.iter().zip(at).for_each(|(&k, &i)| from[k] = i);
            Some(from)
        };
        let kernel = |pool: &Pool, out: &mut [u8]| transpose(pool, dims, &perm, size, &x, out);
        check(&format!("transpose by {perm:?}"), (dims, &out_dims), size, &x, &[], source, kernel);
    });
}

/// A row of the output longer than a task, on either side of a square.
#[test]
fn long_thin_arrays_transpose() {
    let mut dice = Dice::new("thin");
    for dims in [[140_000, 5], [5, 140_000], [140_000, 2], [1, 140_000]] {
        for size in [1, 4, 8] {
            let x = bytes(dims[0] * dims[1], size, &mut dice);
            let kernel = |pool: &Pool, out: &mut [u8]| transpose(pool, &dims, &[1, 0], size, &x, out);
            check("thin", (&dims, &[dims[1], dims[0]]), size, &x, &[], |at| Some(vec![at[1], at[0]]), kernel);
        }
    }
}

#[test]
fn slices_and_their_gradients_match() {
    over_dims("slice", |dice, dims, size| {
        let x = bytes(dims.iter().product(), size, dice);
        let (mut begin, mut strides, mut count) = (vec![], vec![], vec![]);
        for &len in dims {
            let end = (dice.below(2 * len + 5) as i64) - len as i64 - 2;
            let start = (dice.below(2 * len + 5) as i64) - len as i64 - 2;
            let stride = [1, 1, 2, 3, -1, -2][dice.below(6)];
            let whole = dice.below(3) == 0;
            let (first, n) = resolve_range((!whole).then_some(start), (!whole).then_some(end), stride, len);
            begin.push(first);
            strides.push(stride as isize);
            count.push(n);
        }
        let place = |at: &[usize]| -> Vec<usize> {
            (0..at.len()).map(|k| (begin[k] as isize + at[k] as isize * strides[k]) as usize).collect()
        };
        let kernel = |pool: &Pool, out: &mut [u8]| strided_slice(pool, dims, &begin, &strides, &count, size, &x, out);
        let case = format!("slice from {begin:?} by {strides:?}");
        check(&case, (dims, &count), size, &x, &[], |at| Some(place(at)), kernel);

        let n = count.iter().product();
        let dy = bytes(n, size, dice);
        let source = |at: &[usize]| (0..n).map(|i| coordinates(&count, i)).find(|from| place(from) == at);
        if dims.iter().product::<usize>() < 500 {
            let kernel =
                |pool: &Pool, out: &mut [u8]| strided_slice_grad(pool, dims, &begin, &strides, &count, size, &dy, out);
            check(&format!("gradient of {case}"), (&count, dims), size, &dy, &[0; 8][..size], source, kernel);
        }
    });
}

#[test]
fn plain_slice_matches() {
    over_dims("plain slice", |dice, dims, size| {
        let x = bytes(dims.iter().product(), size, dice);
        let begin: Vec<usize> = dims.iter().map(|&len| dice.below(len + 1)).collect();
        let count: Vec<usize> = dims.iter().zip(&begin).map(|(&len, &first)| dice.below(len - first + 1)).collect();
        let source = |at: &[usize]| Some(at.iter().zip(&begin).map(|(i, first)| i + first).collect());
        let kernel = |pool: &Pool, out: &mut [u8]| slice(pool, dims, &begin, &count, size, &x, out);
        check("slice", (dims, &count), size, &x, &[], source, kernel);
    });
}

#[test]
fn reverse_broadcast_and_tile_match() {
    over_dims("repeat", |dice, dims, size| {
        let x = bytes(dims.iter().product(), size, dice);
        let axes: Vec<usize> = (0..dims.len()).filter(|_| dice.below(2) == 0).collect();
        let source = |at: &[usize]| {
            Some((0..at.len()).map(|k| if axes.contains(&k) { dims[k] - 1 - at[k] } else { at[k] }).collect())
        };
        let kernel = |pool: &Pool, out: &mut [u8]| reverse(pool, dims, &axes, size, &x, out);
        check(&format!("reverse {axes:?}"), (dims, dims), size, &x, &[], source, kernel);

        let multiples: Vec<usize> = dims.iter().map(|_| dice.below(4)).collect();
        let tiled: Vec<usize> = dims.iter().zip(&multiples).map(|(d, m)| d * m).collect();
        let source = |at: &[usize]| Some(at.iter().zip(dims).map(|(i, d)| i % d).collect());
        let kernel = |pool: &Pool, out: &mut [u8]| tile(pool, dims, &multiples, size, &x, out);
        check("tile", (dims, &tiled), size, &x, &[], source, kernel);

        let narrow: Vec<usize> = dims.iter().map(|&d| if dice.below(2) == 0 { 1 } else { d }).collect();
        let mut wide = vec![2; dice.below(3)];
        let new = wide.len();
        wide.extend(dims);
        let x = bytes(narrow.iter().product(), size, dice);
        let source = |at: &[usize]| Some(at[new..].iter().zip(&narrow).map(|(&i, &d)| i.min(d - 1)).collect());
        let kernel = |pool: &Pool, out: &mut [u8]| broadcast_to(pool, &narrow, &wide, size, &x, out);
        check("broadcast", (&narrow, &wide), size, &x, &[], source, kernel);
    });
}

#[test]
fn pads_match() {
    over_dims("pad", |dice, dims, size| {
        let x = bytes(dims.iter().product(), size, dice);
        let value = bytes(1, size, dice);
        let mut random = |limits: &[usize]| -> Vec<(usize, usize)> {
            limits.iter().map(|&n| if dice.below(3) == 0 { (0, 0) } else { (dice.below(n), dice.below(n)) }).collect()
        };
        let grown = |paddings: &[(usize, usize)]| -> Vec<usize> {
            dims.iter().zip(paddings).map(|(d, (before, after))| before + d + after).collect()
        };
        let paddings = random(&vec![4; dims.len()]);
        let source = |at: &[usize]| {
            (0..at.len()).map(|k| at[k].checked_sub(paddings[k].0).filter(|&i| i < dims[k])).collect::<Option<_>>()
        };
        let kernel = |pool: &Pool, out: &mut [u8]| pad(pool, dims, &paddings, &value, &x, out);
        check(&format!("pad {paddings:?}"), (dims, &grown(&paddings)), size, &x, &value, source, kernel);

        for mode in [Mirror::Reflect, Mirror::Symmetric] {
            let longest = |&d: &usize| if mode == Mirror::Reflect { d.max(1) } else { d + 1 };
            let paddings = random(&dims.iter().map(longest).collect::<Vec<_>>());
            // The positions of x, read forwards and backwards repeatedly, form a periodic wave.
            let source = |at: &[usize]| {
                let mirrored = (0..at.len()).map(|k| {
                    let period = if mode == Mirror::Symmetric { 2 * dims[k] } else { (2 * dims[k]).max(3) - 2 };
                    let from = (at[k] + 2 * period - paddings[k].0) % period;
                    if from < dims[k] { from } else { period - from - usize::from(mode == Mirror::Symmetric) }
                });
                Some(mirrored.collect())
            };
            let kernel = |pool: &Pool, out: &mut [u8]| mirror_pad(pool, dims, &paddings, mode, size, &x, out);
            check(&format!("{mode:?} {paddings:?}"), (dims, &grown(&paddings)), size, &x, &[], source, kernel);
        }
    });
}

#[test]
fn concat_matches() {
    let mut dice = Dice::new("concat");
    for round in 0..60 {
        let outer = [1, 1, 2, 7, 100, 0][round % 6];
        let widths: Vec<usize> = (0..1 + dice.below(5)).map(|_| dice.below([10, 5000][round % 2])).collect();
        let inputs: Vec<Vec<u8>> = widths.iter().map(|&w| bytes(outer * w, 1, &mut dice)).collect();
        let mut expected = vec![];
        for row in 0..outer {
            inputs.iter().zip(&widths).for_each(|(input, &w)| expected.extend(&input[row * w..][..w]));
        }
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        for pool in pools() {
            let mut out = vec![0; expected.len()];
            concat(&pool, outer, &inputs, &mut out);
            assert!(out == expected, "{outer} rows of {widths:?}");
        }
    }
    concat(&pools()[0], 1, &[&vec![1; 500_000], &[2]], &mut vec![0; 500_001]);
}

#[test]
fn one_hot_matches() {
    let mut dice = Dice::new("one_hot");
    for dims in [[1, 1, 1], [5, 3, 1], [4, 6, 3], [0, 3, 1], [2, 0, 2], [2, 3, 0], [3000, 40, 1]] {
        let [prefix, depth, suffix] = dims;
        let ids: Vec<i64> = (0..prefix * suffix).map(|_| dice.below(depth + 4) as i64 - 2).collect();
        for pool in pools() {
            let mut out = vec![0u8; prefix * depth * suffix * 4];
            one_hot(&pool, dims, &ids, &1.5f32.to_le_bytes(), &(-2.0f32).to_le_bytes(), &mut out);
            for (i, value) in out.as_chunks().0.iter().enumerate() {
                let (p, d, s) = (i / (depth * suffix), i / suffix % depth, i % suffix);
                let on = ids[p * suffix + s] == d as i64;
                assert_eq!(f32::from_le_bytes(*value), if on { 1.5 } else { -2.0 }, "{dims:?} at {i}");
            }
        }
    }
}

/// The float values are those of `tf.range(0.5, 1.0, 0.1)` in TensorFlow 2.15.1.
#[test]
fn ranges_and_fills() {
    let mut ints = [0i64; 5];
    range(10, -3, &mut ints);
    assert_eq!(ints, [10, 7, 4, 1, -2]);
    let mut floats = [0f32; 5];
    range(0.5, 0.1, &mut floats);
    assert_eq!(floats, [0.5, 0.6, 0.7, 0.8, 0.9]);
    for (pool, value) in pools().iter().zip([&[7][..], &[1, 2, 3, 4]]) {
        let mut out = vec![0; value.len() * 100_000];
        fill(pool, value, &mut out);
        assert!(out.chunks(value.len()).all(|v| v == value));
    }
}
