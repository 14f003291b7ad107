//! Reads a schema from TOML. Every error names the line, the column and the key.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use estimand_tensor::{DType, Error, ErrorKind, Result, element_count, nearest_name};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::column::{ColumnKind, SchemaColumn, Value};
use super::nesting::{MAX_PARTS, deep_key};
use crate::statistics::Role;

const KEYS: [&str; 9] = ["role", "type", "shape", "kind", "required", "default", "min", "max", "domain"];

/// The largest number of values in a row, and in all defaults together: a default is allocated with
/// the size of the shape.
const MAX_VALUES: usize = 1 << 24;

/// Parses the columns in a text. `path` is the file's name for messages.
pub(super) fn columns(text: &str, path: Option<&Path>) -> Result<Vec<SchemaColumn>> {
    let source = Source { text, path };
    if let Some(offset) = deep_key(text) {
        let message = format!("a key has more than {MAX_PARTS} parts");
        return Err(source.error(offset, None, message).help("write tables `[columns.NAME]`"));
    }
    let document = DeTable::parse(text).map_err(|e| {
        let start = e.span().map_or(0, |span| span.start);
        source.error(start, None, format!("the schema is not valid TOML: {}", e.message()))
    })?;
    let mut tables = Vec::new();
    for (name, value) in document.get_ref() {
        if name.get_ref() != "columns" {
            let error = source.error(name.span().start, None, format!("unknown key `{}`", name.get_ref()));
            return Err(error.help("write tables `[columns.NAME]`"));
        }
        let Some(columns) = value.get_ref().as_table() else {
            let message = format!("`columns` is a {}; expected tables", value.get_ref().type_str());
            return Err(source.error(value.span().start, None, message).help("write `[columns.NAME]`"));
        };
        for (name, column) in columns {
            let Some(table) = column.get_ref().as_table() else {
                let message =
                    format!("column `{}` is a {}; expected a table", name.get_ref(), column.get_ref().type_str());
                let help = format!("write `[columns.{}]`", name.get_ref());
                return Err(source.error(column.span().start, Some(name.get_ref()), message).help(help));
            };
            tables.push((name, table));
        }
    }
    if tables.is_empty() {
        return Err(source.error(0, None, "the schema has no columns".to_string()).help("write `[columns.NAME]`"));
    }
    // The parser sorts tables by name; a schema keeps the order of its lines.
    tables.sort_by_key(|(name, _)| name.span().start);
    let mut n_defaults = 0usize;
    let read = |(name, table)| {
        let reader = Reader { source, name, table };
        let column = reader.column()?;
        if let (Some(_), Some(dims)) = (&column.default, &column.dims) {
            n_defaults = n_defaults.saturating_add(dims.iter().product());
            if n_defaults > MAX_VALUES {
                let message =
                    format!("the defaults up to here have {n_defaults} values; at most {MAX_VALUES} are supported");
                return Err(reader.wrong("default", &message).help("remove the default of columns with many values"));
            }
        }
        Ok(column)
    };
    tables.into_iter().map(read).collect()
}

#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    path: Option<&'a Path>,
}

impl Source<'_> {
    fn error(self, offset: usize, column: Option<&str>, message: String) -> Error {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        let line = before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        let path = self.path.map(Path::to_path_buf);
        let file = self.path.map_or("the schema".to_string(), |path| path.display().to_string());
        let kind = ErrorKind::Data { path, row: Some(line), column: column.map(str::to_string) };
        Error::new(kind, message).context(format!("in line {line} of {file}"))
    }
}

/// A reader of one column's table.
struct Reader<'a> {
    source: Source<'a>,
    name: &'a Spanned<Cow<'a, str>>,
    table: &'a DeTable<'a>,
}

impl<'a> Reader<'a> {
    fn column(&self) -> Result<SchemaColumn> {
        for key in self.table.keys() {
            if !KEYS.contains(&&**key.get_ref()) {
                let error = self.error(key.span().start, format!("unknown key `{}`", key.get_ref()));
                return Err(error.suggest(key.get_ref(), KEYS));
            }
        }
        let dtype = match self.get("type") {
            Some(value) => self.one_of("type", value, DType::ALL)?,
            None => {
                return Err(self
                    .error(self.name.span().start, "`type` is missing".to_string())
                    .help("add `type = \"f32\"`, or another type"));
            }
        };
        let is_number = dtype != DType::Str;
        let role = match self.get("role") {
            Some(value) => self.one_of("role", value, [Role::Feature, Role::Label, Role::Weights])?,
            None => Role::Feature,
        };
        let kind = match self.get("kind") {
            Some(value) => self.one_of("kind", value, ColumnKind::ALL)?,
            None if is_number => ColumnKind::Numeric,
            None => ColumnKind::Vocabulary,
        };
        if kind == ColumnKind::Numeric && !is_number {
            return Err(self.wrong("kind", "a column of strings cannot be numeric"));
        }
        let dims = self.get("shape").map_or(Ok(Some(Vec::new())), |value| self.shape(value))?;
        let required = match self.get("required") {
            Some(value) => {
                value.get_ref().as_bool().ok_or_else(|| self.expected("required", value, "true or false"))?
            }
            None => false,
        };
        let default = self.get("default").map(|value| self.value("default", value, dtype)).transpose()?;
        if default.is_some() && dims.is_none() {
            return Err(self.wrong("default", "a ragged column cannot have a default"));
        }
        let (min, max) = (self.bound("min", dtype)?, self.bound("max", dtype)?);
        if let (Some(low), Some(high)) = (&min, &max)
            && low.to_f64() > high.to_f64()
        {
            return Err(self.wrong("max", &format!("{high} is below the min of {low}")));
        }
        let domain = self.get("domain").map(|value| self.domain(value, dtype)).transpose()?;
        Ok(SchemaColumn {
            name: self.name.get_ref().to_string(),
            role,
            dtype,
            dims,
            kind,
            required,
            default,
            min,
            max,
            domain,
        })
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.get(key)
    }

