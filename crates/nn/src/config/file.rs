//! Files that a value needs, such as a vocabulary.

use std::path::PathBuf;

use estimand_tensor::{Error, Result};
use serde_json::{Value, json};

use super::{Field, Node};

/// The path of a file that a value needs. A document that is moved to another folder finds it
/// again after [`visit_objects`] has changed the paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File(pub PathBuf);

impl File {
    /// The class of a file in a document.
    pub const CLASS: &'static str = "File";
}

impl Field for File {
    fn write(&self) -> Result<Value> {
        let Some(path) = self.0.to_str() else {
            let text = format!("the path {} is not UTF-8, so it cannot be written as JSON", self.0.display());
            return Err(Error::unsupported(text).help("rename the file"));
        };
        Ok(json!({"class_name": File::CLASS, "config": {"path": path}}))
    }

    fn read(node: &Node<'_>) -> Result<File> {
        let class = node.field("class_name")?;
        match class.text()? {
            File::CLASS => Ok(File(node.field("config")?.field("path")?.text()?.into())),
            _ => Err(class.expected("\"File\"")),
        }
    }
}

/// Calls `visit` with every object of a class in a document, which it may change or replace.
pub fn visit_objects(document: &mut Value, class: &str, visit: &mut dyn FnMut(&mut Value) -> Result<()>) -> Result<()> {
    match document {
        Value::Array(elements) => elements.iter_mut().try_for_each(|element| visit_objects(element, class, visit)),
        Value::Object(object) if object.get("class_name").is_some_and(|name| name == class) => visit(document),
        Value::Object(object) => object.values_mut().try_for_each(|value| visit_objects(value, class, visit)),
        _ => Ok(()),
    }
}
