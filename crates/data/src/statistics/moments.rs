//! Mean and variance from blocks of fixed size. They are numerically stable, and the same bits
//! however the blocks are divided among threads.

/// The count, the mean, and the sum of squared deviations from the mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    n: u64,
    mean: f64,
    /// The rounding error of the mean. Small deviations of large numbers need it.
    rest: f64,
    m2: f64,
}

impl Moments {
    /// Computes the moments of one block, in several passes over it.
    pub(super) fn of(values: &[f64]) -> Moments {
        if values.is_empty() {
            return Moments::default();
        }
        let n = values.len() as f64;
        let mean = sum(values, |v| v) / n;
        let off = sum(values, |v| v - mean);
        let m2 = sum(values, |v| (v - mean) * (v - mean)) - off * (off / n);
        Moments { n: values.len() as u64, mean, rest: off / n, m2 }
    }

    /// Merges the moments of two sets: Chan, Golub and LeVeque's update, with the mean in two
    /// parts.
    pub(super) fn merge(self, other: Moments) -> Moments {
        if self.n == 0 || other.n == 0 {
            return if self.n == 0 { other } else { self };
        }
        let n = self.n + other.n;
        let share = other.n as f64 / n as f64;
        let delta = (other.mean - self.mean) + (other.rest - self.rest);
        let step = self.rest + delta * share;
        // Knuth's two-sum: `rest` is exactly the rounding error of `mean`.
        let mean = self.mean + step;
        let taken = mean - self.mean;
        let rest = (self.mean - (mean - taken)) + (step - taken);
        Moments { n, mean, rest, m2: self.m2 + other.m2 + delta * delta * self.n as f64 * share }
    }

    pub(super) fn mean(self) -> f64 {
        if self.n == 0 { f64::NAN } else { self.mean }
    }

    /// The population standard deviation: divided by the number of values.
    pub(super) fn std(self) -> f64 {
        if self.n == 0 { f64::NAN } else { (self.m2 / self.n as f64).sqrt() }
    }
}

/// Sums in eight lanes, which the compiler may put into vector registers. The order affects the
/// result.
fn sum(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    for chunk in values.chunks(8) {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &v)| *lane += of(v));
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 1, 2, 3, 4: mean 2.5, squares of deviations 2.25 + 0.25 + 0.25 + 2.25 = 5, std sqrt(5 /
        // 4).
        let all = Moments::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((all.mean(), all.std()), (2.5, 1.25f64.sqrt()));
        // {1, 2, 3} has mean 2 and squares 2; with {4}: delta 2, 2 + 0 + 4 * 3 * 1/4 = 5.
        let parts = Moments::of(&[1.0, 2.0, 3.0]).merge(Moments::of(&[4.0]));
        assert_eq!((parts.n, parts.mean, parts.m2), (4, 2.5, 5.0));
        assert!(Moments::default().mean().is_nan());
        assert_eq!(Moments::default().merge(all).mean(), 2.5);
    }

    #[test]
    fn large_numbers_with_small_differences() {
        // Alternating 1e9 and 1e9 + 1: the naive sum of squares loses all digits of the variance,
        // which is 1/4.
        let values: Vec<f64> = (0..40_960).map(|i| 1e9 + f64::from(i % 2)).collect();
        let moments = values.chunks(4096).map(Moments::of).fold(Moments::default(), Moments::merge);
        assert_eq!((moments.mean(), moments.std()), (1e9 + 0.5, 0.5));
        // One value more or less in a block moves its mean by less than the precision of a mean of
        // 1e9.
        let values: Vec<f64> = (0..409_600).map(|i| 1e9 + f64::from(i % 3)).collect();
        let moments = values.chunks(4096).map(Moments::of).fold(Moments::default(), Moments::merge);
        // 136,534 zeros, 136,533 ones and twos: mean 1 - 1/409,600, variance (5 * 136,533) /
        // 409,600 - mean^2.
        let mean = 1.0 - 1.0 / 409_600.0f64;
        let std = (5.0 * 136_533.0 / 409_600.0 - mean * mean).sqrt();
        assert!((moments.std() - std).abs() < 1e-14, "{} is not {std}", moments.std());
    }
}
