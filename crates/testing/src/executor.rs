//! The contract of executors: guarantees of every executor, on any machine.

use std::sync::Arc;

use estimand_engine::Compiled;
use estimand_graph::{
    Executor, GradientMut, Graph, Initializer, Optimizer, Program, RunArgs, State, Tensor, Value, VarId,
};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Dim, Error, Result};
use estimand_update::Sgd;
use indexmap::IndexMap;

use super::compare::difference;

/// Checks an executor against its contract. The error names the part that does not hold.
///
/// ```
/// use estimand_testing::check_executor;
/// use estimand_cpu::Cpu;
/// use estimand_reference::Reference;
///
/// check_executor(&Cpu::with_threads(2))?;
/// check_executor(&Reference)?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn check_executor(executor: &dyn Executor) -> Result<()> {
    type Check = fn(&dyn Executor) -> Result<()>;
    let all: [(&str, Check); 8] = [
        ("a state begins with initial values, and takes others", states_hold_values),
        ("a state is extended by what it does not hold", states_are_extended),
        ("programs of several graphs share a state by the names of variables", names_bind),
        ("a program is refused a state that does not fit", misfits_are_named),
        ("forward changes nothing, and fetches what a step does", forward_only_reads),
        ("threads that read one state at once get the same bits", threads_agree),
        ("a step reads variables as they were, and writes all or none", steps_are_whole),
        ("the results are those of the reference", results_agree),
    ];
    for (law, check) in all {
        check(executor).map_err(|e| e.context(format!("executor `{}`: {law}", executor.name())))?;
    }
    Ok(())
}

fn ensure(holds: bool, what: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::internal(what)) }
}

fn refused<T>(result: Result<T>, parts: &[&str]) -> Result<()> {
    let text = result.err().map(|e| e.to_string()).unwrap_or_else(|| "no error".to_string());
    ensure(parts.iter().all(|part| text.contains(part)), format!("expected an error with {parts:?}: {text}"))
}

/// Linear regression: `w` and `b`, trained by gradient descent.
struct Line {
    graph: Graph,
    x: Tensor,
    prediction: Tensor,
    loss: Tensor,
    train: Tensor,
}

impl Line {
    fn new() -> Line {
        let graph = Graph::new();
        let x = graph.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
        let y = graph.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
        let w = graph.variable("w", [3, 1], Initializer::GlorotUniform);
        let b = graph.variable("b", [1], Initializer::Ones);
        let prediction = x.matmul(&w) + b;
        let loss = (&prediction - &y).square().mean();
        let train = Optimizer::new(Sgd::default().momentum(0.9), 0.1).minimize(&loss);
        Line { graph, x, prediction, loss, train }
    }

    fn place(&self, executor: &dyn Executor) -> Result<Box<dyn State>> {
        executor.place(self.graph.body().variables(), 7)
    }

    fn compile(&self, executor: &dyn Executor, fetches: &[&Tensor]) -> Result<Compiled> {
        compile(executor, &self.graph, fetches)
    }

    /// A value for each placeholder of a program.
    fn feeds(&self, compiled: &Compiled) -> Result<Vec<Array>> {
        let rows: Vec<f32> = (0..12).map(|i| i as f32 / 7.0 - 0.5).collect();
        let x = Array::from_vec([4, 3], rows)?;
        let y = Array::from_vec([4, 1], vec![1f32, 0.0, -1.0, 2.0])?;
        let fed = |value: Value| if value == self.x.value() { x.clone() } else { y.clone() };
        let placeholders = compiled.program().placeholders().iter();
        Ok(placeholders.map(|&node| fed(Value { node, output: 0 })).collect())
    }
}

fn compile(executor: &dyn Executor, graph: &Graph, fetches: &[&Tensor]) -> Result<Compiled> {
    graph.check()?;
    let fetches: Vec<Value> = fetches.iter().map(|tensor| tensor.value()).collect();
    Compiled::new(executor, Program::new(Arc::new(graph.body().clone()), &fetches)?)
}

fn args(feeds: &[Array]) -> RunArgs<'_> {
    RunArgs { feeds, ..RunArgs::default() }
}

