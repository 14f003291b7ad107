//! Replaces matches, with RE2's rewrite strings and RE2's order of matches.

use regex::bytes::{CaptureLocations, Regex};

use super::{compile, syntax};
use crate::cpu::text::limit::check_size;
use crate::{Error, Result, StringSlice, Strings};

/// A compiled pattern and its replacement.
///
/// In the rewrite `\0` is the match, `\1` to `\9` are its groups, `\\` is a backslash.
///
/// ```
/// # use estimand_tensor::{Strings, cpu::text::RegexReplace};
/// let dates: Strings = ["on 2017-08-03", "never"].into_iter().collect();
/// let mut out = Strings::default();
/// RegexReplace::new(r"(\d+)-(\d+)-(\d+)", br"\3.\2.\1", true)?.apply(dates.as_slice(), &mut out)?;
/// assert_eq!(out, ["on 03.08.2017", "never"].into_iter().collect());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegexReplace {
    regex: Regex,
    rewrite: Vec<RewritePiece>,
    replace_global: bool,
}

/// A piece of a rewrite.
#[derive(Clone, PartialEq, Eq, Debug)]
enum RewritePiece {
    Text(Vec<u8>),
    Group(usize),
}

impl RegexReplace {
    /// Compiles a pattern. `replace_global` replaces all matches, otherwise only the first.
    ///
    /// A rewrite with another escape, or with a group that the pattern does not have, is an error.
    /// TensorFlow logs such a rewrite and returns the strings unchanged or with a part missing.
    pub fn new(pattern: &str, rewrite: &[u8], replace_global: bool) -> Result<RegexReplace> {
        let regex = compile(pattern, &syntax::translate(pattern)?)?;
        let rewrite = parse(rewrite, regex.captures_len() - 1)?;
        Ok(RegexReplace { regex, rewrite, replace_global })
    }

    /// Appends the strings with their matches replaced to `out`.
    pub fn apply(&self, strings: StringSlice<'_>, out: &mut Strings) -> Result<()> {
        let mut groups = self.regex.capture_locations();
        for string in strings {
            self.replace(string, &mut groups, out)?;
            out.finish();
        }
        Ok(())
    }

    fn replace(&self, text: &[u8], groups: &mut CaptureLocations, out: &mut Strings) -> Result<()> {
        let (mut at, mut last_end) = (0, None);
        while at <= text.len() {
            let Some(found) = self.regex.captures_read_at(groups, text, at) else { break };
            out.write(&text[at..found.start()]);
            if found.is_empty() && last_end == Some(found.start()) {
                // An empty match right after a match does not count: continue after the next
                // character.
                let next = found.start() + char_len(&text[found.start()..]);
                out.write(&text[found.start()..next.min(text.len())]);
                at = next;
                continue;
            }
            for part in &self.rewrite {
                match part {
                    RewritePiece::Text(bytes) => out.write(bytes),
                    RewritePiece::Group(group) => {
                        let (start, end) = groups.get(*group).unwrap_or_default();
                        out.write(&text[start..end]);
                    }
                }
            }
            check_size("a regex_replace", out.written_len())?;
            (at, last_end) = (found.end(), Some(found.end()));
            if !self.replace_global {
                break;
            }
        }
        out.write(text.get(at..).unwrap_or_default());
        Ok(())
    }
}

/// The number of bytes of the first character of a text; 1 for an invalid byte, and at the end of
/// the text.
fn char_len(text: &[u8]) -> usize {
    let head = &text[..text.len().min(4)];
    match std::str::from_utf8(head) {
        Ok(valid) => valid.chars().next().map_or(1, char::len_utf8),
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()])
            .ok()
            .and_then(|s| s.chars().next())
            .map_or(1, char::len_utf8),
    }
}

/// Parses a rewrite into its pieces.
fn parse(rewrite: &[u8], n_groups: usize) -> Result<Vec<RewritePiece>> {
    let bad = |what: String| {
        Err(Error::config(format!("invalid rewrite \"{}\": {what}", rewrite.escape_ascii()))
            .help(r"write \0 for the match, \1 to \9 for its groups, \\ for a backslash"))
    };
    let mut parts = vec![];
    let mut text = vec![];
    let mut bytes = rewrite.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'\\') => text.push(b'\\'),
                Some(digit @ b'0'..=b'9') => {
                    let group = usize::from(digit - b'0');
                    if group > n_groups {
                        return bad(format!("it uses group {group}, but the pattern has {n_groups} groups"));
                    }
                    parts.push(RewritePiece::Text(std::mem::take(&mut text)));
                    parts.push(RewritePiece::Group(group));
                }
                Some(other) => return bad(format!("it has the unknown escape \\{}", other.escape_ascii())),
                None => return bad("it ends in a backslash".into()),
            },
            _ => text.push(byte),
        }
    }
    parts.push(RewritePiece::Text(text));
    parts.retain(|part| *part != RewritePiece::Text(vec![]));
    Ok(parts)
}
