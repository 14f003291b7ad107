//! The cases of TensorFlow Serving's `util/json_tensor_test.cc`.

use estimand_tensor::{Array, DType};

use super::predict::Predict;
use super::{Format, Input, UnknownKeys, predictions, read_examples, read_predict};
use crate::status::{Answer, Status};

/// A signature with these inputs.
#[derive(Clone, Debug)]
struct Inputs(Vec<Input>);

impl AsRef<[Input]> for Inputs {
    fn as_ref(&self) -> &[Input] {
        &self.0
    }
}

fn inputs(all: &[(&str, DType)]) -> Inputs {
    Inputs(all.iter().map(|(name, dtype)| Input::new(*name, *dtype)).collect())
}

fn read(body: &str, all: &[(&str, DType)]) -> Answer<Predict<Inputs>> {
    read_predict(body.as_bytes(), UnknownKeys::TensorFlow, |_| Ok(inputs(all)))
}

/// The only array of a request with one input of the type.
fn one(body: &str, dtype: DType) -> Array {
    read(body, &[("default", dtype)]).unwrap().rows.arrays.remove(0)
}

fn refused(body: &str, all: &[(&str, DType)]) -> String {
    read(body, all).unwrap_err().message
}

fn ints(dims: &[usize], values: &[i32]) -> Array {
    Array::from_slice(dims, values).unwrap()
}

