//! The data of `fit`, `evaluate` and `predict`: arrays, or a dataset of batches.

use estimand_data::{Dataset, Unit};
use estimand_tensor::{Array, Batch, Error, Result};

use super::csr::CsrRows;
use super::layout::n_rows;
use super::model::Model;

/// One array, several in the order of a model's inputs or outputs, or several with their names.
#[derive(Clone, Debug)]
pub struct Arrays(Vec<(Option<String>, Array)>);

impl From<Array> for Arrays {
    fn from(array: Array) -> Arrays {
        Arrays(vec![(None, array)])
    }
}

impl From<&Array> for Arrays {
    fn from(array: &Array) -> Arrays {
        array.clone().into()
    }
}

impl From<Vec<Array>> for Arrays {
    fn from(arrays: Vec<Array>) -> Arrays {
        Arrays(arrays.into_iter().map(|array| (None, array)).collect())
    }
}

impl<const N: usize> From<[Array; N]> for Arrays {
    fn from(arrays: [Array; N]) -> Arrays {
        Vec::from(arrays).into()
    }
}

impl<const N: usize> From<[&Array; N]> for Arrays {
    fn from(arrays: [&Array; N]) -> Arrays {
        arrays.map(Array::clone).into()
    }
}

impl<const N: usize> From<[(&str, Array); N]> for Arrays {
    fn from(arrays: [(&str, Array); N]) -> Arrays {
        Arrays(arrays.into_iter().map(|(name, array)| (Some(name.to_string()), array)).collect())
    }
}

impl<const N: usize> From<[(&str, &Array); N]> for Arrays {
    fn from(arrays: [(&str, &Array); N]) -> Arrays {
        arrays.map(|(name, array)| (name, array.clone())).into()
    }
}

/// What a model is trained on, tested with, or predicts from: `x`, `(x, y)`, `(x, y, weights)` or a
/// [`Dataset`] of batches.
#[derive(Clone, Debug)]
pub struct Data(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Arrays { x: Arrays, y: Option<Arrays>, weights: Option<Array> },
    Sparse { x: CsrRows, y: Option<Arrays>, weights: Option<Array> },
    Dataset(Dataset),
}

impl<Y: Into<Arrays>> From<(CsrRows, Y)> for Data {
    fn from((x, y): (CsrRows, Y)) -> Data {
        Data(Kind::Sparse { x, y: Some(y.into()), weights: None })
    }
}

impl<Y: Into<Arrays>> From<(CsrRows, Y, &Array)> for Data {
    fn from((x, y, weights): (CsrRows, Y, &Array)) -> Data {
        Data(Kind::Sparse { x, y: Some(y.into()), weights: Some(weights.clone()) })
    }
}

impl From<CsrRows> for Data {
    fn from(x: CsrRows) -> Data {
        Data(Kind::Sparse { x, y: None, weights: None })
    }
}

impl<X: Into<Arrays>, Y: Into<Arrays>> From<(X, Y)> for Data {
    fn from((x, y): (X, Y)) -> Data {
        Data(Kind::Arrays { x: x.into(), y: Some(y.into()), weights: None })
    }
}

impl<X: Into<Arrays>, Y: Into<Arrays>> From<(X, Y, &Array)> for Data {
    fn from((x, y, weights): (X, Y, &Array)) -> Data {
        Data(Kind::Arrays { x: x.into(), y: Some(y.into()), weights: Some(weights.clone()) })
    }
}

macro_rules! data_of_arrays {
    ($([$($generics:tt)*] $of:ty),* $(,)?) => {$(
        impl<$($generics)*> From<$of> for Data {
            fn from(x: $of) -> Data {
                Data(Kind::Arrays { x: x.into(), y: None, weights: None })
            }
        }
    )*};
}
data_of_arrays!(
    [] Array,
    [] &Array,
    [] Vec<Array>,
    [const N: usize] [Array; N],
    [const N: usize] [&Array; N],
    [const N: usize] [(&str, Array); N],
    [const N: usize] [(&str, &Array); N],
);

