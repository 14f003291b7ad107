//! Single batches: `train_on_batch` and `test_on_batch`.

use estimand_tensor::{Array, Error, Mode, Result};

use super::data::Data;
use super::history::Logs;
use super::layout::Layout;
use super::model::Model;
use super::programs::{Running, StepProgram};

impl Model {
    /// Trains on one batch. Returns its loss and metrics, before the weights changed.
    pub fn train_on_batch(&mut self, data: impl Into<Data>) -> Result<Logs> {
        self.on_batch(&data.into(), Mode::Train)
    }

    /// Computes the loss and the metrics of one batch.
    pub fn test_on_batch(&mut self, data: impl Into<Data>) -> Result<Logs> {
        self.on_batch(&data.into(), Mode::Eval)
    }

    fn on_batch(&mut self, data: &Data, mode: Mode) -> Result<Logs> {
        self.check_compiled()?;
        let (program, outputs, n_rows) = self.run_batch(data, mode)?;
        let mut running = Running::default();
        running.add(&program, &outputs, n_rows)?;
        Ok(running.values(&program)?.into_iter().collect())
    }

    /// Runs one batch of arrays.
    pub(super) fn run_batch(&mut self, data: &Data, mode: Mode) -> Result<(StepProgram, Vec<Array>, usize)> {
        let Some(batch) = data.batch(self)? else {
            return Err(Error::config("one batch was asked for, and the data is a dataset").help("pass arrays"));
        };
        let layout = Layout::of(self, &batch, mode)?;
        let program = self.program(mode, &layout)?;
        let feeds = program.compiled.prepare(program.binding.bind(&batch, &Vec::new())?)?;
        let mut outputs = Vec::new();
        program.run(&mut self.weights, &feeds, &mut outputs)?;
        Ok((program, outputs, batch.n_rows()))
    }
}
