"""Writes oracles/fixtures/array_files.jsonl: NPY and NPZ files of numpy, and what is in them.

Run as `python oracles/gen/array_files.py` in an environment with numpy 1.26. A case has the `format` npy or
npz, a whole `file`, and the `arrays` in it, of the types that they should have here.
"""

import io

import numpy as np
from numpy.lib import format as npy

from fixture import Fixture

# What arrays here hold for each type of numpy; narrower integers become wider ones.
DTYPES = {"bool": "bool", "int8": "int32", "uint8": "uint8", "int16": "int32", "uint16": "int32", "int32": "int32",
          "uint32": "int64", "int64": "int64", "float32": "float32", "float64": "float64"}
random = np.random.default_rng(4)
fixture = Fixture(seed=4)


def case(name, format, stream, arrays):
    here = lambda a: a if a.dtype.kind in "SU" else a.astype(DTYPES[a.dtype.newbyteorder("=").name])
    fixture.case(name, format=format, file=stream.getvalue(), arrays={key: here(a) for key, a in arrays.items()})


def save(name, values, version=None):
    stream = io.BytesIO()
    npy.write_array(stream, values, version=version, allow_pickle=False)
    case(name, "npy", stream, {name: values})


def archive(name, save_archive, **arrays):
    stream = io.BytesIO()
    save_archive(stream, **arrays)
    case(name, "npz", stream, arrays)


def numbers(dtype, *shape):
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if info:
        values = random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        values.flat[:2] = [info.min, info.max]
        return values
    return random.standard_normal(shape).astype(dtype)


def main():
    for dtype in DTYPES:
        save(dtype, numbers(dtype, 3, 2))
        if dtype not in ("bool", "int8", "uint8"):
            save(f"big_{dtype}", numbers(dtype, 3).astype(np.dtype(dtype).newbyteorder(">")))
    save("scalar", np.array(2.5))
    save("vector", numbers("int64", 5))
    save("empty", np.zeros((0, 3), np.float32))
    save("no_columns", np.zeros((3, 0), np.int32))
    save("four_axes", numbers("float32", 2, 3, 1, 2))
    save("fortran", np.asfortranarray(numbers("float64", 3, 4)))
    save("fortran_cube", np.asfortranarray(numbers("int32", 2, 3, 4)))
    save("fortran_strings", np.asfortranarray(np.array([[b"a", b"bc"], [b"", b"def"]])))
    save("bytes", np.array([b"one", b"", b"seven", b"a\0b"]))
    save("unicode", np.array(["Zürich", "", "水", "\U0001f600!"]))
    save("big_unicode", np.array(["ab", "é"]).astype(">U2"))
    for version in [(1, 0), (2, 0), (3, 0)]:
        save(f"version_{version[0]}", numbers("float32", 4), version)
    archive("stored", np.savez, x=numbers("float32", 4, 2), y=numbers("int64", 4), word=np.array(["a", "b", "c", "dd"]))
    archive("deflated", np.savez_compressed, zeros=np.zeros((50, 8), np.float64), ramp=np.arange(50))
    fixture.write("array_files", np)


main()
