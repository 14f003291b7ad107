//! What TensorFlow made of `tf.Example`s and `tf.SequenceExample`s (oracles/gen/example.py), value
//! for value and bit for bit.

use std::fs::read_to_string;
use std::path::PathBuf;

use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, DType, Feature, FeatureSpec, Result};
use estimand_wire::example::{ExampleParser, ListSpec, Sequence, SequenceExampleParser, encode_batch};

/// One case of the fixture; the lines are explained in the generator.
#[derive(Default)]
struct Case {
    kind: String,
    name: String,
    features: Vec<(String, FeatureSpec)>,
    lists: Vec<(String, ListSpec)>,
    rows: Vec<Vec<u8>>,
    expected: Vec<String>,
}

fn cases() -> Vec<Case> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/example.txt");
    let mut cases: Vec<Case> = Vec::new();
    for line in read_to_string(path).unwrap().lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["case", kind, name] = words[..] {
            cases.push(Case { kind: kind.to_string(), name: name.to_string(), ..Default::default() });
            continue;
        }
        let case = cases.last_mut().unwrap();
        match words[..] {
            ["feature", name, length, dtype, dims, default] => {
                case.features.push((name.to_string(), feature(length, dtype, dims, default)));
            }
            ["list", name, length, dtype, dims] => {
                let (dtype, dims) = (self::dtype(dtype), numbers(dims));
                let spec = match length {
                    "fixed" => ListSpec::fixed(dtype, dims),
                    "optional" => ListSpec::optional(dtype, dims),
                    _ => ListSpec::ragged(dtype),
                };
                case.lists.push((name.to_string(), spec));
            }
            ["row", hex] => case.rows.push(bytes(hex)),
            _ => case.expected.push(line.to_string()),
        }
    }
    cases
}

fn feature(length: &str, dtype: &str, dims: &str, default: &str) -> FeatureSpec {
    let (dtype, dims) = (self::dtype(dtype), numbers(dims));
    let default = |dims: &[usize]| (default != "-").then(|| array(dtype, dims, default));
    match length {
        "dense" => FeatureSpec::Dense { dtype, default: default(&dims), dims },
        "padded" => FeatureSpec::Padded { dtype, padding: default(&[]), dims },
        _ => FeatureSpec::Ragged { dtype },
    }
}

fn dtype(name: &str) -> DType {
    DType::ALL.into_iter().find(|dtype| dtype.to_string() == name).unwrap()
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|item| *item != "-")
}

