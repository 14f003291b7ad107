//! The value of a hyper-parameter: a scalar, or a list of one type.

use std::fmt;

use estimand_tensor::{Error, Result};

/// The value of a hyper-parameter. Its variant is its type: an override must have the same type,
/// except that an integer may override a float.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// Booleans.
    Bools(Vec<bool>),
    /// Integers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
    /// Strings.
    Strs(Vec<String>),
}

impl Value {
    /// Returns the name of the type for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::Bools(_) => "a list of bools",
            Value::Ints(_) => "a list of integers",
            Value::Floats(_) => "a list of floats",
            Value::Strs(_) => "a list of strings",
        }
    }

    /// Returns the getter of `HParams` for this type.
    pub(super) fn getter(&self) -> &'static str {
        match self {
            Value::Bool(_) => "bool",
            Value::Int(_) => "i64",
            Value::Float(_) => "f64",
            Value::Str(_) => "str",
            Value::Bools(_) => "bools",
            Value::Ints(_) => "i64s",
            Value::Floats(_) => "f64s",
            Value::Strs(_) => "strs",
        }
    }

    /// Converts `new` to this value's type. The error does not name the parameter.
    pub(super) fn cast(&self, new: Value) -> Result<Value> {
        Ok(match (self, new) {
            (Value::Float(_), Value::Int(new)) => Value::Float(new as f64),
            (Value::Floats(_), Value::Ints(new)) => Value::Floats(new.into_iter().map(|v| v as f64).collect()),
            (old, new) if old.kind() == new.kind() => new,
            (old, new) => {
                return Err(Error::config(format!("{new} is {}, expected {}", new.kind(), old.kind())));
            }
        })
    }

    /// Parses text as one value of this type, or of its element type if this is a list.
    pub(super) fn read_element(&self, text: &str) -> Result<Value> {
        let wrong = |what: &str| Error::config(format!("`{text}` is not {what}"));
        // Only strings keep their spaces.
        let word = text.trim();
        Ok(match self {
            Value::Bool(_) | Value::Bools(_) => Value::Bool(read_bool(word).ok_or_else(|| wrong("a bool"))?),
            Value::Int(_) | Value::Ints(_) => Value::Int(word.parse().map_err(|_| wrong("an integer"))?),
            Value::Float(_) | Value::Floats(_) => Value::Float(word.parse().map_err(|_| wrong("a float"))?),
            Value::Str(_) | Value::Strs(_) => Value::Str(text.to_string()),
        })
    }

    /// Makes a list of these elements, which all have one type. Without elements, the list has this
    /// list's type.
    pub(super) fn list(&self, elements: Vec<Value>) -> Result<Value> {
        let mut list = match self {
            Value::Bools(_) => Value::Bools(Vec::new()),
            Value::Ints(_) => Value::Ints(Vec::new()),
            Value::Floats(_) => Value::Floats(Vec::new()),
            Value::Strs(_) => Value::Strs(Vec::new()),
            scalar => return Err(Error::config(format!("the value is a list; expected {}", scalar.kind()))),
        };
        for element in elements {
            match (&mut list, element) {
                (Value::Bools(list), Value::Bool(v)) => list.push(v),
                (Value::Ints(list), Value::Int(v)) => list.push(v),
                (Value::Floats(list), Value::Float(v)) => list.push(v),
                (Value::Floats(list), Value::Int(v)) => list.push(v as f64),
                (Value::Strs(list), Value::Str(v)) => list.push(v),
                (list, v) => {
                    return Err(Error::config(format!("{v} is {}, expected an element of {}", v.kind(), list.kind())));
                }
            }
        }
        Ok(list)
    }

    /// Sets an element of this list to a value of the right type.
    pub(super) fn set_element(&mut self, index: usize, element: Value) -> Result<()> {
        fn put<T>(list: &mut [T], index: usize, value: T) -> Result<()> {
            let n = list.len();
            let place = list.get_mut(index);
            *place.ok_or_else(|| Error::config(format!("there is no element {index}: the list has {n}")))? = value;
            Ok(())
        }
        match (self, element) {
            (Value::Bools(list), Value::Bool(v)) => put(list, index, v),
            (Value::Ints(list), Value::Int(v)) => put(list, index, v),
            (Value::Floats(list), Value::Float(v)) => put(list, index, v),
            (Value::Strs(list), Value::Str(v)) => put(list, index, v),
            (other, _) => {
                Err(Error::config(format!("an index was given, but the value is {}; expected a list", other.kind())))
            }
        }
    }
}

/// Parses a boolean like TensorFlow: a word, or an integer that is zero or not.
fn read_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" => Some(true),
        "false" | "False" => Some(false),
        number => number.parse::<i64>().ok().map(|n| n != 0),
    }
}

/// Prints the form that `HParams::parse` reads: `0.5`, `[1,2]`. A whole float keeps its decimal
/// point: `1.0`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T>(f: &mut fmt::Formatter<'_>, values: &[T], one: impl Fn(&T) -> String) -> fmt::Result {
            write!(f, "[{}]", values.iter().map(one).collect::<Vec<_>>().join(","))
        }
        match self {
            Value::Bool(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Str(v) => f.write_str(v),
            Value::Bools(v) => list(f, v, bool::to_string),
            Value::Ints(v) => list(f, v, i64::to_string),
            Value::Floats(v) => list(f, v, |v| format!("{v:?}")),
            Value::Strs(v) => list(f, v, String::clone),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => |$v:ident| $value:expr),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from($v: $from) -> Value {
                $value
            }
        }
    )*};
}

value_from! {
    bool => |v| Value::Bool(v),
    i32 => |v| Value::Int(v.into()),
    u32 => |v| Value::Int(v.into()),
    i64 => |v| Value::Int(v),
    f64 => |v| Value::Float(v),
    &str => |v| Value::Str(v.to_string()),
    String => |v| Value::Str(v),
    Vec<bool> => |v| Value::Bools(v),
    Vec<i64> => |v| Value::Ints(v),
    Vec<i32> => |v| Value::Ints(v.into_iter().map(i64::from).collect()),
    Vec<f64> => |v| Value::Floats(v),
    Vec<String> => |v| Value::Strs(v),
    Vec<&str> => |v| Value::Strs(v.into_iter().map(str::to_string).collect()),
}

impl<T, const N: usize> From<[T; N]> for Value
where
    Vec<T>: Into<Value>,
{
    fn from(values: [T; N]) -> Value {
        Vec::from(values).into()
    }
}
