//! The weights of a file by names, for a warm start.
//!
//! A legacy `.h5` has names of weights: `dense/kernel:0` is the variable `dense/kernel`. A `.keras`
//! has the model's configuration, which gives the names. A `.weights.h5` has neither: its weights
//! are called by their places, such as `layers/dense/vars/0`.

use std::path::{Path, PathBuf};

use estimand_hdf5::{File, Group, Node};
use estimand_nn::config::{self, CustomObjects, Json};
use estimand_tensor::{Array, Error, Limits, Result};
use indexmap::IndexMap;

use super::names::Names;
use super::{archive, legacy};
use crate::keras::json::{KerasVersion, model_from_document};
use crate::keras::places;

/// An open file of Keras, by the names of weights.
pub(crate) struct NamedWeights {
    path: PathBuf,
    file: File,
    /// The path of each weight in the file.
    paths: IndexMap<String, String>,
    /// Why there are no names, only places.
    note: Option<String>,
}

impl NamedWeights {
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<NamedWeights> {
        let opened = match archive::is_archive(path) {
            true => archive::open(path, limits)
                .and_then(|(config, file)| of_archive(&config, &file).map(|found| (file, found))),
            false => File::open(path, limits).and_then(|file| of_file(&file).map(|found| (file, found))),
        };
        let (file, (paths, note)) = opened.map_err(|error| error.context(format!("in {}", path.display())))?;
        Ok(NamedWeights { path: path.to_path_buf(), file, paths, note })
    }

    /// Reads a weight.
    pub(crate) fn read(&self, name: &str) -> Result<Array> {
        let read = match self.paths.get(name) {
            Some(path) => self.file.root().dataset(path).and_then(|dataset| dataset.read()),
            None => {
                let error = Error::missing_variable(name, self.paths.keys().map(String::as_str));
                Err(self.note.iter().fold(error, |error, note| error.context(note.clone())))
            }
        };
        read.map_err(|error| error.context(format!("in {}", self.path.display())))
    }
}

/// The paths of weights by name, and the reason if these are only places.
type Found = (IndexMap<String, String>, Option<String>);

fn of_file(file: &File) -> Result<Found> {
    let mut paths = IndexMap::new();
    if legacy::is_legacy(&file.root())? {
        let mut note = None;
        // The model says what its variables are called; weights alone say it of most.
        if let Some(config) = archive::text_of(file, archive::MODEL)? {
            let model = config::parse(&config).and_then(|config| model_from_document(&config, &CustomObjects::new()));
            match model.and_then(|model| legacy::paths_of(&model, &file.root())) {
                Ok(found) => paths.extend(found),
                Err(error) => note = Some(not_known(&error)),
            }
        }
        for (name, path) in legacy::paths(&file.root())? {
            paths.entry(name).or_insert(path);
        }
        return Ok((paths, note));
    }
    places_in(&file.root(), &mut paths)?;
    let note = "a .weights.h5 file has no names of variables: give the places of weights, such as layers/dense/vars/0, \
                to prev_var_name";
    Ok((paths, Some(note.to_string())))
}

fn not_known(error: &Error) -> String {
    format!("the names of the model's variables are not known: {}", error.message())
}

/// The names of the model's variables, and the places of their weights.
fn of_archive(config: &Json, file: &File) -> Result<Found> {
    let mut paths = IndexMap::new();
    places_in(&file.root(), &mut paths)?;
    let model = match model_from_document(config, &CustomObjects::new()) {
        Ok(model) => model,
        // The weights are still there under their places.
        Err(error) => return Ok((paths, Some(not_known(&error)))),
    };
    let mut names = model.weight_names();
    for place in places::of(&model, KerasVersion::Keras3)? {
        let path = place.path_in(&file.root()).to_string();
        for (i, name) in names.by_ref().take(place.n).enumerate() {
            paths.insert(name.to_string(), format!("{path}/vars/{i}"));
        }
    }
    Ok((paths, None))
}

/// All weights below a group by their own paths. The number and depth of groups is limited by the
/// reader of the file.
fn places_in(root: &Group<'_>, paths: &mut IndexMap<String, String>) -> Result<()> {
    let (mut groups, mut known) = (vec![(String::new(), root.clone())], Names::default());
    while let Some((before, group)) = groups.pop() {
        for name in group.names() {
            let path = if before.is_empty() { name.to_string() } else { format!("{before}/{name}") };
            known.add(path.len())?;
            match group.get(name)? {
                Node::Group(inner) => groups.push((path, inner)),
                Node::Dataset(_) => _ = paths.insert(path.clone(), path),
            }
        }
    }
    paths.sort_unstable_keys();
    Ok(())
}
