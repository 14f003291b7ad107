//! The list of heads that the contract test covers.

use estimand_nn::testing::spread;
use estimand_tensor::{Array, Batch, Ragged, Result};

use super::testing::{example, example_with};
use super::{
    BinaryClassHead, Head, LogisticRegressionHead, MultiClassHead, MultiHead, MultiLabelHead, PoissonRegressionHead,
    RegressionHead, SequentialHeadWrapper,
};

/// A head, and rows to train it on.
pub type HeadExample = (fn() -> Box<dyn Head>, fn() -> Result<Batch>);

/// Every head of this crate with minimal settings, and an example for the contract test.
pub const ALL_HEADS: [HeadExample; 8] = [
    (|| Box::new(BinaryClassHead::new()), || example(yes_no())),
    (|| Box::new(MultiClassHead::new(3)), || example(Array::from([2i64, 1, 0, 2, 1]))),
    (|| Box::new(MultiLabelHead::new(2)), || example(Ragged::new(Array::from([1i64, 0, 1, 0]), [0, 1, 1, 3, 4, 4])?)),
    (|| Box::new(RegressionHead::new()), || example(Array::from([0.5f32, -1.0, 2.0, 0.0, 1.5]))),
    (|| Box::new(PoissonRegressionHead::new()), || example(Array::from([0i64, 3, 1, 2, 7]))),
    (|| Box::new(LogisticRegressionHead::new()), || example(Array::from([0.5f32, 0.0, 1.0, 0.2, 0.9]))),
    (
        || Box::new(MultiHead::new().head(BinaryClassHead::new().name("a")).head(RegressionHead::new().name("b"))),
        || example_with([("a", yes_no().into()), ("b", yes_no().into())]),
    ),
    (|| Box::new(SequentialHeadWrapper::new(BinaryClassHead::new())), sequences),
];

fn yes_no() -> Array {
    Array::from([0i64, 1, 1, 0, 1])
}

/// Five sequences of up to two steps.
fn sequences() -> Result<Batch> {
    let labels = Array::from_vec([5, 2], vec![0i64, 1, 1, 0, 1, 1, 0, 0, 0, 1])?;
    let mask = vec![true, true, true, false, true, true, false, true, true, false];
    Batch::new()
        .with_feature("x", spread(&[5, 2, 3])?)?
        .with_feature("sequence_length_mask", Array::from_vec([5, 2], mask)?)?
        .with_label("label", labels)
}
