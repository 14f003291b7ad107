//! Lookups in tables: terms to ids, and ids to terms.

use estimand_tensor::vocabulary::Unknown;
use estimand_tensor::{Array, Binary, DType, Result, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::text::HashBucket;
use super::{HostRules, Inference, Said, Specs};
use crate::body::Node;
use crate::op::Op;
use crate::op::expect::{expect_dtype, integer_ids};
use crate::op::spelling::{Spelling, typed};
use crate::table::LookupTable;
use crate::tensor::Tensor;
use crate::value::Value;

/// The id of each term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FindId(pub LookupTable);

impl HostRules for FindId {
    fn name(&self) -> &'static str {
        "LookupTableFindV2"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        match self.0.dtype() {
            DType::Str => expect_dtype(DType::Str, x[0], "tensor of terms")?,
            _ => integer_ids(x[0], "terms")?,
        }
        Ok(smallvec![TensorSpec { dtype: DType::I64, shape: x[0].shape.clone() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (vocabulary, unknown) = (&self.0.vocabulary, self.0.unknown);
        let ids = Array::written(x[0].dims(), |ids| match x[0].dtype() {
            DType::Str => vocabulary.lookup(x[0].string_slice()?, unknown, ids),
            DType::I64 => vocabulary.lookup_ints(x[0].as_slice()?, unknown, ids),
            _ => {
                let wide: Vec<i64> = x[0].as_slice::<i32>()?.iter().map(|&v| v.into()).collect();
                vocabulary.lookup_ints(&wide, unknown, ids)
            }
        })?;
        Ok(vec![ids])
    }

    fn meaning(&self) -> Vec<Said> {
        let unknown = match self.0.unknown {
            Unknown::Id(id) => ("id of unknown terms", id.into()),
            Unknown::Buckets(buckets) => ("out-of-vocabulary buckets", buckets.n().into()),
        };
        vec![("vocabulary", self.0.listing().clone().into()), unknown]
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let (owner, dtype) = (def.name.clone(), self.0.dtype());
        let terms = writer.converted(def.input[0].clone(), writer.dtype(node, 0), dtype);
        let handle = writer.table(&self.0, false)?;
        let default = match self.0.unknown {
            Unknown::Id(id) => id,
            Unknown::Buckets(_) => -1,
        };
        let default = writer.constant(&owner, "default", &Array::scalar(default))?;
        def.input = vec![handle, terms.clone(), default.clone()];
        let find = |def: NodeDef| typed(typed(def, "Tin", dtype), "Tout", DType::I64);
        let Unknown::Buckets(buckets) = self.0.unknown else { return Ok(find(def)) };
        // Ids after those of the table, by hash, as `IdTableWithHashBuckets` spells them.
        let known = writer.part(&owner, "known", "LookupTableFindV2");
        let known = writer.add(find(NodeDef { input: def.input.clone(), ..known }));
        let mut text = terms;
        if dtype != DType::Str {
            let decimal = writer.part(&owner, "text", "AsString").input(text);
            text = writer.add(typed(decimal, "T", dtype));
        }
        let bucket = writer.part(&owner, "bucket", "StringToHashBucketFast").input(text);
        let bucket = writer.add(bucket.attr("num_buckets", buckets.n()));
        let size = writer.constant(&owner, "size", &Array::scalar(self.0.vocabulary.len() as i64))?;
        let behind = writer.part(&owner, "behind", "AddV2").input(bucket).input(size);
        let behind = writer.add(typed(behind, "T", DType::I64));
        let is_known = writer.part(&owner, "is_known", "NotEqual").input(known.clone()).input(default);
        let is_known = writer.add(typed(is_known, "T", DType::I64));
        def = NodeDef { op: "SelectV2".into(), input: vec![is_known, known, behind], ..def };
        Ok(typed(def, "T", DType::I64))
    }
}

/// Finds the lookup with buckets that `condition ? known : behind` computes:
/// `find != -1 ? find : bucket + size`, as TensorFlow and [`FindId::spell`] write it. `None` for
/// any other selection.
pub fn with_buckets(condition: &Tensor, known: &Tensor, behind: &Tensor) -> Option<Tensor> {
    let graph = known.graph();
    let (table, terms) = {
        let body = graph.body();
        let node = |value: Value| body.node(value.node);
        let is = |value: Value, number: i64| {
            body.scalar_constant(value).is_some_and(|constant| constant.0.item::<i64>().is_ok_and(|n| n == number))
        };
        let (found, test, sum) = (node(known.value()), node(condition.value()), node(behind.value()));
        let (Op::Host(find), [terms]) = (&found.op, &found.inputs[..]) else { return None };
        let table = &find.get::<FindId>()?.0;
        let asks = matches!(test.op, Op::Binary(Binary::NotEqual))
            && test.inputs[0] == known.value()
            && is(test.inputs[1], -1)
            && table.unknown == Unknown::Id(-1);
        let size = table.vocabulary.len() as i64;
        let (Op::Binary(Binary::Add), &[a, b]) = (&sum.op, &sum.inputs[..]) else { return None };
        let bucket = node(if is(b, size) { a } else { b });
        let adds = is(a, size) || is(b, size);
        let (Op::Host(hash), [hashed]) = (&bucket.op, &bucket.inputs[..]) else { return None };
        let HashBucket { n, key: None } = hash.get::<HashBucket>()? else { return None };
        if !asks || !adds || hashed != terms || body.spec(*terms).dtype != DType::Str {
            return None;
        }
        (table.clone().n_oov_buckets(*n).ok()?, *terms)
    };
    Some(table.lookup(&graph.tensor(terms)))
}

/// The term of each id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FindTerm {
    pub table: LookupTable,
    pub unknown: Vec<u8>,
}

impl HostRules for FindTerm {
    fn name(&self) -> &'static str {
        "LookupTableFindV2"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "ids")?;
        Ok(smallvec![TensorSpec { dtype: DType::Str, shape: x[0].shape.clone() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let wide: Vec<i64> = match x[0].dtype() {
            DType::I64 => x[0].as_slice::<i64>()?.to_vec(),
            _ => x[0].as_slice::<i32>()?.iter().map(|&v| v.into()).collect(),
        };
        let mut terms = Strings::with_capacity(wide.len());
        self.table.vocabulary.terms().find(&wide, &self.unknown, &mut terms);
        Ok(vec![Array::from_string_list(x[0].dims(), terms)?])
    }

    fn meaning(&self) -> Vec<Said> {
        vec![("vocabulary", self.table.listing().clone().into())]
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let ids = writer.converted(def.input[0].clone(), writer.dtype(node, 0), DType::I64);
        let handle = writer.table(&self.table, true)?;
        let default = writer.constant(&def.name, "default", &Array::from_strings([], [&self.unknown])?)?;
        def.input = vec![handle, ids, default];
        Ok(typed(typed(def, "Tin", DType::I64), "Tout", DType::Str))
    }
}
