//! What all values of a file may cost together.
//!
//! An honest file stores every value once. In a hostile one, many datasets share their bytes, or
//! many arrays are stored nowhere: each of them is small enough, and a program that reads them all
//! never ends. So the first reading of each dataset is counted.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use estimand_tensor::{Error, Limits, Result};

/// What the values of a dataset cost.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    /// The number of bytes in the file.
    pub stored: u64,
    /// The number of bytes that these become, if they are packed or are fill values.
    pub unpacked: u64,
}

/// The costs of the datasets that were read.
#[derive(Default)]
pub(super) struct Budget(Mutex<State>);

#[derive(Default)]
struct State {
    datasets: HashSet<usize>,
    total: Cost,
}

impl Budget {
    /// Counts a dataset, unless it was counted before.
    pub fn charge(&self, dataset: usize, cost: Cost, file_len: u64, limits: &Limits) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.datasets.contains(&dataset) {
            return Ok(());
        }
        let total = Cost {
            stored: state.total.stored.saturating_add(cost.stored),
            unpacked: state.total.unpacked.saturating_add(cost.unpacked),
        };
        if total.stored > file_len {
            let message =
                format!("the datasets have {} bytes, and the file has {file_len}: they overlap", total.stored);
            return Err(Error::data(message).help("the file is damaged"));
        }
        limits.check_unpacked(total.unpacked, "the datasets of an HDF5 file")?;
        limits.check_ratio(total.unpacked, total.stored)?;
        state.datasets.insert(dataset);
        state.total = total;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasets_count_once_and_together() {
        let limits = Limits { ratio: 2, free_bytes: 100, ..Limits::default() };
        let budget = Budget::default();
        let charge = |dataset, stored, unpacked| budget.charge(dataset, Cost { stored, unpacked }, 50, &limits);
        assert!(charge(0, 30, 0).is_ok() && charge(0, 30, 0).is_ok() && charge(1, 20, 100).is_ok());
        let error = charge(2, 1, 0).unwrap_err().to_string();
        assert!(error.starts_with("the datasets have 51 bytes, and the file has 50: they overlap"), "{error}");
        assert!(charge(3, 0, 1).unwrap_err().to_string().contains("(`ratio`)"));
        assert!(charge(1, 20, 100).is_ok());
    }
}
