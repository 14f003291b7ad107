//! Shared code for the tests of data-movement kernels: random sizes, coordinates, pools of one and
//! three threads.

use crate::parallel::Pool;
use crate::random::{Key, Stream};

/// Small random integers, the same in every run.
pub struct Dice {
    stream: Stream,
    thrown: u64,
}

impl Dice {
    pub fn new(name: &str) -> Dice {
        Dice { stream: Stream::new(Key::new(0, name), 0), thrown: 0 }
    }

    /// A random number in 0..limit, which must not be empty.
    pub fn below(&mut self, limit: usize) -> usize {
        let mut value = [0];
        self.stream.fill_integers_i64(self.thrown, 1, 0, limit as i64, &mut value);
        self.thrown += 1;
        value[0] as usize
    }

    /// `n` floats in [-1, 1).
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        let mut values = vec![0.0; n];
        self.stream.fill_uniform_f32(self.thrown, n, &mut values);
        self.thrown += 1;
        values.into_iter().map(|v| 2.0 * v - 1.0).collect()
    }
}

/// Pools of one thread and of three. The same work must give the same bits on both.
pub fn pools() -> [Pool; 2] {
    [Pool::new(1), Pool::new(3)]
}

/// The coordinates of element number `index` of an array of `dims`.
pub fn coordinates(dims: &[usize], mut index: usize) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for k in (0..dims.len()).rev() {
        at[k] = index % dims[k];
        index /= dims[k];
    }
    at
}

/// The index of the element at the coordinates `at`.
pub fn row_major(dims: &[usize], at: &[usize]) -> usize {
    dims.iter().zip(at).fold(0, |index, (len, i)| index * len + i)
}

/// The bytes of floats.
pub fn as_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}
