//! Strings and categories, with TensorFlow's semantics: strings are bytes, unless UTF-8 is
//! requested. These ops run on the host.

use std::panic::Location;

use estimand_tensor::{DType, Error};

use super::options::{Axes, Encoding};
use crate::host::text::{
    AsString, Edit, FullMatch, HashBucket, ReduceJoin, StringEqual, StringJoin, StringLength, StringSplit, ToNumber,
};
use crate::host::{Bucketize, HostOp, HostRules};
use crate::ragged::RaggedTensor;
use crate::tensor::Tensor;

impl Tensor {
    fn on_host<T: HostRules + Eq + std::hash::Hash>(&self, op: T, site: &'static Location<'static>) -> Tensor {
        self.then(HostOp::new(op), &[], site)
    }

    /// The hash bucket of each string or integer, below `n`: TensorFlow's `to_hash_bucket_fast`.
    /// Integers are hashed by their decimal text, as TensorFlow's feature columns do.
    #[track_caller]
    pub fn hash_bucket(&self, n: i64) -> Tensor {
        self.on_host(HashBucket { n, key: None }, Location::caller())
    }

    /// The hash bucket of each string with a secret key: TensorFlow's `to_hash_bucket_strong`.
    /// Without the key nobody can choose strings that fall into one bucket.
    #[track_caller]
    pub fn hash_bucket_strong(&self, n: i64, key: [u64; 2]) -> Tensor {
        self.on_host(HashBucket { n, key: Some(key) }, Location::caller())
    }

    /// Counts the boundaries that are not above each number (i32). NaN goes to the last bucket, as
    /// in TensorFlow.
    #[track_caller]
    pub fn bucketize(&self, boundaries: &[f32]) -> Tensor {
        self.on_host(Bucketize::new(boundaries), Location::caller())
    }

    /// The number of bytes (or characters of UTF-8) of each string.
    #[track_caller]
    pub fn string_length(&self, unit: Encoding) -> Tensor {
        self.on_host(StringLength { utf8: unit.is_utf8() }, Location::caller())
    }

    /// Converts strings to lower case: ASCII letters, or all scripts.
    #[track_caller]
    pub fn lower(&self, encoding: Encoding) -> Tensor {
        self.on_host(Edit::Lower { utf8: encoding.is_utf8() }, Location::caller())
    }

    /// Converts strings to upper case: ASCII letters, or all scripts.
    #[track_caller]
    pub fn upper(&self, encoding: Encoding) -> Tensor {
        self.on_host(Edit::Upper { utf8: encoding.is_utf8() }, Location::caller())
    }

    /// Removes white space at both ends of strings.
    #[track_caller]
    pub fn strip(&self) -> Tensor {
        self.on_host(Edit::Strip, Location::caller())
    }

    /// The substring from a position (from the end if negative), of at most `length`, in bytes or
    /// characters. A position beyond either end fails the run.
    #[track_caller]
    pub fn substr(&self, position: i64, length: i64, unit: Encoding) -> Tensor {
        self.on_host(Edit::Substr { position, length, utf8: unit.is_utf8() }, Location::caller())
    }

    /// Replaces all matches of a regular expression (RE2) in each string. `\1` is the first group.
    #[track_caller]
    pub fn regex_replace(&self, pattern: &str, rewrite: &str) -> Tensor {
        let op = Edit::Replace { pattern: pattern.into(), rewrite: rewrite.into(), global: true };
        self.on_host(op, Location::caller())
    }

    /// Replaces the first match of a regular expression (RE2) in each string.
    #[track_caller]
    pub fn regex_replace_first(&self, pattern: &str, rewrite: &str) -> Tensor {
        let op = Edit::Replace { pattern: pattern.into(), rewrite: rewrite.into(), global: false };
        self.on_host(op, Location::caller())
    }

    /// Whether a regular expression (RE2) matches all of each string.
    #[track_caller]
    pub fn regex_full_match(&self, pattern: &str) -> Tensor {
        self.on_host(FullMatch { pattern: pattern.into() }, Location::caller())
    }

    /// Formats each number as text: integers in decimal, floats with six digits after the point, as
    /// `printf` does.
    #[track_caller]
    pub fn as_string(&self) -> Tensor {
        self.on_host(AsString::default(), Location::caller())
    }

    /// Whether two tensors hold the same strings, element by element, with broadcasting.
    #[track_caller]
    pub fn string_equal(&self, other: &Tensor) -> Tensor {
        self.then(HostOp::new(StringEqual { negated: false }), &[other], Location::caller())
    }

    /// Parses each string as a number. A string that is not a number fails the run.
    #[track_caller]
    pub fn to_number(&self, dtype: DType) -> Tensor {
        self.on_host(ToNumber(dtype), Location::caller())
    }

    /// Splits a list of strings into words, at separators or (if the separator is empty) at white
    /// space. `max_split` limits the number of splits; -1 for no limit.
    #[track_caller]
    pub fn string_split(&self, separator: impl AsRef<[u8]>, max_split: i64) -> RaggedTensor {
        let op = StringSplit { separator: separator.as_ref().to_vec(), max_split };
        let values = self.on_host(op, Location::caller());
        let row_splits = self.graph().output(&values, 1);
        RaggedTensor { values, row_splits }
    }

    /// Joins the strings of several tensors, element by element. A single string is joined to all
    /// elements.
    #[track_caller]
    pub fn string_join(parts: &[&Tensor], separator: impl AsRef<[u8]>) -> Tensor {
        let site = Location::caller();
        let op = HostOp::new(StringJoin { separator: separator.as_ref().to_vec() });
        match parts.first() {
            Some(first) => first.graph().node(op, parts, site),
            None => {
                crate::Graph::new().fail(Error::config("string_join was given no tensors; expected at least one"), site)
            }
        }
    }

    /// Joins the strings along some axes, in the order of the axes: the index of the first changes
    /// fastest. So `[["a", "b"], ["c", "d"]]` joins to `abcd` along `[1, 0]`, and to `acbd` along
    /// `[0, 1]`.
    #[track_caller]
    pub fn reduce_join(&self, axes: impl Into<Axes>, separator: impl AsRef<[u8]>) -> Tensor {
        let site = Location::caller();
        let Axes { axes, keep_dims } = axes.into();
        let Some(axes) = axes.into_iter().map(|axis| self.axis(axis, site)).collect() else {
            return self.graph().poison();
        };
        self.on_host(ReduceJoin { axes, keep_dims, separator: separator.as_ref().to_vec() }, site)
    }
}
