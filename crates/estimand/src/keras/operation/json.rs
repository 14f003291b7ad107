//! Operations in the documents of Keras 2 and of Keras 3.

use std::collections::BTreeMap;

use estimand_nn::config::{AnyNumber, Dialect, Field, Json, Node};
use estimand_tensor::{Error, Result};
use serde_json::json;

use super::slice::Part;
use super::{Elementwise, Function, Number, Operand, Operation, Reduction};

/// A function and its names.
pub(super) struct Row {
    of: Of,
    /// The kind of layer, from which names are made.
    pub kind: &'static str,
    /// The class in Keras 3.
    pub class: &'static str,
    module: &'static str,
    /// The functions of TensorFlow; the first is written.
    tf: &'static [&'static str],
}

/// A function without its constants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Elementwise(Elementwise),
    Reduce(Reduction),
    Softmax,
    Clip,
    Reshape,
    ExpandDims,
    Squeeze,
    Transpose,
    Concatenate,
    GetItem,
}

const NUMPY: &str = "keras.src.ops.numpy";
const NN: &str = "keras.src.ops.nn";

const fn row(
    of: Of,
    kind: &'static str,
    class: &'static str,
    module: &'static str,
    tf: &'static [&'static str],
) -> Row {
    Row { of, kind, class, module, tf }
}

const fn each(
    of: Elementwise,
    kind: &'static str,
    class: &'static str,
    module: &'static str,
    tf: &'static [&'static str],
) -> Row {
    row(Of::Elementwise(of), kind, class, module, tf)
}

const ROWS: [Row; 31] = [
    each(Elementwise::Add, "add", "Add", NUMPY, &["__operators__.add", "math.add"]),
    each(Elementwise::Subtract, "subtract", "Subtract", NUMPY, &["math.subtract"]),
    each(Elementwise::Multiply, "multiply", "Multiply", NUMPY, &["math.multiply"]),
    each(Elementwise::Divide, "true_divide", "TrueDivide", NUMPY, &["math.truediv", "math.divide"]),
    each(Elementwise::Divide, "divide", "Divide", NUMPY, &[]),
    each(Elementwise::Maximum, "maximum", "Maximum", NUMPY, &["math.maximum"]),
    each(Elementwise::Minimum, "minimum", "Minimum", NUMPY, &["math.minimum"]),
    each(Elementwise::Power, "power", "Power", NUMPY, &["math.pow"]),
    each(Elementwise::Negative, "negative", "Negative", NUMPY, &["math.negative"]),
    each(Elementwise::Absolute, "absolute", "Absolute", NUMPY, &["math.abs"]),
    each(Elementwise::Square, "square", "Square", NUMPY, &["math.square"]),
    each(Elementwise::Sqrt, "sqrt", "Sqrt", NUMPY, &["math.sqrt"]),
    each(Elementwise::Exp, "exp", "Exp", NUMPY, &["math.exp"]),
    each(Elementwise::Log, "log", "Log", NUMPY, &["math.log"]),
    each(Elementwise::Tanh, "tanh", "Tanh", NUMPY, &["math.tanh"]),
    each(Elementwise::Relu, "relu", "Relu", NN, &["nn.relu"]),
    each(Elementwise::Relu6, "relu6", "Relu6", NN, &["nn.relu6"]),
    each(Elementwise::Sigmoid, "sigmoid", "Sigmoid", NN, &["math.sigmoid"]),
    each(Elementwise::Silu, "silu", "Silu", NN, &["nn.silu"]),
    each(Elementwise::Softplus, "softplus", "Softplus", NN, &["math.softplus"]),
    row(Of::Reduce(Reduction::Mean), "mean", "Mean", NUMPY, &["math.reduce_mean"]),
    row(Of::Reduce(Reduction::Sum), "sum", "Sum", NUMPY, &["math.reduce_sum"]),
    row(Of::Reduce(Reduction::Max), "max", "Max", NUMPY, &["math.reduce_max"]),
    row(Of::Reduce(Reduction::Min), "min", "Min", NUMPY, &["math.reduce_min"]),
    row(Of::Softmax, "softmax", "Softmax", NN, &["nn.softmax"]),
    row(Of::Clip, "clip", "Clip", NUMPY, &["clip_by_value"]),
    row(Of::Reshape, "reshape", "Reshape", NUMPY, &["reshape"]),
    row(Of::ExpandDims, "expand_dims", "ExpandDims", NUMPY, &["expand_dims"]),
    row(Of::Squeeze, "squeeze", "Squeeze", NUMPY, &["compat.v1.squeeze", "squeeze"]),
    row(Of::Transpose, "transpose", "Transpose", NUMPY, &["compat.v1.transpose", "transpose"]),
    row(Of::Concatenate, "concatenate", "Concatenate", NUMPY, &["concat"]),
];

