//! Softmax, numerically stable cross entropies, normalisation.

use std::panic::Location;

use estimand_tensor::{Binary, DType, Unary};

use crate::op::{
    AxisSet, LogSoftmax, Reduction, Select, Softmax, SoftmaxCrossEntropy, SparseSoftmaxCrossEntropy, StopGradient,
};
use crate::tensor::Tensor;

impl Tensor {
    /// `exp(x) / sum(exp(x))` over the last axis.
    #[track_caller]
    pub fn softmax(&self) -> Tensor {
        self.then(Softmax, &[], Location::caller())
    }

    /// The logarithm of `softmax`, without overflow.
    #[track_caller]
    pub fn log_softmax(&self) -> Tensor {
        self.then(LogSoftmax, &[], Location::caller())
    }

    /// Cross entropy of each row of logits [n, classes] with its integer label.
    #[track_caller]
    pub fn sparse_softmax_cross_entropy(&self, labels: &Tensor) -> Tensor {
        self.then(SparseSoftmaxCrossEntropy, &[labels], Location::caller())
    }

    /// Cross entropy of each row of logits [n, classes] with a row of probabilities.
    #[track_caller]
    pub fn softmax_cross_entropy(&self, labels: &Tensor) -> Tensor {
        self.then(SoftmaxCrossEntropy, &[labels], Location::caller())
    }

    /// Cross entropy of each logit with a probability: `max(x, 0) - x * z + ln(1 + e^-|x|)`.
    #[track_caller]
    pub fn sigmoid_cross_entropy(&self, labels: &Tensor) -> Tensor {
        let site = Location::caller();
        // TF: `where(x >= 0, x, 0)` rather than relu, so that the gradient at 0 is that of x - z.
        let zero = self.number(0.0, site);
        let positive = self.binary(Binary::GreaterEqual, &zero, site);
        let magnitude = positive.then(Select, &[&self.unary(Unary::Neg, site), self], site);
        let ramp = positive.then(Select, &[self, &zero], site);
        let linear = ramp.binary(Binary::Sub, &self.binary(Binary::Mul, labels, site), site);
        linear.binary(Binary::Add, &magnitude.unary(Unary::Exp, site).unary(Unary::Log1p, site), site)
    }

    /// Mean and variance over some axes. These axes stay with size 1.
    #[track_caller]
    pub fn moments(&self, axes: &[i64]) -> (Tensor, Tensor) {
        let site = Location::caller();
        let Some(set) = self.axes(axes, site) else { return (self.graph().poison(), self.graph().poison()) };
        self.moments_over(set, site)
    }

    fn moments_over(&self, axes: AxisSet, site: &'static Location<'static>) -> (Tensor, Tensor) {
        let mean = self.reduce(Reduction::Mean, axes, true, site);
        let fixed = mean.then(StopGradient, &[], site);
        // TF: the mean inside the variance carries no gradient; it would contribute zero anyway.
        let variance = self.binary(Binary::SquaredDifference, &fixed, site).reduce(Reduction::Mean, axes, true, site);
        (mean, variance)
    }

    /// `(x - mean) / sqrt(variance + epsilon) * scale + offset`
    #[track_caller]
    pub fn batch_normalization(
        &self,
        mean: &Tensor,
        variance: &Tensor,
        offset: &Tensor,
        scale: &Tensor,
        epsilon: f64,
    ) -> Tensor {
        let site = Location::caller();
        // TF: folded into one multiplication and one addition for each element.
        let epsilon = variance.number(epsilon, site);
        let factor =
            variance.binary(Binary::Add, &epsilon, site).unary(Unary::Rsqrt, site).binary(Binary::Mul, scale, site);
        let shift = offset.binary(Binary::Sub, &mean.binary(Binary::Mul, &factor, site), site);
        self.binary(Binary::Mul, &factor, site).binary(Binary::Add, &shift, site)
    }

    /// Normalises the last axis of each row, then scales and shifts it.
    #[track_caller]
    pub fn layer_normalization(&self, offset: &Tensor, scale: &Tensor, epsilon: f64) -> Tensor {
        let site = Location::caller();
        let Some(set) = self.axes(&[-1], site) else { return self.graph().poison() };
        let (mean, variance) = self.moments_over(set, site);
        self.batch_normalization(&mean, &variance, offset, scale, epsilon)
    }

    /// Drops elements with probability `rate` and scales the others by `1 / (1 - rate)`. The result
    /// is a pure function of (seed, name, step, row).
    #[track_caller]
    pub fn dropout(&self, rate: f64) -> Tensor {
        let site = Location::caller();
        if !(0.0..1.0).contains(&rate) {
            let e = estimand_tensor::Error::config(format!("the dropout rate is {rate}; expected 0 <= rate < 1"));
            return self.record(e, site);
        }
        if rate == 0.0 || self.is_poisoned() {
            return self.clone();
        }
        let uniform = self.graph().random(crate::op::RandomKind::Uniform, self.shape().clone(), "dropout", site);
        let uniform = if self.dtype() == DType::F32 { uniform } else { uniform.cast(self.dtype()) };
        let keep = uniform.binary(Binary::GreaterEqual, &self.number(rate, site), site);
        let scaled = self.binary(Binary::Mul, &self.number(1.0 / (1.0 - rate), site), site);
        keep.then(Select, &[&scaled, &self.number(0.0, site)], site)
    }
}
