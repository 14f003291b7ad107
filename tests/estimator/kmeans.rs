//! k-means against TensorFlow's, step by step; its beginnings, its mistakes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand::export::Receiver;
use estimand::graph::checkpoint::{BundleReader, write_text};
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand::premade::{DistanceMetric, InitialClusters, KMeansEstimator};
use estimand::tensor::Batch;
use estimand_fixture::{Case, cases_of};

use crate::fixture::array;
use crate::models::Folder;

/// Points of a case as a dataset, as one feature or several.
fn rows(case: &Case) -> Dataset {
    let points = case.array("points");
    let (n, width) = (points.dims[0], points.dims[1]);
    let values: Vec<f32> = case.numbers("points");
    let mut features: Vec<(String, usize)> = if case.has("features") { case.setting("features") } else { Vec::new() };
    if features.is_empty() {
        features.push(("point".to_string(), width));
    }
    let mut first = 0;
    let mut arrays = Vec::new();
    for (name, wide) in features {
        let part: Vec<f32> = values.chunks(width).flat_map(|row| row[first..first + wide].to_vec()).collect();
        arrays.push((name, Array::from_vec([n, wide], part).unwrap()));
        first += wide;
    }
    Dataset::from_arrays(arrays)
}

fn kmeans(case: &Case, folder: &Path) -> Result<KMeansEstimator> {
    let initial = array(&case.array("initial"));
    let mut kmeans = KMeans::new(initial.dims()[0]).initial_clusters(initial).model_dir(folder);
    if case.setting::<String>("distance") == "cosine" {
        kmeans = kmeans.distance_metric(DistanceMetric::Cosine);
    }
    kmeans = match case.setting("mini_batch") {
        true => kmeans.mini_batch_steps_per_iteration(case.setting("steps_per_iteration")),
        false => kmeans.full_batch(),
    };
    let columns: Vec<String> = case.setting("columns");
    if !columns.is_empty() {
        let widths: Vec<(String, usize)> = case.setting("features");
        let width = |name: &str| widths.iter().find(|(feature, _)| feature == name).unwrap().1;
        let columns: Vec<FeatureColumn> =
            columns.iter().map(|name| numeric_column(name).shape([width(name)]).into()).collect();
        kmeans = kmeans.feature_columns(columns);
    }
    kmeans.build()
}

fn near(what: &str, ours: &[f64], theirs: &[f64]) {
    near_in(what, 1.0, ours, theirs);
}

/// Differences of numbers of a size are rounded by that size.
fn near_in(what: &str, size: f64, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let largest = theirs.iter().fold(size, |most, value| most.max(value.abs()));
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= 4e-6 * largest, "{what}: {ours} instead of {theirs}");
    }
}

