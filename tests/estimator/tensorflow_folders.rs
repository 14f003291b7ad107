//! Model folders written by TensorFlow or an earlier version: the names of optimizer slots, and
//! missing slots.

use std::path::Path;

use estimand::graph::checkpoint::{BundleReader, BundleWriter, latest_checkpoint};
use estimand::head::MultiHead;
use estimand::nn::column::shared_embeddings;
use estimand::prelude::*;
use estimand::premade::{DnnLinearCombinedEstimator, LinearEstimator};

use crate::hooks::log_lines::logged;
use crate::models::Folder;

/// Rows of a number and a word, with a label for each of some names.
fn rows(labels: &[&str]) -> Dataset {
    let words = Array::from_strings([4], ["a", "b", "c", "a"]).unwrap();
    let mut arrays = vec![("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("word", words)];
    arrays.extend(labels.iter().map(|&name| (name, Array::from([2f32, 4.0, 6.0, 8.0]))));
    let data = Dataset::from_arrays(arrays);
    labels.iter().fold(data, |data, name| data.label(name)).repeat_forever().batch(4)
}

fn head(name: &str) -> RegressionHead {
    RegressionHead::new().name(name)
}

fn multi(names: &[&str]) -> MultiHead {
    names.iter().fold(MultiHead::new(), |all, name| all.head(head(name)))
}

/// Writes the newest checkpoint anew, each entry under the name that `rename` gives it, or not at
/// all.
fn rewrite(folder: &Path, rename: impl Fn(&str) -> Option<String>) -> Result<()> {
    let prefix = latest_checkpoint(folder)?.unwrap();
    let reader = BundleReader::open(&prefix)?;
    let kept = reader.names().filter_map(|name| Some((name, rename(name)?)));
    let entries: Vec<(String, Array)> = kept.map(|(name, new)| Ok((new, reader.read(name)?))).collect::<Result<_>>()?;
    let mut writer = BundleWriter::create(&prefix)?;
    for (name, value) in entries {
        writer.add(&name, &value)?;
    }
    writer.finish()
}

fn entries(folder: &Path) -> Result<Vec<(String, Array)>> {
    let reader = BundleReader::open(latest_checkpoint(folder)?.unwrap())?;
    reader.names().map(|name| Ok((name.to_string(), reader.read(name)?))).collect()
}

/// As TensorFlow 2.15 names them: its heads each open a scope `training`, and a MultiHead one more
/// after those in it.
#[test]
fn slots_of_several_heads_have_tensorflows_names() -> Result<()> {
    let linear = |head: MultiHead, labels: &[&str]| {
        let folder = Folder::new();
        let model = LinearEstimator::new(head, [numeric_column("x").into()]).model_dir(folder.path()).build()?;
        model.train(TrainSpec::new(rows(labels)).steps(1))?;
        model.variable_names()
    };
    for (head, labels, scope) in [
        (multi(&["a"]), &["a"][..], "training_1"),
        (multi(&["a", "b"]), &["a", "b"], "training_2"),
        (multi(&["a", "b", "c"]), &["a", "b", "c"], "training_3"),
        (MultiHead::new().head(multi(&["a"])).head(head("b")), &["a", "b"], "training_3"),
    ] {
        let saved = linear(head, labels)?;
        assert!(saved.contains(&format!("{scope}/Ftrl/linear/linear_model/bias_weights/accumulator")), "{saved:?}");
    }
    for (names, scope) in [(&["a", "b"][..], "training_2"), (&["a", "b", "c"], "training_3")] {
        let folder = Folder::new();
        let combined = DnnLinearCombinedEstimator::new(multi(names))
            .linear_feature_columns([numeric_column("x").into()])
            .dnn_feature_columns([numeric_column("x").into()])
            .dnn_hidden_units([2]);
        let model = combined.model_dir(folder.path()).build()?;
        model.train(TrainSpec::new(rows(names)).steps(1))?;
        let saved = model.variable_names()?;
        for name in [
            "Ftrl/iter",
            "Ftrl/learning_rate",
            "Ftrl/linear/linear_model/x/weights/linear",
            "Adagrad/dnn/logits/kernel/accumulator",
        ] {
            assert!(saved.contains(&format!("{scope}/{name}")), "{name} in {saved:?}");
        }
        assert!(!saved.iter().any(|name| name.starts_with("training/")), "{saved:?}");
    }
    Ok(())
}

/// Version 0.1.0 wrote `training/..` for all heads.
#[test]
fn a_folder_of_version_0_1_0_goes_on_to_the_same_bits() -> Result<()> {
    let names = ["a", "b"];
    let train = |folder: &Folder, step| {
        let linear = LinearEstimator::new(multi(&names), [numeric_column("x").into()]);
        let model = linear.config(RunConfig::new().tf_random_seed(3)).model_dir(folder.path()).build()?;
        model.train(TrainSpec::new(rows(&names)).max_steps(step))
    };
    let (whole, parts) = (Folder::new(), Folder::new());
    train(&whole, 5)?;
    train(&parts, 3)?;
    rewrite(parts.path(), |name| Some(name.replacen("training_2/", "training/", 1)))?;
    let (finished, lines) = logged(|| train(&parts, 5));
    assert_eq!(finished?.global_step, 5);
    assert_eq!(entries(parts.path())?, entries(whole.path())?);
    let told: Vec<_> =
        lines.iter().filter(|line| line.contains("`training/") && line.contains("`training_2/")).collect();
    assert_eq!(told.len(), 1, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.starts_with("WARN")), "{lines:#?}");
    Ok(())
}

/// A deep network over a shared table, which TensorFlow's premades do not train: its folder has no
/// slot of it.
fn shared(folder: &Folder, optimizer: &str) -> Result<Estimator> {
    let words = categorical_column_with_vocabulary_list("word", ["a", "b", "c"]);
    let columns = shared_embeddings([&words], 2).shared_embedding_collection_name("table").columns();
    let columns: Vec<FeatureColumn> = columns.into_iter().map(Into::into).collect();
    let dnn = DnnRegressor::new([2], columns).optimizer(optimizer).config(RunConfig::new().tf_random_seed(3));
    dnn.model_dir(folder.path()).build()
}

#[test]
fn slots_that_a_checkpoint_lacks_begin_anew() -> Result<()> {
    let (whole, parts) = (Folder::new(), Folder::new());
    let slot = "training/Adagrad/table/accumulator";
    let train = |folder: &Folder, step| shared(folder, "Adagrad")?.train(TrainSpec::new(rows(&["y"])).max_steps(step));
    let value = |folder: &Folder, name: &str| shared(folder, "Adagrad")?.variable_value(name)?.to_f64_vec();
    train(&whole, 3)?;
    train(&parts, 2)?;
    let learnt = value(&parts, slot)?;
    assert!(learnt.iter().any(|value| *value > 0.1001), "{learnt:?}");
    rewrite(parts.path(), |name| (name != slot).then(|| name.to_string()))?;
    let before = value(&parts, "table")?;
    let (finished, lines) = logged(|| train(&parts, 3));
    assert_eq!(finished?.global_step, 3);
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{lines:#?}");
    assert!(warnings[0].contains(slot) && warnings[0].contains("start from their initial values"), "{warnings:?}");
    // The slot began with 0.1 and had the square of one gradient added; with the rate 0.001 the
    // weight has moved by 0.001 g / (sqrt(0.1 + g^2) + 1e-7).
    for ((before, after), sum) in before.into_iter().zip(value(&parts, "table")?).zip(value(&parts, slot)?) {
        let gradient = (sum - f64::from(0.1f32)).max(0.0).sqrt();
        let expected = 0.001 * gradient / (sum.sqrt() + 1e-7);
        assert!(((before - after).abs() - expected).abs() < 1e-6, "{before} {after} {sum}");
    }
    // Everything else is as if nothing had been lost.
    let others = |folder: &Folder| -> Result<Vec<(String, Array)>> {
        Ok(entries(folder.path())?.into_iter().filter(|(name, _)| !name.contains("table")).collect())
    };
    assert_eq!(others(&parts)?, others(&whole)?);
    // What was written now is whole.
    let (finished, lines) = logged(|| train(&parts, 4));
    assert_eq!(finished?.global_step, 4);
    assert!(!lines.iter().any(|line| line.starts_with("WARN")), "{lines:#?}");
    Ok(())
}

/// Only slots may be missing, and only those of an optimizer that the checkpoint knows.
#[test]
fn weights_and_whole_optimizers_are_missed() -> Result<()> {
    let error = |lost: &str, optimizer: &str| {
        let folder = Folder::new();
        shared(&folder, "Adagrad")?.train(TrainSpec::new(rows(&["y"])).max_steps(2))?;
        rewrite(folder.path(), |name| (!name.starts_with(lost)).then(|| name.to_string()))?;
        let ended = shared(&folder, optimizer)?.train(TrainSpec::new(rows(&["y"])).max_steps(4));
        Ok::<_, Error>(ended.unwrap_err().to_string())
    };
    for (lost, optimizer, missed) in [
        ("table", "Adagrad", "`table` "),
        ("dnn/logits/bias", "Adagrad", "`dnn/logits/bias` "),
        // Whole optimizers: another one, and one whose every entry is gone.
        ("nothing", "Adam", "`training/Adam/"),
        ("training/Adagrad/", "Adagrad", "`training/Adagrad/"),
    ] {
        let text = error(lost, optimizer)?;
        for part in ["belongs to another model", missed, "is in the model", "and not in the checkpoint"] {
            assert!(text.contains(part), "{lost}, {optimizer}: {part:?} in {text:?}");
        }
    }
    Ok(())
}
