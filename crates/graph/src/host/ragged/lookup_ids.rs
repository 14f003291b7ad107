//! The ids of an embedding lookup: drops invalid ids and lists each id once.

use estimand_tensor::cpu::scatter;
use estimand_tensor::{Array, DType, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::{SmallVec, smallvec};

use super::{check_weights, expect_splits, expect_weights, kept_splits, splits, wide_ids};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_rank, integer_ids};
use crate::op::spelling::{Spelling, typed};

/// (ids `[n]`, row_splits, optional weights `[n]`) -> (distinct ids, the position of each kept id
/// among them, its row splits, its weight).
///
/// TF: as in `safe_embedding_lookup_sparse`, ids below 0 are dropped together with their weights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LookupIds {
    /// Also drops ids whose weight is not above 0. All combiners but the sum set this.
    pub drop_light: bool,
    /// The number of rows of the table. An id that is not below it is an error.
    pub n_rows: Option<usize>,
    /// The origin of the ids, for that error.
    pub source: Option<IdSource>,
}

/// The origin of ids: the feature that holds them, and the column that says how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdSource {
    /// The name of the feature.
    pub feature: String,
    /// The call that sets the number of ids, such as `categorical_column_with_identity("age", ..)`.
    pub column: String,
    /// Another remedy for ids that are too large.
    pub otherwise: &'static str,
    /// Whether each row of the ids is a row of the batch. If not, errors name no row.
    pub by_row: bool,
}

impl HostRules for LookupIds {
    fn name(&self) -> &'static str {
        "LookupIds"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "ids")?;
        expect_rank(1, x[0], "list of ids")?;
        expect_splits(x[1])?;
        let kept = Shape::from([inference.axis(1, 0)]);
        let mut specs: Specs = smallvec![
            TensorSpec { dtype: DType::I64, shape: Shape::from([inference.axis(0, 0)]) },
            TensorSpec { dtype: DType::I32, shape: kept.clone() },
            x[1].clone()
        ];
        if let Some(weights) = x.get(2) {
            expect_weights(weights, x[0])?;
            specs.push(TensorSpec { dtype: DType::F32, shape: kept });
        }
        Ok(specs)
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let ids = &*wide_ids(x[0])?;
        if ids.len() >= 1 << 31 {
            return Err(Error::unsupported(format!(
                "one lookup has {} ids; at most 2^31 - 1 are supported",
                ids.len()
            )));
        }
        let splits = splits(x[1], ids.len())?;
        let weights = check_weights(x.get(2).copied(), ids.len())?;
        let light = |i: usize| self.drop_light && weights.is_some_and(|w| w[i] <= 0.0);
        let keep = |i: usize| ids[i] >= 0 && !light(i);
        let limit = self.n_rows.map_or(i64::MAX, |n| n as i64);
        if let Some(i) = (0..ids.len()).find(|&i| ids[i] >= limit && keep(i)) {
            return Err(self.too_large(ids, i, splits, limit));
        }
        if (0..ids.len()).all(keep) {
            let (distinct, places) = distinct(ids)?;
            let mut results = vec![distinct, places, x[1].clone()];
            results.extend(x.get(2).copied().cloned());
            return Ok(results);
        }
        let positions: Vec<usize> = (0..ids.len()).filter(|&i| keep(i)).collect();
        let kept: Vec<i64> = positions.iter().map(|&i| ids[i]).collect();
        let (distinct, places) = distinct(&kept)?;
        let mut results = vec![distinct, places, Array::from(kept_splits(splits, keep))];
        if let Some(weights) = weights {
            results.push(Array::from(positions.iter().map(|&i| weights[i]).collect::<Vec<f32>>()));
        }
        Ok(results)
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let owner = def.name.clone();
        let [ids, splits] = [def.input[0].clone(), def.input[1].clone()];
        let weights = def.input.get(2).cloned();
        let ids = match writer.dtype(node, 0) {
            DType::I64 => ids,
            narrow => {
                let wide = writer.part(&owner, "wide_ids", "Cast").input(ids);
                writer.add(typed(typed(wide, "SrcT", narrow), "DstT", DType::I64))
            }
        };
        let rows = writer.row_ids(&owner, splits.clone(), ids.clone(), DType::I64)?;
        let zero = writer.constant(&owner, "lowest", &Array::scalar(0i64))?;
        let mask = writer.part(&owner, "known", "GreaterEqual").input(ids.clone()).input(zero);
        let mut mask = writer.add(typed(mask, "T", DType::I64));
        if let Some(weights) = weights.clone().filter(|_| self.drop_light) {
            let nothing = writer.constant(&owner, "nothing", &Array::scalar(0f32))?;
            let heavy = writer.part(&owner, "heavy", "Greater").input(weights).input(nothing);
            let heavy = writer.add(typed(heavy, "T", DType::F32));
            mask = {
                let both = writer.part(&owner, "both", "LogicalAnd").input(mask).input(heavy);
                writer.add(both)
            };
        }
        let kept = writer.kept(&owner, mask, &rows, &splits)?;
        let gather = |writer: &mut dyn Spelling, role: &str, from: String, dtype: DType| {
            writer.gather_rows(&owner, role, from, kept.positions.clone(), dtype, DType::I64)
        };
        let ids = gather(writer, "kept_ids", ids, DType::I64)?;
        let unique = writer.part(&owner, "unique", "Unique").input(ids);
        let unique = writer.add(typed(typed(unique, "T", DType::I64), "out_idx", DType::I32));
        let places = format!("{unique}:1");
        let mut outputs = vec![(unique, DType::I64), (places, DType::I32), (kept.splits.clone(), DType::I64)];
        if let Some(weights) = weights {
            outputs.push((gather(writer, "kept_weights", weights, DType::F32)?, DType::F32));
        }
        Ok(writer.several(def, outputs))
    }
}

