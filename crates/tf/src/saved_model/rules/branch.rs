//! Conditionals: both branches are read into graphs of their own and compiled. The conditional is
//! one op, which runs one of them.

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_graph::custom::CustomOp;
use estimand_graph::op::reading::Reading;
use estimand_graph::{Executor, State, Tensor, Value, Variables};
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};

use super::super::inline::Inlined;
use super::super::node_output::{List, NodeOutput};
use super::super::node_reader::{NodeReader, Outputs};
use super::super::nodes::Nodes;
use super::super::step_loop::Part;
use super::body::{Argument, argument, check_depth, part, reader, refuse_variables, values_of};

/// A branch and its results.
struct Branch {
    part: Part,
    results: Vec<BranchResult>,
}

/// A result of a branch.
#[derive(PartialEq)]
enum BranchResult {
    /// An argument as it is.
    Passed(usize),
    Tensor(TensorSpec),
}

/// (condition, arguments).
pub(super) fn read_if(call: &mut NodeReader<'_, '_>) -> Outputs {
    check_depth(call)?;
    let condition = call.tensor(0)?;
    if condition.dtype() != DType::Bool || condition.rank() != 0 {
        return Err(Error::unsupported(format!("the condition is {}; expected one boolean", condition.spec())));
    }
    // Nothing changes inside of a branch, so what is known stays known.
    let arguments = (1..call.n_inputs()).map(|i| argument(call, i, true)).collect::<Result<Vec<_>>>()?;
    let cpu = Cpu::with_threads(1);
    let then = branch(call, &cpu, "then_branch", &arguments)?;
    let other = branch(call, &cpu, "else_branch", &arguments)?;
    if then.results.len() != other.results.len() {
        return Err(Error::config("the branches have different numbers of results"));
    }
    let mut specs = Vec::new();
    for (i, (a, b)) in then.results.iter().zip(&other.results).enumerate() {
        match (a, b) {
            (BranchResult::Tensor(a), BranchResult::Tensor(b)) if a == b => specs.push(a.clone()),
            (BranchResult::Tensor(a), BranchResult::Tensor(b)) => {
                return Err(Error::unsupported(format!("result {i} is {a} in one branch and {b} in the other"))
                    .help("only branches whose results have one dtype and one shape can be read"));
            }
            (a, b) if a == b => {}
            _ => return Err(Error::unsupported(format!("result {i} is a list or a table of another branch"))),
        }
    }
    let values = values_of(&arguments);
    let inputs: Vec<&Tensor> = [&condition].into_iter().chain(values.iter().map(|(_, tensor)| tensor)).collect();
    let state: Arc<dyn State> = cpu.place(&Variables::default(), 0).map(Arc::from)?;
    let (parts, passed) = ([other.part, then.part], then.results);
    let op = CustomOp::new(&call.def.name, specs, move |arrays: &[Array]| {
        let (condition, values) = arrays.split_first().ok_or_else(|| Error::internal("no condition"))?;
        parts[usize::from(condition.item::<bool>()?)].run(&*state, values, &[])
    });
    let mut results = call.add(op, &inputs)?.into_iter();
    let output = |result: BranchResult| match result {
        BranchResult::Passed(i) => call.item(i + 1),
        BranchResult::Tensor(_) => results.next().map(Into::into).ok_or_else(|| Error::internal("a missing result")),
    };
    passed.into_iter().map(output).collect()
}

/// Reads and compiles a branch.
fn branch(call: &mut NodeReader<'_, '_>, cpu: &Cpu, key: &str, arguments: &[Argument]) -> Result<Branch> {
    let library = call.reader.nodes.library();
    let (inlined, names, results) = Inlined::body(library.function_of(call.def, key)?, library, &call.def.name)?;
    if names.len() != arguments.len() {
        return Err(Error::config(format!("`{key}` has {} arguments; expected {}", names.len(), arguments.len())));
    }
    let nodes = Nodes::new(&inlined, library)?;
    let names = names.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let results = results.iter().map(|name| nodes.find(name)).collect::<Result<Vec<_>>>()?;
    let mut reader = reader(call, &nodes, arguments, &names)?;
    reader.read(&results)?;
    refuse_variables(&reader)?;
    let (mut fetches, mut found): (Vec<Value>, Vec<BranchResult>) = (Vec::new(), Vec::new());
    for (i, &result) in results.iter().enumerate() {
        let place = |e: Error| e.context(format!("in result {i} of `{key}`"));
        match reader.item(result)? {
            NodeOutput::Value(_) => {
                let tensor = reader.tensor(result).map_err(place)?;
                let step = reader.step.as_ref().ok_or_else(|| Error::internal("a branch without arguments"))?;
                let shape = step.outside(&reader.graph, call.graph(), tensor.shape()).map_err(place)?;
                fetches.push(tensor.value());
                found.push(BranchResult::Tensor(TensorSpec { dtype: tensor.dtype(), shape }));
            }
            NodeOutput::List(List::Argument { at, writes }) if writes.is_empty() => {
                found.push(BranchResult::Passed(at));
            }
            other => return Err(place(Error::unsupported(format!("a branch returns {}", other.kind())))),
        }
    }
    (call.reader.repeated_bytes, call.reader.n_evaluated) = (reader.repeated_bytes, reader.n_evaluated);
    let step = reader.step.take().unwrap_or_default();
    if !step.elements.is_empty() {
        return Err(Error::unsupported(format!("`{key}` reads an element of a list")));
    }
    let part = part(cpu, &reader.graph, &fetches, &step, &values_of(arguments))?;
    Ok(Branch { part, results: found })
}
