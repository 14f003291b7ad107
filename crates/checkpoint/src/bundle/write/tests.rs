//! Saves that fail. The files of the previous checkpoint stay unchanged, and nothing else is left.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use estimand_wire::temporary::Disk;

use super::*;
use crate::BundleReader;

/// A disk that accepts all bytes and fails to sync them.
struct Unsynced(File);

/// A disk with room for 1,000 bytes.
struct Full(File);

impl Write for Unsynced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Disk for Unsynced {
    fn sync(&self) -> io::Result<()> {
        Err(io::Error::other("the device does not answer"))
    }

    fn byte_len(&self) -> io::Result<u64> {
        self.0.byte_len()
    }
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = 1_000_u64.saturating_sub(self.0.byte_len()?) as usize;
        match room {
            0 => Err(ErrorKind::StorageFull.into()),
            room => self.0.write(&bytes[..bytes.len().min(room)]),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Disk for Full {
    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn byte_len(&self) -> io::Result<u64> {
        self.0.byte_len()
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("estimand-write-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn save(prefix: &Path, mount: Mount, weights: Vec<f32>) -> Result<()> {
    let mut writer = BundleWriter::mounted(prefix, mount)?;
    writer.add("weights", &Array::from(weights))?;
    writer.finish()
}

#[test]
fn a_disk_that_fails_leaves_the_checkpoint_before() {
    let folder = folder("fails");
    let prefix = folder.join("model.ckpt-1");
    save(&prefix, |file| Box::new(file), vec![1.0, 2.0]).unwrap();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let (unsynced, full): (Mount, Mount) = (|file| Box::new(Unsynced(file)), |file| Box::new(Full(file)));
    for (mount, what, why) in [
        (unsynced, "cannot sync", "the device does not answer"),
        (full, "cannot write", &ErrorKind::StorageFull.to_string()),
    ] {
        // The same prefix, and another one.
        for prefix in [&prefix, &folder.join("model.ckpt-2")] {
            let error = save(prefix, mount, vec![3.0; 1_000]).unwrap_err().to_string();
            let file = format!("{}.data-00000-of-00001", prefix.display());
            assert!(error.contains(what) && error.contains(why) && error.contains(&file), "{error}");
            assert_eq!(names(), before, "no file has come or gone");
        }
    }
    // Too small for the index, which comes last.
    let long: Mount = |file| Box::new(Full(file));
    let mut writer = BundleWriter::mounted(&folder.join("model.ckpt-3"), long).unwrap();
    for i in 0..50 {
        writer.add(&format!("a/long/name/of/a/variable/{i}"), &Array::from(i)).unwrap();
    }
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.contains("model.ckpt-3.index") && names() == before, "{error}");

    let reader = BundleReader::open(&prefix).unwrap();
    assert_eq!(reader.read("weights").unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0]);
    fs::remove_dir_all(folder).unwrap();
}

/// A trainer removes its oldest checkpoint, or writes another one under the same name, while a
/// reader has it open.
#[test]
fn an_open_checkpoint_is_read_to_its_end() {
    let folder = folder("gone");
    let prefix = folder.join("model.ckpt-1");
    save(&prefix, |file| Box::new(file), vec![1.0, 2.0]).unwrap();
    let reader = BundleReader::open(&prefix).unwrap();
    save(&prefix, |file| Box::new(file), vec![3.0, 4.0]).unwrap();
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(reader.read("weights").unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0]);
}
