//! Wrong columns and features: an error that names the column, the line that made it (in this file)
//! and the remedy; never a panic.

use estimand_graph::Graph;
use estimand_nn::Inputs;
use estimand_nn::column::*;
use estimand_tensor::{Array, Batch, BatchSpec, DType, FeatureSpec};

use super::column_cases::{Fed, ragged, rows};

fn expect(text: &str, parts: &[&str]) {
    for part in parts.iter().chain(&["column_errors.rs:"]) {
        assert!(text.contains(part), "{text}\nshould contain {part}");
    }
}

fn id() -> IdentityColumn {
    categorical_column_with_identity("id", 4)
}

fn hashed() -> HashBucketColumn {
    categorical_column_with_hash_bucket("word", 10)
}

fn number() -> NumericColumn {
    numeric_column("x")
}

/// Mistakes that `check` finds, and what it says.
#[test]
fn columns_say_what_is_wrong_with_them() {
    let cases: Vec<(FeatureColumn, &[&str])> = vec![
        (number().shape([2, 0]).into(), &["the shape is [2, 0]", "in column `x`"]),
        (number().dtype(DType::Str).into(), &["a numeric column cannot have the dtype str", "categorical"]),
        (
            number().shape([2]).default_value([1f32, 2.0, 3.0]).into(),
            &["the default value has the shape [3]; the column has the shape [2]", "help:"],
        ),
        (
            number().dtype(DType::I64).default_value(1f32).into(),
            &["the default value is f32, which does not fit a column of i64"],
        ),
        (number().z_score(1.0, 0.0).into(), &["the deviation 0", "above 0"]),
        (number().z_score(f64::NAN, 1.0).into(), &["the mean NaN"]),
        (number().min_max(3.0, 3.0).into(), &["the range goes from 3 to 3"]),
        (
            bucketized_column(&number(), [0, 5, 5]).into(),
            &["boundary 5 comes before 5", "increasing boundaries", "help: sort the boundaries"],
        ),
        (bucketized_column(&number(), [3, 1]).into(), &["boundary 3 comes before 1", "in column `x_bucketized`"]),
        (bucketized_column(&number(), [0.0, f64::NAN]).into(), &["boundary 0 comes before NaN"]),
        (bucketized_column(&number(), [f64::NAN]).into(), &["a boundary is NaN"]),
        (bucketized_column(&number(), [0f64; 0]).into(), &["the list of boundaries is empty"]),
        (bucketized_column(&number().shape([2, 2]), [0]).into(), &["has the shape [2, 2]", "one axis"]),
        (bucketized_column(&number().z_score(0.0, -1.0), [0]).into(), &["the deviation -1", "in column `x`"]),
        (categorical_column_with_identity("id", 0).into(), &["the number of buckets is 0; expected at least 1"]),
        (id().default_value(4).into(), &["default_value is 4; expected 0 to 3"]),
        (categorical_column_with_hash_bucket("w", 0).into(), &["the hash bucket size is 0; expected at least 1"]),
        (hashed().dtype(DType::F32).into(), &["categories cannot be f32", "bucketized_column for numbers"]),
        (
            categorical_column_with_vocabulary_list("w", ["a", "b", "a"]).into(),
            &["terms 0 and 2 are the same term, \"a\"", "keep one of them"],
        ),
        (categorical_column_with_vocabulary_list("w", [1, 2, 1]).into(), &["terms 0 and 2 are the same term, 1"]),
        (categorical_column_with_vocabulary_list("w", [""; 0]).into(), &["the vocabulary is empty"]),
        (
            categorical_column_with_vocabulary_list("w", ["a"]).default_value(0).n_oov_buckets(2).into(),
            &["default_value is 0 and n_oov_buckets is 2", "one of the two"],
        ),
        (categorical_column_with_vocabulary_file("w", "no/such/file.txt").into(), &["no/such/file.txt"]),
        (
            categorical_column_with_vocabulary_file("w", "a.txt").vocabulary_size(0).into(),
            &["the vocabulary size is 0"],
        ),
        (categorical_column_with_vocabulary_file("w", "a.txt").dtype(DType::F32).into(), &["categories cannot be f32"]),
        (crossed_column(["a"], 10).into(), &["the crossed column has 1 keys; expected at least 2"]),
        (crossed_column(["a", "b"], 0).into(), &["the hash bucket size is 0"]),
        (
            crossed_column([ColumnKey::from(hashed()), "b".into()], 5).into(),
            &["the hash_bucket column `word` cannot be crossed", "give it the feature's name instead"],
        ),
        (crossed_column([ColumnKey::from(number()), "b".into()], 5).into(), &["the numeric column `x`", "bucketize"]),
        (
            crossed_column([ColumnKey::from(crossed_column(["a"], 5)), "b".into()], 5).into(),
            &["the crossed column has 1 keys", "in column `a`"],
        ),
        (
            crossed_column([ColumnKey::from(weighted_categorical_column(id(), "weight")), "b".into()], 5).into(),
            &["the weighted column `id_weighted_by_weight` cannot be crossed", "without its weights"],
        ),
        (weighted_categorical_column(number(), "weight").into(), &["the numeric column `x` is not categorical"]),
        (weighted_categorical_column(id(), "weight").dtype(DType::Str).into(), &["the weights have the dtype str"]),
        (indicator_column(number()).into(), &["the numeric column `x` is not categorical", "help:"]),
        (indicator_column(indicator_column(id())).into(), &["the indicator column `id_indicator` is not categorical"]),
        (embedding_column(number(), 3).into(), &["the numeric column `x` is not categorical"]),
        (embedding_column(id(), 0).into(), &["the embedding dimension is 0"]),
        (embedding_column(id(), 2).max_norm(0.0).into(), &["max_norm is 0"]),
        (embedding_column(id().default_value(-1), 2).into(), &["default_value is -1", "in column `id`"]),
        (
            shared_embeddings([FeatureColumn::from(id()), hashed().into()], 2).columns().remove(0).into(),
            &["`id` (4 ids)", "`word` (10 ids) cannot share a table", "the same number of ids"],
        ),
        (
            shared_embeddings([id(), categorical_column_with_identity("other", 5)], 2).columns().remove(1).into(),
            &["(4 ids)", "(5 ids)"],
        ),
        (sequence_numeric_column("s").shape([0]).into(), &["the shape is [0]"]),
        (sequence_categorical_column_with_identity("s", 0).into(), &["the number of buckets is 0"]),
    ];
    for (column, parts) in cases {
        let error = column.check().expect_err(&format!("{column:?}"));
        expect(&error.to_string(), parts);
        // Whoever takes the column says the same.
        let graph = Graph::new();
        let features = Inputs::new(&graph, "feature", &BatchSpec::new());
        input_layer(&features, [column.clone()]);
        expect(&graph.check().unwrap_err().to_string(), parts);
        assert!(make_parse_example_spec([column]).is_err());
    }
}

