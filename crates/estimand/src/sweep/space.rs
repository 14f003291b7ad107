//! The values that a sweep tries: a grid of all combinations, or random samples.

use std::collections::HashSet;

use estimand_tensor::random::{Key, Stream};
use estimand_tensor::{Error, Result};

use crate::HParams;
use crate::hparams::Value;

/// A grid with more combinations is refused: it was probably not meant.
const MAX_GRID: usize = 10_000;
/// The number of draws for one new sample, after which sampling gives up.
const MAX_DRAWS: u64 = 1000;

/// The values of one parameter.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    Values(Vec<Value>),
    Uniform { low: f64, high: f64 },
    LogUniform { low: f64, high: f64 },
    Integers { low: i64, high: i64 },
}

impl Choice {
    fn check(&self) -> Result<()> {
        let ends = |low: f64, high: f64| match low.is_finite() && high.is_finite() && low <= high {
            true => Ok(()),
            false => Err(Error::config(format!("the range is {low} to {high}; expected two finite numbers in order"))),
        };
        match self {
            Choice::Values(values) if values.is_empty() => {
                Err(Error::config("no values were given").help("give over(..) at least one value"))
            }
            Choice::Values(values) => {
                let is_repeated = |i: usize| values[..i].contains(&values[i]);
                match (0..values.len()).find(|&i| is_repeated(i)) {
                    Some(i) => Err(Error::config(format!("the value {} was given twice", values[i]))),
                    None => Ok(()),
                }
            }
            Choice::Uniform { low, high } => ends(*low, *high),
            Choice::LogUniform { low, high } => {
                ends(*low, *high)?;
                match *low > 0.0 {
                    true => Ok(()),
                    false => Err(Error::config(format!("the range starts at {low}; a log-uniform range is positive"))
                        .help("use uniform(..), or a small positive number")),
                }
            }
            Choice::Integers { low, high } if low > high => {
                Err(Error::config(format!("the range is {low} to {high}, which is empty")))
            }
            // The generator draws below an end that is not included.
            Choice::Integers { high: i64::MAX, .. } => Err(Error::config("the range ends at the largest integer")),
            Choice::Integers { .. } => Ok(()),
        }
    }

    /// The value of one draw. It depends on nothing but the stream and the number of the draw.
    fn draw(&self, stream: &Stream, draw: u64) -> Value {
        let integer = |low: i64, high: i64| {
            let mut out = [0];
            stream.fill_integers_i64(draw, 1, low, high, &mut out);
            out[0]
        };
        let between = |low: f64, high: f64| {
            let mut out = [0.0];
            stream.fill_uniform_f32(draw, 1, &mut out);
            let share = f64::from(out[0]);
            low * (1.0 - share) + high * share
        };
        match self {
            Choice::Values(values) => values[integer(0, values.len() as i64) as usize].clone(),
            Choice::Integers { low, high } => Value::Int(integer(*low, *high + 1)),
            Choice::Uniform { low, high } => Value::Float(rounded(between(*low, *high)).clamp(*low, *high)),
            Choice::LogUniform { low, high } => {
                Value::Float(rounded(between(low.ln(), high.ln()).exp()).clamp(*low, *high))
            }
        }
    }
}

/// Rounds to four significant digits, so that a name of a folder can state the value exactly.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The parameters of a sweep with their values, in the order in which they were named.
#[derive(Clone, Debug, Default)]
pub(super) struct Space(Vec<(String, Choice)>);

impl Space {
    pub(super) fn add(&mut self, name: String, choice: Choice) {
        self.0.push((name, choice));
    }

    /// Returns an error unless every parameter has values and is named once.
    pub(super) fn check(&self) -> Result<()> {
        if self.0.is_empty() {
            return Err(
                Error::config("the sweep has no parameters").help("name one: over(\"learning_rate\", [0.01, 0.1])")
            );
        }
        let mut names = HashSet::new();
        for (name, choice) in &self.0 {
            choice.check().map_err(|e| e.context(format!("in parameter `{name}` of the sweep")))?;
            if name.is_empty() || !names.insert(name) {
                return Err(Error::config(format!(
                    "the sweep has two parameters named `{name}`, or one without a name"
                )));
            }
        }
        Ok(())
    }

