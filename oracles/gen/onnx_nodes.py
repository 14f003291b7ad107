"""Answers of onnxruntime to models of one node, for our evaluator of ONNX files: oracles/fixtures/onnx_nodes.jsonl.

    python oracles/gen/onnx_nodes.py        (a Python with numpy; the packages are those of oracles/live/onnx_packages.py)

Each case has the bytes of the model, its inputs `input_0`, .. and the outputs `output_0`, .. of onnxruntime.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
import onnx_packages  # noqa: E402, F401
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

from fixture import Fixture  # noqa: E402

SEED = 5
fixture = Fixture(SEED)
rng = np.random.default_rng(SEED)
ML = "ai.onnx.ml"


def floats(*sizes):
    return rng.normal(size=sizes).astype(np.float32)


def longs(*values):
    return np.array(values, np.int64)


def words(*values):
    return np.array(values, dtype=object)


def kind(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype) if array.dtype != object else onnx.TensorProto.STRING


def case(op, *inputs, outputs=(None,), domain="", **attributes):
    """A model of one node. An input that is None is left out; `outputs` are arrays of the types of the outputs, or None for the
    type of the first input."""
    inputs = [None if array is None else np.asarray(array) for array in inputs]
    names = ["" if array is None else f"input_{i}" for i, array in enumerate(inputs)]
    given = [(name, array) for name, array in zip(names, inputs) if array is not None]
    results = [f"output_{i}" for i in range(len(outputs))]
    node = helper.make_node(op, names, results, name=op, domain=domain, **attributes)
    info = [helper.make_tensor_value_info(name, kind(array), array.shape) for name, array in given]
    out = [helper.make_tensor_value_info(name, kind(given[0][1]) if t is None else t, None) for name, t in zip(results, outputs)]
    graph = helper.make_graph([node], "node", info, out)
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(ML, 3)] if domain else [])
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
    found = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(given))
    # The sizes of outputs are known here.
    for value, array in zip(model.graph.output, found):
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind(np.asarray(array)), np.asarray(array).shape))
    onnx.checker.check_model(model, full_check=True)
    fixture.case(op, bytes=model.SerializeToString(deterministic=True))
    for name, array in given + list(zip(results, found)):
        fixture.put(name, np.asarray(array))


INT, LONG, BOOL, FLOAT, TEXT = (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT, onnx.TensorProto.STRING)
odd = np.array([-np.inf, -70.5, -2.5, -1.5, -0.5, -0.0, 0.0, 1e-4, 0.5, 1.5, 2.5, 80.25, np.inf, np.nan], np.float32)
for op in ["Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Exp", "Log", "Sqrt", "Reciprocal", "Tanh", "Sigmoid", "Erf", "Softplus", "Softsign",
           "Relu", "Elu", "Selu"]:
    case(op, odd[:-1])
for op in ["Sin", "Cos"]:
    case(op, odd[1:-2])
for op in ["Neg", "Abs", "Sign"]:
    case(op, np.array([-3, 0, 7], np.int32))
for op in ["IsNaN", "IsInf"]:
    case(op, odd, outputs=[BOOL])
case("Not", np.array([True, False]))

a, b = floats(2, 1, 3), floats(4, 1)
ints, others = np.array([-7, -6, 7, 6, 0], np.int32), np.array([3, -3, 3, -3, 5], np.int32)
for op in ["Add", "Sub", "Mul", "Div", "Max", "Min"]:
    case(op, a, b)
    case(op, ints, others)
case("Pow", np.abs(a), b)
case("Pow", ints.astype(np.int64), longs(0, 1, 2, 3, 4))
case("Mod", ints, others)
case("Mod", floats(6) * 3, floats(6), fmod=1)
case("Max", a, b, floats(1))
for op in ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]:
    case(op, np.round(a), np.round(b), outputs=[BOOL])
    case(op, ints, others, outputs=[BOOL])
for op in ["And", "Or", "Xor"]:
    case(op, np.array([[True], [False]]), np.array([True, False]))
case("Where", np.array([True, False, True]), a, b, outputs=[FLOAT])
case("Where", np.array([[True], [False]]), words("a", "b"), words("c"), outputs=[TEXT])
case("Clip", odd[:-1], np.float32(-1), np.float32(6))
case("Clip", np.array([-5, 0, 9]), np.int64(-1), np.int64(6))
case("Cast", np.array([-2.7, -0.5, 0, 0.5, 2.7], np.float32), outputs=[INT], to=INT)
case("Cast", np.array([-2.7, 0, 2.7], np.float32), outputs=[BOOL], to=BOOL)
case("Cast", np.array([2**40 + 5, -1, 300]), outputs=[INT], to=INT)
case("Cast", np.array([2**40 + 5, -1, 2**53 + 1]), outputs=[FLOAT], to=FLOAT)
case("Cast", np.array([True, False]), outputs=[FLOAT], to=FLOAT)
case("Cast", longs(-12, 0, 345), outputs=[TEXT], to=TEXT)
case("Cast", words("1.5", "-2e3", "7"), outputs=[FLOAT], to=FLOAT)
case("Cast", words("-15", "7"), outputs=[LONG], to=LONG)

x = floats(3, 4, 5)
for attributes in [{}, {"start": 1}, {"start": -2, "end": -1}, {"start": 0, "end": 9}]:
    case("Shape", x, outputs=[LONG], **attributes)
case("Reshape", x, longs(0, -1, 2), outputs=[FLOAT])
case("Reshape", x, longs(5, 0, 3))
case("Reshape", floats(0, 3), longs(3, 0), allowzero=1)
case("Unsqueeze", x, longs(-1, 0))
case("Transpose", x, perm=[2, 0, 1])
case("Concat", x, floats(3, 2, 5), floats(3, 0, 5), axis=-2)
case("Concat", words("a"), words("b", "c"), axis=0)
far = -(2**63) + 1
for starts, ends, axes, steps in [
    ([1], [3], [1], [1]), ([-3], [99], [2], [2]), ([-1], [far], [0], [-1]), ([9], [0], [1], [-2]), ([3], [-9], [1], [-1]),
    ([1, 0], [0, 4], [0, -1], [1, 3]), ([-99], [2], [2], [1]), ([1], [-1], [1], [1]),
]:
    case("Slice", x, *(longs(*numbers) for numbers in (starts, ends, axes, steps)))
case("Slice", x, longs(1, 2), longs(3, 4))
case("Slice", floats(0, 2), longs(-1), longs(far), longs(0), longs(-1))
case("Gather", x, longs(2, -1, 0, -4).reshape(2, 2), axis=1)
case("Gather", words("a", "b"), longs(1, -2, 1))
case("Expand", floats(3, 1), longs(2, 1, 4))
case("Expand", np.float32(7), longs(0, 2))
case("Tile", floats(2, 3), longs(2, 2))
case("Pad", floats(2, 3), longs(1, 0, 2, 1), np.float32(9))
case("Pad", floats(2, 3), longs(0, 1, 0, -1))
case("Pad", floats(3, 4), longs(2, 3, 1, 2), mode="reflect")

case("GatherND", x, longs(0, 1, -1, 2, 2, -4).reshape(3, 2))
case("GatherND", x, longs(0, 1, -1).reshape(3, 1, 1), batch_dims=1)
case("ScatterND", floats(4, 2), longs(1, -1).reshape(2, 1), floats(2, 2))
case("ScatterND", floats(4, 2), longs(1, 1, -4).reshape(3, 1), floats(3, 2), reduction="add")
case("ScatterND", longs(0, 0, 0), longs(2, 0, 2).reshape(3, 1), longs(5, 6, 7), reduction="add")
case("NonZero", np.array([[0, 3, 0], [1, 0, -1]]), outputs=[LONG])
case("NonZero", np.array([True, False, True]), outputs=[LONG])
case("Unique", longs(5, 3, 5, 9, 3, 5), outputs=[None, LONG, LONG, LONG], sorted=0)
case("Unique", words("b", "a", "b", ""), outputs=[None, LONG, LONG], sorted=0)
ties = np.array([[1, 3, 3, 0], [2, 2, 2, 2]], np.float32)
case("TopK", ties, longs(3), outputs=[None, LONG], axis=-1)
case("TopK", ties, longs(2), outputs=[None, LONG], axis=0, largest=0, sorted=1)
case("TopK", longs(4, 1, 1, 3), longs(4), outputs=[None, LONG], axis=0, largest=0)
case("Range", np.int64(2), np.int64(9), np.int64(3))
case("Range", np.int64(2), np.int64(2), np.int64(1))

for op in ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"]:
    case(op, x, axes=[-1, 0], keepdims=0)
    case(op, x, axes=[1])
case("ReduceSum", x, longs(0, 2), keepdims=0)
case("ReduceSum", ints, longs(0))
case("ReduceSum", floats(2, 0), longs(1))
for op in ["ArgMax", "ArgMin"]:
    case(op, ties, outputs=[LONG], axis=1, keepdims=0)
    case(op, ties, outputs=[LONG], axis=-2)
for exclusive in [0, 1]:
    for reverse in [0, 1]:
        case("CumSum", x, np.int64(-2), exclusive=exclusive, reverse=reverse)
case("CumSum", longs(3, 1, 4, 1), np.int64(0))
for op in ["Softmax", "LogSoftmax"]:
    case(op, x * 30, axis=-1)
    case(op, x, axis=1)

case("MatMul", floats(3, 5), floats(5, 2))
case("MatMul", floats(2, 1, 3, 5), floats(4, 5, 2))
case("MatMul", floats(3, 0), floats(0, 2))
case("MatMul", longs(*range(6)).reshape(2, 3), longs(*range(6)).reshape(3, 2))
for left in [0, 1]:
    for right in [0, 1]:
        case("Gemm", floats(*((3, 2) if left else (2, 3))), floats(*((4, 3) if right else (3, 4))), transA=left, transB=right)

image = floats(2, 4, 5, 6)
for attributes in [
    {"kernel_shape": [3, 2], "strides": [1, 1], "pads": [1, 0, 2, 1]},
    {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 1, 0]},
    {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3, 2], "strides": [3, 2], "auto_pad": "VALID"},
]:
    case("MaxPool", image, **attributes)
    case("AveragePool", image, count_include_pad=0, **attributes)
    case("Conv", image, floats(3, 4, 3, 2), dilations=[1, 1], group=1, **attributes)
    case("Conv", image, floats(8, 1, 3, 2), dilations=[1, 1], group=4, **attributes)
case("Conv", image, floats(6, 2, 3, 2), dilations=[2, 3], group=2, strides=[1, 2], pads=[2, 1, 0, 1])
case("Conv", image, floats(5, 4, 1, 1))
for attributes in [{"strides": [1, 1]}, {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]}, {"strides": [1, 2], "dilations": [2, 1], "pads": [0, 1, 1, 1]}]:
    case("ConvTranspose", image, floats(4, 3, 3, 2), kernel_shape=[3, 2], **attributes)
for sizes in [(10, 12), (3, 4), (5, 9), (7, 6), (1, 1)]:
    wanted = longs(2, 2, *sizes)
    for centres in ["half_pixel", "asymmetric"]:
        case("Resize", image[:, :2], None, None, wanted, mode="linear", coordinate_transformation_mode=centres)
    case("Resize", image[:, :2], None, None, wanted, mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil")
    case("Resize", image[:, :2], None, None, wanted, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")

keys = {"keys_strings": ["a", "ö", ""], "values_int64s": [7, 8, 9]}
case("LabelEncoder", words("ö", "x", "", "a"), outputs=[LONG], domain=ML, default_int64=-5, **keys)
case("LabelEncoder", words("ö", "x", ""), outputs=[LONG], domain=ML, **keys)
case("LabelEncoder", longs(4, 5), outputs=[LONG], domain=ML, keys_int64s=[5], values_int64s=[50], default_int64=-1)
case("LabelEncoder", longs(4, 5).reshape(2, 1), outputs=[TEXT], domain=ML, keys_int64s=[5], values_strings=["five"], default_string="other")
for action in ["LOWER", "UPPER"]:
    case("StringNormalizer", words("Rome", "KÖln", ""), case_change_action=action, locale="C")

fixture.write("onnx_nodes", onnx, onnxruntime)