/// A column, the feature it gets, and what the build says.
type Case = (FeatureColumn, FeatureSpec, &'static [&'static str]);

#[test]
fn features_of_another_kind_are_named() {
    let [text, ints, floats] = [DType::Str, DType::I64, DType::F32].map(|dtype| FeatureSpec::dense(dtype, [1]));
    let cases: Vec<Case> = vec![
        (number().into(), text.clone(), &["feature `f` holds strings", "a categorical column"]),
        (
            number().into(),
            FeatureSpec::ragged(DType::F32),
            &["feature `f` has rows of different length", "sequence_numeric"],
        ),
        (number().into(), FeatureSpec::dense(DType::F32, [3]), &["`f` is f32[batch, 3]", "[1] numbers", ".shape([3])"]),
        (number().shape([4]).into(), FeatureSpec::dense(DType::F32, [2, 3]), &["[4] numbers a row", ".shape("]),
        (number().into(), FeatureSpec::padded(DType::F32, []), &["[1] numbers a row", "sequence_numeric_column"]),
        (number().normalizer(|x| x.sum()).into(), floats.clone(), &["the normalizer returned f32[] for f32[batch, 1]"]),
        (bucketized_column(&number(), [0]).into(), text.clone(), &["holds strings", "in column `f`", "`f_bucketized`"]),
        (
            indicator_column(hashed()).into(),
            ints.clone(),
            &["`f` holds i64; the column takes strings", ".dtype(DType::I64)"],
        ),
        (
            indicator_column(hashed().dtype(DType::I64)).into(),
            text.clone(),
            &["holds string; the column takes integers"],
        ),
        (indicator_column(hashed()).into(), floats.clone(), &["holds f32", "bucketized_column for numbers"]),
        (
            indicator_column(hashed()).into(),
            FeatureSpec::ragged(DType::F32),
            &["`f` holds f32; the column takes strings"],
        ),
        (indicator_column(id()).into(), floats.clone(), &["`f` holds f32; the column takes integers"]),
        (indicator_column(id()).into(), FeatureSpec::dense(DType::Bool, [1]), &["`f` holds bool"]),
        (
            indicator_column(categorical_column_with_vocabulary_list("w", [1, 2])).into(),
            text.clone(),
            &["holds string; the column takes integers"],
        ),
        (
            indicator_column(crossed_column(["a", "b"], 5)).into(),
            FeatureSpec::dense(DType::Bool, [1]),
            &["holds bool, which cannot be crossed"],
        ),
        (
            indicator_column(weighted_categorical_column(id(), "weight").dtype(DType::I32)).into(),
            ints.clone(),
            &["the weights `f` are i64; the column takes i32"],
        ),
    ];
    for (column, feature, parts) in cases {
        // Every feature that the column reads is this one, under its own name.
        let spec: BatchSpec = column.parse_spec().into_keys().map(|key| (key, feature.clone())).collect();
        let graph = Graph::new();
        input_layer(&Inputs::new(&graph, "feature", &spec), [column.clone()]);
        let Err(error) = graph.check() else { panic!("no error for {column:?}") };
        let mut text = error.to_string();
        for key in spec.keys() {
            text = text.replace(&format!("`{key}`"), "`f`").replace(&format!("`{key}_"), "`f_");
        }
        expect(&text, parts);
    }
}

