//! k-means on iris flowers: three clusters by their measures. The species are not learned from;
//! they only tell how well the clusters match them.
//!
//! `cargo run --release --example kmeans`

use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::prelude::*;
use estimand::premade::InitialClusters;
use estimand::tensor::Batch;

const MEASURES: [&str; 4] = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth"];
const SPECIES: &str = "Species";

/// The same rows with labels as features: k-means takes no labels.
fn unlabelled(batch: Batch) -> Result<Batch> {
    let mut all = batch.features().iter().chain(batch.labels());
    all.try_fold(Batch::new(), |rows, (name, feature)| rows.with_feature(name, feature.clone()))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let folder = std::env::temp_dir().join(format!("estimand-kmeans-{}", std::process::id()));
    let iris = datasets::load("iris", "train")?;
    let names = iris.info().classes;
    // A full batch holds all rows.
    let flowers = iris.dataset().batch(150).map(unlabelled);

    let columns: Columns = MEASURES.map(numeric_column).into_iter().collect();
    let kmeans = KMeans::new(names.len())
        .initial_clusters(InitialClusters::KMeansPlusPlus)
        .feature_columns(columns)
        .full_batch()
        .relative_tolerance(1e-6)
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(&folder)
        .build()?;
    println!("{}", kmeans.train(TrainSpec::new(flowers.repeat_forever()).max_steps(100))?);
    println!("score = {:.2}", kmeans.score(&flowers)?);
    for (cluster, center) in kmeans.cluster_centers()?.as_slice::<f32>()?.chunks(MEASURES.len()).enumerate() {
        println!("cluster {cluster} is centered at {center:.2?}");
    }

    let mut counts = vec![vec![0; names.len()]; names.len()];
    for row in kmeans.predict(PredictSpec::new(&flowers).keys(["cluster_index"]).forward([SPECIES])) {
        let row = row?;
        counts[row.i64("cluster_index")?[0] as usize][row.i64(SPECIES)?[0] as usize] += 1;
    }
    for (cluster, counts) in counts.iter().enumerate() {
        println!("cluster {cluster} has {counts:?} flowers of {names:?}");
    }
    let of_largest: i32 = counts.iter().filter_map(|counts| counts.iter().max()).sum();
    println!("purity = {:.3}", f64::from(of_largest) / f64::from(counts.iter().flatten().sum::<i32>()));
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}
