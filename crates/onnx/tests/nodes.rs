//! Our evaluator of ONNX files answers as onnxruntime does (`oracles/gen/onnx_nodes.py`), and
//! refuses what the writer does not write.

use estimand_fixture::Case;
use estimand_onnx::message::{
    AttributeProto, DimensionProto, DimensionValue, ModelProto, NodeProto, TensorShapeProto, ValueInfoProto,
};
use estimand_onnx::{Precision, Runner, decode};
use estimand_tensor::{Array, DType, Result};

fn array(given: &estimand_fixture::Array) -> Array {
    let dtype = match given.dtype.as_str() {
        "f32" => DType::F32,
        "f64" => DType::F64,
        "i32" => DType::I32,
        "i64" => DType::I64,
        "bool" => DType::Bool,
        _ => return Array::from_strings(&given.dims, given.strings()).unwrap(),
    };
    Array::from_bytes(dtype, &given.dims, &given.to_ne_bytes()).unwrap()
}

fn arrays(case: &Case, prefix: &str) -> Vec<(String, Array)> {
    (0..9)
        .map(|i| format!("{prefix}_{i}"))
        .filter(|name| case.has(name))
        .map(|name| (name.clone(), array(&case.array(&name))))
        .collect()
}

fn run(case: &Case, model: &ModelProto, precision: Precision) -> Result<Vec<(String, Array)>> {
    let inputs = arrays(case, "input");
    let inputs: Vec<(&str, Array)> = inputs.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
    Runner::new(model, precision)?.run(&inputs)
}

/// Floats within 3e-6 of the largest number, everything else without a difference.
fn check(case: &Case, number: usize, expected: &Array, found: &Array) {
    let place = format!("line {} ({}): {expected:?} and {found:?}", number + 2, case.name());
    assert_eq!((expected.dtype(), expected.dims()), (found.dtype(), found.dims()), "{place}");
    if expected.dtype() != DType::F32 {
        return assert_eq!(expected, found, "{place}");
    }
    let (a, b) = (expected.to_f64_vec().unwrap(), found.to_f64_vec().unwrap());
    let largest = a.iter().map(|v| v.abs()).filter(|v| v.is_finite()).fold(1.0, f64::max);
    // The results of these functions are as far apart as all floats are.
    let relative = case.name() == "Exp";
    for (&a, &b) in a.iter().zip(&b) {
        let size = if relative { a.abs() } else { largest };
        let same = a == b || (a.is_nan() && b.is_nan());
        assert!(same || (a - b).abs() <= 3e-6 * size, "{place}");
    }
}

#[test]
fn answers_are_those_of_onnxruntime() {
    let cases = estimand_fixture::cases("onnx_nodes");
    for (number, case) in cases.iter().enumerate() {
        let model = decode(&case.bytes("bytes")).unwrap();
        let place = |e| format!("line {} ({}): {e}", number + 2, case.name());
        let found = run(case, &model, Precision::AsWritten).map_err(place).unwrap();
        let expected = arrays(case, "output");
        assert_eq!(found.len(), expected.len());
        for ((_, expected), (_, found)) in expected.iter().zip(&found) {
            check(case, number, expected, found);
        }
    }
}