fn all_features() -> BatchSpec {
    BatchSpec::from([
        ("x".to_string(), FeatureSpec::dense(DType::F32, [1])),
        ("id".to_string(), FeatureSpec::ragged(DType::I64)),
        ("word".to_string(), FeatureSpec::ragged(DType::Str)),
    ])
}

fn build_error(build: impl Fn(&Inputs)) -> String {
    let graph = Graph::new();
    build(&Inputs::new(&graph, "feature", &all_features()));
    graph.check().unwrap_err().to_string()
}

#[test]
fn layers_say_which_column_does_not_fit() {
    let steps = || sequence_categorical_column_with_identity("id", 4);
    expect(
        &build_error(|f| drop(input_layer(f, [hashed().into()]))),
        &["the hash_bucket column `word` is not dense", "wrap it in indicator_column or embedding_column"],
    );
    let sequence = |f: &Inputs| drop(input_layer(f, [indicator_column(steps()).into()]));
    expect(&build_error(sequence), &["`id_indicator` is not dense", "use sequence_input_layer"]);
    expect(&build_error(|f| drop(input_layer(f, [steps().into()]))), &["sequence_input_layer"]);
    expect(
        &build_error(|f| drop(input_layer(f, Vec::new()))),
        &["the list of feature columns is empty", "at least one"],
    );
    let twice = |f: &Inputs| drop(input_layer(f, [number().into(), number().log().into()]));
    expect(&build_error(twice), &["two columns are called `x`", "each column once"]);
    let near = |f: &Inputs| drop(input_layer(f, [indicator_column(categorical_column_with_identity("idd", 4)).into()]));
    expect(&build_error(near), &["there is no feature `idd`", "did you mean `id`?", "in column `idd_indicator`"]);

    expect(&build_error(|f| drop(linear_model(f, [steps().into()]))), &["`id` cannot be used in a linear model"]);
    expect(
        &build_error(|f| drop(LinearModel::new([id().into()]).units(0).apply(f))),
        &["the linear model has 0 units"],
    );
    expect(&build_error(|f| drop(linear_model(f, []))), &["the list of feature columns is empty"]);

    let plain = |f: &Inputs| drop(sequence_input_layer(f, [indicator_column(id()).into()]));
    expect(&build_error(plain), &["`id_indicator` is not a dense sequence", "sequence_categorical_column_with_"]);
    let bare = |f: &Inputs| drop(sequence_input_layer(f, [steps().into()]));
    expect(&build_error(bare), &["`id` is not a dense sequence", "wrap it in indicator_column"]);
    let dense = |f: &Inputs| drop(sequence_input_layer(f, [sequence_numeric_column("x").into()]));
    expect(&build_error(dense), &["feature `x` is the dense f32[batch, 1]", "feed it as a ragged feature"]);

    let missing =
        |f: &Inputs| drop(input_layer(f, [embedding_column(id(), 2).checkpoint("no/such/model.ckpt", "w").into()]));
    expect(&build_error(missing), &["no/such/model.ckpt", "in column `id_embedding`"]);
}

#[test]
fn sequences_of_different_length_are_found_in_the_run() {
    let batch = Batch::new().with_feature("a", ragged([1f32, 2.0], &[0, 1, 2])).unwrap();
    let batch = batch.with_feature("b", ragged([1f32, 2.0], &[0, 2, 2])).unwrap();
    let fed = Fed::new(&batch);
    let columns = [sequence_numeric_column("a").into(), sequence_numeric_column("b").into()];
    let (x, lengths) = sequence_input_layer(&fed.features, &columns);
    let error = fed.run(&[&x, &lengths], &[]).unwrap_err().to_string();
    assert!(error.contains("the lengths of sequences differ: they are 1 and 2 in row 0"), "{error}");
}

