"""Functional models as tutorials make them are opened here and predict the same, and Keras opens them as we write them: operations such as
`x + 1`, slices, inputs by name and without a dtype, masks that meet.

    keras_graphs.py PROGRAM FOLDER        (PROGRAM: keras_files_exchange; FOLDER: an empty folder to exchange files in)

Keras is that of the Python that runs this: Keras 2 of TensorFlow 2.15, or Keras 3.
"""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

IS_3 = keras.__version__.startswith("3.")
program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
random = np.random.default_rng(17)
L, Input = keras.layers, keras.Input
models = {}


def op(name, old):
    """A function of Keras 3, or of TensorFlow."""
    return getattr(keras.ops, name) if IS_3 else old


concatenate = op("concatenate", tf.concat)
OPERATIONS = {
    "add": lambda x: x + L.Dense(3)(x),
    "add_number": lambda x: x + 1.5,
    "from_number": lambda x: 2 - x,
    "divide": lambda x: x / 127.5 - 1,
    "divide_number": lambda x: 1 / (x + 3),
    "multiply": lambda x: x * 2 * L.Dense(3)(x),
    "power": lambda x: (x + 2) ** 2,
    "negative": lambda x: -x,
    "last": lambda x: x[:, -1, :],
    "place": lambda x: x[:, 1],
    "slice": lambda x: x[:, 1:3],
    "new_axis": lambda x: x[:, :, None],
    "reversed": lambda x: x[:, ::-1],
    "tail": lambda x: x[:, -2:],
    "first_ten": lambda x: x[:, :10],
    "last_ten": lambda x: x[:, -10:],
    "but_last": lambda x: x[:, :-1],
    "second_last": lambda x: x[:, -2],
    "mean": lambda x: op("mean", tf.reduce_mean)(x, axis=1),
    "mean_kept": lambda x: op("mean", tf.reduce_mean)(x, axis=[1], keepdims=True) * x,
    "sum": lambda x: op("sum", tf.reduce_sum)(x, axis=-1, keepdims=True),
    "min": lambda x: op("min", tf.reduce_min)(x, axis=1),
    "max": lambda x: op("max", tf.reduce_max)(x, axis=1),
    "maximum": lambda x: op("maximum", tf.maximum)(x, 0.2),
    "minimum": lambda x: op("minimum", tf.minimum)(x, L.Dense(3)(x)),
    "softmax": lambda x: op("softmax", tf.nn.softmax)(x, axis=-1),
    "softmax_of_steps": lambda x: op("softmax", tf.nn.softmax)(x, axis=1),
    "clip": lambda x: keras.ops.clip(x, -0.2, 0.3) if IS_3 else tf.clip_by_value(x, -0.2, 0.3),
    "concatenate": lambda x: concatenate([x, x + 1], -1),
    "squeeze": lambda x: op("squeeze", tf.squeeze)(op("expand_dims", tf.expand_dims)(x, axis=1), axis=1),
    "residual": lambda x: L.LayerNormalization()(L.MultiHeadAttention(2, 4)(x, x) + x),
    "named_arguments": lambda x: L.MultiHeadAttention(2, 4)(query=x, value=x, key=x) if IS_3 else x,
    "preprocess": lambda x: keras.applications.mobilenet_v2.preprocess_input(x),
}
FUNCTIONS = {"relu": tf.nn.relu, "relu6": tf.nn.relu6, "sigmoid": tf.sigmoid, "tanh": tf.tanh, "silu": tf.nn.silu, "softplus": tf.math.softplus}
FUNCTIONS |= {"exp": tf.exp, "square": tf.square, "abs": tf.abs, "sqrt": tf.sqrt, "log": tf.math.log}
for name, old in FUNCTIONS.items():
    OPERATIONS[name] = lambda x, name=name, old=old: op(name, old)(x * x + 0.1 if name in ("sqrt", "log") else x * 4)
OF_KNOWN_SIZES = {
    "every_second": lambda x: x[:, ::2],
    "reshape": lambda x: op("reshape", tf.reshape)(x, (-1, 12)),
    "transpose": lambda x: op("transpose", tf.transpose)(x, (0, 2, 1)),
    "model": lambda x: keras.Sequential([Input((4, 3)), L.Dense(3)])(x) + x,
}
for name, function in (OPERATIONS | OF_KNOWN_SIZES).items():
    for n_steps in (4, None) if name in OPERATIONS else (4,):
        start = Input((n_steps, 3))
        models[f"{name}_{n_steps}"] = keras.Model(start, L.Dense(2)(function(start))), [(4, 3)]


def words():
    """Ids from 0, of which 0 does not count."""
    ids = Input((5,), dtype="int32")
    return ids, L.Embedding(6, 3, mask_zero=True)(ids)


# Two branches, both masked or one; then something that uses the mask.
JOINS = {
    "add": lambda a, b: L.Add()([a, b]),
    "multiply": lambda a, b: L.Multiply()([a, b]),
    "concatenate": lambda a, b: L.Concatenate()([a, b]),
    "steps": lambda a, b: L.Concatenate(axis=1)([a, b]),
    "operation": lambda a, b: a + b,
    "rescaling": lambda a, b: L.Add()([L.Rescaling(0.5)(a), b]),
    "normalization": lambda a, b: L.Add()([L.Normalization(mean=0.1, variance=2.0)(a), b]),
    "identity": lambda a, b: L.Add()([L.Identity()(a), b]),
    "attention": lambda a, b: L.Attention()([a, b]),
    "masking": lambda a, b: L.Attention()([L.Masking(0.5)(a), b]),
    "passing": lambda a, b: L.Attention()([L.TimeDistributed(L.Dense(3))(L.Bidirectional(L.LSTM(2, return_sequences=True))(L.BatchNormalization()(a))), b]),
    "dense": lambda a, b: L.Maximum()([L.Dense(3, "tanh")(a), L.Dropout(0.1)(b)]),
}
if IS_3:  # tf.keras 2.15 cannot do this
    JOINS["groups"] = lambda a, b: L.Add()([L.GroupNormalization(1)(a), b])
