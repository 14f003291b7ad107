//! The memory that the names of all weights of a file take. In a hostile file, lists share their
//! texts, or many links follow a long path.

use estimand_tensor::{Error, Result};

/// The most bytes of names.
const MAX: usize = 1 << 27;

/// The bytes of a name beside its text.
const OVERHEAD: usize = 64;

/// Counts names.
#[derive(Default)]
pub(in crate::keras::files) struct Names(usize);

impl Names {
    /// Counts a name whose text has this length.
    pub(in crate::keras::files) fn add(&mut self, len: usize) -> Result<()> {
        self.0 = self.0.saturating_add(len).saturating_add(OVERHEAD);
        if self.0 <= MAX {
            return Ok(());
        }
        let text = format!("the names of the weights need more than {MAX} bytes of memory");
        Err(Error::data(text).help("the file is damaged"))
    }
}
