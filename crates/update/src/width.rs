//! The loop that runs every rule, compiled for plain, AVX2 and AVX-512 vectors and chosen at run
//! time.
//!
//! A formula supplies one [`Element`]: a pure function of one weight, one gradient and its slots.
//! Rust never contracts `a * b + c`, and IEEE defines square root and division exactly, so the
//! three loops give the same bits.

use crate::formula::Element;

/// Runs `element` over every index of `w`. Panics unless there are `S` slots and all lengths agree.
pub(crate) fn apply<E: Element<f32, S>, const S: usize>(
    element: E,
    w: &mut [f32],
    g: &[f32],
    slots: &mut [&mut [f32]],
) {
    const { assert!(S <= 3) };
    assert_eq!(slots.len(), S, "number of slots");
    assert!(slots.iter().all(|slot| slot.len() == w.len()), "slots must be as long as the weights");
    assert!(!E::READS_GRADIENT || g.len() == w.len(), "the gradient must be as long as the weights");
    let mut slots = slots.iter_mut().map(|slot| &mut **slot);
    let [a, b, c] = std::array::from_fn(|_| slots.next().unwrap_or_default());
    match Width::of_this_cpu() {
        Width::Plain => walk(element, w, g, a, b, c),
        // SAFETY: `of_this_cpu` found the feature.
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => unsafe { walk_avx2(element, w, g, a, b, c) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => unsafe { walk_avx512(element, w, g, a, b, c) },
    }
}

/// Walks over blocks of one AVX-512 vector and of one AVX2 vector, then over the rest. Rows of
/// tables are short: a block of fixed length needs no code for a remainder.
#[inline(always)]
fn walk<E: Element<f32, S>, const S: usize>(
    element: E,
    w: &mut [f32],
    g: &[f32],
    a: &mut [f32],
    b: &mut [f32],
    c: &mut [f32],
) {
    let (w, g, a, b, c) = blocks::<E, S, 16>(element, w, g, a, b, c);
    let (w, g, a, b, c) = blocks::<E, S, 8>(element, w, g, a, b, c);
    run(element, w, g, a, b, c);
}

/// The weights, the gradients and three slots.
type Slices<'a> = (&'a mut [f32], &'a [f32], &'a mut [f32], &'a mut [f32], &'a mut [f32]);

/// Runs all blocks of `N` elements and returns what remains.
#[inline(always)]
fn blocks<'a, E: Element<f32, S>, const S: usize, const N: usize>(
    element: E,
    w: &'a mut [f32],
    g: &'a [f32],
    a: &'a mut [f32],
    b: &'a mut [f32],
    c: &'a mut [f32],
) -> Slices<'a> {
    let ((w, w_rest), (g, g_rest)) = (w.as_chunks_mut::<N>(), g.as_chunks::<N>());
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks_mut::<N>(), b.as_chunks_mut::<N>());
    let (c, c_rest) = c.as_chunks_mut::<N>();
    let length = |is_used: bool| if is_used { w.len() } else { 0 };
    let g = &g[..length(E::READS_GRADIENT)];
    let (a, b, c) = (&mut a[..length(S > 0)], &mut b[..length(S > 1)], &mut c[..length(S > 2)]);
    let [mut no_a, mut no_b, mut no_c] = [[0.0; N]; 3];
    for (i, w) in w.iter_mut().enumerate() {
        let g = if E::READS_GRADIENT { &g[i] } else { &[0.0; N] };
        let a = if S > 0 { &mut a[i] } else { &mut no_a };
        let b = if S > 1 { &mut b[i] } else { &mut no_b };
        let c = if S > 2 { &mut c[i] } else { &mut no_c };
        run(element, w, g, a, b, c);
    }
    (w_rest, g_rest, a_rest, b_rest, c_rest)
}

/// Takes three slices rather than an array of slices: the compiler knows that parameters do not
/// overlap, so the loop vectorises. Slots beyond `S` may be empty.
#[inline(always)]
fn run<E: Element<f32, S>, const S: usize>(
    element: E,
    w: &mut [f32],
    g: &[f32],
    a: &mut [f32],
    b: &mut [f32],
    c: &mut [f32],
) {
    let n = w.len();
    let length = |is_used: bool| if is_used { n } else { 0 };
    let g = &g[..length(E::READS_GRADIENT)];
    let (a, b, c) = (&mut a[..length(S > 0)], &mut b[..length(S > 1)], &mut c[..length(S > 2)]);
    for i in 0..n {
        let gradient = if E::READS_GRADIENT { g[i] } else { 0.0 };
        let old = std::array::from_fn(|k| [&*a, &*b, &*c][k][i]);
        let (weight, new) = element.step(w[i], gradient, old);
        w[i] = weight;
        for (k, value) in new.into_iter().enumerate() {
            [&mut *a, &mut *b, &mut *c][k][i] = value;
        }
    }
}

macro_rules! twin {
    ($name:ident, $feature:literal) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        fn $name<E: Element<f32, S>, const S: usize>(
            element: E,
            w: &mut [f32],
            g: &[f32],
            a: &mut [f32],
            b: &mut [f32],
            c: &mut [f32],
        ) {
            walk(element, w, g, a, b, c)
        }
    };
}

