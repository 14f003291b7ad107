//! The hook that trains: after each step it reads the examples of the batch, moves their dual
//! variables, and sets the weights of the model.

use std::sync::PoisonError;

use estimand_checkpoint::BundleReader;
use estimand_graph::Tensor;
use estimand_nn::column::LinearValues;
use estimand_tensor::{Array, DType, Error, Result};
use tracing::info;

use super::rows::{Column, Ids, Values};
use super::solver::{Examples, Problem, Refused, Solver};
use super::table::Key;
use super::{LinearSdca, Shared, state, tf_entries};
use crate::hook::{BeginContext, Fetch, Hook, HookContext};
use crate::{Every, RunConfig, Timer};

/// A variable of the model, and the values that its weights are multiplied with.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    /// `None` for the bias.
    pub(super) values: Option<LinearValues>,
}

/// The tensors of a step. The bias is the last of the variables.
pub(super) struct Inputs {
    pub(super) ids: Tensor,
    pub(super) labels: Tensor,
    pub(super) weights: Option<Tensor>,
    pub(super) variables: Vec<Variable>,
}

/// Places of the tensors among the values of a step.
struct Fetches {
    ids: Fetch,
    labels: Fetch,
    weights: Option<Fetch>,
    columns: Vec<Fetched>,
}

/// Places of a column's values.
enum Fetched {
    Dense(Fetch),
    Ids { ids: Fetch, row_splits: Fetch, weights: Option<Fetch> },
}

pub(super) struct SdcaHook {
    inputs: Inputs,
    fetches: Option<Fetches>,
    solver: Solver,
    examples: Examples,
    is_restored: bool,
    log: Timer,
    summary: Timer,
    /// The steps of the last log line and the last summary.
    told: [Option<u64>; 2],
    progress: Shared,
}

impl SdcaHook {
    pub(super) fn new(sdca: &LinearSdca, problem: Problem, inputs: Inputs, config: &RunConfig) -> Result<SdcaHook> {
        let n_weights: usize = inputs.variables.iter().map(Variable::len).sum();
        if u32::try_from(n_weights).is_err() {
            let text = format!("the model has {n_weights} weights; LinearSdca trains up to {}", u32::MAX);
            return Err(Error::unsupported(text).help("use fewer hash buckets, or another optimizer"));
        }
        Ok(SdcaHook {
            inputs,
            fetches: None,
            solver: Solver::new(problem, n_weights, sdca.num_table_shards),
            examples: Examples::default(),
            is_restored: false,
            log: Timer::counted_from(0, config.log_step_count_steps.map_or(Every::Never, Every::Steps)),
            summary: Timer::counted_from(0, Every::Steps(config.save_summary_steps)),
            told: [None; 2],
            progress: sdca.progress.clone(),
        })
    }

    fn fetches(&self) -> Result<&Fetches> {
        self.fetches.as_ref().ok_or_else(|| Error::internal("a step before the hook has begun"))
    }

    /// Reads the batch of the last step.
    fn read(&self, cx: &HookContext<'_>, examples: &mut Examples) -> Result<()> {
        let fetches = self.fetches()?;
        let labels = value(cx, fetches.labels)?.as_slice::<f32>()?;
        let n_rows = labels.len();
        examples.labels.clear();
        examples.labels.extend(labels.iter().map(|label| f64::from(*label)));
        examples.weights.clear();
        match fetches.weights {
            Some(weights) => {
                let weights = value(cx, weights)?.as_slice::<f32>()?;
                examples.weights.extend(weights.iter().map(|weight| f64::from(*weight)));
            }
            None => examples.weights.resize(n_rows, 1.0),
        }
        fill_keys(value(cx, fetches.ids)?, &mut examples.keys)?;
        if examples.keys.len() != n_rows || examples.weights.len() != n_rows {
            let (ids, weights) = (examples.keys.len(), examples.weights.len());
            return Err(Error::internal(format!("a batch of {n_rows} labels has {ids} ids and {weights} weights")));
        }
        let (mut columns, mut first) = (Vec::with_capacity(fetches.columns.len()), 0);
        for (variable, fetched) in self.inputs.variables.iter().zip(&fetches.columns) {
            let values = match fetched {
                Fetched::Dense(numbers) => Values::Dense(value(cx, *numbers)?.as_slice()?),
                Fetched::Ids { ids, row_splits, weights } => Values::Ids {
                    ids: Ids::of(value(cx, *ids)?)?,
                    row_splits: value(cx, *row_splits)?.as_slice()?,
                    weights: weights.map(|weights| value(cx, weights)?.as_slice()).transpose()?,
                },
            };
            columns.push(Column { values, first, n: variable.len() });
            first += variable.len() as u32;
        }
        examples.rows.fill(n_rows, &columns, first)
    }

