//! Columns as JSON: every column with every option goes there and back, and bad documents get
//! errors that name the place. `column_oracle` compares columns that were read with TensorFlow's.

use std::collections::BTreeSet;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::OnceLock;

use estimand_graph::{Combiner, Graph, Initializer, Tensor, VarSpec};
use estimand_nn::Inputs;
use estimand_nn::column::*;
use estimand_nn::config::{self, CustomObjects, Described, Fields, Json};
use estimand_tensor::{Array, BatchSpec, DType, FeatureSpec, Mode, Result};

fn again(column: &FeatureColumn) -> Result<FeatureColumn> {
    from_json(&column.to_json()?.to_string(), &CustomObjects::new())
}

/// The nodes and variables that columns make: columns with the same text are the same.
fn text(columns: &[FeatureColumn]) -> String {
    // Training would read the checkpoint that initializes a table.
    let g = Graph::with_mode(Mode::Predict);
    let features = Inputs::new(&g, "feature", &make_parse_example_spec(columns).unwrap());
    for column in columns {
        if column.dense().is_some() {
            input_layer(&features, [column.clone()]);
        }
        if column.sequence().is_some() {
            sequence_input_layer(&features, [column.clone()]);
        }
        if column.categorical().is_some() {
            linear_model(&features, [column.clone()]);
        }
        if column.categorical_sequence().is_some() {
            sequence_input_layer(&features, [indicator_column(column).into()]);
        }
    }
    g.check().unwrap();
    // The lines differ: a column that is read was made by the line that reads it.
    let site = Location::caller();
    let spec = |spec: &VarSpec| format!("{:?}", VarSpec { site, ..spec.clone() });
    let variables: Vec<String> = g.body().variables().iter().map(|(_, variable)| spec(variable)).collect();
    format!("{g}\n{}\n{:?}", variables.join("\n"), make_parse_example_spec(columns).unwrap())
}

#[test]
fn every_column_goes_to_json_and_back() -> Result<()> {
    for make in ALL_COLUMNS {
        let column = make();
        let back = again(&column)?;
        assert_eq!(back.to_json()?, column.to_json()?, "{column:?}");
        assert_eq!(back.name(), column.name());
        assert_eq!(text(&[back]), text(&[column]));
    }
    Ok(())
}

/// The options that have one value only, unless they are a function.
const FIXED: [(&str, &str); 1] = [("SequenceNumericColumn", "normalizer_fn")];

/// Columns with every option at another value than the default.
fn with_all_options() -> Vec<FeatureColumn> {
    let words = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/words.txt");
    // Written once for all tests of this process.
    static NUMBERS: OnceLock<PathBuf> = OnceLock::new();
    let numbers = NUMBERS.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("estimand-column-json-{}.txt", std::process::id()));
        std::fs::write(&path, "3\n-4\n").unwrap();
        path
    });
    let id = categorical_column_with_identity("i", 5).default_value(3);
    let shared = shared_embeddings([&id, &categorical_column_with_identity("other", 5)], 3)
        .shared_embedding_collection_name("both")
        .combiner(Combiner::SqrtN)
        .initializer(Initializer::Ones)
        .checkpoint("folder", "a/b")
        .max_norm(0.5)
        .trainable(false);
    let mut columns: Vec<FeatureColumn> = vec![
        numeric_column("x").shape([2, 2]).dtype(DType::F64).default_value(0.1f32).z_score(1.5, 0.25).into(),
        numeric_column("y").shape([3]).dtype(DType::I64).default_value(Array::from([1i64, -2, 3])).into(),
        numeric_column("z").shape([2]).default_value(Array::from([f32::NAN, f32::INFINITY])).min_max(-1.0, 0.1).into(),
        numeric_column("w").default_value(-0.0f32).log().into(),
        bucketized_column(&numeric_column("x").shape([2]), [-1.0, 0.1, 1e30, f64::INFINITY]).into(),
        id.clone().into(),
        categorical_column_with_vocabulary_list("word", ["a", "\u{e9}\u{1f600}", "\"\\\n"]).default_value(2).into(),
        categorical_column_with_vocabulary_list("bytes", vec![vec![0xff, 0], vec![], b"x".to_vec()])
            .n_oov_buckets(3)
            .into(),
        categorical_column_with_vocabulary_list("number", [i64::MIN, 0, i64::MAX]).into(),
        categorical_column_with_vocabulary_file("word", words).vocabulary_size(1).default_value(0).into(),
        categorical_column_with_vocabulary_file("n", numbers).dtype(DType::I64).n_oov_buckets(2).into(),
        categorical_column_with_hash_bucket("number", 11).dtype(DType::I64).into(),
        crossed_column([ColumnKey::from("word"), ColumnKey::from(&id)], 10).hash_key(u64::MAX).into(),
        weighted_categorical_column(&id, "w").dtype(DType::I64).into(),
        indicator_column(&id).into(),
        embedding_column(&id, 3)
            .combiner(Combiner::Sum)
            .initializer(Initializer::RandomUniform { low: -0.1, high: 0.3 })
            .checkpoint("folder/model.ckpt-1", "table")
            .max_norm(2.0)
            .trainable(false)
            .into(),
        default_embedding_column(&id).into(),
        sequence_numeric_column("s").shape([2]).dtype(DType::I32).default_value(-1.5).into(),
        sequence_categorical_column_with_vocabulary_file("word", words).into(),
        SequenceCategoricalColumn::of(categorical_column_with_hash_bucket("number", 5).dtype(DType::I64)).into(),
    ];
    columns.extend(shared.columns().into_iter().map(FeatureColumn::from));
    columns
}

