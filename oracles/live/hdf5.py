"""Exchanges HDF5 files with our program: files of h5py are read by us, files of ours by h5py and by Keras.

usage: hdf5.py EXAMPLE_PROGRAM EMPTY_FOLDER

With ESTIMAND_KERAS3, a Python that has Keras 3, Keras 3 loads weights of ours too.
"""

import os
import re
import subprocess
import sys

import h5py
import numpy as np
from left_out import left_out

PROGRAM, FOLDER = sys.argv[1:]
N_TREES = 30
WORDS = ["", "a", "žluťoučký kůň", "a longer word than twelve bytes", "two\nlines"]
NAMES = ["kernel:0", "bias", "a b", "ď", "0", "10", "2", "vars", "_x", "Adam", "layer_with_a_rather_long_name_123"]
# The types here of h5py's types.
DTYPES = {"bool": "bool", "int8": "i32", "uint8": "u8", "int16": "i32", "uint16": "i32", "int32": "i32", "uint32": "i64", "int64": "i64",
          "uint64": "i64", "float16": "f32", "float32": "f32", "float64": "f64"}
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
WEIGHTS = [np.array([[0.5, -1, 2], [0.25, 1.5, -0.75]], "f4"), np.array([0.125, -0.5, 3], "f4"),
           np.array([[1], [-2], [0.5]], "f4"), np.array([0.0625], "f4")]


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True).stdout.decode()


def our_type(value):
    value = value if isinstance(value, h5py.Empty) else np.asarray(value)
    return "string" if value.dtype.kind in "OSU" else DTYPES[value.dtype.newbyteorder("=").name]


def plain(value):
    """A value of h5py as an array of our type, or of bytes."""
    kind = our_type(value)
    if isinstance(value, h5py.Empty):
        value = np.zeros([0], NUMPY.get(kind, object))
    value = np.asarray(value)
    if kind != "string":
        return value.astype(NUMPY[kind])
    result = np.empty(value.shape, object)
    result.ravel()[:] = [v.encode() if isinstance(v, str) else bytes(v) for v in value.ravel()]
    return result


def shown(value):
    """A value as our program prints it."""
    kind, value = our_type(value), plain(value)
    flat = value.ravel().tolist()
    if kind == "string":
        flat = ["x" + v.hex() for v in flat]
    elif kind == "f32":
        flat = [f"{v:08x}" for v in value.ravel().view(np.uint32)]
    elif kind == "f64":
        flat = [f"{v:016x}" for v in value.ravel().view(np.uint64)]
    else:
        flat = [str(v).lower() for v in flat]
    return f"{kind}{list(value.shape)} " + " ".join(flat)


def expected(path):
    """What our program should print of a file."""
    lines = []

    def visit(path, item):
        if isinstance(item, h5py.Group):
            is_tracked = item.id.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED
            lines.append(f"{path} group " + (" ".join(item) if is_tracked and len(item) else "-"))
        else:
            lines.append(f"{path} = {shown(item[()])}")
        for key in sorted(item.attrs, key=str.encode):
            lines.append(f"{path}@{key} = {shown(item.attrs[key])}")
        if isinstance(item, h5py.Group):
            for key in sorted(item, key=str.encode):
                visit(f"{path.rstrip('/')}/{key}", item[key])

    with h5py.File(path) as file:
        visit("/", file["/"])
    return "\n".join(lines) + "\n"


def expect_equal(ours, theirs, what):
    for a, b in zip(ours.split("\n"), theirs.split("\n")):
        assert a == b, f"{what}\nours   {a[:300]}\ntheirs {b[:300]}"
    assert ours == theirs, what


def value(random, most=200):
    shape = [int(n) for n in random.integers(0, 5, random.integers(0, 4))]
    while np.prod(shape) > most:
        shape.pop()
    kind = random.choice(["string", "bytes", "bool", *DTYPES])
    if kind == "string":
        result = np.empty(shape, object)
        result.ravel()[:] = [str(w) for w in random.choice(WORDS, result.size)]
        return result
    if kind == "bytes":
        return np.array(random.choice([b"x", b"yz", b"longer"], shape))
    if kind == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if np.dtype(kind).kind == "f":
        return random.standard_normal(shape).astype(kind)
    info = np.iinfo(kind)
    return random.integers(info.min, min(info.max, 2**63 - 1), shape, kind, endpoint=True)


def attributes(random, item):
    for name in random.choice(NAMES, random.integers(0, 4) * random.integers(0, 4), replace=False):
        found = value(random, 50)
        # h5py has no attributes of no strings of variable length.
        if found.dtype.kind != "O" or found.size:
            item.attrs[str(name)] = found if found.dtype.kind != "O" else np.array(found, h5py.string_dtype())


def tree(random, group, depth):
    attributes(random, group)
    for name in random.choice(NAMES, random.integers(0, len(NAMES)), replace=False):
        if random.integers(3) == 0 and depth < 5:
            tree(random, group.create_group(str(name)), depth + 1)
            continue
        data, options = value(random), {}
        if data.ndim and data.size and random.integers(2):
            options["chunks"] = tuple(int(random.integers(1, n + 1)) for n in data.shape)
            options["compression"] = [None, "gzip"][random.integers(2)]
            options["shuffle"] = bool(random.integers(2))
        if data.dtype.kind not in "OSb" and random.integers(3) == 0:
            data = data.astype(data.dtype.newbyteorder(">"))
        if data.dtype.kind == "O":
            options["dtype"] = h5py.string_dtype()
        attributes(random, group.create_dataset(str(name), data=data, **options))


