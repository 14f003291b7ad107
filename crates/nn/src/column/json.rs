//! Columns as JSON: `{"class_name": "NumericColumn", "config": {"key": "age", ..}}`.

use estimand_tensor::{DType, Error, Result, Strings};
use serde_json::{Value, json};

use super::embedding::InitialCheckpoint;
use super::normalizer::Normalizer;
use super::*;
use crate::config::{self, CustomObjects, Described, Field, Json, Node, Read};

/// Where a document says that its columns come from.
pub(super) const MODULE: &str = "estimand.columns";

/// A class with its reader.
const fn class<C: Column + Described + 'static>() -> (&'static str, Read<FeatureColumn>) {
    (C::CLASS, |config| config::read::<C>(config).map(FeatureColumn::new))
}

/// Every class that can be read.
const CLASSES: [(&str, Read<FeatureColumn>); 13] = [
    class::<BucketizedColumn>(),
    class::<CrossedColumn>(),
    class::<EmbeddingColumn>(),
    class::<HashBucketColumn>(),
    class::<IdentityColumn>(),
    class::<IndicatorColumn>(),
    class::<NumericColumn>(),
    class::<SequenceCategoricalColumn>(),
    class::<SequenceNumericColumn>(),
    class::<SharedEmbeddingColumn>(),
    class::<VocabularyFileColumn>(),
    class::<VocabularyListColumn>(),
    class::<WeightedColumn>(),
];

/// Reads a column from JSON: what [`Column::to_json`] writes. Classes that are not of this crate
/// are looked up in `objects`. Mistakes in the column's options are errors, as of
/// [`Column::check`].
///
/// ```
/// use estimand_nn::column::{self, Column, categorical_column_with_hash_bucket, embedding_column};
/// use estimand_nn::config::CustomObjects;
///
/// let words = embedding_column(categorical_column_with_hash_bucket("words", 1_000), 8).max_norm(1.0);
/// let json = words.to_json()?;
/// assert_eq!(json["config"]["categorical_column"]["config"]["hash_bucket_size"], 1_000);
/// let again = column::from_json(&json.to_string(), &CustomObjects::new())?;
/// assert_eq!(again.name(), "words_embedding");
/// assert_eq!(again.to_json()?, json);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn from_json(text: &str, objects: &CustomObjects) -> Result<FeatureColumn> {
    let document = config::parse(text)?;
    FeatureColumn::read(&Node::root(&document, objects))
}

/// A column as JSON. An error names the column.
pub(super) fn written<C: Column + Described>(column: &C) -> Result<Json> {
    config::write(MODULE, column).map_err(|error| place(column, error))
}

impl Field for FeatureColumn {
    fn write(&self) -> Result<Value> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<FeatureColumn> {
        let column = config::read_object(node, "column", &CLASSES)?;
        column.check().map_err(|error| error.context(format!("at {}", node.path())))?;
        Ok(column)
    }
}

impl Field for Columns {
    fn write(&self) -> Result<Value> {
        self.0.write()
    }

    fn read(node: &Node<'_>) -> Result<Columns> {
        Vec::read(node).map(Columns)
    }
}

impl Field for NumericColumn {
    fn write(&self) -> Result<Value> {
        self.to_json()
    }

    fn read(node: &Node<'_>) -> Result<NumericColumn> {
        let class = node.field("class_name")?;
        match class.text()? {
            NumericColumn::CLASS => config::read(&node.field("config")?),
            _ => Err(class.expected("\"NumericColumn\"")),
        }
    }
}

/// The name of a feature, or a column.
impl Field for ColumnKey {
    fn write(&self) -> Result<Value> {
        match self {
            ColumnKey::Feature(feature) => feature.write(),
            ColumnKey::Column(column) => column.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<ColumnKey> {
        match node.value().as_str() {
            Some(feature) => Ok(ColumnKey::Feature(feature.to_string())),
            None => FeatureColumn::read(node).map(ColumnKey::Column),
        }
    }
}

const DTYPES: [(&str, DType); 7] = [
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("bool", DType::Bool),
    ("string", DType::Str),
];

impl Field for DType {
    fn write(&self) -> Result<Value> {
        let found = DTYPES.iter().find(|(_, dtype)| dtype == self);
        found.map(|(name, _)| (*name).into()).ok_or_else(|| Error::internal(format!("no name for {self}")))
    }

    fn read(node: &Node<'_>) -> Result<DType> {
        let name = node.text()?;
        let found = DTYPES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype);
        found.ok_or_else(|| {
            Error::unknown("dtype", name, DTYPES.iter().map(|(name, _)| *name)).context(format!("at {}", node.path()))
        })
    }
}

/// Texts, or integers. Bytes that are not text are `{"bytes": "ff00"}`.
impl Field for TermList {
    fn write(&self) -> Result<Value> {
        Ok(match self {
            TermList::Text(terms) => terms.iter().map(term_to_json).collect(),
            TermList::Integers(terms) => terms.iter().copied().map(Value::from).collect(),
        })
    }

