//! Optimizers and schedules as JSON: every setting goes there and back, and bad documents get
//! errors that name the place.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Clip, Graph, Initializer, Optimizer};
use estimand_nn::config::{CustomObjects, Field, Json, Node};
use estimand_nn::optimizer::{from_json, to_json};
use estimand_tensor::{Array, Result};
use estimand_update::{ALL_RULES, Hyper, N_SCALARS, Schedule, Sgd, Slot, SparseRule, UpdateRule};

use crate::object_options::{optimizers, schedules};

/// The weights after some steps. The gradient of `w` is `w * scale`, large enough to be clipped.
fn trained(optimizer: &Optimizer) -> Result<Vec<f32>> {
    let g = Graph::new();
    let w = g.variable("w", [3], Initializer::Value(Array::from([1.0f32, -2.0, 0.5])));
    let scale = g.constant([1.0f32, 0.5, 3.0]);
    let train = optimizer.minimize(&(w.square() * scale * 0.5).sum());
    let mut session = Session::new(&g)?;
    for _ in 0..8 {
        session.run(&[&train], &[])?;
    }
    Ok(session.value("w")?.as_slice::<f32>()?.to_vec())
}

fn check_again(optimizer: &Optimizer) -> Result<Json> {
    let json = to_json(optimizer)?;
    let again = from_json(&json.to_string(), &CustomObjects::new())?;
    assert_eq!(to_json(&again)?, json, "{optimizer:?}");
    assert_eq!(format!("{again:?}"), format!("{optimizer:?}"));
    assert_eq!(trained(&again)?, trained(optimizer)?, "{optimizer:?}");
    Ok(json)
}

#[test]
fn every_rule_goes_to_json_and_back() -> Result<()> {
    for make in ALL_RULES {
        let optimizer = Optimizer::from_rule(make().into(), 0.1);
        let json = check_again(&optimizer)?;
        // The class alone stands for the defaults, in Keras's spelling too.
        let name = json["class_name"].as_str().unwrap();
        for name in [name.to_string(), name.to_lowercase()] {
            let named = from_json(&format!("{name:?}"), &CustomObjects::new())?;
            let rate = optimizer.rule().default_learning_rate();
            assert_eq!(to_json(&named)?, to_json(&Optimizer::from_rule(make().into(), rate))?);
        }
    }
    Ok(())
}

#[test]
fn every_setting_goes_to_json_and_back() -> Result<()> {
    let mut changed: BTreeSet<(String, String)> = BTreeSet::new();
    let defaults: Vec<Json> =
        ALL_RULES.iter().map(|make| to_json(&Optimizer::from_rule(make().into(), 0.1)).unwrap()).collect();
    for optimizer in optimizers() {
        let json = check_again(&optimizer)?;
        let default = defaults.iter().find(|default| default["class_name"] == json["class_name"]);
        for (key, value) in json["config"].as_object().unwrap() {
            if default.is_none_or(|default| default["config"].get(key) != Some(value)) {
                changed.insert((json["class_name"].to_string(), key.clone()));
            }
        }
    }
    for default in defaults {
        let class = default["class_name"].to_string();
        for key in default["config"].as_object().unwrap().keys().filter(|key| *key != "name") {
            assert!(changed.contains(&(class.clone(), key.clone())), "no optimizer above sets {key} of {class}");
        }
    }
    for key in ["clipvalue", "clipnorm", "global_clipnorm", "lazy", "weight_decay", "use_ema"] {
        assert!(changed.iter().any(|(_, changed)| changed == key), "{key}");
    }
    Ok(())
}

#[test]
fn every_schedule_goes_to_json_and_back() -> Result<()> {
    for schedule in schedules() {
        let json = schedule.write()?;
        let again = Schedule::read(&Node::root(&json, &CustomObjects::new()))?;
        assert_eq!(again, schedule);
        check_again(&Optimizer::new(Sgd::default(), schedule))?;
    }
    Ok(())
}

