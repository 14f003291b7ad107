"""Models that `tf.saved_model.save` wrote must predict the same numbers here.

usage: saved_model_v2.py EXAMPLE_PROGRAM EMPTY_FOLDER [MODEL ...]

Saves modules and Keras models with seeded weights: dense, convolutional, recurrent and attention layers, lookups, text and
normalisation, nested functions, tables and loops. Random requests go through stock TensorFlow and through the example program (its
header describes the files). Floats are equal within RELATIVE and ABSOLUTE of saved_model.py, ids and text exactly. Signatures that
read what they change must be refused.
"""

import os
import subprocess
import sys

import numpy as np
import tensorflow as tf

from saved_model import difference, ours

keras = tf.keras
layers = keras.layers
SEED = 7
BATCHES = [1, 2, 0, 13]
WORDS = ["hello", "world", "the cat sat", "", "a", "b", "The DOG!", "zz", "größe", "c a b", "hello hello world a b c the cat sat on the mat"]


class Linear(tf.Module):
    """Two variables of one name, a function in a function, two signatures, and a result in a dictionary."""

    def __init__(self):
        super().__init__()
        self.first = tf.Variable(tf.random.stateless_normal([3, 2], [SEED, 0]), name="weights")
        self.second = tf.Variable(tf.random.stateless_normal([2], [SEED, 1]), name="weights")

    @tf.function
    def inner(self, x):
        return tf.matmul(x, self.first) + self.second

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def predict(self, x):
        return {"y": self.inner(x), "twice": 2.0 * self.inner(-x)}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([], tf.float32, name="factor")])
    def scaled(self, x, factor):
        return {"y": self.inner(x) * factor}

    def signatures(self):
        return {"serving_default": self.predict, "scaled": self.scaled}


class Tables(tf.Module):
    """Tables of tensors, of a file in assets, and one that was filled by hand."""

    def __init__(self, folder):
        super().__init__()
        path = os.path.join(folder, "words.txt")
        with open(path, "w") as file:
            file.write("hello\nworld\na\n")
        keys, values = tf.constant(["a", "b", "hello"]), tf.constant([10.0, -1.5, 4.0])
        self.numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0.5)
        whole, line = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        from_file = tf.lookup.TextFileInitializer(path, tf.string, whole, tf.int64, line)
        self.lines = tf.lookup.StaticVocabularyTable(from_file, num_oov_buckets=3)
        self.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -7)
        self.mutable.insert(tf.constant(["zz", "a", "b"]), tf.constant([5, 3, 900], tf.int64))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def predict(self, words):
        return {"number": self.numbers.lookup(words), "line": self.lines.lookup(words), "mutable": self.mutable.lookup(words)}

    def signatures(self):
        return {"serving_default": self.predict}


class Loops(tf.Module):
    """Loops whose number of steps depends on data, with variables and lists."""

    def __init__(self):
        super().__init__()
        self.matrix = tf.Variable(0.3 * tf.random.stateless_normal([3, 3], [SEED, 2]), name="matrix")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="steps")])
    def predict(self, x, steps):
        powers = tf.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, tf.matmul(y, self.matrix)), [tf.constant(0), x])[1]
        grown = tf.while_loop(lambda y: tf.reduce_sum(tf.abs(y)) < 100.0, lambda y: [2.0 * y + 1.0], [tf.reduce_sum(x, 0)])[0]
        triangle = tf.constant(0)
        for i in tf.range(steps):
            for j in tf.range(i):
                triangle += j
        sums = tf.TensorArray(tf.float32, 4, element_shape=[None])
        total = tf.reduce_sum(x, 1)
        for i in tf.range(4):
            total = total * 0.5 + tf.cast(i, tf.float32)
            sums = sums.write(i, total)
        return {"powers": powers, "grown": grown, "triangle": triangle, "sums": sums.stack()}

    def signatures(self):
        return {"serving_default": self.predict}


class Sums(tf.Module):
    """A loop with a list and a call, without variables."""

    @tf.function
    def half(self, x):
        return x * 0.5

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def predict(self, x):
        steps = tf.TensorArray(tf.float32, 3, element_shape=[None, 2])
        total = x
        for i in tf.range(3):
            total = self.half(total) + x
            steps = steps.write(i, total)
        return {"steps": steps.stack()}

    def signatures(self):
        return {"serving_default": self.predict}


