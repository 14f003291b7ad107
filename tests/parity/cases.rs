//! Finds case numbers in test sources: `Case 7`, `Cases 36, 37 and 38`, `cases_12_to_20_crosses`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The cases that tests of the repository name.
pub fn tested(root: &Path) -> BTreeSet<u32> {
    let mut sources = Vec::new();
    collect(&root.join("tests"), &mut sources);
    collect(&root.join("crates"), &mut sources);
    let mut found = BTreeSet::new();
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_test = path.iter().any(|part| part == "tests");
        // In other sources, what stands in their module of tests.
        let from = if is_test { Some(0) } else { text.find("#[cfg(test)]") };
        if let Some(from) = from {
            found.extend(named(&text[from..]));
        }
    }
    assert!(!found.is_empty(), "no test below {} names a case", root.display());
    found
}

/// Rust sources below a folder, but for these.
fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["parity", "target", "benches"].contains(&name) {
            collect(&path, sources);
        } else if name.ends_with(".rs") && name != "parity.rs" {
            sources.push(path);
        }
    }
}

/// The numbers behind every `case` of a text.
fn named(text: &str) -> Vec<u32> {
    let text = text.to_ascii_lowercase().replace('_', " ");
    let mut found = Vec::new();
    for (at, word) in text.match_indices("case") {
        let begins = text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
        let rest = &text[at + word.len()..];
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        if begins && rest.starts_with(' ') {
            found.extend(numbers(rest.trim_start()));
        }
    }
    found
}

/// The numbers that a text begins with: `36`, `36 to 38`, `36-38`, `36, 40 and 41`.
pub fn numbers(mut text: &str) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut is_range = false;
    loop {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let Ok(number) = text[..digits].parse() else { return found };
        match found.last() {
            Some(&first) if is_range => found.extend(first + 1..=number),
            _ => found.push(number),
        }
        text = &text[digits..];
        let joints = [(" to ", true), ("-", true), (", and ", false), (" and ", false), (", ", false)];
        let Some((joint, range)) = joints.into_iter().find(|(joint, _)| text.starts_with(joint)) else { return found };
        (text, is_range) = (&text[joint.len()..], range);
    }
}

#[test]
fn cases_are_found_however_they_are_written() {
    assert_eq!(named("/// Case 7: text.\nfn case_8_and_9_more() {}"), [7, 8, 9]);
    assert_eq!(named("Cases 36, 37 and 40 to 42, and 50; 60"), [36, 37, 40, 41, 42, 50]);
    assert_eq!(named("cases 1-3, which were. a showcase 5, case five, cases(6)"), [1, 2, 3]);
}