/// Case 118 is the first two. Each step is a training of its own that resumes the one before.
#[test]
fn trains_evaluates_and_predicts_as_tensorflow() -> Result<()> {
    let cases = cases_of("kmeans", "train");
    assert_eq!(cases.len(), 25);
    for case in &cases {
        let what = format!("{case}, {}", case.setting::<String>("what"));
        let folder = Folder::new();
        let kmeans = kmeans(case, folder.path())?;
        let data = rows(case);
        // The squared lengths of points, whose differences the distances are.
        let length = case.numbers::<f64>("points").iter().map(|value| value * value).sum::<f64>().max(1.0);
        let batches = data.repeat_forever().batch(case.setting("batch"));
        for (step, expected) in case.objects("steps").iter().enumerate() {
            let finished = kmeans.train(TrainSpec::new(&batches).max_steps(step as u64 + 1))?;
            let loss = f64::from(finished.loss.unwrap());
            // TensorFlow may read the centers before or after an iteration replaces them.
            let per_iteration: usize = case.setting("steps_per_iteration");
            if per_iteration == 1 || step == 0 || step % per_iteration != 0 {
                near_in(&format!("{what}: loss of step {step}"), length, &[loss], &[expected.setting("loss")]);
            }
            let variables = expected.arrays("variables");
            let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(kmeans.variable_names()?, names, "{what}");
            for (name, theirs) in &variables {
                let (ours, theirs) = (kmeans.variable_value(name)?, array(theirs));
                assert_eq!((ours.dtype(), ours.dims()), (theirs.dtype(), theirs.dims()), "{what}: {name}");
                let numbers = |array: &Array| match array.dtype() {
                    DType::Bool => vec![f64::from(u8::from(array.item::<bool>().unwrap()))],
                    _ => array.to_f64_vec().unwrap(),
                };
                near(&format!("{what}: {name} after step {step}"), &numbers(&ours), &numbers(&theirs));
            }
        }
        let all = data.batch(case.array("points").dims[0]);
        near_in(&what, length, &[kmeans.score(&all)?], &[case.setting("score")]);
        let (evaluated, theirs) = (kmeans.evaluate(&all)?, case.object("evaluated"));
        assert_eq!(evaluated.global_step() as f64, theirs.setting::<f64>("global_step"), "{what}");
        for key in ["loss", "score"] {
            near_in(&what, length, &[evaluated[key]], &[theirs.setting(key)]);
        }
        let indices: Vec<i64> = kmeans.predict_cluster_index(&all).collect::<Result<_>>()?;
        assert_eq!(indices, case.numbers::<i64>("cluster_index"), "{what}");
        let mut distances = Vec::new();
        for row in kmeans.predict(&all) {
            distances.extend(row?.f32("all_distances")?.iter().map(|value| f64::from(*value)));
        }
        near_in(&what, length, &distances, &case.numbers::<f64>("all_distances"));
        let transformed: Vec<Vec<f32>> = kmeans.transform(&all).collect::<Result<_>>()?;
        for (ours, theirs) in transformed.iter().flatten().zip(case.numbers::<f64>("transform")) {
            // A square root makes a rounding near 0 larger, and TensorFlow's may be NaN.
            assert!(theirs.is_nan() || (f64::from(*ours) - theirs).abs() < 5e-3, "{what}: {ours} instead of {theirs}");
        }
        near(&what, &kmeans.cluster_centers()?.to_f64_vec()?, &case.numbers::<f64>("centers"));
    }
    Ok(())
}

#[test]
fn a_folder_of_tensorflow_goes_on() -> Result<()> {
    let case = &cases_of("kmeans", "folder")[0];
    let folder = Folder::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures");
    for part in ["index", "data-00000-of-00001"] {
        let to = folder.path().join(format!("model.ckpt-2.{part}"));
        std::fs::copy(fixtures.join(format!("kmeans_tf.{part}")), to).unwrap();
    }
    write_text(folder.path().join("checkpoint"), "model_checkpoint_path: \"model.ckpt-2\"\n")?;
    let kmeans = KMeans::new(3).model_dir(folder.path()).build()?;
    near("before", &kmeans.cluster_centers()?.to_f64_vec()?, &case.numbers::<f64>("before"));
    let finished = kmeans.train(TrainSpec::new(rows(case).repeat_forever().batch(case.setting("batch"))).steps(2))?;
    assert_eq!(finished.global_step, 4);
    near("after", &kmeans.cluster_centers()?.to_f64_vec()?, &case.numbers::<f64>("after"));
    Ok(())
}

/// Four far places with rows around each.
fn blobs(n: usize) -> Dataset {
    let places = [[0.0f32, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]];
    let near = |i: usize, axis: usize| places[i % 4][axis] + ((i * 7 + axis * 3) % 11) as f32 * 0.1;
    let values = (0..n).flat_map(|i| [near(i, 0), near(i, 1)]).collect();
    Dataset::from_arrays([("point", Array::from_vec([n, 2], values).unwrap())])
}

const PARALLEL: InitialClusters = InitialClusters::KMeansParallel { rounds: 3, max_rows: 1_000 };

fn seeded(n_clusters: usize, initial: InitialClusters, folder: &Folder) -> KMeans {
    let config = RunConfig::new().tf_random_seed(5);
    KMeans::new(n_clusters).initial_clusters(initial).config(config).model_dir(folder.path())
}

