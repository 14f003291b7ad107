//! Parses the names of splits and pieces of them: `train`, `train[:80%]`, `test[100:200]`.

use estimand_tensor::{Error, Result};

use super::catalogue::{Entry, Split};
use super::row_range::Cut;

/// Returns the split and, if there are brackets, the two boundaries of its piece.
pub(crate) fn parse(entry: &'static Entry, text: &str) -> Result<(&'static Split, Option<[Cut; 2]>)> {
    let (name, piece) = match text.split_once('[') {
        None => (text, None),
        Some((name, rest)) => (name, Some(parse_piece(rest).ok_or_else(|| bad_piece(text))?)),
    };
    match entry.splits.iter().find(|split| split.name == name) {
        Some(split) => Ok((split, piece)),
        None => {
            let known: Vec<_> = entry.splits.iter().map(|split| split.name).collect();
            Err(Error::config(format!("{} has no split `{name}`", entry.name)).help(format!("choose one of {known:?}")))
        }
    }
}

fn parse_piece(rest: &str) -> Option<[Cut; 2]> {
    let (from, to) = rest.strip_suffix(']')?.split_once(':')?;
    Some([parse_cut(from, Cut::BEGINNING)?, parse_cut(to, Cut::END)?])
}

fn parse_cut(text: &str, absent: Cut) -> Option<Cut> {
    match text.strip_suffix('%') {
        _ if text.is_empty() => Some(absent),
        Some(percent) => {
            percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).map(|p: f64| Cut::Share(p / 100.0))
        }
        None => text.parse().ok().map(Cut::Row),
    }
}

fn bad_piece(text: &str) -> Error {
    Error::config(format!("`{text}` is not a piece of a split"))
        .help("write train[:80%], train[80%:] or train[100:200]; percents lie between 0 and 100")
}
