//! Compares gradients with finite differences, on the reference executor, which computes in f64.

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor, gradients};
use estimand_reference::Reference;
use estimand_tensor::{Array, DType, Result};

use super::ensure;

/// The step of finite differences: exact in f32, and small compared with the distance of kinks.
const STEP: f32 = 1.0 / 2048.0;

/// Checks the gradients of a scalar with respect to the first fed tensor (if it is a float) and all
/// variables.
pub(super) fn check_gradients(graph: &Graph, total: &Tensor, feeds: &[(&Tensor, Array)]) -> Result<()> {
    let total = total.cast(DType::F64);
    let variables: Vec<String> = graph.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    let reads: Vec<Tensor> = variables.iter().map(|name| graph.get_variable(name)).collect();
    let fed: Vec<usize> = (0..feeds.len().min(1)).filter(|&i| feeds[i].0.dtype().is_float()).collect();
    let sources: Vec<&Tensor> = fed.iter().map(|&i| feeds[i].0).chain(&reads).collect();
    let found = gradients(&total, &sources);
    let mut session = Session::with(graph, Reference, 3)?;
    for (i, (source, gradient)) in sources.iter().zip(found).enumerate() {
        let value = match fed.get(i) {
            Some(&feed) => feeds[feed].1.clone(),
            None => session.value(&source.name())?,
        };
        let analytic = match gradient.to_dense(source.shape()) {
            Some(gradient) => session.run(&[&gradient], feeds)?.remove(0).to_f64_vec()?,
            None => vec![0.0; value.len()],
        };
        for (element, analytic) in analytic.into_iter().enumerate() {
            let mut at = |step: f32| -> Result<(f64, f64)> {
                let mut elements = value.as_slice::<f32>()?.to_vec();
                elements[element] += step;
                let x = f64::from(elements[element]);
                let moved = Array::from_vec(value.dims(), elements)?;
                let result = match fed.get(i) {
                    Some(&feed) => {
                        let mut feeds = feeds.to_vec();
                        feeds[feed].1 = moved;
                        session.run(&[&total], &feeds)?
                    }
                    None => {
                        session.set_value(&source.name(), &moved)?;
                        let result = session.run(&[&total], feeds)?;
                        session.set_value(&source.name(), &value)?;
                        result
                    }
                };
                Ok((x, result[0].item::<f64>()?))
            };
            let ((low, below), (high, above)) = (at(-STEP)?, at(STEP)?);
            let numeric = (above - below) / (high - low);
            ensure((numeric - analytic).abs() <= 1e-3 * numeric.abs().max(1.0), || {
                format!(
                    "the gradient of element {element} of `{}` is {analytic}, by differences {numeric}",
                    source.name()
                )
            })?;
        }
    }
    Ok(())
}
