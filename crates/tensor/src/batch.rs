//! Batches: named features, optional labels and optional weights. Input pipelines pass them to the
//! engine.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::{Array, DType, Error, Ragged, Result};

/// One feature of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Feature {
    /// Every row has the same number of values.
    Dense(Array),
    /// Rows differ in length.
    Ragged(Ragged),
}

impl Feature {
    /// The number of rows; `None` for a scalar.
    pub fn n_rows(&self) -> Option<usize> {
        match self {
            Feature::Dense(a) => a.dims().first().copied(),
            Feature::Ragged(r) => Some(r.n_rows()),
        }
    }

    /// The values, if every row has the same number of them.
    pub fn dense(&self) -> Result<&Array> {
        match self {
            Feature::Dense(array) => Ok(array),
            Feature::Ragged(_) => Err(Error::shape("the feature has rows of different length; expected an array")
                .help("match on Feature::Ragged to read it")),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Feature::Dense(a) => a.dtype(),
            Feature::Ragged(r) => r.values().dtype(),
        }
    }
}

impl From<Array> for Feature {
    fn from(array: Array) -> Feature {
        Feature::Dense(array)
    }
}

impl From<Ragged> for Feature {
    fn from(ragged: Ragged) -> Feature {
        Feature::Ragged(ragged)
    }
}

/// Features and labels by name, in the order they were added; all have the same number of rows.
///
/// A model with one unnamed feature uses the empty name.
///
/// Two batches are equal if their features, labels and weights are.
/// [`missing`](Batch::missing) does not count.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    features: IndexMap<Arc<str>, Feature>,
    labels: IndexMap<Arc<str>, Feature>,
    weights: Option<Array>,
    n_rows: Option<usize>,
    /// The rows of features and labels that had no value. Most batches have none.
    missing: IndexMap<Arc<str>, Array>,
}

impl PartialEq for Batch {
    fn eq(&self, other: &Batch) -> bool {
        let Batch { features, labels, weights, n_rows, missing: _ } = self;
        *features == other.features && *labels == other.labels && *weights == other.weights && *n_rows == other.n_rows
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a feature.
    pub fn with_feature(mut self, name: &str, feature: impl Into<Feature>) -> Result<Batch> {
        let feature = feature.into();
        agree(&mut self.n_rows, "feature", name, &feature)?;
        self.features.insert(name.into(), feature);
        self.missing.swap_remove(name);
        Ok(self)
    }

    /// Adds a label.
    pub fn with_label(mut self, name: &str, label: impl Into<Feature>) -> Result<Batch> {
        let label = label.into();
        agree(&mut self.n_rows, "label", name, &label)?;
        self.labels.insert(name.into(), label);
        self.missing.swap_remove(name);
        Ok(self)
    }

    /// Records which rows of a feature or label had no value, before a default was filled in: one
    /// boolean for each row. A new value for the feature removes the record.
    pub fn with_missing(mut self, name: &str, missing: Array) -> Result<Batch> {
        let known = self.features.get_key_value(name).or_else(|| self.labels.get_key_value(name));
        let Some((known, _)) = known else {
            let names = self.features.keys().chain(self.labels.keys()).map(|k| &**k);
            return Err(Error::unknown("feature or label", name, names).context("in the batch"));
        };
        if missing.dtype() != DType::Bool || missing.dims() != [self.n_rows()] {
            return Err(Error::shape(format!(
                "the missing rows of `{name}` are {}{:?}; expected bool[{}]",
                missing.dtype(),
                missing.dims(),
                self.n_rows()
            )));
        }
        let known = known.clone();
        self.missing.insert(known, missing);
        Ok(self)
    }

    /// Which rows of a feature or label had no value, before a default was filled in: one boolean
    /// for each row. `None` if no row is known to be missing.
    ///
    /// ```
    /// # use estimand_tensor::{Array, Batch};
    /// let batch = Batch::new().with_feature("age", Array::from([39.0f32, 0.0]))?.with_missing("age", Array::from([false, true]))?;
    /// assert_eq!(batch.missing("age"), Some(&Array::from([false, true])));
    /// // A new value replaces the default.
    /// assert_eq!(batch.with_feature("age", Array::from([39.0f32, 44.5]))?.missing("age"), None);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn missing(&self, name: &str) -> Option<&Array> {
        self.missing.get(name)
    }

