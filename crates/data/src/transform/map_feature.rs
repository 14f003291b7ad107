//! `map_feature` and `map_label`: functions of one feature or label.

use std::panic::Location;
use std::sync::Arc;

use estimand_tensor::{Array, Batch, Error, Feature, IntoArray, Ragged, Result};

use super::map::{Map, MapCall};
use crate::Dataset;

impl Dataset {
    /// Changes one feature with a function of its array, as [`map`](Dataset::map) changes batches.
    /// A label is found by its name too.
    ///
    /// The function may compute with operators ([`Computed`](estimand_tensor::Computed)), or return
    /// an `Array` or a `Result<Array>`. It gets the array of all rows in a piece, and must return
    /// as many rows. For a ragged feature it gets the values of all rows, one after another, and
    /// must return as many values. Before [`batch`](Dataset::batch), each row of the result must
    /// depend only on its own row.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_arrays([("rooms", Array::from([2i64, 5])), ("price", Array::from([900.0f32, 2500.0]))])
    ///     .map_feature("price", |p| p / 1000.0)
    ///     .label("price")
    ///     .batch(2);
    /// let batch = data.iter().next().unwrap()?;
    /// assert_eq!(batch.labels()["price"], Array::from([0.9f32, 2.5]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn map_feature<O: IntoArray>(
        &self,
        name: impl Into<String>,
        function: impl Fn(&Array) -> O + Send + Sync + 'static,
    ) -> Dataset {
        let site = Location::caller();
        let name = name.into();
        let call = MapCall::Feature(name.clone());
        let function = move |batch: Batch| match batch.features().get(&*name).or_else(|| batch.labels().get(&*name)) {
            Some(feature) => {
                let changed = change(feature, &function, batch.n_rows());
                let changed = changed.map_err(|e| e.context(format!("in the feature `{name}`")).at(site))?;
                replace(batch, &name, changed)
            }
            None => {
                let known = batch.features().keys().chain(batch.labels().keys()).map(|name| &**name);
                Err(Error::unknown("feature or label", &name, known).at(site))
            }
        };
        Dataset::new(Map { input: self.clone(), function: Arc::new(function), call })
    }

    /// Changes the label with a function of its array, as [`map_feature`](Dataset::map_feature)
    /// changes a feature. If there are several labels, change one by its name with `map_feature`.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// // Classes 1 and 2 become 0 and 1.
    /// let data = Dataset::from_arrays([("x", Array::from([0.5f32, 1.5])), ("class", Array::from([2i64, 1]))]);
    /// let row = data.label("class").map_label(|class| class - 1).iter().next().unwrap()?;
    /// assert_eq!(row.labels()["class"], Array::from([1i64]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn map_label<O: IntoArray>(&self, function: impl Fn(&Array) -> O + Send + Sync + 'static) -> Dataset {
        let site = Location::caller();
        let function = move |batch: Batch| {
            let mut labels = batch.labels().iter();
            match (labels.next(), labels.next()) {
                (Some((name, label)), None) => {
                    let changed = change(label, &function, batch.n_rows());
                    let changed = changed.map_err(|e| e.context(format!("in the label `{name}`")).at(site))?;
                    let name = name.clone();
                    replace(batch, &name, changed)
                }
                (None, _) => Err(Error::config("the rows have no label").help("name it with label(..) first").at(site)),
                (Some(_), Some(_)) => {
                    let names: Vec<String> = batch.labels().keys().map(|name| format!("`{name}`")).collect();
                    Err(Error::config(format!("the rows have several labels: {}", names.join(", ")))
                        .help("change one of them by its name: map_feature(name, ..)")
                        .at(site))
                }
            }
        };
        Dataset::new(Map { input: self.clone(), function: Arc::new(function), call: MapCall::Label })
    }
}

/// Applies the function to the array of a feature, or to the values of a ragged one.
fn change<O: IntoArray>(feature: &Feature, function: &impl Fn(&Array) -> O, n_rows: usize) -> Result<Feature> {
    let (array, what, n) = match feature {
        Feature::Dense(array) => (array, "rows", n_rows),
        Feature::Ragged(ragged) => (ragged.values(), "values", ragged.values().dims()[0]),
    };
    let changed = function(array).into_array()?;
    if changed.dims().first() != Some(&n) {
        let message =
            format!("the function returned the shape {:?} for {n} {what}; expected as many {what}", changed.dims());
        return Err(Error::shape(message));
    }
    match feature {
        Feature::Dense(_) => Ok(changed.into()),
        Feature::Ragged(ragged) => Ok(Ragged::new(changed, ragged.row_splits())?.into()),
    }
}

/// Puts a changed feature or label in the place of the old one. Rows that were missing stay marked:
/// their new values come from the values that were filled in.
fn replace(batch: Batch, name: &str, changed: Feature) -> Result<Batch> {
    let missing = batch.missing(name).cloned();
    let batch = match batch.features().contains_key(name) {
        true => batch.with_feature(name, changed)?,
        false => batch.with_label(name, changed)?,
    };
    match missing {
        Some(missing) => batch.with_missing(name, missing),
        None => Ok(batch),
    }
}
