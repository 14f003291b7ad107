//! Hash buckets of strings and integers.

use estimand_tensor::cpu::text::{Buckets, hash_bucket_fast, hash_bucket_fast_ints, hash_bucket_strong};
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::spelling::{Spelling, typed};

/// The bucket of each value: a hash modulo the number of buckets. The hash is TensorFlow's
/// `Fingerprint64`, or SipHash with a key. Integers are hashed by their decimal text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HashBucket {
    pub n: i64,
    pub key: Option<[u64; 2]>,
}

impl HostRules for HashBucket {
    fn name(&self) -> &'static str {
        match self.key {
            None => "StringToHashBucketFast",
            Some(_) => "StringToHashBucketStrong",
        }
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        Buckets::new(self.n)?;
        match x[0].dtype {
            DType::Str => {}
            DType::I32 | DType::I64 if self.key.is_none() => {}
            other => {
                return Err(Error::dtype(Some(DType::Str), other, format!("cannot hash {other} into buckets"))
                    .help("hash strings or integers; bucketize other numbers"));
            }
        }
        Ok(smallvec![TensorSpec { dtype: DType::I64, shape: x[0].shape.clone() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let buckets = Buckets::new(self.n)?;
        let mut out = vec![0; x[0].len()];
        match (x[0].dtype(), self.key) {
            (DType::Str, None) => hash_bucket_fast(x[0].string_slice()?, buckets, &mut out),
            (DType::Str, Some(key)) => hash_bucket_strong(x[0].string_slice()?, key, buckets, &mut out),
            (DType::I64, _) => hash_bucket_fast_ints(x[0].as_slice()?, buckets, &mut out),
            _ => {
                let wide: Vec<i64> = x[0].as_slice::<i32>()?.iter().map(|&v| v.into()).collect();
                hash_bucket_fast_ints(&wide, buckets, &mut out);
            }
        }
        Ok(vec![Array::from_vec(x[0].dims(), out)?])
    }

    fn meaning(&self) -> Vec<Said> {
        let key = self.key.map(|key| ("hash key", format!("{:x} {:x}", key[0], key[1]).into()));
        std::iter::once(("hash buckets", self.n.into())).chain(key).collect()
    }

    fn spell(&self, mut def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let dtype = writer.dtype(node, 0);
        if dtype != DType::Str {
            let text = writer.part(&def.name, "text", "AsString").input(def.input[0].clone());
            def.input[0] = writer.add(typed(text, "T", dtype));
        }
        let def = def.attr("num_buckets", self.n);
        Ok(match self.key {
            None => def,
            Some(key) => def.attr("key", key.map(|k| k as i64).to_vec()),
        })
    }
}
