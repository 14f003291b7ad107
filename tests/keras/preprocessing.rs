//! Preprocessing layers and masks in models: strings in front of a network, `adapt`, padding that
//! does not count.

use estimand::Adapt;
use estimand::graph::Graph;
use estimand::keras::{
    Compile, Evaluate, Fit, Functional, Input, Model, PadSequences, Sequential, Side, pad_sequences,
};
use estimand::nn::{
    Concat, Discretization, GlobalAvgPool1d, IntegerLookup, Lambda, Masking, Normalization, OutputMode, StringLookup,
    TextVectorization,
};
use estimand::prelude::*;

fn words<const N: usize>(words: [&str; N]) -> Array {
    Array::from_strings([N], words).unwrap()
}

/// Rows whose label is whether the job is `nurse`; the age says nothing.
fn rows() -> (Array, Array, Array) {
    let jobs = ["nurse", "cook", "clerk", "nurse"];
    let job = Array::from_strings([40], (0..40).map(|i| jobs[i % 4])).unwrap();
    let age = Array::from((0..40).map(|i| i as f32).collect::<Vec<f32>>());
    let label = Array::from((0..40).map(|i| f32::from(u8::from(jobs[i % 4] == "nurse"))).collect::<Vec<f32>>());
    (job, age, label)
}

#[test]
fn a_model_takes_strings_and_raw_numbers() -> Result<()> {
    let (job, age, label) = rows();
    let train = Dataset::from_arrays([("job", job.clone()), ("age", age.clone())]);
    let lookup = StringLookup::new().output_mode(OutputMode::OneHot).adapt_feature(&train, "job")?;
    let normal = Normalization::new().adapt_feature(&train, "age")?;
    let jobs = Input::new([1]).name("job").dtype(DType::Str).tensor();
    let ages = Input::new([1]).name("age").tensor();
    let both = Concat::new().on(&[&lookup.on(&jobs), &normal.on(&ages)]);
    let mut model = Model::new(&[&jobs, &ages], &Dense::new(1).sigmoid().on(&both))?;
    model.compile(Compile::new(Optimizer::new(Adam::default(), 0.1), "binary_crossentropy").metric("accuracy"))?;
    model.fit(Fit::new(([("job", job.clone()), ("age", age.clone())], &label)).epochs(30).verbose(0))?;
    let logs = model.evaluate(Evaluate::new(([("job", job), ("age", age)], &label)))?;
    assert_eq!(logs["accuracy"], 1.0);
    let unknown = model.predict([("job", words(["pilot", "nurse"])), ("age", Array::from([20f32, 20.0]))])?;
    let unknown = unknown.as_slice::<f32>()?;
    assert!(unknown[0] < unknown[1] && unknown[1] > 0.5, "{unknown:?}");
    Ok(())
}

