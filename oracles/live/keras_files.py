"""Random models that Keras saves are opened here and predict the same; what we save, Keras opens, and it predicts the same. Models
that are compiled go on with their training here and there, with every optimizer.

    keras_files.py PROGRAM FOLDER        (PROGRAM: keras_files_exchange; FOLDER: an empty folder to exchange files in)

Each layer of ours, in its simplest form and with all options, is a model in a file too. Keras is that of TensorFlow 2.15, or Keras 3: that of
the Python that runs this.
"""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np

IS_3 = keras.__version__.startswith("3.")
program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
random = np.random.default_rng(31)
L, Input = keras.layers, keras.Input
N_FLAT, N_NESTED = 20, 8
N_MODELS = N_FLAT + N_NESTED


def predicted(made, x):
    """As `predict`, without compiling a function for one batch."""
    return np.asarray(made(x, training=False))


def number(low, high):
    return int(random.integers(low, high))


def activation():
    return str(random.choice(["linear", "relu", "tanh", "sigmoid", "elu", "softplus"]))


def flat(x):
    """A layer or two over rows."""
    choice = number(0, 6)
    if choice == 0:
        return L.BatchNormalization()(x)
    if choice == 1:
        return L.Concatenate()([x, L.Dense(number(1, 4))(x)])
    if choice == 2:
        inside = Input((x.shape[-1],))
        model = keras.Model(inside, L.BatchNormalization()(L.Dense(number(1, 5), use_bias=bool(number(0, 2)))(inside)))
        model.trainable = bool(number(0, 2))
        return model(x)
    if choice == 3:
        return L.Add()([x, L.Dense(x.shape[-1], activation=activation())(x)])
    if choice == 4:
        layers = [L.Dense(number(1, 5)), L.LayerNormalization(), L.BatchNormalization(), L.Dense(number(1, 5)), L.Dropout(0.2)]
        model = keras.Sequential([Input((x.shape[-1],)), *layers])
        for layer in layers:
            layer.trainable = bool(number(0, 3))
        return model(x)
    return L.Dense(number(1, 6), activation=activation(), use_bias=bool(number(0, 2)))(x)


def steps(x):
    """A layer over sequences."""
    choice = number(0, 7)
    if choice == 0:
        return L.Bidirectional(L.LSTM(number(1, 4), return_sequences=True), merge_mode=str(random.choice(["concat", "sum", "ave"])))(x)
    if choice == 1:
        return L.GRU(number(1, 4), return_sequences=True, reset_after=bool(number(0, 2)))(x)
    if choice == 2:
        return L.MultiHeadAttention(number(1, 3), number(1, 4), use_bias=bool(number(0, 2)))(x, x, use_causal_mask=bool(number(0, 2)))
    if choice == 3:
        return L.TimeDistributed(L.Dense(number(1, 4), activation=activation()))(x)
    if choice == 4:
        return L.RNN([L.LSTMCell(number(1, 4)), L.SimpleRNNCell(number(1, 4), use_bias=bool(number(0, 2)))], return_sequences=True)(x)
    if choice == 5:
        units = number(1, 4)
        read, *states = L.LSTM(units, return_sequences=True, return_state=True)(x)
        return L.LSTM(units, return_sequences=True)(read, initial_state=states)
    return L.Conv1D(number(1, 4), 2, padding="same", activation=activation())(x)


def images(x):
    choice = number(0, 5)
    if choice == 0:
        return L.BatchNormalization()(x)
    if choice == 1:
        return L.SeparableConv2D(number(1, 4), 3, padding="same")(x)
    if choice == 2:
        return L.DepthwiseConv2D(2, padding="same", depth_multiplier=number(1, 3))(x)
    if choice == 3:
        return L.Conv2DTranspose(number(1, 4), 2, padding="same")(x)
    return L.Conv2D(number(1, 4), number(1, 4), padding="same", activation=activation())(x)


def model(i):
    kind = i % 3
    x = start = Input([(number(2, 6),), (number(2, 5), number(1, 4)), (number(3, 6), number(3, 6), number(1, 3))][kind], name=f"in_{i}")
    for _ in range(number(1, 4)):
        x = [flat, steps, images][kind](x)
    if kind:
        x = L.Flatten()(x)
    for _ in range(number(0, 3)):
        x = flat(x)
    return keras.Model(start, L.Dense(2, name=f"end_{i}")(x), name=f"model_{i}")


