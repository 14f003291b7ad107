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
