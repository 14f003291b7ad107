//! `Dialect`: which generation of Keras wrote a document. A few names mean something else in each.

use serde_json::Value;

/// The generation of Keras that wrote a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// Keras 2, and this crate.
    #[default]
    Keras2,
    /// Keras 3.
    Keras3,
}

impl Dialect {
    /// The generation of a document. `to_json` of Keras 2 writes its version. Keras 3 writes none,
    /// but values, shapes of inputs and element types in a form that only it has. A layer alone
    /// that Keras 3.0 or 3.1 wrote looks like one of Keras 2.
    pub(super) fn of(document: &Value) -> Dialect {
        let version = document.get("keras_version").and_then(Value::as_str);
        let is_3 = match version {
            Some(version) => version.split('.').next().and_then(|major| major.parse().ok()) >= Some(3),
            None => is_of_keras_3(document),
        };
        if is_3 { Dialect::Keras3 } else { Dialect::Keras2 }
    }
}

/// Whether a value has a part that only Keras 3 writes.
fn is_of_keras_3(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(is_of_keras_3),
        Value::Object(object) => {
            let class = object.get("class_name").and_then(Value::as_str);
            let has_shape = || object.get("config").is_some_and(|config| config.get("batch_shape").is_some());
            matches!(class, Some("DTypePolicy" | "__keras_tensor__"))
                || (class == Some("InputLayer") && has_shape())
                || object.values().any(is_of_keras_3)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_tell_their_generation() {
        let policy = json!({"class_name": "DTypePolicy", "config": {"name": "float32"}});
        let input = |key: &str| json!({"layers": [{"class_name": "InputLayer", "config": {key: [null, 3]}}]});
        for (document, expected) in [
            (json!({"keras_version": "2.15.0", "config": {"dtype": policy}}), Dialect::Keras2),
            (json!({"keras_version": "3.15.1", "config": {}}), Dialect::Keras3),
            (json!({"keras_version": "10.0.0"}), Dialect::Keras3),
            (json!({"keras_version": "new"}), Dialect::Keras2),
            (json!({"config": {"layer": {"config": {"dtype": policy}}}}), Dialect::Keras3),
            (json!({"config": {"dtype": "float32"}}), Dialect::Keras2),
            (input("batch_shape"), Dialect::Keras3),
            (input("batch_input_shape"), Dialect::Keras2),
            (json!([{"args": [{"class_name": "__keras_tensor__", "config": {}}]}]), Dialect::Keras3),
            (Value::Null, Dialect::Keras2),
        ] {
            assert_eq!(Dialect::of(&document), expected, "{document}");
        }
    }
}
