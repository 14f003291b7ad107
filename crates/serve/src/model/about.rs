//! What an export says of itself beside its graph (`assets.extra/estimand.json`): defaults,
//! statistics, and the tensors that show what each column made of its inputs. TensorFlow's exports
//! say nothing.

use std::collections::{BTreeMap, BTreeSet};

use estimand_tensor::{Array, DType, TensorSpec};
use estimand_tf::array_json::array_from_json;
use estimand_tf::golden::Golden;
use serde_json::Value as Json;

use crate::drift::Training;
use crate::json::{Input, Writer, write_elements};

/// The parts of the document that a server uses. Parts that cannot be read are left out.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// The names of the model's features.
    pub(crate) features: BTreeSet<String>,
    /// The values of features that a request leaves out.
    pub(crate) defaults: BTreeMap<String, Array>,
    /// A value of each input, as JSON.
    pub(crate) examples: BTreeMap<String, String>,
    /// Statistics of the training, by feature.
    pub(crate) training: BTreeMap<String, Training>,
    pub(crate) columns: Vec<Column>,
    /// Features that a signature parses from Examples: the signatures, the feature, the tensor.
    pub(crate) parsed: Vec<(Vec<String>, String, String)>,
}

/// A column, and the tensor that shows what it made of its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) signatures: Vec<String>,
    pub(crate) tensor: String,
    pub(crate) made: Made,
}

/// What a column makes of a value.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// An id of a vocabulary; `unknown` are the ids of terms that are not in it.
    Term { unknown: Option<Unknown> },
    /// An id of a hash.
    Hash,
    /// The number of a bucket between two boundaries.
    Bucket { boundaries: Vec<f64> },
}

/// The ids of unknown terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown {
    first: i64,
    end: i64,
}

impl Unknown {
    pub(crate) fn has(&self, id: i64) -> bool {
        (self.first..self.end).contains(&id)
    }
}

fn text(json: &Json, key: &str) -> Option<String> {
    json.get(key)?.as_str().map(str::to_string)
}

fn texts(json: &Json, key: &str) -> Vec<String> {
    let list = json.get(key).and_then(Json::as_array);
    list.into_iter().flatten().filter_map(|item| item.as_str().map(str::to_string)).collect()
}

impl About {
    /// An input of a signature, with its default and an example.
    pub(crate) fn input(&self, name: &str, spec: &TensorSpec) -> Input {
        let mut input = Input::new(name, spec.dtype);
        input.example = self.examples.get(name).cloned();
        let sizes: Option<Vec<usize>> = spec.shape.dims().iter().skip(1).map(|dim| dim.known()).collect();
        input.is_padded = sizes.is_none();
        input.default =
            self.defaults.get(name).and_then(|default| fitted(default, spec.dtype, &sizes.unwrap_or_default()));
        input
    }

    pub(crate) fn of(document: &Json, golden: &Golden) -> About {
        let members = |key: &str| document.get(key).and_then(Json::as_object).into_iter().flatten();
        let list = |key: &str| document.get(key).and_then(Json::as_array).into_iter().flatten();
        let boundaries = boundaries(document);
        let mut examples = BTreeMap::new();
        for (name, array) in golden.feeds.iter().flat_map(|feed| &feed.inputs) {
            if let (false, Some(example)) = (examples.contains_key(name), example(array)) {
                examples.insert(name.clone(), example);
            }
        }
        About {
            features: members("features").map(|(name, _)| name.clone()).collect(),
            defaults: members("defaults")
                .filter_map(|(name, json)| Some((name.clone(), array_from_json(json).ok()?)))
                .collect(),
            examples,
            training: members("statistics")
                .filter_map(|(name, json)| Some((name.clone(), Training::of(json)?)))
                .collect(),
            columns: list("columns").filter_map(|json| column(json, &boundaries)).collect(),
            parsed: list("tensors")
                .filter_map(|json| Some((texts(json, "signatures"), text(json, "feature")?, text(json, "tensor")?)))
                .collect(),
        }
    }
}

