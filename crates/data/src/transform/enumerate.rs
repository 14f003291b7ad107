//! Adds the index of each element as a feature.

use estimand_tensor::{Array, Batch, BatchSpec, DType, Error, FeatureSpec, Result};

use crate::rows::count;
use crate::stage::{Indexed, InputContext, Stage, Stream, StreamItem, Unit};
use crate::{Dataset, Position};

impl Dataset {
    /// Adds the index of each element, counted from `start`, as an `i64` feature. After
    /// [`batch`](Dataset::batch), all rows of a batch have the batch's index.
    ///
    /// ```
    /// # use estimand_data::Dataset;
    /// # use estimand_tensor::Array;
    /// let data = Dataset::from_array(Array::from([0.5f32, 0.25])).enumerate("row", 10).batch(2);
    /// assert_eq!(data.iter().next().unwrap()?.features()["row"], Array::from([10i64, 11]).into());
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    pub fn enumerate(&self, name: &str, start: i64) -> Dataset {
        Dataset::new(Enumerate { input: self.clone(), rule: Numbers { name: name.to_string(), start } })
    }
}

/// The stage of `enumerate`. The position holds the number of elements yielded, and the input's
/// position.
struct Enumerate {
    input: Dataset,
    rule: Numbers,
}

#[derive(Clone)]
struct Numbers {
    name: String,
    start: i64,
}

impl Numbers {
    fn of(&self, element: u64) -> i64 {
        self.start.wrapping_add_unsigned(element)
    }

    fn add(&self, batch: Batch, numbers: Vec<i64>) -> Result<Batch> {
        if batch.features().contains_key(self.name.as_str()) {
            return Err(self.taken());
        }
        batch.with_feature(&self.name, Array::from(numbers))
    }

    fn taken(&self) -> Error {
        let message = format!("`enumerate` would add a feature `{}`, but there is one already", self.name);
        Error::config(message).help("choose another name")
    }
}

impl Stage for Enumerate {
    fn describe(&self) -> String {
        format!("enumerate(`{}` from {})", self.rule.name, self.rule.start)
    }

    fn inputs(&self) -> &[Dataset] {
        std::slice::from_ref(&self.input)
    }

    fn spec(&self) -> Result<BatchSpec> {
        let mut spec = self.input.spec()?;
        match spec.insert(self.rule.name.clone(), FeatureSpec::dense(DType::I64, [])) {
            None => Ok(spec),
            Some(_) => Err(self.rule.taken()),
        }
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        self.input.stage().indexed().is_some().then_some(self)
    }

    fn open(&self, cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([given], [below]) = from.parts()?;
        let input = self.input.stage().open(cx, below)?;
        Ok(Box::new(EnumerateStream { input, unit: self.unit(), rule: self.rule.clone(), given }))
    }
}

impl Indexed for Enumerate {
    fn n_rows(&self) -> Result<u64> {
        self.input.stage().indexed().map_or(Ok(0), Indexed::n_rows)
    }

    fn gather(&self, rows: &[u64]) -> Result<Batch> {
        let input = self.input.stage().indexed().ok_or_else(|| Error::internal("rows that have no numbers"))?;
        self.rule.add(input.gather(rows)?, rows.iter().map(|&row| self.rule.of(row)).collect())
    }
}

struct EnumerateStream {
    input: Box<dyn Stream>,
    unit: Unit,
    rule: Numbers,
    given: u64,
}

impl Stream for EnumerateStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let Some(StreamItem { batch, after }) = self.input.pull(want)? else { return Ok(None) };
        let n_rows = batch.n_rows();
        let numbers = match self.unit {
            Unit::Row => (0..n_rows as u64).map(|i| self.rule.of(self.given.wrapping_add(i))).collect(),
            Unit::Batch => vec![self.rule.of(self.given); n_rows],
        };
        self.given = self.given.saturating_add(count(self.unit, &batch));
        Ok(Some(StreamItem { batch: self.rule.add(batch, numbers)?, after: Position::new([self.given], [after]) }))
    }
}
