use super::*;
use crate::cpu::testing::{Dice, pools};

const REDUCTIONS: [Reduction; 5] = [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod];

/// The definition, segment by segment; `None` where a segment is empty.
fn naive(reduction: Reduction, width: usize, ids: &[i64], x: &[f32], n: usize) -> Vec<Option<f32>> {
    let mut out = vec![];
    for segment in 0..n as i64 {
        let members: Vec<usize> = (0..ids.len()).filter(|&k| ids[k] == segment).collect();
        for column in 0..width {
            let values = members.iter().map(|k| x[k * width + column]);
            out.push(match reduction {
                Reduction::Sum => values.reduce(|a, b| a + b),
                Reduction::Mean => values.reduce(|a, b| a + b).map(|sum| sum / members.len() as f32),
                Reduction::Max => values.reduce(f32::max),
                Reduction::Min => values.reduce(f32::min),
                Reduction::Prod => values.reduce(|a, b| a * b),
            });
        }
    }
    out
}

#[test]
fn both_kinds_match_the_definition() {
    let mut dice = Dice::new("segment");
    for (n, width, limit) in [(0, 2, 3), (1, 1, 1), (20, 3, 8), (20, 0, 8), (3000, 40, 50), (3000, 1, 4000)] {
        let mut ids: Vec<i64> = (0..n).map(|_| dice.below(limit) as i64).collect();
        let x = dice.floats(n * width);
        for reduction in REDUCTIONS {
            for pool in pools() {
                let mut out = vec![9.0; limit * width];
                let mut scratch = vec![7; unsorted_segment_scratch_len(reduction, limit)];
                unsorted_segment(&pool, reduction, width, &ids, &x, &mut out, &mut scratch).unwrap();
                let empty = match reduction {
                    Reduction::Sum | Reduction::Mean => 0.0,
                    Reduction::Max => f32::MIN,
                    Reduction::Min => f32::MAX,
                    Reduction::Prod => 1.0,
                };
                let expected = naive(reduction, width, &ids, &x, limit);
                assert!(out.iter().zip(&expected).all(|(a, b)| *a == b.unwrap_or(empty)), "unsorted {reduction:?} {n}");

                let mut sorted = ids.clone();
                sorted.sort_unstable();
                segment(&pool, reduction, width, &sorted, &x, &mut out).unwrap();
                let empty = if reduction == Reduction::Prod { 1.0 } else { 0.0 };
                let expected = naive(reduction, width, &sorted, &x, limit);
                assert!(out.iter().zip(&expected).all(|(a, b)| *a == b.unwrap_or(empty)), "sorted {reduction:?} {n}");
            }
        }
        ids.push(limit as i64);
        let bad = BadIndex { position: n, index: limit as i64, limit };
        if width > 0 {
            let (x, mut out) = (vec![0.0f32; (n + 1) * width], vec![0.0; limit * width]);
            let result = unsorted_segment(&pools()[0], Reduction::Sum, width, &ids, &x, &mut out, &mut []);
            assert_eq!(result, Err(bad));
            ids.sort_unstable();
            let result = segment(&pools()[0], Reduction::Sum, width, &ids, &x, &mut out);
            assert_eq!(result, Err(BadSegment::OutOfRange(bad)));
        }
    }
}

#[test]
fn negative_ids_are_dropped_only_where_tensorflow_drops_them() {
    let pool = &pools()[0];
    let mut out = [9; 2];
    unsorted_segment(pool, Reduction::Sum, 1, &[1, -1, 1], &[1, 2, 4], &mut out, &mut []).unwrap();
    assert_eq!(out, [0, 5]);
    let result = segment(pool, Reduction::Sum, 1, &[-1, 1], &[1, 2], &mut out);
    assert_eq!(result, Err(BadSegment::OutOfRange(BadIndex { position: 0, index: -1, limit: 2 })));
    let result = segment(pool, Reduction::Sum, 1, &[1, 0], &[1, 2], &mut out).unwrap_err();
    assert_eq!(
        result.to_string(),
        "the segment ids are not sorted: the id at position 1 is smaller than the one before it"
    );
}

#[test]
fn integers_have_their_own_limits_and_nan_stays() {
    let pool = &pools()[0];
    let mut out = [9i64; 2];
    unsorted_segment(pool, Reduction::Max, 1, &[1], &[5], &mut out, &mut []).unwrap();
    assert_eq!(out, [i64::MIN, 5]);
    unsorted_segment(pool, Reduction::Min, 1, &[1], &[5], &mut out, &mut []).unwrap();
    assert_eq!(out, [i64::MAX, 5]);
    for values in [[f32::NAN, 1.0, 3.0], [1.0, f32::NAN, 3.0], [1.0, 3.0, f32::NAN]] {
        for reduction in [Reduction::Max, Reduction::Min] {
            let mut out = [0.0];
            segment(pool, reduction, 1, &[0, 0, 0], &values, &mut out).unwrap();
            assert!(out[0].is_nan());
        }
    }
}