/// All variables of a graph, as bytes.
fn bytes(state: &dyn State, graph: &Graph) -> Result<Vec<Vec<u8>>> {
    let body = graph.body();
    body.variables().iter().map(|(_, spec)| Ok(state.read(&spec.name)?.bytes().to_vec())).collect()
}

fn states_hold_values(executor: &dyn Executor) -> Result<()> {
    let line = Line::new();
    let mut state = line.place(executor)?;
    let body = line.graph.body();
    for (id, spec) in body.variables().iter() {
        let initial = body.variables().initial(id, 7)?;
        ensure(state.holds(&spec.name) && state.read(&spec.name)? == initial, spec.name.clone())?;
    }
    let value = Array::from_vec([3, 1], vec![1f32, -2.0, 3.5])?;
    state.write("w", &value)?;
    ensure(state.read("w")? == value, "the written value differs from the read one")?;
    refused(state.write("w", &Array::from([1f32])), &["`w`", "f32[1]", "f32[3, 1]"])?;
    refused(state.write("w", &Array::from_vec([3, 1], vec![1i64, 2, 3])?), &["`w`", "i64[3, 1]"])?;
    refused(state.read("v"), &["`v`"])?;

    let copy = state.copy()?;
    state.write("b", &Array::from([5f32]))?;
    ensure(copy.read("b")? == Array::from([1f32]), "a copy shares memory with its original")?;
    let frozen = executor.freeze(IndexMap::from([("w".to_string(), value.clone())]))?;
    ensure(frozen.holds("w") && !frozen.holds("b") && frozen.read("w")? == value, "a frozen state")
}

fn states_are_extended(executor: &dyn Executor) -> Result<()> {
    let line = Line::new();
    let mut state = line.place(executor)?;
    state.write("b", &Array::from([5f32]))?;
    line.graph.variable("late", [2], Initializer::Constant(3.0));
    ensure(!state.holds("late"), "a variable from nowhere")?;
    state.extend(line.graph.body().variables(), 7)?;
    let values = (state.read("late")?, state.read("b")?);
    ensure(values == (Array::from([3f32, 3.0]), Array::from([5f32])), format!("{values:?}"))
}

fn names_bind(executor: &dyn Executor) -> Result<()> {
    let line = Line::new();
    let mut state = line.place(executor)?;
    // The same variables in another order, with one more placeholder before them.
    let other = Graph::new();
    other.placeholder("z", DType::F32, [Dim::BATCH]);
    let b = other.variable("b", [1], Initializer::Zeros);
    let x = other.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
    let prediction = x.matmul(&other.variable("w", [3, 1], Initializer::Zeros)) + b;
    let (here, there) = (line.compile(executor, &[&line.prediction])?, compile(executor, &other, &[&prediction])?);
    let train = line.compile(executor, &[&line.train])?;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        train.step(&mut *state, args(&line.feeds(&train)?), &mut Vec::new())?;
        let feeds = line.feeds(&here)?;
        here.forward(&*state, args(&feeds), &mut a)?;
        there.forward(&*state, args(&feeds), &mut b)?;
        ensure(a == b, format!("{a:?} and {b:?}"))?;
    }
    // A state with other slots for the same names.
    let again = other.body().variables().clone();
    let mut turned = executor.place(&again, 0)?;
    ["w", "b"].iter().try_for_each(|name| turned.write(name, &state.read(name)?))?;
    here.forward(&*turned, args(&line.feeds(&here)?), &mut b)?;
    ensure(a == b, "the same names in other places of a state")
}

fn misfits_are_named(executor: &dyn Executor) -> Result<()> {
    let line = Line::new();
    let compiled = line.compile(executor, &[&line.prediction])?;
    let feeds = line.feeds(&compiled)?;
    let run =
        |values: IndexMap<String, Array>| compiled.forward(&*executor.freeze(values)?, args(&feeds), &mut Vec::new());
    let b = ("b".to_string(), Array::from([1f32]));
    refused(run(IndexMap::from([b.clone()])), &["no variable `w`"])?;
    let short = Array::from_vec([2, 1], vec![1f32, 2.0])?;
    refused(run(IndexMap::from([b.clone(), ("w".to_string(), short)])), &["`w`", "f32[2, 1]", "f32[3, 1]"])?;
    let whole = Array::from_vec([3, 1], vec![1i32, 2, 3])?;
    refused(run(IndexMap::from([b, ("w".to_string(), whole)])), &["`w`", "i32[3, 1]"])
}

