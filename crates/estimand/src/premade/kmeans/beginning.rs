//! The first centers: given, or chosen from the input before the first step.

use std::fmt;
use std::sync::Arc;

use estimand_tensor::random::{Key, Stream};
use estimand_tensor::{Array, DType, Error, Result};

use super::Settings;
use super::first_centers::initial_values;
use super::parallel::Parallel;
use super::plus_plus::plus_plus;
use super::points::{Draws, Points};
use crate::from_input::{InputInitializer, Wants};

/// How the first centers are chosen.
#[derive(Clone, Debug)]
pub enum InitialClusters {
    /// Rows of the first batch, drawn without repetition. If it has fewer rows than there are
    /// clusters, all of them are taken, and the others come from the next batches.
    Random,
    /// k-means++: rows of the first batch, each drawn by its squared distance to the centers so
    /// far. The batch must have at least as many rows as there are clusters.
    KMeansPlusPlus,
    /// k-means||: candidates are drawn in a few passes over the input, each row by its squared
    /// distance to the candidates so far. k-means++ then chooses among the candidates, which count
    /// by the number of their rows. TensorFlow has no such choice.
    KMeansParallel {
        /// The number of passes that draw candidates: 5 is usual. Each draws twice as many as there
        /// are clusters.
        rounds: usize,
        /// The number of rows that a pass reads at most, from the beginning of the input.
        max_rows: usize,
    },
    /// These centers, `[clusters, features]`.
    Given(Array),
    /// Up to the missing number of centers, chosen from a batch by a function.
    Chosen(ChooseCenters),
}

/// A function that chooses centers: it gets the points of a batch `[rows, features]` and the number
/// of centers that are missing, and returns up to that number of rows. It is called with batch
/// after batch until no center is missing.
#[derive(Clone)]
pub struct ChooseCenters(Arc<Choose>);

type Choose = dyn Fn(&Array, usize) -> Result<Array> + Send + Sync;

impl fmt::Debug for ChooseCenters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChooseCenters(..)")
    }
}

impl InitialClusters {
    /// Centers that a function chooses from batches: see [`ChooseCenters`].
    pub fn from_fn(choose: impl Fn(&Array, usize) -> Result<Array> + Send + Sync + 'static) -> InitialClusters {
        InitialClusters::Chosen(ChooseCenters(Arc::new(choose)))
    }

    pub(super) fn check(&self, n_clusters: usize) -> Result<()> {
        match self {
            InitialClusters::Given(array) => {
                if array.rank() != 2 || array.dims()[0] != n_clusters {
                    let text = format!("initial_clusters is {:?}; expected [{n_clusters}, features]", array.dims());
                    return Err(Error::shape(text).help("give one row for each of the clusters of KMeans::new"));
                }
                if !array.dtype().is_number() {
                    let text = format!("initial_clusters is {}; expected numbers", array.dtype());
                    return Err(Error::dtype(Some(DType::F32), array.dtype(), text).help("convert the centers to f32"));
                }
                match array.to_f64_vec()?.iter().find(|value| !(**value as f32).is_finite()) {
                    Some(value) => Err(Error::config(format!("initial_clusters holds {value}; expected finite f32"))
                        .help("correct the centers, or let k-means choose them with InitialClusters::KMeansPlusPlus")),
                    None => Ok(()),
                }
            }
            InitialClusters::KMeansParallel { rounds: 0, .. } => {
                Err(Error::config("KMeansParallel was given 0 rounds; expected at least 1").help("5 is usual"))
            }
            InitialClusters::KMeansParallel { max_rows, .. } if *max_rows < n_clusters => {
                let text = format!("KMeansParallel reads {max_rows} rows, and there are {n_clusters} clusters");
                Err(Error::config(text).help("let it read at least one row for each cluster"))
            }
            InitialClusters::Random
            | InitialClusters::KMeansPlusPlus
            | InitialClusters::KMeansParallel { .. }
            | InitialClusters::Chosen(_) => Ok(()),
        }
    }
}

impl From<Array> for InitialClusters {
    fn from(centers: Array) -> InitialClusters {
        InitialClusters::Given(centers)
    }
}

/// Chooses the first centers from batches.
pub(super) struct Chooser {
    settings: Settings,
    names: &'static [&'static str],
    draws: Draws,
    width: usize,
    chosen: Vec<f32>,
    parallel: Option<Parallel>,
}

