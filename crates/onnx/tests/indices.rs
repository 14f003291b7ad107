//! Indices that ONNX reads in another way than we do: those below 0, which it counts from the end,
//! and the nearest pixels of an image.

use estimand_graph::{Graph, Tensor};
use estimand_onnx::message::ModelProto;
use estimand_onnx::{Interface, Precision, Runner, onnx_model};
use estimand_tensor::{Array, DType, Dim, Result};

fn written(inputs: &[(&str, &Tensor)], y: &Tensor) -> Result<ModelProto> {
    let named = |(name, tensor): &(&str, &Tensor)| (name.to_string(), tensor.value());
    let interface =
        Interface { inputs: inputs.iter().map(named).collect(), outputs: vec![("y".to_string(), y.value())] };
    onnx_model(&y.graph().body(), &interface, |_| Array::zeros(DType::F32, []))
}

fn run(model: &ModelProto, inputs: &[(&str, Array)]) -> Result<Array> {
    Ok(Runner::new(model, Precision::AsWritten)?.run(inputs)?.remove(0).1)
}

/// Our executors refuse an index below 0; a runtime must not take the last row for it.
#[test]
fn an_index_below_zero_is_refused() -> Result<()> {
    let graph = Graph::new();
    let table = graph.constant(Array::from_vec([3, 2], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?);
    let ids = graph.placeholder("ids", DType::I64, [Dim::BATCH]);
    let rows = written(&[("ids", &ids)], &table.gather(&ids))?;
    let of = |ids: [i64; 2]| run(&rows, &[("ids", Array::from(ids))]);
    assert_eq!(of([2, 0])?, Array::from_vec([2, 2], vec![5f32, 6.0, 1.0, 2.0])?);
    for ids in [[-1, 0], [-3, 0], [3, 0]] {
        assert!(of(ids).is_err(), "{ids:?}");
    }

    let places = graph.placeholder("places", DType::I64, [Dim::BATCH, 2.into()]);
    let elements = written(&[("places", &places)], &table.gather_nd(&places))?;
    let of = |places: [i64; 4]| run(&elements, &[("places", Array::from_vec([2, 2], places.to_vec())?)]);
    assert_eq!(of([2, 1, 0, 0])?, Array::from([6f32, 1.0]));
    for places in [[2, -1, 0, 0], [-1, 1, 0, 0], [2, 2, 0, 0]] {
        assert!(of(places).is_err(), "{places:?}");
    }

    let updates = graph.constant(Array::from([7f32, 8.0]));
    let sums = written(&[("places", &places)], &updates.scatter_nd(&places, [3, 2]))?;
    let of = |places: [i64; 4]| run(&sums, &[("places", Array::from_vec([2, 2], places.to_vec())?)]);
    assert_eq!(of([2, 1, 0, 0])?, Array::from_vec([3, 2], vec![8f32, 0.0, 0.0, 0.0, 0.0, 7.0])?);
    for places in [[2, -1, 0, 0], [-1, 1, 0, 0]] {
        assert!(of(places).is_err(), "{places:?}");
    }
    Ok(())
}

/// Indices along an axis that follows shared ones.
#[test]
fn an_index_below_zero_of_a_batch_is_refused() -> Result<()> {
    let graph = Graph::new();
    let table = graph.constant(Array::from_vec([2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?);
    let ids = graph.placeholder("ids", DType::I64, [2]);
    let model = written(&[("ids", &ids)], &table.gather_axis(&ids, 1, 1))?;
    let of = |ids: [i64; 2]| run(&model, &[("ids", Array::from(ids))]);
    assert_eq!(of([2, 0])?, Array::from([3f32, 4.0]));
    assert!(of([2, -1]).is_err() && of([3, 0]).is_err());
    Ok(())
}

/// Every third centre of a line of 48 pixels is on the border of two of the 160 pixels. TensorFlow
/// takes the pixels of the fixture `nearest` (oracles/gen/movement.py).
#[test]
fn nearest_pixels_are_those_of_tensorflow() -> Result<()> {
    let mut n = 0;
    for case in estimand_fixture::cases("movement").iter().filter(|case| case.name() == "nearest") {
        let option = |name: &str| case.setting::<bool>(name);
        let [source, target] = ["source", "target"].map(|name| case.setting::<Vec<usize>>(name));
        if option("align_corners") || !option("half_pixel_centers") {
            continue;
        }
        let (x, y) = (case.array("x"), case.array("y"));
        let [x, y] = [x, y].map(|a| Array::from_bytes(DType::F32, &a.dims[..], &a.to_ne_bytes()).unwrap());
        for (height, width) in [(source[0].into(), source[1].into()), (Graph::ANY, Graph::ANY)] {
            let graph = Graph::new();
            let image = graph.placeholder("x", DType::F32, [Dim::BATCH, height, width, x.dims()[3].into()]);
            let model = written(&[("x", &image)], &image.resize_nearest((target[0], target[1])))?;
            assert_eq!(run(&model, &[("x", x.clone())])?, y, "{source:?} {target:?}");
        }
        n += 1;
    }
    assert_eq!(n, 8);
    Ok(())
}
