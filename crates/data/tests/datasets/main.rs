//! Data sets by name: those of the library, of a folder, and of a server.

mod catalogue;
mod folder;
mod server;
