//! An open stream of batches with the program that runs on them.

use estimand_data::{InputContext, Stream};
use estimand_tensor::{Error, Mode, Result};

use super::data::Batches;
use super::layout::Layout;
use super::model::{Model, Place};
use super::programs::StepProgram;
use crate::RunConfig;
use crate::feeding::{Fed, Feeder};

/// An open stream of batches, and the program that runs on them.
pub(super) struct Source {
    pub program: StepProgram,
    feeder: Feeder,
    /// The epoch it was opened for.
    pub epoch: usize,
}

impl Source {
    pub fn next(&mut self) -> Result<Option<Fed>> {
        self.feeder.next()
    }

    pub fn recycle(&mut self, fed: Fed) {
        self.feeder.recycle(fed);
    }
}

impl Model {
    /// Opens a stream of batches and finds the program for them.
    pub(super) fn open(
        &mut self,
        batches: &Batches,
        mode: Mode,
        epoch: usize,
        classes: Option<&[f32]>,
    ) -> Result<Source> {
        self.open_at(batches, mode, Place { epoch, ..Place::default() }, classes)?.ok_or_else(no_batches)
    }

    /// Opens a stream at a place. There is none if the place is its end.
    pub(super) fn open_at(
        &mut self,
        batches: &Batches,
        mode: Mode,
        place: Place,
        classes: Option<&[f32]>,
    ) -> Result<Option<Source>> {
        let (seed, epoch) = (self.weights.seed, place.epoch);
        let cx = InputContext { mode, seed, epoch: epoch as u64, ..InputContext::default() };
        let mut stream: Box<dyn Stream> = batches.dataset.open(&cx, &place.position)?;
        let Some(first) = stream.pull(usize::MAX)? else { return Ok(None) };
        let mut layout = Layout::of(self, &first.batch, mode)?;
        layout.class_weight = classes.map(<[f32]>::to_vec);
        let program = self.program(mode, &layout)?;
        let n_threads = RunConfig::new().n_input_threads();
        let (binding, compiled) = (program.binding.clone(), program.compiled.clone());
        let feeder = Feeder::new(Some(first), stream, binding, compiled, n_threads);
        Ok(Some(Source { program, feeder, epoch }))
    }
}

pub(super) fn no_batches() -> Error {
    Error::data("the data has no batches").help("pass data with at least one row")
}
