//! The description of a model in its folder, `estimator.json`: what [`Estimator::open`] needs
//! besides the checkpoint.
//!
//! ```json
//! {"version": 1, "network": {"class_name": "Dnn", "config": {..}}, "head": {"class_name": "BinaryClassHead", ..}}
//! {"version": 1, "kmeans": {"class_name": "KMeans", "config": {..}}}
//! {"version": 1, "cannot_be_opened": "the model function is a part of the program"}
//! ```
//!
//! A training writes it after it has restored or initialized the model, so a program that does not
//! fit the folder leaves the description as it is. Files that columns need (vocabularies) are
//! copied to `assets/` and named by their content. `open.rs` reads all of it.
//!
//! [`Estimator::open`]: crate::Estimator::open

mod assets;
mod open;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_checkpoint as checkpoint;
use estimand_nn::column::Columns;
use estimand_nn::config::{File, visit_objects};
use estimand_tensor::{Error, Result};
use serde_json::{Value as Json, json};

use crate::head::Head;
use crate::premade::{KMeansSettings, Network};

pub use open::OpenOptions;

/// The version that is written. A newer one is refused.
const VERSION: u64 = 1;

/// The path of the description in a model folder.
fn path(folder: &Path) -> PathBuf {
    folder.join("estimator.json")
}

/// What an estimator says of its model.
#[derive(Clone)]
pub(crate) struct Description {
    model: Model,
    /// What the program added to the model that cannot be written.
    left_out: Vec<&'static str>,
}

#[derive(Clone)]
enum Model {
    /// A model function of the program.
    Function,
    Premade(Arc<dyn Network>, Arc<dyn Head>),
    KMeans(Arc<KMeansSettings>),
}

impl Description {
    /// A model function of the program.
    pub(crate) fn function() -> Description {
        Description { model: Model::Function, left_out: Vec::new() }
    }

    pub(crate) fn premade(network: Arc<dyn Network>, head: Arc<dyn Head>) -> Description {
        Description { model: Model::Premade(network, head), left_out: Vec::new() }
    }

    pub(crate) fn kmeans(settings: Arc<KMeansSettings>) -> Description {
        Description { model: Model::KMeans(settings), left_out: Vec::new() }
    }

    /// The settings of k-means, if it is that.
    pub(crate) fn settings_of_kmeans(&self) -> Option<&KMeansSettings> {
        match &self.model {
            Model::KMeans(settings) => Some(settings),
            Model::Function | Model::Premade(..) => None,
        }
    }

    /// The columns of a premade estimator's network.
    pub(crate) fn columns(&self) -> Option<Columns> {
        match &self.model {
            Model::Function => None,
            Model::Premade(network, _) => Some(network.columns()),
            Model::KMeans(settings) => settings.columns(),
        }
    }

    /// The same description, which says that the program adds something to the model.
    pub(crate) fn without(mut self, what: &'static str) -> Description {
        if !self.left_out.contains(&what) {
            self.left_out.push(what);
        }
        self
    }

    /// Writes the description to a model folder, unless it is there already.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut document = match self.document() {
            Ok(document) => document,
            Err(error) => json!({"version": VERSION, "cannot_be_opened": reason(&error)}),
        };
        visit_objects(&mut document, File::CLASS, &mut |file| assets::keep(folder, file))?;
        let text = serde_json::to_string_pretty(&document)
            .map_err(|e| Error::internal(format!("the description is no JSON: {e}")))?;
        let (path, text) = (path(folder), format!("{text}\n"));
        match std::fs::read(&path).is_ok_and(|known| known == text.as_bytes()) {
            true => Ok(()),
            false => checkpoint::write_text(path, &text),
        }
    }

    /// The document, or the reason why there is none.
    fn document(&self) -> Result<Json> {
        let mut document = match &self.model {
            Model::Function => return Err(Error::unsupported("the model function is a part of the program")),
            Model::Premade(network, head) => {
                json!({"version": VERSION, "network": network.to_json()?, "head": head.to_json()?})
            }
            Model::KMeans(settings) => json!({"version": VERSION, "kmeans": settings.to_json()?}),
        };
        visit_objects(&mut document, File::CLASS, &mut |file| assets::check(file))?;
        if !self.left_out.is_empty() {
            document["left_out"] = json!(self.left_out);
        }
        Ok(document)
    }
}

/// The text of an error, without the lines of the program.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    text.lines().filter(|line| !line.trim_start().starts_with("help:")).map(str::trim).collect::<Vec<_>>().join(", ")
}
