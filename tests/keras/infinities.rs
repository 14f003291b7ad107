//! Documents of Keras with infinite numbers and NaN. Python's `json` writes them as bare words.
//!
//! Both versions wrote the documents for `Masking(nan)` and, on its result, `ReLU(max_value=inf)`
//! and `Dense(1, kernel_constraint=MaxNorm(inf), kernel_initializer="ones",
//! bias_initializer=Constant(-inf))`.

use estimand::keras::model_from_json;
use estimand::nn::config::CustomObjects;
use estimand::nn::optimizer;
use estimand::prelude::*;

const KERAS_2_15: &str = r#"
{"class_name": "Functional", "config": {"name": "m", "trainable": true, "layers": [{"module": "keras.layers",
"class_name": "InputLayer", "config": {"batch_input_shape": [null, 2, 2], "dtype": "float32", "sparse": false,
"ragged": false, "name": "x"}, "registered_name": null, "name": "x", "inbound_nodes": []},
{"module": "keras.layers", "class_name": "Masking", "config": {"name": "masking", "trainable": true,
"dtype": "float32", "mask_value": NaN}, "registered_name": null, "build_config": {"input_shape": [null, 2, 2]},
"name": "masking", "inbound_nodes": [[["x", 0, 0, {}]]]}, {"module": "keras.layers", "class_name": "ReLU",
"config": {"name": "relu", "trainable": true, "dtype": "float32", "max_value": Infinity, "negative_slope": 0.0,
"threshold": 0.0}, "registered_name": null, "build_config": {"input_shape": [null, 2, 2]}, "name": "relu",
"inbound_nodes": [[["masking", 0, 0, {}]]]}, {"module": "keras.layers", "class_name": "Dense",
"config": {"name": "dense", "trainable": true, "dtype": "float32", "units": 1, "activation": "linear",
"use_bias": true, "kernel_initializer": {"module": "keras.initializers", "class_name": "Ones", "config": {},
"registered_name": null}, "bias_initializer": {"module": "keras.initializers", "class_name": "Constant",
"config": {"value": -Infinity}, "registered_name": null}, "kernel_regularizer": null, "bias_regularizer": null,
"activity_regularizer": null, "kernel_constraint": {"module": "keras.constraints", "class_name": "MaxNorm",
"config": {"max_value": Infinity, "axis": 0}, "registered_name": null}, "bias_constraint": null},
"registered_name": null, "build_config": {"input_shape": [null, 2, 2]}, "name": "dense",
"inbound_nodes": [[["masking", 0, 0, {}]]]}], "input_layers": [["x", 0, 0]], "output_layers": [["masking", 0,
0], ["relu", 0, 0], ["dense", 0, 0]]}, "keras_version": "2.15.0", "backend": "tensorflow"}"#;

