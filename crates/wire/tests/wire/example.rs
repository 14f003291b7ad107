//! What TensorFlow made of `tf.Example`s and `tf.SequenceExample`s (oracles/gen/example.py), value
//! for value and bit for bit.

use estimand_fixture as fixture;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, DType, Feature, FeatureSpec, Result};
use estimand_wire::example::{ExampleParser, ListSpec, Sequence, SequenceExampleParser, encode_batch};

/// One case of the fixture, which the generator explains.
struct Case {
    kind: String,
    name: String,
    features: Vec<(String, FeatureSpec)>,
    lists: Vec<(String, ListSpec)>,
    rows: Vec<Vec<u8>>,
    /// None if the rows are refused.
    expected: Option<Vec<Parsed>>,
}

/// A parsed feature or list; splits are those of rows, or of rows and of steps.
#[derive(Debug)]
struct Parsed {
    splits: Vec<Vec<i64>>,
    values: Array,
}

/// By the bits of floats; the axes of steps are those of their spec.
impl PartialEq for Parsed {
    fn eq(&self, other: &Parsed) -> bool {
        let dims = |parsed: &Parsed| if parsed.splits.is_empty() { parsed.values.dims().to_vec() } else { Vec::new() };
        let same = match (self.values.dtype(), other.values.dtype()) {
            (DType::Str, DType::Str) => self.values.strings().unwrap().eq(other.values.strings().unwrap()),
            (own, others) => own == others && self.values.bytes() == other.values.bytes(),
        };
        same && self.splits == other.splits && dims(self) == dims(other)
    }
}

fn cases() -> Vec<Case> {
    let case = |case: fixture::Case| {
        let named = |spec: &fixture::Case| spec.setting::<String>("name");
        let features = case.objects("features");
        let lists = if case.has("lists") { case.objects("lists") } else { Vec::new() };
        let dtypes = features.iter().chain(&lists).map(dtype);
        let parsed = |(result, dtype): (&fixture::Case, DType)| Parsed {
            splits: result.setting("splits"),
            values: array(dtype, &result.array("values")),
        };
        let expected =
            (!case.json("results").is_null()).then(|| case.objects("results").iter().zip(dtypes).map(parsed).collect());
        Case {
            kind: case.name().to_string(),
            name: case.setting("name"),
            features: features.iter().map(|spec| (named(spec), feature(spec))).collect(),
            lists: lists.iter().map(|spec| (named(spec), list(spec))).collect(),
            rows: case.strings("rows"),
            expected,
        }
    };
    fixture::cases("example").into_iter().map(case).collect()
}

fn feature(spec: &fixture::Case) -> FeatureSpec {
    let (dtype, dims) = (dtype(spec), spec.option::<Vec<usize>>("dims").unwrap_or_default());
    let default = spec.find("default").map(|default| array(dtype, &default));
    match spec.setting::<String>("length").as_str() {
        "dense" => FeatureSpec::Dense { dtype, default, dims },
        "padded" => FeatureSpec::Padded { dtype, padding: default, dims },
        _ => FeatureSpec::Ragged { dtype },
    }
}

fn list(spec: &fixture::Case) -> ListSpec {
    let (dtype, dims) = (dtype(spec), spec.option::<Vec<usize>>("dims").unwrap_or_default());
    match spec.setting::<String>("length").as_str() {
        "fixed" => ListSpec::fixed(dtype, dims),
        "optional" => ListSpec::optional(dtype, dims),
        _ => ListSpec::ragged(dtype),
    }
}

fn dtype(spec: &fixture::Case) -> DType {
    let name: String = spec.setting("dtype");
    DType::ALL.into_iter().find(|dtype| dtype.to_string() == name).unwrap()
}

/// An array of the fixture, which has the bits of floats.
fn array(dtype: DType, array: &fixture::Array) -> Array {
    match dtype {
        DType::Str => Array::from_strings(&array.dims, array.strings()),
        _ => Array::from_bytes(dtype, &array.dims, &array.to_ne_bytes()),
    }
    .unwrap()
}

fn of_feature(feature: &Feature) -> Parsed {
    match feature {
        Feature::Dense(array) => Parsed { splits: Vec::new(), values: array.clone() },
        Feature::Ragged(ragged) => {
            Parsed { splits: vec![ragged.row_splits().to_vec()], values: ragged.values().clone() }
        }
    }
}

fn of_sequence(sequence: &Sequence) -> Parsed {
    let (mut splits, steps) = match sequence {
        Sequence::Fixed(steps) => (Vec::new(), steps),
        Sequence::Ragged { steps, row_splits } => (vec![row_splits.to_vec()], steps),
    };
    splits.push(steps.row_splits().to_vec());
    Parsed { splits, values: steps.values().clone() }
}

fn parse(case: &Case) -> Result<Vec<Parsed>> {
    if case.kind == "sequence" {
        let parser = SequenceExampleParser::new(case.features.clone(), case.lists.clone())?;
        let (context, lists) = parser.parse(&case.rows)?;
        return Ok(context.iter().map(of_feature).chain(lists.iter().map(of_sequence)).collect());
    }
    let features = ExampleParser::new(case.features.clone())?.parse(&case.rows)?;
    Ok(features.iter().map(of_feature).collect())
}

#[test]
fn as_tensorflow_reads_them() {
    let cases = cases();
    assert!(cases.len() > 250);
    for case in cases.iter().filter(|case| case.kind != "damaged") {
        match parse(case) {
            Ok(parsed) => assert_eq!(Some(parsed), case.expected, "{}", case.name),
            Err(error) => assert_eq!(case.expected, None, "{}: {error}", case.name),
        }
    }
}

/// We may refuse more, or less; what we read and TensorFlow reads is the same.
#[test]
fn as_tensorflow_reads_what_is_damaged() {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.kind == "damaged").collect();
    let (mut n_both, mut n_neither, mut n_ours, mut n_theirs) = (0, 0, 0, 0);
    for case in &cases {
        match (parse(case), &case.expected) {
            (Ok(parsed), Some(expected)) => {
                assert_eq!(parsed, *expected, "{}", case.name);
                n_both += 1;
            }
            (Ok(_), None) => n_ours += 1,
            (Err(_), None) => n_neither += 1,
            (Err(_), Some(_)) => n_theirs += 1,
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
        let parsed = |result: Result<Vec<Feature>>| match result {
            Ok(features) => Ok(features.iter().map(of_feature).collect::<Vec<_>>()),
            Err(error) => Err(error.to_string()),
        };
        let expected = parsed(parser.parse(&rows));
        for n_threads in [1, 2, 3] {
            assert!(parsed(parser.parse_parallel(&rows, &Pool::new(n_threads))) == expected, "{}", case.name);
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
