"""Writes the seeds of the fuzz targets, fuzz/corpus/TARGET/NAME, from TensorFlow's and numpy's fixtures and from small hostile files.

Usage: python3 fuzz/seeds.py    (the standard library is enough; the same bytes every time)
"""

import gzip
import io
import json
import pathlib
import struct
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent
FIXTURES = ROOT.parent / "oracles" / "fixtures"
LARGEST = 16_384


def seed(target, name, data):
    if isinstance(data, str):
        data = data.encode()
    if len(data) <= LARGEST:
        folder = ROOT / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def cases(name):
    """The cases of a fixture; a string in it has a character for each byte."""
    lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[1:-1]]


def packed(data, level=9):
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=level, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def zstd_repeating(n_blocks):
    """Blocks of 128 KiB of zeros in four bytes each."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x50")
    for i in range(n_blocks):
        frame += struct.pack("<I", (i == n_blocks - 1) | 1 << 1 | 131_072 << 3)[:3] + b"\0"
    return bytes(frame)


for case in cases("array_files"):
    name, data = f"numpy_{case['case']}", case["file"].encode("latin-1")
    seed("npy", name, data)
    if case["format"] == "npz":
        seed("archive", name, b"\0" + data)
# Entries over one member, right ones and others.
seed("archive", "one", b"\x01\0\0\0\0")
seed("archive", "overlapping", b"\x01" + b"\0\0\0\0" * 50)
seed("archive", "sizes", b"\x01\0\0\0\0\0\x01\x01\x08\x05\xff\0\0")
for i, case in enumerate(case for case in cases("images") if "file" in case):
    seed("image", f"image_{i}", case["file"].encode("latin-1"))
for path in sorted((FIXTURES / "hdf5").glob("*.h5")):
    # Files of Keras have nothing that is not in the others.
    if not path.stem.startswith("keras"):
        seed("hdf5", path.stem, path.read_bytes())
for path in sorted((FIXTURES / "keras_files").glob("*.keras")):
    with zipfile.ZipFile(path) as file:
        terms = [file.read(name) for name in file.namelist() if name.endswith("vocabulary.txt")]
        config, weights = file.read("config.json"), file.read("model.weights.h5")
    seed("keras_config", path.stem, config)
    if path.stem.startswith(("learned", "branches")):
        terms = terms[0] if terms else b""
        parts = b"".join(struct.pack("<H", len(part)) + part for part in (config, terms))
        seed("keras_archive", path.stem, b"\1" + parts + weights)
seed("idx", "matrix", bytes([0, 0, 12, 2, 0, 0, 0, 4, 0, 0, 0, 6]) + b"\x07" * 96)
seed("idx", "bytes", bytes([0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3]) + b"\x01" * 30)
seed("idx", "cifar", b"\x03" * 3073)

text = b"".join(b"%d,%d\n" % (i, i * i) for i in range(200))
for mode, name, pack in [(0, "gzip", packed), (1, "zlib", zlib.compress)]:
    seed("packed", name, bytes([mode]) + pack(text))
    seed("packed", f"{name}_bomb", bytes([mode]) + pack(bytes(4 << 20)))
seed("packed", "gzip_members", b"\0" + packed(text) + packed(b"") + packed(text))
seed("packed", "zstd_bomb", b"\x02" + zstd_repeating(64))
# One raw block of four bytes.
seed("packed", "zstd", b"\x02\x28\xb5\x2f\xfd\x00\x50" + struct.pack("<I", 1 | 4 << 3)[:3] + b"abcd")

rows = [
    'a,b\n1,2\n"x, ""y""",3\r\n4,\n5,six\n',
    "a,b\r1,2\r3,4\r",
    "\ufeffa,b\n1,2\n\n3,4\n",
    "a\tb\n1\t+5\ninf\tnan\n",
    'a,b\n"open,1\n2,3\n',
    ",".join(f"c{i}" for i in range(1100)) + "\n" + ",".join("0" for _ in range(1100)) + "\n",
    "a,b\n" + "," * 3000 + "\n1,2\n",
    "a,b\n1," + "x" * 2000 + "\n",
    "1,a\n2,b\n3,c\n",
]
for i, row in enumerate(rows):
    seed("csv", f"rows_{i}", row)
    seed("files", f"rows_{i}", row)
seed("files", "not_a_number", "~ejf\rnan\n")
# A quote after a byte order mark, with a line end in the quotes.
seed("files", "marked_quote", b'\xef\xbb\xbf".a,\xbf4\na."\n\xb5,')
seed("files", "records", (FIXTURES / "wire_records.tfrecord").read_bytes())

