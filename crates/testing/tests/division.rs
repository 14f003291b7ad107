//! Division by zero, as TensorFlow 2.15.1 does it on a CPU: for int32 and int64 `tf.math.floordiv`
//! and `tf.math.floormod` raise InvalidArgumentError ("Integer division by zero"); for float32 and
//! the dividends 7, -7 and 0 they give [inf, -inf, nan] and [nan, nan, nan].

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Result};

/// The same from both executors.
fn run(g: &Graph, fetch: &Tensor, feeds: &[(&Tensor, Array)]) -> [Result<Array>; 2] {
    let one = |mut session: Session| session.run(&[fetch], feeds).map(|mut values| values.remove(0));
    [one(Session::with(g, Cpu::with_threads(2), 1).unwrap()), one(Session::with(g, Reference, 1).unwrap())]
}

fn expect_error(g: &Graph, fetch: &Tensor, feeds: &[(&Tensor, Array)], name: &str) {
    for result in run(g, fetch, feeds) {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("by zero") && error.contains(name) && error.contains("division.rs"), "{error}");
    }
}

#[test]
fn integers_divided_by_zero_are_an_error_that_names_the_op() {
    let g = Graph::new();
    let (x, y) = (g.placeholder("x", DType::I32, [3]), g.placeholder("y", DType::I32, [3]));
    let feeds = [(&x, Array::from([7, -7, 0])), (&y, Array::from([2, 0, 2]))];
    expect_error(&g, &x.floor_div(&y), &feeds, "`FloorDiv`");
    expect_error(&g, &x.floor_mod(&y), &feeds, "`FloorMod`");
    let wide = (x.cast(DType::I64), y.cast(DType::I64));
    expect_error(&g, &wide.0.floor_mod(&wide.1), &feeds, "`FloorMod_1`");
    expect_error(&g, &x.floor_mod(0), &feeds, "`FloorMod_2`");
}

#[test]
fn the_division_that_fails_is_named_within_a_fused_chain() {
    let g = Graph::new();
    let (x, y) = (g.placeholder("x", DType::I32, [3]), g.placeholder("y", DType::I32, [3]));
    // The first division is good, the divisor of the second is computed in the chain: 1 - y * y.
    let first = x.floor_div(&y);
    let second = first.floor_mod(&(g.constant(1) - &y * &y));
    let chain = &second + &x;
    let feeds = |last: i32| [(&x, Array::from([7, -7, 9])), (&y, Array::from([2, 3, last]))];
    expect_error(&g, &chain, &feeds(-1), "`FloorMod`");
    expect_error(&g, &chain, &feeds(0), "`FloorDiv`");
    // floor(7 / 2) = 3, 3 mod -3 = 0; floor(-7 / 3) = -3, -3 mod -8 = -3; floor(9 / 4) = 2, 2 mod
    // -15 = -13.
    for result in run(&g, &chain, &feeds(4)) {
        assert_eq!(result.unwrap(), Array::from([7, -10, -4]));
    }
}

#[test]
fn a_zero_far_behind_in_a_large_array_is_found_and_none_is_made_up() {
    let g = Graph::new();
    let (x, y) = (g.placeholder("x", DType::I64, [100_001]), g.placeholder("y", DType::I64, [100_001]));
    let rest = x.floor_mod(&y);
    let mut divisors = vec![3_i64; 100_001];
    // Sizes that fill no vector: what pads the last one is no divisor.
    let feeds = |y_values: &[i64]| [(&x, Array::from(vec![10_i64; 100_001])), (&y, Array::from(y_values.to_vec()))];
    for result in run(&g, &rest, &feeds(&divisors)) {
        assert!(result.unwrap().as_slice::<i64>().unwrap().iter().all(|&rest| rest == 1));
    }
    divisors[100_000] = 0;
    expect_error(&g, &rest, &feeds(&divisors), "`FloorMod`");
}

#[test]
fn floats_divided_by_zero_are_infinite_or_nan() {
    let g = Graph::new();
    let x = g.constant([7.0_f32, -7.0, 0.0]);
    for result in run(&g, &x.floor_div(0.0), &[]) {
        let values = result.unwrap().to_f64_vec().unwrap();
        assert!(values[..2] == [f64::INFINITY, f64::NEG_INFINITY] && values[2].is_nan(), "{values:?}");
    }
    for result in run(&g, &x.floor_mod(0.0), &[]) {
        let values = result.unwrap().to_f64_vec().unwrap();
        assert!(values.iter().all(|v| v.is_nan()), "{values:?}");
    }
}