def inside(depth):
    """A model of layers that have the same shapes, with others inside. Some layers are frozen, some models as a whole."""
    layers = [inside(depth - 1)] if depth else []
    for _ in range(number(1, 4)):
        layers.append(L.BatchNormalization() if number(0, 3) == 0 else L.Dense(4, trainable=bool(number(0, 2))))
    layers = [layers[i] for i in random.permutation(len(layers))]
    if number(0, 2):
        made = keras.Sequential([*([Input((4,))] if number(0, 2) else []), *layers])
    else:
        x = start = Input((4,))
        for layer in layers:
            x = layer(x)
        made = keras.Model(start, x)
    if number(0, 4) == 0:
        made.trainable = False
    return made


def nested(i):
    """A model with models inside, two deep or more, whose weights a legacy file lists by the flags of their layers."""
    start, inner, last = Input((4,), name=f"in_{i}"), inside(1 + i % 3), L.Dense(2, name=f"end_{i}")
    if i % 2:
        return keras.Sequential([start, inner, last], name=f"nested_{i}")
    return keras.Model(start, last(inner(start)), name=f"nested_{i}")


cases, models, expected = [], [], []
for i in range(N_MODELS):
    made = model(i) if i < N_FLAT else nested(i)
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    x = random.uniform(-1, 1, (5, *made.inputs[0].shape[1:])).astype(np.float32)
    made.save(folder / f"{i}.keras")
    made.save_weights(folder / f"{i}.weights.h5")
    made.save(folder / f"{i}.h5")
    cases.append({"name": str(i), "version": 3 if IS_3 else 2, "x": {"sizes": x.shape, "values": x.ravel().tolist()}})
    models.append((made, x))
    expected.append(predicted(made, x))
# Networks that people fine-tune: the weights, in the form of Keras' own files where it still writes it, and two whole networks.
A = keras.applications
NETWORKS = {
    "mobile_net_v2": lambda: A.MobileNetV2(weights=None, input_shape=(96, 96, 3), include_top=False, pooling="avg"),
    "resnet50": lambda: A.ResNet50(weights=None, input_shape=(64, 64, 3), classes=5, classifier_activation=None),
    "vgg16": lambda: A.VGG16(weights=None, input_shape=(33, 32, 3), classes=5),
    "inception_v3": lambda: A.InceptionV3(weights=None, input_shape=(75, 90, 3), classes=5, classifier_activation=None),
    "efficient_net_b0": lambda: A.EfficientNetB0(weights=None, input_shape=(65, 64, 3), classes=7, classifier_activation=None),
    "xception": lambda: A.Xception(weights=None, input_shape=(71, 75, 3), classes=5, classifier_activation=None),
    "dense_net121": lambda: A.DenseNet121(weights=None, input_shape=(64, 70, 3), include_top=False, pooling="max"),
}
# Those that are opened whole, Keras' files here and ours there: hundreds of layers.
WRITTEN = ["mobile_net_v2", "efficient_net_b0"]
# The networks of both versions have the same layers, so those of Keras 2 are enough for the others.
NETWORKS = {name: made() for name, made in NETWORKS.items() if not IS_3 or name in WRITTEN}


def weights_like(w):
    """Other weights. Moving statistics and biases begin at 0 and 1; other ones show whether they are where they belong. Kernels are
    random by He's rule, so that results depend on the images; larger ones make EfficientNet's depend on the last bit of a pixel."""
    if w.ndim < 2:
        return np.asarray(w * random.uniform(0.8, 1.2, w.shape) + 0.01, w.dtype)
    fan_in = np.prod(w.shape[:2] if w.shape[-1] == 1 else w.shape[:-1])
    return np.asarray(random.normal(0, np.sqrt(2 / fan_in), w.shape), w.dtype)


for name, made in NETWORKS.items():
    made.set_weights([weights_like(w) for w in made.get_weights()])
    for layer in made.layers:
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()  # the Normalization of Keras 3 computes with the numbers before `set_weights` otherwise
    file = f"{name}.weights.h5" if IS_3 else f"{name}_weights.h5"
    made.save_weights(folder / file)
    for suffix in (".keras", ".h5") if name in WRITTEN else ():
        made.save(folder / f"{name}{suffix}")
    low, high = (0, 255) if name == "efficient_net_b0" else (-1, 1)  # it has the scaling of pixels inside
    x = random.uniform(low, high, (2, *made.inputs[0].shape[1:])).astype(np.float32)
    x[1] *= 0.3
    cases.append({"name": name, "is_application": True, "is_written": name in WRITTEN, "version": 3 if IS_3 else 2, "file": file, "x": {"sizes": x.shape, "values": x.ravel().tolist()}})
    expected.append(predicted(made, x))
    depends = np.abs(expected[-1][0] - expected[-1][1]).max() / np.abs(expected[-1]).max()
    assert depends > 1e-2, (name, "has one result for two images", depends)
