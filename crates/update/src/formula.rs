//! Rules as formulas: written once, read as kernels and as nodes of a graph.
//!
//! A [`Formula`] is an [`UpdateRule`]: `update` and `decay` run its [`Element`] over slices. It is
//! also a [`SymbolicRule`]: the same element, read once with symbols, writes the update to a tape.

use std::sync::Arc;

use crate::number::{Number, Symbol};
use crate::{Hyper, Setting, Slot, SparseRule, UpdateRule, width};

/// The number of scalars of a rule in a step.
pub(crate) const N_SCALARS: usize = 8;

/// The computation of one element in one step: a pure function of one weight, one gradient and its
/// slots. There are at most three slots.
pub trait Element<N: Number, const SLOTS: usize>: Copy {
    /// False for decay, which has no gradient.
    const READS_GRADIENT: bool = true;

    /// Computes the new weight and slots. Implementations must be `#[inline(always)]`, so that each
    /// loop is compiled for its vector width.
    fn step(self, w: N, g: N, slots: [N; SLOTS]) -> (N, [N; SLOTS]);
}

/// Reads the element that a formula chooses by its settings.
pub trait Reader<N: Number> {
    /// Runs the element.
    fn read<E: Element<N, S>, const S: usize>(self, element: E);
}

/// An update rule whose arithmetic is generic over its numbers.
///
/// Implement this rather than [`UpdateRule`], so that a rule can also become nodes of a graph.
///
/// ```
/// use estimand_update::{Element, Formula, Number, Reader, Slot, SparseRule, UpdateRule};
///
/// /// Moves every weight by the learning rate, against the sign of its gradient.
/// #[derive(Debug)]
/// struct SignDescent;
///
/// #[derive(Clone, Copy)]
/// struct Step<N> {
///     rate: N,
/// }
///
/// impl<N: Number> Element<N, 0> for Step<N> {
///     #[inline(always)]
///     fn step(self, w: N, g: N, _: [N; 0]) -> (N, [N; 0]) {
///         (w - self.rate.copysign(g), [])
///     }
/// }
///
/// impl Formula for SignDescent {
///     fn name(&self) -> &'static str {
///         "SignDescent"
///     }
///     fn slots(&self) -> Vec<Slot> {
///         Vec::new()
///     }
///     fn scalars(&self, _steps: u64) -> Vec<(&'static str, f64)> {
///         Vec::new()
///     }
///     fn check(&self) -> Result<(), String> {
///         Ok(())
///     }
///     fn sparse(&self) -> SparseRule {
///         SparseRule::TouchedRows
///     }
///     fn hyper<N: Number>(&self, _step: N, rate: N, _carried: N) -> [N; 8] {
///         [rate; 8]
///     }
///     fn update<N: Number>(&self, [rate, ..]: [N; 8], reader: impl Reader<N>) {
///         reader.read(Step { rate })
///     }
/// }
///
/// let (rule, mut w) = (SignDescent, [1.0, 2.0]);
/// UpdateRule::update(&rule, &UpdateRule::hyper(&rule, 0, 0.5), &mut w, &[0.1, -0.1], &mut []);
/// assert_eq!(w, [0.5, 2.5]);
/// ```
pub trait Formula: Send + Sync + std::fmt::Debug {
    /// TensorFlow's name of the optimizer.
    fn name(&self) -> &'static str;

    /// The learning rate if the user gives none.
    fn default_learning_rate(&self) -> f64 {
        0.001
    }

    /// The slots of every variable, in TensorFlow's order.
    fn slots(&self) -> Vec<Slot>;

    /// As [`UpdateRule::scalars`].
    fn scalars(&self, steps: u64) -> Vec<(&'static str, f64)>;

    /// The settings under Keras's names, with which the rule can be written down. By default it
    /// cannot.
    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        None
    }

    /// Checks that settings are in their range. The error message is written for the user.
    fn check(&self) -> Result<(), String>;

