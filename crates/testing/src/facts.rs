//! Facts about a value before anything runs: the range of its elements, and whether every executor
//! computes them exactly.

/// Bounds of all elements, and the number of fraction bits of values that no executor rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Every element is a multiple of 2^-grain, small enough that f32 arithmetic on it is exact.
    /// `None` if it may be rounded.
    pub(super) grain: Option<u32>,
}

impl Facts {
    /// Rounded numbers in [low, high].
    pub(super) fn real(low: f64, high: f64) -> Facts {
        Facts { low, high, grain: None }
    }

    /// Multiples of 2^-grain in [low, high].
    pub(super) fn exact(low: f64, high: f64, grain: u32) -> Facts {
        Facts { low, high, grain: Some(grain) }.checked()
    }

    /// Integers and booleans in [low, high].
    pub(super) fn whole(low: f64, high: f64) -> Facts {
        Facts::exact(low, high, 0)
    }

    /// The largest magnitude.
    pub(super) fn size(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    pub(super) fn is_exact(&self) -> bool {
        self.grain.is_some()
    }

    /// Marks the value as not exact if a sum of a few such numbers would not fit an f32.
    fn checked(mut self) -> Facts {
        self.grain = self.grain.filter(|&g| self.size() * f64::from(1u32 << g.min(30)) < (1 << 21) as f64);
        self
    }

    /// The bounds of a non-decreasing function of the value; the result is rounded.
    pub(super) fn rising(&self, f: impl Fn(f64) -> f64) -> Facts {
        Facts::real(f(self.low), f(self.high))
    }

    /// The same elements within other bounds.
    pub(super) fn within(&self, low: f64, high: f64) -> Facts {
        Facts { low, high, ..*self }
    }

    pub(super) fn negated(&self) -> Facts {
        self.within(-self.high, -self.low)
    }

    /// The facts of a value that is one of two.
    pub(super) fn or(&self, other: &Facts) -> Facts {
        Facts { low: self.low.min(other.low), high: self.high.max(other.high), grain: self.common_grain(other) }
    }

    pub(super) fn plus(&self, other: &Facts) -> Facts {
        Facts { low: self.low + other.low, high: self.high + other.high, grain: self.common_grain(other) }.checked()
    }

    pub(super) fn times(&self, other: &Facts) -> Facts {
        let corners = [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
        let high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let grain = self.grain.zip(other.grain).map(|(a, b)| a + b);
        Facts { low, high, grain }.checked()
    }

    /// The sum of up to `n` such values.
    pub(super) fn summed(&self, n: usize) -> Facts {
        let n = n as f64;
        Facts { low: (self.low * n).min(0.0), high: (self.high * n).max(0.0), grain: self.grain }.checked()
    }

    /// The facts if zeros are added.
    pub(super) fn or_zero(&self) -> Facts {
        self.within(self.low.min(0.0), self.high.max(0.0))
    }

    fn common_grain(&self, other: &Facts) -> Option<u32> {
        self.grain.zip(other.grain).map(|(a, b)| a.max(b))
    }
}
