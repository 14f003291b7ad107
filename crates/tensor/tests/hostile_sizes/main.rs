//! Safe functions with sizes that cannot be true: they refuse or do nothing, and never touch memory
//! that is not theirs.
//!
//! One test for each family of kernels. A test runs its attacks in a child process, so that a
//! signal is the failure of one test, which names the attack, and not the end of all.

#![forbid(unsafe_code)]
// Kernels return nothing, and one list holds all of a shape.
#![allow(clippy::unit_arg, clippy::type_complexity)]

mod attack;
mod images;
mod layouts;
mod products;
mod rows;
