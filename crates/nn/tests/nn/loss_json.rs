//! Losses as JSON: every option goes there and back, and bad documents get errors that name the
//! place.

use std::collections::BTreeSet;

use estimand_engine::Eval;
use estimand_graph::{Graph, Tensor};
use estimand_nn::config::{self, CustomObjects, Described, Fields, Json};
use estimand_nn::{loss, *};
use estimand_tensor::{Result, Shape};

use crate::object_options::losses;

fn read(text: &str) -> Result<Box<dyn Loss>> {
    loss::from_json(text, &CustomObjects::new())
}

/// The loss of some rows, with weights.
fn value(loss: &dyn Loss) -> Result<Vec<f32>> {
    let g = Graph::new();
    let rows = |values: [f32; 6]| -> Tensor { g.constant(values).reshape_as(Shape::from([2, 3])) };
    let labels = match loss.name().starts_with("sparse") {
        true => g.constant([2i64, 0]),
        false => rows([0.0, 1.0, 0.0, 1.0, 0.0, 0.0]),
    };
    let predictions = rows([0.125, 0.5, 0.375, 0.25, 0.625, 0.125]);
    let weights = g.constant([0.0f32, 2.5]);
    Ok(loss.apply_weighted(&labels, &predictions, &weights).eval()?.as_slice::<f32>()?.to_vec())
}

fn check_again(loss: &dyn Loss) -> Result<Json> {
    let json = loss.to_json()?;
    let again = read(&json.to_string())?;
    assert_eq!(again.to_json()?, json, "{loss:?}");
    assert_eq!(format!("{again:?}"), format!("{loss:?}"));
    assert_eq!(value(&*again)?, value(loss)?, "{loss:?}");
    Ok(json)
}

#[test]
fn every_loss_goes_to_json_and_back() -> Result<()> {
    for make in ALL_LOSSES {
        check_again(&*make())?;
    }
    Ok(())
}

/// Fields that have one value only.
const FIXED: [&str; 2] = ["axis", "ignore_class"];

#[test]
fn every_option_goes_to_json_and_back() -> Result<()> {
    let mut seen: BTreeSet<(String, String, String)> = BTreeSet::new();
    for loss in losses() {
        let json = check_again(&*loss)?;
        for (key, value) in json["config"].as_object().unwrap() {
            seen.insert((json["class_name"].to_string(), key.clone(), value.to_string()));
        }
    }
    for default in ALL_LOSSES.iter().map(|make| make().to_json().unwrap()) {
        let class = default["class_name"].to_string();
        for (key, value) in default["config"].as_object().unwrap() {
            let value = value.to_string();
            let others = seen.iter().filter(|(c, k, v)| *c == class && k == key && *v != value).count();
            let wanted = if key == "reduction" { 4 } else { usize::from(!FIXED.contains(&key.as_str())) };
            assert_eq!(others, wanted, "other values of {key} of {class} in the losses above");
        }
    }
    Ok(())
}

/// Keras's default, and the name of a class alone.
#[test]
fn a_document_without_fields_has_the_defaults_of_keras() -> Result<()> {
    for name in ["\"mean_squared_error\"", r#"{"class_name": "MeanSquaredError", "config": {"reduction": "auto"}}"#] {
        let expected = MeanSquaredError::new().reduction(Reduction::SumOverBatchSize);
        assert_eq!(format!("{:?}", read(name)?), format!("{expected:?}"));
    }
    let bce = read(r#"{"class_name": "BinaryCrossentropy", "config": {}}"#)?;
    let expected = SigmoidCrossEntropy::new().from_probabilities().reduction(Reduction::SumOverBatchSize);
    assert_eq!(format!("{bce:?}"), format!("{expected:?}"));
    Ok(())
}

/// A loss of the user: the distance to a multiple of the label.
#[derive(Debug)]
struct Far {
    times: f64,
    reduction: Reduction,
}

impl Loss for Far {
    fn name(&self) -> &'static str {
        "far"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        (predictions - labels * self.times).abs()
    }

    fn to_json(&self) -> Result<Json> {
        config::write("my_package", self)
    }
}

