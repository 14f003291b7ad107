//! Crosses of sparse and dense keys.

use estimand_tensor::cpu::text::{Cross, CrossKey, CrossRows, CrossValues, MAX_CROSSED_VALUES};
use estimand_tensor::{Array, DType, Dim, Error, Result, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{index_shape, size_list, sizes, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs, alone};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::{Spelling, typed};

/// (the indices of all sparse keys, their values, their dense shapes, then the dense keys `[b, w]`)
/// -> (indices, values, dense shape): in each row every combination of one value per key. The last
/// key varies fastest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseCross {
    /// The number of sparse keys; they come first.
    pub n_sparse: usize,
    pub output: CrossOutput,
}

/// The output for each combination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CrossOutput {
    /// The hash bucket of the combination.
    Hashed { n_buckets: i64, hash_key: u64 },
    /// The texts of the combination, joined with a separator.
    Joined { separator: Vec<u8> },
}

impl HostRules for SparseCross {
    fn name(&self) -> &'static str {
        match self.output {
            CrossOutput::Hashed { .. } => "SparseCross",
            CrossOutput::Joined { .. } => "SparseCrossV2",
        }
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let n = self.n_sparse;
        if x.is_empty() || x.len() < 3 * n {
            return Err(Error::config(format!(
                "there are {} inputs for {n} sparse keys of a cross; expected three for each key",
                x.len()
            )));
        }
        for i in 0..n {
            let (indices, values, shape) = (x[i], x[n + i], x[2 * n + i]);
            expect_dtype(DType::I64, indices, "list of indices")?;
            expect_rank(2, indices, "list of indices")?;
            expect_rank(1, values, "list of values")?;
            expect_rank(1, shape, "dense shape")?;
        }
        for key in &x[3 * n..] {
            expect_rank(2, key, "dense key")?;
        }
        for key in x[n..2 * n].iter().chain(&x[3 * n..]) {
            if !matches!(key.dtype, DType::Str | DType::I64) {
                return Err(Error::dtype(
                    Some(DType::Str),
                    key.dtype,
                    format!("a key of a cross is {}; expected strings or i64", key.dtype),
                ));
            }
        }
        let total = inference.axis(0, 0);
        let dtype = match self.output {
            CrossOutput::Hashed { .. } => DType::I64,
            CrossOutput::Joined { .. } => DType::Str,
        };
        Ok(smallvec![spec(DType::I64, index_shape(total, 2)), spec(dtype, [total]), spec(DType::I64, [Dim::Known(2)])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let n = self.n_sparse;
        let n_rows = match n {
            0 => x[0].dims()[0],
            _ => sizes(x[2 * n])?.first().copied().unwrap_or(0),
        };
        if n_rows > MAX_CROSSED_VALUES {
            return Err(Error::shape(format!("the cross has {n_rows} rows; expected at most {MAX_CROSSED_VALUES}")));
        }
        let splits = (0..n).map(|i| row_splits(x[i], n_rows)).collect::<Result<Vec<_>>>()?;
        let mut keys = Vec::with_capacity(x.len() - 2 * n);
        for (i, splits) in splits.iter().enumerate() {
            keys.push(CrossKey { values: values(x[n + i])?, rows: CrossRows::Ragged(splits) });
        }
        for key in &x[3 * n..] {
            keys.push(CrossKey { values: values(key)?, rows: CrossRows::Dense { width: key.dims()[1] } });
        }
        let (crossed, splits) = match &self.output {
            CrossOutput::Hashed { n_buckets, hash_key } => {
                let kernel = Cross::new(*n_buckets)?.raw_hash_key(*hash_key);
                let (ids, splits) = kernel.apply(alone(), n_rows, &keys)?;
                (Array::from(ids), splits)
            }
            CrossOutput::Joined { separator } => {
                // The combinations do not depend on the kind of output.
                let (_, splits) = Cross::new(0)?.apply(alone(), n_rows, &keys)?;
                let texts = join(&keys, n_rows, separator);
                (Array::from_string_list([texts.len()], texts)?, splits)
            }
        };
        let mut indices = Vec::with_capacity(2 * crossed.len());
        let mut longest = 0;
        for (row, ends) in splits.windows(2).enumerate() {
            indices.extend((0..ends[1] - ends[0]).flat_map(|column| [row as i64, column]));
            longest = longest.max(ends[1] - ends[0]);
        }
        let shape = size_list(&[n_rows, longest as usize]);
        Ok(vec![Array::from_vec([crossed.len(), 2], indices)?, crossed, shape])
    }

    fn meaning(&self) -> Vec<Said> {
        match self.output {
            CrossOutput::Hashed { n_buckets, hash_key } => {
                vec![("hash buckets", n_buckets.into()), ("hash key", format!("{hash_key:x}").into())]
            }
            CrossOutput::Joined { .. } => Vec::new(),
        }
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let n = self.n_sparse;
        let types = |range: std::ops::Range<usize>| -> Vec<estimand_wire::DataType> {
            range.map(|i| writer.dtype(node, i).into()).collect()
        };
        let (sparse, dense) = (types(n..2 * n), types(3 * n..node.inputs.len()));
        let any_integer = sparse.iter().chain(&dense).any(|&t| t == estimand_wire::DataType::Int64);
        let def = def.attr("N", n as i64).attr("sparse_types", sparse).attr("dense_types", dense);
        match &self.output {
            CrossOutput::Hashed { n_buckets, hash_key } => {
                // TF: integers among strings are refused, unless strings are fingerprinted. The
                // output is hashed anyway.
                let internal = if any_integer { DType::I64 } else { DType::Str };
                let def = typed(typed(def, "out_type", DType::I64), "internal_type", internal);
                Ok(def.attr("hashed_output", true).attr("num_buckets", *n_buckets).attr("hash_key", *hash_key as i64))
            }
            CrossOutput::Joined { separator } => {
                let separator = writer.constant(&def.name, "sep", &Array::from_strings([], [separator])?)?;
                Ok(def.input(separator))
            }
        }
    }
}

fn values(key: &Array) -> Result<CrossValues<'_>> {
    Ok(match key.dtype() {
        DType::Str => CrossValues::Strings(key.string_slice()?),
        _ => CrossValues::Ints(key.as_slice()?),
    })
}

