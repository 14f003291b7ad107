//! Elementary functions of `f32`, written so that loops over them compile to vector code.
//!
//! Every function is a straight line of IEEE operations: no call, no branch that remains a jump, no
//! fused multiply-add. So a loop gives the same bits on every instruction set, in a lane of a
//! vector or alone. The element-wise kernels (`cpu::elementwise`) and `cpu::softmax` inline these
//! functions. The polynomials are minimax fits on the reduced ranges.

use std::f32::consts::LOG2_E;

/// Adding and subtracting this number rounds to the nearest integer and leaves that integer in the
/// low bits.
const ROUND_F32: f32 = 12_582_912.0; // 1.5 * 2^23
const ROUND_F64: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// ln 2 in two parts; the first has 10 bits, so that its product with an exponent is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `2^n` for n in -126..=127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `x = n * ln 2 + r`: returns `e^r - 1` and n. `x` must lie within +-1e6 or be NaN.
#[inline(always)]
fn exp_reduced(x: f32) -> (f32, i32) {
    let shifted = x * LOG2_E + ROUND_F32;
    let n = shifted - ROUND_F32;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let q = 0.001_395_06;
    let q = q * r + 0.008_368_954;
    let q = q * r + 0.041_666_206;
    let q = q * r + 0.166_665_18;
    let q = q * r + 0.5;
    (r * r * q + r, shifted.to_bits().wrapping_sub(ROUND_F32.to_bits()) as i32)
}

/// `e^x`
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // The comparisons are false for NaN, so NaN passes through.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (p, n) = exp_reduced(x);
    // In two steps, because 2^n itself leaves the range of normal numbers where e^x does not.
    let half = n >> 1;
    (p + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `e^x - 1`, exact near 0
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -25.0 { -25.0 } else { clamped };
    let (p, n) = exp_reduced(clamped);
    // Computes half the result, because 2^n overflows before e^x does.
    let half_power = power_of_two(n.wrapping_sub(1));
    let y = (half_power * p + (half_power - 0.5)) * 2.0;
    if x.abs() < 1e-8 { x } else { y }
}

/// Positive normal or denormal `x = 2^e * (1 + f)` with `1 + f` in `sqrt(1/2)..sqrt(2)`; returns e
/// and f.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    const LOWEST: u32 = 0x3f35_04f3; // sqrt(1/2)
    let denormal = x < f32::MIN_POSITIVE;
    let scaled = if denormal { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits().wrapping_sub(LOWEST);
    let e = (bits as i32 >> 23) as f32;
    let m = f32::from_bits((bits & 0x007f_ffff).wrapping_add(LOWEST));
    (if denormal { e - 23.0 } else { e }, m - 1.0)
}

/// `ln x + correction`, where the correction is small compared with the result.
#[inline(always)]
fn log_corrected(x: f32, correction: f32) -> f32 {
    let (e, f) = split(x);
    let q = -0.076_343_21;
    let q = q * f + 0.127_654_02;
    let q = q * f - 0.131_620_17;
    let q = q * f + 0.142_013_73;
    let q = q * f - 0.166_231_44;
    let q = q * f + 0.200_012_36;
    let q = q * f - 0.250_008_26;
    let q = q * f + 0.333_333_3;
    let f2 = f * f;
    let y = (f2 * f * q + (e * LN2_LOW + correction)) - 0.5 * f2;
    let y = (f + y) + e * LN2_HIGH;
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    // Written so that NaN counts as below 0.
    if x >= 0.0 { y } else { f32::NAN }
}

/// Natural logarithm
#[inline(always)]
pub fn log(x: f32) -> f32 {
    log_corrected(x, 0.0)
}

/// `ln(1 + x)`, exact near 0
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // The rounding error of 1 + x, to first order.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    // 0 / 0 where u is 0, NaN where it is infinite.
    let correction = lost / u;
    let correction = if correction.is_nan() { 0.0 } else { correction };
    let y = log_corrected(u, correction);
    if x.abs() < 1e-8 { x } else { y }
}

/// Hyperbolic tangent
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 10.0 { 10.0 } else { a };
    let t = expm1(2.0 * a);
    (t / (t + 2.0)).copysign(x)
}

/// `1 / (1 + e^-x)`
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `ln(1 + e^x)`
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    (if x > 0.0 { x } else { 0.0 }) + log1p(exp(-x.abs()))
}

/// Nearest integer, halves to even
#[inline(always)]
pub fn round(x: f32) -> f32 {
    const INTEGERS_ONLY: f32 = 8_388_608.0; // 2^23: no fractions from here on
    let a = x.abs();
    if a < INTEGERS_ONLY { ((a + INTEGERS_ONLY) - INTEGERS_ONLY).copysign(x) } else { x }
}

/// Largest integer not above x
#[inline(always)]
pub fn floor(x: f32) -> f32 {
    let r = round(x);
    if r > x { (r - 1.0).copysign(x) } else { r }
}

/// `x = n * pi/2 + r` with |r| <= pi/4; in `f64`, which is good to 1e-9 up to |x| = 1e7.
#[inline(always)]
fn quarter_turns(x: f32) -> (f32, i32) {
    let wide = f64::from(x);
    let shifted = wide * std::f64::consts::FRAC_2_PI + ROUND_F64;
    let r = (wide - (shifted - ROUND_F64) * std::f64::consts::FRAC_PI_2) as f32;
    // Beyond the range of the reduction the result has no correct digits, but stays within -1..1.
    let r = if r > 0.8 { 0.8 } else { r };
    let r = if r < -0.8 { -0.8 } else { r };
    (r, shifted.to_bits() as i32)
}