class Branches(tf.Module):
    """Conditionals on data, in a loop too."""

    def __init__(self):
        super().__init__()
        self.matrix = tf.Variable([[1.0, 2.0], [-3.0, 0.5]], name="matrix")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x"), tf.TensorSpec([], tf.int32, name="steps")])
    def predict(self, x, steps):
        if tf.reduce_sum(x) > 0.0:
            y, sign = tf.matmul(x, self.matrix), 1
        else:
            y, sign = -x, -1
        count = tf.constant(0)
        while steps > 1:
            if steps % 2 == 0:
                steps = steps // 2
            else:
                steps = 3 * steps + 1
            count += 1
        return {"y": y, "sign": sign, "count": count}

    def signatures(self):
        return {"serving_default": self.predict}


class Counters(tf.Module):
    """Variables that a prediction changes and no output reads, in a loop and a conditional too."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(1.5, name="scale")
        self.calls = tf.Variable(0, name="calls")
        self.seen = tf.Variable(tf.zeros([2]), name="seen")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def predict(self, x):
        self.calls.assign_add(1)
        for i in tf.range(3):
            x = x * self.scale
            self.seen.scatter_nd_add([[i % 2]], [1.0])
        if tf.reduce_sum(x) > 0.0:
            self.calls.assign(self.calls + 2)
        return {"y": x}

    def signatures(self):
        return {"serving_default": self.predict}


class Training(tf.Module):
    """Batch normalizations that are called as in training. They read their averages for the next ones alone."""

    def __init__(self, layer, shape):
        super().__init__()
        self.layer = layer
        self.shape = shape

    def signatures(self):
        spec = tf.TensorSpec(self.shape, tf.float32, name="x")
        return {"serving_default": tf.function(lambda x: {"y": self.layer(x, training=True)}, input_signature=[spec])}


class Changed(tf.Module):
    """Signatures whose outputs read what they change. Ours refuses each; TensorFlow's answer is not that of the checkpoint."""

    def __init__(self):
        super().__init__()
        self.value = tf.Variable(5.0, name="value")
        self.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)
        self.layer = layers.LSTM(2, stateful=True)
        self.layer(tf.zeros([2, 3, 1]))
        self.table.insert(tf.constant([1], tf.int64), tf.constant([2], tf.int64))

    def assign(self, x):
        self.value.assign(4.0)
        return {"y": x + self.value}

    def loop(self, x):
        for _ in tf.range(3):
            self.value.assign_add(1.0)
        return {"y": x + self.value}

    def branch(self, x):
        if tf.reduce_sum(x) < 1.0:
            self.value.assign(9.0)
        return {"y": x + self.value}

    def insert(self, x):
        self.table.insert(tf.cast(x, tf.int64), tf.fill(tf.shape(x), tf.constant(7, tf.int64)))
        return {"y": self.table.lookup(tf.cast(x, tf.int64))}

    def state(self, x):
        return {"y": self.layer(tf.fill([2, 3, 1], x[0]))}

    def signatures(self):
        spec = tf.TensorSpec([None], tf.float32, name="x")
        methods = [self.assign, self.loop, self.branch, self.insert, self.state]
        return {method.__name__: tf.function(method, input_signature=[spec]) for method in methods}


def refused(program, folder):
    """(signatures that ours refuses, failures)."""
    target, x = os.path.join(folder, "changed"), np.zeros(2, np.float32)
    module = Changed()
    tf.saved_model.save(module, target, signatures=module.signatures())
    passed, failed = 0, []
    for name in module.signatures():
        done = subprocess.run([program, target, name], capture_output=True, text=True, check=False)
        good = done.returncode != 0 and "a prediction changes no variables" in done.stderr
        passed += good
        if not good:
            answer = tf.saved_model.load(target).signatures[name](x=tf.constant(x))
            failed.append(f"{name} is not refused, where TensorFlow answers {answer}: {done.stderr[-300:]}")
    return passed, failed


def sequential(*parts):
    return keras.Sequential(list(parts))


def text(**settings):
    layer = layers.TextVectorization(**settings)
    layer.adapt(["hello world", "the cat sat", "the dog", "a b c"])
    return layer


def normalization():
    layer = layers.Normalization()
    layer.adapt(np.random.RandomState(SEED).normal(3, 2, (50, 4)).astype("f"))
    return layer


def strings(shape=(1,)):
    return keras.Input(shape, dtype=tf.string)


def ids():
    return keras.Input([5], dtype=tf.int64)


def attention():
    query, value = keras.Input([5, 8], name="query"), keras.Input([None, 8], name="value")
    return keras.Model([query, value], layers.Attention(use_scale=True)([query, value]))


