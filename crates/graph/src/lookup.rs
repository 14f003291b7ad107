//! Embedding lookups: each example names rows of a table, which are combined into one.

use std::panic::Location;

use estimand_tensor::{Binary, Unary};

use crate::host::HostOp;
use crate::host::ragged::{IdSource, LookupIds};
use crate::op::{AxisSet, Combiner, Gather, Reduction, Select, SparseSegment};
use crate::ragged::RaggedTensor;
use crate::tensor::Tensor;

/// How a lookup combines the rows that it finds.
///
/// ```
/// use estimand_engine::Session;
/// use estimand_graph::{Combiner, Graph, Initializer, Lookup};
/// use estimand_tensor::{Array, DType, Ragged};
///
/// let g = Graph::new();
/// let table = g.variable("table", [3, 2], Initializer::Ones);
/// let ids = g.ragged_placeholder("ids", DType::I64);
/// let sums = table.lookup(&ids, Combiner::Sum);
/// let fed = Ragged::new(Array::from([2i64, 0, -1]), [0, 2, 3])?;
/// let out = Session::new(&g)?.run(&[&sums], &ids.feed(&fed))?;
/// assert_eq!(out[0].as_slice::<f32>()?, [2.0, 2.0, 0.0, 0.0]); // -1 is no id: the second row is empty
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Lookup {
    combiner: Combiner,
    weights: Option<Tensor>,
    max_norm: Option<f64>,
    source: Option<IdSource>,
}

impl Lookup {
    /// Creates a lookup without weights and without a limit.
    pub fn new(combiner: Combiner) -> Lookup {
        Lookup { combiner, ..Lookup::default() }
    }

    /// Sets a weight for each id: `[n]`, like the ids' values. By default all weights are 1.
    pub fn weights(mut self, weights: &Tensor) -> Lookup {
        self.weights = Some(weights.clone());
        self
    }

    /// Scales rows with a larger L2 norm down to this norm before they are combined. By default
    /// rows are used as they are.
    pub fn max_norm(mut self, max_norm: f64) -> Lookup {
        self.max_norm = Some(max_norm);
        self
    }

    /// Sets the origin of the ids. The error of an id beyond the table names it. By default the
    /// error names the id and its row only.
    pub fn source(mut self, source: Option<IdSource>) -> Lookup {
        self.source = source;
        self
    }
}

impl From<Combiner> for Lookup {
    fn from(combiner: Combiner) -> Lookup {
        Lookup::new(combiner)
    }
}

impl Tensor {
    /// Looks up the rows of this table that each ragged row names and combines them: `[rows,
    /// dimension]`. The gradient of the table is a gradient of rows.
    ///
    /// The rules are those of TensorFlow's `safe_embedding_lookup_sparse`. Ids below 0 are dropped.
    /// Ids whose weight is not above 0 are dropped too, unless the combiner is a sum. A row without
    /// ids is zero. An id beyond the table is an error.
    #[track_caller]
    pub fn lookup(&self, ids: &RaggedTensor, how: impl Into<Lookup>) -> Tensor {
        let site = Location::caller();
        let Lookup { combiner, weights, max_norm, source } = how.into();
        // Without weights all combiners drop the same ids, so the filtered ids are computed once.
        let drop_light = weights.is_some() && combiner != Combiner::Sum;
        let n_rows = self.shape().dims().first().and_then(|dim| dim.known());
        let op = HostOp::new(LookupIds { drop_light, n_rows, source });
        let mut inputs = vec![&ids.row_splits];
        inputs.extend(&weights);
        let unique = ids.values.then(op, &inputs, site);
        let output = |i: u16| self.graph().output(&unique, i);
        let mut rows = self.then(Gather { axis: 0, batch_dims: 0 }, &[&unique], site);
        if let Some(limit) = max_norm {
            rows = limited(&rows, limit, site);
        }
        let mut lookups = vec![output(1), output(2)];
        lookups.extend(weights.map(|_| output(3)));
        rows.then(SparseSegment { combiner }, &lookups.iter().collect::<Vec<_>>(), site)
    }
}

/// Limits the norm of each row, by TensorFlow's arithmetic (`clip_by_norm`).
fn limited(rows: &Tensor, limit: f64, site: &'static Location<'static>) -> Tensor {
    let inner = AxisSet(AxisSet::all(rows.rank()).0 & !1);
    let square = rows.unary(Unary::Square, site).reduce(Reduction::Sum, inner, true, site);
    // The square root has no gradient at 0.
    let some = square.binary(Binary::Greater, &square.number(0.0, site), site);
    let safe = some.then(Select, &[&square, &square.ones_like()], site);
    let norm = some.then(Select, &[&safe.unary(Unary::Sqrt, site), &square], site);
    let limit = rows.number(limit, site);
    let scaled = rows.binary(Binary::Mul, &limit, site);
    scaled.binary(Binary::Div, &norm.binary(Binary::Maximum, &limit, site), site)
}
