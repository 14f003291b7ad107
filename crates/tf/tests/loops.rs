//! Recurrences of unknown length: the writer writes loops, and the reader makes one op of each.
//! `oracles/live/export.py` checks that TensorFlow runs them.

use estimand_engine::Session;
use estimand_graph::op::{Cell, CellFunction};
use estimand_graph::{Graph, Op, RecurrentInputs, Tensor, gradients};
use estimand_tensor::{Array, DType, Dim, Error, ErrorKind, Result, Shape};
use estimand_tf::graph_def::{Names, graph_def};
use estimand_tf::saved_model::read_graph_def;
use estimand_wire::{AttrValue, GraphDef};

const UNITS: usize = 2;
const CELLS: [Cell; 4] = [Cell::Simple, Cell::Lstm, Cell::Gru { reset_after: false }, Cell::Gru { reset_after: true }];

/// A recurrent network, its outputs, and the shapes of its placeholders.
struct Net {
    graph: Graph,
    outputs: Vec<Tensor>,
    inputs: Vec<(Tensor, Shape)>,
}

fn net(cell: Cell, function: CellFunction, masked: bool, dropped: bool) -> Net {
    let graph = Graph::new();
    let (gates, n_states) = match cell {
        Cell::Simple => (1, 1),
        Cell::Lstm => (4, 2),
        Cell::Gru { .. } => (3, 1),
    };
    let width = gates * UNITS;
    let mut inputs = Vec::new();
    let mut place = |name: &str, dtype: DType, shape: Shape| {
        let tensor = graph.placeholder(name, dtype, shape.clone());
        inputs.push((tensor.clone(), shape));
        tensor
    };
    let x = place("x", DType::F32, [Dim::BATCH, Graph::ANY, width.into()].into());
    let state: Shape = [Dim::BATCH, UNITS.into()].into();
    let others = RecurrentInputs {
        kernel: place("kernel", DType::F32, [UNITS, width].into()),
        bias: (cell == Cell::Gru { reset_after: true }).then(|| place("bias", DType::F32, [width].into())),
        states: (0..n_states).map(|i| place(&format!("first_{i}"), DType::F32, state.clone())).collect(),
        mask: masked.then(|| place("mask", DType::Bool, [Dim::BATCH, Graph::ANY].into())),
        keep: dropped.then(|| place("keep", DType::F32, state.clone())),
    };
    let made = x.recurrent(cell, function, CellFunction::Sigmoid, &others);
    Net { graph, outputs: [made.sequence].into_iter().chain(made.states).collect(), inputs }
}

impl Net {
    fn written(&self) -> Result<(GraphDef, Vec<String>)> {
        let body = self.graph.body();
        let values: Vec<_> = self.outputs.iter().map(Tensor::value).collect();
        let names = Names::new(&body);
        Ok((graph_def(&body, &values)?, values.iter().map(|&value| names.tensor(value)).collect()))
    }

    /// Values for all placeholders, for a number of rows and steps.
    fn feeds(&self, rows: usize, steps: usize) -> Result<Vec<Array>> {
        let mut seed = 0;
        let mut next = || {
            seed = (seed * 37 + 11) % 101;
            seed
        };
        let value = |(tensor, shape): &(Tensor, Shape)| {
            let size = |dim: &Dim| dim.known().unwrap_or(if *dim == Dim::BATCH { rows } else { steps });
            let dims: Vec<usize> = shape.dims().iter().map(size).collect();
            let n = dims.iter().product();
            match tensor.dtype() {
                DType::Bool => Array::from_vec(dims, (0..n).map(|_| next() % 3 != 0).collect()),
                _ => Array::from_vec(dims, (0..n).map(|_| next() as f32 / 50.0 - 1.0).collect()),
            }
        };
        self.inputs.iter().map(value).collect()
    }

    fn read(&self, written: &GraphDef, outputs: &[String]) -> Result<estimand_tf::saved_model::ReadGraph> {
        let names: Vec<String> = self.inputs.iter().map(|(tensor, _)| tensor.name()).collect();
        let shapes = names.iter().zip(&self.inputs).map(|(name, (_, shape))| (name.as_str(), shape.clone()));
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        read_graph_def(written, &shapes.collect::<Vec<_>>(), &outputs)
    }
}

