//! A single term of a vocabulary: the masked one, or the one for unknown values.

use estimand_graph::Tensor;
use estimand_tensor::{Array, Result};

use crate::column::TermList;
use crate::config::{Field, Json, Node};

/// A string or an integer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Term {
    Text(String),
    Integer(i64),
}

impl From<&str> for Term {
    fn from(text: &str) -> Term {
        Term::Text(text.to_string())
    }
}

impl From<i64> for Term {
    fn from(n: i64) -> Term {
        Term::Integer(n)
    }
}

impl Term {
    /// Whether each value of a tensor is this term.
    #[track_caller]
    pub fn is(&self, x: &Tensor) -> Tensor {
        match self {
            Term::Integer(n) => x.equal(*n),
            Term::Text(text) => match Array::from_strings([], [text]) {
                Ok(text) => x.string_equal(&x.graph().constant(text)),
                Err(error) => x.graph().error(error),
            },
        }
    }

    /// Whether the term is at a place of a list.
    pub fn is_at(&self, terms: &TermList, place: usize) -> bool {
        match (self, terms) {
            (Term::Text(text), TermList::Text(terms)) => {
                place < terms.len() && terms.as_slice().get(place) == text.as_bytes()
            }
            (Term::Integer(n), TermList::Integers(terms)) => terms.get(place) == Some(n),
            _ => false,
        }
    }
}

impl Field for Term {
    fn write(&self) -> Result<Json> {
        Ok(match self {
            Term::Text(text) => text.as_str().into(),
            Term::Integer(n) => (*n).into(),
        })
    }

    fn read(node: &Node<'_>) -> Result<Term> {
        match node.value() {
            Json::String(text) => Ok(Term::Text(text.clone())),
            value => value.as_i64().map(Term::Integer).ok_or_else(|| node.expected("a string or an integer")),
        }
    }
}