fn numbers(text: &str) -> Vec<usize> {
    items(text).map(|item| item.parse().unwrap()).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.trim_matches(['-', '.']);
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

fn array(dtype: DType, dims: &[usize], text: &str) -> Array {
    match dtype {
        DType::F32 => Array::from_vec(dims, items(text).map(float).collect()),
        DType::I64 => Array::from_vec(dims, items(text).map(|item| item.parse::<i64>().unwrap()).collect()),
        _ => Array::from_strings(dims, items(text).map(bytes)),
    }
    .unwrap()
}

fn float(bits: &str) -> f32 {
    f32::from_bits(u32::from_str_radix(bits, 16).unwrap())
}

/// The elements as the fixture writes them, so that floats are compared by their bits.
fn text(array: &Array) -> String {
    let items: Vec<String> = match array.dtype() {
        DType::F32 => array.as_slice::<f32>().unwrap().iter().map(|v| format!("{:x}", v.to_bits())).collect(),
        DType::I64 => array.as_slice::<i64>().unwrap().iter().map(i64::to_string).collect(),
        _ => array.strings().unwrap().map(hex).collect(),
    };
    list(&items)
}

fn hex(string: &[u8]) -> String {
    let digits: String = string.iter().map(|byte| format!("{byte:02x}")).collect();
    if digits.is_empty() { ".".to_string() } else { digits }
}

fn list<T: ToString>(items: &[T]) -> String {
    if items.is_empty() { "-".to_string() } else { items.iter().map(T::to_string).collect::<Vec<_>>().join(",") }
}

fn describe(name: &str, feature: &Feature) -> String {
    match feature {
        Feature::Dense(array) => format!("dense {name} {} {}", list(array.dims()), text(array)),
        Feature::Ragged(ragged) => format!("ragged {name} {} {}", list(ragged.row_splits()), text(ragged.values())),
    }
}

fn describe_sequence(name: &str, sequence: &Sequence) -> String {
    match sequence {
        Sequence::Fixed(steps) => format!("steps {name} {} {}", list(steps.row_splits()), text(steps.values())),
        Sequence::Ragged { steps, row_splits } => {
            format!("nested {name} {} {} {}", list(row_splits), list(steps.row_splits()), text(steps.values()))
        }
    }
}

fn parse(case: &Case) -> Result<Vec<String>> {
    if case.kind == "sequence" {
        let parser = SequenceExampleParser::new(case.features.clone(), case.lists.clone())?;
        let (context, lists) = parser.parse(&case.rows)?;
        let context = context.iter().zip(&case.features).map(|(feature, (name, _))| describe(name, feature));
        let lists = lists.iter().zip(&case.lists).map(|(list, (name, _))| describe_sequence(name, list));
        return Ok(context.chain(lists).collect());
    }
    let features = ExampleParser::new(case.features.clone())?.parse(&case.rows)?;
    Ok(features.iter().zip(&case.features).map(|(feature, (name, _))| describe(name, feature)).collect())
}

#[test]
fn as_tensorflow_reads_them() {
    let cases = cases();
    assert!(cases.len() > 250);
    for case in cases.iter().filter(|case| case.kind != "damaged") {
        match parse(case) {
            Ok(lines) => assert_eq!(lines, case.expected, "{}", case.name),
            Err(error) => assert_eq!(case.expected, ["error"], "{}: {error}", case.name),
        }
    }
}

/// We may refuse more, or less; what we read and TensorFlow reads is the same.
#[test]
fn as_tensorflow_reads_what_is_damaged() {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.kind == "damaged").collect();
    let (mut n_both, mut n_neither, mut n_ours, mut n_theirs) = (0, 0, 0, 0);
    for case in &cases {
        match (parse(case), case.expected == ["error"]) {
            (Ok(lines), false) => {
                assert_eq!(lines, case.expected, "{}", case.name);
                n_both += 1;
            }
            (Ok(_), true) => n_ours += 1,
            (Err(_), true) => n_neither += 1,
            (Err(_), false) => n_theirs += 1,
        }
    }
    // Agreement is the rule.
    assert!(n_both > 50 && n_neither > 50 && n_ours + n_theirs < 30, "{n_both} {n_neither} {n_ours} {n_theirs}");
}

/// A row repeated often enough for several tasks: the same as on one thread, with any number of
/// threads.
#[test]
fn as_on_one_thread() {
    for case in cases().iter().filter(|case| case.kind == "example" && !case.rows.is_empty()) {
        let parser = ExampleParser::new(case.features.clone()).unwrap();
        let rows: Vec<&Vec<u8>> = case.rows.iter().cycle().take(301).collect();
        let text = |result: Result<Vec<Feature>>| match result {
            Ok(features) => features.iter().map(|feature| describe("", feature)).collect::<Vec<_>>(),
            Err(error) => vec![error.to_string()],
        };
        let expected = text(parser.parse(&rows));
        for n_threads in [1, 2, 3] {
            assert!(text(parser.parse_parallel(&rows, &Pool::new(n_threads))) == expected, "{}", case.name);
        }
    }
}

#[test]
fn as_tensorflow_writes_them() {
    for case in cases().iter().filter(|case| case.kind == "rewritten") {
        let features = ExampleParser::new(case.features.clone()).unwrap().parse(&case.rows).unwrap();
        let named = case.features.iter().map(|(name, _)| name.as_str()).zip(&features);
        let written = encode_batch(named).unwrap();
        assert!(written.iter().eq(case.rows.iter().map(Vec::as_slice)), "{}", case.name);
    }
}
