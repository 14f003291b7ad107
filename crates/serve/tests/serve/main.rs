//! A real server, asked through real sockets.

mod batching;
mod client;
mod drift;
mod functions;
mod grpc;
mod inference;
#[path = "../../src/grpc/inference_messages.rs"]
mod inference_messages;
mod kserve;
mod limits;
#[path = "../../src/grpc/messages.rs"]
mod messages;
mod models;
mod page;
mod rest;
mod safety;
mod tolerant;
mod versions;
