//! Exports of graphs that TensorFlow writes in another way than we do: loops, checks, and ops that
//! it does not have. That TensorFlow runs them is checked by `oracles/live/export.py`.

use estimand::export::Receiver;
use estimand::graph::custom::CustomOp;
use estimand::graph::saved_model::SavedModel;
use estimand::nn::column::{
    sequence_categorical_column_with_hash_bucket, sequence_input_layer, sequence_numeric_column,
};
use estimand::prelude::*;
use estimand::tensor::{Batch, Ragged, TensorSpec};

use crate::models::{Folder, line};

fn sequences() -> Columns {
    let words = sequence_categorical_column_with_hash_bucket("words", 20);
    columns![embedding_column(words, 3), sequence_numeric_column("steps")]
}

fn lstm(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let (x, lengths) = sequence_input_layer(cx.features(), sequences());
    let last = Lstm::new(4).apply(&LayerInputs::of(&x).lengths(&lengths));
    BinaryClassHead::new().spec(cx, &Dense::new(1).apply(&last), Optimizer::new(Adam::default(), 0.01))
}

/// Rows of 2, 0, 3 and 1 words.
fn rows() -> Result<Batch> {
    let splits = [0, 2, 2, 5, 6];
    let words = Array::from_strings([6], ["a", "b", "c", "a", "a", "d"])?;
    let steps = Array::from([1f32, 2.0, -1.0, 0.5, 3.0, 1.0]);
    Batch::new().with_feature("words", Ragged::new(words, splits)?)?.with_feature("steps", Ragged::new(steps, splits)?)
}

/// A recurrence of unknown length is exported as a loop. Our reader makes one op of it, which gives
/// the numbers of the model, and finds sequences whose lengths differ.
#[test]
fn a_recurrence_over_ragged_sequences() -> Result<()> {
    let folder = Folder::new();
    let model = Estimator::new(lstm)
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.path().join("model"))
        .build()?;
    let labelled = rows()?.with_feature("y", Array::from([0i64, 1, 1, 0]))?;
    model.train(Dataset::from_batch(labelled).label("y").batch(4).repeat(5))?;
    let data = Dataset::from_batch(rows()?);
    let receiver = Receiver::like(&data)?.and_examples(sequences())?;
    let export = model.export_saved_model(folder.path().join("export"), receiver)?;

    let signature = SavedModel::open(&export)?.signature("serving_default")?;
    // As a caller pads them: nothing is "" and 0.
    let words = ["a", "b", "", "", "", "", "c", "a", "a", "d", "", ""];
    let steps = vec![1f32, 2.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.5, 3.0, 1.0, 0.0, 0.0];
    let ask = |steps: Vec<f32>| {
        let words = Array::from_strings([4, 3], words)?;
        signature.run(&[("words", words), ("steps", Array::from_vec([4, 3], steps)?)])
    };
    let found = ask(steps.clone())?;
    let batch = rows()?;
    let expected = model.predictor(&batch)?.predict(&batch)?;
    let (found, expected) = (found["logits"].as_slice::<f32>()?, expected.f32("logits")?);
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
    let body = signature.program().body();
    assert!(body.nodes().iter().any(|node| node.op.name() == "Lstm"), "the loop is not one op");

    let mut longer = steps;
    longer[2] = 5.0;
    let error = ask(longer).unwrap_err().to_string();
    assert!(error.contains("the lengths of sequences differ: they are 3 and 2 in row 0"), "{error}");
    Ok(())
}

fn refused(model: fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>) -> Result<String> {
    let folder = Folder::new();
    let model = Estimator::new(model).model_dir(folder.path().join("model")).build()?;
    model.train(line(8).batch(4))?;
    let receiver = Receiver::like(&line(8).batch(4))?;
    let base = folder.path().join("export");
    let error = model.export_saved_model(&base, receiver).unwrap_err();
    assert!(!base.exists() || std::fs::read_dir(&base).unwrap().next().is_none(), "a refused export leaves nothing");
    Ok(error.to_string())
}

fn spec(cx: &ModelFnContext<'_>, value: &Tensor) -> Result<EstimatorSpec> {
    let w = cx.graph().variable("w", [], Initializer::Zeros);
    let predictions = value * &w;
    let spec = EstimatorSpec::new(cx).prediction("predictions", &predictions);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = (&predictions - cx.label()).square().mean();
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
}

const CUSTOM_LINE: u32 = line!() + 5;

fn with_custom_op(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = cx.feature("x");
    let same = CustomOp::new("same", [TensorSpec { dtype: DType::F32, shape: x.shape().clone() }], |x| Ok(x.to_vec()));
    let y = cx.graph().custom(same, &[&x.stop_gradient()]).remove(0);
    spec(cx, &y)
}

const PRINT_LINE: u32 = line!() + 3;

fn with_print(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = cx.feature("x").print("x of a row");
    spec(cx, &x)
}

fn prints_in_training(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = cx.feature("x");
    let x = if cx.mode() == Mode::Train { x.print("x in training") } else { x };
    spec(cx, &x)
}

/// Ops that TensorFlow cannot run, or that a server should not run, are refused by name. The error
/// has the line of the model that made them.
#[test]
fn rust_code_and_prints_are_refused_by_name() -> Result<()> {
    let text = refused(with_custom_op)?;
    assert!(text.contains("custom op `same` is Rust code, which TensorFlow cannot run"), "{text}");
    assert!(text.contains(&format!("export_graphs.rs:{CUSTOM_LINE}")), "{text}");
    let text = refused(with_print)?;
    assert!(text.contains("print `x of a row` is for the program that builds the model"), "{text}");
    assert!(text.contains(&format!("export_graphs.rs:{PRINT_LINE}")), "{text}");

    let folder = Folder::new();
    let model = Estimator::new(prints_in_training).model_dir(folder.path().join("model")).build()?;
    model.train(line(8).batch(4))?;
    model.export_saved_model(folder.path().join("export"), Receiver::like(&line(8).batch(4))?)?;
    Ok(())
}
