//! A list of values: complete if it is short; otherwise its length, its digest and a sample.

use std::fmt;

use estimand_tensor::vocabulary::Terms;
use estimand_tensor::{DType, Sha256, Strings};

/// One value of a list.
#[derive(Clone, Debug)]
pub enum Listed {
    /// Text; not always UTF-8.
    Text(Vec<u8>),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
}

/// Compares bit by bit.
impl PartialEq for Listed {
    fn eq(&self, other: &Listed) -> bool {
        match (self, other) {
            (Listed::Text(a), Listed::Text(b)) => a == b,
            (Listed::Int(a), Listed::Int(b)) => a == b,
            (Listed::Float(a), Listed::Float(b)) => a.to_bits() == b.to_bits(),
            (Listed::Text(_) | Listed::Int(_) | Listed::Float(_), _) => false,
        }
    }
}

/// A list of values in order.
///
/// Lists of up to 256 values and 16 KiB are kept whole. Of longer lists 33 evenly spread values are
/// kept, including the first and the last. In both cases `sha256` is the digest of all values: the
/// word `text`, `int` or `float`, then each value. Text is hashed as its length (8 bytes, little
/// endian) and its bytes; numbers as the 8 bytes of an i64 or f64, little endian.
#[derive(Clone, Debug)]
pub struct Listing {
    n: usize,
    sha256: String,
    shown: Vec<(usize, Listed)>,
}

/// Compares the lists themselves. The number of kept values does not matter.
impl PartialEq for Listing {
    fn eq(&self, other: &Listing) -> bool {
        (self.n, &self.sha256) == (other.n, &other.sha256)
    }
}

/// The largest number of values in a list that is kept whole.
const WHOLE: usize = 256;

/// The largest number of bytes in a list that is kept whole.
const WHOLE_BYTES: usize = 16 << 10;

/// The number of values kept from longer lists.
const SAMPLE: usize = 33;

/// The largest number of bytes kept from a sampled text. The digest covers the rest.
const SAMPLE_BYTES: usize = 256;

impl Listing {
    /// The terms of a vocabulary.
    pub fn of_terms(terms: &Terms) -> Listing {
        if terms.dtype() != DType::Str {
            let ints = terms.ints();
            return Listing::new("int", ints.len(), |i| Listed::Int(ints[i]));
        }
        let mut text = Strings::with_capacity(terms.len());
        for number in 0..terms.len() {
            terms.push_to(number, &mut text);
        }
        Listing::of_strings(&text)
    }

    /// Strings.
    pub fn of_strings(strings: &Strings) -> Listing {
        let all = strings.as_slice();
        Listing::new("text", all.len(), |i| Listed::Text(all.get(i).to_vec()))
    }

    /// Texts.
    pub fn of_texts<S: AsRef<[u8]>>(texts: impl IntoIterator<Item = S>) -> Listing {
        Listing::of_strings(&texts.into_iter().collect())
    }

    /// Numbers.
    pub fn of_floats(numbers: &[f64]) -> Listing {
        Listing::new("float", numbers.len(), |i| Listed::Float(numbers[i]))
    }

    fn new(kind: &str, n: usize, at: impl Fn(usize) -> Listed) -> Listing {
        let mut digest = Sha256::new().update(kind.as_bytes());
        let mut n_bytes = 0;
        for i in 0..n {
            digest = match at(i) {
                Listed::Text(text) => {
                    n_bytes += text.len();
                    digest.update(&(text.len() as u64).to_le_bytes()).update(&text)
                }
                Listed::Int(v) => digest.update(&v.to_le_bytes()),
                Listed::Float(v) => digest.update(&v.to_bits().to_le_bytes()),
            };
        }
        let shown = match n <= WHOLE && n_bytes <= WHOLE_BYTES {
            true => (0..n).map(|i| (i, at(i))).collect(),
            false => spread(n).map(|i| (i, at(i).shortened())).collect(),
        };
        Listing { n, sha256: digest.finish(), shown }
    }

    /// Builds a list from its parts if they are valid: a digest of 64 hex digits, and indices in
    /// rising order below `n`.
    pub fn from_parts(n: usize, sha256: String, shown: Vec<(usize, Listed)>) -> Option<Listing> {
        let is_digest = sha256.len() == 64 && sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let rises = shown.windows(2).all(|pair| pair[0].0 < pair[1].0) && shown.last().is_none_or(|last| last.0 < n);
        (is_digest && rises).then_some(Listing { n, sha256, shown })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The digest of all values, in hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The kept values with their indices, in rising order.
    pub fn shown(&self) -> &[(usize, Listed)] {
        &self.shown
    }

    /// Whether all values are kept.
    pub fn is_whole(&self) -> bool {
        self.shown.len() == self.n
    }

    /// The same list with only a sample kept.
    pub fn sampled(&self) -> Listing {
        let kept = spread(self.shown.len()).map(|i| (self.shown[i].0, self.shown[i].1.clone().shortened()));
        Listing { n: self.n, sha256: self.sha256.clone(), shown: kept.collect() }
    }

    /// The plural noun for the values in messages.
    pub fn noun(&self) -> &'static str {
        match self.shown.first() {
            Some((_, Listed::Float(_))) => "numbers",
            _ => "terms",
        }
    }
}

