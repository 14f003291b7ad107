//! The largest elements, for a count that is known only at run time.

use estimand_tensor::{Array, DType, Dim, Element, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{integers, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{accepts, expect_rank, integer_ids};
use crate::op::spelling::{Spelling, typed};

/// (list `[n]`, k) -> (the k largest in descending order, their positions as i32). Equal elements
/// keep their order.
///
/// With k equal to the length, this is how TensorFlow sorts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Top {
    /// The number of elements, as a size.
    pub k: Dim,
}

impl HostRules for Top {
    fn name(&self) -> &'static str {
        "TopKV2"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[0].dtype.is_number(), x[0].dtype)?;
        expect_rank(1, x[0], "list")?;
        integer_ids(x[1], "number k")?;
        expect_rank(0, x[1], "number k")?;
        Ok(smallvec![spec(x[0].dtype, [self.k]), spec(DType::I32, [self.k])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (k, n) = (integers(x[1])?[0], x[0].len());
        let k = usize::try_from(k).ok().filter(|&k| k <= n);
        let k = k.ok_or_else(|| Error::shape(format!("k is {}; expected 0 to {n}, the number of elements", x[1])))?;
        match x[0].dtype() {
            DType::F32 => top(x[0].as_slice::<f32>()?, k),
            DType::F64 => top(x[0].as_slice::<f64>()?, k),
            DType::I32 => top(x[0].as_slice::<i32>()?, k),
            DType::U8 => top(x[0].as_slice::<u8>()?, k),
            _ => top(x[0].as_slice::<i64>()?, k),
        }
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let k = writer.converted(def.input[1].clone(), writer.dtype(node, 1), DType::I32);
        let def = NodeDef { input: vec![def.input[0].clone(), k], ..def };
        Ok(typed(def.attr("sorted", true), "T", writer.dtype(node, 0)))
    }
}

fn top<T: Element + PartialOrd>(list: &[T], k: usize) -> Result<Vec<Array>> {
    let mut order: Vec<i32> = (0..list.len()).map(|i| i as i32).collect();
    // A stable sort. NaN comes last.
    let is_nan = |i: i32| list[i as usize].partial_cmp(&list[i as usize]).is_none();
    order.sort_by(|&a, &b| {
        let falling = list[b as usize].partial_cmp(&list[a as usize]);
        falling.unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
    });
    order.truncate(k);
    let values: Vec<T> = order.iter().map(|&i| list[i as usize]).collect();
    Ok(vec![Array::from_vec([k], values)?, Array::from_vec([k], order)?])
}
