//! `Node`: a value in a document, with the path to it.

use std::panic::Location;

use estimand_tensor::{Error, Result};
use serde_json::{Map, Value};

use super::{CustomObjects, Dialect, Fields};

/// A value in a document. Its errors show the path to it.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    value: &'a Value,
    path: String,
    objects: &'a CustomObjects,
    dialect: Dialect,
    site: &'static Location<'static>,
}

/// A class with its configuration.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// The name of the class.
    pub class: &'a str,
    /// Its fields; `None` if only the name is written.
    pub config: Option<Node<'a>>,
}

/// The longest part of a document that an error shows.
const SHOWN: usize = 60;

/// The value of fields that are not written.
static NOTHING: Value = Value::Null;

impl<'a> Node<'a> {
    /// The whole of a document. Classes that are not of this crate are looked up in `objects`.
    #[track_caller]
    pub fn root(value: &'a Value, objects: &'a CustomObjects) -> Node<'a> {
        Node { value, path: "$".to_string(), objects, dialect: Dialect::of(value), site: Location::caller() }
    }

    /// The value itself.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// The path from the top of the document, such as `$.config.units`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The classes of the user.
    pub fn custom_objects(&self) -> &'a CustomObjects {
        self.objects
    }

    /// The generation of Keras that wrote the document.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The source line that reads the document.
    pub fn site(&self) -> &'static Location<'static> {
        self.site
    }

    /// An error at this place.
    pub fn refuse(&self, message: impl Into<String>) -> Error {
        Error::config(message).context(format!("at {}", self.path))
    }

    /// The error of a value that is something else.
    pub fn expected(&self, what: &str) -> Error {
        let mut shown = self.value.to_string();
        if shown.len() > SHOWN {
            let end = (0..=SHOWN).rev().find(|&end| shown.is_char_boundary(end)).unwrap_or(0);
            shown.truncate(end);
            shown.push_str("..");
        }
        self.refuse(format!("expected {what}, found {shown}"))
    }

    /// A field of an object, if it is there.
    pub fn get(&self, key: &str) -> Result<Option<Node<'a>>> {
        Ok(self.map()?.get(key).map(|value| self.child(value, key)))
    }

    /// A field that must be there.
    pub fn field(&self, key: &str) -> Result<Node<'a>> {
        self.get(key)?.ok_or_else(|| self.refuse(format!("there is no `{key}`")))
    }

    /// The elements of an array.
    pub fn elements(&self) -> Result<Vec<Node<'a>>> {
        let elements = self.value.as_array().ok_or_else(|| self.expected("an array"))?;
        let node = |(i, value)| Node { value, path: format!("{}[{i}]", self.path), ..self.clone() };
        Ok(elements.iter().enumerate().map(node).collect())
    }

    /// The fields of an object.
    pub(super) fn map(&self) -> Result<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// A text.
    pub fn text(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.expected("a text"))
    }

    /// A class with its configuration, or a text that names a class.
    pub fn object(&self) -> Result<Object<'a>> {
        if let Some(class) = self.value.as_str() {
            return Ok(Object { class, config: None });
        }
        let class = self.field("class_name")?;
        let config = self.field("config")?;
        // Keras writes functions, such as activations, as objects of the class `function`.
        if class.value == "function" {
            return Ok(Object { class: config.text()?, config: None });
        }
        Ok(Object { class: class.text()?, config: Some(config) })
    }

    /// Reads the fields of this object by a function. A field that it does not ask for is an error.
    pub fn with_fields<T>(&self, read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T> {
        let mut fields = Fields::reading(self)?;
        let value = read(&mut fields);
        fields.read()?;
        Ok(value)
    }

    /// This node's path with another value: a field that is not written.
    pub(super) fn nothing(&self) -> Node<'a> {
        Node { value: &NOTHING, ..self.clone() }
    }

    fn child(&self, value: &'a Value, key: &str) -> Node<'a> {
        let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
        let path = if plain { format!("{}.{key}", self.path) } else { format!("{}[{key:?}]", self.path) };
        Node { value, path, ..self.clone() }
    }
}