    /// This rule with the arithmetic of `tf.keras.optimizers` of TensorFlow 2.11 and later, if
    /// Keras has it there.
    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        None
    }

    /// Whether this is the arithmetic of the newer generation.
    fn is_newer(&self) -> bool {
        false
    }

    /// The treatment of rows that a sparse gradient does not name.
    fn sparse(&self) -> SparseRule;

    /// The scalar that the rule carries from step to step, if any: Nadam's product. It is a
    /// function of the step, but a graph keeps it in a variable.
    fn carried(&self) -> Option<Slot> {
        None
    }

    /// The value of the carried scalar after `steps` updates. Rules without one ignore it.
    fn carried_after(&self, steps: u64) -> f64 {
        let _ = steps;
        1.0
    }

    /// The carried scalar after a step, from its value before. `step` counts from 0.
    fn carry<N: Number>(&self, step: N, carried: N) -> N {
        let _ = step;
        carried
    }

    /// The scalars of one step, read in double precision and rounded to `f32` at the end. `step`
    /// counts from 0; `carried` is the carried scalar after this step.
    fn hyper<N: Number>(&self, step: N, rate: N, carried: N) -> [N; N_SCALARS];

    /// Passes the element of an update to the reader.
    fn update<N: Number>(&self, h: [N; N_SCALARS], reader: impl Reader<N>);

    /// Passes the element for rows without a gradient to the reader. Without one, the rows stay
    /// unchanged.
    fn decay<N: Number>(&self, h: [N; N_SCALARS], reader: impl Reader<N>) {
        let _ = (h, reader);
    }

    /// Runs `update` over slices. Rules of this crate override it with the same body, so that their
    /// loops are compiled here and not in each crate that makes a `dyn UpdateRule`.
    #[doc(hidden)]
    fn update_slices(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        Formula::update(self, inner(&h.0), Slices { w, g, slots })
    }

    /// As `update_slices`, for `decay`.
    #[doc(hidden)]
    fn decay_slices(&self, h: &Hyper, w: &mut [f32], slots: &mut [&mut [f32]]) {
        Formula::decay(self, inner(&h.0), Slices { w, g: &[], slots })
    }
}

/// The two methods of a rule of this crate that hold its loops.
macro_rules! compiled_here {
    () => {
        fn update_slices(&self, h: &crate::Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
            Formula::update(self, crate::formula::inner(&h.0), crate::formula::Slices { w, g, slots })
        }

        fn decay_slices(&self, h: &crate::Hyper, w: &mut [f32], slots: &mut [&mut [f32]]) {
            Formula::decay(self, crate::formula::inner(&h.0), crate::formula::Slices { w, g: &[], slots })
        }
    };
}
pub(crate) use compiled_here;

/// A rule read with symbols. Every [`Formula`] is one.
pub trait SymbolicRule {
    /// As [`Formula::carried`].
    fn carried(&self) -> Option<Slot>;

    /// As [`Formula::carry`].
    fn carry<'t>(&self, step: Symbol<'t>, carried: Symbol<'t>) -> Symbol<'t>;

    /// As [`Formula::hyper`]. The caller rounds the scalars to `f32`.
    fn hyper<'t>(&self, step: Symbol<'t>, rate: Symbol<'t>, carried: Symbol<'t>) -> Vec<Symbol<'t>>;

    /// The new weight and slots. There must be as many slots as the rule has.
    fn update<'t>(
        &self,
        h: &[Symbol<'t>],
        w: Symbol<'t>,
        g: Symbol<'t>,
        slots: &[Symbol<'t>],
    ) -> (Symbol<'t>, Vec<Symbol<'t>>);

    /// The new weight and slots of rows without a gradient.
    fn decay<'t>(&self, h: &[Symbol<'t>], w: Symbol<'t>, slots: &[Symbol<'t>]) -> (Symbol<'t>, Vec<Symbol<'t>>);
}

impl<F: Formula> UpdateRule for F {
    fn name(&self) -> &'static str {
        Formula::name(self)
    }

    fn default_learning_rate(&self) -> f64 {
        Formula::default_learning_rate(self)
    }

    fn slots(&self) -> Vec<Slot> {
        Formula::slots(self)
    }

    fn scalars(&self, steps: u64) -> Vec<(&'static str, f64)> {
        Formula::scalars(self, steps)
    }

    fn settings(&self) -> Option<Vec<(&'static str, Setting)>> {
        Formula::settings(self)
    }

    fn check(&self) -> Result<(), String> {
        Formula::check(self)
    }

    fn newer(&self) -> Option<Arc<dyn UpdateRule>> {
        Formula::newer(self)
    }

    fn is_newer(&self) -> bool {
        Formula::is_newer(self)
    }

    fn hyper(&self, step: u64, learning_rate: f64) -> Hyper {
        let carried = self.carried_after(step.saturating_add(1));
        hyper(Formula::hyper(self, step as f64, learning_rate, carried))
    }

    fn sparse(&self) -> SparseRule {
        Formula::sparse(self)
    }

    fn update(&self, h: &Hyper, w: &mut [f32], g: &[f32], slots: &mut [&mut [f32]]) {
        self.update_slices(h, w, g, slots)
    }

    fn decay(&self, h: &Hyper, w: &mut [f32], slots: &mut [&mut [f32]]) {
        self.decay_slices(h, w, slots)
    }

    fn symbolic(&self) -> Option<&dyn SymbolicRule> {
        Some(self)
    }
}

