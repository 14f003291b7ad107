//! The options of `bucket_by_sequence_length`: its buckets, and the padding of their rows.

use std::sync::Arc;

use estimand_tensor::{Batch, BatchSpec, Error, Feature, Result};

use crate::transform::padded_batch::Pad;

/// Returns the length of each row of a batch.
type LengthFn = dyn Fn(&Batch) -> Result<Vec<usize>> + Send + Sync;

/// The buckets of rows that are batched together. Bucket i has the rows whose length is at least
/// boundary i - 1 and less than boundary i.
#[derive(Clone)]
#[must_use]
pub struct Buckets {
    length: Arc<LengthFn>,
    boundaries: Vec<usize>,
    pub(crate) batch_sizes: Vec<usize>,
    /// `None` keeps ragged features ragged.
    pad: Option<Pad>,
    pad_to_bucket_boundary: bool,
    pub(crate) drop_remainder: bool,
}

impl Buckets {
    /// Buckets by the number of values in a ragged feature's row. The boundaries ascend, and there
    /// is one more batch size than boundaries.
    pub fn by_feature(
        name: impl Into<String>,
        boundaries: impl Into<Vec<usize>>,
        batch_sizes: impl Into<Vec<usize>>,
    ) -> Buckets {
        let name = name.into();
        Buckets::by(move |batch| row_lengths(batch, &name), boundaries, batch_sizes)
    }

    /// Buckets by the length that a function computes. The function gets any number of rows and
    /// returns one length per row.
    pub fn by(
        length: impl Fn(&Batch) -> Result<Vec<usize>> + Send + Sync + 'static,
        boundaries: impl Into<Vec<usize>>,
        batch_sizes: impl Into<Vec<usize>>,
    ) -> Buckets {
        Buckets {
            length: Arc::new(length),
            boundaries: boundaries.into(),
            batch_sizes: batch_sizes.into(),
            pad: Some(Pad::new()),
            pad_to_bucket_boundary: false,
            drop_remainder: false,
        }
    }

    /// The padding of ragged features. By default, zeros up to the longest row of the batch.
    pub fn pad(mut self, pad: Pad) -> Buckets {
        self.pad = Some(pad);
        self
    }

    /// Keeps ragged features ragged. By default, they are padded.
    pub fn no_padding(mut self) -> Buckets {
        self.pad = None;
        self
    }

    /// Pads to one less than the bucket's boundary, so that batches have few different sizes. A row
    /// at least as long as the last boundary is then an error. By default, rows are padded to the
    /// longest row of the batch.
    pub fn pad_to_bucket_boundary(mut self, yes: bool) -> Buckets {
        self.pad_to_bucket_boundary = yes;
        self
    }

    /// Leaves out the last batch of each bucket if it is not full. By default, it is kept.
    pub fn drop_remainder(mut self) -> Buckets {
        self.drop_remainder = true;
        self
    }

    pub(crate) fn describe(&self) -> String {
        let Buckets { boundaries, batch_sizes, drop_remainder, pad_to_bucket_boundary, pad, .. } = self;
        let pad = pad.as_ref().map_or_else(|| "no padding".to_string(), Pad::describe);
        let to = if *pad_to_bucket_boundary { " to boundaries" } else { "" };
        let drop = if *drop_remainder { ", drop_remainder" } else { "" };
        format!("boundaries {boundaries:?}, batch sizes {batch_sizes:?}, {pad}{to}{drop}")
    }

    pub(crate) fn check(&self) -> Result<()> {
        let Buckets { boundaries, batch_sizes, pad, .. } = self;
        let error = |message: String| Err(Error::config(format!("`bucket_by_sequence_length` was given {message}")));
        if batch_sizes.len() != boundaries.len() + 1 {
            let n = batch_sizes.len();
            return error(format!(
                "{} boundaries and {n} batch sizes; expected one batch size more than boundaries",
                boundaries.len()
            ));
        }
        if boundaries.first() == Some(&0) || !boundaries.is_sorted_by(|a, b| a < b) {
            return error(format!("the boundaries {boundaries:?}; expected increasing numbers of at least 1"));
        }
        if batch_sizes.contains(&0) {
            return error(format!("the batch sizes {batch_sizes:?}; expected at least 1 each"));
        }
        pad.as_ref().map_or(Ok(()), Pad::check)
    }

    pub(crate) fn spec(&self, spec: BatchSpec) -> BatchSpec {
        match &self.pad {
            Some(pad) => pad.spec(spec),
            None => spec,
        }
    }

    /// Returns the bucket of each row.
    pub(crate) fn of(&self, batch: &Batch) -> Result<Vec<usize>> {
        let place = "in the lengths for `bucket_by_sequence_length`";
        let lengths = (self.length)(batch).map_err(|e| e.context(place))?;
        if lengths.len() != batch.n_rows() {
            let message = format!(
                "the function returned {} lengths for {} rows; expected one for each row",
                lengths.len(),
                batch.n_rows()
            );
            return Err(Error::shape(message).context(place));
        }
        Ok(lengths.iter().map(|length| self.boundaries.partition_point(|boundary| boundary <= length)).collect())
    }

    /// The size to pad the rows of a bucket to; `None` pads to the longest row.
    pub(crate) fn padded_size(&self, bucket: usize) -> Result<Option<usize>> {
        match (self.pad_to_bucket_boundary && self.pad.is_some(), self.boundaries.get(bucket)) {
            (false, _) => Ok(None),
            (true, Some(boundary)) => Ok(Some(boundary - 1)),
            (true, None) => {
                let last = self.boundaries.last().copied().unwrap_or(0);
                Err(Error::shape(format!("a row has the length {last} or more, so there is no boundary to pad it to"))
                    .help("add a boundary above the longest row, or do not pad to boundaries"))
            }
        }
    }

    /// Pads a batch before it is yielded.
    pub(crate) fn finish(&self, batch: Batch, bucket: usize) -> Result<Batch> {
        match &self.pad {
            Some(pad) => pad.apply(&batch, self.padded_size(bucket)?),
            None => Ok(batch),
        }
    }
}

fn row_lengths(batch: &Batch, name: &str) -> Result<Vec<usize>> {
    match batch.feature(name)? {
        Feature::Ragged(ragged) => {
            Ok(ragged.row_splits().windows(2).map(|ends| (ends[1] - ends[0]) as usize).collect())
        }
        Feature::Dense(_) => Err(Error::shape(format!(
            "feature `{name}` is dense, so all its rows have one length; expected a ragged feature"
        ))
        .help("name a ragged feature, or give a function that returns the lengths")),
    }
}
