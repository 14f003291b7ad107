//! `Prediction`: the result of a prediction, with getters by type.

use std::fmt;
use std::panic::Location;

use estimand_tensor::{Array, Batch, DType, Element, Error, Feature, Result, nearest_name};
use indexmap::IndexMap;

/// Predictions by name; of one row, or of all rows of a batch.
///
/// ```
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-prediction-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").repeat(200).batch(4);
/// let classifier = LinearClassifier::new([numeric_column("x").into()]).model_dir(&folder).build()?;
/// classifier.train(&data)?;
/// for row in classifier.predict(data.take(1)) {
///     let row = row?;
///     println!("class {} with {:.3}", row.text("classes")?, row.f32("probabilities")?[1]);
/// }
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction(IndexMap<String, Array>);

impl Prediction {
    /// Returns a prediction of any type. For an unknown name, the error suggests the nearest one
    /// and lists all.
    #[track_caller]
    pub fn array(&self, key: &str) -> Result<&Array> {
        let site = Location::caller();
        self.0.get(key).ok_or_else(|| unknown_prediction(key, self.keys()).at(site))
    }

    /// Returns the numbers of an f32 prediction, in row-major order.
    #[track_caller]
    pub fn f32(&self, key: &str) -> Result<&[f32]> {
        self.numbers(key)
    }

    /// Returns the numbers of an f64 prediction, in row-major order.
    #[track_caller]
    pub fn f64(&self, key: &str) -> Result<&[f64]> {
        self.numbers(key)
    }

    /// Returns the numbers of an i32 prediction, in row-major order.
    #[track_caller]
    pub fn i32(&self, key: &str) -> Result<&[i32]> {
        self.numbers(key)
    }

    /// Returns the numbers of an i64 prediction, such as `class_ids`, in row-major order.
    #[track_caller]
    pub fn i64(&self, key: &str) -> Result<&[i64]> {
        self.numbers(key)
    }

    /// Returns the text of a prediction with one string, such as `classes`.
    #[track_caller]
    pub fn text(&self, key: &str) -> Result<&str> {
        match self.texts(key)?[..] {
            [text] => Ok(text),
            ref several => {
                let (n, what) = (several.len(), self.describe(key)?);
                Err(Error::shape(format!("{what} holds {n} texts, not one"))
                    .at(Location::caller())
                    .help(format!("use texts(\"{key}\") to get all of them")))
            }
        }
    }

    /// Returns the texts of a prediction of strings, in row-major order.
    #[track_caller]
    pub fn texts(&self, key: &str) -> Result<Vec<&str>> {
        let array = self.array(key)?;
        if array.dtype() != DType::Str {
            return Err(self.wrong_type(key, DType::Str)?);
        }
        let site = Location::caller();
        let text = |bytes| {
            std::str::from_utf8(bytes).map_err(|_| {
                Error::data(format!("prediction `{key}` holds bytes that are no UTF-8 text"))
                    .at(site)
                    .help(format!("use array(\"{key}\")?.strings() to get the bytes"))
            })
        };
        array.strings()?.map(text).collect()
    }

    /// Returns the names of the predictions.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the predictions with their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Array)> {
        self.0.iter().map(|(key, array)| (key.as_str(), array))
    }

    /// Returns these predictions behind features and labels of their batch.
    pub(super) fn behind(self, names: &[String], batch: &Batch) -> Result<Prediction> {
        if names.is_empty() {
            return Ok(self);
        }
        let mut all = IndexMap::new();
        for name in names {
            let known = || batch.features().keys().chain(batch.labels().keys()).map(|name| &**name);
            let found = batch.features().get(name.as_str()).or_else(|| batch.labels().get(name.as_str()));
            let feature = found
                .ok_or_else(|| Error::unknown("feature or label", name, known()).context("in PredictSpec::forward"))?;
            let Feature::Dense(array) = feature else {
                return Err(Error::unsupported(format!("`{name}` is ragged, so it cannot be forwarded"))
                    .help("forward features with the same number of values in each row"));
            };
            if self.0.contains_key(name) {
                return Err(Error::config(format!("the model has a prediction `{name}`: it cannot be forwarded too"))
                    .help("rename the feature with map, or select predictions with keys(..)"));
            }
            all.insert(name.clone(), array.clone());
        }
        all.extend(self.0);
        Ok(Prediction(all))
    }

    /// Returns the predictions of a batch as features: a column for each number of a row.
    pub(super) fn into_batch(self) -> Result<Batch> {
        self.0.into_iter().try_fold(Batch::new(), |batch, (name, array)| {
            let array = match array.dims() {
                &[n_rows, 1] => array.reshape([n_rows])?,
                _ => array,
            };
            batch.with_feature(&name, array)
        })
    }

    #[track_caller]
    fn numbers<T: Element>(&self, key: &str) -> Result<&[T]> {
        let array = self.array(key)?;
        match array.dtype() == T::DTYPE {
            true => array.as_slice(),
            false => Err(self.wrong_type(key, T::DTYPE)?),
        }
    }

    #[track_caller]
    fn describe(&self, key: &str) -> Result<String> {
        let array = self.array(key)?;
        Ok(format!("prediction `{key}` is {}{:?}: it", array.dtype(), array.dims()))
    }

    #[track_caller]
    fn wrong_type(&self, key: &str, expected: DType) -> Result<Error> {
        let array = self.array(key)?;
        let (found, dims) = (array.dtype(), array.dims());
        let getter = match found {
            DType::F32 => format!("f32(\"{key}\")"),
            DType::F64 => format!("f64(\"{key}\")"),
            DType::I32 => format!("i32(\"{key}\")"),
            DType::I64 => format!("i64(\"{key}\")"),
            DType::Str if array.len() == 1 => format!("text(\"{key}\")"),
            DType::Str => format!("texts(\"{key}\")"),
            _ => format!("array(\"{key}\")"),
        };
        let message = format!("prediction `{key}` is {found}{dims:?}, not {expected}");
        Ok(Error::dtype(Some(expected), found, message).at(Location::caller()).help(format!("read it with {getter}")))
    }
}

