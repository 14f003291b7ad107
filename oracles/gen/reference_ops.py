"""Writes oracles/fixtures/reference_ops.txt: what TensorFlow's kernels make of small arrays, in f64 where they can.

Run as `python oracles/gen/reference_ops.py` in an environment with tensorflow 2.15. The fixture's lines:

    case <name>                      what is computed; the test knows the same name
    in|out <dtype> <sizes> <values>  its inputs and outputs, row by row; `-` stands for no sizes or no values
"""

import inspect
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

SEED = 17
OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "reference_ops.txt"
random = np.random.default_rng(SEED)
lines = []


def text(kind, array):
    array = np.asarray(array)
    sizes = ",".join(map(str, array.shape)) or "-"
    dtype = {"float64": "f64", "float32": "f32", "int32": "i32", "int64": "i64", "bool": "bool"}[str(array.dtype)]
    values = [str(v).lower() for v in array.ravel()] or ["-"]
    return " ".join([kind, dtype, sizes] + values)


def case(name, inputs, function):
    lines.append(f"case {name}")
    lines.extend(text("in", x) for x in inputs)
    results = function(*[tf.constant(x) for x in inputs])
    lines.extend(text("out", y) for y in (results if isinstance(results, (list, tuple)) else [results]))


def floats(*shape):
    return np.round(random.standard_normal(shape), 3)


def ids(*values):
    return np.array(values, np.int64)


def positional(op, **settings):
    """A raw op with some arguments set and the others in order."""
    function = getattr(tf.raw_ops, op)
    names = [n for n in inspect.signature(function).parameters if n not in settings]
    return lambda *x: function(**dict(zip(names, x)), **settings)


EDGES = np.array([0.0, -0.0, 0.5, 1.5, -2.5, 1e-9, -1e-9, 30.0, -30.0, 6.0, np.inf, -np.inf, np.nan])
UNARY = """Neg Abs Sign Floor Ceil Round Exp Expm1 Log Log1p Sqrt Rsqrt Square Reciprocal Sin Cos Tanh Sigmoid Erf
    Softplus Softsign Relu Relu6 Elu Selu IsNan IsFinite""".split()
BINARY = """AddV2 Sub Mul RealDiv DivNoNan FloorDiv FloorMod Pow Maximum Minimum SquaredDifference Less LessEqual
    Greater GreaterEqual Equal NotEqual""".split()
GRADIENTS = """ReluGrad Relu6Grad EluGrad SeluGrad SoftplusGrad SoftsignGrad TanhGrad SigmoidGrad SqrtGrad RsqrtGrad
    ReciprocalGrad""".split()


def elements():
    for op in UNARY:
        # Infinity has no sine, and TensorFlow's vector code only approximates large arguments.
        case(op, [np.concatenate([EDGES if op not in ("Sin", "Cos") else EDGES[:7], floats(5)])], positional(op))
    x = np.concatenate([floats(6), EDGES])
    y = np.concatenate([floats(6), EDGES[::-1]])
    for op in BINARY:
        case(op, [x, y], positional(op))
        case(op, [floats(2, 1, 3), floats(4, 1)], positional(op))
    for op in GRADIENTS:
        case(op, [floats(8), floats(8)], positional(op))
    for op in ["FloorDiv", "FloorMod"]:
        case(op, [ids(7, -7, 7, -7, 6), ids(2, 2, -2, -2, 3)], positional(op))


def reductions():
    x = floats(2, 3, 4)
    for op in ["Sum", "Mean", "Max", "Min", "Prod"]:
        for axes in [[0], [1, 2], [0, 1, 2], []]:
            # The axes of a set, one bit each.
            bits = sum(1 << a for a in axes)
            case(f"{op} {bits}", [x], positional(op, axis=axes))
            case(f"{op} {bits}", [floats(0, 3, 4)], positional(op, axis=axes))
    for axis in range(3):
        case(f"ArgMax {axis}", [np.round(x)], lambda x: tf.argmax(x, axis))
        case(f"ArgMin {axis}", [np.round(x)], lambda x: tf.argmin(x, axis))
    for exclusive in [False, True]:
        for reverse in [False, True]:
            flags = f"{int(exclusive)} {int(reverse)}"
            case(f"Cumsum {flags}", [x], lambda x: tf.cumsum(x, 1, exclusive, reverse))
            case(f"Cumprod {flags}", [x], lambda x: tf.math.cumprod(x, 1, exclusive, reverse))
    case("TopKV2", [np.round(x, 0)], lambda x: tf.math.top_k(x, 2))
    case("Softmax", [x], tf.nn.softmax)
    case("LogSoftmax", [x], tf.nn.log_softmax)
    labels = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    case("SoftmaxCrossEntropy", [floats(2, 3), labels], positional("SoftmaxCrossEntropyWithLogits"))
    case("SparseSoftmaxCrossEntropy", [floats(2, 3), ids(2, 0)], positional("SparseSoftmaxCrossEntropyWithLogits"))


