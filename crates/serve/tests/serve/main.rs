//! A real server, asked through real sockets.

mod client;
mod models;
mod rest;
mod versions;