impl LookupIds {
    /// The error of the id at position `i`.
    fn too_large(&self, ids: &[i64], i: usize, splits: &[i64], limit: i64) -> Error {
        let (id, row) = (ids[i], splits.partition_point(|&begin| begin <= i as i64).saturating_sub(1));
        let Some(source) = &self.source else {
            return Error::index(format!("the id {id} in row {row} is not in [0, {limit})"))
                .help("check the ids against the size of the table");
        };
        let place = if source.by_row { format!(" in row {row}") } else { String::new() };
        let text = format!("feature `{}` has the id {id}{place}; expected 0 to {}", source.feature, limit - 1);
        let needed = ids.iter().max().map_or(limit, |&largest| largest.saturating_add(1));
        let help = format!("give {} at least {needed} buckets, or {}", source.column, source.otherwise);
        Error::index(text).help(help)
    }
}

/// So few ids are compared with each other: that is quicker than a table in new memory. A row alone
/// has few.
const FEW_IDS: usize = 8;

/// The ids, each once in the order of its first place, and the place among them of each id.
fn distinct(ids: &[i64]) -> Result<(Array, Array)> {
    if ids.len() <= FEW_IDS {
        let mut distinct: SmallVec<[i64; FEW_IDS]> = SmallVec::new();
        let place = |id: &i64| {
            let known = distinct.iter().position(|known| known == id);
            known.unwrap_or_else(|| {
                distinct.push(*id);
                distinct.len() - 1
            }) as i32
        };
        let places: SmallVec<[i32; FEW_IDS]> = ids.iter().map(place).collect();
        return Ok((Array::from_slice([distinct.len()], &distinct)?, Array::from_slice([places.len()], &places)?));
    }
    let mut distinct = vec![0; ids.len()];
    let mut places = vec![0; ids.len()];
    let mut scratch = vec![0; scatter::unique_scratch_len(ids.len())];
    let n = scatter::unique(ids, &mut distinct, &mut places, &mut scratch);
    distinct.truncate(n);
    Ok((Array::from(distinct), Array::from(places)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(drop_light: bool) -> LookupIds {
        LookupIds { drop_light, n_rows: None, source: None }
    }

    #[test]
    fn drops_what_does_not_count() {
        // Rows [5, -1, 5], [], [2, 5]; the second 5 has no weight.
        let ids = Array::from([5i32, -1, 5, 2, 5]);
        let splits = Array::from([0i64, 3, 3, 5]);
        let weights = Array::from([1f32, 2.0, 0.0, 3.0, 4.0]);
        let out = lookup(true).run(&[&ids, &splits, &weights]).unwrap();
        assert_eq!(out[0].as_slice::<i64>().unwrap(), [5, 2]);
        assert_eq!(out[1].as_slice::<i32>().unwrap(), [0, 1, 0]);
        assert_eq!(out[2].as_slice::<i64>().unwrap(), [0, 1, 1, 3]);
        assert_eq!(out[3].as_slice::<f32>().unwrap(), [1.0, 3.0, 4.0]);
        let sum = lookup(false).run(&[&ids, &splits, &weights]).unwrap();
        assert_eq!(sum[3].as_slice::<f32>().unwrap(), [1.0, 0.0, 3.0, 4.0]);
        let error = lookup(false).run(&[&ids, &splits, &Array::from([1f32])]).unwrap_err();
        assert!(error.to_string().contains("1 weights for 5 ids"));
    }

    /// Few ids and many take different ways: ids in a circle of five, by hand.
    #[test]
    fn few_and_many_ids_have_the_same_order() {
        for n in [0, 1, 2, FEW_IDS, FEW_IDS + 1, 100] {
            let ids: Vec<i64> = (0..n as i64).map(|i| 100 - i % 5).collect();
            let (distinct, places) = distinct(&ids).unwrap();
            assert_eq!(distinct.as_slice::<i64>().unwrap(), &[100, 99, 98, 97, 96][..n.min(5)]);
            let expected: Vec<i32> = (0..n as i32).map(|i| i % 5).collect();
            assert_eq!(places.as_slice::<i32>().unwrap(), expected);
        }
    }

    #[test]
    fn an_id_beyond_the_table_is_named_with_its_row() {
        let (ids, splits) = (Array::from([2i64, -7, 3, 12]), Array::from([0i64, 2, 2, 4]));
        let table = LookupIds { n_rows: Some(3), ..lookup(false) };
        let error = table.run(&[&ids, &splits]).unwrap_err().to_string();
        assert_eq!(error, "the id 3 in row 2 is not in [0, 3)\n  help: check the ids against the size of the table");
        assert!(LookupIds { n_rows: Some(13), ..lookup(false) }.run(&[&ids, &splits]).is_ok());
        let (feature, column) = ("age".to_string(), "identity(\"age\", ..)".to_string());
        let source = IdSource { feature, column, otherwise: "drop them", by_row: true };
        let named = LookupIds { source: Some(source.clone()), ..table.clone() };
        let error = named.run(&[&ids, &splits]).unwrap_err().to_string();
        let expected = "feature `age` has the id 3 in row 2; expected 0 to 2\n  \
                        help: give identity(\"age\", ..) at least 13 buckets, or drop them";
        assert_eq!(error, expected);
        let steps = LookupIds { source: Some(IdSource { by_row: false, ..source }), ..table };
        let error = steps.run(&[&ids, &splits]).unwrap_err().to_string();
        assert!(error.starts_with("feature `age` has the id 3; expected 0 to 2\n"), "{error}");
        // An id that is dropped for its weight is no error.
        let light = LookupIds { n_rows: Some(3), ..lookup(true) };
        let x = [Array::from([9i64, 1]), Array::from([0i64, 2]), Array::from([0f32, 1.0])];
        assert_eq!(light.run(&x.each_ref()).unwrap()[0].as_slice::<i64>().unwrap(), [1]);
    }
}
