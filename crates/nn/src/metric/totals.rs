//! The sums of a metric over batches, and the value computed from them.

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Error, Result, Shape};

use super::Metric;

/// The sums of a metric so far, in f64. The evaluator adds the sums of every batch and computes the
/// value once.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric::{Totals, mean};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let x = Graph::new().placeholder("x", DType::F32, [Dim::BATCH]);
/// let metric = mean(&x, None);
/// let mut totals = Totals::default();
/// totals.add(&[Array::from(6.0f32), Array::from(2.0f32)])?; // the sum of two values, and their number
/// totals.add(&[Array::from(3.0f32), Array::from(1.0f32)])?;
/// assert_eq!(totals.value(&metric)?, 3.0);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Totals(Vec<Total>);

#[derive(Clone, Debug)]
struct Total {
    dims: Vec<usize>,
    values: Vec<f64>,
}

impl Totals {
    /// Adds the sums of a batch.
    pub fn add(&mut self, sums: &[Array]) -> Result<()> {
        if self.0.is_empty() {
            let zeros = |sum: &Array| Total { dims: sum.dims().to_vec(), values: vec![0.0; sum.len()] };
            self.0 = sums.iter().map(zeros).collect();
        }
        if !self.0.iter().map(|total| &total.dims[..]).eq(sums.iter().map(Array::dims)) {
            let (found, first): (Vec<_>, Vec<_>) =
                (sums.iter().map(Array::dims).collect(), self.0.iter().map(|total| &total.dims).collect());
            let message =
                format!("the sums of a batch have the shapes {found:?}; those of the first batch had {first:?}");
            return Err(Error::shape(message).help("give the metric sums of the same shape in every batch"));
        }
        for (total, sum) in self.0.iter_mut().zip(sums) {
            total.values.iter_mut().zip(sum.to_f64_vec()?).for_each(|(total, value)| *total += value);
        }
        Ok(())
    }

    /// The metric's value for all added batches, one number.
    pub fn value(&self, metric: &Metric) -> Result<f64> {
        let value = self.array(metric)?;
        match value.to_f64_vec()?[..] {
            [value] => Ok(value),
            _ => Err(Error::shape(format!(
                "the value of the metric has the shape {:?}; expected one number",
                value.dims()
            ))),
        }
    }

    /// The metric's value for all added batches, of any shape. It is computed in a small separate
    /// graph, in f64.
    pub fn array(&self, metric: &Metric) -> Result<Array> {
        let graph = Graph::new();
        let place = |(i, total): (usize, &Total)| {
            let shape = Shape::from(&total.dims[..]);
            graph.placeholder(&format!("sum_{i}"), DType::F64, shape)
        };
        let places: Vec<Tensor> = self.0.iter().enumerate().map(place).collect();
        let value = metric.value(&places);
        let feeds: Vec<(&Tensor, Array)> = places.iter().zip(self.sums()?).collect();
        let mut found = Session::with(&graph, Reference, 0)?.run(&[&value], &feeds)?;
        found.pop().ok_or_else(|| Error::internal("a run without results"))
    }

    /// The sums so far, one f64 array for each.
    pub fn sums(&self) -> Result<Vec<Array>> {
        self.0.iter().map(|total| Array::from_vec(&total.dims, total.values.clone())).collect()
    }
}
