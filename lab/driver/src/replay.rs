//! Simulates a disk after a power failure: replays the recorded calls without the data that was
//! never synced.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::calls::SystemCall;

/// The unsynced data that reached the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survivors {
    /// Nothing.
    None,
    /// All names, but no bytes: a new file exists and is empty.
    Names,
    /// All bytes, under the old names.
    Data,
    /// All names, and half of the bytes; zeros in place of the rest.
    Half,
    /// Only removals: the worst order for a replacement.
    Removals,
}

impl Survivors {
    pub const ALL: [Survivors; 5] =
        [Survivors::None, Survivors::Names, Survivors::Data, Survivors::Half, Survivors::Removals];

    pub fn name(self) -> &'static str {
        match self {
            Survivors::None => "none",
            Survivors::Names => "names",
            Survivors::Data => "data",
            Survivors::Half => "half",
            Survivors::Removals => "removals",
        }
    }
}

#[derive(Clone, Default)]
struct File {
    now: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Folder,
    /// The number of a file.
    File(usize),
}

type Names = BTreeMap<String, Entry>;

/// A file system that tracks which data was synced.
#[derive(Clone)]
pub struct Disk {
    files: Vec<File>,
    now: Names,
    synced: Names,
}

/// Files with their bytes; a folder has none.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}

impl Disk {
    /// Makes a disk on which these folders were synced long ago.
    pub fn new(folders: &[&str]) -> Disk {
        let names: Names = folders.iter().map(|name| (name.to_string(), Entry::Folder)).collect();
        Disk { files: Vec::new(), now: names.clone(), synced: names }
    }

    /// Replays a call, if it succeeded.
    pub fn apply(&mut self, call: &SystemCall) {
        if call.result < 0 {
            return;
        }
        let path = call.path.clone();
        match call.kind.as_str() {
            "create" => self.create(path, call.offset & libc::O_TRUNC as u64 != 0),
            "write" => self.change(&path, |bytes| {
                let at = call.offset as usize;
                bytes.resize(bytes.len().max(at + call.data.len()), 0);
                bytes[at..at + call.data.len()].copy_from_slice(&call.data);
            }),
            "truncate" => self.change(&path, |bytes| bytes.resize(call.offset as usize, 0)),
            "fsync" => self.sync(&path),
            "mkdir" => {
                self.now.insert(path, Entry::Folder);
            }
            "unlink" | "rmdir" => {
                self.now.remove(&path);
            }
            "rename" => {
                if let Some(entry) = self.now.remove(&path) {
                    self.now.insert(call.to.clone(), entry);
                }
            }
            "link" => {
                if let Some(&entry) = self.now.get(&path) {
                    self.now.insert(call.to.clone(), entry);
                }
            }
            _ => {}
        }
    }

    fn create(&mut self, path: String, empties: bool) {
        match self.now.get(&path) {
            Some(&Entry::File(number)) if empties => self.files[number].now.clear(),
            Some(_) => {}
            None => {
                self.now.insert(path, Entry::File(self.files.len()));
                self.files.push(File::default());
            }
        }
    }

    fn change(&mut self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(&Entry::File(number)) = self.now.get(path) {
            change(&mut self.files[number].now);
        }
    }

    /// Syncs a file's bytes, or a folder's names.
    fn sync(&mut self, path: &str) {
        if let Some(&Entry::File(number)) = self.now.get(path) {
            let file = &mut self.files[number];
            file.synced = file.now.clone();
            return;
        }
        let is_in_it = |name: &String| parent(name) == path;
        self.synced.retain(|name, _| !is_in_it(name));
        self.synced
            .extend(self.now.iter().filter(|(name, _)| is_in_it(name)).map(|(name, entry)| (name.clone(), *entry)));
    }

