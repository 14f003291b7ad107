//! A run that uses all writers.

use std::io::Write;
use std::path::{Path, PathBuf};

use estimand::adapt;
use estimand::data::writer::{Output, TfRecordWriter, publish};
use estimand::data::{Compression, Csv};
use estimand::hook::CsvLogHook;
use estimand::prelude::*;
use estimand::{Export, Exporter, Metrics, Report};

use crate::model::{Slow, classifier, columns, rows};

/// Steps between summaries.
const SUMMARY_STEPS: u64 = 5;

const MAX_STEPS: u64 = 400;

/// Writes the metrics of the best evaluation, completely or not at all.
struct BestMetrics;

impl Exporter for BestMetrics {
    fn name(&self) -> &str {
        "best"
    }

    fn export(&mut self, export: &Export<'_>) -> Result<Option<PathBuf>> {
        if !export.is_best {
            return Ok(None);
        }
        let path = export.path.join("metrics.txt");
        let mut file = Output::create(&path, Compression::None)?;
        let text = format!("{}\nend\n", shown(export.metrics));
        file.write_all(text.as_bytes()).map_err(|e| Error::io(&path, "write", &e))?;
        publish(vec![file])?;
        Ok(Some(path))
    }
}

/// Formats the metrics with all digits.
fn shown(metrics: &Metrics) -> String {
    let values: Vec<String> = metrics.iter().map(|(name, value)| format!("{name} {value:?}")).collect();
    format!("step {}: {}", metrics.global_step(), values.join(", "))
}

pub fn train(folder: &Path) -> Result<()> {
    let (data, model) = (folder.join("data"), folder.join("model"));
    let made = rows(120)?;
    made.write_csv(data.join("rows.csv"))?;
    TfRecordWriter::new(data.join("rows.tfrecord")).n_shards(2).compression(Compression::Gzip).write(&made)?;

    let stored = Csv::new(data.join("rows.csv")).label("y").dataset();
    let columns = columns(&adapt(&stored)?)?;
    let config =
        RunConfig::new().save_checkpoints(Every::Steps(4)).keep_checkpoint_max(3).save_summary_steps(SUMMARY_STEPS);
    let estimator = classifier(&model, columns, config.log_step_count_steps(10))?;

    let cached = stored.take(80).cache_to(folder.join("cache/rows"));
    let input = cached.shuffle(80, 7).repeat_forever().batch(16);
    let train = TrainSpec::new(input)
        .max_steps(MAX_STEPS)
        .hook(CsvLogHook::new("training.csv", Every::Steps(3)))
        .hook(Slow::from_environment())
        .report(&stored);
    let stop = EarlyStopping::lower_is_better("loss").patience(3);
    let unseen = EvalSpec::new(stored.skip(80).batch(20)).name("unseen").every(Every::Steps(6));
    let seen = EvalSpec::new(stored.take(40).batch(20)).name("seen").every(Every::Steps(10));
    let trained = estimator.train_and_evaluate(train, [unseen.early_stopping(stop).exporter(BestMetrics), seen])?;
    println!("step: {}", trained.finished.global_step);
    println!("reason: {}", trained.finished.reason);
    for set in &trained.evaluations {
        let name = set.name.as_deref().unwrap_or_default();
        println!("best of {name}: {}", set.best.as_ref().map_or_else(|| "none".to_string(), shown));
    }
    print_report(&estimator.report()?)
}

/// Prints the report of the folder, including curves.
fn print_report(report: &Report) -> Result<()> {
    // Each start adds a point at its first step, as in TensorFlow, so only the points of the
    // schedule are compared.
    let curve = report.curve("loss")?.into_iter().filter(|(step, _)| step % SUMMARY_STEPS == 1);
    println!("curve: {:?}", curve.collect::<Vec<_>>());
    for name in ["unseen", "seen"] {
        let set = report.evaluation(Some(name))?;
        let history: Vec<String> = set.history.iter().map(shown).collect();
        println!("evaluations of {name}: {}", history.join("; "));
    }
    Ok(())
}
