//! Columns by the numbered cases of the specification of TensorFlow's Estimator, with ids and
//! values that TensorFlow 2.15 was seen to make.

use estimand_engine::{Eval, Session};
use estimand_graph::{Combiner, Graph, Tensor};
use estimand_nn::Inputs;
use estimand_nn::column::*;
use estimand_tensor::{Array, Batch, DType, Feature, FeatureSpec, Ragged, Result};

/// A batch's features as placeholders, and what they are fed.
pub struct Fed {
    pub graph: Graph,
    pub features: Inputs,
    pub feeds: Vec<(Tensor, Array)>,
}

impl Fed {
    pub fn new(batch: &Batch) -> Fed {
        let graph = Graph::new();
        let spec = |feature: &Feature| match feature {
            Feature::Dense(array) => FeatureSpec::dense(array.dtype(), &array.dims()[1..]),
            Feature::Ragged(ragged) => FeatureSpec::ragged(ragged.values().dtype()),
        };
        let spec = batch.features().iter().map(|(name, feature)| (name.to_string(), spec(feature))).collect();
        let features = Inputs::new(&graph, "feature", &spec);
        let mut feeds = Vec::new();
        for (name, feature) in batch.features() {
            match feature {
                Feature::Dense(array) => feeds.push((features.dense(name), array.clone())),
                Feature::Ragged(ragged) => {
                    let fed = features.ragged(name);
                    feeds.extend(fed.feed(ragged).map(|(tensor, array)| (tensor.clone(), array)));
                }
            }
        }
        Fed { graph, features, feeds }
    }

    pub fn run(&self, fetches: &[&Tensor], weights: &[(&str, Array)]) -> Result<Vec<Array>> {
        let mut session = Session::new(&self.graph)?;
        for (name, value) in weights {
            session.set_value(name, value)?;
        }
        let feeds: Vec<(&Tensor, Array)> = self.feeds.iter().map(|(tensor, array)| (tensor, array.clone())).collect();
        session.run(fetches, &feeds)
    }
}

pub fn dense<T: estimand_tensor::Element>(name: &str, width: usize, values: &[T]) -> Batch {
    let array = Array::from_slice([values.len() / width, width], values).unwrap();
    Batch::new().with_feature(name, array).unwrap()
}

pub fn words(name: &str, width: usize, values: &[&str]) -> Batch {
    let array = Array::from_strings([values.len() / width, width], values).unwrap();
    Batch::new().with_feature(name, array).unwrap()
}

pub fn ragged(values: impl Into<Array>, splits: &[i64]) -> Ragged {
    Ragged::new(values.into(), splits.to_vec()).unwrap()
}

fn text(values: &[&str]) -> Array {
    Array::from_strings([values.len()], values).unwrap()
}

fn and(mut batch: Batch, other: Batch) -> Batch {
    for (name, feature) in other.features() {
        batch = batch.with_feature(name, feature.clone()).unwrap();
    }
    batch
}

/// The ids of each row.
pub fn ids(column: impl Into<FeatureColumn>, batch: &Batch) -> Vec<Vec<i64>> {
    let column: FeatureColumn = column.into();
    column.check().unwrap();
    let fed = Fed::new(batch);
    let found = column.categorical().unwrap().categories(&fed.features).unwrap().ids;
    let values = found.values.cast(DType::I64);
    let out = fed.run(&[&values, &found.row_splits], &[]).unwrap();
    let values = out[0].as_slice::<i64>().unwrap();
    let splits = out[1].as_slice::<i64>().unwrap();
    splits.windows(2).map(|row| values[row[0] as usize..row[1] as usize].to_vec()).collect()
}

/// The rows of an input layer of one column.
pub fn rows(column: impl Into<FeatureColumn>, batch: &Batch, weights: &[(&str, Array)]) -> Result<Vec<Vec<f32>>> {
    let fed = Fed::new(batch);
    let out = input_layer(&fed.features, [column.into()]);
    let out = fed.run(&[&out], weights)?.remove(0);
    let width = out.dims()[1];
    Ok(out.as_slice::<f32>()?.chunks(width.max(1)).map(<[f32]>::to_vec).collect())
}

