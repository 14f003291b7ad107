//! Files of arrays: what numpy wrote is read, what we write numpy would have written, and damage is
//! named.

mod bad_input;
mod idx;
mod numpy;
mod zip64;
