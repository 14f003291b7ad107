//! One node with its inputs. What a node has and its operator does not read is an error, so that no
//! attribute is ignored.

use std::cell::RefCell;
use std::collections::BTreeSet;

use estimand_tensor::{Array, Error, Result};

use super::values::integers;
use crate::message::{AttributeProto, GraphProto, NodeProto};

/// The call of an operator.
pub(super) struct Call<'a> {
    node: &'a NodeProto,
    inputs: Vec<Option<Array>>,
    read: RefCell<BTreeSet<String>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(node: &'a NodeProto, inputs: Vec<Option<Array>>) -> Call<'a> {
        Call { node, inputs, read: RefCell::default() }
    }

    pub(super) fn op(&self) -> &'a str {
        &self.node.op_type
    }

    /// An input that may be left out.
    pub(super) fn optional(&self, i: usize) -> Option<&Array> {
        self.read.borrow_mut().insert(format!("input {i}"));
        self.inputs.get(i)?.as_ref()
    }

    pub(super) fn x(&self, i: usize) -> Result<&Array> {
        self.optional(i).ok_or_else(|| Error::config(format!("input {i} is missing")))
    }

    /// All inputs.
    pub(super) fn all(&self) -> Result<Vec<&Array>> {
        (0..self.inputs.len()).map(|i| self.x(i)).collect()
    }

    /// An input of integers.
    pub(super) fn ints_of(&self, i: usize) -> Result<Vec<i64>> {
        integers(self.x(i)?)
    }

    /// An input of one integer.
    pub(super) fn int_of(&self, i: usize) -> Result<i64> {
        match self.ints_of(i)?.as_slice() {
            [one] => Ok(*one),
            many => Err(Error::shape(format!("input {i} has {} numbers; expected one", many.len()))),
        }
    }

    fn attribute<T>(&self, name: &str, of: impl Fn(&'a AttributeProto) -> Option<T>) -> Result<Option<T>> {
        self.read.borrow_mut().insert(name.to_string());
        let Some(found) = self.node.attribute.iter().find(|attribute| attribute.name == name) else { return Ok(None) };
        let wrong = || Error::config(format!("attribute `{name}` is of another kind"));
        of(found).map(Some).ok_or_else(wrong)
    }

    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.attribute(name, |a| a.i)?.unwrap_or(default))
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int(name, default.into())? != 0)
    }

    pub(super) fn float(&self, name: &str, default: f32) -> Result<f64> {
        Ok(self.attribute(name, |a| a.f)?.unwrap_or(default).into())
    }

    pub(super) fn ints(&self, name: &str) -> Result<Option<&'a [i64]>> {
        self.attribute(name, |a| (a.r#type == Some(7)).then_some(&a.ints[..]))
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Option<&'a [u8]>> {
        self.attribute(name, |a| a.s.as_deref())
    }

    pub(super) fn texts(&self, name: &str) -> Result<Option<&'a [Vec<u8>]>> {
        self.attribute(name, |a| (a.r#type == Some(8)).then_some(&a.strings[..]))
    }

    /// A word of a few that the operator knows.
    pub(super) fn word(&self, name: &str, default: &'a str) -> Result<&'a str> {
        Ok(self.attribute(name, |a| std::str::from_utf8(a.s.as_deref()?).ok())?.unwrap_or(default))
    }

    pub(super) fn graph(&self, name: &str) -> Result<&'a GraphProto> {
        let found = self.attribute(name, |a| a.g.as_ref())?;
        found.ok_or_else(|| Error::config(format!("attribute `{name}` is missing")))
    }

    /// The number of values that the node names.
    pub(super) fn n_outputs(&self) -> usize {
        self.node.output.len()
    }

    /// The error of a word that the operator does not know here.
    pub(super) fn unknown_word<T>(&self, name: &str, word: &str) -> Result<T> {
        Err(Error::unsupported(format!("`{name}` is `{word}`, which this library does not write")))
    }

    /// Refuses inputs and attributes that the operator has not read.
    pub(super) fn check_read(&self) -> Result<()> {
        let read = self.read.borrow();
        if let Some(unread) = self.node.attribute.iter().find(|attribute| !read.contains(&attribute.name)) {
            let text = format!("attribute `{}` is not one that this library writes for the operator", unread.name);
            return Err(Error::unsupported(text));
        }
        let given = self.inputs.iter().enumerate().filter(|(_, input)| input.is_some());
        match given.map(|(i, _)| i).find(|i| !read.contains(&format!("input {i}"))) {
            Some(i) => Err(Error::unsupported(format!("input {i} is not one that this library writes"))),
            None => Ok(()),
        }
    }
}
