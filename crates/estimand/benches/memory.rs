//! Memory: a table of ten million rows of 64 numbers is trained and saved.
//! `cargo bench --bench memory`
//!
//! Prints the largest memory of the process over that of the table and its slots.

use estimand::prelude::*;

#[path = "../../../benches/models.rs"]
#[allow(dead_code, reason = "no user of it needs all of them")]
mod models;

/// The most memory that this process ever had, in bytes.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib * 1024.0)
}

fn main() -> Result<()> {
    let (n_rows, width) = (10_000_000, 64);
    let model = models::unique_lookup(n_rows, width);
    let folder = std::env::temp_dir().join(format!("estimand-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "create", &e))?;
    let mut session = Session::new(&model.graph)?;
    let feeds = [models::integers("ids", &[4_096], n_rows as i64)?, models::uniform("rows", &[4_096, width])?];
    for _ in 0..3 {
        session.run(&[&model.train], &model.feeds(&feeds))?;
    }
    let saved = session.save(folder.join("model.ckpt-3"));
    std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))?;
    saved?;
    let needed = (2 * n_rows * width * size_of::<f32>()) as f64;
    match peak() {
        Some(peak) => {
            println!("table_memory_ratio = {:.2}    bound 1: {:.2} GB of table and slots", peak / needed, needed / 1e9)
        }
        None => println!("this system does not tell how much memory a process had"),
    }
    Ok(())
}
