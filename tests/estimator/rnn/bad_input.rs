//! Mistakes in settings, rows and descriptions of recurrent estimators.

use estimand::head::SequentialHeadWrapper;
use estimand::nn::column::{sequence_categorical_column_with_identity, sequence_numeric_column};
use estimand::nn::layer::{Build, Config, LayerCall};
use estimand::nn::{LstmCell, RnnCell, StackedRnnCells};
use estimand::prelude::*;
use estimand::premade::{CellType, RnnEstimator};
use estimand_fixture::cases_of;

use super::sentences::{of_rows, of_steps, seeded};
use crate::models::Folder;

/// A cell of one's own: the mean of the steps so far, weighed by a variable.
#[derive(Debug, Default)]
struct Own(Config);

impl Layer for Own {
    fn kind(&self) -> &'static str {
        "own"
    }
    fn config(&self) -> &Config {
        &self.0
    }
    fn build(&self, build: &mut Build<'_>) {
        build.weight("keep", &[3], Initializer::Constant(0.5), None);
    }
    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.call_cell(call)
    }
}

impl RnnCell for Own {
    fn state_sizes(&self) -> Vec<usize> {
        vec![3]
    }
    fn step(&self, call: &LayerCall<'_>, states: &[Tensor]) -> (Tensor, Vec<Tensor>) {
        let keep = call.weight("keep");
        let h = call.input() * (1.0 - &keep) + &states[0] * keep;
        (h.clone(), vec![h])
    }
}

/// Each mistake that TensorFlow refuses (the fixture names them), and more.
#[test]
fn mistakes_are_told() -> Result<()> {
    assert_eq!(cases_of("rnn", "error").len(), 6);
    let number = || columns![sequence_numeric_column("price")];
    let refused = |rnn: Result<Estimator>, parts: &[&str]| {
        let text = rnn.unwrap_err().to_string();
        parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} in {text}"));
    };
    let classifier = || RnnClassifier::new(number());
    refused(classifier().build(), &["was given no cells", "bad_input.rs"]);
    refused(
        classifier().units([2]).rnn_cell(LstmCell::new(2)).build(),
        &["units is set to [2], but rnn_cell is set too"],
    );
    let both = classifier().cell_type(CellType::Lstm).rnn_cell(LstmCell::new(2));
    refused(both.build(), &["cell_type is set to Lstm, but rnn_cell is set too"]);
    refused(classifier().units([2, 0]).build(), &["units is [2, 0]: a cell has 0 units"]);
    refused(classifier().units(usize::MAX).build(), &["from 1 to 1048576 units"]);
    refused(classifier().units(vec![1; 2_000]).build(), &["a list of 2000; expected at most 1000"]);
    refused(classifier().units(Vec::new()).build(), &["units is an empty list"]);
    refused(classifier().rnn_cell(StackedRnnCells::new()).build(), &["the states of rnn_cell are an empty list"]);
    refused(classifier().units([2]).optimizer("Adamm").build(), &["did you mean `Adam`?"]);
    refused(RnnClassifier::new(Columns::default()).units([2]).build(), &["a recurrent network was given no feature"]);
    let plain = columns![numeric_column("price")];
    refused(RnnClassifier::new(plain).units([2]).build(), &["`price` is not a dense sequence", "bad_input.rs"]);
    let ids = columns![sequence_categorical_column_with_identity("price", 3)];
    refused(RnnClassifier::new(ids).units([2]).build(), &["indicator_column or embedding_column"]);
    refused(
        classifier().units([2]).context_feature_columns(number()).build(),
        &["`price`", "is not dense", "bad_input.rs"],
    );
    let head = || SequentialHeadWrapper::new(RegressionHead::new());
    let steps = RnnEstimator::new(RegressionHead::new(), number()).units([2]).return_sequences(true);
    refused(steps.build(), &["the head is not a head of sequences", "SequentialHeadWrapper"]);
    refused(RnnEstimator::new(head(), number()).units([2]).build(), &["return_sequences is not set"]);

    // Mistakes that only the data shows.
    let folder = Folder::new();
    let own = seeded(&folder).context_feature_columns(Columns::default()).rnn_cell(Own::default()).build()?;
    let text = own.train(of_rows().batch(5)).unwrap_err().to_string();
    assert!(text.contains("known only at run time") && text.contains("sentences.rs"), "{text}");
    let rnn = seeded(&folder).units([2]).return_sequences(true).build()?;
    let text = rnn.train(of_steps().label("age").batch(5)).unwrap_err().to_string();
    assert!(text.contains("`age`"), "{text}");
    Ok(())
}

/// A description that was changed by hand.
#[test]
fn damaged_descriptions_are_refused() -> Result<()> {
    let folder = Folder::new();
    seeded(&folder).units([2]).cell_type(CellType::Lstm).build()?.train(of_rows().batch(5))?;
    let path = folder.path().join("estimator.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        (r#""cell_type": "lstm""#, r#""cell_type": "lstn""#, "simple_rnn or lstm or gru"),
        (r#""return_sequences": false"#, r#""return_sequences": true"#, "the head is not a head of sequences"),
        (r#""cell_type": "lstm""#, r#""cell_type": "lstm", "rnn_cell": {"class_name": "Cell", "config": {}}"#, "Cell"),
        ("      2\n", "      2000000\n", "from 1 to 1048576 units"),
        ("      2\n", "      1000000000000\n", "expected a number of at most 2147483647"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = Estimator::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected:?} in {error}");
    }
    Ok(())
}
