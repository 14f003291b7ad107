//! Checks of fed values are assertions in a GraphDef, and checks again after reading.
//! `oracles/live/export.py` checks that TensorFlow runs them.

use estimand_engine::Session;
use estimand_graph::{Graph, LookupTable, RaggedTensor, Tensor};
use estimand_tensor::{Array, DType, Dim, Result, Shape};
use estimand_tf::graph_def::{Names, graph_def};
use estimand_tf::saved_model::read_graph_def;
use estimand_wire::GraphDef;

/// The error of a run before writing, and after reading. They must be the same.
fn errors(graph: &Graph, result: &Tensor, feeds: &[(&Tensor, Array)]) -> Result<String> {
    let before = Session::new(graph)?.run(&[result], feeds).unwrap_err();
    let (def, name) = written(graph, result)?;
    let placeholders: Vec<String> = feeds.iter().map(|(tensor, _)| tensor.name()).collect();
    let open = |dim: &Dim| if dim.known().is_some() || *dim == Dim::BATCH { *dim } else { Graph::ANY };
    let shape = |tensor: &Tensor| tensor.shape().dims().iter().map(open).collect::<Shape>();
    let inputs: Vec<(&str, Shape)> =
        placeholders.iter().zip(feeds).map(|(name, (tensor, _))| (name.as_str(), shape(tensor))).collect();
    let read = read_graph_def(&def, &inputs, &[&name])?;
    let fed: Vec<(&Tensor, Array)> =
        placeholders.iter().zip(feeds).map(|(name, (_, value))| (&read.inputs[name], value.clone())).collect();
    let after = Session::new(&read.graph)?.run(&[&read.outputs[&name]], &fed).unwrap_err();
    let first = |text: String| text.lines().next().unwrap_or_default().to_string();
    assert_eq!(first(before.to_string()), first(after.to_string()));
    Ok(before.to_string())
}

fn written(graph: &Graph, result: &Tensor) -> Result<(GraphDef, String)> {
    let body = graph.body();
    Ok((graph_def(&body, &[result.value()])?, Names::new(&body).tensor(result.value())))
}

#[test]
fn numbers_out_of_range() -> Result<()> {
    let g = Graph::new();
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let checked = labels.ensure_between(0.0, 2.0, "label");
    let text = errors(&g, &checked, &[(&labels, Array::from([0i64, 3]))])?;
    assert!(text.contains("the label in row 1 is 3; expected 0 to 2"), "{text}");

    let weights = g.placeholder("weights", DType::F32, [Dim::BATCH, 2.into()]);
    let checked = weights.ensure_between_or_help(0.0, f64::INFINITY, "weight", "use positive weights");
    let nan = Array::from_vec([1, 2], vec![1.0, f32::NAN])?;
    let text = errors(&g, &checked, &[(&weights, nan)])?;
    assert!(text.contains("the weight in row 0, column 1 is NaN; expected 0 or more"), "{text}");
    assert!(text.contains("use positive weights"), "{text}");
    Ok(())
}

#[test]
fn ragged_values_name_their_row() -> Result<()> {
    let g = Graph::new();
    let values = g.placeholder("values", DType::I64, [Graph::ANY]);
    let row_splits = g.placeholder("splits", DType::I64, [Graph::ANY]);
    let ragged = RaggedTensor { values: values.clone(), row_splits: row_splits.clone() };
    let checked = ragged.ensure_between(0.0, 1.0, "label").values;
    let feeds = [(&values, Array::from([0i64, 1, 7])), (&row_splits, Array::from([0i64, 0, 2, 3]))];
    let text = errors(&g, &checked, &feeds)?;
    assert!(text.contains("the label in row 2 is 7"), "{text}");

    let table = LookupTable::from_ints(vec![0, 1])?;
    let known = table.lookup_known_ragged(&ragged, "label").values;
    let text = errors(&g, &known, &feeds)?;
    assert!(text.contains("label `7` in row 2 is not in the vocabulary"), "{text}");
    Ok(())
}

#[test]
fn terms_that_a_table_does_not_have() -> Result<()> {
    let g = Graph::new();
    let labels = g.placeholder("labels", DType::Str, [Dim::BATCH]);
    let known = LookupTable::from_list(["setosa", "virginica"])?.lookup_known(&labels, "label");
    let text = errors(&g, &known, &[(&labels, Array::from_strings([2], ["setosa", "verginica"])?)])?;
    assert!(text.contains("label `verginica` in row 1 is not in the vocabulary"), "{text}");
    Ok(())
}

#[test]
fn lists_that_differ() -> Result<()> {
    let g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| g.placeholder(name, DType::I64, [Dim::BATCH]));
    let text = errors(&g, &a.agree(&b, "lengths"), &[(&a, Array::from([1i64, 2])), (&b, Array::from([1i64, 3]))])?;
    assert!(text.contains("lengths differ: they are 2 and 3 in row 1"), "{text}");
    Ok(())
}

/// The value that the model uses waits for the assertion.
#[test]
fn the_check_is_written_before_the_value() -> Result<()> {
    let g = Graph::new();
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let (def, name) = written(&g, &labels.ensure_between(0.0, 2.0, "label"))?;
    let node = |name: &str| def.node.iter().find(|node| node.name == name).unwrap();
    assert_eq!(node(&name).input, ["labels".to_string(), format!("^{name}/Assert")]);
    assert_eq!(node(&format!("{name}/Assert")).op, "Assert");
    Ok(())
}

/// An assertion over another value is not ours: it is ignored, as control inputs are.
#[test]
fn other_assertions_are_ignored() -> Result<()> {
    let g = Graph::new();
    let labels = g.placeholder("labels", DType::I64, [Dim::BATCH]);
    let (def, name) = written(&g, &labels.ensure_between(0.0, 2.0, "label"))?;
    let at = |def: &GraphDef, op: &str| def.node.iter().position(|node| node.op == op).unwrap();
    let changes: [&dyn Fn(&mut GraphDef); 4] = [
        &|def| {
            let node = at(def, "Assert");
            def.node[node].attr.remove("_estimand_check");
        },
        &|def| {
            let node = at(def, "LessEqual");
            def.node[node].op = "Less".into();
        },
        &|def| {
            let node = at(def, "GreaterEqual");
            def.node[node].input.swap(0, 1);
        },
        &|def| {
            let node = at(def, "Assert");
            def.node[node].input[0] = "labels".into();
        },
    ];
    for change in changes {
        let mut changed = def.clone();
        change(&mut changed);
        let read = read_graph_def(&changed, &[("labels", Shape::from([Dim::BATCH]))], &[&name])?;
        let found = Session::new(&read.graph)?
            .run(&[&read.outputs[&name]], &[(&read.inputs["labels"], Array::from([5i64]))])?;
        assert_eq!(found[0].as_slice::<i64>()?, [5]);
    }
    Ok(())
}
