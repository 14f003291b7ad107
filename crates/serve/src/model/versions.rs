//! The folders of a model: which ones are versions, and which versions are wanted.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The versions of a model that are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// The newest ones, this many. A version that cannot be loaded does not count.
    Latest(usize),
    /// All versions in the folder.
    All,
    /// Only these.
    Specific(Vec<i64>),
}

impl Default for VersionPolicy {
    /// The newest version.
    fn default() -> VersionPolicy {
        VersionPolicy::Latest(1)
    }
}

impl VersionPolicy {
    /// The versions to load, the most wanted first, and how many of them.
    pub(super) fn wanted(&self, there: &BTreeMap<i64, PathBuf>) -> (Vec<i64>, usize) {
        match self {
            VersionPolicy::Latest(n) => (there.keys().rev().copied().collect(), (*n).max(1)),
            VersionPolicy::All => (there.keys().rev().copied().collect(), usize::MAX),
            VersionPolicy::Specific(versions) => {
                (there.keys().rev().filter(|version| versions.contains(version)).copied().collect(), usize::MAX)
            }
        }
    }
}

/// The versions in a folder: its subfolders whose name is a number. Temporary folders have other
/// names.
pub(super) fn list(base_path: &Path) -> io::Result<BTreeMap<i64, PathBuf>> {
    let mut versions = BTreeMap::new();
    for entry in fs::read_dir(base_path)? {
        let path = entry?.path();
        let Some(version) = path.file_name().and_then(|name| version_of(name.to_str()?)) else { continue };
        // A link to a folder is a version too.
        if !path.is_dir() {
            continue;
        }
        // `1` and `001` are one version: the order of the names decides, not that of the disk.
        versions
            .entry(version)
            .and_modify(|known: &mut PathBuf| *known = known.clone().min(path.clone()))
            .or_insert(path);
    }
    Ok(versions)
}

/// The version of a name that has only digits.
fn version_of(name: &str) -> Option<i64> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { name.parse().ok() } else { None }
}

/// A number that changes when the files of a version change: their names, sizes and times.
pub(super) fn fingerprint(folder: &Path) -> u64 {
    let mut files = Vec::new();
    for part in ["", "variables", "assets"] {
        let Ok(entries) = fs::read_dir(folder.join(part)) else { continue };
        for entry in entries.flatten() {
            let Ok(data) = entry.metadata() else { continue };
            files.push((entry.path(), data.len(), data.modified().ok()));
        }
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_versions() {
        assert_eq!(["7", "00000123", "1763370000"].map(version_of), [Some(7), Some(123), Some(1_763_370_000)]);
        for name in ["", "temp-7", "7.tmp", "-1", "+1", " 1", "1e3", "99999999999999999999", "٣"] {
            assert_eq!(version_of(name), None, "{name}");
        }
    }

    #[test]
    fn policies() {
        let there = [1, 3, 9].map(|version| (version, PathBuf::new())).into();
        assert_eq!(VersionPolicy::Latest(2).wanted(&there), (vec![9, 3, 1], 2));
        assert_eq!(VersionPolicy::All.wanted(&there), (vec![9, 3, 1], usize::MAX));
        assert_eq!(VersionPolicy::Specific(vec![3, 4]).wanted(&there), (vec![3], usize::MAX));
    }
}
