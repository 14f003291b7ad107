//! Builds the model of one mode: calls the model function and checks the spec it returns.

use std::collections::HashMap;
use std::sync::PoisonError;

use estimand_data::{Dataset, InputContext, Position, Stream, StreamItem};
use estimand_graph::Graph;
use estimand_tensor::{Error, Mode, Result};
use tracing::info;

use super::Estimator;
use super::late::Late;
use crate::EstimatorSpec;
use crate::feeding::Placeholders;
use crate::input_fn::{InputFn, InputFnContext};
use crate::model_fn::{InputSpec, ModelFnContext, Received, lines};

/// A model that is built but not yet compiled.
pub(super) struct BuiltModel {
    pub(super) graph: Graph,
    pub(super) spec: EstimatorSpec,
    pub(super) placeholders: Placeholders,
}

/// An opened input and its first batch, which shows what all batches look like.
pub(crate) struct Opened {
    pub(crate) data: Dataset,
    pub(super) cx: InputContext,
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) first: Option<StreamItem>,
    /// Whether the stream is opened once a hook has fed its placeholders. Then there is no first
    /// batch yet.
    pub(crate) is_late: bool,
    pub(crate) spec: InputSpec,
}

impl Estimator {
    /// Returns the context for reading the input of a mode.
    pub(crate) fn input_context(&self, mode: Mode, seed: u64, epoch: u64) -> InputContext {
        let n_workers = self.config.cluster.as_ref().map_or(1, |cluster| cluster.n_workers().max(1));
        let worker = self.config.cluster.as_ref().and_then(|cluster| cluster.global_id()).unwrap_or(0);
        let worker = worker.min(n_workers - 1);
        InputContext {
            mode,
            worker,
            n_workers,
            n_replicas: n_workers,
            seed,
            epoch,
            n_threads: self.config.n_input_threads(),
        }
    }

    /// Makes the dataset of a mode.
    pub(crate) fn dataset(&self, input: &dyn InputFn, cx: InputContext) -> Result<Dataset> {
        let data = input.dataset(&InputFnContext { input: cx, params: &self.params, config: &self.config })?;
        match data.unit() {
            estimand_data::Unit::Batch => Ok(data),
            estimand_data::Unit::Row => Err(Error::config("the input is not batched").help("end it with .batch(n)")),
        }
    }

    /// Opens a dataset at a position and looks at its first batch. A dataset whose placeholders are
    /// fed later is opened with its first batch.
    pub(crate) fn open_input(&self, data: Dataset, cx: &InputContext, from: &Position) -> Result<Opened> {
        if data.awaits_feeding() {
            let spec = InputSpec { classes: data.classes()?, ..InputSpec::of(&data.batch_of_zeros(cx)?) };
            let stream = Box::new(Late::new(data.clone(), *cx, from.clone()));
            return Ok(Opened { data, cx: *cx, stream, first: None, is_late: true, spec });
        }
        let mut stream = data.open(cx, from)?;
        let first = stream.pull(1)?;
        let mut spec = match &first {
            Some(item) => InputSpec::of(&item.batch),
            None => InputSpec { features: data.spec()?, labels: data.label_spec()?, ..InputSpec::default() },
        };
        spec.classes = data.classes()?;
        Ok(Opened { data, cx: *cx, stream, first, is_late: false, spec })
    }

    /// Calls the model function for a mode.
    pub(super) fn build(&self, mode: Mode, input: &InputSpec) -> Result<BuiltModel> {
        let labelled = InputSpec { labels: Default::default(), ..input.clone() };
        let input = if mode == Mode::Predict { &labelled } else { input };
        let cx = ModelFnContext::new(mode, input, &self.params, &self.config, self.site);
        let spec = self.call(&cx)?;
        let placeholders = Placeholders::of(&cx);
        Ok(BuiltModel { graph: cx.graph().clone(), spec, placeholders })
    }

    /// Calls the model function with inputs that `receive` makes in the graph.
    pub(crate) fn build_for<R: Clone + Into<Received>>(
        &self,
        mode: Mode,
        receive: impl FnOnce(&Graph) -> Result<R>,
    ) -> Result<(Graph, EstimatorSpec, R)> {
        let (cx, received) = ModelFnContext::receiving(mode, &self.params, &self.config, self.site, receive)?;
        let spec = self.call(&cx)?;
        Ok((cx.graph().clone(), spec, received))
    }

    fn call(&self, cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
        let mode = cx.mode();
        let _lines = lines(cx.graph(), self.site);
        info!("Calling model_fn.");
        let place = |error: Error| error.context(format!("in the model function, mode {mode}"));
        let spec = (self.model_fn)(cx).and_then(|spec| spec.checked(cx).map_err(place));
        let spec = spec.map_err(|error| error.at_unless_placed(self.site))?;
        info!("Done calling model_fn.");
        self.check_sites(mode, cx.graph())?;
        Ok(spec)
    }

    /// Checks that a variable comes from the same line in every mode. Otherwise a name that moved
    /// from one layer to another would carry the wrong weights.
    fn check_sites(&self, mode: Mode, graph: &Graph) -> Result<()> {
        let mut known = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = HashMap::new();
        for (_, spec) in graph.body().variables().iter() {
            // Two layers on one line are at different columns of it.
            if let Some((earlier, first)) = known.get(&spec.name).filter(|(_, first)| *first != spec.site) {
                return Err(Error::config(format!(
                    "variable `{}` is made at {first} in mode {earlier} and at {} in mode {mode}",
                    spec.name, spec.site
                ))
                .help("give a name to each layer that exists in only one mode: it shifts the names of the others"));
            }
            found.insert(spec.name.clone(), (mode, spec.site));
        }
        for (name, site) in found {
            known.entry(name).or_insert(site);
        }
        Ok(())
    }
}
