//! Statistics of training data as JSON: `statistics.json` in the model folder, which exports carry.

use std::path::{Path, PathBuf};

use estimand_checkpoint as checkpoint;
use estimand_data::Statistics;
use estimand_data::statistics::{ColumnStatistics, NumberStatistics, Role, TermStatistics};
use estimand_tensor::{Error, Result, warn};
use serde_json::{Map, Number, Value as Json, json};

use crate::model_folder::read_up_to;

/// The most bytes that are read.
const MAX_BYTES: u64 = 16 << 20;
/// The number of most frequent terms that are listed.
const N_TERMS: usize = 100;
/// The most bytes of a term that is listed.
const MAX_TERM: usize = 200;

fn path(folder: &Path) -> PathBuf {
    folder.join("statistics.json")
}

/// Writes the statistics of features to a model folder.
pub(super) fn write(folder: &Path, statistics: &Statistics) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make", &e))?;
    checkpoint::write_text(path(folder), &format!("{}\n", statistics_to_json(statistics)))
}

/// Reads the statistics of a model folder, if there are any.
pub(crate) fn read_statistics(folder: &Path) -> Option<Json> {
    let path = path(folder);
    let read = read_up_to(&path, MAX_BYTES).map_err(|error| error.to_string()).and_then(|bytes| match bytes {
        Some(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|e| format!("{} is damaged: {e}", path.display()))
        }
        None => Ok(None),
    });
    read.unwrap_or_else(|error| {
        warn!("The export has no statistics: {error}");
        None
    })
}

/// Converts the statistics of features to JSON, by name.
pub(crate) fn statistics_to_json(statistics: &Statistics) -> Json {
    let features = statistics.columns().iter().filter(|column| column.role == Role::Feature);
    Json::Object(features.map(|column| (column.name.clone(), column_to_json(column, statistics.n_rows()))).collect())
}

fn column_to_json(column: &ColumnStatistics, n_rows: u64) -> Json {
    let mut json = json!({ "n_rows": n_rows, "n_values": column.n_values(), "n_missing": column.n_missing() });
    if let Some(lengths) = column.lengths {
        json["lengths"] = json!({ "n_empty": lengths.n_empty, "min": lengths.min, "max": lengths.max });
    }
    if let Some(numbers) = &column.numbers {
        json["numbers"] = numbers_to_json(numbers);
    }
    if let Some(terms) = &column.terms {
        json["terms"] = terms_to_json(terms);
    }
    json
}

fn numbers_to_json(numbers: &NumberStatistics) -> Json {
    let deciles: Vec<Json> = (0..=10).map(|i| number(numbers.quantile(f64::from(i) / 10.0))).collect();
    let mut json = Map::new();
    for (key, value) in [("mean", numbers.mean), ("std", numbers.std), ("min", numbers.min), ("max", numbers.max)] {
        json.insert(key.to_string(), number(value));
    }
    json.insert("n_zeros".to_string(), json!(numbers.n_zeros));
    json.insert("n_infinite".to_string(), json!(numbers.n_infinite));
    json.insert("deciles".to_string(), Json::Array(deciles));
    Json::Object(json)
}

fn terms_to_json(terms: &TermStatistics) -> Json {
    let top = terms.top(N_TERMS, 1).into_iter().filter(|(term, _)| term.len() <= MAX_TERM);
    let top: Vec<Json> = top.map(|(term, n)| json!([term, n])).collect();
    json!({ "n_distinct": terms.n_distinct(), "top": top })
}

/// A number, or `null` for one that JSON does not have.
fn number(value: f64) -> Json {
    Number::from_f64(value).map_or(Json::Null, Json::Number)
}
