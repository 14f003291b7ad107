//! The operands of one step as slices, for the kernel calls.

use estimand_graph::Node;
use estimand_graph::draw::Position;
use estimand_graph::sizes::Sizes;
use estimand_tensor::parallel::Pool;
use estimand_tensor::{DType, Element};

/// An input of a step.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub dtype: DType,
    pub dims: &'a [usize],
    pub bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// The elements. The dtype was checked when the graph was built.
    pub(super) fn as_slice<T: Element>(&self) -> &'a [T] {
        check_elements::<T>(self.dtype, self.bytes);
        // SAFETY: the dtype is that of T, so the bytes are valid values of it: fed arrays and
        // kernel results hold elements of the dtype, a boolean being 0 or 1. Alignment and length
        // were just checked. The borrow of the bytes lasts as long.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.bytes.len() / size_of::<T>()) }
    }

    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }
}

/// Panics unless the bytes are whole, aligned elements of T. It runs once per operand of a kernel,
/// so it is not a debug assertion: a step that asks for another type than that of its value would
/// read invalid values.
#[inline]
#[track_caller]
fn check_elements<T: Element>(dtype: DType, bytes: &[u8]) {
    assert_eq!(dtype, T::DTYPE, "a kernel asks for other elements than the value has");
    let whole = bytes.len().is_multiple_of(size_of::<T>()) && bytes.as_ptr().cast::<T>().is_aligned();
    assert!(whole, "{} bytes at {:p} are no elements of {dtype}", bytes.len(), bytes.as_ptr());
}

/// An output of a step.
pub(super) struct ViewMut<'a> {
    pub dtype: DType,
    pub dims: &'a [usize],
    pub bytes: &'a mut [u8],
}

impl ViewMut<'_> {
    pub(super) fn as_mut_slice<T: Element>(&mut self) -> &mut [T] {
        check_elements::<T>(self.dtype, self.bytes);
        // SAFETY: as for `View::as_slice`, and the borrow is exclusive. An output that was never
        // written holds zeros or elements of another value. Booleans are the only type with invalid
        // bits, and kernels write booleans without reading them.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast(), self.bytes.len() / size_of::<T>()) }
    }
}

/// The arguments of a kernel.
pub(super) struct KernelCall<'call, 'a> {
    pub pool: &'a Pool,
    pub node: &'a Node,
    pub x: &'call [View<'a>],
    pub y: &'call mut [ViewMut<'a>],
    pub scratch: &'a mut [u8],
    pub position: Position,
    pub symbols: &'a Sizes,
}

/// Evaluates an expression with `$t` as the Rust type of one of the listed dtypes.
macro_rules! with_type {
    ($dtype:expr, [$($variant:ident = $rust:ty),*], $t:ident => $body:expr) => {
        match $dtype {
            $(estimand_tensor::DType::$variant => {
                type $t = $rust;
                $body
            })*
            other => {
                let message = format!("the operation is not defined on {other}");
                return Err(estimand_tensor::Error::dtype(None, other, message));
            }
        }
    };
}
pub(super) use with_type;

/// `with_type` for numbers.
macro_rules! with_number {
    ($dtype:expr, $t:ident => $body:expr) => {
        $crate::operands::with_type!($dtype, [F32 = f32, F64 = f64, I32 = i32, I64 = i64, U8 = u8], $t => $body)
    };
}
pub(super) use with_number;

/// `with_type` for indices.
macro_rules! with_id {
    ($dtype:expr, $t:ident => $body:expr) => {
        $crate::operands::with_type!($dtype, [I32 = i32, I64 = i64], $t => $body)
    };
}
pub(super) use with_id;

/// Views scratch memory as floats.
pub(super) fn floats(scratch: &mut [u8]) -> &mut [f32] {
    assert!(scratch.as_ptr().cast::<f32>().is_aligned(), "scratch buffers are aligned");
    // SAFETY: the bytes are aligned and as many as the floats; any bits are a float.
    unsafe { std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast::<f32>(), scratch.len() / 4) }
}
