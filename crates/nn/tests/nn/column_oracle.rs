//! Generated configurations of columns against TensorFlow's own: `oracles/gen/columns.py` explains
//! the fixture.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use estimand_engine::Session;
use estimand_fixture::{Case, cases};
use estimand_graph::{Combiner, Graph, Tensor};
use estimand_nn::Inputs;
use estimand_nn::column::*;
use estimand_nn::config::CustomObjects;
use estimand_tensor::{Array, Batch, DType, Ragged};

use super::column_cases::{Fed, ids};
use super::fixture::array;

fn key(column: &Case) -> String {
    column.setting("key")
}

fn dtype(column: &Case) -> DType {
    match column.setting::<String>("dtype").as_str() {
        "str" => DType::Str,
        "i64" => DType::I64,
        _ => DType::F32,
    }
}

fn numeric(column: &Case) -> NumericColumn {
    let numeric = numeric_column(key(column)).shape(column.setting::<Vec<usize>>("shape")).dtype(dtype(column));
    match column.setting::<String>("normalizer").as_str() {
        "zscore" => numeric.z_score(1.5, 2.5),
        "minmax" => numeric.min_max(-3.0, 9.0),
        "log" => numeric.normalizer(|x| x.cast(DType::F32).abs().log1p()),
        "square" => numeric.normalizer(|x| x * x),
        _ => numeric,
    }
}

fn terms(column: &Case) -> TermList {
    let terms = column.array("terms");
    if terms.dtype == "string" { terms.strings().into() } else { terms.numbers::<i64>().into() }
}

fn combiner(column: &Case) -> Combiner {
    match column.setting::<String>("combiner").as_str() {
        "sum" => Combiner::Sum,
        "mean" => Combiner::Mean,
        "sqrtn" => Combiner::SqrtN,
        other => panic!("{other}"),
    }
}

/// Two columns with one table.
fn shared(column: &Case) -> Vec<FeatureColumn> {
    let keys: Vec<String> = column.setting("keys");
    let columns: Vec<_> = keys.iter().map(|key| categorical_column_with_identity(key, column.setting("n"))).collect();
    let shared = shared_embeddings(&columns, column.setting("dimension")).combiner(combiner(column));
    let shared = column.option::<f64>("max_norm").map_or(shared.clone(), |n| shared.max_norm(n));
    shared.columns().into_iter().map(Into::into).collect()
}

/// A column, with a folder for the file of its vocabulary.
fn column(column: &Case, folder: &Path) -> FeatureColumn {
    let inner = || self::column(&column.object("column"), folder);
    let default = || column.option::<i64>("default");
    match column.setting::<String>("kind").as_str() {
        "numeric" => numeric(column).into(),
        "bucketized" => {
            bucketized_column(&numeric(&column.object("column")), column.setting::<Vec<f64>>("boundaries")).into()
        }
        "identity" => {
            let identity = categorical_column_with_identity(key(column), column.setting("n"));
            step(default().map_or(identity.clone(), |d| identity.default_value(d)), column)
        }
        "list" => {
            let list = categorical_column_with_vocabulary_list(key(column), terms(column));
            let list = list.n_oov_buckets(column.setting("n_oov_buckets"));
            step(default().map_or(list.clone(), |d| list.default_value(d)), column)
        }
        "file" => {
            let terms = column.strings("terms").join(&b'\n');
            let mut name = DefaultHasher::new();
            terms.hash(&mut name);
            let file = folder.join(format!("{:016x}.txt", name.finish()));
            std::fs::write(&file, terms).unwrap();
            let mut of_file = categorical_column_with_vocabulary_file(key(column), file);
            if let Some(size) = column.option("size") {
                of_file = of_file.vocabulary_size(size);
            }
            let of_file = of_file.n_oov_buckets(column.setting("n_oov_buckets"));
            let of_file = default().map_or(of_file.clone(), |d| of_file.default_value(d));
            step(of_file, column)
        }
        "hash" => {
            let hash = categorical_column_with_hash_bucket(key(column), column.setting("n"));
            step(hash.dtype(dtype(column)), column)
        }
        "cross" => {
            let key = |part: &Case| match part.setting::<String>("kind").as_str() {
                "key" => ColumnKey::from(key(part)),
                _ => ColumnKey::from(self::column(part, folder)),
            };
            let keys: Vec<ColumnKey> = column.objects("keys").iter().map(key).collect();
            crossed_column(keys, column.setting("size")).hash_key(column.setting("hash_key")).into()
        }
        "weighted" => weighted_categorical_column(inner(), column.setting::<String>("weights")).into(),
        "indicator" => indicator_column(inner()).into(),
        "embedding" => {
            let embedding = embedding_column(inner(), column.setting("dimension")).combiner(combiner(column));
            column.option::<f64>("max_norm").map_or(embedding.clone(), |n| embedding.max_norm(n)).into()
        }
        "numbers" => {
            let numbers = sequence_numeric_column(key(column)).shape([column.setting::<usize>("n")]);
            numbers.default_value(column.setting("default")).into()
        }
        other => panic!("{column}: a column `{other}` that the test does not know"),
    }
}

/// A column of rows, or of steps.
fn step<C: Into<FeatureColumn> + Steps>(made: C, column: &Case) -> FeatureColumn {
    let steps = column.option("steps").unwrap_or(false);
    if steps { SequenceCategoricalColumn::of(made).into() } else { made.into() }
}

