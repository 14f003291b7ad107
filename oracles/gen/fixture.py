"""Writes oracles/fixtures/NAME.jsonl, the one format of fixtures; crates/fixture reads it. Not a program.

The first line names the program that made the file, the versions of what it asked, and its seed. Every other line is one case: a JSON
object with the name of its `case`, settings as plain values, and arrays as [dtype, sizes, values row by row], with the names of dtypes
that Estimand has. Numbers that JSON has no words for are the strings nan, -nan, inf and -inf. Every other string is bytes: each
character is the byte of that number, and a text is its UTF-8.
"""

import json
import math
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
DTYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "uint32": "u32", "uint64": "u64", "bool": "bool"}


def generation(keras):
    """The end of a fixture's name: Keras 3.13 began to write fields that 3.6 does not have."""
    major, minor = (int(part) for part in keras.__version__.split(".")[:2])
    return f"keras{major}" if (major, minor) < (3, 13) else "keras3_15"


class Fixture:
    """The cases of a fixture, in order."""

    def __init__(self, seed=None):
        self.seed = seed
        self.cases = []

    def case(*self_and_name, **values):
        """Begins a case: `case(name, key=value, ...)`, where a key may be `name`. Values are written as they are now."""
        self, name = self_and_name  # Python 3.7, which TensorFlow 1.15 needs, has no other way to write it
        self.cases.append(plain({"case": name, **values}))

    def put(self, key, value):
        """Adds to the case that was begun last."""
        assert key not in self.cases[-1], f"{key} is there already"
        self.cases[-1][key] = plain(value)

    def write(self, name, *modules, program=None, **versions):
        """The file of all cases so far, with the versions of these modules and others; then there are none."""
        header = {"made by": f"oracles/gen/{program or name}.py", **{m.__name__: m.__version__ for m in modules}, **versions}
        if self.seed is not None:
            header["seed"] = self.seed
        path = FOLDER / f"{name}.jsonl"
        lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in [header, *self.cases]]
        path.write_bytes(("\n".join(lines) + "\n").encode())
        print(len(self.cases), "cases,", path.stat().st_size, "bytes in", path.name)
        self.cases = []


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, dict):
        assert all(key.isascii() for key in value), value.keys()
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray) or hasattr(value, "numpy"):
        return array(value)
    if isinstance(value, (bytes, str)):
        return (value.encode() if isinstance(value, str) else value).decode("latin-1")
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (float, np.floating)):
        return number(value)
    return value if value is None else int(value)


def array(value):
    """A NumPy array, or a tensor or variable of TensorFlow."""
    value = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    dtype = "string" if value.dtype.kind in "OSU" else DTYPES[value.dtype.newbyteorder("=").name]
    return [dtype, list(value.shape), [plain(v) for v in value.ravel(order="C")]]


def number(value):
    """A float; an f32 in the fewest digits that give it again by way of a double."""
    if not math.isfinite(value):
        sign = "-" if np.signbit(value) else ""
        return sign + ("nan" if math.isnan(value) else "inf")
    if isinstance(value, np.float32):
        short = float(str(value))
        return short if np.float32(short) == value else float(value)
    return float(value)


def strings(values):
    """An array of strings, also of none."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
