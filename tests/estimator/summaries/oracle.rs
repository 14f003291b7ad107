//! The values written for arrays equal those of TensorFlow's and TensorBoard's ops
//! (oracles/gen/summaries.py).

use estimand::data::image;
use estimand::events::{EventWriter, SummaryValue, Value};
use estimand::prelude::*;
use serde_json::Value as Json;

use super::values;
use crate::models::Folder;

fn cases(kind: &str) -> Vec<Json> {
    let text = include_str!("../../../oracles/fixtures/summaries.jsonl");
    let cases = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    cases.filter(|case| case["kind"] == kind).collect()
}

fn number(json: &Json) -> f64 {
    json.as_f64().unwrap_or_else(|| json.as_str().unwrap().parse().unwrap())
}

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(number).collect()
}

fn array(json: &Json) -> Array {
    let dims: Vec<usize> = numbers(&json["dims"]).into_iter().map(|n| n as usize).collect();
    let values = numbers(&json["values"]);
    match json["dtype"].as_str().unwrap() {
        "f32" => Array::from_vec(dims, values.into_iter().map(|v| v as f32).collect()),
        "i64" => Array::from_vec(dims, values.into_iter().map(|v| v as i64).collect()),
        "u8" => Array::from_vec(dims, values.into_iter().map(|v| v as u8).collect()),
        "bool" => Array::from_vec(dims, values.into_iter().map(|v| v != 0.0).collect()),
        other => panic!("{other}"),
    }
    .unwrap()
}

/// What is in the file that something was written to.
fn written(write: impl FnOnce(&mut EventWriter) -> Result<()>) -> Vec<Value> {
    let folder = Folder::new();
    write(&mut EventWriter::create(folder.path()).unwrap()).unwrap();
    values(folder.path()).into_iter().map(|(_, value)| value).collect()
}

#[test]
fn histograms_have_tensorflow_s_buckets() {
    let cases = cases("histogram");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let [value] = &written(|w| w.histogram(1, "h", &array(&case["array"])))[..] else { panic!("{case}") };
        let Some(SummaryValue::Histo(found)) = &value.value else { panic!("{value:?}") };
        let expected = &case["expected"];
        assert_eq!(found.bucket_limit, numbers(&expected["limits"]), "{case}");
        assert_eq!(found.bucket, numbers(&expected["counts"]), "{case}");
        for (name, found) in [
            ("min", found.min),
            ("max", found.max),
            ("num", found.num),
            ("sum", found.sum),
            ("sum_squares", found.sum_squares),
        ] {
            assert_eq!(found, number(&expected[name]), "{name} of {case}");
        }
    }
}

#[test]
fn images_have_tensorflow_s_pixels() {
    let cases = cases("image");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let n = case["max_outputs"].as_u64().unwrap() as usize;
        let found = written(|w| w.image(1, "scope/i", &array(&case["array"]), n));
        let expected = case["expected"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{case}");
        for (value, expected) in found.iter().zip(expected) {
            let Some(SummaryValue::Image(found)) = &value.value else { panic!("{value:?}") };
            let dims = [found.height, found.width, found.colorspace].map(f64::from);
            assert_eq!(
                (value.tag.as_str(), &dims[..]),
                (expected["tag"].as_str().unwrap(), &numbers(&expected["dims"])[..])
            );
            let pixels = image::decode(&found.encoded_image_string, None).unwrap();
            assert_eq!(pixels.to_f64_vec().unwrap(), numbers(&expected["pixels"]), "{case}");
        }
    }
}

#[test]
fn curves_have_tensorboard_s_points() {
    let cases = cases("pr_curve");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let (labels, predictions) = (array(&case["labels"]), array(&case["predictions"]));
        let weights = Some(&case["weights"]).filter(|json| !json.is_null()).map(array);
        let n = case["num_thresholds"].as_u64().unwrap() as usize;
        let found = written(|w| w.pr_curve(1, "c", &labels, &predictions, n, weights.as_ref()));
        let rows: Vec<f64> = case["expected"].as_array().unwrap().iter().flat_map(numbers).collect();
        let Some(SummaryValue::Tensor(tensor)) = &found[0].value else { panic!("{found:?}") };
        let tensor = tensor.to_array().unwrap();
        assert_eq!((tensor.dims(), tensor.to_f64_vec().unwrap()), (&[6, n][..], rows), "{case}");
        let plugin = found[0].metadata.as_ref().unwrap().plugin_data.as_ref().unwrap();
        let content: String = plugin.content.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((plugin.plugin_name.as_str(), content.as_str()), ("pr_curves", case["content"].as_str().unwrap()));
    }
}
