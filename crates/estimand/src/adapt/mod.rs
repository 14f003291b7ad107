//! `adapt`: columns learn from data before a model is trained. One pass over the rows collects
//! statistics. The results are then fixed in the columns, and so in training, export and serving.
//! `learnt.rs` stores them in the model folder.

mod layers;
mod learnt;
mod summary;

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use estimand_data::statistics::{NumberStatistics, Role};
use estimand_data::{Dataset, Statistics};
use estimand_graph::meaning::Listed;
use estimand_nn::column::{
    BucketizedColumn, NumericColumn, TermList, VocabularyListColumn, bucketized_column,
    categorical_column_with_vocabulary_list,
};
use estimand_tensor::{Error, Result};
use tracing::info;

pub use layers::Adapt;
use learnt::Answers;
pub(crate) use summary::{read_statistics, statistics_to_json};

/// Reads all rows of a dataset once, on all cores, and collects the statistics that columns learn
/// from. Use the training set; otherwise the model would know its evaluation data.
///
/// ```
/// use estimand::prelude::*;
/// use estimand::adapt;
///
/// let train = Dataset::from_arrays([
///     ("age", Array::from([20f32, 30.0, 40.0, 50.0])),
///     ("job", Array::from_strings([4], ["clerk", "farmer", "clerk", ""])?),
/// ]);
/// let adapted = adapt(&train)?;
/// let columns: [FeatureColumn; 3] = [
///     adapted.z_score(numeric_column("age"))?.into(),
///     adapted.bucketized(&numeric_column("age"), 4)?.into(),
///     indicator_column(adapted.vocabulary("job", 1_000)?.n_oov_buckets(1)).into(),
/// ];
/// assert_eq!(columns[2].dense().map(|c| c.dims()), Some(vec![3])); // clerk, farmer, others
/// # Ok::<(), Error>(())
/// ```
pub fn adapt(data: &Dataset) -> Result<Adapted> {
    Ok(Adapted::new(data.statistics()?))
}

/// Same as [`adapt`], but once per model folder: the results are stored in `adapted.json` there,
/// and the next run reads them.
///
/// Weights that were trained with one vocabulary have no meaning under another. If a program is run
/// again on changed data, it must not learn its columns again. This function ensures that: ids,
/// boundaries and normalisation stay unchanged. Only values that the folder does not have yet, such
/// as those of a column added to the program, are learned from the data, which is then read.
/// [`Adapted::anew`] discards the values in the folder.
///
/// ```
/// use estimand::prelude::*;
/// use estimand::adapt_once;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-adapt-once-{}", std::process::id()));
/// let rows = |jobs: [&str; 3]| Ok::<_, Error>(Dataset::from_arrays([("job", Array::from_strings([3], jobs)?)]));
/// let first = adapt_once(&folder, &rows(["cook", "cook", "clerk"])?)?.vocabulary("job", 10)?;
/// let second = adapt_once(&folder, &rows(["clerk", "clerk", "cook"])?)?.vocabulary("job", 10)?;
/// assert_eq!(format!("{:?}", first.terms()?), format!("{:?}", second.terms()?));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub fn adapt_once(model_dir: impl Into<PathBuf>, data: &Dataset) -> Result<Adapted> {
    Adapted::in_folder(model_dir.into(), Some(data.clone()))
}

/// The statistics of one pass over a dataset, from which columns are made. Made by [`adapt`] and
/// [`adapt_once`].
#[derive(Debug)]
pub struct Adapted {
    /// Computed on first use.
    statistics: OnceLock<Statistics>,
    data: Option<Dataset>,
    folder: Option<PathBuf>,
    answers: Mutex<Answers>,
}

impl Adapted {
    /// Makes it from existing statistics.
    pub fn new(statistics: Statistics) -> Adapted {
        Adapted { statistics: statistics.into(), data: None, folder: None, answers: Mutex::default() }
    }

    /// Loads the values that earlier runs stored in a model folder, for programs that have no
    /// training data. A value that the folder does not have is an error.
    pub fn load(model_dir: impl Into<PathBuf>) -> Result<Adapted> {
        let folder = model_dir.into();
        let path = learnt::path(&folder);
        match path.is_file() {
            true => Adapted::in_folder(folder, None),
            false => Err(Error::config(format!("there is no {}", path.display())).help(
                "learn the values with adapt_once and the training data, or name the folder where they were learnt",
            )),
        }
    }