/// k-means++ and k-means|| find all four places: a row of a missing place is thousands of times as
/// far as any other.
#[test]
fn beginnings_by_distance_find_every_place() -> Result<()> {
    for initial in [InitialClusters::KMeansPlusPlus, PARALLEL] {
        let folder = Folder::new();
        let data = blobs(80).batch(80);
        let kmeans = seeded(4, initial.clone(), &folder).full_batch().build()?;
        kmeans.train(data.repeat(2))?;
        let indices: Vec<i64> = kmeans.predict_cluster_index(&data).collect::<Result<_>>()?;
        let mut places = indices[..4].to_vec();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3], "{initial:?}");
        assert!(indices.chunks(4).all(|chunk| chunk == &indices[..4]), "{initial:?}: {indices:?}");
        // A center is the mean of rows within 1 of a corner on both axes.
        assert!(kmeans.score(&data)? < 80.0 * 0.5);
    }
    Ok(())
}

/// The first centers are different rows of the input; a small batch gives all of its rows.
#[test]
fn random_centers_are_rows() -> Result<()> {
    let values: Vec<f32> = (0..40).map(|i| i as f32).collect();
    let data = Dataset::from_arrays([("x", Array::from(values))]);
    // The checkpoint of step 0 holds them.
    let config = RunConfig::new().tf_random_seed(5);
    let first = |batch: usize| -> Result<Vec<f64>> {
        let folder = Folder::new();
        let kmeans = KMeans::new(6).seed(9).config(config.clone()).model_dir(folder.path()).build()?;
        kmeans.train(TrainSpec::new(data.batch(batch)).steps(1))?;
        let reader = BundleReader::open(folder.path().join("model.ckpt-0"))?;
        assert!(reader.read("initialized")?.item::<bool>()?);
        let mut centers = reader.read("clusters")?.to_f64_vec()?;
        centers.sort_by(f64::total_cmp);
        Ok(centers)
    };
    let from_whole = first(40)?;
    assert_eq!(from_whole.len(), 6);
    assert!(from_whole.windows(2).all(|pair| pair[0] < pair[1]), "{from_whole:?}");
    assert!(from_whole.iter().all(|value| value.fract() == 0.0 && (0.0..40.0).contains(value)), "{from_whole:?}");
    let from_parts = first(4)?;
    assert_eq!(from_parts[..4], [0.0, 1.0, 2.0, 3.0]);
    assert!(from_parts[4..].iter().all(|value| (4.0..8.0).contains(value)), "{from_parts:?}");
    Ok(())
}

#[test]
fn a_function_may_choose_the_centers() -> Result<()> {
    let folder = Folder::new();
    // The first row of each batch.
    let initial = InitialClusters::from_fn(|points, n| {
        assert!(n > 0);
        points.rows(0..1)
    });
    let kmeans = seeded(3, initial, &folder).full_batch().build()?;
    let data = Dataset::from_arrays([("x", Array::from([1f32, 1.5, 5.0, 5.5, 9.0, 9.5]))]);
    kmeans.train(TrainSpec::new(data.batch(2)).steps(1))?;
    let reader = BundleReader::open(folder.path().join("model.ckpt-0"))?;
    assert_eq!(reader.read("clusters")?.to_f64_vec()?, [1.0, 5.0, 9.0]);
    Ok(())
}

/// TensorFlow gives the function the points as they are, also where the distance looks at their
/// directions; the centers that it returns are scaled to the length 1.
#[test]
fn a_function_sees_points_as_they_are_given() -> Result<()> {
    let folder = Folder::new();
    let initial = InitialClusters::from_fn(|points, _| {
        assert_eq!(points.to_f64_vec()?, [3.0, 4.0, 0.0, 2.0]);
        Ok(points.clone())
    });
    let kmeans = seeded(2, initial, &folder).distance_metric(DistanceMetric::Cosine).build()?;
    let points = Array::from_vec([2, 2], vec![3f32, 4.0, 0.0, 2.0])?;
    kmeans.train(TrainSpec::new(Dataset::from_arrays([("x", points)]).batch(2)).steps(1))?;
    let reader = BundleReader::open(folder.path().join("model.ckpt-0"))?;
    near("first centers", &reader.read("clusters")?.to_f64_vec()?, &[0.6, 0.8, 0.0, 1.0]);
    Ok(())
}

