//! Recurrent estimators: sequence columns, step by step, through recurrent cells.
//!
//! [`RnnModel`] is the network. `cells.rs` makes its recurrent layer of units, a cell type or a
//! cell.

mod cells;

use std::sync::Arc;

use estimand_graph::{Clip, Optimizer, Tensor};
use estimand_nn::column::{Columns, dense_features, sequence_features};
use estimand_nn::config::{Described, Fields, Json};
use estimand_nn::{Dense, Layer, LayerInputs, RnnCell};
use estimand_tensor::{DType, Dim, Error, Result, Shape};

use self::cells::Cells;
use super::json::written;
use super::linear::check_columns;
use super::{Classifier, GivenHead, Network, OptimizerChoice, Premade};
use crate::head::{Head, HeadSpec, Training};
use crate::{EstimatorSpec, ModelFnContext};

pub use cells::{CellType, Units};

/// TF: the rate of any optimizer given by name.
const RATE: f64 = 0.05;
/// TF: the norm that each gradient is clipped to, if the optimizer is given by name.
const CLIP_NORM: f64 = 5.0;

/// Sequence columns, context columns at every step, recurrent cells, logits.
///
/// Variables: `sequence_features/<column>/embedding_weights`,
/// `dense_features/<column>/embedding_weights` of context columns,
/// `rnn_model/rnn/lstm_cell/{kernel,recurrent_kernel,bias}`, `rnn_model/logits/{kernel,bias}`.
/// Several cells are `rnn_model/rnn/stacked_rnn_cells/lstm_cell/...`, `.../lstm_cell_1/...`; units
/// given as a number are `rnn_model/lstm/lstm_cell/...`.
#[derive(Clone, Debug)]
pub struct RnnModel {
    sequence_columns: Columns,
    context_columns: Columns,
    cells: Cells,
    return_sequences: bool,
    optimizer: OptimizerChoice,
}

/// Predicts the class of a sequence, or of each of its steps, with a recurrent network.
///
/// ```
/// use estimand::nn::column::sequence_categorical_column_with_identity;
/// use estimand::prelude::*;
/// use estimand::premade::CellType;
/// use estimand::tensor::{Feature, Ragged};
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-rnn-{}", std::process::id()));
/// // Is the last letter the first one again?
/// let letters = Ragged::new(Array::from([0i64, 1, 0, 1, 0, 2, 2]), [0, 3, 5, 7])?;
/// let rows = [("letters", Feature::from(letters)), ("same", Array::from([1i64, 0, 1]).into())];
/// let data = Dataset::from_arrays(rows).label("same");
/// let ids = sequence_categorical_column_with_identity("letters", 3);
/// let columns = [embedding_column(ids, 2).into()];
/// let rnn = RnnClassifier::new(columns).units([8]).cell_type(CellType::Lstm).optimizer("Adam");
/// let rnn = rnn.model_dir(&folder).build()?;
/// rnn.train(data.repeat(300).batch(3))?;
/// assert_eq!(rnn.evaluate(data.batch(3))?["accuracy"], 1.0);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub type RnnClassifier = Premade<RnnModel, Classifier>;
/// A recurrent network with any head.
pub type RnnEstimator = Premade<RnnModel, GivenHead>;

impl RnnModel {
    fn new(columns: impl Into<Columns>) -> RnnModel {
        RnnModel {
            sequence_columns: columns.into(),
            context_columns: Columns::default(),
            cells: Cells::default(),
            return_sequences: false,
            optimizer: "Adagrad".into(),
        }
    }

    fn optimizer(&self) -> Result<Optimizer> {
        self.optimizer.or_named(|name| Ok(Optimizer::named(name, Some(RATE))?.clip(Clip::Norm(CLIP_NORM))))
    }

    /// The input of the cells, `[batch, steps, n]`, and booleans `[batch, steps]` that mark the
    /// steps that exist.
    fn steps(&self, cx: &ModelFnContext<'_>) -> Result<(Tensor, Tensor)> {
        let graph = cx.graph();
        // TF: the variables of columns are outside of the model's scope.
        let (x, lengths) = sequence_features(cx.features(), &self.sequence_columns);
        graph.check()?;
        let _model = graph.reopen("rnn_model");
        {
            let _layer = graph.reopen("sequence_input_layer");
            cx.summary().histogram("sequence_length", &lengths);
        }
        let &[batch, time, _] = x.shape().dims() else {
            return Err(Error::internal(format!("the steps are {}", x.describe())));
        };
        let exists = graph.range(time, DType::I64).less(lengths.expand_dims(-1));
        if self.context_columns.is_empty() {
            return Ok((x, exists));
        }
        let context = {
            let _outside = graph.outside();
            dense_features(cx.features(), &self.context_columns)
        };
        graph.check()?;
        let every_step = Shape::from([batch, time, Dim::from(context.channels())]);
        let context = context.expand_dims(1).broadcast_to(every_step);
        Ok((Tensor::concat(&[&x, &context], 2), exists))
    }

    /// The logits: `[batch, units]`, or `[batch, steps, units]` with the booleans of
    /// [`steps`](RnnModel::steps) if every step has its own.
    fn logits_and_mask(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<(Tensor, Option<Tensor>)> {
        let (x, exists) = self.steps(cx)?;
        let _scope = cx.graph().reopen("rnn_model");
        let outputs = self.cells.layer(self.return_sequences)?.apply(&LayerInputs::of(&x).mask(&exists));
        let logits = Dense::new(units).name("logits").apply(&outputs);
        Ok((logits, self.return_sequences.then_some(exists)))
    }
}

impl Described for RnnModel {
    const CLASS: &'static str = "RnnModel";