const KERAS_3_15: &str = r#"
{"module": "keras.src.models.functional", "class_name": "Functional", "config": {"name": "m", "trainable": true,
"layers": [{"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 2, 2],
"dtype": "float32", "sparse": false, "ragged": false, "name": "x", "optional": false}, "registered_name": null,
"name": "x", "inbound_nodes": []}, {"module": "keras.layers", "class_name": "Masking",
"config": {"name": "masking", "trainable": true, "dtype": {"module": "keras", "class_name": "DTypePolicy",
"config": {"name": "float32"}, "registered_name": null}, "mask_value": NaN}, "registered_name": null,
"name": "masking", "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"shape": [null, 2,
2], "dtype": "float32", "keras_history": ["x", 0, 0]}}], "kwargs": {}}]}, {"module": "keras.layers",
"class_name": "ReLU", "config": {"name": "relu", "trainable": true, "dtype": {"module": "keras",
"class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null}, "max_value": Infinity,
"negative_slope": 0.0, "threshold": 0.0}, "registered_name": null, "name": "relu",
"inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"shape": [null, 2, 2],
"dtype": "float32", "keras_history": ["masking", 0, 0]}}], "kwargs": {}}]}, {"module": "keras.layers",
"class_name": "Dense", "config": {"name": "dense", "trainable": true, "dtype": {"module": "keras",
"class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null}, "units": 1,
"activation": "linear", "use_bias": true, "kernel_initializer": {"module": "keras.initializers",
"class_name": "Ones", "config": {}, "registered_name": null},
"bias_initializer": {"module": "keras.initializers", "class_name": "Constant", "config": {"value": -Infinity},
"registered_name": null}, "kernel_regularizer": null, "bias_regularizer": null,
"kernel_constraint": {"module": "keras.constraints", "class_name": "MaxNorm", "config": {"max_value": Infinity,
"axis": 0}, "registered_name": null}, "bias_constraint": null, "quantization_config": null},
"registered_name": null, "build_config": {"input_shape": [null, 2, 2]}, "name": "dense",
"inbound_nodes": [{"args": [{"class_name": "__keras_tensor__", "config": {"shape": [null, 2, 2],
"dtype": "float32", "keras_history": ["masking", 0, 0]}}], "kwargs": {}}]}], "input_layers": ["x", 0, 0],
"output_layers": [["masking", 0, 0], ["relu", 0, 0], ["dense", 0, 0]]}, "registered_name": "Functional",
"build_config": {"input_shape": null}, "compile_config": {}}"#;

/// The documents of `SGD(0.1, clipnorm=inf)`.
const OPTIMIZERS: [&str; 2] = [
    r#"{"module": "keras.optimizers.experimental", "class_name": "SGD", "config": {"name": "SGD",
    "weight_decay": null, "clipnorm": Infinity, "global_clipnorm": null, "clipvalue": null, "use_ema": false,
    "ema_momentum": 0.99, "ema_overwrite_frequency": null, "jit_compile": false, "is_legacy_optimizer": false,
    "learning_rate": 0.10000000149011612, "momentum": 0.0, "nesterov": false}, "registered_name": null}"#,
    r#"{"module": "keras.optimizers", "class_name": "SGD", "config": {"name": "sgd",
    "learning_rate": 0.10000000149011612, "weight_decay": null, "clipnorm": Infinity, "global_clipnorm": null,
    "clipvalue": null, "use_ema": false, "ema_momentum": 0.99, "ema_overwrite_frequency": null,
    "loss_scale_factor": null, "gradient_accumulation_steps": null, "momentum": 0.0, "nesterov": false},
    "registered_name": null}"#,
];

#[test]
fn models_with_such_numbers_compute_what_keras_computes() {
    for document in [KERAS_2_15, KERAS_3_15] {
        let mut model = model_from_json(document, &CustomObjects::new()).unwrap();
        let x = Array::from_vec([1, 2, 2], vec![1.0f32, 2.0, f32::NAN, 4.0]).unwrap();
        let found = model.predict_all(&x).unwrap();
        let found: Vec<&[f32]> = found.iter().map(|output| output.as_slice().unwrap()).collect();
        // What `predict` of both versions returns.
        for found in &found[..2] {
            assert!(found[..2] == [1.0, 2.0] && found[2].is_nan() && found[3] == 4.0, "{found:?}");
        }
        assert!(found[2][0] == f32::NEG_INFINITY && found[2][1].is_nan(), "{found:?}");
        // Our documents have no such words, and Keras takes no texts in their place.
        let error = model.to_json().unwrap_err().to_string();
        assert!(error.contains("JSON has no number NaN"), "{error}");
    }
}

#[test]
fn optimizers_with_such_numbers_are_read() {
    for document in OPTIMIZERS {
        let sgd = optimizer::from_json(document, &CustomObjects::new()).unwrap();
        let error = optimizer::to_json(&sgd).unwrap_err().to_string();
        assert!(error.contains("JSON has no number inf"), "{error}");
    }
}
