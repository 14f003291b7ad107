//! Small random choices, all from one seed.

use estimand_tensor::random::{Key, Stream};

pub(super) struct Dice {
    seed: u64,
    throws: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice { seed, throws: 0 }
    }

    /// A number in 0..n; 0 if n is 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let mut value = [0i64];
        self.throws += 1;
        Stream::new(Key::new(self.seed, "dice"), self.throws).fill_integers_i64(0, 1, 0, n as i64, &mut value);
        value[0] as usize
    }

    /// A number in low..=high.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True with the given probability in percent.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the choices.
    pub(super) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Reals in [low, high).
    pub(super) fn reals(&mut self, n: usize, low: f64, high: f64) -> Vec<f32> {
        let mut unit = vec![0f32; n];
        self.throws += 1;
        Stream::new(Key::new(self.seed, "reals"), self.throws).fill_uniform_f32(0, n.max(1), &mut unit);
        unit.into_iter().map(|u| (low + (high - low) * f64::from(u)) as f32).collect()
    }

    /// The numbers 0..n in random order.
    pub(super) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order = vec![0u64; n];
        self.throws += 1;
        Stream::new(Key::new(self.seed, "order"), self.throws).fill_permutation(&mut order);
        order.into_iter().map(|i| i as usize).collect()
    }
}
