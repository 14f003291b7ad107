//! Selects the variables of a model for a warm start.

use std::collections::BTreeSet;

use estimand_graph::{Body, Initializer, Role, VarId, VarSpec, Variables};
use estimand_tensor::cpu::text::RegexFullMatch;
use estimand_tensor::{Error, Result, Strings, nearest_name};

use super::{VocabInfo, WarmStartSettings};

/// The most names that a message lists.
const LISTED: usize = 12;

/// The selection that the user made.
#[derive(Clone, Debug)]
pub(super) enum Selection {
    /// Trainable variables that match a pattern.
    Trainable(String),
    /// All saved variables that match one of several patterns.
    Saved(Vec<String>),
    /// Variables by name.
    Named(Vec<String>),
    /// Trainable variables that have a vocabulary.
    Vocabularies,
}

/// One variable that is warm-started.
pub(super) struct Chosen<'a> {
    pub(super) spec: &'a VarSpec,
    /// Its name in the checkpoint.
    pub(super) prev_name: String,
    /// Its vocabulary, and the initializer of rows without an old value.
    pub(super) vocab: Option<(&'a VocabInfo, &'a Initializer)>,
    pub(super) is_slot: bool,
}

impl Selection {
    /// Checks that all patterns are valid regular expressions.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Selection::Trainable(pattern) => compile(pattern).map(drop),
            Selection::Saved(patterns) => patterns.iter().try_for_each(|pattern| compile(pattern).map(drop)),
            Selection::Named(_) | Selection::Vocabularies => Ok(()),
        }
    }

    fn considers(&self, role: Role) -> bool {
        match self {
            Selection::Trainable(_) | Selection::Vocabularies => role == Role::Model { trainable: true },
            Selection::Saved(_) | Selection::Named(_) => role != Role::Local,
        }
    }
}

impl WarmStartSettings {
    /// Returns the selected variables in the order of the model. A pattern or name without a match
    /// is an error.
    pub(super) fn choose<'a>(&'a self, body: &'a Body) -> Result<Vec<Chosen<'a>>> {
        let variables = body.variables();
        // Slots exist only in training. In an evaluation, a name may have no match.
        let is_lenient = body.optimizers().is_empty()
            && (self.optimizer_slots || matches!(self.selection, Selection::Saved(_) | Selection::Named(_)));
        let mut ids = self.selected(variables, is_lenient)?;
        if self.optimizer_slots {
            let slots = variables.iter().filter(|(_, spec)| owner(spec).is_some_and(|of| ids.contains(&of)));
            let slots: Vec<VarId> = slots.map(|(id, _)| id).collect();
            ids.extend(slots);
        }
        if !is_lenient {
            self.check_entries(variables, &ids)?;
        }
        Ok(ids.into_iter().map(|id| self.chosen(variables, id)).collect())
    }

    fn selected(&self, variables: &Variables, is_lenient: bool) -> Result<BTreeSet<VarId>> {
        let candidates: Vec<(VarId, &str)> = variables
            .iter()
            .filter(|(_, spec)| self.selection.considers(spec.role))
            .map(|(id, spec)| (id, spec.name.as_str()))
            .collect();
        let names = || candidates.iter().map(|(_, name)| *name);
        let patterns = match &self.selection {
            Selection::Trainable(pattern) => std::slice::from_ref(pattern),
            Selection::Saved(patterns) => patterns,
            Selection::Vocabularies => {
                let has_vocabulary = |(_, name): &&(VarId, &str)| self.vocab_infos.contains_key(*name);
                return Ok(candidates.iter().filter(has_vocabulary).map(|(id, _)| *id).collect());
            }
            Selection::Named(wanted) => {
                let mut ids = BTreeSet::new();
                for name in wanted {
                    match candidates.iter().find(|(_, candidate)| candidate == name) {
                        Some((id, _)) => _ = ids.insert(*id),
                        None if is_lenient => {}
                        None => {
                            return Err(Error::missing_variable(name, names()).context("in the names of a warm start"));
                        }
                    }
                }
                return Ok(ids);
            }
        };
        let text: Strings = names().collect();
        let mut ids = BTreeSet::new();
        for pattern in patterns {
            let mut matches = vec![false; text.len()];
            compile(pattern)?.apply(text.as_slice(), &mut matches);
            // TF: a pattern without a match is silently ignored, and the model starts as if there
            // were no warm start.
            if !is_lenient && !matches.contains(&true) {
                return Err(Error::config(format!("no variable's name begins with a match of {pattern:?}"))
                    .help(format!("there are {}", listed(names()))));
            }
            ids.extend(candidates.iter().zip(matches).filter(|(_, is_match)| *is_match).map(|((id, _), _)| *id));
        }
        Ok(ids)
    }

