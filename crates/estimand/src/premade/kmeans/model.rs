//! The model function of k-means: distances by one matrix product, sums of rows by cluster.
//!
//! Variables and predictions have TensorFlow's names, so its model folders go on here.

use estimand_graph::{Axes, Initializer, Role, Tensor, Transposed};
use estimand_nn::column::input_layer;
use estimand_nn::{Input, metric};
use estimand_tensor::{DType, Error, Mode, Result};
use indexmap::IndexMap;

use super::beginning::Chooser;
use super::first_centers::{INITIALIZED, MIN_SQUARED_LENGTH, initial_values};
use super::tolerance::RelativeTolerance;
use super::{Batches, DistanceMetric, InitialClusters, Settings};
use crate::from_input::FromInput;
use crate::{EstimatorSpec, ExportOutput, ModelFnContext, SERVING_DEFAULT};

/// The variable of the centers.
pub(super) const CLUSTERS: &str = "clusters";
/// The centers that mini-batches move, if rows are compared with older ones.
const CLUSTERS_UPDATED: &str = "clusters_updated";
/// The number of steps until rows are compared with the moved centers.
const UPDATE_IN_STEPS: &str = "update_in_steps";
// TF: the number of rows of each cluster has no name there, so it is called this.
const COUNTS: &str = "Variable";

pub(super) const SCORE: &str = "score";
pub(super) const CLUSTER_INDEX: &str = "cluster_index";
pub(super) const ALL_DISTANCES: &str = "all_distances";

/// What is added to the number of rows of a cluster before a sum is divided by it.
const EPSILON: f64 = 1e-6;

/// Builds the model of a mode.
pub(super) fn spec(settings: &Settings, cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    check_input(cx)?;
    let given = settings.points(cx)?;
    let points = match settings.distance {
        DistanceMetric::SquaredEuclidean => given.clone(),
        DistanceMetric::Cosine => normalized(&given),
    };
    cx.graph().check()?;
    let n_features = points.shape().dims()[1].known().ok_or_else(|| {
        Error::shape(format!("the points are {}; their number of features must be known", points.describe()))
            .help("give features of a fixed size, or feature_columns")
    })?;
    let centers = Centers::new(settings, cx, n_features)?;
    let compared = match (settings.distance, settings.keeps_normalized()) {
        (DistanceMetric::Cosine, false) => normalized(&centers.clusters),
        _ => centers.clusters.clone(),
    };
    let nearest = Nearest::new(settings.distance, &points, &compared);
    let spec = settings.given(EstimatorSpec::new(cx), centers.names)?;
    if cx.mode() == Mode::Predict {
        let distances = nearest.all_distances();
        let output = |tensor: &Tensor| ExportOutput::Predict(IndexMap::from([("output".to_string(), tensor.clone())]));
        return Ok(spec
            .prediction(ALL_DISTANCES, &distances)
            .prediction(CLUSTER_INDEX, &nearest.index)
            .export_output(ALL_DISTANCES, output(&distances))
            .export_output(CLUSTER_INDEX, output(&nearest.index))
            .export_output(SERVING_DEFAULT, output(&nearest.index)));
    }
    let loss = nearest.loss();
    cx.summary().scalar("loss/raw", &loss);
    let mut spec = spec.loss(&loss).metric(SCORE, metric::mean(&loss, None));
    if cx.mode() == Mode::Train {
        spec = spec.train_op(&centers.moved(settings, &points, &nearest.index));
        if let Some(tolerance) = settings.relative_tolerance {
            spec = spec.training_hook(RelativeTolerance::new(tolerance));
        }
        if let Some(chooser) = Chooser::new(settings, centers.names) {
            // TF: a function of the user sees the points as they are given.
            let tensor = if matches!(settings.initial_clusters, InitialClusters::Chosen(_)) { given } else { points };
            spec = spec.initialized_from_input(FromInput { tensor, initializer: Box::new(chooser) });
        }
    }
    Ok(spec)
}

/// Refuses labels and weights, which k-means would ignore.
fn check_input(cx: &ModelFnContext<'_>) -> Result<()> {
    if cx.mode() != Mode::Predict && !cx.labels().is_empty() {
        let names: Vec<_> = cx.labels().names().collect();
        return Err(Error::config(format!("k-means was given labels: {}", names.join(", ")))
            .help("it learns from features alone: leave the labels out of the input"));
    }
    match cx.weights() {
        Some(_) => Err(Error::config("k-means was given weights of rows, which it cannot use")
            .help("leave the weights out of the input")),
        None => Ok(()),
    }
}

