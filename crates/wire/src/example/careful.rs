//! The slow path for one row: accepts every legal encoding and duplicates, and reports precise
//! errors.
//!
//! The fast path (`parser.rs`) gives up at the first unusual byte and calls this module.

use estimand_tensor::{Error, ErrorKind, Result};

use super::cursor::{Cursor, DELIMITED};
use super::plan::{FeaturePlan, Length, Plan};
use super::rows::Rows;
use super::values::{ListKind, Values};

/// The key and value of a map entry.
pub(super) type Entry<'a> = (&'a [u8], &'a [u8]);

/// The error of damaged bytes.
pub(super) type Damage = &'static str;

/// An error in a row. `row` counts from 0, and the message from 1. `feature` is `None` if the
/// feature is not known.
pub(super) fn row_error(row: usize, feature: Option<&str>, message: String) -> Error {
    let kind = ErrorKind::Data { path: None, row: Some(row as u64 + 1), column: feature.map(str::to_string) };
    Error::new(kind, message).context(format!("in row {} of the batch", row + 1))
}

/// Calls `visit` with the fields of a message: their numbers, and the contents of length-delimited
/// ones.
///
/// A field may occur several times: protobuf merges messages by joining their bytes.
pub(super) fn fields<'a>(
    message: &'a [u8],
    mut visit: impl FnMut(u64, Option<&'a [u8]>) -> Result<(), Damage>,
) -> Result<(), Damage> {
    const DAMAGE: Damage = "a field is damaged";
    let mut message = Cursor::new(message);
    while !message.is_empty() {
        match message.field().ok_or(DAMAGE)? {
            (number, DELIMITED) => visit(number, Some(message.delimited().ok_or(DAMAGE)?))?,
            (number, wire) => {
                message.skip(wire).ok_or(DAMAGE)?;
                visit(number, None)?;
            }
        }
    }
    Ok(())
}

/// Appends the entries of a map message, in order.
pub(super) fn entries<'a>(map: &'a [u8], out: &mut Vec<Entry<'a>>) -> Result<(), Damage> {
    const DAMAGE: Damage = "an entry of a map is damaged";
    fields(map, |number, contents| {
        if number == 1 {
            out.push(contents.and_then(entry).ok_or(DAMAGE)?);
        }
        Ok(())
    })
}

/// Parses a key and a value in either order; a missing one is empty. Other fields are refused,
/// because implementations of protobuf disagree about such entries.
fn entry(bytes: &[u8]) -> Option<Entry<'_>> {
    let (mut key, mut value) = (None, None);
    let mut entry = Cursor::new(bytes);
    while !entry.is_empty() {
        let slot = match entry.field()? {
            (1, DELIMITED) => &mut key,
            (2, DELIMITED) => &mut value,
            _ => return None,
        };
        if slot.replace(entry.delimited()?).is_some() {
            return None;
        }
    }
    Some((key.unwrap_or_default(), value.unwrap_or_default()))
}

/// The list in a `Feature`; `None` if it has no list.
pub(super) fn list(feature: &[u8]) -> Result<Option<(ListKind, &[u8])>, Damage> {
    const DAMAGE: Damage = "its bytes are damaged";
    let mut found = None;
    let mut feature = Cursor::new(feature);
    while !feature.is_empty() {
        let (number, wire) = feature.field().ok_or(DAMAGE)?;
        match ListKind::ALL.into_iter().find(|&kind| kind as u64 == number) {
            None => feature.skip(wire).ok_or(DAMAGE)?,
            Some(_) if wire != DELIMITED => return Err("its list has a wrong wire type"),
            // If there are two lists, protobuf takes the last and TensorFlow the first.
            Some(_) if found.is_some() => return Err("it has two lists"),
            Some(kind) => found = Some((kind, feature.delimited().ok_or(DAMAGE)?)),
        }
    }
    Ok(found)
}

/// Appends one row from the entries of its features, in order.
pub(super) fn append_row(plan: &Plan, rows: &mut Rows, entries: &[Entry<'_>], row: usize) -> Result<()> {
    let n_rows = rows.n_rows;
    // From last to first, because the last of equal keys counts.
    for &(key, value) in entries.iter().rev() {
        let Some(i) = plan.index.find(key) else { continue };
        let (feature, column) = (&plan.features[i], &mut rows.columns[i]);
        let error = |message: String| row_error(row, Some(&feature.name), message);
        let list = list(value).map_err(|damage| error(format!("feature `{}`: {damage}", feature.name)))?;
        match (list, &feature.length) {
            // TF: for a feature of fixed or padded length, an empty value does not count, not even
            // as the last of its key.
            (None, Length::Fixed { .. } | Length::Padded { .. }) => {}
            _ if column.is_found(n_rows) => {}
            (None, Length::Ragged) => column.read_nothing(n_rows),
            (Some((kind, _)), _) if kind != feature.kind => return Err(error(wrong_kind(feature, kind))),
            (Some((_, list)), length) => {
                if column.read(list, length, n_rows).is_none() {
                    return Err(error(wrong_list(feature, list)));
                }
            }
        }
    }
    for (feature, column) in plan.features.iter().zip(&mut rows.columns) {
        if !column.is_found(n_rows) && column.miss(&feature.length).is_none() {
            let message = format!("feature `{}` is missing and has no default", feature.name);
            return Err(row_error(row, Some(&feature.name), message).help("give it a default, or read it as ragged"));
        }
    }
    rows.n_rows += 1;
    Ok(())
}

pub(super) fn wrong_kind(feature: &FeaturePlan, kind: ListKind) -> String {
    let FeaturePlan { name, kind: expected, .. } = feature;
    let dtype = expected.dtype();
    format!("feature `{name}` is {}, expected {} ({dtype})", kind.name(), expected.name())
}

/// The reason why a list of the right kind was refused.
fn wrong_list(feature: &FeaturePlan, list: &[u8]) -> String {
    let FeaturePlan { name, kind, length } = feature;
    let mut values = Values::new(*kind, 0);
    if values.read(list).is_none() {
        return format!("feature `{name}`: its {} is damaged", kind.name());
    }
    let given = values.len();
    match length {
        Length::Fixed { dims, width, .. } => {
            format!("feature `{name}` has {given} values, expected {width} for {dims:?}")
        }
        Length::Padded { dims, width, .. } => {
            format!("feature `{name}` has {given} values, expected a multiple of {width}, for steps of {dims:?}")
        }
        Length::Ragged => format!("feature `{name}` has {given} values"),
    }
}
