"""Writes oracles/fixtures/array_files.txt: NPY and NPZ files of numpy, and what is in them.

Run as `python oracles/gen/array_files.py` in an environment with numpy 1.26. The fixture's lines:

    file <npy|npz> <name> <hex>            a whole file
    array <name> <dtype> <sizes> <values>  an array in it: the type it should have here, its axes, its values row by row;
                                           strings are the hex of their UTF-8 between apostrophes, `-` stands for no sizes or values
"""

import io
import pathlib

import numpy as np
from numpy.lib import format as npy

OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "array_files.txt"
# What arrays here hold for each type of numpy; narrower integers become wider ones.
DTYPES = {"bool": "bool", "int8": "i32", "uint8": "u8", "int16": "i32", "uint16": "i32", "int32": "i32",
          "uint32": "i64", "int64": "i64", "float32": "f32", "float64": "f64"}
random = np.random.default_rng(4)
lines = []


def text(value):
    if isinstance(value, (bytes, np.bytes_)):
        return f"'{value.hex()}'"
    if isinstance(value, (str, np.str_)):
        return f"'{value.encode().hex()}'"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    return repr(value.item())


def array(name, values):
    dtype = "string" if values.dtype.kind in "SU" else DTYPES[values.dtype.newbyteorder("=").name]
    sizes = ",".join(map(str, values.shape)) or "-"
    flat = [text(v) for v in values.ravel(order="C")]
    lines.append(" ".join(["array", name, dtype, sizes] + (flat or ["-"])))


def save(name, values, version=None):
    stream = io.BytesIO()
    npy.write_array(stream, values, version=version, allow_pickle=False)
    lines.append(f"file npy {name} {stream.getvalue().hex()}")
    array(name, values)


def archive(name, save_archive, **arrays):
    stream = io.BytesIO()
    save_archive(stream, **arrays)
    lines.append(f"file npz {name} {stream.getvalue().hex()}")
    for key, values in arrays.items():
        array(key, values)


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
    head = f"# Made by oracles/gen/array_files.py, which explains the lines; numpy {np.__version__}, seed 4.\n"
    OUT.write_text(head + "\n".join(lines) + "\n")


main()
