//! The values of one input, collected from JSON: [`Column`].

use estimand_tensor::{Array, DType, Dims, MAX_RANK, Strings};

use super::excerpt::excerpt;
use super::reader::{Kind, Read, Reader};
use crate::status::{Answer, Status};

/// Values of one input, in row-major order.
pub(crate) struct Column {
    values: Values,
    /// The shape of an item, known after the first one.
    shape: Option<ItemShape>,
    n_items: usize,
    /// The value of an item that has none.
    default: Option<Array>,
    /// The elements that are defaults, by their places.
    defaulted: Vec<usize>,
    /// Items without a value before the first with one, which decides their size.
    n_waiting: usize,
}

enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    Bool(Vec<bool>),
    Str(Strings),
}

/// The shape of one item: the nesting of its lists.
#[derive(Clone, Default, PartialEq)]
struct ItemShape {
    /// Sizes by level. A level gets its size when its first list ends.
    sizes: Dims,
    /// Bit `i` is set if the size of level `i` is known.
    known: u32,
    /// The number of levels, known after the first value or the first empty list.
    rank: Option<usize>,
}

impl ItemShape {
    /// Notes that a list at a level has ended after `n` elements.
    fn end_of_list(&mut self, level: usize, n: usize) -> Answer<()> {
        if n == 0 && self.rank.is_none() {
            self.rank = Some(level + 1);
        }
        while self.sizes.len() <= level {
            self.sizes.push(0);
        }
        if self.known & 1 << level == 0 {
            self.known |= 1 << level;
            self.sizes[level] = n;
        }
        let expected = self.sizes[level];
        if n != expected {
            return Err(Status::invalid(format!(
                "Encountered list at unexpected size: {n} at level: {level} expected size: {expected}"
            )));
        }
        Ok(())
    }

    fn of(dims: &[usize]) -> ItemShape {
        ItemShape { sizes: Dims::from_slice(dims), known: (1 << dims.len()) - 1, rank: Some(dims.len()) }
    }

    fn n_elements(&self) -> usize {
        self.sizes.iter().product()
    }

    fn text(&self) -> String {
        format!("[{}]", self.sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
    }
}

/// TensorFlow's name of an element type in messages.
pub(super) fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::U8 => "uint8",
        DType::Bool => "bool",
        DType::Str => "string",
    }
}

impl Column {
    pub(crate) fn new(dtype: DType) -> Column {
        let values = match dtype {
            DType::F32 => Values::F32(Vec::new()),
            DType::F64 => Values::F64(Vec::new()),
            DType::I32 => Values::I32(Vec::new()),
            DType::I64 => Values::I64(Vec::new()),
            DType::U8 => Values::U8(Vec::new()),
            DType::Bool => Values::Bool(Vec::new()),
            DType::Str => Values::Str(Strings::default()),
        };
        Column { values, shape: None, n_items: 0, default: None, defaulted: Vec::new(), n_waiting: 0 }
    }

    /// Sets the value of items that have none: of an item's shape, or one value for items of any
    /// size.
    pub(crate) fn with_default(mut self, default: Option<&Array>) -> Column {
        self.default = default.cloned();
        self
    }

