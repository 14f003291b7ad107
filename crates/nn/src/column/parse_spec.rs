//! The specs for parsing the features of columns from a `tf.Example`.

use estimand_tensor::{Array, BatchSpec, DType, Error, FeatureSpec, Result};

use super::Columns;

/// The spec for parsing all features that the columns read from `tf.Example`s.
///
/// ```
/// use estimand_nn::column::{categorical_column_with_hash_bucket, make_parse_example_spec, numeric_column};
/// use estimand_tensor::{DType, FeatureSpec};
///
/// let spec = make_parse_example_spec([numeric_column("age").into(), categorical_column_with_hash_bucket("words", 100).into()])?;
/// assert_eq!(spec["age"], FeatureSpec::dense(DType::F32, [1]));
/// assert_eq!(spec["words"], FeatureSpec::ragged(DType::Str));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn make_parse_example_spec(columns: impl Into<Columns>) -> Result<BatchSpec> {
    let mut all = BatchSpec::new();
    for column in columns.into().0 {
        column.check()?;
        for (key, spec) in column.parse_spec() {
            match all.get(&key) {
                Some(other) if *other != spec => {
                    let text =
                        format!("feature `{key}` is parsed as {other:?} for one column and as {spec:?} for another");
                    return Err(column.place(Error::config(text).help("let both columns read it in the same way")));
                }
                _ => drop(all.insert(key, spec)),
            }
        }
    }
    Ok(all)
}

/// Like [`make_parse_example_spec`], with the label of a classifier (one value per row: i64 class
/// numbers or strings) and optionally the feature that holds the weights of rows.
pub fn classifier_parse_example_spec(
    columns: impl Into<Columns>,
    label_key: &str,
    label_dtype: DType,
    label_default: Option<Array>,
    weight_key: Option<&str>,
) -> Result<BatchSpec> {
    with_label(columns, label_key, label_dtype, 1, label_default, weight_key)
}

/// Like [`make_parse_example_spec`], with the label of a regressor (f32, `label_dimension` numbers
/// per row) and optionally the feature that holds the weights of rows.
pub fn regressor_parse_example_spec(
    columns: impl Into<Columns>,
    label_key: &str,
    label_dimension: usize,
    label_default: Option<Array>,
    weight_key: Option<&str>,
) -> Result<BatchSpec> {
    with_label(columns, label_key, DType::F32, label_dimension, label_default, weight_key)
}

fn with_label(
    columns: impl Into<Columns>,
    label_key: &str,
    dtype: DType,
    n: usize,
    default: Option<Array>,
    weight_key: Option<&str>,
) -> Result<BatchSpec> {
    let mut spec = make_parse_example_spec(columns)?;
    let default = default.map(|value| label_default(&value, dtype, n)).transpose()?;
    add(&mut spec, "label", label_key, FeatureSpec::Dense { dtype, dims: vec![n], default })?;
    if let Some(key) = weight_key {
        add(&mut spec, "weight", key, FeatureSpec::dense(DType::F32, [1]))?;
    }
    Ok(spec)
}

/// A default of the label's dtype and size. `value` holds one value or one for each number.
fn label_default(value: &Array, dtype: DType, n: usize) -> Result<Array> {
    if value.dtype() != dtype || value.len() != n {
        let text = format!("the default of the label is {}{:?}; expected {dtype}[{n}]", value.dtype(), value.dims());
        return Err(Error::config(text).help("give a default with the dtype and the size of the label"));
    }
    value.reshape([n])
}

fn add(spec: &mut BatchSpec, what: &str, key: &str, feature: FeatureSpec) -> Result<()> {
    if spec.contains_key(key) {
        return Err(Error::config(format!("the {what} `{key}` is also the feature of a column"))
            .help(format!("give the {what} a name of its own")));
    }
    spec.insert(key.to_string(), feature);
    Ok(())
}
