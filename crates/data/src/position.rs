//! The position of a stream. Every item carries one, and a checkpoint saves it.

use std::sync::Arc;

use estimand_tensor::{Error, Result};
use estimand_wire::varint;

/// A place in a stream: a tree of integers in the shape of the plan. The default is the beginning.
///
/// Each stage stores a few numbers and the positions of its inputs. Only the stage knows the
/// meaning of its numbers.
///
/// ```
/// use estimand_data::Position;
///
/// let place = Position::new([3], [Position::new([170, 2], [])]);
/// assert_eq!(Position::from_bytes(&place.to_bytes())?, place);
/// assert!(Position::default().is_beginning());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Position {
    words: Vec<u64>,
    inputs: Vec<Position>,
    /// The marks of the plan, one per stage, if they are known. Only the root of a tree has them.
    marks: Option<Arc<[u32]>>,
}

static BEGINNING: Position = Position { words: Vec::new(), inputs: Vec::new(), marks: None };

/// More than the depth of any plan. Keeps hostile bytes from exhausting the stack.
const MAX_DEPTH: usize = 256;

impl Position {
    /// Creates the position of a stage from its numbers and the positions of its inputs.
    pub fn new(words: impl Into<Vec<u64>>, inputs: impl Into<Vec<Position>>) -> Position {
        Position { words: words.into(), inputs: inputs.into(), marks: None }
    }

    /// Creates the position of a stage with one number and at most one input. Reuses the memory of
    /// a position that is no longer needed.
    pub(crate) fn renew(mut self, word: u64, input: Option<Position>) -> Position {
        self.words.clear();
        self.words.push(word);
        self.inputs.clear();
        self.inputs.extend(input);
        self.marks = None;
        self
    }

    /// Removes and returns the position of the last input.
    pub(crate) fn take_input(&mut self) -> Position {
        self.inputs.pop().unwrap_or_default()
    }

    /// Adds the marks of the plan.
    pub(crate) fn of_plan(self, marks: Arc<[u32]>) -> Position {
        Position { marks: Some(marks), ..self }
    }

    /// The marks of the plan that this position belongs to.
    pub(crate) fn marks(&self) -> Option<&[u32]> {
        self.marks.as_deref()
    }

    /// Whether nothing has been read yet.
    pub fn is_beginning(&self) -> bool {
        self.words.is_empty() && self.inputs.is_empty()
    }

    /// How many numbers the stage has stored.
    pub(crate) fn n_words(&self) -> usize {
        self.words.len()
    }

    /// The `W` numbers and `I` input positions of a stage. At the beginning, zeros and beginnings.
    ///
    /// A position of another shape belongs to another plan and is an error.
    pub fn parts<const W: usize, const I: usize>(&self) -> Result<([u64; W], [&Position; I])> {
        if self.is_beginning() {
            return Ok(([0; W], [&BEGINNING; I]));
        }
        match self.words.as_slice().try_into() {
            Ok(words) if self.inputs.len() == I => Ok((words, std::array::from_fn(|i| &self.inputs[i]))),
            _ => Err(self.foreign(W, I)),
        }
    }

    /// Like [`parts`](Position::parts), for a stage that combines several datasets: the counts are
    /// known only from the plan.
    pub fn parts_of(&self, n_words: usize, n_inputs: usize) -> Result<(Vec<u64>, Vec<Position>)> {
        if self.is_beginning() {
            return Ok((vec![0; n_words], vec![Position::default(); n_inputs]));
        }
        if (self.words.len(), self.inputs.len()) != (n_words, n_inputs) {
            return Err(self.foreign(n_words, n_inputs));
        }
        Ok((self.words.clone(), self.inputs.clone()))
    }

    fn foreign(&self, n_words: usize, n_inputs: usize) -> Error {
        Error::config(format!(
            "the position has {} numbers and {} inputs; the plan expects {n_words} and {n_inputs}",
            self.words.len(),
            self.inputs.len()
        ))
        .help("resume with the plan that the position was taken from")
    }

    /// Encodes the position for a checkpoint.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let marks = self.marks().unwrap_or(&[]);
        varint::put(marks.len() as u64, &mut bytes);
        marks.iter().for_each(|mark| bytes.extend(mark.to_le_bytes()));
        self.put(&mut bytes);
        bytes
    }

    fn put(&self, out: &mut Vec<u8>) {
        varint::put(self.words.len() as u64, out);
        self.words.iter().for_each(|&word| varint::put(word, out));
        varint::put(self.inputs.len() as u64, out);
        self.inputs.iter().for_each(|input| input.put(out));
    }

    /// Decodes a position from [`to_bytes`](Position::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> Result<Position> {
        let mut rest = bytes;
        let position = take_marks(&mut rest).and_then(|marks| {
            let position = Position::take(&mut rest, 0)?;
            Some(if marks.is_empty() { position } else { position.of_plan(marks.into()) })
        });
        position.filter(|_| rest.is_empty()).ok_or_else(|| {
            Error::config(format!("{} bytes are not the position of a dataset", bytes.len()))
                .help("take the bytes from Position::to_bytes; these are damaged, or were written by something else")
        })
    }

    fn take(bytes: &mut &[u8], depth: usize) -> Option<Position> {
        if depth > MAX_DEPTH {
            return None;
        }
        // Every entry takes at least one byte. So a count may not exceed the bytes that are left,
        // and no memory is reserved for it.
        let n_words = varint::take(bytes)?;
        let mut words = Vec::new();
        for _ in 0..n_words {
            words.push(varint::take(bytes)?);
        }
        let n_inputs = varint::take(bytes)?;
        let mut inputs = Vec::new();
        for _ in 0..n_inputs {
            inputs.push(Position::take(bytes, depth + 1)?);
        }
        Some(Position { words, inputs, marks: None })
    }
}

fn take_marks(bytes: &mut &[u8]) -> Option<Vec<u32>> {
    let mut marks = Vec::new();
    for _ in 0..varint::take(bytes)? {
        let (mark, rest) = bytes.split_first_chunk()?;
        marks.push(u32::from_le_bytes(*mark));
        *bytes = rest;
    }
    Some(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_damage_is_refused() {
        let place = Position::new([u64::MAX, 0], [Position::default(), Position::new([7], [])]);
        let bytes = place.to_bytes();
        assert_eq!(Position::from_bytes(&bytes).unwrap(), place);
        for n in 0..bytes.len() {
            assert!(Position::from_bytes(&bytes[..n]).is_err(), "cut to {n}");
        }
        assert!(Position::from_bytes(&[bytes, vec![0]].concat()).is_err());
        let marked = place.of_plan([1, u32::MAX].into());
        let bytes = marked.to_bytes();
        assert_eq!(Position::from_bytes(&bytes).unwrap(), marked);
        for n in 0..bytes.len() {
            assert!(Position::from_bytes(&bytes[..n]).is_err(), "cut to {n}");
        }
        // 0 numbers and 1 input, again and again.
        assert!(Position::from_bytes(&[0, 1].repeat(100_000)).is_err());
        assert!(Position::from_bytes(&[0xff; 9]).is_err());
    }

    #[test]
    fn a_position_of_another_plan_is_refused() {
        let place = Position::new([1], []);
        assert!(place.parts::<1, 0>().is_ok());
        assert!(place.parts::<2, 0>().is_err());
        let e = place.parts::<1, 1>().unwrap_err().to_string();
        assert!(e.contains("1 numbers and 0 inputs; the plan expects 1 and 1"), "{e}");
        assert_eq!(Position::default().parts::<2, 1>().unwrap().0, [0, 0]);
    }
}
