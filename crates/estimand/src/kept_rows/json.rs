//! The file of kept rows:
//!
//! ```json
//! {"version": 1,
//!  "features": {"age": {"dtype": "float32", "shape": []}, "words": {"dtype": "string", "ragged": true}},
//!  "n_files": 1, "files": [{"path": "/data/train.csv", "bytes": 1200}],
//!  "rows": [
//! {"step": 1, "features": {"age": {"dtype": "float32", "shape": [2], "values": [39, 50]}, ..}}]}
//! ```

use estimand_tensor::{Batch, BatchSpec, Error, Feature, FeatureSpec, Ragged, Result};
use estimand_tf::array_json::{array_from_json, array_to_json, dtype_from_name, dtype_name};
use serde_json::{Map, Value as Json, json};

use super::{InputFile, TrainingRows};

/// The version that is written. A newer one is refused.
const VERSION: u64 = 1;

/// Writes the file, with one line for each step, for people and for version control.
pub(super) fn text(rows: &TrainingRows) -> Result<String> {
    let files: Vec<Json> =
        rows.files.iter().map(|f| json!({"path": f.path.to_string_lossy(), "bytes": f.n_bytes})).collect();
    let piece = |(step, rows): &(u64, Batch)| -> Result<String> {
        Ok(json!({"step": step, "features": batch_to_json(rows)?}).to_string())
    };
    let pieces = rows.pieces.iter().map(piece).collect::<Result<Vec<_>>>()?;
    Ok(format!(
        "{{\"version\": {VERSION},\n\"features\": {},\n\"n_files\": {}, \"files\": {},\n\"rows\": [\n{}\n]}}\n",
        specs_to_json(&rows.features),
        rows.n_files,
        Json::Array(files),
        pieces.join(",\n")
    ))
}

/// Parses the file.
pub(super) fn parse(bytes: &[u8]) -> Result<TrainingRows> {
    let damaged = |what: String| {
        Error::data(format!("the file of kept rows cannot be read: {what}"))
            .help("remove the file: the next training writes it again")
    };
    let json: Json = serde_json::from_slice(bytes).map_err(|e| damaged(format!("it is not JSON: {e}")))?;
    let missing = |what: &str| damaged(format!("`{what}` is missing or no valid value"));
    let version = json.get("version").and_then(Json::as_u64).ok_or_else(|| missing("version"))?;
    if version > VERSION {
        let message = format!("the file of kept rows has version {version}; this library reads up to {VERSION}");
        return Err(Error::unsupported(message).help("use the version of Estimand that wrote it, or a newer one"));
    }
    let list = |key: &str| json.get(key).and_then(Json::as_array).ok_or_else(|| missing(key));
    let features = json.get("features").and_then(Json::as_object).ok_or_else(|| missing("features"))?;
    let n_files = json.get("n_files").and_then(Json::as_u64).ok_or_else(|| missing("n_files"))?;
    let file = |json: &Json| {
        Some(InputFile { path: json.get("path")?.as_str()?.into(), n_bytes: json.get("bytes")?.as_u64()? })
    };
    let files = list("files")?.iter().map(file).collect::<Option<Vec<_>>>().ok_or_else(|| missing("files"))?;
    let mut pieces = Vec::new();
    for piece in list("rows")? {
        let step = piece.get("step").and_then(Json::as_u64).ok_or_else(|| missing("step"))?;
        let rows = piece.get("features").and_then(Json::as_object).ok_or_else(|| missing("rows"))?;
        pieces.push((step, batch_from_json(rows).map_err(|e| damaged(e.message().to_string()))?));
    }
    let features = specs_from_json(features).map_err(|e| damaged(e.message().to_string()))?;
    Ok(TrainingRows { features, files, n_files: n_files as usize, pieces })
}

/// Converts the formats of features to JSON.
pub(crate) fn specs_to_json(specs: &BatchSpec) -> Json {
    let one = |spec: &FeatureSpec| {
        let dtype = dtype_name(spec.dtype());
        match spec {
            FeatureSpec::Dense { dims, .. } => json!({ "dtype": dtype, "shape": dims }),
            FeatureSpec::Ragged { .. } => json!({ "dtype": dtype, "ragged": true }),
            FeatureSpec::Padded { dims, .. } => json!({ "dtype": dtype, "padded": true, "shape": dims }),
        }
    };
    Json::Object(specs.iter().map(|(name, spec)| (name.clone(), one(spec))).collect())
}

