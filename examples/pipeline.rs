//! A data pipeline from end to end. It writes census rows as CSV with a few damaged ones, reads
//! them with inferred types, sets bad rows aside, shuffles and batches. It stops in the middle and
//! continues as if nothing had happened.
//!
//! `cargo run --release --example pipeline`

use estimand::data::{Csv, InputContext, OnError, Position, datasets};
use estimand::prelude::*;

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-pipeline-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "make", &e))?;

    // A typical file: real rows, with a damaged end.
    let path = folder.join("adult.csv");
    datasets::load("adult", "train")?.dataset().write_csv(&path)?;
    let mut text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read", &e))?;
    text.push_str("forty,Private\n39,\"never closed,1\n1,2,3\n");
    std::fs::write(&path, text).map_err(|e| Error::io(&path, "write", &e))?;

    let spoilt = folder.join("spoilt.csv");
    let csv = Csv::new(&path)
        .na_values(["?"])
        .label("income")
        .on_error(OnError::Quarantine { file: spoilt.clone(), budget: 10 });
    println!("What the first rows say of the columns:");
    for column in csv.inferred()?.iter().take(4) {
        println!("  {column}");
    }

    let data = csv.dataset().shuffle(10_000, 7).batch(256).prefetch(2);
    data.spec()?;
    println!("\nThe plan:\n{}", data.explain());

    // Half of an epoch; the position is kept as bytes, as in a checkpoint.
    let run = InputContext { seed: 42, ..InputContext::default() };
    let mut batches = data.iter_from(&run, &Position::default());
    let mut n_first = 0;
    for batch in batches.by_ref().take(60) {
        n_first += batch?.n_rows();
    }
    let place = batches.position().to_bytes();
    let rest: Vec<_> = batches.collect::<Result<_>>()?;

    // Another process, another day, another number of threads: exactly the remaining rows.
    let later = InputContext { n_threads: 1, ..run };
    let continued: Vec<_> = data.iter_from(&later, &Position::from_bytes(&place)?).collect::<Result<_>>()?;
    let n_rest: usize = rest.iter().map(|batch| batch.n_rows()).sum();
    println!("stopped after {n_first} rows; the place takes {} bytes", place.len());
    println!("rows = {}", n_first + n_rest);
    println!("same_rest = {}", u8::from(continued == rest));
    let set_aside = std::fs::read_to_string(&spoilt).map_err(|e| Error::io(&spoilt, "read", &e))?;
    println!("set_aside = {}\n", set_aside.lines().filter(|line| line.starts_with("\"/")).count());
    println!("{set_aside}");

    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