fn assert_near(actual: &[Vec<f32>], expected: &[&[f32]]) {
    let near = |(a, e): (&Vec<f32>, &&[f32])| a.len() == e.len() && a.iter().zip(*e).all(|(a, e)| (a - e).abs() < 2e-6);
    assert!(
        actual.len() == expected.len() && actual.iter().zip(expected).all(near),
        "{actual:?}, expected {expected:?}"
    );
}

/// Cases 1 to 8 and 11: TensorFlow's hash of text, and of integers by their decimal text.
#[test]
fn cases_1_to_11_hash_buckets() {
    let hash = |n: usize, list: &[&str]| -> Vec<i64> {
        ids(categorical_column_with_hash_bucket("w", n), &words("w", 1, list)).concat()
    };
    assert_eq!(hash(10, &["hello"]), [6]);
    assert_eq!(hash(100, &["hello"]), [96]);
    assert_eq!(hash(1000, &["hello"]), [296]);
    assert_eq!(hash(1000, &["a", "ab", "abc"]), [939, 502, 385]);
    assert_eq!(hash(1000, &["world", "foo", "bar", "wire"]), [598, 171, 639, 864]);
    assert_eq!(hash(1000, &["Hello", "hello", "café"]), [151, 296, 587]);
    assert_eq!(hash(1000, &["the quick brown fox jumps over the lazy dog"]), [619]);
    let long: Vec<String> = [16, 17, 32, 33, 64, 65, 128, 200].iter().map(|&n| "x".repeat(n)).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    assert_eq!(hash(1000, &long), [644, 581, 517, 935, 160, 929, 855, 527]);
    let census = ["male", "female", "Private", "HS-grad", "Bachelors"];
    assert_eq!(hash(100, &census), [99, 32, 71, 21, 56]);
    assert_eq!(hash(7, &census), [2, 2, 3, 5, 0]);
    assert_eq!(hash(1, &census), [0; 5]);
    let ints = categorical_column_with_hash_bucket("i", 1000).dtype(DType::I64);
    // Case 9: a dense -1 is missing, a ragged one is not.
    assert_eq!(ids(&ints, &dense("i", 1, &[0i64, 1, 123, 1000, -2, -1])).concat(), [735, 849, 931, 593, 205]);
    assert_eq!(ids(&ints, &dense("i", 1, &[0i32, -1, -2])), [vec![735], vec![], vec![205]]);
    let sparse = Batch::new().with_feature("i", ragged([-1i64], &[0, 1])).unwrap();
    assert_eq!(ids(&ints, &sparse), [[430]]);
    // Case 10.
    let ten = categorical_column_with_hash_bucket("w", 10);
    assert_eq!(ids(&ten, &words("w", 1, &["hello", "", "world"])), [vec![6], vec![], vec![8]]);
    let sparse = Batch::new().with_feature("w", ragged(text(&[""]), &[0, 1])).unwrap();
    assert_eq!(ids(&ten, &sparse), [[3]]);
}

fn pair() -> Batch {
    and(words("a", 1, &["a", "b"]), words("b", 1, &["x", "y"]))
}

