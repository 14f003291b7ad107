//! Rows that are fed after the dataset was made: `tf.placeholder` with an initializable iterator.

use std::sync::{Arc, PoisonError, RwLock};

use estimand_tensor::{Array, Batch, BatchSpec, Error, Feature, FeatureSpec, Result};

use super::memory;
use crate::rows;
use crate::stage::{Indexed, InputContext, Stage, Stream};
use crate::{Dataset, Position};

/// The numbers of rows of zeros that a first batch is tried with. A dataset that drops batches
/// which are not full needs many.
const N_ZEROS: [usize; 3] = [1, 1 << 10, 1 << 16];

/// Arrays of a dataset that are fed later, by a hook of the run.
///
/// It is for programs that are ported from TensorFlow 1, where arrays went into placeholders and an
/// `IteratorInitializerHook` fed them once the session was there. A new program gives its arrays to
/// [`Dataset::from_arrays`]. Neither copies them.
///
/// Make them in the input function, so that each run has its own. Until they are fed, reading the
/// dataset is an error. The positions of the dataset are those of `from_arrays`.
///
/// ```
/// # use estimand_data::Placeholders;
/// # use estimand_tensor::Array;
/// let (images, labels) = (Array::from_vec([2, 3], vec![0f32; 6])?, Array::from([4i64, 9]));
/// let placeholders = Placeholders::like([("image", &images), ("label", &labels)]);
/// let data = placeholders.dataset().label("label").batch(2);
/// assert!(data.iter().next().unwrap().is_err(), "not fed yet");
/// placeholders.feed([("image", images), ("label", labels)])?;
/// assert_eq!(data.iter().next().unwrap()?.labels()["label"], Array::from([4i64, 9]).into());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Placeholders(Arc<Fed>);

#[derive(Debug)]
struct Fed {
    /// The features, or the mistake in them.
    spec: Result<BatchSpec>,
    rows: RwLock<Option<Arc<Batch>>>,
}

impl Placeholders {
    /// Makes placeholders with these names and formats of a row.
    pub fn new<N: Into<String>>(features: impl IntoIterator<Item = (N, FeatureSpec)>) -> Placeholders {
        let mut spec = Ok(BatchSpec::new());
        for (name, feature) in features {
            let name = name.into();
            spec = spec.and_then(|mut spec: BatchSpec| match spec.insert(name.clone(), feature) {
                None => Ok(spec),
                Some(_) => Err(Error::config(format!("there are two placeholders named `{name}`"))
                    .help("give them different names")),
            });
        }
        Placeholders(Arc::new(Fed { spec, rows: RwLock::default() }))
    }

    /// Makes placeholders for arrays like these. The number of rows may differ.
    pub fn like<'a, N: Into<String>>(arrays: impl IntoIterator<Item = (N, &'a Array)>) -> Placeholders {
        let spec = |array: &Array| FeatureSpec::dense(array.dtype(), array.dims().get(1..).unwrap_or_default());
        Placeholders::new(arrays.into_iter().map(|(name, array)| (name, spec(array))))
    }

    /// Returns a dataset of the rows that will be fed.
    pub fn dataset(&self) -> Dataset {
        Dataset::new(self.clone())
    }

    /// Feeds the arrays, which replaces earlier ones. The dataset shares their memory.
    pub fn feed<N: AsRef<str>, F: Into<Feature>>(&self, arrays: impl IntoIterator<Item = (N, F)>) -> Result<()> {
        let place = |error: Error| error.context("in the arrays that were fed to placeholders");
        self.checked(arrays).map(|rows| self.set(Some(rows))).map_err(place)
    }

    fn checked<N: AsRef<str>, F: Into<Feature>>(&self, arrays: impl IntoIterator<Item = (N, F)>) -> Result<Batch> {
        let spec = self.0.spec.as_ref().map_err(Error::clone)?;
        let mut rows = Batch::new();
        for (name, array) in arrays {
            let (name, array) = (name.as_ref(), array.into());
            let Some(wanted) = spec.get(name) else {
                return Err(Error::unknown("placeholder", name, spec.keys().map(String::as_str)));
            };
            rows = rows.with_feature(name, array)?;
            let found = rows::spec_of(&rows).shift_remove(name);
            if found.as_ref() != Some(wanted) {
                let found = found.as_ref().map_or_else(String::new, described);
                let wanted = described(wanted);
                return Err(Error::config(format!("`{name}` was fed rows of {found}; its placeholder is {wanted}"))
                    .help("make the placeholder with the type and the row shape of the array: Placeholders::like"));
            }
        }
        match spec.keys().find(|name| !rows.features().contains_key(name.as_str())) {
            Some(name) => Err(Error::config(format!("placeholder `{name}` was not fed"))
                .help("feed all placeholders of the dataset in one call")),
            None => Ok(rows),
        }
    }

    fn set(&self, rows: Option<Batch>) {
        *self.0.rows.write().unwrap_or_else(PoisonError::into_inner) = rows.map(Arc::new);
    }

    fn rows(&self) -> Option<Arc<Batch>> {
        self.0.rows.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn names(&self) -> String {
        let names = self.0.spec.iter().flat_map(BatchSpec::keys);
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }

    /// TF: `FailedPreconditionError`, "The iterator has not been initialized". (fixture
    /// `iterator_initializer`)
    fn fed(&self) -> Result<Arc<Batch>> {
        self.rows().ok_or_else(|| {
            Error::config(format!("the iterator has not been initialized: nothing was fed to {}", self.names())).help(
                "pass the IteratorInitializerHook of the input function to the run that reads it: TrainSpec::hook, \
                 EvalSpec::hook, PredictSpec::hook, Experiment::train_hook or Experiment::eval_hook",
            )
        })
    }

    /// Feeds rows of zeros and empty strings, which only show what batches look like.
    fn feed_zeros(&self, n: usize) -> Result<()> {
        let mut rows = Batch::new();
        for (name, spec) in self.0.spec.as_ref().map_err(Error::clone)? {
            let FeatureSpec::Dense { dtype, dims, .. } = spec else {
                return Err(Error::unsupported(format!(
                    "placeholder `{name}` is {}; expected a dense feature",
                    described(spec)
                ))
                .help("feed dense arrays, or make the dataset with Dataset::from_arrays"));
            };
            rows = rows.with_feature(name, Array::zeros(*dtype, [&[n], &dims[..]].concat())?)?;
        }
        self.set(Some(rows));
        Ok(())
    }
}