/// The error of a prediction that does not exist. The help suggests the nearest name and lists all.
pub(crate) fn unknown_prediction<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.collect();
    let error = Error::unknown("prediction", key, known.iter().copied());
    match nearest_name(key, known.iter().copied()) {
        Some(near) if known.len() > 1 => {
            error.help(format!("did you mean `{near}`? the predictions are {}", known.join(", ")))
        }
        _ => error,
    }
}

impl FromIterator<(String, Array)> for Prediction {
    fn from_iter<I: IntoIterator<Item = (String, Array)>>(all: I) -> Prediction {
        Prediction(all.into_iter().collect())
    }
}

impl IntoIterator for Prediction {
    type Item = (String, Array);
    type IntoIter = indexmap::map::IntoIter<String, Array>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Prints a line for each prediction: its name and its values.
impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, array)) in self.iter().enumerate() {
            let end = if i + 1 < self.0.len() { "\n" } else { "" };
            write!(f, "{key}: {array}{end}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Result<Prediction> {
        let all = [
            ("probabilities", Array::from([0.25f32, 0.75])),
            ("class_ids", Array::from([1i64])),
            ("classes", Array::from_strings([1], ["yes"])?),
            ("all_classes", Array::from_strings([2], ["no", "yes"])?),
            ("raw", Array::from_strings([1], [[0xff_u8]])?),
        ];
        Ok(all.into_iter().map(|(key, array)| (key.to_string(), array)).collect())
    }

    #[test]
    fn values_by_type() -> Result<()> {
        let row = row()?;
        assert_eq!(row.f32("probabilities")?, [0.25, 0.75]);
        assert_eq!(row.i64("class_ids")?, [1]);
        assert_eq!((row.text("classes")?, row.texts("all_classes")?), ("yes", vec!["no", "yes"]));
        assert_eq!(row.array("raw")?.strings()?.next(), Some(&[0xff_u8][..]));
        assert_eq!(row.keys().collect::<Vec<_>>(), ["probabilities", "class_ids", "classes", "all_classes", "raw"]);
        assert_eq!(row.iter().len(), 5);
        Ok(())
    }

    #[test]
    fn errors_name_the_key_the_type_and_what_to_call() -> Result<()> {
        let row = row()?;
        let text = |error: Error| {
            let text = error.to_string();
            assert!(text.contains("\n  at ") && text.contains("prediction.rs:"), "{text}");
            text.lines().filter(|line| !line.starts_with("  at ")).collect::<Vec<_>>().join("\n")
        };
        let near = text(row.f32("probabilites").unwrap_err());
        assert_eq!(
            near,
            "there is no prediction `probabilites`\n  help: did you mean `probabilities`? the predictions are \
             probabilities, class_ids, classes, all_classes, raw"
        );
        let far = text(row.text("x").unwrap_err());
        assert_eq!(
            far,
            "there is no prediction `x`\n  help: there are probabilities, class_ids, classes, all_classes, raw"
        );
        let number = text(row.f32("class_ids").unwrap_err());
        assert_eq!(number, "prediction `class_ids` is i64[1], not f32\n  help: read it with i64(\"class_ids\")");
        let string = text(row.i64("classes").unwrap_err());
        assert_eq!(string, "prediction `classes` is string[1], not i64\n  help: read it with text(\"classes\")");
        let not_text = text(row.text("probabilities").unwrap_err());
        assert!(not_text.contains("f32[2], not string") && not_text.contains("f32(\"probabilities\")"), "{not_text}");
        let several = text(row.text("all_classes").unwrap_err());
        assert!(several.contains("holds 2 texts") && several.contains("texts(\"all_classes\")"), "{several}");
        let bytes = text(row.text("raw").unwrap_err());
        assert!(bytes.contains("no UTF-8") && bytes.contains("strings()"), "{bytes}");
        Ok(())
    }
}
