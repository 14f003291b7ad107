//! How texts become tokens: `standardize`, `split` and n-grams.

use estimand_graph::{Encoding, RaggedTensor, Tensor};
use estimand_tensor::{DType, Dim, Error};

use crate::config::Fields;

/// What is done to a text before it is split.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Standardize {
    /// Nothing.
    No,
    /// ASCII letters become small.
    Lower,
    /// Punctuation is removed.
    StripPunctuation,
    /// Both.
    #[default]
    LowerAndStripPunctuation,
}

/// Where a text is split into tokens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Split {
    /// Nowhere: each string of `[batch, tokens]` is a token.
    No,
    /// At white space.
    #[default]
    Whitespace,
    /// After every character of UTF-8. The control character U+001F is left out.
    Character,
}

/// Keras' list of punctuation.
const PUNCTUATION: &str = r##"[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"##;

/// A character that separates others while a text is split.
const SEPARATOR: &str = "\u{1f}";

/// The way from a text to its tokens.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tokens {
    pub standardize: Standardize,
    pub split: Split,
    pub ngrams: Option<usize>,
}

impl Tokens {
    pub fn fields(self, fields: &mut Fields<'_>) -> Tokens {
        let standardize = [
            ("lower", Standardize::Lower),
            ("strip_punctuation", Standardize::StripPunctuation),
            ("lower_and_strip_punctuation", Standardize::LowerAndStripPunctuation),
        ];
        let split = [("whitespace", Split::Whitespace), ("character", Split::Character)];
        Tokens {
            standardize: fields.choice_or_null("standardize", &self.standardize, &standardize, &Standardize::No),
            split: fields.choice_or_null("split", &self.split, &split, &Split::No),
            ngrams: fields.value("ngrams", &self.ngrams),
        }
    }

    /// The tokens of each row.
    #[track_caller]
    pub fn of(self, text: &Tensor) -> RaggedTensor {
        let rows = match self.split {
            Split::No => RaggedTensor::from_rows(&self.standardized(text)),
            Split::Whitespace => self.standardized(&single(text)).string_split("", -1),
            Split::Character => {
                let text = self.standardized(&single(text)).regex_replace(SEPARATOR, "");
                let marked = text.regex_replace("(?s)(.)", &format!("\\1{SEPARATOR}"));
                let all = marked.string_split(SEPARATOR, -1);
                // The text ends with a separator, after which there is an empty string.
                all.filter(&all.values.string_length(Encoding::Bytes).greater(0i32))
            }
        };
        match self.ngrams {
            None => rows,
            Some(n) => ngrams(&rows, n),
        }
    }

    #[track_caller]
    fn standardized(self, text: &Tensor) -> Tensor {
        let lower = matches!(self.standardize, Standardize::Lower | Standardize::LowerAndStripPunctuation);
        let text = if lower { text.lower(Encoding::Bytes) } else { text.clone() };
        match self.standardize {
            Standardize::StripPunctuation | Standardize::LowerAndStripPunctuation => {
                text.regex_replace(PUNCTUATION, "")
            }
            Standardize::No | Standardize::Lower => text,
        }
    }
}

/// One text in each row: `[batch]`.
#[track_caller]
fn single(text: &Tensor) -> Tensor {
    match text.shape().dims() {
        [_] => text.clone(),
        [_, Dim::Known(1)] => text.squeeze(&[-1]),
        _ => {
            let error = Error::shape(format!("the text is {}; expected [batch] or [batch, 1]", text.describe()));
            text.graph().error(error.help("a row has one text that is split; or set split(Split::No)"))
        }
    }
}

/// The place of each value within its row.
#[track_caller]
pub(super) fn places(rows: &RaggedTensor) -> Tensor {
    let all = all_places(rows);
    all - rows.row_splits.gather(&rows.row_ids())
}

/// The place of each value among all.
#[track_caller]
fn all_places(rows: &RaggedTensor) -> Tensor {
    let n = rows.values.shape().dims().first().copied().unwrap_or(Dim::Known(0));
    rows.values.graph().range(n, DType::I64)
}

/// Sequences of 1 to `n` tokens that follow each other in a row, joined by a blank. The shorter
/// ones come first.
#[track_caller]
fn ngrams(rows: &RaggedTensor, n: usize) -> RaggedTensor {
    if rows.values.is_poisoned() {
        return rows.clone();
    }
    let left = rows.row_lengths().gather(&rows.row_ids()) - places(rows);
    let of_width = |width: usize| {
        let starts = rows.with_values(all_places(rows)).filter(&left.greater_equal(width as i64));
        let parts: Vec<Tensor> = (0..width).map(|i| rows.values.gather(&(&starts.values + i as i64))).collect();
        starts.with_values(Tensor::string_join(&parts.iter().collect::<Vec<_>>(), " "))
    };
    let all: Vec<RaggedTensor> = std::iter::once(rows.clone()).chain((2..=n).map(of_width)).collect();
    match &all[..] {
        [one] => one.clone(),
        _ => RaggedTensor::concat(&all.iter().collect::<Vec<_>>()),
    }
}
