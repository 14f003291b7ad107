//! Small real data sets inside the library, so that the first commands need no download.

use estimand_tensor::{Array, Result};

/// Features and labels of a data set.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// One row for each example.
    pub features: Array,
    /// One class for each example.
    pub labels: Array,
}

impl Labelled {
    /// A range of the examples; shares the buffers.
    pub fn rows(&self, range: std::ops::Range<usize>) -> Result<Labelled> {
        Ok(Labelled { features: self.features.rows(range.clone())?, labels: self.labels.rows(range)? })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// 1,797 handwritten digits of 8 x 8 pixels: features f32 `[1797, 64]` in 0 to 1, labels i64 `[1797]`.
///
/// The "digits" of scikit-learn (BSD-3), a part of UCI's optical recognition of handwritten digits.
pub fn digits() -> Result<Labelled> {
    const PIXELS: usize = 64;
    let bytes = include_bytes!("digits.bin");
    let rows = bytes.chunks_exact(PIXELS + 1);
    let n = rows.len();
    let features = rows.clone().flat_map(|r| &r[..PIXELS]).map(|&p| f32::from(p) / 16.0).collect();
    let labels = rows.map(|r| i64::from(r[PIXELS])).collect();
    Ok(Labelled { features: Array::from_vec([n, PIXELS], features)?, labels: Array::from_vec([n], labels)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_balanced_and_in_range() {
        let digits = digits().unwrap();
        assert_eq!((digits.features.dims(), digits.len()), (&[1797, 64][..], 1797));
        assert!(digits.features.as_slice::<f32>().unwrap().iter().all(|p| (0.0..=1.0).contains(p)));
        let labels: &[i64] = digits.labels.as_slice().unwrap();
        // scikit-learn's description counts 174 to 183 examples of each class.
        for class in 0..10 {
            assert!((174..=183).contains(&labels.iter().filter(|l| **l == class).count()), "class {class}");
        }
    }
}