    /// Sets the weights of all variables that the batch has changed, or of all.
    fn write(&self, cx: &mut HookContext<'_>, changed: Option<&[u32]>) -> Result<()> {
        let mut first = 0;
        let mut is_changed = vec![changed.is_none(); self.inputs.variables.len()];
        let ends: Vec<usize> = (self.inputs.variables.iter())
            .map(|variable| {
                first += variable.len();
                first
            })
            .collect();
        for index in changed.unwrap_or_default() {
            let variable = ends.partition_point(|end| *end <= *index as usize);
            if let Some(is_changed) = is_changed.get_mut(variable) {
                *is_changed = true;
            }
        }
        for ((variable, end), is_changed) in self.inputs.variables.iter().zip(ends).zip(is_changed) {
            if is_changed {
                let weights: Vec<f32> = (end - variable.len()..end).map(|i| self.solver.weight(i) as f32).collect();
                cx.session().set_value(&variable.name, &Array::from_vec(&variable.dims, weights)?)?;
            }
        }
        Ok(())
    }

    /// Tells how far the training has come, unless it was told of this step.
    fn tell(&mut self, cx: &mut HookContext<'_>, logs: bool, summarizes: bool) -> Result<()> {
        let Some(progress) = self.solver.progress() else { return Ok(()) };
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
        let (step, gap) = (cx.global_step(), progress.duality_gap);
        let [logged, summarized] = self.told;
        if logs && logged != Some(step) {
            self.told[0] = Some(step);
            let (objective, n) = (progress.primal_objective, progress.examples_seen);
            info!("duality gap = {gap:.6e}, objective = {objective:.6}, examples = {n}, step = {step}");
            cx.show(format!("duality gap {gap:.1e}"));
        }
        if summarizes
            && summarized != Some(step)
            && let Some(events) = cx.events()
        {
            self.told[1] = Some(step);
            events.scalar(step, "approximate_duality_gap", gap as f32)?;
            events.scalar(step, "examples_seen", progress.examples_seen as f32)?;
        }
        Ok(())
    }

    /// The error of an example, with its id.
    fn place(&self, cx: &HookContext<'_>, refused: Refused) -> Error {
        let Refused { row, error } = refused;
        let id = self.fetches().and_then(|fetches| value(cx, fetches.ids)).and_then(|ids| id_text(ids, row));
        let id = id.map_or_else(|_| String::new(), |id| format!(" `{id}`"));
        error.context(format!("in example{id}, row {row} of its batch"))
    }
}

impl Variable {
    fn len(&self) -> usize {
        self.dims.iter().product()
    }
}