twin!(walk_avx2, "avx2");
twin!(walk_avx512, "avx512f");

/// The vectors a loop is compiled for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Width {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Width {
    /// The widest width that this CPU supports. The standard library caches the detection. It is
    /// inlined, since a call for a row of 32 weights takes about 10 ns.
    #[inline]
    fn of_this_cpu() -> Width {
        #[cfg(test)]
        if let Some(width) = tests::FORCED.get() {
            return width;
        }
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Width::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Width::Avx2;
            }
        }
        Width::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Adadelta, Adagrad, Adam, Adamax, Ema, Extended, Ftrl, Lion, Nadam, RmsProp, Sgd, UpdateRule};
    use std::cell::Cell;

    thread_local! {
        pub(super) static FORCED: Cell<Option<Width>> = const { Cell::new(None) };
    }

    /// Every kernel: each rule, and each setting that selects another loop.
    fn rules() -> Vec<Box<dyn UpdateRule>> {
        vec![
            Box::new(Sgd::default()),
            Box::new(Sgd::default().momentum(0.9)),
            Box::new(Sgd::default().momentum(0.9).nesterov(true)),
            Box::new(Sgd::v1(0.9)),
            Box::new(Sgd::v1(0.9).nesterov(true)),
            Box::new(Adagrad::default()),
            Box::new(Adam::default()),
            Box::new(Adam::default().amsgrad(true).weight_decay(0.004)),
            Box::new(Ftrl::default().l1(0.01).l2(0.1).l2_shrinkage(0.1).beta(0.5)),
            Box::new(Ftrl::default().learning_rate_power(-0.7)),
            Box::new(RmsProp::default()),
            Box::new(RmsProp::default().centered(true)),
            Box::new(RmsProp::default().momentum(0.9)),
            Box::new(RmsProp::v1().momentum(0.9).centered(true)),
            Box::new(Adadelta::default()),
            Box::new(Adamax::default()),
            Box::new(Nadam::default()),
            Box::new(Lion::default()),
            Box::new(Sgd::default().momentum(0.9).newer()),
            Box::new(Adagrad::default().newer()),
            Box::new(Ftrl::default().newer()),
            Box::new(RmsProp::default().newer()),
            Box::new(RmsProp::default().centered(true).newer()),
            Box::new(RmsProp::default().momentum(0.9).centered(true).newer()),
            Box::new(Adadelta::default().newer()),
            Box::new(Adamax::default().newer()),
            Box::new(Nadam::default().newer()),
            Box::new(Extended::new(std::sync::Arc::new(Adam::default().newer()), Some(0.1), Some(Ema::default()))),
        ]
    }

    /// Numbers of different magnitudes without a generator: the fractional parts of multiples of an
    /// irrational number, spread by cubing.
    fn numbers(n: usize, irrational: f64) -> Vec<f32> {
        (1..=n).map(|i| (2.0 * (i as f64 * irrational).fract() - 1.0).powi(3) as f32).collect()
    }

    /// The bits of weights and slots after two updates and a decay.
    fn run(rule: &dyn UpdateRule, n: usize, width: Option<Width>) -> Vec<u32> {
        FORCED.set(width);
        let mut w = numbers(n, std::f64::consts::SQRT_2);
        let mut state: Vec<Vec<f32>> = rule.slots().iter().map(|slot| vec![slot.initial; n]).collect();
        for step in 0..2 {
            let h = rule.hyper(step, 0.05);
            let mut slots: Vec<&mut [f32]> = state.iter_mut().map(|slot| &mut slot[..]).collect();
            rule.update(&h, &mut w, &numbers(n, std::f64::consts::E + step as f64 / 7.0), &mut slots);
            rule.decay(&h, &mut w, &mut slots);
        }
        FORCED.set(None);
        w.iter().chain(state.iter().flatten()).map(|x| x.to_bits()).collect()
    }

    #[test]
    fn every_width_gives_the_same_bits() {
        let mut widths = vec![None];
        #[cfg(target_arch = "x86_64")]
        {
            widths.extend(is_x86_feature_detected!("avx2").then_some(Some(Width::Avx2)));
            widths.extend(is_x86_feature_detected!("avx512f").then_some(Some(Width::Avx512)));
        }
        for rule in rules() {
            for n in [0, 1, 7, 16, 33, 1000] {
                let plain = run(&*rule, n, Some(Width::Plain));
                for &width in &widths {
                    assert_eq!(plain, run(&*rule, n, width), "{rule:?}, length {n}, {width:?}");
                }
            }
        }
    }

    #[test]
    fn a_row_alone_gives_the_bits_of_the_row_in_a_table() {
        for rule in rules() {
            let (n, columns) = (33, 1 + rule.slots().len());
            let whole = run(&*rule, n, None);
            let first = run(&*rule, 7, None);
            for column in 0..columns {
                assert_eq!(whole[column * n..][..7], first[column * 7..][..7], "{rule:?}");
            }
        }
    }
}