fn check(net: &Net) -> Result<()> {
    let (written, outputs) = net.written()?;
    let read = net.read(&written, &outputs)?;
    let is_one_op = read.graph.body().nodes().iter().filter(|node| matches!(node.op, Op::Recurrent(_))).count() == 1;
    assert!(is_one_op, "the loop is not one op after reading");
    for (rows, steps) in [(3, 5), (1, 1), (2, 0)] {
        let feeds = net.feeds(rows, steps)?;
        let fed: Vec<_> = net.inputs.iter().map(|(tensor, _)| tensor).zip(feeds.iter().cloned()).collect();
        let expected = Session::new(&net.graph)?.run(&net.outputs.iter().collect::<Vec<_>>(), &fed)?;
        let fed: Vec<_> = read.inputs.values().zip(feeds).collect();
        let fetches: Vec<&Tensor> = outputs.iter().map(|name| &read.outputs[name]).collect();
        let found = Session::new(&read.graph)?.run(&fetches, &fed)?;
        for (a, b) in expected.iter().zip(&found) {
            if a.dims() != b.dims() || a.bytes() != b.bytes() {
                return Err(Error::internal(format!("{b:?} after reading, {a:?} before")));
            }
        }
    }
    Ok(())
}

#[test]
fn all_cells_come_back_to_the_bit() {
    for (cell, function) in CELLS.into_iter().flat_map(|cell| CellFunction::ALL.map(|function| (cell, function))) {
        for (masked, dropped) in [(false, false), (true, false), (true, true)] {
            let case = format!("{cell:?} {function:?} {masked} {dropped}");
            check(&net(cell, function, masked, dropped)).unwrap_or_else(|e| panic!("{case}: {e}"));
        }
    }
}

/// The loop has two functions, in a library without other functions.
#[test]
fn equal_cells_share_their_functions() -> Result<()> {
    let net = net(Cell::Lstm, CellFunction::Tanh, true, false);
    let (written, _) = net.written()?;
    let again = net.written()?.0;
    assert_eq!(written, again);
    let library = written.library.as_ref().unwrap();
    let names: Vec<&str> = library.function.iter().map(|f| f.signature.as_ref().unwrap().name.as_str()).collect();
    assert!(
        names.len() == 2 && names[0].starts_with("while_body_") && names[1].starts_with("while_cond_"),
        "{names:?}"
    );
    assert_eq!(written.node.iter().filter(|node| node.op == "StatelessWhile").count(), 1);
    assert!(written.node.iter().all(|node| node.op != "MatMul"), "the product is in the body");
    Ok(())
}

/// A long sequence of known size is a loop too; a short one is not.
#[test]
fn many_steps_are_a_loop() -> Result<()> {
    for (n_steps, expected) in [(4_usize, 0), (1000, 1)] {
        let graph = Graph::new();
        let x = graph.placeholder("x", DType::F32, [Dim::BATCH, n_steps.into(), 1.into()]);
        let kernel = graph.placeholder("kernel", DType::F32, [1, 1]);
        let states = vec![graph.fill([Dim::BATCH, 1.into()], DType::F32, 0.0)];
        let others = RecurrentInputs { kernel, bias: None, states, mask: None, keep: None };
        let y = x.recurrent(Cell::Simple, CellFunction::Tanh, CellFunction::Linear, &others).sequence;
        let written = graph_def(&graph.body(), &[y.value()])?;
        assert_eq!(written.node.iter().filter(|node| node.op == "StatelessWhile").count(), expected);
        assert!(written.node.len() < 200);
    }
    Ok(())
}

/// A gradient over unknown steps has no loop yet. The error names the op and the line of the model.
#[test]
fn gradients_of_unknown_length_are_refused_by_name() {
    let net = net(Cell::Lstm, CellFunction::Tanh, false, false);
    let found = gradients(&net.outputs[0].sum(), &[&net.inputs[0].0]);
    let dx = found[0].to_dense(net.inputs[0].0.shape()).unwrap();
    let refused = graph_def(&net.graph.body(), &[dx.value()]).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Unsupported);
    let text = refused.to_string();
    assert!(text.contains("the gradient of Lstm over a number of steps that is known only at run time"), "{text}");
    assert!(text.contains("loops.rs:"), "{text}");
}

