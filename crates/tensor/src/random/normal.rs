//! The Box-Muller transform in f64 with polynomials defined here, so that no bit depends on a C
//! library.

use super::philox::{Draw, LANES, Words};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// Normal values with mean 0 and deviation 1.
pub(super) struct Normal;

impl Draw<f32, 4> for Normal {
    #[inline(always)]
    fn draw(&self, words: &Words) -> [[f32; 4]; LANES] {
        // First word by word: the arithmetic vectorises over lanes, the reordering does not.
        let mut columns = [[0.0; LANES]; 4];
        for lane in 0..LANES {
            [columns[0][lane], columns[1][lane]] = pair(words[0][lane], words[1][lane]);
            [columns[2][lane], columns[3][lane]] = pair(words[2][lane], words[3][lane]);
        }
        let mut values = [[0.0; 4]; LANES];
        for (lane, block) in values.iter_mut().enumerate() {
            for (value, column) in block.iter_mut().zip(&columns) {
                *value = column[lane];
            }
        }
        values
    }
}

/// Two independent normal values from 64 random bits.
#[inline(always)]
pub(super) fn pair(radius_bits: u32, angle_bits: u32) -> [f32; 2] {
    let radius = (-2.0 * log_of_fraction(radius_bits)).sqrt();
    let (sin, cos) = sin_cos_of_turn(angle_bits);
    [(radius * cos) as f32, (radius * sin) as f32]
}

/// ln((bits + 0.5) / 2^32), within 1e-9.
#[inline(always)]
fn log_of_fraction(bits: u32) -> f64 {
    let x = f64::from(bits) + 0.5;
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(x.to_bits() & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    // Centred on 1: the mantissa is in [sqrt(1/2), sqrt(2)), where the series below is short.
    let high = mantissa * FRAC_1_SQRT_2 >= 1.0;
    let mantissa = if high { mantissa * 0.5 } else { mantissa };
    let exponent = f64::from(exponent + i32::from(high) - 32);
    // ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: the first omitted term is 2 s^15 / 15
    // < 5e-13.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let t = s * s;
    let series = 1.0
        + t * (1.0 / 3.0 + t * (1.0 / 5.0 + t * (1.0 / 7.0 + t * (1.0 / 9.0 + t * (1.0 / 11.0 + t * (1.0 / 13.0))))));
    exponent * LN_2 + 2.0 * s * series
}

/// The sine and cosine of bits / 2^32 turns, within 1e-9.
#[inline(always)]
fn sin_cos_of_turn(bits: u32) -> (f64, f64) {
    // The nearest quarter turn is removed exactly, in integers; the rest is within an eighth of a
    // turn.
    let quarter = bits.wrapping_add(1 << 29) >> 30;
    let rest = bits.wrapping_sub(quarter << 30) as i32;
    let x = f64::from(rest) * (PI / 2_147_483_648.0);
    let t = x * x;
    // Taylor series: |x| <= pi/4 leaves x^13/13! < 7e-12 and x^12/12! < 1.2e-10.
    let sin = x
        * (1.0
            + t * (-1.0 / 6.0
                + t * (1.0 / 120.0 + t * (-1.0 / 5_040.0 + t * (1.0 / 362_880.0 + t * (-1.0 / 39_916_800.0))))));
    let cos = 1.0
        + t * (-1.0 / 2.0 + t * (1.0 / 24.0 + t * (-1.0 / 720.0 + t * (1.0 / 40_320.0 + t * (-1.0 / 3_628_800.0)))));
    let (sin, cos) = if quarter & 1 == 1 { (cos, -sin) } else { (sin, cos) };
    if quarter & 2 == 2 { (-sin, -cos) } else { (sin, cos) }
}
