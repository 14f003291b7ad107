//! Reads one dataset after another.

use estimand_tensor::{BatchSpec, Error, Result};

use crate::agreement::{check_specs, check_units, spec};
use crate::stage::{InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

impl Dataset {
    /// Appends the elements of another dataset. The features of both must agree.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = |values: [i64; 2]| Dataset::from_arrays([("x", Array::from(values))]);
    /// let batch = data([1, 2]).concatenate(&data([3, 4])).batch(4).iter().next().unwrap()?;
    /// assert_eq!(batch.features()["x"], Array::from([1i64, 2, 3, 4]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn concatenate(&self, other: &Dataset) -> Dataset {
        Dataset::new(Concatenate { inputs: [self.clone(), other.clone()] })
    }
}

/// The stage of `concatenate`. The position holds the number of the current input, and its
/// position.
struct Concatenate {
    inputs: [Dataset; 2],
}

impl Stage for Concatenate {
    fn describe(&self) -> String {
        "concatenate".to_string()
    }

    fn inputs(&self) -> &[Dataset] {
        &self.inputs
    }

    fn check(&self) -> Result<()> {
        check_units("concatenate", &self.inputs)
    }

    fn spec(&self) -> Result<BatchSpec> {
        spec("concatenate", &self.inputs)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        check_specs("concatenate", &self.inputs)?;
        let ([which], [below]) = from.parts()?;
        let input = self.inputs.get(usize::try_from(which).unwrap_or(usize::MAX)).ok_or_else(|| {
            Error::config(format!("the position is in dataset {which} (from 0), but `concatenate` has two"))
                .help("resume with the plan that the position was taken from")
        })?;
        let current = input.stage().open(cx, below)?;
        let next = (which == 0).then(|| self.inputs[1].clone());
        Ok(Box::new(ConcatenateStream { current, next, cx: *cx }))
    }
}

struct ConcatenateStream {
    current: Box<dyn Stream>,
    /// The second input, until it is opened.
    next: Option<Dataset>,
    cx: InputContext,
}

impl Stream for ConcatenateStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        loop {
            if let Some(StreamItem { batch, after }) = self.current.pull(want)? {
                let which = u64::from(self.next.is_none());
                return Ok(Some(StreamItem { batch, after: Position::new([which], [after]) }));
            }
            let Some(next) = self.next.take() else { return Ok(None) };
            self.current = next.stage().open(&self.cx, &Position::default())?;
        }
    }
}
