//! `pad_sequences`: sequences of different lengths as one array.

use estimand_tensor::{Array, Element, Error, Result, element_count};

/// Pads sequences to one length, as `tf.keras.utils.pad_sequences`.
///
/// ```
/// use estimand::keras::{Side, pad_sequences};
///
/// let rows = [vec![1i64], vec![2, 3], vec![4, 5, 6]];
/// assert_eq!(pad_sequences(&rows).array()?.as_slice::<i64>()?, [0, 0, 1, 0, 2, 3, 4, 5, 6]);
/// let post = pad_sequences(&rows).maxlen(2).padding(Side::Post).value(-1).array()?;
/// assert_eq!(post.as_slice::<i64>()?, [1, -1, 2, 3, 5, 6]);
/// # Ok::<(), estimand::prelude::Error>(())
/// ```
pub fn pad_sequences<T: Element, S: AsRef<[T]>>(sequences: &[S]) -> PadSequences<T> {
    PadSequences {
        rows: sequences.iter().map(|row| row.as_ref().to_vec()).collect(),
        maxlen: None,
        padding: Side::Pre,
        truncating: Side::Pre,
        value: T::default(),
    }
}

/// The end of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before the first step.
    Pre,
    /// After the last step.
    Post,
}

/// Sequences on their way to an array. Made by [`pad_sequences`].
#[derive(Clone, Debug)]
#[must_use]
pub struct PadSequences<T> {
    rows: Vec<Vec<T>>,
    maxlen: Option<usize>,
    padding: Side,
    truncating: Side,
    value: T,
}

impl<T: Element> PadSequences<T> {
    /// The length of all rows. By default that of the longest sequence.
    pub fn maxlen(mut self, maxlen: usize) -> PadSequences<T> {
        self.maxlen = Some(maxlen);
        self
    }

    /// Where short sequences are filled. By default before their first step.
    pub fn padding(mut self, side: Side) -> PadSequences<T> {
        self.padding = side;
        self
    }

    /// Where long sequences are cut. By default before their last steps.
    pub fn truncating(mut self, side: Side) -> PadSequences<T> {
        self.truncating = side;
        self
    }

    /// The value that fills. By default 0.
    pub fn value(mut self, value: T) -> PadSequences<T> {
        self.value = value;
        self
    }

    /// The array `[sequences, maxlen]`.
    pub fn array(self) -> Result<Array> {
        let length = self.maxlen.unwrap_or_else(|| self.rows.iter().map(Vec::len).max().unwrap_or(0));
        let dims = [self.rows.len(), length];
        let mut all = Vec::new();
        all.try_reserve_exact(element_count(&dims)?).map_err(|_| {
            Error::shape(format!("there is not enough memory for {} sequences of {length} steps", dims[0]))
                .help("choose a smaller maxlen")
        })?;
        for row in &self.rows {
            let kept = match self.truncating {
                Side::Pre => &row[row.len().saturating_sub(length)..],
                Side::Post => &row[..row.len().min(length)],
            };
            let fill = std::iter::repeat_n(self.value, length - kept.len());
            match self.padding {
                Side::Pre => all.extend(fill.chain(kept.iter().copied())),
                Side::Post => all.extend(kept.iter().copied().chain(fill)),
            }
        }
        Array::from_vec(dims, all)
    }
}
