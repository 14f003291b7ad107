//! SequenceExamples as rows.

use estimand_data::{Dataset, ListSpec};
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Ragged};

use crate::plans::{files, ids, sequence_files, sequences};

fn ragged<'a>(batch: &'a Batch, name: &str) -> &'a Ragged {
    let Feature::Ragged(ragged) = &batch.features()[name] else { panic!("{name} is ragged") };
    ragged
}

/// Row i has i % 4 tags, two to a step, and i % 3 pairs.
#[test]
fn lists_become_ragged_features() {
    for buffer_size in [1, 100, 1 << 20] {
        let all = sequences(buffer_size).batch(100).iter().next().unwrap().unwrap();
        assert_eq!(ids(&all), (0..23).collect::<Vec<_>>());
        let (tags, lengths, pairs) = (ragged(&all, "tags"), ragged(&all, "tags/lengths"), ragged(&all, "pairs"));
        for i in 0..23 {
            let expected: Vec<String> = (0..i % 4).map(|j| format!("{i}/{j}")).collect();
            let row = tags.row(i).unwrap();
            assert!(row.strings().unwrap().eq(expected.iter().map(String::as_bytes)), "tags of row {i}");
            // 3 tags are a step of 2 and one of 1.
            let expected: &[i64] = [&[][..], &[1], &[2], &[2, 1]][i % 4];
            assert_eq!(lengths.row(i).unwrap().as_slice::<i64>().unwrap(), expected, "steps of row {i}");
            let expected: Vec<f32> = (0..i % 3).flat_map(|j| [i as f32, j as f32]).collect();
            assert_eq!(pairs.row(i).unwrap(), Array::from_vec([i % 3, 2], expected).unwrap(), "pairs of row {i}");
        }
    }
    let plan = sequences(100).explain();
    assert!(plan.starts_with("sequence tfrecord: 5 features from "), "{plan}");
    assert_eq!(sequences(1).spec().unwrap()["tags/lengths"], FeatureSpec::ragged(DType::I64));
}

#[test]
fn what_cannot_be_read_is_named() {
    let context = || [("id", FeatureSpec::dense(DType::I64, []))];
    let read = |context: Vec<(&str, FeatureSpec)>, lists: Vec<(&str, ListSpec)>| {
        Dataset::from_sequence_tfrecord(sequence_files(), context, lists)
    };
    let nothing: [(&str, ListSpec); 0] = [];
    for (data, text) in [
        (read(vec![], vec![]), "no features to read"),
        (read(context().into(), vec![("id", ListSpec::ragged(DType::I64))]), "two features would have the name `id`"),
        (
            read(vec![("a/lengths", FeatureSpec::ragged(DType::I64))], vec![("a", ListSpec::ragged(DType::I64))]),
            "two features would have the name `a/lengths`",
        ),
        (read(vec![("id", FeatureSpec::padded(DType::I64, []))], vec![]), "`id` has a padded spec"),
        (read(vec![], vec![("tags", ListSpec::ragged(DType::F64))]), "in the spec of list `tags`"),
        (read(vec![], vec![("none", ListSpec::fixed(DType::I64, []))]), "list `none` is missing"),
        (read(vec![], vec![("pairs", ListSpec::optional(DType::F32, [3]))]), "list `pairs`: step 1 has 2 values"),
        // Examples are SequenceExamples with a context alone.
        (Dataset::from_sequence_tfrecord(files(), [("nobody", FeatureSpec::dense(DType::I64, []))], nothing), "nobody"),
        (
            Dataset::from_sequence_tfrecord("none.tfrecord", context(), [("a", ListSpec::ragged(DType::I64))]),
            "none.tfrecord",
        ),
    ] {
        let error = data.iter().find_map(Result::err).expect("an error").to_string();
        assert!(error.contains(text), "{error} should contain {text}");
    }
    // Row 0 has no pairs, row 1 has the first that does not fit.
    let data = read(context().into(), vec![("pairs", ListSpec::optional(DType::F32, [3]))]);
    let mut rows = data.iter();
    assert_eq!(ids(&rows.next().unwrap().unwrap()), [0]);
    let error = rows.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("record 2") && error.contains("sequences-0.tfrecord"), "{error}");
}
