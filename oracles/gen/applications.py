"""Writes oracles/fixtures/applications.jsonl: `keras.applications`, without weights.

Run as `python oracles/gen/applications.py` in an environment with tensorflow 2.15. Of each network: its name, its number of weights,
and the names, classes and shapes of results and weights of its layers; the file of ImageNet's weights that Keras would fetch. Then
`preprocess_input` of all networks and `decode_predictions` with names of our own.
"""

import json
import os
import pathlib
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from keras.src.applications import imagenet_utils
from keras.src.utils import data_utils

from fixture import Fixture

A = tf.keras.applications
fixture = Fixture(seed=0)
CASES = [
    ("mobile_net_v2", A.MobileNetV2, dict()),
    ("mobile_net_v2", A.MobileNetV2, dict(input_shape=(97, 128, 3), alpha=0.35, include_top=False)),
    ("mobile_net_v2", A.MobileNetV2, dict(input_shape=(96, 96, 1), alpha=1.4, classes=7)),
    ("resnet50", A.ResNet50, dict()),
    ("resnet50", A.ResNet50, dict(input_shape=(65, 40, 3), include_top=False, pooling="max")),
    ("resnet50", A.ResNet50, dict(input_shape=(32, 32, 3), include_top=False, pooling="avg")),
    ("vgg16", A.VGG16, dict(input_shape=(48, 32, 3), include_top=False)),
    ("vgg16", A.VGG16, dict(input_shape=(32, 32, 3), include_top=False, pooling="avg")),
    ("vgg16", A.VGG16, dict(input_shape=(32, 32, 3), classes=10)),
    ("inception_v3", A.InceptionV3, dict()),
    ("inception_v3", A.InceptionV3, dict(input_shape=(75, 120, 3), include_top=False, pooling="avg")),
    ("efficient_net_b0", A.EfficientNetB0, dict(classes=5)),
    ("efficient_net_b0", A.EfficientNetB0, dict(input_shape=(65, 96, 3), include_top=False, pooling="max")),
    ("efficient_net_b0", A.EfficientNetB0, dict(input_shape=(32, 32, 1), include_top=False)),
    ("xception", A.Xception, dict()),
    ("xception", A.Xception, dict(input_shape=(71, 90, 3), include_top=False, pooling="max")),
    ("dense_net121", A.DenseNet121, dict()),
    ("dense_net121", A.DenseNet121, dict(input_shape=(40, 64, 3), include_top=False, pooling="avg")),
]
for network, make, options in CASES:
    tf.keras.backend.clear_session()
    made = make(weights=None, **options)
    layers = [[layer.name, type(layer).__name__, [list(w.shape) for w in layer.weights]] for layer in made.layers]
    fixture.case(network, **options, model=made.name, params=made.count_params(), layers=layers, output=list(made.output.shape[1:]))


class Asked(Exception):
    """The file that Keras wants to fetch."""


def ask(fname, origin, cache_subdir, file_hash=None):
    raise Asked(fname, origin, file_hash)


data_utils.get_file = ask
FILES = [(network, make, dict(include_top=top)) for network, make in dict((n, m) for n, m, _ in CASES).items() for top in (True, False)] + [
    ("mobile_net_v2", A.MobileNetV2, dict(include_top=True, input_shape=(96, 96, 3), alpha=0.35)),
    ("mobile_net_v2", A.MobileNetV2, dict(include_top=False, input_shape=(160, 160, 3), alpha=1.4)),
    ("mobile_net_v2", A.MobileNetV2, dict(include_top=False, input_shape=(97, 160, 3))),
]
for network, make, options in FILES:
    tf.keras.backend.clear_session()
    try:
        make(weights="imagenet", **options)
    except Asked as asked:
        name, address, digest = asked.args
        fixture.case("file", network=network, **options, file=name, address=address, md5=digest)

random = np.random.default_rng(5)
images = random.integers(0, 256, (2, 3, 4, 3)).astype(np.float32)
MODULES = {
    "dense_net121": A.densenet,
    "efficient_net_b0": A.efficientnet,
    "inception_v3": A.inception_v3,
    "mobile_net_v2": A.mobilenet_v2,
    "resnet50": A.resnet50,
    "vgg16": A.vgg16,
    "xception": A.xception,
}
for network, module in MODULES.items():
    for kind, x in [("array", images), ("array", images[0]), ("symbol", tf.constant(images))]:
        result = module.preprocess_input(np.copy(x) if kind == "array" else x)
        fixture.case("preprocess", network=network, kind=kind, pixels=np.asarray(x), result=np.asarray(result))

# Names of our own: Keras fetches its file, which is not ours to ship.
names = {str(i): [f"n{i:08d}", f"class_{i}"] for i in range(1000)}
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "names.json")
    path.write_text(json.dumps(names))
    data_utils.get_file = lambda *_, **__: str(path)
    scores = random.permutation(3000).reshape(3, 1000).astype(np.float32) / 3000
    for top in (1, 5, 1000):
        decoded = imagenet_utils.decode_predictions(scores, top=top)
        shown = [[[c, name, float(score)] for c, name, score in row[:7]] for row in decoded]
        fixture.case("decode", top=top, scores=scores, decoded=shown, n=[len(row) for row in decoded])
fixture.write("applications", tf)
