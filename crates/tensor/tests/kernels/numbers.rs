//! Inputs, and what the tests of several kernels compare with.

use std::sync::Mutex;

use estimand_tensor::cpu::isa::Isa;
use estimand_tensor::parallel::Pool;

/// `n` numbers in [-0.5, 0.5), from a linear congruential generator.
pub fn random(n: usize, seed: u64) -> Vec<f32> {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    (0..n).map(|_| next()).collect()
}

/// Panics with the first element whose bits differ.
#[track_caller]
pub fn assert_same_bits(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(g.to_bits() == w.to_bits(), "{what}: element {i} is {g:?} instead of {w:?}");
    }
}

/// Panics with the first element that is further away than `1e-5 * max(1, scale)`.
#[track_caller]
pub fn assert_close(got: &[f32], want: &[f64], scale: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        assert!((f64::from(g) - w).abs() <= 1e-5 * scale.max(1.0), "{what}: element {i} is {g} instead of {w}");
    }
}

/// Calls `run` with every instruction set and 1, 2, 3 and 8 threads, and checks that the bits never
/// change; returns them.
#[track_caller]
pub fn on_every_machine(what: &str, mut run: impl FnMut(&Pool) -> Vec<f32>) -> Vec<f32> {
    // The instruction set is chosen per process, so tests that choose it take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let mut first: Option<Vec<f32>> = None;
    for isa in [Isa::Avx512, Isa::Avx2, Isa::Portable] {
        // A narrower machine tests what it has.
        if Isa::limit(isa) != isa {
            continue;
        }
        for n_threads in [1, 2, 3, 8] {
            let got = run(&Pool::new(n_threads));
            match &first {
                None => first = Some(got),
                Some(first) => assert_same_bits(&got, first, &format!("{what}, {isa:?}, {n_threads} threads")),
            }
        }
    }
    Isa::limit(Isa::Avx512);
    first.unwrap()
}
