//! Errors of the `tf.Example` parsers: each names the feature, the row, what was found and what was
//! expected.

use estimand_tensor::{Array, DType, ErrorKind, FeatureSpec};
use estimand_wire::example::{
    ExampleBuilder, ExampleParser, ListSpec, SequenceExampleBuilder, SequenceExampleParser, encode_batch,
};

/// The error of a batch whose second row is `row`.
fn error(spec: FeatureSpec, row: &[u8]) -> estimand_tensor::Error {
    let good = ExampleBuilder::new().ints("age", &[1]).build();
    ExampleParser::new([("age", spec)]).unwrap().parse([&good, row]).unwrap_err()
}

fn age() -> FeatureSpec {
    FeatureSpec::dense(DType::I64, [])
}

#[test]
fn rows_and_features_are_named() {
    let padded = FeatureSpec::Padded { dtype: DType::I64, dims: vec![1, 1], padding: None };
    for (spec, row, texts) in [
        (age(), ExampleBuilder::new().build(), &["`age` is missing and has no default", "give it a default"][..]),
        (age(), ExampleBuilder::new().nothing("age").build(), &["`age` is missing"]),
        (age(), ExampleBuilder::new().ints("age", &[]).build(), &["`age` has 0 values, expected 1 for []"]),
        (age(), ExampleBuilder::new().ints("age", &[1, 2, 3]).build(), &["`age` has 3 values, expected 1"]),
        (
            age(),
            ExampleBuilder::new().floats("age", &[1.0]).build(),
            &["`age` is float_list, expected int64_list (i64)"],
        ),
        (
            FeatureSpec::ragged(DType::I64),
            ExampleBuilder::new().strings("age", ["x"]).build(),
            &["`age` is bytes_list"],
        ),
        (padded, ExampleBuilder::new().strings("age", ["x"]).build(), &["`age` is bytes_list"]),
        // A list of one varint that does not end; a list of wire type 0; two lists.
        (
            age(),
            b"\x0a\x0e\x0a\x0c\x0a\x03age\x12\x05\x1a\x03\x0a\x01\xff".to_vec(),
            &["`age`: its int64_list is damaged"],
        ),
        (age(), b"\x0a\x0b\x0a\x09\x0a\x03age\x12\x02\x18\x01".to_vec(), &["`age`: its list has a wrong wire type"]),
        (age(), b"\x0a\x0d\x0a\x0b\x0a\x03age\x12\x04\x1a\x00\x1a\x00".to_vec(), &["`age`: it has two lists"]),
    ] {
        let error = error(spec, &row);
        let expected = ErrorKind::Data { path: None, row: Some(2), column: Some("age".to_string()) };
        assert_eq!(error.kind(), &expected, "{error}");
        let text = error.to_string();
        assert!(text.contains("in row 2 of the batch"), "{text}");
        for part in texts {
            assert!(text.contains(part), "{text} should contain {part}");
        }
    }
}

#[test]
fn bytes_that_are_no_example() {
    for (row, text) in [
        (&b"\x0a"[..], "1 bytes are not a tf.Example: a field is damaged"),
        (b"\x0a\xff\xff\xff\xff\x0f", "6 bytes"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "11 bytes"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "11 bytes"),
        (b"\x2b\x2c", "2 bytes"),
        (b"\x02\x00", "2 bytes"),
        (b"\x0a\x03\x0a\x01\x0a", "an entry of a map is damaged"),
        (b"\x0a\x02\x08\x01", "an entry of a map is damaged"),
        (b"hello", "5 bytes"),
    ] {
        let error = error(age(), row).to_string();
        assert!(error.contains(text) && error.contains("in row 2 of the batch"), "{error} should contain {text}");
    }
}

#[test]
fn the_row_is_counted_in_the_batch_on_any_number_of_threads() {
    let parser = ExampleParser::new([("age", age())]).unwrap();
    let mut rows = vec![ExampleBuilder::new().ints("age", &[1]).build(); 1000];
    for bad in [999, 700, 701] {
        rows[bad] = ExampleBuilder::new().floats("age", &[1.0]).build();
    }
    let pool = estimand_tensor::parallel::Pool::new(3);
    let expected = parser.parse(&rows).unwrap_err().to_string();
    assert!(expected.contains("in row 701 of the batch"), "{expected}");
    assert_eq!(parser.parse_parallel(&rows, &pool).unwrap_err().to_string(), expected);
}

