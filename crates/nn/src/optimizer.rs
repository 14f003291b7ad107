//! Optimizers as JSON, in the form of Keras.
//!
//! ```
//! use estimand_graph::{Clip, Optimizer};
//! use estimand_nn::config::CustomObjects;
//! use estimand_nn::optimizer;
//! use estimand_update::{Adam, Schedule};
//!
//! let rate = Schedule::Exponential { initial: 0.1, decay_steps: 100, decay_rate: 0.5, staircase: true };
//! let adam = Optimizer::new(Adam::default().beta_1(0.8), rate).clip(Clip::Norm(2.0));
//! let json = optimizer::to_json(&adam)?;
//! assert_eq!(json["class_name"], "Adam");
//! assert_eq!(json["config"]["beta_1"], 0.8);
//! assert_eq!(json["config"]["learning_rate"]["class_name"], "ExponentialDecay");
//!
//! let again = optimizer::from_json(&json.to_string(), &CustomObjects::new())?;
//! assert_eq!(optimizer::to_json(&again)?, json);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

use estimand_graph::Optimizer;
use estimand_tensor::Result;

use crate::config::{self, CustomObjects, Field, Json, Node};

/// Writes an optimizer as Keras's `optimizers.serialize` does: its rule with every setting, its
/// learning rate or schedule, and the limit of gradients. [`Optimizer::lazy`] is a field of our
/// own, `lazy`.
///
/// A rule without [`settings`](estimand_update::UpdateRule::settings) is refused by name.
pub fn to_json(optimizer: &Optimizer) -> Result<Json> {
    optimizer.write()
}

/// Reads an optimizer from JSON: what [`to_json`] writes, or `keras.optimizers.serialize` of Keras
/// 2 or 3. Rules that are not of Estimand are looked up in `objects`.
///
/// Keras's legacy optimizers are those of Estimand; their `decay` becomes
/// [`Schedule::InverseTime`](estimand_update::Schedule::InverseTime). A document with `use_ema` is
/// of the newer generation, and its rule takes the newer form, as
/// [`Optimizer::keras`](estimand_graph::Optimizer::keras) does. `jit_compile`,
/// `gradient_accumulation_steps` and `loss_scale_factor` must have their defaults.
pub fn from_json(text: &str, objects: &CustomObjects) -> Result<Optimizer> {
    let document = config::parse(text)?;
    Optimizer::read(&Node::root(&document, objects))
}
