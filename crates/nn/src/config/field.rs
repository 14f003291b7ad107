//! How plain values are spelled: numbers, texts, lists, sizes.

use estimand_graph::Padding;
use estimand_tensor::{Error, Result};
use serde_json::Value;

use super::{AnyNumber, Node};
use crate::border::Border;
use crate::size::{Size1d, Size2d, Size3d};

/// A value that is a field of another.
pub trait Field: Clone {
    /// The value as JSON.
    fn write(&self) -> Result<Value>;

    /// Reads it from its place in a document.
    fn read(node: &Node<'_>) -> Result<Self>;
}

impl Field for bool {
    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }

    fn read(node: &Node<'_>) -> Result<bool> {
        node.value().as_bool().ok_or_else(|| node.expected("true or false"))
    }
}

/// The largest size that a document may say. Products of a few sizes then fit into 64 bits.
pub const MAX_SIZE: usize = i32::MAX as usize;

impl Field for usize {
    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }

    fn read(node: &Node<'_>) -> Result<usize> {
        let number = node.value().as_u64().and_then(|n| usize::try_from(n).ok());
        match number {
            Some(number) if number > MAX_SIZE => Err(node.expected(&format!("a number of at most {MAX_SIZE}"))),
            Some(number) => Ok(number),
            None => Err(node.expected("a whole number from 0")),
        }
    }
}

/// Keras writes numbers of steps as its user gave them, such as `1e5`.
impl Field for u64 {
    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }

    fn read(node: &Node<'_>) -> Result<u64> {
        // Above this, a float does not hold every whole number.
        const LARGEST: f64 = 9_007_199_254_740_992.0;
        let whole = |x: f64| (x.fract() == 0.0 && (0.0..=LARGEST).contains(&x)).then_some(x as u64);
        let number = node.value().as_u64().or_else(|| node.value().as_f64().and_then(whole));
        number.ok_or_else(|| node.expected("a whole number from 0"))
    }
}

impl Field for i64 {
    fn write(&self) -> Result<Value> {
        Ok((*self).into())
    }

    fn read(node: &Node<'_>) -> Result<i64> {
        node.value().as_i64().ok_or_else(|| node.expected("a whole number"))
    }
}

/// Numbers that JSON does not have are read, but not written: Keras takes no texts for them, and
/// `Value` does not hold its bare words.
impl Field for f64 {
    fn write(&self) -> Result<Value> {
        let number = serde_json::Number::from_f64(*self);
        number.map(Value::Number).ok_or_else(|| Error::config(format!("JSON has no number {self}")))
    }

    fn read(node: &Node<'_>) -> Result<f64> {
        AnyNumber::read(node).map(|number| number.0)
    }
}

impl Field for String {
    fn write(&self) -> Result<Value> {
        Ok(self.as_str().into())
    }

    fn read(node: &Node<'_>) -> Result<String> {
        node.text().map(str::to_string)
    }
}

/// `null` is nothing.
impl<T: Field> Field for Option<T> {
    fn write(&self) -> Result<Value> {
        self.as_ref().map_or(Ok(Value::Null), Field::write)
    }

    fn read(node: &Node<'_>) -> Result<Option<T>> {
        if node.is_null() { Ok(None) } else { T::read(node).map(Some) }
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self) -> Result<Value> {
        self.iter().map(Field::write).collect::<Result<Vec<Value>>>().map(Value::Array)
    }

    fn read(node: &Node<'_>) -> Result<Vec<T>> {
        node.elements()?.iter().map(T::read).collect()
    }
}

/// A list that Keras writes as a single element if it has only one: axes.
#[derive(Clone, Debug)]
pub(crate) struct Elements<T>(pub Vec<T>);