#[test]
fn one_input() {
    assert_eq!(one(r#"{"instances": [[1,2],[3,4],[5,6]]}"#, DType::I32), ints(&[3, 2], &[1, 2, 3, 4, 5, 6]));
    let mixed = "{\"instances\": [1, 2.0, 3, 4, 5.003, 0.007, 0.0]}";
    assert_eq!(one(mixed, DType::F32), Array::from([1f32, 2.0, 3.0, 4.0, 5.003, 0.007, 0.0]));
    assert_eq!(one(mixed, DType::F64), Array::from([1.0, 2.0, 3.0, 4.0, 5.003, 0.007, 0.0]));
    for text in ["1435774380", "1435774380.0"] {
        assert_eq!(one(&format!("{{\"instances\": [{text}]}}"), DType::F32), Array::from([1_435_774_380f32]));
    }
    let edges = format!("{{\"instances\": [{:e}, {:e}, {:e}]}}", f64::MAX, f64::MIN, f64::MIN_POSITIVE);
    assert_eq!(one(&edges, DType::F32), Array::from([f32::INFINITY, f32::NEG_INFINITY, 0.0]));
    // Anything after the document is ignored.
    assert_eq!(one(r#"{"instances": [[1,2]]}X"#, DType::I32), ints(&[1, 2], &[1, 2]));
    assert_eq!(one(r#"{"instances": [true, false]}"#, DType::Bool), Array::from([true, false]));
    assert_eq!(one(r#"{"instances": [0, 255]}"#, DType::U8), Array::from([0u8, 255]));
    assert_eq!(one(r#"{"instances": [-9223372036854775808]}"#, DType::I64), Array::from([i64::MIN]));
}

/// Nesting of any depth in a member that nobody reads is fine; in a tensor it is refused.
#[test]
fn deep_nesting() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let body = format!("{{\"instances\":[1], \"nested\":{deep}}}");
    assert_eq!(one(&body, DType::I32), ints(&[1], &[1]));
    let all = [("default", DType::I32)];
    assert!(refused(&format!("{{\"signature_name\":{deep}}}"), &all).contains("key must be a string value"));
    assert!(refused(&format!("{{\"instances\":{deep}}}"), &all).contains("Encountered list at unexpected level"));
    assert!(refused(&format!("{{\"inputs\":{deep}}}"), &all).contains("Encountered list at unexpected level"));
}

#[test]
fn base_64() {
    let words = |dims: &[usize], words: &[&str]| Array::from_strings(dims, words).unwrap();
    let read = |body: &str| one(body, DType::Str);
    let both = &["hello", "world"];
    assert_eq!(read(r#"{"instances": [{"b64" : "aGVsbG8="}, {"b64": "d29ybGQ="}]}"#), words(&[2], both));
    assert_eq!(read(r#"{"instances": [[{"b64" : "aGVsbG8="}], [{"b64": "d29ybGQ="}]]}"#), words(&[2, 1], both));
    let named = r#"{"instances": [{"default": [[{"b64" : "aGVsbG8="}], [{"b64": "d29ybGQ="}]]}]}"#;
    assert_eq!(read(named), words(&[1, 2, 1], both));
    assert_eq!(read(r#"{"inputs": {"b64" : "aGVsbG8="}}"#), words(&[], &["hello"]));
    let all = [("default", DType::Str)];
    for (value, text) in [
        (r#"{"b64": "!"}"#, "Unable to base64 decode"),
        (r#"[{"b64": 1}]"#, "not formatted correctly for base64 data"),
        (r#"[{"b64": "aGVsbG8=", "x": 1}]"#, "not formatted correctly for base64 data"),
    ] {
        assert!(refused(&format!("{{\"instances\": [{value}]}}"), &all).contains(text), "{value}");
    }
}

#[test]
fn several_inputs() {
    let all = [("dbl", DType::F64), ("float", DType::F32), ("int", DType::I32), ("str", DType::Str)];
    let body = r#"{"instances": [
        {"int": [[1,2],[3,4],[5,6]], "str": ["foo", "bar"], "float": [1.0, NaN], "dbl": [NaN]},
        {"dbl": [2.0], "int": [[7,8],[9,0],[1,2]], "str": ["baz", "bat"], "float": [2.0, -Infinity]}
    ]}"#;
    let request = read(body, &all).unwrap();
    let [dbl, float, int, words] = &request.rows.arrays[..] else { panic!("four arrays") };
    assert!(dbl.as_slice::<f64>().unwrap()[0].is_nan() && dbl.as_slice::<f64>().unwrap()[1] == 2.0);
    assert_eq!((dbl.dims(), float.dims()), (&[2, 1][..], &[2, 2][..]));
    assert_eq!(float.as_slice::<f32>().unwrap()[2..], [2.0, f32::NEG_INFINITY]);
    assert_eq!(*int, ints(&[2, 3, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]));
    assert_eq!(*words, Array::from_strings([2, 2], ["foo", "bar", "baz", "bat"]).unwrap());
}

#[test]
fn columns() {
    let expected = ints(&[1, 3, 2], &[1, 2, 3, 4, 5, 6]);
    for body in [r#"{"inputs": {"default": [[[1,2],[3,4],[5,6]]]}}"#, r#"{"inputs": [[[1,2],[3,4],[5,6]]]}"#] {
        let request = read(body, &[("default", DType::I32)]).unwrap();
        assert_eq!((request.format, &request.rows.arrays[0]), (Format::Column, &expected));
    }
    let all = [("bin", DType::Str), ("int", DType::I32), ("str", DType::Str)];
    let body =
        r#"{"inputs": {"int": [[[1,2],[3,4],[5,6]]], "more": 1, "str": ["foo", "bar"], "bin": {"b64" : "aGVsbG8="}}}"#;
    let arrays = read(body, &all).unwrap().rows.arrays;
    assert_eq!(arrays[0], Array::from_strings([], ["hello"]).unwrap());
    assert_eq!((&arrays[1], arrays[2].dims()), (&expected, &[2][..]));
    let missing = refused(r#"{"inputs": {"int": 1}}"#, &all);
    assert!(missing.starts_with("Missing named input: bin in 'inputs' object."), "{missing}");
    assert!(refused(r#"{"inputs": [1]}"#, &all).starts_with("inputs is a plain value/list, but expecting an object"));
}

/// The signature is found wherever its name is, and the values are read by its types.
#[test]
fn the_name_of_the_signature_may_come_last() {
    let find = |name: &str| match name {
        "" => Ok(inputs(&[("default", DType::I32)])),
        "words" => Ok(inputs(&[("default", DType::Str)])),
        other => Err(Status::invalid(format!("no {other}"))),
    };
    for body in [
        r#"{"signature_name": "words", "instances": ["1"]}"#,
        r#"{"instances": ["1"], "signature_name": "words"}"#,
        r#"{"inputs": ["1"], "x": {"signature_name": "no"}, "signature_name": "words", "signature_name": "later"}"#,
    ] {
        let request = read_predict(body.as_bytes(), UnknownKeys::TensorFlow, find).unwrap();
        assert_eq!(request.rows.arrays[0], Array::from_strings([1], ["1"]).unwrap(), "{body}");
    }
    let error = |body: &str| read_predict(body.as_bytes(), UnknownKeys::TensorFlow, find).unwrap_err().message;
    assert_eq!(error(r#"{"instances": [1], "signature_name": "other"}"#), "no other");
    assert!(error(r#"{"instances": ["1"]}"#).contains("is not of expected type: int32"));
    // A text that is no JSON is reported before values that are wrong.
    assert!(error(r#"{"instances": ["1"], }"#).starts_with("JSON Parse error"));
}

#[test]
fn wrong_values_of_one_input() {
    let all = [("default", DType::I32)];
    for (body, text) in [
        ("", "JSON Parse error: The document is empty"),
        ("[1]", "JSON Value: [1] Is not object"),
        (r#"{"signature_name": 5, "instances": [[1,2],[3,4],[5,6,7]]}"#, "must be a string value"),
        (r#"{"instances": [[1,2],[3,4],[5,6,7]], "inputs": [[1,2],[3,4],[5,6,7]]}"#, "Not formatted correctly"),
        (r#"{"instances": [[1,2],[3,4],[5,6,7]]}"#, "Expecting tensor size: 2 but got: 3"),
        (r#"{"instances": [[1,2],[3,4],[[5,6]]]}"#, "Expecting shape [2] but got: [1,2]"),
        (r#"{"instances": [1, [1]]}"#, "Expecting shape [] but got: [1]"),
        (r#"{"instances": [[1,2],["a", "b"]]}"#, "JSON Value: \"a\" Type: String is not of expected type: int32"),
        (r#"{"instances": [[1,[2]]]}"#, "Encountered list at unexpected level: 1 expected < 1"),
        (
            r#"{"instances": [[[1],2]]}"#,
            "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2",
        ),
        (r#"{"instances": [[[1],[2,3]]]}"#, "Encountered list at unexpected size: 2 at level: 1 expected size: 1"),
        (r#"{"instances": [1.5]}"#, "JSON Value: 1.5 Type: Number is not of expected type: int32"),
        (r#"{"instances": [2147483648]}"#, "Type: Number is not of expected type: int32"),
        (r#"{"instances": [null]}"#, "JSON Value: null Type: Null is not of expected type: int32"),
        (r#"{"instances": []}"#, "No values in 'instances' array"),
        (r#"{"instances": {"a": 1}}"#, "Expecting 'instances' to be an list/array"),
        (r#"{}"#, "Missing 'inputs' or 'instances' key"),
        (r#"{"examples": [1]}"#, "Missing 'inputs' or 'instances' key"),
    ] {
        let message = refused(body, &all);
        assert!(message.contains(text), "{body}: {message}");
    }
}

#[test]
fn wrong_values_of_several_inputs() {
    let all = [("int", DType::I32), ("str", DType::Str)];
    let first = r#"{"int": [[1,2],[3,4],[5,6]], "str": ["foo", "bar"]}"#;
    for (second, text) in [
        (
            r#"{"int": [[[7,8],[9,0],[1,2]]], "str": ["baz", "bat"]}"#,
            "key: int of 'instances' list. Error: INVALID_ARGUMENT: Expecting shape [3,2] but got: [1,3,2]",
        ),
        (r#"{"int": [[7,8],[9,0]], "str": ["baz", "bat"]}"#, "Expecting tensor size: 6 but got: 4"),
        ("[1, 20, 30]", "Expecting object but got list at item 1 of input list"),
        (
            r#"{"dummy": 1}"#,
            "Failed to process element: 1 key: dummy of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does not have named input: dummy",
        ),
        (
            r#"{"str": ["a", "b"]}"#,
            "Failed to process element: 1 of 'instances' list. JSON object: {\n    \"str\": [\"a\", \"b\"]\n} keys must be equal to: int,str",
        ),
        (r#"{"str": ["a", "b"], "str": ["a", "b"]}"#, "the key appears twice"),
    ] {
        let message = refused(&format!("{{\"instances\": [{first}, {second}]}}"), &all);
        assert!(message.contains(text), "{second}: {message}");
    }
    assert!(
        refused(r#"{"instances": [1]}"#, &all).starts_with("instances is a plain list, but expecting list of objects")
    );
    let mixed = refused(r#"{"instances": [["baz", "bar"], {"str": ["baz", "bat"]}]}"#, &[("str", DType::Str)]);
    assert_eq!(mixed, "Expecting value/list but got object at item 1 of input list");
}

fn written(arrays: &[(&str, Array)], format: Format) -> Answer<String> {
    let bytes = predictions(arrays.iter().map(|(name, array)| (*name, array)), format)?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn answers() {
    let int = ("int", ints(&[2, 3, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]));
    assert_eq!(
        written(std::slice::from_ref(&int), Format::Row).unwrap(),
        "{\n    \"predictions\": [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]\n    ]\n}"
    );
    assert_eq!(
        written(std::slice::from_ref(&int), Format::Column).unwrap(),
        "{\n    \"outputs\": [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]]\n}"
    );
    let bytes = Array::from_strings([2], ["hello", "tf"]).unwrap();
    let double = ("double", Array::from([8.0, f64::NAN]));
    let text = written(&[double.clone(), ("str_bytes", bytes.clone()), ("text", bytes)], Format::Row).unwrap();
    let expected = concat!(
        "{\n    \"predictions\": [\n        {\n            \"double\": 8.0,\n            \"str_bytes\": ",
        "{\"b64\": \"aGVsbG8=\"},\n            \"text\": \"hello\"\n        },\n        {\n            \"double\": NaN,\n",
        "            \"str_bytes\": {\"b64\": \"dGY=\"},\n            \"text\": \"tf\"\n        }\n    ]\n}"
    );
    assert_eq!(text, expected);
    let odd = Array::from_strings([1, 2], [&b"\"\\\n\x01\xc3\xa4"[..], b"\xff"]).unwrap();
    let text = written(&[("text", odd)], Format::Row).unwrap();
    assert!(text.contains("[[\"\\\"\\\\\\n\\u0001\u{e4}\", {\"b64\": \"/w==\"}]"), "{text}");
    let none = Array::zeros(DType::F32, [0, 2]).unwrap();
    assert_eq!(written(&[("x", none)], Format::Row).unwrap(), "{\n    \"predictions\": []\n}");
    for (arrays, text) in [
        (vec![], "empty tensor map"),
        (vec![("x", Array::from(1f32))], "no shape information"),
        (vec![int, ("y", Array::from([1f32]))], "inconsistent batch size"),
    ] {
        assert!(written(&arrays, Format::Row).unwrap_err().message.contains(text), "{text}");
    }
}

#[test]
fn examples() {
    use estimand_wire::ExampleBuilder;
    let request = read_examples(
        br#"{"signature_name": "s", "context": {"query": "pizza"}, "examples": [
            {"names": ["foo", {"b64": "aGVsbG8="}], "ratings": [8.0, NaN], "age": 20, "mix": [1, true, false], "no": []},
            {"names": "bar", "ratings": -Infinity}
        ]}"#,
    )
    .unwrap();
    assert_eq!((request.signature_name.as_str(), request.serialized.len()), ("s", 2));
    let context = ExampleBuilder::new().strings("query", ["pizza"]).build();
    let second = ExampleBuilder::new().strings("names", ["bar"]).floats("ratings", &[f32::NEG_INFINITY]).build();
    assert_eq!(request.serialized.get(1), [context.clone(), second].concat());
    let first = ExampleBuilder::new()
        .strings("names", ["foo", "hello"])
        .floats("ratings", &[8.0, f32::NAN])
        .ints("age", &[20])
        .ints("mix", &[1, 1, 0])
        .nothing("no");
    assert_eq!(request.serialized.get(0), [context, first.build()].concat());
    for (body, text) in [
        (r#"{"signature_name": ["hello"], "examples": [{"names": ["foo"]}]}"#, "'signature_name' key must be a string"),
        (r#"{"context": [{"names": ["foo", "bar"]}]}"#, "Example must be JSON object"),
        (r#"{"context": {}}"#, "key 'examples' is expected and was not found"),
        (r#"{"examples": {"names": ["foo", "bar"]}}"#, "list/array"),
        (r#"{"examples": []}"#, "'examples' value is an empty array"),
        (r#"{"examples": [[{"names": ["foo", "bar"]}]]}"#, "Example must be JSON object"),
        (r#"{"examples": [{"names": [10, null]}]}"#, "names has element with unexpected JSON type: Null"),
        (r#"{"examples": [{"names": [10, 10.0]}]}"#, "feature: names expecting type: int64"),
        (r#"{"examples": [{"names": [10, {"test": 10}]}]}"#, "names has element with unexpected JSON type: Object"),
        (r#"{"examples": [{"names": [[10], 20]}]}"#, "names has element with unexpected JSON type: Array"),
        (r#"{"examples": [{"names": [20, 18446744073709551603]}]}"#, "Only int64_t is supported"),
        (r#"{"examples": [{"names": [null]}], }"#, "JSON Parse error"),
    ] {
        let message = read_examples(body.as_bytes()).unwrap_err().message;
        assert!(message.contains(text), "{body}: {message}");
    }
}

/// Bodies with random changes are answered or refused; nothing panics, hangs or grows.
#[test]
fn changed_bodies() {
    let seeds = [
        r#"{"signature_name": "x", "instances": [{"a": [1.5, NaN], "b": "\u00e4"}, {"a": [-1e3, 2], "b": {"b64": "aGVsbG8="}}]}"#,
        r#"{"inputs": {"a": [[1, 2], [3, 4]], "b": ["x", "y"]}, "other": {"deep": [[[null, true]]]}}"#,
        r#"{"examples": [{"a": 1, "b": ["x"]}, {"a": [true], "c": 2.5}], "context": {"d": -Infinity}}"#,
        r#"{"id": "1", "inputs": [{"name": "a", "shape": [2, 1], "datatype": "FP32", "data": [[1], [2.5]]}]}"#,
    ];
    let pieces = [&b"["[..], b"]", b"{", b"}", b",", b":", b"\"", b"\\", b"\\u", b"-", b"1e9", b"NaN", b"\0", b"\xff"];
    let mut state = 7u64;
    let mut dice = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut n_read = 0;
    for i in 0..40_000 {
        let mut body = seeds[i % seeds.len()].as_bytes().to_vec();
        for _ in 0..=dice(3) {
            let (at, piece) = (dice(body.len()), pieces[dice(pieces.len())]);
            match dice(3) {
                0 => drop(body.splice(at..at, piece.iter().copied())),
                1 => body.truncate(at.max(1)),
                _ => body[at] = piece[0],
            }
        }
        let all = [("a", DType::F32), ("b", DType::Str)];
        n_read += usize::from(read_predict(&body, UnknownKeys::TensorFlow, |_| Ok(inputs(&all))).is_ok());
        n_read += usize::from(read_examples(&body).is_ok());
        n_read += usize::from(crate::kserve::can_read(&body));
    }
    assert!(n_read > 1_000, "{n_read} bodies were still good");
}
