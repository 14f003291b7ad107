//! Hostile files: what is refused, what the error says, and how much memory it took to find out.
//!
//! A binary of its own: it watches the memory of the whole process, so its tests take turns.

mod columns;
mod memory;
mod packed;
mod rows;
mod texts;
mod zip;

use std::path::PathBuf;

/// A folder of one test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("estimand-limits-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Checks that an error has all of these words.
#[track_caller]
fn says(error: &estimand_tensor::Error, words: &[&str]) {
    let text = error.to_string();
    words.iter().for_each(|word| assert!(text.contains(word), "no `{word}` in: {text}"));
}