#[test]
fn specs_that_make_no_sense() {
    let padded = |dims: &[usize], padding| FeatureSpec::Padded { dtype: DType::I64, dims: dims.to_vec(), padding };
    let dense = |default| FeatureSpec::Dense { dtype: DType::I64, dims: vec![2], default: Some(default) };
    for (spec, text) in [
        (FeatureSpec::dense(DType::F64, []), "holds f32, i64 and strings, not f64"),
        (FeatureSpec::ragged(DType::Bool), "not bool"),
        (FeatureSpec::dense(DType::I64, [usize::MAX, 2]), "address space"),
        (FeatureSpec::dense(DType::I64, [1; 9]), "at most 8"),
        (dense(Array::from([1.0f32, 2.0])), "the default is f32, but the feature is i64"),
        (dense(Array::from([1i64])), "the default is [1], but a row of the feature is [2]"),
        (padded(&[0], None), "has no values"),
        (padded(&[], Some(Array::from([1i64, 2]))), "cannot reshape [2] to []"),
        (padded(&[], Some(Array::from(1.0f32))), "the default is f32"),
    ] {
        let error = ExampleParser::new([("x", spec)]).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("in the spec of feature `x`"), "{error} should contain {text}");
    }
    let twice = ExampleParser::new([("x", age()), ("x", age())]).unwrap_err().to_string();
    assert!(twice.contains("`x` is listed twice"), "{twice}");
    let none: [(&str, FeatureSpec); 0] = [];
    let list = ListSpec::fixed(DType::U8, []);
    let error = SequenceExampleParser::new(none, [("l", list)]).unwrap_err().to_string();
    assert!(error.contains("not u8") && error.contains("list `l`"), "{error}");
}

/// Every row is as long as the longest, so a small batch can ask for any amount of memory.
#[test]
fn padding_has_a_limit() {
    let parser = ExampleParser::new([("x", FeatureSpec::padded(DType::I64, []))]).unwrap();
    let long = ExampleBuilder::new().ints("x", &[0; 20_000]).build();
    let short = ExampleBuilder::new().ints("x", &[1]).build();
    let rows = std::iter::once(long).chain(std::iter::repeat_n(short, 9_999));
    let error = parser.parse(rows).unwrap_err().to_string();
    assert!(error.contains("[10000, 20000]") && error.contains("read it as a ragged feature"), "{error}");
}

#[test]
fn steps_are_named() {
    let good = SequenceExampleBuilder::new().step_floats("l", &[1.0, 2.0]);
    for (row, text) in [
        (SequenceExampleBuilder::new(), "list `l` is missing"),
        (good.clone().step_floats("l", &[1.0]), "list `l`: step 2 has 1 values, expected 2 for [2]"),
        (good.clone().step_ints("l", &[1, 2]), "list `l`: step 2 is int64_list, expected float_list"),
        (good.clone().step_strings("l", ["a"]), "step 2 is bytes_list"),
    ] {
        let context = [("c", FeatureSpec::ragged(DType::Str))];
        let parser = SequenceExampleParser::new(context, [("l", ListSpec::fixed(DType::F32, [2]))]).unwrap();
        let error = parser.parse([good.build(), row.build()]).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("in row 2 of the batch"), "{error} should contain {text}");
    }
}

#[test]
fn what_cannot_be_written() {
    let one = Array::from([1.0f32]).into();
    for (features, text) in [
        (vec![("x", &Array::from([1.0f64]).into())], "holds f32, not f64"),
        (vec![("x", &Array::from(1i64).into())], "`x` has no axis of rows"),
        (vec![("x", &one), ("y", &Array::from([1i64, 2]).into())], "`y` has 2 rows, but the features before it have 1"),
    ] {
        let error = encode_batch(features).unwrap_err().to_string();
        assert!(error.contains(text), "{error} should contain {text}");
    }
}
