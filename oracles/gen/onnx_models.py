"""Files of the onnx package, whose messages ours must equal: oracles/fixtures/onnx_models.jsonl.

    python oracles/gen/onnx_models.py        (a Python with onnx)

Each case has the bytes of a model that `crates/onnx/tests/messages.rs` writes too.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fixture import Fixture

fixture = Fixture()


def model(case, nodes, inputs, outputs, constants=(), ml=False):
    initializers = [numpy_helper.from_array(value, name) for name, value in constants]
    graph = helper.make_graph(nodes, "estimand", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid("ai.onnx.ml", 3)] if ml else [])
    made = helper.make_model(graph, ir_version=8, producer_name="estimand", producer_version="0.1.0", opset_imports=opsets)
    onnx.checker.check_model(made, full_check=True)
    fixture.case(case, bytes=made.SerializeToString(deterministic=True))


def node(op, inputs, outputs, name, **attributes):
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def identity(source, name):
    return node("Identity", [source], [name], f"{name}/Identity")


x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1])
weights = np.array([[0.5], [-1.0], [2.0]], np.float32)
model("product", [node("MatMul", ["x", "w"], ["MatMul/MatMul"], "MatMul/MatMul"), identity("MatMul/MatMul", "y")], [x], [y], [("w", weights)])

square = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])
softmax = node("Softmax", ["x"], ["Softmax/Softmax"], "Softmax/Softmax", axis=-1)
out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])
model("softmax", [softmax, identity("Softmax/Softmax", "y")], [square], [out])

word = helper.make_tensor_value_info("word", TensorProto.STRING, ["batch"])
number = helper.make_tensor_value_info("id", TensorProto.INT64, ["batch"])
find = "LookupTableFindV2/LabelEncoder"
encoder = node("LabelEncoder", ["word"], [find], find, domain="ai.onnx.ml", keys_strings=["a", "ö"], values_int64s=[0, 1], default_int64=-1)
model("vocabulary", [encoder, identity(find, "id")], [word], [number], ml=True)

fixture.write("onnx_models", onnx)