impl Described for Far {
    const CLASS: &'static str = "Far";

    fn template() -> Far {
        Far { times: 1.0, reduction: Reduction::SumOverBatchSize }
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Far {
        Far { times: fields.required("times", &self.times), reduction: self.reduction.of_elements(fields) }
    }
}

/// A loss of the user that nobody has described.
#[derive(Debug)]
struct Opaque;

impl Loss for Opaque {
    fn name(&self) -> &'static str {
        "opaque"
    }

    fn loss_reduction(&self) -> Reduction {
        Reduction::Sum
    }

    fn elements(&self, _: &Tensor, predictions: &Tensor) -> Tensor {
        predictions.clone()
    }
}

#[test]
fn losses_of_the_user_are_written_and_read() -> Result<()> {
    let far = Far { times: 3.0, reduction: Reduction::Mean };
    let (json, objects) = (far.to_json()?, CustomObjects::new().loss::<Far>());
    let again = loss::from_json(&json.to_string(), &objects)?;
    assert_eq!((again.to_json()?, value(&*again)?), (json, value(&far)?));
    let text = Opaque.to_json().unwrap_err().to_string();
    assert!(text.contains("the loss `opaque` cannot be written") && text.contains("Described"), "{text}");
    Ok(())
}

#[test]
fn bad_documents_get_errors_that_name_the_place() {
    let of = |class: &str, config: &str| format!(r#"{{"class_name": "{class}", "config": {{{config}}}}}"#);
    let deep = format!("{}1", r#"{"class_name": "Huber", "config": {"delta": "#.repeat(10_000));
    let cases: [(String, &[&str]); 13] = [
        (of("Hubert", ""), &["no loss `Hubert`", "at $", "did you mean `Huber`?"]),
        (of("Far", ""), &["no loss `Far`", "at $"]),
        ("3".into(), &["expected an object, found 3", "at $"]),
        (r#"{"config": {}}"#.into(), &["there is no `class_name`", "at $"]),
        (r#"{"class_name": "Huber"}"#.into(), &["there is no `config`", "at $"]),
        (of("Huber", r#""delta": "a""#), &["expected a number, found \"a\"", "at $.config.delta"]),
        (of("Huber", r#""detla": 1"#), &["no field `detla`", "at $.config", "did you mean `delta`?"]),
        (
            of("Huber", r#""reduction": "sum""#),
            &["Keras's `sum` reduces each row", "at $.config.reduction", "weighted_sum"],
        ),
        (of("Huber", r#""reduction": "some""#), &["found \"some\"", "weighted_mean", "at $.config.reduction"]),
        (of("BinaryCrossentropy", r#""axis": 1"#), &["expected -1", "no other `axis`", "at $.config.axis"]),
        (of("SparseCategoricalCrossentropy", r#""ignore_class": 0"#), &["expected null", "at $.config.ignore_class"]),
        (of("Poisson", r#""dtype": "float16""#), &["found \"float16\"", "at $.config.dtype"]),
        (deep, &["nested more than 100 deep", "at $.config.delta.config.delta"]),
    ];
    for (document, parts) in cases {
        let error = read(&document).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}\nshould contain {part}");
        }
        assert!(error.len() < 400, "{error}");
    }
}

/// A document that lost or changed any part is read or refused, and nothing panics.
#[test]
fn damaged_documents_do_not_panic() -> Result<()> {
    let document = SoftmaxCrossEntropy::new().label_smoothing(0.5).to_json()?.to_string();
    for i in 0..document.len() {
        for with in ["", "0", "\"", "[", "null", "-"] {
            let _ = read(&format!("{}{with}{}", &document[..i], &document[i + 1..]));
        }
    }
    Ok(())
}