impl<F: Formula> SymbolicRule for F {
    fn carried(&self) -> Option<Slot> {
        Formula::carried(self)
    }

    fn carry<'t>(&self, step: Symbol<'t>, carried: Symbol<'t>) -> Symbol<'t> {
        Formula::carry(self, step, carried)
    }

    fn hyper<'t>(&self, step: Symbol<'t>, rate: Symbol<'t>, carried: Symbol<'t>) -> Vec<Symbol<'t>> {
        Formula::hyper(self, step, rate, carried).to_vec()
    }

    fn update<'t>(
        &self,
        h: &[Symbol<'t>],
        w: Symbol<'t>,
        g: Symbol<'t>,
        slots: &[Symbol<'t>],
    ) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        let mut state = (w, slots.to_vec());
        Formula::update(self, inner(h), Once { state: &mut state, g });
        state
    }

    fn decay<'t>(&self, h: &[Symbol<'t>], w: Symbol<'t>, slots: &[Symbol<'t>]) -> (Symbol<'t>, Vec<Symbol<'t>>) {
        let mut state = (w, slots.to_vec());
        Formula::decay(self, inner(h), Once { state: &mut state, g: w });
        state
    }
}

/// The scalars of the rule itself, which come first.
pub(crate) fn inner<N: Copy>(h: &[N]) -> [N; N_SCALARS] {
    std::array::from_fn(|i| h[i])
}

/// The scalars of a rule, rounded; the rest is zero.
pub(crate) fn hyper(scalars: [f64; N_SCALARS]) -> Hyper {
    Hyper(std::array::from_fn(|i| scalars.get(i).copied().unwrap_or(0.0) as f32))
}

/// Runs an element over every index.
pub(crate) struct Slices<'a, 'b> {
    pub w: &'a mut [f32],
    pub g: &'a [f32],
    pub slots: &'a mut [&'b mut [f32]],
}

impl Reader<f32> for Slices<'_, '_> {
    #[inline]
    fn read<E: Element<f32, S>, const S: usize>(self, element: E) {
        width::apply(element, self.w, self.g, self.slots)
    }
}

/// Runs an element once.
pub(crate) struct Once<'a, N> {
    pub state: &'a mut (N, Vec<N>),
    pub g: N,
}

impl<N: Number> Reader<N> for Once<'_, N> {
    fn read<E: Element<N, S>, const S: usize>(self, element: E) {
        let (w, slots) = self.state;
        assert_eq!(slots.len(), S, "number of slots");
        let (weight, new) = element.step(*w, self.g, std::array::from_fn(|k| slots[k]));
        (*w, *slots) = (weight, new.to_vec());
    }
}

/// A step in which every gradient is zero.
#[derive(Clone, Copy)]
pub(crate) struct ZeroGradient<E>(pub E);

impl<N: Number, E: Element<N, S>, const S: usize> Element<N, S> for ZeroGradient<E> {
    const READS_GRADIENT: bool = false;

    #[inline(always)]
    fn step(self, w: N, _: N, slots: [N; S]) -> (N, [N; S]) {
        self.0.step(w, w.number(0.0), slots)
    }
}

/// Multiplies each slot by its factor and leaves the weight alone.
#[derive(Clone, Copy)]
pub(crate) struct Scale<N, const S: usize>(pub [N; S]);

impl<N: Number, const S: usize> Element<N, S> for Scale<N, S> {
    const READS_GRADIENT: bool = false;

    #[inline(always)]
    fn step(self, w: N, _: N, slots: [N; S]) -> (N, [N; S]) {
        (w, std::array::from_fn(|k| slots[k] * self.0[k]))
    }
}

/// Puts the scalars of a rule first; the rest is zero.
pub(crate) fn scalars<N: Number, const K: usize>(scalars: [N; K]) -> [N; N_SCALARS] {
    let zero = scalars[0].number(0.0);
    std::array::from_fn(|i| scalars.get(i).copied().unwrap_or(zero))
}
