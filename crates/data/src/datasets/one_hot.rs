//! One-hot vectors of classes.

use estimand_tensor::{Array, Batch, DType, Error, Feature, Result};

/// Converts classes i64 `[...]` to f32 `[..., n_classes]`: 1 for the class, 0 for the others.
///
/// ```
/// # use estimand_data::datasets::one_hot;
/// # use estimand_tensor::Array;
/// let vectors = one_hot(&Array::from([2i64, 0]), 3)?;
/// assert_eq!(vectors, Array::from_vec([2, 3], vec![0.0f32, 0.0, 1.0, 1.0, 0.0, 0.0])?);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn one_hot(classes: &Array, n_classes: usize) -> Result<Array> {
    let mut vectors = Array::zeros(DType::F32, [classes.dims(), &[n_classes]].concat())?;
    let ones = vectors.as_mut_slice::<f32>()?;
    for (i, &class) in classes.as_slice::<i64>()?.iter().enumerate() {
        let place = usize::try_from(class).ok().filter(|&class| class < n_classes).ok_or_else(|| {
            Error::data(format!(
                "the class in row {} of the batch is {class}; expected 0 or more and less than {n_classes}",
                i + 1
            ))
        })?;
        ones[i * n_classes + place] = 1.0;
    }
    Ok(vectors)
}

/// Converts the label of a batch to one-hot vectors.
pub(super) fn label_of(batch: Batch, label: &str, n_classes: usize) -> Result<Batch> {
    match batch.labels().get(label) {
        Some(Feature::Dense(classes)) => {
            let vectors = one_hot(classes, n_classes)?;
            batch.with_label(label, vectors)
        }
        _ => Err(Error::internal(format!("a batch without the label `{label}`"))),
    }
}
