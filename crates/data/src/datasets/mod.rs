//! Data sets by name: small ones are embedded in the library, others are read from a folder or
//! fetched into it once.
//!
//! ```
//! use estimand_data::datasets;
//!
//! let iris = datasets::load("iris", "train")?;
//! assert_eq!(iris.info().classes, ["setosa", "versicolor", "virginica"]);
//!
//! // A fixed fifth of the rows to validate with, the same every time.
//! let (train, validation) = iris.validation_split(0.2)?;
//! let batches = train.dataset().shuffle(1_000, 7).batch(32);
//! assert_eq!(batches.iter().count(), 4);
//! assert_eq!(validation.dataset().iter().count(), 30);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! `catalogue.rs` lists the data sets, `folder.rs` finds files or fetches them, `read.rs` reads
//! rows from them, `split.rs` parses `train[:80%]`, and `row_range.rs` is the stage for such a
//! piece.

mod catalogue;
mod folder;
mod one_hot;
mod read;
mod row_range;
mod split;

pub use catalogue::names;
pub use folder::{Folder, TableFormat};
pub use one_hot::one_hot;

use estimand_tensor::{BatchSpec, Error, Result};

use crate::Dataset;
use crate::source::loaded::Loaded as LoadedRows;
use catalogue::Entry;
use row_range::{Cut, RowRange};

/// Loads a data set that is embedded in the library, or lies in the folder that `ESTIMAND_DATA`
/// names.
///
/// The split is one of [`Info::splits`], or a piece of one in brackets: `train[:80%]`,
/// `train[80%:]`, `train[:1000]`. Pieces are cut from one fixed random order of the split's rows.
/// So pieces that do not overlap share no row, and each resembles the whole.
///
/// Reads nothing yet; files are read when rows are first needed.
pub fn load(name: &str, split: &str) -> Result<Loaded> {
    Loaded::new(name, split, Folder::from_env)
}

/// Facts about a data set that are known without reading it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// The name to load it by.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// Its origin, and its terms of use.
    pub origin: &'static str,
    /// The features, without the label.
    pub features: BatchSpec,
    /// The name of the label.
    pub label: &'static str,
    /// The names of the classes, indexed by label; empty if the label is a quantity.
    pub classes: &'static [&'static str],
    /// The splits and their numbers of rows, as published.
    pub splits: Vec<(&'static str, u64)>,
}

/// A data set: its rows, and facts about them.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The rows, with the label among the features.
    rows: Dataset,
    entry: &'static Entry,
    one_hot: bool,
}

impl Loaded {
    /// Calls `folder` only if the set is not embedded in the library.
    fn new(name: &str, split: &str, folder: impl FnOnce() -> Result<Folder>) -> Result<Loaded> {
        let entry = Entry::named(name)?;
        let (split, piece) = split::parse(entry, split)?;
        let folder = if split.is_embedded() { None } else { Some(folder()?) };
        let source = folder.as_ref().map_or("part of the library".to_string(), Folder::to_string);
        let description = format!("{} {}: {source}", entry.name, split.name);
        let named = folder.clone();
        let rows = LoadedRows::new(description, move || read::rows(entry, split, folder.as_ref()))
            .read_from(move || read::paths(entry, split, named.as_ref()));
        let rows = Dataset::new(rows);
        let rows = match piece {
            Some([from, to]) => Dataset::new(RowRange { input: rows, from, to }),
            None => rows,
        };
        Ok(Loaded { rows, entry, one_hot: false })
    }

    /// The rows, with the label separate from the features.
    pub fn dataset(&self) -> Dataset {
        let Entry { label, classes, .. } = *self.entry;
        let data = self.rows.label(label);
        if !self.one_hot {
            return data;
        }
        data.map(move |batch| one_hot::label_of(batch, label, classes.len()))
    }

    /// The facts that are known without reading.
    pub fn info(&self) -> Info {
        self.entry.info()
    }

    /// Converts labels to one-hot vectors, f32 `[n_classes]`: 1 for the class, 0 for the others.
    pub fn one_hot(self) -> Result<Loaded> {
        if self.entry.classes.is_empty() {
            return Err(Error::config(format!(
                "the label `{}` of {} is a quantity; expected classes",
                self.entry.label, self.entry.name
            ))
            .help("use the label as it is: only classes have a one-hot form"));
        }
        Ok(Loaded { one_hot: true, ..self })
    }

    /// Splits the rows into two parts that share no row. The second has this fraction of them. The
    /// result is always the same.
    pub fn validation_split(&self, fraction: f64) -> Result<(Loaded, Loaded)> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::config(format!(
                "the fraction of the validation split is {fraction}; expected more than 0 and less than 1"
            )));
        }
        let cut = Cut::Share(1.0 - fraction);
        let part =
            |from, to| Loaded { rows: Dataset::new(RowRange { input: self.rows.clone(), from, to }), ..self.clone() };
        Ok((part(Cut::BEGINNING, cut), part(cut, Cut::END)))
    }
}
