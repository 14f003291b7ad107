//! Texts that are read whole: schemas and vocabularies.

use estimand_data::{Limits, Schema};
use estimand_tensor::vocabulary::VocabularyFile;

use crate::memory::Turn;
use crate::{Folder, says};

#[test]
fn a_schema_file_is_measured_before_it_is_read() {
    let turn = Turn::take();
    let folder = Folder::new("schema");
    let text = format!("[columns.a]\ntype = \"f32\"\n#{}\n", "x".repeat(8 << 20));
    let path = folder.file("schema.toml", &text);
    let limits = Limits { text_bytes: 1 << 20, ..Limits::default() };
    let error = turn.within(1 << 20, || Schema::read_within(&path, &limits).unwrap_err());
    says(&error, &["schema.toml", "83886", "the limit is 1048576 (`text_bytes`)"]);
    assert_eq!(Schema::read(&path).unwrap().columns().len(), 1);
}

/// Deeper than any schema: the parser gives up, the stack does not.
#[test]
fn nesting_of_a_schema() {
    let turn = Turn::take();
    for text in [
        format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("x = {}", "{a=".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
    ] {
        // With debug assertions the parser keeps more of what it has read.
        let most = if cfg!(debug_assertions) { 512 << 20 } else { 64 << 20 };
        let error = turn.within(most, || Schema::from_toml(&text).unwrap_err());
        says(&error, &["line 1"]);
    }
}

/// Defaults are made as large as their shapes: 200 columns of 2^24 values are 27 GB.
#[test]
fn shapes_of_a_schema_are_counted_together() {
    let turn = Turn::take();
    let column = |i| format!("[columns.c{i}]\ntype = \"f64\"\nshape = [16777216]\ndefault = 0.0\n");
    let text: String = (0..200).map(column).collect();
    let error = turn.within(8 << 20, || Schema::from_toml(&text).unwrap_err());
    says(&error, &["column `c1`", "values", "16777216"]);
    assert!(Schema::from_toml(&column(0)).is_ok());
}

#[test]
fn lines_of_a_vocabulary() {
    let turn = Turn::take();
    let folder = Folder::new("vocabulary");
    let path = folder.file("words.txt", [b"a\n".as_slice(), &[b'x'; 8 << 20], b"\nb\n"].concat());
    let limits = Limits { field_bytes: 1 << 20, ..Limits::default() };
    let error = turn.within(24 << 20, || VocabularyFile::new(&path).limits(limits).read().unwrap_err());
    says(&error, &["line 2", "words.txt", "the limit is 1048576 (`field_bytes`)"]);
    assert_eq!(VocabularyFile::new(&path).read().unwrap().len(), 3);
}
