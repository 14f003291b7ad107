//! Reads several datasets in turn, a block of each.

use estimand_tensor::{BatchSpec, Error, Result};

use crate::agreement::{check_specs, check_units, spec};
use crate::stage::{InputContext, PIECE, Stage, Stream};
use crate::transform::mixed::{Ahead, Mixed, MixedStream, Mixing};
use crate::{Dataset, Position};

impl Dataset {
    /// Reads `cycle_length` datasets at a time, in turn, `block_length` elements from each. When a
    /// dataset ends, the next one that was not read yet takes its place. The order is tf.data's
    /// deterministic order.
    ///
    /// To interleave files, make a dataset of each:
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::{DType, FeatureSpec};
    /// let spec = [("x", FeatureSpec::dense(DType::F32, [4]))];
    /// let files = ["a.tfrecord", "b.tfrecord", "c.tfrecord"];
    /// let data = Dataset::interleave(files.map(|file| Dataset::from_tfrecord(file, spec.clone())), 2, 16);
    /// assert!(data.explain().starts_with("interleave(3 datasets, cycle_length 2, block_length 16)"));
    /// ```
    pub fn interleave(datasets: impl IntoIterator<Item = Dataset>, cycle_length: usize, block_length: u64) -> Dataset {
        Dataset::new(Interleave { inputs: datasets.into_iter().collect(), cycle_length, block_length })
    }
}

/// The stage of `interleave`. The position holds the place in the cycle whose turn it is, the
/// elements yielded of its block, the next dataset, and for each place the number of its dataset,
/// counted from 1, or 0 if it is empty; and the positions of these datasets.
struct Interleave {
    inputs: Vec<Dataset>,
    cycle_length: usize,
    block_length: u64,
}

impl Stage for Interleave {
    fn describe(&self) -> String {
        let Interleave { inputs, cycle_length, block_length } = self;
        let again = format!("going on reads up to {PIECE} rows of each open one again");
        let n = inputs.len();
        format!("interleave({n} datasets, cycle_length {cycle_length}, block_length {block_length}): {again}")
    }

    fn inputs(&self) -> &[Dataset] {
        &self.inputs
    }

    fn check(&self) -> Result<()> {
        if self.cycle_length == 0 || self.block_length == 0 {
            let message =
                format!("a cycle_length of {} and a block_length of {}", self.cycle_length, self.block_length);
            return Err(Error::config(format!("`interleave` was given {message}; expected at least 1 each")));
        }
        check_units("interleave", &self.inputs)
    }

    fn spec(&self) -> Result<BatchSpec> {
        spec("interleave", &self.inputs)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        check_specs("interleave", &self.inputs)?;
        let n = self.inputs.len();
        let n_places = self.cycle_length.min(n);
        let (words, below) = from.parts_of(3 + n_places, n_places)?;
        let within = |word: u64, end: usize| usize::try_from(word).ok().filter(|&word| word < end);
        let foreign = || {
            Error::config("the position does not belong to the datasets of `interleave`")
                .help("resume with the plan that the position was taken from")
        };
        let mut places = Vec::new();
        for (&word, from) in words[3..].iter().zip(below) {
            let number = within(word, n + 1).ok_or_else(foreign)?;
            places.push(match number.checked_sub(1) {
                None => None,
                Some(number) => Some((number, Ahead::open(&self.inputs[number], cx, &from)?)),
            });
        }
        let turns = Turns {
            block_length: self.block_length,
            cx: *cx,
            place: within(words[0], n_places).ok_or_else(foreign)?,
            given: Some(words[1]).filter(|&given| given < self.block_length).ok_or_else(foreign)?,
            next: within(words[2], n + 1).ok_or_else(foreign)?,
            places,
            inputs: self.inputs.clone(),
        };
        Ok(Box::new(MixedStream::new(turns, self.unit())))
    }
}

struct Turns {
    inputs: Vec<Dataset>,
    block_length: u64,
    cx: InputContext,
    /// The place in the cycle whose turn it is.
    place: usize,
    /// The elements of its block already yielded.
    given: u64,
    /// The first dataset that was not opened yet.
    next: usize,
    /// For each place, the number of its dataset, and its rows.
    places: Vec<Option<(usize, Ahead)>>,
}

impl Turns {
    fn turn(&mut self) {
        (self.place, self.given) = ((self.place + 1) % self.places.len(), 0);
    }
}

impl Mixing for Turns {
    fn step(&mut self, want: usize, mixed: &mut Mixed) -> Result<bool> {
        if let Some((number, input)) = &mut self.places[self.place] {
            let available = input.available()?;
            if available > 0 {
                let left = usize::try_from(self.block_length - self.given).unwrap_or(usize::MAX);
                let n = want.min(left).min(available);
                mixed.add(*number, input, n);
                self.given += n as u64;
                if self.given == self.block_length {
                    self.turn();
                }
            } else {
                // TF: the place is filled again only when its turn comes next; pinned by
                // fixtures/pipelines.jsonl.
                self.places[self.place] = None;
                self.turn();
            }
        } else if let Some(input) = self.inputs.get(self.next) {
            self.places[self.place] = Some((self.next, Ahead::open(input, &self.cx, &Position::default())?));
            self.next += 1;
        } else if self.places.iter().all(Option::is_none) {
            return Ok(false);
        } else {
            self.turn();
        }
        Ok(true)
    }

    fn position(&self) -> Position {
        let mut words = vec![self.place as u64, self.given, self.next as u64];
        words.extend(self.places.iter().map(|place| place.as_ref().map_or(0, |(number, _)| *number as u64 + 1)));
        let below =
            self.places.iter().map(|place| place.as_ref().map_or_else(Position::default, |(_, p)| p.position()));
        Position::new(words, below.collect::<Vec<_>>())
    }
}
