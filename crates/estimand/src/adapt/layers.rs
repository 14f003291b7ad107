//! `Adapt`: preprocessing layers learn from data, as Keras' `layer.adapt(data)`.
//!
//! The result is the same layer with its vocabulary, boundaries or moments set. Counts, moments and
//! quantiles come from [`Dataset::statistics`], as those of columns; tokens of texts are counted by
//! the same pass.

use std::collections::HashSet;

use estimand_data::{Dataset, Unit};
use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_nn::column::TermList;
use estimand_nn::{Discretization, IntegerLookup, Normalization, OutputMode, StringLookup, TextVectorization};
use estimand_tensor::{Array, Batch, DType, Dim, Error, Feature, Result, Shape, Strings};

/// A preprocessing layer that learns from data before a model is trained.
///
/// ```
/// use estimand::Adapt;
/// use estimand::nn::{Normalization, StringLookup};
/// use estimand::prelude::*;
///
/// let train = Dataset::from_arrays([
///     ("age", Array::from([20f32, 30.0, 40.0, 50.0])),
///     ("job", Array::from_strings([4], ["cook", "clerk", "cook", "nurse"])?),
/// ]);
/// let age = Normalization::new().axis(None).adapt_feature(&train, "age")?;
/// let job = StringLookup::new().adapt_feature(&train, "job")?;
/// assert_eq!(age.mean_and_variance(), Some((&[35.0f32][..], &[125.0f32][..])));
/// assert_eq!(job.vocabulary_size()?, 4); // unknown, cook, nurse, clerk
/// # Ok::<(), Error>(())
/// ```
pub trait Adapt: Sized {
    /// Learns from the only feature of a dataset, which may have rows or batches. Use the training
    /// set.
    fn adapt(self, data: &Dataset) -> Result<Self> {
        let spec = data.spec()?;
        let names: Vec<&String> = spec.keys().collect();
        match &names[..] {
            [name] => self.adapt_feature(data, name),
            _ => {
                let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                Err(Error::config(format!("the dataset has the features {}; expected one", names.join(", ")))
                    .help("call adapt_feature with the name of the feature"))
            }
        }
    }

    /// Learns from a feature of a dataset.
    fn adapt_feature(self, data: &Dataset, feature: &str) -> Result<Self>;
}

/// Batches of rows of any size.
fn batches(data: &Dataset) -> Result<impl Iterator<Item = Result<Batch>>> {
    if data.is_endless() {
        return Err(Error::config("the dataset has no end").help("adapt before .repeat_forever(), or call .take(n)"));
    }
    let data = if data.unit() == Unit::Row { data.batch(1024) } else { data.clone() };
    Ok(data.iter())
}

fn dense<'a>(batch: &'a Batch, feature: &str) -> Result<&'a Array> {
    batch.feature(feature)?.dense().map_err(|error| error.context(format!("in feature `{feature}`")))
}

impl Adapt for Normalization {
    fn adapt_feature(self, data: &Dataset, feature: &str) -> Result<Normalization> {
        let mut moments: Vec<(f64, f64)> = Vec::new();
        let mut n_rows = 0.0;
        for batch in batches(data)? {
            let batch = batch?;
            let values = dense(&batch, feature)?;
            let rank = values.dims().len();
            let place = self.kept_axis().map(|axis| if axis < 0 { axis + rank as i64 } else { axis });
            let axis = match place.map(usize::try_from) {
                None => None,
                Some(Ok(axis)) if axis < rank && axis > 0 => Some(axis),
                // Rows of one number have one mean.
                Some(Ok(0)) if rank == 1 => None,
                Some(_) => {
                    let text = format!("feature `{feature}` has the shape {:?}, which has no such axis", values.dims());
                    return Err(Error::shape(text).help("call .axis(None) for one mean of all numbers"));
                }
            };
            let n_places = axis.map_or(1, |axis| values.dims()[axis]);
            let inner = axis.map_or(values.len().max(1), |axis| values.dims()[axis + 1..].iter().product());
            moments.resize(n_places, (0.0, 0.0));
            let numbers = values.to_f64_vec()?;
            let part = (numbers.len() / n_places.max(1)) as f64;
            let place_of = |i: usize| if axis.is_none() { 0 } else { i / inner % n_places };
            merge(&mut moments, n_rows, &numbers, part, place_of);
            n_rows += part;
        }
        if n_rows == 0.0 {
            return Err(Error::data(format!("feature `{feature}` has no rows to learn from")));
        }
        let (mean, variance): (Vec<f32>, Vec<f32>) =
            moments.into_iter().map(|(mean, variance)| (mean as f32, variance as f32)).unzip();
        Ok(self.moments(mean, variance))
    }
}

