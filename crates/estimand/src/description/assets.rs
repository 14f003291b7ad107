//! Files that a model needs, such as vocabularies: copied into its folder, as
//! `assets/<start of the digest>/<name>`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use estimand_tensor::{Error, Result, Sha256};
use estimand_wire::temporary::{TemporaryFile, remove_leftovers_of, sync_folder};
use serde_json::Value as Json;

/// The folder of the copies in a model folder.
const FOLDER: &str = "assets";

/// The number of digits of the digest that name a copy.
const N_DIGITS: usize = 16;

/// Copies the file of a document into the model folder, and replaces its path by the path of the
/// copy, relative to the folder.
pub(super) fn keep(folder: &Path, file: &mut Json) -> Result<()> {
    let source = PathBuf::from(path_of(file)?);
    let name = source
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::config(format!("{} is not the path of a file", source.display())))?;
    let digits = &digest(&source)?[..N_DIGITS];
    let copy = folder.join(FOLDER).join(digits).join(name);
    if !copy.is_file() {
        remove_leftovers_of(&copy);
        copy_whole(&source, &copy)?;
    }
    file["config"]["path"] = format!("{FOLDER}/{digits}/{name}").into();
    Ok(())
}

/// Replaces the path of a file of a document, which is relative to the model folder, by its place.
/// A path that leads out of the folder is refused.
pub(super) fn find(folder: &Path, file: &mut Json) -> Result<()> {
    let relative = path_of(file)?;
    let is_inside = Path::new(relative).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || relative.is_empty() {
        let text = format!("the file `{relative}` is not inside the model folder");
        return Err(Error::data(text).help("open only folders that Estimand wrote"));
    }
    let place = folder.join(relative);
    let text = place.to_str().ok_or_else(|| {
        Error::unsupported(format!("the path {} is not UTF-8", place.display())).help("rename the model folder")
    })?;
    file["config"]["path"] = text.into();
    Ok(())
}

fn path_of(file: &Json) -> Result<&str> {
    file["config"]["path"].as_str().ok_or_else(|| Error::data(format!("the file {file} has no `path`")))
}

/// The digest of a file, in hexadecimal digits.
fn digest(path: &Path) -> Result<String> {
    let mut digest = Some(Sha256::new());
    in_pieces(path, |piece| {
        digest = digest.take().map(|digest| digest.update(piece));
        Ok(())
    })?;
    Ok(digest.map(Sha256::finish).unwrap_or_default())
}

fn copy_whole(source: &Path, target: &Path) -> Result<()> {
    let mut copy = TemporaryFile::create(target)?;
    in_pieces(source, |piece| copy.write_all(piece).map_err(|e| Error::io(target, "write", &e)))?;
    copy.sync()?;
    copy.rename()?;
    sync_folder(target)
}

fn in_pieces(path: &Path, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|e| Error::io(path, "read", &e))? {
            0 => return Ok(()),
            n => each(&buffer[..n])?,
        }
    }
}
