//! `Fields`: writes the fields of a value, or reads them.

use std::panic::Location;

use estimand_tensor::{Error, Result};
use serde_json::{Map, Value};

use super::{Field, Node};

/// The fields of a value on their way to a document, or from one.
///
/// The first error is kept until the end; fields after it keep their values.
pub struct Fields<'a> {
    direction: Direction<'a>,
    error: Option<Error>,
}

enum Direction<'a> {
    Writing(Map<String, Value>),
    Reading {
        node: Node<'a>,
        /// The fields that were asked for.
        known: Vec<&'static str>,
    },
}

impl<'a> Fields<'a> {
    pub(super) fn writing() -> Fields<'a> {
        Fields { direction: Direction::Writing(Map::new()), error: None }
    }

    pub(super) fn reading(node: &Node<'a>) -> Result<Fields<'a>> {
        node.map()?;
        Ok(Fields { direction: Direction::Reading { node: node.clone(), known: Vec::new() }, error: None })
    }

    /// A field that a document may leave out; the value stays as it is then.
    pub fn value<T: Field>(&mut self, key: &'static str, value: &T) -> T {
        self.any_of(&[key], value, Absent::Keep)
    }

    /// A field that a document must have.
    pub fn required<T: Field>(&mut self, key: &'static str, value: &T) -> T {
        self.any_of(&[key], value, Absent::Refuse)
    }

    /// A field with several names: the first is written, each is read. Keras has renamed some.
    pub fn renamed<T: Field>(&mut self, keys: &[&'static str], value: &T) -> T {
        self.any_of(keys, value, Absent::Keep)
    }

    /// An option that is written only if it is set.
    pub fn optional<T: Field>(&mut self, key: &'static str, value: &Option<T>) -> Option<T> {
        match (&self.direction, value) {
            (Direction::Writing(_), None) => None,
            _ => self.value(key, value),
        }
    }

    /// An element type, of which there is only this one: as a text, or as Keras 3's policy.
    pub fn only_float32(&mut self, key: &'static str) {
        self.dtype(key, "float32", &["float32"]);
    }

    /// The element type of a layer, which its other fields decide. One of `known` is read.
    pub fn dtype(&mut self, key: &'static str, own: &str, known: &[&str]) {
        if let Direction::Writing(map) = &mut self.direction {
            map.insert(key.to_string(), own.into());
        }
        self.check(key, |node| {
            let name = match node.value() {
                Value::Object(_) => node.field("config")?.field("name")?,
                _ => node.clone(),
            };
            match name.value() {
                Value::Null => Ok(()),
                value if known.iter().any(|known| value == known) => Ok(()),
                _ => {
                    let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
                    Err(name.expected(&format!("{} (Estimand computes in no other type)", known.join(" or "))))
                }
            }
        });
    }

    /// An option that may be open. If it is, `default` is written: what holds then.
    pub fn or<T: Field>(&mut self, key: &'static str, value: &Option<T>, default: T) -> Option<T> {
        match &self.direction {
            Direction::Writing(_) => Some(self.value(key, value.as_ref().unwrap_or(&default))),
            Direction::Reading { .. } => self.value(key, value),
        }
    }

    /// A field that is one of some words.
    pub fn choice<T: Clone + PartialEq>(&mut self, key: &'static str, value: &T, words: &[(&str, T)]) -> T {
        let word = words.iter().find(|(_, meaning)| meaning == value).map_or("", |(word, _)| *word).to_string();
        let word = self.value(key, &word);
        if let Some((_, meaning)) = words.iter().find(|(known, _)| *known == word) {
            return meaning.clone();
        }
        let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
        self.check(key, |node| Err(node.expected(&known.join(" or "))));
        value.clone()
    }

    /// A field that is one of some words, or `null`.
    pub fn choice_or_null<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        value: &T,
        words: &[(&str, T)],
        null: &T,
    ) -> T {
        let word = words.iter().find(|(_, meaning)| meaning == value).map(|(word, _)| word.to_string());
        let word = self.value(key, &word);
        match word {
            None => null.clone(),
            Some(word) => match words.iter().find(|(known, _)| *known == word) {
                Some((_, meaning)) => meaning.clone(),
                None => {
                    let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
                    self.check(key, |node| Err(node.expected(&format!("{} or null", known.join(" or ")))));
                    value.clone()
                }
            },
        }
    }

    /// A field that can have only this value here. It is written; another value in a document is
    /// refused.
    pub fn only(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match &mut self.direction {
            Direction::Writing(map) => drop(map.insert(key.to_string(), value)),
            Direction::Reading { .. } => self.only_read(key, &[value]),
        }
    }

    /// A field that is not written. If a document has it, it must have one of these values.
    pub fn only_read(&mut self, key: &'static str, values: &[Value]) {
        self.check(key, |node| match values.contains(node.value()) {
            true => Ok(()),
            false => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                Err(node.expected(&format!("{} (Estimand has no other `{key}`)", values.join(" or "))))
            }
        });
    }

    /// A field that is not written and has no meaning here, whatever a document says.
    pub fn ignored(&mut self, key: &'static str) {
        self.check(key, |_| Ok(()));
    }

    /// A field that Keras demands and that has no meaning here: it is written as `null`.
    pub fn demanded(&mut self, key: &'static str) {
        if let Direction::Writing(map) = &mut self.direction {
            map.insert(key.to_string(), Value::Null);
        }
        self.ignored(key);
    }

    /// Reads a field for its errors alone.
    pub(crate) fn check(&mut self, key: &'static str, check: impl FnOnce(&Node<'_>) -> Result<()>) {
        let Direction::Reading { node, known } = &mut self.direction else { return };
        known.push(key);
        let result = node.get(key).and_then(|found| found.map_or(Ok(()), |found| check(&found)));
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// The source line that made the value: `own` when it is written, the line that reads the
    /// document when it is read.
    pub fn site(&self, own: &'static Location<'static>) -> &'static Location<'static> {
        match &self.direction {
            Direction::Writing(_) => own,
            Direction::Reading { node, .. } => node.site(),
        }
    }

    /// Whether a document that is read has a field.
    pub fn has(&self, key: &str) -> bool {
        match &self.direction {
            Direction::Writing(_) => false,
            Direction::Reading { node, .. } => node.map().is_ok_and(|map| map.contains_key(key)),
        }
    }

    /// Whether a field was asked for already.
    pub(crate) fn is_asked(&self, key: &str) -> bool {
        match &self.direction {
            Direction::Writing(map) => map.contains_key(key),
            Direction::Reading { known, .. } => known.contains(&key),
        }
    }

    /// Records an error, such as a value that cannot be written.
    pub fn refuse(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// An error about the object as a whole, at its place in the document.
    pub fn refuse_here(&mut self, message: &str) {
        let error = match &self.direction {
            Direction::Writing(_) => Error::config(message),
            Direction::Reading { node, .. } => node.refuse(message),
        };
        self.refuse(error);
    }

    fn any_of<T: Field>(&mut self, keys: &[&'static str], value: &T, absent: Absent) -> T {
        if self.error.is_some() {
            return value.clone();
        }
        let result = match &mut self.direction {
            Direction::Writing(map) => value.write().map(|written| {
                map.insert(keys[0].to_string(), written);
                value.clone()
            }),
            Direction::Reading { node, known } => {
                known.extend(keys);
                read(node, keys, value, absent)
            }
        };
        result.unwrap_or_else(|error| {
            self.error = Some(error);
            value.clone()
        })
    }

    /// The written fields.
    pub(super) fn written(self) -> Result<Map<String, Value>> {
        match (self.error, self.direction) {
            (Some(error), _) => Err(error),
            (None, Direction::Writing(map)) => Ok(map),
            (None, Direction::Reading { .. }) => Err(Error::internal("fields that are read were taken as written")),
        }
    }

    /// Ends reading. A field that nothing asked for is an error, unless it is `null`: each version
    /// of Keras adds options, and writes those that are not set as `null`.
    pub(super) fn read(self) -> Result<()> {
        let Direction::Reading { node, known } = self.direction else {
            return Err(Error::internal("fields that are written were taken as read"));
        };
        if let Some(error) = self.error {
            return Err(error);
        }
        match node.map()?.iter().find(|(key, value)| !value.is_null() && !known.contains(&key.as_str())) {
            Some((key, _)) => Err(node.refuse(format!("there is no field `{key}`")).suggest(key, known)),
            None => Ok(()),
        }
    }
}

/// What happens if a document has no such field.
#[derive(Clone, Copy)]
enum Absent {
    Keep,
    Refuse,
}

fn read<T: Field>(node: &Node<'_>, keys: &[&str], value: &T, absent: Absent) -> Result<T> {
    for key in keys {
        if let Some(found) = node.get(key)? {
            return T::read(&found);
        }
    }
    match absent {
        Absent::Keep => Ok(value.clone()),
        Absent::Refuse => Err(node.refuse(format!("there is no `{}`", keys[0]))),
    }
}
