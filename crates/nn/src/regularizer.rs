//! Regularizers: penalties on large weights. Layers add their penalties to the graph. A model adds
//! `graph.regularization_loss()` to its own loss.

use estimand_graph::Tensor;

/// `l1 * sum(|w|) + l2 * sum(w^2)`, as in `tf.keras.regularizers` (without the factor 1/2 of
/// TensorFlow's `l2_loss`).
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::{Graph, Initializer};
/// use estimand_nn::Regularizer;
/// let g = Graph::new();
/// let w = g.constant([3.0f32, -4.0]);
/// // 0.5 * (3 + 4) + 0.1 * (9 + 16)
/// assert_eq!(Regularizer::l1_l2(0.5, 0.1).loss(&w).eval()?.item::<f32>()?, 6.0);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Regularizer {
    l1: f64,
    l2: f64,
}

impl Regularizer {
    /// An L1 penalty: pulls weights towards 0, and many of them to exactly 0.
    pub fn l1(l1: f64) -> Regularizer {
        Regularizer { l1, l2: 0.0 }
    }

    /// An L2 penalty: pulls large weights more than small ones.
    pub fn l2(l2: f64) -> Regularizer {
        Regularizer { l1: 0.0, l2 }
    }

    /// Both penalties.
    pub fn l1_l2(l1: f64, l2: f64) -> Regularizer {
        Regularizer { l1, l2 }
    }

    /// The strengths of L1 and L2.
    pub fn strengths(&self) -> (f64, f64) {
        (self.l1, self.l2)
    }

    /// The penalty for these weights: a scalar.
    #[track_caller]
    pub fn loss(&self, weights: &Tensor) -> Tensor {
        match (self.l1, self.l2) {
            (l1, 0.0) => weights.abs().sum() * l1,
            (0.0, l2) => weights.square().sum() * l2,
            (l1, l2) => weights.abs().sum() * l1 + weights.square().sum() * l2,
        }
    }
}