/// Cases 12, 13, 15 and 18 to 24. Case 14, no buckets, is for the graph's own cross.
#[test]
fn cases_12_to_24_crosses() {
    let cross = |keys: [&str; 2], batch: &Batch| ids(crossed_column(keys, 1000), batch).concat();
    assert_eq!(cross(["a", "b"], &pair()), [892, 805]);
    assert_eq!(cross(["b", "a"], &pair()), [37, 590]);
    assert_eq!(ids(crossed_column(["a", "b"], 1000).hash_key(1), &pair()).concat(), [6, 345]);
    assert_eq!(ids(crossed_column(["a", "b"], 1000).hash_key(0), &pair()).concat(), [892, 805]);
    let ints = and(dense("i", 1, &[3i64, -2]), words("a", 1, &["a", "b"]));
    assert_eq!(cross(["i", "a"], &ints), [152, 76]);
    let several = and(words("a", 2, &["a", "aa"]), words("b", 2, &["x", "xx"]));
    assert_eq!(cross(["a", "b"], &several), [892, 74, 46, 204]);
    let three = and(and(words("a", 1, &["a"]), words("b", 1, &["b"])), words("c", 1, &["c"]));
    let nested = crossed_column([ColumnKey::from("a"), (&crossed_column(["b", "c"], 5)).into()], 1000);
    assert_eq!(ids(&nested, &three), [[792]]);
    assert_eq!(ids(crossed_column(["a", "b", "c"], 1000), &three), [[792]]);
    let empty = and(words("a", 1, &[""]), words("b", 1, &["x"]));
    assert_eq!(cross(["a", "b"], &empty), [262]);
    let one = and(dense("i", 1, &[1i64]), words("b", 1, &["x"]));
    assert_eq!(cross(["i", "b"], &one), [859]);
    let fraction = and(dense("i", 1, &[1.7f32]), words("b", 1, &["x"]));
    assert_eq!(cross(["i", "b"], &fraction), [859]);
    // Case 21: an unknown category takes part as -1, a missing one does not.
    let degree = categorical_column_with_vocabulary_list("v", ["HS"]);
    let batch = and(words("v", 1, &["none", ""]), words("e", 1, &["BS", "BS"]));
    assert_eq!(ids(crossed_column([ColumnKey::from(&degree), "e".into()], 1000), &batch), [vec![394], vec![]]);
    // Case 24.
    let three = categorical_column_with_identity("i", 10);
    let batch = and(dense("i", 1, &[3i64]), words("e", 1, &["Bachelors"]));
    assert_eq!(ids(crossed_column([ColumnKey::from(&three), "e".into()], 1000), &batch), [[650]]);
    let batch = and(words("e", 1, &["Bachelors"]), words("o", 1, &["Tech-support"]));
    assert_eq!(ids(crossed_column(["e", "o"], 10_000), &batch), [[4242]]);
}

/// Cases 16 and 17: the order is the one of parsed examples, whether a feature is fed dense or
/// ragged.
#[test]
fn cases_16_and_17_the_order_of_keys() {
    let x = bucketized_column(&numeric_column("x"), [0, 10, 100]);
    let numbers = dense("x", 1, &[5f32, 150.0]);
    let sparse = Batch::new().with_feature("edu", ragged(text(&["HS", "BS"]), &[0, 1, 2])).unwrap();
    for edu in [words("edu", 1, &["HS", "BS"]), sparse] {
        let batch = and(numbers.clone(), edu);
        assert_eq!(ids(crossed_column([ColumnKey::from(&x), "edu".into()], 1000), &batch).concat(), [872, 374]);
        assert_eq!(ids(crossed_column([ColumnKey::from("edu"), (&x).into()], 1000), &batch).concat(), [722, 455]);
    }
    // Case 23.
    assert_eq!(crossed_column([ColumnKey::from(&x), "education".into()], 5).name(), "education_X_x_bucketized");
    let inner = crossed_column(["q", "a"], 5);
    assert_eq!(crossed_column([ColumnKey::from("z"), inner.into()], 5).name(), "a_X_q_X_z");
}

/// Cases 25 and 26.
#[test]
fn cases_25_and_26_buckets() {
    let column = bucketized_column(&numeric_column("x"), [0, 10, 100]);
    let numbers = [-1.0, 0.0, 5.0, 10.0, 99.999, 100.0, f32::NAN, f32::INFINITY];
    assert_eq!(ids(&column, &dense("x", 1, &numbers)).concat(), [0, 1, 1, 2, 2, 3, 3, 3]);
    let two = bucketized_column(&numeric_column("x").shape([2]), [1, 2]);
    let batch = dense("x", 2, &[0f32, 5.0, 1.0, 2.0]);
    assert_eq!(ids(&two, &batch), [[0, 5], [1, 5]]);
    assert_eq!(two.categorical().unwrap().n_buckets(), 6);
    let expected: [&[f32]; 2] = [&[1.0, 0.0, 0.0, 0.0, 0.0, 1.0], &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]];
    assert_near(&rows(&two, &batch, &[]).unwrap(), &expected);
}

