//! The forms in which preprocessing layers return ids.

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{Array, DType, Dim, Error};

use crate::config::Fields;

/// The form in which a layer returns the ids that it finds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OutputMode {
    /// The ids themselves, i64, in the shape of the input.
    #[default]
    Int,
    /// One vector for each id: 1 at the id, 0 elsewhere. The input has one id in each row.
    OneHot,
    /// One vector for each row: 1 at every id that the row contains.
    MultiHot,
    /// One vector for each row: how often it contains each id.
    Count,
    /// As `Count`, times the weights of the terms.
    TfIdf,
}

const WORDS: [(&str, OutputMode); 5] = [
    ("int", OutputMode::Int),
    ("one_hot", OutputMode::OneHot),
    ("multi_hot", OutputMode::MultiHot),
    ("count", OutputMode::Count),
    ("tf_idf", OutputMode::TfIdf),
];

impl OutputMode {
    /// The mode as Keras writes it, among `modes`. Vectors are dense.
    pub(super) fn field(self, fields: &mut Fields<'_>, modes: &[OutputMode]) -> OutputMode {
        fields.only("sparse", false);
        let words: Vec<(&str, OutputMode)> = WORDS.into_iter().filter(|(_, mode)| modes.contains(mode)).collect();
        fields.choice("output_mode", &self, &words)
    }

    /// Keras' dtype of the result.
    pub(super) fn dtype(self) -> &'static str {
        if self == OutputMode::Int { "int64" } else { "float32" }
    }

    pub(super) fn is_int(self) -> bool {
        self == OutputMode::Int
    }

    /// The ids in this form. An id of -1 is left out of vectors. `weights` are those of the terms,
    /// for `TfIdf`.
    #[track_caller]
    pub(super) fn encode(self, ids: &Tensor, depth: usize, weights: Option<&[f32]>) -> Tensor {
        let one_id = ids.shape().dims().last() == Some(&Dim::Known(1));
        match (self, ids.rank()) {
            (OutputMode::Int, _) => ids.clone(),
            (OutputMode::OneHot, 1) => ids.one_hot(depth, DType::F32),
            (OutputMode::OneHot, 2) if one_id => ids.squeeze(&[-1]).one_hot(depth, DType::F32),
            (OutputMode::MultiHot | OutputMode::Count | OutputMode::TfIdf, 2) => {
                self.vectors(&RaggedTensor::from_rows(ids), None, depth, weights)
            }
            _ => {
                let wanted = if self == OutputMode::OneHot { "[batch] or [batch, 1]" } else { "[batch, ids]" };
                let text = format!("output mode {self:?} got {}; expected {wanted}", ids.describe());
                ids.graph().error(Error::shape(text).help("use OutputMode::Int, or reshape the input"))
            }
        }
    }

    /// Vectors of the ids of rows, each id with the weight of its place if there are some.
    #[track_caller]
    pub(super) fn vectors(
        self,
        ids: &RaggedTensor,
        places: Option<&Tensor>,
        depth: usize,
        weights: Option<&[f32]>,
    ) -> Tensor {
        let counts = ids.multi_hot(depth, places);
        match (self, weights) {
            (OutputMode::MultiHot, _) => counts.minimum(1.0),
            (OutputMode::TfIdf, Some(weights)) => counts * &of_all_ids(weights, depth),
            _ => counts,
        }
    }
}

/// The weights of all ids; ids after the last term have 0.
fn of_all_ids(weights: &[f32], depth: usize) -> Array {
    let mut all = weights.to_vec();
    all.resize(depth, 0.0);
    Array::from(all)
}
