//! Losses from JSON.

use std::sync::Arc;

use estimand_tensor::{Error, Result};

use super::*;
use crate::config::{self, CustomObjects, Described, Field, Fields, Json, Node, ReadLoss, configured, is_called};

/// Where Keras looks for losses.
pub(super) const MODULE: &str = "keras.losses";

/// Where the losses are that Keras does not have.
pub(super) const OWN_MODULE: &str = "estimand";

/// A class with its reader.
const fn class<L: Loss + Described + 'static>() -> (&'static str, ReadLoss) {
    (L::CLASS, |fields| Box::new(L::template().fields(fields)))
}

/// Every class that can be read.
const CLASSES: [(&str, ReadLoss); 17] = [
    class::<AbsoluteError>(),
    class::<CategoricalHinge>(),
    class::<CosineSimilarity>(),
    class::<Hinge>(),
    class::<Huber>(),
    class::<KlDivergence>(),
    class::<LogCosh>(),
    class::<LogLoss>(),
    class::<LogPoisson>(),
    class::<MeanAbsolutePercentageError>(),
    class::<MeanSquaredError>(),
    class::<MeanSquaredLogarithmicError>(),
    class::<Poisson>(),
    class::<SigmoidCrossEntropy>(),
    class::<SoftmaxCrossEntropy>(),
    class::<SparseSoftmaxCrossEntropy>(),
    class::<SquaredHinge>(),
];

/// The reader of a class of this crate.
pub(crate) fn reader(class: &str) -> Option<ReadLoss> {
    CLASSES.iter().find(|(known, _)| is_called(class, known)).map(|(_, read)| *read)
}

/// Reads a loss from JSON: what [`Loss::to_json`] writes, or `keras.losses.serialize` of Keras 2 or
/// 3. The name of a class alone, such as `"mean_squared_error"`, stands for its defaults. Losses
/// that are not of this crate are looked up in `objects`.
///
/// A document without `reduction` has Keras's default, `sum_over_batch_size`. For losses of
/// elements, such as `MeanSquaredError`, Keras's `sum` and `none` are refused: Keras takes the mean
/// of each row first. The words of `tf.compat.v1.losses.Reduction` stand for the reductions that
/// Keras does not have, `weighted_sum`, `weighted_mean` and `weighted_sum_by_nonzero_weights`, and
/// `elements` for no reduction of elements.
pub fn from_json(text: &str, objects: &CustomObjects) -> Result<Box<dyn Loss>> {
    let document = config::parse(text)?;
    read(&Node::root(&document, objects))
}

/// Reads a loss at a place of a document.
pub fn read(node: &Node<'_>) -> Result<Box<dyn Loss>> {
    let found = node.object()?;
    let objects = node.custom_objects();
    match objects.find::<ReadLoss>(found.class).or_else(|| reader(found.class)) {
        Some(read) => configured(found.config.as_ref(), |fields| {
            // Keras 2 also writes the function that the class wraps. A name only labels the class.
            for key in ["name", "fn"] {
                fields.ignored(key);
            }
            fields.only_read("dtype", &["float32".into(), Json::Null]);
            read(fields)
        }),
        None => {
            let known = CLASSES.iter().map(|(class, _)| *class).chain(objects.names::<ReadLoss>());
            Err(Error::unknown("loss", found.class, known).context(format!("at {}", node.path())))
        }
    }
}

impl Reduction {
    /// The field `reduction` of a loss that has one value for each row, in Keras's words where
    /// Keras has it.
    #[must_use]
    pub fn of_rows(self, fields: &mut Fields<'_>) -> Reduction {
        self.field(fields, "sum", "none")
    }

    /// The field `reduction` of a loss that has one value for each element. Keras has the mean of
    /// each row instead, so only the mean over all elements is the same there.
    #[must_use]
    pub fn of_elements(self, fields: &mut Fields<'_>) -> Reduction {
        fields.check("reduction", |node| match node.value().as_str() {
            Some(word @ ("sum" | "none")) => {
                let text = format!("Keras's `{word}` reduces each row to its mean first, and Estimand does not");
                Err(node.refuse(text).help("use sum_over_batch_size, weighted_sum or elements"))
            }
            _ => Ok(()),
        });
        self.field(fields, "weighted_sum", "elements")
    }

    fn field(self, fields: &mut Fields<'_>, sum: &str, none: &str) -> Reduction {
        let words = [
            ("sum_over_batch_size", Reduction::SumOverBatchSize),
            ("auto", Reduction::SumOverBatchSize),
            (sum, Reduction::Sum),
            (none, Reduction::None),
            ("weighted_mean", Reduction::Mean),
            ("weighted_sum_by_nonzero_weights", Reduction::SumByNonzeroWeights),
        ];
        fields.choice("reduction", &self, &words)
    }
}

impl Field for Arc<dyn Loss> {
    fn write(&self) -> Result<Json> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<Arc<dyn Loss>> {
        read(node).map(Arc::from)
    }
}

/// A boxed loss, such as one from JSON, is a loss.
impl Loss for Box<dyn Loss> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn loss_reduction(&self) -> Reduction {
        (**self).loss_reduction()
    }

    fn min_value(&self) -> f64 {
        (**self).min_value()
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        (**self).elements(labels, predictions)
    }

    fn to_json(&self) -> Result<Json> {
        (**self).to_json()
    }
}
