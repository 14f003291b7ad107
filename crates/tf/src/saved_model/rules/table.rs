//! Lookup tables: the resource, the node that fills it, and the lookups.

use std::rc::Rc;

use estimand_graph::op::reading::{Reading, refuse};
use estimand_graph::op::{Constant, Op};
use estimand_graph::{LookupTable, Tensor};
use estimand_tensor::vocabulary::{Terms, VocabularyFile};
use estimand_tensor::{Array, DType, Error, Result};

use super::super::node_output::NodeOutput;
use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::{Number, Numbers};

/// The ops that fill tables.
pub(in super::super) const FILLERS: [&str; 6] = [
    "LookupTableImportV2",
    "LookupTableImport",
    "InitializeTableV2",
    "InitializeTable",
    "InitializeTableFromTextFileV2",
    "InitializeTableFromTextFile",
];

/// TF: the column indices for the whole line of a file and for its line number.
const WHOLE_LINE: i64 = -2;
const LINE_NUMBER: i64 = -1;

/// A table that was filled.
pub(in super::super) struct Table {
    keys: Keys,
    /// The value of each key; `None` if the value is the key's position.
    values: Option<Array>,
    len: usize,
}

impl Table {
    /// The table of terms, if their values are their positions.
    pub(in super::super) fn positions(&self) -> Result<Option<LookupTable>> {
        Ok(match (&self.keys, &self.values) {
            (Keys::Terms(terms), None) => Some(terms.clone()),
            (Keys::Numbers, None) => Some(LookupTable::from_ints((0..self.len as i64).collect::<Vec<i64>>())?),
            (_, Some(_)) => None,
        })
    }
}

enum Keys {
    /// Strings or integers, in this order.
    Terms(LookupTable),
    /// 0, 1, 2, ...
    Numbers,
}

/// Reads a table together with the node that fills it.
pub(super) fn table(call: &mut NodeReader<'_, '_>) -> Outputs {
    let name = &call.def.name;
    let filler = call.reader.nodes.initializer(call.node).ok_or_else(|| {
        Error::config(format!("the graph has no node that fills the table `{name}`"))
            .help("export the model with the initializers of its tables")
    })?;
    let (key, value) = (call.dtype("key_dtype")?, call.dtype("value_dtype")?);
    let inputs = call.reader.nodes.inputs_of(filler)?;
    let mut filled = NodeReader { reader: &mut *call.reader, def: filler, node: call.node, inputs };
    let table = match filler.op.starts_with("InitializeTableFromTextFile") {
        true => from_file(&mut filled, key, value),
        false => from_tensors(&mut filled),
    };
    let table = table.map_err(|e| e.context(format!("in its initializer `{}` ({})", filler.name, filler.op)))?;
    Ok(vec![NodeOutput::Table(Rc::new(table))])
}

/// (table, keys, values).
fn from_tensors(call: &mut NodeReader<'_, '_>) -> Result<Table> {
    let (keys, values) = (call.constant(1)?, call.constant(2)?);
    if keys.rank() != 1 || keys.dims() != values.dims() {
        return Err(Error::shape(format!(
            "the keys are {:?} and the values {:?}; expected two lists of the same length",
            keys.dims(),
            values.dims()
        )));
    }
    let len = keys.len();
    let numbers: Vec<i64> = (0..len as i64).collect();
    let is_numbers = |list: &Array| list.as_slice::<i64>().is_ok_and(|list| list == numbers);
    let values_are_numbers = is_numbers(&values);
    let keys = match keys.dtype() {
        _ if is_numbers(&keys) => Keys::Numbers,
        DType::Str => Keys::Terms(LookupTable::from_list(keys.strings()?)?),
        DType::I64 => Keys::Terms(LookupTable::from_ints(keys.as_slice::<i64>()?.to_vec())?),
        DType::I32 => Keys::Terms(LookupTable::from_ints(
            keys.as_slice::<i32>()?.iter().map(|&k| k.into()).collect::<Vec<i64>>(),
        )?),
        other => return Err(Error::dtype(Some(DType::Str), other, format!("a table of {other} keys cannot be read"))),
    };
    Ok(Table { keys, values: (!values_are_numbers).then_some(values), len })
}

