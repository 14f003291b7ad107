//! A real server, asked through real sockets.

mod batching;
mod client;
mod grpc;
mod kserve;
mod limits;
#[path = "../../src/grpc/messages.rs"]
mod messages;
mod models;
mod rest;
mod versions;
