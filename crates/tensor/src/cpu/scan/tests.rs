use super::*;
use crate::cpu::testing::{Dice, pools};

#[test]
fn running_totals_match_naive_loops() {
    let mut dice = Dice::new("scan");
    for dims in [[1, 1, 1], [0, 3, 2], [2, 0, 2], [2, 3, 0], [3, 4, 1], [2, 5, 3], [1, 7, 4], [300, 50, 9]] {
        let [outer, n, inner] = dims;
        let x = dice.floats(outer * n * inner);
        for running in [Running::Sum, Running::Prod] {
            for direction in [(false, false), (true, false), (false, true), (true, true)]
                .map(|(e, r)| Direction { exclusive: e, reverse: r })
            {
                let mut expected = vec![0.0; x.len()];
                for o in 0..outer {
                    for c in 0..inner {
                        let mut total = if running == Running::Sum { 0.0 } else { 1.0 };
                        for step in 0..n {
                            let i = (o * n + if direction.reverse { n - 1 - step } else { step }) * inner + c;
                            let next = if running == Running::Sum { total + x[i] } else { total * x[i] };
                            expected[i] = if direction.exclusive { total } else { next };
                            total = next;
                        }
                    }
                }
                for pool in pools() {
                    let mut out = vec![9.0; x.len()];
                    cumulative(&pool, running, direction, dims, &x, &mut out);
                    assert!(out == expected, "{running:?} {direction:?} {dims:?}");
                }
            }
        }
    }
    let mut out = [0i32; 3];
    cumulative(&pools()[0], Running::Sum, Direction::default(), [1, 3, 1], &[i32::MAX, 1, 5], &mut out);
    assert_eq!(out, [i32::MAX, i32::MIN, i32::MIN + 5]);
}
