//! `map_graph`: a map over an input pipeline, written with graph ops including strings and tables.
//!
//! This module connects data and graphs: the pipeline does not know graphs and only sees a function
//! of batches.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use estimand_cpu::Cpu;
use estimand_data::{Dataset, Place, Unit, specs_of};
use estimand_engine::Compiled;
use estimand_graph::{Executor, Graph, Program, RunArgs, State, Value};
use estimand_tensor::{Array, Batch, BatchSpec, Error, Feature, Mode, Ragged, Result};

use crate::feeding::{Binding, Placeholders};
use crate::model_fn::lines;
use crate::{Input, Inputs};

/// Extends [`Dataset`] with maps that are built as graphs.
pub trait MapGraph {
    /// Adds features that a graph computes from those of each row. A computed feature replaces the
    /// one with its name; all other features, the labels and the weights stay. The graph is built
    /// once, from the first rows. It runs in the input threads, a few items ahead; the results are
    /// the same as with one thread.
    ///
    /// Before `batch` the graph receives rows in groups of any size, so the result of a row may
    /// depend on that row only. Random numbers differ from row to row and from epoch to epoch; with
    /// the same seed they are the same again, also after a resume.
    ///
    /// ```
    /// use estimand::graph::Encoding;
    /// use estimand::prelude::*;
    ///
    /// let rows = [("city", Array::from_strings([2], ["Paris", "OSLO"])?)];
    /// let data = Dataset::from_arrays(rows).map_graph(|row| {
    ///     let lower = row.dense("city").lower(Encoding::Bytes);
    ///     [("bucket", lower.hash_bucket(100)), ("length", lower.string_length(Encoding::Bytes))]
    /// });
    /// let batch = data.batch(2).iter().next().expect("a batch")?;
    /// let Feature::Dense(length) = batch.feature("length")? else { panic!("dense") };
    /// assert_eq!(length.as_slice::<i32>()?, [5, 4]);
    /// assert!(batch.feature("city").is_ok());
    /// # use estimand::tensor::Feature;
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    fn map_graph<O, N, T>(&self, build: impl Fn(&Inputs) -> O + Send + Sync + 'static) -> Dataset
    where
        O: IntoIterator<Item = (N, T)>,
        N: Into<String>,
        T: Into<Input>;
}

impl MapGraph for Dataset {
    #[track_caller]
    fn map_graph<O, N, T>(&self, build: impl Fn(&Inputs) -> O + Send + Sync + 'static) -> Dataset
    where
        O: IntoIterator<Item = (N, T)>,
        N: Into<String>,
        T: Into<Input>,
    {
        let build = move |inputs: &Inputs| {
            build(inputs).into_iter().map(|(name, made)| (name.into(), made.into())).collect::<Vec<(String, Input)>>()
        };
        let (site, made) = (Location::caller(), Mutex::new(None::<Arc<Made>>));
        self.parallel_map_at(move |batch, place| {
            let spec = specs_of(&batch).0;
            let kept = lock(&made).clone().filter(|made| made.spec == spec);
            let made = match kept {
                Some(made) => made,
                None => {
                    let new = Arc::new(Made::new(spec, &build, site).map_err(|e| e.context("in map_graph"))?);
                    *lock(&made) = Some(new.clone());
                    new
                }
            };
            made.apply(&batch, place).map_err(|e| e.context("in map_graph"))
        })
    }
}

/// A graph for rows of one kind, ready to run.
struct Made {
    spec: BatchSpec,
    compiled: Compiled,
    binding: Binding,
    outputs: Vec<Output>,
    /// An empty state: the graph has no variables, but a run needs a state.
    state: Box<dyn State>,
}

/// An output feature, and whether it consists of two tensors.
struct Output {
    name: String,
    is_ragged: bool,
}

impl Made {
    fn new(
        spec: BatchSpec,
        build: &dyn Fn(&Inputs) -> Vec<(String, Input)>,
        site: &'static Location<'static>,
    ) -> Result<Made> {
        let graph = Graph::with_mode(Mode::Predict);
        let _lines = lines(&graph, site);
        let inputs = Inputs::new(&graph, "feature", &spec);
        let (mut outputs, mut fetches): (Vec<Output>, Vec<Value>) = (Vec::new(), Vec::new());
        for (name, made) in build(&inputs) {
            if outputs.iter().any(|output| output.name == name) {
                return Err(Error::config(format!("the graph makes the feature `{name}` twice")));
            }
            let is_ragged = matches!(made, Input::Ragged(_));
            match made {
                Input::Dense(tensor) => fetches.push(tensor.value()),
                Input::Ragged(ragged) => fetches.extend([ragged.values.value(), ragged.row_splits.value()]),
            }
            outputs.push(Output { name, is_ragged });
        }
        graph.check()?;
        if outputs.is_empty() {
            return Err(Error::config("the graph makes no feature").help("return at least one feature"));
        }
        if let Some((_, variable)) = graph.body().variables().iter().next() {
            return Err(Error::config(format!(
                "the graph has the variable `{}`; map_graph does not support variables",
                variable.name
            ))
            .help("put trained variables into the model function"));
        }
        let body = Arc::new(graph.body().clone());
        // The input threads already divide the rows among them, so one group needs only one thread.
        let cpu = Cpu::with_threads(1);
        let compiled = Compiled::new(&cpu, Program::new(body.clone(), &fetches)?)?;
        let binding = Placeholders::of_features(&inputs).binding(&compiled)?;
        Ok(Made { spec, compiled, binding, outputs, state: cpu.place(body.variables(), 0)? })
    }

    fn apply(&self, batch: &Batch, place: Place) -> Result<Batch> {
        let feeds = self.binding.bind(batch, &Vec::new())?;
        let mut values = Vec::new();
        // Rows come in groups of any size, so their random numbers depend on each row's own number.
        // A batch may also draw numbers for itself, which must differ from batch to batch.
        let (step, row_offset) = match place.unit {
            Unit::Row => (place.epoch, place.n_rows_before),
            Unit::Batch => (place.epoch.rotate_left(32) ^ place.n_rows_before, 0),
        };
        let args = RunArgs { feeds: &feeds, seed: place.seed, step, row_offset, ..RunArgs::default() };
        self.compiled.forward(&*self.state, args, &mut values)?;
        let mut values = values.into_iter();
        let mut next = || values.next().ok_or_else(|| Error::internal("a run with too few results"));
        let mut mapped = batch.clone();
        for output in &self.outputs {
            let first: Array = next()?;
            let feature = match output.is_ragged {
                true => Feature::Ragged(Ragged::new(first, next()?.as_slice::<i64>()?)?),
                false => Feature::Dense(first),
            };
            mapped = mapped.with_feature(&output.name, feature)?;
        }
        Ok(mapped)
    }
}

/// Locks the mutex. A panic in another thread does not damage its content.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
