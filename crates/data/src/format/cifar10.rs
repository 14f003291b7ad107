//! CIFAR-10's binary files: each row is one label byte and an image of 32 x 32 pixels, with the
//! colour channels one after another.

use std::path::PathBuf;

use estimand_tensor::{Array, Batch, Error, Result};

use crate::rows::concat;
use crate::source::loaded::Loaded;
use crate::{Dataset, Files};

/// The height and width of an image.
const SIDE: usize = 32;
const COLOURS: usize = 3;
const PIXELS: usize = SIDE * SIDE;
const ROW: usize = 1 + PIXELS * COLOURS;

/// The names of the classes, indexed by label.
pub const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

impl Dataset {
    /// Creates a dataset from CIFAR-10's binary files, read one after another. Each row has `image`
    /// u8 `[32, 32, 3]` and `label` i64.
    pub fn from_cifar10(files: impl Into<Files>) -> Dataset {
        let files = files.into();
        let description = format!("cifar10: {files}");
        let named = files.clone();
        let load = move || {
            let of = |path: &PathBuf| from_bytes(&files.read(path)?).map_err(|e| e.in_file(path));
            concat(files.resolve()?.iter().map(of).collect::<Result<_>>()?)
        };
        Dataset::new(Loaded::new(description, load).read_from(move || Ok(named.resolve()?.to_vec())))
    }
}

/// Parses the images and labels in the bytes of a file.
pub fn from_bytes(bytes: &[u8]) -> Result<Batch> {
    let (rows, rest) = bytes.as_chunks::<ROW>();
    if !rest.is_empty() || rows.is_empty() {
        return Err(Error::data(format!("the file has {} bytes; expected a multiple of {ROW}", bytes.len()))
            .help("use the files of CIFAR-10's binary version, data_batch_1.bin and others"));
    }
    let mut labels = Vec::with_capacity(rows.len());
    let mut images = Vec::with_capacity(rows.len() * (ROW - 1));
    for (i, row) in rows.iter().enumerate() {
        let label = row[0];
        if usize::from(label) >= CLASSES.len() {
            return Err(Error::data(format!("the label of image {} is {label}; expected 0 to 9", i + 1)));
        }
        labels.push(i64::from(label));
        let planes = &row[1..];
        images.extend((0..PIXELS).flat_map(|pixel| (0..COLOURS).map(move |colour| planes[colour * PIXELS + pixel])));
    }
    Batch::new()
        .with_feature("image", Array::from_vec([rows.len(), SIDE, SIDE, COLOURS], images)?)?
        .with_feature("label", Array::from(labels))
}
