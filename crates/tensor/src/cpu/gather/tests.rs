use super::*;
use crate::cpu::testing::{Dice, as_bytes, pools};

#[test]
fn gather_matches_naive_loops() {
    let mut dice = Dice::new("gather");
    let sizes = [0, 1, 1, 2, 3, 5];
    for round in 0..150 {
        let mut size = || sizes[dice.below(sizes.len())];
        let mut dims = GatherDims { batch: size(), outer: size(), limit: size().max(1), n_ids: size(), inner: size() };
        if round % 10 == 0 {
            dims = GatherDims { batch: 1, outer: 1, limit: 9000, n_ids: 3000, inner: 17 + round };
        }
        let x = dice.floats(dims.batch * dims.outer * dims.limit * dims.inner);
        let ids: Vec<i32> = (0..dims.batch * dims.n_ids).map(|_| dice.below(dims.limit) as i32).collect();
        let mut expected = vec![];
        for b in 0..dims.batch {
            for o in 0..dims.outer {
                for k in 0..dims.n_ids {
                    let row = (b * dims.outer + o) * dims.limit + ids[b * dims.n_ids + k] as usize;
                    expected.extend(&x[row * dims.inner..][..dims.inner]);
                }
            }
        }
        for pool in pools() {
            let mut out = vec![0; expected.len() * 4];
            gather(&pool, dims, 4, &as_bytes(&x), &ids, &mut out).unwrap();
            assert!(out == as_bytes(&expected), "{dims:?}");
        }
    }
}

#[test]
fn a_bad_id_is_an_error_and_nothing_is_written() {
    let dims = GatherDims { batch: 1, outer: 1, limit: 5, n_ids: 2000, inner: 2 };
    for (position, index) in [(0, 5), (1500, -1), (1999, i64::MAX), (3, i64::MIN)] {
        let mut ids = vec![4i64; 2000];
        ids[position] = index;
        let mut out = vec![9; 2000 * 8];
        let result = gather(&pools()[1], dims, 4, &[0; 40], &ids, &mut out);
        assert_eq!(result, Err(BadIndex { position, index, limit: 5 }));
        assert!(out.iter().all(|&b| b == 9));
    }
    let empty = GatherDims { batch: 1, outer: 1, limit: 0, n_ids: 1, inner: 1 };
    let error = gather(&pools()[0], empty, 4, &[], &[0i32], &mut [0; 4]).unwrap_err();
    assert_eq!(error.to_string(), "index 0 at position 0 is not in [0, 0)");
}

#[test]
fn gather_nd_matches_naive_loops() {
    let mut dice = Dice::new("gather_nd");
    for _ in 0..60 {
        let dims: Vec<usize> = (0..dice.below(4)).map(|_| 1 + dice.below(4)).collect();
        let (inner, n) = (dice.below(4), dice.below(50));
        let x = dice.floats(dims.iter().product::<usize>() * inner);
        let (mut ids, mut expected) = (vec![], vec![]);
        for _ in 0..n {
            let mut row = 0;
            for &len in &dims {
                let id = dice.below(len);
                ids.push(id as i64);
                row = row * len + id;
            }
            expected.extend(&x[row * inner..][..inner]);
        }
        for pool in pools() {
            let mut out = vec![0; expected.len() * 4];
            gather_nd(&pool, &dims, inner, 4, &as_bytes(&x), &ids, &mut out).unwrap();
            assert_eq!(out, as_bytes(&expected));
        }
    }
    let result = gather_nd(&pools()[0], &[2, 3], 1, 1, &[0; 6], &[1, 2, 1, 3], &mut [0; 2]);
    assert_eq!(result, Err(BadIndex { position: 3, index: 3, limit: 3 }));
}