/// Joins the means and variances of earlier numbers with those of `n` new numbers of each place.
fn merge(moments: &mut [(f64, f64)], earlier: f64, numbers: &[f64], n: f64, place_of: impl Fn(usize) -> usize) {
    if n == 0.0 {
        return;
    }
    let mut means = vec![0.0; moments.len()];
    numbers.iter().enumerate().for_each(|(i, x)| means[place_of(i)] += x / n);
    let mut variances = vec![0.0; moments.len()];
    numbers.iter().enumerate().for_each(|(i, x)| variances[place_of(i)] += (x - means[place_of(i)]).powi(2) / n);
    let share = n / (earlier + n);
    for ((mean, variance), (new_mean, new_variance)) in moments.iter_mut().zip(means.into_iter().zip(variances)) {
        let apart = new_mean - *mean;
        *variance = *variance * (1.0 - share) + new_variance * share + apart * apart * share * (1.0 - share);
        *mean += apart * share;
    }
}

impl Adapt for Discretization {
    fn adapt_feature(self, data: &Dataset, feature: &str) -> Result<Discretization> {
        let Some(n) = self.wanted_bins() else {
            return Err(Error::config("the layer has boundaries already").help("make it with Discretization::bins(n)"));
        };
        let statistics = data.statistics()?;
        let boundaries = statistics.numbers(feature)?.quantile_boundaries(n);
        match boundaries.is_empty() {
            true => Err(Error::data(format!("feature `{feature}` cannot be split into {n} ranges"))
                .help("ask for more ranges, or leave out a feature whose numbers are nearly all the same")),
            false => Ok(self.bin_boundaries(boundaries)),
        }
    }
}

/// Keras' order: frequent terms first, and of equally frequent ones the larger.
fn ordered<T: Ord>(mut terms: Vec<(T, u64)>, max: Option<usize>) -> Vec<T> {
    terms.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| b.cmp(a)));
    terms.truncate(max.unwrap_or(usize::MAX));
    terms.into_iter().map(|(term, _)| term).collect()
}

/// The terms of a feature with their counts, as text.
fn counted(data: &Dataset, feature: &str) -> Result<Vec<(String, u64)>> {
    let statistics = data.statistics()?;
    Ok(statistics.terms(feature)?.top(usize::MAX, 1))
}

/// TF-IDF weights: `log(1 + n_rows / (1 + rows with the term))`.
fn idf_weights(n_rows: f64, with_term: &[f64]) -> Vec<f32> {
    with_term.iter().map(|n| (1.0 + n_rows / (1.0 + n)).ln() as f32).collect()
}

/// The number of rows that contain each term.
fn document_counts(
    data: &Dataset,
    terms: &[String],
    mut rows: impl FnMut(&Batch) -> Result<Vec<Vec<String>>>,
) -> Result<(f64, Vec<f64>)> {
    let places: std::collections::HashMap<&str, usize> =
        terms.iter().enumerate().map(|(i, term)| (term.as_str(), i)).collect();
    let (mut n_rows, mut counts) = (0.0, vec![0.0; terms.len()]);
    for batch in batches(data)? {
        for row in rows(&batch?)? {
            n_rows += 1.0;
            let distinct: HashSet<&str> = row.iter().map(String::as_str).collect();
            distinct.iter().filter_map(|term| places.get(term)).for_each(|&place| counts[place] += 1.0);
        }
    }
    Ok((n_rows, counts))
}

/// The values of a feature, row by row, as text.
fn text_rows(batch: &Batch, feature: &str) -> Result<Vec<Vec<String>>> {
    let text = |array: &Array| -> Result<Vec<String>> {
        Ok(match array.dtype() {
            DType::Str => array.strings()?.map(|s| String::from_utf8_lossy(s).into_owned()).collect(),
            _ => array.to_f64_vec()?.into_iter().map(|n| (n as i64).to_string()).collect(),
        })
    };
    Ok(match batch.feature(feature)? {
        Feature::Dense(array) => {
            let all = text(array)?;
            let width = all.len() / array.dims().first().copied().unwrap_or(1).max(1);
            all.chunks(width.max(1)).map(<[String]>::to_vec).collect()
        }
        Feature::Ragged(ragged) => {
            let all = text(ragged.values())?;
            ragged.row_splits().windows(2).map(|ends| all[ends[0] as usize..ends[1] as usize].to_vec()).collect()
        }
    })
}