impl Hook for SdcaHook {
    fn name(&self) -> &str {
        "linear_sdca"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        let mut columns = Vec::new();
        for values in self.inputs.variables.iter().filter_map(|variable| variable.values.as_ref()) {
            columns.push(match values {
                LinearValues::Dense(numbers) => Fetched::Dense(cx.fetch(numbers)?),
                LinearValues::Categories(found) => Fetched::Ids {
                    ids: cx.fetch(&found.ids.values)?,
                    row_splits: cx.fetch(&found.ids.row_splits)?,
                    weights: found.weights.as_ref().map(|weights| cx.fetch(weights)).transpose()?,
                },
            });
        }
        self.fetches = Some(Fetches {
            ids: cx.fetch(&self.inputs.ids)?,
            labels: cx.fetch(&self.inputs.labels)?,
            weights: self.inputs.weights.as_ref().map(|weights| cx.fetch(weights)).transpose()?,
            columns,
        });
        Ok(())
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if self.is_restored {
            // Another L1 or L2 regularization than that of the checkpoint changes all weights.
            return self.write(cx, None);
        }
        for variable in &self.inputs.variables {
            let value = cx.session().value(&variable.name)?;
            if cx.global_step() > 0 || value.as_slice::<f32>()?.iter().any(|weight| *weight != 0.0) {
                let text = format!("LinearSdca begins with `{}` as 0, and here it was trained before", variable.name);
                return Err(Error::config(text).help(
                    "weights follow from the dual variables of all examples, which only a checkpoint of LinearSdca \
                     has: train in another model_dir, and without a warm start",
                ));
            }
        }
        Ok(())
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (step, seed) = (cx.global_step(), cx.session().seed());
        let mut examples = std::mem::take(&mut self.examples);
        self.read(cx, &mut examples)?;
        self.solver.step(&examples, seed, step).map_err(|refused| self.place(cx, refused))?;
        self.write(cx, Some(examples.rows.indices()))?;
        self.examples = examples;
        let (logs, summarizes) = (self.log.is_due(step), self.summary.is_due(step));
        if logs {
            self.log.trigger(step);
        }
        if summarizes {
            self.summary.trigger(step);
        }
        match logs || summarizes {
            true => self.tell(cx, logs, summarizes),
            false => Ok(()),
        }
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (logs, summarizes) = (!self.log.is_never(), !self.summary.is_never());
        self.tell(cx, logs, summarizes)
    }

    fn state(&self) -> Option<Vec<u8>> {
        Some(state::write(&self.solver, &sizes(&self.inputs)))
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        let sizes = sizes(&self.inputs);
        state::read(&mut self.solver, &sizes, state)?;
        self.is_restored = true;
        Ok(())
    }

    fn entries(&self) -> Result<Vec<(String, Array)>> {
        let dims: Vec<&[usize]> = self.inputs.variables.iter().map(|variable| &variable.dims[..]).collect();
        tf_entries::write(&self.solver, &sizes(&self.inputs), &dims)
    }

    fn restore_entries(&mut self, checkpoint: &BundleReader) -> Result<()> {
        let sizes = sizes(&self.inputs);
        self.is_restored = tf_entries::read(&mut self.solver, &sizes, checkpoint)?;
        Ok(())
    }
}

/// The names of all variables and their numbers of weights.
fn sizes(inputs: &Inputs) -> Vec<(&str, usize)> {
    inputs.variables.iter().map(|variable| (variable.name.as_str(), variable.len())).collect()
}

/// The value of a tensor in the last step.
fn value<'a>(cx: &'a HookContext<'_>, fetch: Fetch) -> Result<&'a Array> {
    cx.value(fetch).ok_or_else(|| Error::internal("a step did not compute a value that a hook needs"))
}

/// Makes keys of ids: strings, or integers as decimal texts.
fn fill_keys(ids: &Array, keys: &mut Vec<Key>) -> Result<()> {
    keys.clear();
    if ids.dtype() == DType::Str {
        keys.extend(ids.strings()?.map(Key::of));
        return Ok(());
    }
    for row in 0..ids.len() {
        keys.push(Key::of(id_text(ids, row)?.as_bytes()));
    }
    Ok(())
}

/// The id of a row as a text.
fn id_text(ids: &Array, row: usize) -> Result<String> {
    let missing = || Error::internal(format!("row {row} has no id"));
    Ok(match ids.dtype() {
        DType::Str => String::from_utf8_lossy(ids.strings()?.nth(row).ok_or_else(missing)?).into_owned(),
        DType::I32 => ids.as_slice::<i32>()?.get(row).ok_or_else(missing)?.to_string(),
        _ => ids.as_slice::<i64>()?.get(row).ok_or_else(missing)?.to_string(),
    })
}