    /// Returns an error for entries of the two maps that no chosen variable has; they are typos.
    fn check_entries(&self, variables: &Variables, chosen: &BTreeSet<VarId>) -> Result<()> {
        let viable = || match self.selection {
            // Only entries select variables here, so list all that could be selected.
            Selection::Vocabularies => {
                let all = variables.iter().filter(|(_, spec)| self.selection.considers(spec.role));
                all.map(|(_, spec)| spec.name.as_str()).collect::<Vec<_>>()
            }
            _ => chosen.iter().map(|id| variables.spec(*id).name.as_str()).collect(),
        };
        let is_chosen = |name: &String| chosen.iter().any(|id| variables.spec(*id).name == *name);
        let entries = self.vocab_infos.keys().map(|name| ("vocab_info", name));
        let mut entries = entries.chain(self.prev_var_names.keys().map(|name| ("prev_var_name", name)));
        let Some((map, name)) = entries.find(|(_, name)| !is_chosen(name)) else {
            return self.check_scopes(variables, chosen);
        };
        let near = nearest_name(name, viable()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Err(Error::config(format!("{map} is given for `{name}`, which is not a variable of the warm start"))
            .help(format!("{near}there are {}", listed(viable()))))
    }

    /// Returns an error for a scope without a chosen variable.
    fn check_scopes(&self, variables: &Variables, chosen: &BTreeSet<VarId>) -> Result<()> {
        let is_in = |scope: &str, name: &str| {
            scope.is_empty() || name.strip_prefix(scope).is_some_and(|rest| rest.starts_with('/'))
        };
        let names: Vec<&str> = chosen.iter().map(|id| variables.spec(*id).name.as_str()).collect();
        match self.prev_scopes.keys().find(|scope| !names.iter().any(|name| is_in(scope, name))) {
            Some(scope) => {
                let text = format!("prev_scope is given for `{scope}`, but no variable of the warm start is in it");
                Err(Error::config(text).help(format!("there are {}", listed(names))))
            }
            None => Ok(()),
        }
    }

    fn chosen<'a>(&'a self, variables: &'a Variables, id: VarId) -> Chosen<'a> {
        let spec = variables.spec(id);
        let own = self.vocab_infos.get(&spec.name).map(|info| (info, info.initializer()));
        // A slot has one value per value of its variable, so both are remapped together.
        let owner = owner(spec).map(|of| variables.spec(of));
        let vocab = own.or_else(|| Some((self.vocab_infos.get(&owner?.name)?, &spec.initializer)));
        let renamed = || {
            let owner = owner?;
            let prev = self.prev_var_names.get(&owner.name).cloned().or_else(|| self.moved(&owner.name))?;
            Some(spec.name.replacen(&format!("/{}/", owner.name), &format!("/{prev}/"), 1))
        };
        let prev_name =
            self.prev_var_names.get(&spec.name).cloned().or_else(renamed).or_else(|| self.moved(&spec.name));
        Chosen { spec, prev_name: prev_name.unwrap_or_else(|| spec.name.clone()), vocab, is_slot: owner.is_some() }
    }
}

impl WarmStartSettings {
    /// Returns the name of a variable whose scope has another name in the checkpoint. The longest
    /// scope decides.
    fn moved(&self, variable: &str) -> Option<String> {
        let within = |scope: &str| match scope {
            "" => Some(variable),
            _ => variable.strip_prefix(scope)?.strip_prefix('/'),
        };
        let found = self.prev_scopes.iter().filter_map(|(scope, prev)| Some((scope.len(), prev, within(scope)?)));
        let (_, prev, rest) = found.max_by_key(|(length, ..)| *length)?;
        Some(if prev.is_empty() { rest.to_string() } else { format!("{prev}/{rest}") })
    }
}

/// Returns the variable that a slot belongs to.
fn owner(spec: &VarSpec) -> Option<VarId> {
    match spec.role {
        Role::Slot { of } => Some(of),
        _ => None,
    }
}

/// Compiles a pattern that must match the beginning of a name, like Python's `re.match`.
fn compile(pattern: &str) -> Result<RegexFullMatch> {
    // Compile the pattern unchanged first, so that an error shows it as the user wrote it.
    RegexFullMatch::new(pattern)?;
    RegexFullMatch::new(&format!("(?:{pattern})(?s:.*)"))
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names[..names.len().min(LISTED)].join(", ");
    match names.len() {
        0 => text += "none",
        n if n > LISTED => text += &format!(" and {} more", n - LISTED),
        _ => {}
    }
    text
}
