//! Settings and data that `LinearSdca` refuses.

use estimand::graph::Combiner;
use estimand::prelude::*;
use estimand::premade::{LinearSdca, SdcaLoss};
use estimand_fixture::cases_of;

use crate::models::Folder;

#[test]
fn mistakes_are_named() -> Result<()> {
    let x = || columns![numeric_column("x")];
    let message = |error: Error| error.to_string();
    let built = |sdca: LinearSdca| message(LinearClassifier::new(x()).optimizer(sdca).build().unwrap_err());
    let sdca = || LinearSdca::new("id");
    assert!(built(LinearSdca::new("")).contains("has no name"));
    for (error, message) in [
        (built(sdca().num_loss_partitions(0)), "num_loss_partitions of LinearSdca is 0; expected at least 1"),
        (built(sdca().num_table_shards(0)), "num_table_shards of LinearSdca is 0; expected a number from 1 to 65536"),
        (
            built(sdca().symmetric_l2_regularization(0.0)),
            "symmetric_l2_regularization of LinearSdca is 0; expected a finite number above 0",
        ),
        (
            built(sdca().symmetric_l1_regularization(f64::NAN)),
            "symmetric_l1_regularization of LinearSdca is NaN; expected a finite number from 0",
        ),
    ] {
        assert!(error.starts_with(message) && error.contains("\n  help: "), "{error}");
    }
    assert!(built(sdca().num_table_shards(usize::MAX)).contains("expected a number from 1 to 65536"));
    assert!(
        built(sdca().loss(SdcaLoss::Squared)).contains("was given squared_loss, and the loss of the head is logistic")
    );
    // TensorFlow refuses these too.
    let refused = cases_of("sdca_steps", "error");
    for case in &refused {
        let error = match case.setting::<String>("what").as_str() {
            "three classes" => message(LinearClassifier::new(x()).n_classes(3).optimizer(sdca()).build().unwrap_err()),
            "two labels" => {
                message(LinearRegressor::new(x()).label_dimension(2).optimizer(sdca()).build().unwrap_err())
            }
            "combiner" => {
                let model = LinearClassifier::new(x()).sparse_combiner(Combiner::Mean).optimizer(sdca());
                message(model.build().unwrap_err())
            }
            "l2" => built(sdca().symmetric_l2_regularization(0.0)),
            "l1" => built(sdca().symmetric_l1_regularization(-1.0)),
            other => panic!("{other}"),
        };
        assert!(error.contains("LinearSdca"), "{case}: {error}");
    }
    assert_eq!(refused.len(), 5);
    let deep = DnnClassifier::new([4], x()).optimizer(sdca()).build().unwrap_err();
    assert!(message(deep).contains("a model that is not linear"));

    let trained = |columns: Columns, data: Dataset| {
        let folder = Folder::new();
        let model = LinearClassifier::new(columns).optimizer(sdca()).model_dir(folder.path()).build().unwrap();
        message(model.train(&data).unwrap_err())
    };
    let number = Array::from([1f32, 2.0]);
    let rows = |id: Array, x: Array, y: [f32; 2]| {
        Dataset::from_arrays([("id", id), ("x", x), ("y", Array::from(y))]).label("y").batch(1)
    };
    let ids = |ids: [&str; 2]| Array::from_strings([2], ids).unwrap();
    assert!(trained(x(), rows(number.clone(), number.clone(), [0.0, 1.0])).contains("ids are strings or integers"));
    let wide = Array::from_strings([2, 2], ["a", "b", "c", "d"])?;
    assert!(trained(x(), rows(wide, number.clone(), [0.0, 1.0])).contains("expected one id each"));
    let twice = trained(x(), rows(ids(["a", "a"]), number.clone(), [0.0, 1.0]));
    assert!(twice.contains("in example `a`") && twice.contains("came before with label 0 and weight 1"), "{twice}");
    // One id for two rows, as an id of users would be.
    let shared = trained(x(), rows(ids(["a", "a"]), number.clone(), [1.0, 1.0]));
    assert!(shared.contains("in example `a`") && shared.contains("came before with other features"), "{shared}");
    let weighed = |id: Array, weights: [f32; 2]| {
        let weights = ("w", Array::from(weights));
        let data = Dataset::from_arrays([("id", id), ("x", number.clone()), weights, ("y", Array::from([1f32, 1.0]))]);
        let folder = Folder::new();
        let model = LinearClassifier::new(x()).weight_column("w").optimizer(sdca()).model_dir(folder.path());
        model.build().unwrap().train(data.label("y").batch(1))
    };
    let twice = message(weighed(ids(["a", "a"]), [1.0, 2.0]).unwrap_err());
    assert!(twice.contains("came before with label 1 and weight 1, now with label 1 and weight 2"), "{twice}");
    weighed(ids(["a", "b"]), [1.0, 2.0])?;
    let negative = message(weighed(ids(["a", "b"]), [1.0, -2.0]).unwrap_err());
    assert!(negative.contains("the weight is -2; expected a finite number from 0"), "{negative}");
    assert!(negative.contains("in example `b`") && negative.contains("\n  help: correct the row"), "{negative}");
    let infinite = trained(x(), rows(ids(["a", "b"]), Array::from([1.0, f32::NAN]), [0.0, 1.0]));
    assert!(infinite.contains("in example `b`, row 0 of its batch"), "{infinite}");
    let without = Dataset::from_arrays([("x", number.clone()), ("y", Array::from([0f32, 1.0]))]).label("y").batch(2);
    assert!(trained(x(), without).contains("in the example_id_column of LinearSdca"));
    let words = categorical_column_with_hash_bucket("id", 5);
    let embedded = trained(columns![embedding_column(words, 2)], rows(ids(["a", "b"]), number.clone(), [0.0, 1.0]));
    assert!(embedded.contains("LinearSdca cannot train `"), "{embedded}");

    let hinge = || LinearSdca::new("id").loss(SdcaLoss::Hinge);
    let folder = Folder::new();
    let model = LinearClassifier::new(x()).optimizer(hinge()).model_dir(folder.path()).build()?;
    let half = model.train(rows(ids(["a", "b"]), number.clone(), [0.0, 0.5])).unwrap_err().to_string();
    assert!(half.contains("the label is 0.5; hinge_loss needs 0 or 1") && half.contains("`b`"), "{half}");
    assert!(half.contains("\n  help: correct the row"), "{half}");
    Ok(())
}