/// Cases 27, 28 and 29.
#[test]
fn cases_27_to_29_identity() {
    let four = categorical_column_with_identity("i", 4);
    assert_eq!(ids(&four, &dense("i", 1, &[0i64, 3, -1, 2])), [vec![0], vec![3], vec![], vec![2]]);
    let three = four.clone().default_value(3);
    assert_eq!(ids(&three, &dense("i", 1, &[7i64, -5, -1, 1])), [vec![3], vec![3], vec![], vec![1]]);
    let sparse = Batch::new().with_feature("i", ragged([-1i64], &[0, 1])).unwrap();
    assert_eq!(ids(four.clone().default_value(2), &sparse), [[2]]);
    let beyond = dense("i", 1, &[7i64]);
    assert_near(&rows(indicator_column(&four), &beyond, &[]).unwrap(), &[&[0.0; 4]]);
    let error = rows(embedding_column(&four, 2), &beyond, &[]).unwrap_err().to_string();
    assert!(error.contains("feature `i` has the id 7 in row 0; expected 0 to 3"), "{error}");
}

/// Cases 30 to 33.
#[test]
fn cases_30_to_33_vocabularies() {
    let colours = categorical_column_with_vocabulary_list("w", ["R", "G", "B", "Y"]);
    let batch = words("w", 1, &["R", "Z", "", "B"]);
    assert_eq!(ids(&colours, &batch), [vec![0], vec![-1], vec![], vec![2]]);
    assert_eq!(ids(colours.default_value(0), &batch), [vec![0], vec![0], vec![], vec![2]]);
    let numbers = categorical_column_with_vocabulary_list("i", [10, 20, 30]).n_oov_buckets(3);
    let batch = dense("i", 1, &[10i64, 11, 12, 13, -1, 0]);
    assert_eq!(ids(&numbers, &batch), [vec![0], vec![4], vec![4], vec![5], vec![], vec![4]]);

    let path = std::env::temp_dir().join(format!("estimand-columns-{}.txt", std::process::id()));
    std::fs::write(&path, "a\nb\nc").unwrap();
    let file = || categorical_column_with_vocabulary_file("w", &path);
    assert_eq!(file().categorical().unwrap().n_buckets(), 3);
    let batch = words("w", 1, &["a", "c", "zz"]);
    assert_eq!(ids(file().vocabulary_size(2).n_oov_buckets(5), &batch).concat(), [0, 4, 4]);
    assert!(file().vocabulary_size(5).check().unwrap_err().to_string().contains('5'));
    std::fs::write(&path, "a\n\nc\n").unwrap();
    assert!(file().check().unwrap_err().to_string().contains("2"));
    std::fs::remove_file(&path).unwrap();
    let text = file().check().unwrap_err().to_string();
    assert!(text.contains("column_cases.rs:") && text.contains("estimand-columns-"), "{text}");
}

fn weighted_batch() -> Batch {
    let ids = Batch::new().with_feature("i", ragged([0i64, 1, 2, 2, 3, 0], &[0, 2, 4, 6])).unwrap();
    ids.with_feature("w", ragged([2f32, 1.0, 1.0, 3.0, -1.0, 2.0], &[0, 2, 4, 6])).unwrap()
}

/// Cases 34 and 35.
#[test]
fn cases_34_and_35_indicators() {
    let colours = categorical_column_with_vocabulary_list("w", ["R", "G", "B", "Y"]);
    let batch = words("w", 2, &["R", "R", "Z", "G", "", "", "B", "Y"]);
    let expected: [&[f32]; 4] = [&[2.0, 0.0, 0.0, 0.0], &[0.0, 1.0, 0.0, 0.0], &[0.0; 4], &[0.0, 0.0, 1.0, 1.0]];
    assert_near(&rows(indicator_column(&colours), &batch, &[]).unwrap(), &expected);
    let weighted = weighted_categorical_column(categorical_column_with_identity("i", 4), "w");
    let expected: [&[f32]; 3] = [&[2.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 4.0, 0.0], &[2.0, 0.0, 0.0, -1.0]];
    assert_near(&rows(indicator_column(&weighted), &weighted_batch(), &[]).unwrap(), &expected);
}