/// Evenly spread indices below `n`, including the first and the last.
fn spread(n: usize) -> impl Iterator<Item = usize> {
    let kept = n.min(SAMPLE);
    (0..kept).map(move |i| if kept == n { i } else { (i as u128 * (n as u128 - 1) / (SAMPLE as u128 - 1)) as usize })
}

impl Listed {
    fn shortened(self) -> Listed {
        match self {
            Listed::Text(mut text) => {
                text.truncate(SAMPLE_BYTES);
                Listed::Text(text)
            }
            number => number,
        }
    }
}

/// Formats a value for a message: text in back quotes, bytes that are not UTF-8 escaped, long text
/// shortened.
impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 60;
        match self {
            Listed::Int(v) => v.fmt(f),
            Listed::Float(v) => v.fmt(f),
            Listed::Text(text) => {
                let shown = match std::str::from_utf8(text) {
                    Ok(text) if !text.chars().any(char::is_control) => text.to_string(),
                    _ => text.escape_ascii().to_string(),
                };
                match shown.char_indices().nth(SHOWN) {
                    Some((end, _)) => write!(f, "`{}...`", &shown[..end]),
                    None => write!(f, "`{shown}`"),
                }
            }
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.n, self.noun())?;
        let first: Vec<String> = self.shown.iter().take(3).map(|(_, value)| value.to_string()).collect();
        match (first.is_empty(), self.n > first.len()) {
            (true, _) => Ok(()),
            (false, true) => write!(f, " ({}, ...)", first.join(", ")),
            (false, false) => write!(f, " ({})", first.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_list_is_whole_and_a_long_one_is_sampled() {
        let short = Listing::of_texts(["a", "b"]);
        assert!(short.is_whole() && short.shown().len() == 2);
        // Python: hashlib.sha256(b"text" + pack("<Q", 1) + b"a" + pack("<Q", 1) + b"b").
        assert_eq!(short.sha256(), "c8f807f37909c84b4a767dcdf0ded80dd38c5ee79c1757a7a4dd988cdc872097");
        let long = Listing::of_texts((0..10_000).map(|i| i.to_string()));
        assert_eq!((long.len(), long.shown().len(), long.is_whole()), (10_000, 33, false));
        assert_eq!((long.shown()[0].0, long.shown()[32].0), (0, 9_999));
        let other = Listing::of_texts((0..10_000).map(|i| if i == 5 { "x".to_string() } else { i.to_string() }));
        assert_eq!(long.shown(), other.shown());
        assert_ne!(long, other);
        // One long text is not kept whole either.
        let wide = Listing::of_texts([vec![b'x'; 20_000]]);
        assert_eq!(wide.shown()[0].1, Listed::Text(vec![b'x'; 256]));
    }

    #[test]
    fn borders_and_kinds_count() {
        assert_ne!(Listing::of_texts(["ab", "c"]), Listing::of_texts(["a", "bc"]));
        assert_ne!(Listing::of_texts(["", "a"]), Listing::of_texts(["a", ""]));
        let (ints, floats) = (Listing::of_terms(&Terms::from_ints(vec![1])), Listing::of_floats(&[1.0]));
        assert_ne!(ints.sha256(), floats.sha256());
        assert_ne!(Listing::of_floats(&[0.0]), Listing::of_floats(&[-0.0]));
        assert_eq!(Listing::of_floats(&[f64::NAN]), Listing::of_floats(&[f64::NAN]));
    }

    #[test]
    fn parts_that_cannot_be_are_refused() {
        let list = Listing::of_texts(["a", "b"]);
        let parts = |n, digest: &str, shown: &[usize]| {
            let shown = shown.iter().map(|&i| (i, Listed::Int(1))).collect();
            Listing::from_parts(n, digest.to_string(), shown)
        };
        assert!(parts(2, list.sha256(), &[0, 1]).is_some());
        assert!(parts(2, list.sha256(), &[0, 2]).is_none());
        assert!(parts(2, list.sha256(), &[1, 0]).is_none());
        assert!(parts(2, "ab", &[0]).is_none());
    }

    #[test]
    fn text_is_shown_so_that_a_message_stays_one_line() {
        let shown = |bytes: &[u8]| Listed::Text(bytes.to_vec()).to_string();
        assert_eq!(shown("café".as_bytes()), "`café`");
        assert_eq!(shown(b"a\nb"), "`a\\nb`");
        assert_eq!(shown(&[0xff, b'a']), "`\\xffa`");
        assert!(shown(&[b'x'; 500]).len() < 70);
    }
}
