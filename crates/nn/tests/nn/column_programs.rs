//! What becomes of columns in a program: work that columns share is done once, and the names of
//! variables are TensorFlow's.

use estimand_engine::Session;
use estimand_graph::Graph;
use estimand_nn::Inputs;
use estimand_nn::column::*;
use estimand_tensor::{BatchSpec, DType, FeatureSpec};

fn features(graph: &Graph) -> Inputs {
    let spec = BatchSpec::from([
        ("word".to_string(), FeatureSpec::dense(DType::Str, [])),
        ("x".to_string(), FeatureSpec::dense(DType::F32, [])),
        ("id".to_string(), FeatureSpec::ragged(DType::I64)),
    ]);
    Inputs::new(graph, "feature", &spec)
}

#[test]
fn shared_work_is_done_once() {
    let word = categorical_column_with_hash_bucket("word", 100);
    let colour = categorical_column_with_vocabulary_list("word", ["red", "green"]);
    let x = bucketized_column(&numeric_column("x"), [0, 1]);
    let cross = crossed_column([ColumnKey::from(&x), "word".into()], 50);
    let g = Graph::new();
    let features = features(&g);
    let deep = input_layer(
        &features,
        [
            embedding_column(&word, 4).into(),
            indicator_column(&colour).into(),
            embedding_column(&cross, 2).into(),
            (&x).into(),
        ],
    );
    let wide = LinearModel::new([(&word).into(), (&cross).into(), (&x).into()]).units(4).apply(&features).logits;
    let also = {
        let _scope = g.reopen("second");
        LinearModel::new([(&colour).into()]).apply(&features).logits
    };
    let program = Session::new(&g).unwrap().program(&[&deep, &wide, &also]).unwrap().to_string();
    let (host, step) = program.split_once("step:").unwrap();
    let count = |op: &str| host.matches(&format!("= {op}(")).count();
    // One reading of the feature's missing values, hash, vocabulary, cross and ranges, for the wide
    // and the deep part.
    for op in ["FromDense", "StringToHashBucketFast", "SparseCross", "Bucketize", "MultiHot"] {
        assert_eq!(count(op), 1, "{op} in\n{program}");
    }
    assert_eq!(count("LookupTableFindV2"), 1, "{program}");
    // word, colour, cross, x: each looked up by one list of ids, also where two tables are.
    assert_eq!(count("LookupIds"), 4, "{program}");
    assert_eq!(step.matches("GatherV2(").count(), 6, "{program}");
}

#[test]
fn variables_are_called_as_in_tensorflow() {
    let id = categorical_column_with_identity("id", 3);
    let odd = categorical_column_with_hash_bucket("word", 5);
    let [first, second] = [&id, &categorical_column_with_identity("other id", 3)].map(Clone::clone);
    let shared = shared_embeddings([&first, &second], 2).columns();
    let g = Graph::new();
    let spec = make_parse_example_spec([(&id).into(), (&second).into(), (&odd).into()]).unwrap();
    let features = Inputs::new(&g, "feature", &spec);
    {
        let _dnn = g.reopen("dnn");
        let _scope = g.reopen("input_from_feature_columns");
        let weird = embedding_column(&second, 2);
        input_layer(
            &features,
            [embedding_column(&odd, 2).into(), weird.into(), (&shared[0]).into(), (&shared[1]).into()],
        );
        input_layer(&features, [embedding_column(&odd, 2).into()]);
    }
    {
        let _linear = g.reopen("linear");
        linear_model(&features, [(&odd).into(), (&shared[0]).into(), embedding_column(&odd, 2).into()]);
    }
    input_layer(&features, [embedding_column(&odd, 2).into()]);
    g.check().unwrap();
    let names: Vec<String> = g.body().variables().iter().map(|(_, v)| v.name.clone()).collect();
    // Seen in TensorFlow 2.15, but for the blank, at which it stops.
    let expected = [
        "id_other_id_shared_embedding",
        "dnn/input_from_feature_columns/input_layer/other_id_embedding/embedding_weights",
        "dnn/input_from_feature_columns/input_layer/word_embedding/embedding_weights",
        "dnn/input_from_feature_columns/input_layer_1/word_embedding/embedding_weights",
        "linear/linear_model/id_shared_embedding/weights",
        "linear/linear_model/word/weights",
        "linear/linear_model/word_embedding/embedding_weights",
        "linear/linear_model/word_embedding/weights",
        "linear/linear_model/bias_weights",
        "input_layer/word_embedding/embedding_weights",
    ];
    assert_eq!(names, expected);
}

/// The table of shared columns that are given twice is one; of two lists of the same name it is a
/// conflict.
#[test]
fn a_shared_table_belongs_to_its_columns() {
    let id = categorical_column_with_identity("id", 3);
    let make = || shared_embeddings([&id], 2).columns().remove(0);
    let shared = make();
    let g = Graph::new();
    let features = features(&g);
    input_layer(&features, [(&shared).into()]);
    input_layer(&features, [(&shared).into()]);
    assert_eq!(g.body().variables().len(), 1);
    g.check().unwrap();
    input_layer(&features, [make().into()]);
    assert!(g.check().unwrap_err().to_string().contains("already exists"));
}
