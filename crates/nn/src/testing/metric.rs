//! The contract of metrics, and functions that compute a metric's value over given batches.

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, DType, Error, Result};

use super::{ensure, rows};
use crate::metric::{Metric, Totals};

/// One rule of the contract.
type Check = fn(&Case<'_>) -> Result<()>;

/// Makes a metric from labels, predictions and weights.
type Make<'a> = &'a dyn Fn(&Tensor, &Tensor, Option<&Tensor>) -> Metric;

/// The value of a metric over batches. Each batch is a list of placeholders and their values.
pub fn metric_value(metric: &Metric, batches: &[Vec<(&Tensor, Array)>]) -> Result<f64> {
    totals(metric, batches, 1)?.value(metric)
}

/// Like `metric_value`, for a metric with several numbers.
pub fn metric_array(metric: &Metric, batches: &[Vec<(&Tensor, Array)>]) -> Result<Array> {
    totals(metric, batches, 1)?.array(metric)
}

fn totals(metric: &Metric, batches: &[Vec<(&Tensor, Array)>], threads: usize) -> Result<Totals> {
    let sums: Vec<&Tensor> = metric.sums().iter().collect();
    let Some(first) = sums.first().filter(|_| !batches.is_empty()) else {
        return Err(Error::config(format!(
            "the metric has {} sums and there are {} batches; expected at least one of each",
            sums.len(),
            batches.len()
        )));
    };
    let mut session = Session::with(first.graph(), Cpu::with_threads(threads), 0)?;
    let mut totals = Totals::default();
    for batch in batches {
        totals.add(&session.run(&sums, batch)?)?;
    }
    Ok(totals)
}

/// Checks a metric with rows of labels and predictions: batching, the meaning of weights, no rows,
/// and threads. The sums must be exact in f32.
///
/// ```
/// use estimand_nn::metric::mean_absolute_error;
/// use estimand_nn::testing::check_metric;
/// use estimand_tensor::Array;
/// check_metric("mean_absolute_error", &mean_absolute_error, &Array::from([1i64, 2, 3]), &Array::from([0.5f32, 2.0, 3.25]))?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn check_metric(name: &str, make: Make<'_>, labels: &Array, predictions: &Array) -> Result<()> {
    let checks: [(&str, Check); 3] =
        [("batches", batches_do_not_matter), ("weights", a_weight_is_a_number_of_rows), ("no rows", nothing_is_zero)];
    let case = Case { make, labels, predictions, n: labels.dims().first().copied().unwrap_or(0) };
    let fits = case.n >= 3 && predictions.dims().first() == Some(&case.n);
    ensure(fits, || {
        format!(
            "the labels have the shape {:?} and the predictions {:?}; expected the same 3 rows or more",
            labels.dims(),
            predictions.dims()
        )
    })?;
    let place = |what: &str| format!("in the metric contract, {what}, for {name}");
    checks.iter().try_for_each(|(what, check)| check(&case).map_err(|e| e.context(place(what))))
}

struct Case<'a> {
    make: Make<'a>,
    labels: &'a Array,
    predictions: &'a Array,
    n: usize,
}

impl Case<'_> {
    /// The value over batches, each a list of rows.
    fn value(&self, batches: &[Vec<usize>], weights: Option<&[f32]>, threads: usize) -> Result<Vec<f64>> {
        let graph = Graph::new();
        let (labels, predictions) =
            (rows(&graph, "labels", self.labels), rows(&graph, "predictions", self.predictions));
        let weighed = match weights {
            Some(weights) => Some(Array::from_vec([weights.len()], weights.to_vec())?),
            None => None,
        };
        let weights = weighed.as_ref().map(|array| rows(&graph, "weights", array));
        let metric = (self.make)(&labels, &predictions, weights.as_ref());
        let mut feeds = Vec::new();
        for batch in batches {
            let mut feed = vec![(&labels, take(self.labels, batch)?), (&predictions, take(self.predictions, batch)?)];
            if let (Some(place), Some(array)) = (&weights, &weighed) {
                feed.push((place, take(array, batch)?));
            }
            feeds.push(feed);
        }
        totals(&metric, &feeds, threads)?.array(&metric)?.to_f64_vec()
    }

    fn all(&self) -> Vec<usize> {
        (0..self.n).collect()
    }
}

/// Takes rows by index, in any order; an index may repeat.
fn take(array: &Array, indices: &[usize]) -> Result<Array> {
    let row = array.dims().iter().skip(1).product::<usize>();
    let mut dims = array.dims().to_vec();
    dims[0] = indices.len();
    let places = indices.iter().flat_map(|&i| i * row..(i + 1) * row);
    match array.dtype() {
        DType::F32 => array.as_slice::<f32>().and_then(|all| Array::from_vec(dims, places.map(|i| all[i]).collect())),
        _ => array.as_slice::<i64>().and_then(|all| Array::from_vec(dims, places.map(|i| all[i]).collect())),
    }
}

/// Returns an error unless two lists of numbers are equal up to rounding.
fn ensure_equal(what: &str, a: &[f64], b: &[f64]) -> Result<()> {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    ensure(a.len() == b.len() && a.iter().zip(b).all(close), || format!("{what}: {a:?} is not {b:?}"))
}

/// The value is the same for all rows at once, one by one, in parts of which one is empty, and
/// backwards, on any number of threads.
fn batches_do_not_matter(case: &Case<'_>) -> Result<()> {
    let all = case.all();
    let at_once = case.value(&[case.all()], None, 1)?;
    ensure(at_once.iter().all(|value| value.is_finite()), || {
        format!("the value is {at_once:?}; expected finite numbers")
    })?;
    let one_by_one: Vec<Vec<usize>> = all.iter().map(|&i| vec![i]).collect();
    let parts = [all[..2].to_vec(), vec![], all[2..].to_vec()];
    ensure_equal("rows one by one", &case.value(&one_by_one, None, 1)?, &at_once)?;
    ensure_equal("rows in parts", &case.value(&parts, None, 1)?, &at_once)?;
    ensure_equal("rows backwards", &case.value(&[all.iter().rev().copied().collect()], None, 1)?, &at_once)?;
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let same = bits(&case.value(&[all], None, 3)?) == bits(&at_once);
    ensure(same, || "3 threads give other bits than 1".into())
}

/// A row of weight 2 counts like the row twice, and a row of weight 0 like no row.
fn a_weight_is_a_number_of_rows(case: &Case<'_>) -> Result<()> {
    let weights: Vec<f32> = (0..case.n).map(|i| (i % 3) as f32).collect();
    let repeated: Vec<usize> = case.all().into_iter().flat_map(|i| std::iter::repeat_n(i, i % 3)).collect();
    let weighed = case.value(&[case.all()], Some(&weights), 1)?;
    ensure_equal("rows of weights 0, 1 and 2", &weighed, &case.value(&[repeated], None, 1)?)?;
    let ones = case.value(&[case.all()], Some(&vec![1.0; case.n]), 1)?;
    ensure_equal("weights of 1", &ones, &case.value(&[case.all()], None, 1)?)
}

/// Without rows, or with no weight at all, the value is 0 and not NaN.
fn nothing_is_zero(case: &Case<'_>) -> Result<()> {
    for (what, value) in [
        ("a batch without rows", case.value(&[vec![]], None, 1)?),
        ("weights of 0", case.value(&[case.all()], Some(&vec![0.0; case.n]), 1)?),
    ] {
        ensure_equal(what, &value, &vec![0.0; value.len()])?;
    }
    Ok(())
}
