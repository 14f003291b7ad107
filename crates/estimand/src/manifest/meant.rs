//! The manifest of a running model, and its comparison with that of a checkpoint.

use std::path::Path;

use estimand_checkpoint::BundleReader;
use estimand_graph::Body;
use estimand_tensor::{Array, DType, Error, Mode, Result, warn};
use tracing::info;

use super::json::MAX_BYTES;
use super::{Difference, Manifest};
use crate::RunConfig;
use crate::own_entries::{OWN, is_own};

/// The maximum number of differences in a message.
const LISTED: usize = 8;

/// The manifest of a model, and the policy for a checkpoint with a different one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meant {
    manifest: Manifest,
    is_training: bool,
    is_accepted: bool,
}

impl Meant {
    /// Makes the manifest of a graph for a mode, with the classes of an input's labels.
    pub(crate) fn new(body: &Body, mode: Mode, classes: Option<&[String]>, config: &RunConfig) -> Meant {
        Meant {
            // In prediction, labels do not count.
            manifest: Manifest::of(body).classes(classes.filter(|_| mode != Mode::Predict)),
            is_training: mode == Mode::Train,
            is_accepted: config.accept_changed_meaning,
        }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the name and the value of the checkpoint entry.
    pub(crate) fn saved(&self) -> Result<(String, Array)> {
        let bytes = self.manifest.to_json().into_bytes();
        Ok((name(), Array::from_vec([bytes.len()], bytes)?))
    }

    /// Returns an error that lists the differences to a checkpoint.
    pub(crate) fn compare(&self, reader: &BundleReader, prefix: &Path) -> Result<()> {
        if self.is_accepted {
            return self.tell_accepted(reader, prefix);
        }
        let Some(stored) = read(reader, prefix)? else {
            self.tell_unchecked(reader, prefix);
            return Ok(());
        };
        let differences = self.differences(&stored);
        if differences.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the checkpoint was trained with other vocabularies, classes or column settings:\n    {}",
            listed(&differences)
        );
        Err(Error::checkpoint(prefix, message).help(
            "resume: give the model what it was trained with (adapt_once finds in the model folder what was learnt); \
             restart: choose another model_dir or empty this one; warm-start: a new model_dir with warm_start_from \
             this checkpoint and a vocab_info for each vocabulary that changed; if the change is meant: \
             RunConfig::accept_changed_meaning(true)",
        ))
    }

    /// Checks that the model in memory whose variables are borrowed has the same meaning.
    pub(crate) fn compare_live(&self, other: &Meant) -> Result<()> {
        let differences = other.manifest.diff_of_common(&self.manifest);
        if self.is_accepted || differences.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the model is trained with other vocabularies, classes or column settings:\n    {}",
            listed(&differences)
        );
        Err(Error::config(message)
            .help("evaluate with the classes, vocabularies and numbers of the training, or set RunConfig::accept_changed_meaning(true)"))
    }

    fn differences(&self, stored: &Manifest) -> Vec<Difference> {
        match self.is_training {
            true => stored.diff(&self.manifest),
            false => stored.diff_of_common(&self.manifest),
        }
    }

    /// Logs the differences that were accepted.
    fn tell_accepted(&self, reader: &BundleReader, prefix: &Path) -> Result<()> {
        match read(reader, prefix) {
            Ok(Some(stored)) => {
                let differences = self.differences(&stored);
                if !differences.is_empty() {
                    warn!(
                        "{} was trained with other vocabularies, classes or column settings, which \
                         accept_changed_meaning allows:\n    {}",
                        prefix.display(),
                        listed(&differences)
                    );
                }
            }
            Ok(None) => {}
            Err(error) => warn!("accept_changed_meaning allows this error: {error}"),
        }
        Ok(())
    }

    fn tell_unchecked(&self, reader: &BundleReader, prefix: &Path) {
        let mut places: Vec<String> = Vec::new();
        for entry in self.manifest.entries() {
            let place = format!("{} of {}", entry.aspect(), entry.about());
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if places.is_empty() {
            return;
        }
        let n = places.len();
        let mut text = places[..n.min(LISTED)].join(", ");
        if n > LISTED {
            text += &format!(" and {} more", n - LISTED);
        }
        match reader.names().any(is_own) {
            true => warn!(
                "{} has no manifest, as checkpoints of version 0.1.0 do not: these settings of the model cannot be \
                 checked against it: {text}",
                prefix.display()
            ),
            false => {
                info!(
                    "{} is TensorFlow's and has no manifest: these settings of the model are not checked: {text}",
                    prefix.display()
                )
            }
        }
    }
}

fn name() -> String {
    format!("{OWN}manifest")
}

/// Reads the manifest of a checkpoint, if it has one.
pub(crate) fn read(reader: &BundleReader, prefix: &Path) -> Result<Option<Manifest>> {
    let name = name();
    if !reader.contains(&name) {
        return Ok(None);
    }
    let (dtype, dims) = reader.spec(&name)?;
    // Check the size before reading: a file may contain anything.
    if dtype != DType::U8 || dims.len() != 1 || dims[0] > MAX_BYTES {
        let message = format!("its manifest is {dtype}{:?}; expected up to {MAX_BYTES} bytes", &dims[..]);
        return Err(Error::checkpoint(prefix, message));
    }
    let bytes = reader.read(&name)?;
    let text = std::str::from_utf8(bytes.as_slice::<u8>()?)
        .map_err(|_| Error::checkpoint(prefix, "its manifest is not UTF-8"))?;
    let manifest = Manifest::from_json(text).map_err(|e| e.context(format!("in checkpoint {}", prefix.display())));
    manifest.map(Some)
}

/// Lists differences, one per line, up to a limit.
pub(crate) fn listed(differences: &[Difference]) -> String {
    let n = differences.len();
    let lines: Vec<String> = differences[..n.min(LISTED)].iter().map(Difference::to_string).collect();
    let mut text = lines.join("\n    ");
    if n > LISTED {
        text += &format!("\n    and {} more", n - LISTED);
    }
    text
}
