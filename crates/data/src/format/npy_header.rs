//! The header of an NPY file: a magic number, a version, and a Python dictionary as text.

use estimand_tensor::{Error, Result};

use super::numbers::{ByteOrder, Stored};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read. An array of eight axes needs less than a hundredth of it.
const MAX_LENGTH: usize = 64 << 10;

/// The type of one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Descr {
    Number(Stored, ByteOrder),
    /// Bytes, padded with NULs.
    Bytes(usize),
    /// Unicode code points of four bytes each, padded with NULs.
    Unicode(usize, ByteOrder),
}

#[derive(PartialEq, Debug)]
pub(crate) struct Header {
    pub(crate) descr: Descr,
    /// Whether the first axis varies fastest.
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
}

impl Descr {
    /// The number of bytes of one element.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Descr::Number(stored, _) => Some(stored.size()),
            Descr::Bytes(n) => Some(n),
            Descr::Unicode(n, _) => n.checked_mul(4),
        }
    }

    fn parse(text: &str) -> Result<Descr> {
        let (order, kind) = match text.split_at_checked(1) {
            Some(("<" | "|" | "=", kind)) => (ByteOrder::Little, kind),
            Some((">", kind)) => (ByteOrder::Big, kind),
            _ => (ByteOrder::Little, text),
        };
        let stored = match kind {
            "b1" | "?" => Stored::Bool,
            "i1" => Stored::I8,
            "u1" => Stored::U8,
            "i2" => Stored::I16,
            "u2" => Stored::U16,
            "i4" => Stored::I32,
            "u4" => Stored::U32,
            "i8" => Stored::I64,
            "f4" => Stored::F32,
            "f8" => Stored::F64,
            _ => return Descr::parse_strings(kind, order).ok_or_else(|| unsupported(text)),
        };
        Ok(Descr::Number(stored, order))
    }

    fn parse_strings(kind: &str, order: ByteOrder) -> Option<Descr> {
        let (letter, width) = kind.split_at_checked(1)?;
        // A width of 0 would let a short file claim any number of elements.
        let width = width.parse().ok().filter(|&width| width > 0)?;
        match letter {
            "S" | "a" => Some(Descr::Bytes(width)),
            "U" => Some(Descr::Unicode(width, order)),
            _ => None,
        }
    }
}

fn unsupported(descr: &str) -> Error {
    let help = match descr.trim_start_matches(['<', '>', '|', '=']) {
        "O" => "save numbers or fixed-width strings: pickled Python objects are never read",
        "u8" => "convert it first: array.astype(numpy.int64)",
        "f2" => "convert it first: array.astype(numpy.float32)",
        _ => "save bool, an integer type other than uint64, float32, float64, or strings (S or U) of fixed width",
    };
    Error::data(format!("the elements have numpy's type `{descr}`, which is not supported")).help(help)
}

impl Header {
    /// Parses the header and returns it with the data after it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Header, &[u8])> {
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| {
            let found = String::from_utf8_lossy(&bytes[..bytes.len().min(MAGIC.len())]);
            Error::data(format!("the file begins with {found:?}; expected {:?}", String::from_utf8_lossy(MAGIC)))
                .help("this is not an NPY file: write it with numpy.save")
        })?;
        let cut = || Error::data("the file ends in the middle of its header");
        let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        let (length, rest) = match version {
            [1, _] => {
                let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
                (usize::from(u16::from_le_bytes(*length)), rest)
            }
            [2 | 3, _] => {
                let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
                (u32::from_le_bytes(*length) as usize, rest)
            }
            [major, minor] => {
                return Err(Error::data(format!(
                    "the file has version {major}.{minor} of the NPY format; versions 1 to 3 are supported"
                )));
            }
        };
        if length > MAX_LENGTH {
            return Err(Error::data(format!("the header has {length} bytes; at most {MAX_LENGTH} are read")));
        }
        let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
        let text = std::str::from_utf8(header).map_err(|_| Error::data("the header is not UTF-8 text"))?;
        let header = Literal { text, rest: text }.header()?;
        Ok((header, data))
    }
}

/// A parser of the few kinds of Python literals that headers contain.
struct Literal<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Literal<'a> {
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, with the keys in any order.
    fn header(&mut self) -> Result<Header> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.take("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" if self.rest.trim_start().starts_with('[') => {
                    return Err(Error::data("the array is structured: its elements are records with fields")
                        .help("save each field as an array of its own, with numpy.savez"));
                }
                "descr" => descr = Some(Descr::parse(self.string()?)?),
                "fortran_order" if self.take("True") => fortran_order = Some(true),
                "fortran_order" => {
                    self.expect("False")?;
                    fortran_order = Some(false);
                }
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.bad(&format!("the header has the unknown key `{key}`"))),
            }
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(self.bad("the header has text after the dictionary"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
            _ => Err(self.bad("the header lacks one of descr, fortran_order and shape")),
        }
    }

    /// `()`, `(5,)` or `(5, 3)`.
    fn shape(&mut self) -> Result<Vec<usize>> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            self.rest = self.rest.trim_start();
            let n_digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, rest) = self.rest.split_at(n_digits);
            shape.push(digits.parse().map_err(|_| self.bad("a size is not a number"))?);
            self.rest = rest;
            // Python 2 wrote long integers with this suffix.
            self.take("L");
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn string(&mut self) -> Result<&'a str> {
        let rest = self.rest.trim_start();
        let quoted = ['\'', '"'].into_iter().find_map(|quote| rest.strip_prefix(quote)?.split_once(quote));
        let (string, rest) = quoted.ok_or_else(|| self.bad("expected a string in quotes"))?;
        self.rest = rest;
        Ok(string)
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.bad(&format!("expected `{token}`"))) }
    }

    fn bad(&self, what: &str) -> Error {
        let shown: String = self.text.trim_end().chars().take(200).collect();
        let at = self.text.len() - self.rest.len();
        Error::data(format!("{what}, at byte {at} of the header {shown:?}"))
    }
}
