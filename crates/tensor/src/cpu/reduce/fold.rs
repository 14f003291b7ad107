//! The arithmetic of each reduction.

/// The way elements are combined. A chain of up to 64 elements is folded in `Chain`; chains are
/// folded in `Wide`.
pub(in crate::cpu) trait Fold: 'static {
    type Element: Copy + Default;
    type Chain: Copy;
    type Wide: Copy;
    /// The value of an empty chain.
    const EMPTY: Self::Chain;
    /// The result without any chain.
    const START: Self::Wide;
    fn step(chain: Self::Chain, x: Self::Element) -> Self::Chain;
    fn merge(wide: Self::Wide, chain: Self::Chain) -> Self::Wide;
    fn join(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The final result of `count` elements.
    fn finish(wide: Self::Wide, count: usize) -> Self::Element;
}

/// The reductions of one element type.
pub(in crate::cpu) struct Sum<T>(T);
pub(super) struct Mean<T>(T);
pub(super) struct Prod<T>(T);
pub(in crate::cpu) struct Max<T>(T);
pub(super) struct Min<T>(T);
pub(super) struct All;
pub(super) struct Any;

macro_rules! fold {
    ($name:ty: $element:ty, $chain:ty, $wide:ty; $empty:expr, $start:expr; $step:expr, $join:expr, $finish:expr) => {
        impl Fold for $name {
            type Element = $element;
            type Chain = $chain;
            type Wide = $wide;
            const EMPTY: $chain = $empty;
            const START: $wide = $start;
            #[inline(always)]
            fn step(chain: $chain, x: $element) -> $chain {
                ($step)(chain, x)
            }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)] // chains of most types are as wide as they get
            fn merge(wide: $wide, chain: $chain) -> $wide {
                ($join)(wide, chain as $wide)
            }
            #[inline(always)]
            fn join(a: $wide, b: $wide) -> $wide {
                ($join)(a, b)
            }
            #[inline(always)]
            fn finish(wide: $wide, count: usize) -> $element {
                ($finish)(wide, count)
            }
        }
    };
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        fold!(Sum<$t>: $t, $t, f64; 0.0, 0.0; |c, x| c + x, |a, b| a + b, |w, _| w as $t);
        fold!(Mean<$t>: $t, $t, f64; 0.0, 0.0; |c, x| c + x, |a, b| a + b, |w, n| (w / n as f64) as $t);
        fold!(Prod<$t>: $t, $t, f64; 1.0, 1.0; |c, x| c * x, |a, b| a * b, |w, _| w as $t);
        // NaN stays NaN: the comparison with it is false, and it differs from itself.
        fold!(Max<$t>: $t, $t, $t; <$t>::NEG_INFINITY, <$t>::NEG_INFINITY;
            |c: $t, x: $t| if (x > c) | x.is_nan() { x } else { c },
            |a: $t, b: $t| if (b > a) | b.is_nan() { b } else { a }, |w, _| w);
        fold!(Min<$t>: $t, $t, $t; <$t>::INFINITY, <$t>::INFINITY;
            |c: $t, x: $t| if (x < c) | x.is_nan() { x } else { c },
            |a: $t, b: $t| if (b < a) | b.is_nan() { b } else { a }, |w, _| w);
    )*};
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),*) => {$(
        fold!(Sum<$t>: $t, $t, $t; 0, 0; <$t>::wrapping_add, <$t>::wrapping_add, |w, _| w);
        // Wide enough that the sum of a mean does not wrap.
        fold!(Mean<$t>: $t, i64, i64; 0, 0;
            |c: i64, x| c.wrapping_add(x as i64), i64::wrapping_add,
            |w: i64, n| if n == 0 { 0 } else { (w / n as i64) as $t });
        fold!(Prod<$t>: $t, $t, $t; 1, 1; <$t>::wrapping_mul, <$t>::wrapping_mul, |w, _| w);
        fold!(Max<$t>: $t, $t, $t; <$t>::MIN, <$t>::MIN; <$t>::max, <$t>::max, |w, _| w);
        fold!(Min<$t>: $t, $t, $t; <$t>::MAX, <$t>::MAX; <$t>::min, <$t>::min, |w, _| w);
    )*};
}
integers!(i32, i64, u8);

// Booleans are the bytes 0 and 1.
fold!(All: u8, u8, u8; 1, 1; |c, x| c & x, |a, b| a & b, |w, _| w);
fold!(Any: u8, u8, u8; 0, 0; |c, x| c | x, |a, b| a | b, |w, _| w);
