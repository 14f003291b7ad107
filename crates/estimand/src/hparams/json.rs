//! Hyper-parameters as JSON: one object of scalars and flat lists, in the order in which they were
//! set.

use estimand_tensor::{Error, Result};
use serde_json::Value as Json;

use super::{HParams, Value};

impl HParams {
    /// Returns the values as one JSON object, in the order in which they were set.
    ///
    /// Returns an error if a float is infinite or NaN, because JSON cannot represent it.
    ///
    /// ```
    /// use estimand::HParams;
    ///
    /// let params = HParams::new().set("learning_rate", 0.1).set("hidden_units", [10, 20]);
    /// assert_eq!(params.to_json()?, r#"{"learning_rate":0.1,"hidden_units":[10,20]}"#);
    /// assert_eq!(HParams::from_json(&params.to_json()?)?, params);
    /// # Ok::<(), estimand::prelude::Error>(())
    /// ```
    pub fn to_json(&self) -> Result<String> {
        let mut object = serde_json::Map::new();
        for (name, value) in self.iter() {
            let json = to_json(value).map_err(|e| e.context(format!("in hyper-parameter `{name}`")))?;
            object.insert(name.to_string(), json);
        }
        Ok(Json::Object(object).to_string())
    }

    /// Reads hyper-parameters from a JSON object. Their types are those of the values. A list that
    /// contains a float is a list of floats.
    pub fn from_json(text: &str) -> Result<HParams> {
        let mut params = HParams::new();
        for (name, json) in object(text)? {
            let value = from_json(&json, None).map_err(|e| e.context(format!("in hyper-parameter `{name}`")))?;
            params.values.insert(name, value);
        }
        Ok(params)
    }

    /// Overrides values with those of a JSON object, under the rules of [`parse`](HParams::parse):
    /// names must exist, and types must match.
    pub fn parse_json(&mut self, text: &str) -> Result<()> {
        let mut changed = self.clone();
        for (name, json) in object(text)? {
            let old = changed.existing(&name)?;
            let new = from_json(&json, Some(old))
                .and_then(|new| old.cast(new))
                .map_err(|e| e.context(format!("for hyper-parameter `{name}`")))?;
            changed.values.insert(name, new);
        }
        *self = changed;
        Ok(())
    }
}

fn object(text: &str) -> Result<serde_json::Map<String, Json>> {
    let json: Json =
        serde_json::from_str(text).map_err(|e| Error::config(format!("hyper-parameters are not JSON: {e}")))?;
    match json {
        Json::Object(object) => Ok(object),
        other => Err(Error::config(format!("hyper-parameters must be one JSON object, found `{other}`"))),
    }
}

fn to_json(value: &Value) -> Result<Json> {
    let float = |v: f64| {
        let number = serde_json::Number::from_f64(v);
        number.map(Json::Number).ok_or_else(|| Error::config(format!("{v} cannot be written as JSON")))
    };
    Ok(match value {
        Value::Bool(v) => (*v).into(),
        Value::Int(v) => (*v).into(),
        Value::Float(v) => float(*v)?,
        Value::Str(v) => v.as_str().into(),
        Value::Bools(v) => v.as_slice().into(),
        Value::Ints(v) => v.as_slice().into(),
        Value::Floats(v) => Json::Array(v.iter().map(|v| float(*v)).collect::<Result<_>>()?),
        Value::Strs(v) => v.as_slice().into(),
    })
}

/// Converts a JSON value; `old` gives the type of an empty list.
fn from_json(json: &Json, old: Option<&Value>) -> Result<Value> {
    let refused =
        |what: &str| Error::config(format!("{what} `{json}` is not a bool, a number, a string or a list of them"));
    Ok(match json {
        Json::Bool(v) => Value::Bool(*v),
        Json::String(v) => Value::Str(v.clone()),
        Json::Number(v) => match (v.as_i64(), v.as_f64()) {
            (Some(v), _) => Value::Int(v),
            (None, Some(float)) if !v.is_u64() => Value::Float(float),
            _ => return Err(Error::config(format!("{v} does not fit into a signed 64-bit integer"))),
        },
        Json::Null => return Err(refused("the value")),
        Json::Object(_) => return Err(refused("the object")),
        Json::Array(items) => {
            let items = items
                .iter()
                .map(|item| if item.is_array() { Err(refused("the list")) } else { from_json(item, None) })
                .collect::<Result<Vec<_>>>()?;
            list_kind(&items, old)?.list(items)?
        }
    })
}

