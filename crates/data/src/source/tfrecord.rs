//! `tf.Example`s in TFRecord files.

use estimand_tensor::{Batch, Error, FeatureSpec, Result};
use estimand_wire::ExampleParser;

use super::records::{RecordSource, RowParser, check_not_padded};
use crate::Dataset;
use crate::files::Files;

impl Dataset {
    /// Creates a dataset from the `tf.Example`s in TFRecord files, with a spec of their features.
    /// Files are read one after another.
    ///
    /// `files` are paths, patterns or [`Files`] with options. Gzip and zlib correspond to
    /// TensorFlow's `compression_type`.
    pub fn from_tfrecord<N: Into<String>>(
        files: impl Into<Files>,
        features: impl IntoIterator<Item = (N, FeatureSpec)>,
    ) -> Dataset {
        let features: Vec<(String, FeatureSpec)> =
            features.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let parser = parser(&features);
        Dataset::new(RecordSource::new("tfrecord", files.into(), features.into_iter().collect(), parser))
    }
}

fn parser(features: &[(String, FeatureSpec)]) -> Result<ExampleParser> {
    if features.is_empty() {
        return Err(
            Error::config("the spec names no features to read from the records").help("name at least one in the spec")
        );
    }
    features.iter().try_for_each(|(name, spec)| check_not_padded(name, spec))?;
    ExampleParser::new(features.iter().cloned())
}

impl RowParser for ExampleParser {
    fn batch<'a>(&self, records: impl Iterator<Item = &'a [u8]>) -> Result<Batch> {
        let features = self.names().zip(self.parse(records)?);
        features.into_iter().try_fold(Batch::new(), |batch, (name, feature)| batch.with_feature(name, feature))
    }
}