seed("schema", "columns", '[columns.age]\ntype = "f32"\nmin = 0.0\nmax = 120.0\nrequired = true\n\n[columns.job]\ntype = "string"\nkind = "vocabulary"\ndomain = ["clerk", "chef"]\ndefault = ""\n')
seed("schema", "shapes", '[columns.a]\ntype = "i64"\nshape = [2, 3]\ndefault = 7\nrole = "label"\n[columns."b c"]\ntype = "u8"\nshape = "ragged"\n[columns.w]\ntype = "f64"\nrole = "weights"\ndefault = nan\n')
seed("schema", "large", "".join(f'[columns.c{i}]\ntype = "f64"\nshape = [16777216]\ndefault = 0.0\n' for i in range(9)))
seed("schema", "nested", "x = " + "[" * 200 + "]" * 200)
seed("schema", "dotted", "a." * 200 + "a = 1")

seed("vocabulary", "words", "to\nbe\r\nor\nnot\n")
seed("vocabulary", "twice", "a\nb\na\n")
seed("vocabulary", "ints", "1\n 22 \n-333")
seed("vocabulary", "long", "a\n" + "x" * 300 + "\nb\n")

for name in ["wire_checkpoint_state.txt", "wire_checkpoint_state_odd.txt"]:
    seed("state", name.removesuffix(".txt"), (FIXTURES / name).read_bytes())
seed("state", "list", "all_model_checkpoint_paths: ['a', \"b\\303\\251\"] last_preserved_timestamp: nan")

for name in ["bundle_tf", "bundle_tf_names", "bundle_tf_shards", "bundle_tf_objects", "bundle_snappy"]:
    index = (FIXTURES / f"{name}.index").read_bytes()
    seed("bundle", name, b"\0" + index)
    # The first block, less the compression and the checksum behind it, ends where the metaindex begins.
    end, shift = 0, 0
    for byte in index[-48:]:
        end |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    seed("bundle", f"{name}_block", bytes([3 if name == "bundle_snappy" else 1]) + index[: end - 5])
    if name == "bundle_snappy":
        seed("snappy", name, index[: end - 5])
seed("snappy", "literal", b"\x08\x1c" + bytes([0, 0, 0, 0, 1, 0, 0, 0]))
seed("snappy", "copies", b"\x19\x0cabcd\x4e\x04\x00\x00!")
seed("snappy", "claim", b"\xff\xff\xff\xff\x0f\x00x\xfe\x01\x00")

seed("event", "file", (FIXTURES / "wire_events.tfevents").read_bytes())
seed("graph_def", "graph", (FIXTURES / "wire_graph.pb").read_bytes())
for name in ["wire_saved_model_v1.pb", "wire_saved_model_v2.pb"]:
    seed("graph_def", name.removesuffix(".pb"), (FIXTURES / name).read_bytes())
    seed("saved_model", name.removesuffix(".pb"), (FIXTURES / name).read_bytes())
for path in sorted(FIXTURES.glob("saved_model_*/**/saved_model.pb")):
    seed("saved_model", path.relative_to(FIXTURES).parts[0], path.read_bytes())
rows = [row for case in cases("example") for row in case["rows"][2]]
for i, row in enumerate(rows[::7]):
    seed("example", f"row_{i}", row.encode("latin-1"))