USES = {"pool": lambda x: L.GlobalAveragePooling1D()(x), "lstm": lambda x: L.LSTM(2)(x)}
for (name, join), (use_name, use) in ((a, b) for a in JOINS.items() for b in USES.items()):
    for n_masked in (1, 2):
        if not IS_3 and name in ("concatenate", "steps") and n_masked == 1:
            continue  # tf.keras 2.15 cannot do this
        a, x = words()
        b, y = words() if n_masked == 2 else (lambda b: (b, L.Dense(3)(b)))(Input((5, 3)))
        models[f"{name}_{use_name}_{n_masked}"] = keras.Model([a, b], use(join(x, y))), ["ids", "ids" if n_masked == 2 else (5, 3)]
# Of whole numbers, each Keras makes floats in its own way.
WHOLE = {
    "times": lambda x: x * 2,
    "from": lambda x: 1 - x,
    "third": lambda x: x / 3,
    "mean": lambda x: op("mean", tf.reduce_mean)(x, axis=1),
    "sum": lambda x: op("sum", tf.reduce_sum)(x, axis=1),
    "square": lambda x: op("square", tf.square)(x),
    "maximum": lambda x: op("maximum", tf.maximum)(x, 2),
}
if IS_3:
    WHOLE |= {"times_float": lambda x: x * 2.5, "sqrt": lambda x: keras.ops.sqrt(x), "mixed": lambda x: x + L.Embedding(6, 5)(x)[:, 0]}
for name, function in WHOLE.items():
    start = Input((5,), dtype="int32")
    models[f"whole_{name}"] = keras.Model(start, function(start)), ["ids"]
# As `fit` builds it, an input is f32, also of ids.
models["float_ids"] = keras.Sequential([Input((5,)), L.Embedding(6, 3), L.Flatten(), L.Dense(1)]), ["float_ids"]
models["float_ids_masked"] = keras.Sequential([Input((5,)), L.Embedding(6, 3, mask_zero=True), L.GRU(2)]), ["float_ids"]
b, a = Input((3,), name="b"), Input((2,), name="a")
models["by_name"] = keras.Model({"b": b, "a": a}, {"z": L.Dense(2)(a), "y": L.Dense(1)(L.Concatenate()([a, b]))}), [(2,), (3,)]
# Networks with operations among their layers.
NETWORKS = ["MobileNetV3Small"] + ([] if IS_3 else ["RegNetX002"])
for name in NETWORKS:
    models[name] = getattr(keras.applications, name)(input_shape=(64, 64, 3), weights=None, include_top=False, pooling="avg"), [(64, 64, 3)]


def weight(name, of, w):
    """Numbers between -1 and 1; in a network, such that results are neither large nor small."""
    low = 0.5 if "var" in of or (name in NETWORKS and w.ndim == 1) else -1
    scale = (3 / np.prod(w.shape[:-1])) ** 0.5 if name in NETWORKS and w.ndim > 1 else 1
    return np.asarray(random.uniform(low, 1, w.shape) * scale, w.dtype)


cases, given, expected = [], [], []
for name, (made, shapes) in models.items():
    made.set_weights([weight(name, v.name, w) for v, w in zip(made.weights, made.get_weights())])
    inputs = []
    for shape in shapes:
        ids = random.integers(0, 6, (3, 5))
        ids[:, -1] = 0  # some steps do not count in either branch
        inputs.append(ids.astype("int32" if shape == "ids" else "float32") if isinstance(shape, str) else random.uniform(-1, 1, (3, *shape)).astype("float32"))
    made.save(folder / f"{name}.keras")
    sent = [{"sizes": x.shape, "dtype": str(x.dtype), "values": x.ravel().tolist()} for x in inputs]
    cases.append({"name": name, "version": 3 if IS_3 else 2, "inputs": sent})
    fed = dict(zip("ab", inputs)) if name == "by_name" else inputs
    results = made(fed if len(inputs) > 1 or name == "by_name" else inputs[0], training=False)
    given.append((fed, inputs))
    expected.append([np.asarray(x) for x in tf.nest.flatten(results)])
(folder / "cases.json").write_text(json.dumps(cases))
subprocess.run([program, folder], check=True)
worst = 0
for name, (fed, inputs), wanted, results in zip(models, given, expected, json.loads((folder / "results.json").read_text())):
    read = {"ours": [np.array(x["values"], np.float32).reshape(x["sizes"]) for x in results]}
    for suffix in (".keras", ".h5"):
        ours = keras.models.load_model(folder / f"{name}_ours{suffix}")
        results = ours(inputs if len(inputs) > 1 else inputs[0], training=False)
        read[f"Keras with our {suffix}"] = [np.asarray(x) for x in tf.nest.flatten(results)]
    for who, results in read.items():
        assert [x.shape for x in results] == [x.shape for x in wanted], (name, who)
        apart = max(np.abs(x - y).max() / max(1, np.abs(y).max()) for x, y in zip(results, wanted))
        assert apart < 1e-5, (name, who, apart, results[0].ravel()[:4], wanted[0].ravel()[:4])
        worst = max(worst, apart)
print(f"  Keras {keras.__version__}: {len(models)} models predict the same here and there; the largest difference is {worst:.1e}")
