//! Maps numbers to buckets.

use estimand_tensor::cpu::bucketize::{Boundaries, bucketize};
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::meaning::Listing;
use crate::op::spelling::{Spelling, typed};

/// Counts the boundaries that are not above each number, i32. NaN goes to the last bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bucketize {
    /// The bits of the boundaries, so that equal boundaries compare equal.
    boundaries: Vec<u32>,
}

impl Bucketize {
    pub(crate) fn new(boundaries: &[f32]) -> Bucketize {
        Bucketize { boundaries: boundaries.iter().map(|b| b.to_bits()).collect() }
    }

    /// The boundaries in rising order.
    pub fn values(&self) -> Vec<f32> {
        self.boundaries.iter().map(|&bits| f32::from_bits(bits)).collect()
    }
}

impl HostRules for Bucketize {
    fn name(&self) -> &'static str {
        "Bucketize"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Boundaries::new(self.values())?;
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
        let boundaries = Boundaries::new(self.values())?;
        let mut buckets = vec![0; x[0].len()];
        match x[0].dtype() {
            DType::F32 => bucketize(x[0].as_slice::<f32>()?, &boundaries, &mut buckets),
            DType::F64 => bucketize(x[0].as_slice::<f64>()?, &boundaries, &mut buckets),
            DType::I32 => bucketize(x[0].as_slice::<i32>()?, &boundaries, &mut buckets),
            _ => bucketize(x[0].as_slice::<i64>()?, &boundaries, &mut buckets),
        }
        Ok(vec![Array::from_vec(x[0].dims(), buckets)?])
    }

    fn meaning(&self) -> Vec<Said> {
        let boundaries: Vec<f64> = self.values().into_iter().map(f64::from).collect();
        vec![("boundaries", Listing::of_floats(&boundaries).into())]
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)).attr("boundaries", self.values()))
    }
}
