//! Writes random programs with our results, for stock TensorFlow to run and to differentiate
//! (`oracles/live/graphdef.py`).
//!
//!     graph_exchange FOLDER FIRST_SEED COUNT
//!
//! One in ten programs is one of the host: strings, ragged features, tables, lookups. Each file
//! `programs-N.tfrecord` holds up to 100 programs, two records each, in TensorFlow's own messages:
//! a `GraphDef` with the forward and backward nodes, and a `NameAttrList` named after the seed,
//! whose attributes are
//!
//! | attribute | value |
//! |---|---|
//! | `feed:TENSOR`, `variable:HANDLE` | what to feed and to assign |
//! | `initializers` | nodes that fill tables, to be run first |
//! | `fetches` | what to compute: tensor names |
//! | `loss`, `wrt` | what to differentiate, with respect to what: tensor names |
//! | `gradients` | our gradient of each `wrt`: a tensor name, or nothing |
//! | `EXECUTOR:TENSOR` | what an executor of ours computed |
//!
//! `unrepeatable.pb` is a GraphDef of ops that give other numbers in TensorFlow: the random ones.

use std::env;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use estimand_cpu::Cpu;
use estimand_graph::op::Variable;
use estimand_graph::{Executor, Graph, Op, Tensor, Value};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Dim, Error, Result};
use estimand_testing::{RandomProgram, generate, generate_preprocessing};
use estimand_tf::graph_def::{Names, export, graph_def_bytes};
use estimand_wire::record::RecordWriter;
use estimand_wire::{AttrValue, Message, NameAttrList, TensorProto};

const PER_FILE: u64 = 100;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().collect();
    let number = |text: &String| text.parse::<u64>().ok();
    let [_, folder, first, count] = &args[..] else { return Err(usage()) };
    let (Some(first), Some(count)) = (number(first), number(count)) else { return Err(usage()) };
    fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", &e))?;
    for (n, start) in (first..first + count).step_by(PER_FILE as usize).enumerate() {
        let path = Path::new(folder).join(format!("programs-{n}.tfrecord"));
        write_file(&path, start..(start + PER_FILE).min(first + count))?;
    }
    let path = Path::new(folder).join("unrepeatable.pb");
    fs::write(&path, unrepeatable()?).map_err(|e| Error::io(&path, "write", &e))
}

fn usage() -> Error {
    Error::config("usage: graph_exchange FOLDER FIRST_SEED COUNT")
}

fn write_file(path: &Path, seeds: std::ops::Range<u64>) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(path, "write", &e);
    let mut records = RecordWriter::new(BufWriter::new(File::create(path).map_err(failed)?));
    for seed in seeds {
        let (graph, case) = exchange(seed).map_err(|e| e.context(format!("program {seed}")))?;
        records.write(&graph).map_err(failed)?;
        records.write(&case).map_err(failed)?;
    }
    records.flush().map_err(failed)
}

/// The two records of a program.
fn exchange(seed: u64) -> Result<(Vec<u8>, Vec<u8>)> {
    let program = if seed % 10 == 9 { generate_preprocessing(seed)? } else { generate(seed)? };
    let derived = program.differentiate()?;
    let RandomProgram { graph, feeds, fetches, loss, wrt } = &program;
    let mut targets = fetches.clone();
    targets.extend(derived.iter().flatten().cloned());

    let names = Names::new(&graph.body());
    let name_of = |t: &Tensor| names.tensor(t.value());
    let text = |names: Vec<String>| AttrValue::from(names.into_iter().map(String::into_bytes).collect::<Vec<_>>());
    let mut case = NameAttrList { name: seed.to_string(), ..Default::default() };
    let mut set = |key: String, value: AttrValue| drop(case.attr.insert(key, value));
    for (tensor, value) in feeds {
        set(format!("feed:{}", name_of(tensor)), proto(value).into());
    }
    for (handle, value) in variables(graph)? {
        set(format!("variable:{handle}"), proto(&value).into());
    }
    set("loss".into(), name_of(loss).as_str().into());
    set("wrt".into(), text(wrt.iter().map(name_of).collect()));
    set("gradients".into(), text(derived.iter().map(|g| g.as_ref().map(name_of).unwrap_or_default()).collect()));
    set("fetches".into(), text(fetches.iter().map(name_of).collect()));
    for executor in [&Reference as &dyn Executor, &Cpu::with_threads(1)] {
        let run =
            |passes| program.run(executor, &targets, passes).map_err(|e| e.context(format!("on {}", executor.name())));
        let values = run(true)?;
        if run(false)?.iter().zip(&values).any(|(plain, passed)| !same_bits(plain, passed)) {
            return Err(Error::internal(format!("passes change the bits on {}", executor.name())));
        }
        for (tensor, value) in targets.iter().zip(&values) {
            set(format!("{}:{}", executor.name(), name_of(tensor)), proto(value).into());
        }
    }
    let targets: Vec<Value> = targets.iter().chain([loss]).map(Tensor::value).collect();
    let exported = export(&graph.body(), &targets)?;
    set("initializers".into(), text(exported.initializers));
    Ok((exported.graph_def.encode_to_vec(), case.encode_to_vec()))
}

/// The batch decides how many numbers are drawn; each op has TensorFlow's name.
fn unrepeatable() -> Result<Vec<u8>> {
    let graph = Graph::new();
    graph.placeholder("x", DType::F32, [Dim::BATCH]);
    let shape = [Dim::BATCH, Dim::Known(3)];
    let drawn = [
        graph.random_uniform(shape),
        graph.random_normal(shape),
        graph.truncated_normal(shape),
        graph.random_integers(shape, -2, 3),
    ];
    graph.check()?;
    graph_def_bytes(&graph.body(), &drawn.each_ref().map(Tensor::value))
}

/// The variables that the graph reads, by the names of their handles.
fn variables(graph: &Graph) -> Result<Vec<(String, Array)>> {
    let body = graph.body();
    let read = body.nodes().iter().filter_map(|node| match node.op {
        Op::Variable(Variable(id)) => Some(id),
        _ => None,
    });
    read.map(|id| Ok((body.variables().spec(id).name.clone(), body.variables().initial(id, 0)?))).collect()
}

/// Equal bit for bit, NaN included.
fn same_bits(a: &Array, b: &Array) -> bool {
    if a.dtype() == DType::Str { a == b } else { a.bytes() == b.bytes() }
}

fn proto(value: &Array) -> TensorProto {
    TensorProto::from_array(value)
}
