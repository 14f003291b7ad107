//! The processor's treatment of subnormal numbers: kept, or flushed to zero.
//!
//! Numbers below 1.2e-38 have fewer bits than others, and a processor takes ten to a hundred times
//! as long with them. Training that converges produces many of them: gradients and moments shrink
//! without end. TensorFlow's kernels read and write them as zero, and so do ours: an executor calls
//! [`flush_subnormals`] around a run, and [`Pool::run`](crate::parallel::Pool::run) passes the mode
//! of its caller to the workers for the tasks of that call. Everything else, such as parsing
//! `1e-40` in a CSV file, is computed as usual, on any thread.
//!
//! ```
//! use std::hint::black_box;
//!
//! use estimand_tensor::cpu::float_mode::flush_subnormals;
//!
//! let third = || black_box(3e-39_f32) / 3.0;
//! assert!(third() > 0.0);
//! # #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
//! assert_eq!(flush_subnormals(third), 0.0);
//! assert!(third() > 0.0);
//! ```

/// The floating-point mode of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FloatMode(u64);

impl FloatMode {
    /// The mode of this thread.
    pub(crate) fn current() -> FloatMode {
        FloatMode(machine::read() & machine::MODE)
    }

    /// This mode, with subnormal numbers read and written as zero.
    fn flushing(self) -> FloatMode {
        FloatMode(self.0 | machine::FLUSH)
    }

    /// The bits of the mode, to store in an atomic.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// The mode with these bits.
    pub(crate) fn from_bits(bits: u64) -> FloatMode {
        FloatMode(bits & machine::MODE)
    }

    /// Calls a function in this mode. The previous mode is restored when it returns or panics.
    pub(crate) fn during<T>(self, body: impl FnOnce() -> T) -> T {
        let before = FloatMode::current();
        if before == self {
            return body();
        }
        let _restored = Restored(before);
        self.set();
        body()
    }

    fn set(self) {
        machine::write(machine::read() & !machine::MODE | self.0);
    }
}

struct Restored(FloatMode);

impl Drop for Restored {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Calls a function with subnormal numbers read and written as zero, on this thread and on the
/// workers of pools that run the function's tasks.
///
/// On processors other than x86-64 and 64-bit ARM, the function is called without a change of mode.
pub fn flush_subnormals<T>(body: impl FnOnce() -> T) -> T {
    FloatMode::current().flushing().during(body)
}

/// MXCSR, the register of SSE and AVX.
#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;

    /// Flush to zero (results), and denormals are zero (operands).
    pub(super) const FLUSH: u64 = 1 << 15 | 1 << 6;
    /// The flush bits and the rounding mode. The other bits are flags that operations raise, and
    /// masks of the flags that trap.
    pub(super) const MODE: u64 = FLUSH | 0b11 << 13;

    pub(super) fn read() -> u64 {
        let mut value = 0_u32;
        // SAFETY: writes the register to four bytes that this function owns.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
        u64::from(value)
    }

    pub(super) fn write(value: u64) {
        let value = value as u32;
        // SAFETY: the value was read from the register, and differs in the bits of `MODE` alone,
        // all of which every x86-64 processor has. See docs/decisions/subnormals.md for what the
        // compiler may assume.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
    }
}

/// FPCR, the register of floating point and Advanced SIMD.
#[cfg(target_arch = "aarch64")]
mod machine {
    use std::arch::asm;

    /// Flush to zero: operands and results.
    pub(super) const FLUSH: u64 = 1 << 24;
    /// The flush bit and the rounding mode.
    pub(super) const MODE: u64 = FLUSH | 0b11 << 22;

    pub(super) fn read() -> u64 {
        let value: u64;
        // SAFETY: reads a register that every 64-bit ARM processor has.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub(super) fn write(value: u64) {
        // SAFETY: the value was read from the register, and differs in the bits of `MODE` alone.
        // See docs/decisions/subnormals.md for what the compiler may assume.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nostack, preserves_flags)) };
    }
}

/// Other processors have only one mode.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    pub(super) const FLUSH: u64 = 0;
    pub(super) const MODE: u64 = 0;

    pub(super) fn read() -> u64 {
        0
    }

    pub(super) fn write(_value: u64) {}
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;
    use std::panic::catch_unwind;

    use super::*;

    /// Whether subnormal numbers are kept: 3e-39 is subnormal, and in the flushing mode it is zero
    /// as an operand of a sum.
    fn keeps_subnormals() -> bool {
        black_box(3e-39_f32) + black_box(0.0) > 0.0
    }

    #[test]
    fn the_mode_before_comes_back() {
        assert!(keeps_subnormals());
        flush_subnormals(|| {
            assert!(!keeps_subnormals());
            // This checks results, not operands: 2e-38 is a normal number and its quarter is not.
            assert_eq!(black_box(2e-38_f32) * black_box(0.25), 0.0);
            flush_subnormals(|| assert!(!keeps_subnormals()));
            assert!(!keeps_subnormals());
        });
        assert!(keeps_subnormals());
        catch_unwind(|| flush_subnormals(|| panic!("in the mode"))).unwrap_err();
        assert!(keeps_subnormals());
    }
}