/// What older versions of Keras write for an inverse-time schedule, and whole numbers as floats.
#[test]
fn other_spellings_of_keras_are_read() -> Result<()> {
    let read = |text: &str| from_json(text, &CustomObjects::new());
    let sgd = read(r#"{"class_name": "SGD", "config": {"lr": 0.5, "decay": 0.25}}"#)?;
    let expected = Schedule::InverseTime { initial: 0.5, decay_steps: 1, decay_rate: 0.25, staircase: false };
    assert_eq!(*sgd.learning_rate(), expected);
    let rate = r#"{"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 1, "decay_steps": 1e5, "decay_rate": 0.5}}"#;
    let adam = read(&format!(r#"{{"class_name": "Adam", "config": {{"learning_rate": {rate}}}}}"#))?;
    let expected = Schedule::Exponential { initial: 1.0, decay_steps: 100_000, decay_rate: 0.5, staircase: false };
    assert_eq!(*adam.learning_rate(), expected);
    // TF: the newer generation ignores a limit of 0.
    let newer = r#"{"class_name": "Adam", "config": {"use_ema": false, "clipnorm": 0.0, "clipvalue": 2}}"#;
    assert_eq!(read(newer)?.gradient_clip(), Some(Clip::Value(2.0)));
    Ok(())
}

/// A rule of the user that nobody has described.
#[derive(Debug)]
struct Opaque;

impl UpdateRule for Opaque {
    fn name(&self) -> &'static str {
        "Opaque"
    }

    fn slots(&self) -> Vec<Slot> {
        Vec::new()
    }

    fn scalars(&self, _: u64) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    fn hyper(&self, _: u64, _: f64) -> Hyper {
        Hyper([0.0; N_SCALARS])
    }

    fn sparse(&self) -> SparseRule {
        SparseRule::TouchedRows
    }

    fn update(&self, _: &Hyper, _: &mut [f32], _: &[f32], _: &mut [&mut [f32]]) {}
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    let text = to_json(&Optimizer::new(Opaque, 0.1)).unwrap_err().to_string();
    assert!(text.contains("the optimizer Opaque cannot be written") && text.contains("settings"), "{text}");
    let text = to_json(&Optimizer::new(Sgd::default(), f64::NAN)).unwrap_err().to_string();
    assert!(text.contains("JSON has no number NaN"), "{text}");
}

#[test]
fn bad_documents_get_errors_that_name_the_place() {
    let of = |class: &str, config: &str| format!(r#"{{"class_name": "{class}", "config": {{{config}}}}}"#);
    let rate = |class: &str, config: &str| of("SGD", &format!(r#""learning_rate": {}"#, of(class, config)));
    let rise = r#"{"class_name": "WarmUp", "config": {"then": "#;
    let deep = format!(r#"{{"class_name": "SGD", "config": {{"learning_rate": {}1"#, rise.repeat(10_000));
    let cases: [(String, &[&str]); 23] = [
        (of("Adm", ""), &["no optimizer `Adm`", "at $", "did you mean `Adam`?"]),
        ("\"sdg\"".into(), &["no optimizer `sdg`", "at $"]),
        (r#"{"config": {}}"#.into(), &["there is no `class_name`", "at $"]),
        (r#"{"class_name": "SGD"}"#.into(), &["there is no `config`", "at $"]),
        (of("SGD", r#""momentum": "0.5""#), &["expected a number, found \"0.5\"", "at $.config.momentum"]),
        (of("SGD", r#""momentum": 2"#), &["SGD: `momentum` must be between 0 and 1, got 2.0", "at $.config"]),
        (of("SGD", r#""nesterof": true"#), &["no field `nesterof`", "at $.config", "did you mean `nesterov`?"]),
        (of("Adam", r#""learning_rate": -1"#), &["`learning_rate` must be zero or positive", "$.config.learning_rate"]),
        (
            of("Adam", r#""learning_rate": true"#),
            &["expected a number or a schedule, found true", "$.config.learning_rate"],
        ),
        (of("AdamW", r#""weight_decay": "a""#), &["expected a number", "at $.config.weight_decay"]),
        (of("Adam", r#""clipnorm": 1, "clipvalue": 1"#), &["`clipvalue` and `clipnorm` are set", "at $.config"]),
        (of("Adam", r#""use_ema": 1"#), &["expected true or false", "at $.config.use_ema"]),
        (of("Adam", r#""jit_compile": true"#), &["no other `jit_compile`", "at $.config.jit_compile"]),
        (
            of("SGD", r#""use_ema": true, "ema_momentum": 2"#),
            &["`ema_momentum` must be between 0 and 1, got 2.0", "at $.config"],
        ),
        (
            of("SGD", r#""gradient_accumulation_steps": 2"#),
            &["expected null", "at $.config.gradient_accumulation_steps"],
        ),
        (rate("CosineDecy", ""), &["no schedule `CosineDecy`", "at $.config.learning_rate", "`CosineDecay`"]),
        (
            rate("CosineDecay", r#""initial_learning_rate": 1"#),
            &["no `decay_steps`", "at $.config.learning_rate.config"],
        ),
        (
            rate("ExponentialDecay", r#""initial_learning_rate": 1, "decay_steps": 1.5, "decay_rate": 1"#),
            &["expected a whole number from 0, found 1.5", "at $.config.learning_rate.config.decay_steps"],
        ),
        (
            rate("ExponentialDecay", r#""initial_learning_rate": 1, "decay_steps": 0, "decay_rate": 1"#),
            &["`decay_steps` must be positive, got 0", "at $.config.learning_rate"],
        ),
        (
            rate("PiecewiseConstantDecay", r#""boundaries": [1], "values": []"#),
            &["`values` must be one more than `boundaries`, got 0 and 1", "at $.config.learning_rate"],
        ),
        (
            rate("PiecewiseConstantDecay", r#""boundaries": [-1], "values": [1, 2]"#),
            &["expected a whole number from 0, found -1", "at $.config.learning_rate.config.boundaries[0]"],
        ),
        (
            of(
                "SGD",
                &format!(r#""decay": 0.1, "learning_rate": {}"#, Schedule::from(0.1).warm_up(3).write().unwrap()),
            ),
            &["`decay` is set, and the learning rate is a schedule", "at $.config"],
        ),
        (deep, &["nested more than 100 deep", "at $.config.learning_rate.config.then"]),
    ];
    for (document, parts) in cases {
        let error = from_json(&document, &CustomObjects::new()).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}\nshould contain {part}");
        }
        assert!(error.len() < 400, "{error}");
    }
}

/// A document that lost or changed any part is read or refused, and nothing panics.
#[test]
fn damaged_documents_do_not_panic() -> Result<()> {
    for optimizer in [&optimizers()[2], &Optimizer::new(Sgd::default(), schedules()[7].clone())] {
        let document = to_json(optimizer)?.to_string();
        for i in 0..document.len() {
            for with in ["", "0", "\"", "[", "null", "-"] {
                let damaged = format!("{}{with}{}", &document[..i], &document[i + 1..]);
                if let Ok(optimizer) = from_json(&damaged, &CustomObjects::new()) {
                    assert!(optimizer.learning_rate().rate(5) >= 0.0);
                }
            }
        }
    }
    Ok(())
}
