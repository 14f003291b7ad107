//! Models with many layers in a row: no step of reading, making or dropping them needs a stack that
//! grows with their number.

use std::thread;

use estimand::keras::{Functional, Input, KerasTensor, Model, SharedLayer, model_from_json};
use estimand::nn::config::CustomObjects;
use estimand::prelude::*;

/// The number of layers. Recursion through all of them takes more than [`STACK`].
const N: usize = 10_000;

/// Reading a single layer takes 0.4 MiB in a debug build.
const STACK: usize = 1 << 20;

fn in_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap()
}

fn chain(x: &KerasTensor) -> KerasTensor {
    let relu = SharedLayer::new(Activation::Relu);
    (0..N).fold(x.clone(), |last, _| relu.on(&last))
}

#[test]
fn the_last_value_of_a_chain_is_dropped() {
    in_a_small_stack(|| {
        let x = Input::new([2]).tensor();
        let last = chain(&x);
        assert_eq!(last.shape().to_string(), "[batch, 2]");
        drop(last);
        // A value in the middle keeps the calls before it alone.
        let middle = chain(&x);
        let last = chain(&middle);
        drop(middle);
        drop(x);
        assert!(last.check().is_ok());
    });
}

#[test]
fn a_chain_with_a_mistake_is_dropped() {
    in_a_small_stack(|| {
        let x = Input::new([2]).tensor();
        // A sequence is expected; the calls after it carry the mistake on.
        let last = chain(&Lstm::new(3).on(&chain(&x)));
        assert!(last.check().is_err());
        assert!(Model::new(&x, &last).is_err());
    });
}

/// A model with `N` layers in a row, as Keras 2 writes it, whose output is this value.
fn document(output: &str) -> String {
    let layer = |i: usize| {
        let call = if i == 0 { "x".to_string() } else { format!("a{}", i - 1) };
        format!(
            r#", {{"class_name": "Activation", "config": {{"name": "a{i}", "activation": "relu"}}, "name": "a{i}",
            "inbound_nodes": [[["{call}", 0, 0, {{}}]]]}}"#
        )
    };
    let layers: String = (0..N).map(layer).collect();
    format!(
        r#"{{"class_name": "Functional", "config": {{"name": "m", "layers": [
        {{"class_name": "InputLayer", "config": {{"name": "x", "batch_input_shape": [null, 2], "dtype": "float32"}},
        "name": "x", "inbound_nodes": []}}{layers}],
        "input_layers": [["x", 0, 0]], "output_layers": [{output}]}}}}"#
    )
}

#[test]
fn a_document_with_a_chain_is_read() {
    in_a_small_stack(|| {
        let model = model_from_json(&document(&format!(r#"["a{}", 0, 0]"#, N - 1)), &CustomObjects::new()).unwrap();
        assert_eq!(model.layers().len(), N + 1);
    });
}

#[test]
fn a_document_with_a_chain_is_refused() {
    in_a_small_stack(|| {
        let outputs = format!(r#"["a{}", 0, 0], ["x", 0, 1]"#, N - 1);
        let error = model_from_json(&document(&outputs), &CustomObjects::new()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("layer `x` has 1 outputs; number 1 is asked for"), "{error}");
    });
}