/// Cases 36 to 39, and 42: a dense weight of 0 is missing beside its id.
#[test]
fn cases_36_to_42_embeddings() {
    let table = Array::from_vec([4, 2], vec![1f32, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]).unwrap();
    let four = categorical_column_with_identity("i", 4);
    let batch = Batch::new().with_feature("i", ragged([0i64, 1, 2, 2, 3, 0, 1], &[0, 2, 4, 4, 7])).unwrap();
    let embed = |column: EmbeddingColumn, batch: &Batch| {
        let name = format!("input_layer/{}/embedding_weights", column.name());
        rows(column, batch, &[(&name, table.clone())]).unwrap()
    };
    let column = embedding_column(&four, 2);
    let mean: [&[f32]; 4] = [&[2.0, 3.5], &[7.0, 11.0], &[0.0, 0.0], &[5.666667, 8.0]];
    assert_near(&embed(column.clone(), &batch), &mean);
    let sum: [&[f32]; 4] = [&[4.0, 7.0], &[14.0, 22.0], &[0.0, 0.0], &[17.0, 24.0]];
    assert_near(&embed(column.clone().combiner(Combiner::Sum), &batch), &sum);
    let sqrtn: [&[f32]; 4] = [&[2.828427, 4.949748], &[9.899495, 15.556349], &[0.0, 0.0], &[9.814955, 13.856406]];
    assert_near(&embed(column.clone().combiner(Combiner::SqrtN), &batch), &sqrtn);
    let limited: [&[f32]; 4] = [&[1.528992, 2.714986], &[2.147502, 3.374646], &[0.0, 0.0], &[1.829261, 2.869134]];
    assert_near(&embed(column.clone().max_norm(4.0), &batch), &limited);

    let weighted = weighted_categorical_column(&four, "w");
    let embed = |combiner| {
        let name = "input_layer/i_weighted_by_w_embedding/embedding_weights";
        let column = embedding_column(&weighted, 2).combiner(combiner);
        rows(column, &weighted_batch(), &[(name, table.clone())]).unwrap()
    };
    assert_near(&embed(Combiner::Mean), &[&[1.666667, 3.0], &[7.0, 11.0], &[1.0, 2.0]]);
    assert_near(&embed(Combiner::Sum), &[&[5.0, 9.0], &[28.0, 44.0], &[-11.0, -13.0]]);
    assert_near(&embed(Combiner::SqrtN), &[&[2.236068, 4.024922], &[8.854378, 13.914021], &[1.0, 2.0]]);

    let misaligned = and(dense("i", 2, &[0i64, 1]), dense("w", 2, &[0f32, 1.0]));
    for column in [FeatureColumn::from(embedding_column(&weighted, 2)), indicator_column(&weighted).into()] {
        let error = rows(column, &misaligned, &[]).unwrap_err().to_string();
        assert!(error.contains("1 weights for 2 ids") && error.contains("help"), "{error}");
    }
}

/// Case 40, and the names and shapes of a linear model's variables.
#[test]
fn case_40_linear_models() {
    let four = categorical_column_with_identity("i", 4);
    let batch = Batch::new().with_feature("i", ragged([0i64, 1, 2], &[0, 2, 3])).unwrap();
    let weights = Array::from_vec([4, 1], vec![1f32, 2.0, 4.0, 8.0]).unwrap();
    let expected = [(Combiner::Sum, [3.0, 4.0]), (Combiner::Mean, [1.5, 4.0]), (Combiner::SqrtN, [2.12132, 4.0])];
    for (combiner, expected) in expected {
        let fed = Fed::new(&batch);
        let linear = LinearModel::new([(&four).into()]).sparse_combiner(combiner).apply(&fed.features);
        let out = fed.run(&[&linear.logits], &[("linear_model/i/weights", weights.clone())]).unwrap();
        assert_near(&[out[0].as_slice::<f32>().unwrap().to_vec()], &[&expected]);
    }
}

