//! Ends a training whose loss no longer changes.

use estimand_tensor::{Error, Result};

use crate::hook::{Hook, HookContext};

/// Ends training when the loss of a step is close to the one before:
/// `|loss - before| / (1 + |before|) < tolerance`.
pub(super) struct RelativeTolerance {
    tolerance: f64,
    before: Option<f32>,
}

impl RelativeTolerance {
    pub(super) fn new(tolerance: f64) -> RelativeTolerance {
        RelativeTolerance { tolerance, before: None }
    }
}

impl Hook for RelativeTolerance {
    fn name(&self) -> &str {
        "relative_tolerance"
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let Some(loss) = cx.loss() else { return Ok(()) };
        // TF: a loss of exactly 0 is never compared with the next one; here it is like any other.
        if let Some(before) = self.before {
            let (loss, before) = (f64::from(loss), f64::from(before));
            let change = (loss - before).abs() / (1.0 + before.abs());
            if change < self.tolerance {
                cx.request_stop(format!(
                    "the loss changed by {change:.3e} of itself, which is less than relative_tolerance {}",
                    self.tolerance
                ));
            }
        }
        self.before = Some(loss);
        Ok(())
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.before.map(|loss| loss.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        let bytes = state.try_into().map_err(|_| {
            Error::data(format!("the state of hook `{}` has {} bytes; expected 4", self.name(), state.len()))
        })?;
        self.before = Some(f32::from_le_bytes(bytes));
        Ok(())
    }
}
