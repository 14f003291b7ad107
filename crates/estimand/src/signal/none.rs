//! Without signals nothing is asked for.

use std::io;

pub(super) type Previous = ();

pub(super) fn install() -> io::Result<Previous> {
    Ok(())
}

pub(super) fn restore(_: &Previous) {}
