//! The networks of `keras.applications`: the layers that Keras has, in its order and with its
//! names. `oracles/live/keras_files.py` compares what they compute with Keras' weights.

use estimand::keras::Model;
use estimand::keras::applications::{self, Application, Pooling};
use estimand::prelude::*;
use estimand_fixture::{Case, Json, cases};

fn network(case: &Case) -> Application {
    let mut network = match case.name() {
        "mobile_net_v2" => applications::mobile_net_v2(),
        "resnet50" => applications::resnet50(),
        "vgg16" => applications::vgg16(),
        other => panic!("the fixture has a network `{other}` that the test does not know"),
    };
    if let Some(shape) = case.option::<Vec<usize>>("input_shape") {
        network = network.input_shape([shape[0], shape[1], shape[2]]);
    }
    if let Some(alpha) = case.option::<f64>("alpha") {
        network = network.alpha(alpha);
    }
    if let Some(classes) = case.option::<usize>("classes") {
        network = network.classes(classes);
    }
    if let Some(pooling) = case.option::<String>("pooling") {
        network = network.pooling(if pooling == "avg" { Pooling::Avg } else { Pooling::Max });
    }
    network.include_top(case.option("include_top").unwrap_or(true))
}

#[test]
fn networks_have_the_layers_of_keras() -> Result<()> {
    let cases = cases("applications");
    for case in &cases {
        let model: Model = network(case).build()?;
        let place = format!("{} {}", case.name(), case.setting::<String>("model"));
        assert_eq!(model.name(), case.setting::<String>("model"), "{place}");
        assert_eq!(model.count_params(), case.setting::<usize>("params"), "{place}");
        let found: Vec<Json> = model
            .layers()
            .iter()
            .map(|layer| {
                let shapes: Vec<Vec<usize>> = layer.get_weights().unwrap().iter().map(|w| w.dims().to_vec()).collect();
                serde_json::json!([layer.name(), layer.class_name(), shapes])
            })
            .collect();
        let expected = case.json("layers").as_array().unwrap();
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found, expected, "{place}");
        }
        assert_eq!(found.len(), expected.len(), "{place}");
        let output: Vec<Option<usize>> = model.output_shapes()[0].dims()[1..].iter().map(|dim| dim.known()).collect();
        assert_eq!(output, case.setting::<Vec<usize>>("output").into_iter().map(Some).collect::<Vec<_>>(), "{place}");
    }
    assert_eq!(cases.len(), 9);
    Ok(())
}

#[test]
fn bad_options_are_said() {
    let small = applications::resnet50().input_shape([31, 64, 3]).build();
    let both = applications::vgg16().pooling(Pooling::Avg).build();
    let wide = applications::vgg16().alpha(0.5).build();
    let none = applications::mobile_net_v2().alpha(f64::NAN).build();
    let classes = applications::mobile_net_v2().classes(0).build();
    for (found, words) in [
        (small, "expected at least 32 x 32 pixels"),
        (both, "help: call .include_top(false)"),
        (wide, "alpha is 0.5, which Vgg16 does not have"),
        (none, "alpha is NaN"),
        (classes, "0 classes"),
    ] {
        let text = found.map(|model| model.summary()).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}