/// Sine or cosine of a reduced angle, by the quarter it lies in.
#[inline(always)]
fn sine_of_quarter(r: f32, quarter: i32) -> f32 {
    let z = r * r;
    let s = -1.951_665_5e-4;
    let s = s * z + 0.008_332_173;
    let s = s * z - 0.166_666_55;
    let sine = s * z * r + r;
    let c = 2.443_772_8e-5;
    let c = c * z - 0.001_388_736_2;
    let c = c * z + 0.041_666_646;
    let cosine = (c * z * z - 0.5 * z) + 1.0;
    let y = if quarter & 1 == 0 { sine } else { cosine };
    f32::from_bits(y.to_bits() ^ ((quarter as u32 & 2) << 30))
}

/// Sine
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (r, n) = quarter_turns(x);
    let y = sine_of_quarter(r, n);
    if x == 0.0 { x } else { y }
}

/// Cosine
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (r, n) = quarter_turns(x);
    sine_of_quarter(r, n.wrapping_add(1))
}

/// Error function
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let z = x * x;
    let p = 7.889_119e-5;
    let p = p * z - 8.020_841e-4;
    let p = p * z + 0.005_189_535;
    let p = p * z - 0.026_854_444;
    let p = p * z + 0.112_836;
    let p = p * z - 0.376_126_26;
    let p = p * z + std::f32::consts::FRAC_2_SQRT_PI;
    // Beyond 1: 1 - e^-g with a polynomial g.
    let a = x.abs();
    let a = if a > 4.0 { 4.0 } else { a };
    let g = -1.855_749e-4;
    let g = g * a + 0.002_939_615_9;
    let g = g * a - 0.021_805_352;
    let g = g * a + 0.103_037_44;
    let g = g * a + 0.638_225_6;
    let g = g * a + 1.127_04;
    let g = g * a + 3.537_089_2e-4;
    let tail = (1.0 - exp(-g)).copysign(x);
    if a < 1.0 { x * p } else { tail }
}

/// `x^y`. The logarithm is multiplied by y, so it is computed in `f64`: in `f32`, half the digits
/// of a large power would be lost.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let t = f64::from(y) * log_wide(a);
    let magnitude = exp_wide(t) as f32;
    let integer = floor(y) == y;
    let half = y * 0.5;
    // Above 2^24 every f32 is even.
    let odd = integer & (floor(half) != half) & (y.abs() < 16_777_216.0);
    let magnitude = if (x < 0.0) & (a < f32::INFINITY) & !integer { f32::NAN } else { magnitude };
    let signed = if odd { magnitude.copysign(x) } else { magnitude };
    let one = (y == 0.0) | (x == 1.0) | ((a == 1.0) & (y.abs() == f32::INFINITY));
    if one { 1.0 } else { signed }
}

/// Natural logarithm of an `f32` that is not negative, to 1e-13.
#[inline(always)]
fn log_wide(x: f32) -> f64 {
    let (e, f) = split(x);
    let f = f64::from(f);
    let s = f / (2.0 + f);
    let z = s * s;
    let q = 0.195_987_912_683_282_64;
    let q = q * z + 0.221_752_374_209_586_43;
    let q = q * z + 0.285_721_302_107_905_53;
    let q = q * z + 0.399_999_954_409_98;
    let q = q * z + 0.666_666_666_762_742_9;
    let y = f64::from(e) * std::f64::consts::LN_2 + (2.0 * s + s * z * q);
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < f32::INFINITY { y } else { f64::from(x) }
}

/// `e^x` to 1e-11. It saturates outside the range where an `f32` is neither 0 nor infinite.
#[inline(always)]
fn exp_wide(x: f64) -> f64 {
    let x = if x > 150.0 { 150.0 } else { x };
    let x = if x < -150.0 { -150.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND_F64;
    let n = shifted - ROUND_F64;
    let r = x - n * std::f64::consts::LN_2;
    let q = 2.488_245_189_661_726_4e-5;
    let q = q * r + 1.984_116_503_232_360_8e-4;
    let q = q * r + 0.001_388_880_721_716_434_8;
    let q = q * r + 0.008_333_333_386_745_042;
    let q = q * r + 0.041_666_666_991_308_075;
    let q = q * r + 0.166_666_666_665_733_5;
    let q = q * r + 0.5;
    let power = f64::from_bits(shifted.to_bits().wrapping_sub(ROUND_F64.to_bits()).wrapping_add(1023) << 52);
    (r * r * q + r + 1.0) * power
}

/// Error function of `f64`: a series of positive terms for small arguments, a continued fraction
/// for large ones.
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 3.0 {
        let (mut term, mut sum) = (a, a);
        for k in 1..80 {
            term *= 2.0 * a * a / f64::from(2 * k + 1);
            sum += term;
        }
        (std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum).copysign(x)
    } else {
        let fraction = (1..=60).rev().fold(a, |below, k| a + f64::from(k) * 0.5 / below);
        (1.0 - 0.5 * std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() / fraction).copysign(x)
    }
}
