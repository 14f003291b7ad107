//! Whether a checkpoint belongs to a model; if not, how they differ and what can be done.

use std::path::Path;

use estimand_graph::checkpoint::BundleReader;
use estimand_graph::{Body, Role};
use estimand_tensor::{Error, Result};

use crate::session::is_own;

/// The most differences that a message lists.
const LISTED: usize = 8;

/// An error that lists what differs, unless every variable of the model is in the checkpoint as it should be.
pub(crate) fn compare(reader: &BundleReader, body: &Body, prefix: &Path) -> Result<()> {
    let variables = body.variables();
    let mut differences = Vec::new();
    for (_, spec) in variables.iter().filter(|(_, spec)| spec.role != Role::Local) {
        let expected = format!("{}{:?}", spec.dtype, &spec.dims[..]);
        match reader.contains(&spec.name).then(|| reader.spec(&spec.name)).transpose()? {
            None => differences.push(format!(
                "`{}` {expected} is in the model ({}:{}) and not in the checkpoint",
                spec.name,
                spec.site.file(),
                spec.site.line()
            )),
            Some((dtype, dims)) if dtype != spec.dtype || dims[..] != spec.dims[..] => {
                differences
                    .push(format!("`{}` is {dtype}{dims:?} in the checkpoint and {expected} in the model", spec.name));
            }
            Some(_) => {}
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    let settings: Vec<String> = body.optimizers().iter().flat_map(|o| o.scalars(0)).map(|(name, _)| name).collect();
    let known = |name: &&str| is_own(name) || variables.find(name).is_ok() || settings.iter().any(|s| s == name);
    for name in reader.names().filter(|name| !known(name)) {
        differences.push(format!("`{name}` is in the checkpoint and not in the model"));
    }
    let n = differences.len();
    let mut text = differences[..n.min(LISTED)].join("\n    ");
    if n > LISTED {
        text += &format!("\n    and {} more", n - LISTED);
    }
    Err(Error::checkpoint(prefix, format!("the checkpoint is of another model:\n    {text}")).help(
        "resume: run the program that wrote it; restart: choose another model_dir or empty this one; \
         warm-start: a new model_dir with warm_start_from this checkpoint",
    ))
}
