//! Compares strings.

use estimand_tensor::{Array, Binary, DType, Dims, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::expect_dtype;
use crate::op::shape::broadcast;
use crate::op::spelling::{Spelling, typed};

/// Whether two strings are equal, or differ. Inputs are broadcast as numbers are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringEqual {
    pub negated: bool,
}

impl HostRules for StringEqual {
    fn name(&self) -> &'static str {
        if self.negated { Binary::NotEqual.tf_name() } else { Binary::Equal.tf_name() }
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        for side in &x[..2] {
            expect_dtype(DType::Str, side, "tensor that is compared with strings")?;
        }
        let shape = broadcast(&x[0].shape, &x[1].shape, inference.symbols)?;
        Ok(smallvec![TensorSpec { dtype: DType::Bool, shape }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let dims = broadcast_dims(x[0].dims(), x[1].dims())?;
        let (a, b) = (x[0].string_slice()?, x[1].string_slice()?);
        let n = dims.iter().product();
        let mut same = Vec::with_capacity(n);
        let (at_a, at_b) = (places(x[0].dims(), &dims), places(x[1].dims(), &dims));
        for i in 0..n {
            same.push((a.get(at_a(i)) == b.get(at_b(i))) != self.negated);
        }
        Ok(vec![Array::from_vec(&dims, same)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", DType::Str))
    }
}

fn broadcast_dims(a: &[usize], b: &[usize]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let at = |dims: &[usize], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |k| dims[k]);
    let size = |i: usize| match (at(a, i), at(b, i)) {
        (x, y) if x == y || y == 1 => Ok(x),
        (1, y) => Ok(y),
        _ => Err(Error::shape(format!("{a:?} and {b:?} cannot be broadcast"))),
    };
    (0..rank).map(size).collect()
}

/// Maps a position in an array of sizes `to` to the element of an array of sizes `from` that is
/// broadcast there.
fn places<'a>(from: &'a [usize], to: &'a [usize]) -> impl Fn(usize) -> usize + 'a {
    let plain = from == to;
    move |i| {
        if plain {
            return i;
        }
        let (mut rest, mut place, mut stride) = (i, 0, 1);
        for k in 0..to.len() {
            let size = to[to.len() - 1 - k];
            let at = rest % size;
            rest /= size;
            if let Some(own) = from.len().checked_sub(1 + k).map(|j| from[j]) {
                place += if own == 1 { 0 } else { at * stride };
                stride *= own;
            }
        }
        place
    }
}
