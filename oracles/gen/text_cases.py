"""How the cases of text.py are made, and the random strings in them.

A case is an op with its settings, inputs and outputs, or, in place of outputs, the `error` with which TensorFlow refuses.
"""

import re

import numpy as np
import tensorflow as tf

from fixture import Fixture, strings

random = np.random.default_rng(31)
fixture = Fixture(seed=31)


def case(op, arrays, **settings):
    """A case with these arrays; a list is one of strings or of numbers."""
    def array(values):
        of_strings = isinstance(values, list) and values and isinstance(values[0], (bytes, str))
        return strings(values) if of_strings else np.asarray(values)

    fixture.case(op, **settings, **{name: array(values) for name, values in arrays.items()})


def answer(op, inputs, compute, **settings):
    """A case whose outputs are those of compute(), or the message of the error it raises."""
    try:
        case(op, {**inputs, **compute()}, **settings)
    except (tf.errors.OpError, ValueError) as error:
        message = error.message if isinstance(error, tf.errors.OpError) else str(error)
        case(op, inputs, **settings, error=re.sub(r"{{.*?}} | \[Op:.*|/\S*/", "", message))


def write(name):
    fixture.write(f"text_{name}", tf, np, program="text")


def random_bytes(n):
    return random.integers(0, 256, n, np.uint8).tobytes()


def random_words(n, longest=12, letters=b"abcdefghijklmnopqrstuvwxyz"):
    return [bytes(random.choice(list(letters), random.integers(1, longest + 1)).tolist()) for _ in range(n)]


WHITE = [" ", "\t", "\n", "\v", "\f", "\r"]
CHARACTERS = list("abzABZ019_.,- ") + WHITE + list("éÉßñØøŁλΣσςЖжИ中日本ÀÿǅⅧﬁİıŉ") + ["\U0001f600", "\U00010400", "\u0301", "\u00a0", "\ufeff"]
INVALID = [b"\xff", b"\xc3", b"\x80", b"\x80\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\xf4\x90\x80\x80"]


def random_texts(n, longest=14, invalid=0.3):
    """Texts of all scripts, some with bytes that are not UTF-8."""
    texts = []
    for _ in range(n):
        parts = [str(c).encode() for c in random.choice(CHARACTERS, random.integers(0, longest + 1))]
        if random.random() < invalid:
            parts.insert(random.integers(0, len(parts) + 1), INVALID[random.integers(0, len(INVALID))])
        texts.append(b"".join(parts))
    return texts
