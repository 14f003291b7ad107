//! The networks of `keras.applications`: the layers that Keras has, in its order and with its
//! names. `oracles/live/keras_files.py` compares what they compute with Keras' weights.

use estimand::keras::applications::{
    self, Application, Cache, ClassNames, Images, Pooling, Preprocessing, Weights, decode_predictions, preprocess_input,
};
use estimand::keras::{Input, Model};
use estimand::prelude::*;
use estimand_fixture::{Case, Json, cases};

fn named(network: &str) -> Application {
    match network {
        "dense_net121" => applications::dense_net121(),
        "efficient_net_b0" => applications::efficient_net_b0(),
        "inception_v3" => applications::inception_v3(),
        "mobile_net_v2" => applications::mobile_net_v2(),
        "resnet50" => applications::resnet50(),
        "vgg16" => applications::vgg16(),
        "xception" => applications::xception(),
        other => panic!("the fixture has a network `{other}` that the test does not know"),
    }
}

/// The cases of networks, or those of another kind.
fn cases_of(kind: &str) -> Vec<Case> {
    let others = ["file", "preprocess", "decode"];
    let is_of = |case: &Case| if kind == "network" { !others.contains(&case.name()) } else { case.name() == kind };
    cases("applications").into_iter().filter(is_of).collect()
}

fn network(case: &Case) -> Application {
    let mut network = named(&case.option::<String>("network").unwrap_or_else(|| case.name().to_string()));
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
    let cases = cases_of("network");
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
    assert_eq!(cases.len(), 18);
    Ok(())
}

/// A folder that has the file is asked for nothing else; one that has not says which is missing.
#[test]
fn imagenet_weights_are_keras_files() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("applications-imagenet-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let cases = cases_of("file");
    for case in &cases {
        let (name, md5) = (case.setting::<String>("file"), case.option::<String>("md5"));
        let network = network(case).weights(Weights::ImageNet).cache(Cache::new(&folder));
        if !cfg!(feature = "download") {
            let error = network.build().unwrap_err().to_string();
            assert!(error.contains(&format!("cannot fetch {}:", case.setting::<String>("address"))), "{error}");
            assert!(error.contains("the feature `download`") && error.contains(&name), "{error}");
        }
        // The MD5 of `abc`, which RFC 1321 has.
        std::fs::write(folder.join(&name), "abc").unwrap();
        let error = network.build().unwrap_err().to_string();
        match md5 {
            Some(md5) => {
                let text = format!("the file has the MD5 900150983cd24fb0d6963f7d28e17f72; expected {md5}");
                assert!(error.contains(&text) && error.contains("remove it"), "{error}");
            }
            None => assert!(!error.contains("MD5"), "{error}"),
        }
        assert!(error.contains(&name), "{error}");
        std::fs::remove_file(folder.join(&name)).unwrap();
    }
    assert_eq!(cases.len(), 17);
    std::fs::remove_dir_all(folder).unwrap();
}

fn array(case: &Case, key: &str) -> Array {
    let found = case.array(key);
    Array::from_bytes(DType::F32, &found.dims[..], &found.to_ne_bytes()).unwrap()
}

fn assert_close(found: &Array, expected: &Array, tolerance: f32, place: &str) {
    assert_eq!(found.dims(), expected.dims(), "{place}");
    for (a, b) in found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap()) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{place}: {a} and {b}");
    }
}

#[test]
fn images_are_scaled_as_keras_does() -> Result<()> {
    let cases = cases_of("preprocess");
    for case in &cases {
        let (pixels, expected) = (array(case, "pixels"), array(case, "result"));
        let (name, kind) = (case.setting::<String>("network"), case.setting::<String>("kind"));
        let network = named(&name);
        if kind == "array" {
            assert_eq!(network.preprocess_input(&pixels)?, expected, "{name}");
            let bytes: Vec<u8> = pixels.as_slice::<f32>()?.iter().map(|x| *x as u8).collect();
            assert_eq!(network.preprocess_input(&Array::from_vec(pixels.dims(), bytes)?)?, expected, "{name}");
            continue;
        }
        let graph = Graph::new();
        let tensor = graph.constant(pixels.clone());
        assert_close(&network.preprocess_input(&tensor).eval()?, &expected, 1e-6, &name);
        let input = Input::new([3, 4, 3]).tensor();
        // Keras computes the same in another order.
        let mut model = Model::new(&input, &network.preprocess_input(&input))?;
        assert_close(&model.predict(pixels)?, &expected, 2e-6, &name);
    }
    assert_eq!(cases.len(), 21);
    Ok(())
}

