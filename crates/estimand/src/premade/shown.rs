//! The TensorBoard summaries of TensorFlow's premade estimators.

use estimand_graph::Tensor;
use estimand_nn::column::LinearOutput;
use estimand_tensor::DType;

use crate::ModelFnContext;

/// Adds the share of zeros among the outputs of a layer, which reveals relus that never fire, and a
/// histogram of the outputs.
pub(super) fn layer(cx: &ModelFnContext<'_>, name: &str, value: &Tensor) {
    cx.summary()
        .scalar(&format!("{name}/fraction_of_zero_values"), &zeros(value).mean())
        .histogram(&format!("{name}/activation"), value);
}

/// Adds the bias, and the share of weights that are 0, which regularization has switched off.
pub(super) fn weights(cx: &ModelFnContext<'_>, linear: &LinearOutput) {
    // TF: these have no scope.
    let _scope = cx.graph().outside();
    match linear.bias.shape().dims() {
        [one] if one.known() == Some(1) => cx.summary().scalar("bias", &linear.bias),
        _ => cx.summary().histogram("bias", &linear.bias),
    };
    let size = |weights: &Tensor| weights.shape().dims().iter().filter_map(|dim| dim.known()).product::<usize>();
    let n: usize = linear.weights.values().map(size).sum();
    let n_zeros = linear.weights.values().map(|weights| zeros(weights).sum()).reduce(|sum, more| sum + more);
    if let Some(n_zeros) = n_zeros {
        cx.summary().scalar("fraction_of_zero_weights", &(n_zeros / n as f64));
    }
}

/// Returns 1 where a number is 0, elsewhere 0.
fn zeros(value: &Tensor) -> Tensor {
    let _scope = value.graph().scope("zero_fraction");
    value.equal(0.0).cast(DType::F32)
}
