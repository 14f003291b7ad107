//! Random tensors: pure functions of (seed, node name, step, global row), so that they do not
//! depend on threads or batches.

use std::panic::Location;

use estimand_tensor::Shape;

use crate::graph::Graph;
use crate::op::{Random, RandomKind};
use crate::tensor::Tensor;

impl Graph {
    /// Uniform random numbers in [0, 1).
    #[track_caller]
    pub fn random_uniform(&self, shape: impl Into<Shape>) -> Tensor {
        self.random(RandomKind::Uniform, shape.into(), "random_uniform", Location::caller())
    }

    /// Normal random numbers of mean 0 and standard deviation 1.
    #[track_caller]
    pub fn random_normal(&self, shape: impl Into<Shape>) -> Tensor {
        self.random(RandomKind::Normal, shape.into(), "random_normal", Location::caller())
    }

    /// Normal random numbers within two standard deviations.
    #[track_caller]
    pub fn truncated_normal(&self, shape: impl Into<Shape>) -> Tensor {
        self.random(RandomKind::TruncatedNormal, shape.into(), "truncated_normal", Location::caller())
    }

    /// Random integers (i64) in [low, high).
    #[track_caller]
    pub fn random_integers(&self, shape: impl Into<Shape>, low: i64, high: i64) -> Tensor {
        self.random(RandomKind::Integers { low, high }, shape.into(), "random_integers", Location::caller())
    }

    pub(crate) fn random(
        &self,
        kind: RandomKind,
        shape: Shape,
        what: &str,
        site: &'static Location<'static>,
    ) -> Tensor {
        let key = self.unique(&self.scoped(what)).into();
        self.node(Random { kind, shape, key }, &[], site)
    }
}