    /// All features and labels with rows that had no value, and these rows.
    pub fn all_missing(&self) -> impl Iterator<Item = (&str, &Array)> {
        self.missing.iter().map(|(name, missing)| (&**name, missing))
    }

    /// Sets one weight for each row.
    pub fn with_weights(mut self, weights: Array) -> Result<Batch> {
        agree(&mut self.n_rows, "weights", "", &Feature::Dense(weights.clone()))?;
        self.weights = Some(weights);
        Ok(self)
    }

    /// Fills this batch with the names of another. It reuses its memory for names that it already
    /// has. `fill` makes each feature, label and the weights from those of the other batch.
    ///
    /// A pipeline that gathers rows step after step can do so without allocating.
    pub fn refill(&mut self, from: &Batch, mut fill: impl FnMut(&Feature, &mut Feature) -> Result<()>) -> Result<()> {
        let alike = |a: &IndexMap<Arc<str>, Feature>, b: &IndexMap<Arc<str>, Feature>| a.keys().eq(b.keys());
        if !alike(&self.features, &from.features) || !alike(&self.labels, &from.labels) {
            (self.features, self.labels) = (from.features.clone(), from.labels.clone());
        }
        self.n_rows = None;
        for (part, old, new) in
            [("feature", &from.features, &mut self.features), ("label", &from.labels, &mut self.labels)]
        {
            for ((name, old), new) in old.iter().zip(new.values_mut()) {
                fill(old, new)?;
                agree(&mut self.n_rows, part, name, new)?;
            }
        }
        self.weights = match &from.weights {
            None => None,
            Some(old) => {
                let mut new = Feature::Dense(self.weights.take().unwrap_or_else(|| old.clone()));
                fill(&Feature::Dense(old.clone()), &mut new)?;
                agree(&mut self.n_rows, "weights", "", &new)?;
                match new {
                    Feature::Dense(weights) => Some(weights),
                    Feature::Ragged(_) => return Err(Error::internal("weights became ragged")),
                }
            }
        };
        self.missing.clear();
        for (name, old) in &from.missing {
            let old = Feature::Dense(old.clone());
            let mut new = old.clone();
            fill(&old, &mut new)?;
            agree(&mut self.n_rows, "missing rows", name, &new)?;
            if let Feature::Dense(new) = new {
                self.missing.insert(name.clone(), new);
            }
        }
        Ok(())
    }

    /// Turns a feature into a label, in place. Returns `false` if there is no such feature.
    pub fn feature_to_label(&mut self, name: &str) -> bool {
        match self.features.shift_remove_entry(name) {
            Some((name, feature)) => {
                self.labels.insert(name, feature);
                true
            }
            None => false,
        }
    }

    /// Turns a label into a feature at a position among the features, as it was before
    /// [`feature_to_label`](Batch::feature_to_label).
    pub fn label_to_feature(&mut self, name: &str, place: usize) {
        if let Some((name, label)) = self.labels.shift_remove_entry(name) {
            self.features.shift_insert(place.min(self.features.len()), name, label);
        }
    }

    /// The number of rows; 0 for an empty batch.
    pub fn n_rows(&self) -> usize {
        self.n_rows.unwrap_or(0)
    }

    /// The feature with this name.
    pub fn feature(&self, name: &str) -> Result<&Feature> {
        self.features
            .get(name)
            .ok_or_else(|| Error::unknown("feature", name, self.features.keys().map(|k| &**k)).context("in the batch"))
    }

    /// All features in order.
    pub fn features(&self) -> &IndexMap<Arc<str>, Feature> {
        &self.features
    }

    /// All labels in order.
    pub fn labels(&self) -> &IndexMap<Arc<str>, Feature> {
        &self.labels
    }

    /// The weight of each row, if there are weights.
    pub fn weights(&self) -> Option<&Array> {
        self.weights.as_ref()
    }
}

/// Checks that an added feature has as many rows as the others.
fn agree(n_rows: &mut Option<usize>, what: &str, name: &str, feature: &Feature) -> Result<()> {
    let Some(rows) = feature.n_rows() else {
        return Err(Error::shape(format!("{what} `{name}` is a single number; a batch needs an axis of rows")));
    };
    match *n_rows {
        Some(n) if n != rows => Err(Error::shape(format!("{what} `{name}` has {rows} rows, but the batch has {n}"))),
        _ => {
            *n_rows = Some(rows);
            Ok(())
        }
    }
}