/// Returns an empty list of the type that these elements need.
fn list_kind(items: &[Value], old: Option<&Value>) -> Result<Value> {
    let has_float = items.iter().any(|item| matches!(item, Value::Float(_)));
    match (items.first(), old) {
        (None, Some(old)) => Ok(old.clone()),
        (None, None) => Err(Error::config("the type of an empty list is not known").help("set a list with an element")),
        (Some(Value::Int(_) | Value::Float(_)), _) if has_float => Ok(Value::Floats(Vec::new())),
        (Some(Value::Bool(_)), _) => Ok(Value::Bools(Vec::new())),
        (Some(Value::Int(_)), _) => Ok(Value::Ints(Vec::new())),
        (Some(Value::Str(_)), _) => Ok(Value::Strs(Vec::new())),
        (Some(first), _) => Err(Error::config(format!("{first} cannot be an element of a list"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_kinds() -> HParams {
        HParams::new()
            .set("z", 0.1)
            .set("whole", 1.0)
            .set("a", i64::MIN)
            .set("on", true)
            .set("name", "say \"ř\"\n")
            .set("sizes", [1, 2])
            .set("rates", [1.0, 2.5])
            .set("flags", [true])
            .set("words", ["x", ""])
    }

    #[test]
    fn json_keeps_order_types_and_bits() {
        let text = all_kinds().to_json().unwrap();
        // Expected text by hand, in the order of `set`. A whole float keeps its decimal point, so
        // that it stays a float.
        let expected = r#"{"z":0.1,"whole":1.0,"a":-9223372036854775808,"on":true,"name":"say \"ř\"\n","sizes":[1,2],"rates":[1.0,2.5],"flags":[true],"words":["x",""]}"#;
        assert_eq!(text, expected);
        assert_eq!(HParams::from_json(&text).unwrap(), all_kinds());
        // A decimal whose nearest f64 an inexact parser misses by one bit.
        let third = HParams::new().set("v", 5e-324).set("w", 1.0 / 3.0).set("x", 8.41e21);
        assert_eq!(HParams::from_json(&third.to_json().unwrap()).unwrap(), third);
    }

    #[test]
    fn json_overrides_known_names_with_their_type() {
        let mut params = all_kinds();
        params.parse_json(r#"{"z": 3, "rates": [1, 2], "sizes": []}"#).unwrap();
        assert_eq!(params.f64("z").unwrap(), 3.0);
        assert_eq!(params.f64s("rates").unwrap(), [1.0, 2.0]);
        assert!(params.i64s("sizes").unwrap().is_empty());

        let before = params.clone();
        for (text, expected) in [
            (r#"{"z": 1, "on": 1}"#, "1 is an integer, expected a bool"),
            (r#"{"sizes": [1.5]}"#, "[1.5] is a list of floats, expected a list of integers"),
            (r#"{"sizes": 1}"#, "expected a list of integers"),
            (r#"{"zz": 1}"#, "did you mean `z`?"),
            (r#"{"z": null}"#, "`null` is not a bool"),
        ] {
            let error = params.parse_json(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert_eq!(params, before);
        }
    }

    #[test]
    fn bad_json_is_refused() {
        for (text, expected) in [
            ("{", "not JSON"),
            ("[1]", "one JSON object"),
            (r#"{"a": {}}"#, "the object `{}`"),
            (r#"{"a": [[1]]}"#, "the list `[[1]]`"),
            (r#"{"a": []}"#, "the type of an empty list is not known"),
            (r#"{"a": [1, "x"]}"#, "x is a string, expected an element of a list of integers"),
            (r#"{"a": 9223372036854775808}"#, "does not fit"),
        ] {
            let error = HParams::from_json(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(HParams::new().set("a", f64::NAN).to_json().unwrap_err().to_string().contains("NaN cannot"));
    }
}
