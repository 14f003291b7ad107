//! Parses serialized `tf.Example`s into features.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use estimand_tensor::{Array, DType, Dim, Error, Feature, FeatureSpec, Result, Shape, TensorSpec};
use estimand_wire::example::ExampleParser;
use estimand_wire::{DataType, NodeDef, TensorShapeProto};

use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::meaning::Listing;
use crate::op::Constant;
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::Spelling;

/// Serialized examples `[b]` -> the dense and padded features, then the values of the ragged ones,
/// then their row splits.
///
/// This is the order of TensorFlow's results. [`places`](ParseExample::places) returns the position
/// of each feature.
#[derive(Clone, Debug)]
pub struct ParseExample {
    features: Vec<(String, FeatureSpec)>,
    parser: Arc<ExampleParser>,
}

/// The positions of a feature among the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Dense(u16),
    Ragged { values: u16, row_splits: u16 },
}

impl ParseExample {
    pub fn new(features: Vec<(String, FeatureSpec)>) -> Result<ParseExample> {
        if features.is_empty() {
            return Err(Error::config("no features were given to parse from the examples; expected at least one"));
        }
        let parser = Arc::new(ExampleParser::new(features.iter().cloned())?);
        Ok(ParseExample { features, parser })
    }

    /// Returns the positions of each feature among the results.
    pub fn places(&self) -> Vec<Place> {
        let n_ragged = self.features.iter().filter(|f| is_ragged(f)).count() as u16;
        let (mut dense, mut ragged) = (0, self.features.len() as u16 - n_ragged);
        let next = |counter: &mut u16| {
            *counter += 1;
            *counter - 1
        };
        let place = |feature| match is_ragged(feature) {
            false => Place::Dense(next(&mut dense)),
            true => {
                let values = next(&mut ragged);
                Place::Ragged { values, row_splits: values + n_ragged }
            }
        };
        self.features.iter().map(place).collect()
    }
}

fn is_ragged(feature: &(String, FeatureSpec)) -> bool {
    matches!(feature.1, FeatureSpec::Ragged { .. })
}

