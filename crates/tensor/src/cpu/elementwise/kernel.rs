//! Compiled loops: one per operation, dtype and instruction set, all with one signature.
//!
//! A kernel is made from a plain function of one element. Its loop processes whole blocks of 64
//! elements, a multiple of every vector width. A remainder is first copied into a padded block, so
//! that no element is computed by slow scalar code.

use std::marker::PhantomData;

use crate::cpu::isa::Isa;
use crate::cpu::twins::twins;

/// `(len, x, y, z, out)`: `out[i] = f(x[i], y[i], z[i])`. Kernels with fewer operands ignore the
/// others.
///
/// # Safety
/// The operands that are read must hold `len` elements; `out` must have room for them and overlap
/// no operand.
pub(super) type Kernel = unsafe fn(usize, *const u8, *const u8, *const u8, *mut u8);

/// The number of elements in a block: at least one vector of the narrowest type.
const BLOCK: usize = 64;

/// The loop of a function of one operand; see [`unary!`](super::kernel::unary).
pub(super) fn unary_loop<T: Number, U: Number, F: Fn(T) -> U + Copy>(isa: Isa, _function: F) -> Kernel {
    map_kernel::<Of1<T, U, F>>(isa)
}

/// The loop of a function of two operands; see [`binary!`](super::kernel::binary).
pub(super) fn binary_loop<T: Number, U: Number, F: Fn(T, T) -> U + Copy>(isa: Isa, _function: F) -> Kernel {
    map_kernel::<Of2<T, U, F>>(isa)
}

/// The loop of `condition ? y : z`, for any element of the size of `T`.
pub(super) fn select<T: Number>(isa: Isa) -> Kernel {
    map_kernel::<Choice<T>>(isa)
}

/// The loop of a closure with one operand. The macro marks the closure as always inlined: the
/// compiler does not inline long closures by itself, and a loop with a call cannot be vectorised.
macro_rules! unary {
    ($isa:expr, |$x:ident: $t:ty| $body:expr) => {
        $crate::cpu::elementwise::kernel::unary_loop(
            $isa,
            #[inline(always)]
            |$x: $t| $body,
        )
    };
}
pub(super) use unary;

/// The loop of a closure with two operands.
macro_rules! binary {
    ($isa:expr, |$x:ident: $t:ty, $y:ident: $u:ty| $body:expr) => {
        $crate::cpu::elementwise::kernel::binary_loop(
            $isa,
            #[inline(always)]
            |$x: $t, $y: $u| $body,
        )
    };
}
pub(super) use binary;

/// An element type of tiles.
pub(in crate::cpu) trait Number: Copy + Default {}
impl<T: Copy + Default> Number for T {}

/// A function of up to three elements, chosen at compile time. Missing operands have the type `()`.
trait Map {
    type X: Number;
    type Y: Number;
    type Z: Number;
    type Out: Number;
    fn apply(x: Self::X, y: Self::Y, z: Self::Z) -> Self::Out;
}

struct Of1<T, U, F>(PhantomData<(T, U, F)>);

impl<T: Number, U: Number, F: Fn(T) -> U + Copy> Map for Of1<T, U, F> {
    type X = T;
    type Y = ();
    type Z = ();
    type Out = U;
    #[inline(always)]
    fn apply(x: T, (): (), (): ()) -> U {
        conjure::<F>()(x)
    }
}

struct Of2<T, U, F>(PhantomData<(T, U, F)>);

impl<T: Number, U: Number, F: Fn(T, T) -> U + Copy> Map for Of2<T, U, F> {
    type X = T;
    type Y = T;
    type Z = ();
    type Out = U;
    #[inline(always)]
    fn apply(x: T, y: T, (): ()) -> U {
        conjure::<F>()(x, y)
    }
}

struct Choice<T>(PhantomData<T>);

impl<T: Number> Map for Choice<T> {
    type X = u8;
    type Y = T;
    type Z = T;
    type Out = T;
    #[inline(always)]
    fn apply(condition: u8, y: T, z: T) -> T {
        if condition != 0 { y } else { z }
    }
}

/// The value of a function item or of a closure that captures nothing.
#[inline(always)]
fn conjure<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a kernel's function must not capture anything") }
    // SAFETY: there are no bytes to read, and the function that made the loop was given a value of
    // the type.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

twins! {
    fn map_kernel[M: Map](len: usize, x: *const u8, y: *const u8, z: *const u8, out: *mut u8) = map_tile::<M>
}

/// The body of every kernel; see [`Kernel`] for the contract.
#[inline(always)]
unsafe fn map_tile<M: Map>(len: usize, x: *const u8, y: *const u8, z: *const u8, out: *mut u8) {
    let (x, y, z, out) = (x.cast::<M::X>(), y.cast::<M::Y>(), z.cast::<M::Z>(), out.cast::<M::Out>());
    let whole = len / BLOCK * BLOCK;
    // SAFETY: `whole` elements are within the `len` of the contract.
    unsafe { map_blocks::<M>(whole, x, y, z, out) };
    let rest = len - whole;
    if rest > 0 {
        // SAFETY: `rest` elements remain after the whole blocks of each operand and of `out`.
        unsafe {
            let (x, y, z) = (padded(x.add(whole), rest), padded(y.add(whole), rest), padded(z.add(whole), rest));
            let mut block = [M::Out::default(); BLOCK];
            map_blocks::<M>(BLOCK, x.as_ptr(), y.as_ptr(), z.as_ptr(), block.as_mut_ptr());
            std::ptr::copy_nonoverlapping(block.as_ptr(), out.add(whole), rest);
        }
    }
}

/// # Safety
/// Like [`Kernel`], with `len` a multiple of the block.
#[inline(always)]
unsafe fn map_blocks<M: Map>(len: usize, x: *const M::X, y: *const M::Y, z: *const M::Z, out: *mut M::Out) {
    for i in 0..len {
        // SAFETY: i < len, and all four have `len` elements.
        unsafe { out.add(i).write(M::apply(x.add(i).read(), y.add(i).read(), z.add(i).read())) };
    }
}

/// Copies a remainder into a block, zero-padded.
///
/// # Safety
/// `x` must hold `len` elements, at most a block.
#[inline(always)]
unsafe fn padded<T: Number>(x: *const T, len: usize) -> [T; BLOCK] {
    let mut block = [T::default(); BLOCK];
    // SAFETY: both sides have `len` elements by the contract.
    unsafe { std::ptr::copy_nonoverlapping(x, block.as_mut_ptr(), len) };
    block
}