#[test]
fn every_option_goes_to_json_and_back() -> Result<()> {
    let defaults: Vec<Json> = ALL_COLUMNS.iter().map(|make| make().to_json().unwrap()).collect();
    let mut changed: BTreeSet<(String, String)> = BTreeSet::new();
    for column in with_all_options() {
        let (json, back) = (column.to_json()?, again(&column)?);
        assert_eq!(back.to_json()?, json, "{column:?}");
        assert_eq!(text(&[back]), text(std::slice::from_ref(&column)), "{column:?}");
        let default = defaults.iter().find(|default| default["class_name"] == json["class_name"]).unwrap();
        let nested = |json: &Json| json["config"].get("shared").map_or(json["config"].clone(), |s| s["config"].clone());
        for (key, value) in nested(&json).as_object().unwrap() {
            if nested(default).get(key) != Some(value) {
                changed.insert((json["class_name"].to_string(), key.clone()));
            }
        }
    }
    let mut forgotten = Vec::new();
    for default in &defaults {
        let config = default["config"].get("shared").map_or(&default["config"], |shared| &shared["config"]);
        let class = default["class_name"].as_str().unwrap();
        for key in config.as_object().unwrap().keys().filter(|key| !FIXED.contains(&(class, key.as_str()))) {
            if !changed.contains(&(default["class_name"].to_string(), key.clone())) {
                forgotten.push(format!("{key} of {}", default["class_name"]));
            }
        }
    }
    assert!(forgotten.is_empty(), "no column above sets {forgotten:?}");
    Ok(())
}

/// Columns that share a table share it after they are read, also by two calls; columns of two equal
/// calls in a program do not.
#[test]
fn columns_that_share_a_table_still_share_it() -> Result<()> {
    let ids = |name: &str| categorical_column_with_identity(name, 4);
    let make = || -> Vec<FeatureColumn> {
        shared_embeddings([ids("a"), ids("b")], 2).columns().into_iter().map(Into::into).collect()
    };
    let columns = make();
    let read = columns.iter().map(again).collect::<Result<Vec<_>>>()?;
    assert_eq!(text(&read), text(&columns));
    let g = Graph::new();
    let features = Inputs::new(&g, "feature", &make_parse_example_spec(&read)?);
    input_layer(&features, &read[..1]);
    input_layer(&features, &read[1..]);
    g.check()?;
    assert_eq!(g.body().variables().iter().count(), 1);
    // Another table of the same name is an error, read or made.
    let other = shared_embeddings([ids("a"), ids("b")], 3).columns().remove(0).into();
    let g = Graph::new();
    let features = Inputs::new(&g, "feature", &make_parse_example_spec(&read)?);
    input_layer(&features, [read[0].clone()]);
    input_layer(&features, [again(&other)?]);
    assert!(g.check().unwrap_err().to_string().contains("already exists"));
    Ok(())
}

/// A column of the user: a number times a factor.
#[derive(Clone, Debug)]
struct Times(String, f64);

impl Column for Times {
    fn kind(&self) -> &'static str {
        "times"
    }

    fn name(&self) -> String {
        self.0.clone()
    }

    fn site(&self) -> &'static Location<'static> {
        Location::caller()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn parse_spec(&self) -> BatchSpec {
        BatchSpec::from([(self.0.clone(), FeatureSpec::dense(DType::F32, [1]))])
    }

    fn to_json(&self) -> Result<Json> {
        config::write("my_package", self)
    }

    fn dense(&self) -> Option<&dyn DenseColumn> {
        Some(self)
    }
}

impl DenseColumn for Times {
    fn dims(&self) -> Vec<usize> {
        vec![1]
    }

    fn tensor(&self, features: &Inputs) -> Result<Tensor> {
        Ok(features.dense(&self.0) * self.1)
    }
}

impl Described for Times {
    const CLASS: &'static str = "Times";

