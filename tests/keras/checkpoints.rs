//! Weights that tf.keras wrote as checkpoints of TensorFlow (oracles/gen/keras_checkpoints.py):
//! read here, the models compute what they compute there.

use std::path::{Path, PathBuf};

use estimand::keras::{Model, Sequential, model_from_json};
use estimand::nn::BatchNorm;
use estimand::nn::config::CustomObjects;
use estimand::prelude::*;
use estimand_fixture::{Case, cases};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/keras_checkpoints").join(name)
}

fn array(case: &Case, key: &str) -> Array {
    let found = case.array(key);
    Array::from_bytes(DType::F32, &found.dims[..], &found.to_ne_bytes()).unwrap()
}

#[test]
fn checkpoints_of_keras_are_read_by_the_order_of_layers() -> Result<()> {
    let mut n = 0;
    for case in cases("keras_checkpoints") {
        let mut model = model_from_json(&case.setting::<String>("json"), &CustomObjects::new())?;
        model.load_weights(stored(case.name()))?;
        let (found, expected) = (model.predict(array(&case, "in:0"))?, array(&case, "out:0"));
        assert_eq!(found.dims(), expected.dims());
        for (a, b) in found.as_slice::<f32>()?.iter().zip(expected.as_slice::<f32>()?) {
            assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{}: {a} and {b}", case.name());
        }
        n += 1;
    }
    assert_eq!(n, 5);
    Ok(())
}

/// The layers of the stored model `dense`, with other names.
fn dense(last: Dense) -> Result<Model> {
    let first = Dense::new(4).relu().name("one");
    Sequential::new().input([3]).add(first).add(BatchNorm::new().name("two")).add(last).build()
}

#[test]
fn other_layers_are_refused_and_nothing_changes() -> Result<()> {
    let mut model = dense(Dense::new(2).use_bias(false).name("three"))?;
    model.load_weights(stored("dense"))?;

    let mut model = dense(Dense::new(2).name("three"))?;
    let before = model.get_weights()?;
    let error = model.load_weights(stored("dense")).unwrap_err().to_string();
    let words = "it has no `layer_with_weights-2/bias`, the weight `three/bias` of layer `three`";
    assert!(error.contains(words) && error.contains("dense"), "{error}");
    assert_eq!(model.get_weights()?, before);

    let mut wider = dense(Dense::new(5).use_bias(false).name("three"))?;
    let error = wider.load_weights(stored("dense")).unwrap_err().to_string();
    assert!(error.contains("three/kernel") && error.contains("[4, 2]") && error.contains("[4, 5]"), "{error}");

    let mut short = Sequential::new().input([3]).add(Dense::new(4)).build()?;
    let error = short.load_weights(stored("dense")).unwrap_err().to_string();
    assert!(error.contains("it has weights of 3 layers; the model has 1"), "{error}");

    let error = short.load_weights(stored("two_models")).unwrap_err().to_string();
    assert!(error.contains("it holds 2 models: first, second; expected one"), "{error}");
    Ok(())
}
