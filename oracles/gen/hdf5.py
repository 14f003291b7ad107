"""Writes oracles/fixtures/hdf5/*.h5, and hdf5.jsonl or hdf5_keras3.jsonl: what h5py says is in these files.

Run as `python oracles/gen/hdf5.py` in an environment with tensorflow 2.15 (files of h5py and of Keras 2.15), and in one with keras 3 and
jax (`KERAS_BACKEND=jax`; files of Keras 3). A case has the name of a file and a `path` in it. A group has the `names` of its children, and
the `order` of their creation if the file stores it. A dataset or an `attribute` has a `value`, of the type that it should have here; an
object that we refuse has the `feature` that the error names instead. Files of newer formats hold the times when their groups were made.
"""

import ctypes
import pathlib

import h5py
import keras
import numpy as np

from fixture import FOLDER, Fixture, strings

IS_3 = keras.__version__.startswith("3.")
FILES = FOLDER / "hdf5"
FILES.mkdir(exist_ok=True)
# What arrays here hold for each type of numpy; narrower integers become wider ones.
DTYPES = {"bool": "bool", "int8": "int32", "uint8": "uint8", "int16": "int32", "uint16": "int32", "int32": "int32", "uint32": "int64",
          "int64": "int64", "uint64": "int64", "float16": "float32", "float32": "float32", "float64": "float64"}
fixture = Fixture(seed=22)
random = np.random.default_rng(22)


def here(value):
    """A value of h5py as we should read it."""
    if isinstance(value, h5py.Empty):
        return np.zeros([0], DTYPES[value.dtype.newbyteorder("=").name])
    value = np.asarray(value)
    if value.dtype.kind in "OSU":
        flat = [v.encode() if isinstance(v, str) else bytes(v) for v in value.ravel()]
        return strings(flat).reshape(value.shape)
    return value.astype(DTYPES[value.dtype.newbyteorder("=").name])


def describe(name, unread={}):
    """The cases of a file, as h5py reads it. `unread` has the features that are refused, by path."""
    case = f"{name}.h5"
    with h5py.File(FILES / case) as file:
        def visit(path, item):
            if path in unread:
                fixture.case(case, path=path, feature=unread[path])
                return
            if isinstance(item, h5py.Group):
                is_tracked = item.id.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED
                fixture.case(case, path=path, names=sorted(item), order=list(item) if is_tracked else None)
            else:
                fixture.case(case, path=path, value=here(item[()]))
            for key in sorted(item.attrs):
                if f"{path}@{key}" in unread:
                    fixture.case(case, path=path, attribute=key, feature=unread[f"{path}@{key}"])
                else:
                    fixture.case(case, path=path, attribute=key, value=here(item.attrs[key]))
            if isinstance(item, h5py.Group):
                for key in sorted(item):
                    child = f"{path.rstrip('/')}/{key}"
                    visit(child, None if child in unread else item[key])

        visit("/", file["/"])


def numbers(dtype, *shape):
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        # A u64 that does not fit into an i64 is another test.
        high = min(info.max, 2**63 - 1)
        values = random.integers(info.min, high, shape, dtype=dtype, endpoint=True)
        values.flat[:2] = [info.min, high]
        return values
    values = random.standard_normal(shape).astype(dtype)
    values.flat[:3] = [np.inf, np.nan, -0.0]
    return values


def small_nodes(name, **sizes):
    """A new file whose B-trees have small nodes, so that a few entries need several levels; it has a superblock of version 1."""
    options = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    # h5py has no functions for these settings: ask the library that it has loaded.
    library = ctypes.CDLL(str(next(pathlib.Path(h5py.__file__).parent.parent.glob("h5py.libs/libhdf5-*"))))
    identifier = ctypes.c_int64(options.id)
    assert library.H5Pset_sym_k(identifier, 2, 2) == 0 and library.H5Pset_istore_k(identifier, 4) == 0
    if sizes:
        options.set_sizes(*sizes["widths"])
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)
    return h5py.File(h5py.h5f.create(bytes(FILES / name), h5py.h5f.ACC_TRUNC, options, access))


def without_times():
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_obj_track_times(False)
    return options


