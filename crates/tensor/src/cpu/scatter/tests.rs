use super::*;
use crate::cpu::testing::{Dice, pools};

/// (ids, width, rows): sizes 0 and 1, many duplicates, and both cuts.
const SIZES: [(usize, usize, usize); 9] = [
    (0, 3, 4),
    (5, 0, 4),
    (1, 1, 1),
    (50, 1, 3),
    (200, 7, 30),
    (300, 33, 10),
    (5000, 40, 100),
    (5000, 200, 7),
    (40_000, 3, 500),
];

#[test]
fn scatter_add_sums_in_order_of_position() {
    let mut dice = Dice::new("scatter");
    for (n, width, rows) in SIZES {
        let ids: Vec<i64> = (0..n).map(|_| dice.below(rows) as i64).collect();
        let (x, start) = (dice.floats(n * width), dice.floats(rows * width));
        let mut expected = start.clone();
        for k in 0..n {
            for c in 0..width {
                expected[ids[k] as usize * width + c] += x[k * width + c];
            }
        }
        for pool in pools() {
            let mut out = start.clone();
            scatter_add(&pool, width, &ids, &x, &mut out).unwrap();
            assert!(out == expected, "{n} rows of {width} into {rows}");
        }
    }
    let mut out = [1.0f32; 4];
    let result = scatter_add(&pools()[0], 2, &[0, 2], &[1.0; 4], &mut out);
    assert_eq!(result, Err(BadIndex { position: 1, index: 2, limit: 2 }));
    assert_eq!(out, [1.0; 4]);
}

#[test]
fn scatter_nd_matches_naive_loops() {
    let mut dice = Dice::new("scatter_nd");
    for _ in 0..60 {
        let dims: Vec<usize> = (0..dice.below(4)).map(|_| 1 + dice.below(4)).collect();
        let (inner, n) = (dice.below(4), dice.below(50));
        let x = dice.floats(n * inner);
        let mut expected = vec![0.0; dims.iter().product::<usize>() * inner];
        let mut ids = vec![];
        for k in 0..n {
            let mut row = 0;
            for &len in &dims {
                let id = dice.below(len);
                ids.push(id as i32);
                row = row * len + id;
            }
            for c in 0..inner {
                expected[row * inner + c] += x[k * inner + c];
            }
        }
        for pool in pools() {
            let mut out = vec![9.0; expected.len()];
            scatter_nd(&pool, &dims, inner, &ids, &x, &mut out).unwrap();
            assert_eq!(out, expected);
        }
    }
    let result = scatter_nd(&pools()[0], &[2, 2], 1, &[0, 0, -1, 0], &[1, 1], &mut [0; 4]);
    assert_eq!(result, Err(BadIndex { position: 2, index: -1, limit: 2 }));
}

#[test]
fn unique_rows_keep_the_order_of_first_appearance() {
    let mut dice = Dice::new("unique");
    for (n, width, rows) in SIZES {
        // Ids far apart, including negative ones: the table must handle any id.
        let ids: Vec<i64> = (0..n).map(|_| (dice.below(rows) as i64 - 2).wrapping_mul(1 << 59 | 12_345)).collect();
        let x = dice.floats(n * width);
        let (mut seen, mut sums, mut places) = (vec![], vec![], vec![]);
        for k in 0..n {
            let values = &x[k * width..][..width];
            match seen.iter().position(|id| *id == ids[k]) {
                Some(place) => {
                    places.push(place as i32);
                    (0..width).for_each(|c| sums[place * width + c] += values[c]);
                }
                None => {
                    places.push(seen.len() as i32);
                    seen.push(ids[k]);
                    sums.extend_from_slice(values);
                }
            }
        }
        for pool in pools() {
            let (mut unique_ids, mut inverse, mut out) = (vec![0; n], vec![-1; n], vec![0.0; n * width]);
            let mut scratch = vec![3; unique_scratch_len(n)];
            let count = unique_rows(&pool, width, &ids, &x, &mut unique_ids, &mut inverse, &mut out, &mut scratch);
            assert_eq!(unique_ids[..count], seen);
            assert_eq!(inverse, places);
            assert!(out[..count * width] == sums, "{n} rows of {width}");
        }
    }
}