impl From<Dataset> for Data {
    fn from(data: Dataset) -> Data {
        Data(Kind::Dataset(data))
    }
}

impl From<&Dataset> for Data {
    fn from(data: &Dataset) -> Data {
        Data(Kind::Dataset(data.clone()))
    }
}

/// Batches to run on.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    pub dataset: Dataset,
    /// The number of batches, if it is known.
    pub n_batches: Option<usize>,
}

/// Keras' batch size.
pub(super) const BATCH_SIZE: usize = 32;

impl Data {
    /// Arrays as one batch, with the names of the model's inputs and outputs.
    pub(super) fn batch(&self, model: &Model) -> Result<Option<Batch>> {
        match &self.0 {
            Kind::Arrays { x, y, weights } => {
                check_rows(x, y.as_ref(), weights.as_ref())?;
                let mut batch = Batch::new();
                for (name, array) in named(x, &model.input_names(), "input")? {
                    batch = batch.with_feature(&name, array)?;
                }
                with_labels(batch, model, y.as_ref(), weights.as_ref()).map(Some)
            }
            Kind::Sparse { x, y, weights } => {
                let batch = Batch::new().with_feature(sparse_input(model)?, x.dense()?)?;
                with_labels(batch, model, y.as_ref(), weights.as_ref()).map(Some)
            }
            Kind::Dataset(_) => Ok(None),
        }
    }

    /// All rows, with CSR rows still sparse.
    fn rows(&self, model: &Model) -> Result<Option<Batch>> {
        match &self.0 {
            Kind::Sparse { x, y, weights } => {
                sparse_input(model)?;
                with_labels(x.batch()?, model, y.as_ref(), weights.as_ref()).map(Some)
            }
            Kind::Arrays { .. } | Kind::Dataset(_) => self.batch(model),
        }
    }

    /// Batches of this many rows; `shuffled` gives them a new order in each epoch.
    pub(super) fn batches(&self, model: &Model, batch_size: Option<usize>, shuffled: bool) -> Result<Batches> {
        if let Some(rows) = self.rows(model)? {
            let size = batch_size.unwrap_or(BATCH_SIZE);
            if size == 0 {
                return Err(Error::config("batch_size is 0; expected at least 1"));
            }
            let n_batches = Some(rows.n_rows().div_ceil(size));
            let rows = Dataset::from_batch(rows);
            let rows = if shuffled { rows.shuffle(usize::MAX, 0) } else { rows };
            let dataset = match &self.0 {
                Kind::Sparse { x, .. } => x.densified(&rows.batch(size), sparse_input(model)?),
                Kind::Arrays { .. } | Kind::Dataset(_) => rows.batch(size),
            };
            return Ok(Batches { dataset, n_batches });
        }
        let Kind::Dataset(dataset) = &self.0 else { return Err(Error::internal("data of no kind")) };
        if let Some(size) = batch_size {
            return Err(Error::config(format!("batch_size is {size}, and the data is a dataset, which has batches"))
                .help("leave batch_size out, and call .batch(..) of the dataset"));
        }
        if dataset.unit() == Unit::Row {
            let text = "the dataset has single rows; expected batches";
            return Err(Error::config(text).help("call .batch(32) of the dataset"));
        }
        Ok(Batches { dataset: dataset.clone(), n_batches: None })
    }

