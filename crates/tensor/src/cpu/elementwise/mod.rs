//! The tile interpreter: a whole chain of element-wise operations in one pass over memory.
//!
//! The executor's fusing pass writes a list of [`Instruction`]s over registers.
//! [`TileProgram::new`] (`program`) checks it, gives every value a place and resolves every
//! operation to a compiled loop (`kernel`, with the arithmetic in `float`, `integer` and
//! `convert`). [`TileProgram::run`] (`run`) walks the iteration space in tiles of [`TILE`] elements
//! that stay in the first-level cache; `broadcast` spreads inputs that are smaller than the space,
//! `stream` writes large results past the caches.
//!
//! An element's result depends on that element alone: not on its neighbours, the number of threads
//! or the instruction set.
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

use crate::{Binary, DType, MAX_RANK, Unary};

pub(in crate::cpu) use float::Float;
pub use program::{TileProgram, is_integer_division};

/// Elements a kernel handles per call.
pub const TILE: usize = 1024;

/// One step of a [`TileProgram`]. Registers hold one tile; they are named by number, below
/// [`TileProgram::MAX_REGISTERS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Reads an input, broadcast to the iteration space.
    Load {
        /// Register written.
        dst: u8,
        /// Number of the input.
        input: u8,
    },
    /// One number in every element.
    Constant {
        /// Register written.
        dst: u8,
        /// Type of the number.
        dtype: DType,
        /// Its bytes, in the low end.
        bits: u64,
    },
    /// An operation on one register.
    Unary {
        /// What to compute.
        op: Unary,
        /// Type of `x`.
        dtype: DType,
        /// Register written; may be `x`.
        dst: u8,
        /// Register read.
        x: u8,
    },
    /// An operation on two registers.
    Binary {
        /// What to compute.
        op: Binary,
        /// Type of `x` and `y`.
        dtype: DType,
        /// Register written; may be `x` or `y`.
        dst: u8,
        /// First register read.
        x: u8,
        /// Second register read.
        y: u8,
    },
    /// `x` where the condition holds, else `y`.
    Select {
        /// Type of `x` and `y`.
        dtype: DType,
        /// Register written.
        dst: u8,
        /// Register of booleans.
        condition: u8,
        /// Read where true.
        x: u8,
        /// Read where false.
        y: u8,
    },
    /// TensorFlow's `Cast`: floats are truncated to integers (saturating; NaN gives 0), booleans
    /// are "not 0".
    Cast {
        /// Type of `x`.
        from: DType,
        /// Type of the result.
        to: DType,
        /// Register written.
        dst: u8,
        /// Register read.
        x: u8,
    },
    /// Writes an output. Each output is stored exactly once.
    Store {
        /// Register read.
        src: u8,
        /// Number of the output.
        output: u8,
    },
}

/// Where an input lies and how it is broadcast.
#[derive(Clone, Copy, Debug)]
pub struct InputView {
    /// The element at index 0 of the iteration space.
    pub ptr: *const u8,
    /// Elements from one index to the next along each axis of the space; 0 where the input is
    /// broadcast.
    pub strides: [usize; MAX_RANK],
}

impl InputView {
    /// A view with these strides, one per axis of the iteration space.
    ///
    /// # Panics
    /// When there are more than [`MAX_RANK`] strides.
    pub fn new(ptr: *const u8, strides: &[usize]) -> InputView {
        let mut all = [0; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        InputView { ptr, strides: all }
    }
}
