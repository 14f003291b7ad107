//! `adapt`: what columns learn from data before a model is trained. One pass over the rows; then it is fixed in the columns, and with
//! them in everything that is trained, exported and served.

use estimand_data::statistics::Role;
use estimand_data::{Dataset, Statistics};
use estimand_nn::column::{
    BucketizedColumn, NumericColumn, TermList, VocabularyListColumn, bucketized_column,
    categorical_column_with_vocabulary_list,
};
use estimand_tensor::{Error, Result};

/// Reads all rows of a dataset once, on all cores, for what columns are to learn from it: the training set's, or the model would know
/// what it is evaluated on.
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

/// What a pass over a dataset taught, from which columns are made. Made by [`adapt`].
#[derive(Debug)]
pub struct Adapted {
    statistics: Statistics,
}

impl Adapted {
    /// From statistics that are there already.
    pub fn new(statistics: Statistics) -> Adapted {
        Adapted { statistics }
    }

    /// All that is known of the rows.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The column, normalised to mean 0 and deviation 1 on the rows that were read.
    pub fn z_score(&self, column: NumericColumn) -> Result<NumericColumn> {
        let numbers = self.statistics.numbers(self.raw(&column)?)?;
        varied(&column, numbers.std > 0.0)?;
        let (mean, std) = (numbers.mean, numbers.std);
        Ok(column.z_score(mean, std))
    }

    /// The column, normalised to 0 for the smallest and 1 for the largest number that was read.
    pub fn min_max(&self, column: NumericColumn) -> Result<NumericColumn> {
        let numbers = self.statistics.numbers(self.raw(&column)?)?;
        let (min, max) = (numbers.min, numbers.max);
        if min.is_infinite() || max.is_infinite() {
            return Err(Error::data(format!("`{}` has numbers from {min} to {max}", column.key()))
                .help("take z_score, which leaves infinite numbers out"));
        }
        varied(&column, min < max)?;
        Ok(column.min_max(min, max))
    }

    /// The column by ranges that each hold about as many of the numbers that were read: up to `n_buckets`, fewer where numbers repeat.
    #[track_caller]
    pub fn bucketized(&self, column: &NumericColumn, n_buckets: usize) -> Result<BucketizedColumn> {
        let boundaries = self.statistics.numbers(self.raw(column)?)?.quantile_boundaries(n_buckets);
        if boundaries.is_empty() {
            return Err(Error::data(format!("`{}` cannot be cut into {n_buckets} ranges", column.key()))
                .help("ask for more ranges, or leave out a feature whose numbers are nearly all the same"));
        }
        Ok(bucketized_column(column, boundaries))
    }

    /// The categories of a feature that were read most often, at most so many, the most frequent first. Others have no id, unless the
    /// column is given buckets for them.
    pub fn vocabulary(&self, key: &str, max_terms: usize) -> Result<VocabularyListColumn> {
        self.frequent(key, max_terms, 1)
    }

    /// As [`vocabulary`](Adapted::vocabulary), without what was read less than `min_count` times.
    #[track_caller]
    pub fn frequent(&self, key: &str, max_terms: usize, min_count: u64) -> Result<VocabularyListColumn> {
        self.feature(key)?;
        let terms = self.statistics.terms(key)?.vocabulary(max_terms, min_count);
        let terms = terms.map_err(|error| error.context(format!("in feature `{key}`")))?;
        Ok(categorical_column_with_vocabulary_list(key, TermList::from(terms.terms())))
    }

    /// The key of a column that reads its feature's numbers as they were read here.
    fn raw<'a>(&self, column: &'a NumericColumn) -> Result<&'a str> {
        if column.is_normalised() {
            return Err(Error::config(format!("column `{}` is normalised already", column.key()))
                .help("adapt a column of the numbers as they are"));
        }
        self.feature(column.key())?;
        Ok(column.key())
    }

    fn feature(&self, key: &str) -> Result<()> {
        match self.statistics.column(key)?.role {
            Role::Feature => Ok(()),
            role => Err(Error::config(format!("`{key}` is no feature of the dataset: it has the role {role}"))),
        }
    }
}

fn varied(column: &NumericColumn, yes: bool) -> Result<()> {
    match yes {
        true => Ok(()),
        false => Err(Error::data(format!("`{}` has no two different numbers to normalise by", column.key()))
            .help("leave the column out, or normalise it by constants of your own")),
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
        let batch = train().batch(4, false).iter().next().unwrap().unwrap();
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
        // b twice, a once, nothing for the missing one.
        let job = indicator_column(adapted.vocabulary("job", 10).unwrap());
        assert_eq!(values([job.into()]), [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        let often = adapted.frequent("job", 10, 2).unwrap();
        assert_eq!(often.categorical().unwrap().n_buckets(), 1);
        // 7 is before 3.
        let n = indicator_column(adapted.vocabulary("n", 10).unwrap());
        assert_eq!(values([n.into()]), [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn what_cannot_be_learnt_is_said() {
        let adapted = adapt(&train()).unwrap();
        let say = |result: Result<NumericColumn>| result.unwrap_err().to_string();
        let cases = [
            (say(adapted.z_score(numeric_column("same"))), "`same` has no two different numbers"),
            (say(adapted.min_max(numeric_column("same"))), "leave the column out"),
            (say(adapted.min_max(numeric_column("far"))), "z_score, which leaves infinite numbers out"),
            (say(adapted.z_score(numeric_column("job"))), "holds string, not numbers"),
            (say(adapted.z_score(numeric_column("xx"))), "did you mean `x`?"),
            (say(adapted.z_score(numeric_column("x").log())), "column `x` is normalised already"),
            (say(adapted.z_score(numeric_column("y"))), "`y` is no feature of the dataset: it has the role label"),
            (adapted.bucketized(&numeric_column("same"), 4).unwrap_err().to_string(), "cannot be cut into 4 ranges"),
            (adapted.vocabulary("x", 4).unwrap_err().to_string(), "holds f32, not terms"),
            (adapted.frequent("job", 4, 9).unwrap_err().to_string(), "in feature `job`"),
        ];
        for (text, part) in cases {
            assert!(text.contains(part), "{text} should contain {part}");
        }
    }
}
