//! `RaggedTensor`: rows of different lengths in a graph, stored as two ordinary tensors.

use std::panic::Location;

use estimand_tensor::{Array, DType, Dim, Error, Ragged, Reduction, Shape};

use crate::graph::Graph;
use crate::host::check::Between;
use crate::host::ragged::{FromDense, FromRows, MultiHot, RaggedConcat, RaggedFilter, RowIds, ToSteps};
use crate::host::{HostOp, text};
use crate::op::{Op, ScatterNd, Slice};
use crate::symbols::SymbolDef;
use crate::tensor::{IntoTensor, Tensor};

/// Rows of different lengths. Row `i` is `values[row_splits[i]..row_splits[i + 1]]`.
///
/// To change every value (a hash, a lookup in a vocabulary, arithmetic), work on `values`. The
/// methods here work on rows.
///
/// ```
/// use estimand_engine::Session;
/// use estimand_graph::Graph;
/// use estimand_tensor::{Array, DType, Ragged};
///
/// let g = Graph::new();
/// let words = g.ragged_placeholder("words", DType::Str);
/// let ids = words.with_values(words.values.hash_bucket(10));
/// let n_words = ids.row_lengths();
/// let fed = Ragged::new(Array::from_strings([3], ["wide", "and", "deep"])?, [0, 1, 1, 3])?;
/// let out = Session::new(&g)?.run(&[&ids.values, &n_words], &words.feed(&fed))?;
/// assert_eq!(out[1].as_slice::<i64>()?, [1, 0, 2]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RaggedTensor {
    /// The values of all rows, concatenated: `[n, ...]`.
    pub values: Tensor,
    /// The offsets where rows begin: `[rows + 1]`, i64.
    pub row_splits: Tensor,
}

/// One key of a crossed feature.
#[derive(Clone, Debug)]
pub enum CrossKey {
    /// Any number of values per row.
    Ragged(RaggedTensor),
    /// A fixed number of values per row: `[batch, width]`.
    Dense(Tensor),
}

impl From<&RaggedTensor> for CrossKey {
    fn from(key: &RaggedTensor) -> CrossKey {
        CrossKey::Ragged(key.clone())
    }
}

impl From<&Tensor> for CrossKey {
    fn from(key: &Tensor) -> CrossKey {
        CrossKey::Dense(key.clone())
    }
}

impl Graph {
    /// Adds a ragged feature that is fed at every run. Its rows are those of the batch.
    #[track_caller]
    pub fn ragged_placeholder(&self, name: &str, dtype: DType) -> RaggedTensor {
        let site = Location::caller();
        let values = self.placeholder(name, dtype, [Graph::ANY]);
        let row_splits = match self.symbols_mut(|s| s.add(Dim::BATCH, 1.into())) {
            Ok(n) => self.placeholder(&format!("{name}/row_splits"), DType::I64, [n]),
            Err(error) => self.fail(error, site),
        };
        RaggedTensor { values, row_splits }
    }

    /// Hashes every combination of one value per key, as TensorFlow's crossed columns do. A hash
    /// key of 0 stands for TensorFlow's default.
    ///
    /// All ragged keys come before all dense keys, each group in the given order. This is the order
    /// in which TensorFlow *serves*. TensorFlow's training uses a different order where a feature
    /// is fed dense.
    #[track_caller]
    pub fn cross(&self, keys: &[CrossKey], n_buckets: i64, hash_key: u64) -> RaggedTensor {
        let site = Location::caller();
        let mut inputs: Vec<&Tensor> = Vec::new();
        let mut n_ragged = 0;
        for key in keys {
            if let CrossKey::Ragged(RaggedTensor { values, row_splits }) = key {
                inputs.extend([values, row_splits]);
                n_ragged += 1;
            }
        }
        inputs.extend(keys.iter().filter_map(|key| match key {
            CrossKey::Dense(tensor) => Some(tensor),
            CrossKey::Ragged(_) => None,
        }));
        if keys.len() < 2 {
            let error = Error::config(format!("the cross has {} keys; expected at least 2", keys.len()));
            let poison = self.fail(error, site);
            return RaggedTensor { values: poison.clone(), row_splits: poison };
        }
        RaggedTensor::made(self.node(HostOp::new(text::Cross { n_buckets, hash_key, n_ragged }), &inputs, site))
    }
}

