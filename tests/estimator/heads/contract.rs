//! The contract of every head.

use estimand::ExportOutput;
use estimand::head::testing::{check_head, example, example_with};
use estimand::head::{
    ALL_HEADS, LabelledBatch, LogisticRegressionHead, Measures, MultiHead, PoissonRegressionHead, Predictions,
    Reporting, SequentialHeadWrapper,
};
use estimand::nn::Reduction;
use estimand::nn::metric;
use estimand::prelude::*;
use indexmap::IndexMap;

#[test]
fn every_head_keeps_the_contract() -> Result<()> {
    ALL_HEADS.iter().try_for_each(|(head, rows)| check_head(&*head(), &rows()?))
}

/// Also with names, weights, vocabularies and slices.
#[test]
fn heads_with_settings_keep_the_contract() -> Result<()> {
    let heads: [Box<dyn Head>; 5] = [
        Box::new(BinaryClassHead::new().name("hd").thresholds([0.3]).slice_by("group", [0, 1]).forward_feature("x")),
        Box::new(MultiClassHead::new(3).name("hd").loss_reduction(Reduction::Sum).slice_by("group", [0, 1])),
        Box::new(RegressionHead::new().name("hd").inverse_link_fn(Tensor::exp).loss_reduction(Reduction::Mean)),
        Box::new(PoissonRegressionHead::new().name("hd").compute_full_loss(false).slice_by("group", [1])),
        Box::new(LogisticRegressionHead::new().name("hd").forward_feature("group")),
    ];
    heads.iter().try_for_each(|head| check_head(&**head, &example(Array::from([1i64, 0, 0, 1, 1]))?))
}

#[test]
fn heads_of_heads_keep_the_contract() -> Result<()> {
    let several = MultiHead::new()
        .weighted_head(0.5, MultiClassHead::new(2).name("a").slice_by("group", [0]).forward_feature("group"))
        .head(PoissonRegressionHead::new().name("b"))
        .slice_by("group", [0, 1]);
    let labels = || Array::from([1i64, 0, 0, 1, 1]);
    check_head(&several, &example_with([("a", labels().into()), ("b", labels().into())])?)?;
    let (_, sequences) = ALL_HEADS[7];
    let sequences = sequences()?.with_feature("group", Array::from([0i64, 1, 0, 1, 0]))?;
    check_head(&SequentialHeadWrapper::new(MultiClassHead::new(2).name("a").slice_by("group", [0, 1])), &sequences)
}

/// A head that breaks a rule that its number names.
#[derive(Debug)]
struct Broken(u8, RegressionHead);

impl Head for Broken {
    fn name(&self) -> Option<String> {
        (self.0 == 1).then(|| "broken".to_string())
    }

    fn logits_dimension(&self) -> usize {
        1
    }

    fn reporting(&self) -> &Reporting {
        self.1.reporting()
    }

    fn check(&self) -> Result<()> {
        self.1.check()
    }

    fn predictions(&self, logits: &Tensor) -> Result<Predictions> {
        match self.0 {
            2 => Ok(Predictions::from([("predictions".to_string(), logits - logits.mean())])),
            _ => self.1.predictions(logits),
        }
    }

    fn export_outputs(&self, predictions: &Predictions) -> Result<IndexMap<String, ExportOutput>> {
        let mut all = self.1.export_outputs(predictions)?;
        if self.0 == 3 {
            all.shift_remove("predict");
        }
        Ok(all)
    }

    fn measures(&self, batch: &LabelledBatch, logits: &Tensor) -> Result<Measures> {
        let measures = self.1.measures(batch, logits)?;
        let (broken, logits) = (self.0, logits.clone());
        let loss = match broken {
            4 => measures.loss() / 0.0,
            5 => measures.loss().stop_gradient(),
            6 => measures.loss() + 1.0,
            _ => measures.loss().clone(),
        };
        Ok(Measures::new(loss, move |rows| {
            let mut metrics = measures.metrics(rows)?;
            if broken == 7 {
                metrics.insert("largest".into(), metric::mean(&logits.max(), None));
            }
            if broken == 8 {
                metrics.insert("logit".into(), metric::mean(&logits, None));
            }
            Ok(metrics)
        }))
    }
}

#[test]
fn the_contract_finds_what_is_broken() -> Result<()> {
    let rows = example(Array::from([1.0f32, 2.0, 3.0, 0.5]))?;
    check_head(&Broken(0, RegressionHead::new()), &rows)?;
    for (rule, text) in [
        (1, "does not carry the name `broken`"),
        (2, "`predictions` of row 0 alone"),
        (3, "exports"),
        (4, "the loss is not finite"),
        (5, "does not depend on any"),
        (6, "the loss is 1 if all weights are 0"),
        (7, "`largest` in parts"),
        (8, "`logit` with weights of 0"),
    ] {
        let error = check_head(&Broken(rule, RegressionHead::new()), &rows).unwrap_err().to_string();
        assert!(error.contains(text), "rule {rule}: {error}");
    }
    Ok(())
}
