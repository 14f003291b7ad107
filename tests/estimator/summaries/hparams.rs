//! Parameters of runs for TensorBoard's HParams page: written when a training begins, with its
//! status when it ends.

use std::path::Path;

use estimand::events::EventWriter;
use estimand::prelude::*;
use estimand_wire::Message;
use estimand_wire::plugin::{HParamsData, HParamsPluginData, RunStatus, ScalarKind};

use super::values;
use crate::hooks::log_lines::logged;
use crate::models::{Folder, line, linear};

/// What the plugin is told by a folder's files.
fn told(folder: &Path) -> Vec<(String, HParamsData)> {
    let all = values(folder).into_iter().filter(|(_, value)| value.tag.starts_with("_hparams_/"));
    all.map(|(_, value)| {
        let plugin = value.metadata.unwrap().plugin_data.unwrap();
        assert_eq!(plugin.plugin_name, "hparams");
        (value.tag, HParamsPluginData::decode(&plugin.content[..]).unwrap().data.unwrap())
    })
    .collect()
}

fn train(folder: &Folder, rate: f64) -> Result<()> {
    let params = HParams::new().set("rate", rate).set("name", "a").set("wide", true).set("sizes", [3, 4]);
    let estimator = Estimator::new(linear).params(params).model_dir(folder.path()).build()?;
    estimator.train(TrainSpec::new(line(8).repeat_forever().batch(2).drop_remainder()).steps(100)).map(drop)
}

fn status(data: &HParamsData) -> RunStatus {
    let HParamsData::SessionEndInfo(end) = data else { panic!("{data:?}") };
    end.status()
}

#[test]
fn a_training_tells_its_parameters_and_how_it_ended() -> Result<()> {
    let folder = Folder::new();
    train(&folder, 0.1)?;
    let [(start_tag, HParamsData::SessionStartInfo(start)), (end_tag, end)] = &told(folder.path())[..] else {
        panic!()
    };
    assert_eq!((&start_tag[..], &end_tag[..]), ("_hparams_/session_start_info", "_hparams_/session_end_info"));
    let found: Vec<_> = start.hparams.iter().map(|(name, value)| (&name[..], value.kind.clone().unwrap())).collect();
    let text = |text: &str| ScalarKind::String(text.to_string());
    let expected = [
        ("name", text("a")),
        ("rate", ScalarKind::Number(0.1)),
        ("sizes", text("[3,4]")),
        ("wide", ScalarKind::Bool(true)),
    ];
    assert_eq!(found, expected);
    assert_eq!(status(end), RunStatus::Success);
    Ok(())
}

/// A premade estimator tells of the parameters that its program gives it.
#[test]
fn a_premade_estimator_has_parameters_too() -> Result<()> {
    let folder = Folder::new();
    let params = HParams::new().set("units", 4);
    let model = DnnRegressor::new([4], columns![numeric_column("x")]).params(params.clone()).model_dir(folder.path());
    let (model, lines) = logged(|| model.build());
    let (model, shown) = (model?, format!("Using config: model_dir = {}, ", folder.path().display()));
    assert!(lines.iter().any(|line| line.contains(&shown)), "{lines:?}");
    assert_eq!(model.params(), &params);
    model.train(line(8).batch(4))?;
    let HParamsData::SessionStartInfo(start) = &told(folder.path())[0].1 else { panic!() };
    assert_eq!(start.hparams["units"].kind, Some(ScalarKind::Number(4.0)));
    Ok(())
}

#[test]
fn a_training_that_failed_says_so() {
    let folder = Folder::new();
    // The weights grow until the loss is no number.
    train(&folder, 1e30).unwrap_err();
    assert_eq!(status(&told(folder.path())[1].1), RunStatus::Failure);
}

#[test]
fn an_experiment_names_columns() -> Result<()> {
    let folder = Folder::new();
    let params = HParams::new().set("rate", 0.1).set("name", "a").set("wide", true);
    EventWriter::create(folder.path())?.experiment(&params, &[("eval", "accuracy"), ("", "loss")])?;
    let [(_, HParamsData::Experiment(experiment))] = &told(folder.path())[..] else { panic!() };
    let columns: Vec<_> = experiment.hparam_infos.iter().map(|info| (&info.name[..], info.r#type)).collect();
    // Float64, string and bool, as TensorBoard numbers them.
    assert_eq!(columns, [("rate", 3), ("name", 1), ("wide", 2)]);
    let metrics: Vec<_> = experiment.metric_infos.iter().map(|info| info.name.clone().unwrap()).collect();
    assert_eq!(
        metrics.iter().map(|m| (&m.group[..], &m.tag[..])).collect::<Vec<_>>(),
        [("eval", "accuracy"), ("", "loss")]
    );
    Ok(())
}