const GET_ITEM: Row = row(Of::GetItem, "get_item", "GetItem", NUMPY, &["__operators__.getitem"]);

/// The names of a function.
pub(super) fn row_of(function: &Function) -> &'static Row {
    let of = match function {
        Function::Elementwise(function) => Of::Elementwise(*function),
        Function::Reduce { how, .. } => Of::Reduce(*how),
        Function::Softmax { .. } => Of::Softmax,
        Function::Clip { .. } => Of::Clip,
        Function::Reshape { .. } => Of::Reshape,
        Function::ExpandDims { .. } => Of::ExpandDims,
        Function::Squeeze { .. } => Of::Squeeze,
        Function::Transpose { .. } => Of::Transpose,
        Function::Concatenate { .. } => Of::Concatenate,
        Function::GetItem { .. } => Of::GetItem,
    };
    ROWS.iter().find(|row| row.of == of).unwrap_or(&GET_ITEM)
}

/// Whether the operation of this layer takes a list of values. TensorFlow makes one value of a list
/// that it is given elsewhere.
pub(in crate::keras) fn takes_list(node: &Node<'_>) -> bool {
    let function = node.value().get("config").and_then(|config| config.get("function"));
    function.or(node.value().get("class_name")).is_some_and(|name| name == "concat" || name == "Concatenate")
}

/// The layer of an operation with its one call: the operands, and the arguments by name, as the
/// document has them. `values` are called with the place of each value, in order.
pub(in crate::keras) struct Arguments<'a> {
    pub operands: Vec<Operand>,
    pub named: BTreeMap<String, Node<'a>>,
}

/// Reads an operation: `node` is its layer.
pub(in crate::keras) fn read(node: &Node<'_>, arguments: Arguments<'_>) -> Result<Operation> {
    let (class, config) = (node.field("class_name")?.text()?, node.field("config")?);
    let written = match config.get("function")? {
        Some(function) => function.text()?,
        None => class,
    };
    let row = ROWS.iter().chain([&GET_ITEM]).find(|row| row.class == written || row.tf.contains(&written));
    let row = row.ok_or_else(|| {
        let text = format!("`{written}` is an operation of Keras that is not read");
        Error::unsupported(text).context(format!("at {}", node.path())).help(format!(
            "make it a layer of your own (CustomObjects); read are {}",
            ROWS.iter().map(|row| row.kind).collect::<Vec<_>>().join(", ")
        ))
    })?;
    let mut settings = Settings { node, named: arguments.named };
    for (key, _) in config.value().as_object().into_iter().flatten() {
        if !["name", "trainable", "dtype", "function"].contains(&key.as_str()) {
            settings.named.insert(key.clone(), config.field(key)?);
        }
    }
    let function = settings.function(row.of)?;
    settings.finish()?;
    let name = match config.get("name")? {
        Some(name) => Some(name),
        None => node.get("name")?,
    };
    let name = name.map(|name| name.text()).transpose()?.map(str::to_string);
    let expected = match function {
        Function::Elementwise(
            Elementwise::Add
            | Elementwise::Subtract
            | Elementwise::Multiply
            | Elementwise::Divide
            | Elementwise::Maximum
            | Elementwise::Minimum
            | Elementwise::Power,
        ) => 2..=2,
        Function::Concatenate { .. } => 1..=usize::MAX,
        _ => 1..=1,
    };
    if !expected.contains(&arguments.operands.len()) || !arguments.operands.contains(&Operand::Value) {
        return Err(node.refuse(format!("the operation {written} has {} operands", arguments.operands.len())));
    }
    Ok(Operation { name, function, operands: arguments.operands, rules: node.dialect() })
}

/// The arguments of an operation that are not values, by name.
struct Settings<'a> {
    node: &'a Node<'a>,
    named: BTreeMap<String, Node<'a>>,
}