    fn read(node: &Node<'_>) -> Result<TermList> {
        let elements = node.elements()?;
        if elements.first().is_some_and(|first| first.value().is_number()) {
            return elements.iter().map(i64::read).collect::<Result<_>>().map(TermList::Integers);
        }
        let mut terms = Strings::with_capacity(elements.len());
        for element in &elements {
            match element.value().as_str() {
                Some(text) => terms.push(text.as_bytes()),
                None => terms.push(&bytes(element)?),
            }
        }
        Ok(TermList::Text(terms))
    }
}

fn term_to_json(term: &[u8]) -> Value {
    match std::str::from_utf8(term) {
        Ok(text) => text.into(),
        Err(_) => json!({ "bytes": term.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
    }
}

/// The bytes of `{"bytes": "ff00"}`.
fn bytes(node: &Node<'_>) -> Result<Vec<u8>> {
    let expected = || node.expected("a text, or {\"bytes\": ..} with pairs of hexadecimal digits");
    let digits = node.value().get("bytes").and_then(Value::as_str).ok_or_else(expected)?;
    if digits.len() % 2 != 0 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(expected());
    }
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).map_err(|_| expected())).collect()
}

/// A named function; one of the user's own cannot be written.
impl Field for Normalizer {
    fn write(&self) -> Result<Value> {
        Ok(match self {
            Normalizer::ZScore { mean, stddev } => {
                json!({"class_name": "ZScore", "config": {"mean": mean.write()?, "stddev": stddev.write()?}})
            }
            Normalizer::MinMax { low, high } => {
                json!({"class_name": "MinMax", "config": {"low": low.write()?, "high": high.write()?}})
            }
            Normalizer::Log => json!({"class_name": "Log", "config": {}}),
            Normalizer::Function(_) => {
                let text = "a normalizer that is a function of the program cannot be written as JSON";
                return Err(Error::unsupported(text).help("use .z_score(..), .min_max(..) or .log()"));
            }
        })
    }

    fn read(node: &Node<'_>) -> Result<Normalizer> {
        const CLASSES: [(&str, Read<Normalizer>); 3] = [
            ("Log", |config| config.with_fields(|_| Normalizer::Log)),
            ("MinMax", |config| {
                config.with_fields(|fields| Normalizer::MinMax {
                    low: fields.required("low", &0.0),
                    high: fields.required("high", &0.0),
                })
            }),
            ("ZScore", |config| {
                config.with_fields(|fields| Normalizer::ZScore {
                    mean: fields.required("mean", &0.0),
                    stddev: fields.required("stddev", &0.0),
                })
            }),
        ];
        config::read_object(node, "normalizer", &CLASSES)
    }
}

impl InitialCheckpoint {
    /// Its class in a document.
    const CLASS: &'static str = "Checkpoint";
}

impl Field for InitialCheckpoint {
    fn write(&self) -> Result<Value> {
        let Some(path) = self.path.to_str() else {
            let text = format!("the path {} is not UTF-8, so it cannot be written as JSON", self.path.display());
            return Err(Error::unsupported(text));
        };
        Ok(json!({"class_name": Self::CLASS, "config": {"path": path, "tensor": self.tensor}}))
    }

    fn read(node: &Node<'_>) -> Result<InitialCheckpoint> {
        const CLASSES: [(&str, Read<InitialCheckpoint>); 1] = [(InitialCheckpoint::CLASS, |config| {
            config.with_fields(|fields| InitialCheckpoint {
                path: fields.required("path", &String::new()).into(),
                tensor: fields.required("tensor", &String::new()),
            })
        })];
        config::read_object(node, "initial value", &CLASSES)
    }
}
