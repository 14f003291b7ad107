//! Wraps the libraries that decode bytes. Their errors, and their panics on unexpected bytes,
//! become errors that name the file.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use estimand_tensor::{Error, ErrorKind, Result};

use crate::columns::Origin;

/// Runs `decode`. After a failure, `decode` drops everything it has touched.
pub(crate) fn guarded<T, E: Display>(origin: &Origin, decode: impl FnOnce() -> Result<T, E>) -> Result<T> {
    caught(origin, || decode().map_err(|error| damaged(origin, error)))
}

/// Like [`guarded`], for errors that already name the file.
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
