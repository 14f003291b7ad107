//! Converts facts of a graph to readable entries: `column `age``, `boundaries`.

use std::collections::{BTreeMap, BTreeSet};

use estimand_graph::meaning::{Fact, Listing, Meaning, Subject};

/// One entry of a manifest. Two entries correspond if their `about`, `at` and `aspect` are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub(super) about: String,
    pub(super) at: String,
    pub(super) aspect: String,
    pub(super) is_required: bool,
    pub(super) values: Vec<Meaning>,
    pub(super) variables: Vec<String>,
}

impl Entry {
    /// The subject: ``column `age` ``, ``feature `word` ``, `label`, `predictions`.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The scope of the column, or the first variables that the value reaches.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// The stated property: `vocabulary`, `boundaries`, `hash buckets`, `mean`.
    pub fn aspect(&self) -> &str {
        &self.aspect
    }

    /// The value, or several if one feature is looked up in several tables for the same variables.
    pub fn values(&self) -> &[Meaning] {
        &self.values
    }

    /// The variables whose rows or columns depend on it.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Whether a resumed training must have this entry. Names of predictions and of an input's
    /// classes are optional.
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// Returns its name in messages.
    pub(super) fn place(&self) -> String {
        format!("{}: {}", self.about, self.aspect)
    }

    pub(crate) fn is_same_place(&self, other: &Entry) -> bool {
        (&self.about, &self.at, &self.aspect) == (&other.about, &other.at, &other.aspect)
    }
}

/// Makes the entry of the classes of an input's labels.
pub(super) fn classes(names: Listing) -> Entry {
    Entry {
        about: "input".to_string(),
        at: String::new(),
        aspect: "classes of the labels".to_string(),
        is_required: false,
        values: vec![names.into()],
        variables: Vec::new(),
    }
}

/// Returns entries in a fixed order, independent of the order in which a program states its facts.
pub(super) fn entries(facts: Vec<Fact>) -> Vec<Entry> {
    let labels: BTreeSet<&str> = facts.iter().flat_map(|fact| &fact.inputs).filter(is_label).map(name).collect();
    let one_label = labels.len() <= 1;
    // A column of several features names the feature it refers to.
    let mut features: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for fact in &facts {
        if let Subject::Column { scope, .. } = &fact.subject {
            features.entry(scope).or_default().insert(names(&fact.inputs));
        }
    }
    let mut entries: BTreeMap<(String, String, String), Entry> = BTreeMap::new();
    for fact in &facts {
        let (about, at, aspect) = match &fact.subject {
            Subject::Outputs => ("predictions".to_string(), String::new(), fact.aspect.clone()),
            Subject::Inputs => (about(&fact.inputs, one_label), fact.variables.join(", "), fact.aspect.clone()),
            Subject::Column { name, scope } => {
                let aspect = match features.get(scope.as_str()).is_some_and(|all| all.len() > 1) {
                    true => format!("{} of {}", fact.aspect, names(&fact.inputs)),
                    false => fact.aspect.clone(),
                };
                (format!("column `{name}`"), scope.clone(), aspect)
            }
        };
        let is_required = fact.subject != Subject::Outputs;
        let entry = entries.entry((about.clone(), at.clone(), aspect.clone())).or_insert_with(|| Entry {
            about,
            at,
            aspect,
            is_required,
            values: Vec::new(),
            variables: Vec::new(),
        });
        if !entry.values.contains(&fact.value) {
            entry.values.push(fact.value.clone());
        }
        let new = fact.variables.iter().filter(|name| !entry.variables.contains(name)).cloned().collect::<Vec<_>>();
        entry.variables.extend(new);
    }
    let mut entries: Vec<Entry> = entries.into_values().collect();
    for entry in &mut entries {
        entry.values.sort_by_key(order);
        entry.variables.sort();
    }
    entries
}

/// Returns a sort key; any fixed order is fine.
fn order(value: &Meaning) -> String {
    match value {
        Meaning::Int(v) => format!("int {v}"),
        Meaning::Float(v) => format!("float {:x}", v.to_bits()),
        Meaning::Text(v) => format!("text {v}"),
        Meaning::List(list) => format!("list {}", list.sha256()),
    }
}

fn is_label(input: &&(String, String)) -> bool {
    input.0 == "label"
}

fn name(input: &(String, String)) -> &str {
    &input.1
}

/// Returns the names in a fixed order. The order in which they are read is a separate fact.
fn names(inputs: &[(String, String)]) -> String {
    let mut names: Vec<String> = inputs.iter().map(|(_, name)| format!("`{name}`")).collect();
    names.sort();
    names.join(", ")
}

/// Returns the inputs that are read. If there is only one label, its name does not matter.
fn about(inputs: &[(String, String)], one_label: bool) -> String {
    match inputs {
        [] => "constants".to_string(),
        [only] if is_label(&only) && one_label => "label".to_string(),
        _ => {
            let mut sorted = inputs.to_vec();
            sorted.sort();
            sorted.iter().map(|(what, name)| format!("{what} `{name}`")).collect::<Vec<_>>().join(" and ")
        }
    }
}
