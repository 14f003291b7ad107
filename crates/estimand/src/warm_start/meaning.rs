//! Checks that the rows of a warm start keep their meaning.
//!
//! A changed vocabulary assigns ids to other terms. If a variable has a [`VocabInfo`], its rows
//! move along. If it has none, old rows would stand for new terms, which is refused. Changed
//! boundaries and normalisation are only logged: a warm start is meant to reuse weights that were
//! trained with slightly different ones.

use std::path::Path;

use estimand_graph::meaning::{Listed, Listing, Meaning};
use estimand_tensor::{Error, Result, warn};
use tracing::info;

use super::VocabInfo;
use super::choice::Chosen;
use crate::manifest::{Difference, Entry, Manifest, listed};

/// The manifest aspects that assign rows to ids.
const IDS: [&str; 6] =
    ["vocabulary", "out-of-vocabulary buckets", "hash buckets", "hash key", "keys in order", "order of inputs"];

/// The aspects that a [`VocabInfo`] handles.
const REMAPPED: [&str; 3] = ["vocabulary", "out-of-vocabulary buckets", "id of unknown terms"];

/// Returns an error that lists rows whose meaning would change.
pub(super) fn check(
    chosen: &[Chosen<'_>],
    was: Option<Manifest>,
    is: &Manifest,
    prefix: &Path,
    is_accepted: bool,
) -> Result<()> {
    let Some(was) = was else {
        if !is.is_empty() {
            info!("{} has no manifest: the meaning of its rows is not checked", prefix.display());
        }
        return Ok(());
    };
    let (mut refused, mut noted): (Vec<Difference>, Vec<Difference>) = (Vec::new(), Vec::new());
    for one in chosen.iter().filter(|one| !one.is_slot) {
        for now in is.entries().iter().filter(|entry| entry.variables().contains(&one.spec.name)) {
            let Some(before) = counterpart(&was, now, &one.prev_name) else { continue };
            let info = one.vocab.map(|(info, _)| info).filter(|info| is_axis_of(info, now, one.spec.dims.len()));
            if let Some(info) = info.filter(|_| states(now, &REMAPPED)) {
                agree(info, before, now).map_err(|e| e.context(format!("in the warm start of `{}`", one.spec.name)))?;
                continue;
            }
            let list = if states(now, &IDS) { &mut refused } else { &mut noted };
            for difference in before.diff(now) {
                if !list.contains(&difference) {
                    list.push(difference);
                }
            }
        }
    }
    if is_accepted {
        noted.append(&mut refused);
    }
    if !noted.is_empty() {
        warn!(
            "The checkpoint of the warm start was trained with other vocabularies, classes or column settings:\n    {}",
            listed(&noted)
        );
    }
    if refused.is_empty() {
        return Ok(());
    }
    Err(Error::checkpoint(
        prefix,
        format!("rows of the warm start now stand for other terms or ranges:\n    {}", listed(&refused)),
    )
    .help(
        "give a vocab_info to each variable whose vocabulary has changed; leave such variables out with vars(..); or, \
             if the change is meant, WarmStartSettings::accept_changed_meaning(true)",
    ))
}

/// Returns whether an entry states one of these aspects. A column of several features appends the
/// feature's name.
fn states(entry: &Entry, aspects: &[&str]) -> bool {
    let is = |aspect: &&str| {
        entry.aspect().strip_prefix(aspect).is_some_and(|rest| rest.is_empty() || rest.starts_with(" of `"))
    };
    aspects.iter().any(is)
}

/// Returns the entry of the old model for the same variable.
fn counterpart<'a>(was: &'a Manifest, now: &Entry, prev_name: &str) -> Option<&'a Entry> {
    let same = was.entries().iter().find(|entry| entry.is_same_place(now));
    same.or_else(|| {
        let of_variable =
            |entry: &&Entry| entry.aspect() == now.aspect() && entry.variables().iter().any(|name| name == prev_name);
        let candidates: Vec<&Entry> = was.entries().iter().filter(of_variable).collect();
        let named = candidates.iter().find(|entry| entry.about() == now.about());
        named.or(if candidates.len() == 1 { candidates.first() } else { None }).copied()
    })
}

/// Returns whether the axis that a vocabulary remaps is the axis of the entry. Classes are the last
/// axis, other ids the first.
fn is_axis_of(info: &VocabInfo, entry: &Entry, rank: usize) -> bool {
    match entry.about() {
        "predictions" => info.axis_number() + 1 == rank,
        _ => info.axis_number() == 0,
    }
}

/// Checks that the vocabularies that the user names are those of the models.
fn agree(info: &VocabInfo, before: &Entry, now: &Entry) -> Result<()> {
    if !states(now, &["vocabulary"]) {
        return Ok(());
    }
    let (old, new) = info.listings()?;
    for (named, entry, whose) in [(old, before, "checkpoint"), (new, now, "model")] {
        let Some(named) = named else { continue };
        let texts = entry.values().iter().filter_map(|value| match value {
            Meaning::List(list) if matches!(list.shown().first(), Some((_, Listed::Text(_)))) => Some(list),
            _ => None,
        });
        let texts: Vec<&Listing> = texts.collect();
        if !texts.is_empty() && !texts.contains(&&named) {
            let message = format!("vocab_info names {named} for the vocabulary of the {whose}, which has {}", texts[0]);
            return Err(Error::config(message).help("name all terms of the column in the order of their ids"));
        }
    }
    Ok(())
}
