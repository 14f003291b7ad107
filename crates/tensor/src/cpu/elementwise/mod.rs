//! The tile interpreter: runs a chain of element-wise operations in one pass over memory.
//!
//! The executor's fusing pass writes a list of [`Instruction`]s over registers.
//! [`TileProgram::new`] (`program`) checks it, assigns a place to every value and resolves every
//! operation to a compiled loop (`kernel`, with the arithmetic in `float`, `integer` and
//! `convert`). [`TileProgram::run`] (`run`) processes the iteration space in tiles of [`TILE`]
//! elements that stay in the first-level cache; `broadcast` expands inputs that are smaller than
//! the space, `stream` writes large results past the caches.
//!
//! An element's result depends on that element alone. It does not depend on its neighbours, the
//! number of threads or the instruction set.
//!
//! ```
//! use estimand_tensor::cpu::elementwise::{InputView, Instruction, TileProgram};
//! use estimand_tensor::{Binary, DType, Unary, parallel::Pool};
//! // relu(x + bias), x of 2 rows and 3 columns
//! let program = TileProgram::new(&[DType::F32, DType::F32], &[DType::F32], vec![
//!     Instruction::Load { dst: 0, input: 0 },
//!     Instruction::Load { dst: 1, input: 1 },
//!     Instruction::Binary { op: Binary::Add, dtype: DType::F32, dst: 0, x: 0, y: 1 },
//!     Instruction::Unary { op: Unary::Relu, dtype: DType::F32, dst: 0, x: 0 },
//!     Instruction::Store { src: 0, output: 0 },
//! ])?;
//! let (x, bias, mut y) = ([1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0], [0.5f32, 1.0, 1.5], [0.0f32; 6]);
//! let inputs = [InputView::new(x.as_ptr().cast(), &[3, 1]), InputView::new(bias.as_ptr().cast(), &[0, 1])];
//! // SAFETY: the views describe the arrays above, and `y` has the space's 6 elements.
//! unsafe { program.run(&Pool::new(1), &[2, 3], &inputs, &[y.as_mut_ptr().cast()]) };
//! assert_eq!(y, [1.5, 0.0, 4.5, 0.0, 6.0, 0.0]);
//! # Ok::<(), String>(())
//! ```

mod broadcast;
mod convert;
mod float;
mod integer;
mod kernel;
mod program;
mod run;
mod stream;
mod sums;

use crate::{Binary, DType, MAX_RANK, Unary};

pub(in crate::cpu) use float::Float;
pub use program::{TileProgram, is_integer_division};
pub use sums::{MAX_SUM_WIDTH, MAX_SUMS, OutputSum, sums_scratch_len};

/// The number of elements that a kernel processes per call.
pub const TILE: usize = 1024;

/// One step of a [`TileProgram`]. A register holds one tile and has a number below
/// [`TileProgram::MAX_REGISTERS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Reads an input, broadcast to the iteration space.
    Load {
        /// The register written.
        dst: u8,
        /// The number of the input.
        input: u8,
    },
    /// Fills a register with one number.
    Constant {
        /// The register written.
        dst: u8,
        /// The type of the number.
        dtype: DType,
        /// The bytes of the number, in the low end.
        bits: u64,
    },
    /// Applies an operation to one register.
    Unary {
        /// The operation.
        op: Unary,
        /// The type of `x`.
        dtype: DType,
        /// The register written; may be `x`.
        dst: u8,
        /// The register read.
        x: u8,
    },
    /// Applies an operation to two registers.
    Binary {
        /// The operation.
        op: Binary,
        /// The type of `x` and `y`.
        dtype: DType,
        /// The register written; may be `x` or `y`.
        dst: u8,
        /// The first register read.
        x: u8,
        /// The second register read.
        y: u8,
    },
    /// Takes `x` where the condition holds, otherwise `y`.
    Select {
        /// The type of `x` and `y`.
        dtype: DType,
        /// The register written.
        dst: u8,
        /// The register of booleans.
        condition: u8,
        /// The register read where the condition is true.
        x: u8,
        /// The register read where the condition is false.
        y: u8,
    },
    /// TensorFlow's `Cast`: floats are truncated to integers (saturating; NaN gives 0), booleans
    /// are "not 0".
    Cast {
        /// The type of `x`.
        from: DType,
        /// The type of the result.
        to: DType,
        /// The register written.
        dst: u8,
        /// The register read.
        x: u8,
    },
    /// Writes an output. Each output is stored exactly once.
    Store {
        /// The register read.
        src: u8,
        /// The number of the output.
        output: u8,
    },
}

/// The address of an input, and how it is broadcast.
#[derive(Clone, Copy, Debug)]
pub struct InputView {
    /// A pointer to the element at index 0 of the iteration space.
    pub ptr: *const u8,
    /// The number of elements from one index to the next along each axis of the space; 0 if the
    /// input is broadcast.
    pub strides: [usize; MAX_RANK],
}

impl InputView {
    /// Creates a view with these strides, one per axis of the iteration space.
    ///
    /// # Panics
    /// If there are more than [`MAX_RANK`] strides.
    pub fn new(ptr: *const u8, strides: &[usize]) -> InputView {
        let mut all = [0; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        InputView { ptr, strides: all }
    }
}
