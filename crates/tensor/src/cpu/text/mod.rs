//! Kernels over byte strings: hashes, crosses, conversions, and TensorFlow's string ops.
//!
//! They run in the host part of a graph, on the fed values. A kernel takes a
//! [`StringSlice`](crate::StringSlice), which is all of an array or any range of it, and never a
//! thread pool: [`parts`] runs any of them on a pool.
//!
//! ```
//! use estimand_tensor::{Strings, cpu::text::{hash_bucket_fast, Buckets}};
//! let words: Strings = ["wide", "deep"].into_iter().collect();
//! let mut ids = [0; 2];
//! hash_bucket_fast(words.as_slice(), Buckets::new(1000)?, &mut ids);
//! assert_eq!(ids, [37, 467]); // what TensorFlow's hashed column says
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod as_string;
mod buckets;
mod case;
mod cross;
mod decimal;
mod fingerprint;
mod fingerprint128;
mod hash_bucket;
mod join;
mod legacy_hash;
mod limit;
mod parse;
pub mod parts;
mod regex;
mod siphash;
mod split;
mod substr;
mod trim;
mod utf8;

pub use self::regex::{RegexFullMatch, RegexReplace};
pub use as_string::{AsString, Print, as_string};
pub use buckets::Buckets;
pub use case::{Case, Encoding, to_case};
pub use cross::{Cross, CrossKey, CrossRows, CrossValues, MAX_CROSSED_VALUES};
pub use decimal::Decimal;
pub use fingerprint::{fingerprint_cat64, fingerprint64, fingerprints};
pub use fingerprint128::fingerprint128;
pub use hash_bucket::{hash_bucket_fast, hash_bucket_fast_ints, hash_bucket_legacy, hash_bucket_strong};
pub use join::{JoinInput, join, reduce_join};
pub use legacy_hash::legacy_hash64;
pub use limit::MAX_TEXT_BYTES;
pub use parse::{ParseNumber, parse_int, to_number};
pub use siphash::siphash24;
pub use split::split;
pub use substr::substr;
pub use trim::{Unit, length, strip};
