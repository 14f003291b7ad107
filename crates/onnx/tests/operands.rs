//! Operands that ONNX's operators do not take: bytes in sums, lists without strings.

use estimand_graph::{Encoding, Graph, Tensor};
use estimand_onnx::{Interface, Precision, Runner, onnx_model};
use estimand_tensor::{Array, DType, Dim, Result};

/// Writes a function of an input and runs it.
fn run(x: &Tensor, y: &Tensor, given: Array) -> Result<Array> {
    let one = |name: &str, tensor: &Tensor| vec![(name.to_string(), tensor.value())];
    let interface = Interface { inputs: one("x", x), outputs: one("y", y) };
    let model = onnx_model(&x.graph().body(), &interface, |_| Array::zeros(DType::F32, []))?;
    Ok(Runner::new(&model, Precision::AsWritten)?.run(&[("x", given)])?.remove(0).1)
}

/// The numbers are TensorFlow 2.15's: 200 + 100 + 7 = 256 + 51, 200 * 100 * 7 = 546 * 256 + 224. A
/// mean is that of the whole sum: 307 / 3 = 102, and (2 * (2^31 - 1) + 5) / 3 = 1431655766.
#[test]
fn small_integers_are_added_as_wider_ones() -> Result<()> {
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::U8, [Dim::BATCH, 3.into()]);
    let given = || Array::from_vec([1, 3], vec![200u8, 100, 7]);
    assert_eq!(run(&x, &x.sum_axes(1), given()?)?, Array::from([51u8]));
    assert_eq!(run(&x, &x.prod_axes(1), given()?)?, Array::from([224u8]));
    assert_eq!(run(&x, &x.mean_axes(1), given()?)?, Array::from([102u8]));
    assert_eq!(run(&x, &x.cumsum(1), given()?)?, Array::from_vec([1, 3], vec![200u8, 44, 51])?);
    assert_eq!(run(&x, &x.max_axes(1), given()?)?, Array::from([200u8]));
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::I32, [Dim::BATCH, 3.into()]);
    let given = Array::from_vec([1, 3], vec![i32::MAX, i32::MAX, 5])?;
    assert_eq!(run(&x, &x.mean_axes(1), given)?, Array::from([1_431_655_766i32]));
    Ok(())
}

/// onnxruntime 1.31 refuses a `StringNormalizer` without strings.
#[test]
fn a_batch_without_strings_keeps_its_case() -> Result<()> {
    let graph = Graph::new();
    let x = graph.placeholder("x", DType::Str, [Dim::BATCH]);
    let lower = x.lower(Encoding::Bytes);
    let none = Array::from_strings([0], Vec::<&str>::new())?;
    assert_eq!(run(&x, &lower, none.clone())?, none);
    let two = run(&x, &lower, Array::from_strings([2], ["Rome", "KÖln"])?)?;
    assert_eq!(two, Array::from_strings([2], ["rome", "kÖln"])?);
    Ok(())
}