/// TensorFlow 1.15 and 2.15: `mini_batch_steps_per_iteration` counts only with mini-batches. One
/// step of case 118 moves each center to the mean of its rows, less `rows / (rows + 1e-6)` of it.
#[test]
fn a_full_batch_stays_one() -> Result<()> {
    let rows = vec![0f32, 0.0, 0.0, 1.0, 10.0, 10.0, 10.0, 11.0];
    let data = Dataset::from_arrays([("point", Array::from_vec([4, 2], rows)?)]);
    let initial = || Array::from_vec([2, 2], vec![0f32, 0.0, 10.0, 10.0]).unwrap();
    let setters: [fn(KMeans) -> KMeans; 2] = [
        |kmeans| kmeans.full_batch().mini_batch_steps_per_iteration(1),
        |kmeans| kmeans.mini_batch_steps_per_iteration(3).full_batch(),
    ];
    for set in setters {
        let folder = Folder::new();
        let kmeans = set(KMeans::new(2).initial_clusters(initial()).model_dir(folder.path())).build()?;
        kmeans.train(TrainSpec::new(data.batch(4)).steps(1))?;
        near("centers", &kmeans.cluster_centers()?.to_f64_vec()?, &[0.0, 0.49999976, 9.999995, 10.499995]);
    }
    Ok(())
}

/// An input that fails for a moment while the centers are chosen: the same centers.
#[test]
fn the_choice_of_centers_goes_on_after_a_transient_error() -> Result<()> {
    let centers = |failures: &'static [u64], retries: u32| -> Result<Vec<f64>> {
        let calls = Arc::new(AtomicU64::new(0));
        let data = blobs(80).batch(8).map(move |batch: Batch| match calls.fetch_add(1, Ordering::SeqCst) {
            call if failures.contains(&call) => Err(Error::data("the server is busy").transient()),
            _ => Ok(batch),
        });
        let folder = Folder::new();
        let config = RunConfig::new().tf_random_seed(5).input_retries(retries).input_threads(1);
        let kmeans = KMeans::new(4).initial_clusters(PARALLEL).config(config).model_dir(folder.path()).build()?;
        kmeans.train(TrainSpec::new(data).steps(1))?;
        BundleReader::open(folder.path().join("model.ckpt-0"))?.read("clusters")?.to_f64_vec()
    };
    let expected = centers(&[], 0)?;
    for failures in [&[6][..], &[4, 5, 19], &[30]] {
        assert_eq!(centers(failures, 3)?, expected, "failures at {failures:?}");
    }
    let error = centers(&[6], 0).unwrap_err().to_string();
    assert!(error.contains("the server is busy") && error.contains("RunConfig::input_retries"), "{error}");
    Ok(())
}

/// A training that is stopped and resumed, and one on another number of threads, end with the same
/// bits.
#[test]
fn resumed_trainings_and_threads_give_the_same_bits() -> Result<()> {
    let data = blobs(100).shuffle(50, 3).repeat_forever().batch(16);
    let centers = |parts: &[u64], n_threads: usize, initial: &InitialClusters| {
        let folder = Folder::new();
        for &step in parts {
            let config = RunConfig::new().tf_random_seed(5).threads(n_threads);
            let kmeans = KMeans::new(4).initial_clusters(initial.clone()).config(config).model_dir(folder.path());
            kmeans.mini_batch_steps_per_iteration(3).build()?.train(TrainSpec::new(&data).max_steps(step))?;
        }
        let kmeans = KMeans::new(4).model_dir(folder.path()).build()?;
        Ok([kmeans.cluster_centers()?, kmeans.variable_value("clusters_updated")?])
    };
    for initial in [InitialClusters::Random, InitialClusters::KMeansPlusPlus, PARALLEL] {
        let whole: [Array; 2] = centers(&[11], 1, &initial)?;
        assert_eq!(whole, centers(&[2, 7, 11], 1, &initial)?, "{initial:?}");
        assert_eq!(whole, centers(&[11], 3, &initial)?, "{initial:?}");
    }
    Ok(())
}

