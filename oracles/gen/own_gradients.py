"""Writes oracles/fixtures/own_gradients.jsonl: compute_gradients and apply_gradients of TensorFlow's optimizers.

Run as `python oracles/gen/own_gradients.py` in an environment with tensorflow 2.15. The keys of a case are its inputs,
`weight:<name>` before the first step, and after the last `after:<name>`, the slots of Adam `m:<name>` and `v:<name>`. Cases:

    alternating  a small GAN: in each step, first the discriminator (Adam) and then the generator (Adagrad) is trained
    together     the same, both in one run: both gradients are of the weights before it
    changed      a network whose gradients are clipped by value, and a constant added to them (Adam)
    rows         a table with gradients of rows, halved (Adam)
"""

import numpy as np
import tensorflow as tf

from fixture import Fixture

v1 = tf.compat.v1
v1.disable_eager_execution()
STEPS, SEED = 5, 21
random = np.random.RandomState(SEED)
fixture = Fixture(SEED)


def floats(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def adam():
    return v1.train.AdamOptimizer(0.05, beta1=0.5, epsilon=1e-7)


class Model:
    """A graph with its variables by name."""

    def __init__(self, name, **inputs):
        self.graph = tf.Graph()
        fixture.case(name, steps=STEPS)
        for key, value in inputs.items():
            fixture.put(key, value)
        self.variables = {}

    def variable(self, name, value):
        fixture.put(f"weight:{name}", value)
        self.variables[name] = v1.get_variable(name, initializer=value, use_resource=True)
        return self.variables[name]

    def train(self, runs, adam, slots):
        """Runs lists of ops, one after the other, in every step; then puts what they did."""
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(STEPS):
                for ops in runs:
                    session.run(ops)
            for name, variable in self.variables.items():
                fixture.put(f"after:{name}", session.run(variable))
            for name in slots:
                for slot in ("m", "v"):
                    fixture.put(f"{slot}:{name}", session.run(adam.get_slot(self.variables[name], slot)))


def gan(name):
    real, noise = floats(4, 3), floats(6, 2)
    model = Model(name, real=real, noise=noise)
    with model.graph.as_default():
        g1, g2 = model.variable("g1", floats(2, 3)), model.variable("g2", floats(3))
        d1, d2 = model.variable("d1", floats(3, 4)), model.variable("d2", floats(4, 1))
        logits = lambda x: tf.matmul(tf.tanh(tf.matmul(x, d1)), d2)
        fake = tf.tanh(tf.matmul(noise, g1) + g2)
        d_loss = tf.reduce_mean(tf.nn.softplus(-logits(real))) + tf.reduce_mean(tf.nn.softplus(logits(fake)))
        g_loss = tf.reduce_mean(tf.nn.softplus(-logits(fake)))
        d_adam, g_adagrad = adam(), v1.train.AdagradOptimizer(0.1, initial_accumulator_value=0.1)
        d_pairs = d_adam.compute_gradients(d_loss, [d1, d2])
        g_pairs = g_adagrad.compute_gradients(g_loss, [g1, g2])
        # In one run, nothing is written before all gradients are computed.
        first = [gradient for gradient, _ in d_pairs + g_pairs] if name == "together" else []
        with tf.control_dependencies(first):
            d_train, g_train = d_adam.apply_gradients(d_pairs), g_adagrad.apply_gradients(g_pairs)
        runs = [[d_train, g_train]] if name == "together" else [[d_train], [g_train]]
        model.train(runs, d_adam, ["d1", "d2"])


def changed():
    x, y, added = floats(5, 3), floats(5, 2), 0.01 * floats(3, 2)
    model = Model("changed", x=x, y=y, added=added)
    with model.graph.as_default():
        w, b = model.variable("w", floats(3, 2)), model.variable("b", floats(2))
        loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w) + b) - y))
        optimizer = adam()
        (gw, _), (gb, _) = optimizer.compute_gradients(loss, [w, b])
        clip = lambda gradient: tf.clip_by_value(gradient, -0.05, 0.05)
        train = optimizer.apply_gradients([(clip(gw) + added, w), (clip(gb), b)])
        model.train([[train]], optimizer, ["w", "b"])


def rows():
    ids, y = np.array([4, 0, 4, 2, 0, 4], np.int64), floats(6, 3)
    model = Model("rows", ids=ids, y=y)
    with model.graph.as_default():
        table = model.variable("table", floats(6, 3))
        loss = tf.reduce_sum(tf.square(tf.gather(table, ids) - y))
        optimizer = adam()
        ((gradient, _),) = optimizer.compute_gradients(loss, [table])
        halved = tf.IndexedSlices(0.5 * gradient.values, gradient.indices, gradient.dense_shape)
        model.train([[optimizer.apply_gradients([(halved, table)])]], optimizer, ["table"])


gan("alternating")
gan("together")
changed()
rows()
fixture.write("own_gradients", tf, np)
