//! The bytes of messages and of object headers.

use estimand_tensor::{Array, DType, Error, Result};

use super::heap::References;

/// The number of bytes that fit into one message.
const LARGEST: usize = 65_528;

/// An array and how its strings are stored.
#[derive(Clone)]
pub(super) struct Value {
    array: Array,
    /// The length of all strings, if it is fixed.
    width: Option<usize>,
}

impl Value {
    /// Strings of variable length.
    pub fn variable(array: &Array) -> Result<Value> {
        if array.dtype() == DType::Str {
            longest(array)?;
        }
        Ok(Value { array: array.clone(), width: None })
    }

    /// Strings that are all stored with the length of the longest one.
    pub fn fixed(array: &Array) -> Result<Value> {
        if array.dtype() != DType::Str {
            return Value::variable(array);
        }
        // A string has at least one byte.
        Ok(Value { array: array.clone(), width: Some(longest(array)?.max(1)) })
    }

    pub fn dims(&self) -> &[usize] {
        self.array.dims()
    }

    /// The number of bytes of an element in the file.
    fn element_size(&self) -> usize {
        match (self.array.dtype(), self.width) {
            (DType::Str, Some(width)) => width,
            (DType::Str, None) => 16,
            (dtype, _) => dtype.size(),
        }
    }

    /// The number of bytes of all elements in the file.
    pub fn n_bytes(&self) -> u64 {
        self.array.len() as u64 * self.element_size() as u64
    }

    /// The strings that go to a global heap.
    pub fn variable_strings(&self) -> impl Iterator<Item = &[u8]> {
        let strings = if self.width.is_none() { self.array.strings().ok() } else { None };
        strings.into_iter().flatten()
    }

    /// The stored elements of an array of strings. Numbers are stored as they are.
    pub fn stored(&self, references: &mut References) -> Option<Vec<u8>> {
        let strings = self.array.strings().ok()?;
        let mut bytes = Vec::new();
        for string in strings {
            match self.width {
                Some(width) => {
                    bytes.extend(string);
                    bytes.resize(bytes.len() + width - string.len(), 0);
                }
                None => bytes.extend(references.next()),
            }
        }
        Some(bytes)
    }

    /// The bytes of numbers.
    pub fn array_bytes(&self) -> &[u8] {
        self.array.bytes()
    }
}

/// The length of the longest string. Files store it in four bytes.
fn longest(array: &Array) -> Result<usize> {
    let longest = array.strings()?.map(<[u8]>::len).max().unwrap_or(0);
    match u32::try_from(longest) {
        Ok(_) => Ok(longest),
        Err(_) => Err(Error::config(format!("a string of {longest} bytes; at most 4 GiB fit into an HDF5 file"))),
    }
}

/// A message: its type and its bytes, a multiple of eight.
pub(super) struct Message {
    kind: u16,
    data: Vec<u8>,
}

fn message(kind: u16, mut data: Vec<u8>) -> Message {
    data.resize(data.len().next_multiple_of(8), 0);
    Message { kind, data }
}

pub(super) fn dataspace(dims: &[usize]) -> Message {
    let mut data = vec![1, dims.len() as u8, 0, 0, 0, 0, 0, 0];
    dims.iter().for_each(|&n| data.extend((n as u64).to_le_bytes()));
    message(0x01, data)
}

pub(super) fn datatype(value: &Value) -> Message {
    message(0x03, datatype_bytes(value))
}

fn datatype_bytes(value: &Value) -> Vec<u8> {
    let size = value.element_size() as u32;
    match value.array.dtype() {
        // The sign, the precision, the place and the size of the exponent and of the mantissa, the
        // bias.
        DType::F32 => float(4, 31, [32, 0, 23, 8, 0, 23], 127),
        DType::F64 => float(8, 63, [64, 0, 52, 11, 0, 52], 1023),
        DType::I32 | DType::I64 => integer(size, true),
        DType::U8 => integer(1, false),
        // h5py's booleans are an enumeration of signed bytes.
        DType::Bool => {
            let mut bytes = class(8, [2, 0, 0], 1);
            bytes.extend(integer(1, true));
            bytes.extend(b"FALSE\0\0\0TRUE\0\0\0\0\0\x01");
            bytes
        }
        // ASCII, filled with zeros: what h5py makes of NumPy's `S`.
        DType::Str if value.width.is_some() => class(3, [1, 0, 0], size),
        // A string that ends with a zero, UTF-8, made of bytes.
        DType::Str => {
            let mut bytes = class(9, [1, 1, 0], size);
            bytes.extend(integer(1, false));
            bytes
        }
    }
}

