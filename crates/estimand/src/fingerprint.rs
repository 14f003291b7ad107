//! Checks that a checkpoint belongs to a model. If not, the error lists the differences and the
//! remedies.

use std::collections::HashSet;
use std::path::Path;

use estimand_checkpoint::BundleReader;
use estimand_engine::saved_variables;
use estimand_graph::{Body, VarId};
use estimand_tensor::{Error, Result};
use estimand_update::ALL_RULES;

use crate::own_entries::is_own;
use crate::stored::{self, Entry, Stored};

/// The most differences that a message lists.
const LISTED: usize = 8;

/// Finds the checkpoint entry of each variable of the model. Returns an error with the list of
/// differences unless every variable is present and fits. Slots of optimizers may be missing.
pub(crate) fn compare<'a>(reader: &BundleReader, body: &'a Body, prefix: &Path) -> Result<Vec<(VarId, Entry<'a>)>> {
    let variables = body.variables();
    let stored = Stored::new(reader, body);
    let (mut entries, mut differences) = (Vec::new(), Vec::new());
    for (id, spec) in saved_variables(variables) {
        let expected = format!("{}{:?}", spec.dtype, &spec.dims[..]);
        let entry = stored.entry(spec);
        match entry.name().map(|name| reader.spec(name)).transpose()? {
            None if entry == Entry::Missing => differences.push(format!(
                "`{}` {expected} is in the model ({}:{}) and not in the checkpoint",
                spec.name,
                spec.site.file(),
                spec.site.line()
            )),
            Some((dtype, dims)) if dtype != spec.dtype || dims[..] != spec.dims[..] => {
                differences
                    .push(format!("`{}` is {dtype}{dims:?} in the checkpoint and {expected} in the model", spec.name));
            }
            None | Some(_) => {}
        }
        entries.push((id, entry));
    }
    if differences.is_empty() {
        stored::tell(body, &entries, prefix);
        return Ok(entries);
    }
    let settings: Vec<String> = body.optimizers().iter().flat_map(|o| o.scalars(0)).map(|(name, _)| name).collect();
    let settings = settings.iter().map(|setting| stored.scopes.name(setting).into_owned());
    let read: HashSet<String> =
        entries.iter().filter_map(|(_, entry)| entry.name()).map(str::to_string).chain(settings).collect();
    // A model that is not trained has no optimizers, and what theirs left is no difference.
    let is_left = |name: &str| body.optimizers().is_empty() && is_of_optimizer(name);
    let known = |name: &&str| is_own(name) || read.contains(*name) || is_left(name);
    for name in reader.names().filter(|name| !known(name)) {
        differences.push(format!("`{name}` is in the checkpoint and not in the model"));
    }
    let n = differences.len();
    let mut text = differences[..n.min(LISTED)].join("\n    ");
    if n > LISTED {
        text += &format!("\n    and {} more", n - LISTED);
    }
    Err(Error::checkpoint(prefix, format!("the checkpoint belongs to another model:\n    {text}")).help(
        "resume: run the program that wrote it; restart: choose another model_dir or empty this one; \
         warm-start: a new model_dir with warm_start_from this checkpoint",
    ))
}

/// Returns whether the name of an entry is that of an optimizer's variable: it is in the scope of
/// an optimizer, or of a head's training.
fn is_of_optimizer(name: &str) -> bool {
    let scope = name.split('/').next().unwrap_or_default();
    let is_training = scope.strip_prefix("training").is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    is_training || ALL_RULES.iter().any(|make| make().name() == scope)
}