impl Settings {
    /// The rows as points, `[batch, features]`.
    fn points(&self, cx: &ModelFnContext<'_>) -> Result<Tensor> {
        if let Some(columns) = &self.columns {
            return Ok(input_layer(cx.features(), columns));
        }
        let mut features: Vec<_> = cx.features().iter().collect();
        features.sort_by_key(|(name, _)| *name);
        let points: Vec<Tensor> = features.into_iter().map(numbers).collect::<Result<_>>()?;
        match &points[..] {
            [] => Err(Error::config("k-means was given no features").help("give an input with numbers")),
            [one] => Ok(one.clone()),
            several => Ok(Tensor::concat(&several.iter().collect::<Vec<_>>(), 1)),
        }
    }

    /// Whether the variable of the centers holds vectors of length 1.
    // TF: with one mini-batch an iteration, the running means stay as they are.
    fn keeps_normalized(&self) -> bool {
        self.distance == DistanceMetric::Cosine && self.batches != Batches::Mini { steps_per_iteration: 1 }
    }

    /// Sets the initial values of given centers.
    fn given(&self, spec: EstimatorSpec, names: &[&'static str]) -> Result<EstimatorSpec> {
        let InitialClusters::Given(array) = &self.initial_clusters else { return Ok(spec) };
        let values = initial_values(names, self.first_centers(array)?);
        Ok(values.into_iter().fold(spec, |spec, (name, value)| spec.initial_value(name, value)))
    }
}

/// A feature as f32 numbers `[batch, n]`.
fn numbers((name, input): (&str, &Input)) -> Result<Tensor> {
    let shown = if name.is_empty() { "the feature".to_string() } else { format!("feature `{name}`") };
    let help = "give k-means feature_columns, which make numbers of it, or leave it out of the input";
    let Input::Dense(tensor) = input else {
        return Err(Error::shape(format!("{shown} has rows of different length; k-means needs numbers")).help(help));
    };
    if !tensor.dtype().is_number() {
        let text = format!("{shown} is {}; k-means needs numbers", tensor.dtype());
        return Err(Error::dtype(Some(DType::F32), tensor.dtype(), text).help(help));
    }
    let tensor = if tensor.dtype() == DType::F32 { tensor.clone() } else { tensor.cast(DType::F32) };
    match tensor.rank() {
        1 => Ok(tensor.expand_dims(1)),
        2 => Ok(tensor),
        _ => Err(Error::shape(format!("{shown} is {}; k-means needs one row of numbers each", tensor.describe()))
            .help("flatten it in the input, with map_graph or map")),
    }
}

/// Vectors of length 1.
fn normalized(rows: &Tensor) -> Tensor {
    let squared = rows.square().sum_axes(Axes::of([-1]).keep_dims());
    rows * squared.maximum(MIN_SQUARED_LENGTH).rsqrt()
}

/// The distances between points and centers, and the nearest centers.
struct Nearest {
    distance: DistanceMetric,
    points: Tensor,
    /// The squared lengths of the centers, `[clusters]`.
    lengths: Tensor,
    /// Squared distances less the squared length of each point, `[batch, clusters]`.
    scores: Tensor,
    /// The number of the nearest center, `[batch]`.
    index: Tensor,
}

impl Nearest {
    fn new(distance: DistanceMetric, points: &Tensor, centers: &Tensor) -> Nearest {
        let lengths = centers.square().sum_axes([-1]);
        let scores = points.matmul_with(&(centers * -2.0), Transposed::Right) + &lengths;
        scores.means("distance metric", distance.name());
        let index = scores.argmin(-1);
        Nearest { distance, points: points.clone(), lengths, scores, index }
    }

    /// The sum of the distances to the nearest centers. Rounding never makes a distance negative.
    fn loss(&self) -> Tensor {
        let lengths = self.points.square().sum_axes([-1]);
        let sum = (self.scores.min_axes([-1]) + lengths).maximum(0.0).sum();
        match self.distance {
            DistanceMetric::SquaredEuclidean => sum,
            DistanceMetric::Cosine => sum * 0.5,
        }
    }

    /// All distances, `[batch, clusters]`.
    fn all_distances(&self) -> Tensor {
        let distances = match self.distance {
            DistanceMetric::SquaredEuclidean => {
                &self.scores + self.points.square().sum_axes(Axes::of([-1]).keep_dims())
            }
            // 1 - points * centers, which the scores hold.
            DistanceMetric::Cosine => &self.scores * 0.5 + (&self.lengths * -0.5 + 1.0),
        };
        distances.maximum(0.0)
    }
}

/// The variables.
struct Centers {
    clusters: Tensor,
    /// The numbers of rows of the clusters so far, in mini-batches.
    counts: Option<Tensor>,
    slow: Option<Slow>,
    normalized: bool,
    /// The variables that begin with the first centers.
    names: &'static [&'static str],
}