/// Full batches of these rows end after two steps: then no row changes its cluster.
#[test]
fn relative_tolerance_ends_a_training() -> Result<()> {
    let folder = Folder::new();
    let kmeans = seeded(4, InitialClusters::KMeansPlusPlus, &folder).full_batch().relative_tolerance(1e-4).build()?;
    let finished = kmeans.train(TrainSpec::new(blobs(40).batch(40).repeat(100)).max_steps(100))?;
    assert!(finished.global_step < 10, "{finished:?}");
    assert!(finished.reason.contains("relative_tolerance 0.0001"), "{finished:?}");
    Ok(())
}

/// Also without columns, and with the same bits.
#[test]
fn a_folder_is_enough_to_go_on() -> Result<()> {
    let data = blobs(60).repeat_forever().batch(20);
    let numbers: Columns = [numeric_column("point").shape([2]).into()].into();
    for columns in [None, Some(numbers)] {
        let (folder, whole) = (Folder::new(), Folder::new());
        let kmeans = |folder: &Folder| {
            let kmeans = seeded(4, InitialClusters::KMeansPlusPlus, folder).mini_batch_steps_per_iteration(2);
            let kmeans = kmeans.distance_metric(DistanceMetric::Cosine);
            columns.iter().fold(kmeans, |kmeans, columns| kmeans.feature_columns(columns.clone())).build()
        };
        kmeans(&whole)?.train(TrainSpec::new(&data).max_steps(9))?;
        kmeans(&folder)?.train(TrainSpec::new(&data).max_steps(4))?;
        let opened = KMeansEstimator::open(folder.path())?;
        opened.train(TrainSpec::new(&data).max_steps(9))?;
        assert_eq!(opened.cluster_centers()?, kmeans(&whole)?.cluster_centers()?);
        assert_eq!(opened.score(&data)?, kmeans(&whole)?.score(&data)?);
    }
    let folder = Folder::new();
    let other = BaselineRegressor::new().model_dir(folder.path()).build()?;
    other.train(TrainSpec::new(crate::models::line(4).batch(4)).steps(1))?;
    assert!(KMeansEstimator::open(folder.path()).unwrap_err().to_string().contains("is not k-means"));
    Ok(())
}

/// Centers of one distance are not compared by another.
#[test]
fn another_distance_is_refused() -> Result<()> {
    let folder = Folder::new();
    let data = blobs(40).batch(40);
    seeded(4, InitialClusters::Random, &folder).build()?.train(&data)?;
    let other = seeded(4, InitialClusters::Random, &folder).distance_metric(DistanceMetric::Cosine).build()?;
    let error = other.evaluate(&data).unwrap_err().to_string();
    assert!(error.contains("distance metric") && error.contains("squared_euclidean"), "{error}");
    Ok(())
}

#[test]
fn an_export_has_tensorflows_signatures() -> Result<()> {
    let folder = Folder::new();
    let kmeans = seeded(4, InitialClusters::KMeansPlusPlus, &folder).build()?;
    kmeans.train(TrainSpec::new(blobs(40).batch(40).repeat(3)))?;
    let data = blobs(40);
    let exported = kmeans.export_saved_model(folder.path().join("export"), Receiver::like(&data)?)?;
    let model = SavedModel::open(&exported)?;
    let keys: Vec<&str> = model.signatures().map(|(key, _)| key).collect();
    assert_eq!(keys, ["all_distances", "cluster_index", "serving_default"]);
    let batch = data.batch(40).iter().next().unwrap()?;
    let expected = kmeans.predictor(&batch)?.predict(&batch)?;
    let points = batch.feature("point")?.dense()?.clone();
    for (key, prediction) in
        [("cluster_index", "cluster_index"), ("serving_default", "cluster_index"), ("all_distances", "all_distances")]
    {
        let answers = model.signature(key)?.run(&[("point", points.clone())])?;
        near(key, &answers["output"].to_f64_vec()?, &expected.array(prediction)?.to_f64_vec()?);
    }
    Ok(())
}

