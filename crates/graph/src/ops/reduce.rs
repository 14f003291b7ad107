//! Reductions over axes. `sum()` and similar methods reduce all axes; `sum_axes([0, -1])` reduces
//! some.

use std::panic::Location;

use estimand_tensor::{Binary, DType, Unary};

use super::options::{Axes, Running};
use crate::op::{ArgMax, AxisSet, Cumulate, Reduce, Reduction, Select, StopGradient, TopK};
use crate::tensor::Tensor;

macro_rules! reductions {
    ($($(#[$doc:meta])* $all:ident, $axes:ident => $kind:ident),* $(,)?) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $all(&self) -> Tensor {
                    self.reduce(Reduction::$kind, AxisSet::all(self.rank()), false, Location::caller())
                }

                /// The same over some axes.
                #[track_caller]
                pub fn $axes(&self, axes: impl Into<Axes>) -> Tensor {
                    let site = Location::caller();
                    let Axes { axes, keep_dims } = axes.into();
                    match self.axes(&axes, site) {
                        Some(set) => self.reduce(Reduction::$kind, set, keep_dims, site),
                        None => self.graph().poison(),
                    }
                }
            )*
        }
    };
}

reductions! {
    /// The sum of all elements.
    sum, sum_axes => Sum,
    /// The mean of all elements.
    mean, mean_axes => Mean,
    /// The maximum of all elements.
    max, max_axes => Max,
    /// The minimum of all elements.
    min, min_axes => Min,
    /// The product of all elements.
    prod, prod_axes => Prod,
    /// Whether all elements are true.
    all, all_axes => All,
    /// Whether any element is true.
    any, any_axes => Any,
}

impl Tensor {
    pub(crate) fn reduce(
        &self,
        kind: Reduction,
        axes: AxisSet,
        keep_dims: bool,
        site: &'static Location<'static>,
    ) -> Tensor {
        self.then(Reduce { kind, axes, keep_dims }, &[], site)
    }

    /// The index (i64) of the largest element along an axis; the first of equal ones.
    #[track_caller]
    pub fn argmax(&self, axis: i64) -> Tensor {
        self.arg(axis, false, Location::caller())
    }

    /// The index (i64) of the smallest element along an axis; the first of equal ones.
    #[track_caller]
    pub fn argmin(&self, axis: i64) -> Tensor {
        self.arg(axis, true, Location::caller())
    }

    fn arg(&self, axis: i64, min: bool, site: &'static Location<'static>) -> Tensor {
        match self.axis(axis, site) {
            Some(axis) => self.then(ArgMax { axis, min, output: DType::I64 }, &[], site),
            None => self.graph().poison(),
        }
    }

    /// `ln(sum(e^x))` over some axes, without overflow.
    #[track_caller]
    pub fn logsumexp_axes(&self, axes: impl Into<Axes>) -> Tensor {
        let site = Location::caller();
        let Axes { axes, keep_dims } = axes.into();
        let Some(set) = self.axes(&axes, site) else { return self.graph().poison() };
        let peak = self.reduce(Reduction::Max, set, true, site);
        // An infinite maximum would give inf - inf; TF: it is replaced by 0.
        let finite = peak.unary(Unary::IsFinite, site);
        let peak = finite.then(Select, &[&peak, &self.number(0.0, site)], site).then(StopGradient, &[], site);
        let shifted = self.binary(Binary::Sub, &peak, site).unary(Unary::Exp, site);
        let log = shifted.reduce(Reduction::Sum, set, keep_dims, site).unary(Unary::Log, site);
        let peak = if keep_dims { peak } else { peak.reshape_to(log.shape().clone(), site) };
        log.binary(Binary::Add, &peak, site)
    }

    /// Running sum along an axis.
    #[track_caller]
    pub fn cumsum(&self, along: impl Into<Running>) -> Tensor {
        self.cumulate(false, along.into(), Location::caller())
    }

    /// Running product along an axis.
    #[track_caller]
    pub fn cumprod(&self, along: impl Into<Running>) -> Tensor {
        self.cumulate(true, along.into(), Location::caller())
    }

    fn cumulate(&self, product: bool, along: Running, site: &'static Location<'static>) -> Tensor {
        let Running { axis, exclusive, reverse } = along;
        match self.axis(axis, site) {
            Some(axis) => self.then(Cumulate { product, axis, exclusive, reverse }, &[], site),
            None => self.graph().poison(),
        }
    }

    /// The k largest of the last axis in descending order, and their indices (i32).
    #[track_caller]
    pub fn top_k(&self, k: usize) -> (Tensor, Tensor) {
        let values = self.then(TopK { k }, &[], Location::caller());
        let indices = self.graph().output(&values, 1);
        (values, indices)
    }
}
