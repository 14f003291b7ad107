//! Reads the body of `:predict`: rows (`instances`) or columns (`inputs`).
//!
//! The signature decides the element types, and its name may come after the values. So values are
//! read by the default signature until a name appears, and read again only if that was wrong.

use std::borrow::Cow;

use super::excerpt::excerpt;
use super::input::{Input, UnknownKeys};
use super::reader::{Fault, Kind, Read, Reader};
use super::values::{Rows, columns, rows};
use crate::status::{Answer, Status};

/// Whether a request has rows or columns; the answer has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Row,
    Column,
}

/// A request whose values are arrays.
#[derive(Debug)]
pub(crate) struct Predict<S> {
    pub(crate) signature: S,
    pub(crate) format: Format,
    /// The values.
    pub(crate) rows: Rows,
}

/// Reads a request. `find` returns the signature with a name; the name is empty if the request does
/// not give one.
pub(crate) fn read_predict<S: AsRef<[Input]>>(
    body: &[u8],
    unknown_keys: UnknownKeys,
    find: impl FnMut(&str) -> Answer<S>,
) -> Answer<Predict<S>> {
    let reader = Reader::new(body);
    let mut document = Document { reader, unknown_keys, find, signature: None, name: None, values: None };
    document.read()?;
    document.finish(body)
}

struct Document<'a, F, S> {
    reader: Reader<'a>,
    unknown_keys: UnknownKeys,
    find: F,
    /// The name of the signature, and where it is.
    name: Option<Answer<Cow<'a, [u8]>>>,
    /// The signature that was found last, and the name by which it was asked for.
    signature: Option<(Cow<'a, [u8]>, Answer<S>)>,
    values: Option<Values>,
}

/// The values of a request, read once.
struct Values {
    format: Format,
    position: usize,
    kind: Kind,
    /// Whether the document has both formats.
    is_double: bool,
    rows: Answer<Rows>,
}

impl<'a, S: AsRef<[Input]>, F: FnMut(&str) -> Answer<S>> Document<'a, F, S> {
    /// Reads the members of the document. Wrong values are kept for later: a text that is no JSON
    /// is reported first, as TensorFlow Serving does.
    fn read(&mut self) -> Read<()> {
        if self.reader.kind()? != Kind::Object {
            let start = self.reader.position();
            self.reader.skip()?;
            let text = excerpt(self.reader.text_at(start));
            return Err(Status::invalid(format!("JSON Value: {text} Is not object")).into());
        }
        self.reader.open();
        let mut is_first = true;
        while let Some(name) = self.reader.name(is_first)? {
            is_first = false;
            match &*name {
                b"signature_name" if self.name.is_none() => self.signature_name()?,
                b"instances" => self.member(Format::Row)?,
                b"inputs" => self.member(Format::Column)?,
                _ => self.reader.skip()?,
            }
        }
        Ok(())
    }

    fn signature_name(&mut self) -> Read<()> {
        let is_string = self.reader.kind()? == Kind::String;
        let name = match is_string {
            true => Ok(self.reader.string()?),
            false => {
                self.reader.skip()?;
                Err(Status::invalid(" not formatted correctly. 'signature_name' key must be a string value."))
            }
        };
        self.name = Some(name);
        Ok(())
    }

    fn member(&mut self, format: Format) -> Read<()> {
        let (position, kind) = (self.reader.position(), self.reader.kind()?);
        if let Some(values) = &mut self.values {
            values.is_double |= values.format != format;
            return self.reader.skip();
        }
        let rows = match self.rows(format) {
            Ok(rows) => Ok(rows),
            Err(Fault::Meaning(status)) => {
                self.reader.go_to(position);
                self.reader.skip()?;
                Err(status)
            }
            Err(syntax) => return Err(syntax),
        };
        self.values = Some(Values { format, position, kind, is_double: false, rows });
        Ok(())
    }

    /// Reads the values at the current position by the signature that is known now.
    fn rows(&mut self, format: Format) -> Read<Rows> {
        let name = match &self.name {
            Some(Ok(name)) => name.clone(),
            _ => Cow::Borrowed(&b""[..]),
        };
        if self.signature.as_ref().is_none_or(|(known, _)| *known != name) {
            let found = (self.find)(&String::from_utf8_lossy(&name));
            self.signature = Some((name, found));
        }
        let inputs = match &self.signature {
            Some((_, Ok(signature))) => signature.as_ref(),
            Some((_, Err(status))) => return Err(status.clone().into()),
            None => &[],
        };
        match format {
            Format::Row => rows(&mut self.reader, inputs, self.unknown_keys),
            Format::Column => columns(&mut self.reader, inputs, self.unknown_keys),
        }
    }

    /// The request, or what is wrong with it, in the order in which TensorFlow Serving looks.
    fn finish(mut self, body: &[u8]) -> Answer<Predict<S>> {
        let document = |text: &str| Status::invalid(format!("JSON Value: {}{text}", excerpt(body)));
        let name = match &self.name {
            Some(Ok(name)) => name.clone(),
            None => Cow::Borrowed(&b""[..]),
            Some(Err(status)) => return Err(document(&status.message)),
        };
        if let Some(values) = &self.values
            && self.signature.as_ref().is_none_or(|(used, _)| *used != name)
        {
            let (format, position) = (values.format, values.position);
            self.reader.go_to(position);
            let rows = self.rows(format).map_err(Status::from);
            self.values.as_mut().into_iter().for_each(|values| values.rows = rows.clone());
        }
        let signature = match self.signature {
            Some((_, signature)) => signature?,
            None => (self.find)(&String::from_utf8_lossy(&name))?,
        };
        let Some(values) = self.values else {
            return Err(Status::invalid("Missing 'inputs' or 'instances' key"));
        };
        if values.is_double {
            return Err(document(
                " Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ",
            ));
        }
        if values.format == Format::Row && values.kind != Kind::Array {
            return Err(document(" Expecting 'instances' to be an list/array"));
        }
        match values.rows {
            Ok(rows) if rows.arrays.is_empty() && values.format == Format::Row => {
                Err(document(" No values in 'instances' array"))
            }
            Ok(rows) => Ok(Predict { signature, format: values.format, rows }),
            Err(status) => Err(status),
        }
    }
}
