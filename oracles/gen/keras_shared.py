"""Writes oracles/fixtures/keras_shared.jsonl: models of tf.keras that train the same weights, in turns.

Run as `python oracles/gen/keras_shared.py` in an environment with tensorflow 2.15. Cases:

    gan         a discriminator that trains alone, and inside of a model with a generator, where it is frozen: the first weights of both, the
                batches `noise` and `real`, and after each round the losses and at the end all weights
    encoder     two models of the same symbolic values: an autoencoder and its encoder, each with its own optimizer: rows `x` and `codes`, the
                first weights, the losses of each fit, the encoder's predictions after each, all weights at the end
"""

import numpy as np
import tensorflow as tf

from fixture import Fixture

SEED = 31
keras, L = tf.keras, tf.keras.layers
rng = np.random.default_rng(SEED)
floats = lambda *sizes: rng.uniform(-1, 1, sizes).astype(np.float32)


def begin(model):
    """Weights that differ from those of the initializers. Variances stay positive."""
    model.set_weights([np.abs(floats(*w.shape)) + 0.1 if "variance" in w.name else floats(*w.shape) for w in model.weights])
    return {f"{model.name}:{i}": w for i, w in enumerate(model.get_weights())}


def gan(fixture):
    generator = keras.Sequential([keras.Input((2,)), L.Dense(4, activation="tanh"), L.Dense(3)], name="generator")
    judge = keras.Sequential([keras.Input((3,)), L.Dense(4), L.BatchNormalization(), L.LeakyReLU(0.2), L.Dense(1)], name="judge")
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    judge.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
    judge.trainable = False
    both = keras.Sequential([generator, judge], name="both")
    both.compile(keras.optimizers.RMSprop(0.01), loss)
    first = begin(generator) | begin(judge)
    noise, real = floats(5, 8, 2), floats(5, 8, 3)
    losses = []
    for z, x in zip(noise, real):
        rows = np.concatenate([x, generator.predict(z, verbose=0)])
        labels = np.concatenate([np.ones((8, 1)), np.zeros((8, 1))]).astype(np.float32)
        of_judge = judge.train_on_batch(rows, labels)
        losses.append([float(of_judge), float(both.train_on_batch(z, np.ones((8, 1), np.float32)))])
    last = {f"last {model.name}:{i}": w for model in (generator, judge) for i, w in enumerate(model.get_weights())}
    fixture.case("gan", noise=noise, real=real, losses=np.array(losses, np.float32), **first, **last)


def encoder(fixture):
    x = keras.Input((4,))
    code = L.Dense(2, activation="tanh", name="code")(x)
    whole = keras.Model(x, L.Dense(4, name="decoded")(code), name="whole")
    part = keras.Model(x, code, name="part")
    whole.compile(keras.optimizers.SGD(0.1), "mse")
    part.compile(keras.optimizers.SGD(0.2, momentum=0.5), "mse")
    first, rows, codes = begin(whole), floats(12, 4), floats(12, 2) * 0.5
    losses, predicted = [], []
    for _ in range(3):
        losses.append([model.fit(rows, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"][1]
                       for model, y in ((whole, rows), (part, codes))])
        predicted.append(part.predict(rows, verbose=0))
    last = {f"last whole:{i}": w for i, w in enumerate(whole.get_weights())}
    fixture.case("encoder", x=rows, codes=codes, losses=np.array(losses, np.float32), predicted=np.array(predicted), **first, **last)


def main():
    fixture = Fixture(SEED)
    gan(fixture)
    encoder(fixture)
    fixture.write("keras_shared", tf, np)


if __name__ == "__main__":
    main()
