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

/// Checks that the file of a document can be copied: a plain file that exists.
pub(super) fn check(file: &Json) -> Result<()> {
    let path = path_of(file)?;
    match Path::new(path).is_file() {
        true => Ok(()),
        false => Err(Error::unsupported(format!("{path} is not a file that can be copied into the model folder"))),
    }
}

/// Copies the file of a document into the model folder, and replaces its path by the path of the
/// copy, relative to the folder. A copy that was changed is written again.
pub(super) fn keep(folder: &Path, file: &mut Json) -> Result<()> {
    let source = PathBuf::from(path_of(file)?);
    let name = source
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::config(format!("{} is not the path of a file", source.display())))?;
    let whole = digest(&source)?;
    let digits: String = whole.chars().take(N_DIGITS).collect();
    let copy = folder.join(FOLDER).join(&digits).join(name);
    if !copy.is_file() || digest(&copy)? != whole {
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
        return Err(outside(relative));
    }
    let place = folder.join(relative);
    // A link may lead out of it too. A file that does not exist is reported by its reader.
    if let (Ok(folder), Ok(place)) = (folder.canonicalize(), place.canonicalize())
        && !place.starts_with(folder)
    {
        return Err(outside(relative));
    }
    let text = place.to_str().ok_or_else(|| {
        Error::unsupported(format!("the path {} is not UTF-8", place.display())).help("rename the model folder")
    })?;
    file["config"]["path"] = text.into();
    Ok(())
}

fn outside(path: &str) -> Error {
    Error::data(format!("the file `{path}` is not inside the model folder"))
        .help("open only folders that Estimand wrote")
}

fn path_of(file: &Json) -> Result<&str> {
    file["config"]["path"].as_str().ok_or_else(|| Error::data(format!("the file {file} has no `path`")))
}

/// The digest of a file, in hexadecimal digits.
fn digest(path: &Path) -> Result<String> {
    in_pieces(path, Sha256::new(), |digest, piece| Ok(digest.update(piece))).map(Sha256::finish)
}

fn copy_whole(source: &Path, target: &Path) -> Result<()> {
    let written = |mut copy: TemporaryFile, piece: &[u8]| match copy.write_all(piece) {
        Ok(()) => Ok(copy),
        Err(error) => Err(Error::io(target, "write", &error)),
    };
    let mut copy = in_pieces(source, TemporaryFile::create(target)?, written)?;
    copy.sync()?;
    copy.rename()?;
    sync_folder(target)
}

/// Reads a file in pieces, and hands each to a function with what it returned before.
fn in_pieces<T>(path: &Path, mut so_far: T, each: impl Fn(T, &[u8]) -> Result<T>) -> Result<T> {
    let mut file = File::open(path).map_err(|e| Error::io(path, "open", &e))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|e| Error::io(path, "read", &e))? {
            0 => return Ok(so_far),
            n => so_far = each(so_far, &buffer[..n])?,
        }
    }
}