impl<T: Field> Field for Elements<T> {
    fn write(&self) -> Result<Value> {
        match &self.0[..] {
            [one] => one.write(),
            _ => self.0.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<Elements<T>> {
        if node.value().is_array() { Vec::read(node).map(Elements) } else { Ok(Elements(vec![T::read(node)?])) }
    }
}

/// Numbers that Keras holds as an array: it writes them as an object, and reads a list too.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(pub Vec<f64>);

impl Field for Numbers {
    fn write(&self) -> Result<Value> {
        self.0.write()
    }

    fn read(node: &Node<'_>) -> Result<Numbers> {
        let values = if node.value().is_object() { node.field("config")?.field("value")? } else { node.clone() };
        Vec::read(&values).map(Numbers)
    }
}

/// A size along one axis, which Keras writes as a list of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneSize(pub usize);

impl Field for OneSize {
    fn write(&self) -> Result<Value> {
        Ok(Value::Array(vec![self.0.into()]))
    }

    fn read(node: &Node<'_>) -> Result<OneSize> {
        match Elements::read(node)?.0[..] {
            [size] => Ok(OneSize(size)),
            _ => Err(node.expected("one size")),
        }
    }
}

/// An axis, which Keras 2 writes as a list of one after a layer is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneAxis(pub i64);

impl Field for OneAxis {
    fn write(&self) -> Result<Value> {
        Ok(self.0.into())
    }

    fn read(node: &Node<'_>) -> Result<OneAxis> {
        match Elements::read(node)?.0[..] {
            [axis] => Ok(OneAxis(axis)),
            _ => Err(node.expected("one axis")),
        }
    }
}

/// One number stands for both.
impl Field for Size1d {
    fn write(&self) -> Result<Value> {
        OneSize(self.0).write()
    }

    fn read(node: &Node<'_>) -> Result<Size1d> {
        OneSize::read(node).map(|size| Size1d(size.0))
    }
}

impl Field for Size2d {
    fn write(&self) -> Result<Value> {
        Ok(Value::Array(vec![self.height.into(), self.width.into()]))
    }

    fn read(node: &Node<'_>) -> Result<Size2d> {
        match Elements::<usize>::read(node)?.0[..] {
            [side] if !node.value().is_array() => Ok(side.into()),
            [height, width] => Ok((height, width).into()),
            _ => Err(node.expected("a size, or height and width")),
        }
    }
}

/// One number stands for both sides, or for all.
impl Field for Border<1> {
    fn write(&self) -> Result<Value> {
        let (before, after) = self.0[0];
        Ok(Value::Array(vec![before.into(), after.into()]))
    }

    fn read(node: &Node<'_>) -> Result<Border<1>> {
        side(node).map(|side| Border([side]))
    }
}

impl Field for Border<2> {
    fn write(&self) -> Result<Value> {
        let side = |(before, after): (usize, usize)| Value::Array(vec![before.into(), after.into()]);
        Ok(Value::Array(self.0.map(side).to_vec()))
    }

    fn read(node: &Node<'_>) -> Result<Border<2>> {
        if !node.value().is_array() {
            return usize::read(node).map(Border::from);
        }
        match &node.elements()?[..] {
            [rows, columns] => Ok(Border([side(rows)?, side(columns)?])),
            _ => Err(node.expected("a size, two sizes, or two pairs")),
        }
    }
}

impl Field for Border<3> {
    fn write(&self) -> Result<Value> {
        let side = |(before, after): (usize, usize)| Value::Array(vec![before.into(), after.into()]);
        Ok(Value::Array(self.0.map(side).to_vec()))
    }

    fn read(node: &Node<'_>) -> Result<Border<3>> {
        if !node.value().is_array() {
            return usize::read(node).map(Border::from);
        }
        match &node.elements()?[..] {
            [depth, rows, columns] => Ok(Border([side(depth)?, side(rows)?, side(columns)?])),
            _ => Err(node.expected("a size, three sizes, or three pairs")),
        }
    }
}

/// One number stands for all.
impl Field for Size3d {
    fn write(&self) -> Result<Value> {
        Ok(Value::Array(vec![self.depth.into(), self.height.into(), self.width.into()]))
    }

    fn read(node: &Node<'_>) -> Result<Size3d> {
        match Elements::<usize>::read(node)?.0[..] {
            [side] if !node.value().is_array() => Ok(side.into()),
            [depth, height, width] => Ok((depth, height, width).into()),
            _ => Err(node.expected("a size, or depth, height and width")),
        }
    }
}

/// The sizes before and after an axis.
fn side(node: &Node<'_>) -> Result<(usize, usize)> {
    match Elements::read(node)?.0[..] {
        [size] if !node.value().is_array() => Ok((size, size)),
        [before, after] => Ok((before, after)),
        _ => Err(node.expected("a size, or two")),
    }
}

impl Field for Padding {
    fn write(&self) -> Result<Value> {
        Ok(match self {
            Padding::Valid => "valid".into(),
            Padding::Same => "same".into(),
        })
    }

    fn read(node: &Node<'_>) -> Result<Padding> {
        match node.text()? {
            "valid" => Ok(Padding::Valid),
            "same" => Ok(Padding::Same),
            _ => Err(node.expected("\"valid\" or \"same\"")),
        }
    }
}