/// The format of one feature in every batch.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureSpec {
    /// Every row has the same number of values.
    Dense {
        /// Element type.
        dtype: DType,
        /// Sizes of one row's axes; empty for one value per row.
        dims: Vec<usize>,
        /// The value for rows in which the feature is missing. Without it, a missing feature is an
        /// error.
        default: Option<Array>,
    },
    /// A row has any number of values.
    Ragged {
        /// Element type.
        dtype: DType,
    },
    /// A row has any number of steps, padded to the longest row of the batch:
    /// `[rows, steps, dims...]`.
    Padded {
        /// Element type.
        dtype: DType,
        /// Sizes of one step's axes; empty for one value per step.
        dims: Vec<usize>,
        /// The single value that shorter rows are padded with. By default zero or the empty string.
        padding: Option<Array>,
    },
}

impl FeatureSpec {
    /// Every row has the same number of values, and none may be missing.
    pub fn dense(dtype: DType, dims: impl Into<Vec<usize>>) -> FeatureSpec {
        FeatureSpec::Dense { dtype, dims: dims.into(), default: None }
    }

    /// Like [`FeatureSpec::dense`], with a value for rows in which the feature is missing.
    pub fn dense_or(default: Array) -> FeatureSpec {
        FeatureSpec::Dense { dtype: default.dtype(), dims: default.dims().to_vec(), default: Some(default) }
    }

    /// A row has any number of values.
    pub fn ragged(dtype: DType) -> FeatureSpec {
        FeatureSpec::Ragged { dtype }
    }

    /// A row has any number of steps, padded with zeros or empty strings.
    pub fn padded(dtype: DType, dims: impl Into<Vec<usize>>) -> FeatureSpec {
        FeatureSpec::Padded { dtype, dims: dims.into(), padding: None }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            FeatureSpec::Dense { dtype, .. } | FeatureSpec::Ragged { dtype } | FeatureSpec::Padded { dtype, .. } => {
                *dtype
            }
        }
    }
}

/// The formats of all features of a batch, by name.
pub type BatchSpec = IndexMap<String, FeatureSpec>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_must_agree() {
        let b = Batch::new().with_feature("age", Array::from([1.0f32, 2.0])).unwrap();
        let e = b.clone().with_label("y", Array::from([1i64])).unwrap_err();
        assert!(e.to_string().contains("label `y` has 1 rows, but the batch has 2"));
        assert!(b.feature("agee").unwrap_err().to_string().contains("did you mean `age`?"));
        assert!(Batch::new().with_feature("x", Array::from(1i32)).is_err());
    }

    #[test]
    fn missing_rows_are_one_boolean_for_each_row_of_a_known_feature() {
        let b = Batch::new().with_feature("age", Array::from([1.0f32, 2.0])).unwrap();
        let e = b.clone().with_missing("agee", Array::from([true, false])).unwrap_err().to_string();
        assert!(e.contains("did you mean `age`?"), "{e}");
        let e = b.clone().with_missing("age", Array::from([true])).unwrap_err().to_string();
        assert!(e.contains("the missing rows of `age` are bool[1]; expected bool[2]"), "{e}");
        assert!(b.clone().with_missing("age", Array::from([1i64, 0])).is_err());
        let marked = b.clone().with_missing("age", Array::from([true, false])).unwrap();
        assert_eq!(marked, b, "missing rows are no part of the value");
        let mut labelled = marked.clone();
        assert!(labelled.feature_to_label("age"));
        assert_eq!(labelled.missing("age"), Some(&Array::from([true, false])), "the name stays");
        let mut last = Batch::new();
        let row = |feature: &Feature, row: &mut Feature| match feature {
            Feature::Dense(array) => {
                *row = array.rows(0..1)?.into();
                Ok(())
            }
            Feature::Ragged(_) => Ok(()),
        };
        last.refill(&marked, row).unwrap();
        assert_eq!(last.missing("age"), Some(&Array::from([true])));
        last.refill(&b, row).unwrap();
        assert_eq!(last.missing("age"), None);
    }
}
