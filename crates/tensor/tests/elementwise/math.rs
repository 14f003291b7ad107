//! The `f32` functions of `cpu::math` against the `f64` functions of the standard library, over the
//! whole range of floats.

use estimand_tensor::cpu::math;

/// Floats of every magnitude and both signs, about 1.3 million of them.
fn sweep() -> impl Iterator<Item = f32> {
    (0..=u32::MAX / 3301).map(|i| f32::from_bits(i * 3301)).filter(|x| !x.is_nan())
}

/// The distance of `y` from the exact value, in units of the last place of the `f32` nearest to it.
fn ulps(y: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if y == nearest || (y.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    if !y.is_finite() || !nearest.is_finite() {
        return f64::INFINITY;
    }
    let exponent = (nearest.abs().max(f32::MIN_POSITIVE).to_bits() >> 23) as i32 - 127 - 23;
    (f64::from(y) - exact).abs() / 2f64.powi(exponent)
}

fn check(name: &str, f: fn(f32) -> f32, exact: fn(f64) -> f64, limit: f64, range: std::ops::RangeInclusive<f32>) {
    let (mut worst, mut at) = (0.0, 0.0);
    for x in sweep().filter(|x| range.contains(x)) {
        let e = ulps(f(x), exact(f64::from(x)));
        if e > worst {
            (worst, at) = (e, x);
        }
    }
    assert!(worst <= limit, "{name}: {worst} ulp at {at:e}: {:e} instead of {:e}", f(at), exact(f64::from(at)));
}

const ALL: std::ops::RangeInclusive<f32> = f32::NEG_INFINITY..=f32::INFINITY;

#[test]
fn exponentials_and_logarithms_are_within_two_ulp() {
    check("exp", math::exp, f64::exp, 1.6, ALL);
    check("expm1", math::expm1, f64::exp_m1, 2.0, ALL);
    check("log", math::log, f64::ln, 1.5, ALL);
    check("log1p", math::log1p, f64::ln_1p, 2.0, ALL);
}

#[test]
fn activations_are_within_three_ulp() {
    check("tanh", math::tanh, f64::tanh, 3.0, ALL);
    // Written with e^-|x|, because 1 / (1 + e^-x) in f64 overflows where f32 still has denormal
    // results.
    check(
        "sigmoid",
        math::sigmoid,
        |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) },
        3.0,
        ALL,
    );
    check("softplus", math::softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), 3.0, ALL);
}

#[test]
fn rounding_is_exact() {
    check("round", math::round, f64::round_ties_even, 0.0, ALL);
    check("floor", math::floor, f64::floor, 0.0, ALL);
    for (x, y) in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-1.5, -2.0), (8_388_609.0, 8_388_609.0)] {
        assert_eq!(math::round(x).to_bits(), f32::to_bits(y), "round({x})");
    }
}

#[test]
fn sine_and_cosine_are_good_up_to_large_angles() {
    check("sin", math::sin, f64::sin, 2.0, -1.0..=1.0);
    for (name, f, exact) in
        [("sin", math::sin as fn(f32) -> f32, f64::sin as fn(f64) -> f64), ("cos", math::cos, f64::cos)]
    {
        for x in sweep().filter(|x| x.abs() <= 1e4) {
            let e = (f64::from(f(x)) - exact(f64::from(x))).abs();
            assert!(e < 1.3e-7, "{name}({x}) is off by {e:e}");
        }
        assert!(sweep().all(|x| x.is_infinite() || f(x).abs() <= 1.0), "{name} leaves -1..1");
        assert!(f(f32::INFINITY).is_nan());
    }
}

#[test]
fn error_function_is_good_to_seven_digits() {
    for x in sweep() {
        let e = (f64::from(math::erf(x)) - math::erf_f64(f64::from(x))).abs();
        assert!(e < 1.5e-7, "erf({x}) is off by {e:e}");
    }
    check("erf near 0", math::erf, math::erf_f64, 3.0, -0.5..=0.5);
    // Abramowitz and Stegun, table 7.1.
    for (x, y) in [(0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0), (3.5, 0.999_999_256_9)] {
        assert!((math::erf_f64(x) - y).abs() < 1e-10, "erf({x})");
    }
}

#[test]
fn powers_are_within_one_ulp() {
    let bases = [1e-40, 1e-30, 0.001, 0.3, 0.999, 0.999_999_9, 1.000_000_1, 1.5, 2.0, 3.0, 10.0, 1e10, 3e38];
    for x in bases {
        for k in -400..=400 {
            let y = k as f32 * 0.37;
            let e = ulps(math::pow(x, y), f64::from(x).powf(f64::from(y)));
            assert!(e <= 0.6, "{x}^{y}: {e} ulp");
        }
    }
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        16_777_217.0,
        1e30,
        -1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    for x in special {
        for y in special {
            let (got, want) = (math::pow(x, y), f64::from(x).powf(f64::from(y)) as f32);
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{x}^{y} = {got}, not {want}");
        }
    }
}

#[test]
fn special_values() {
    let functions: [fn(f32) -> f32; 10] = [
        math::exp,
        math::expm1,
        math::log,
        math::log1p,
        math::tanh,
        math::sigmoid,
        math::softplus,
        math::sin,
        math::cos,
        math::erf,
    ];
    assert!(functions.iter().all(|f| f(f32::NAN).is_nan()));
    assert_eq!((math::exp(f32::NEG_INFINITY), math::exp(f32::INFINITY)), (0.0, f32::INFINITY));
    assert_eq!((math::log(0.0), math::log(-0.0)), (f32::NEG_INFINITY, f32::NEG_INFINITY));
    assert!(math::log(-1.0).is_nan() && math::log1p(-1.5).is_nan());
    assert_eq!((math::log1p(-1.0), math::log1p(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
    for f in [math::expm1, math::log1p, math::tanh, math::sin, math::erf, math::round, math::floor] {
        assert_eq!(f(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(f(0.0).to_bits(), 0);
    }
}
