//! The input of a training, which the model folder keeps: the features, the files that they come
//! from, and the first rows. Exports are checked with these rows, and carry them.
//!
//! `training_rows.json` is written before a checkpoint, and rows belong to the step that used them.
//! A training that continues at an earlier step forgets later rows, so the file does not depend on
//! kills. `json.rs` writes and reads it.

mod json;

pub(crate) use json::specs_to_json;

use std::path::{Path, PathBuf};

use estimand_checkpoint as checkpoint;
use estimand_data::slice_rows;
use estimand_tensor::{Array, Batch, BatchSpec, DType, Error, Feature, Result, warn};

use crate::model_folder::read_up_to;

/// The most bytes of rows that are kept.
const MAX_ROW_BYTES: usize = 1 << 20;
/// The most bytes of the file. One mebibyte of rows has fewer as JSON.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most files that are listed.
const MAX_FILES: usize = 1000;

/// What a model folder keeps of the training's input.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TrainingRows {
    /// The features of a batch.
    pub(crate) features: BatchSpec,
    /// The files that rows were read from.
    pub(crate) files: Vec<InputFile>,
    /// The number of files, which may be more than are listed.
    pub(crate) n_files: usize,
    /// The first rows, without labels, by the step that used them.
    pub(crate) pieces: Vec<(u64, Batch)>,
}

/// A file of the input, as it was when the training began.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) n_bytes: u64,
}

impl TrainingRows {
    /// Reads the file of a model folder, if there is one.
    pub(crate) fn read(folder: &Path) -> Result<Option<TrainingRows>> {
        let path = path(folder);
        let Some(bytes) = read_up_to(&path, MAX_FILE_BYTES)? else { return Ok(None) };
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::data(format!("the file has more than {MAX_FILE_BYTES} bytes")).in_file(&path));
        }
        json::parse(&bytes).map(Some).map_err(|e| e.in_file(&path))
    }

    /// The input of a training, without rows yet.
    pub(crate) fn new(features: BatchSpec, paths: &[PathBuf]) -> TrainingRows {
        let file = |path: &PathBuf| {
            let n_bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
            InputFile { path: path.clone(), n_bytes }
        };
        let files = paths.iter().take(MAX_FILES).map(file).collect();
        TrainingRows { features, files, n_files: paths.len(), pieces: Vec::new() }
    }

    fn n_rows(&self) -> usize {
        self.pieces.iter().map(|(_, rows)| rows.n_rows()).sum()
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("training_rows.json")
}

/// Collects the first rows of a running training.
pub(crate) struct KeptRows {
    folder: PathBuf,
    rows: TrainingRows,
    n_wanted: usize,
    is_full: bool,
    is_written: bool,
}

impl KeptRows {
    /// Begins or continues to collect. `step` is the step that the training continues after; rows
    /// of later steps come again. Rows of other features are discarded.
    pub(crate) fn begin(folder: &Path, input: TrainingRows, step: u64, n_wanted: usize) -> KeptRows {
        let known = TrainingRows::read(folder).unwrap_or_else(|error| {
            warn!("The rows that the model folder keeps cannot be read, and are collected again: {error}");
            None
        });
        let mut kept =
            KeptRows { folder: folder.to_path_buf(), rows: input, n_wanted, is_full: false, is_written: false };
        if let Some(mut known) = known.filter(|known| known.features == kept.rows.features && n_wanted > 0) {
            let n_pieces = known.pieces.len();
            known.pieces.retain(|(of, _)| *of <= step);
            kept.is_written = known.pieces.len() == n_pieces;
            kept.rows = known;
        }
        kept.is_full = kept.rows.n_rows() >= n_wanted || kept.size() >= MAX_ROW_BYTES;
        kept
    }

    /// Adds the rows of a step, unless there are enough.
    #[inline]
    pub(crate) fn add(&mut self, step: u64, batch: &Batch) -> Result<()> {
        if self.is_full { Ok(()) } else { self.keep(step, batch) }
    }

    fn keep(&mut self, step: u64, batch: &Batch) -> Result<()> {
        let n_left = self.n_wanted - self.rows.n_rows();
        let row_bytes = size(batch) / batch.n_rows().max(1);
        let n_fit = MAX_ROW_BYTES.saturating_sub(self.size()) / row_bytes.max(1);
        let n = n_left.min(n_fit).min(batch.n_rows());
        let mut rows = Batch::new();
        for (name, feature) in slice_rows(batch, 0..n)?.features() {
            rows = rows.with_feature(name, feature.clone())?;
        }
        if n > 0 {
            self.rows.pieces.push((step, rows));
            self.is_written = false;
        }
        self.is_full = n == n_left || n == n_fit;
        Ok(())
    }

