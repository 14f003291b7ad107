//! Graphs of 100,000 nodes: the work of building, rewriting, planning, running, writing and reading
//! grows with the number of nodes, not with its square.
//!
//! Work is counted, not timed: what the passes look at, allocations, and bytes allocated. A graph
//! of four times as many nodes may cost [`MOST`] times as much. The clock is used only against a
//! deadline that a quadratic pass would miss by far.
//!
//! A binary of its own: it counts the allocations of its threads.

mod counting;
mod shapes;

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::{Compiled, Session};
use estimand_graph::{Executor, Graph, Program, RunArgs, Tensor};
use estimand_tensor::{Array, DType, Dim, Shape};
use estimand_tf::graph_def;
use estimand_tf::saved_model::read_graph_def;

use counting::{Work, counted};
use shapes::{ALL, Build, Model};

/// How many times the work four times as many nodes may cost.
const MOST: f64 = 5.0;

/// Counts below this say nothing about growth.
const NOISE: u64 = 4000;

/// The phases of a graph's life, with what each cost.
fn phases(build: Build, n: usize) -> Vec<(&'static str, Work)> {
    let mut all = Vec::new();
    let mut note = |name: &'static str, work: Work| all.push((name, work));
    let (model, work) = counted(|| build(n));
    model.graph.check().unwrap();
    note("build", work);
    let Model { graph, fetches, feeds, is_written } = model;
    let values: Vec<_> = fetches.iter().map(Tensor::value).collect();
    let body = Arc::new(graph.body().clone());
    let (program, work) = counted(|| Program::new(body.clone(), &values).unwrap());
    note("passes", work);
    let ((), work) = counted(|| assert!(program.to_string().len() + graph.to_string().len() > n));
    note("print", work);
    let cpu = Cpu::with_threads(1);
    let (compiled, work) = counted(|| Compiled::new(&cpu, program).unwrap());
    note("compile", work);
    let mut state = cpu.place(body.variables(), 0).unwrap();
    let fed = |id: &estimand_graph::NodeId| feeds[place_of(&feeds, *id)].1.clone();
    let arrays: Vec<Array> = compiled.program().placeholders().iter().map(fed).collect();
    let run = |state: &mut dyn estimand_graph::State| {
        let mut outputs = Vec::new();
        compiled.step(state, RunArgs { feeds: &arrays, ..RunArgs::default() }, &mut outputs).unwrap();
        outputs
    };
    let (_, work) = counted(|| run(&mut *state));
    note("first run", work);
    let (_, work) = counted(|| run(&mut *state));
    note("second run", work);
    let pairs: Vec<(&Tensor, Array)> = feeds.iter().map(|(t, a)| (t, a.clone())).collect();
    let mut session = Session::with(&graph, Cpu::with_threads(1), 0).unwrap();
    let (_, work) = counted(|| session.run(&fetches.iter().collect::<Vec<_>>(), &pairs).unwrap());
    note("session", work);
    if is_written {
        let (written, work) = counted(|| graph_def::graph_def(&graph.body(), &values).unwrap());
        note("write", work);
        let names = graph_def::Names::new(&graph.body());
        let inputs: Vec<(String, Shape)> = feeds
            .iter()
            .filter(|(t, _)| compiled.program().placeholders().contains(&t.value().node))
            .map(|(t, _)| (names.tensor(t.value()), graph.body().spec(t.value()).shape.clone()))
            .map(|(name, shape)| (name, shape.dims().iter().map(|&d| open(d)).collect()))
            .collect();
        let inputs: Vec<(&str, Shape)> = inputs.iter().map(|(name, shape)| (name.as_str(), shape.clone())).collect();
        let outputs: Vec<String> = values.iter().map(|&v| names.tensor(v)).collect();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let (_, work) = counted(|| read_graph_def(&written, &inputs, &outputs).unwrap());
        note("read", work);
    }
    all
}

/// An axis of a placeholder of another graph.
fn open(dim: Dim) -> Dim {
    if dim == Dim::BATCH || dim.known().is_some() { dim } else { Graph::ANY }
}

/// Feeds are in the order of building.
fn place_of(feeds: &[(Tensor, Array)], id: estimand_graph::NodeId) -> usize {
    feeds.binary_search_by_key(&id, |(t, _)| t.value().node).unwrap()
}

/// Complains about every phase whose work grows faster than the number of nodes.
fn check_growth(build: Build) -> Vec<String> {
    let mut complaints = Vec::new();
    let (small, large) = (phases(build, 2000), phases(build, 8000));
    for ((phase, a), (_, b)) in small.iter().zip(&large) {
        let counts = [
            ("looks", a.looks, b.looks),
            ("allocations", a.allocations, b.allocations),
            ("bytes", a.bytes / 16, b.bytes / 16),
        ];
        for (what, small, large) in counts {
            if large > NOISE && large as f64 > MOST * small.max(NOISE / 4) as f64 {
                complaints.push(format!("{phase}: {small} {what} of 2,000 nodes, {large} of 8,000"));
            }
        }
    }
    complaints
}

