//! Crossed features.

use estimand_tensor::cpu::text::{Cross as Kernel, CrossKey, CrossRows, CrossValues};
use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs, alone};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::{Spelling, type_list, typed};

/// (values and row_splits of each ragged key, then the dense keys `[b, w]`) -> (ids, row_splits):
/// in each row every combination of one value per key, hashed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cross {
    pub n_buckets: i64,
    pub hash_key: u64,
    /// The number of ragged keys; they come first.
    pub n_ragged: usize,
}

impl Cross {
    fn kernel(&self) -> Result<Kernel> {
        Ok(Kernel::new(self.n_buckets)?.hash_key(self.hash_key))
    }

    /// The number of rows, taken from the first key.
    fn rows(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Dim {
        match self.n_ragged {
            0 => x[0].shape.dims()[0],
            _ => inference.symbols.sub(x[1].shape.dims()[0], 1.into()),
        }
    }
}

impl HostRules for Cross {
    fn name(&self) -> &'static str {
        "SparseCross"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let _ = self.kernel()?;
        let (ragged, dense) = x.split_at(2 * self.n_ragged);
        for key in ragged.chunks_exact(2) {
            expect_key(key[0])?;
            expect_rank(1, key[0], "list of a key's values")?;
            expect_dtype(DType::I64, key[1], "list of row_splits")?;
            expect_rank(1, key[1], "list of row_splits")?;
        }
        for key in dense {
            expect_key(key)?;
            expect_rank(2, key, "dense key")?;
        }
        let rows = self.rows(x, inference);
        let splits = inference.symbols.add(rows, 1.into())?;
        Ok(smallvec![
            TensorSpec { dtype: DType::I64, shape: Shape::from([inference.axis(0, 0)]) },
            TensorSpec { dtype: DType::I64, shape: Shape::from([splits]) }
        ])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (ragged, dense) = x.split_at(2 * self.n_ragged);
        let widened: Vec<Vec<i64>> = x.iter().copied().map(widen).collect();
        let values = |i: usize| -> Result<CrossValues<'_>> {
            Ok(match x[i].dtype() {
                DType::Str => CrossValues::Strings(x[i].string_slice()?),
                DType::I64 => CrossValues::Ints(x[i].as_slice()?),
                _ => CrossValues::Ints(&widened[i]),
            })
        };
        let mut keys = Vec::with_capacity(self.n_ragged + dense.len());
        for (i, key) in ragged.chunks_exact(2).enumerate() {
            keys.push(CrossKey { values: values(2 * i)?, rows: CrossRows::Ragged(key[1].as_slice()?) });
        }
        for (i, key) in dense.iter().enumerate() {
            keys.push(CrossKey { values: values(ragged.len() + i)?, rows: CrossRows::Dense { width: key.dims()[1] } });
        }
        let n_rows = match self.n_ragged {
            0 => x[0].dims()[0],
            _ => x[1].len().saturating_sub(1),
        };
        let (ids, splits) = self.kernel()?.apply(alone(), n_rows, &keys)?;
        Ok(vec![Array::from(ids), Array::from(splits)])
    }

    fn meaning(&self) -> Vec<Said> {
        // 0 stands for TensorFlow's key.
        let key = self.kernel().map_or(self.hash_key, |kernel| kernel.key());
        vec![("hash buckets", self.n_buckets.into()), ("hash key", format!("{key:x}").into())]
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let owner = def.name.clone();
        let (ragged, dense) = def.input.split_at(2 * self.n_ragged);
        let (mut indices, mut values, mut shapes, mut types) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (i, key) in ragged.chunks_exact(2).enumerate() {
            let dtype = writer.dtype(node, 2 * i);
            let sparse = writer.part(&owner, &format!("sparse_{i}"), "RaggedTensorToSparse");
            let sparse = sparse.input(key[1].clone()).input(key[0].clone()).attr("RAGGED_RANK", 1i64);
            let sparse = writer.add(typed(typed(sparse, "T", dtype), "Tsplits", DType::I64));
            let wide = writer.widened(format!("{sparse}:1"), dtype);
            indices.push(sparse.clone());
            values.push(wide);
            shapes.push(format!("{sparse}:2"));
            types.push(text_or_integer(dtype));
        }
        let mut dense_types = Vec::new();
        let mut dense_inputs = Vec::new();
        for (i, key) in dense.iter().enumerate() {
            let dtype = writer.dtype(node, ragged.len() + i);
            dense_inputs.push(writer.widened(key.clone(), dtype));
            dense_types.push(text_or_integer(dtype));
        }
        // TF: strings are hashed to integers as soon as one key is an integer.
        let some_integers = types.iter().chain(&dense_types).any(|&t| t == DType::I64);
        let mut cross = writer.part(&owner, "cross", "SparseCross");
        cross.input = [indices, values, shapes, dense_inputs].concat();
        let key = Kernel::new(self.n_buckets)?.hash_key(self.hash_key).key();
        let cross = cross
            .attr("N", self.n_ragged as i64)
            .attr("hashed_output", true)
            .attr("num_buckets", self.n_buckets)
            .attr("hash_key", key as i64)
            .attr("sparse_types", type_list(&types))
            .attr("dense_types", type_list(&dense_types));
        let internal = if some_integers { DType::I64 } else { DType::Str };
        let cross = writer.add(typed(typed(cross, "out_type", DType::I64), "internal_type", internal));
        let n_rows = writer.size(node.outputs[1].shape.dims()[0], &owner, "n_splits")?;
        let one = writer.int(&owner, "one", 1)?;
        let n_rows = writer.part(&owner, "rows", "Sub").input(n_rows).input(one);
        let n_rows = writer.add(typed(n_rows, "T", DType::I32));
        let rows = writer.first_column(&owner, cross.clone())?;
        let splits = writer.splits_of(&owner, rows, &n_rows)?;
        Ok(writer.several(def, [(format!("{cross}:1"), DType::I64), (splits, DType::I64)]))
    }
}

fn text_or_integer(dtype: DType) -> DType {
    if dtype == DType::Str { DType::Str } else { DType::I64 }
}

fn expect_key(x: &TensorSpec) -> Result<()> {
    match x.dtype {
        DType::Str | DType::I64 | DType::I32 => Ok(()),
        other => Err(Error::dtype(
            Some(DType::Str),
            other,
            format!("a key of a cross is {other}; expected strings or integers"),
        )
        .help("cross strings and integers; bucketize numbers first")),
    }
}

/// i32 values as i64; nothing for the others.
fn widen(x: &Array) -> Vec<i64> {
    x.as_slice::<i32>().map(|values| values.iter().map(|&v| v.into()).collect()).unwrap_or_default()
}

impl dyn Spelling + '_ {
    /// Integers as i64, strings as they are.
    fn widened(&mut self, values: String, dtype: DType) -> String {
        self.converted(values, dtype, text_or_integer(dtype))
    }
}
