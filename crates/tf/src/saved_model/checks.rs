//! Checks that we have written: an `Identity` that waits for an `Assert` over its input.
//!
//! The nodes say what is checked, and attributes of the `Assert` hold the words of the error. Other
//! assertions are ignored, as all control inputs are.

use estimand_graph::RaggedTensor;
use estimand_graph::host::assertion::{AGREE, BETWEEN, HELP, KIND, SPLITS, TERMS, WHAT, bounds_of};
use estimand_tensor::{DType, Error};
use estimand_wire::NodeDef;

use super::node_output::NodeOutput;
use super::node_reader::{NodeReader, Outputs, one};
use super::nodes::{Nodes, Reference};

/// A check of a node's input.
pub(super) struct Check {
    what: String,
    help: String,
    kind: Kind,
    value: Reference,
    splits: Option<Reference>,
}

#[derive(Clone, Copy)]
enum Kind {
    Between { low: Reference, high: Reference },
    Terms { table: Reference, terms: Reference },
    Agree(Reference),
}

impl Check {
    /// The check that a node waits for.
    pub(super) fn of(nodes: &Nodes<'_>, def: &NodeDef) -> Option<Check> {
        if def.op != "Identity" {
            return None;
        }
        let (value, waits) = def.input.split_first()?;
        let value = nodes.get(value)?;
        waits.iter().find_map(|name| {
            let assert = nodes.def(nodes.get(name.strip_prefix('^')?)?.node);
            let text = |key: &str| {
                let bytes = assert.attr.get(key).and_then(|attr| attr.bytes());
                bytes.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned())
            };
            let condition = input(nodes, assert, 0).filter(|_| assert.op == "Assert")?;
            let condition = operand(nodes, condition, "All", 0)?;
            let kind = kind(nodes, &text(KIND), condition, value)?;
            let splits = input(nodes, assert, SPLITS);
            Some(Check { what: text(WHAT), help: text(HELP), kind, value, splits })
        })
    }

    /// The values that it needs beside the checked one.
    pub(super) fn inputs(&self) -> impl Iterator<Item = Reference> {
        let of_kind = match self.kind {
            Kind::Between { low, high } => [low, high],
            Kind::Terms { table, terms } => [table, terms],
            Kind::Agree(other) => [other, other],
        };
        of_kind.into_iter().chain(self.splits)
    }

    /// Reads the node that waits for it.
    pub(super) fn read(&self, call: &mut NodeReader<'_, '_>) -> Outputs {
        let reader = &mut *call.reader;
        let splits = self.splits.map(|splits| reader.tensor(splits)).transpose()?;
        if let Some(other) = splits.as_ref().filter(|splits| splits.dtype() != DType::I64 || splits.rank() != 1) {
            return Err(Error::config(format!("the row splits of the check are {}; expected i64[n]", other.spec())));
        }
        let ragged = |values, row_splits| RaggedTensor { values, row_splits };
        match (self.kind, splits) {
            (Kind::Between { low, high }, splits) => {
                let (low, high) = (reader.constant(low)?, reader.constant(high)?);
                let value = reader.tensor(self.value)?;
                let bounds = bounds_of(&low, &high).filter(|_| low.dtype() == value.dtype());
                let Some((low, high)) = bounds else {
                    return Err(Error::config(format!(
                        "the bounds of the check are {low} and {high}; expected numbers"
                    )));
                };
                one(match splits {
                    Some(splits) => ragged(value, splits).ensure_between(low, high, &self.what).values,
                    None if self.help.is_empty() => value.ensure_between(low, high, &self.what),
                    None => value.ensure_between_or_help(low, high, &self.what, &self.help),
                })
            }
            (Kind::Terms { table, terms }, splits) => {
                let NodeOutput::Table(table) = reader.item(table)? else { return one(reader.item(self.value)?) };
                let Some(table) = table.positions()? else { return one(reader.item(self.value)?) };
                let terms = reader.tensor(terms)?;
                one(match splits {
                    Some(splits) => table.lookup_known_ragged(&ragged(terms, splits), &self.what).values,
                    None => table.lookup_known(&terms, &self.what),
                })
            }
            (Kind::Agree(other), _) => {
                let (value, other) = (reader.tensor(self.value)?, reader.tensor(other)?);
                one(value.agree(&other, &self.what))
            }
        }
    }
}

/// The kind of a check, if its condition is about the value and is written as we write it.
fn kind(nodes: &Nodes<'_>, text: &str, condition: Reference, value: Reference) -> Option<Kind> {
    let of = |condition: Reference, op: &str| {
        let compared = operand(nodes, condition, op, 0)?;
        operand(nodes, condition, op, 1).filter(|_| compared == value)
    };
    match text {
        BETWEEN => {
            let (above, below) =
                (operand(nodes, condition, "LogicalAnd", 0)?, operand(nodes, condition, "LogicalAnd", 1)?);
            Some(Kind::Between { low: of(above, "GreaterEqual")?, high: of(below, "LessEqual")? })
        }
        TERMS => {
            of(condition, "GreaterEqual")?;
            let find = |i: usize| operand(nodes, value, "LookupTableFindV2", i);
            Some(Kind::Terms { table: find(0)?, terms: find(1)? })
        }
        AGREE => of(condition, "Equal").map(Kind::Agree),
        _ => None,
    }
}

/// An input of the node that a value is the first output of, if it has this op.
fn operand(nodes: &Nodes<'_>, value: Reference, op: &str, i: usize) -> Option<Reference> {
    let def = nodes.def(value.node);
    input(nodes, def, i).filter(|_| def.op == op && value.output == 0)
}

fn input(nodes: &Nodes<'_>, def: &NodeDef, i: usize) -> Option<Reference> {
    nodes.get(def.input.get(i).filter(|name| !name.starts_with('^'))?)
}
