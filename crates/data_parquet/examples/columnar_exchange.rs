//! Reads columnar files that others wrote, prints them, and writes them again: one side of
//! `oracles/live/parquet.py`.
//!
//! ```text
//! columnar_exchange print FILE...         prints Parquet files, or Arrow files (.arrow, .arrows, .feather)
//! columnar_exchange print -               prints the Arrow stream on standard input
//! columnar_exchange copy FILE FOLDER      writes the rows to FOLDER, in every format and compression
//! ```
//!
//! A line is `name = type values`, the rows of a ragged feature separated by `|`. Floats are
//! printed as their bits and strings as hexadecimal bytes.

use std::env;
use std::path::{Path, PathBuf};

use estimand_data::Dataset;
use estimand_data_parquet::{Reader, arrow, parquet};
use estimand_tensor::{Array, DType, Error, Feature, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["print", "-"] => print(&arrow::from_stream(|| Ok(std::io::stdin())).dataset()),
        ["print", paths @ ..] => print(&reader(paths).dataset()),
        ["copy", path, folder] => copy(&reader(&[path]).dataset(), Path::new(folder)),
        _ => Err(Error::config("usage: columnar_exchange print FILE... | print - | copy FILE FOLDER")),
    }
}

fn reader(paths: &[&str]) -> Reader {
    let files: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    if paths.iter().all(|path| path.ends_with(".parquet")) { parquet::read(files) } else { arrow::read(files) }
}

fn copy(data: &Dataset, folder: &Path) -> Result<()> {
    use parquet::Compression as Pages;
    for pages in [Pages::None, Pages::Snappy, Pages::Gzip, Pages::Brotli, Pages::Lz4, Pages::Zstd] {
        let writer = parquet::Writer::new(folder.join(format!("{pages:?}.parquet"))).compression(pages);
        writer.row_group_size(300).binary(["bytes"]).write(data)?;
    }
    use arrow::Compression as Buffers;
    for buffers in [Buffers::None, Buffers::Lz4, Buffers::Zstd] {
        let writer = arrow::Writer::new(folder.join(format!("{buffers:?}.arrow"))).compression(buffers);
        writer.binary(["bytes"]).write(data)?;
    }
    Ok(())
}

fn print(data: &Dataset) -> Result<()> {
    for batch in &data.batch(1 << 24) {
        for (name, feature) in batch?.features() {
            println!("{name} = {}", text(feature)?);
        }
    }
    Ok(())
}

fn text(feature: &Feature) -> Result<String> {
    match feature {
        Feature::Dense(array) => Ok(format!("{}{:?} {}", array.dtype(), &array.dims()[1..], values(array)?)),
        Feature::Ragged(ragged) => {
            let rows = (0..ragged.n_rows()).map(|row| values(&ragged.row(row)?)).collect::<Result<Vec<_>>>()?;
            Ok(format!("{}... {}", ragged.values().dtype(), rows.join("|")))
        }
    }
}

fn values(array: &Array) -> Result<String> {
    fn join<T>(values: impl Iterator<Item = T>, text: impl Fn(T) -> String) -> String {
        values.map(text).collect::<Vec<_>>().join(" ")
    }
    Ok(match array.dtype() {
        DType::F32 => join(array.as_slice::<f32>()?.iter(), |v| format!("{:08x}", v.to_bits())),
        DType::F64 => join(array.as_slice::<f64>()?.iter(), |v| format!("{:016x}", v.to_bits())),
        DType::I32 => join(array.as_slice::<i32>()?.iter(), |v| v.to_string()),
        DType::I64 => join(array.as_slice::<i64>()?.iter(), |v| v.to_string()),
        DType::U8 => join(array.as_slice::<u8>()?.iter(), |v| v.to_string()),
        DType::Bool => join(array.as_slice::<bool>()?.iter(), |v| v.to_string()),
        DType::Str => join(array.strings()?, |v| "x".chars().chain(v.escape_ascii().map(char::from)).collect()),
    })
}