    fn in_folder(folder: PathBuf, data: Option<Dataset>) -> Result<Adapted> {
        let answers = learnt::read(&folder)?.unwrap_or_default();
        if !answers.is_empty() {
            info!(
                "Columns use the values in {}; call Adapted::anew to learn them again",
                learnt::path(&folder).display()
            );
        }
        Ok(Adapted { statistics: OnceLock::new(), data, folder: Some(folder), answers: Mutex::new(answers) })
    }

    /// Discards the values in the model folder: everything is learned from the data again and
    /// stored. Checkpoints that were trained with the old values are refused if the values have
    /// changed.
    pub fn anew(self) -> Result<Adapted> {
        if self.data.is_none() && self.statistics.get().is_none() {
            return Err(Error::config("there is no data to learn from").help("call adapt_once with the training data"));
        }
        if let Some(folder) = &self.folder {
            learnt::write(folder, &Answers::new())?;
        }
        Ok(Adapted { answers: Mutex::default(), ..self })
    }

    /// Returns all statistics of the rows. Reads the data, unless it was read already.
    pub fn statistics(&self) -> Result<&Statistics> {
        if let Some(statistics) = self.statistics.get() {
            return Ok(statistics);
        }
        let Some(data) = &self.data else {
            let place = self.folder.as_deref().map(learnt::path).unwrap_or_default();
            return Err(Error::config(format!(
                "{} does not hold the value, and there is no data to learn it from",
                place.display()
            ))
            .help("learn it with adapt_once and the training data"));
        };
        let statistics = data.statistics()?;
        if let Some(folder) = &self.folder {
            summary::write(folder, &statistics)?;
        }
        Ok(self.statistics.get_or_init(|| statistics))
    }

    /// Returns the column normalised to mean 0 and deviation 1 on the rows that were read.
    pub fn z_score(&self, column: NumericColumn) -> Result<NumericColumn> {
        let [mean, std] = self.numbers(&column, "z_score", |numbers| {
            varied(&column, numbers.std > 0.0)?;
            Ok([numbers.mean, numbers.std])
        })?;
        Ok(column.z_score(mean, std))
    }

    /// Returns the column normalised to 0 for the smallest and 1 for the largest number that was
    /// read.
    pub fn min_max(&self, column: NumericColumn) -> Result<NumericColumn> {
        let [min, max] = self.numbers(&column, "min_max", |numbers| {
            let (min, max) = (numbers.min, numbers.max);
            if min.is_infinite() || max.is_infinite() {
                return Err(Error::data(format!(
                    "feature `{}` has numbers from {min} to {max}; expected finite numbers",
                    column.key()
                ))
                .help("use z_score, which leaves infinite numbers out"));
            }
            varied(&column, min < max)?;
            Ok([min, max])
        })?;
        Ok(column.min_max(min, max))
    }

    /// Returns the column split into buckets that each hold about the same count of the numbers
    /// that were read. There are at most `n_buckets`, fewer if numbers repeat.
    #[track_caller]
    pub fn bucketized(&self, column: &NumericColumn, n_buckets: usize) -> Result<BucketizedColumn> {
        let asked = format!("boundaries of {n_buckets} ranges");
        let boundaries = self.answer(self.raw(column)?, &asked, || {
            let boundaries = self.feature_numbers(column.key())?.quantile_boundaries(n_buckets);
            match boundaries.is_empty() {
                true => Err(Error::data(format!("feature `{}` cannot be split into {n_buckets} ranges", column.key()))
                    .help("ask for more ranges, or leave out a feature whose numbers are nearly all the same")),
                false => Ok(boundaries.into_iter().map(|boundary| Listed::Float(boundary.into())).collect()),
            }
        })?;
        let boundaries = floats(&boundaries).ok_or_else(|| self.unfit(column.key(), &asked))?;
        Ok(bucketized_column(column, boundaries))
    }

    /// Returns the most frequent categories of a feature, at most `max_terms`, the most frequent
    /// first. Others have no id, unless the column has out-of-vocabulary buckets.
    #[track_caller]
    pub fn vocabulary(&self, key: &str, max_terms: usize) -> Result<VocabularyListColumn> {
        self.frequent(key, max_terms, 1)
    }

