"""Writes oracles/fixtures/pipelines.jsonl: what tf.data makes of small pipelines.

Run as `python oracles/gen/pipelines.py` in an environment with tensorflow 2.15. Cases:

    plan        `steps`, lists of words, work on a stack of datasets, as a pocket calculator does; their `elements`, each {feature: nested
                lists}, of which the last is "error" where tf.data refuses
    input_fn    the `batches` that numpy_input_fn makes of the rows 0, 1, ..., not shuffled; the first 9 of them

Sources push a dataset, `zip n`, `concatenate`, `interleave n cycle block` take theirs off the stack, the others change the
top. `range a 3 7` has the rows 3, 4, 5, 6 of feature a; `ragged a 3 7` has in row i the i % 4 numbers from 10 i on.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

random = np.random.default_rng(4)
fixture = Fixture(seed=4)


def ragged_row(i):
    return tf.range(10 * i, 10 * i + i % 4)


def stretch(number, element):
    """The number of an element; of a batch, once for each of its rows, as our batches need it."""
    first = next(iter(element.values()))
    return number if first.shape.rank == 0 else tf.fill([tf.shape(first)[0]], number)


def step(stack, op, *args):
    if op == "range":
        name, lo, hi = args
        stack.append(tf.data.Dataset.range(int(lo), int(hi)).map(lambda v: {name: v}))
    elif op == "ragged":
        name, lo, hi = args
        stack.append(tf.data.Dataset.range(int(lo), int(hi)).map(lambda v: {name: ragged_row(v)}))
    elif op == "zip":
        parts = [stack.pop() for _ in range(int(args[0]))][::-1]
        stack.append(tf.data.Dataset.zip(tuple(parts)).map(lambda *all: {k: v for one in all for k, v in one.items()}))
    elif op == "concatenate":
        second = stack.pop()
        stack.append(stack.pop().concatenate(second))
    elif op == "interleave":
        n, cycle, block = map(int, args)
        parts = [stack.pop() for _ in range(n)][::-1]
        nested = tf.data.Dataset.from_tensors(parts[0])
        for part in parts[1:]:
            nested = nested.concatenate(tf.data.Dataset.from_tensors(part))
        stack.append(nested.interleave(lambda part: part, cycle_length=cycle, block_length=block))
    else:
        stack.append(unary(stack.pop(), op, *args))


def unary(data, op, *args):
    drop = args[-1:] == ("drop",)
    if op == "enumerate":
        name, start = args
        return data.enumerate(int(start)).map(lambda i, e: {**e, name: stretch(i, e)})
    if op == "batch":
        return data.batch(int(args[0]), drop_remainder=drop)
    if op == "ragged_batch":
        return data.ragged_batch(int(args[0]), drop_remainder=drop)
    if op == "padded_batch":
        # padded_batch n (keep|drop) [feature size value]...; size `-` is the longest row of the batch
        n, given = int(args[0]), args[2:]
        drop = args[1] == "drop"
        shapes, values = {}, {}
        for name, spec in data.element_spec.items():
            shapes[name], values[name] = [None] * spec.shape.rank, np.int64(0)
        for name, size, value in zip(given[::3], given[1::3], given[2::3]):
            shapes[name], values[name] = [None if size == "-" else int(size)], np.int64(value)
        return data.padded_batch(n, shapes, values, drop_remainder=drop)
    if op == "window":
        size, shift, stride = map(int, args[:3])
        windows = data.window(size, shift, stride, drop_remainder=drop)
        name = next(iter(data.element_spec))
        return windows.flat_map(lambda w: w[name].batch(size)).map(lambda v: {name: v})
    if op == "bucket":
        # bucket <feature> <boundaries> <batch sizes> (pad|boundary) (keep|drop)
        boundaries, sizes = ([int(v) for v in arg.split(",")] for arg in args[1:3])
        return data.bucket_by_sequence_length(
            lambda e: tf.shape(e[args[0]])[0], boundaries, sizes, pad_to_bucket_boundary=args[3] == "boundary",
            drop_remainder=drop)
    simple = {"unbatch": lambda: data.unbatch(), "take": data.take, "skip": data.skip, "repeat": data.repeat,
              "shard": data.shard}
    return simple[op](*map(int, args))


def plain(value):
    value = value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()
    return value


def word(op, i, text):
    """A word of a step: a list of numbers, a number, nothing, or itself."""
    if op == "bucket" and i in (2, 3):
        return [int(v) for v in text.split(",")]
    return None if text == "-" else int(text) if text.lstrip("-").isdigit() else text


def plan(text):
    elements, stack = [], []
    for one in text.split("; "):
        step(stack, *one.split())
    (data,) = stack
    try:
        for n, element in enumerate(data):
            assert n < 200, text
            elements.append({k: plain(v) for k, v in element.items()})
    except tf.errors.OpError:
        elements.append("error")
    words = [one.split() for one in text.split("; ")]
    fixture.case("plan", steps=[[word(one[0], i, w) for i, w in enumerate(one)] for one in words], elements=elements)


def by_hand():
    plan("range a 0 5; range b 10 13; zip 2")
    plan("range a 0 5; range b 10 13; range c 7 7; zip 3")
    plan("range a 0 5; range b 10 14; zip 2; batch 3 keep")
    plan("range a 0 2; range a 5 8; concatenate")
    plan("range a 0 4; batch 3 keep; range a 5 8; batch 2 keep; concatenate")
    plan("range a 4 7; enumerate n 0")
    plan("range a 4 9; enumerate n 10; skip 1; repeat 2")
    plan("range a 4 9; repeat 2; enumerate n 0; batch 4 keep")
    plan("range a 4 9; batch 2 keep; enumerate n -1")
    plan("range a 0 7; batch 3 keep; unbatch; batch 2 keep")
    plan("range a 0 7; batch 3 drop; unbatch; skip 2")
    plan("ragged a 0 6; ragged_batch 4 keep")
    plan("ragged a 0 6; range b 0 6; zip 2; ragged_batch 4 drop")
    plan("ragged a 0 9; padded_batch 4 keep")
    plan("ragged a 0 9; padded_batch 4 drop")
    plan("ragged a 0 9; padded_batch 2 keep a - -1")
    plan("ragged a 0 9; padded_batch 3 keep a 3 7")
    plan("ragged a 0 9; padded_batch 3 keep a 5 0")
    plan("ragged a 0 9; padded_batch 3 keep a 2 0")
    plan("ragged a 1 9; range b 1 9; zip 2; padded_batch 3 keep a - 9")
    plan("ragged a 1 7; padded_batch 2 keep; unbatch")
    for cycle, block in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (7, 2)]:
        for sizes in [(3, 3, 3), (5, 1, 2, 4), (2, 0, 5, 1, 3), (0, 0, 2), (4, 2, 6, 3, 1)]:
            sources = "; ".join(f"range a {10 * i} {10 * i + n}" for i, n in enumerate(sizes))
            plan(f"{sources}; interleave {len(sizes)} {cycle} {block}")
    for size, shift, stride in [(3, 1, 1), (3, 3, 1), (2, 1, 3), (3, 2, 2), (2, 5, 1), (4, 1, 2), (1, 1, 1), (1, 3, 4), (9, 2, 1)]:
        for rest in ["keep", "drop"]:
            plan(f"range a 0 8; window {size} {shift} {stride} {rest}")
    plan("range a 0 9; window 3 1 1 drop; batch 2 keep")
    plan("range a 0 9; window 3 2 1 drop; skip 1; take 2")
    for rest in ["keep", "drop"]:
        plan(f"ragged a 0 23; bucket a 1,3 2,3,4 pad {rest}")
        plan(f"ragged a 0 23; bucket a 2 3,2 pad {rest}")
        plan(f"ragged a 0 23; bucket a 2,3,4 1,2,3,1 pad {rest}")
        plan(f"ragged a 0 23; bucket a 2,4 3,2,1 boundary {rest}")
        plan(f"ragged a 0 23; range b 0 23; zip 2; bucket a 1,3 2,3,4 pad {rest}")
    plan("ragged a 0 23; bucket a 1,2 2,3,4 boundary keep")


def mixture():
    """A random plan over one feature."""
    fresh = iter("bcdefghi")

    def source():
        lo = int(random.integers(0, 50))
        return [f"range a {lo} {lo + int(random.integers(0, 9))}"]

    steps, batched = source(), False
    for _ in range(random.integers(1, 6)):
        op = random.choice(["take", "skip", "repeat", "shard", "enumerate", "batch", "concatenate", "interleave", "unbatch"])
        if op in ("take", "skip"):
            steps.append(f"{op} {random.integers(0, 9)}")
        elif op == "repeat":
            steps.append(f"repeat {random.integers(0, 4)}")
        elif op == "shard":
            n = random.integers(1, 4)
            steps.append(f"shard {n} {random.integers(0, n)}")
        elif op == "enumerate":
            steps.append(f"enumerate {next(fresh)} {random.integers(0, 100)}")
        elif op == "batch" and not batched:
            steps.append(f"batch {random.integers(1, 5)} {random.choice(['keep', 'drop'])}")
            batched = True
        elif op == "unbatch" and batched:
            steps.append("unbatch")
            batched = False
        elif op in ("concatenate", "interleave") and not batched and not any("enumerate" in s for s in steps):
            if op == "concatenate":
                steps += source() + [op]
            else:
                n = int(random.integers(1, 4))
                for _ in range(n):
                    steps += source()
                steps.append(f"interleave {n + 1} {random.integers(1, 4)} {random.integers(1, 4)}")
    if not batched:
        steps += end(any("enumerate" in s for s in steps))
    plan("; ".join(steps))


def end(numbered):
    """Steps that end in batches or windows, or none."""
    rest = random.choice(["keep", "drop"])
    n = random.integers(1, 5)
    beside = [f"ragged r {(lo := random.integers(0, 9))} {lo + random.integers(1, 20)}", "zip 2"]
    op = random.choice(["nothing", "ragged_batch", "padded_batch", "bucket", "window"])
    if op == "ragged_batch":
        return beside + [f"ragged_batch {n} {rest}"]
    if op == "padded_batch":
        return beside + [f"padded_batch {n} {rest} r {random.choice(['-', '2', '3', '6'])} {random.integers(-5, 5)}"]
    if op == "bucket":
        sizes = ",".join(str(random.integers(1, 4)) for _ in range(3))
        return beside + [f"bucket r {random.choice(['1,2', '1,3', '2,3'])} {sizes} {random.choice(['pad', 'boundary'])} {rest}"]
    if op == "window" and not numbered:
        return [f"window {n} {random.integers(1, 5)} {random.integers(1, 4)} {rest}"]
    return []


def input_fn(n_rows, batch_size, n_epochs):
    with tf.Graph().as_default():
        make = tf.compat.v1.estimator.inputs.numpy_input_fn(
            {"a": np.arange(n_rows)}, batch_size=batch_size, num_epochs=n_epochs, shuffle=False)
        features, batches = make(), []
        with tf.compat.v1.train.MonitoredSession() as session:
            while not session.should_stop() and len(batches) < 9:
                try:
                    batches.append(session.run(features)["a"].tolist())
                except tf.errors.OutOfRangeError:
                    break
    fixture.case("input_fn", n_rows=n_rows, batch_size=batch_size, n_epochs=n_epochs, batches=batches)


for case in [(10, 4, 1), (10, 4, 2), (10, 4, None), (3, 5, 4), (6, 3, 1), (1, 4, 9)]:
    input_fn(*case)
by_hand()
for _ in range(300):
    mixture()
fixture.write("pipelines", tf, np)
