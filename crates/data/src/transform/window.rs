//! Slides windows over rows. Each window is a row with one more axis.

use std::collections::VecDeque;

use estimand_tensor::{Array, Batch, BatchSpec, Error, Feature, FeatureSpec, Ragged, Result};

use crate::rows::{concat, gather, map_features, slice};
use crate::stage::{InputContext, PIECE, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

impl Dataset {
    /// Makes windows of `size` rows: window i has the rows `i * shift`, `i * shift + stride`, and
    /// so on.
    ///
    /// A window is one row whose features have one more axis, for the rows of the window. It is the
    /// result of `flat_map(lambda w: w.batch(size))` on tf.data's windows. With
    /// [`drop_remainder`](Dataset::drop_remainder), all windows are whole and the features dense,
    /// `[size, ..]`. Without it, the last windows are shorter, so all features are ragged.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let series = Dataset::from_array(Array::from([1i64, 2, 3, 4, 5])).window(3, 1, 1).drop_remainder().batch(2);
    /// let expected = Array::from_vec([2, 3], vec![1i64, 2, 3, 2, 3, 4])?;
    /// assert_eq!(series.iter().next().unwrap()?.features()[""], expected.into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn window(&self, size: usize, shift: usize, stride: usize) -> Dataset {
        let shape = Shape { size, shift, stride, drop_remainder: false };
        Dataset::new(Window { input: self.clone(), shape })
    }
}

/// The stage of `window`. The position holds the number of rows to skip before the next window,
/// counted from the input's position, and that position.
struct Window {
    input: Dataset,
    shape: Shape,
}

#[derive(Clone, Copy)]
struct Shape {
    size: usize,
    shift: usize,
    stride: usize,
    drop_remainder: bool,
}

impl Shape {
    /// The number of rows from a window's first row to its last.
    fn span(&self) -> u64 {
        (self.size.saturating_sub(1) as u64).saturating_mul(self.stride as u64).saturating_add(1)
    }
}

impl Stage for Window {
    fn describe(&self) -> String {
        let Shape { size, shift, stride, drop_remainder } = self.shape;
        let drop = if drop_remainder { ", drop_remainder" } else { "" };
        let again = self.shape.span().saturating_add(PIECE as u64);
        format!("window({size}, shift {shift}, stride {stride}{drop}): going on reads up to {again} rows again")
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn check(&self) -> Result<()> {
        let Shape { size, shift, stride, .. } = self.shape;
        if size == 0 || shift == 0 || stride == 0 {
            let message = format!(
                "`window` was given the size {size}, shift {shift} and stride {stride}; expected at least 1 each"
            );
            return Err(Error::config(message));
        }
        match self.input.unit() {
            Unit::Row => Ok(()),
            Unit::Batch => {
                Err(Error::config("`window` was given batches; expected rows").help("put `batch` after `window`"))
            }
        }
    }

    fn without_remainder(&self) -> Option<Dataset> {
        let shape = Shape { drop_remainder: true, ..self.shape };
        Some(Dataset::new(Window { input: self.input.clone(), shape }))
    }

    fn spec(&self) -> Result<BatchSpec> {
        let mut spec = self.input.spec()?;
        for (name, feature) in &mut spec {
            *feature = match &*feature {
                FeatureSpec::Dense { dtype, dims, .. } if self.shape.drop_remainder => {
                    FeatureSpec::dense(*dtype, [&[self.shape.size], &dims[..]].concat())
                }
                FeatureSpec::Dense { dtype, .. } => FeatureSpec::ragged(*dtype),
                FeatureSpec::Ragged { .. } | FeatureSpec::Padded { .. } => return Err(nested(name)),
            };
        }
        Ok(spec)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([next], [below]) = from.parts()?;
        if next > (PIECE + self.shape.shift) as u64 {
            return Err(Error::config(format!(
                "the position is {next} rows before a window, but a window begins every {} rows",
                self.shape.shift
            ))
            .help("resume with the plan that the position was taken from"));
        }
        Ok(Box::new(WindowStream {
            input: self.input.stage().open(cx, below)?,
            shape: self.shape,
            anchors: VecDeque::from([(0, below.clone())]),
            held: Batch::new(),
            held_from: 0,
            n_read: 0,
            next,
            ended: false,
        }))
    }
}

struct WindowStream {
    input: Box<dyn Stream>,
    shape: Shape,
    /// Row numbers and positions where pieces begin: the last one before the next window, and all
    /// later ones. Never empty.
    anchors: VecDeque<(u64, Position)>,
    /// The rows from number `held_from` to `n_read`, counted from where reading began.
    held: Batch,
    held_from: u64,
    n_read: u64,
    /// The first row of the next window.
    next: u64,
    ended: bool,
}

impl WindowStream {
    /// Reads up to row `end`, and drops the rows before the next window.
    fn read(&mut self, end: u64) -> Result<()> {
        let mut pieces = vec![std::mem::take(&mut self.held)];
        while self.n_read < end && !self.ended {
            let want = usize::try_from(end - self.n_read).map_or(PIECE, |left| left.min(PIECE));
            let Some(StreamItem { batch, after }) = self.input.pull(want)? else {
                self.ended = true;
                break;
            };
            let n_rows = batch.n_rows();
            let old = self.next.saturating_sub(self.n_read).min(n_rows as u64);
            if (old as usize) < n_rows {
                pieces.push(slice(&batch, old as usize..n_rows)?);
            }
            self.n_read += n_rows as u64;
            self.anchors.push_back((self.n_read, after));
        }
        pieces.retain(|piece| piece.n_rows() > 0);
        self.held = concat(pieces)?;
        self.held_from = self.n_read - self.held.n_rows() as u64;
        Ok(())
    }