# A model that Keras trains on one batch, we on some more, and Keras on the rest, while it also trains on all of them alone.
O, S = keras.optimizers, keras.optimizers.schedules
N_BATCHES, N_OURS = 6, 2
EPSILON = 1e-4  # a smaller one would make the rounding of small gradients large
OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.02, clipvalue=0.5),
    "momentum": lambda: O.SGD(0.01, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda: O.Adam(0.01, global_clipnorm=1.0, epsilon=EPSILON),
    "amsgrad": lambda: O.Adam(0.01, amsgrad=True, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=2, epsilon=EPSILON),
    "adamw": lambda: O.AdamW(0.01, weight_decay=0.02, epsilon=EPSILON),
    "rmsprop": lambda: O.RMSprop(0.002, momentum=0.5, centered=True, epsilon=EPSILON),
    "adagrad": lambda: O.Adagrad(0.05),
    "adadelta": lambda: O.Adadelta(1.0, epsilon=EPSILON),
    "adamax": lambda: O.Adamax(0.01, epsilon=EPSILON),
    "ftrl": lambda: O.Ftrl(0.05),
    "lion": lambda: O.Lion(0.001),
    "adafactor": lambda: O.Adafactor(0.05),
    "exponential": lambda: O.Adam(S.ExponentialDecay(0.02, 2, 0.5, staircase=True), epsilon=EPSILON),
    "piecewise": lambda: O.SGD(S.PiecewiseConstantDecay([2, 4], [0.02, 0.01, 0.001]), momentum=0.5),
    "cosine": lambda: O.RMSprop(S.CosineDecay(0.001, 10, warmup_target=0.01, warmup_steps=3), epsilon=EPSILON),
}
if IS_3:
    OPTIMIZERS["nadam"] = lambda: O.Nadam(0.01, epsilon=EPSILON)  # tf.keras 2.15 forgets its product of momentums
else:
    OPTIMIZERS["legacy"] = lambda: O.legacy.SGD(0.02)  # tf.keras 2.15 forgets all else of legacy optimizers


def deep():
    """Layers whose weights Keras lists in orders of their own."""
    x = start = Input((4, 3))
    x = L.Bidirectional(L.LSTM(2, return_sequences=True))(x)
    # The result does not depend on the bias of keys, whose gradients are noise.
    x = L.MultiHeadAttention(2, 2, use_bias=False)(x, x, use_causal_mask=True)
    x = L.TimeDistributed(L.Dense(3, activation="tanh"))(x)
    x = L.Flatten()(x)
    x = keras.Sequential([Input((12,)), L.Dense(4, trainable=False), L.BatchNormalization(), L.Dense(3, activation="tanh")])(x)
    # A model that is frozen as a whole, as in transfer learning.
    base = keras.Sequential([Input((3,)), L.Dense(4, activation="tanh"), L.BatchNormalization()])
    base.trainable = False
    # Trained, with the statistics that it has. Keras 3 does not obey `training` in a whole model.
    fixed = keras.Sequential([Input((4,)), L.Dense(4, use_bias=False), L.BatchNormalization()])
    return keras.Model(start, L.Dense(1)(fixed(base(x), **({} if IS_3 else {"training": False}))))


def step(made, x, y):
    made.reset_metrics()
    made.run_eagerly = True  # to compile a function would take longer than the few steps
    return float(made.train_on_batch(x, y, return_dict=True)["loss"])


keras.utils.set_random_seed(31)
trained = {}
for name, optimizer in OPTIMIZERS.items():
    made = deep()
    made.compile(optimizer(), loss="mse", metrics=["mae"])
    data = [(random.uniform(-1, 1, (8, 4, 3)).astype(np.float32), random.uniform(-1, 1, (8, 1)).astype(np.float32)) for _ in range(N_BATCHES)]
    step(made, *data[0])
    made.save(folder / f"{name}.keras")
    batches = [{k: {"sizes": v.shape, "values": v.ravel().tolist()} for k, v in zip("xy", pair)} for pair in data[1:]]
    cases.append({"name": name, "version": 3 if IS_3 else 2, "n": N_OURS, "batches": batches})
    trained[name] = (data, [step(made, *pair) for pair in data[1:]], made.get_weights())
