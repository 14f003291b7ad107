//! The contract of columns.

use estimand_cpu::Cpu;
use estimand_engine::Session;
use estimand_graph::{Graph, Optimizer, Role, Tensor};
use estimand_tensor::{Array, Batch, BatchSpec, DType, Dim, Error, Feature, FeatureSpec, Ragged, Result};
use estimand_update::Sgd;

use super::{ensure, ensure_same};
use crate::column::{
    FeatureColumn, LinearModel, indicator_column, input_layer, make_parse_example_spec, sequence_input_layer,
};
use crate::inputs::Inputs;

/// One rule of the contract.
type Check = fn(&FeatureColumn, &Batch) -> Result<()>;

/// Checks a column with a batch of its features, of three rows or more: its name, its spec, its
/// shape, rows alone and in batches, missing features, its variables, threads.
///
/// ```
/// use estimand_nn::column::{bucketized_column, numeric_column};
/// use estimand_nn::testing::check_column;
/// use estimand_tensor::{Array, Batch};
///
/// let batch = Batch::new().with_feature("age", Array::from([17f32, 40.0, f32::NAN]))?;
/// check_column(&bucketized_column(&numeric_column("age"), [20, 40]).into(), &batch)?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn check_column(column: &FeatureColumn, batch: &Batch) -> Result<()> {
    let checks: [(&str, Check); 5] = [
        ("name and spec", says_what_it_reads),
        ("shape", is_as_large_as_it_says),
        ("rows", rows_do_not_know_each_other),
        ("missing features", missing_features_are_named),
        ("variables", variables_are_trained_or_not),
    ];
    ensure(batch.n_rows() >= 3, || format!("the batch has {} rows; expected 3 or more", batch.n_rows()))?;
    let place = |what: &str| format!("in the column contract, {what}, for {column:?}");
    checks.iter().try_for_each(|(what, check)| check(column, batch).map_err(|e| e.context(place(what))))
}

/// A column in its own graph, fed from a batch.
struct Applied {
    graph: Graph,
    features: Inputs,
    out: Tensor,
}

impl Applied {
    /// Applies the column in every way it supports: dense ones in an input layer, ids as an
    /// indicator, both in a linear model, sequences in their layer.
    fn new(column: &FeatureColumn, spec: &BatchSpec) -> Applied {
        let graph = Graph::new();
        let features = Inputs::new(&graph, "feature", spec);
        let wrapped = || FeatureColumn::from(indicator_column(column));
        let steps = |column: FeatureColumn| {
            let (values, lengths) = sequence_input_layer(&features, [column]);
            let n_steps = values.shape().dims().get(1).copied().unwrap_or(1.into());
            // Steps after the end of a sequence are padding, and their number may vary.
            let inside = graph.range(n_steps, DType::I64).less(lengths.expand_dims(1)).cast(DType::F32);
            (values * &inside.expand_dims(2)).sum_axes([1])
        };
        let mut parts = Vec::new();
        if column.dense().is_some() {
            parts.push(input_layer(&features, [column.clone()]));
        } else if column.categorical().is_some() {
            parts.push(input_layer(&features, [wrapped()]));
        }
        if column.dense().is_some() || column.categorical().is_some() {
            parts.push(LinearModel::new([column.clone()]).units(2).apply(&features).logits);
        } else if column.sequence().is_some() {
            parts.push(steps(column.clone()));
        } else {
            parts.push(steps(wrapped()));
        }
        let out = Tensor::concat(&parts.iter().collect::<Vec<_>>(), 1);
        Applied { graph, features, out }
    }

    fn feeds(&self, batch: &Batch) -> Vec<(Tensor, Array)> {
        let mut feeds = Vec::new();
        for (name, feature) in batch.features().iter().filter(|(name, _)| self.features.get(name).is_some()) {
            match feature {
                Feature::Dense(array) => feeds.push((self.features.dense(name), array.clone())),
                Feature::Ragged(rows) => {
                    let ragged = self.features.ragged(name);
                    feeds.extend(ragged.feed(rows).map(|(tensor, array)| (tensor.clone(), array)));
                }
            }
        }
        feeds
    }

    fn run(&self, batch: &Batch, threads: usize) -> Result<Array> {
        let mut session = Session::with(&self.graph, Cpu::with_threads(threads), 3)?;
        let feeds = self.feeds(batch);
        let feeds: Vec<(&Tensor, Array)> = feeds.iter().map(|(tensor, array)| (tensor, array.clone())).collect();
        Ok(session.run(&[&self.out], &feeds)?.remove(0))
    }
}

/// The spec of a batch, for building a model.
fn spec_of(batch: &Batch) -> BatchSpec {
    let spec = |feature: &Feature| match feature {
        Feature::Dense(array) => FeatureSpec::dense(array.dtype(), array.dims().get(1..).unwrap_or_default()),
        Feature::Ragged(rows) => FeatureSpec::ragged(rows.values().dtype()),
    };
    batch.features().iter().map(|(name, feature)| (name.to_string(), spec(feature))).collect()
}

/// Name and spec are the same at every call, and the features of the spec are sufficient.
fn says_what_it_reads(column: &FeatureColumn, batch: &Batch) -> Result<()> {
    column.check()?;
    let name = column.name();
    ensure(!name.is_empty() && name == column.clone().name(), || {
        format!("the name is `{name}`; expected one that is not empty and stays the same")
    })?;
    let spec = make_parse_example_spec([column.clone()])?;
    ensure(!spec.is_empty() && spec == column.parse_spec(), || {
        format!("the spec is {spec:?}; expected one that is not empty and stays the same")
    })?;
    let parsed = Applied::new(column, &spec);
    parsed.graph.check().map_err(|e| e.context("with the features of its spec alone"))?;
    let mut needed = spec_of(batch);
    needed.retain(|name, _| spec.contains_key(name));
    Applied::new(column, &needed).run(batch, 1).map(drop)
}

