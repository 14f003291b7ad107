//! The values of a request as arrays: rows of named values, or columns.

use estimand_tensor::Array;

use super::column::{Column, is_base64};
use super::excerpt::excerpt;
use super::input::{Input, UnknownKeys};
use super::reader::{Fault, Kind, Read, Reader};
use crate::status::{Answer, Status};

/// The values of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// An array for each input, in the order of the inputs.
    pub(crate) arrays: Vec<Array>,
    /// The rows of each input that took its default. Inputs at the end may be left out.
    pub(crate) defaulted: Vec<Vec<usize>>,
    /// Names that the signature does not have, without those after the first few.
    pub(crate) unknown: Vec<String>,
}

/// The number of unknown names that are noted.
const MAX_UNKNOWN: usize = 16;

/// Inputs of which none is missing.
impl From<Vec<Array>> for Rows {
    fn from(arrays: Vec<Array>) -> Rows {
        Rows { arrays, ..Rows::default() }
    }
}

impl Rows {
    /// Inputs of which some are missing and take their defaults.
    pub(crate) fn filled<'a>(
        inputs: &[Input],
        found: Vec<Option<Array>>,
        unknown: impl Iterator<Item = &'a str>,
    ) -> Answer<Rows> {
        let mut rows = Rows::default();
        unknown.for_each(|name| rows.note(name.as_bytes()));
        let n_rows = found.iter().flatten().find_map(|array| array.dims().first().copied()).unwrap_or(1);
        for (input, found) in inputs.iter().zip(found) {
            rows.defaulted.push(if found.is_none() { (0..n_rows).collect() } else { Vec::new() });
            rows.arrays.push(found.map_or_else(|| input.default_rows(n_rows), Answer::Ok)?);
        }
        Ok(rows)
    }

    fn note(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        if self.unknown.len() < MAX_UNKNOWN && !self.unknown.iter().any(|known| *known == name) {
            self.unknown.push(name.into_owned());
        }
    }
}

/// Whether the next value is an object, and not a string in base 64.
fn is_row(reader: &mut Reader<'_>) -> Read<bool> {
    Ok(reader.kind()? == Kind::Object && !is_base64(reader)?)
}

/// Reads a list of rows; an empty list gives no arrays.
pub(super) fn rows(reader: &mut Reader<'_>, inputs: &[Input], unknown_keys: UnknownKeys) -> Read<Rows> {
    if reader.kind()? != Kind::Array {
        reader.skip()?;
        return Ok(Rows::default());
    }
    reader.open();
    if !reader.element(true)? {
        return Ok(Rows::default());
    }
    if reader.kind()? != Kind::Object && inputs.len() > 1 {
        return Err(Status::invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per \
             tensorinfo_map",
        )
        .into());
    }
    let has_objects = is_row(reader)?;
    let mut table = Table::new(inputs, unknown_keys);
    let mut n = 0;
    loop {
        if is_row(reader)? != has_objects {
            let (expected, found) = if has_objects { ("object", "list") } else { ("value/list", "object") };
            return Err(
                Status::invalid(format!("Expecting {expected} but got {found} at item {n} of input list")).into()
            );
        }
        match has_objects {
            true => table.row(reader, n)?,
            false => table.value(reader, 0).map_err(|fault| {
                within(fault, |error| format!("Failed to process element: {n} of 'instances' list. Error: {error}"))
            })?,
        }
        n += 1;
        if !reader.element(false)? {
            break;
        }
    }
    Ok(table.finish(n)?)
}

/// Changes the message of a wrong value; a text that is no JSON keeps its own.
fn within(fault: Fault, text: impl FnOnce(Status) -> String) -> Fault {
    match fault {
        Fault::Meaning(status) => Fault::Meaning(Status::invalid(text(status))),
        syntax => syntax,
    }
}

/// The columns that rows of named values are read into.
struct Table<'a> {
    inputs: &'a [Input],
    columns: Vec<Column>,
    /// The index of the input that is named next, if rows name them in the same order.
    order: Vec<usize>,
    unknown_keys: UnknownKeys,
    rows: Rows,
}

