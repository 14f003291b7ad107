//! Vocabularies and boundaries.

use estimand_graph::LookupTable;
use estimand_graph::host::Bucketize;
use estimand_graph::host::table::FindTerm;
use estimand_tensor::vocabulary::{Terms, Unknown};
use estimand_tensor::{Array, DType, Result, Strings};

use crate::message::AttributeProto;
use crate::ops::At;
use crate::refuse::hashed;
use crate::tensor::utf8;

/// The terms as ONNX lists them.
fn texts(terms: &Terms) -> Result<Vec<Vec<u8>>> {
    let mut all = Strings::with_capacity(terms.len());
    (0..terms.len()).for_each(|number| _ = terms.push_to(number, &mut all));
    let all = Array::from_string_list([terms.len()], all)?;
    all.strings()?.map(|term| utf8(term).map(<[u8]>::to_vec)).collect()
}

/// The id of each term.
pub(super) fn find_id(at: &mut At<'_, '_, '_, '_>, table: &LookupTable) -> Result<String> {
    let terms = table.vocabulary().terms();
    let n = terms.len() as i64;
    let unknown = match table.unknown() {
        Unknown::Id(id) => id,
        // A single bucket needs no hash.
        Unknown::Buckets(buckets) if buckets.n() == 1 => n,
        Unknown::Buckets(buckets) => return hashed(buckets.n()),
    };
    let (keys, x) = match terms.dtype() {
        DType::Str => (AttributeProto::texts("keys_strings", texts(terms)?), at.x(0)?),
        _ => (AttributeProto::ints("keys_int64s", terms.ints().iter().copied()), at.wide(0)?),
    };
    if n == 0 {
        let (unknown, shape) = (at.scalar(unknown)?, at.shape_of(&x));
        return Ok(at.filled(&unknown, &shape));
    }
    let values = AttributeProto::ints("values_int64s", 0..n);
    Ok(at.add_ml("LabelEncoder", &[&x], vec![keys, values, AttributeProto::int("default_int64", unknown)]))
}

/// The term of each id.
pub(super) fn find_term(at: &mut At<'_, '_, '_, '_>, find: &FindTerm) -> Result<String> {
    let terms = find.table.vocabulary().terms();
    let ids = at.wide(0)?;
    let unknown = utf8(&find.unknown)?.to_vec();
    if terms.is_empty() {
        let unknown = at.constant(&Array::from_strings([], [unknown])?)?;
        let shape = at.shape_of(&ids);
        return Ok(at.filled(&unknown, &shape));
    }
    let attributes = vec![
        AttributeProto::ints("keys_int64s", 0..terms.len() as i64),
        AttributeProto::texts("values_strings", texts(terms)?),
        AttributeProto::text("default_string", unknown),
    ];
    Ok(at.add_ml("LabelEncoder", &[&ids], attributes))
}

/// The number of boundaries that are not above each number. NaN goes to the last bucket, so that
/// boundaries are counted that the number is not below.
pub(super) fn bucketize(at: &mut At<'_, '_, '_, '_>, op: &Bucketize) -> Result<String> {
    let (x, from) = (at.x(0)?, at.dtype(0));
    let boundaries = op.values();
    let (x, boundaries) = match from {
        DType::F32 => (x, at.constant(&Array::from(boundaries.to_vec()))?),
        _ => {
            let wide: Vec<f64> = boundaries.iter().copied().map(f64::from).collect();
            (at.cast(&x, from, DType::F64), at.constant(&Array::from(wide))?)
        }
    };
    let column = at.unsqueeze(&x, &[-1])?;
    let is_below = at.add("Less", &[&column, &boundaries]);
    let is_reached = at.add("Not", &[&is_below]);
    let counted = at.cast(&is_reached, DType::Bool, DType::I32);
    // Not -1: onnxruntime does not reduce a last axis of no rows then.
    at.sum(&counted, &[at.rank(0) as i64], false)
}