/// A format of rows in messages: the type, and the shape of a row.
fn described(spec: &FeatureSpec) -> String {
    match spec {
        FeatureSpec::Dense { dtype, dims, .. } => format!("{dtype} {dims:?}"),
        FeatureSpec::Ragged { dtype } => format!("ragged {dtype}"),
        FeatureSpec::Padded { dtype, dims, .. } => format!("padded {dtype} {dims:?}"),
    }
}

impl Dataset {
    /// Whether it reads placeholders that were not fed yet.
    pub fn awaits_feeding(&self) -> bool {
        self.placeholders().iter().any(|found| found.rows().is_none())
    }

    fn placeholders(&self) -> Vec<Placeholders> {
        let own = self.stage().placeholders().cloned();
        own.into_iter().chain(self.stage().inputs().iter().flat_map(Dataset::placeholders)).collect()
    }

    /// Returns what a first batch looks like before placeholders are fed: made from rows of zeros.
    pub fn batch_of_zeros(&self, cx: &InputContext) -> Result<Batch> {
        if self.stage().has_incomplete_cache() {
            return Err(Error::unsupported("a cache is filled from placeholders, which are fed in each run anew")
                .help("leave `cache` out, or make the dataset with Dataset::from_arrays"));
        }
        let unfed: Vec<Placeholders> = self.placeholders().into_iter().filter(|found| found.rows().is_none()).collect();
        let mut first = Ok(None);
        for n in N_ZEROS {
            first = unfed.iter().try_for_each(|found| found.feed_zeros(n)).and_then(|()| {
                // The plan remembers its spec, which later questions to it need.
                self.spec().and_then(|_| self.open(cx, &Position::default())?.pull(1))
            });
            unfed.iter().for_each(|found| found.set(None));
            if !matches!(first, Ok(None)) {
                break;
            }
        }
        let place = "in rows of zeros, which stand for the placeholders until they are fed";
        let first = first.map_err(|e| e.context(place))?;
        first.map(|item| item.batch).ok_or_else(|| {
            let most = N_ZEROS[N_ZEROS.len() - 1];
            Error::config(format!("{most} rows of zeros make no batch, so it is not known what batches look like"))
                .help("filter the arrays before they are fed, and use smaller batches")
        })
    }
}

impl Stage for Placeholders {
    fn describe(&self) -> String {
        format!("arrays: fed later to {}", self.names())
    }

    fn check(&self) -> Result<()> {
        match &self.0.spec {
            Err(error) => Err(error.clone()),
            Ok(spec) if spec.is_empty() => {
                Err(Error::config("the dataset has no placeholders").help("name at least one"))
            }
            Ok(_) => Ok(()),
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.0.spec.clone()
    }

    fn placeholders(&self) -> Option<&Placeholders> {
        Some(self)
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        Some(self)
    }

    fn open(&self, _cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        memory::open((*self.fed()?).clone(), from)
    }
}

impl Indexed for Placeholders {
    fn n_rows(&self) -> Result<u64> {
        self.fed().map(|rows| rows.n_rows() as u64)
    }

    fn gather(&self, numbers: &[u64]) -> Result<Batch> {
        self.gather_into(numbers, Batch::new())
    }

    fn gather_into(&self, numbers: &[u64], spare: Batch) -> Result<Batch> {
        rows::gather_into(&*self.fed()?, numbers, spare)
    }
}