impl Chooser {
    /// Returns `None` if the centers are given.
    pub(super) fn new(settings: &Settings, names: &'static [&'static str]) -> Option<Chooser> {
        let parallel = match settings.initial_clusters {
            InitialClusters::Given(_) => return None,
            InitialClusters::KMeansParallel { rounds, max_rows } => {
                Some(Parallel::new(settings.n_clusters, rounds, max_rows))
            }
            InitialClusters::Random | InitialClusters::KMeansPlusPlus | InitialClusters::Chosen(_) => None,
        };
        let (settings, draws) = (settings.clone(), Draws::new(0));
        Some(Chooser { settings, names, draws, width: 1, chosen: Vec::new(), parallel })
    }

    /// The number of missing centers.
    fn n_missing(&self) -> usize {
        self.settings.n_clusters - self.chosen.len() / self.width
    }

    fn take(&mut self, points: Points<'_>, rows: impl IntoIterator<Item = usize>) {
        rows.into_iter().for_each(|row| self.chosen.extend_from_slice(points.row(row)));
    }

    fn choose(&mut self, points: Points<'_>, batch: &Array) -> Result<()> {
        let (n, n_missing) = (points.len(), self.n_missing());
        match &self.settings.initial_clusters {
            InitialClusters::Random => {
                let order = Stream::new(Key::new(self.draws.below(1 << 52) as u64, "kmeans/rows"), 0);
                let order = order.permutation(n as u64);
                self.take(points, (0..n.min(n_missing) as u64).map(|i| order.at(i) as usize));
                Ok(())
            }
            InitialClusters::KMeansPlusPlus => {
                if n < n_missing {
                    let text =
                        format!("k-means++ chooses {n_missing} centers from the first batch, which has {n} rows");
                    return Err(Error::config(text)
                        .help("make batches larger, or begin with InitialClusters::Random or KMeansParallel"));
                }
                let rows = plus_plus(points, None, n_missing, self.settings.num_retries, &mut self.draws);
                self.take(points, rows);
                Ok(())
            }
            InitialClusters::Chosen(ChooseCenters(choose)) => {
                let centers = choose(batch, n_missing)?;
                match centers.dims() {
                    &[n, width] if n <= n_missing && width == self.width => {}
                    dims => {
                        let (width, text) = (self.width, "the function of initial_clusters returned");
                        let text = format!("{text} {dims:?}; expected at most {n_missing} rows of {width} numbers");
                        return Err(Error::shape(text).help("return rows of the batch that it is given, or fewer"));
                    }
                }
                let centers = centers.to_f64_vec()?.into_iter().map(|value| value as f32).collect::<Vec<_>>();
                let centers = Array::from_vec([centers.len() / self.width, self.width], centers)?;
                self.chosen.extend_from_slice(Points::of(&centers)?.values);
                Ok(())
            }
            InitialClusters::KMeansParallel { .. } | InitialClusters::Given(_) => {
                Err(Error::internal("these centers are not chosen from one batch"))
            }
        }
    }

    fn done(&self, centers: Vec<f32>) -> Result<Wants> {
        let centers = Array::from_vec([self.settings.n_clusters, self.width], centers)?;
        Ok(Wants::Done(initial_values(self.names, self.settings.first_centers(&centers)?)))
    }
}

impl InputInitializer for Chooser {
    fn begin(&mut self, seed: u64) {
        self.draws = Draws::new(self.settings.seed.unwrap_or(seed));
    }

    fn batch(&mut self, values: &Array) -> Result<Wants> {
        let points = Points::of(values)?;
        self.width = points.width;
        if let Some(parallel) = &mut self.parallel {
            return match parallel.batch(points, &mut self.draws)? {
                true => self.end(),
                false => Ok(Wants::Next),
            };
        }
        self.choose(points, values)?;
        match self.n_missing() {
            0 => {
                let chosen = std::mem::take(&mut self.chosen);
                self.done(chosen)
            }
            _ => Ok(Wants::Next),
        }
    }

    fn end(&mut self) -> Result<Wants> {
        if let Some(parallel) = &mut self.parallel {
            return match parallel.end_of_pass(self.settings.num_retries, &mut self.draws)? {
                Some(centers) => self.done(centers),
                None => Ok(Wants::Restart),
            };
        }
        let (n, chosen) = (self.settings.n_clusters, self.chosen.len() / self.width);
        Err(Error::config(format!("the input has ended, and only {chosen} of {n} centers are chosen"))
            .help("give more rows, or ask for fewer clusters"))
    }
}
