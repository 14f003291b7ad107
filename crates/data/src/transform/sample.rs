//! Samples elements from several datasets. The random order is a function of (seed, epoch) alone.

use estimand_tensor::random::{self, Key};
use estimand_tensor::{BatchSpec, Error, Result};

use crate::agreement::{check_specs, check_units, spec};
use crate::stage::{InputContext, PIECE, Stage, Stream};
use crate::transform::mixed::{Ahead, Mixed, MixedStream, Mixing};
use crate::{Dataset, Position};

impl Dataset {
    /// Draws every element from one of the datasets, chosen at random with these weights.
    ///
    /// With `stop_on_empty_dataset`, the result ends with the first dataset that ends, which keeps
    /// the proportions. Otherwise, the remaining datasets continue until all have ended. The choice
    /// for the i-th element depends only on the seeds and the epoch.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = |value: i64| Dataset::from_array(Array::from([value])).repeat_forever();
    /// let mixed = Dataset::sample_from_datasets([(data(0), 0.9), (data(1), 0.1)], 7, true);
    /// let batch = mixed.batch(1000).drop_remainder().iter().next().unwrap()?;
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

/// The stage of `sample_from_datasets`. The position holds the number of draws, 1 for each dataset
/// that was found to have ended, and the positions of the datasets.
struct Sample {
    inputs: Vec<Dataset>,
    weights: Vec<f64>,
    seed: u64,
    stop_on_empty_dataset: bool,
}

impl Stage for Sample {
    fn describe(&self) -> String {
        let stop = if self.stop_on_empty_dataset { ", stop_on_empty_dataset" } else { "" };
        let again = format!("going on reads up to {PIECE} rows of each open one again");
        format!("sample_from_datasets(weights {:?}, seed {}{stop}): {again}", self.weights, self.seed)
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
            let message = format!(
                "`sample_from_datasets` was given the weights {:?}; expected finite numbers of at least 0, not all 0",
                self.weights
            );
            return Err(Error::config(message));
        }
        Ok(())
    }

    fn spec(&self) -> Result<BatchSpec> {
        spec("sample_from_datasets", &self.inputs)
    }

    fn reshuffles(&self) -> bool {
        true
    }

    fn is_endless(&self) -> bool {
        let mut drawn = self.inputs.iter().zip(&self.weights).filter(|(_, weight)| **weight > 0.0);
        match self.stop_on_empty_dataset {
            true => drawn.all(|(input, _)| input.is_endless()),
            false => drawn.any(|(input, _)| input.is_endless()),
        }
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        check_specs("sample_from_datasets", &self.inputs)?;
        let n = self.inputs.len();
        let (words, below) = from.parts_of(1 + n, n)?;
        if words[0] > u64::MAX / 2 {
            return Err(Error::config(format!(
                "the position is after {} draws, which is more than a run can make",
                words[0]
            ))
            .help("resume with the plan that the position was taken from"));
        }
        let mut inputs = Vec::new();
        for ((input, from), &ended) in self.inputs.iter().zip(&below).zip(&words[1..]) {
            inputs.push(if ended == 0 { Some(Ahead::open(input, cx, from)?) } else { None });
        }
        let draws = Draws {
            sums: running_sums(&inputs, &self.weights),
            inputs,
            weights: self.weights.clone(),
            stop_on_empty_dataset: self.stop_on_empty_dataset,
            order: random::Stream::new(Key::new(cx.seed, &format!("sample_from_datasets/{}", self.seed)), cx.epoch),
            draw: words[0],
            drawn: (0, Vec::new()),
        };
        Ok(Box::new(MixedStream::new(draws, self.unit())))
    }
}

struct Draws {
    weights: Vec<f64>,
    stop_on_empty_dataset: bool,
    order: random::Stream,
    draw: u64,
    /// The first draw in the buffer, and the random numbers from it on.
    drawn: (u64, Vec<i64>),
    /// `None` for datasets that have ended.
    inputs: Vec<Option<Ahead>>,
    /// For each dataset that has not ended: its index, and the sum of the weights up to it.
    sums: Vec<(usize, f64)>,
}

/// The range of the random numbers: each draw is a fraction that `f64` holds exactly.
const STEPS: i64 = 1 << 53;

fn running_sums(inputs: &[Option<Ahead>], weights: &[f64]) -> Vec<(usize, f64)> {
    let open = inputs.iter().zip(weights).enumerate().filter(|(_, (input, weight))| input.is_some() && **weight > 0.0);
    open.scan(0.0, |sum, (which, (_, weight))| {
        *sum += weight;
        Some((which, *sum))
    })
    .collect()
}

impl Draws {
    /// The dataset that a draw chooses among those that have not ended; `None` if all have.
    fn choice(&mut self, draw: u64) -> Option<usize> {
        let (_, total) = *self.sums.last()?;
        let known = |drawn: &(u64, Vec<i64>)| {
            let i = usize::try_from(draw.checked_sub(drawn.0)?).ok()?;
            drawn.1.get(i).copied()
        };
        let step = known(&self.drawn).unwrap_or_else(|| {
            self.drawn = (draw, vec![0; PIECE]);
            self.order.fill_integers_i64(draw, 1, 0, STEPS, &mut self.drawn.1);
            self.drawn.1[0]
        });
        let place = step as f64 / STEPS as f64 * total;
        // Rounding may put the draw on the last sum.
        let i = self.sums.partition_point(|(_, sum)| *sum <= place).min(self.sums.len() - 1);
        Some(self.sums[i].0)
    }
}

impl Mixing for Draws {
    fn step(&mut self, want: usize, mixed: &mut Mixed) -> Result<bool> {
        let Some(which) = self.choice(self.draw) else { return Ok(false) };
        let Some(input) = &mut self.inputs[which] else { return Ok(false) };
        let available = input.available()?;
        let mut n = 1;
        while n < available.min(want) && self.choice(self.draw + n as u64) == Some(which) {
            n += 1;
        }
        match &mut self.inputs[which] {
            Some(input) if available > 0 => {
                mixed.add(which, input, n);
                self.draw += n as u64;
            }
            ended => {
                *ended = None;
                self.draw += 1;
                if self.stop_on_empty_dataset {
                    self.inputs.fill_with(|| None);
                }
                self.sums = running_sums(&self.inputs, &self.weights);
            }
        }
        Ok(true)
    }

    fn position(&self) -> Position {
        let ended = self.inputs.iter().map(|input| u64::from(input.is_none()));
        let words: Vec<u64> = std::iter::once(self.draw).chain(ended).collect();
        let below = self.inputs.iter().map(|input| input.as_ref().map_or_else(Position::default, Ahead::position));
        Position::new(words, below.collect::<Vec<_>>())
    }
}