impl RaggedTensor {
    /// Wraps the two outputs of a node.
    fn made(values: Tensor) -> RaggedTensor {
        let row_splits = values.graph().output(&values, 1);
        RaggedTensor { values, row_splits }
    }

    /// Creates a ragged tensor from values and row splits.
    pub fn new(values: &Tensor, row_splits: &Tensor) -> RaggedTensor {
        RaggedTensor { values: values.clone(), row_splits: row_splits.clone() }
    }

    /// Converts a dense feature `[batch, ...]` and drops its missing values: `""`, -1, and 0 for
    /// floats, as TensorFlow's categorical columns do.
    #[track_caller]
    pub fn from_dense(dense: &Tensor) -> RaggedTensor {
        RaggedTensor::made(dense.then(HostOp::new(FromDense), &[], Location::caller()))
    }

    /// Converts a dense feature `[batch, ...]` and keeps all its values. Every row has the same
    /// length.
    #[track_caller]
    pub fn from_rows(dense: &Tensor) -> RaggedTensor {
        RaggedTensor::made(dense.then(HostOp::new(FromRows), &[], Location::caller()))
    }

    /// Returns other values in the same rows.
    pub fn with_values(&self, values: Tensor) -> RaggedTensor {
        RaggedTensor { values, row_splits: self.row_splits.clone() }
    }

