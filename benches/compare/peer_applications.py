"""The peers of `crates/estimand/benches/applications.rs`: the same networks, images and rounds.

    peer_applications.py keras|torch resnet50|mobile_net_v2|inception_v3 [ROUNDS]

PyTorch's networks are those of torchvision; without it, `torch` says so.
"""

import os
import resource
import sys
import time

import numpy as np

BATCH, SIZE = 8, 224
peer, name = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
random = np.random.default_rng(1)
images = random.uniform(-1, 1, (BATCH, SIZE, SIZE, 3)).astype(np.float32)
labels = np.arange(BATCH) * 37


def best(run):
    run()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times) * 1e3


def report(what, milliseconds):
    print(f"{name}_{what}_ms = {milliseconds:.1f}")
    print(f"{name}_{what}_mib = {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}", flush=True)


def keras():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    applications = tf.keras.applications
    make = {"resnet50": applications.ResNet50, "mobile_net_v2": applications.MobileNetV2, "inception_v3": applications.InceptionV3}[name]
    model = make(weights=None, input_shape=(SIZE, SIZE, 3))
    x, y = tf.constant(images), tf.constant(labels)
    forward = tf.function(lambda x: model(x, training=False))
    report("forward", best(lambda: forward(x).numpy()))
    model.compile(tf.keras.optimizers.SGD(0.0001, momentum=0.9), "sparse_categorical_crossentropy")
    report("step", best(lambda: model.train_on_batch(x, y)))


def torch():
    import torch

    try:
        import torchvision.models as models
    except ImportError:
        sys.exit("PyTorch is compared only where torchvision is installed")
    make = {"resnet50": models.resnet50, "mobile_net_v2": models.mobilenet_v2, "inception_v3": models.inception_v3}[name]
    options = dict(aux_logits=False, init_weights=False) if name == "inception_v3" else {}
    model = make(weights=None, **options).to(memory_format=torch.channels_last)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    y = torch.from_numpy(labels)
    model.eval()
    with torch.inference_mode():
        report("forward", best(lambda: model(x)))
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), 0.0001, momentum=0.9)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    report("step", best(step))


{"keras": keras, "torch": torch}[peer]()
