//! Features that become labels or weights.

use estimand_tensor::{Batch, BatchSpec, Error, Feature, Result};

use crate::agreement::missing;
use crate::stage::{InputContext, Item, Stage, Stream};
use crate::{Dataset, Position};

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Label,
    Weights,
}

pub(crate) struct Roles {
    input: Dataset,
    rule: Rule,
}

#[derive(Clone)]
struct Rule {
    name: String,
    role: Role,
}

impl Roles {
    pub(crate) fn label(input: Dataset, name: &str) -> Roles {
        Roles { input, rule: Rule { name: name.to_string(), role: Role::Label } }
    }

    pub(crate) fn weights(input: Dataset, name: &str) -> Roles {
        Roles { input, rule: Rule { name: name.to_string(), role: Role::Weights } }
    }
}

impl Stage for Roles {
    fn describe(&self) -> String {
        match self.rule.role {
            Role::Label => format!("label(`{}`)", self.rule.name),
            Role::Weights => format!("weights(`{}`)", self.rule.name),
        }
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        let mut spec = self.input.spec()?;
        match spec.shift_remove(&self.rule.name) {
            Some(_) => Ok(spec),
            None => Err(self.rule.missing(spec.keys().map(String::as_str))),
        }
    }

    fn label_spec(&self) -> Result<BatchSpec> {
        let mut labels = self.input.label_spec()?;
        if let Some(spec) = self.input.spec()?.shift_remove(&self.rule.name).filter(|_| self.rule.role == Role::Label) {
            labels.insert(self.rule.name.clone(), spec);
        }
        Ok(labels)
    }

    fn over_shuffled(&self, shuffle: &dyn Fn(&Dataset) -> Dataset) -> Option<Dataset> {
        Some(Dataset::new(Roles { input: shuffle(&self.input), rule: self.rule.clone() }))
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        Ok(Box::new(RoleStream { input: self.input.stage().open(cx, from)?, rule: self.rule.clone() }))
    }
}

struct RoleStream {
    input: Box<dyn Stream>,
    rule: Rule,
}

impl Stream for RoleStream {
    fn pull(&mut self, want: usize) -> Result<Option<Item>> {
        let Some(Item { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        Ok(Some(Item { batch: self.rule.apply(&batch)?, after }))
    }
}

impl Rule {
    fn apply(&self, batch: &Batch) -> Result<Batch> {
        let Some(chosen) = batch.features().get(self.name.as_str()) else {
            return Err(self.missing(batch.features().keys().map(|name| &**name)));
        };
        let mut changed = Batch::new();
        for (name, feature) in batch.features().iter().filter(|(name, _)| ***name != *self.name) {
            changed = changed.with_feature(name, feature.clone())?;
        }
        for (name, label) in batch.labels() {
            changed = changed.with_label(name, label.clone())?;
        }
        if let Some(weights) = batch.weights() {
            changed = changed.with_weights(weights.clone())?;
        }
        match (self.role, chosen) {
            (Role::Label, _) => changed.with_label(&self.name, chosen.clone()),
            (Role::Weights, Feature::Dense(weights)) => changed.with_weights(weights.clone()),
            (Role::Weights, Feature::Ragged(_)) => {
                Err(Error::shape(format!("the weights `{}` are ragged; expected one number a row", self.name)))
            }
        }
    }

    fn missing<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Error {
        let what = if self.role == Role::Label { "label" } else { "weights" };
        missing(&self.name, &format!("to make the {what} of"), known)
    }
}
