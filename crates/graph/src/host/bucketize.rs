//! Maps numbers to buckets.

use std::hash::{Hash, Hasher};

use estimand_tensor::cpu::bucketize::{Boundaries, bucketize};
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::meaning::Listing;
use crate::op::spelling::{Spelling, typed};

/// Counts the boundaries that are not above each number, i32. NaN goes to the last bucket.
#[derive(Clone, Debug)]
pub struct Bucketize {
    boundaries: Vec<f32>,
}

impl Bucketize {
    pub(crate) fn new(boundaries: &[f32]) -> Bucketize {
        Bucketize { boundaries: boundaries.to_vec() }
    }

    /// The boundaries in rising order.
    pub fn values(&self) -> &[f32] {
        &self.boundaries
    }

    /// Boundaries compare by their bits.
    fn bits(&self) -> impl Iterator<Item = u32> {
        self.boundaries.iter().map(|b| b.to_bits())
    }
}

impl PartialEq for Bucketize {
    fn eq(&self, other: &Bucketize) -> bool {
        self.bits().eq(other.bits())
    }
}

impl Eq for Bucketize {}

impl Hash for Bucketize {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().for_each(|bits| bits.hash(state));
    }
}

impl HostRules for Bucketize {
    fn name(&self) -> &'static str {
        "Bucketize"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Boundaries::new(&self.boundaries)?;
        match x[0].dtype {
            DType::F32 | DType::F64 | DType::I32 | DType::I64 => {}
            other => {
                return Err(Error::dtype(
                    Some(DType::F32),
                    other,
                    format!("cannot bucketize {other}; expected f32, f64, i32 or i64"),
                ));
            }
        }
        Ok(smallvec![TensorSpec { dtype: DType::I32, shape: x[0].shape.clone() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let boundaries = Boundaries::new(&self.boundaries)?;
        let buckets = Array::written(x[0].dims(), |buckets| {
            match x[0].dtype() {
                DType::F32 => bucketize(x[0].as_slice::<f32>()?, boundaries, buckets),
                DType::F64 => bucketize(x[0].as_slice::<f64>()?, boundaries, buckets),
                DType::I32 => bucketize(x[0].as_slice::<i32>()?, boundaries, buckets),
                _ => bucketize(x[0].as_slice::<i64>()?, boundaries, buckets),
            }
            Ok(())
        })?;
        Ok(vec![buckets])
    }

    fn meaning(&self) -> Vec<Said> {
        let boundaries: Vec<f64> = self.boundaries.iter().copied().map(f64::from).collect();
        vec![("boundaries", Listing::of_floats(&boundaries).into())]
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)).attr("boundaries", self.boundaries.clone()))
    }
}
