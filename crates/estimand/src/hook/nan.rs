//! Detects NaN losses.

use estimand_tensor::{Error, Result, warn};
use tracing::error;

use super::{Hook, HookContext};
use crate::feeding::BatchNumbers;

/// Ends training when the loss is NaN, with an error or with a warning. It ignores infinity.
#[derive(Clone, Debug)]
#[must_use]
pub struct NanTensorHook {
    fail: bool,
}

impl NanTensorHook {
    /// Makes a hook that treats NaN as an error.
    pub fn new() -> NanTensorHook {
        NanTensorHook { fail: true }
    }

    /// Sets whether NaN is an error. By default, it is; otherwise training ends with a warning.
    pub fn fail_on_nan_loss(mut self, fail: bool) -> NanTensorHook {
        self.fail = fail;
        self
    }
}

impl Default for NanTensorHook {
    fn default() -> NanTensorHook {
        NanTensorHook::new()
    }
}

impl Hook for NanTensorHook {
    fn name(&self) -> &str {
        "nan_tensor"
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if !cx.loss().is_some_and(f32::is_nan) {
            return Ok(());
        }
        let (cause, remedy) = match cx.batch_numbers {
            Some(BatchNumbers::Bad(found)) => (format!(": {found}"), BatchNumbers::REMEDY),
            Some(BatchNumbers::Finite) => (
                ", but all features and labels of the batch are finite: the model diverged".to_string(),
                "lower the learning rate, or clip gradients",
            ),
            None => (
                ": the model diverged".to_string(),
                "lower the learning rate, clip gradients, or look for NaN in the input",
            ),
        };
        let message = format!("the loss of step {} is NaN{cause}", cx.global_step());
        let is_of_input = matches!(cx.batch_numbers, Some(BatchNumbers::Bad(_)));
        if self.fail {
            error!("{message}");
            let mut help = remedy.to_string();
            // Numbers of the input make the variables NaN too, which says nothing more.
            if let Some(bad) = cx.session().find_not_finite().filter(|_| !is_of_input) {
                help += &format!("; of the variables, {bad}");
            }
            return Err(Error::new(estimand_tensor::ErrorKind::Diverged, message).help(help));
        }
        warn!("{message}");
        cx.request_stop("the loss is NaN");
        Ok(())
    }
}
