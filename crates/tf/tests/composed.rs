//! Ops that are written as several nodes: the reader makes one op of them, unless somebody has
//! changed the nodes.

use estimand_engine::Session;
use estimand_graph::op::composed::ATTRIBUTE;
use estimand_graph::{Combiner, Graph, Initializer, Lookup, LookupTable, RaggedTensor, Tensor};
use estimand_tensor::{Array, DType, Dim, Result, Shape};
use estimand_tf::graph_def::{Names, graph_def};
use estimand_tf::saved_model::{ReadGraph, read_graph_def};
use estimand_wire::{GraphDef, NodeDef, TensorProto};

/// Lookups of ids with missing ones, of two ids per row, and of weighted ids.
struct Model {
    graph: Graph,
    inputs: Vec<(Tensor, Shape)>,
    outputs: Vec<Tensor>,
}

fn model(combiner: Combiner) -> Model {
    let graph = Graph::new();
    let table = graph.variable("table", [5, 3], Initializer::HeUniform);
    let mut inputs = Vec::new();
    let mut place = |name: &str, dtype: DType, shape: Shape| {
        let tensor = graph.placeholder(name, dtype, shape.clone());
        inputs.push((tensor.clone(), shape));
        tensor
    };
    let one = place("one", DType::I64, [Dim::BATCH].into());
    let two = place("two", DType::I32, [Dim::BATCH, 2.into()].into());
    let heavy = place("weights", DType::F32, [Dim::BATCH, 2.into()].into());
    let (two, weights) = (RaggedTensor::from_rows(&two), RaggedTensor::from_rows(&heavy));
    let outputs = vec![
        table.lookup(&RaggedTensor::from_dense(&one), combiner),
        table.lookup(&two, combiner),
        table.lookup(&two, Lookup::new(combiner).weights(&weights.values)),
    ];
    Model { graph, inputs, outputs }
}

fn feeds(rows: usize) -> Result<Vec<Array>> {
    // Id -1 is a missing one; a weight of 0 or below does not count.
    let one = (0..rows).map(|i| [3i64, -1, 0, 4, 3][i % 5]).collect();
    let two = (0..2 * rows).map(|i| [0i32, 2, -1, 1, 4, 4, -1][i % 7]).collect();
    let weights = (0..2 * rows).map(|i| [0.5f32, 2.0, 0.0, -1.0, 1.25][i % 5]).collect();
    Ok(vec![Array::from_vec([rows], one)?, Array::from_vec([rows, 2], two)?, Array::from_vec([rows, 2], weights)?])
}

impl Model {
    fn written(&self) -> Result<(GraphDef, Vec<String>)> {
        let body = self.graph.body();
        let values: Vec<_> = self.outputs.iter().map(Tensor::value).collect();
        let names = Names::new(&body);
        Ok((graph_def(&body, &values)?, values.iter().map(|&value| names.tensor(value)).collect()))
    }

    fn read(&self, written: &GraphDef, outputs: &[String]) -> Result<ReadGraph> {
        let names: Vec<String> = self.inputs.iter().map(|(tensor, _)| tensor.name()).collect();
        let shapes = names.iter().zip(&self.inputs).map(|(name, (_, shape))| (name.as_str(), shape.clone()));
        read_graph_def(written, &shapes.collect::<Vec<_>>(), &outputs.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// The outputs of a graph that was read, on the weights of the model.
fn answers(model: &Model, read: &ReadGraph, outputs: &[String], rows: usize) -> Result<Vec<Array>> {
    let mut session = Session::new(&read.graph)?;
    session.set_value("table", &Session::new(&model.graph)?.value("table")?)?;
    let fetches: Vec<&Tensor> = outputs.iter().map(|name| &read.outputs[name]).collect();
    session.run(&fetches, &read.inputs.values().zip(feeds(rows)?).collect::<Vec<_>>())
}

/// The names of the ops that the outputs need.
fn op_names(read: &ReadGraph) -> Result<Vec<String>> {
    let values: Vec<_> = read.outputs.values().map(Tensor::value).collect();
    let program = estimand_graph::Program::new(std::sync::Arc::new(read.graph.body().clone()), &values)?;
    let steps = program.host_steps().iter().chain(program.steps());
    Ok(steps.map(|step| program.body().node(step.kernel.node()).op.name().to_string()).collect())
}

#[test]
fn several_nodes_become_one_op_with_the_same_bits() -> Result<()> {
    for combiner in [Combiner::Sum, Combiner::Mean, Combiner::SqrtN] {
        let model = model(combiner);
        let (written, outputs) = model.written()?;
        let read = model.read(&written, &outputs)?;
        let ops = op_names(&read)?;
        let count = |name: &str| ops.iter().filter(|op| *op == name).count();
        assert_eq!([count("FromDense"), count("FromRows")], [1, 2], "{combiner:?}: {ops:?}");
        assert_eq!(ops.iter().filter(|op| op.starts_with("Lookup")).count(), 3, "{ops:?}");
        assert_eq!(ops.iter().filter(|op| op.starts_with("SparseSegment")).count(), 3, "{ops:?}");
        assert_eq!(count("RaggedTensorToSparse") + count("Where") + count("SegmentSplits"), 0, "{ops:?}");

        let mut plain = written.clone();
        plain.node.iter_mut().for_each(|node| drop(node.attr.remove(ATTRIBUTE)));
        let plain = model.read(&plain, &outputs)?;
        assert!(op_names(&plain)?.iter().any(|op| op == "RaggedTensorToSparse"));
        for rows in [1, 7, 64] {
            let fed: Vec<_> = model.inputs.iter().map(|(tensor, _)| tensor).zip(feeds(rows)?).collect();
            let expected = Session::new(&model.graph)?.run(&model.outputs.iter().collect::<Vec<_>>(), &fed)?;
            let found = answers(&model, &read, &outputs, rows)?;
            assert!(expected.iter().zip(&found).all(|(a, b)| a.bytes() == b.bytes()), "{combiner:?}, {rows} rows");
            // As TensorFlow computes it: sums of products in another order.
            for (a, b) in found.iter().zip(answers(&model, &plain, &outputs, rows)?) {
                let off = a.to_f64_vec()?.iter().zip(b.to_f64_vec()?).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-6, "{combiner:?}, {rows} rows: {off}");
            }
        }
    }
    Ok(())
}

fn node<'a>(graph: &'a mut GraphDef, end: &str) -> &'a mut NodeDef {
    graph.node.iter_mut().find(|node| node.name.ends_with(end)).unwrap()
}