    /// Writes the file if it has changed.
    pub(crate) fn save(&mut self) -> Result<()> {
        if !self.is_written {
            checkpoint::write_text(path(&self.folder), &json::text(&self.rows)?)?;
            self.is_written = true;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.rows.pieces.iter().map(|(_, rows)| size(rows)).sum()
    }
}

/// The number of bytes of the features.
fn size(batch: &Batch) -> usize {
    let array = |array: &Array| match array.dtype() {
        DType::Str => array.strings().map_or(0, |texts| texts.map(|text| text.len() + 8).sum()),
        dtype => array.len() * dtype.size(),
    };
    let feature = |feature: &Feature| match feature {
        Feature::Dense(dense) => array(dense),
        Feature::Ragged(ragged) => array(ragged.values()) + 8 * ragged.row_splits().len(),
    };
    batch.features().values().map(feature).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimand_data::specs_of;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-kept-rows-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn batch(first: i64) -> Batch {
        let labelled = Batch::new().with_feature("id", Array::from([first, first + 1, first + 2])).unwrap();
        labelled.with_label("y", Array::from([1f32, 2.0, 3.0])).unwrap()
    }

    fn input() -> TrainingRows {
        TrainingRows::new(specs_of(&batch(0)).0, &[])
    }

    fn ids(folder: &Path) -> Vec<i64> {
        let kept = TrainingRows::read(folder).unwrap().unwrap();
        let of = |(_, rows): &(u64, Batch)| {
            assert!(rows.labels().is_empty());
            rows.feature("id").unwrap().dense().unwrap().as_slice::<i64>().unwrap().to_vec()
        };
        kept.pieces.iter().flat_map(of).collect()
    }

    /// Three rows a step, seven wanted: steps 1, 2 and one row of step 3. The training is killed
    /// behind step 2, whose rows were written, and continues after the checkpoint of step 1.
    #[test]
    fn a_kill_does_not_change_the_rows() {
        let folder = folder("kill");
        let mut kept = KeptRows::begin(&folder, input(), 0, 7);
        for (step, first) in [(1, 0), (2, 3)] {
            kept.add(step, &batch(first)).unwrap();
            kept.save().unwrap();
        }
        drop(kept);
        assert_eq!(ids(&folder), [0, 1, 2, 3, 4, 5]);
        let mut kept = KeptRows::begin(&folder, input(), 1, 7);
        for (step, first) in [(2, 3), (3, 6), (4, 9)] {
            kept.add(step, &batch(first)).unwrap();
        }
        kept.save().unwrap();
        assert_eq!(ids(&folder), [0, 1, 2, 3, 4, 5, 6]);
        let mut kept = KeptRows::begin(&folder, input(), 4, 7);
        kept.add(5, &batch(100)).unwrap();
        kept.save().unwrap();
        assert_eq!(ids(&folder), [0, 1, 2, 3, 4, 5, 6]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn other_features_or_a_damaged_file_begin_anew() {
        let folder = folder("anew");
        let mut kept = KeptRows::begin(&folder, input(), 0, 2);
        kept.add(1, &batch(0)).unwrap();
        kept.save().unwrap();
        let other = Batch::new().with_feature("word", Array::from_strings([1], ["a"]).unwrap()).unwrap();
        let mut kept = KeptRows::begin(&folder, TrainingRows::new(specs_of(&other).0, &[]), 9, 2);
        kept.add(10, &other).unwrap();
        kept.save().unwrap();
        assert_eq!(TrainingRows::read(&folder).unwrap().unwrap().pieces, [(10, other)]);
        std::fs::write(path(&folder), "{").unwrap();
        let mut kept = KeptRows::begin(&folder, input(), 9, 2);
        kept.add(10, &batch(7)).unwrap();
        kept.save().unwrap();
        assert_eq!(ids(&folder), [7, 8]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Rows of 300,000 bytes: three fit into a mebibyte.
    #[test]
    fn large_rows_are_limited_by_their_bytes() {
        let folder = folder("large");
        let images = Batch::new().with_feature("image", Array::zeros(DType::U8, [5, 300_000]).unwrap()).unwrap();
        let mut kept = KeptRows::begin(&folder, TrainingRows::new(specs_of(&images).0, &[]), 0, 32);
        kept.add(1, &images).unwrap();
        kept.add(2, &images).unwrap();
        assert_eq!(kept.rows.n_rows(), 3);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
