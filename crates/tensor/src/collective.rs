//! `Collective`: the interface through which workers exchange values between gradients and updates.
//! A single process is the trivial case.

use crate::Result;

/// Sums and broadcasts over all workers of a job. Every worker makes the same calls in the same
/// order.
pub trait Collective: Send + Sync {
    /// This worker's number, from 0.
    fn rank(&self) -> usize;

    /// The number of workers.
    fn n_workers(&self) -> usize;

    /// Replaces the values by their sums over all workers, added in the order of the workers'
    /// numbers.
    fn all_reduce_sum(&self, values: &mut [f32]) -> Result<()>;

    /// Gathers the bytes of all workers, in the order of the workers' numbers.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Replaces the bytes by those of worker `root`.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<()>;

    /// Returns when every worker has called it.
    fn barrier(&self) -> Result<()>;
}

/// The collective for a job with one worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneProcess;

impl Collective for OneProcess {
    fn rank(&self) -> usize {
        0
    }

    fn n_workers(&self) -> usize {
        1
    }

    fn all_reduce_sum(&self, _values: &mut [f32]) -> Result<()> {
        Ok(())
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![bytes.to_vec()])
    }

    fn broadcast(&self, root: usize, _bytes: &mut Vec<u8>) -> Result<()> {
        match root {
            0 => Ok(()),
            _ => Err(crate::Error::config(format!("cannot broadcast from worker {root}: the job has only worker 0"))),
        }
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_is_its_own_world() {
        let mut v = [1.0, 2.0];
        OneProcess.all_reduce_sum(&mut v).unwrap();
        assert_eq!(v, [1.0, 2.0]);
        assert_eq!(OneProcess.all_gather(b"a").unwrap(), [b"a"]);
        assert!(OneProcess.broadcast(1, &mut vec![]).is_err());
    }
}
