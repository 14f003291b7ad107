//! Finds the variables of a model in a checkpoint: under their own names or, in some cases, under
//! other names. Optimizer slots may be missing.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use estimand_checkpoint::BundleReader;
use estimand_graph::{Body, Role, VarId, VarSpec};
use estimand_tensor::warn;
use tracing::info;

/// The most names that a message lists.
const LISTED: usize = 8;

/// The location of one variable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    /// Under this name.
    Named(Cow<'a, str>),
    /// Absent, which is allowed: a slot of an optimizer that the checkpoint has other entries of.
    /// It starts with its initial value.
    Anew,
    /// Absent, which is an error.
    Missing,
}

impl Entry<'_> {
    /// Returns the name to read it by.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Entry::Named(name) => Some(name),
            Entry::Anew | Entry::Missing => None,
        }
    }
}

/// The scope names of optimizers in a checkpoint. Version 0.1.0 wrote `training/..` where
/// TensorFlow, and this version, write `training_2/..` for a MultiHead of two heads.
pub(crate) struct Scopes(BTreeSet<String>);

impl Scopes {
    /// Reads the scopes of a checkpoint.
    pub(crate) fn of(reader: &BundleReader) -> Scopes {
        Scopes(reader.names().filter_map(|name| Some(numbered_scope(name)?.0.to_string())).collect())
    }

    /// Returns the name that an optimizer's variable or setting has in the checkpoint.
    pub(crate) fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match numbered_scope(name) {
            Some((scope, rest)) if !self.0.contains(scope) => Cow::Owned(format!("training/{rest}")),
            _ => Cow::Borrowed(name),
        }
    }
}

/// A checkpoint, searched for the variables of a model.
pub(crate) struct Stored<'a> {
    reader: &'a BundleReader,
    pub(crate) scopes: Scopes,
    /// The scopes of the model's optimizers, and whether the checkpoint has entries of each.
    optimizers: Vec<(String, bool)>,
}

impl<'a> Stored<'a> {
    pub(crate) fn new(reader: &'a BundleReader, body: &Body) -> Stored<'a> {
        let scopes = Scopes::of(reader);
        let known = |scope: &str| reader.names().any(|name| name.starts_with(&*scopes.name(scope)));
        let with_known = |scope: String| {
            let is_known = known(&scope);
            (scope, is_known)
        };
        let scopes_of_model = body.optimizers().iter().map(|optimizer| format!("{}/", optimizer.scope));
        let optimizers = scopes_of_model.map(with_known).collect();
        Stored { reader, scopes, optimizers }
    }

    /// Finds a variable. TF: premade estimators do not train shared embeddings, so their folders
    /// have no slots for them. Here they are trained, and such a folder can be continued.
    pub(crate) fn entry<'n>(&self, spec: &'n VarSpec) -> Entry<'n> {
        let name = self.scopes.name(&spec.name);
        if self.reader.contains(&name) {
            return Entry::Named(name);
        }
        // A different optimizer must not start from scratch with only a warning. This check
        // requires that the checkpoint has entries of the same optimizer.
        let is_known = self.optimizers.iter().any(|(scope, is_known)| *is_known && spec.name.starts_with(scope));
        match spec.role {
            Role::Slot { .. } if is_known => Entry::Anew,
            Role::Slot { .. } | Role::Model { .. } | Role::Step | Role::Local => Entry::Missing,
        }
    }
}

/// Splits a name into `training_2` and the rest.
fn numbered_scope(name: &str) -> Option<(&str, &str)> {
    let (scope, rest) = name.split_once('/')?;
    let number = scope.strip_prefix("training_")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some((scope, rest))
}

/// Logs which variables were found under other names, and which start from initial values.
pub(crate) fn tell(body: &Body, entries: &[(VarId, Entry<'_>)], prefix: &Path) {
    let name = |id: VarId| body.variables().spec(id).name.as_str();
    let renamed =
        entries.iter().find_map(|(id, entry)| Some((name(*id), entry.name().filter(|old| *old != name(*id))?)));
    if let Some((new, old)) = renamed {
        info!(
            "{} names the slots of optimizers as version 0.1.0 did, such as `{old}`; from now on they are saved under \
             TensorFlow's names, such as `{new}`",
            prefix.display()
        );
    }
    let anew: Vec<&str> = entries.iter().filter(|(_, entry)| *entry == Entry::Anew).map(|(id, _)| name(*id)).collect();
    if anew.is_empty() {
        return;
    }
    let mut listed = anew[..anew.len().min(LISTED)].join(", ");
    if anew.len() > LISTED {
        listed += &format!(" and {} more", anew.len() - LISTED);
    }
    warn!(
        "{} lacks slots of optimizers, which start from their initial values: {listed}. Their variables were not \
         trained there, or the optimizer had other settings",
        prefix.display()
    );
}

#[cfg(test)]
mod tests {
    use super::numbered_scope;

    #[test]
    fn only_scopes_with_a_number_have_an_older_name() {
        assert_eq!(numbered_scope("training_2/Ftrl/iter"), Some(("training_2", "Ftrl/iter")));
        assert_eq!(numbered_scope("training_12/Ftrl/"), Some(("training_12", "Ftrl/")));
        for name in ["training/Ftrl/iter", "training_/x", "training_2", "training_two/x", "a/training_2/x", "w"] {
            assert_eq!(numbered_scope(name), None, "{name}");
        }
    }
}
