//! Ops over strings.

use estimand_engine::Session;
use estimand_graph::Graph;
use estimand_tensor::{Array, DType, Dim};

#[test]
fn hashes_of_cases_1_to_11() {
    let g = Graph::new();
    let words = g.placeholder("words", DType::Str, [Dim::BATCH]);
    let ids = g.placeholder("ids", DType::I32, [Dim::BATCH]);
    let fetches = [words.hash_bucket(1000), ids.hash_bucket(1000), ids.cast(DType::I64).hash_bucket(1000)];
    let feeds = [
        (&words, Array::from_strings([5], ["hello", "", "café", "Hello", "wire"]).unwrap()),
        (&ids, Array::from([0i32, 1, 123, 1000, -2])),
    ];
    let out = Session::new(&g).unwrap().run(&fetches.each_ref(), &feeds).unwrap();
    assert_eq!(out[0].as_slice::<i64>().unwrap(), [296, 263, 587, 151, 864]);
    assert_eq!(out[1].as_slice::<i64>().unwrap(), [735, 849, 931, 593, 205]);
    assert_eq!(out[1], out[2]);
    words.hash_bucket(0);
    let error = g.check().unwrap_err().to_string();
    assert!(error.contains("the number of hash buckets is 0; expected at least 1"), "{error}");
}

#[test]
fn strings_are_broadcast_as_numbers_are() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::Str, [Dim::BATCH, 2.into()]);
    let row = g.constant(Array::from_strings([2], ["a", ""]).unwrap());
    let same = x.string_equal(&row);
    let fed = Array::from_strings([3, 2], ["a", "", "a", "b", "", ""]).unwrap();
    let out = Session::new(&g).unwrap().run(&[&same], &[(&x, fed)]).unwrap();
    assert_eq!(out[0].as_slice::<bool>().unwrap(), [true, true, true, false, false, true]);
    let none = Array::zeros(DType::Str, [0, 2]).unwrap();
    assert_eq!(Session::new(&g).unwrap().run(&[&same], &[(&x, none)]).unwrap()[0].dims(), [0, 2]);
}
