//! Distinct values.

use std::collections::HashMap;

use estimand_tensor::cpu::index::Id;
use estimand_tensor::cpu::scatter;
use estimand_tensor::{Array, DType, Element, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::op::expect::expect_rank;
use crate::op::spelling::{Spelling, typed};

/// `[n]` -> (the distinct values in order of first appearance, the index of each value among them).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unique {
    /// The dtype of the indices: i32 or i64.
    pub places: DType,
}

impl HostRules for Unique {
    fn name(&self) -> &'static str {
        "Unique"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        expect_rank(1, x[0], "input")?;
        let distinct = Shape::from([inference.axis(0, 0)]);
        Ok(smallvec![
            TensorSpec { dtype: x[0].dtype, shape: distinct },
            TensorSpec { dtype: self.places, shape: x[0].shape.clone() }
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let n = x[0].len();
        if n >= 1 << 31 {
            return Err(Error::unsupported(format!("there are {n} values; at most 2^31 - 1 can be made unique")));
        }
        let (distinct, places) = match x[0].dtype() {
            DType::I32 => integers(x[0].as_slice::<i32>()?)?,
            DType::I64 => integers(x[0].as_slice::<i64>()?)?,
            DType::Str => strings(x[0])?,
            DType::F32 => floats(x[0].as_slice::<f32>()?, |value| f64::from(value).to_bits())?,
            DType::F64 => floats(x[0].as_slice::<f64>()?, f64::to_bits)?,
            _ => others(x[0])?,
        };
        let places = match self.places {
            DType::I64 => Array::from_vec([n], places.into_iter().map(i64::from).collect())?,
            _ => Array::from_vec([n], places)?,
        };
        Ok(vec![distinct, places])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(typed(def, "T", writer.dtype(node, 0)), "out_idx", self.places))
    }
}

fn integers<T: Id + Element + Default>(ids: &[T]) -> Result<(Array, Vec<i32>)> {
    let mut distinct = vec![T::default(); ids.len()];
    let mut places = vec![0; ids.len()];
    let mut scratch = vec![0; scatter::unique_scratch_len(ids.len())];
    let n = scatter::unique(ids, &mut distinct, &mut places, &mut scratch);
    distinct.truncate(n);
    Ok((Array::from_vec([n], distinct)?, places))
}

fn strings(x: &Array) -> Result<(Array, Vec<i32>)> {
    let mut known: HashMap<&[u8], i32> = HashMap::new();
    let mut distinct = Vec::new();
    let mut places = Vec::with_capacity(x.len());
    for s in x.strings()? {
        let place = *known.entry(s).or_insert_with(|| {
            distinct.push(s);
            distinct.len() as i32 - 1
        });
        places.push(place);
    }
    Ok((Array::from_strings([distinct.len()], distinct)?, places))
}

/// 0 and -0 are one value. A NaN equals no other value, itself included.
fn floats<T: Element + Default + PartialOrd>(values: &[T], bits: impl Fn(T) -> u64) -> Result<(Array, Vec<i32>)> {
    let mut known: HashMap<u64, i32> = HashMap::new();
    let mut distinct = Vec::new();
    let mut places = Vec::with_capacity(values.len());
    for &value in values {
        let next = distinct.len() as i32;
        let is_nan = value.partial_cmp(&value).is_none();
        let key = if value == T::default() { bits(T::default()) } else { bits(value) };
        let place = if is_nan { next } else { *known.entry(key).or_insert(next) };
        if place == next {
            distinct.push(value);
        }
        places.push(place);
    }
    Ok((Array::from_vec([distinct.len()], distinct)?, places))
}

/// Compares values of other dtypes by their bytes.
fn others(x: &Array) -> Result<(Array, Vec<i32>)> {
    let size = x.dtype().size();
    let mut known: HashMap<&[u8], i32> = HashMap::new();
    let mut distinct = Vec::new();
    let mut places = Vec::with_capacity(x.len());
    for value in x.bytes().chunks_exact(size) {
        let next = known.len() as i32;
        let place = *known.entry(value).or_insert_with(|| {
            distinct.extend_from_slice(value);
            next
        });
        places.push(place);
    }
    Ok((Array::from_bytes(x.dtype(), [distinct.len() / size], &distinct)?, places))
}
