//! Random programs as ONNX models: our evaluator computes what the reference does. onnxruntime gets
//! the same programs in `oracles/live/onnx_programs.py`.

use estimand_graph::{Body, Tensor, Value};
use estimand_onnx::message::{GraphProto, ModelProto};
use estimand_onnx::{Interface, Precision, Runner, onnx_model};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Result};
use estimand_testing::{RandomProgram, generate, generate_preprocessing};

const COUNT: u64 = 400;

fn initial(body: &Body, name: &str) -> Result<Array> {
    let (id, _) = body.variables().iter().find(|(_, spec)| spec.name == name).unwrap();
    body.variables().initial(id, 0)
}

/// The model of the fetches that ONNX can express, and those fetches.
fn model(program: &RandomProgram) -> Option<(ModelProto, Vec<Tensor>)> {
    let body = program.graph.body();
    let input = |(i, (tensor, _)): (usize, &(Tensor, Array))| (format!("input_{i}"), tensor.value());
    let inputs: Vec<(String, Value)> = program.feeds.iter().enumerate().map(input).collect();
    let of = |fetches: &[Tensor]| {
        let outputs = fetches.iter().enumerate().map(|(i, fetch)| (format!("output_{i}"), fetch.value()));
        let interface = Interface { inputs: inputs.clone(), outputs: outputs.collect() };
        onnx_model(&body, &interface, |name| initial(&body, name))
    };
    let kept = program.fetches.iter().filter(|&fetch| of(std::slice::from_ref(fetch)).is_ok());
    let kept: Vec<Tensor> = kept.cloned().collect();
    Some((of(&kept).ok()?, kept)).filter(|(_, kept)| !kept.is_empty())
}

/// Numbers within 1e-4 of the largest of the result, or of 1.
fn same(expected: &Array, found: &Array) -> bool {
    if expected.dtype() != found.dtype() || expected.dims() != found.dims() {
        return false;
    }
    if expected.dtype() == DType::Str {
        return expected == found;
    }
    let (a, b) = (expected.to_f64_vec().unwrap(), found.to_f64_vec().unwrap());
    let largest = a.iter().map(|v| v.abs()).filter(|v| v.is_finite()).fold(1.0, f64::max);
    let close = |(&a, &b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-4 * largest;
    a.iter().zip(&b).all(close)
}

fn operators(graph: &GraphProto) -> Vec<String> {
    graph.node.iter().map(|node| node.op_type.clone()).collect()
}

#[test]
fn random_programs() {
    let (mut n_outputs, mut kinds, mut wrong) = (0, std::collections::BTreeSet::new(), Vec::new());
    for seed in 0..COUNT {
        let program = if seed % 3 == 2 { generate_preprocessing(seed) } else { generate(seed) }.unwrap();
        let Some((model, fetches)) = model(&program) else { continue };
        kinds.extend(model.graph.iter().flat_map(operators));
        let expected = program.run(&Reference, &fetches, true).unwrap();
        let names: Vec<String> = (0..program.feeds.len()).map(|i| format!("input_{i}")).collect();
        let feeds = names.iter().zip(&program.feeds).map(|(name, (_, array))| (name.as_str(), array.clone()));
        let found = Runner::new(&model, Precision::AsWritten).and_then(|runner| runner.run(&feeds.collect::<Vec<_>>()));
        match found {
            Err(error) => wrong.push(format!("program {seed}: {error}")),
            Ok(found) => {
                for (expected, (name, found)) in expected.iter().zip(&found) {
                    n_outputs += 1;
                    if !same(expected, found) {
                        wrong.push(format!("program {seed}, {name}: expected {expected:?}, found {found:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_outputs > 3 * COUNT && kinds.len() > 50, "{n_outputs} outputs, {} operators", kinds.len());
}