fn forward_only_reads(executor: &dyn Executor) -> Result<()> {
    let line = Line::new();
    let mut state = line.place(executor)?;
    let compiled = line.compile(executor, &[&line.loss, &line.train])?;
    let feeds = line.feeds(&compiled)?;
    for _ in 0..3 {
        let before = bytes(&*state, &line.graph)?;
        let (mut read, mut stepped) = (Vec::new(), Vec::new());
        compiled.forward(&*state, args(&feeds), &mut read)?;
        ensure(bytes(&*state, &line.graph)? == before, "forward has changed a variable")?;
        compiled.step(&mut *state, args(&feeds), &mut stepped)?;
        ensure(read == stepped, format!("{read:?} and {stepped:?}"))?;
        ensure(bytes(&*state, &line.graph)? != before, "a step has changed nothing")?;
    }
    Ok(())
}

fn threads_agree(executor: &dyn Executor) -> Result<()> {
    let line = Line::new();
    let state = line.place(executor)?;
    let compiled = line.compile(executor, &[&line.prediction, &line.loss])?;
    let feeds = line.feeds(&compiled)?;
    let mut alone = Vec::new();
    compiled.forward(&*state, args(&feeds), &mut alone)?;
    let run = || {
        let mut outputs = Vec::new();
        for _ in 0..50 {
            compiled.forward(&*state, args(&feeds), &mut outputs)?;
            ensure(outputs == alone, "a thread has other bits")?;
        }
        Ok(())
    };
    std::thread::scope(|threads| {
        let all: Vec<_> = (0..8).map(|_| threads.spawn(run)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(Error::internal("a thread has panicked")))
        };
        all.into_iter().map(join).collect::<Result<Vec<()>>>()
    })?;
    Ok(())
}

fn steps_are_whole(executor: &dyn Executor) -> Result<()> {
    let graph = Graph::new();
    let (a, b) = (graph.variable("a", [2], Initializer::Zeros), graph.variable("b", [2], Initializer::Ones));
    let swap = graph.group(&[&a.assign(&b), &b.assign(&a)]);
    let compiled = compile(executor, &graph, &[&a, &swap])?;
    let mut state = executor.place(graph.body().variables(), 0)?;
    let mut outputs = Vec::new();
    compiled.step(&mut *state, args(&[]), &mut outputs)?;
    let read = |state: &dyn State| Ok((state.read("a")?, state.read("b")?));
    let (zeros, ones) = (Array::from([0f32, 0.0]), Array::from([1f32, 1.0]));
    ensure(outputs[0] == zeros && read(&*state)? == (ones, zeros), "two assignments do not swap")?;

    let line = Line::new();
    let mut state = line.place(executor)?;
    let train = line.compile(executor, &[&line.train])?;
    let feeds = line.feeds(&train)?;
    let before = bytes(&*state, &line.graph)?;
    let mut n_calls = 0;
    let mut fail = |_: VarId, _: GradientMut<'_>| {
        n_calls += 1;
        if n_calls == 2 { Err(Error::config("a worker is gone")) } else { Ok(()) }
    };
    let failing = RunArgs { on_gradient: Some(&mut fail), ..args(&feeds) };
    refused(train.step(&mut *state, failing, &mut Vec::new()), &["a worker is gone"])?;
    ensure(bytes(&*state, &line.graph)? == before, "a step that failed has written something")
}

fn results_agree(executor: &dyn Executor) -> Result<()> {
    for seed in 0..20 {
        let program = super::generate(seed)?;
        let tensors: Vec<Tensor> = program.fetches.iter().chain([&program.loss]).cloned().collect();
        let ours = program.run(executor, &tensors, true)?;
        for (i, (ours, theirs)) in ours.iter().zip(program.run(&Reference, &tensors, false)?).enumerate() {
            if let Some(how) = difference(ours, &theirs)? {
                return Err(Error::internal(format!("result {i} of program {seed}: {how}")));
            }
        }
    }
    Ok(())
}
