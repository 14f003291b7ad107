//! Distinct values.

use estimand_engine::Session;
use estimand_graph::Graph;
use estimand_tensor::{Array, DType};

#[test]
fn in_order_of_first_appearance() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::I64, [Graph::ANY]);
    let words = g.placeholder("words", DType::Str, [Graph::ANY]);
    let (distinct, places) = x.unique();
    let (terms, _) = words.unique();
    // A result of unknown size is used like any other: 2 * [7, -1, 3].
    let doubled = distinct.cast(DType::F32) * 2.0;
    let mut session = Session::new(&g).unwrap();
    let feeds = [(&x, Array::from([7i64, -1, 7, 3, -1])), (&words, Array::from_strings([3], ["b", "", "b"]).unwrap())];
    let out = session.run(&[&distinct, &places, &doubled, &terms], &feeds).unwrap();
    assert_eq!(out[0].as_slice::<i64>().unwrap(), [7, -1, 3]);
    assert_eq!(out[1].as_slice::<i32>().unwrap(), [0, 1, 0, 2, 1]);
    assert_eq!(out[2].as_slice::<f32>().unwrap(), [14.0, -2.0, 6.0]);
    assert_eq!(out[3], Array::from_strings([2], ["b", ""]).unwrap());
}

/// `tf.unique` of TensorFlow 2.15: -0 is 0, and a NaN equals no other value.
#[test]
fn floats_are_compared_as_numbers() {
    let g = Graph::new();
    for dtype in [DType::F32, DType::F64] {
        let x = g.placeholder(&format!("x_{dtype}"), dtype, [Graph::ANY]);
        let (distinct, places) = x.unique();
        let list = Array::from([0.0f64, -0.0, -1.0, -0.0, f64::NAN, f64::NAN]).cast(dtype).unwrap();
        let out = Session::new(&g).unwrap().run(&[&distinct, &places], &[(&x, list)]).unwrap();
        let values = out[0].to_f64_vec().unwrap();
        assert_eq!(values[..2], [0.0, -1.0]);
        assert!(values.len() == 4 && values[2..].iter().all(|value| value.is_nan()), "{values:?}");
        assert_eq!(out[1].as_slice::<i32>().unwrap(), [0, 0, 1, 0, 2, 3]);
    }
}
