//! A vocabulary that grows between two trainings.
//!
//! Last year's model of incomes knew the occupations that were frequent in a small part of the
//! census. This year's model knows all of them, in another order. It starts with the values of last
//! year's model, with every row of every table moved to its term. It is compared, after the same
//! few steps, with a model that starts from scratch.
//!
//! `cargo run --release --example warm_start`

use std::path::Path;

use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::prelude::*;
use estimand::premade::{Classifier, DnnLinearCombined, Premade};
use estimand::{Adapted, VocabInfo, adapt};

/// The tables whose rows belong to occupations.
const TABLES: [&str; 2] = [
    "dnn/input_from_feature_columns/input_layer/occupation_embedding/embedding_weights",
    "linear/linear_model/occupation/weights",
];

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let base = std::env::temp_dir().join(format!("estimand-warm-start-{}", std::process::id()));
    let folder = |name: &str| base.join(name);
    let (train, test) = (datasets::load("adult", "train")?, datasets::load("adult", "test")?);

    let last_year = train.dataset().take(8_000);
    let seen = adapt(&last_year)?;
    let old_jobs = occupations(&seen, 500)?;
    let old = model(&seen, &old_jobs, &folder("old"))?.build()?;
    old.train(TrainSpec::new(last_year.shuffle(8_000, 1).repeat_forever().batch(128)).max_steps(1_000))?;

    let new_jobs = occupations(&adapt(&train.dataset())?, 1)?;
    println!("Last year's model knows {} occupations, this year's {}.", old_jobs.len(), new_jobs.len());
    let info = VocabInfo::new(new_jobs.clone(), old_jobs).n_oov_buckets(1);
    let settings =
        TABLES.iter().fold(WarmStartSettings::new(folder("old")), |s, table| s.vocab_info(*table, info.clone()));
    let cold = model(&seen, &new_jobs, &folder("cold"))?.build()?;
    let warm = model(&seen, &new_jobs, &folder("warm"))?.warm_start_from(settings.optimizer_slots(true)).build()?;

    let this_year = train.dataset().skip(8_000).shuffle(30_000, 2).repeat_forever().batch(128);
    let mut figures = Vec::new();
    for (name, model) in [("cold", &cold), ("warm", &warm)] {
        let before = model.evaluate(test.dataset().batch(1_000))?["auc"];
        model.train(TrainSpec::new(&this_year).max_steps(20))?;
        let after = model.evaluate(test.dataset().batch(1_000))?["auc"];
        println!("{name}: area under the curve {before:.4} before the first step, {after:.4} after 20");
        figures.push(after);
    }
    println!("cold_auc = {:.4}\nwarm_auc = {:.4}\ngain = {:.4}", figures[0], figures[1], figures[1] - figures[0]);
    std::fs::remove_dir_all(&base).map_err(|e| Error::io(&base, "remove", &e))
}

/// Returns the occupations that occur at least `min_count` times, the most frequent first.
fn occupations(adapted: &Adapted, min_count: u64) -> Result<Vec<String>> {
    Ok(adapted.statistics()?.terms("occupation")?.top(1_000, min_count).into_iter().map(|(term, _)| term).collect())
}

/// Makes a wide and deep model whose other columns never change.
fn model(seen: &Adapted, jobs: &[String], folder: &Path) -> Result<Premade<DnnLinearCombined, Classifier>> {
    let occupation = categorical_column_with_vocabulary_list("occupation", jobs).n_oov_buckets(1);
    let relationship = seen.vocabulary("relationship", 10)?;
    let numbers = ["age", "educational-num", "hours-per-week", "capital-gain"];
    let mut deep: Vec<FeatureColumn> =
        vec![embedding_column(&occupation, 8).into(), indicator_column(&relationship).into()];
    for name in numbers {
        deep.push(seen.z_score(numeric_column(name))?.into());
    }
    let wide = [occupation.into(), relationship.into()];
    Ok(DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([32])
        .dnn_optimizer(Optimizer::new(Adagrad::default(), 0.05))
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder))
}
