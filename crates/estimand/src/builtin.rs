//! A small real data set as arrays, for programs that feed a session by hand. [`datasets`] has more
//! sets, as pipelines.

use estimand_data::datasets;
use estimand_tensor::{Array, Error, Feature, Result};

/// Features and labels of a data set.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// One row per example.
    pub features: Array,
    /// One class per example.
    pub labels: Array,
}

impl Labelled {
    /// Returns a range of the examples; shares the buffers.
    pub fn rows(&self, range: std::ops::Range<usize>) -> Result<Labelled> {
        Ok(Labelled { features: self.features.rows(range.clone())?, labels: self.labels.rows(range)? })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// Returns 1,797 handwritten digits of 8 x 8 pixels: features f32 `[1797, 64]` in 0 to 1, labels
/// i64 `[1797]`.
///
/// These are the rows of [`datasets::load("digits", "train")`](datasets::load), flattened and
/// divided by 16.
pub fn digits() -> Result<Labelled> {
    const N: usize = 1_797;
    let rows = datasets::load("digits", "train")?.dataset().batch(N).drop_remainder().iter().next().transpose()?;
    let rows = rows.ok_or_else(|| Error::internal("fewer digits than there should be"))?;
    let (Feature::Dense(images), Feature::Dense(labels)) = (rows.feature("image")?, &rows.labels()["label"]) else {
        return Err(Error::internal("digits are not dense"));
    };
    let pixels: Vec<f32> = images.as_slice::<u8>()?.iter().map(|&pixel| f32::from(pixel) / 16.0).collect();
    Ok(Labelled { features: Array::from_vec([N, pixels.len() / N], pixels)?, labels: labels.clone() })
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