/// (table, file name): maps lines to their numbers, or numbers to lines.
fn from_file(call: &mut NodeReader<'_, '_>, key: DType, value: DType) -> Result<Table> {
    let reference = *call.inputs.get(1).ok_or_else(|| Error::config("the initializer has no file name"))?;
    let name = &call.reader.nodes.def(call.reader.nodes.file(reference).node).name;
    let path = call.reader.surroundings.asset(name).map_or_else(
        || {
            let text = call.constant(1)?;
            let text = text.strings()?.next().unwrap_or_default().to_vec();
            String::from_utf8(text).map(Into::into).map_err(|_| Error::config("the file name is not UTF-8 text"))
        },
        Ok,
    )?;
    let size = usize::try_from(call.int_or("vocab_size", -1)?).ok();
    if call.int_or("offset", 0)? != 0 {
        return Err(refuse("a vocabulary that does not begin at its first line"));
    }
    match (call.int_or("key_index", WHOLE_LINE)?, call.int_or("value_index", LINE_NUMBER)?) {
        (WHOLE_LINE, LINE_NUMBER) => {
            let table = LookupTable::from_file(path, size, key)?;
            let len = table.n_ids();
            Ok(Table { keys: Keys::Terms(table), values: None, len })
        }
        (LINE_NUMBER, WHOLE_LINE) if value == DType::Str => {
            let mut file = VocabularyFile::new(path);
            if let Some(size) = size {
                file = file.size(size);
            }
            let values = strings(&file.terms()?)?;
            Ok(Table { keys: Keys::Numbers, len: values.len(), values: Some(values) })
        }
        (key, value) => Err(refuse(format!("a table that maps column {key} of a file to column {value}"))),
    }
}

fn strings(terms: &Terms) -> Result<Array> {
    let numbers: Vec<i64> = (0..terms.len() as i64).collect();
    let mut text = estimand_tensor::Strings::with_capacity(terms.len());
    terms.find(&numbers, b"", &mut text);
    Array::from_string_list([terms.len()], text)
}

fn table_of(call: &NodeReader<'_, '_>) -> Result<Rc<Table>> {
    match call.item(0)? {
        NodeOutput::Table(table) => Ok(table),
        other => Err(Error::config(format!("input 0 is {}; expected a table", other.kind()))),
    }
}

/// (table, keys, default).
pub(super) fn find(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (table, keys, default) = (table_of(call)?, call.tensor(1)?, call.tensor(2)?);
    let ids = match &table.keys {
        Keys::Numbers => {
            let n = call.graph().constant(Array::scalar(table.len as i64));
            let keys = keys.cast(DType::I64);
            let known = keys.greater_equal(0i64).logical_and(keys.less(&n));
            known.select(&keys, -1i64)
        }
        Keys::Terms(terms) => match (&table.values, single(&default)) {
            // The usual table: ids are the positions of terms, with a constant default.
            (None, Some(id)) => return one(terms.clone().default_id(id).lookup(&keys)),
            _ => terms.clone().default_id(-1).lookup(&keys),
        },
    };
    let known = ids.greater_equal(0i64);
    let found = match &table.values {
        None => ids,
        Some(values) => {
            // The gather needs at least one value, even if the table is empty.
            let values = if table.len == 0 { Array::zeros(values.dtype(), [1])? } else { values.clone() };
            call.graph().constant(values).gather(&ids.maximum(0i64))
        }
    };
    one(known.select(&found, &default))
}

/// Reads the selection of a table with buckets for unknown terms as one lookup.
pub(super) fn with_buckets(call: &mut NodeReader<'_, '_>) -> Result<Option<Tensor>> {
    if !matches!(call.def.op.as_str(), "Select" | "SelectV2") || call.n_inputs() != 3 {
        return Ok(None);
    }
    let (condition, known, behind) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    Ok(estimand_graph::host::table::with_buckets(&condition, &known, &behind))
}

/// The value of a constant integer.
fn single(tensor: &Tensor) -> Option<i64> {
    match &tensor.graph().body().node(tensor.value().node).op {
        Op::Constant(Constant(array)) => array.item::<i64>().ok(),
        _ => None,
    }
}

pub(super) fn size(call: &mut NodeReader<'_, '_>) -> Outputs {
    let table = table_of(call)?;
    one(Numbers::scalar(DType::I64, Number::Known(table.len as i64)))
}
