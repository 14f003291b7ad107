//! Protobuf's text format, as far as configuration files use it: fields, blocks, lists, strings,
//! numbers and words.

use estimand_tensor::{Error, Result};

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// The line, from 1.
    pub(crate) line: usize,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// A number, `true`, `false` or the name of an enum.
    Word(String),
    Block(Vec<Field>),
}

impl Field {
    fn wrong(&self, expected: &str) -> Error {
        let found = match &self.value {
            Value::Text(text) => format!("{text:?}"),
            Value::Word(word) => format!("`{word}`"),
            Value::Block(_) => "a block".to_string(),
        };
        Error::config(format!("line {}: `{}` is {found}; expected {expected}", self.line, self.name))
    }

    pub(crate) fn unknown(&self, known: &[&str]) -> Error {
        Error::unknown("field", &self.name, known.iter().copied()).context(format!("in line {}", self.line))
    }

    pub(crate) fn text(&self) -> Result<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong("a quoted string")),
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&self) -> Result<T> {
        let word = match &self.value {
            Value::Word(word) => word,
            // TensorFlow Serving's batching parameters are wrapped: `max_batch_size { value: 8 }`.
            Value::Block(fields) => match &fields[..] {
                [Field { name, value: Value::Word(word), .. }] if name == "value" => word,
                _ => return Err(self.wrong("{ value: NUMBER }")),
            },
            Value::Text(_) => return Err(self.wrong("a number")),
        };
        word.parse().map_err(|_| self.wrong("a number in its range"))
    }

    pub(crate) fn is_true(&self) -> Result<bool> {
        match &self.value {
            Value::Word(word) if matches!(word.as_str(), "true" | "True" | "t" | "1") => Ok(true),
            Value::Word(word) if matches!(word.as_str(), "false" | "False" | "f" | "0") => Ok(false),
            Value::Block(fields) if fields.len() == 1 && fields[0].name == "value" => fields[0].is_true(),
            _ => Err(self.wrong("true or false")),
        }
    }

    pub(crate) fn block(&self) -> Result<&[Field]> {
        match &self.value {
            Value::Block(fields) => Ok(fields),
            _ => Err(self.wrong("a block in braces")),
        }
    }
}

/// Reads a message.
pub(crate) fn parse(text: &str) -> Result<Vec<Field>> {
    let mut parser = Parser { rest: text, line: 1 };
    let fields = parser.fields(None, 0)?;
    Ok(fields)
}

/// Blocks deeper than this are refused.
const MAX_DEPTH: usize = 50;

struct Parser<'a> {
    rest: &'a str,
    line: usize,
}

