//! `LinearSdca`: stochastic dual coordinate ascent, an optimizer of linear models without a
//! learning rate.
//!
//! `model.rs` builds the model: a graph that computes, and the hook that trains (`hook.rs`). The
//! hook makes rows of a batch (`rows.rs`), and `solver.rs` moves the dual variables of the examples
//! (`table.rs`) by the rules of their loss (`loss.rs`). `state.rs` is what checkpoints hold of it,
//! `tf_entries.rs` what they hold for TensorFlow.
//!
//! ```
//! use estimand::prelude::*;
//! use estimand::premade::LinearSdca;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-sdca-{}", std::process::id()));
//! let rows = [("id", Array::from([0i64, 1, 2, 3])), ("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
//! let data = Dataset::from_arrays(rows).label("y").repeat(300).batch(4);
//! let sdca = LinearSdca::new("id").symmetric_l2_regularization(1.0);
//! let classifier = LinearClassifier::new([numeric_column("x").into()]).optimizer(&sdca).model_dir(&folder).build()?;
//! classifier.train(&data)?;
//! let progress = sdca.progress().unwrap();
//! assert!(progress.duality_gap < 1e-6 && progress.examples_seen == 4);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```

mod hook;
mod loss;
mod model;
mod rows;
mod solver;
mod state;
mod table;
mod tf_entries;

use std::sync::{Arc, Mutex, PoisonError};

use estimand_nn::config::{self, Described, Field, Fields, Json, Node};
use estimand_tensor::{Error, Result};

use loss::LOSSES;

pub use loss::SdcaLoss;
pub(super) use model::spec;
pub use solver::SdcaProgress;

/// The module that a document says the optimizer comes from.
const MODULE: &str = "estimand.premade";
/// The largest number of parts of the table of examples.
const MAX_SHARDS: usize = 1 << 16;

/// The progress of the last training.
type Shared = Arc<Mutex<Option<SdcaProgress>>>;

/// Trains a linear model by stochastic dual coordinate ascent: each step moves one number for each
/// example of its batch to its best value. There is no learning rate, and a duality gap tells how
/// far the model is from the best one.
///
/// It minimises the weighted sum of the losses of all examples, plus `l1 * |w| + l2 / 2 * |w|^2` of
/// weights and bias. Setters and defaults are those of TensorFlow's `LinearSDCA`.
#[derive(Clone, Debug)]
#[must_use]
pub struct LinearSdca {
    example_id_column: String,
    num_loss_partitions: usize,
    num_table_shards: usize,
    symmetric_l1_regularization: f64,
    symmetric_l2_regularization: f64,
    adaptive: bool,
    /// `None` for the loss of the head.
    loss: Option<SdcaLoss>,
    progress: Shared,
}

impl LinearSdca {
    /// Makes an optimizer. The feature `example_id_column` holds the id of each example, a string
    /// or an integer: one that no other example has, and that the example has in each epoch.
    pub fn new(example_id_column: impl Into<String>) -> LinearSdca {
        LinearSdca {
            example_id_column: example_id_column.into(),
            num_loss_partitions: 1,
            num_table_shards: 1,
            symmetric_l1_regularization: 0.0,
            symmetric_l2_regularization: 1.0,
            adaptive: false,
            loss: None,
            progress: Shared::default(),
        }
    }

    /// Makes steps as careful as if this number of workers changed the weights at the same time. By
    /// default, 1.
    pub fn num_loss_partitions(mut self, n: usize) -> LinearSdca {
        self.num_loss_partitions = n;
        self
    }

    /// Sets the number of parts of the table of examples. A part that is full is copied to a larger
    /// place; with more parts, less is copied at once. By default, 1.
    pub fn num_table_shards(mut self, n: usize) -> LinearSdca {
        self.num_table_shards = n;
        self
    }

