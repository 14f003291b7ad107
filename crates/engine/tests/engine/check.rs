//! Labels that are checked: an error names the value and its place.

use estimand_engine::Session;
use estimand_graph::{Graph, LookupTable};
use estimand_tensor::{Array, DType, Dim};

#[test]
fn a_number_outside_is_named_with_its_place() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 2.into()]);
    let checked = x.ensure_between(0.0, 1.0, "label");
    let run = |values: [f32; 4]| {
        let fed = Array::from_vec([2, 2], values.to_vec()).unwrap();
        Session::new(&g).unwrap().run(&[&checked], &[(&x, fed)])
    };
    assert_eq!(run([0.0, 1.0, 0.5, 0.25]).unwrap()[0].as_slice::<f32>().unwrap(), [0.0, 1.0, 0.5, 0.25]);
    for (values, text) in [
        ([0.0, 1.0, 0.5, 2.0], "the label in row 1, column 1 is 2; expected 0 to 1"),
        ([0.0, f32::NAN, 0.5, 1.0], "the label in row 0, column 1 is NaN"),
        ([-0.5, 0.0, 0.0, 0.0], "the label in row 0, column 0 is -0.5"),
    ] {
        let error = run(values).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let g = Graph::new();
    g.placeholder("x", DType::Str, [Dim::BATCH]).ensure_between(0.0, 1.0, "label");
    assert!(g.check().is_err());
}

#[test]
fn ragged_values_are_named_with_their_row() {
    let g = Graph::new();
    let (numbers, words) = (g.ragged_placeholder("numbers", DType::I64), g.ragged_placeholder("words", DType::Str));
    let numbers_checked = numbers.ensure_between(0.0, 3.0, "label").values;
    let ids = LookupTable::from_list(["a", "b"]).unwrap().lookup_known_ragged(&words, "label").values;
    let rows = |values: Array| estimand_tensor::Ragged::new(values, [0, 2, 2, 3]).unwrap();
    let run = |last_number: i64, last_word: &str| {
        let fed = [
            numbers.feed(&rows(Array::from([1i64, 2, last_number]))),
            words.feed(&rows(Array::from_strings([3], ["a", "b", last_word]).unwrap())),
        ];
        Session::new(&g).unwrap().run(&[&numbers_checked, &ids], &fed.concat())
    };
    let out = run(3, "a").unwrap();
    assert_eq!(
        (out[0].as_slice::<i64>().unwrap(), out[1].as_slice::<i64>().unwrap()),
        (&[1i64, 2, 3][..], &[0i64, 1, 0][..])
    );
    assert!(run(4, "a").unwrap_err().to_string().contains("the label in row 2 is 4; expected 0 to 3"));
    assert!(run(3, "c").unwrap_err().to_string().contains("label `c` in row 2 is not in the vocabulary"));
}

#[test]
fn a_term_that_is_not_known_is_named_with_its_row() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::Str, [Dim::BATCH]);
    let ids = LookupTable::from_list(["yes", "no"]).unwrap().lookup_known(&x, "label");
    let run =
        |values: [&str; 2]| Session::new(&g).unwrap().run(&[&ids], &[(&x, Array::from_strings([2], values).unwrap())]);
    assert_eq!(run(["no", "yes"]).unwrap()[0].as_slice::<i64>().unwrap(), [1, 0]);
    let error = run(["no", "yess"]).unwrap_err().to_string();
    assert!(error.contains("label `yess` in row 1 is not in the vocabulary"), "{error}");
    assert!(error.contains("did you mean `yes`?"), "{error}");
    let error = run(["maybe", "yes"]).unwrap_err().to_string();
    assert!(error.contains("`maybe` in row 0") && error.contains("there are yes, no"), "{error}");
    let g = Graph::new();
    let x = g.placeholder("x", DType::I64, [Dim::BATCH]);
    let ids = LookupTable::from_ints([10, 20]).unwrap().lookup_known(&x, "label");
    let error = Session::new(&g).unwrap().run(&[&ids], &[(&x, Array::from([20i64, 30]))]).unwrap_err().to_string();
    assert!(error.contains("label `30` in row 1"), "{error}");
}
