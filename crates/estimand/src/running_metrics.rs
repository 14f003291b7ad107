//! Running metrics: metrics of a training over all its steps so far.
//!
//! A training step also computes the sums of its batch. The training loop adds them to totals in
//! f64, hooks show the value, and checkpoints hold the totals. So a training that was interrupted
//! continues with the same totals, bit for bit.

use estimand_checkpoint::BundleReader;
use estimand_graph::{Graph, Tensor, Value};
use estimand_nn::metric::{Metric, Totals};
use estimand_tensor::{Array, DType, Error, Result, warn};
use indexmap::IndexMap;

use crate::own_entries::OWN;
use crate::saver::Each;

/// A metric and its sums over the steps so far.
struct RunningMetric {
    name: String,
    metric: Metric,
    totals: Totals,
    /// Whether the totals contain a step.
    has_begun: bool,
}

impl RunningMetric {
    /// The value over all steps so far; `None` before the first.
    fn value(&self) -> Result<Option<f64>> {
        let value = self.has_begun.then(|| self.totals.value(&self.metric));
        value.transpose().map_err(|e| e.context(self.place()))
    }

    fn place(&self) -> String {
        format!("in running metric `{}`", self.name)
    }

    /// The checkpoint entry of one of its sums.
    fn entry(&self, sum: usize) -> String {
        format!("{OWN}running/{}/{sum}", self.name)
    }

    /// Reads the totals of a checkpoint; `None` if it has none, or none that fit.
    fn read(&self, reader: &BundleReader) -> Result<Option<Totals>> {
        let mut sums = Vec::new();
        for (i, sum) in self.metric.sums().iter().enumerate() {
            let entry = self.entry(i);
            if !reader.contains(&entry) {
                return Ok(None);
            }
            let array = reader.read(&entry)?;
            if array.dtype() != DType::F64 || sum.shape().known().as_deref() != Some(array.dims()) {
                let (dtype, dims) = (array.dtype(), array.dims());
                warn!(
                    "Running metric `{}` starts at 0: the checkpoint has sums of another shape, {dtype}{dims:?}",
                    self.name
                );
                return Ok(None);
            }
            sums.push(array);
        }
        let mut totals = Totals::default();
        totals.add(&sums)?;
        Ok(Some(totals))
    }
}

/// The running metrics of a training, in the order they were added.
#[derive(Default)]
pub(crate) struct RunningMetrics {
    metrics: Vec<RunningMetric>,
    /// The index of their first sum among the values of a step.
    first_sum: usize,
}

impl RunningMetrics {
    /// Makes metrics without totals, and adds their sums to the fetches of a step.
    pub(crate) fn new(metrics: IndexMap<String, Metric>, fetches: &mut Vec<Value>) -> RunningMetrics {
        let first_sum = fetches.len();
        fetches.extend(metrics.values().flat_map(Metric::sums).map(Tensor::value));
        let running = |(name, metric)| RunningMetric { name, metric, totals: Totals::default(), has_begun: false };
        RunningMetrics { metrics: metrics.into_iter().map(running).collect(), first_sum }
    }

    /// Adds the sums of a step, which are among its values.
    #[inline]
    pub(crate) fn add(&mut self, values: &[Array]) -> Result<()> {
        if self.metrics.is_empty() {
            return Ok(());
        }
        let mut sums = values.get(self.first_sum..).unwrap_or_default();
        for metric in &mut self.metrics {
            let own = sums.split_off(..metric.metric.sums().len()).unwrap_or_default();
            metric.totals.add(own).map_err(|e| e.context(metric.place()))?;
            metric.has_begun = true;
        }
        Ok(())
    }

    /// Returns the value of a metric; `None` before the first step.
    pub(crate) fn value(&self, name: &str) -> Result<Option<f64>> {
        match self.metrics.iter().find(|metric| metric.name == name) {
            Some(metric) => metric.value(),
            None => Err(Error::unknown("running metric", name, self.metrics.iter().map(|metric| metric.name.as_str()))),
        }
    }

    /// Returns the names and values of all metrics that have seen a step.
    pub(crate) fn values(&self) -> Result<Vec<(&str, f64)>> {
        let named = self.metrics.iter().filter_map(|metric| Some((&*metric.name, metric.value().transpose()?)));
        named.map(|(name, value)| Ok((name, value?))).collect()
    }

    /// Visits the totals, which a checkpoint holds.
    pub(crate) fn each_saved(&self, each: Each<'_>) -> Result<()> {
        for metric in &self.metrics {
            for (i, total) in metric.totals.sums()?.into_iter().enumerate() {
                each(metric.entry(i), total)?;
            }
        }
        Ok(())
    }

    /// Continues with the totals of a checkpoint. A metric that the checkpoint does not have starts
    /// at 0.
    pub(crate) fn restore(&mut self, reader: &BundleReader) -> Result<()> {
        for metric in &mut self.metrics {
            if let Some(totals) = metric.read(reader)? {
                (metric.totals, metric.has_begun) = (totals, true);
            }
        }
        Ok(())
    }
}

/// Checks that the value of a metric is one number, which can be shown as a curve.
pub(crate) fn check(name: &str, metric: &Metric) -> Result<()> {
    let place = |e: Error| e.context(format!("in running metric `{name}`"));
    let graph = Graph::new();
    let mut sums = Vec::new();
    for (i, sum) in metric.sums().iter().enumerate() {
        let Some(dims) = sum.shape().known() else {
            let text = format!("the sum {} has a size that is known only at run time", sum.describe());
            return Err(place(Error::shape(text)));
        };
        sums.push(graph.placeholder(&format!("sum_{i}"), DType::F64, &dims[..]));
    }
    let value = metric.value(&sums);
    graph.check().map_err(place)?;
    match value.shape().known().map(|dims| dims.iter().product::<usize>()) {
        Some(1) => Ok(()),
        _ => Err(place(Error::shape(format!("its value is {}; expected one number", value.shape())))
            .help("evaluations report metrics of several numbers: EstimatorSpec::metric")),
    }
}
