//! Elements of several datasets in a random order that is a function of (seed, epoch) alone.

use estimand_tensor::random::{self, Key};
use estimand_tensor::{BatchSpec, Error, Result};

use crate::agreement::{check_specs, check_units, spec};
use crate::rows::count;
use crate::stage::{InputContext, Item, Stage, Stream, Unit};
use crate::{Dataset, Position};

impl Dataset {
    /// Draws every element from one of the datasets, chosen at random with these weights.
    ///
    /// When a dataset ends, so does the result if `stop_on_empty_dataset`, which keeps the proportions; otherwise the others
    /// go on until all have ended. Which dataset the i-th element is from depends on the seeds and the epoch alone.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = |value: i64| Dataset::from_array(Array::from([value])).repeat_forever();
    /// let mixed = Dataset::sample_from_datasets([(data(0), 0.9), (data(1), 0.1)], 7, true);
    /// let batch = mixed.batch(1000, true).iter().next().unwrap()?;
    /// let estimand_tensor::Feature::Dense(values) = batch.feature("")? else { unreachable!() };
    /// let ones: i64 = values.as_slice::<i64>()?.iter().sum();
    /// assert!((70..130).contains(&ones));
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn sample_from_datasets(
        datasets: impl IntoIterator<Item = (Dataset, f64)>,
        seed: u64,
        stop_on_empty_dataset: bool,
    ) -> Dataset {
        let (inputs, weights) = datasets.into_iter().unzip();
        Dataset::new(Sample { inputs, weights, seed, stop_on_empty_dataset })
    }
}

/// The position is the number of draws, 1 for each dataset that was found to have ended, and those of the datasets.
struct Sample {
    inputs: Vec<Dataset>,
    weights: Vec<f64>,
    seed: u64,
    stop_on_empty_dataset: bool,
}

impl Stage for Sample {
    fn describe(&self) -> String {
        let stop = if self.stop_on_empty_dataset { ", stop_on_empty_dataset" } else { "" };
        format!("sample_from_datasets(weights {:?}, seed {}{stop})", self.weights, self.seed)
    }

    fn identity(&self, cx: &InputContext) -> String {
        format!("{}, in a run of seed {}", self.describe(), cx.seed)
    }

    fn inputs(&self) -> &[Dataset] {
        &self.inputs
    }

    fn check(&self) -> Result<()> {
        check_units("sample_from_datasets", &self.inputs)?;
        let total: f64 = self.weights.iter().sum();
        if self.weights.iter().any(|weight| weight.is_nan() || *weight < 0.0) || total <= 0.0 || total.is_infinite() {
            let message = format!("`sample_from_datasets` with the weights {:?}", self.weights);
            return Err(Error::config(message).help("expected finite numbers from 0 on, not all of them 0"));
        }
        Ok(())
    }

    fn spec(&self) -> Result<BatchSpec> {
        spec("sample_from_datasets", &self.inputs)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        check_specs("sample_from_datasets", &self.inputs)?;
        let n = self.inputs.len();
        let (words, below) = from.parts_of(1 + n, n)?;
        let mut streams = Vec::new();
        for ((input, from), &ended) in self.inputs.iter().zip(&below).zip(&words[1..]) {
            streams.push(if ended == 0 { Some(input.stage().open(cx, from)?) } else { None });
        }
        Ok(Box::new(SampleStream {
            unit: self.unit(),
            weights: self.weights.clone(),
            stop_on_empty_dataset: self.stop_on_empty_dataset,
            order: random::Stream::new(Key::new(cx.seed, &format!("sample_from_datasets/{}", self.seed)), cx.epoch),
            draw: words[0],
            streams,
            below,
        }))
    }
}

struct SampleStream {
    unit: Unit,
    weights: Vec<f64>,
    stop_on_empty_dataset: bool,
    order: random::Stream,
    draw: u64,
    /// `None` once it has ended.
    streams: Vec<Option<Box<dyn Stream>>>,
    below: Vec<Position>,
}

impl SampleStream {
    /// Which of the datasets that have not ended a draw chooses.
    fn choice(&self, draw: u64) -> Option<usize> {
        const STEPS: i64 = 1 << 53;
        let open = || self.streams.iter().zip(&self.weights).enumerate().filter(|(_, (s, w))| s.is_some() && **w > 0.0);
        let total: f64 = open().map(|(_, (_, weight))| weight).sum();
        let mut step = [0];
        self.order.fill_integers_i64(draw, 1, 0, STEPS, &mut step);
        let mut left = step[0] as f64 / STEPS as f64 * total;
        let chosen = open().find(|(_, (_, weight))| {
            left -= **weight;
            left < 0.0
        });
        // Rounding may leave a rest behind the last.
        chosen.or_else(|| open().next_back()).map(|(i, _)| i)
    }
}

impl Stream for SampleStream {
    fn pull(&mut self, want: usize) -> Result<Option<Item>> {
        while let Some(which) = self.choice(self.draw) {
            let mut n = 1;
            while self.unit == Unit::Row && n < want && self.choice(self.draw.wrapping_add(n as u64)) == Some(which) {
                n += 1;
            }
            let Some(stream) = &mut self.streams[which] else { break };
            if let Some(Item { batch, after }) = stream.pull(n)? {
                self.draw = self.draw.wrapping_add(count(self.unit, &batch));
                self.below[which] = after;
                let ended = self.streams.iter().map(|stream| u64::from(stream.is_none()));
                let words: Vec<u64> = std::iter::once(self.draw).chain(ended).collect();
                return Ok(Some(Item { batch, after: Position::new(words, self.below.clone()) }));
            }
            self.streams[which] = None;
            self.draw = self.draw.wrapping_add(1);
            if self.stop_on_empty_dataset {
                self.streams.fill_with(|| None);
            }
        }
        Ok(None)
    }
}