impl HostRules for ParseExample {
    fn name(&self) -> &'static str {
        "ParseExampleV2"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::Str, x[0], "list of examples")?;
        expect_rank(1, x[0], "list of examples")?;
        let rows = x[0].shape.dims()[0];
        let n_splits = inference.symbols.add(rows, Dim::Known(1))?;
        let (mut dense, mut values, mut splits) = (Specs::new(), Specs::new(), Specs::new());
        for ((_, feature), place) in self.features.iter().zip(self.places()) {
            let dtype = feature.dtype();
            match (feature, place) {
                (FeatureSpec::Dense { dims, .. }, _) => {
                    let shape = [rows].into_iter().chain(dims.iter().map(|&n| Dim::Known(n))).collect();
                    dense.push(TensorSpec { dtype, shape });
                }
                (FeatureSpec::Padded { dims, .. }, Place::Dense(output)) => {
                    let steps = inference.axis(output, 1);
                    let shape = [rows, steps].into_iter().chain(dims.iter().map(|&n| Dim::Known(n))).collect();
                    dense.push(TensorSpec { dtype, shape });
                }
                (_, Place::Dense(_)) => return Err(Error::internal("a ragged feature has a dense place")),
                (_, Place::Ragged { values: output, .. }) => {
                    values.push(TensorSpec { dtype, shape: Shape::from([inference.axis(output, 0)]) });
                    splits.push(TensorSpec { dtype: DType::I64, shape: Shape::from([n_splits]) });
                }
            }
        }
        dense.extend(values);
        dense.extend(splits);
        Ok(dense)
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (mut dense, mut values, mut splits) = (Vec::new(), Vec::new(), Vec::new());
        for feature in self.parser.parse(x[0].strings()?)? {
            match feature {
                Feature::Dense(array) => dense.push(array),
                Feature::Ragged(ragged) => {
                    values.push(ragged.values().clone());
                    splits.push(Array::from(ragged.row_splits().to_vec()));
                }
            }
        }
        dense.append(&mut values);
        dense.append(&mut splits);
        Ok(dense)
    }

    fn meaning(&self) -> Vec<Said> {
        // Empty without defaults: the encoding of features in files does not affect any weight.
        let defaults = self.features.iter().filter_map(|(name, spec)| match spec {
            FeatureSpec::Dense { default: Some(value), .. } => Some(format!("{name} = {value:?}")),
            _ => None,
        });
        let defaults: Vec<String> = defaults.collect();
        match defaults.is_empty() {
            true => Vec::new(),
            false => vec![("defaults", Listing::of_texts(defaults).into())],
        }
    }

    fn spell(&self, def: NodeDef, _node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let owner = def.name.clone();
        let of = |ragged: bool| self.features.iter().filter(move |f| is_ragged(f) == ragged);
        let mut keys =
            |role: &str, names: Vec<&str>| writer.constant(&owner, role, &Array::from_strings([names.len()], names)?);
        let inputs = [
            keys("names", Vec::new())?,
            keys("sparse_keys", Vec::new())?,
            keys("dense_keys", of(false).map(|f| f.0.as_str()).collect())?,
            keys("ragged_keys", of(true).map(|f| f.0.as_str()).collect())?,
        ];
        let mut def = inputs.into_iter().fold(def, NodeDef::input);
        let mut shapes = Vec::new();
        for (i, (_, feature)) in of(false).enumerate() {
            let (dims, default) = match feature {
                FeatureSpec::Padded { dims, padding, .. } => {
                    let padding = padding.as_ref().map(|p| p.reshape([])).transpose()?;
                    shapes.push(TensorShapeProto::of([-1].into_iter().chain(dims.iter().map(|&n| n as i64))));
                    (vec![], padding)
                }
                FeatureSpec::Dense { dims, default, .. } => {
                    shapes.push(TensorShapeProto::of(dims.iter().map(|&n| n as i64)));
                    // TF: a default without elements means that there is no default.
                    (vec![0], default.clone())
                }
                FeatureSpec::Ragged { .. } => continue,
            };
            let default = default.map_or_else(|| Array::zeros(feature.dtype(), dims), Ok)?;
            def = def.input(writer.constant(&owner, &format!("default_{i}"), &default)?);
        }
        let types = |ragged: bool| of(ragged).map(|f| DataType::from(f.1.dtype())).collect::<Vec<_>>();
        Ok(def
            .attr("Tdense", types(false))
            .attr("num_sparse", 0i64)
            .attr("sparse_types", Vec::<DataType>::new())
            .attr("ragged_split_types", vec![DataType::Int64; types(true).len()])
            .attr("ragged_value_types", types(true))
            .attr("dense_shapes", shapes))
    }
}

/// A spec as data that can be compared and hashed. Defaults are compared by their bits.
fn key(spec: &FeatureSpec) -> (u8, DType, &[usize], Option<Constant>) {
    match spec {
        FeatureSpec::Dense { dtype, dims, default } => (0, *dtype, dims, default.clone().map(Constant)),
        FeatureSpec::Ragged { dtype } => (1, *dtype, &[], None),
        FeatureSpec::Padded { dtype, dims, padding } => (2, *dtype, dims, padding.clone().map(Constant)),
    }
}

impl PartialEq for ParseExample {
    fn eq(&self, other: &ParseExample) -> bool {
        self.features.len() == other.features.len()
            && self.features.iter().zip(&other.features).all(|(a, b)| a.0 == b.0 && key(&a.1) == key(&b.1))
    }
}

impl Eq for ParseExample {}

impl Hash for ParseExample {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (name, spec) in &self.features {
            name.hash(state);
            key(spec).hash(state);
        }
    }
}