    /// The rows of the window that begins at `start`, as indices into `held`.
    fn rows_of(&self, start: u64) -> impl Iterator<Item = u64> + use<> {
        let (stride, n_read, base) = (self.shape.stride as u64, self.n_read, self.held_from);
        let numbers = (0..self.shape.size as u64).map(move |j| start.saturating_add(j.saturating_mul(stride)));
        numbers.take_while(move |&row| row < n_read).map(move |row| row - base)
    }

    /// Moves to the window that begins at row `next`.
    fn advance(&mut self, next: u64) -> Result<()> {
        let old = next.saturating_sub(self.held_from).min(self.held.n_rows() as u64) as usize;
        self.held = slice(&self.held, old..self.held.n_rows())?;
        (self.held_from, self.next) = (self.held_from + old as u64, next);
        while self.anchors.get(1).is_some_and(|(row, _)| *row <= next) {
            self.anchors.pop_front();
        }
        Ok(())
    }
}

impl Stream for WindowStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let (span, shift) = (self.shape.span(), self.shape.shift as u64);
        let n = want.min((PIECE / self.shape.size).max(1)) as u64;
        let start = |i: u64| i.saturating_mul(shift);
        self.read(self.next.saturating_add(start(n - 1)).saturating_add(span))?;
        let needed = if self.shape.drop_remainder { span } else { 1 };
        let starts: Vec<u64> = (0..n)
            .map(|i| self.next.saturating_add(start(i)))
            .take_while(|first| first.saturating_add(needed) <= self.n_read)
            .collect();
        let Some(&last) = starts.last() else { return Ok(None) };
        let (mut rows, mut ends) = (Vec::new(), vec![0]);
        for first in &starts {
            rows.extend(self.rows_of(*first));
            ends.push(rows.len() as i64);
        }
        let batch = stack(&gather(&self.held, &rows)?, &ends, self.shape)?;
        self.advance(last.saturating_add(shift))?;
        let Some((row, below)) = self.anchors.front() else {
            return Err(Error::internal("windows without a place to read from"));
        };
        Ok(Some(StreamItem { batch, after: Position::new([self.next - row], [below.clone()]) }))
    }
}

/// Stacks the rows of each window into one row. `ends` are the row splits of the windows.
fn stack(rows: &Batch, ends: &[i64], shape: Shape) -> Result<Batch> {
    if rows.weights().is_some() {
        return Err(Error::unsupported("`window` was given rows with weights").help("use `weights` after `window`"));
    }
    let one = |name: &str, feature: &Feature| -> Result<Feature> {
        let Feature::Dense(array) = feature else { return Err(nested(name)) };
        if shape.drop_remainder {
            let dims = [&[ends.len() - 1, shape.size], &array.dims()[1..]].concat();
            return Ok(Array::reshape(array, dims)?.into());
        }
        Ok(Ragged::new(array.clone(), ends)?.into())
    };
    map_features(rows, one)
}

fn nested(name: &str) -> Error {
    Error::unsupported(format!("feature `{name}` is ragged, and windows of it would be ragged in two axes"))
        .help("leave it out, or make it dense before `window`")
}
