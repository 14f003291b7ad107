"""Random models that Keras saves are opened here and predict the same; what we save, Keras opens, and it predicts the same.

    keras_files.py PROGRAM FOLDER        (PROGRAM: keras_files_exchange; FOLDER: an empty folder to exchange files in)

Keras is that of TensorFlow 2.15; run by hand with a Python that has Keras 3, it is that.
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
N_MODELS = 20


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
        return keras.Model(inside, L.BatchNormalization()(L.Dense(number(1, 5), use_bias=bool(number(0, 2)))(inside)))(x)
    if choice == 3:
        return L.Add()([x, L.Dense(x.shape[-1], activation=activation())(x)])
    if choice == 4:
        return keras.Sequential([Input((x.shape[-1],)), L.Dense(number(1, 5)), L.LayerNormalization(), L.Dropout(0.2)])(x)
    return L.Dense(number(1, 6), activation=activation(), use_bias=bool(number(0, 2)))(x)


def steps(x):
    """A layer over sequences."""
    choice = number(0, 6)
    if choice == 0:
        return L.Bidirectional(L.LSTM(number(1, 4), return_sequences=True), merge_mode=str(random.choice(["concat", "sum", "ave"])))(x)
    if choice == 1:
        return L.GRU(number(1, 4), return_sequences=True, reset_after=bool(number(0, 2)))(x)
    if choice == 2:
        return L.MultiHeadAttention(number(1, 3), number(1, 4), use_bias=bool(number(0, 2)))(x, x)
    if choice == 3:
        return L.TimeDistributed(L.Dense(number(1, 4), activation=activation()))(x)
    if choice == 4:
        return L.RNN([L.LSTMCell(number(1, 4)), L.SimpleRNNCell(number(1, 4), use_bias=bool(number(0, 2)))], return_sequences=True)(x)
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


cases, models, expected = [], [], []
for i in range(N_MODELS):
    made = model(i)
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    x = random.uniform(-1, 1, (5, *made.inputs[0].shape[1:])).astype(np.float32)
    made.save(folder / f"{i}.keras")
    made.save_weights(folder / f"{i}.weights.h5")
    if not IS_3:
        made.save(folder / f"{i}.h5")
    cases.append({"name": str(i), "version": 3 if IS_3 else 2, "x": {"sizes": x.shape, "values": x.ravel().tolist()}})
    models.append((made, x))
    expected.append(np.asarray(made.predict(x, verbose=0)))
# Networks that people fine-tune: only the weights, in the form of Keras' own files where it still writes it.
A = keras.applications
NETWORKS = {
    "mobile_net_v2": A.MobileNetV2(weights=None, input_shape=(96, 96, 3), classes=10),
    "resnet50": A.ResNet50(weights=None, input_shape=(64, 64, 3), include_top=False, pooling="avg"),
    "vgg16": A.VGG16(weights=None, input_shape=(48, 32, 3), include_top=False, pooling="max"),
    "inception_v3": A.InceptionV3(weights=None, input_shape=(75, 90, 3), include_top=False, pooling="avg"),
    "efficient_net_b0": A.EfficientNetB0(weights=None, input_shape=(65, 64, 3), classes=7),
    "xception": A.Xception(weights=None, input_shape=(71, 75, 3), include_top=False, pooling="max"),
    "dense_net121": A.DenseNet121(weights=None, input_shape=(64, 48, 3), classes=4, classifier_activation=None),
}
for name, made in NETWORKS.items():
    # Moving statistics and biases begin at 0 and 1; other ones show whether they are where they belong.
    made.set_weights([np.asarray(w * random.uniform(0.8, 1.2, w.shape) + 0.01, w.dtype) for w in made.get_weights()])
    file = f"{name}.weights.h5" if IS_3 else f"{name}_weights.h5"
    made.save_weights(folder / file)
    x = random.uniform(-1, 1, (2, *made.inputs[0].shape[1:])).astype(np.float32)
    cases.append({"name": name, "is_application": True, "file": file, "x": {"sizes": x.shape, "values": x.ravel().tolist()}})
    expected.append(np.asarray(made.predict(x, verbose=0)))
(folder / "cases.json").write_text(json.dumps(cases))
subprocess.run([program, folder], check=True)
results = json.loads((folder / "results.json").read_text())

n_files = 0


def same(found, expected, place):
    global n_files
    assert found.shape == expected.shape, (place, found.shape, expected.shape)
    worst = (np.abs(found - expected) / np.maximum(np.abs(expected), 1)).max()
    assert worst < 1e-5, (place, worst)
    n_files += 1


for i, (made, x) in enumerate(models):
    for j, found in enumerate(results[i]):
        same(np.array(found["values"], np.float32).reshape(found["sizes"]), expected[i], ("ours reads Keras'", i, j))
    same(np.asarray(keras.models.load_model(folder / f"{i}_ours.keras").predict(x, verbose=0)), expected[i], ("Keras reads our model", i))
    made.set_weights([np.zeros_like(w) for w in made.get_weights()])
    made.load_weights(folder / f"{i}_ours.weights.h5")
    same(np.asarray(made.predict(x, verbose=0)), expected[i], ("Keras reads our weights", i))
for i, name in enumerate(NETWORKS, N_MODELS):
    found = np.array(results[i][0]["values"], np.float32).reshape(results[i][0]["sizes"])
    assert found.shape == expected[i].shape, (name, found.shape, expected[i].shape)
    apart = np.abs(found - expected[i]).max() / np.abs(expected[i]).max()
    assert apart < 1e-4, (name, apart)
    print(f"  {name}: the largest difference is {apart:.1e} of the largest result")
print(f"  Keras {keras.__version__}: {N_MODELS} models in {n_files} files predict the same here and there")