/// The reported sizes match the values, also for a batch without rows and on any number of threads.
fn is_as_large_as_it_says(column: &FeatureColumn, batch: &Batch) -> Result<()> {
    let applied = Applied::new(column, &spec_of(batch));
    let width = match (column.dense(), column.sequence()) {
        (Some(dense), _) => dense.dims().iter().product::<usize>() + 2,
        (None, Some(sequence)) => sequence.dims().iter().product(),
        _ => match (column.categorical(), column.categorical_sequence()) {
            (Some(ids), _) => ids.n_buckets() + 2,
            (None, Some(ids)) => ids.n_buckets(),
            (None, None) => return Err(Error::config("the column is neither dense nor categorical nor a sequence")),
        },
    };
    applied.graph.check()?;
    ensure(applied.out.shape().dims() == [Dim::BATCH, width.into()], || {
        format!("the result is {}; expected a last size of {width}", applied.out.spec())
    })?;
    let all = applied.run(batch, 1)?;
    ensure(all.dims() == [batch.n_rows(), width], || format!("the result has the shape {:?}", all.dims()))?;
    ensure(all.to_f64_vec()?.iter().all(|v| v.is_finite()), || {
        format!("the result has values that are not finite: {all:?}")
    })?;
    ensure_same("the result on 1 and 3 threads", &all, &applied.run(batch, 3)?)?;
    let none = applied.run(&rows(batch, 0, 0)?, 1)?;
    ensure(none.dims() == [0, width], || format!("the result for a batch without rows has the shape {:?}", none.dims()))
}

/// A row alone gives the same bits as in a batch.
fn rows_do_not_know_each_other(column: &FeatureColumn, batch: &Batch) -> Result<()> {
    let applied = Applied::new(column, &spec_of(batch));
    let all = applied.run(batch, 1)?;
    for row in 0..batch.n_rows() {
        let alone = applied.run(&rows(batch, row, row + 1)?, 1)?;
        ensure_same(&format!("row {row} alone"), &alone, &copy(&all.rows(row..row + 1)?)?)?;
    }
    Ok(())
}

/// Copies the bytes of a view into a new array.
fn copy(array: &Array) -> Result<Array> {
    Array::from_slice(array.dims(), array.as_slice::<f32>()?)
}

/// Some rows of a batch.
fn rows(batch: &Batch, from: usize, to: usize) -> Result<Batch> {
    batch.features().iter().try_fold(Batch::new(), |some, (name, feature)| match feature {
        Feature::Dense(array) => some.with_feature(name, array.rows(from..to)?),
        Feature::Ragged(ragged) => {
            let splits = &ragged.row_splits()[from..=to];
            let (first, last) = (splits[0], splits[splits.len() - 1]);
            let values = ragged.values().rows(first as usize..last as usize)?;
            some.with_feature(name, Ragged::new(values, splits.iter().map(|s| s - first).collect::<Vec<_>>())?)
        }
    })
}

/// A missing feature is an error that names the feature and a feature with a similar name.
fn missing_features_are_named(column: &FeatureColumn, batch: &Batch) -> Result<()> {
    for missing in column.parse_spec().keys() {
        let mut spec = spec_of(batch);
        if let Some(feature) = spec.shift_remove(missing) {
            spec.insert(format!("{missing}s"), feature);
        }
        let text = match Applied::new(column, &spec).graph.check() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        let named = [format!("there is no feature `{missing}`"), format!("did you mean `{missing}s`?"), column.name()];
        ensure(named.iter().all(|part| text.contains(part)), || {
            format!(
                "the error about the missing feature `{missing}` must name it, a similar name and the column: {text}"
            )
        })?;
    }
    Ok(())
}

/// Training changes variables that are trainable, and no others.
fn variables_are_trained_or_not(column: &FeatureColumn, batch: &Batch) -> Result<()> {
    let applied = Applied::new(column, &spec_of(batch));
    let variables: Vec<(String, Role)> =
        applied.graph.body().variables().iter().map(|(_, v)| (v.name.clone(), v.role)).collect();
    if !variables.iter().any(|(_, role)| *role == Role::Model { trainable: true }) {
        return Ok(());
    }
    let train = Optimizer::new(Sgd::default(), 1.0).minimize(&applied.out.sum());
    let mut session = Session::with(&applied.graph, Cpu::with_threads(1), 3)?;
    let before = variables.iter().map(|(name, _)| session.value(name)).collect::<Result<Vec<Array>>>()?;
    let feeds = applied.feeds(batch);
    // The weights of a linear model start at 0, so the variables before them change only in the
    // second step.
    for _ in 0..2 {
        session.run(&[&train], &feeds.iter().map(|(t, a)| (t, a.clone())).collect::<Vec<_>>())?;
    }
    for ((name, role), before) in variables.iter().zip(before) {
        let changed = session.value(name)?.bytes() != before.bytes();
        let frozen = *role != Role::Model { trainable: true };
        ensure(changed != frozen, || format!("training {} `{name}`", if changed { "changes" } else { "leaves" }))?;
    }
    Ok(())
}