impl<'a> Settings<'a> {
    fn function(&mut self, of: Of) -> Result<Function> {
        Ok(match of {
            Of::Elementwise(function) => Function::Elementwise(function),
            Of::Reduce(how) => {
                let keep_dims = self.take("keepdims").map(|node| is_set(&node)).transpose()?;
                Function::Reduce { how, axes: self.axes("axis")?, keep_dims: keep_dims.unwrap_or(false) }
            }
            Of::Softmax => Function::Softmax { axis: self.axis()?.unwrap_or(-1) },
            Of::Clip => Function::Clip {
                low: self.number(&["x_min", "clip_value_min"])?,
                high: self.number(&["x_max", "clip_value_max"])?,
            },
            Of::Reshape => {
                let sizes = self.needed(&["newshape", "shape"])?;
                Function::Reshape { sizes: sizes.elements()?.iter().map(whole).collect::<Result<_>>()? }
            }
            Of::ExpandDims => {
                let axis = self.needed(&["axis"])?;
                Function::ExpandDims { axis: whole(&axis)? }
            }
            Of::Squeeze => Function::Squeeze { axes: self.axes("axis")? },
            Of::Transpose => {
                // Keras 2 writes the name of the node, and that nothing is conjugated.
                self.take("conjugate");
                self.take("name");
                let key = if self.named.contains_key("perm") { "perm" } else { "axes" };
                let axes = self.axes(key)?.map(|axes| axes.into_iter().map(usize::try_from).collect());
                let axes: Option<Result<Vec<usize>, _>> = axes;
                let refused = |_| self.node.refuse("a transposition has an axis below 0");
                Function::Transpose { axes: axes.transpose().map_err(refused)? }
            }
            Of::Concatenate => Function::Concatenate { axis: self.axis()?.unwrap_or(-1) },
            Of::GetItem => {
                let spec = self.needed(&["slice_spec"])?;
                // One part alone stands without a list.
                let parts = if spec.value().is_array() { spec.elements()? } else { vec![spec] };
                Function::GetItem { parts: parts.iter().map(part).collect::<Result<_>>()? }
            }
        })
    }

    fn take(&mut self, key: &str) -> Option<Node<'a>> {
        self.named.remove(key).filter(|node| !node.is_null())
    }

    fn needed(&mut self, keys: &[&str]) -> Result<Node<'a>> {
        let found = keys.iter().find_map(|key| self.take(key));
        found.ok_or_else(|| self.node.refuse(format!("the operation has no `{}`", keys[0])))
    }

    fn number(&mut self, keys: &[&str]) -> Result<f64> {
        AnyNumber::read(&self.needed(keys)?).map(|number| number.0)
    }

    /// TF: in Keras 3, no axis at all is another function, of all numbers of all rows.
    fn axis(&mut self) -> Result<Option<i64>> {
        if let Some(node) = self.named.get("axis").filter(|node| node.is_null() && node.dialect() == Dialect::Keras3) {
            return Err(node.refuse("the operation has no axis, so it would join the rows of a batch"));
        }
        self.take("axis").map(|node| whole(&node)).transpose()
    }

    /// One axis, or a list.
    fn axes(&mut self, key: &str) -> Result<Option<Vec<i64>>> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let nodes = if node.value().is_array() { node.elements()? } else { vec![node] };
        nodes.iter().map(whole).collect::<Result<Vec<i64>>>().map(Some)
    }

    /// Refuses arguments that nobody has taken.
    fn finish(self) -> Result<()> {
        let says_nothing = |node: &Node<'_>| matches!(node.value(), Json::Null | Json::Bool(false));
        match self.named.iter().find(|(_, node)| !says_nothing(node)) {
            Some((key, node)) => Err(node.refuse(format!("the operation has the argument `{key}`, which is not read"))),
            None => Ok(()),
        }
    }
}

/// A flag, which Python also writes as 0 or 1.
fn is_set(node: &Node<'_>) -> Result<bool> {
    let number = node.value().as_u64().filter(|number| *number < 2).map(|number| number == 1);
    node.value().as_bool().or(number).ok_or_else(|| node.expected("true or false"))
}

fn whole(node: &Node<'_>) -> Result<i64> {
    node.value().as_i64().ok_or_else(|| node.expected("a whole number"))
}

impl Number {
    pub fn read(json: &Json) -> Option<Number> {
        json.as_i64().map(Number::Whole).or_else(|| json.as_f64().map(Number::Float))
    }

    fn write(self) -> Json {
        match self {
            Number::Whole(number) => json!(number),
            Number::Float(number) => json!(number),
        }
    }
}

/// A part of an index.
fn part(node: &Node<'_>) -> Result<Part> {
    let Json::Object(fields) = node.value() else {
        return if node.is_null() { Ok(Part::NewAxis) } else { whole(node).map(Part::At) };
    };
    let node = match fields.get("class_name").and_then(Json::as_str) {
        Some("__ellipsis__") => return Ok(Part::Ellipsis),
        Some("__slice__") => node.field("config")?,
        _ => node.clone(),
    };
    let bound = |key: &str| node.get(key)?.filter(|node| !node.is_null()).map(|node| whole(&node)).transpose();
    Ok(Part::Range { start: bound("start")?, stop: bound("stop")?, step: bound("step")? })
}