/// Parses the formats of features.
fn specs_from_json(json: &Map<String, Json>) -> Result<BatchSpec> {
    let one = |json: &Json| -> Option<Result<FeatureSpec>> {
        let dtype = match dtype_from_name(json.get("dtype")?.as_str()?) {
            Ok(dtype) => dtype,
            Err(error) => return Some(Err(error)),
        };
        if json.get("ragged").is_some() {
            return Some(Ok(FeatureSpec::ragged(dtype)));
        }
        let size = |size: &Json| usize::try_from(size.as_u64()?).ok();
        let dims: Vec<usize> = json.get("shape")?.as_array()?.iter().map(size).collect::<Option<_>>()?;
        Some(Ok(match json.get("padded").is_some() {
            true => FeatureSpec::padded(dtype, dims),
            false => FeatureSpec::dense(dtype, dims),
        }))
    };
    let named = |(name, json): (&String, &Json)| {
        let invalid = || Error::data(format!("the format of feature `{name}` is no valid value"));
        Ok((name.clone(), one(json).ok_or_else(invalid)??))
    };
    json.iter().map(named).collect()
}

fn batch_to_json(batch: &Batch) -> Result<Json> {
    let mut features = Map::new();
    for (name, feature) in batch.features() {
        let json = match feature {
            Feature::Dense(array) => array_to_json(array)?,
            Feature::Ragged(ragged) => {
                let mut json = array_to_json(ragged.values())?;
                json["row_splits"] = json!(ragged.row_splits());
                json
            }
        };
        features.insert(name.to_string(), json);
    }
    Ok(Json::Object(features))
}

fn batch_from_json(json: &Map<String, Json>) -> Result<Batch> {
    let mut batch = Batch::new();
    for (name, json) in json {
        let values = array_from_json(json)?;
        let feature: Feature = match json.get("row_splits").and_then(Json::as_array) {
            Some(splits) => {
                let splits: Option<Vec<i64>> = splits.iter().map(Json::as_i64).collect();
                let splits = splits.ok_or_else(|| Error::data(format!("the rows of `{name}` have no valid ends")))?;
                Ragged::new(values, splits)?.into()
            }
            None => values.into(),
        };
        batch = batch.with_feature(name, feature)?;
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimand_tensor::{Array, DType};

    fn example() -> TrainingRows {
        let words = Array::from_strings([3], [&b"a"[..], b"\xff", b""]).unwrap();
        let rows = Batch::new().with_feature("words", Ragged::new(words, vec![0, 3, 3]).unwrap()).unwrap();
        let rows = rows.with_feature("age", Array::from([39.5f32, f32::NAN])).unwrap();
        let features = [
            ("words".to_string(), FeatureSpec::ragged(DType::Str)),
            ("age".to_string(), FeatureSpec::dense(DType::F32, [])),
            ("steps".to_string(), FeatureSpec::padded(DType::I64, [2])),
        ];
        let files = vec![InputFile { path: "/data/a.csv".into(), n_bytes: 7 }];
        TrainingRows { features: features.into(), files, n_files: 2, pieces: vec![(3, rows)] }
    }

    #[test]
    fn everything_comes_back() {
        let text = text(&example()).unwrap();
        let back = parse(text.as_bytes()).unwrap();
        // NaN differs from itself, so compare the text.
        assert_eq!(super::text(&back).unwrap(), text);
        assert_eq!(back.features, example().features);
        assert_eq!(back.files, example().files);
    }

    #[test]
    fn damage_is_an_error_that_names_what_is_wrong() {
        let good = text(&example()).unwrap();
        for (part, bad, reason) in [
            ("\"version\": 1", "\"version\": 2", "version 2; this library reads up to 1"),
            ("\"n_files\"", "\"n\"", "`n_files` is missing"),
            ("\"step\":3", "\"step\":-3", "`step` is missing"),
            ("[0,3,3]", "[0,9,3]", "cannot be read"),
            ("\"float32\",\"shape\":[2]", "\"float32\",\"shape\":[3]", "it has 2 values"),
            ("\"dtype\":\"int64\"", "\"dtype\":\"int63\"", "there is no dtype `int63`"),
        ] {
            assert!(good.contains(part), "{part} in {good}");
            let error = parse(good.replacen(part, bad, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