/// The offsets where the values of each row begin.
fn row_splits(indices: &Array, n_rows: usize) -> Result<Vec<i64>> {
    let width = indices.dims()[1];
    if width == 0 {
        return Err(Error::shape("a sparse key has no axes, so it has no rows"));
    }
    let rows: Vec<i64> = indices.as_slice::<i64>()?.iter().step_by(width).copied().collect();
    let mut splits = Vec::with_capacity(n_rows + 1);
    splits.push(0);
    let mut next = 0;
    // TF: counts the values whose row is the next expected one. All values after a row that is out
    // of order are left out.
    for row in 0..n_rows as i64 {
        next += rows[next..].iter().take_while(|&&r| r == row).count();
        splits.push(next as i64);
    }
    Ok(splits)
}

/// The texts of all combinations.
fn join(keys: &[CrossKey<'_>], n_rows: usize, separator: &[u8]) -> Strings {
    let mut all = Strings::default();
    let range = |key: &CrossKey<'_>, row: usize| match key.rows {
        CrossRows::Dense { width } => row * width..(row + 1) * width,
        CrossRows::Ragged(splits) => splits[row] as usize..splits[row + 1] as usize,
    };
    for row in 0..n_rows {
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        for (i, key) in keys.iter().enumerate() {
            let longer = |text: &Vec<u8>| {
                let mut text = text.clone();
                if i > 0 {
                    text.extend_from_slice(separator);
                }
                range(key, row).map(move |at| {
                    let mut text = text.clone();
                    match key.values {
                        CrossValues::Strings(strings) => text.extend_from_slice(strings.get(at)),
                        CrossValues::Ints(ints) => text.extend_from_slice(ints[at].to_string().as_bytes()),
                    }
                    text
                })
            };
            texts = texts.iter().flat_map(longer).collect();
        }
        texts.iter().for_each(|text| all.push(text));
    }
    all
}
