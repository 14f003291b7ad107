//! Distributes rows to several lists and merges them again, as lookups in a partitioned table do.

use estimand_tensor::{Array, DType, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{integers, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_rank, integer_ids};
use crate::op::spelling::{Spelling, typed};

/// The list number of each row `[n]` -> the row numbers of each list in order, i64. TensorFlow's
/// `DynamicPartition` moves these rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionPlaces {
    pub n: usize,
}

impl HostRules for PartitionPlaces {
    fn name(&self) -> &'static str {
        "DynamicPartition"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "numbers of lists")?;
        expect_rank(1, x[0], "numbers of lists")?;
        let n = u16::try_from(self.n).ok().filter(|&n| n > 0);
        let n =
            n.ok_or_else(|| Error::config(format!("the number of lists is {}; expected 1 to {}", self.n, u16::MAX)))?;
        Ok((0..n).map(|i| spec(DType::I64, [inference.axis(i, 0)])).collect())
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let mut lists: Vec<Vec<i64>> = vec![Vec::new(); self.n];
        for (row, list) in integers(x[0])?.into_iter().enumerate() {
            let place = usize::try_from(list).ok().and_then(|list| lists.get_mut(list));
            let place = place.ok_or_else(|| {
                Error::index(format!("row {row} is for list {list}; expected 0 or more and less than {}", self.n))
            })?;
            place.push(row as i64);
        }
        Ok(lists.into_iter().map(Array::from).collect())
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let lists = writer.converted(def.input[0].clone(), writer.dtype(node, 0), DType::I32);
        let rows = writer.row_numbers(&def.name, lists.clone(), DType::I32)?;
        def.input = vec![rows, lists];
        Ok(typed(def, "T", DType::I64).attr("num_partitions", self.n as i64))
    }
}

/// Lists of row numbers -> for each row its position in the concatenated lists, i64. TensorFlow's
/// `DynamicStitch` moves these rows.
///
/// If a row occurs several times, the last position counts. A row that no list names has the first
/// position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StitchPlaces;

/// The largest number of rows. A larger number is taken to be damaged or hostile.
const MAX_ROWS: i64 = 1 << 26;

impl HostRules for StitchPlaces {
    fn name(&self) -> &'static str {
        "DynamicStitch"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "rows")?;
        expect_rank(1, x[0], "list of rows")?;
        Ok(smallvec![spec(DType::I64, Shape::from([inference.axis(0, 0)]))])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let rows = integers(x[0])?;
        let n = rows.iter().max().map_or(0, |last| last.saturating_add(1));
        if rows.iter().any(|row| !(0..MAX_ROWS).contains(row)) {
            return Err(Error::index(format!(
                "the row numbers go up to {}; expected 0 or more and less than {MAX_ROWS}",
                n - 1
            )));
        }
        let mut places = vec![0; n as usize];
        for (place, &row) in rows.iter().enumerate() {
            places[row as usize] = place as i64;
        }
        Ok(vec![Array::from(places)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let rows = writer.converted(def.input[0].clone(), writer.dtype(node, 0), DType::I32);
        let places = writer.row_numbers(&def.name, rows.clone(), DType::I32)?;
        def.input = vec![rows, places];
        Ok(typed(def, "T", DType::I64).attr("N", 1i64))
    }
}

impl dyn Spelling + '_ {
    /// Writes 0, 1, 2, ... (i64) for each element of a list.
    fn row_numbers(&mut self, owner: &str, list: String, dtype: DType) -> Result<String> {
        let size = self.part(owner, "size", "Size").input(list);
        let size = self.add(typed(typed(size, "T", dtype), "out_type", DType::I64));
        let first = self.constant(owner, "first", &Array::scalar(0i64))?;
        let step = self.constant(owner, "step", &Array::scalar(1i64))?;
        let range = self.part(owner, "rows", "Range").input(first).input(size).input(step);
        Ok(self.add(typed(range, "Tidx", DType::I64)))
    }
}