/// The beginning of every datatype, in version 1.
fn class(class: u8, bits: [u8; 3], size: u32) -> Vec<u8> {
    let mut bytes = vec![0x10 | class];
    bytes.extend(bits);
    bytes.extend(size.to_le_bytes());
    bytes
}

fn integer(size: u32, is_signed: bool) -> Vec<u8> {
    let mut bytes = class(0, [if is_signed { 8 } else { 0 }, 0, 0], size);
    bytes.extend([0, 0, 8 * size as u8, 0]);
    bytes
}

fn float(size: u32, sign: u8, parts: [u8; 6], bias: u32) -> Vec<u8> {
    let mut bytes = class(1, [0x20, sign, 0], size);
    bytes.extend([0, 0]);
    bytes.extend(parts);
    bytes.extend(bias.to_le_bytes());
    bytes
}

/// No fill value but the default one; space is allocated when values are written.
pub(super) fn fill() -> Message {
    message(0x05, vec![2, 2, 2, 1, 0, 0, 0, 0])
}

/// A contiguous layout.
pub(super) fn layout(address: u64, n_bytes: u64) -> Message {
    let mut data = vec![3, 1];
    data.extend(address.to_le_bytes());
    data.extend(n_bytes.to_le_bytes());
    message(0x08, data)
}

pub(super) fn symbol_table(addresses: [u64; 2]) -> Message {
    message(0x11, addresses.into_iter().flat_map(u64::to_le_bytes).collect())
}

/// An attribute. Version 1 has names in ASCII; version 3, which needs HDF5 1.8, has all others.
pub(super) fn attribute(name: &str, value: &Value, strings: &mut References) -> Message {
    let mut parts = [[name.as_bytes(), b"\0"].concat(), datatype_bytes(value), dataspace(value.dims()).data];
    let is_old = name.is_ascii();
    let mut data = vec![if is_old { 1 } else { 3 }, 0];
    for part in &mut parts {
        data.extend((part.len() as u16).to_le_bytes());
        if is_old {
            part.resize(part.len().next_multiple_of(8), 0);
        }
    }
    if !is_old {
        data.push(1);
    }
    data.extend(parts.concat());
    match value.stored(strings) {
        Some(bytes) => data.extend(bytes),
        None => data.extend(value.array_bytes()),
    }
    message(0x0c, data)
}

/// Refuses an attribute that does not fit into a message.
pub(super) fn check_attribute(path: &str, name: &str, value: &Value) -> Result<()> {
    let around =
        16 + (name.len() as u64 + 8) + datatype_bytes(value).len() as u64 + 8 * (value.dims().len() as u64 + 3);
    let n = value.n_bytes();
    if n.saturating_add(around) <= LARGEST as u64 {
        return Ok(());
    }
    let message = format!("the attribute `{name}` of `{path}` has {n} bytes; at most 64 kB fit with its name");
    Err(Error::config(message).help("divide it into several attributes, as Keras does: `name0`, `name1`, ..."))
}

/// An object header of version 1.
pub(super) fn header(messages: &[Message]) -> Result<Vec<u8>> {
    let size: usize = messages.iter().map(|message| 8 + message.data.len()).sum();
    let n = u16::try_from(messages.len()).map_err(|_| {
        Error::config(format!("an object has {} attributes; at most 65,000 are possible", messages.len()))
    })?;
    let size = u32::try_from(size).map_err(|_| Error::config("the attributes of an object have more than 4 GiB"))?;
    let mut bytes = vec![1, 0];
    bytes.extend(n.to_le_bytes());
    // One link names the object.
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend([0; 4]);
    for message in messages {
        bytes.extend(message.kind.to_le_bytes());
        bytes.extend((message.data.len() as u16).to_le_bytes());
        // The type of a dataset never changes.
        bytes.extend([u8::from(message.kind == 0x03), 0, 0, 0]);
        bytes.extend(&message.data);
    }
    Ok(bytes)
}
