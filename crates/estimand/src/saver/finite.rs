//! Checks that the numbers of a model are finite.

use std::fmt;

use estimand_tensor::Array;

/// A number of a variable that is infinite or NaN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NotFinite {
    pub(crate) variable: String,
    /// Its index in the variable, in memory order.
    pub(crate) element: usize,
    pub(crate) value: f64,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {} at element {}", self.variable, self.value, self.element)
    }
}

impl NotFinite {
    /// Finds the first such number of a variable; `None` if all are finite, or if the dtype has
    /// only finite values.
    pub(crate) fn find(variable: &str, array: &Array) -> Option<NotFinite> {
        let found = match (array.as_slice::<f32>(), array.as_slice::<f64>()) {
            (Ok(values), _) => first(values, |x| x.is_finite()).map(|i| (i, f64::from(values[i]))),
            (_, Ok(values)) => first(values, |x| x.is_finite()).map(|i| (i, values[i])),
            _ => None,
        };
        found.map(|(element, value)| NotFinite { variable: variable.to_string(), element, value })
    }
}

/// Returns the first element that is not finite. It checks blocks without a branch inside, which
/// the compiler vectorizes, so the pass costs as much as reading the memory.
fn first<T: Copy>(values: &[T], is_finite: impl Fn(T) -> bool) -> Option<usize> {
    const BLOCK: usize = 4096;
    let bad = values.chunks(BLOCK).position(|block| !block.iter().fold(true, |all, &x| all & is_finite(x)))?;
    let begin = bad * BLOCK;
    values[begin..].iter().position(|&x| !is_finite(x)).map(|i| begin + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_number_is_found_wherever_it_is() {
        for n in [1, 4095, 4096, 4097, 10_000] {
            for at in [0, n / 2, n - 1] {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut values = vec![f32::MAX; n];
                    values[at] = bad;
                    let found = NotFinite::find("w", &Array::from(values)).unwrap();
                    assert_eq!((found.element, found.value.to_bits()), (at, f64::from(bad).to_bits()), "{n}");
                }
            }
        }
        let bad = NotFinite::find("layer/w", &Array::from([1.0f64, f64::INFINITY])).unwrap();
        assert_eq!(bad.to_string(), "`layer/w` is inf at element 1");
    }

    #[test]
    fn other_arrays_are_finite() {
        for array in [
            Array::from([1.0f32, f32::MIN_POSITIVE / 2.0, f32::MIN]),
            Array::from([i64::MAX, i64::MIN]),
            Array::from(Vec::<f32>::new()),
        ] {
            assert_eq!(NotFinite::find("w", &array), None);
        }
    }
}