impl Adapt for StringLookup {
    fn adapt_feature(self, data: &Dataset, feature: &str) -> Result<StringLookup> {
        let mut terms = counted(data, feature)?;
        let special = |term: &String| self.is_special(&TermList::from([term.as_str()]), 0);
        terms.retain(|(term, _)| !special(term));
        let terms = ordered(terms, self.max_terms());
        if terms.is_empty() {
            return Err(Error::data(format!("feature `{feature}` has no terms to learn")));
        }
        let layer = match self.mode() {
            OutputMode::TfIdf => {
                let (n, counts) = document_counts(data, &terms, |batch| text_rows(batch, feature))?;
                self.idf_weights(idf_weights(n, &counts))
            }
            _ => self,
        };
        Ok(layer.vocabulary(terms.iter().collect::<Strings>()))
    }
}

impl Adapt for IntegerLookup {
    fn adapt_feature(self, data: &Dataset, feature: &str) -> Result<IntegerLookup> {
        let terms = counted(data, feature)?;
        let number = |(term, n): (String, u64)| term.parse::<i64>().ok().map(|term| (term, n));
        let numbers: Option<Vec<(i64, u64)>> = terms.into_iter().map(number).collect();
        let mut numbers = numbers.ok_or_else(|| {
            Error::dtype(Some(DType::I64), DType::Str, format!("feature `{feature}` holds no integers"))
                .help("use StringLookup")
        })?;
        numbers.retain(|(term, _)| !self.is_special(&TermList::from([*term]), 0));
        let terms = ordered(numbers, self.max_terms());
        if terms.is_empty() {
            return Err(Error::data(format!("feature `{feature}` has no terms to learn")));
        }
        let layer = match self.mode() {
            OutputMode::TfIdf => {
                let words: Vec<String> = terms.iter().map(i64::to_string).collect();
                let (n, counts) = document_counts(data, &words, |batch| text_rows(batch, feature))?;
                self.idf_weights(idf_weights(n, &counts))
            }
            _ => self,
        };
        Ok(layer.vocabulary(terms))
    }
}

/// The graph that splits texts, with its feeds and fetches.
struct Splitter {
    session: Session,
    text: Tensor,
    values: Tensor,
    row_splits: Tensor,
}

impl Splitter {
    fn new(layer: &TextVectorization, row: &[usize]) -> Result<Splitter> {
        let graph = Graph::new();
        let shape: Shape = std::iter::once(Dim::BATCH).chain(row.iter().map(|&n| n.into())).collect();
        let text = graph.placeholder("text", DType::Str, shape);
        let tokens = layer.tokens_of(&text);
        let session = Session::new(&graph)?;
        Ok(Splitter { session, text, values: tokens.values, row_splits: tokens.row_splits })
    }

    fn rows(&mut self, text: &Array) -> Result<Vec<Vec<String>>> {
        let found = self.session.run(&[&self.values, &self.row_splits], &[(&self.text, text.clone())])?;
        let words: Vec<String> = found[0].strings()?.map(|s| String::from_utf8_lossy(s).into_owned()).collect();
        let splits = found[1].as_slice::<i64>()?;
        Ok(splits.windows(2).map(|ends| words[ends[0] as usize..ends[1] as usize].to_vec()).collect())
    }
}

impl Adapt for TextVectorization {
    fn adapt_feature(self, data: &Dataset, feature: &str) -> Result<TextVectorization> {
        let mut splitter: Option<Splitter> = None;
        let mut rows = |batch: &Batch| -> Result<Vec<Vec<String>>> {
            let text = dense(batch, feature)?;
            if splitter.is_none() {
                splitter = Some(Splitter::new(&self, &text.dims()[1..])?);
            }
            splitter.as_mut().map_or(Ok(Vec::new()), |splitter| splitter.rows(text))
        };
        let mut counts: std::collections::HashMap<String, u64> = std::collections::HashMap::new();
        for batch in batches(data)? {
            for token in rows(&batch?)?.into_iter().flatten() {
                *counts.entry(token).or_default() += 1;
            }
        }
        counts.remove("");
        counts.remove("[UNK]");
        let terms = ordered(counts.into_iter().collect(), self.max_terms());
        if terms.is_empty() {
            return Err(Error::data(format!("feature `{feature}` has no tokens to learn")));
        }
        let weights = match self.mode() {
            OutputMode::TfIdf => {
                let (n, counts) = document_counts(data, &terms, rows)?;
                Some(idf_weights(n, &counts))
            }
            _ => None,
        };
        let layer = match weights {
            Some(weights) => self.idf_weights(weights),
            None => self,
        };
        Ok(layer.vocabulary(terms.iter().collect::<Strings>()))
    }
}
