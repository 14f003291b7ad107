//! CSV files of very many columns: work and memory grow with their number, and there is a limit.

use std::fmt::Write;
use std::time::Instant;

use estimand_data::{Csv, Dataset, Limits, Schema};

use crate::memory::Turn;
use crate::{Folder, says};

/// A header of `n` names and two rows of numbers.
fn wide(n: usize) -> String {
    let mut text = String::new();
    for i in 0..n {
        write!(text, "{}column_{i}", if i > 0 { "," } else { "" }).unwrap();
    }
    for row in 0..2 {
        text.push('\n');
        for i in 0..n {
            write!(text, "{}{}", if i > 0 { "," } else { "" }, (i + row) % 10).unwrap();
        }
    }
    text.push('\n');
    text
}

/// Everything that a program does with the columns of a file. Returns how often memory was asked
/// for.
fn read(turn: &Turn, n: usize) -> usize {
    let folder = Folder::new(&format!("wide-{n}"));
    let path = folder.file("x.csv", wide(n));
    let (_, cost) = turn.watch(|| {
        let columns: Vec<String> = (0..n).rev().map(|i| format!("column_{i}")).collect();
        let csv = Csv::new(&path).select(&columns).label("column_0");
        assert_eq!(csv.inferred().unwrap().len(), n);
        let data = csv.dataset();
        assert_eq!(data.spec().unwrap().len(), n - 1);
        let batch = data.batch(2).iter().next().unwrap().unwrap();
        assert_eq!((batch.n_rows(), batch.features().len(), batch.labels().len()), (2, n - 1, 1));
        // Declared types, as a schema or feature columns have them.
        let typed = Csv::new(&path).features(data.spec().unwrap()).dataset();
        assert_eq!(typed.batch(1).drop_remainder().iter().map(Result::unwrap).count(), 2);
    });
    cost.allocations
}

#[test]
#[ignore = "takes half a minute; .ci/run asks for it"]
fn a_million_columns() {
    let turn = Turn::take();
    let started = Instant::now();
    read(&turn, 1_000_000);
    // A minute where it takes seconds; compared one with another, names took days.
    assert!(started.elapsed().as_secs() < 300, "{:?}", started.elapsed());
}

#[test]
fn work_grows_with_the_columns() {
    let turn = Turn::take();
    let (few, many) = (read(&turn, 10_000), read(&turn, 80_000));
    // Eight times the columns. Work that compares each with each would be 64 times as much.
    assert!(many < 12 * few, "{few} allocations for 10,000 columns, {many} for 80,000");
}

#[test]
fn statistics_and_schemas_of_many_columns() {
    let _turn = Turn::take();
    let folder = Folder::new("wide-schema");
    let path = folder.file("x.csv", wide(20_000));
    let started = Instant::now();
    let data = Dataset::from_csv(&path);
    let schema = Schema::of(&data).unwrap();
    assert_eq!(schema.columns().len(), 20_000);
    let again = Schema::from_toml(schema.to_toml()).unwrap();
    assert!(data.check_schema(&again).unwrap().is_empty());
    // A label that the schema calls a feature is looked for among all others.
    assert!(!data.label("column_5").check_schema(&again).unwrap().is_empty());
    assert!(started.elapsed().as_secs() < 300, "{:?}", started.elapsed());
}

#[test]
fn there_is_a_limit() {
    let turn = Turn::take();
    let folder = Folder::new("too-wide");
    let path = folder.file("x.csv", wide(3_000));
    let limits = Limits { columns: 1_000, ..Limits::default() };
    let error = Csv::new(&path).limits(limits).dataset().spec().unwrap_err();
    says(&error, &["x.csv", "more than 1000 columns", "the limit is 1000 (`columns`)", "Limits {"]);
    // A header of commas alone, more than the default.
    let path = folder.file("commas.csv", vec![b','; 8 << 20]);
    let error = turn.within(128 << 20, || Csv::new(&path).dataset().spec().unwrap_err());
    says(&error, &["commas.csv", "(`columns`)"]);
}

/// The message does not list a million names.
#[test]
fn a_name_that_is_not_there() {
    let _turn = Turn::take();
    let folder = Folder::new("typo");
    let path = folder.file("x.csv", wide(3_000));
    let text = Csv::new(&path).label("zzz").dataset().spec().unwrap_err().to_string();
    assert!(text.contains("there is no column `zzz`") && text.len() < 2_000, "{} bytes", text.len());
}