# Layers that learn from data before a training: terms, weights of terms, boundaries, moments.
WORDS = ["red", "blue", "green", "grün", "", "a b"]
PHRASES = ["Red, blue", "red  green!", "a RED tree", ""]
LEARNING = {
    "string": lambda: L.StringLookup(num_oov_indices=number(1, 4)),
    "string_masked": lambda: L.StringLookup(mask_token=""),
    "string_count": lambda: L.StringLookup(output_mode="count", max_tokens=9, pad_to_max_tokens=True),
    "string_tf_idf": lambda: L.StringLookup(output_mode="tf_idf", num_oov_indices=number(1, 4)),
    "string_tf_idf_padded": lambda: L.StringLookup(output_mode="tf_idf", max_tokens=9, pad_to_max_tokens=True),
    "integer": lambda: L.IntegerLookup(num_oov_indices=number(1, 4)),
    "integer_tf_idf": lambda: L.IntegerLookup(output_mode="tf_idf"),
    "text": lambda: L.TextVectorization(output_sequence_length=number(2, 6)),
    "text_tf_idf": lambda: L.TextVectorization(output_mode="tf_idf", ngrams=2),
    "bins": lambda: L.Discretization(num_bins=number(3, 9)),
    "normalization": lambda: L.Normalization(),
}


def learning(name):
    """The data of a layer, and the dtype of its input."""
    if name.startswith("text"):
        return random.choice(PHRASES, (30, 1)).astype(object), "string"
    # tf.keras 2.15 cannot count the documents of a term if a row has it twice.
    if name.startswith("string"):
        return np.array([random.permutation(WORDS)[:2] for _ in range(30)], object), "string"
    if name.startswith("integer"):
        return np.array([random.permutation(np.arange(-3, 4))[:2] for _ in range(30)]), "int64"
    return random.normal(size=(300, 3)).astype(np.float32), "float32"


def asked(values):
    """Values as TensorFlow takes them."""
    import tensorflow as tf

    return tf.constant(values.tolist()) if values.dtype == object else values


learned = {}
for name, layer in LEARNING.items():
    layer, (data, dtype) = layer(), learning(name)
    layer.adapt(asked(data[:20]))
    start = Input(data.shape[1:], dtype=dtype, name="x")
    made = keras.Model(start, layer(start), name=name)
    made.save(folder / f"learned_{name}.keras")
    x = data[-10:]
    sent = {"sizes": x.shape, "dtype": dtype, "texts" if x.dtype == object else "values": x.ravel().tolist()}
    cases.append({"name": f"learned_{name}", "is_learned": True, "version": 3 if IS_3 else 2, "x": sent})
    learned[name] = (made, x, predicted(made, asked(x)))
cases += [{"name": name, "version": 3 if IS_3 else 2} for name in ("own", "layers")]
(folder / "cases.json").write_text(json.dumps(cases))
subprocess.run([program, folder], check=True)
results = json.loads((folder / "results.json").read_text())

n_files = 0
FORMS = (".keras", ".h5")


def n_trained(made):
    return [tuple(w.shape) for w in made.trainable_weights]


def same(found, expected, place):
    global n_files
    assert found.shape == expected.shape, (place, found.shape, expected.shape)
    worst = (np.abs(found - expected) / np.maximum(np.abs(expected), 1)).max()
    assert worst < 1e-5, (place, worst)
    n_files += 1


for i, (made, x) in enumerate(models):
    assert len(results[i]) == 4, (i, "a file of Keras was not read")
    for j, found in enumerate(results[i]):
        same(np.array(found["values"], np.float32).reshape(found["sizes"]), expected[i], ("ours reads Keras'", i, j))
    for suffix in FORMS:
        ours = keras.models.load_model(folder / f"{i}_ours{suffix}")
        same(predicted(ours, x), expected[i], ("Keras reads our model", i, suffix))
        assert n_trained(ours) == n_trained(made), ("frozen layers", i, suffix)
    for file in (f"{i}_ours.weights.h5", f"{i}_ours_weights.h5"):
        made.set_weights([np.zeros_like(w) for w in made.get_weights()])
        made.load_weights(folder / file)
        same(predicted(made, x), expected[i], ("Keras reads our weights", file))
for i, name in enumerate(NETWORKS, N_MODELS):
    assert len(results[i]) == (3 if name in WRITTEN else 1), (name, len(results[i]))
    apart = 0
    for result in results[i]:
        found = np.array(result["values"], np.float32).reshape(result["sizes"])
        assert found.shape == expected[i].shape, (name, found.shape, expected[i].shape)
        apart = max(apart, np.abs(found - expected[i]).max() / np.abs(expected[i]).max())
    assert apart < 1e-4, (name, apart)
    for suffix in FORMS if name in WRITTEN else ():
        x = np.array(cases[i]["x"]["values"], np.float32).reshape(cases[i]["x"]["sizes"])
        again = predicted(keras.models.load_model(folder / f"{name}_ours{suffix}"), x)
        assert np.abs(again - expected[i]).max() < 1e-6, (name, suffix)
    print(f"  {name}: the largest difference is {apart:.1e} of the largest result")