cluster = {"cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"], "ps": ["d:4"]}, "task": {"type": "worker", "index": 1}, "model_dir": "/m"}
seed("config", "cluster", json.dumps(cluster))
seed("config", "evaluator", json.dumps({"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}))
seed("config", "parameters", '{"a": 3, "b": 1e-3, "c": "text", "d": false, "e": [1, 2]}')
seed("config", "overrides", "a=3,b=1e-3,c=text,d=false")
seed("config", "nested", "[" * 1000)
# A position of a stream: see `Position::to_bytes`; the fuzzer finds the rest.
seed("position", "empty", b"\0" * 16)

# Requests of the server: bodies of REST, KServe's JSON with binary data after it, and messages of gRPC.
for i, body in enumerate([
    '{"instances": [{"a": 1.5, "b": -0.0, "c": 1, "d": -2, "e": 255, "f": true, "g": "x"}, {"b": 2, "c": 3, "d": 4, "e": 5, "f": false}]}',
    '{"inputs": {"a": [1, null], "b": [[1]], "c": [], "d": [1], "e": [0], "f": [false], "g": [{"b64": "aGk="}, null]}}',
    '{"signature_name": "x", "instances": [[[1, 2], [3, 4]], [[NaN, Infinity], [-Infinity, 1e400]]]}',
    '{"instances": [null, {"b64": "AA=="}, "\\ud83d\\ude00"], "inputs": 1}',
    '{"instances": [' + "[" * 200 + "1" + "]" * 200 + "]}",
    '{"examples": [{"a": 1, "b": [1.5, 2], "c": null, "d": ["x", {"b64": "eA=="}]}], "context": {"z": true}}',
    '{"instances": [{"g": null}, {"g": ["x", "y"]}, {}], "instances": 1}',
]):
    seed("serve_rest", f"body_{i}", body)


def infer(document, binary=b""):
    text = json.dumps(document).encode()
    return struct.pack("<H", len(text)) + text + binary


seed("serve_infer", "json", infer({"id": "1", "inputs": [{"name": "a", "shape": [2, 1], "datatype": "FP32", "data": [[1], [2.5]]},
                                                          {"data": ["x"], "name": "b", "datatype": "BYTES", "shape": [1]}]}))
seed("serve_infer", "binary", infer({"inputs": [{"name": "a", "shape": [2], "datatype": "INT32", "parameters": {"binary_data_size": 8}},
                                                {"name": "b", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}],
                                     "outputs": [{"name": "y", "parameters": {"binary_data": True}}]}, b"\1\0\0\0\2\0\0\0\1\0\0\0x"))
seed("serve_infer", "huge", infer({"inputs": [{"name": "a", "shape": [1 << 60], "datatype": "FP64", "data": []}]}))


def field(number, data):
    """A length-delimited field of protobuf."""
    size, n = b"", len(data)
    while n > 127:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + data


floats = b"\x08\x01" + field(2, field(2, b"\x08\x02")) + field(5, struct.pack("<2f", 1.5, -2))
strings = b"\x08\x07" + field(2, field(2, b"\x08\x01")) + field(8, b"Oslo")
predict = field(1, field(1, b"m") + field(3, b"s")) + b"".join(
    field(2, field(1, name) + field(2, tensor)) for name, tensor in ((b"a", floats), (b"g", strings)))
seed("serve_grpc", "predict", b"\0" + predict)
seed("serve_grpc", "broadcast", b"\0" + field(2, field(1, b"a") + field(2, b"\x08\x01" + field(2, field(2, b"\x08\x80\x80\x80\x80\x04")) + field(5, struct.pack("<f", 1)))))
tensor = field(1, b"a") + field(2, b"FP32") + field(3, b"\x02")
seed("serve_grpc", "infer_raw", b"\1" + field(1, b"m") + field(5, tensor) + field(7, struct.pack("<2f", 1, 2)))
seed("serve_grpc", "infer_contents", b"\1" + field(1, b"m") + field(5, tensor + field(5, field(6, struct.pack("<2f", 1, 2)))))
seed("serve_grpc", "classify", b"\2" + field(1, field(1, b"m")) + field(2, field(2, field(1, b"") + field(2, b""))))
seed("serve_grpc", "multi", b"\3" + field(1, field(1, field(1, b"m")) + field(2, b"tensorflow/serving/classify")))
seed("serve_grpc", "log", b"\4" + field(6, field(1, predict)))
seed("serve_grpc", "reload", b"\5" + field(1, field(1, field(1, field(1, b"m") + field(8, field(1, b"x") + b"\x10\x03")))))

# The table of objects of a checkpoint of TensorFlow: the last of its tensors, behind 306 bytes of others.
data = (FIXTURES / "bundle_tf_objects.data-00000-of-00001").read_bytes()
seed("bundle", "objects_tf", b"\x04" + data[306:])
# A root with a layer, which holds itself, an object that is not there, and a variable of the target's checkpoint.
root = field(1, field(1, b"\x08\x01" + field(2, b"layer")))
children = [b"\x08\x01" + field(2, b"self"), b"\x08\x63" + field(2, b"absent"), b"\x08\x02" + field(2, b"bias")]
layer = field(1, b"".join(field(1, child) for child in children))
key = field(2, field(1, b"VARIABLE_VALUE") + field(2, b"bias") + field(3, b"layer/bias/.ATTRIBUTES/VARIABLE_VALUE"))
seed("bundle", "objects_circle", b"\x04" + root + layer + field(1, key))
