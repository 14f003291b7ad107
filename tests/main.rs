//! The integration tests, one file per topic, in one binary.

#[path = "../benches/models.rs"]
#[allow(dead_code, reason = "no user of it needs all of them")]
mod models;

mod architecture;
mod bad_input;
mod config_text;
mod golden;
mod laws;
mod low_level;
mod mistakes;
mod ops;
mod own_gradients;
mod parity;
mod passes;
mod preprocessing;