worst = 0
for i, (name, (data, losses, weights)) in enumerate(trained.items(), N_MODELS + len(NETWORKS)):
    for suffix in FORMS:
        ours = keras.models.load_model(folder / f"{name}_ours{suffix}")
        if IS_3 and suffix == ".h5":
            continue  # opened; Keras 3 cannot train on with the state of a legacy file, not even with its own
        # tf.keras 2.15 keeps the steps of a legacy optimizer in `.h5` alone.
        n_steps = {".keras": 0, ".h5": N_OURS}[suffix] if name == "legacy" else 1 + N_OURS
        assert int(ours.optimizer.iterations) == n_steps, (name, suffix)
        on = [step(ours, *pair) for pair in data[1 + N_OURS :]]
        apart = [abs(a - b) for a, b in zip(results[i][0]["losses"] + on, losses + losses[N_OURS:])]
        apart += [np.abs(a - b).max() for a, b in zip(ours.get_weights(), weights)]
        assert max(apart) < 1e-4, (name, suffix, apart)
        worst = max(worst, *apart)
print(f"  {len(trained)} optimizers go on here and there: losses and weights differ by at most {worst:.1e}")
for i, (name, (made, x, expected_of_it)) in enumerate(learned.items(), N_MODELS + len(NETWORKS) + len(trained)):
    found = np.array(results[i][0]["values"], np.float32).reshape(results[i][0]["sizes"])
    same(found, expected_of_it.astype(np.float32), ("ours reads what Keras has learned", name))
    ours = keras.models.load_model(folder / f"learned_{name}_ours.keras")
    same(predicted(ours, asked(x)), expected_of_it, ("Keras reads what it had learned", name))
    if hasattr(ours.layers[-1], "get_vocabulary"):
        assert ours.layers[-1].get_vocabulary() == made.layers[-1].get_vocabulary(), name
    if name == "bins" and not IS_3:
        continue  # its weight there is a summary of the data, which we do not keep
    made.load_weights(folder / f"learned_{name}_ours.weights.h5")
    same(predicted(made, asked(x)), expected_of_it, ("Keras reads our weights", name))
print(f"  {len(learned)} layers have learned the same here and there")
for own in results[-2]:
    x, y = (np.array(own[k]["values"], np.float32).reshape(own[k]["sizes"]) for k in "xy")
    for file in own["files"]:
        logs = keras.models.load_model(folder / file).test_on_batch(x, y, return_dict=True)
        assert logs.keys() == own["logs"].keys(), (file, logs, own["logs"])
        for name, value in logs.items():
            assert abs(value - own["logs"][name]) < 1e-5 * max(1, abs(value)), (file, name, value, own["logs"][name])
print(f"  {len(results[-2])} models that were compiled here evaluate the same there")


def value(plain):
    """An array that we have written."""
    if "texts" in plain:
        return np.array(plain["texts"], object).reshape(plain["sizes"])
    return np.array(plain["values"], {"f32": np.float32, "i64": np.int64}[plain["dtype"]]).reshape(plain["sizes"])


kinds, refused = set(), []
for case in results[-1]:
    if "refused" in case:
        refused.append(case["refused"])
        continue
    made = keras.models.load_model(folder / case["file"])
    inputs = [asked(value(x)) for x in case["inputs"]]
    found = made(inputs if len(inputs) > 1 else inputs[0], training=False)
    found = [np.asarray(x) for x in (found if isinstance(found, (list, tuple)) else [found])]
    assert len(found) == len(case["results"]), (case["kind"], len(found), len(case["results"]))
    if IS_3 and case["kind"] == "random_crop":
        continue  # opened; Keras 3.15 does not crop outside of a training
    for theirs, ours in zip(found, map(value, case["results"])):
        if ours.dtype == object:
            assert (np.vectorize(bytes.decode)(theirs) == ours).all(), (case["kind"], theirs, ours)
        else:
            same(theirs.astype(np.float32), ours.astype(np.float32), (case["kind"], case["file"]))
    kinds.add(case["kind"])
print(f"  {len(results[-1]) - len(refused)} files of {len(kinds)} layers compute the same; {len(refused)} are refused:")
for text in refused:
    print("   ", text.split("\n")[0])
print(f"  Keras {keras.__version__}: {N_MODELS} models in {n_files} files predict the same here and there")