/// A default in the type and shape of an input's row; `None` if it does not fit.
fn fitted(default: &Array, dtype: DType, dims: &[usize]) -> Option<Array> {
    let n: usize = dims.iter().product();
    if default.len() != 1 && default.len() != n {
        return None;
    }
    if dtype == DType::Str {
        let all = default.string_slice().ok()?;
        return Array::from_strings(dims, (0..n).map(|i| all.get(i % default.len())).collect::<Vec<_>>()).ok();
    }
    let values = default.to_f64_vec().ok()?;
    let values = (0..n).map(|i| values[i % values.len()]);
    match dtype {
        DType::F32 => Array::from_vec(dims, values.map(|v| v as f32).collect()).ok(),
        DType::F64 => Array::from_vec(dims, values.collect()).ok(),
        DType::I32 => Array::from_vec(dims, values.map(|v| v as i32).collect()).ok(),
        DType::I64 => Array::from_vec(dims, values.map(|v| v as i64).collect()).ok(),
        DType::U8 => Array::from_vec(dims, values.map(|v| v as u8).collect()).ok(),
        DType::Bool => Array::from_vec(dims, values.map(|v| v != 0.0).collect()).ok(),
        DType::Str => None,
    }
}

fn column(json: &Json, boundaries: &BTreeMap<String, Vec<f64>>) -> Option<Column> {
    let (name, int) = (text(json, "column")?, |key: &str| json.get(key).and_then(Json::as_i64));
    let (tensor, made) = match (text(json, "bucket"), text(json, "id")) {
        (Some(tensor), _) => (tensor, Made::Bucket { boundaries: boundaries.get(&name).cloned().unwrap_or_default() }),
        (None, Some(tensor)) => match int("n_terms") {
            None => (tensor, Made::Hash),
            Some(n_terms) => {
                let unknown = match (int("n_unknown_ids"), int("unknown_id")) {
                    (Some(n), _) if n > 0 => Some(Unknown { first: n_terms, end: n_terms.saturating_add(n) }),
                    // The id of a term says nothing about whether the term is known.
                    (_, Some(id)) if !(0..n_terms).contains(&id) => {
                        Some(Unknown { first: id, end: id.saturating_add(1) })
                    }
                    _ => None,
                };
                (tensor, Made::Term { unknown })
            }
        },
        (None, None) => return None,
    };
    Some(Column { name, inputs: texts(json, "inputs"), signatures: texts(json, "signatures"), tensor, made })
}

/// The boundaries of buckets, by column.
fn boundaries(document: &Json) -> BTreeMap<String, Vec<f64>> {
    let entries = document.pointer("/manifest/entries").and_then(Json::as_array).into_iter().flatten();
    let entry = |entry: &Json| {
        if entry.get("aspect")?.as_str()? != "boundaries" {
            return None;
        }
        let name = entry.get("about")?.as_str()?.strip_prefix("column `")?.strip_suffix('`')?.to_string();
        let list = entry.pointer("/values/0/values")?.as_array()?;
        let numbers = list.iter().map(|number| number.get("float")?.as_f64()).collect::<Option<Vec<f64>>>()?;
        Some((name, numbers))
    };
    entries.filter_map(entry).collect()
}

/// The first row of an array, as JSON; `None` if it is long.
fn example(array: &Array) -> Option<String> {
    const MAX_BYTES: usize = 80;
    if array.dims().len() > 2 || array.dims().first() == Some(&0) {
        return None;
    }
    let row = array.rows(0..1).ok()?;
    let mut writer = Writer::default();
    write_elements(&mut writer, &row).ok()?;
    let text = String::from_utf8(writer.out).ok()?;
    let text = if array.dims().len() == 1 { text } else { format!("[{text}]") };
    (text.len() <= MAX_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_unknown_terms() {
        let unknown = |json: &str| match column(&serde_json::from_str(json).unwrap(), &BTreeMap::new()).unwrap().made {
            Made::Term { unknown } => unknown,
            made => panic!("{made:?}"),
        };
        let buckets = unknown(r#"{"column": "a", "id": "x:0", "n_terms": 3, "n_unknown_ids": 2}"#).unwrap();
        assert_eq!([2, 3, 4, 5, -1].map(|id| buckets.has(id)), [false, true, true, false, false]);
        let none = unknown(r#"{"column": "a", "id": "x:0", "n_terms": 3, "unknown_id": -1}"#).unwrap();
        assert_eq!([-1, 0, 3].map(|id| none.has(id)), [true, false, false]);
        assert!(unknown(r#"{"column": "a", "id": "x:0", "n_terms": 3, "unknown_id": 0}"#).is_none());
    }
}