    /// Returns the feeds of a ragged placeholder for a session.
    pub fn feed<'a>(&'a self, value: &Ragged) -> [(&'a Tensor, Array); 2] {
        [(&self.values, value.values().clone()), (&self.row_splits, Array::from(value.row_splits().to_vec()))]
    }

    /// The number of rows.
    pub fn n_rows(&self) -> Dim {
        let splits = self.row_splits.shape().dims().first().copied().unwrap_or(Dim::Known(1));
        self.row_splits.graph().symbols_mut(|s| s.sub(splits, 1.into()))
    }

    /// The row that each value is in (i64).
    #[track_caller]
    pub fn row_ids(&self) -> Tensor {
        self.row_splits.then(HostOp::new(RowIds), &[&self.values], Location::caller())
    }

    /// The number of values in each row (i64).
    #[track_caller]
    pub fn row_lengths(&self) -> Tensor {
        let site = Location::caller();
        let n = self.n_rows();
        let part = |first: usize| {
            let op = Slice { begin: vec![first], size: Shape::from([n]) };
            self.row_splits.then(op, &[], site)
        };
        part(1) - part(0)
    }

    /// Checks that all values are from `low` to `high`: see [`Tensor::ensure_between`].
    #[track_caller]
    pub fn ensure_between(&self, low: f64, high: f64, what: &str) -> RaggedTensor {
        let op = HostOp::new(Between::new(low, high, what, None));
        self.with_values(self.values.then(op, &[&self.row_splits], Location::caller()))
    }

    /// Keeps only the values where a mask `[n]` holds.
    #[track_caller]
    pub fn filter(&self, mask: &Tensor) -> RaggedTensor {
        let site = Location::caller();
        let kept = mask.then(HostOp::new(RaggedFilter), &[&self.row_splits], site);
        let RaggedTensor { values: positions, row_splits } = RaggedTensor::made(kept);
        RaggedTensor { values: self.values.gather(&positions), row_splits }
    }

    /// Concatenates the values of several ragged tensors in each row.
    #[track_caller]
    pub fn concat(parts: &[&RaggedTensor]) -> RaggedTensor {
        let site = Location::caller();
        let values: Vec<&Tensor> = parts.iter().map(|p| &p.values).collect();
        let Some(first) = values.first() else {
            let graph = Graph::new();
            let poison = graph.fail(Error::config("concat was given no ragged tensors; expected at least one"), site);
            return RaggedTensor { values: poison.clone(), row_splits: poison };
        };
        let inputs: Vec<&Tensor> = values.iter().copied().chain(parts.iter().map(|p| &p.row_splits)).collect();
        let order = first.graph().node(HostOp::new(RaggedConcat), &inputs, site);
        let RaggedTensor { values: order, row_splits } = RaggedTensor::made(order);
        RaggedTensor { values: Tensor::concat(&values, 0).gather(&order), row_splits }
    }

    /// The sum of each row's values: `[rows, ...]`. 0 for an empty row.
    #[track_caller]
    pub fn sum(&self) -> Tensor {
        self.values.segments(Reduction::Sum, &self.row_ids(), self.n_rows(), Location::caller())
    }

    /// The mean of each row's values: `[rows, ...]`. 0 for an empty row.
    #[track_caller]
    pub fn mean(&self) -> Tensor {
        self.values.segment_mean(&self.row_ids(), self.n_rows())
    }

    /// The maximum of each row's values. The lowest number for an empty row.
    #[track_caller]
    pub fn max(&self) -> Tensor {
        self.values.segments(Reduction::Max, &self.row_ids(), self.n_rows(), Location::caller())
    }

    /// The minimum of each row's values. The highest number for an empty row.
    #[track_caller]
    pub fn min(&self) -> Tensor {
        self.values.segments(Reduction::Min, &self.row_ids(), self.n_rows(), Location::caller())
    }

    /// Counts how often each id below `depth` occurs in each row, f32 `[rows, depth]`. Other ids
    /// are not counted. With weights `[n]`, sums the weights of each id instead.
    #[track_caller]
    pub fn multi_hot(&self, depth: usize, weights: Option<&Tensor>) -> Tensor {
        let mut inputs = vec![&self.row_splits];
        inputs.extend(weights);
        let site = Location::caller();
        let places = self.values.then(HostOp::new(MultiHot { depth }), &inputs, site);
        let counts = self.values.graph().output(&places, 1);
        places.then(ScatterNd { shape: Shape::from([self.n_rows(), depth.into()]) }, &[&counts], site)
    }

    /// Pads rows to sequences of the same length, `[rows, steps, dims...]`. Each step takes as many
    /// of a row's values as a step has elements; `padding` fills the rest. `n_steps` is a single
    /// i64 that the host computes. No row may have more steps.
    ///
    /// ```
    /// use estimand_engine::Session;
    /// use estimand_graph::Graph;
    /// use estimand_tensor::{Array, DType, Ragged};
    ///
    /// let g = Graph::new();
    /// let x = g.ragged_placeholder("x", DType::F32);
    /// let steps = x.to_steps(&x.row_lengths().max(), &[], -1.0);
    /// let fed = Ragged::new(Array::from([1f32, 2.0, 3.0]), [0, 2, 3])?;
    /// let out = Session::new(&g)?.run(&[&steps], &x.feed(&fed))?;
    /// assert_eq!(out[0].as_slice::<f32>()?, [1.0, 2.0, 3.0, -1.0]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn to_steps(&self, n_steps: &Tensor, dims: &[usize], padding: impl IntoTensor) -> Tensor {
        let site = Location::caller();
        if n_steps.is_poisoned() {
            return n_steps.clone();
        }
        let padding = self.values.beside(padding, site);
        let graph = self.values.graph();
        let known = match &graph.body().node(n_steps.value().node).op {
            Op::Constant(number) => number.0.item::<i64>().ok().and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        let number = || Dim::Sym(graph.symbols_mut(|s| s.intern(SymbolDef::Number(n_steps.value()))));
        let size = known.map_or_else(number, Dim::Known);
        let op = ToSteps { dims: dims.to_vec(), n_steps: size };
        self.values.then(HostOp::new(op), &[&self.row_splits, n_steps, &padding], site)
    }
}