#[test]
fn mistakes_are_named() -> Result<()> {
    let message = |error: Error| error.to_string();
    let built = |kmeans: KMeans| message(kmeans.build().unwrap_err());
    assert!(built(KMeans::new(0)).contains("0 clusters"));
    assert!(built(KMeans::new(2).mini_batch_steps_per_iteration(0)).contains("expected at least 1"));
    let tolerance = built(KMeans::new(2).relative_tolerance(f64::NAN));
    assert!(tolerance.starts_with("relative_tolerance is NaN; expected a number from 0"), "{tolerance}");
    assert!(tolerance.contains("help: 1e-4 ends the training"), "{tolerance}");
    let given = |dims: [usize; 2]| Array::zeros(DType::F32, dims).unwrap();
    assert!(built(KMeans::new(2).initial_clusters(given([3, 2]))).contains("initial_clusters is [3, 2]"));
    assert!(built(KMeans::new(1).initial_clusters(Array::from([f32::NAN]).reshape([1, 1])?)).contains("NaN"));
    assert!(built(KMeans::new(2).feature_columns(Columns::default())).contains("no feature columns"));
    let parallel = |rounds, max_rows| InitialClusters::KMeansParallel { rounds, max_rows };
    assert!(built(KMeans::new(2).initial_clusters(parallel(0, 10))).contains("0 rounds"));
    assert!(built(KMeans::new(20).initial_clusters(parallel(5, 10))).contains("10 rows"));

    let trained = |kmeans: KMeans, data: Dataset| {
        let folder = Folder::new();
        message(kmeans.model_dir(folder.path()).build().unwrap().train(&data).unwrap_err())
    };
    let rows = blobs(8);
    assert!(trained(KMeans::new(2).initial_clusters(given([2, 5])), rows.batch(4)).contains("expected [2, 2]"));
    assert!(trained(KMeans::new(9), rows.batch(4)).contains("only 8 of 9 centers"));
    let plus = KMeans::new(5).initial_clusters(InitialClusters::KMeansPlusPlus);
    assert!(trained(plus, rows.batch(4)).contains("the first batch, which has 4 rows"));
    let few = KMeans::new(9).initial_clusters(parallel(2, 1_000));
    assert!(trained(few, rows.batch(4)).contains("8 rows, too few for 9 clusters"));
    let same = Dataset::from_arrays([("x", Array::from(vec![1f32; 9]))]);
    let few = KMeans::new(3).initial_clusters(parallel(2, 1_000));
    assert!(trained(few, same.batch(4)).contains("1 different rows"));
    let bad = Dataset::from_arrays([("x", Array::from([1.0, f32::INFINITY, 2.0]))]);
    assert!(trained(KMeans::new(2), bad.batch(3)).contains("a point is inf in row 1"));
    let wide = InitialClusters::from_fn(|_, _| Array::zeros(DType::F32, [1, 7]));
    assert!(trained(KMeans::new(2).initial_clusters(wide), rows.batch(4)).contains("expected at most 2 rows of 2"));

    let words = Array::from_strings([2], ["a", "b"])?;
    let named = Dataset::from_arrays([("x", Array::from([1f32, 2.0])), ("word", words)]);
    assert!(trained(KMeans::new(2), named.batch(2)).contains("feature `word` is string"));
    let labelled = Dataset::from_arrays([("x", Array::from([1f32, 2.0])), ("y", Array::from([1f32, 2.0]))]).label("y");
    assert!(trained(KMeans::new(2), labelled.batch(2)).contains("k-means was given labels: y"));
    Ok(())
}
