//! Reading a file. From the bottom up: [`source`] holds the bytes, [`cursor`] takes numbers from a
//! block, [`header`] reads the messages of an object, [`message`] their meanings, [`tree`] finds
//! all objects when a file is opened, [`node`] shows them, [`storage`] and [`elements`] read
//! values.

mod btree;
mod btree2;
mod budget;
mod chunks;
mod cursor;
mod elements;
mod file;
mod filter;
mod fractal;
mod header;
mod heap;
mod message;
mod node;
mod source;
mod storage;
mod superblock;
mod symbols;
#[cfg(test)]
mod tests;
mod tree;

pub use file::File;
pub use node::{Children, Dataset, Group, Node};
