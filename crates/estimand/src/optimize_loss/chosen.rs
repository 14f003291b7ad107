//! The optimizers that `optimize_loss` knows by name, with the settings of TensorFlow 1.

use std::sync::Arc;

use estimand_graph::Optimizer;
use estimand_tensor::{Error, Result};
use estimand_update::{Adagrad, Adam, Ftrl, RmsProp, Schedule, Sgd, UpdateRule};

/// TensorFlow's names, in its order.
const NAMES: [&str; 6] = ["Adagrad", "Adam", "Ftrl", "Momentum", "RMSProp", "SGD"];

/// An optimizer, or the name of one and its learning rate.
#[derive(Clone, Debug)]
pub(super) enum Chosen {
    Named { name: String, rate: f64 },
    Ready(Optimizer),
}

impl Chosen {
    /// Returns the optimizer, with a schedule made from its rate.
    pub(super) fn optimizer(&self, decay: Option<impl FnOnce(f64) -> Schedule>) -> Result<Optimizer> {
        match (self, decay) {
            (Chosen::Ready(optimizer), None) => Ok(optimizer.clone()),
            (Chosen::Ready(_), Some(_)) => {
                Err(Error::config("learning_rate_decay is set, but the optimizer has its own learning rate")
                    .help("give the optimizer a Schedule, or choose it by name"))
            }
            (&Chosen::Named { rate, .. }, _) if !(rate >= 0.0 && rate.is_finite()) => {
                Err(Error::config(format!("Invalid learning_rate {rate}.")).help("expected a number from 0"))
            }
            (Chosen::Named { name, rate }, decay) => {
                let schedule = decay.map_or(Schedule::Constant(*rate), |decay| decay(*rate));
                Ok(Optimizer::from_rule(rule(name)?, schedule))
            }
        }
    }
}

fn rule(name: &str) -> Result<Arc<dyn UpdateRule>> {
    Ok(match name {
        "Adagrad" => Arc::new(Adagrad::default().epsilon(0.0)),
        "Adam" => Arc::new(Adam::default().epsilon(1e-8)),
        "Ftrl" => Arc::new(Ftrl::default()),
        "Momentum" => Arc::new(Sgd::v1(0.9)),
        "RMSProp" => Arc::new(RmsProp::v1()),
        "SGD" => Arc::new(Sgd::default()),
        _ => {
            let message = format!("Optimizer name should be one of [{}], you provided {name}.", NAMES.join(", "));
            return Err(Error::config(message).suggest(name, NAMES));
        }
    })
}
