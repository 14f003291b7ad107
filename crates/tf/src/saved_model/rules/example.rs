//! Reads the ops that parse `tf.Example`s.

use estimand_graph::Tensor;
use estimand_graph::host::parse_example::{ParseExample, Place};
use estimand_graph::op::reading::{Reading, refuse};
use estimand_tensor::{Array, DType, Error, FeatureSpec, Result};
use estimand_wire::TensorShapeProto;

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs};
use super::sparse::sparse_of_ragged;

/// The keys with their specs, in TensorFlow's order.
struct Keys {
    sparse: Vec<(String, DType)>,
    dense: Vec<(String, FeatureSpec)>,
    ragged: Vec<(String, DType, DType)>,
}

/// (serialized, names, sparse keys, dense keys, ragged keys, defaults).
pub(super) fn parse(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (sparse, dense, ragged) = (texts(call, 2)?, texts(call, 3)?, texts(call, 4)?);
    let defaults = call.n_inputs() - 5.min(call.n_inputs());
    let defaults: Vec<usize> = (5..5 + defaults).collect();
    let split_types = call.dtypes("ragged_split_types")?;
    let ragged = zipped(ragged, call.dtypes("ragged_value_types")?, "ragged_value_types")?;
    let ragged = zipped(ragged, split_types, "ragged_split_types")?.into_iter().map(|((k, v), s)| (k, v, s)).collect();
    let sparse = zipped(sparse, call.dtypes("sparse_types")?, "sparse_types")?;
    let dense = dense_features(call, dense, &defaults)?;
    outputs(call, Keys { sparse, dense, ragged })
}

/// The first version: (serialized, names, each sparse key, each dense key, defaults).
pub(super) fn parse_first(call: &mut NodeReader<'_, '_>) -> Outputs {
    let n_sparse = usize::try_from(call.int_or("Nsparse", 0)?).unwrap_or(usize::MAX);
    let n_dense = usize::try_from(call.int_or("Ndense", 0)?).unwrap_or(usize::MAX);
    let needed = n_dense.checked_mul(2).and_then(|n| n.checked_add(n_sparse)).and_then(|n| n.checked_add(2));
    if needed != Some(call.n_inputs()) {
        return Err(Error::config(format!(
            "the node has {} inputs, which do not fit {n_sparse} sparse and {n_dense} dense keys",
            call.n_inputs()
        )));
    }
    let mut key = |i: usize| -> Result<String> {
        texts(call, i)?.pop().ok_or_else(|| Error::config(format!("input {i} is empty; expected a key")))
    };
    let sparse = (2..2 + n_sparse).map(&mut key).collect::<Result<Vec<_>>>()?;
    let dense = (2 + n_sparse..2 + n_sparse + n_dense).map(&mut key).collect::<Result<Vec<_>>>()?;
    let defaults: Vec<usize> = (2 + n_sparse + n_dense..call.n_inputs()).collect();
    let sparse = zipped(sparse, call.dtypes("sparse_types")?, "sparse_types")?;
    let dense = dense_features(call, dense, &defaults)?;
    outputs(call, Keys { sparse, dense, ragged: Vec::new() })
}

fn texts(call: &mut NodeReader<'_, '_>, i: usize) -> Result<Vec<String>> {
    let array = call.constant(i)?;
    let text = |s: &[u8]| {
        String::from_utf8(s.to_vec())
            .map_err(|_| Error::unsupported(format!("the key {:?} is not UTF-8 text", s.escape_ascii())))
    };
    array.strings()?.map(text).collect()
}

fn zipped<A, B>(keys: Vec<A>, values: Vec<B>, what: &str) -> Result<Vec<(A, B)>> {
    if keys.len() != values.len() {
        return Err(Error::config(format!("there are {} keys, but `{what}` has {} values", keys.len(), values.len())));
    }
    Ok(keys.into_iter().zip(values).collect())
}

