//! Explanations of rows (`:predict?explain=1`): what each column made of a row, and which inputs
//! took their defaults.
//!
//! The tensors that an export names are computed row by row, so all their values belong to the row.

use estimand_tensor::{Array, DType};

use crate::json::{Rows, Writer, write_elements, write_f64};
use crate::model::{Column, Made, Signature};
use crate::status::{Answer, Status};

/// The most rows that one request may have explained.
const MAX_ROWS: usize = 1_000;

/// Whether the query of a request asks for explanations.
pub(crate) fn is_asked(query: Option<&str>) -> Answer<bool> {
    let pairs = query.unwrap_or_default().split('&');
    match pairs.filter_map(|pair| pair.strip_prefix("explain=")).next_back() {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(other) => Err(Status::invalid(format!("explain is `{other}`; expected explain=1 or explain=0"))),
    }
}

/// The explanations of all rows: a list of objects, one for each row.
pub(crate) fn rows(signature: &Signature, rows: &Rows) -> Answer<Vec<u8>> {
    if signature.columns.is_empty() {
        return Err(Status::invalid(format!(
            "signature `{}` cannot be explained: its export does not say which tensors show the work of its columns; \
             exports of Estimand do, for models with categories or buckets",
            signature.name
        )));
    }
    let n_rows = signature.check(&rows.arrays)?;
    if n_rows > MAX_ROWS {
        return Err(Status::invalid(format!("{n_rows} rows cannot be explained at once; the limit is {MAX_ROWS}")));
    }
    let mut writer = Writer::default();
    writer.raw("[");
    for row in 0..n_rows {
        let arrays = rows.arrays.iter().map(|array| Ok(array.rows(row..row + 1)?)).collect::<Answer<Vec<_>>>()?;
        let more = signature.compute(&arrays)?.more;
        writer.raw(if row > 0 { ",\n        {" } else { "\n        {" });
        let mut is_first = true;
        for (column, place) in &signature.columns {
            if let Some(made) = more.get(*place) {
                name(&mut writer, &column.name, &mut is_first);
                let is_default = column.inputs.iter().any(|input| took_default(signature, rows, input, row));
                explain(&mut writer, column, made, is_default)?;
            }
        }
        // Inputs that no column of ids or buckets reads.
        for (input, array) in signature.inputs.iter().zip(&arrays) {
            let is_shown = signature.columns.iter().any(|(column, _)| column.inputs.contains(&input.name));
            if !is_shown && took_default(signature, rows, &input.name, row) {
                name(&mut writer, &input.name, &mut is_first);
                writer.raw("{\"default\": true, \"value\": ");
                values(&mut writer, array)?;
                writer.raw("}");
            }
        }
        writer.raw("}");
    }
    writer.raw("\n    ]");
    Ok(writer.out)
}

fn name(writer: &mut Writer, name: &str, is_first: &mut bool) {
    writer.raw(if std::mem::take(is_first) { "" } else { ", " }).text(name.as_bytes()).raw(": ");
}

fn took_default(signature: &Signature, rows: &Rows, input: &str, row: usize) -> bool {
    let i = signature.inputs.iter().position(|known| known.name == input);
    i.and_then(|i| rows.defaulted.get(i)).is_some_and(|rows| rows.contains(&row))
}

/// One value, a list of others, or `null` for none.
fn values(writer: &mut Writer, array: &Array) -> Answer<()> {
    match array.len() {
        0 => _ = writer.raw("null"),
        1 => write_elements(writer, array)?,
        _ => {
            writer.raw("[");
            write_elements(writer, array)?;
            writer.raw("]");
        }
    }
    Ok(())
}

fn explain(writer: &mut Writer, column: &Column, made: &Array, is_default: bool) -> Answer<()> {
    let numbers = match made.dtype() {
        DType::I32 | DType::I64 => made.to_f64_vec()?,
        DType::F32 | DType::F64 | DType::U8 | DType::Bool | DType::Str => Vec::new(),
    };
    match &column.made {
        Made::Term { unknown } => {
            writer.raw("{\"id\": ");
            values(writer, made)?;
            if let Some(unknown) = unknown {
                let is_unknown = numbers.iter().any(|&id| unknown.has(id as i64));
                writer.raw(if is_unknown { ", \"unknown\": true" } else { ", \"unknown\": false" });
            }
        }
        Made::Hash => {
            writer.raw("{\"id\": ");
            values(writer, made)?;
        }
        Made::Bucket { boundaries } => {
            writer.raw("{\"bucket\": ");
            values(writer, made)?;
            if let [bucket] = numbers[..] {
                let i = bucket as usize;
                let mut end = |name: &str, at: Option<&f64>| {
                    if let Some(&at) = at {
                        writer.raw(name);
                        write_f64(at, &mut writer.out);
                    }
                };
                end(", \"from\": ", i.checked_sub(1).and_then(|i| boundaries.get(i)));
                end(", \"below\": ", boundaries.get(i));
            }
        }
    }
    writer.raw(if is_default { ", \"default\": true}" } else { ", \"default\": false}" });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        for (query, expected) in [
            (None, Some(false)),
            (Some("explain=1"), Some(true)),
            (Some("a=b&explain=true"), Some(true)),
            (Some("explain=0"), Some(false)),
            (Some("explain"), Some(false)),
            (Some("explain=yes"), None),
        ] {
            assert_eq!(is_asked(query).ok(), expected, "{query:?}");
        }
    }
}
