//! Reads CSV files and prints what was found, for the live check against TensorFlow:
//! `csv_exchange FOLDER`.
//!
//! The folder holds `case_N.csv` and `case_N.options` (lines `key=value`: delimiter, quoting, na,
//! header names). For each a file `case_N.found` is written: a line `column dtype` and one line of
//! hexadecimal text for each value, or `error`.
#![allow(clippy::print_stdout)] // an example prints

use std::fmt::Write;
use std::path::Path;

use estimand_data::Csv;
use estimand_tensor::{DType, Error, Feature, Result};

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("usage: csv_exchange FOLDER"))?;
    let mut n = 0;
    while let Ok(options) = std::fs::read_to_string(Path::new(&folder).join(format!("case_{n}.options"))) {
        let found =
            read(&Path::new(&folder).join(format!("case_{n}.csv")), &options).unwrap_or_else(|_| "error\n".into());
        let path = Path::new(&folder).join(format!("case_{n}.found"));
        std::fs::write(&path, found).map_err(|e| Error::io(&path, "write", &e))?;
        n += 1;
    }
    println!("read {n} files");
    Ok(())
}

fn read(path: &Path, options: &str) -> Result<String> {
    let mut csv = Csv::new(path).utf8(false);
    for (key, value) in options.lines().filter_map(|line| line.split_once('=')) {
        csv = match key {
            "delimiter" => csv.delimiter(value.as_bytes()[0]),
            "quoting" => csv.quoting(value == "1"),
            "na" => csv.na_values([value]),
            "select" => csv.select(value.split(',')),
            "names" => csv.column_names(value.split(',')).header(false),
            _ => return Err(Error::config(format!("unknown option {key}"))),
        };
    }
    let data = csv.dataset().batch(1_000);
    let mut text = String::new();
    for batch in &data {
        for (name, feature) in batch?.features() {
            let Feature::Dense(array) = feature else { return Err(Error::shape("a ragged column")) };
            let _ = writeln!(text, "{name} {}", array.dtype());
            match array.dtype() {
                DType::Str => array.strings()?.for_each(|value| {
                    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                    let _ = writeln!(text, "x{hex}");
                }),
                _ => array.to_f64_vec()?.iter().for_each(|value| {
                    let _ = writeln!(text, "{value:?}");
                }),
            }
        }
    }
    Ok(text)
}
