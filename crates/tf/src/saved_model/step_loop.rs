//! A loop that runs step by step: a program for the condition and one for the step.
//!
//! The graph around the loop holds it as one op. The first inputs of the op are the arguments that
//! are tensors, then come the lists. Its results are the arguments that a step changes, then the
//! lists that it writes.

use std::cell::Cell;
use std::sync::Arc;

use estimand_engine::Compiled;
use estimand_graph::{RunArgs, State};
use estimand_tensor::{Array, Error, Result};

/// A loop with its programs.
pub(super) struct StepLoop {
    pub condition: Part,
    pub body: Part,
    pub state: Arc<dyn State>,
    /// The number of inputs that are tensors.
    pub n_values: usize,
    /// The elements that a step reads: the list and the value that is the index.
    pub elements: Vec<(usize, usize)>,
    /// The values that the first results of the body replace.
    pub next: Vec<usize>,
    /// The lists that the other results of the body, pairs of index and item, are written to.
    pub writes: Vec<usize>,
    /// The lists that are written, in their order.
    pub written: Vec<usize>,
    pub most_steps: usize,
}

/// A program, and the source of each of its feeds.
pub(super) struct Part {
    pub compiled: Compiled,
    pub feeds: Vec<Source>,
}

/// The source of a feed.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Value(usize),
    Element(usize),
}

thread_local! {
    /// The steps that are left to the loops that run in this thread. `None` if none runs.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Takes back the budget of the outermost loop, even if it fails.
struct Outermost;

impl Drop for Outermost {
    fn drop(&mut self) {
        LEFT.set(None);
    }
}

impl StepLoop {
    /// Runs the loop.
    pub(super) fn run(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let _outermost = LEFT.get().is_none().then(|| {
            LEFT.set(Some(self.most_steps));
            Outermost
        });
        let mut values = inputs[..self.n_values].to_vec();
        let mut lists: Vec<List> = inputs[self.n_values..].iter().map(List::of).collect();
        for step in 0usize.. {
            let place = |e: Error| e.context(format!("in step {step} of the loop"));
            let left = self.condition.run(&*self.state, &values, &[]).map_err(place)?;
            if !left.first().is_some_and(|left| left.item::<bool>().unwrap_or(false)) {
                break;
            }
            self.take_step().map_err(place)?;
            self.step(&mut values, &mut lists).map_err(place)?;
        }
        let values = self.next.iter().map(|&at| Ok(values[at].clone()));
        values.chain(self.written.iter().map(|&at| lists[at].array())).collect()
    }

    fn take_step(&self) -> Result<()> {
        let left = LEFT.get().unwrap_or(0).checked_sub(1).ok_or_else(|| {
            Error::unsupported(format!("the loop has taken {} steps; the limit", self.most_steps))
                .help("raise the limit with ReadLimits::default().loop_steps(..), or check that the loop ends")
        })?;
        LEFT.set(Some(left));
        Ok(())
    }

    fn step(&self, values: &mut [Array], lists: &mut [List]) -> Result<()> {
        let elements = self.elements.iter().map(|&(list, index)| lists[list].get(number(&values[index])?));
        let elements = elements.collect::<Result<Vec<_>>>()?;
        let mut results = self.body.run(&*self.state, values, &elements)?.into_iter();
        for (&at, value) in self.next.iter().zip(&mut results) {
            if value.dims() != values[at].dims() {
                return Err(Error::shape(format!(
                    "the step changes an argument from {:?} to {:?}; expected one shape in all steps",
                    values[at].dims(),
                    value.dims()
                )));
            }
            values[at] = value;
        }
        for &list in &self.writes {
            let (Some(index), Some(item)) = (results.next(), results.next()) else {
                return Err(Error::internal("a step without all its results"));
            };
            lists[list].set(number(&index)?, &item)?;
        }
        Ok(())
    }
}

impl Part {
    /// Runs the program on values and elements of lists.
    pub(super) fn run(&self, state: &dyn State, values: &[Array], elements: &[Array]) -> Result<Vec<Array>> {
        let feed = |source: &Source| match *source {
            Source::Value(at) => values[at].clone(),
            Source::Element(at) => elements[at].clone(),
        };
        let feeds: Vec<Array> = self.feeds.iter().map(feed).collect();
        let mut results = Vec::new();
        self.compiled.forward(state, RunArgs { feeds: &feeds, ..RunArgs::default() }, &mut results)?;
        Ok(results)
    }
}

fn number(index: &Array) -> Result<i64> {
    index.item::<i32>().map(i64::from).or_else(|_| index.item::<i64>())
}

/// A list while the loop runs. It is copied when it is written.
struct List<'a> {
    rows: &'a Array,
    written: Option<Vec<u8>>,
}

impl<'a> List<'a> {
    fn of(rows: &'a Array) -> List<'a> {
        List { rows, written: None }
    }

    fn bytes(&self) -> &[u8] {
        self.written.as_deref().unwrap_or(self.rows.bytes())
    }

    /// The bytes of an element.
    fn range(&self, index: i64) -> Result<std::ops::Range<usize>> {
        let n = self.rows.dims().first().copied().unwrap_or(0);
        let at = usize::try_from(index)
            .ok()
            .filter(|&at| at < n)
            .ok_or_else(|| Error::index(format!("element {index} of a list of {n} elements")))?;
        let size = self.bytes().len() / n;
        Ok(at * size..(at + 1) * size)
    }

    fn get(&self, index: i64) -> Result<Array> {
        let range = self.range(index)?;
        Array::from_bytes(self.rows.dtype(), &self.rows.dims()[1..], &self.bytes()[range])
    }

    fn set(&mut self, index: i64, item: &Array) -> Result<()> {
        let range = self.range(index)?;
        if item.dims() != &self.rows.dims()[1..] || item.dtype() != self.rows.dtype() {
            return Err(Error::shape(format!(
                "an element {}{:?} is written into a list of {}{:?}",
                item.dtype(),
                item.dims(),
                self.rows.dtype(),
                &self.rows.dims()[1..]
            )));
        }
        let bytes = self.written.get_or_insert_with(|| self.rows.bytes().to_vec());
        bytes[range].copy_from_slice(item.bytes());
        Ok(())
    }

    fn array(&self) -> Result<Array> {
        match &self.written {
            None => Ok(self.rows.clone()),
            Some(bytes) => Array::from_bytes(self.rows.dtype(), self.rows.dims(), bytes),
        }
    }
}