    fn error(&self, offset: usize, message: String) -> Error {
        let name = self.name.get_ref();
        self.source.error(offset, Some(name), format!("column `{name}`: {message}"))
    }

    /// An error for a value that has the right type but is not valid.
    fn wrong(&self, key: &str, message: &str) -> Error {
        let start = self.get(key).map_or(self.name.span().start, |value| value.span().start);
        self.error(start, format!("`{key}`: {message}"))
    }

    fn expected(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> Error {
        let found = self.source.text.get(value.span()).unwrap_or_default();
        self.error(
            value.span().start,
            format!("`{key}` is {}, expected {expected}", found.chars().take(80).collect::<String>()),
        )
    }

    fn one_of<T: Copy + fmt::Display, const N: usize>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        all: [T; N],
    ) -> Result<T> {
        let names = all.map(|one| one.to_string());
        let text = value.get_ref().as_str().unwrap_or_default();
        if let Some(i) = names.iter().position(|name| name == text) {
            return Ok(all[i]);
        }
        let error = self.expected(key, value, &format!("one of {}", names.join(", ")));
        Err(match nearest_name(text, names.iter().map(String::as_str)).filter(|_| !text.is_empty()) {
            Some(near) => error.help(format!("did you mean \"{near}\"?")),
            None => error,
        })
    }

    fn shape(&self, value: &Spanned<DeValue<'_>>) -> Result<Option<Vec<usize>>> {
        if value.get_ref().as_str() == Some("ragged") {
            return Ok(None);
        }
        let sizes = value.get_ref().as_array().and_then(|sizes| {
            sizes.iter().map(|size| usize::try_from(int_of(size.get_ref())?).ok()).collect::<Option<Vec<_>>>()
        });
        let dims = sizes.ok_or_else(|| self.expected("shape", value, "a list of sizes, or \"ragged\""))?;
        match element_count(&dims) {
            Ok(n) if n <= MAX_VALUES => Ok(Some(dims)),
            Ok(n) => Err(self.wrong("shape", &format!("a row has {n} values; at most {MAX_VALUES} are supported"))),
            Err(error) => Err(self.wrong("shape", error.message())),
        }
    }

    fn bound(&self, key: &str, dtype: DType) -> Result<Option<Value>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        if matches!(dtype, DType::Str | DType::Bool) {
            return Err(self
                .wrong(key, &format!("values of {dtype} have no order"))
                .help("remove it, or list the values in `domain`"));
        }
        match self.value(key, value, dtype)? {
            Value::Float(float) if float.is_nan() => Err(self.wrong(key, "NaN cannot be a bound")),
            value => Ok(Some(value)),
        }
    }

    fn domain(&self, list: &Spanned<DeValue<'_>>, dtype: DType) -> Result<Vec<Value>> {
        if !dtype.is_integer() && dtype != DType::Str {
            return Err(self.wrong("domain", &format!("only strings and integers can have a domain, not {dtype}")));
        }
        let members = list.get_ref().as_array().filter(|members| !members.is_empty());
        let members = members.ok_or_else(|| self.expected("domain", list, "a list of at least one value"))?;
        let mut domain = Vec::with_capacity(members.len());
        let mut seen = HashSet::new();
        for member in members {
            let value = self.value("domain", member, dtype)?;
            if !seen.insert(value.to_string()) {
                return Err(self.error(member.span().start, format!("`domain` has {value} twice")));
            }
            domain.push(value);
        }
        Ok(domain)
    }

    /// Parses a value of the column's type.
    fn value(&self, key: &str, value: &Spanned<DeValue<'_>>, dtype: DType) -> Result<Value> {
        let range = match dtype {
            DType::I32 => i64::from(i32::MIN)..=i64::from(i32::MAX),
            DType::U8 => 0..=255,
            _ => i64::MIN..=i64::MAX,
        };
        let found = match (dtype, value.get_ref()) {
            (DType::Str, DeValue::String(text)) => Some(Value::Text(text.to_string())),
            (DType::Bool, DeValue::Boolean(flag)) => Some(Value::Int(i64::from(*flag))),
            (DType::F64, DeValue::Float(float)) => float.as_str().parse().ok().map(Value::Float),
            // Rounded to f32, because it is compared with values of that type.
            (DType::F32, DeValue::Float(float)) => {
                float.as_str().parse::<f32>().ok().map(|float| Value::Float(float.into()))
            }
            (DType::F32 | DType::F64, number) => int_of(number).map(|int| Value::Float(int as f64)),
            (DType::I32 | DType::I64 | DType::U8, number) => {
                int_of(number).filter(|int| range.contains(int)).map(Value::Int)
            }
            _ => None,
        };
        found.ok_or_else(|| self.expected(key, value, &format!("a value of {dtype}")))
    }
}

fn int_of(value: &DeValue<'_>) -> Option<i64> {
    let int = value.as_integer()?;
    i64::from_str_radix(int.as_str(), int.radix()).ok()
}