/// The settings of Keras 3, or the arguments by name of Keras 2.
fn settings(function: &Function, is_3: bool) -> Json {
    let key = |old: &'static str, new: &'static str| if is_3 { new } else { old };
    let mut all = json!({});
    match function {
        Function::Elementwise(_) => {}
        Function::Reduce { axes, keep_dims, .. } => {
            all["axis"] = json!(axes);
            all["keepdims"] = json!(keep_dims);
        }
        Function::Softmax { axis } | Function::ExpandDims { axis } | Function::Concatenate { axis } => {
            all["axis"] = json!(axis);
        }
        Function::Clip { low, high } => {
            all[key("clip_value_min", "x_min")] = json!(low);
            all[key("clip_value_max", "x_max")] = json!(high);
        }
        Function::Reshape { sizes } => all[key("shape", "newshape")] = json!(sizes),
        Function::Squeeze { axes } => all["axis"] = json!(axes),
        Function::Transpose { axes } => all[key("perm", "axes")] = json!(axes),
        Function::GetItem { parts } if !is_3 => {
            all["slice_spec"] = parts.iter().map(|part| written(*part, false)).collect();
        }
        Function::GetItem { .. } => {}
    }
    all
}

fn written(part: Part, is_3: bool) -> Json {
    match part {
        Part::At(place) => json!(place),
        Part::NewAxis => Json::Null,
        Part::Ellipsis if is_3 => json!({ "class_name": "__ellipsis__", "config": {} }),
        Part::Ellipsis => json!({ "class_name": "__ellipsis__" }),
        Part::Range { start, stop, step } => {
            let range = json!({ "start": start, "stop": stop, "step": step });
            if is_3 { json!({ "class_name": "__slice__", "config": range }) } else { range }
        }
    }
}

/// Writes an operation as a layer, without its name and its call.
pub(in crate::keras) fn write(operation: &Operation, is_3: bool) -> Json {
    let row = row_of(&operation.function);
    if !is_3 {
        return json!({
            "module": "keras.src.layers.core.tf_op_layer",
            "class_name": operation.class_of_keras_2(),
            "config": { "trainable": true, "dtype": "float32", "function": row.tf[0] },
            "registered_name": operation.class_of_keras_2(),
        });
    }
    let config = settings(&operation.function, true);
    json!({ "module": row.module, "class_name": row.class, "config": config, "registered_name": row.class })
}

/// The call of an operation as Keras 3 writes it.
pub(in crate::keras) fn call_of_keras_3(operation: &Operation, values: Vec<Json>) -> Json {
    let mut values = values.into_iter();
    let operands = operation.operands.iter().map(|operand| match operand {
        Operand::Value => values.next().unwrap_or_default(),
        Operand::Number(number) => number.write(),
    });
    let mut operands: Vec<Json> = operands.collect();
    match &operation.function {
        Function::Concatenate { .. } => operands = vec![Json::Array(operands)],
        Function::GetItem { parts } => operands.push(parts.iter().map(|part| written(*part, true)).collect()),
        _ => {}
    }
    json!({ "args": operands, "kwargs": {} })
}

/// The call of an operation as Keras 2 writes it; a value is a reference such as `["dense", 0, 0]`.
pub(in crate::keras) fn call_of_keras_2(operation: &Operation, values: Vec<Json>) -> Json {
    let mut values = values.into_iter();
    let named = settings(&operation.function, false);
    let operands = operation.operands.iter().map(|operand| match operand {
        Operand::Value => values.next().unwrap_or_default(),
        Operand::Number(number) => json!(["_CONSTANT_VALUE", -1, number.write()]),
    });
    let with = |mut reference: Json, named: Json| {
        if let Some(parts) = reference.as_array_mut() {
            parts.push(named);
        }
        reference
    };
    let operands: Vec<Json> = operands.collect();
    if let Function::Concatenate { .. } = operation.function {
        return operands.into_iter().map(|operand| with(operand, named.clone())).collect();
    }
    let mut named = named;
    if let Some(second) = operands.get(1) {
        named["y"] = match operation.operands[1] {
            Operand::Value => second.clone(),
            Operand::Number(number) => number.write(),
        };
    }
    operands.into_iter().next().map_or(Json::Null, |first| with(first, named))
}