/// NaN is larger than all numbers, 0 and -0 are equal, and the first of equal elements comes first.
#[test]
fn top_k_orders_nan() {
    const N: usize = 64;
    // Place i has the number i * 37 modulo 64. As 37 * 45 = 26 * 64 + 1, the number v is at place
    // v * 45 modulo 64. The number 0, at place 0, and the number 1, at place 45, become 0 and -0.
    // Every fifth place from 3 on becomes NaN: the places 3, 8, 13, .., 63.
    let is_nan = |i: usize| i % 5 == 3;
    let number = |i: usize| match i * 37 % N {
        _ if is_nan(i) => f32::NAN,
        1 => -0.0,
        v => v as f32,
    };
    let x = Array::from_vec([1, N], (0..N).map(number).collect()).unwrap();
    let nans: Vec<i64> = (0..N).filter(|&i| is_nan(i)).map(|i| i as i64).collect();
    let rising: Vec<i64> = (2..N).map(|v| v * 45 % N).filter(|&i| !is_nan(i)).map(|i| i as i64).collect();
    let falling: Vec<i64> = rising.iter().rev().copied().collect();
    for (largest, places) in [(1, [nans.clone(), falling, vec![0, 45]]), (0, [vec![0, 45], rising, nans])] {
        let places = places.concat();
        let case = &estimand_fixture::cases_of("onnx_nodes", "TopK")[0];
        let mut model = decode(&case.bytes("bytes")).unwrap();
        let graph = model.graph.as_mut().unwrap();
        graph.node[0].attribute.push(AttributeProto::int("largest", largest));
        let sizes = |value: &mut ValueInfoProto| {
            let tensor = value.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap();
            let sizes = [1, N as i64].map(|size| DimensionProto { value: Some(DimensionValue::Size(size)) });
            tensor.shape = Some(TensorShapeProto { dim: sizes.to_vec() });
        };
        sizes(&mut graph.input[0]);
        graph.output.iter_mut().for_each(sizes);
        let inputs = [("input_0", x.clone()), ("input_1", Array::from([N as i64]))];
        let found = Runner::new(&model, Precision::AsWritten).unwrap().run(&inputs).unwrap();
        assert_eq!(found[1].1.as_slice::<i64>().unwrap(), places);
        for (&found, &place) in found[0].1.as_slice::<f32>().unwrap().iter().zip(&places) {
            assert_eq!(found.to_bits(), number(place as usize).to_bits());
        }
    }
}

/// Floats in f64 are those in f32 but for their rounding.
#[test]
fn double_precision() {
    for case in ["MatMul", "Conv", "Resize", "Softmax"] {
        let case = &estimand_fixture::cases_of("onnx_nodes", case)[0];
        let model = decode(&case.bytes("bytes")).unwrap();
        let found = run(case, &model, Precision::Double).unwrap();
        let expected = &arrays(case, "output")[0].1;
        assert_eq!(found[0].1.dtype(), DType::F64);
        let pairs = expected.to_f64_vec().unwrap().into_iter().zip(found[0].1.to_f64_vec().unwrap());
        assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-4));
        assert!(pairs.clone().any(|(a, b)| a != b), "{} has no rounding", case.name());
    }
}

/// The error of the first case of an operator with another node.
fn refused(op: &str, change: impl Fn(&mut NodeProto)) -> String {
    let case = &estimand_fixture::cases_of("onnx_nodes", op)[0];
    let mut model = decode(&case.bytes("bytes")).unwrap();
    change(&mut model.graph.as_mut().unwrap().node[0]);
    run(case, &model, Precision::AsWritten).unwrap_err().to_string()
}

#[test]
fn what_is_not_written_is_refused_by_its_node() {
    let error = refused("Tanh", |node| node.op_type = "Hardmax".to_string());
    for part in ["does not run the operator Hardmax", "in node `Tanh` (Hardmax) of the ONNX model"] {
        assert!(error.contains(part), "{error}");
    }
    let error = refused("Tanh", |node| node.attribute.push(AttributeProto::int("axis", 0)));
    assert!(error.contains("attribute `axis` is not one that this library writes"), "{error}");
    let error = refused("Tanh", |node| node.input.push("input_0".to_string()));
    assert!(error.contains("input 1 is not one that this library writes"), "{error}");
    let error = refused("Tanh", |node| node.input[0] = "missing".to_string());
    assert!(error.contains("no node before computes `missing`"), "{error}");
    let error = refused("Resize", |node| node.attribute[0] = AttributeProto::text("mode", "cubic"));
    assert!(error.contains("cubic"), "{error}");
    let error = refused("Gather", |node| node.attribute = vec![AttributeProto::float("axis", 1.0)]);
    assert!(error.contains("attribute `axis` is of another kind"), "{error}");
    let error = refused("MatMul", |node| node.input.swap(0, 1));
    assert!(error.contains("a product of f32[5, 2] and f32[3, 5]"), "{error}");

    let case = &estimand_fixture::cases_of("onnx_nodes", "Tanh")[0];
    let mut model = decode(&case.bytes("bytes")).unwrap();
    model.opset_import[0].version = Some(18);
    let error = run(case, &model, Precision::AsWritten).unwrap_err().to_string();
    assert!(error.contains("version 18 of the operators"), "{error}");
    let model = decode(&case.bytes("bytes")).unwrap();
    let other = Runner::new(&model, Precision::AsWritten).unwrap().run(&[("input_0", Array::from([1i64]))]);
    assert!(other.unwrap_err().to_string().contains("the value is i64[1]; the file says f32["));
}
