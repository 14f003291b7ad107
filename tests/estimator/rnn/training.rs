//! Recurrent estimators learn, go on from their folders, and are exported.

use estimand::export::Receiver;
use estimand::graph::checkpoint::{BundleReader, latest_checkpoint};
use estimand::graph::saved_model::SavedModel;
use estimand::nn::{LstmCell, Regularizer, SimpleRnnCell};
use estimand::prelude::*;
use estimand::premade::CellType;

use super::sentences::{of_rows, of_steps, seeded, sentences, words};
use super::tensorflow::near;
use crate::models::Folder;

#[test]
fn a_tagger_learns_every_step() -> Result<()> {
    let folder = Folder::new();
    let rnn = seeded(&folder).units([8]).cell_type(CellType::Gru).return_sequences(true);
    let rnn = rnn.optimizer(Optimizer::new(Adam::default(), 0.05)).build()?;
    rnn.train(of_steps().repeat(100).batch(5))?;
    assert_eq!(rnn.evaluate(of_steps().batch(5))?["accuracy"], 1.0);
    // Steps that do not exist are marked.
    let asked = sentences(None);
    let predicted = rnn.predict(PredictSpec::new(asked.batch(5)).by_batch(true)).next().unwrap()?;
    let mask = predicted.array("sequence_mask")?;
    assert_eq!((mask.dtype(), mask.dims()), (DType::Bool, &[5, 4][..]));
    assert_eq!(mask.as_slice::<bool>()?.iter().filter(|exists| **exists).count(), 10);
    assert_eq!(predicted.array("probabilities")?.dims(), [5, 4, 2]);
    Ok(())
}

/// The weight of a row is that of all its steps, as a list and as a column.
#[test]
fn weights_of_rows_are_those_of_their_steps() -> Result<()> {
    let losses = [vec![5], vec![5, 1]].map(|dims| -> Result<[f64; 2]> {
        let folder = Folder::new();
        let rnn = seeded(&folder).units([3]).return_sequences(true).weight_column("weight").build()?;
        let weights = Array::from_vec(dims, vec![1f32, 0.0, 1.0, 2.0, 0.5])?;
        let batch = of_steps().batch(5).iter().next().unwrap()?.with_feature("weight", weights)?;
        let data = Dataset::from_batch(batch).batch(5);
        rnn.train(&data)?;
        let metrics = rnn.evaluate(&data)?;
        Ok([metrics["loss"], metrics["average_loss"]])
    });
    let [list, column] = losses;
    let (list, column) = (list?, column?);
    assert_eq!(list, column);
    assert_ne!(list[0], list[1]);
    Ok(())
}

/// The folder alone goes on with the same bits, for rows and for steps, for a type of cells and for
/// a cell with options.
#[test]
fn a_folder_is_enough_to_go_on() -> Result<()> {
    let by_type = |rnn: RnnClassifier| rnn.units([4, 3]).cell_type(CellType::Lstm);
    let by_layer = |rnn: RnnClassifier| rnn.units(4).return_sequences(true).sequence_mask("there");
    let by_cell = |rnn: RnnClassifier| rnn.rnn_cell(SimpleRnnCell::new(4).dropout(0.2).activation(Activation::Relu));
    type Make = fn(RnnClassifier) -> RnnClassifier;
    let makes: [(Make, Dataset); 3] = [(by_type, of_rows()), (by_layer, of_steps()), (by_cell, of_rows())];
    for (make, data) in makes {
        let (folder, whole) = (Folder::new(), Folder::new());
        let batches = data.shuffle(5, 1).repeat_forever().batch(2);
        let trained = make(seeded(&whole)).build()?;
        trained.train(TrainSpec::new(&batches).max_steps(7))?;
        make(seeded(&folder)).build()?.train(TrainSpec::new(&batches).max_steps(3))?;
        let opened = Estimator::open(folder.path())?;
        opened.train(TrainSpec::new(&batches).max_steps(7))?;
        let entries = |folder: &Folder| -> Result<Vec<(String, Array)>> {
            let reader = BundleReader::open(latest_checkpoint(folder.path())?.unwrap())?;
            reader.names().map(|name| Ok((name.to_string(), reader.read(name)?))).collect()
        };
        assert_eq!(entries(&folder)?, entries(&whole)?);
        assert_eq!(opened.evaluate(data.batch(5))?, trained.evaluate(data.batch(5))?);
    }
    Ok(())
}

/// `l2 * sum(kernel^2)` more than the loss without it. The first step is the same otherwise.
#[test]
fn regularizers_of_a_cell_are_part_of_the_loss() -> Result<()> {
    let first_loss = |cell: LstmCell| -> Result<(f64, f64)> {
        let folder = Folder::new();
        let rnn = seeded(&folder).rnn_cell(cell).optimizer(Optimizer::new(Sgd::default(), 0.0)).build()?;
        let loss = rnn.train(of_rows().batch(5))?.loss.unwrap();
        let kernel = rnn.variable_value("rnn_model/rnn/lstm_cell/kernel")?.to_f64_vec()?;
        Ok((f64::from(loss), kernel.iter().map(|weight| weight * weight).sum()))
    };
    let (plain, squares) = first_loss(LstmCell::new(3))?;
    let (loss, _) = first_loss(LstmCell::new(3).kernel_regularizer(Regularizer::l2(0.5)))?;
    near("loss", &[loss], &[plain + 0.5 * squares]);
    assert!(squares > 0.1);
    Ok(())
}

/// Raw features and tf.Examples, with context, for rows and for steps.
#[test]
fn an_export_answers_as_the_model() -> Result<()> {
    for steps in [false, true] {
        let folder = Folder::new();
        let rnn = seeded(&folder).units([4, 3]).cell_type(CellType::Lstm).return_sequences(steps).build()?;
        rnn.train(if steps { of_steps() } else { of_rows() }.repeat(3).batch(5))?;
        let asked = sentences(None);
        let all = columns![&words()[0], numeric_column("age")];
        let receiver = Receiver::like(&asked)?.and_examples(all)?;
        let exported = rnn.export_saved_model(folder.path().join("export"), receiver)?;
        let model = SavedModel::open(&exported)?;
        let keys: Vec<&str> = model.signatures().map(|(key, _)| key).collect();
        assert!(keys.contains(&"predict") && keys.contains(&"serving_default"), "{keys:?}");
        let padded = [
            "red", "car", "blue", "", "sky", "green", "", "", "", "", "", "", "car", "red", "red", "car", "sky", "",
            "", "",
        ];
        let inputs = [("word", Array::from_strings([5, 4], padded)?), ("age", Array::from([1f32, 2.0, 3.0, 4.0, 5.0]))];
        let answers = model.signature("serving_default")?.run(&inputs)?;
        let expected = rnn.predict(PredictSpec::new(asked.batch(5)).by_batch(true)).next().unwrap()?;
        let logits = answers["logits"].to_f64_vec()?;
        near("logits", &logits, &expected.array("logits")?.to_f64_vec()?);
        assert_eq!(answers.get("sequence_mask").is_some(), steps);
    }
    Ok(())
}
