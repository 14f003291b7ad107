//! Hyper-parameters: named, typed values that a `model_fn` reads and a command line overrides.
//!
//! ```
//! use estimand::HParams;
//!
//! let mut params = HParams::new().set("learning_rate", 0.002).set("hidden_units", [10, 10]).set("dropout", false);
//! params.parse("learning_rate=0.01,dropout=true")?;
//!
//! assert_eq!(params.f64("learning_rate")?, 0.01);
//! assert_eq!(params.usizes("hidden_units")?, [10, 10]);
//! assert!(params.bool("dropout")?);
//! # Ok::<(), estimand::prelude::Error>(())
//! ```

mod json;
mod parse;
mod value;

use std::fmt;
use std::panic::Location;

use estimand_tensor::{Error, Result};
use indexmap::IndexMap;

pub use value::Value;

/// Named, typed values, in the order in which they were set.
///
/// The type of a parameter is that of the value it was set to. [`parse`](HParams::parse),
/// [`parse_json`](HParams::parse_json) and [`override_from`](HParams::override_from) change values
/// of names that exist and keep their types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HParams {
    values: IndexMap<String, Value>,
}

impl HParams {
    /// Makes an empty set of parameters.
    pub fn new() -> HParams {
        HParams::default()
    }

    /// Defines a parameter, or redefines it with another value and type.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<Value>) -> HParams {
        self.values.insert(name.into(), value.into());
        self
    }

    /// Overrides values with those of others, under the rules of [`parse`](HParams::parse): names
    /// must exist, and types must match. After an error nothing has changed.
    pub fn override_from(&mut self, others: &HParams) -> Result<()> {
        let mut changed = self.clone();
        for (name, value) in others.iter() {
            let new = changed.existing(name)?.cast(value.clone());
            let new = new.map_err(|e| e.context(format!("for hyper-parameter `{name}`")))?;
            changed.values.insert(name.to_string(), new);
        }
        *self = changed;
        Ok(())
    }

    /// Returns the value of a name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Names and values, in the order in which they were set.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns a float. An integer is converted.
    #[track_caller]
    pub fn f64(&self, name: &str) -> Result<f64> {
        match self.read(name)? {
            Value::Float(v) => Ok(*v),
            Value::Int(v) => Ok(*v as f64),
            other => Err(wrong_type(name, other, "a float")),
        }
    }

    /// Returns an integer.
    #[track_caller]
    pub fn i64(&self, name: &str) -> Result<i64> {
        match self.read(name)? {
            Value::Int(v) => Ok(*v),
            other => Err(wrong_type(name, other, "an integer")),
        }
    }

    /// Returns an integer that is a count. A negative one is an error.
    #[track_caller]
    pub fn usize(&self, name: &str) -> Result<usize> {
        let site = Location::caller();
        count(name, self.i64(name)?).map_err(|e| e.at(site))
    }

    /// Returns a boolean.
    #[track_caller]
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.read(name)? {
            Value::Bool(v) => Ok(*v),
            other => Err(wrong_type(name, other, "a bool")),
        }
    }

    /// Returns a string.
    #[track_caller]
    pub fn str(&self, name: &str) -> Result<&str> {
        match self.read(name)? {
            Value::Str(v) => Ok(v),
            other => Err(wrong_type(name, other, "a string")),
        }
    }

    /// Returns a list of floats. A list of integers is converted.
    #[track_caller]
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        match self.read(name)? {
            Value::Floats(v) => Ok(v.clone()),
            Value::Ints(v) => Ok(v.iter().map(|v| *v as f64).collect()),
            other => Err(wrong_type(name, other, "a list of floats")),
        }
    }

    /// Returns a list of integers.
    #[track_caller]
    pub fn i64s(&self, name: &str) -> Result<&[i64]> {
        match self.read(name)? {
            Value::Ints(v) => Ok(v),
            other => Err(wrong_type(name, other, "a list of integers")),
        }
    }

    /// Returns a list of integers that are counts, such as hidden units. A negative one is an
    /// error.
    #[track_caller]
    pub fn usizes(&self, name: &str) -> Result<Vec<usize>> {
        let site = Location::caller();
        self.i64s(name)?.iter().map(|v| count(name, *v).map_err(|e| e.at(site))).collect()
    }

    /// Returns a list of booleans.
    #[track_caller]
    pub fn bools(&self, name: &str) -> Result<&[bool]> {
        match self.read(name)? {
            Value::Bools(v) => Ok(v),
            other => Err(wrong_type(name, other, "a list of bools")),
        }
    }

    /// Returns a list of strings.
    #[track_caller]
    pub fn strs(&self, name: &str) -> Result<&[String]> {
        match self.read(name)? {
            Value::Strs(v) => Ok(v),
            other => Err(wrong_type(name, other, "a list of strings")),
        }
    }

    /// The value of a name that must exist.
    fn existing(&self, name: &str) -> Result<&Value> {
        let names = self.values.keys().map(String::as_str);
        self.values.get(name).ok_or_else(|| Error::unknown("hyper-parameter", name, names))
    }

    /// The value that a getter reads. The error names the line of the caller.
    #[track_caller]
    fn read(&self, name: &str) -> Result<&Value> {
        let site = Location::caller();
        self.existing(name).map_err(|error| error.at(site))
    }
}

