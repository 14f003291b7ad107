//! What every head must do.

use estimand::head::testing::{check_head, example};
use estimand::head::{ALL_HEADS, Head};
use estimand::prelude::*;

#[test]
fn every_head_keeps_the_contract() -> Result<()> {
    ALL_HEADS.iter().try_for_each(|(head, rows)| check_head(&*head(), &rows()?))
}

/// Also with names, weights, vocabularies and slices.
#[test]
fn heads_with_settings_keep_the_contract() -> Result<()> {
    let heads: [Box<dyn Head>; 3] = [
        Box::new(BinaryClassHead::new().name("hd").thresholds([0.3]).slice_by("group", [0, 1]).forward_feature("x")),
        Box::new(MultiClassHead::new(3).name("hd").loss_reduction(Reduction::Sum).slice_by("group", [0, 1])),
        Box::new(RegressionHead::new().name("hd").inverse_link_fn(Tensor::exp).loss_reduction(Reduction::Mean)),
    ];
    heads.iter().try_for_each(|head| check_head(&**head, &example(Array::from([1i64, 0, 0, 1, 1]))?))
}