impl<'a> Table<'a> {
    fn new(inputs: &'a [Input], unknown_keys: UnknownKeys) -> Table<'a> {
        let columns =
            inputs.iter().map(|input| Column::new(input.dtype).with_default(input.default.as_ref())).collect();
        Table { inputs, columns, order: Vec::with_capacity(inputs.len()), unknown_keys, rows: Rows::default() }
    }

    /// The input with a name. `at` is its place in the row: rows usually have one order.
    fn find(&mut self, at: usize, name: &[u8]) -> Option<usize> {
        if let Some(&i) = self.order.get(at)
            && self.inputs[i].name.as_bytes() == name
        {
            return Some(i);
        }
        let found = self.inputs.iter().position(|input| input.name.as_bytes() == name)?;
        if self.order.len() == at {
            self.order.push(found);
        }
        Some(found)
    }

    /// Reads a value of an input; `null` takes the default.
    fn value(&mut self, reader: &mut Reader<'_>, i: usize) -> Read<()> {
        let (input, column) = (&self.inputs[i], &mut self.columns[i]);
        if reader.kind()? == Kind::Null && input.default.is_some() {
            reader.literal()?;
            column.absent(input.is_padded)?;
            return Ok(());
        }
        column.item(reader).map_err(|fault| match input.example.is_some() {
            true => within(fault, |error| format!("{}; {}", error.message, input.expected())),
            false => fault,
        })
    }

    fn row(&mut self, reader: &mut Reader<'_>, n: usize) -> Read<()> {
        let start = reader.position();
        reader.open();
        let (mut at, mut n_found) = (0, 0);
        while let Some(name) = reader.name(at == 0)? {
            let place = |status: Status| {
                let name = String::from_utf8_lossy(&name);
                format!("Failed to process element: {n} key: {name} of 'instances' list. Error: {status}")
            };
            let found = self.find(at, &name);
            at += 1;
            let Some(i) = found else {
                if self.unknown_keys.is_error(false) {
                    let name = String::from_utf8_lossy(&name);
                    let status = Status::invalid(format!("JSON object: does not have named input: {name}"));
                    return Err(Status::invalid(place(status)).into());
                }
                self.rows.note(&name);
                reader.skip()?;
                continue;
            };
            if self.columns[i].n_items() > n {
                return Err(Status::invalid(place(Status::invalid("the key appears twice"))).into());
            }
            self.value(reader, i).map_err(|fault| within(fault, place))?;
            n_found += 1;
        }
        if n_found != self.inputs.len() {
            self.fill(n).map_err(|missing| {
                let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
                Status::invalid(format!(
                    "Failed to process element: {n} of 'instances' list. JSON object: {} keys must be equal to: {}. {}",
                    excerpt(reader.text_at(start)),
                    names.join(","),
                    missing.message
                ))
            })?;
        }
        Ok(())
    }

    /// Gives the inputs that a row does not name their defaults.
    fn fill(&mut self, n: usize) -> Answer<()> {
        for (input, column) in self.inputs.iter().zip(&mut self.columns) {
            if column.n_items() <= n && !column.absent(input.is_padded)? {
                return Err(Status::invalid(input.is_required()));
            }
        }
        Ok(())
    }

    fn finish(mut self, n_rows: usize) -> Answer<Rows> {
        for column in self.columns {
            self.rows.defaulted.push(column.defaulted_rows(n_rows));
            self.rows.arrays.push(column.into_rows()?);
        }
        Ok(self.rows)
    }
}

/// Reads columns: an object with an array for each input, or the array of the only input.
pub(super) fn columns(reader: &mut Reader<'_>, inputs: &[Input], unknown_keys: UnknownKeys) -> Read<Rows> {
    if !is_row(reader)? {
        let [input] = inputs else {
            return Err(Status::invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per \
                 tensorinfo_map",
            )
            .into());
        };
        let (array, defaulted) = column(reader, input)?;
        return Ok(Rows { arrays: vec![array], defaulted: vec![defaulted], unknown: Vec::new() });
    }
    let mut rows = Rows::default();
    let mut found: Vec<Option<(Array, Vec<usize>)>> = vec![None; inputs.len()];
    reader.open();
    let mut is_first = true;
    while let Some(name) = reader.name(is_first)? {
        is_first = false;
        let Some(i) = inputs.iter().position(|input| input.name.as_bytes() == &*name) else {
            if unknown_keys.is_error(true) {
                let name = String::from_utf8_lossy(&name);
                return Err(Status::invalid(format!("JSON object: does not have named input: {name}")).into());
            }
            rows.note(&name);
            reader.skip()?;
            continue;
        };
        if found[i].is_some() {
            reader.skip()?;
            continue;
        }
        let read = column(reader, &inputs[i]).map_err(|fault| {
            within(fault, |error| format!("Failed to process key: {} of 'inputs'. Error: {error}", inputs[i].name))
        })?;
        found[i] = Some(read);
    }
    let n_rows = found.iter().flatten().find_map(|(array, _)| array.dims().first().copied());
    for (input, found) in inputs.iter().zip(found) {
        let absent = || {
            let default = input.default_rows(n_rows.unwrap_or(1)).map_err(|status| {
                Status::invalid(format!("Missing named input: {} in 'inputs' object. {}", input.name, status.message))
            })?;
            Ok((default, (0..n_rows.unwrap_or(1)).collect()))
        };
        let (array, defaulted) = found.map_or_else(absent, Answer::Ok)?;
        rows.arrays.push(array);
        rows.defaulted.push(defaulted);
    }
    Ok(rows)
}

/// Reads the values of one input, and finds the rows that took its default.
fn column(reader: &mut Reader<'_>, input: &Input) -> Read<(Array, Vec<usize>)> {
    let mut column = Column::new(input.dtype).with_default(input.default.as_ref());
    column.item(reader)?;
    let n_rows = column.n_outer();
    let defaulted = column.defaulted_rows(n_rows);
    Ok((column.into_item()?, defaulted))
}