/// Case 41.
#[test]
fn case_41_columns_are_in_the_order_of_bytes() {
    let mid = categorical_column_with_identity("mid", 1);
    let batch = [("zeta", 1f32), ("alpha", 2.0), ("Beta", 3.0)];
    let batch = batch.iter().fold(dense("mid", 1, &[0i64]), |b, (name, v)| and(b, dense(name, 1, &[*v])));
    let fed = Fed::new(&batch);
    let columns: [FeatureColumn; 4] = [
        numeric_column("zeta").into(),
        numeric_column("alpha").into(),
        indicator_column(&mid).into(),
        numeric_column("Beta").into(),
    ];
    let out = fed.run(&[&input_layer(&fed.features, &columns)], &[]).unwrap();
    assert_eq!(out[0].as_slice::<f32>().unwrap(), [3.0, 2.0, 1.0, 1.0]);
}

/// Cases 44 and 45; 43, a combiner that does not exist, cannot be written.
#[test]
fn cases_44_and_45_numbers() {
    let column = numeric_column("x").dtype(DType::I64).normalizer(|x| (x - 2.0) * 10.0);
    assert_near(&rows(column, &dense("x", 1, &[1i64, 5]), &[]).unwrap(), &[&[-10.0], &[30.0]]);
    let column = numeric_column("x").shape([2, 3]).default_value(1.5);
    let FeatureSpec::Dense { default: Some(default), .. } = &column.parse_spec()["x"] else { panic!("no default") };
    assert_eq!((default.dims(), default.as_slice::<f32>().unwrap()), (&[2, 3][..], &[1.5; 6][..]));
    let error = numeric_column("x").dtype(DType::I32).default_value(1.5).check().unwrap_err().to_string();
    assert!(error.contains("the default value is f64, which does not fit a column of i32"), "{error}");
}

/// Case 46, and 48: what a parser takes, and what it does without a feature.
#[test]
fn cases_46_and_48_parse_specs() {
    let clash: [FeatureColumn; 2] = [numeric_column("n").into(), categorical_column_with_hash_bucket("n", 5).into()];
    let error = make_parse_example_spec(&clash).unwrap_err().to_string();
    assert!(error.contains("feature `n` is parsed as") && error.contains("column_cases.rs:"), "{error}");
    let parse = |column: NumericColumn| {
        let g = Graph::new();
        let examples = g.constant(Array::from_strings([1], [""]).unwrap());
        let parsed = examples.parse_example(&make_parse_example_spec([(&column).into()])?);
        let features = Inputs::of(&g, "feature", parsed);
        input_layer(&features, [column.into()]).eval()
    };
    assert!(parse(numeric_column("x")).unwrap_err().to_string().contains('x'));
    assert_eq!(parse(numeric_column("x").default_value(2.0)).unwrap().as_slice::<f32>().unwrap(), [2.0]);
}

/// Case 47.
#[test]
fn case_47_sequences() {
    let token = sequence_categorical_column_with_vocabulary_list("tok", ["a", "b", "c"]);
    let columns: [FeatureColumn; 2] = [sequence_numeric_column("val").into(), indicator_column(&token).into()];
    let batch = Batch::new().with_feature("tok", ragged(text(&["a", "b", "c"]), &[0, 2, 3, 3])).unwrap();
    let batch = batch.with_feature("val", ragged([1f32, 2.0, 3.0], &[0, 2, 3, 3])).unwrap();
    let fed = Fed::new(&batch);
    let (x, lengths) = sequence_input_layer(&fed.features, &columns);
    let out = fed.run(&[&x, &lengths], &[]).unwrap();
    assert_eq!(out[0].dims(), [3, 2, 4]);
    let expected = [[1.0f32, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 3.0], [0.0; 4], [0.0; 4], [0.0; 4]];
    assert_eq!(out[0].as_slice::<f32>().unwrap(), expected.concat());
    assert_eq!(out[1].as_slice::<i64>().unwrap(), [2, 1, 0]);
}
