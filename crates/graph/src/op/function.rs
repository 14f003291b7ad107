//! Functions of a TensorFlow graph, which loops call.
//!
//! A graph names the outputs of a node by number (`node:1`), a function by the name that the op
//! gives them (`node:output:0`). [`Function::def`] converts the names.

use std::collections::HashMap;

use estimand_tensor::{Error, Result, Sha256};
use estimand_wire::function_def::{ArgDef, OpDef};
use estimand_wire::{DataType, FunctionDef, Message, NodeDef};

/// A function before it has its name.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Names and types of the arguments. Nodes use an argument by its name.
    pub arguments: Vec<(String, DataType)>,
    /// The nodes, with inputs named as in a graph.
    pub nodes: Vec<NodeDef>,
    /// Names and types of the results, and the values that they return.
    pub results: Vec<(String, DataType, String)>,
}

impl Function {
    /// The message of the function. Its name ends with a digest of its contents: a process that
    /// loads several graphs has one space of names for their functions.
    pub fn def(self, name: &str) -> Result<FunctionDef> {
        let outputs = self.outputs()?;
        let value = |input: &String| match input.starts_with('^') {
            true => Ok(input.clone()),
            false => outputs.get(input.as_str()).cloned().ok_or_else(|| {
                Error::internal(format!("`{input}` is no argument and no single output in function `{name}`"))
            }),
        };
        let mut def = FunctionDef::default();
        for node in &self.nodes {
            let input = node.input.iter().map(value).collect::<Result<_>>()?;
            def.node_def.push(NodeDef { input, ..node.clone() });
        }
        for (name, _, returned) in &self.results {
            def.ret.insert(name.clone(), value(returned)?);
        }
        let arg = |name: &str, dtype: DataType| ArgDef { name: name.into(), r#type: dtype.into(), ..ArgDef::default() };
        let mut signature = OpDef {
            input_arg: self.arguments.iter().map(|(name, dtype)| arg(name, *dtype)).collect(),
            output_arg: self.results.iter().map(|(name, dtype, _)| arg(name, *dtype)).collect(),
            ..OpDef::default()
        };
        def.signature = Some(signature.clone());
        let digest = Sha256::new().update(&def.encode_to_vec()).finish();
        signature.name = format!("{name}_{}", &digest[..16]);
        Ok(FunctionDef { signature: Some(signature), ..def })
    }

    /// The names of all values in the function, by their names in a graph.
    fn outputs(&self) -> Result<HashMap<&str, String>> {
        let mut outputs: HashMap<&str, String> =
            self.arguments.iter().map(|(name, _)| (name.as_str(), name.clone())).collect();
        for node in &self.nodes {
            let output = output_name(&node.op)
                .ok_or_else(|| Error::internal(format!("op {} has no output name for functions", node.op)))?;
            if outputs.insert(&node.name, format!("{}:{output}:0", node.name)).is_some() {
                return Err(Error::internal(format!("two values of a function are named `{}`", node.name)));
            }
        }
        Ok(outputs)
    }
}

/// TensorFlow's name of the output of an op that has one. Only ops of loop bodies are listed.
fn output_name(op: &str) -> Option<&'static str> {
    Some(match op {
        "Const" | "Shape" | "Slice" | "StridedSlice" | "Reshape" | "Pack" | "GatherV2" | "SelectV2" | "Identity"
        | "ExpandDims" | "Squeeze" => "output",
        "AddV2" | "Mul" | "Sub" | "Maximum" | "Minimum" | "FloorDiv" | "Less" | "Equal" => "z",
        "Tanh" | "Sigmoid" | "Exp" | "Neg" | "Cast" => "y",
        "Relu" | "Relu6" | "Elu" | "Selu" | "Softplus" | "Softsign" => "activations",
        "MatMul" => "product",
        "TensorListSetItem" => "output_handle",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice() -> Function {
        Function {
            arguments: vec![("x".into(), DataType::Float)],
            nodes: vec![NodeDef::new("Tanh", "Tanh").input("x"), NodeDef::new("y", "AddV2").input("x").input("Tanh")],
            results: vec![("y".into(), DataType::Float, "y".into()), ("same".into(), DataType::Float, "x".into())],
        }
    }

    #[test]
    fn outputs_have_the_names_of_the_ops() {
        let def = twice().def("twice").unwrap();
        assert_eq!(def.node_def[1].input, ["x", "Tanh:y:0"]);
        assert_eq!((def.ret["y"].as_str(), def.ret["same"].as_str()), ("y:z:0", "x"));
    }

    #[test]
    fn the_name_says_what_the_function_holds() {
        let name = |function: Function| function.def("twice").unwrap().signature.unwrap().name;
        let mut other = twice();
        other.nodes[0].op = "Sigmoid".into();
        assert_eq!(name(twice()), name(twice()));
        assert_ne!(name(twice()), name(other));
    }

    #[test]
    fn unknown_values_are_found() {
        let mut lost = twice();
        lost.nodes[1].input[0] = "lost".into();
        assert!(lost.def("twice").unwrap_err().to_string().contains("`lost`"));
        let mut unknown = twice();
        unknown.nodes[0].op = "Unpack".into();
        assert!(unknown.def("twice").unwrap_err().to_string().contains("Unpack"));
    }
}
