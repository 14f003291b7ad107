use super::*;
use crate::cpu::testing::{Dice, pools};
use std::cmp::Ordering;

#[test]
fn top_k_matches_a_stable_sort() {
    let mut dice = Dice::new("top_k");
    for (rows, n) in [(0, 3), (1, 1), (4, 2), (7, 9), (3, 100), (500, 200), (2, 70_000)] {
        // A few distinct values make ties; some are NaN.
        let x: Vec<f32> = (0..rows * n)
            .map(|_| match dice.below(20) {
                0 => f32::NAN,
                v => v as f32 - 10.0,
            })
            .collect();
        for k in [0, 1, n / 3, n.min(50), n] {
            let (mut expected, mut expected_indices) = (vec![], vec![]);
            for row in x.chunks(n) {
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| match (row[a].is_nan(), row[b].is_nan()) {
                    (false, false) => row[b].partial_cmp(&row[a]).unwrap_or(Ordering::Equal),
                    (a, b) => a.cmp(&b),
                });
                expected.extend(order[..k].iter().map(|&i| row[i]));
                expected_indices.extend(order[..k].iter().map(|&i| i as i32));
            }
            for pool in pools() {
                let (mut values, mut indices) = (vec![0.0; rows * k], vec![-1; rows * k]);
                top_k(&pool, n, k, &x, &mut values, &mut indices);
                assert!(indices == expected_indices, "{rows} rows, {k} of {n}");
                assert!(values.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}