#[track_caller]
fn wrong_type(name: &str, value: &Value, expected: &str) -> Error {
    let text = format!("hyper-parameter `{name}` is {} ({value}), but it is read as {expected}", value.kind());
    let getter = value.getter();
    Error::config(text)
        .at(Location::caller())
        .help(format!("set it to {expected} with .set({name:?}, ..), or read it with .{getter}({name:?})"))
}

fn count(name: &str, value: i64) -> Result<usize> {
    usize::try_from(value)
        .map_err(|_| Error::config(format!("hyper-parameter `{name}` is {value}; expected a number from 0")))
}

/// `a=1,b=[2,3]`, in the order in which they were set.
impl fmt::Display for HParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_getter_of_another_type_says_what_is_there() {
        let params = HParams::new().set("rate", 0.5).set("units", [10, -1]).set("steps", 3);
        assert_eq!(params.f64("steps").unwrap(), 3.0);
        assert_eq!(params.f64s("units").unwrap(), [10.0, -1.0]);
        let cases = [
            (params.i64("rate").unwrap_err(), "hyper-parameter `rate` is a float (0.5), but it is read as an integer"),
            (params.bool("steps").unwrap_err(), "hyper-parameter `steps` is an integer (3), but it is read as a bool"),
            (params.str("units").unwrap_err(), "`units` is a list of integers ([10,-1]), but it is read as a string"),
            (params.f64("units").unwrap_err(), "read as a float"),
            (params.usizes("units").unwrap_err(), "`units` is -1; expected a number from 0"),
            (
                params.i64("rate").unwrap_err(),
                "help: set it to an integer with .set(\"rate\", ..), or read it with .f64(\"rate\")",
            ),
            (params.str("units").unwrap_err(), "or read it with .i64s(\"units\")"),
            (params.f64("rat").unwrap_err(), "no hyper-parameter `rat`\n  at "),
            (params.f64("rat").unwrap_err(), "help: did you mean `rate`?"),
            (params.f64("x").unwrap_err(), "there are rate, units, steps"),
            (HParams::new().f64("x").unwrap_err(), "there is none"),
        ];
        for (error, expected) in cases {
            assert!(error.to_string().contains(expected), "{error}");
            assert!(error.to_string().contains(&format!("\n  at {}:", file!())), "{error}");
        }
    }

    #[test]
    fn overriding_is_all_or_nothing() {
        let mut params = HParams::new().set("rate", 0.5).set("name", "a");
        params.override_from(&HParams::new().set("rate", 2)).unwrap();
        assert_eq!(params.to_string(), "rate=2.0,name=a");
        let before = params.clone();
        let error = params.override_from(&HParams::new().set("rate", 3.0).set("name", 1)).unwrap_err().to_string();
        assert!(error.contains("1 is an integer, expected a string\n  for hyper-parameter `name`"), "{error}");
        assert_eq!(params, before);
    }

    #[test]
    fn setting_again_redefines_in_place() {
        let params = HParams::new().set("a", 1).set("b", 2).set("a", "text");
        assert_eq!(params.to_string(), "a=text,b=2");
    }
}
