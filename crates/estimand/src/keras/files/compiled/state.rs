//! The state of an optimizer in the files of Keras: its variables by number, or in the older form
//! by name, in the order of `order`.

use std::collections::HashMap;

use estimand_graph::Optimizer;
use estimand_hdf5::{File, Writer};
use estimand_tensor::{Array, DType, Error, Result};
use estimand_update::Schedule;

use super::order::{self, Generation, Variable};
use crate::keras::files::{cast, legacy};
use crate::keras::json::KerasVersion;
use crate::keras::model::Model;

/// Where a `.keras` file keeps the variables.
const PLACE: &str = "optimizer/vars";

/// The variables of an optimizer in a file.
pub(super) struct Stored<'a> {
    file: &'a File,
    /// The paths of the variables, in order.
    paths: Vec<String>,
}

impl<'a> Stored<'a> {
    /// Finds the variables in a file, if it has some.
    pub fn find(file: &'a File) -> Result<Option<Stored<'a>>> {
        let root = file.root();
        if root.contains(legacy::OPTIMIZER) {
            let names = legacy::names(&root.group(legacy::OPTIMIZER)?, legacy::WEIGHT_NAMES)?;
            let paths = names.into_iter().map(|name| format!("{}/{name}", legacy::OPTIMIZER)).collect();
            return Ok(Some(Stored { file, paths }));
        }
        if !root.contains(PLACE) {
            return Ok(None);
        }
        let n = root.group(PLACE)?.names().count();
        Ok(Some(Stored { file, paths: (0..n).map(|i| format!("{PLACE}/{i}")).collect() }))
    }

    /// The sizes of a variable.
    fn shape(&self, i: usize) -> Result<Vec<usize>> {
        Ok(self.file.root().dataset(&self.paths[i])?.shape().to_vec())
    }

    /// Reads a variable, which must have these sizes.
    fn read(&self, i: usize, dims: &[usize]) -> Result<Array> {
        let dataset = self.file.root().dataset(&self.paths[i])?;
        match dataset.shape() == dims {
            true => dataset.read(),
            false => Err(Error::shape(format!("its shape is {:?}; expected {dims:?}", dataset.shape()))),
        }
    }

    /// The number of updates, which every optimizer has first.
    pub fn iterations(&self) -> Result<u64> {
        if self.paths.is_empty() {
            return Err(Error::data("the state of the optimizer is empty; expected its number of updates"));
        }
        let value = self.read(0, &[]).map_err(|error| error.context("in the number of updates"))?;
        let n = cast(&value, DType::I64)?.item::<i64>()?;
        u64::try_from(n).map_err(|_| Error::data(format!("the number of updates is {n}; expected at least 0")))
    }

    /// Gives the state to a model that was compiled with this optimizer.
    pub fn restore(&self, model: &mut Model, version: KerasVersion) -> Result<()> {
        let optimizer = model.check_compiled()?.optimizer.clone();
        let generation = Generation::of(&optimizer, version);
        let mut variables = order::variables(&optimizer, generation, &model.trained_weights());
        let unused = order::before_training(&optimizer, generation);
        match self.paths.len() {
            n if n == variables.len() => {
                let ends_with_product = variables.last() == Some(&Variable::Product);
                if ends_with_product && !self.shape(n - 1)?.is_empty() {
                    variables = order::in_older_order(&variables);
                }
            }
            n if n == unused.len() => variables = unused,
            n => {
                let (name, n_weights) = (optimizer.rule().name(), model.trained_weights().len());
                let text = format!(
                    "the file has {n} variables of the optimizer {name}; expected {} for {n_weights} trained weights",
                    variables.len()
                );
                return Err(Error::config(text));
            }
        }
        let (mut slots, mut rate) = (HashMap::new(), None);
        let n_updates = self.iterations()?;
        for (i, variable) in variables.iter().enumerate() {
            let place = |error: Error| error.context(format!("in {}, {}", self.paths[i], variable.describe()));
            let value = self.read(i, variable.dims()).map_err(place)?;
            match variable {
                Variable::Iterations => {}
                Variable::LearningRate => {
                    let found = cast(&value, DType::F32).and_then(|value| value.item::<f32>()).map_err(place)?;
                    let checked = Schedule::Constant(f64::from(found)).check();
                    checked.map_err(|text| place(Error::data(text)))?;
                    rate = Some(found);
                }
                Variable::Slot { of, .. } => {
                    slots.insert(of.clone(), cast(&value, DType::F32).map_err(place)?);
                }
                Variable::Product | Variable::Unused { .. } => {}
            }
        }
        model.restore_slots(n_updates, slots);
        model.rate = rate.or(model.rate);
        Ok(())
    }
}

impl Model {
    /// The weights that the optimizer trains, with their sizes.
    fn trained_weights(&self) -> Vec<(String, Vec<usize>)> {
        let trained = self.weight_names().map(|name| (name, self.spec_of(name))).filter(|(_, spec)| spec.trainable);
        trained.map(|(name, spec)| (name.to_string(), spec.dims.clone())).collect()
    }
}

/// Writes the state of a model's optimizer: by number, or with `is_legacy` by name.
pub(super) fn write(
    model: &Model,
    optimizer: &Optimizer,
    version: KerasVersion,
    is_legacy: bool,
    writer: &mut Writer,
) -> Result<()> {
    let generation = Generation::of(optimizer, version);
    let mut names = Vec::new();
    for (i, variable) in order::variables(optimizer, generation, &model.trained_weights()).iter().enumerate() {
        let value = value(model, optimizer, version, variable)?;
        match is_legacy {
            true => {
                let name = variable.name_in_file(i);
                writer.dataset(&format!("{}/{name}", legacy::OPTIMIZER), &value)?;
                names.push(name);
            }
            false => writer.dataset(&format!("{PLACE}/{i}"), &value)?,
        }
    }
    if is_legacy { legacy::add_names(legacy::OPTIMIZER, legacy::WEIGHT_NAMES, &names, writer) } else { Ok(()) }
}

/// The value of a variable.
fn value(model: &Model, optimizer: &Optimizer, version: KerasVersion, variable: &Variable) -> Result<Array> {
    let n_updates = model.n_updates()?;
    match variable {
        Variable::Iterations => Ok(count(n_updates, version)),
        Variable::LearningRate => Ok(Array::scalar(model.learning_rate()? as f32)),
        Variable::Product => {
            let scalars = optimizer.rule().scalars(n_updates);
            let product = scalars.iter().find(|(name, _)| *name == "momentum_cache").map_or(1.0, |(_, x)| *x);
            Ok(Array::scalar(product as f32))
        }
        Variable::Slot { of, initial, dims } => match model.slot_value(of)? {
            Some(value) => Ok(value),
            None => filled(dims, *initial),
        },
        Variable::Unused { dims } => filled(dims, 0.0),
    }
}

/// The number of updates, as JAX counts them if Keras 3 reads it.
fn count(n: u64, version: KerasVersion) -> Array {
    match i32::try_from(n) {
        Ok(n) if version == KerasVersion::Keras3 => Array::scalar(n),
        _ => Array::scalar(n as i64),
    }
}

fn filled(dims: &[usize], value: f32) -> Result<Array> {
    Array::from_vec(dims, vec![value; dims.iter().product()])
}
