//! The vector instruction sets that this machine supports.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set, ordered by width. Kernels give the same bits on all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Isa {
    /// Plain Rust, any processor.
    Portable,
    /// AVX2 with FMA: vectors of 256 bits.
    Avx2,
    /// AVX-512 with its F, VL, BW and DQ parts: vectors of 512 bits.
    Avx512,
}

/// The set in use as `isa as u8 + 1`; zero until the first call.
static ACTIVE: AtomicU8 = AtomicU8::new(0);

impl Isa {
    /// The widest set that this processor supports.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            return if wide { Isa::Avx512 } else { Isa::Avx2 };
        }
        Isa::Portable
    }

    /// The set that the kernels of this process use: the widest supported one, unless limited.
    pub fn active() -> Isa {
        match ACTIVE.load(Ordering::Relaxed) {
            0 => Isa::limit(Isa::Avx512),
            1 => Isa::Portable,
            2 => Isa::Avx2,
            _ => Isa::Avx512,
        }
    }

    /// Limits the kernels of this process to `isa` and returns the set that they will use.
    pub fn limit(isa: Isa) -> Isa {
        let isa = isa.min(Isa::detect());
        ACTIVE.store(isa as u8 + 1, Ordering::Relaxed);
        isa
    }
}