/// The attribute is not believed: the nodes decide.
#[test]
fn changed_nodes_are_read_as_they_are() -> Result<()> {
    let model = model(Combiner::Sum);
    let (written, outputs) = model.written()?;
    let expected = answers(&model, &model.read(&written, &outputs)?, &outputs, 5)?;
    // Id 3 stands for a missing one, in place of -1.
    let mut changed = written.clone();
    *node(&mut changed, "FromDense/missing") =
        node(&mut changed, "FromDense/missing").clone().attr("value", TensorProto::from_array(&Array::scalar(3i64)));
    let read = model.read(&changed, &outputs)?;
    assert!(op_names(&read)?.iter().all(|op| op != "FromDense"));
    let found = answers(&model, &read, &outputs, 5)?;
    let rows = |array: &Array| -> Result<Vec<Vec<f32>>> {
        Ok(array.as_slice::<f32>()?.chunks(3).map(<[f32]>::to_vec).collect())
    };
    let (expected, found) = (rows(&expected[0])?, rows(&found[0])?);
    // Ids 3, -1, 0, 4, 3.
    assert_eq!((&found[2], &found[3]), (&expected[2], &expected[3]));
    assert_eq!((&found[0], &found[4]), (&vec![0.0; 3], &vec![0.0; 3]));
    assert!(expected[0].iter().any(|&x| x != 0.0));

    // An input that is another one, a name without an op, too few inputs, and an unknown node.
    for text in ["FromDense two", "Unknown one", "FromDense", "FromDense one one", "FromDense nothing", ""] {
        let mut changed = written.clone();
        let last = changed.node.iter_mut().find(|node| node.op == "IdentityN" && node.name.ends_with("FromDense"));
        let last = last.unwrap();
        *last = last.clone().attr(ATTRIBUTE, text);
        let read = model.read(&changed, &outputs)?;
        assert!(op_names(&read)?.iter().all(|op| op != "FromDense"), "{text}");
        assert_eq!(rows(&answers(&model, &read, &outputs, 5)?[0])?, expected, "{text}");
    }
    Ok(())
}

/// A table with buckets for unknown words is a table, a hash and a selection in TensorFlow.
#[test]
fn a_table_with_buckets_is_one_lookup() -> Result<()> {
    let graph = Graph::new();
    let words = graph.placeholder("words", DType::Str, [Dim::BATCH]);
    let ids = LookupTable::from_list(["red", "green"])?.n_oov_buckets(3)?.lookup(&words);
    let name = Names::new(&graph.body()).tensor(ids.value());
    let written = graph_def(&graph.body(), &[ids.value()])?;
    let array = Array::from_strings([5], ["green", "blue", "red", "", "K\u{f6}nig"])?;
    let run = |written: &GraphDef| -> Result<(Vec<String>, Array)> {
        let read = read_graph_def(written, &[("words", [Dim::BATCH].into())], &[&name])?;
        let fed = [(&read.inputs["words"], array.clone())];
        let ids = Session::new(&read.graph)?.run(&[&read.outputs[&name]], &fed)?.remove(0);
        Ok((op_names(&read)?, ids))
    };
    let expected = Session::new(&graph)?.run(&[&ids], &[(&words, array.clone())])?.remove(0);
    let (ops, found) = run(&written)?;
    assert_eq!((ops, &found), (vec!["LookupTableFindV2".to_string()], &expected));
    // Ids of unknown words begin one later: this is no longer our table.
    let mut changed = written.clone();
    *node(&mut changed, "/size") =
        node(&mut changed, "/size").clone().attr("value", TensorProto::from_array(&Array::scalar(3i64)));
    let (ops, found) = run(&changed)?;
    assert!(ops.iter().any(|op| op == "StringToHashBucketFast"), "{ops:?}");
    let later = |id: &i64| if *id < 2 { *id } else { id + 1 };
    assert_eq!(found.as_slice::<i64>()?, expected.as_slice::<i64>()?.iter().map(later).collect::<Vec<_>>());
    Ok(())
}
