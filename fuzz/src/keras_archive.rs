//! Whole `.keras` files: any input gives a model or an error.
//!
//! Checksums guard the members of an archive. So the first byte chooses: the other bytes are a
//! whole archive, or the members of one whose checksums are right.

use std::fs;

use estimand::data::zip;
use estimand::keras::load_model;
use estimand::nn::config::CustomObjects;

/// The bytes are an archive. With another first byte they are a configuration and a vocabulary,
/// each after its length in two bytes, and then the weights.
const FILE: u8 = 0;

/// Opens the bytes as a file.
pub fn check(input: &[u8]) {
    let Some((&mode, rest)) = input.split_first() else { return };
    let archive = if mode % 2 == FILE { rest.to_vec() } else { archive_of(rest) };
    let thread = std::thread::current().id();
    let path = std::env::temp_dir().join(format!("estimand-fuzz-{}-{thread:?}.keras", std::process::id()));
    fs::write(&path, archive).expect("a file in the temporary folder");
    let _ = load_model(&path, &CustomObjects::new());
    let _ = fs::remove_file(&path);
}

/// An archive with the members that the bytes say.
fn archive_of(parts: &[u8]) -> Vec<u8> {
    let (config, rest) = part(parts);
    let (vocabulary, weights) = part(rest);
    let members = [
        ("metadata.json", &br#"{"keras_version": "3.6.0"}"#[..]),
        ("config.json", config),
        ("model.weights.h5", weights),
        ("assets/layers/string_lookup/vocabulary.txt", vocabulary),
        ("assets/layers/integer_lookup/vocabulary.txt", vocabulary),
        ("assets/layers/text_vectorization/vocabulary.txt", vocabulary),
    ];
    zip::write(&members).expect("members of a few bytes")
}

/// The bytes after a length, and the rest.
fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return (&[], &[]) };
    rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()))
}
