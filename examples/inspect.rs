//! Shows what is in an export or a checkpoint, of this library or of TensorFlow:
//!
//!     cargo run --release --example inspect -- FOLDER
//!
//! Without a folder it trains a small model, and shows its checkpoint and its export.

use std::path::{Path, PathBuf};

use estimand::export::{ExportSpec, verify};
use estimand::inspect;
use estimand::prelude::*;

fn main() -> Result<()> {
    match std::env::args_os().nth(1) {
        Some(folder) => show(&PathBuf::from(folder)),
        None => {
            let folder = std::env::temp_dir().join(format!("estimand-inspect-{}", std::process::id()));
            let model = small_model(&folder)?;
            let export = model.export_saved_model(folder.join("export"), ExportSpec::default())?;
            show(&folder)?;
            show(&export)?;
            let verified = verify(&export)?;
            println!("rows = {}", verified.n_rows);
            println!("signatures = {}", verified.n_signatures);
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))
        }
    }
}

/// A folder with `saved_model.pb` is an export; everything else is a checkpoint.
fn show(path: &Path) -> Result<()> {
    match path.join("saved_model.pb").is_file() {
        true => println!("{}", inspect::saved_model(path)?),
        false => println!("{}", inspect::checkpoint(path)?),
    }
    Ok(())
}

fn small_model(folder: &Path) -> Result<Estimator> {
    let rows = Dataset::from_arrays([
        ("size", Array::from([50f32, 80.0, 120.0])),
        ("city", Array::from_strings([3], ["Rome", "Oslo", "Rome"])?),
        ("price", Array::from([200f32, 450.0, 430.0])),
    ]);
    let city = categorical_column_with_vocabulary_list("city", ["Rome", "Oslo"]);
    let columns = columns![numeric_column("size"), indicator_column(city)];
    let model = DnnRegressor::new([8], columns).model_dir(folder).build()?;
    model.train(rows.label("price").batch(3).repeat(100))?;
    Ok(model)
}
