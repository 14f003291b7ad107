//! Turns features into labels or weights.

use estimand_tensor::{Batch, BatchSpec, Error, Feature, Result};

use crate::agreement::missing;
use crate::rows::keep_missing;
use crate::stage::{InputContext, Stage, Stream, StreamItem};
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
        Ok(Box::new(RoleStream { input: self.input.stage().open(cx, from)?, rule: self.rule.clone(), place: 0 }))
    }
}

struct RoleStream {
    input: Box<dyn Stream>,
    rule: Rule,
    /// The index of a label among the features.
    place: usize,
}

impl Stream for RoleStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(StreamItem { mut batch, after }) = self.input.pull(want)? else { return Ok(None) };
        self.place = self.rule.place(&batch)?;
        let batch = match self.rule.role {
            Role::Label => {
                batch.feature_to_label(&self.rule.name);
                batch
            }
            Role::Weights => self.rule.weigh(&batch)?,
        };
        Ok(Some(StreamItem { batch, after }))
    }

    fn recycle(&mut self, mut item: StreamItem) {
        if self.rule.role == Role::Label {
            item.batch.label_to_feature(&self.rule.name, self.place);
            self.input.recycle(item);
        }
    }
}

impl Rule {
    /// The index of the feature in the batch.
    fn place(&self, batch: &Batch) -> Result<usize> {
        let place = batch.features().get_index_of(self.name.as_str());
        place.ok_or_else(|| self.missing(batch.features().keys().map(|name| &**name)))
    }

    /// Makes the feature the weights of the batch.
    fn weigh(&self, batch: &Batch) -> Result<Batch> {
        let Some(Feature::Dense(weights)) = batch.features().get(self.name.as_str()) else {
            return Err(Error::shape(format!("the weights `{}` are ragged; expected one number per row", self.name)));
        };
        let mut changed = Batch::new();
        for (name, feature) in batch.features().iter().filter(|(name, _)| ***name != *self.name) {
            changed = changed.with_feature(name, feature.clone())?;
        }
        for (name, label) in batch.labels() {
            changed = changed.with_label(name, label.clone())?;
        }
        keep_missing(batch, changed.with_weights(weights.clone())?)
    }

    fn missing<'a>(&self, known: impl Iterator<Item = &'a str> + Clone) -> Error {
        let what = if self.role == Role::Label { "label" } else { "weights" };
        missing(&self.name, &format!("to use as {what}"), known)
    }
}