def multi_head():
    x = keras.Input([None, 8])
    y = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    y = layers.Add()([y, layers.EinsumDense("...x,xy->...y", output_shape=8, activation="gelu")(y)])
    return keras.Model(x, layers.GlobalMaxPooling1D()(y))


def functional():
    """Two inputs, a shared layer, two outputs."""
    number, word = keras.Input([4], name="number"), strings()
    shared = layers.Dense(3, activation="tanh")
    known = layers.StringLookup(vocabulary=["a", "b", "hello"], num_oov_indices=2)(word)
    embedded = layers.Flatten()(layers.Embedding(8, 4)(known))
    joined = layers.Concatenate()([shared(number), shared(embedded)])
    classes = layers.Dense(3, activation="softmax", name="classes")(joined)
    return keras.Model({"number": number, "word": word}, {"classes": classes, "score": layers.Dense(1, name="score")(joined)})


def image():
    x = keras.Input([9, 9, 3])
    y = layers.Rescaling(1 / 127.5, offset=-1)(x)
    y = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(y)))
    y = layers.Add()([y, layers.SeparableConv2D(4, 3, padding="same")(layers.ZeroPadding2D(0)(y))])
    y = layers.MaxPooling2D(2, padding="same")(layers.LeakyReLU(0.2)(y))
    y = layers.UpSampling2D(2)(layers.Conv2DTranspose(2, 2)(y))
    return keras.Model(x, layers.Dense(2, "sigmoid")(layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(y))))


def dilated(height, width):
    """TensorFlow writes a dilated convolution as a plain one between SpaceToBatchND and BatchToSpaceND."""
    x = keras.Input([height, width, 3])
    same = layers.Conv2D(4, 3, dilation_rate=2, padding="same", activation="relu")(x)
    valid = layers.Conv2D(2, (3, 2), dilation_rate=(2, 3))(layers.ZeroPadding2D(2)(same))
    return keras.Model(x, {"same": layers.Add()([same, layers.Conv2D(4, 1)(x)]), "valid": valid})


def dilated_steps(n):
    """The layers of a WaveNet, and the other paddings."""
    x = keras.Input([n, 3])
    y = layers.Conv1D(4, 2, dilation_rate=2, padding="causal", activation="tanh")(x)
    y = layers.Add()([y, layers.Conv1D(4, 3, dilation_rate=4, padding="causal")(y)])
    valid = layers.Conv1D(2, 2, dilation_rate=3)(layers.ZeroPadding1D(2)(y))
    return keras.Model(x, {"causal": y, "same": layers.Conv1D(2, 3, dilation_rate=2, padding="same")(y), "valid": valid})


