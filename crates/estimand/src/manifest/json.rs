//! A manifest as JSON text.
//!
//! ```json
//! {"version": 1, "entries": [
//!   {"about": "column `job`", "at": "linear/linear_model/job", "aspect": "vocabulary", "required": true,
//!    "variables": ["linear/linear_model/job/weights"],
//!    "values": [{"n": 2, "sha256": "0a1b..", "values": ["cook", "clerk"]}]},
//!   {"about": "column `age`", "at": "dnn/input_layer/age", "aspect": "mean", "required": true,
//!    "variables": ["dnn/hiddenlayer_0/kernel"], "values": [{"float": 38.6}]}]}
//! ```
//!
//! A value is `{"int": 5}`, `{"float": 0.5}`, `{"text": "sum"}` or a list. A list that is not
//! stored in full has `"sample"`, pairs of an index and a value, instead of `"values"`. Inside
//! lists, a whole number is `{"int": 5}` and a float `{"float": 0.5}`. Text is a string, or
//! `{"bytes": "ff00"}` if it is not UTF-8. Floats that JSON cannot represent are the strings `NaN`,
//! `inf` and `-inf`.

use estimand_graph::meaning::{Listed, Listing, Meaning};
use estimand_tensor::{Error, Result};
use estimand_tf::array_json::{text_from_json, text_to_json};
use serde_json::{Map, Value as Json, json};

use super::{Entry, Manifest, VERSION};

/// The maximum size of a manifest in bytes. Reading it takes several times as much memory.
pub(super) const MAX_BYTES: usize = 16 << 20;

impl Manifest {
    /// Returns the manifest as JSON, in a fixed order. If the text would be very long, each list is
    /// reduced to a sample.
    pub fn to_json(&self) -> String {
        let text = self.json(|list| list.clone());
        if text.len() <= MAX_BYTES { text } else { self.json(Listing::sampled) }
    }

    fn json(&self, keep: impl Fn(&Listing) -> Listing) -> String {
        let value = |value: &Meaning| match value {
            Meaning::Int(v) => json!({ "int": v }),
            Meaning::Float(v) => json!({ "float": float_to_json(*v) }),
            Meaning::Text(v) => json!({ "text": v }),
            Meaning::List(list) => list_to_json(&keep(list)),
        };
        let entry = |entry: &Entry| {
            json!({
                "about": entry.about,
                "at": entry.at,
                "aspect": entry.aspect,
                "required": entry.is_required,
                "variables": entry.variables,
                "values": entry.values.iter().map(value).collect::<Vec<Json>>(),
            })
        };
        let entries: Vec<Json> = self.entries.iter().map(entry).collect();
        json!({ "version": self.version, "entries": entries }).to_string()
    }

    /// Parses a manifest from JSON. Returns an error if the text is invalid or has a newer version.
    pub fn from_json(text: &str) -> Result<Manifest> {
        if text.len() > MAX_BYTES {
            return Err(damaged(format!("it has {} bytes; expected at most {MAX_BYTES}", text.len())));
        }
        let json: Json = serde_json::from_str(text).map_err(|e| damaged(format!("it is not JSON: {e}")))?;
        let version = json.get("version").and_then(Json::as_u64).ok_or_else(|| damaged("it has no version"))?;
        if version > VERSION {
            let message = format!("the manifest has version {version}; this library reads up to {VERSION}");
            return Err(Error::unsupported(message).help("use the version of Estimand that wrote it, or a newer one"));
        }
        let entries = list(&json, "entries")?.iter().enumerate();
        let entries = entries.map(|(i, json)| entry(json).map_err(|e| e.context(format!("in entry {i}"))));
        Ok(Manifest { version, entries: entries.collect::<Result<_>>()? })
    }
}

fn damaged(what: impl Into<String>) -> Error {
    Error::data(format!("the manifest cannot be read: {}", what.into()))
}

fn list<'a>(json: &'a Json, key: &str) -> Result<&'a Vec<Json>> {
    json.get(key).and_then(Json::as_array).ok_or_else(|| damaged(format!("`{key}` is not a list")))
}