def types():
    with small_nodes("types.h5") as file:
        group = file.create_group("numbers")
        for dtype in DTYPES:
            if dtype == "bool":
                group["bool"] = np.array([[True, False, True]])
                group.attrs["bool"] = np.bool_(True)
                group.attrs["bools"] = np.array([False, True])
                continue
            # One order of bytes in a dataset and the other in an attribute; most other datasets are little-endian.
            values = numbers(dtype, 2, 3)
            group[dtype] = values.astype(np.dtype(dtype).newbyteorder(">"))
            group.attrs[dtype] = values
            group.attrs[f"{dtype}>"] = values.astype(np.dtype(dtype).newbyteorder(">"))
            group.attrs[f"{dtype}, one"] = values[1, 1]
        group["enum"] = np.zeros(3, h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, "i2"))
        group["enum"][:] = [0, 42, 1]
        group["two"] = np.zeros(2, h5py.enum_dtype({"NO": 0, "YES": 1}, "i1"))
        group["scalar"] = np.float32(2.5)
        group["no_rows"] = np.zeros((0, 3), "f4")
        group["no_columns"] = np.zeros((3, 0), "i8")
        group["null"] = h5py.Empty("f4")
        group["eight_axes"] = numbers("i4", 1, 2, 1, 3, 1, 1, 2, 1)
        group.attrs["null"] = h5py.Empty("f8")
        group.attrs["empty"] = []
        group.attrs["one"] = 1
        group.attrs["pi"] = 3.25

        group = file.create_group("strings")
        words = ["", "one", "žluťoučký kůň", "a longer word than any other"]
        group["variable"] = np.array(words, object)
        group["variable_2d"] = np.array([words[:2], words[2:]], object)
        group["variable_scalar"] = "just one"
        group["ascii"] = np.array([b"a", b"bc"], object)
        group.create_dataset("fixed", data=np.array([b"one", b"", b"seven", b"a\0b"]))
        group.create_dataset("utf8", data=np.array(["Zürich".encode(), b"x"], h5py.string_dtype("utf-8", 9)))
        for pad, name in [(h5py.h5t.STR_NULLTERM, "terminated"), (h5py.h5t.STR_SPACEPAD, "spaces")]:
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(6)
            kind.set_strpad(pad)
            space = h5py.h5s.create_simple((2,))
            made = h5py.h5d.create(group.id, name.encode(), kind, space, without_times())
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"cdef"], "S6"))
        group.create_dataset("never_written", (3,), h5py.string_dtype())
        group.attrs["text"] = "hello"
        group.attrs["texts"] = words
        group.attrs["bytes"] = np.bytes_("fixed")
        group.attrs["many_bytes"] = np.array([b"x", b"yz"])
        group.attrs["empty_text"] = ""
        group.attrs["jméno"] = "an attribute whose name is not ASCII"

        group = file.create_group("storage")
        matrix = numbers("f4", 13, 11)
        group["contiguous"] = matrix
        group.create_dataset("chunks", data=matrix, chunks=(4, 5))
        group.create_dataset("deflate", data=matrix, chunks=(8, 8), compression="gzip")
        group.create_dataset("both", data=numbers("i8", 30), chunks=(7,), compression="gzip", compression_opts=9, shuffle=True)
        group.create_dataset("cube", data=numbers("i2", 5, 4, 3), chunks=(2, 3, 2), compression="gzip")
        group.create_dataset("texts", data=np.array(words * 3, object), chunks=(5,), compression="gzip")
        group.create_dataset("bytes", data=np.array([b"a", b"bcd"] * 4), chunks=(3,), shuffle=True)
        some = group.create_dataset("some_chunks", (10, 10), "i4", chunks=(4, 4), fillvalue=-7)
        some[5:7, 1] = [1, 2]
        group.create_dataset("fill_only", (4,), "f8", fillvalue=2.5)
        group.create_dataset("zeros", (2, 2), "i2")
        growing = group.create_dataset("growing", (3,), "f4", maxshape=(None,), chunks=(8,))
        growing[:] = [1, 2, 3]
        # Enough chunks for two levels of the B-tree.
        group.create_dataset("many_chunks", data=np.arange(40, dtype="u1"), chunks=(1,))
        compact = without_times()
        compact.set_layout(h5py.h5d.COMPACT)
        values = numbers("f8", 6)
        made = h5py.h5d.create(group.id, b"compact", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((6,)), compact)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)

        # Many links, for several levels of the B-tree of names, all to one dataset.
        group = file.create_group("links")
        for i in range(40):
            group[f"link {i}"] = file["numbers/scalar"]
        file.create_group("empty")
        file["a/b/c/ď"] = np.arange(3)
    describe("types")