# The models that Keras saves, by name.
KERAS = {
    "dense": lambda: sequential(keras.Input([4]), layers.Dense(5, activation="relu"), layers.Dense(2, activation="softmax")),
    "normalization": lambda: sequential(keras.Input([4]), normalization(), layers.Dense(2, activation="elu")),
    "functional": functional,
    "image": image,
    "conv1d": lambda: sequential(keras.Input([10, 3]), layers.Conv1D(4, 3), layers.LayerNormalization(), layers.Flatten(), layers.Dense(2, "gelu")),
    "dilated": lambda: dilated(9, 8),
    "dilated_any_size": lambda: dilated(None, None),
    "dilated_steps": lambda: dilated_steps(9),
    "dilated_any_steps": lambda: dilated_steps(None),
    "embedding": lambda: sequential(ids(), layers.Embedding(10, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)),
    "masked_mean": lambda: sequential(ids(), layers.Embedding(10, 4, mask_zero=True), layers.GlobalAveragePooling1D()),
    "attention": attention,
    "multi_head": multi_head,
    "multi_hot": lambda: sequential(strings((3,)), layers.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot"), layers.Dense(2)),
    "count": lambda: sequential(strings((3,)), layers.StringLookup(vocabulary=["a", "b"], output_mode="count"), layers.Dense(2)),
    "text_ids": lambda: sequential(strings(), text(output_sequence_length=6), layers.Embedding(20, 3), layers.GlobalAveragePooling1D()),
    "text_counts": lambda: sequential(strings(), text(output_mode="count"), layers.Dense(2)),
    "text_tf_idf": lambda: sequential(strings(), text(output_mode="tf_idf"), layers.Dense(2)),
    "lstm": lambda: sequential(keras.Input([6, 3]), layers.LSTM(4), layers.Dense(1)),
    "lstm_of_lstm": lambda: sequential(keras.Input([None, 3]), layers.LSTM(4, return_sequences=True), layers.LSTM(3), layers.Dense(1)),
    "masked_lstm": lambda: sequential(ids(), layers.Embedding(10, 4, mask_zero=True), layers.LSTM(4), layers.Dense(1)),
    "gru": lambda: sequential(keras.Input([6, 3]), layers.GRU(4), layers.Dense(1)),
    "gru_steps": lambda: sequential(keras.Input([None, 3]), layers.GRU(4, return_sequences=True, reset_after=False)),
    "both_directions": lambda: sequential(keras.Input([None, 3]), layers.Bidirectional(layers.LSTM(4, return_sequences=True)), layers.GRU(2)),
    "simple_rnn": lambda: sequential(keras.Input([6, 3]), layers.SimpleRNN(4)),
    "text_lstm": lambda: sequential(strings(), text(), layers.Embedding(20, 3, mask_zero=True), layers.LSTM(4), layers.Dense(1, "sigmoid")),
}
MODULES = {"linear": lambda folder: Linear(), "tables": Tables, "loops": lambda folder: Loops(), "sums": lambda folder: Sums(), "branches": lambda folder: Branches(), "counters": lambda folder: Counters(),
           "trained": lambda folder: Training(layers.BatchNormalization(), [None, 3]),
           "trained_images": lambda folder: Training(layers.BatchNormalization(), [None, 4, 4, 3])}


def save(name, folder, target):
    """Saves a model into a folder."""
    keras.utils.set_random_seed(SEED)
    keras.backend.clear_session()
    if name in MODULES:
        module = MODULES[name](folder)
        tf.saved_model.save(module, target, signatures=module.signatures())
        return
    model = KERAS[name]()
    # Weights away from zeros and ones, so that none can be mistaken for another.
    rng = np.random.RandomState(SEED)
    for variable in model.trainable_variables:
        variable.assign(rng.uniform(0.1, 0.9, variable.shape) * rng.choice([-1, 1], variable.shape))
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.moving_mean.assign(rng.uniform(-1, 1, layer.moving_mean.shape))
            layer.moving_variance.assign(rng.uniform(0.5, 1.5, layer.moving_variance.shape))
    tf.saved_model.save(model, target)


def request(signature, rows, rng):
    """Random values for the inputs of a signature."""
    values = {}
    for key, spec in signature.structured_input_signature[1].items():
        width = rng.randint(1, 9)
        shape = [rows if axis == 0 else width if size is None else size for axis, size in enumerate(spec.shape)]
        if spec.dtype == tf.string:
            chosen = [WORDS[i].encode() for i in rng.randint(0, len(WORDS), int(np.prod(shape)))]
            values[key] = np.array(chosen, dtype=object).reshape(shape)
        elif spec.dtype == tf.int32:
            values[key] = np.int32(rng.randint(0, 7))
        elif spec.dtype == tf.int64:
            values[key] = rng.randint(0, 10, shape)
        else:
            values[key] = rng.normal(0, 2, shape).astype(np.float32)
    return values


def check(program, path, folder):
    """(requests that passed, failures) of one model."""
    passed, failed = 0, []
    for name, signature in tf.saved_model.load(path).signatures.items():
        rng = np.random.RandomState(SEED)
        requests = [request(signature, n, rng) for n in BATCHES]
        for n, inputs, mine in zip(BATCHES, requests, ours(program, path, name, requests, folder)):
            try:
                expected = signature(**{key: tf.constant(value) for key, value in inputs.items()})
            except tf.errors.InvalidArgumentError as error:
                # TensorFlow cannot compute some models on no rows.
                why = None if n == 0 else f"TensorFlow refuses: {str(error)[:200]}"
            else:
                why = difference(mine, {key: value.numpy() for key, value in expected.items()})
            passed += why is None
            if why:
                failed.append(f"{name}, {n} rows: {why}")
    return passed, failed


def main():
    program, folder = sys.argv[1:3]
    passed, failed = 0, 0
    for name in sys.argv[3:] or [*MODULES, *KERAS]:
        target = os.path.join(folder, name)
        save(name, folder, target)
        good, bad = check(program, target, folder)
        passed, failed = passed + good, failed + len(bad)
        for line in bad:
            print(f"{name}: {line}")
    good, bad = refused(program, folder)
    passed, failed = passed + good, failed + len(bad)
    for line in bad:
        print(f"changed: {line}")
    print(f"{passed} requests passed, {failed} failed")
    sys.exit(bool(failed) or passed == 0)


if __name__ == "__main__":
    main()