def movement():
    x = floats(3, 4)
    for mode in ["SYMMETRIC", "REFLECT"]:
        paddings = [[2, 1], [0, 3]]
        case(f"MirrorPad {mode}", [x], lambda x: tf.pad(x, paddings, mode))
        case(f"MirrorPadGrad {mode}", [floats(6, 7)], positional("MirrorPadGrad", paddings=paddings, mode=mode))
    case("StridedSlice", [x], lambda x: x[2:0:-1, 1:4:2])
    case("Transpose", [floats(2, 3, 4)], lambda x: tf.transpose(x, [2, 0, 1]))
    case("Tile", [x], lambda x: tf.tile(x, [2, 3]))
    case("Reverse", [x], lambda x: tf.reverse(x, [1]))
    table = floats(3, 4, 2)
    case("Gather 0 0", [table, ids(2, 0, 2)], tf.gather)
    case("Gather 1 0", [table, ids(3, 3).reshape(1, 2)], lambda p, i: tf.gather(p, i, axis=1))
    case("Gather 1 1", [table, ids(3, 3, 0, 1, 2, 0).reshape(3, 2)], lambda p, i: tf.gather(p, i, axis=1, batch_dims=1))
    case("Gather 2 1", [table, ids(1, 0, 1)], lambda p, i: tf.gather(p, i, axis=2, batch_dims=1))
    case("GatherNd", [table, ids(2, 1, 0, 3).reshape(2, 2)], tf.gather_nd)
    case("ScatterNd", [ids(2, 0, 2).reshape(3, 1), floats(3, 2)], lambda i, u: tf.scatter_nd(i, u, [4, 2]))
    for op in ["Sum", "Max", "Min", "Prod"]:
        data, segments = floats(5, 2), ids(1, 0, 1, -1, 3)
        case(f"UnsortedSegment{op}", [data, segments], positional(f"UnsortedSegment{op}", num_segments=4))
    case("OneHot", [ids(1, 5, -1, 0), floats(), floats()], lambda i, on, off: tf.one_hot(i, 3, on, off, axis=0))


def windows():
    x, f, d = floats(2, 5, 6, 2), floats(2, 3, 2, 3), floats(2, 3, 2, 2)
    for strides, dilations, padding in [((1, 1), (1, 1), "SAME"), ((2, 2), (1, 1), "SAME"), ((2, 2), (1, 1), "VALID"),
                                        ((1, 1), (2, 2), "SAME"), ((1, 1), (2, 1), "VALID")]:
        name = f"{strides[0]} {dilations[0]} {dilations[1]} {padding}"
        settings = dict(strides=[1, *strides, 1], padding=padding, dilations=[1, *dilations, 1])
        def convolution(op, inputs, name=name, **sizes):
            case(f"{op} {name}", inputs, positional(op, **settings, **sizes))

        convolution("Conv2D", [x, f])
        if dilations != (1, 1):
            continue
        height, width = [-(-n // s) if padding == "SAME" else (n - k) // s + 1
                         for n, k, s in zip((5, 6), (2, 3), strides)]
        dy = floats(2, height, width, 3)
        convolution("Conv2DBackpropInput", [f, dy], input_sizes=x.shape)
        convolution("Conv2DBackpropFilter", [x, dy], filter_sizes=f.shape)
        convolution("DepthwiseConv2dNative", [x, d])
        dy = floats(2, height, width, 4)
        convolution("DepthwiseConv2dNativeBackpropInput", [d, dy], input_sizes=x.shape)
        convolution("DepthwiseConv2dNativeBackpropFilter", [x, dy], filter_sizes=d.shape)
    # Few different values, so that maxima are equal and the first must win.
    x = np.round(floats(2, 5, 6, 2))
    for size, strides, padding in [((2, 2), (2, 2), "VALID"), ((3, 2), (1, 2), "SAME"), ((2, 3), (3, 1), "SAME")]:
        name = f"{size[0]} {size[1]} {strides[0]} {strides[1]} {padding}"
        settings = dict(ksize=[1, *size, 1], strides=[1, *strides, 1], padding=padding)
        y = positional("MaxPool", **settings)(tf.constant(x)).numpy()
        dy = floats(*y.shape)
        case(f"MaxPool {name}", [x], positional("MaxPool", **settings))
        case(f"AvgPool {name}", [x], positional("AvgPool", **settings))
        case(f"MaxPoolGrad {name}", [x, y, dy], positional("MaxPoolGrad", **settings))
        case(f"AvgPoolGrad {name}", [dy], positional("AvgPoolGrad", orig_input_shape=x.shape, **settings))


def resizes():
    for source, target in [((3, 4), (6, 8)), ((5, 7), (3, 2)), ((1, 1), (3, 2)), ((3, 5), (7, 4))]:
        for centers in [False, True]:
            name = f"{target[0]} {target[1]} {int(centers)}"
            x = floats(2, *source, 2).astype(np.float32)
            dy = floats(2, *target, 2).astype(np.float32)
            for op, gradient in [("ResizeBilinear", dict(original_image=x)),
                                 ("ResizeNearestNeighbor", dict(size=source))]:
                case(f"{op} {name}", [x], positional(op, size=target, half_pixel_centers=centers))
                case(f"{op}Grad {name} {source[0]} {source[1]}", [dy],
                     positional(f"{op}Grad", half_pixel_centers=centers, **gradient))


def bands():
    number = {"all": -1}
    for lower, upper in [(1, 0), ("all", 1), (0, "all"), (4, 3)]:
        case(f"MatrixBandPart {lower} {upper}", [floats(2, 4, 3)],
             lambda x: tf.linalg.band_part(x, number.get(lower, lower), number.get(upper, upper)))


elements()
reductions()
movement()
windows()
resizes()
bands()
versions = f"tensorflow {tf.__version__}, numpy {np.__version__}, seed {SEED}"
header = f"# Made by oracles/gen/reference_ops.py, which explains the lines; {versions}."
OUT.write_text("\n".join([header] + lines) + "\n")
