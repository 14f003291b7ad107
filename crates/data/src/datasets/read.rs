//! Reads the rows of a split from its files.

use std::path::PathBuf;

use estimand_tensor::{Array, Batch, Error, Result};

use super::catalogue::{Column, Entry, Format, SetFile, Split};
use super::folder::{Folder, TableFormat};
use crate::rows::{collect, concat};
use crate::{Csv, Files, InputContext, Position, cifar10, idx, npz};

/// Reads all rows of a split. `folder` is `None` only if the split is embedded in the library.
pub(super) fn rows(entry: &Entry, split: &Split, folder: Option<&Folder>) -> Result<Batch> {
    if let Some(SetFile::Embedded(bytes)) = split.files.first() {
        return npz_rows(bytes);
    }
    let paths = paths(entry, split, folder)?;
    match (entry.format, paths.as_slice()) {
        (Format::Idx, [images, labels]) => idx_rows(entry, images, labels),
        (Format::Cifar10, paths) => {
            let of = |path: &PathBuf| cifar10::from_bytes(&Files::new(path).read(path)?).map_err(|e| e.in_file(path));
            concat(paths.iter().map(of).collect::<Result<_>>()?)
        }
        (Format::Table, [path]) => table_rows(entry, path, folder.and_then(|folder| folder.format_of(path))),
        (Format::Npz | Format::Idx | Format::Table, _) => Err(Error::internal(format!(
            "the data set {} has files that its format does not expect: {paths:?}",
            entry.name
        ))),
    }
}

/// Finds the files of a split. One that is embedded has none.
pub(super) fn paths(entry: &Entry, split: &Split, folder: Option<&Folder>) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for file in split.files {
        match (file, folder) {
            (SetFile::Embedded(_), _) => {}
            (SetFile::Published(name, digest), Some(folder)) => paths.push(folder.find(entry, name, *digest)?),
            (SetFile::Published(..), None) => return Err(Error::internal("a published file and no folder")),
        }
    }
    Ok(paths)
}

fn npz_rows(bytes: &[u8]) -> Result<Batch> {
    npz::from_bytes(bytes)?.into_iter().try_fold(Batch::new(), |rows, (name, array)| rows.with_feature(&name, array))
}

/// The rows of a CSV file, or of one in another format.
fn table_rows(entry: &Entry, path: &PathBuf, format: Option<TableFormat>) -> Result<Batch> {
    let spec = entry.table_spec()?;
    let data = match format {
        Some(format) => (format.read)(path, &spec),
        None => Csv::new(path).select(spec.keys()).features(spec.clone()).dataset(),
    };
    let mut stream = data.open(&InputContext::default(), &Position::default())?;
    let rows = collect(&mut *stream, usize::MAX)?;
    Ok(rows.ok_or_else(|| Error::data("the file has no rows").in_file(path))?.batch)
}

/// Reads images, with an axis for their one channel, and labels as i64.
fn idx_rows(entry: &Entry, images: &PathBuf, labels: &PathBuf) -> Result<Batch> {
    let [Column(image, _, dims), Column(label, ..)] = entry.columns else {
        return Err(Error::internal(format!("the data set {} does not have two columns", entry.name)));
    };
    let pixels = idx::read(images)?;
    let pixels = match pixels.dims() {
        [n, sides @ ..] if *sides == dims[..2] => pixels.reshape([&[*n], *dims].concat())?,
        found => {
            return Err(Error::data(format!(
                "the file holds an array of the shape {found:?}; expected images of the shape {:?}",
                &dims[..2]
            ))
            .in_file(images));
        }
    };
    let classes = idx::read(labels)?;
    let classes = classes.as_slice::<u8>().map_err(|e| e.in_file(labels))?;
    if let Some(row) = classes.iter().position(|&class| usize::from(class) >= entry.classes.len()) {
        let message =
            format!("the label in row {} is {}; expected 0 to {}", row + 1, classes[row], entry.classes.len() - 1);
        return Err(Error::data(message).in_file(labels));
    }
    let classes: Vec<i64> = classes.iter().map(|&class| i64::from(class)).collect();
    let rows = Batch::new().with_feature(image, pixels)?.with_feature(label, Array::from(classes));
    rows.map_err(|e| e.in_file(labels))
}
