use super::*;
use std::collections::HashSet;

fn stream(name: &str, step: u64) -> Stream {
    Stream::new(Key::new(1, name), step)
}

/// From TensorFlow 2.15.1, with counter and key as little-endian pairs of u64:
/// `tf.raw_ops.StatelessRandomUniformFullIntV2(shape=[4], key=key, counter=counter, alg=1,
/// dtype=tf.uint32)`
#[test]
fn philox_known_answers() {
    let ones = u32::MAX;
    assert_eq!(philox::block(0, [0; 4]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    assert_eq!(philox::block(u64::MAX, [ones; 4]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    assert_eq!(
        philox::block(0x299f31d0_a4093822, [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344]),
        [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
    );
}

/// The layout that the module promises: each value computed separately, one block at a time.
#[test]
fn every_value_is_a_function_of_its_position() {
    let stream = stream("position", 3);
    for width in [1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 100, 129] {
        for rows in [0, 1, 2, 5, 17, 40] {
            let first = (1u64 << 32) - 3;
            let mut out = vec![-1.0; rows * width];
            stream.fill_uniform_f32(first, width, &mut out);
            for (i, value) in out.iter().enumerate() {
                let (row, index) = (first + (i / width) as u64, i % width);
                let words = philox::block(stream.key, [(index / 4) as u32, 0, row as u32, (row >> 32) as u32]);
                assert_eq!(*value, (words[index % 4] >> 8) as f32 / 16_777_216.0, "width {width} rows {rows} at {i}");
            }
        }
    }
}

#[test]
fn every_instruction_set_draws_the_same_bits() {
    for fill in [uniform_f32, normal_f32] {
        for width in [1, 3, 64, 1000] {
            let draw = |isa| {
                let mut out = vec![0.0; 5 * width];
                // SAFETY: only instruction sets up to the detected one are requested.
                unsafe { fill(isa)(42, 7, width, &mut out) };
                out
            };
            let portable = draw(Isa::Portable);
            for isa in [Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| *isa <= Isa::detect()) {
                assert!(draw(isa) == portable, "{isa:?}, width {width}");
            }
        }
    }
}

#[test]
fn a_row_alone_equals_the_row_in_a_batch() {
    let stream = stream("batch", 0);
    let (rows, width) = (37, 11);
    macro_rules! check {
        ($fill:ident, $zero:expr $(, $arg:expr)*) => {
            let mut whole = vec![$zero; rows * width];
            stream.$fill(5, width $(, $arg)*, &mut whole);
            for row in 0..rows {
                let mut alone = vec![$zero; width];
                stream.$fill(5 + row as u64, width $(, $arg)*, &mut alone);
                assert_eq!(alone, whole[row * width..][..width], "{} row {row}", stringify!($fill));
            }
        };
    }
    check!(fill_uniform_f32, 0.0);
    check!(fill_normal_f32, 0.0);
    check!(fill_truncated_normal_f32, 0.0);
    check!(fill_integers_i32, 0, -5, 1000);
    check!(fill_integers_i64, 0, -5, 1 << 40);
}

#[test]
fn names_steps_rows_and_seeds_do_not_repeat() {
    let mut seen = HashSet::new();
    for (seed, name) in [(0, "a"), (0, "b"), (1, "a"), (0, ""), (0, "dense/kernel"), (0, "dense/kernel_1")] {
        for step in 0..20 {
            let mut out = [0i64; 5 * 4];
            Stream::new(Key::new(seed, name), step).fill_integers_i64(0, 4, i64::MIN, i64::MAX, &mut out);
            for value in out {
                assert!(seen.insert(value), "{seed} {name} {step} repeats {value}");
            }
        }
    }
}

/// FNV-1a of "a" is 0xaf63dc4c8601ec8c (its published test vector); SplitMix64 seeded with 0 first
/// yields 0xe220a8397b1dcdaf, which is mix(GOLDEN).
#[test]
fn keys_are_frozen() {
    assert_eq!(mix(GOLDEN), 0xe220a8397b1dcdaf);
    assert_eq!(Key::new(0, "a"), Key(mix(0xe220a8397b1dcdaf ^ 0xaf63dc4c8601ec8c)));
    assert_eq!(Key::new(0, ""), Key(mix(0xe220a8397b1dcdaf ^ 0xcbf29ce484222325)));
}

fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    (mean, values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n)
}

#[test]
fn uniform_moments_and_bounds() {
    let mut out = vec![0.0; 1 << 20];
    stream("uniform", 0).fill_uniform_f32(0, 1 << 10, &mut out);
    assert!(out.iter().all(|&v| (0.0..1.0).contains(&v)));
    let (mean, variance) = moments(&out);
    assert!((mean - 0.5).abs() < 0.002 && (variance - 1.0 / 12.0).abs() < 0.001, "{mean} {variance}");
    let mut counts = [0i32; 16];
    out.iter().for_each(|&v| counts[(v * 16.0) as usize] += 1);
    assert!(counts.iter().all(|c| (c - 65_536).abs() < 1500), "{counts:?}");
}

/// P(|z| < 1) = 0.6827 and P(|z| < 2) = 0.9545; the truncated variance is 1 - 4 phi(2) / 0.9545 =
/// 0.7737.
#[test]
fn normal_moments_and_tails() {
    let mut out = vec![0.0; 1 << 20];
    stream("normal", 0).fill_normal_f32(0, 1 << 10, &mut out);
    let (mean, variance) = moments(&out);
    assert!(mean.abs() < 0.005 && (variance - 1.0).abs() < 0.005, "{mean} {variance}");
    let within = |limit: f32| out.iter().filter(|v| v.abs() < limit).count() as f64 / out.len() as f64;
    assert!((within(1.0) - 0.6827).abs() < 0.002 && (within(2.0) - 0.9545).abs() < 0.001);
    assert!(out.iter().any(|v| v.abs() > 4.0) && out.iter().all(|v| v.abs() < 7.0));

    let mut truncated = vec![0.0; 1 << 20];
    stream("normal", 0).fill_truncated_normal_f32(0, 1 << 10, &mut truncated);
    assert!(truncated.iter().all(|v| v.abs() < 2.0));
    assert!(out.iter().zip(&truncated).all(|(z, t)| z.abs() >= 2.0 || z == t));
    let (mean, variance) = moments(&truncated);
    assert!(mean.abs() < 0.005 && (variance - 0.7737).abs() < 0.003, "{mean} {variance}");
}

/// The textbook transform with the functions of the standard library.
#[test]
fn normal_matches_box_and_muller() {
    let mut bits = 0u64;
    for i in 0..100_000u64 {
        bits = match i {
            0 => 0,
            1 => u64::MAX,
            _ => mix(bits.wrapping_add(GOLDEN)),
        };
        let (a, b) = (bits as u32, (bits >> 32) as u32);
        let radius = (-2.0 * ((f64::from(a) + 0.5) / 4_294_967_296.0).ln()).sqrt();
        let angle = f64::from(b) / 4_294_967_296.0 * std::f64::consts::TAU;
        let [c, s] = normal::pair(a, b);
        assert!((f64::from(c) - radius * angle.cos()).abs() < 5e-7, "{a:x} {b:x}");
        assert!((f64::from(s) - radius * angle.sin()).abs() < 5e-7, "{a:x} {b:x}");
    }
}

#[test]
fn integers_cover_their_range_and_extremes_do_not_overflow() {
    let stream = stream("integers", 0);
    let mut out = vec![0; 60_000];
    stream.fill_integers_i32(0, 100, -3, 3, &mut out);
    for value in -3..3 {
        let count = out.iter().filter(|&&v| v == value).count() as i64;
        assert!((count - 10_000).abs() < 500, "{value}: {count}");
    }
    stream.fill_integers_i32(0, 100, i32::MIN, i32::MAX, &mut out);
    assert!(out.iter().any(|&v| v < -1_000_000_000) && out.iter().any(|&v| v > 1_000_000_000));
    stream.fill_integers_i32(0, 100, 7, 7, &mut out);
    assert!(out.iter().all(|&v| v == 7));
    let mut wide = vec![0; 100];
    stream.fill_integers_i64(0, 10, i64::MIN, i64::MAX, &mut wide);
    assert!(wide.iter().any(|&v| v < 0) && wide.iter().any(|&v| v > 0));
    stream.fill_integers_i64(0, 10, 5, -5, &mut wide);
    assert!(wide.iter().all(|&v| v == 5));
}

#[test]
fn permutations_are_bijections() {
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 1025] {
        let stream = stream("order", n);
        let mut filled = vec![0; n as usize];
        stream.fill_permutation(&mut filled);
        let mut mapped: Vec<u64> = (0..n).map(|i| stream.permute(i, n)).collect();
        let mut beyond = vec![0; n as usize + 3];
        stream.permutation(n).fill(0, &mut beyond);
        assert_eq!(beyond[..n as usize], mapped);
        assert_eq!(beyond[n as usize..], [n, n + 1, n + 2]);
        let mut later = vec![0; n as usize / 2];
        stream.permutation(n).fill(n.div_ceil(2), &mut later);
        assert_eq!(later, mapped[n.div_ceil(2) as usize..]);
        assert!(n < 100 || (filled[..20] != mapped[..20] && filled.iter().zip(0..).any(|(&v, i)| v != i)));
        filled.sort_unstable();
        mapped.sort_unstable();
        assert!(filled.iter().copied().eq(0..n) && mapped.iter().copied().eq(0..n), "n = {n}");
    }
    assert_eq!(stream("order", 0).permute(9, 5), 9);
    assert!(stream("order", 0).permute(u64::MAX - 1, u64::MAX) < u64::MAX);
}

/// 24,000 permutations of 4 elements: each of the 24 occurs about 1,000 times (deviation 31).
#[test]
fn every_order_of_four_is_equally_likely() {
    let mut counts = [[0i32; 256]; 2];
    for step in 0..24_000 {
        let stream = stream("orders", step);
        let mut filled = [0; 4];
        stream.fill_permutation(&mut filled);
        let mapped = [0, 1, 2, 3].map(|i| stream.permute(i, 4));
        for (counts, order) in counts.iter_mut().zip([filled, mapped]) {
            counts[order.iter().fold(0, |code, v| code * 4 + *v as usize)] += 1;
        }
    }
    for counts in counts {
        let seen: Vec<i32> = counts.into_iter().filter(|&c| c > 0).collect();
        assert!(seen.len() == 24 && seen.iter().all(|c| (c - 1000).abs() < 150), "{seen:?}");
    }
}