    fn template() -> Times {
        Times(String::new(), 1.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Times {
        Times(fields.required("key", &self.0), fields.value("factor", &self.1))
    }
}

#[test]
fn columns_of_users_are_read_if_they_are_known() -> Result<()> {
    let column = FeatureColumn::new(Times("x".into(), 3.0));
    let json = column.to_json()?.to_string();
    let objects = CustomObjects::new().column::<Times>();
    assert_eq!(text(&[from_json(&json, &objects)?]), text(&[column]));
    let unknown = from_json(&json, &CustomObjects::new()).unwrap_err().to_string();
    assert!(unknown.starts_with("there is no column `Times`") && unknown.contains("at $.class_name"), "{unknown}");
    Ok(())
}

#[test]
fn functions_are_refused_by_name() {
    let age = numeric_column("age").normalizer(|x| x / 10.0);
    for column in [FeatureColumn::from(&age), bucketized_column(&age, [1]).into()] {
        let error = column.to_json().unwrap_err().to_string();
        assert!(error.contains("a normalizer that is a function of the program cannot be written"), "{error}");
        assert!(error.contains("in column `age`, made at") && error.contains("column_json.rs"), "{error}");
    }
}

#[test]
fn bad_documents_are_errors_with_their_path() {
    let deep = format!(
        r#"{{"class_name": "IndicatorColumn", "config": {{"categorical_column": {}1{}}}}}"#,
        r#"{"class_name": "IndicatorColumn", "config": {"categorical_column": "#.repeat(10_000),
        "}}".repeat(10_000)
    );
    let numeric = |config: &str| format!(r#"{{"class_name": "NumericColumn", "config": {config}}}"#);
    let list = |terms: &str| {
        format!(
            r#"{{"class_name": "VocabularyListCategoricalColumn", "config": {{"key": "a", "vocabulary_list": {terms}}}}}"#
        )
    };
    for (document, part, path) in [
        ("[]".to_string(), "expected an object", "at $"),
        ("{}".into(), "there is no `class_name`", "at $"),
        (r#"{"class_name": "NumericColum", "config": {}}"#.into(), "did you mean `NumericColumn`?", "at $.class_name"),
        (r#"{"class_name": "NumericColumn"}"#.into(), "there is no `config`", "at $"),
        (numeric("{}"), "there is no `key`", "at $.config"),
        (numeric(r#"{"key": 1}"#), "expected a text, found 1", "at $.config.key"),
        (numeric(r#"{"key": "a", "shpae": [1]}"#), "did you mean `shape`?", "at $.config"),
        (numeric(r#"{"key": "a", "shape": [1, -1]}"#), "found -1", "at $.config.shape[1]"),
        (numeric(r#"{"key": "a", "dtype": "float3"}"#), "did you mean `float32`?", "at $.config.dtype"),
        (numeric(r#"{"key": "a", "dtype": "string"}"#), "a numeric column cannot have the dtype string", "at $"),
        (numeric(r#"{"key": "a", "shape": [2], "default_value": [1]}"#), "there are 1 default values", ""),
        (numeric(r#"{"key": "a", "shape": [2000000000], "default_value": 1}"#), "expected at most 16777216", ""),
        (
            numeric(r#"{"key": "a", "normalizer_fn": {"class_name": "Zscore", "config": {}}}"#),
            "did you mean `ZScore`?",
            "at $.config.normalizer_fn.class_name",
        ),
        (
            numeric(r#"{"key": "a", "normalizer_fn": {"class_name": "ZScore", "config": {"mean": 1}}}"#),
            "there is no `stddev`",
            "at $.config.normalizer_fn.config",
        ),
        (
            numeric(r#"{"key": "a", "normalizer_fn": {"class_name": "ZScore", "config": {"mean": 1, "stddev": 0}}}"#),
            "a deviation above 0",
            "at $",
        ),
        (list(r#"["a", "a"]"#), "`a`", "at $"),
        (list(r#"["a", 1]"#), "expected a text", "at $.config.vocabulary_list[1]"),
        (list(r#"[{"bytes": "f"}]"#), "pairs of hexadecimal digits", "at $.config.vocabulary_list[0]"),
        (list(r#"[1, "a"]"#), "expected a whole number", "at $.config.vocabulary_list[1]"),
        (
            r#"{"class_name": "EmbeddingColumn", "config": {"categorical_column": {"class_name": "NumericColumn", "config": {"key": "a"}}, "dimension": 2}}"#.into(),
            "is not categorical",
            "at $",
        ),
        (
            r#"{"class_name": "SequenceCategoricalColumn", "config": {"categorical_column": {"class_name": "NumericColumn", "config": {"key": "a"}}}}"#.into(),
            "cannot be a sequence",
            "at $.config",
        ),
        (
            r#"{"class_name": "SharedEmbeddingColumn", "config": {"column": 1, "shared": {"class_name": "SharedEmbeddings", "config": {"columns": [], "dimension": 2}}}}"#.into(),
            "there is no column 1 among the 0 that share",
            "at $.config",
        ),
        (deep, "nested more than 100 deep", "at $.config.categorical_column"),
    ] {
        let error = from_json(&document, &CustomObjects::new()).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(path), "{document:.200}\n{error}");
    }
}

/// Every prefix of a document, and documents with one byte changed, are read or are errors.
#[test]
fn damaged_documents_do_no_harm() {
    for column in with_all_options() {
        let text = column.to_json().unwrap().to_string();
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert!(from_json(&text[..end], &CustomObjects::new()).is_err());
        }
        for place in 0..text.len() {
            for byte in [b'"', b'0', b'}', b'-'] {
                let mut bytes = text.clone().into_bytes();
                bytes[place] = byte;
                if let Ok(text) = String::from_utf8(bytes) {
                    let _ = from_json(&text, &CustomObjects::new());
                }
            }
        }
    }
}
