"""Writes oracles/fixtures/applications.jsonl: the layers of `keras.applications`, without weights.

Run as `python oracles/gen/applications.py` in an environment with tensorflow 2.15. Of each network: its name, its number of weights,
and the names, classes and shapes of results and weights of its layers.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

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
]
for network, make, options in CASES:
    tf.keras.backend.clear_session()
    made = make(weights=None, **options)
    layers = [[layer.name, type(layer).__name__, [list(w.shape) for w in layer.weights]] for layer in made.layers]
    fixture.case(network, **options, model=made.name, params=made.count_params(), layers=layers, output=list(made.output.shape[1:]))
fixture.write("applications", tf)