/// An id beyond the table names the feature, the row, the column function and its line.
#[test]
fn an_identity_column_that_is_too_small_says_so() {
    let batch = Batch::new().with_feature("id", ragged([1i64, -5, 3, 4, 9], &[0, 2, 2, 5])).unwrap();
    let batch = batch.with_feature("weight", ragged([1f32; 5], &[0, 2, 2, 5])).unwrap();
    let say = |build: &dyn Fn(&Inputs) -> estimand_graph::Tensor| {
        let fed = Fed::new(&batch);
        let built = build(&fed.features);
        let text = fed.run(&[&built], &[]).unwrap_err().to_string();
        assert!(!text.contains("/src/"), "{text}");
        text
    };
    let first = "feature `id` has the id 4 in row 2; expected 0 to 3";
    let call = "give categorical_column_with_identity(\"id\", ..) at least 10 buckets, or call .default_value(..)";
    expect(&say(&|f| linear_model(f, [id().into()])), &[first, call]);
    expect(&say(&|f| input_layer(f, [embedding_column(id(), 2).into()])), &[first, call]);
    let weighted = || weighted_categorical_column(id(), "weight");
    expect(&say(&|f| input_layer(f, [embedding_column(weighted(), 2).into()])), &[first, call]);
    let shared = || shared_embeddings([&id()], 2).columns().remove(0);
    expect(&say(&|f| input_layer(f, [shared().into()])), &[first, call]);
    let steps = || sequence_categorical_column_with_identity("id", 4);
    expect(
        &say(&|f| sequence_input_layer(f, [embedding_column(steps(), 2).into()]).0),
        &[
            "feature `id` has the id 4; expected 0 to 3",
            "give sequence_categorical_column_with_identity(\"id\", ..) at least 10 buckets, or use SequenceCat",
        ],
    );

    // Negative ids are dropped, and a default replaces all others: neither is an error.
    let fits = Batch::new().with_feature("id", Array::from([-5i64, 3, 12])).unwrap();
    let fed = Fed::new(&fits);
    let sum = linear_model(&fed.features, [id().default_value(0).into()]);
    assert!(fed.run(&[&sum], &[]).is_ok());
    assert!(rows(indicator_column(id()), &fits, &[]).is_ok());
}

#[test]
fn labels_and_weights_have_names_of_their_own() {
    let columns = [FeatureColumn::from(number())];
    let spec = classifier_parse_example_spec(&columns, "y", DType::I64, None, Some("w")).unwrap();
    assert_eq!(spec["y"], FeatureSpec::dense(DType::I64, [1]));
    assert_eq!(spec["w"], FeatureSpec::dense(DType::F32, [1]));
    let spec = regressor_parse_example_spec(&columns, "y", 2, Some(Array::from([1f32, 2.0])), None).unwrap();
    assert_eq!(spec["y"], FeatureSpec::dense_or(Array::from([1f32, 2.0])));
    let say = |result: estimand_tensor::Result<BatchSpec>| result.unwrap_err().to_string();
    let text = say(classifier_parse_example_spec(&columns, "x", DType::I64, None, None));
    assert!(text.contains("the label `x` is also the feature of a column"), "{text}");
    let text = say(regressor_parse_example_spec(&columns, "y", 1, None, Some("y")));
    assert!(text.contains("the weight `y`"), "{text}");
    let text = say(regressor_parse_example_spec(&columns, "y", 3, Some(Array::from([1f32])), None));
    assert!(text.contains("the default of the label is f32[1]; expected f32[3]"), "{text}");
}

/// An embedding begins with what a checkpoint holds, if it fits.
#[test]
fn checkpoints_must_fit() {
    let prefix = std::env::temp_dir().join(format!("estimand-embedding-{}", std::process::id()));
    let mut writer = estimand_checkpoint::BundleWriter::create(&prefix).unwrap();
    writer.add("table", &Array::from_vec([4, 1], vec![5f32, 6.0, 7.0, 8.0]).unwrap()).unwrap();
    writer.finish().unwrap();
    let batch = Batch::new().with_feature("id", Array::from([2i64, 0])).unwrap();
    let column = |dimension, name: &str| embedding_column(id(), dimension).checkpoint(&prefix, name);
    assert_eq!(rows(column(1, "table"), &batch, &[]).unwrap(), [[7.0], [5.0]]);
    expect(&rows(column(2, "table"), &batch, &[]).unwrap_err().to_string(), &["`table` is f32[4, 1]", "f32[4, 2]"]);
    expect(&rows(column(1, "tabel"), &batch, &[]).unwrap_err().to_string(), &["`tabel`"]);
    for end in [".index", ".data-00000-of-00001"] {
        std::fs::remove_file(format!("{}{end}", prefix.display())).unwrap();
    }
}