def random_trees():
    random = np.random.default_rng(22)
    theirs, ours, n = os.path.join(FOLDER, "theirs.h5"), os.path.join(FOLDER, "ours.h5"), 0
    for i in range(N_TREES):
        with h5py.File(theirs, "w", libver=["earliest", "v108"][i % 2], track_order=i % 3 == 0) as file:
            tree(random, file, 0)
        lines = expected(theirs)
        n += lines.count("\n")
        expect_equal(run("print", theirs), lines, f"tree {i} of h5py, read by us")
        # Our files have no order of creation.
        lines = re.sub(r"(?m)^(/.*) group .*$", r"\1 group -", lines)
        for command in ["copy", "copy-fixed"]:
            run(command, theirs, ours)
            # h5py reads in our file what it reads in its own, and we do too.
            expect_equal(expected(ours), lines, f"tree {i}, {command}, read by h5py")
            expect_equal(run("print", ours), lines, f"tree {i}, {command}, read by us")
            with open(ours, "rb") as file:
                first = file.read()
            run(command, ours, ours + ".again")
            with open(ours + ".again", "rb") as file:
                assert file.read() == first, "the same tree gives other bytes"
    print(f"  we read {N_TREES} trees of h5py, and h5py reads ours: {n} objects and attributes")


def many():
    """Groups and lists of names that need several levels and several heaps."""
    theirs, ours = os.path.join(FOLDER, "many.h5"), os.path.join(FOLDER, "ours.h5")
    names = [f"dense_{i}/kernel:0" for i in range(3_000)]
    with h5py.File(theirs, "w") as file:
        for i in range(5_000):
            file.create_group(f"layers/dense_{i}").attrs["name"] = f"the layer {i}"
        file["names"] = np.array(names, object)
        file["one"] = "x" * 200_000
        file["large"] = np.arange(2_000_000, dtype="f4")
        file.attrs["names"] = np.array(names, "S")[:2_000]
        for i in range(100):
            file["names"].attrs[f"attribute {i}"] = names[i : i + 30]
    lines = expected(theirs)
    expect_equal(run("print", theirs), lines, "many objects of h5py, read by us")
    run("copy", theirs, ours)
    expect_equal(expected(ours), lines, "many objects of ours, read by h5py")
    # h5py opens our file for writing and changes it.
    with h5py.File(ours, "r+") as file:
        file["layers/dense_7/new"] = np.arange(3)
        file["layers/zzz/new"] = "text"
        file.attrs["new"] = "another"
        del file["layers/dense_8"]
        file["large"][5] = -1
    expect_equal(run("print", ours), expected(ours), "our file, changed by h5py")
    print("  5,000 groups and 3,000 names, both ways; h5py adds to our file")


def dense():
    """Fractal heaps of many blocks, with objects that were deleted."""
    path = os.path.join(FOLDER, "dense.h5")
    for n, options in [(9, {}), (100, {}), (2_000, {}), (20_000, {}), (3_000, {"track_order": True})]:
        with h5py.File(path, "w", libver="latest", **options) as file:
            group = file.create_group("group")
            file["one"] = 1
            for i in range(n):
                group[f"link {'x' * (i * i % 50)} {i}"] = file["one"]
                if i < 3_000:
                    group.attrs[f"attribute {i}"] = f"value {i}" if i % 2 else np.arange(i % 300)
            # Objects that are larger than the blocks of a heap.
            for size in [4_000, 4_200, 70_000, 300_000]:
                group.attrs[f"{size} bytes"] = np.arange(size).astype("u1")
            for name in list(group)[:: 7]:
                del group[name]
            for name in list(group.attrs)[:: 7]:
                del group.attrs[name]
        expect_equal(run("print", path), expected(path), f"{n} links in a fractal heap")
    print("  fractal heaps of up to 20,000 links and 3,000 attributes, the longest of 300 kB")


def deep():
    path = os.path.join(FOLDER, "deep.h5")
    for n in [255, 256, 2_000]:
        with h5py.File(path, "w") as file:
            group = file
            for _ in range(n):
                group = group.create_group("g")
            group["x"] = 1
        result = subprocess.run([PROGRAM, "print", path], capture_output=True)
        assert (result.returncode == 0) == (n == 255), (n, result.stderr)
        if n > 255:
            assert b"a path of 257 groups" in result.stderr, result.stderr
    print("  a tree that is too deep is refused")


LOAD = """
import sys
import numpy as np
import keras
layers = keras.layers
model = keras.Sequential([layers.Input((2,)), layers.Dense(3, name="a"), layers.Dense(1, name="b")])
for path in sys.argv[1:]:
    model.set_weights([np.zeros_like(w) for w in model.get_weights()])
    model.load_weights(path)
    print(keras.__version__, [w.tolist() for w in model.get_weights()])
"""


def load(python, files, **environment):
    """Keras loads our weights."""
    result = subprocess.run([python, "-c", LOAD, *files], check=True, capture_output=True, env=os.environ | environment).stdout.decode()
    lines = result.strip().split("\n")[-len(files):]
    for line in lines:
        version, values = line.split(" ", 1)
        assert values == str([w.tolist() for w in WEIGHTS]), line
    print(f"  Keras {version} loads {len(files)} files of weights of ours")


def of_keras():
    layers, legacy = os.path.join(FOLDER, "ours.weights.h5"), os.path.join(FOLDER, "legacy.h5")
    run("weights", "layers", layers)
    run("weights", "legacy", legacy)
    load(sys.executable, [layers, legacy])
    python = os.environ.get("ESTIMAND_KERAS3")
    if python:
        load(python, [layers, legacy])
    else:
        left_out("weights of ours in Keras 3", "ESTIMAND_KERAS3 names no Python that has it")


random_trees()
many()
dense()
deep()
of_keras()