fn text(json: &Json, key: &str) -> Result<String> {
    let found = json.get(key).and_then(Json::as_str);
    found.map(str::to_string).ok_or_else(|| damaged(format!("`{key}` is not a text")))
}

fn entry(json: &Json) -> Result<Entry> {
    let required = json.get("required").and_then(Json::as_bool);
    let name =
        |json: &Json| json.as_str().map(str::to_string).ok_or_else(|| damaged("a variable's name is not a text"));
    Ok(Entry {
        about: text(json, "about")?,
        at: text(json, "at")?,
        aspect: text(json, "aspect")?,
        is_required: required.ok_or_else(|| damaged("`required` is neither true nor false"))?,
        values: list(json, "values")?.iter().map(value).collect::<Result<_>>()?,
        variables: list(json, "variables")?.iter().map(name).collect::<Result<_>>()?,
    })
}

fn value(json: &Json) -> Result<Meaning> {
    let unknown = || damaged("a value is neither int, float, text nor a list");
    let object = json.as_object().ok_or_else(unknown)?;
    if object.contains_key("sha256") {
        return listing(object)
            .map(Meaning::List)
            .ok_or_else(|| damaged("a list's length, digest and values disagree"));
    }
    let only = object.iter().next().filter(|_| object.len() == 1).ok_or_else(unknown)?;
    match (only.0.as_str(), only.1) {
        ("int", v) => v.as_i64().map(Meaning::Int).ok_or_else(unknown),
        ("float", v) => float_from_json(v).map(Meaning::Float).ok_or_else(unknown),
        ("text", Json::String(v)) => Ok(Meaning::Text(v.clone())),
        _ => Err(unknown()),
    }
}

fn list_to_json(list: &Listing) -> Json {
    let mut object = Map::new();
    object.insert("n".to_string(), list.len().into());
    object.insert("sha256".to_string(), list.sha256().into());
    let (key, values) = match list.is_whole() {
        true => ("values", list.shown().iter().map(|(_, value)| listed_to_json(value)).collect()),
        false => ("sample", list.shown().iter().map(|(i, value)| json!([i, listed_to_json(value)])).collect()),
    };
    object.insert(key.to_string(), Json::Array(values));
    Json::Object(object)
}

