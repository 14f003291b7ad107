//! `tf.Example` and `tf.SequenceExample`: any input gives rows or an error.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use estimand_tensor::{Array, DType, Feature, FeatureSpec};
use estimand_wire::Message;
use estimand_wire::collection_def::{BytesList, FloatList, Int64List};
use estimand_wire::example::{ExampleParser, ListSpec, SequenceExampleParser, encode_batch};

/// Names that the seeds use, each read in every way.
const NAMES: [&str; 5] = ["a", "f0", "f1", "i", "l0"];
const DTYPES: [DType; 3] = [DType::F32, DType::I64, DType::Str];

/// Parses one row in many ways, and checks laws that hold for every row.
pub fn check(row: &[u8]) {
    for parser in parsers() {
        let Ok(once) = parser.parse([row]) else { continue };
        let twice = parser.parse([row, row]).expect("a row that is right once is right twice");
        for (once, twice) in once.iter().zip(&twice) {
            assert_eq!((once.n_rows(), twice.n_rows()), (Some(1), Some(2)));
            assert_eq!(once.dtype(), twice.dtype());
        }
        let written = encode_batch(NAMES.into_iter().zip(&once)).expect("what was read can be written");
        let again = parser.parse(written.iter()).expect("what was written can be read");
        for (before, after) in once.iter().zip(&again) {
            assert!(same(before, after), "{before:?} was written as {after:?}");
        }
    }
    for parser in sequence_parsers() {
        let _ = parser.parse([row, row]);
    }
    if let Ok(message) = Example::decode(row) {
        as_protobuf(row, &message);
    }
}

/// If protobuf can read the row too, the values must be the same.
fn as_protobuf(row: &[u8], message: &Example) {
    let parsed = DTYPES.map(|dtype| {
        let name_by_name = NAMES.map(|name| {
            let parser = ExampleParser::new([(name, FeatureSpec::ragged(dtype))]).expect("the spec is right");
            parser.parse([row]).ok().and_then(|mut features| features.pop())
        });
        (dtype, name_by_name)
    });
    let empty = BTreeMap::new();
    let map = message.features.as_ref().map_or(&empty, |features| &features.feature);
    for (dtype, features) in parsed {
        for (name, feature) in NAMES.into_iter().zip(features) {
            let Some(Feature::Ragged(found)) = feature else { continue };
            let array = match map.get(name).and_then(|feature| feature.kind.as_ref()) {
                None => Array::zeros(dtype, [0]),
                Some(Kind::Bytes(list)) => Array::from_strings([list.value.len()], &list.value),
                Some(Kind::Floats(list)) => Array::from_slice([list.value.len()], &list.value),
                Some(Kind::Ints(list)) => Array::from_slice([list.value.len()], &list.value),
            };
            let array = array.expect("the length is the list's");
            assert_eq!(array.dtype(), dtype, "`{name}` was read as another kind");
            assert!(equal(found.values(), &array), "`{name}` is {array:?} and was read as {:?}", found.values());
        }
    }
}

/// `tf.Example` as decoded by protobuf's own decoder.
#[derive(prost::Message)]
struct Example {
    #[prost(message, optional, tag = "1")]
    features: Option<Features>,
}

#[derive(prost::Message)]
struct Features {
    #[prost(btree_map = "string, message", tag = "1")]
    feature: BTreeMap<String, AnyFeature>,
}

#[derive(PartialEq, prost::Message)]
struct AnyFeature {
    #[prost(oneof = "Kind", tags = "1, 2, 3")]
    kind: Option<Kind>,
}

#[derive(PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    Bytes(BytesList),
    #[prost(message, tag = "2")]
    Floats(FloatList),
    #[prost(message, tag = "3")]
    Ints(Int64List),
}

fn parsers() -> &'static [ExampleParser] {
    static PARSERS: OnceLock<Vec<ExampleParser>> = OnceLock::new();
    PARSERS.get_or_init(|| {
        let mut parsers = Vec::new();
        for dtype in DTYPES {
            let zeros = |dims: &[usize]| Array::zeros(dtype, dims).expect("it is small");
            for spec in [
                FeatureSpec::ragged(dtype),
                FeatureSpec::padded(dtype, []),
                FeatureSpec::padded(dtype, [2]),
                FeatureSpec::dense_or(zeros(&[])),
                FeatureSpec::dense_or(zeros(&[2, 2])),
            ] {
                let features = NAMES.map(|name| (name, spec.clone()));
                parsers.push(ExampleParser::new(features).expect("the spec is right"));
            }
        }
        parsers
    })
}

fn sequence_parsers() -> &'static [SequenceExampleParser] {
    static PARSERS: OnceLock<Vec<SequenceExampleParser>> = OnceLock::new();
    PARSERS.get_or_init(|| {
        let mut parsers = Vec::new();
        for dtype in DTYPES {
            for spec in [ListSpec::ragged(dtype), ListSpec::optional(dtype, []), ListSpec::fixed(dtype, [2])] {
                let context = [("c", FeatureSpec::ragged(DType::I64)), ("d", FeatureSpec::ragged(DType::Str))];
                let lists = NAMES.map(|name| (name, spec.clone()));
                parsers.push(SequenceExampleParser::new(context, lists).expect("the spec is right"));
            }
        }
        parsers
    })
}

/// Equal shapes and bits.
fn same(a: &Feature, b: &Feature) -> bool {
    match (a, b) {
        (Feature::Dense(a), Feature::Dense(b)) => equal(a, b),
        (Feature::Ragged(a), Feature::Ragged(b)) => a.row_splits() == b.row_splits() && equal(a.values(), b.values()),
        _ => false,
    }
}

fn equal(a: &Array, b: &Array) -> bool {
    match (a.strings(), b.strings()) {
        (Ok(ours), Ok(theirs)) => a.dims() == b.dims() && ours.eq(theirs),
        _ => a.dims() == b.dims() && a.bytes() == b.bytes(),
    }
}
