//! Parses serialized `tf.Example`s.

use std::panic::Location;

use estimand_tensor::{BatchSpec, FeatureSpec};
use indexmap::IndexMap;

use crate::host::HostOp;
use crate::host::parse_example::{ParseExample, Place};
use crate::ragged::RaggedTensor;
use crate::tensor::Tensor;

/// A feature of parsed examples.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// The same number of values in every row: `[batch, ...]`.
    Dense(Tensor),
    /// Any number of values in a row.
    Ragged(RaggedTensor),
}

impl Parsed {
    /// The tensor of a dense feature, or the values of a ragged one.
    pub fn values(&self) -> &Tensor {
        match self {
            Parsed::Dense(tensor) => tensor,
            Parsed::Ragged(ragged) => &ragged.values,
        }
    }
}

impl Tensor {
    /// Parses the features of serialized `tf.Example`s `[batch]`, by name: TensorFlow's
    /// `parse_example`.
    ///
    /// ```
    /// use estimand_engine::Session;
    /// use estimand_graph::{Graph, Parsed};
    /// use estimand_tensor::{Array, BatchSpec, DType, Dim, FeatureSpec};
    /// use estimand_wire::example::ExampleBuilder;
    ///
    /// let g = Graph::new();
    /// let examples = g.placeholder("examples", DType::Str, [Dim::BATCH]);
    /// let spec = BatchSpec::from([
    ///     ("age".into(), FeatureSpec::dense_or(Array::from(40.0f32))),
    ///     ("tags".into(), FeatureSpec::ragged(DType::Str)),
    /// ]);
    /// let features = examples.parse_example(&spec);
    /// let Parsed::Ragged(tags) = &features["tags"] else { panic!("tags are ragged") };
    ///
    /// let rows = [ExampleBuilder::new().strings("tags", ["a", "b"]).build(), ExampleBuilder::new().floats("age", &[39.0]).build()];
    /// let fed = [(&examples, Array::from_strings([2], rows)?)];
    /// let out = Session::new(&g)?.run(&[features["age"].values(), &tags.row_splits], &fed)?;
    /// assert_eq!(out[0].as_slice::<f32>()?, [40.0, 39.0]);
    /// assert_eq!(out[1].as_slice::<i64>()?, [0, 2, 2]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn parse_example(&self, features: &BatchSpec) -> IndexMap<String, Parsed> {
        let site = Location::caller();
        let op = match ParseExample::new(features.iter().map(|(name, spec)| (name.clone(), spec.clone())).collect()) {
            Ok(op) => op,
            Err(error) => {
                let poison = self.record(error, site);
                let failed = |spec: &FeatureSpec| match spec {
                    FeatureSpec::Ragged { .. } => Parsed::Ragged(RaggedTensor::new(&poison, &poison)),
                    _ => Parsed::Dense(poison.clone()),
                };
                return features.iter().map(|(name, spec)| (name.clone(), failed(spec))).collect();
            }
        };
        let places = op.places();
        let first = self.then(HostOp::new(op), &[], site);
        let output = |i: u16| self.graph().output(&first, i);
        let parsed = |place| match place {
            Place::Dense(i) => Parsed::Dense(output(i)),
            Place::Ragged { values, row_splits } => {
                Parsed::Ragged(RaggedTensor { values: output(values), row_splits: output(row_splits) })
            }
        };
        features.keys().cloned().zip(places.into_iter().map(parsed)).collect()
    }
}