/// Centers that rows are compared with only every few steps.
struct Slow {
    steps_per_iteration: u64,
    updated: Tensor,
    update_in_steps: Tensor,
    /// Whether an iteration begins with this step.
    begins: Tensor,
}

impl Centers {
    /// Makes the variables. Evaluation and prediction need the centers only.
    fn new(settings: &Settings, cx: &ModelFnContext<'_>, n_features: usize) -> Result<Centers> {
        let (graph, k) = (cx.graph(), settings.n_clusters);
        if let InitialClusters::Given(array) = &settings.initial_clusters
            && array.dims() != [k, n_features]
        {
            let text = format!("initial_clusters is {:?}; expected [{k}, {n_features}]", array.dims());
            return Err(Error::shape(text).help("give one row per cluster, with a number for each feature"));
        }
        let other = Role::Model { trainable: false };
        let clusters = graph.variable(CLUSTERS, [k, n_features], Initializer::Zeros);
        let normalized = settings.keeps_normalized();
        let mut centers = Centers { clusters, counts: None, slow: None, normalized, names: &[CLUSTERS] };
        if cx.mode() != Mode::Train {
            return Ok(centers);
        }
        graph.variable_with(INITIALIZED, DType::Bool, [], Initializer::Zeros, other);
        centers.names = &[CLUSTERS, INITIALIZED];
        if let Batches::Mini { steps_per_iteration } = settings.batches {
            let first = if steps_per_iteration == 1 { Initializer::Ones } else { Initializer::Zeros };
            centers.counts = Some(graph.variable_with(COUNTS, DType::I64, [k], first, other));
            if steps_per_iteration > 1 {
                let updated =
                    graph.variable_with(CLUSTERS_UPDATED, DType::F32, [k, n_features], Initializer::Zeros, other);
                let all = Initializer::Constant(steps_per_iteration as f64);
                let update_in_steps = graph.variable_with(UPDATE_IN_STEPS, DType::I64, [], all, other);
                let begins = update_in_steps.less_equal(0.0);
                centers.names = &[CLUSTERS, INITIALIZED, CLUSTERS_UPDATED];
                centers.slow = Some(Slow { steps_per_iteration, updated, update_in_steps, begins });
            }
        }
        Ok(centers)
    }

    /// The op that moves the centers to their rows.
    fn moved(&self, settings: &Settings, points: &Tensor, index: &Tensor) -> Tensor {
        let (graph, k) = (points.graph(), settings.n_clusters);
        let sums = points.segment_sum(index, k);
        let n_rows = index.ones_like().segment_sum(index, k);
        let as_column = |counts: &Tensor| counts.cast(DType::F32).expand_dims(1);
        let Some(counts) = &self.counts else {
            // TF: a cluster without rows moves to 0.
            let means = sums / (as_column(&n_rows) + EPSILON);
            let means = if self.normalized { normalized(&means) } else { means };
            return self.clusters.assign(&means);
        };
        let (before, moving) = match &self.slow {
            Some(slow) => (slow.begins.select(counts.zeros_like(), counts), &slow.updated),
            None => (counts.clone(), &self.clusters),
        };
        let after = &before + &n_rows;
        // TF: rows of this batch count twice in the rate, because the counts grow before they are
        // read. Case 118 pins it.
        let rate = as_column(&(&after + &n_rows));
        let change = (sums - as_column(&n_rows) * moving).div_no_nan(&rate);
        let moved = moving.assign(&(moving + change));
        let counted = counts.assign(&after);
        match &self.slow {
            None => graph.group(&[&moved, &counted]),
            Some(slow) => {
                let first = (slow.steps_per_iteration - 1) as f64;
                let left = &slow.update_in_steps - 1.0;
                let left = slow.begins.select(left.zeros_like() + first, &left);
                // The rows of this step are still compared with the centers before it. TensorFlow
                // may read them before or after the change.
                let updated = if self.normalized { normalized(&slow.updated) } else { slow.updated.clone() };
                let compared = self.clusters.assign(&slow.begins.select(updated, &self.clusters));
                graph.group(&[&moved, &counted, &compared, &slow.update_in_steps.assign(&left)])
            }
        }
    }
}