impl Parser<'_> {
    fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::config(format!("line {}: {message}", self.line))
    }

    /// Skips blanks, comments and separators.
    fn skip(&mut self) {
        loop {
            match self.rest.chars().next() {
                Some('#') => {
                    self.rest =
                        self.rest.split_once('\n').map_or("", |_| &self.rest[self.rest.find('\n').unwrap_or(0)..])
                }
                Some('\n') => {
                    self.line += 1;
                    self.rest = &self.rest[1..];
                }
                Some(c) if c.is_whitespace() || c == ',' || c == ';' => self.rest = &self.rest[c.len_utf8()..],
                _ => return,
            }
        }
    }

    fn take(&mut self, mark: char) -> bool {
        self.skip();
        let is_there = self.rest.starts_with(mark);
        if is_there {
            self.rest = &self.rest[mark.len_utf8()..];
        }
        is_there
    }

    fn word(&mut self) -> Result<String> {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && !"_-+.".contains(c)).unwrap_or(self.rest.len());
        if end == 0 {
            let found = self.rest.chars().next().map_or("the end".to_string(), |c| format!("{c:?}"));
            return Err(self.error(format!("expected a name or a number; found {found}")));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_string())
    }

    fn fields(&mut self, end: Option<char>, depth: usize) -> Result<Vec<Field>> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} blocks in each other")));
        }
        let mut fields = Vec::new();
        loop {
            self.skip();
            match end {
                Some(end) if self.take(end) => return Ok(fields),
                Some(end) if self.rest.is_empty() => return Err(self.error(format!("a block has no `{end}`"))),
                None if self.rest.is_empty() => return Ok(fields),
                _ => {}
            }
            let (name, line) = (self.word()?, self.line);
            let has_colon = self.take(':');
            if has_colon && self.take('[') {
                while !self.take(']') {
                    if self.rest.is_empty() {
                        return Err(self.error("a list has no `]`"));
                    }
                    let value = self.value(has_colon, depth)?;
                    fields.push(Field { name: name.clone(), value, line });
                }
                continue;
            }
            let value = self.value(has_colon, depth)?;
            fields.push(Field { name, value, line });
        }
    }

    fn value(&mut self, has_colon: bool, depth: usize) -> Result<Value> {
        for (open, close) in [('{', '}'), ('<', '>')] {
            if self.take(open) {
                return Ok(Value::Block(self.fields(Some(close), depth + 1)?));
            }
        }
        if !has_colon {
            return Err(self.error("expected `:` or a block in braces after a name"));
        }
        if self.rest.starts_with(['"', '\'']) {
            // Adjacent strings are one string.
            let mut text = String::new();
            while self.rest.starts_with(['"', '\'']) {
                text += &self.quoted()?;
                self.skip();
            }
            return Ok(Value::Text(text));
        }
        Ok(Value::Word(self.word()?))
    }

    fn quoted(&mut self) -> Result<String> {
        let mut characters = self.rest.char_indices();
        let quote = characters.next().map(|(_, quote)| quote);
        let mut text = String::new();
        while let Some((i, c)) = characters.next() {
            match c {
                c if Some(c) == quote => {
                    self.rest = &self.rest[i + c.len_utf8()..];
                    return Ok(text);
                }
                '\n' => break,
                '\\' => match characters.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(c @ ('\\' | '"' | '\'')) => text.push(c),
                    other => return Err(self.error(format!("the escape \\{} is not known", other.unwrap_or(' ')))),
                },
                c => text.push(c),
            }
        }
        Err(self.error("a string has no end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_original() {
        let fields = parse(
            "model_config_list {  # models\n  config {\n    name: 'my_first_model'\n    base_path: \"/tmp/\" 'first'\n    \
             model_version_policy { specific { versions: 42, versions: 43 } }\n    version_labels { key: 'stable' value: 43 }\n  \
             }\n  config: < name: \"b\\\"\" versions: [1, 2] >\n}\n",
        )
        .unwrap();
        let list = fields[0].block().unwrap();
        let first = list[0].block().unwrap();
        assert_eq!((first[0].text().unwrap(), first[1].text().unwrap()), ("my_first_model", "/tmp/first"));
        let versions = first[2].block().unwrap()[0].block().unwrap();
        assert_eq!(versions.iter().map(|field| field.number::<i64>().unwrap()).collect::<Vec<_>>(), [42, 43]);
        let second = list[1].block().unwrap();
        assert_eq!((second[0].text().unwrap(), second.len(), list[1].line), ("b\"", 3, 8));
        assert_eq!(parse("n { value: 8 }").unwrap()[0].number::<usize>().unwrap(), 8);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("a: 1\nb {", "line 2: a block has no `}`"),
            ("a 1", "line 1: expected `:`"),
            ("a: \"x\n", "line 1: a string has no end"),
            ("a: [1, 2", "a list has no `]`"),
            ("a: ?", "expected a name or a number; found '?'"),
            (&"a {".repeat(60), "more than 50 blocks"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = parse("\na: b").unwrap()[0].number::<i64>().unwrap_err().to_string();
        assert!(error.contains("line 2: `a` is `b`; expected a number"), "{error}");
    }
}
