//! Element-wise nodes: TensorFlow's name and the dtype is all there is to say.

use estimand_tensor::{Binary, DType, Unary};
use estimand_wire::{DataType, NodeDef};

use super::typed;

pub(super) fn unary(def: NodeDef, op: Unary, dtype: DType) -> NodeDef {
    match op {
        Unary::LogicalNot => def,
        _ => typed(def, "T", dtype),
    }
}

pub(super) fn binary(def: NodeDef, op: Binary, dtype: DType) -> NodeDef {
    match op {
        Binary::LogicalAnd | Binary::LogicalOr => def,
        _ => typed(def, "T", dtype),
    }
}

/// TensorFlow's first `Print` returns its input, as ours does; it prints a list, here the input itself.
pub(super) fn print(mut def: NodeDef, label: &str, dtype: DType) -> NodeDef {
    def.input.push(def.input[0].clone());
    typed(def, "T", dtype).attr("U", vec![DataType::from(dtype)]).attr("message", format!("{label}: ").as_str())
}