#[test]
fn images_of_other_shapes_are_said() {
    let gray = Array::zeros(DType::F32, [2, 4, 4, 1]).unwrap();
    let error = preprocess_input(&gray, Preprocessing::Caffe).unwrap_err().to_string();
    assert!(error.contains("the shape [2, 4, 4, 1]; expected [height, width, 3]"), "{error}");
    assert_eq!(preprocess_input(&gray, Preprocessing::Unchanged).unwrap(), gray);
    let graph = Graph::new();
    graph.constant(gray).preprocess(Preprocessing::Torch);
    let error = graph.check().unwrap_err().to_string();
    assert!(error.contains("expected [height, width, 3]") && error.contains("applications.rs"), "{error}");
    let words = Array::from_strings([1, 1, 3], ["a", "b", "c"]).unwrap();
    assert!(preprocess_input(&words, Preprocessing::Tf).is_err());
}

/// The names that the fixture's program has made.
fn names(n: usize) -> Json {
    (0..n).map(|i| (i.to_string(), serde_json::json!([format!("n{i:08}"), format!("class_{i}")]))).collect()
}

#[test]
fn predictions_are_decoded_as_keras_does() -> Result<()> {
    let file =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("classes-{}.json", std::process::id()));
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(&names(1000).to_string());
    let classes = ClassNames::from_file(&file)?;
    let cases = cases_of("decode");
    for case in &cases {
        let found = decode_predictions(&array(case, "scores"), case.setting("top"), &classes)?;
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), case.setting::<Vec<usize>>("n"));
        for (row, expected) in found.iter().zip(case.json("decoded").as_array().unwrap()) {
            for (class, expected) in row.iter().zip(expected.as_array().unwrap()) {
                assert_eq!(class.class, expected[0].as_str().unwrap());
                assert_eq!(class.name, expected[1].as_str().unwrap());
                assert_eq!(class.score, expected[2].as_f64().unwrap() as f32);
            }
        }
    }
    assert_eq!(cases.len(), 3);
    let error = |found: Result<Vec<Vec<applications::Decoded>>>| found.unwrap_err().to_string();
    let few = Array::zeros(DType::F32, [2, 10])?;
    assert!(error(decode_predictions(&few, 1, &classes)).contains("10 classes; there are names of 1000"));
    let flat = Array::zeros(DType::F32, [1000])?;
    assert!(error(decode_predictions(&flat, 1, &classes)).contains("expected [rows, 1000]"));
    assert_eq!(decode_predictions(&Array::zeros(DType::F32, [0, 1000])?, 1, &classes)?.len(), 0);
    for (text, words) in [
        ("", "the file is not a list of classes"),
        ("[]", "the file is not a list of classes"),
        ("{}", "the file is not a list of classes"),
        (&"[".repeat(100_000), "the file is not a list of classes"),
        ("{\"0\": 3}", "in class 0"),
        ("{\"1\": [\"a\", \"b\"]}", "none has the number 0"),
    ] {
        write(text);
        let error = ClassNames::from_file(&file).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let error = ClassNames::from_file(&file).unwrap_err().to_string();
    assert!(error.contains("classes-"), "{error}");
    Ok(())
}

#[test]
fn bad_options_are_said() {
    let small = applications::resnet50().input_shape([31, 64, 3]).build();
    let both = applications::vgg16().pooling(Pooling::Avg).build();
    let wide = applications::vgg16().alpha(0.5).build();
    let none = applications::mobile_net_v2().alpha(f64::NAN).build();
    let classes = applications::mobile_net_v2().classes(0).build();
    let inception = applications::inception_v3().input_shape([74, 100, 3]).build();
    let imagenet = |network: Application| network.weights(Weights::ImageNet).cache(Cache::new("none")).build();
    let gray = imagenet(applications::xception().input_shape([299, 299, 1]));
    let ten = imagenet(applications::vgg16().classes(10));
    let large = imagenet(applications::vgg16().input_shape([256, 256, 3]));
    let wide_net = imagenet(applications::mobile_net_v2().alpha(0.6));
    let tanh = imagenet(applications::resnet50().classifier_activation(Activation::Tanh));
    let file = applications::resnet50().weights(Weights::File("no_such.ckpt".into())).build();
    for (found, words) in [
        (small, "expected at least 32 x 32 pixels"),
        (both, "help: call .include_top(false)"),
        (wide, "alpha is 0.5, which Vgg16 does not have"),
        (none, "alpha is NaN"),
        (classes, "0 classes"),
        (inception, "expected at least 75 x 75 pixels"),
        (gray, "1 channels; expected 3 with ImageNet's weights"),
        (ten, "10 classes; expected 1000 with ImageNet's weights"),
        (large, "expected [224, 224, 3] with ImageNet's weights"),
        (wide_net, "alpha is 0.6; expected one of 0.35, 0.5, 0.75, 1, 1.3, 1.4"),
        (tanh, "the classifier's activation is Tanh"),
        (file, "no_such.ckpt"),
    ] {
        let text = found.map(|model| model.summary()).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}
