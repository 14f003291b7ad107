//! The border to the libraries that decode bytes: their errors, and their panics over bytes they
//! did not expect, become errors that name the file.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use estimand_tensor::{Error, ErrorKind, Result};

use crate::columns::Origin;

/// Decodes; `decode` gives up everything it has touched when it fails.
pub(crate) fn guarded<T, E: Display>(origin: &Origin, decode: impl FnOnce() -> Result<T, E>) -> Result<T> {
    caught(origin, || decode().map_err(|error| damaged(origin, error)))
}

/// As [`guarded`], where errors name the file already.
pub(crate) fn caught<T>(origin: &Origin, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|panic| Err(damaged(origin, format!("the decoder gave up: {}", text(&*panic)))))
}

/// An error about bytes that cannot be decoded.
pub(crate) fn damaged(origin: &Origin, error: impl Display) -> Error {
    let kind = ErrorKind::Data { path: origin.path().map(Into::into), row: None, column: None };
    Error::new(kind, format!("cannot read {origin}: {error}"))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}