    /// The first rows and the last ones, a `fraction` of all.
    pub(super) fn split(&self, fraction: f64) -> Result<(Data, Data)> {
        if !(fraction > 0.0 && fraction < 1.0) {
            let text = format!("validation_split is {fraction}; expected a number between 0 and 1");
            return Err(Error::config(text));
        }
        let n = match &self.0 {
            Kind::Arrays { x, y, weights } => {
                check_rows(x, y.as_ref(), weights.as_ref())?;
                x.0.first().map_or(0, |(_, array)| n_rows(array))
            }
            Kind::Sparse { x, .. } => x.n_rows(),
            Kind::Dataset(_) => {
                return Err(Error::config("validation_split is set, and the data is a dataset; expected arrays")
                    .help("pass validation_data, made with take and skip of the dataset"));
            }
        };
        let at = (n as f64 * (1.0 - fraction)).floor() as usize;
        if at == 0 || at == n {
            let text = format!("validation_split {fraction} of {n} rows leaves no rows for one of the two parts");
            return Err(Error::config(text).help("pass more rows, or validation_data"));
        }
        let part = |range: std::ops::Range<usize>| -> Result<Data> {
            let rows = |arrays: &Arrays| -> Result<Arrays> {
                let cut = arrays.0.iter().map(|(name, array)| Ok((name.clone(), array.rows(range.clone())?)));
                Ok(Arrays(cut.collect::<Result<_>>()?))
            };
            let weights = |weights: &Option<Array>| weights.as_ref().map(|w| w.rows(range.clone())).transpose();
            Ok(Data(match &self.0 {
                Kind::Arrays { x, y, weights: w } => {
                    Kind::Arrays { x: rows(x)?, y: y.as_ref().map(rows).transpose()?, weights: weights(w)? }
                }
                Kind::Sparse { x, y, weights: w } => Kind::Sparse {
                    x: x.rows(range.clone())?,
                    y: y.as_ref().map(rows).transpose()?,
                    weights: weights(w)?,
                },
                Kind::Dataset(_) => return Err(Error::internal("a dataset is not cut")),
            }))
        };
        Ok((part(0..at)?, part(at..n)?))
    }
}

/// The name of the only input, which CSR rows are for.
fn sparse_input(model: &Model) -> Result<&str> {
    match model.input_names()[..] {
        [name] => Ok(name),
        ref names => {
            let text = format!("CSR rows are for one input, and the model has {}", names.join(", "));
            Err(Error::config(text).help("pass a dataset whose batches have dense features"))
        }
    }
}

/// Adds labels and weights to a batch.
fn with_labels(mut batch: Batch, model: &Model, y: Option<&Arrays>, weights: Option<&Array>) -> Result<Batch> {
    if let Some(y) = y {
        let outputs = model.output_names();
        for (name, array) in named(y, &outputs.iter().map(String::as_str).collect::<Vec<_>>(), "output")? {
            batch = batch.with_label(&name, array)?;
        }
    }
    match weights {
        Some(weights) => batch.with_weights(weights.clone()),
        None => Ok(batch),
    }
}

/// All arrays must have the same number of rows.
fn check_rows(x: &Arrays, y: Option<&Arrays>, weights: Option<&Array>) -> Result<()> {
    let of = |arrays: &Arrays| arrays.0.iter().map(|(_, array)| n_rows(array)).collect::<Vec<usize>>();
    let (x, y) = (of(x), y.map(of).unwrap_or_default());
    let weights: Vec<usize> = weights.map(n_rows).into_iter().collect();
    let mut all = x.iter().chain(&y).chain(&weights);
    let first = all.next().copied().unwrap_or(0);
    if all.all(|n| *n == first) {
        return Ok(());
    }
    let text = format!("the numbers of rows differ: x has {x:?}, y has {y:?}, the weights have {weights:?}");
    Err(Error::shape(text).help("all arrays need one row for each example"))
}

/// Gives arrays the names of inputs or outputs: by name, or in order.
fn named(arrays: &Arrays, names: &[&str], what: &str) -> Result<Vec<(String, Array)>> {
    if arrays.0.len() != names.len() {
        let text =
            format!("the model has {} {what}s ({}); got {} arrays", names.len(), names.join(", "), arrays.0.len());
        return Err(Error::config(text).help(format!("pass one array for each {what}")));
    }
    let mut found: Vec<(String, Array)> = Vec::new();
    for (i, (name, array)) in arrays.0.iter().enumerate() {
        let name = name.as_deref().unwrap_or(names[i]);
        if !names.contains(&name) {
            return Err(Error::unknown(&format!("{what} of the model"), name, names.iter().copied()));
        }
        if found.iter().any(|(known, _)| known == name) {
            return Err(Error::config(format!("two arrays are given for the {what} `{name}`")));
        }
        found.push((name.to_string(), array.clone()));
    }
    Ok(found)
}