    /// Sets L1 regularization, which makes small weights 0. By default, 0.
    pub fn symmetric_l1_regularization(mut self, l1: f64) -> LinearSdca {
        self.symmetric_l1_regularization = l1;
        self
    }

    /// Sets L2 regularization, above 0. By default, 1.
    pub fn symmetric_l2_regularization(mut self, l2: f64) -> LinearSdca {
        self.symmetric_l2_regularization = l2;
        self
    }

    /// Draws the examples of each step from its batch by how much they can gain: some several
    /// times, some not at all. By default, each example is used once.
    pub fn adaptive(mut self) -> LinearSdca {
        self.adaptive = true;
        self
    }

    /// Sets the loss to minimise, if it is not that of the head: `Hinge` or `SmoothHinge` for two
    /// classes. The head reports its own loss. By default, the loss of the head.
    pub fn loss(mut self, loss: SdcaLoss) -> LinearSdca {
        self.loss = Some(loss);
        self
    }

    /// Returns how far the last training with this value or a clone of it has come; `None` before
    /// the first log line. Trainings update it when they log, and when they end.
    pub fn progress(&self) -> Option<SdcaProgress> {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<()> {
        let refused = |what: &str, value: String, expected: &str, help: &str| {
            Err(Error::config(format!("{what} of LinearSdca is {value}; expected {expected}")).help(help))
        };
        let (l1, l2) = (self.symmetric_l1_regularization, self.symmetric_l2_regularization);
        if self.example_id_column.is_empty() {
            return Err(Error::config("the example_id_column of LinearSdca has no name")
                .help("name the feature that holds the id of each example"));
        }
        if !(l2 > 0.0 && l2.is_finite()) {
            return refused(
                "symmetric_l2_regularization",
                l2.to_string(),
                "a finite number above 0",
                "the default is 1; a smaller number regularizes less",
            );
        }
        if !(l1 >= 0.0 && l1.is_finite()) {
            return refused(
                "symmetric_l1_regularization",
                l1.to_string(),
                "a finite number from 0",
                "0, the default, is no L1 regularization",
            );
        }
        if self.num_loss_partitions == 0 {
            return refused(
                "num_loss_partitions",
                "0".to_string(),
                "at least 1",
                "it is the number of workers that train at the same time: 1 for one process",
            );
        }
        if !(1..=MAX_SHARDS).contains(&self.num_table_shards) {
            let expected = format!("a number from 1 to {MAX_SHARDS}");
            return refused("num_table_shards", self.num_table_shards.to_string(), &expected, "the default is 1");
        }
        Ok(())
    }
}

impl Described for LinearSdca {
    const CLASS: &'static str = "LinearSDCA";

    fn template() -> LinearSdca {
        LinearSdca::new("")
    }

    fn fields(&self, fields: &mut Fields<'_>) -> LinearSdca {
        let losses = LOSSES.map(|(name, loss)| (name, Some(loss)));
        LinearSdca {
            example_id_column: fields.required("example_id_column", &self.example_id_column),
            num_loss_partitions: fields.value("num_loss_partitions", &self.num_loss_partitions),
            num_table_shards: fields.value("num_table_shards", &self.num_table_shards),
            symmetric_l1_regularization: fields.value("symmetric_l1_regularization", &self.symmetric_l1_regularization),
            symmetric_l2_regularization: fields.value("symmetric_l2_regularization", &self.symmetric_l2_regularization),
            adaptive: fields.value("adaptive", &self.adaptive),
            // `null` is the loss of the head.
            loss: fields.choice_or_null("loss", &self.loss, &losses, &None),
            progress: self.progress.clone(),
        }
    }
}

impl Field for LinearSdca {
    fn write(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn read(node: &Node<'_>) -> Result<LinearSdca> {
        let sdca: LinearSdca = config::read(&node.field("config")?)?;
        sdca.check().map_err(|error| error.context(format!("at {}", node.path())))?;
        Ok(sdca)
    }
}
