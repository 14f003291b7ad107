"""The models of `crates/estimand/benches/keras.rs` in tf.keras, or in PyTorch: milliseconds a step of fit.

    peer_keras.py keras|torch
"""

import sys
import time

import numpy as np

RUNS = [("mlp", (784,), 12_800, 3), ("cnn", (28, 28, 1), 2_560, 2), ("lstm", (40, 32), 5_120, 2)]
BATCH = 128


def with_keras():
    import tensorflow as tf

    layers = tf.keras.layers
    models = {
        "mlp": lambda: [layers.Dense(512, activation="relu"), layers.Dense(10, activation="softmax")],
        "cnn": lambda: [layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2), layers.Conv2D(64, 3, activation="relu"),
                        layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(10, activation="softmax")],
        "lstm": lambda: [layers.LSTM(64), layers.Dense(10, activation="softmax")],
    }

    def make(name, row):
        model = tf.keras.Sequential([tf.keras.Input(row), *models[name]()])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return lambda x, y, epochs: model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0)

    return make


def with_torch():
    import torch
    from torch import nn

    torch.set_num_threads(2)

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 10)

        def forward(self, x):
            return self.out(self.lstm(x)[0][:, -1])

    models = {
        "mlp": lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)),
        "cnn": lambda: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                     nn.Flatten(), nn.Linear(1600, 10)),
        "lstm": Lstm,
    }

    def make(name, _row):
        model, loss = models[name](), nn.CrossEntropyLoss()
        adam = torch.optim.Adam(model.parameters())

        def fit(x, y, epochs):
            x, y = torch.from_numpy(np.moveaxis(x, -1, 1).copy() if name == "cnn" else x), torch.from_numpy(y)
            for _ in range(epochs):
                order, right = torch.randperm(len(x)), 0
                for rows in order.split(BATCH):
                    adam.zero_grad()
                    logits = model(x[rows])
                    error = loss(logits, y[rows])
                    error.backward()
                    adam.step()
                    right += (logits.argmax(1) == y[rows]).sum().item()

        return fit

    return make


make = {"keras": with_keras, "torch": with_torch}[sys.argv[1]]()
for name, row, n, epochs in RUNS:
    x = np.random.default_rng(0).random((n, *row), dtype=np.float32)
    y = (np.arange(n) * 7 % 10).astype(np.int64)
    fit = make(name, row)
    fit(x, y, 1)
    started = time.perf_counter()
    fit(x, y, epochs)
    print(f"{name}_ms = {(time.perf_counter() - started) * 1e3 / (n // BATCH * epochs):.3f}", flush=True)