    fn dtype(&self) -> DType {
        match &self.values {
            Values::F32(_) => DType::F32,
            Values::F64(_) => DType::F64,
            Values::I32(_) => DType::I32,
            Values::I64(_) => DType::I64,
            Values::U8(_) => DType::U8,
            Values::Bool(_) => DType::Bool,
            Values::Str(_) => DType::Str,
        }
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::I32(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::U8(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::Str(values) => values.len(),
        }
    }

    /// The number of items so far.
    pub(crate) fn n_items(&self) -> usize {
        self.n_items
    }

    /// The size of the first axis of the only item.
    pub(crate) fn n_outer(&self) -> usize {
        self.shape.as_ref().and_then(|shape| shape.sizes.first().copied()).unwrap_or(1)
    }

    /// The rows that have a default in them, if the column has `n_rows` rows.
    pub(crate) fn defaulted_rows(&self, n_rows: usize) -> Vec<usize> {
        let n_per_row = (self.len() / n_rows.max(1)).max(1);
        let mut rows: Vec<usize> = self.defaulted.iter().map(|&element| element / n_per_row).collect();
        rows.dedup();
        rows
    }

    /// Adds an item that has no value. Returns `false` if there is no default.
    pub(crate) fn absent(&mut self, is_padded: bool) -> Answer<bool> {
        let Some(default) = self.default.clone() else { return Ok(false) };
        self.n_items += 1;
        let shape = match &self.shape {
            None if is_padded => {
                self.n_waiting += 1;
                return Ok(true);
            }
            None => self.shape.insert(ItemShape::of(default.dims())),
            Some(shape) => shape,
        };
        if !is_padded && *shape != ItemShape::of(default.dims()) {
            let (expected, found) = (shape.text(), ItemShape::of(default.dims()).text());
            return Err(Status::invalid(format!("Expecting shape {expected} but got: {found}")));
        }
        let n = if is_padded { shape.n_elements() } else { 1 };
        for _ in 0..n {
            self.push_default(&default)?;
        }
        Ok(true)
    }

    fn push_default(&mut self, default: &Array) -> Answer<()> {
        self.defaulted.extend(self.len()..self.len() + default.len());
        match &mut self.values {
            Values::F32(values) => values.extend_from_slice(default.as_slice()?),
            Values::F64(values) => values.extend_from_slice(default.as_slice()?),
            Values::I32(values) => values.extend_from_slice(default.as_slice()?),
            Values::I64(values) => values.extend_from_slice(default.as_slice()?),
            Values::U8(values) => values.extend_from_slice(default.as_slice()?),
            Values::Bool(values) => values.extend_from_slice(default.as_slice()?),
            Values::Str(values) => values.append_slice(default.string_slice()?),
        }
        Ok(())
    }

    /// Gives the items that wait the shape of the first one that has a value, which was just read.
    fn fill_waiting(&mut self) -> Answer<()> {
        let (n, default) = (std::mem::take(&mut self.n_waiting), self.default.clone());
        let (Some(default), true) = (default, n > 0) else { return Ok(()) };
        let shape = self.shape.get_or_insert_with(|| ItemShape::of(&[1]));
        let n_elements = n * shape.n_elements();
        let mut filled = Column::new(self.dtype());
        for _ in 0..n_elements {
            filled.push_default(&default)?;
        }
        match (&mut filled.values, &mut self.values) {
            (Values::F32(a), Values::F32(b)) => a.append(b),
            (Values::F64(a), Values::F64(b)) => a.append(b),
            (Values::I32(a), Values::I32(b)) => a.append(b),
            (Values::I64(a), Values::I64(b)) => a.append(b),
            (Values::U8(a), Values::U8(b)) => a.append(b),
            (Values::Bool(a), Values::Bool(b)) => a.append(b),
            (Values::Str(a), Values::Str(b)) => {
                let later = Array::from(std::mem::take(b));
                a.append_slice(later.string_slice()?);
            }
            (Values::F32(_) | Values::F64(_) | Values::I32(_) | Values::I64(_), _)
            | (Values::U8(_) | Values::Bool(_) | Values::Str(_), _) => {}
        }
        filled.defaulted.extend(self.defaulted.iter().map(|element| element + n_elements));
        (self.values, self.defaulted) = (filled.values, filled.defaulted);
        Ok(())
    }

    /// Reads an item: a value, or nested lists of equal sizes. All items have the same shape.
    pub(crate) fn item(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        let before = self.len();
        let mut shape = ItemShape::default();
        self.fill(reader, 0, &mut shape)?;
        self.n_items += 1;
        match &self.shape {
            None => {
                self.shape = Some(shape);
                self.fill_waiting()?;
            }
            Some(first) if *first == shape => {}
            Some(first) => {
                let (expected, size) = (first.sizes.iter().product::<usize>(), self.len() - before);
                let message = match size == expected {
                    true => format!("Expecting shape {} but got: {}", first.text(), shape.text()),
                    false => format!("Expecting tensor size: {expected} but got: {size}"),
                };
                return Err(Status::invalid(message).into());
            }
        }
        Ok(())
    }

    /// Reads nested lists of any shape as one list of values.
    pub(crate) fn flat(&mut self, reader: &mut Reader<'_>) -> Read<()> {
        let mut depth = 0usize;
        loop {
            let kind = reader.kind()?;
            let mut is_first = kind == Kind::Array;
            if is_first {
                reader.open();
                depth += 1;
            } else {
                self.value(reader, kind)?;
            }
            while depth > 0 && !reader.element(is_first)? {
                depth -= 1;
                is_first = false;
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn fill(&mut self, reader: &mut Reader<'_>, level: usize, shape: &mut ItemShape) -> Read<()> {
        let kind = reader.kind()?;
        if kind != Kind::Array {
            let rank = *shape.rank.get_or_insert(level);
            if level != rank {
                let position = reader.position();
                return Err(Status::invalid(format!(
                    "JSON Value: {} found at incorrect level: {} in the JSON DOM. Expected at level: {rank}",
                    excerpt(reader.text_at(position)),
                    level + 1
                ))
                .into());
            }
            return self.value(reader, kind);
        }
        // TF: the depth is that of the first value; ours also ends at the largest rank of an array.
        let rank = shape.rank.unwrap_or(MAX_RANK);
        if level >= rank {
            return Err(
                Status::invalid(format!("Encountered list at unexpected level: {level} expected < {rank}")).into()
            );
        }
        reader.open();
        let mut n = 0;
        while reader.element(n == 0)? {
            self.fill(reader, level + 1, shape)?;
            n += 1;
        }
        Ok(shape.end_of_list(level, n)?)
    }

    fn value(&mut self, reader: &mut Reader<'_>, kind: Kind) -> Read<()> {
        let start = reader.position();
        if let (Kind::Null, Some(default)) = (kind, &self.default)
            && default.len() == 1
        {
            let default = default.clone();
            reader.literal()?;
            return Ok(self.push_default(&default)?);
        }
        let fits = match (&mut self.values, kind) {
            (Values::F32(values), Kind::Number) => {
                // TF: a number is read as a double and then rounded to a float.
                values.push(reader.number()?.double() as f32);
                true
            }
            (Values::F64(values), Kind::Number) => {
                values.push(reader.number()?.double());
                true
            }
            (Values::I32(values), Kind::Number) => push(values, reader.number()?.integer()),
            (Values::I64(values), Kind::Number) => push(values, reader.number()?.integer()),
            (Values::U8(values), Kind::Number) => push(values, reader.number()?.integer()),
            (Values::Bool(values), Kind::True | Kind::False) => {
                values.push(reader.literal()? == Kind::True);
                true
            }
            (Values::Str(values), Kind::String) => {
                reader.string_parts(&mut |part| values.write(part))?;
                values.finish();
                true
            }
            (Values::Str(values), Kind::Object) => {
                values.push(&base64_value(reader)?);
                true
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let dtype = self.dtype();
        Err(Status::invalid(format!(
            "JSON Value: {} Type: {kind} is not of expected type: {}",
            excerpt(reader.text_at(start)),
            type_name(dtype)
        ))
        .into())
    }

    /// The items as one array, with an axis for them before their own.
    pub(crate) fn into_rows(mut self) -> Answer<Array> {
        self.fill_waiting()?;
        let mut dims = Dims::from_slice(&[self.n_items]);
        dims.extend(self.shape.iter().flat_map(|shape| shape.sizes.iter().copied()));
        self.into_array(&dims)
    }

    /// The only item as an array.
    pub(crate) fn into_item(self) -> Answer<Array> {
        let dims = self.shape.as_ref().map(|shape| shape.sizes.clone()).unwrap_or_default();
        self.into_array(&dims)
    }

    /// The values of [`flat`](Column::flat) as an array of a given shape.
    pub(crate) fn into_shape(self, dims: &[usize]) -> Answer<Array> {
        self.into_array(dims)
    }

    fn into_array(self, dims: &[usize]) -> Answer<Array> {
        let array = match self.values {
            Values::F32(values) => Array::from_vec(dims, values),
            Values::F64(values) => Array::from_vec(dims, values),
            Values::I32(values) => Array::from_vec(dims, values),
            Values::I64(values) => Array::from_vec(dims, values),
            Values::U8(values) => Array::from_vec(dims, values),
            Values::Bool(values) => Array::from_vec(dims, values),
            Values::Str(values) => Array::from_string_list(dims, values),
        };
        array.map_err(Status::from)
    }
}

fn push<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let fits = value.is_some();
    values.extend(value);
    fits
}

/// Whether the next value is `{"b64": ".."}`. It is not read.
pub(crate) fn is_base64(reader: &mut Reader<'_>) -> Read<bool> {
    let start = reader.position();
    let mut there = reader.clone();
    if there.kind()? != Kind::Object {
        return Ok(false);
    }
    there.open();
    let is_named = there.name(true)?.is_some_and(|name| &*name == b"b64");
    let is_base64 = is_named && there.kind()? == Kind::String && {
        there.skip()?;
        there.name(false)?.is_none()
    };
    reader.go_to(start);
    Ok(is_base64)
}

/// Reads `{"b64": ".."}`.
pub(crate) fn base64_value(reader: &mut Reader<'_>) -> Read<Vec<u8>> {
    if !is_base64(reader)? {
        let start = reader.position();
        let text = excerpt(reader.text_at(start));
        return Err(Status::invalid(format!("JSON Value: {text} not formatted correctly for base64 data")).into());
    }
    reader.open();
    reader.name(true)?;
    let text = reader.string()?;
    reader.name(false)?;
    super::decode_base64(&text).ok_or_else(|| Status::invalid("Unable to base64 decode").into())
}
