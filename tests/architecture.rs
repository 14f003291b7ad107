//! Checks that ARCHITECTURE.md is true: each crate uses only crates on lower floors, and the files
//! of the three paths exist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../ARCHITECTURE.md");

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The floors of the picture, lowest first: the words before the first run of three spaces.
fn floors() -> Vec<Vec<&'static str>> {
    let picture = PAGE.split("```").nth(1).expect("a picture");
    let floors = picture.lines().filter(|line| !line.trim().is_empty());
    let names = floors.map(|line| line.trim().split("   ").next().unwrap_or_default().split("  ").collect());
    let mut floors: Vec<Vec<&str>> = names.collect();
    floors.reverse();
    floors
}

/// The rows of the table of crates: a crate, and the crates it uses.
fn table() -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with("| crate | uses |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let uses = cells[2].split(", ").filter(|name| *name != "-").collect();
            (cells[1].trim_matches('`'), uses)
        })
        .collect()
}

/// The crates of ours among the dependencies of a manifest.
fn dependencies(manifest: &str) -> Vec<&str> {
    let after = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let lines = after.lines().skip(1).take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.strip_prefix("estimand-")?.split(['.', ' ']).next()).collect()
}

#[test]
fn the_table_lists_every_crate_with_what_it_uses() {
    let folders = fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut folders: Vec<String> = folders.collect();
    folders.sort();
    let table = table();
    assert_eq!(table.keys().copied().collect::<Vec<_>>(), folders);
    for (name, uses) in table {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        assert_eq!(uses, dependencies(&manifest), "the crates that `{name}` uses");
    }
}

#[test]
fn arrows_go_down() {
    let floor: BTreeMap<&str, usize> =
        floors().iter().enumerate().flat_map(|(i, names)| names.iter().map(move |name| (*name, i))).collect();
    for (name, uses) in table() {
        // Nobody uses it, so it has no floor.
        if name == "data_parquet" {
            continue;
        }
        for used in uses {
            assert!(floor[used] < floor[name], "`{name}` uses `{used}`, which is not on a lower floor");
        }
    }
}

#[test]
fn paths_are_of_files_that_exist() {
    let mut n_files = 0;
    for name in PAGE.split('`').skip(1).step_by(2).filter(|name| name.contains("/src/")) {
        assert!(crates().join(name).exists(), "{name}");
        n_files += 1;
    }
    assert!(n_files > 20, "{n_files} names were found");
    for path in PAGE.split("## Four paths").nth(1).expect("the paths").split("\n## ").next().unwrap().split("\n**") {
        assert!(path.lines().filter(|line| line.starts_with(char::is_numeric)).count() <= 8, "{path}");
    }
}

/// A module is a file, or a folder with a `mod.rs` and other files.
#[test]
fn modules_have_one_style() {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    let mut n_folders = 0;
    while let Some(folder) = folders.pop() {
        let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        if folder.join("mod.rs").exists() {
            assert!(files.len() > 1, "{} holds one file: make it a file", folder.display());
            n_folders += 1;
        }
        for path in &files {
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            let beside = is_rust && path.file_name() != Some("lib.rs".as_ref()) && path.with_extension("").is_dir();
            assert!(!beside, "{} stands beside a folder of its name: move it to mod.rs", path.display());
        }
        folders.extend(files.into_iter().filter(|path| path.is_dir()));
    }
    assert!(n_folders > 60, "{n_folders} folders were found");
}