fn listing(object: &Map<String, Json>) -> Option<Listing> {
    let n = usize::try_from(object.get("n")?.as_u64()?).ok()?;
    let shown: Option<Vec<(usize, Listed)>> = match (object.get("values"), object.get("sample")) {
        (Some(Json::Array(values)), None) if values.len() == n => {
            values.iter().enumerate().map(|(i, value)| Some((i, listed_from_json(value)?))).collect()
        }
        (None, Some(Json::Array(sample))) => sample
            .iter()
            .map(|pair| match pair.as_array()?.as_slice() {
                [i, value] => Some((usize::try_from(i.as_u64()?).ok()?, listed_from_json(value)?)),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    Listing::from_parts(n, object.get("sha256")?.as_str()?.to_string(), shown?)
}

/// Converts a value of a list to JSON.
pub(crate) fn listed_to_json(value: &Listed) -> Json {
    match value {
        Listed::Int(v) => json!({ "int": v }),
        Listed::Float(v) => json!({ "float": float_to_json(*v) }),
        Listed::Text(bytes) => text_to_json(bytes),
    }
}

/// Parses a value of a list; `None` if it is invalid.
pub(crate) fn listed_from_json(json: &Json) -> Option<Listed> {
    if let Some(text) = text_from_json(json) {
        return Some(Listed::Text(text));
    }
    let object = json.as_object().filter(|object| object.len() == 1)?;
    match object.iter().next()? {
        (key, v) if key == "int" => v.as_i64().map(Listed::Int),
        (key, v) if key == "float" => float_from_json(v).map(Listed::Float),
        _ => None,
    }
}

/// Converts a float without losing a bit. (The bits of a NaN are those of `f64::NAN`.)
fn float_to_json(v: f64) -> Json {
    serde_json::Number::from_f64(v).map_or_else(|| Json::String(v.to_string()), Json::Number)
}

fn float_from_json(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimand_tensor::vocabulary::Terms;

    fn entry_of(values: Vec<Meaning>) -> Entry {
        Entry {
            about: "column `c`".into(),
            at: "a/b".into(),
            aspect: "vocabulary".into(),
            is_required: true,
            values,
            variables: vec!["a/b/weights".into()],
        }
    }

    fn example() -> Manifest {
        let odd: [&[u8]; 5] = [b"", b"\"\\\n\0", "é\u{202e}".as_bytes(), &[0xff, 0x00, 0x80], b"plain"];
        let long = Listing::of_texts((0..5_000).map(|i| format!("term {i}")));
        let floats = [0.1f32 as f64, 1.0 / 3.0, -0.0, 5e-324, f64::MAX, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let values = vec![
            Listing::of_texts(odd).into(),
            long.into(),
            Listing::of_terms(&Terms::from_ints(vec![i64::MIN, i64::MAX])).into(),
            Listing::of_floats(&floats).into(),
            i64::MIN.into(),
            f64::NAN.into(),
            (-0.0f64).into(),
            "sum".into(),
        ];
        Manifest { version: VERSION, entries: vec![entry_of(values)] }
    }

    #[test]
    fn every_value_comes_back_bit_by_bit() {
        let manifest = example();
        let text = manifest.to_json();
        let read = Manifest::from_json(&text).unwrap();
        assert_eq!(read, manifest);
        assert_eq!(read.to_json(), text);
        for (a, b) in read.entries[0].values.iter().zip(&manifest.entries[0].values) {
            if let (Meaning::List(a), Meaning::List(b)) = (a, b) {
                assert_eq!(a.shown(), b.shown());
            }
        }
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        let error = Manifest::from_json(r#"{"version": 2, "strange": []}"#).unwrap_err().to_string();
        assert!(error.contains("the manifest has version 2; this library reads up to 1"), "{error}");
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let huge = " ".repeat(MAX_BYTES + 1);
        for text in ["", "[]", "{}", r#"{"version": -1}"#, r#"{"version": 1}"#, &deep, &huge] {
            let error = Manifest::from_json(text).unwrap_err().to_string();
            assert!(error.contains("the manifest cannot be read"), "{error}");
        }
        let good = example().to_json();
        for (part, bad) in [
            (r#""n":5,"#, r#""n":6,"#),
            (r#""n":5000"#, r#""n":1"#),
            (r#""required":true"#, r#""required":1"#),
            (r#"{"bytes":"ff0080"}"#, r#"{"bytes":"ff008"}"#),
            (r#"{"bytes":"ff0080"}"#, r#"{"bytes":"fg"}"#),
            (r#"{"int":-9223372036854775808}"#, r#"{"int":1e30}"#),
            (r#""sample""#, r#""values""#),
            (r#"["a/b/weights"]"#, r#"[7]"#),
        ] {
            assert!(good.contains(part), "{part}");
            assert!(Manifest::from_json(&good.replacen(part, bad, 1)).is_err(), "{bad}");
        }
    }

    /// Damaged text never causes a panic, and the result, if any, is still a valid manifest.
    #[test]
    fn damage_is_an_error_or_another_manifest() {
        let good = example().to_json().into_bytes();
        let mut state = 7u64;
        for _ in 0..3_000 {
            let mut bytes = good.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = (state >> 33) as usize % bytes.len();
                bytes[at] = b"0{}[]\",:\\x"[(state >> 20) as usize % 10];
            }
            if let Ok(manifest) = Manifest::from_json(&String::from_utf8_lossy(&bytes)) {
                manifest.diff(&example());
                assert_eq!(Manifest::from_json(&manifest.to_json()).unwrap(), manifest);
            }
        }
    }

    #[test]
    fn a_very_long_manifest_is_cut_to_samples() {
        let wide = |i: usize| Listing::of_texts((0..200).map(|j| format!("{i:040} {j:039}")));
        let entries: Vec<Entry> = (0..1_200).map(|i| entry_of(vec![wide(i).into()])).collect();
        let manifest = Manifest { version: VERSION, entries };
        let text = manifest.to_json();
        assert!(text.len() <= MAX_BYTES);
        assert_eq!(Manifest::from_json(&text).unwrap(), manifest);
    }
}
