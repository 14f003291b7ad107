//! The classes of a classifier: their ids, their names, and the labels that stand for them.

use estimand_graph::{LookupTable, Tensor};
use estimand_nn::config::Fields;
use estimand_tensor::{Array, DType, Dim, Error, Result, Shape};

use super::slice::Term;

/// The classes, named by the terms of a vocabulary or by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    pub(super) n: usize,
    pub(super) vocabulary: Option<Vec<Term>>,
    pub(super) weights: Option<Vec<f64>>,
}

impl Classes {
    pub(super) fn new(n: usize) -> Classes {
        Classes { n, vocabulary: None, weights: None }
    }

    /// The names and the weights of the classes.
    pub(super) fn fields(&self, fields: &mut Fields<'_>) -> Classes {
        Classes {
            n: self.n,
            vocabulary: fields.value("label_vocabulary", &self.vocabulary),
            weights: fields.optional("class_weights", &self.weights),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.n < 2 {
            return Err(Error::config(format!("the classifier has {} classes; expected at least 2", self.n)));
        }
        if let Some(weights) = &self.weights {
            if weights.len() != self.n {
                let message = format!("there are {} class weights for {} classes", weights.len(), self.n);
                return Err(Error::config(message).help("give one weight for every class, in the order of their ids"));
            }
            if let Some(w) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
                return Err(Error::config(format!("a class weight is {w}; expected 0 or more")));
            }
        }
        let Some(terms) = &self.vocabulary else { return Ok(()) };
        if terms.len() != self.n {
            let message = format!("the label vocabulary has {} terms for {} classes", terms.len(), self.n);
            return Err(Error::config(message).help("name every class once, in the order of their ids"));
        }
        self.table().map(|_| ())
    }

    /// Returns the vocabulary as a table.
    pub(super) fn table(&self) -> Result<Option<LookupTable>> {
        let Some(terms) = &self.vocabulary else { return Ok(None) };
        let texts: Vec<&String> =
            terms.iter().filter_map(|t| if let Term::Text(t) = t { Some(t) } else { None }).collect();
        let ints: Vec<i64> = terms.iter().filter_map(|t| if let Term::Int(n) = t { Some(*n) } else { None }).collect();
        let table = match (texts.is_empty(), ints.is_empty()) {
            (_, true) => LookupTable::from_list(texts),
            (true, false) => LookupTable::from_ints(ints),
            (false, false) => {
                return Err(Error::config("the label vocabulary mixes strings and integers")
                    .help("use only strings or only integers"));
            }
        };
        table.map(Some).map_err(|e| e.context("in the label vocabulary"))
    }

    /// Returns the name of a class.
    pub(super) fn name(&self, id: usize) -> String {
        match self.vocabulary.as_ref().and_then(|terms| terms.get(id)) {
            Some(term) => term.to_string(),
            None => id.to_string(),
        }
    }

    /// Returns the vocabulary for labels of a dtype, or `None` if there is no vocabulary.
    pub(super) fn table_for(&self, labels: &Tensor) -> Result<Option<LookupTable>> {
        let Some(table) = self.table()? else {
            return match labels.dtype() {
                DType::Str => Err(Error::dtype(
                    Some(DType::I64),
                    DType::Str,
                    "the labels are strings, but the head has no label vocabulary",
                )
                .help("name the classes with .label_vocabulary([..])")),
                _ => Ok(None),
            };
        };
        let (expected, found) = (table.dtype(), labels.dtype());
        if (expected == DType::Str) != (found == DType::Str) || found.is_float() {
            let message = format!("the labels are {}, but the label vocabulary holds {expected}", labels.describe());
            return Err(Error::dtype(Some(expected), found, message));
        }
        Ok(Some(table))
    }

    /// Returns the id of each label in the vocabulary, or `None` if there is no vocabulary. A label
    /// that is not in the vocabulary fails the run.
    pub(super) fn looked_up(&self, labels: &Tensor) -> Result<Option<Tensor>> {
        Ok(self.table_for(labels)?.map(|table| table.lookup_known(labels, "label")))
    }

    /// Returns the weights of classes as an array.
    pub(super) fn weights(&self) -> Option<Array> {
        self.weights.as_ref().map(|weights| Array::from(weights.iter().map(|w| *w as f32).collect::<Vec<f32>>()))
    }

    /// Returns the name of each class id.
    pub(super) fn names_of(&self, ids: &Tensor) -> Result<Tensor> {
        Ok(match self.table()? {
            Some(table) => table.reverse(ids, "UNK"),
            None => ids.as_string(),
        })
    }

    /// Returns all names for each row: `[batch, n]`.
    pub(super) fn all_names(&self, logits: &Tensor) -> Result<Tensor> {
        let names: Vec<String> = (0..self.n).map(|id| self.name(id)).collect();
        Ok(self.for_each_row(logits, Array::from_strings([1, self.n], names)?))
    }

    /// Returns all ids for each row: `[batch, n]`, i32 as in TensorFlow.
    pub(super) fn all_ids(&self, logits: &Tensor) -> Result<Tensor> {
        let ids = (0..self.n).map(|id| {
            i32::try_from(id)
                .map_err(|_| Error::config(format!("the head has {} classes; expected at most {}", self.n, i32::MAX)))
        });
        Ok(self.for_each_row(logits, Array::from_vec([1, self.n], ids.collect::<Result<Vec<i32>>>()?)?))
    }

    fn for_each_row(&self, logits: &Tensor, row: Array) -> Tensor {
        let rows = logits.shape().dims().iter().copied().take(1);
        let shape: Shape = rows.chain([Dim::Known(self.n)]).collect();
        logits.graph().constant(row).broadcast_to(shape)
    }
}

/// Returns labels as numbers whose range is checked when they are fed. Booleans count as numbers
/// too.
pub(super) fn between(labels: &Tensor, low: f64, high: f64) -> Tensor {
    match labels.dtype() {
        DType::Bool => labels.cast(DType::F32),
        _ => labels.ensure_between(low, high, "label"),
    }
}

/// Setters of a classifier with a field `classes`.
macro_rules! class_setters {
    ($head:ty, $default:literal) => {
        impl $head {
            #[doc = concat!("The labels of the classes, in order: strings or integers. By default, labels are ", $default, ".")]
            pub fn label_vocabulary<T: Into<crate::head::Term>>(mut self, terms: impl IntoIterator<Item = T>) -> Self {
                self.classes.vocabulary = Some(terms.into_iter().map(Into::into).collect());
                self
            }
        }
    };
}

/// The setter of class weights.
macro_rules! class_weights_setter {
    ($head:ty) => {
        impl $head {
            /// Sets the weight of each class in the loss, in class order. It multiplies the weights
            /// of the examples. Metrics ignore it. By default, all classes have equal weight.
            pub fn class_weights(mut self, weights: impl IntoIterator<Item = f64>) -> Self {
                self.classes.weights = Some(weights.into_iter().collect());
                self
            }
        }
    };
}

pub(super) use {class_setters, class_weights_setter};