def formats():
    """The same small tree in the formats of several versions of the library."""
    formats = {"oldest": {}, "narrow": None, "v108": {"libver": "v108"}, "latest": {"libver": "latest"}, "user_block": {"userblock_size": 512, "libver": "latest"}}
    for name, options in formats.items():
        file = small_nodes("narrow.h5", widths=(4, 4)) if options is None else h5py.File(FILES / f"{name}.h5", "w", **options)
        with file:
            file["out/step"] = np.int64(7)
            if name == "user_block":
                continue
            file.attrs["layer_names"] = np.array([b"dense", b"out"])
            if name != "v108":
                file.attrs["backend"] = "jax"
            group = file.create_group("layer", track_order=name in ["v108", "latest"])
            group["kernel"] = numbers("f4", 2, 3)
            group["bias"] = np.zeros(3, "f4")
            group["bias"].attrs["note"] = np.array([b"two", b"words"])
            group.attrs["flag"] = np.array([True, False])
            file["out/null"] = h5py.Empty("i4")
            if name == "v108":
                file.create_dataset("chunks", data=numbers("f8", 5, 5), chunks=(2, 3), compression="gzip", shuffle=True)
                # More than eight links or attributes go to a fractal heap.
                group = file.create_group("dense", track_order=True)
                for i in [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]:
                    group[f"link {i}"] = file["out/step"]
                    group.attrs[f"attribute {i}"] = f"value {i}".encode()
    for name in formats:
        describe(name)


def unread():
    """What is refused, by the name of the feature."""
    with small_nodes("unread.h5") as file:
        file["read"] = np.arange(3.0)
        file["soft"] = h5py.SoftLink("/read")
        # A group with a link to another file is no symbol table.
        file["links/external"] = h5py.ExternalLink("types.h5", "/numbers")
        file["compound"] = np.zeros(2, [("a", "i4"), ("b", "f4")])
        file["complex"] = np.zeros(2, "c8")
        file["opaque"] = np.zeros(2, "V5")
        file["committed"] = np.dtype("f4")
        file.create_dataset("of_committed", data=np.zeros(2, "f4"), dtype=file["committed"])
        file.create_dataset("sequences", (2,), h5py.vlen_dtype("i4"))
        file.create_dataset("array", (2,), np.dtype(("i4", (3,))))
        file["reference"] = np.array([file["read"].ref], h5py.ref_dtype)
        file.create_dataset("lzf", data=np.zeros(9), chunks=(3,), compression="lzf")
        file.create_dataset("fletcher32", data=np.zeros(9), chunks=(3,), fletcher32=True)
        file.create_dataset("nine_axes", (1,) * 9, "f4")
        file.create_dataset("large", data=np.array([1, 2**63], "u8"))
        file["read"].attrs["reference"] = file.ref
    describe("unread", {
        "/soft": "soft link", "/links/external": "link to another file", "/compound": "compound", "/complex": "compound", "/opaque": "opaque",
        "/committed": "committed datatype", "/of_committed": "datatype is committed", "/sequences": "variable-length sequences", "/array": "array",
        "/reference": "reference", "/lzf": "lzf", "/fletcher32": "fletcher32", "/nine_axes": "9 axes", "/large": "9223372036854775808",
        "/read@reference": "reference",
    })
    with h5py.File(FILES / "unread_latest.h5", "w", libver="latest") as file:
        file.create_dataset("single", data=np.zeros(9), chunks=(9,))
        file.create_dataset("fixed", data=np.zeros(9), chunks=(2,))
        file.create_dataset("growing", (9,), "f4", maxshape=(None,), chunks=(2,))
        file.create_dataset("growing_2d", (9, 9), "f4", maxshape=(None, None), chunks=(2, 2))
    describe("unread_latest", {"/single": "single chunk", "/fixed": "fixed array", "/growing": "extensible array",
                               "/growing_2d": "B-tree of version 2"})


def model():
    keras.utils.set_random_seed(22)
    layers = keras.layers
    return keras.Sequential([layers.Input((2,)), layers.Dense(3, name="a"), layers.Dense(1, name="b")])


def of_keras(version):
    # A model with its weights in the older layout, and weights in the newer one.
    model().save(FILES / f"keras{version}_model.h5")
    model().save_weights(FILES / f"keras{version}.weights.h5")
    describe(f"keras{version}_model")
    describe(f"keras{version}.weights")


if IS_3:
    of_keras(3)
else:
    types()
    formats()
    unread()
    of_keras(2)
fixture.write("hdf5_keras3" if IS_3 else "hdf5", keras, h5py, program="hdf5", hdf5=h5py.version.hdf5_version)
print(sum(path.stat().st_size for path in FILES.iterdir()), "bytes in", FILES.name)