    /// Returns the files that exist when the power is back.
    pub fn after_power_failure(&self, survivors: Survivors) -> Tree {
        let names = match survivors {
            Survivors::None | Survivors::Data => self.synced.clone(),
            Survivors::Names | Survivors::Half => self.now.clone(),
            Survivors::Removals => {
                let stays = |name: &String| self.now.contains_key(name);
                self.synced.iter().filter(|(name, _)| stays(name)).map(|(name, entry)| (name.clone(), *entry)).collect()
            }
        };
        let bytes = |file: &File| match survivors {
            Survivors::None | Survivors::Names | Survivors::Removals => file.synced.clone(),
            Survivors::Data => file.now.clone(),
            Survivors::Half if file.now == file.synced => file.now.clone(),
            Survivors::Half => {
                let mut bytes = file.now.clone();
                let from = file.synced.len().min(bytes.len());
                let half = from + (bytes.len() - from) / 2;
                bytes[half..].fill(0);
                bytes
            }
        };
        let is_reachable = |name: &str| {
            let mut folder = parent(name);
            while folder != "." {
                if names.get(folder) != Some(&Entry::Folder) {
                    return false;
                }
                folder = parent(folder);
            }
            true
        };
        let entry = |(name, entry): (&String, &Entry)| match entry {
            Entry::Folder => (name.clone(), None),
            Entry::File(number) => (name.clone(), Some(bytes(&self.files[*number]))),
        };
        names.iter().filter(|(name, _)| is_reachable(name)).map(entry).collect()
    }
}

/// Writes a tree of files to a folder.
pub fn write(tree: &Tree, folder: &Path) -> io::Result<()> {
    for (name, bytes) in tree {
        match bytes {
            None => fs::create_dir_all(folder.join(name))?,
            Some(bytes) => fs::write(folder.join(name), bytes)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: &str, path: &str, to: &str, offset: u64, data: &[u8]) -> SystemCall {
        SystemCall {
            point: String::new(),
            kind: kind.into(),
            path: path.into(),
            to: to.into(),
            offset,
            n_bytes: data.len(),
            result: data.len() as i64,
            data: data.to_vec(),
            note: String::new(),
        }
    }

    fn disk(calls: &[SystemCall]) -> Disk {
        let mut disk = Disk::new(&["d"]);
        calls.iter().for_each(|call| disk.apply(call));
        disk
    }

    fn shown(disk: &Disk, survivors: Survivors) -> Vec<(String, String)> {
        let tree = disk.after_power_failure(survivors);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        tree.into_iter().filter_map(|(name, bytes)| Some((name, text(bytes?)))).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    }

    /// The classic mistake: a file is renamed over another before its bytes are on the disk.
    #[test]
    fn a_rename_without_fsync_leaves_an_empty_file() {
        let calls = [
            call("create", "d/t", "", 0, b""),
            call("write", "d/t", "", 0, b"abcd"),
            call("rename", "d/t", "d/f", 0, b""),
        ];
        let disk = disk(&calls);
        assert_eq!(shown(&disk, Survivors::Names), pairs(&[("d/f", "")]));
        assert_eq!(shown(&disk, Survivors::Half), pairs(&[("d/f", "ab\0\0")]));
        assert_eq!(shown(&disk, Survivors::None), pairs(&[]));
    }

    #[test]
    fn what_is_synced_stays() {
        let mut calls = vec![
            call("create", "d/t", "", 0, b""),
            call("write", "d/t", "", 0, b"abcd"),
            call("fsync", "d/t", "", 0, b""),
            call("rename", "d/t", "d/f", 0, b""),
        ];
        assert_eq!(shown(&disk(&calls), Survivors::None), pairs(&[]));
        calls.push(call("fsync", "d", "", 0, b""));
        for survivors in Survivors::ALL {
            assert_eq!(shown(&disk(&calls), survivors), pairs(&[("d/f", "abcd")]), "{survivors:?}");
        }
        calls.push(call("unlink", "d/f", "", 0, b""));
        assert_eq!(shown(&disk(&calls), Survivors::None), pairs(&[("d/f", "abcd")]));
        assert_eq!(shown(&disk(&calls), Survivors::Removals), pairs(&[]));
    }
}