/// A loop that does not say which cell it is runs step by step, with the same results.
#[test]
fn loops_without_a_name_run_step_by_step() -> Result<()> {
    for cell in CELLS {
        let net = net(cell, CellFunction::Tanh, true, true);
        let (mut written, outputs) = net.written()?;
        written.node.iter_mut().for_each(|node| drop(node.attr.remove("_estimand_recurrent")));
        let read = net.read(&written, &outputs)?;
        assert!(!read.graph.body().nodes().iter().any(|node| matches!(node.op, Op::Recurrent(_))));
        for (rows, steps) in [(3, 5), (1, 1), (2, 0)] {
            let feeds = net.feeds(rows, steps)?;
            let fed: Vec<_> = net.inputs.iter().map(|(tensor, _)| tensor).zip(feeds.iter().cloned()).collect();
            let expected = Session::new(&net.graph)?.run(&net.outputs.iter().collect::<Vec<_>>(), &fed)?;
            let fed: Vec<_> = read.inputs.values().zip(feeds).collect();
            let fetches: Vec<&Tensor> = outputs.iter().map(|name| &read.outputs[name]).collect();
            for (a, b) in expected.iter().zip(&Session::new(&read.graph)?.run(&fetches, &fed)?) {
                assert_eq!(a.dims(), b.dims());
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
                assert!(a.to_f64_vec()?.iter().zip(&b.to_f64_vec()?).all(near), "{cell:?}: {a} is not {b}");
            }
        }
    }
    Ok(())
}

/// Loops that are not as we write them are read as they are, never as the op that they name.
#[test]
fn changed_loops_are_read_as_they_are() -> Result<()> {
    let net = net(Cell::Lstm, CellFunction::Tanh, false, false);
    let (written, outputs) = net.written()?;
    let read = |change: &dyn Fn(&mut GraphDef)| {
        let mut changed = written.clone();
        change(&mut changed);
        net.read(&changed, &outputs)
    };
    let at = |def: &GraphDef, op: &str| def.node.iter().position(|node| node.op == op).unwrap();
    let changes: [&dyn Fn(&mut GraphDef); 2] = [
        // Another function in the body.
        &|def| {
            let body = &mut def.library.as_mut().unwrap().function[0];
            body.node_def.iter_mut().find(|node| node.op == "Tanh").unwrap().op = "Sigmoid".into();
        },
        // Another cell than that of the body.
        &|def| {
            let node = at(def, "StatelessWhile");
            def.node[node].attr.insert("_estimand_recurrent".into(), AttrValue::from("Lstm Relu Sigmoid"));
        },
    ];
    for change in changes {
        let graph = read(change)?.graph;
        assert!(!graph.body().nodes().iter().any(|node| matches!(node.op, Op::Recurrent(_))));
    }
    let refused = |change: &dyn Fn(&mut GraphDef)| read(change).unwrap_err().to_string();
    let text = refused(&|def| def.library = None);
    assert!(text.contains("no function `while_body") && text.contains("StatelessWhile"), "{text}");
    let text = refused(&|def| {
        let node = at(def, "StatelessWhile");
        def.node[node].input.pop();
    });
    assert!(text.contains("has 6 arguments or results; expected 5"), "{text}");
    // A loop that begins at a matrix.
    let text = refused(&|def| {
        let node = at(def, "StatelessWhile");
        def.node[node].input[0] = def.node[node].input[4].clone();
    });
    assert!(text.contains("StatelessWhile"), "{text}");
    Ok(())
}

/// Damaged graphs with a loop give an error or another graph, and never a panic.
#[test]
fn damaged_loops() -> Result<()> {
    let net = net(Cell::Gru { reset_after: true }, CellFunction::Tanh, true, true);
    let (written, outputs) = net.written()?;
    let mut seed = 7_usize;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut n_refused = 0;
    for _ in 0..500 {
        let mut damaged = written.clone();
        let (i, other) = (random(damaged.node.len()), damaged.node[random(damaged.node.len())].clone());
        match random(4) {
            0 => damaged.node[i].op = other.op,
            1 => drop(damaged.node[i].attr.pop_last()),
            2 => drop(damaged.node[i].input.pop()),
            _ => {
                let n = damaged.node[i].input.len();
                let input = format!("{}:{}", other.name, random(3));
                if n > 0 {
                    damaged.node[i].input[random(n)] = input;
                }
            }
        }
        n_refused += usize::from(net.read(&damaged, &outputs).is_err());
    }
    assert!(n_refused > 100, "only {n_refused} of 500 damaged graphs were refused");
    Ok(())
}
