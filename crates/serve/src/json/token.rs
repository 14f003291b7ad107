//! The values and the errors that [`Reader`](super::reader::Reader) returns.

use std::fmt;

use crate::status::Status;

/// An error of a reader or of the code that drives it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The text is not JSON; nothing after the position can be read.
    Syntax { what: &'static str, at: usize },
    /// The text is JSON, but not the expected values.
    Meaning(Status),
}

impl From<Status> for Fault {
    fn from(status: Status) -> Fault {
        Fault::Meaning(status)
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Status {
        match fault {
            Fault::Syntax { what, at } => Status::invalid(format!("JSON Parse error: {what} at offset: {at}")),
            Fault::Meaning(status) => status,
        }
    }
}

pub(crate) type Read<T> = Result<T, Fault>;

/// The types of JSON values, with the names that messages use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    False,
    True,
    Object,
    Array,
    String,
    Number,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The text of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number<'a> {
    pub(super) text: &'a [u8],
    pub(super) is_integer: bool,
}

impl Number<'_> {
    /// Whether it has neither a fraction nor an exponent.
    pub(crate) fn is_integer(&self) -> bool {
        self.is_integer
    }

    /// The integer, if it is one and fits.
    pub(crate) fn integer<T: std::str::FromStr>(&self) -> Option<T> {
        let text = if self.is_integer { std::str::from_utf8(self.text).ok()? } else { return None };
        text.parse().ok()
    }

    /// The value as a double.
    pub(crate) fn double(&self) -> f64 {
        let (sign, digits) = match self.text {
            [b'-', rest @ ..] => (-1.0, rest),
            all => (1.0, all),
        };
        match digits.first() {
            Some(b'N') => f64::NAN,
            Some(b'I') => sign * f64::INFINITY,
            _ => std::str::from_utf8(self.text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN),
        }
    }
}
