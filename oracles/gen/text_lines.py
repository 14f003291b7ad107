"""How the fixtures of text.py are written, and the random strings in them.

The lines of a fixture:

    case <op> <key=token>...   an op and its settings
    <name> <token>...          its inputs and outputs in order; `-` stands for none
    error <token>              in place of outputs: TensorFlow refuses, with this message

A token is a number as Python prints it, or a string: an apostrophe and its bytes, those that are not plain written %XX.
"""

import pathlib
import re

import numpy as np
import tensorflow as tf

SEED = 31
OUT = pathlib.Path(__file__).parent.parent / "fixtures"
PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:;!?*/()[]{}^$|\\<>&~@#'")
random = np.random.default_rng(SEED)
lines = []


def token(value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, np.bytes_)):
        return "'" + "".join(chr(b) if b in PLAIN else f"%{b:02X}" for b in value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)):
        return "-nan" if np.isnan(value) and np.signbit(value) else repr(float(value))
    return str(value)


def case(op, arrays, **settings):
    lines.append(" ".join(["case", op] + [f"{key}={token(value)}" for key, value in settings.items()]))
    for name, array in arrays.items():
        values = array if isinstance(array, list) else np.asarray(array).ravel().tolist()
        lines.append(" ".join([name] + ([token(v) for v in values] or ["-"])))


def answer(op, inputs, compute, **settings):
    """A case whose outputs are those of compute(), or the message of the error it raises."""
    try:
        case(op, {**inputs, **compute()}, **settings)
    except (tf.errors.OpError, ValueError) as error:
        message = error.message if isinstance(error, tf.errors.OpError) else str(error)
        case(op, inputs, **settings)
        lines.append("error " + token(re.sub(r"{{.*?}} | \[Op:.*|/\S*/", "", message)))


def write(name):
    OUT.mkdir(exist_ok=True)
    (OUT / f"text_{name}.txt").write_text(
        f"# Made by oracles/gen/text.py; text_lines.py explains the lines; tensorflow {tf.__version__}, "
        f"numpy {np.__version__}, seed {SEED}.\n" + "\n".join(lines) + "\n")
    lines.clear()


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
