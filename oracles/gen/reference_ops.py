"""Writes oracles/fixtures/reference_ops.jsonl: what TensorFlow's kernels make of small arrays, in f64 where they can.

Run as `python oracles/gen/reference_ops.py` in an environment with tensorflow 2.15. A case is an op, which
the test knows, with a list of settings, and its inputs and outputs `in:0`, `in:1`, `out:0` and so on.
"""

import inspect
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(17)
fixture = Fixture(seed=17)


def case(op, inputs, function, *settings):
    results = function(*[tf.constant(x) for x in inputs])
    results = results if isinstance(results, (list, tuple)) else [results]
    arrays = {f"in:{i}": np.asarray(x) for i, x in enumerate(inputs)} | {f"out:{i}": y for i, y in enumerate(results)}
    fixture.case(op, settings=settings, **arrays)


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
            case(op, [x], positional(op, axis=axes), bits)
            case(op, [floats(0, 3, 4)], positional(op, axis=axes), bits)
    for axis in range(3):
        case("ArgMax", [np.round(x)], lambda x: tf.argmax(x, axis), axis)
        case("ArgMin", [np.round(x)], lambda x: tf.argmin(x, axis), axis)
    for exclusive in [False, True]:
        for reverse in [False, True]:
            case("Cumsum", [x], lambda x: tf.cumsum(x, 1, exclusive, reverse), exclusive, reverse)
            case("Cumprod", [x], lambda x: tf.math.cumprod(x, 1, exclusive, reverse), exclusive, reverse)
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
        case("MirrorPad", [x], lambda x: tf.pad(x, paddings, mode), mode)
        case("MirrorPadGrad", [floats(6, 7)], positional("MirrorPadGrad", paddings=paddings, mode=mode), mode)
    case("StridedSlice", [x], lambda x: x[2:0:-1, 1:4:2])
    case("Transpose", [floats(2, 3, 4)], lambda x: tf.transpose(x, [2, 0, 1]))
    case("Tile", [x], lambda x: tf.tile(x, [2, 3]))
    case("Reverse", [x], lambda x: tf.reverse(x, [1]))
    table = floats(3, 4, 2)
    case("Gather", [table, ids(2, 0, 2)], tf.gather, 0, 0)
    case("Gather", [table, ids(3, 3).reshape(1, 2)], lambda p, i: tf.gather(p, i, axis=1), 1, 0)
    case("Gather", [table, ids(3, 3, 0, 1, 2, 0).reshape(3, 2)], lambda p, i: tf.gather(p, i, axis=1, batch_dims=1), 1, 1)
    case("Gather", [table, ids(1, 0, 1)], lambda p, i: tf.gather(p, i, axis=2, batch_dims=1), 2, 1)
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
        words = (strides[0], *dilations, padding)
        settings = dict(strides=[1, *strides, 1], padding=padding, dilations=[1, *dilations, 1])
        def convolution(op, inputs, **sizes):
            case(op, inputs, positional(op, **settings, **sizes), *words)

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
        words = (*size, *strides, padding)
        settings = dict(ksize=[1, *size, 1], strides=[1, *strides, 1], padding=padding)
        y = positional("MaxPool", **settings)(tf.constant(x)).numpy()
        dy = floats(*y.shape)
        case("MaxPool", [x], positional("MaxPool", **settings), *words)
        case("AvgPool", [x], positional("AvgPool", **settings), *words)
        case("MaxPoolGrad", [x, y, dy], positional("MaxPoolGrad", **settings), *words)
        case("AvgPoolGrad", [dy], positional("AvgPoolGrad", orig_input_shape=x.shape, **settings), *words)


def resizes():
    for source, target in [((3, 4), (6, 8)), ((5, 7), (3, 2)), ((1, 1), (3, 2)), ((3, 5), (7, 4))]:
        for centers in [False, True]:
            words = (*target, centers)
            x = floats(2, *source, 2).astype(np.float32)
            dy = floats(2, *target, 2).astype(np.float32)
            for op, gradient in [("ResizeBilinear", dict(original_image=x)),
                                 ("ResizeNearestNeighbor", dict(size=source))]:
                case(op, [x], positional(op, size=target, half_pixel_centers=centers), *words)
                case(f"{op}Grad", [dy], positional(f"{op}Grad", half_pixel_centers=centers, **gradient), *words, *source)


def bands():
    number = lambda n: -1 if n is None else n
    for lower, upper in [(1, 0), (None, 1), (0, None), (4, 3)]:
        case("MatrixBandPart", [floats(2, 4, 3)], lambda x: tf.linalg.band_part(x, number(lower), number(upper)), lower, upper)


elements()
reductions()
movement()
windows()
resizes()
bands()
fixture.write("reference_ops", tf, np)
