//! The dual variables of all examples seen so far, by the fingerprints of their ids.

use estimand_tensor::cpu::text::fingerprint128;
use indexmap::IndexMap;

/// The label and the sketch of an example that a checkpoint of TensorFlow has, until the example is
/// seen again. Checkpoints of Estimand 0.1 have no sketch either.
pub(super) const UNKNOWN: f64 = f64::NAN;

/// What is kept of an example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Example {
    /// The dual variable.
    pub(super) dual: f64,
    /// [`UNKNOWN`] before the example was seen here.
    pub(super) label: f64,
    pub(super) weight: f64,
    /// The sketch of its features, see [`Rows::sketch`](super::rows::Rows::sketch), or [`UNKNOWN`].
    pub(super) sketch: f64,
    /// The loss when the example was last seen.
    pub(super) loss: f64,
    /// The conjugate of the loss at the dual variable.
    pub(super) conjugate: f64,
}

/// The fingerprint of an id, as TensorFlow has it. Two ids of one fingerprint are as good as
/// impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) u64, pub(super) u64);

impl Key {
    pub(super) fn of(id: &[u8]) -> Key {
        let (low, high) = fingerprint128(id);
        // TF: the lower words 0 and 1 mark free places of its table, so no id has them.
        Key(if low < 2 { low.wrapping_add(!1) } else { low }, high)
    }

    /// The part that it is in. TF: by the absolute value of the lower word as a signed number.
    fn shard(self, n_shards: usize) -> usize {
        (self.0 as i64).wrapping_abs().rem_euclid(n_shards as i64) as usize
    }
}

/// The place of an example in the table. It stays valid as examples are added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    shard: usize,
    at: usize,
}

/// Examples by key, in several parts: a part that grows copies only itself.
pub(super) struct Table {
    shards: Vec<IndexMap<Key, Example>>,
}

impl Table {
    pub(super) fn new(n_shards: usize) -> Table {
        Table { shards: vec![IndexMap::new(); n_shards] }
    }

    /// Returns the place of an example. A new one is added with the dual variable 0.
    pub(super) fn place(&mut self, key: Key, label: f64, weight: f64) -> Place {
        let shard = key.shard(self.shards.len());
        let entry = self.shards[shard].entry(key);
        let at = entry.index();
        entry.or_insert(Example { dual: 0.0, label, weight, sketch: UNKNOWN, loss: 0.0, conjugate: 0.0 });
        Place { shard, at }
    }

    pub(super) fn at(&self, place: Place) -> &Example {
        &self.shards[place.shard][place.at]
    }

    pub(super) fn at_mut(&mut self, place: Place) -> &mut Example {
        &mut self.shards[place.shard][place.at]
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(IndexMap::len).sum()
    }

    /// All examples, in an order that only the input decides.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Example)> {
        self.shards.iter().flatten()
    }

    pub(super) fn n_shards(&self) -> usize {
        self.shards.len()
    }

    /// The examples of a part.
    pub(super) fn shard(&self, i: usize) -> &IndexMap<Key, Example> {
        &self.shards[i]
    }

    /// Puts an example at the end of its part. Returns whether it was not there before.
    pub(super) fn restore(&mut self, key: Key, example: Example) -> bool {
        let shard = key.shard(self.shards.len());
        self.shards[shard].insert(key, example).is_none()
    }
}
