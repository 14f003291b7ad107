//! The values written for arrays equal those of TensorFlow's and TensorBoard's ops
//! (oracles/gen/summaries.py).

use estimand::data::image;
use estimand::events::{EventWriter, SummaryValue, Value};
use estimand::prelude::*;
use estimand_fixture::cases_of;

use super::values;
use crate::fixture::array;
use crate::models::Folder;

/// What is in the file that something was written to.
fn written(write: impl FnOnce(&mut EventWriter) -> Result<()>) -> Vec<Value> {
    let folder = Folder::new();
    write(&mut EventWriter::create(folder.path()).unwrap()).unwrap();
    values(folder.path()).into_iter().map(|(_, value)| value).collect()
}

#[test]
fn histograms_have_tensorflow_s_buckets() {
    let cases = cases_of("summaries", "histogram");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let [value] = &written(|w| w.histogram(1, "h", &array(&case.array("array"))))[..] else { panic!("{case}") };
        let Some(SummaryValue::Histo(found)) = &value.value else { panic!("{value:?}") };
        assert_eq!(found.bucket_limit, case.numbers::<f64>("limits"), "{case}");
        assert_eq!(found.bucket, case.numbers::<f64>("counts"), "{case}");
        for (name, found) in [
            ("min", found.min),
            ("max", found.max),
            ("num", found.num),
            ("sum", found.sum),
            ("sum_squares", found.sum_squares),
        ] {
            assert_eq!(found, case.setting::<f64>(name), "{name} of {case}");
        }
    }
}

#[test]
fn images_have_tensorflow_s_pixels() {
    let cases = cases_of("summaries", "image");
    assert_eq!(cases.len(), 6);
    for case in cases {
        let image = array(&case.array("array"));
        let found = written(|w| w.image(1, "scope/i", &image, case.setting("max_outputs")));
        let expected = case.arrays("shown");
        assert_eq!(found.len(), expected.len(), "{case}");
        for (value, (tag, expected)) in found.iter().zip(expected) {
            let Some(SummaryValue::Image(found)) = &value.value else { panic!("{value:?}") };
            let dims = [found.height, found.width, found.colorspace].map(|n| n as usize);
            assert_eq!((&value.tag, &dims[..]), (&tag, &expected.dims[..]));
            let pixels = image::decode(&found.encoded_image_string, None).unwrap();
            assert_eq!(pixels.to_f64_vec().unwrap(), expected.numbers::<f64>(), "{case}");
        }
    }
}

#[test]
fn curves_have_tensorboard_s_points() {
    let cases = cases_of("summaries", "pr_curve");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let (labels, predictions) = (array(&case.array("labels")), array(&case.array("predictions")));
        let weights = case.find("weights").map(|weights| array(&weights));
        let n = case.setting("num_thresholds");
        let found = written(|w| w.pr_curve(1, "c", &labels, &predictions, n, weights.as_ref()));
        let Some(SummaryValue::Tensor(tensor)) = &found[0].value else { panic!("{found:?}") };
        let tensor = tensor.to_array().unwrap();
        assert_eq!((tensor.dims(), &tensor), (&[6, n][..], &array(&case.array("rows"))), "{case}");
        let plugin = found[0].metadata.as_ref().unwrap().plugin_data.as_ref().unwrap();
        assert_eq!((plugin.plugin_name.as_str(), plugin.content.to_vec()), ("pr_curves", case.bytes("content")));
    }
}
