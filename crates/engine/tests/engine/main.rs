//! Programs that run: what the host computes, what steps cost, what sessions keep.

mod check;
mod cost;
mod host;
mod purpose;
mod symbolic;
mod text;
mod unique;