fn dense_features(
    call: &mut NodeReader<'_, '_>,
    keys: Vec<String>,
    defaults: &[usize],
) -> Result<Vec<(String, FeatureSpec)>> {
    let (dtypes, shapes) = (call.dtypes("Tdense")?, call.list("dense_shapes")?.shape);
    if [dtypes.len(), shapes.len(), defaults.len()] != [keys.len(); 3] {
        let (t, s, d) = (dtypes.len(), shapes.len(), defaults.len());
        return Err(Error::config(format!(
            "there are {} dense keys, {t} types, {s} shapes and {d} defaults; expected the same number of each",
            keys.len()
        )));
    }
    let mut features = Vec::new();
    for (i, key) in keys.into_iter().enumerate() {
        let default = call.constant(defaults[i])?;
        let spec =
            dense_feature(dtypes[i], &shapes[i], default).map_err(|e| e.context(format!("in feature `{key}`")))?;
        features.push((key, spec));
    }
    Ok(features)
}

fn dense_feature(dtype: DType, shape: &TensorShapeProto, default: Array) -> Result<FeatureSpec> {
    let sizes: Vec<i64> =
        shape.sizes().ok_or_else(|| Error::shape("the rank of a dense feature is not known"))?.collect();
    let (variable, rest) = match sizes.split_first() {
        Some((-1, rest)) => (true, rest),
        _ => (false, &sizes[..]),
    };
    let dims: Option<Vec<usize>> = rest.iter().map(|&n| usize::try_from(n).ok()).collect();
    let dims = dims.ok_or_else(|| {
        Error::shape(format!("a dense feature has the shape {sizes:?}; expected known sizes after the first"))
    })?;
    // TF: a default without elements means that there is no default.
    let default = (!default.is_empty()).then_some(default);
    if variable {
        return Ok(FeatureSpec::Padded { dtype, dims, padding: default });
    }
    let default = default.map(|value| value.reshape(&dims)).transpose()?;
    Ok(FeatureSpec::Dense { dtype, dims, default })
}

/// Sparse features are ragged in our graph. The results have TensorFlow's order.
fn outputs(call: &mut NodeReader<'_, '_>, keys: Keys) -> Outputs {
    let serialized = call.tensor(0)?;
    if serialized.rank() != 1 {
        return Err(refuse(format!("a parser of {}", serialized.spec())));
    }
    let mut features = keys.dense.clone();
    features.extend(keys.sparse.iter().map(|(key, dtype)| (key.clone(), FeatureSpec::ragged(*dtype))));
    features.extend(keys.ragged.iter().map(|(key, dtype, _)| (key.clone(), FeatureSpec::ragged(*dtype))));
    if features.is_empty() {
        return Ok(Vec::new());
    }
    let op = ParseExample::new(features)?;
    let places = op.places();
    let parsed = call.host(op, &[&serialized])?;
    let tensor = |i: u16| -> Tensor { parsed[usize::from(i)].clone() };
    let (mut indices, mut values, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut dense, mut ragged, mut splits) = (Vec::new(), Vec::new(), Vec::new());
    for (i, place) in places.into_iter().enumerate() {
        match place {
            Place::Dense(at) => dense.push(NodeOutput::from(tensor(at))),
            Place::Ragged { values: v, row_splits: s } if i < keys.dense.len() + keys.sparse.len() => {
                let [index, value, shape] = sparse_of_ragged(call, &tensor(s), &tensor(v))?;
                indices.push(index);
                values.push(value);
                shapes.push(shape);
            }
            Place::Ragged { values: v, row_splits: s } => {
                let dtype = keys.ragged[i - keys.dense.len() - keys.sparse.len()].2;
                ragged.push(NodeOutput::from(tensor(v)));
                splits.push(NodeOutput::from(tensor(s).cast(dtype)));
            }
        }
    }
    Ok([indices, values, shapes, dense, ragged, splits].concat())
}
