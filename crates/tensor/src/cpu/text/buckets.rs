//! Computes a hash modulo the number of buckets, without a division for each hash.

use crate::{Error, Result};

/// A number of hash buckets, 1 to 2^63 - 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buckets {
    n: u64,
    /// `floor((2^64 - 1) / n)`.
    reciprocal: u64,
}

impl Buckets {
    /// Creates `n` buckets; `n` must be at least one.
    pub fn new(n: i64) -> Result<Buckets> {
        if n < 1 {
            return Err(Error::config(format!("the number of hash buckets is {n}; expected at least 1")));
        }
        Ok(Buckets { n: n as u64, reciprocal: u64::MAX / n as u64 })
    }

    /// The number of buckets.
    pub fn n(self) -> i64 {
        self.n as i64
    }

    /// The bucket of a hash: `hash % n`, both unsigned.
    #[inline(always)]
    pub fn of(self, hash: u64) -> i64 {
        // hash * reciprocal / 2^64 lies above hash / n - 1, since the reciprocal is below 2^64 / n
        // by at most 1 and the hash is below 2^64. So the quotient is right or one too small, and
        // the remainder is below 2n < 2^64.
        let quotient = ((u128::from(hash) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = hash.wrapping_sub(quotient.wrapping_mul(self.n));
        (if rest >= self.n { rest - self.n } else { rest }) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_unsigned_remainder() {
        let ns =
            [1, 2, 3, 7, 10, 1000, 1 << 20, (1 << 31) - 1, 1 << 32, (1 << 40) + 7, 1 << 62, i64::MAX - 1, i64::MAX];
        for n in ns {
            let buckets = Buckets::new(n).unwrap();
            let n = n as u64;
            let near = |x: u64| [x.wrapping_sub(1), x, x.wrapping_add(1)];
            let multiples = [1, 2, 3, u64::MAX / n - 1, u64::MAX / n].map(|k| k.wrapping_mul(n));
            let mut random = 1_u64;
            let randoms = std::iter::repeat_with(|| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                random ^ random >> 29
            });
            for hash in
                multiples.into_iter().flat_map(near).chain(near(0)).chain(near(1 << 63)).chain(randoms.take(10_000))
            {
                assert_eq!(buckets.of(hash), (hash % n) as i64, "{hash} % {n}");
            }
        }
    }

    #[test]
    fn needs_a_bucket() {
        for n in [0, -1, i64::MIN] {
            assert!(Buckets::new(n).unwrap_err().to_string().contains("expected at least 1"));
        }
    }
}