fn columns(case: &Case, folder: &Path) -> Vec<FeatureColumn> {
    let made = |one: &Case| match one.bytes("kind").as_slice() {
        b"shared" => shared(one),
        _ => vec![column(one, folder)],
    };
    case.objects("columns").iter().flat_map(made).collect()
}

fn batch(case: &Case) -> Batch {
    let mut batch = Batch::new();
    for (key, values) in case.arrays("dense") {
        batch = batch.with_feature(&key, array(&values)).unwrap();
    }
    for ((key, values), (_, splits)) in case.arrays("ragged").into_iter().zip(case.arrays("splits")) {
        let ragged = Ragged::new(array(&values), splits.numbers::<i64>()).unwrap();
        batch = batch.with_feature(&key, ragged).unwrap();
    }
    batch
}

/// Features that are fed, or parsed from examples by the columns' own spec.
fn fed(case: &Case, columns: &[FeatureColumn]) -> Fed {
    let Some(examples) = case.find("examples") else { return Fed::new(&batch(case)) };
    let graph = Graph::new();
    let rows = graph.constant(array(&examples));
    let parsed = rows.parse_example(&make_parse_example_spec(columns).unwrap());
    Fed { features: Inputs::of(&graph, "feature", parsed), graph, feeds: Vec::new() }
}

fn run(fed: &Fed, fetches: &[&Tensor], weights: &BTreeMap<String, Array>, what: &Case) -> Vec<Array> {
    fed.graph.check().unwrap_or_else(|e| panic!("{what}\n{e}"));
    let own: Vec<String> = fed.graph.body().variables().iter().map(|(_, v)| v.name.clone()).collect();
    let mut names: Vec<&str> = own.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert!(names.iter().eq(weights.keys()), "variables of {what}: {names:?}");
    let mut session = Session::new(&fed.graph).unwrap();
    for (name, value) in weights {
        session.set_value(name, value).unwrap_or_else(|e| panic!("{what}\n{e}"));
    }
    let feeds: Vec<(&Tensor, Array)> = fed.feeds.iter().map(|(tensor, array)| (tensor, array.clone())).collect();
    session.run(fetches, &feeds).unwrap_or_else(|e| panic!("{what}\n{e}"))
}

/// Whether floats agree within 1e-6, relative to those above 1; sums, in which large terms cancel,
/// relative to the largest of all.
fn assert_close(case: &Case, actual: &Array, sums: bool) {
    let expected = case.array("out");
    assert_eq!(actual.dims(), expected.dims, "{case}");
    let values = expected.numbers::<f32>();
    let largest = if sums { values.iter().fold(1f32, |most, v| most.max(v.abs())) } else { 1.0 };
    for (i, (a, e)) in actual.as_slice::<f32>().unwrap().iter().zip(values).enumerate() {
        assert!(
            (a - e).abs() <= 1e-6 * e.abs().max(largest),
            "element {i} is {a}, TensorFlow has {e}\n{case}\n{actual:?}"
        );
    }
}

/// Compares the results of columns with those of TensorFlow.
fn check(case: &Case, columns: &[FeatureColumn]) {
    if case.name() == "ids" {
        let (splits, values) = (case.numbers::<usize>("id_splits"), case.numbers::<i64>("ids"));
        let rows: Vec<Vec<i64>> = splits.windows(2).map(|row| values[row[0]..row[1]].to_vec()).collect();
        assert_eq!(ids(&columns[0], &batch(case)), rows, "{case}");
        return;
    }
    let fed = fed(case, columns);
    let mut fetches = Vec::new();
    match case.name() {
        "dense" => fetches.push(input_layer(&fed.features, columns)),
        "linear" => {
            let model = LinearModel::new(columns).sparse_combiner(combiner(case));
            fetches.push(model.units(case.setting("units")).apply(&fed.features).logits);
        }
        _ => fetches.extend(<[Tensor; 2]>::from(sequence_input_layer(&fed.features, columns))),
    }
    let weights = case.arrays("weights").into_iter().map(|(name, value)| (name, array(&value))).collect();
    let out = run(&fed, &fetches.iter().collect::<Vec<_>>(), &weights, case);
    assert_close(case, &out[0], case.name() == "linear");
    if let Some(lengths) = case.find("lengths") {
        assert_eq!(out[1].as_slice::<i64>().unwrap(), lengths.numbers::<i64>(), "{case}");
    }
}

/// Columns that went to JSON and back. A normalizer that is a function cannot be written.
fn through_json(columns: &[FeatureColumn]) -> Option<Vec<FeatureColumn>> {
    let again = |column: &FeatureColumn| match column.to_json() {
        Ok(json) => Some(from_json(&json.to_string(), &CustomObjects::new()).unwrap()),
        Err(error) => {
            assert!(error.to_string().contains("a normalizer that is a function"), "{error}");
            None
        }
    };
    columns.iter().map(again).collect()
}

#[test]
fn columns_agree_with_tensorflow() {
    let folder = std::env::temp_dir().join(format!("estimand-column-oracle-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let cases = cases("columns");
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut n_read = 0;
    for case in &cases {
        let columns = columns(case, &folder);
        *seen.entry(case.name()).or_default() += 1;
        check(case, &columns);
        if let Some(read) = through_json(&columns) {
            check(case, &read);
            n_read += 1;
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(cases.len() == 500 && seen.len() == 4, "{seen:?}");
    assert!(n_read > 400, "only {n_read} cases could be written as JSON");
}