    /// Same as [`vocabulary`](Adapted::vocabulary), without terms that occur less than `min_count`
    /// times.
    #[track_caller]
    pub fn frequent(&self, key: &str, max_terms: usize, min_count: u64) -> Result<VocabularyListColumn> {
        let asked = format!("{max_terms} terms, at least {min_count} of each");
        let terms = self.answer(key, &asked, || {
            self.feature(key)?;
            let vocabulary = self.statistics()?.terms(key)?.vocabulary(max_terms, min_count);
            let vocabulary = vocabulary.map_err(|error| error.context(format!("in feature `{key}`")))?;
            Ok(match TermList::from(vocabulary.terms()) {
                TermList::Text(terms) => terms.iter().map(|term| Listed::Text(term.to_vec())).collect(),
                TermList::Integers(terms) => terms.into_iter().map(Listed::Int).collect(),
            })
        })?;
        let terms = term_list(&terms).ok_or_else(|| self.unfit(key, &asked))?;
        Ok(categorical_column_with_vocabulary_list(key, terms))
    }

    /// Returns the value in the folder, or else learns it from the data and stores it in the
    /// folder.
    fn answer(&self, key: &str, asked: &str, learn: impl FnOnce() -> Result<Vec<Listed>>) -> Result<Vec<Listed>> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let question = (key.to_string(), asked.to_string());
        if let Some(known) = answers.get(&question) {
            return Ok(known.clone());
        }
        let learnt = learn()?;
        if let Some(folder) = &self.folder {
            answers.insert(question, learnt.clone());
            learnt::write(folder, &answers)?;
        }
        Ok(learnt)
    }

    /// Returns two numbers of a column.
    fn numbers(
        &self,
        column: &NumericColumn,
        asked: &str,
        learn: impl FnOnce(&NumberStatistics) -> Result<[f64; 2]>,
    ) -> Result<[f64; 2]> {
        let key = self.raw(column)?;
        let found = self.answer(key, asked, || Ok(learn(self.feature_numbers(key)?)?.map(Listed::Float).to_vec()))?;
        match found[..] {
            [Listed::Float(a), Listed::Float(b)] => Ok([a, b]),
            _ => Err(self.unfit(key, asked)),
        }
    }

    fn feature_numbers(&self, key: &str) -> Result<&NumberStatistics> {
        self.feature(key)?;
        self.statistics()?.numbers(key)
    }

    /// Returns an error for an answer in a file that no run can have written.
    fn unfit(&self, key: &str, asked: &str) -> Error {
        let place = self.folder.as_deref().map(learnt::path).unwrap_or_default();
        Error::data(format!("the values for `{key}` ({asked}) in {} are not valid", place.display()))
    }

    /// Returns the key of a column that reads its feature's numbers unchanged.
    fn raw<'a>(&self, column: &'a NumericColumn) -> Result<&'a str> {
        if column.is_normalised() {
            return Err(Error::config(format!("column `{}` is normalised already", column.key()))
                .help("pass a column without a normalizer"));
        }
        Ok(column.key())
    }

    fn feature(&self, key: &str) -> Result<()> {
        match self.statistics()?.column(key)?.role {
            Role::Feature => Ok(()),
            role => Err(Error::config(format!("`{key}` is not a feature of the dataset: its role is {role}"))),
        }
    }
}

fn floats(values: &[Listed]) -> Option<Vec<f64>> {
    values.iter().map(|value| if let Listed::Float(v) = value { Some(*v) } else { None }).collect()
}

fn term_list(values: &[Listed]) -> Option<TermList> {
    let text = || values.iter().map(|v| if let Listed::Text(v) = v { Some(v.as_slice()) } else { None }).collect();
    let ints = || values.iter().map(|v| if let Listed::Int(v) = v { Some(*v) } else { None }).collect();
    let (text, ints): (Option<Vec<&[u8]>>, Option<Vec<i64>>) = (text(), ints());
    match (text, ints) {
        (Some(text), _) if !text.is_empty() => Some(TermList::Text(text.into_iter().collect())),
        (_, Some(ints)) if !ints.is_empty() => Some(TermList::Integers(ints)),
        _ => None,
    }
}