    fn template() -> RnnModel {
        RnnModel::new(Columns::default())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RnnModel {
        RnnModel {
            sequence_columns: fields.required("sequence_feature_columns", &self.sequence_columns),
            context_columns: fields.value("context_feature_columns", &self.context_columns),
            cells: self.cells.fields(fields),
            return_sequences: fields.value("return_sequences", &self.return_sequences),
            optimizer: fields.value("optimizer", &self.optimizer),
        }
    }
}

impl Network for RnnModel {
    fn check(&self) -> Result<()> {
        check_columns(&self.sequence_columns, "a recurrent network", |features, column| {
            sequence_features(features, column).0
        })?;
        if !self.context_columns.is_empty() {
            check_columns(&self.context_columns, "the context", |features, column| dense_features(features, column))?;
        }
        self.cells.check()?;
        self.optimizer().map(drop)
    }

    fn check_head(&self, head: &dyn Head) -> Result<()> {
        match (self.return_sequences, head.sequence_mask()) {
            (true, None) => Err(Error::config("return_sequences is set, but the head is not a head of sequences")
                .help("wrap the head in a SequentialHeadWrapper, or remove return_sequences")),
            (false, Some(_)) => Err(Error::config("the head is a head of sequences, but return_sequences is not set")
                .help("call .return_sequences(true), or give the wrapped head itself")),
            _ => Ok(()),
        }
    }

    fn columns(&self) -> Columns {
        [&self.sequence_columns[..], &self.context_columns[..]].concat().into()
    }

    fn to_json(&self) -> Result<Json> {
        written(self)
    }

    fn logits(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<Tensor> {
        self.logits_and_mask(cx, units).map(|(logits, _)| logits)
    }

    fn training<'a>(&'a self, _cx: &'a ModelFnContext<'_>) -> Result<Training<'a>> {
        Ok(self.optimizer()?.into())
    }

    fn spec(&self, cx: &ModelFnContext<'_>, head: &dyn Head) -> Result<EstimatorSpec> {
        let (logits, mask) = self.logits_and_mask(cx, head.logits_dimension())?;
        match (mask, head.sequence_mask()) {
            // TF: a mask among the features is taken instead of the network's.
            (Some(mask), Some(name)) if cx.features().get(name).is_none() => {
                head.spec(&cx.with_feature(name, mask), &logits, self.training(cx)?)
            }
            _ => head.spec(cx, &logits, self.training(cx)?),
        }
    }
}

impl RnnClassifier {
    /// Makes a classifier of two classes, trained with Adagrad. Set the units of its cells, or a
    /// cell.
    #[track_caller]
    pub fn new(sequence_feature_columns: impl Into<Columns>) -> RnnClassifier {
        Premade::from_parts(RnnModel::new(sequence_feature_columns), Classifier::default())
    }

    /// Sets whether each step has its own label and prediction. Labels are then ragged, or
    /// `[batch, steps]`; loss and metrics cover the steps that exist. By default, a sequence has
    /// one label.
    pub fn return_sequences(mut self, return_sequences: bool) -> RnnClassifier {
        self.network.return_sequences = return_sequences;
        self.head.return_sequences = return_sequences;
        self
    }

    /// Sets the name of the mask of steps, which is a prediction too if `return_sequences` is set.
    /// A feature of this name is used as the mask of losses and metrics; otherwise the mask is made
    /// from the lengths of sequences. By default, `sequence_mask`.
    pub fn sequence_mask(mut self, name: impl Into<String>) -> RnnClassifier {
        self.head.sequence_mask = name.into();
        self
    }
}

impl RnnEstimator {
    /// Makes an estimator with a head, trained with Adagrad. Set the units of its cells, or a cell.
    #[track_caller]
    pub fn new(head: impl Head + 'static, sequence_feature_columns: impl Into<Columns>) -> RnnEstimator {
        Premade::from_parts(RnnModel::new(sequence_feature_columns), GivenHead::new(head))
    }

    /// Sets whether the head gets the logits of each step. It must then be a
    /// [`SequentialHeadWrapper`](crate::head::SequentialHeadWrapper). By default, it gets those of
    /// the last step.
    pub fn return_sequences(mut self, return_sequences: bool) -> RnnEstimator {
        self.network.return_sequences = return_sequences;
        self
    }
}

impl<H> Premade<RnnModel, H> {
    /// Sets the columns of features that a whole sequence has. Each step gets their values, after
    /// those of the sequence columns. By default, none.
    pub fn context_feature_columns(mut self, columns: impl Into<Columns>) -> Self {
        self.network.context_columns = columns.into();
        self
    }

    /// Sets the units of each cell, from the input to the logits. A number is one recurrent layer
    /// as in Keras, which differs from a list of one only in the names of variables. By default,
    /// none: set this or [`rnn_cell`](Premade::rnn_cell).
    pub fn units(mut self, units: impl Into<Units>) -> Self {
        self.network.cells.units = Some(units.into());
        self
    }

    /// Sets the type of all cells. By default, [`CellType::SimpleRnn`].
    pub fn cell_type(mut self, cell_type: CellType) -> Self {
        self.network.cells.cell_type = Some(cell_type);
        self
    }

    /// Sets the cell, instead of units and a cell type: one with options, several as
    /// [`StackedRnnCells`](estimand_nn::StackedRnnCells). By default, none.
    pub fn rnn_cell(mut self, cell: impl RnnCell + 'static) -> Self {
        self.network.cells.cell = Some(Arc::new(cell));
        self
    }

    /// Sets the optimizer. An optimizer given by name gets a learning rate of 0.05, and the norm of
    /// each gradient is clipped to 5. By default, `Adagrad`.
    pub fn optimizer(mut self, optimizer: impl Into<OptimizerChoice>) -> Self {
        self.network.optimizer = optimizer.into();
        self
    }
}