#[test]
fn work_grows_with_the_number_of_nodes() {
    let mut all = Vec::new();
    for (name, build) in ALL {
        all.extend(check_growth(build).into_iter().map(|complaint| format!("{name}, {complaint}")));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// A tenth of the deadline is what the slowest of them takes.
#[test]
#[ignore = "takes more than a minute; .ci/run asks for it"]
fn a_hundred_thousand_nodes() {
    const DEADLINE: f64 = 60.0;
    let only = std::env::var("SHAPE").unwrap_or_default();
    for (name, build) in ALL.iter().filter(|(name, _)| name.contains(&only)) {
        let phases = phases(*build, 100_000);
        let total: f64 = phases.iter().map(|(_, work)| work.seconds).sum();
        let list: Vec<String> = phases.iter().map(|(phase, work)| format!("{phase} {:.2}", work.seconds)).collect();
        println!("{name}: {total:.2} s ({})", list.join(", "));
        assert!(total < DEADLINE, "{name}: {total:.1} s ({})", list.join(", "));
    }
}

/// Chains are as long as a graph: what recursed along one would need more stack than there is.
#[test]
fn a_long_chain_needs_no_stack() {
    let deep = || {
        for (_, build) in ALL {
            phases(build, 20_000);
        }
    };
    // A quarter of what the main thread of a program has.
    std::thread::Builder::new().stack_size(512 << 10).spawn(deep).unwrap().join().unwrap();
}

/// `y = concat(y, y)`, 60 times: sizes double each time.
fn doubled(shape: impl Into<Shape>, axis: i64) -> (Graph, Tensor, Tensor) {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, shape);
    let mut y = x.clone();
    for _ in 0..60 {
        y = Tensor::concat(&[&y, &y], axis);
    }
    (g, x, y)
}

#[test]
fn sizes_that_double_are_refused_by_name_when_the_graph_is_built() {
    let (g, _, y) = doubled([Dim::BATCH, 8.into()], 1);
    // 8 * 2^60 is 2^63, one more than an array may have bytes.
    let error = g.check().unwrap_err().to_string();
    assert!(y.is_poisoned());
    assert!(error.contains("ConcatV2 of `ConcatV2_") && error.contains("address space"), "{error}");
}

#[test]
fn sizes_that_double_are_refused_by_name_when_the_graph_runs() {
    for axis in [0, 1] {
        let (g, x, y) = doubled([Dim::BATCH, Graph::ANY], axis);
        g.check().unwrap();
        let (text, work) = counted(|| {
            let mut session = Session::with(&g, Cpu::with_threads(1), 0).unwrap();
            let feed = |rows| Array::zeros(DType::F32, [rows, 1]).unwrap();
            let too_large = session.run(&[&y], &[(&x, feed(16))]).unwrap_err().to_string();
            // Nothing doubles as nothing, and the session still works.
            assert_eq!(session.run(&[&y], &[(&x, Array::zeros(DType::F32, [0, 0]).unwrap())]).unwrap()[0].len(), 0);
            too_large
        });
        assert!(text.contains("`ConcatV2_"), "{text}");
        assert!(text.contains("address space") || text.contains("overflows"), "{text}");
        assert!(work.bytes < 1 << 20 && work.looks < 20_000, "{work:?}");
    }
}

#[test]
fn sizes_beyond_the_memory_are_refused_before_it_is_taken() {
    // 2^44 floats fit the address space, and no machine.
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Graph::ANY]);
    let wide = x.expand_dims(0).broadcast_to(Shape::from([Dim::Known(1 << 44), x.shape().dims()[0]]));
    let sum = wide.sum_axes([1]).max_axes([0]);
    let mut session = Session::new(&g).unwrap();
    let error = session.run(&[&sum], &[(&x, Array::from([1f32, 2.0]))]).unwrap_err().to_string();
    assert!(error.contains("not enough memory") && error.contains("`BroadcastTo"), "{error}");
}

#[test]
fn products_of_sizes_that_double() {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Graph::ANY]);
    let mut y = x.clone();
    let (_, work) = counted(|| {
        for _ in 0..60 {
            // [n] -> [n, n] -> [n * n]
            let n = y.shape().dims()[0];
            y = y.expand_dims(0).broadcast_to(Shape::from([n, n])).reshape([-1]);
        }
    });
    g.check().unwrap();
    assert!(work.bytes < 1 << 20, "{work:?}");
    let sum = y.sum();
    let mut session = Session::new(&g).unwrap();
    assert_eq!(session.run(&[&sum], &[(&x, Array::from([3f32]))]).unwrap()[0].item::<f32>().unwrap(), 3.0);
    let error = session.run(&[&sum], &[(&x, Array::from([1f32, 1.0]))]).unwrap_err().to_string();
    assert!(error.contains("overflows") || error.contains("address space"), "{error}");
}
