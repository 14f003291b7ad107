//! Runs the body of the fuzz target for `TF_CONFIG` and hyper-parameters on damaged texts: no
//! panic.

#[path = "../fuzz/src/config.rs"]
mod config;
#[path = "../fuzz/src/mutate.rs"]
mod mutate;

use mutate::{Dice, damaged};

#[test]
fn damaged_configurations() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/config");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    seeds.iter().for_each(|seed| config::check(seed));
    let mut dice = Dice::new(6);
    (0..20_000).for_each(|_| config::check(&damaged(&seeds, &mut dice)));
}

/// serde_json stops at 128 levels: the stack is safe.
#[test]
fn nesting_is_refused() {
    for text in ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000)] {
        let error = estimand::Cluster::parse(&text).unwrap_err().to_string();
        assert!(error.contains("recursion limit"), "{error}");
        let error = estimand::HParams::from_json(&text).unwrap_err().to_string();
        assert!(error.contains("recursion limit"), "{error}");
    }
}