#[test]
fn texts_go_through_a_sequential_model() -> Result<()> {
    let good = ["good film", "very good", "a good one, really good!", "GOOD"];
    let bad = ["bad film", "very bad", "a bad one, really bad!", "BAD."];
    let text = Array::from_strings([8], good.into_iter().chain(bad))?;
    let label = Array::from([1f32, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let tokens = TextVectorization::new().output_sequence_length(6).adapt(&Dataset::from_array(text.clone()))?;
    let n = tokens.vocabulary_size()?;
    let mut model = Sequential::new()
        .input(Input::new([1]).dtype(DType::Str))
        .add(tokens)
        .add(Embedding::new(n, 4).mask_zero(true))
        .add(GlobalAvgPool1d::new())
        .add(Dense::new(1).sigmoid())
        .build()?;
    model.compile(Compile::new(Optimizer::new(Adam::default(), 0.05), "binary_crossentropy").metric("accuracy"))?;
    model.fit(Fit::new((&text, &label)).epochs(60).verbose(0))?;
    assert_eq!(model.evaluate(Evaluate::new((&text, &label)))?["accuracy"], 1.0);
    // Padding and punctuation change nothing.
    let same = model.predict(words(["good", "  good ?! "]))?;
    assert_eq!(same.as_slice::<f32>()?[0], same.as_slice::<f32>()?[1]);
    Ok(())
}

/// The expected values are those of `adapt` in tf.keras 2.15 on the same data
/// (`oracles/gen/adapt.py`).
#[test]
fn adapt_learns_what_keras_learns() -> Result<()> {
    for case in estimand_fixture::cases("adapt") {
        let x = case.array("x");
        let data = Dataset::from_array(match x.dtype.as_str() {
            "string" => Array::from_strings(&x.dims, x.strings())?,
            "f32" => Array::from_vec(x.dims.clone(), case.numbers::<f32>("x"))?,
            _ => Array::from_vec(x.dims.clone(), case.numbers::<i64>("x"))?,
        });
        let max: Option<usize> = Some(case.setting::<usize>("max_tokens")).filter(|max| *max > 0);
        let weights = || case.numbers::<f32>("weights");
        let strings = |key: &str| case.array(key).strings().iter().map(|term| term.to_vec()).collect::<Vec<Vec<u8>>>();
        let found = |json: &serde_json::Value| -> (Vec<Vec<u8>>, Vec<f32>) {
            let terms = json["config"]["vocabulary"].as_array().unwrap().iter();
            let text = |term: &serde_json::Value| term.as_str().map_or_else(|| term.to_string(), str::to_string);
            let weights = json["config"]["idf_weights"].as_array().into_iter().flatten();
            (terms.map(|t| text(t).into_bytes()).collect(), weights.map(|w| w.as_f64().unwrap() as f32).collect())
        };
        let check = |layer: &dyn Layer, with_weights: bool| -> Result<()> {
            let (terms, idf) = found(&layer.to_json()?);
            let key = if with_weights { "weighted_terms" } else { "terms" };
            assert_eq!(terms, strings(key), "{}", case.name());
            if with_weights {
                let close = idf.iter().zip(weights()).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(close && idf.len() == terms.len(), "{idf:?} {:?}", weights());
            }
            Ok(())
        };
        match case.name() {
            "normalization" => {
                let axis: i64 = case.setting("axis");
                let layer = Normalization::new().axis(Some(axis).filter(|axis| *axis != 0)).adapt(&data)?;
                let (mean, variance) = layer.mean_and_variance().unwrap();
                let close =
                    |a: &[f32], b: Vec<f32>| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
                assert!(close(mean, case.numbers("mean")) && close(variance, case.numbers("variance")), "{layer:?}");
            }
            "string_lookup" => {
                let mut layer = StringLookup::new();
                if let Some(max) = max {
                    layer = layer.max_tokens(max);
                }
                check(&layer.clone().adapt(&data)?, false)?;
                check(&layer.output_mode(OutputMode::TfIdf).adapt(&data)?, true)?;
            }
            "integer_lookup" => check(&IntegerLookup::new().adapt(&data)?, false)?,
            "text_vectorization" => {
                let mut layer = TextVectorization::new();
                if let Some(max) = max {
                    layer = layer.max_tokens(max);
                }
                check(&layer.clone().adapt(&data)?, false)?;
                check(&layer.output_mode(OutputMode::TfIdf).adapt(&data)?, true)?;
            }
            other => panic!("{other}"),
        }
    }
    Ok(())
}

#[test]
fn what_cannot_be_adapted_is_said() {
    let numbers = Dataset::from_arrays([("x", Array::from([1f32, 2.0])), ("y", Array::from([1f32, 2.0]))]);
    let cases = [
        (Normalization::new().adapt(&numbers).unwrap_err(), "the features x, y; expected one"),
        (StringLookup::new().adapt_feature(&numbers, "x").unwrap_err(), "holds f32, not terms"),
        (Normalization::new().adapt_feature(&numbers.repeat_forever(), "x").unwrap_err(), "has no end"),
        (Discretization::new([1.0]).adapt_feature(&numbers, "x").unwrap_err(), "has boundaries already"),
        (Sequential::new().input([1]).add(Normalization::new()).build().unwrap_err(), "call adapt"),
        (
            Sequential::new().input(Input::new([1]).dtype(DType::Str)).add(StringLookup::new()).build().unwrap_err(),
            "the vocabulary is not set",
        ),
    ];
    for (error, part) in cases {
        assert!(error.to_string().contains(part), "{error} should contain {part}");
    }
}

#[test]
fn boundaries_are_quantiles() -> Result<()> {
    let data = Dataset::from_array(Array::from((0..100).map(|i| i as f32).collect::<Vec<_>>()));
    let layer = Discretization::bins(4).adapt(&data)?;
    assert_eq!(layer.boundaries().map(<[f32]>::len), Some(3));
    let g = Graph::new();
    let ids = layer.apply(&g.constant(Array::from([-5f32, 30.0, 60.0, 200.0])));
    assert_eq!(ids.eval()?.as_slice::<i64>()?, [0, 1, 2, 3]);
    Ok(())
}

/// The mask of the first model reaches layers of the second, and a layer that stops it.
#[test]
fn masks_cross_models_and_stop_where_they_should() -> Result<()> {
    let x = Array::from_vec([1, 3, 1], vec![1f32, 2.0, 0.0])?;
    let masks = || Sequential::new().name("inner").input([3, 1]).add(Masking::new(0.0)).build();
    let carried = Sequential::new().input([3, 1]).add_model(masks()?).add(GlobalAvgPool1d::new()).build()?;
    let mut carried = carried;
    assert_eq!(carried.predict(&x)?.as_slice::<f32>()?, [1.5]);
    let stop = estimand::nn::ZeroPadding1d::new(0);
    let mut stopped =
        Sequential::new().input([3, 1]).add_model(masks()?).add(stop).add(GlobalAvgPool1d::new()).build()?;
    assert_eq!(stopped.predict(&x)?.as_slice::<f32>()?, [1.0]);
    Ok(())
}

/// A row of padding alone changes neither loss nor metric: by hand, two steps that count with the
/// errors 1 and 4.
#[test]
fn losses_and_metrics_weigh_by_the_mask() -> Result<()> {
    let x = Array::from_vec([2, 2, 1], vec![1f32, 2.0, 0.0, 0.0])?;
    let y = Array::from_vec([2, 2, 1], vec![2f32, 4.0, 100.0, 100.0])?;
    let same = Lambda::new(|x| x[0].clone());
    let mut model = Sequential::new().input([2, 1]).add(Masking::new(0.0)).add(same).add(Dense::new(1)).build()?;
    model.set_weights(&[Array::from_vec([1, 1], vec![1f32])?, Array::from([0f32])])?;
    model.compile(Compile::new("sgd", "mse").metric("mse"))?;
    let logs = model.evaluate(Evaluate::new((&x, &y)))?;
    assert_eq!((logs["loss"], logs["mse"]), (2.5, 2.5));
    Ok(())
}

/// `tf.keras.utils.pad_sequences([[1], [2, 3, 4], []], ..)` of TensorFlow 2.15: without arguments,
/// with `maxlen=2`, and with `maxlen=2, padding="post", truncating="post", value=9`.
#[test]
fn sequences_are_padded_as_keras_pads_them() -> Result<()> {
    let rows = || pad_sequences(&[vec![1i64], vec![2, 3, 4], vec![]]);
    let padded = |made: PadSequences<i64>| -> Result<Vec<i64>> { Ok(made.array()?.as_slice::<i64>()?.to_vec()) };
    assert_eq!(rows().array()?.dims(), [3, 3]);
    assert_eq!(padded(rows())?, [0, 0, 1, 2, 3, 4, 0, 0, 0]);
    assert_eq!(padded(rows().maxlen(2))?, [0, 1, 3, 4, 0, 0]);
    let post = rows().maxlen(2).padding(Side::Post).truncating(Side::Post).value(9);
    assert_eq!(padded(post)?, [1, 9, 2, 3, 9, 9]);
    // More than any machine has is an error, not the end of the program.
    for maxlen in [usize::MAX, usize::MAX / 16, 1 << 45] {
        assert!(rows().maxlen(maxlen).array().is_err(), "{maxlen}");
    }
    Ok(())
}
