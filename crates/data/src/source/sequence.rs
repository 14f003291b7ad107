//! `tf.SequenceExample`s in TFRecord files.

use estimand_tensor::{Array, Batch, BatchSpec, DType, Error, Feature, FeatureSpec, Ragged, Result};
use estimand_wire::SequenceExampleParser;
use estimand_wire::example::{ListSpec, Sequence};

use super::records::{RecordSource, RowParser, check_not_padded};
use crate::Dataset;
use crate::files::Files;

/// The suffix of the feature that holds the lengths of steps, after the name of its list.
const LENGTHS: &str = "/lengths";

impl Dataset {
    /// Creates a dataset from the `tf.SequenceExample`s in TFRecord files, like
    /// `tf.io.parse_sequence_example`. `context` and `lists` are the specs of the context features
    /// and of the feature lists.
    ///
    /// Every list becomes a ragged feature. For steps of one size, a row holds its steps, each with
    /// the sizes of the spec. For [`ListSpec::ragged`] steps, a row holds the values of all its
    /// steps, and the feature `NAME/lengths` holds the number of values in each step.
    ///
    /// ```
    /// use estimand_data::{Dataset, ListSpec};
    /// use estimand_tensor::{DType, Feature, FeatureSpec};
    /// # use estimand_wire::{example::SequenceExampleBuilder, record::RecordWriter};
    /// # let mut writer = RecordWriter::new(Vec::new());
    /// # writer.write(&SequenceExampleBuilder::new().step_ints("clicks", &[3, 4]).step_ints("clicks", &[5]).build()).unwrap();
    /// # let path = std::env::temp_dir().join(format!("estimand-sequence-{}.tfrecord", std::process::id()));
    /// # std::fs::write(&path, writer.into_inner()).unwrap();
    /// // One row, whose clicks are [[3, 4], [5]].
    /// let data = Dataset::from_sequence_tfrecord(&path, [("user", FeatureSpec::ragged(DType::Str))], [("clicks", ListSpec::ragged(DType::I64))]);
    /// let row = data.iter().next().unwrap()?;
    /// let Feature::Ragged(clicks) = row.feature("clicks")? else { unreachable!() };
    /// let Feature::Ragged(lengths) = row.feature("clicks/lengths")? else { unreachable!() };
    /// assert_eq!((clicks.values().as_slice::<i64>()?, lengths.values().as_slice::<i64>()?), (&[3, 4, 5][..], &[2, 1][..]));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn from_sequence_tfrecord<C: Into<String>, L: Into<String>>(
        files: impl Into<Files>,
        context: impl IntoIterator<Item = (C, FeatureSpec)>,
        lists: impl IntoIterator<Item = (L, ListSpec)>,
    ) -> Dataset {
        let context = context.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let lists = lists.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let (spec, parser) = match Sequences::new(context, lists) {
            Ok((spec, parser)) => (spec, Ok(parser)),
            Err(error) => (BatchSpec::default(), Err(error)),
        };
        Dataset::new(RecordSource::new("sequence tfrecord", files.into(), spec, parser))
    }
}

struct Sequences {
    parser: SequenceExampleParser,
    /// The names of the context features, then of the lists.
    names: Vec<String>,
}

impl Sequences {
    fn new(context: Vec<(String, FeatureSpec)>, lists: Vec<(String, ListSpec)>) -> Result<(BatchSpec, Sequences)> {
        if context.is_empty() && lists.is_empty() {
            return Err(Error::config("the specs name no features to read from the records")
                .help("name at least one in the specs"));
        }
        context.iter().try_for_each(|(name, spec)| check_not_padded(name, spec))?;
        let names = context.iter().map(|(name, _)| name).chain(lists.iter().map(|(name, _)| name)).cloned().collect();
        let mut spec = BatchSpec::default();
        let mut add = |name: String, feature: FeatureSpec| match spec.insert(name.clone(), feature) {
            None => Ok(()),
            Some(_) => Err(Error::config(format!("two features would have the name `{name}`"))
                .help("give the context and the lists different names")),
        };
        for (name, feature) in &context {
            add(name.clone(), feature.clone())?;
        }
        for (name, list) in &lists {
            match list {
                ListSpec::Fixed { dtype, .. } => add(name.clone(), FeatureSpec::ragged(*dtype))?,
                ListSpec::Ragged { dtype } => {
                    add(name.clone(), FeatureSpec::ragged(*dtype))?;
                    add(format!("{name}{LENGTHS}"), FeatureSpec::ragged(DType::I64))?;
                }
            }
        }
        Ok((spec, Sequences { parser: SequenceExampleParser::new(context, lists)?, names }))
    }
}

impl RowParser for Sequences {
    fn batch<'a>(&self, records: impl Iterator<Item = &'a [u8]>) -> Result<Batch> {
        let (context, lists) = self.parser.parse(records)?;
        let mut names = self.names.iter();
        let mut batch = Batch::new();
        for (feature, name) in context.into_iter().zip(names.by_ref()) {
            batch = batch.with_feature(name, feature)?;
        }
        for (list, name) in lists.into_iter().zip(names) {
            batch = match list {
                Sequence::Fixed(steps) => batch.with_feature(name, steps)?,
                Sequence::Ragged { steps, row_splits } => {
                    let (values, lengths) = by_row(&steps, &row_splits)?;
                    batch.with_feature(name, values)?.with_feature(&format!("{name}{LENGTHS}"), lengths)?
                }
            };
        }
        Ok(batch)
    }
}

/// Splits the steps of rows into two features with one axis: the values of each row, and the
/// lengths of its steps.
fn by_row(steps: &Ragged, row_splits: &[i64]) -> Result<(Feature, Feature)> {
    let step_splits = steps.row_splits();
    let ends = row_splits.iter().map(|&step| step_splits.get(step as usize).copied());
    let ends =
        ends.collect::<Option<Vec<i64>>>().ok_or_else(|| Error::internal("a row of more steps than there are"))?;
    let lengths: Vec<i64> = step_splits.windows(2).map(|step| step[1] - step[0]).collect();
    let values = Ragged::new(steps.values().clone(), ends)?;
    Ok((values.into(), Ragged::new(Array::from(lengths), row_splits)?.into()))
}