fn varied(column: &NumericColumn, yes: bool) -> Result<()> {
    match yes {
        true => Ok(()),
        false => Err(Error::data(format!(
            "feature `{}` has fewer than two different numbers, so it cannot be normalised",
            column.key()
        ))
        .help("leave the column out, or normalise it with your own constants")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use estimand_nn::Inputs;
    use estimand_nn::column::Column;

    fn train() -> Dataset {
        Dataset::from_arrays([
            ("x", Array::from([1f32, 2.0, 3.0, 6.0])),
            ("same", Array::from([5f32, 5.0, 5.0, 5.0])),
            ("far", Array::from([0f32, f32::INFINITY, 1.0, 2.0])),
            ("n", Array::from([7i64, 3, 7, 7])),
            ("job", Array::from_strings([4], ["b", "a", "b", ""]).unwrap()),
            ("y", Array::from([0f32, 1.0, 0.0, 1.0])),
        ])
        .label("y")
    }

    fn values(columns: impl Into<Columns>) -> Vec<f32> {
        let columns = columns.into();
        let g = Graph::new();
        let batch = train().batch(4).iter().next().unwrap().unwrap();
        let features = Inputs::new(&g, "feature", &estimand_data::specs_of(&batch).0);
        let x = input_layer(&features, columns);
        let feature = |name: &str| match batch.feature(name).unwrap() {
            estimand_tensor::Feature::Dense(array) => array.clone(),
            other => panic!("{other:?}"),
        };
        let fed: Vec<(Tensor, Array)> = features.names().map(|name| (features.dense(name), feature(name))).collect();
        let fed: Vec<(&Tensor, Array)> = fed.iter().map(|(tensor, array)| (tensor, array.clone())).collect();
        let out = Session::new(&g).unwrap().run(&[&x], &fed).unwrap();
        out[0].as_slice::<f32>().unwrap().to_vec()
    }

    #[test]
    fn columns_are_fixed_to_what_was_read() {
        let adapted = adapt(&train()).unwrap();
        // Mean 3, squares of differences 4 + 1 + 0 + 9 over 4: deviation sqrt(3.5).
        let z = values([adapted.z_score(numeric_column("x")).unwrap().into()]);
        let deviation = 3.5f32.sqrt();
        for (z, x) in z.iter().zip([1f32, 2.0, 3.0, 6.0]) {
            assert!((z - (x - 3.0) / deviation).abs() < 1e-6, "{z}");
        }
        assert_eq!(values([adapted.min_max(numeric_column("x")).unwrap().into()]), [0.0, 0.2, 0.4, 1.0]);
        // The median of 1, 2, 3, 6 is 2.5.
        assert_eq!(adapted.bucketized(&numeric_column("x"), 2).unwrap().boundaries(), [2.5]);
        // b twice, a once; the missing value does not count.
        let job = indicator_column(adapted.vocabulary("job", 10).unwrap());
        assert_eq!(values([job.into()]), [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        let often = adapted.frequent("job", 10, 2).unwrap();
        assert_eq!(often.categorical().unwrap().n_buckets(), 1);
        // 7 is before 3.
        let n = indicator_column(adapted.vocabulary("n", 10).unwrap());
        assert_eq!(values([n.into()]), [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]);
    }

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("estimand-adapt-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    /// All answers as text that shows every bit.
    fn everything(adapted: &Adapted) -> Result<String> {
        let text = format!(
            "{:?} {:?} {:?} {:?} {:?}",
            adapted.z_score(numeric_column("x"))?,
            adapted.min_max(numeric_column("x"))?,
            adapted.bucketized(&numeric_column("x"), 3)?.boundaries().iter().map(|b| b.to_bits()).collect::<Vec<_>>(),
            adapted.vocabulary("word", 10)?.terms()?,
            adapted.vocabulary("n", 10)?.terms()?,
        );
        Ok(without_lines(&text))
    }

    /// Removes the source lines of columns.
    fn without_lines(text: &str) -> String {
        text.split(" site: ").map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect()
    }

    fn odd_rows(swapped: bool) -> Dataset {
        let odd: [&[u8]; 4] = [&[0xff, 0x00], "\"\n\u{202e}".as_bytes(), &[0xff, 0x00], b"{}"];
        let odd: Vec<&[u8]> = if swapped { odd.iter().rev().copied().collect() } else { odd.to_vec() };
        let shift = f32::from(u8::from(swapped));
        Dataset::from_arrays([
            ("x", Array::from([0.1 + shift, 1.0 / 3.0, -7e-40, 16_777_217.0])),
            ("word", Array::from_strings([4], odd).unwrap()),
            ("n", Array::from([i64::MIN, i64::MAX, i64::MAX, i64::from(swapped)])),
        ])
    }

    #[test]
    fn a_folder_keeps_what_was_learnt_bit_by_bit() {
        let folder = folder("bits");
        let once = |swapped| adapt_once(&folder, &odd_rows(swapped)).unwrap();
        let learnt = everything(&adapt(&odd_rows(false)).unwrap()).unwrap();
        let other = everything(&adapt(&odd_rows(true)).unwrap()).unwrap();
        assert_ne!(learnt, other);
        assert_eq!(everything(&once(false)).unwrap(), learnt);
        // Other data changes nothing, and is not even read.
        assert_eq!(everything(&once(true)).unwrap(), learnt);
        assert!(once(true).statistics.get().is_none());
        assert_eq!(everything(&Adapted::load(&folder).unwrap()).unwrap(), learnt);
        // Unless `anew` is called; then the folder has the new answers.
        assert_eq!(everything(&once(true).anew().unwrap()).unwrap(), other);
        assert_eq!(everything(&Adapted::load(&folder).unwrap()).unwrap(), other);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_folder_does_not_know_is_learnt_from_the_data() {
        let folder = folder("new");
        assert!(Adapted::load(&folder).unwrap_err().to_string().contains("there is no"));
        let first = adapt_once(&folder, &odd_rows(false)).unwrap();
        let _ = first.vocabulary("word", 10).unwrap();
        let alone = Adapted::load(&folder).unwrap();
        let _ = alone.vocabulary("word", 10).unwrap();
        let error = alone.vocabulary("n", 10).unwrap_err().to_string();
        assert!(error.contains("does not hold the value, and there is no data"), "{error}");
        assert!(alone.anew().unwrap_err().to_string().contains("there is no data to learn from"));
        let terms =
            |adapted: &Adapted, key: &str| format!("{:?}", adapted.vocabulary(key, 10).unwrap().terms().unwrap());
        let second = adapt_once(&folder, &odd_rows(true)).unwrap();
        assert_eq!(terms(&second, "word"), terms(&first, "word"));
        assert_eq!(terms(&second, "n"), terms(&adapt(&odd_rows(true)).unwrap(), "n"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_folder_is_named() {
        let folder = folder("damaged");
        let once = || adapt_once(&folder, &odd_rows(false));
        let _ = once().unwrap().z_score(numeric_column("x")).unwrap();
        let path = learnt::path(&folder);
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        let error = once().unwrap_err().to_string();
        assert!(error.contains("adapted.json") && error.contains("it is not JSON"), "{error}");
        std::fs::write(&path, good.replacen("{\"float\":", "{\"int\":1},{\"float\":", 1)).unwrap();
        let error = once().unwrap().z_score(numeric_column("x")).unwrap_err().to_string();
        assert!(error.contains("the values for `x` (z_score) in") && error.contains("are not valid"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_learnt_is_said() {
        let adapted = adapt(&train()).unwrap();
        let say = |result: Result<NumericColumn>| result.unwrap_err().to_string();
        let cases = [
            (say(adapted.z_score(numeric_column("same"))), "feature `same` has fewer than two different numbers"),
            (say(adapted.min_max(numeric_column("same"))), "leave the column out"),
            (say(adapted.min_max(numeric_column("far"))), "z_score, which leaves infinite numbers out"),
            (say(adapted.z_score(numeric_column("job"))), "holds string, not numbers"),
            (say(adapted.z_score(numeric_column("xx"))), "did you mean `x`?"),
            (say(adapted.z_score(numeric_column("x").log())), "column `x` is normalised already"),
            (say(adapted.z_score(numeric_column("y"))), "`y` is not a feature of the dataset: its role is label"),
            (adapted.bucketized(&numeric_column("same"), 4).unwrap_err().to_string(), "cannot be split into 4 ranges"),
            (adapted.vocabulary("x", 4).unwrap_err().to_string(), "holds f32, not terms"),
            (adapted.frequent("job", 4, 9).unwrap_err().to_string(), "in feature `job`"),
        ];
        for (text, part) in cases {
            assert!(text.contains(part), "{text} should contain {part}");
        }
    }
}
