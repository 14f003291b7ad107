//! The layout of batches: which feature feeds which input of a model, and which label belongs to
//! which output.

use estimand_graph::{Graph, Tensor};
use estimand_nn::{Input as NnInput, Inputs};
use estimand_tensor::{Array, Batch, DType, Dim, Error, Feature, Mode, Result, Shape};

use super::model::Model;
use super::recipe::Spec;
use super::replay::shown;
use crate::feeding::Placeholders;

/// A feature or label of a batch: its name there, its dtype and the sizes of a row.
#[derive(Clone, PartialEq, Debug)]
struct Column {
    name: String,
    dtype: DType,
    row: Vec<usize>,
}

/// What the batches of a run look like. A program is compiled for one layout.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Layout {
    features: Vec<Column>,
    labels: Vec<Column>,
    /// The sizes of the weights of a row, if batches have weights.
    weights: Option<Vec<usize>>,
    pub class_weight: Option<Vec<f32>>,
}

/// The tensors that a batch becomes in a graph.
pub(super) struct Fed {
    pub inputs: Vec<Tensor>,
    pub labels: Vec<Tensor>,
    pub weights: Option<Tensor>,
    pub placeholders: Placeholders,
}

impl Layout {
    /// Finds the inputs of a model in a batch, and the labels that a mode needs.
    pub fn of(model: &Model, batch: &Batch, mode: Mode) -> Result<Layout> {
        let names = model.input_names();
        let features = columns(&names, batch.features().iter().map(|(name, f)| (&**name, f)), "input", "feature")?;
        for ((column, spec), name) in features.iter().zip(model.recipe.input_specs()).zip(&names) {
            check_input(model, column, spec, name)?;
        }
        let weights = batch.weights().map(|weights| weights.dims().get(1..).unwrap_or(&[]).to_vec());
        let found = batch.labels().iter().map(|(name, f)| (&**name, f));
        if mode == Mode::Predict {
            return Ok(Layout { features, labels: Vec::new(), weights: None, class_weight: None });
        }
        if mode == Mode::Train && model.train_step.is_some() {
            // A step of one's own takes any labels.
            let names: Vec<&str> = batch.labels().keys().map(|name| &**name).collect();
            let labels = columns(&names, found, "output", "label")?;
            return Ok(Layout { features, labels, weights, class_weight: None });
        }
        let outputs = model.output_names();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        if batch.labels().is_empty() {
            return Err(Error::config(format!("the data of model `{}` has no labels", model.name()))
                .help("pass (x, y), or a dataset with labels"));
        }
        let labels = columns(&outputs, found, "output", "label")?;
        Ok(Layout { features, labels, weights, class_weight: None })
    }

    /// Adds placeholders for a batch, and what leads from them to the inputs of the model.
    pub fn feed(&self, graph: &Graph, model: &Model) -> Fed {
        let specs = model.recipe.input_specs();
        let place = |column: &Column, known: &Shape| {
            let axis = |(i, &n): (usize, &usize)| match known.dims().get(i + 1) {
                Some(Dim::Sym(_)) => Graph::ANY,
                _ => Dim::Known(n),
            };
            let shape: Shape = std::iter::once(Dim::BATCH).chain(column.row.iter().enumerate().map(axis)).collect();
            graph.placeholder(&column.name, column.dtype, shape)
        };
        let features: Vec<Tensor> = self.features.iter().zip(&specs).map(|(c, spec)| place(c, &spec.shape)).collect();
        let inputs = features.iter().zip(&specs).map(|(tensor, spec)| as_input(tensor, spec));
        let outputs = model.recipe.output_specs();
        let none = Shape::scalar();
        let known = |i: usize| outputs.get(i).map_or(&none, |spec| &spec.shape);
        let labels: Vec<Tensor> = self.labels.iter().enumerate().map(|(i, c)| place(c, known(i))).collect();
        let weights = self.weights.as_ref().map(|row| {
            let shape: Shape = std::iter::once(Dim::BATCH).chain(row.iter().map(|&n| n.into())).collect();
            graph.placeholder("sample_weight", DType::F32, shape)
        });
        let named = |what, columns: &[Column], tensors: &[Tensor]| {
            let pairs = columns.iter().zip(tensors).map(|(c, tensor)| (c.name.clone(), NnInput::Dense(tensor.clone())));
            Inputs::of(graph, what, pairs)
        };
        let (f, l) = (named("feature", &self.features, &features), named("label", &self.labels, &labels));
        let placeholders = Placeholders::of_inputs(&f, &l, weights.as_ref());
        Fed { inputs: inputs.collect(), labels, weights, placeholders }
    }
}

/// A feature with the dtype and rank of an input.
pub(super) fn as_input(tensor: &Tensor, spec: &Spec) -> Tensor {
    let tensor = if tensor.dtype() == spec.dtype { tensor.clone() } else { tensor.cast(spec.dtype) };
    // TF: rows of one number may come without their axis.
    if tensor.rank() < spec.shape.rank() { tensor.expand_dims(-1) } else { tensor }
}

/// Finds the columns of a model's inputs or outputs by name. A model with one of them takes the
/// only column, whatever its name.
fn columns<'a>(
    names: &[&str],
    found: impl Iterator<Item = (&'a str, &'a Feature)>,
    what: &str,
    word: &str,
) -> Result<Vec<Column>> {
    let found: Vec<(&str, &Feature)> = found.collect();
    let column = |name: &str| {
        let of_name = found.iter().find(|(known, _)| *known == name);
        let only = || found.first().filter(|_| found.len() == 1 && names.len() == 1);
        let Some((name, feature)) = of_name.or_else(only) else {
            let known: Vec<&str> = found.iter().map(|(known, _)| *known).collect();
            let text =
                format!("{what} `{name}` of the model has no {word} in the data, which has {}", known.join(", "));
            return Err(Error::config(text).help(format!("name the {word} as the {what}, or the {what} as the {word}")));
        };
        match feature {
            Feature::Dense(array) => Ok(Column {
                name: name.to_string(),
                dtype: array.dtype(),
                row: array.dims().get(1..).unwrap_or(&[]).to_vec(),
            }),
            Feature::Ragged(_) => Err(Error::shape(format!("{word} `{name}` has rows of different length"))
                .help("pad it in the dataset: padded_batch")),
        }
    };
    names.iter().map(|name| column(name)).collect()
}

fn check_input(model: &Model, column: &Column, spec: &Spec, name: &str) -> Result<()> {
    let wanted = &spec.shape.dims()[1..];
    let fits = |(n, dim): (&usize, &Dim)| dim.known().is_none_or(|known| known == *n);
    let same = column.row.len() == wanted.len() && column.row.iter().zip(wanted).all(fits);
    let one_number = wanted == [Dim::Known(1)] && column.row.is_empty();
    let is_castable = column.dtype == spec.dtype || (column.dtype.is_number() && spec.dtype.is_number());
    if (same || one_number) && (is_castable || column.dtype == DType::Bool) {
        return Ok(());
    }
    let given: Shape = std::iter::once(Dim::BATCH).chain(column.row.iter().map(|&n| n.into())).collect();
    Err(Error::shape(format!(
        "input `{name}` of model `{}` got {}{}; expected {}{}",
        model.name(),
        column.dtype,
        shown(&given),
        spec.dtype,
        shown(&spec.shape)
    ))
    .help("the first axis is the batch; reshape the rows, or change the shape of the Input"))
}

/// The rows of a batch that was given as arrays.
pub(super) fn n_rows(array: &Array) -> usize {
    array.dims().first().copied().unwrap_or(0)
}
