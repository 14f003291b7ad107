//! Data sets by name: those of the library and of a folder. `tests/download` is about servers.

mod catalogue;
mod folder;