    /// Returns the number of combinations; `None` if there is a range or if they cannot be counted.
    fn n_combinations(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, (_, choice)| match choice {
            Choice::Values(values) => n.checked_mul(values.len()),
            _ => None,
        })
    }

    /// Returns all combinations. The last parameter changes fastest.
    pub(super) fn grid(&self) -> Result<Vec<HParams>> {
        let mut all = vec![HParams::new()];
        for (name, choice) in &self.0 {
            let Choice::Values(values) = choice else {
                return Err(Error::config(format!("parameter `{name}` is a range, but a grid needs values"))
                    .help("draw from the range with samples(n), or list values with over(..)"));
            };
            if all.len().saturating_mul(values.len()) > MAX_GRID {
                return Err(Error::config(format!("the grid has more than {MAX_GRID} combinations"))
                    .help("try some of them with samples(n)"));
            }
            let with = |params: &HParams| -> Vec<HParams> {
                values.iter().map(|value| params.clone().set(name, value.clone())).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        Ok(all)
    }

    /// Returns `n` different random combinations. More samples of the same seed begin with the same
    /// ones.
    pub(super) fn samples(&self, n: usize, seed: u64) -> Result<Vec<HParams>> {
        if n == 0 {
            return Err(Error::config("the sweep has 0 samples; expected at least 1"));
        }
        let too_few = |found: usize| {
            Error::config(format!("{n} samples were asked for, but only {found} combinations were found"))
                .help("ask for fewer, or leave samples(..) out to try all combinations")
        };
        if let Some(all) = self.n_combinations().filter(|&all| all < n) {
            return Err(too_few(all));
        }
        let stream = |name: &str| Stream::new(Key::new(seed, name), 0);
        let streams: Vec<_> = self.0.iter().map(|(name, choice)| (name, choice, stream(name))).collect();
        let (mut all, mut known, mut n_misses): (Vec<HParams>, _, u64) = (Vec::new(), HashSet::new(), 0);
        for draw in 0.. {
            let params = streams
                .iter()
                .fold(HParams::new(), |params, (name, choice, stream)| params.set(*name, choice.draw(stream, draw)));
            if known.insert(params.to_string()) {
                all.push(params);
                n_misses = 0;
            } else {
                n_misses += 1;
            }
            if all.len() == n {
                break;
            }
            if n_misses > MAX_DRAWS * n as u64 {
                return Err(too_few(all.len()));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(choices: impl IntoIterator<Item = (&'static str, Choice)>) -> Space {
        Space(choices.into_iter().map(|(name, choice)| (name.to_string(), choice)).collect())
    }

    fn values<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Choice {
        Choice::Values(values.into_iter().map(Into::into).collect())
    }

    fn texts(all: &[HParams]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_grid_has_all_combinations_in_order() {
        let grid = space([("rate", values([0.1, 1.0])), ("units", values([vec![8], vec![16, 8]]))]).grid().unwrap();
        let expected = ["rate=0.1,units=[8]", "rate=0.1,units=[16,8]", "rate=1.0,units=[8]", "rate=1.0,units=[16,8]"];
        assert_eq!(texts(&grid), expected);
    }

    #[test]
    fn samples_are_different_within_their_ranges_and_keep_their_beginning() {
        let all = space([
            ("rate", Choice::LogUniform { low: 1e-4, high: 1e-1 }),
            ("dropout", Choice::Uniform { low: 0.0, high: 0.5 }),
            ("depth", Choice::Integers { low: 1, high: 3 }),
            ("rule", values(["adam", "sgd"])),
        ]);
        let twenty = all.samples(200, 7).unwrap();
        assert_eq!(all.samples(50, 7).unwrap(), twenty[..50]);
        assert_ne!(all.samples(50, 8).unwrap(), twenty[..50]);
        let mut depths = HashSet::new();
        let (mut below, mut n_low) = (0, 0);
        for params in &twenty {
            let (rate, dropout) = (params.f64("rate").unwrap(), params.f64("dropout").unwrap());
            assert!((1e-4..=1e-1).contains(&rate) && (0.0..=0.5).contains(&dropout), "{params}");
            assert!(format!("{rate}").trim_start_matches(['0', '.']).len() <= 5, "{rate}");
            below += usize::from(rate < 10f64.powf(-2.5));
            n_low += usize::from(dropout < 0.25);
            depths.insert(params.i64("depth").unwrap());
            assert!(["adam", "sgd"].contains(&params.str("rule").unwrap()));
        }
        // Half of the logarithms and half of the numbers: binomial, 100 with a deviation of 7.
        assert!((65..=135).contains(&below) && (65..=135).contains(&n_low), "{below} {n_low}");
        assert_eq!(depths, HashSet::from([1, 2, 3]));
        let known: HashSet<String> = texts(&twenty).into_iter().collect();
        assert_eq!(known.len(), 200);
    }

    /// Asking for as many samples as there are combinations finds all of them.
    #[test]
    fn samples_of_lists_are_without_replacement() {
        let all = space([("a", values([1, 2, 3])), ("b", values([true, false]))]);
        let mut drawn = texts(&all.samples(6, 0).unwrap());
        let mut grid = texts(&all.grid().unwrap());
        drawn.sort();
        grid.sort();
        assert_eq!(drawn, grid);
        let error = all.samples(7, 0).unwrap_err().to_string();
        assert!(error.starts_with("7 samples were asked for, but only 6 combinations were found"), "{error}");
        let narrow = space([("a", Choice::Uniform { low: 1.0, high: 1.0 })]).samples(2, 0).unwrap_err().to_string();
        assert!(narrow.contains("only 1 combinations"), "{narrow}");
    }

    #[test]
    fn bad_spaces_are_refused() {
        let cases = [
            (space([]), "the sweep has no parameters"),
            (space([("a", values([0i32; 0]))]), "no values were given\n  in parameter `a` of the sweep"),
            (space([("a", values([1, 1]))]), "the value 1 was given twice"),
            (space([("a", values([1])), ("a", values([2]))]), "two parameters named `a`"),
            (space([("a", Choice::Uniform { low: 1.0, high: 0.0 })]), "the range is 1 to 0; expected two finite"),
            (space([("a", Choice::Uniform { low: f64::NAN, high: 0.0 })]), "the range is NaN to 0"),
            (
                space([("a", Choice::LogUniform { low: 0.0, high: 1.0 })]),
                "starts at 0; a log-uniform range is positive",
            ),
            (space([("a", Choice::Integers { low: 2, high: 1 })]), "the range is 2 to 1, which is empty"),
        ];
        for (space, expected) in cases {
            let error = space.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let range = space([("a", Choice::Uniform { low: 0.0, high: 1.0 })]);
        let error = range.grid().unwrap_err().to_string();
        assert!(error.starts_with("parameter `a` is a range, but a grid needs values\n  help: draw"), "{error}");
        let many = space([("a", values(0..101)), ("b", values(0..101))]).grid().unwrap_err().to_string();
        assert!(many.contains("more than 10000 combinations"), "{many}");
    }
}
