//! Values as JSON, in the form of Keras: `{"class_name": "Dense", "config": {"units": 3, ..}}`.
//!
//! A value describes its fields once, in [`Described::fields`]. The same description writes them
//! and reads them back ([`Fields`]), so the two cannot differ. `node` is a place in a document with
//! its path, which errors show; `document` parses text; `field` and `objects` say how numbers,
//! initializers, regularizers, constraints and activations are spelled, `optimizer` and `schedule`
//! those named so; `custom_objects` holds the classes of users; `dialect` tells the documents of
//! Keras 3 from those of Keras 2.
//!
//! ```
//! use estimand_nn::config::CustomObjects;
//! use estimand_nn::{Dense, Layer, layer};
//!
//! let json = Dense::new(3).relu().to_json()?;
//! assert_eq!(json["class_name"], "Dense");
//! assert_eq!(json["config"]["units"], 3);
//!
//! let again = layer::from_json(&json.to_string(), &CustomObjects::new())?;
//! assert_eq!(again.to_json()?, json);
//!
//! let error = layer::from_json(r#"{"class_name": "Dense", "config": {"units": "3"}}"#, &CustomObjects::new());
//! assert_eq!(
//!     error.unwrap_err().to_string(),
//!     "expected a whole number from 0, found \"3\"\n  at $.config.units"
//! );
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod custom_objects;
mod dialect;
mod document;
mod field;
mod fields;
mod file;
mod node;
mod number;
mod objects;
mod optimizer;
mod schedule;

use estimand_tensor::{Error, Result};
use serde_json::{Map, Value};

pub use serde_json::Value as Json;

pub use custom_objects::{CustomObjects, Read};
pub(crate) use custom_objects::{ReadLoss, ReadMetric};
pub use dialect::Dialect;
pub use document::parse;
pub(crate) use field::{Elements, Numbers, OneAxis, OneSize};
pub use field::{Field, MAX_SIZE};
pub use fields::Fields;
pub use file::{File, visit_objects};
pub use node::{Node, Object};
pub use number::{AnyNumber, Single};
pub(crate) use objects::{configured, is_called};

/// A value that can be written as JSON and read back: a class with named fields.
pub trait Described: Sized {
    /// The name of the class; Keras's own where Keras has such a class.
    const CLASS: &'static str;

    /// A value with the defaults. Reading replaces its fields by those of the document.
    fn template() -> Self;

    /// Passes every field through `fields` and returns a value of the results: the fields
    /// themselves when they are written, those of the document when they are read.
    #[must_use]
    fn fields(&self, fields: &mut Fields<'_>) -> Self;
}

/// Writes a value as `{"module": .., "class_name": .., "config": {..}, "registered_name": null}`.
/// The module is where Keras looks for the class.
pub fn write<T: Described>(module: &str, value: &T) -> Result<Value> {
    let mut fields = Fields::writing();
    // Writing leaves the value as it is.
    let _ = value.fields(&mut fields);
    Ok(object(module, T::CLASS, Value::Object(fields.written()?)))
}

/// Reads a value from the `config` of its class.
pub fn read<T: Described>(config: &Node<'_>) -> Result<T> {
    let mut fields = Fields::reading(config)?;
    let value = T::template().fields(&mut fields);
    fields.read()?;
    Ok(value)
}

/// Reads an object of a kind: a class of `classes`, or one of the user's. The user's come first.
pub fn read_object<T: 'static>(node: &Node<'_>, kind: &str, classes: &[(&'static str, Read<T>)]) -> Result<T> {
    let class = node.field("class_name")?;
    let name = class.text()?;
    let config = node.field("config")?;
    let objects = node.custom_objects();
    // TF: legacy files write a class that was registered as `package>Class`.
    let own = objects.find::<Read<T>>(name).or_else(|| objects.find(name.rsplit_once('>')?.1));
    match own.or_else(|| classes.iter().find(|(known, _)| *known == name).map(|(_, read)| *read)) {
        Some(read) => read(&config),
        None => {
            let known = classes.iter().map(|(name, _)| *name).chain(objects.names::<Read<T>>());
            Err(Error::unknown(kind, name, known).context(format!("at {}", class.path())))
        }
    }
}

/// An object in the form that Keras 2.13 and later write.
pub(crate) fn object(module: &str, class: &str, config: Value) -> Value {
    let mut object = Map::new();
    object.insert("module".to_string(), module.into());
    object.insert("class_name".to_string(), class.into());
    object.insert("config".to_string(), config);
    object.insert("registered_name".to_string(), Value::Null);
    Value::Object(object)
}
