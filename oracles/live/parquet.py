"""Exchanges columns with our program: what pyarrow and pandas wrote is read by us, what we wrote by pyarrow and pandas.

usage: parquet.py EXAMPLE_PROGRAM EMPTY_FOLDER

With ESTIMAND_DATA, also reads adult.parquet and california_housing.parquet there.
"""

import datetime
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
from left_out import left_out

PROGRAM, FOLDER = sys.argv[1:]
N_ROWS = 1_000
WORDS = ["", "a", "žluťoučký", "a longer word than twelve bytes", "two\nlines", "NA"]


def nullable(random, values):
    return [None if random.integers(5) == 0 else v for v in values]


def integers(random, bits, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return [int(v) for v in random.integers(low, min(high, 2**63 - 1), N_ROWS, endpoint=True, dtype=np.int64)]


def table(random):
    columns = {}
    for bits in [8, 16, 32, 64]:
        columns[f"int{bits}"] = pa.array(nullable(random, integers(random, bits, True)), f"int{bits}")
        columns[f"uint{bits}"] = pa.array(nullable(random, integers(random, bits, False)), f"uint{bits}")
    floats = random.standard_normal(N_ROWS)
    words = [str(w) for w in random.choice(WORDS, N_ROWS)]
    columns["full"] = pa.array(integers(random, 64, True), "int64")
    columns["half"] = pa.array(floats.astype(np.float16))
    columns["single"] = pa.array(nullable(random, floats.tolist()), "float32")
    columns["double"] = pa.array(nullable(random, (floats * 1e200).tolist()), "float64")
    columns["nan"] = pa.array(np.where(floats > 0, floats, np.nan))
    columns["flag"] = pa.array(nullable(random, (floats > 0).tolist()))
    columns["word"] = pa.array(nullable(random, words))
    columns["large"] = pa.array(nullable(random, words), pa.large_string())
    columns["view"] = pa.array(nullable(random, words), pa.string_view())
    columns["bytes"] = pa.array(nullable(random, [random.bytes(random.integers(0, 9)) for _ in range(N_ROWS)]), pa.binary())
    columns["fixed"] = pa.array([random.bytes(3) for _ in range(N_ROWS)], pa.binary(3))
    columns["category"] = pa.array(nullable(random, words)).dictionary_encode()
    columns["numbers"] = pa.array(nullable(random, [v % 7 for v in integers(random, 32, True)])).dictionary_encode()
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=int(d)) for d in random.integers(-9999, 9999, N_ROWS)]
    columns["day"] = pa.array(nullable(random, days), pa.date32())
    columns["moment"] = pa.array(nullable(random, integers(random, 40, True)), pa.timestamp("us", "UTC"))
    columns["milli"] = pa.array(nullable(random, integers(random, 40, True)), pa.timestamp("ms"))
    columns["clock"] = pa.array([int(v) for v in random.integers(0, 86_400_000, N_ROWS)], pa.time32("ms"))
    lists = [nullable(random, [int(v) for v in random.integers(-9, 9, i % 4)]) for i in range(N_ROWS)]
    columns["list"] = pa.array(nullable(random, lists), pa.list_(pa.int64()))
    texts = [[str(w) for w in random.choice(WORDS, i % 3)] for i in range(N_ROWS)]
    columns["texts"] = pa.array(nullable(random, texts), pa.large_list(pa.string()))
    pairs = [nullable(random, row) for row in random.standard_normal([N_ROWS, 3]).tolist()]
    columns["triple"] = pa.array(pairs, pa.list_(pa.float32(), 3))
    return pa.table(columns)


def dtype(t):
    """The name of what a type becomes, and the value for what is missing."""
    if pa.types.is_dictionary(t):
        return dtype(t.value_type)
    if pa.types.is_boolean(t):
        return "bool", False
    if pa.types.is_uint8(t):
        return "u8", 0
    if t in [pa.int8(), pa.int16(), pa.int32(), pa.uint16()]:
        return "i32", 0
    if t in [pa.float16(), pa.float32()]:
        return "f32", 0.0
    if pa.types.is_float64(t):
        return "f64", 0.0
    if pa.types.is_temporal(t) or pa.types.is_integer(t):
        return "i64", 0
    return "string", b""


def values(name, row):
    """Values as the program prints them."""
    if name == "f32":
        return " ".join(f"{v:08x}" for v in np.array(row, np.float32).view(np.uint32))
    if name == "f64":
        return " ".join(f"{v:016x}" for v in np.array(row, np.float64).view(np.uint64))
    if name == "string":
        return " ".join("x" + escape(v) for v in row)
    return " ".join(str(v).lower() for v in row)


def escape(value):
    value = value.encode() if isinstance(value, str) else value
    special = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(special.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in value)


def numbers(column):
    """Times as the numbers that are stored; other values as they are."""
    t = column.type
    if pa.types.is_temporal(t):
        column = column.cast(pa.int32() if t.bit_width == 32 else pa.int64())
    return column.to_pylist()


def expected(data):
    """What our program should print of a table."""
    lines = {}
    for name, column in zip(data.column_names, data.columns):
        t = column.type
        if pa.types.is_fixed_size_list(t):
            kind, missing = dtype(t.value_type)
            rows = [row if row is not None else [None] * t.list_size for row in column.to_pylist()]
            flat = [missing if v is None else v for row in rows for v in row]
            lines[name] = f"{kind}[{t.list_size}] {values(kind, flat)}"
        elif pa.types.is_list(t) or pa.types.is_large_list(t):
            kind, missing = dtype(t.value_type)
            rows = [[missing if v is None else v for v in row or []] for row in column.to_pylist()]
            lines[name] = f"{kind}... " + "|".join(values(kind, row) for row in rows)
        else:
            kind, missing = dtype(t)
            lines[name] = f"{kind}[] " + values(kind, [missing if v is None else v for v in numbers(column)])
    return lines


def printed(*paths, stdin=None):
    result = subprocess.run([PROGRAM, "print", *paths], check=True, capture_output=True, input=stdin)
    return dict(line.split(" = ", 1) for line in result.stdout.decode().splitlines())


def expect_equal(ours, theirs, what):
    assert list(ours) == list(theirs), (what, list(ours), list(theirs))
    for name in theirs:
        assert ours[name] == theirs[name], f"{what}, {name}\nours   {ours[name][:300]}\ntheirs {theirs[name][:300]}"


def read_by_us(full):
    # pyarrow 17 writes views of strings to Arrow files alone.
    data = full.drop_columns(["view"])
    lines = expected(data)
    n = 0
    for compression in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        for version in ["1.0", "2.0"]:
            path = os.path.join(FOLDER, f"{compression}-{version}.parquet")
            pq.write_table(data, path, row_group_size=137, compression=compression, data_page_version=version,
                           data_page_size=500, use_dictionary=version == "1.0", write_page_checksum=version == "2.0")
            expect_equal(printed(path), lines, path)
            n += 1
    half = data.slice(0, 499), data.slice(499)
    parts = [os.path.join(FOLDER, f"part-{i}.parquet") for i in range(2)]
    for part, path in zip(half, parts):
        pq.write_table(part, path, row_group_size=100)
    expect_equal(printed(*parts), lines, "two files")
    print(f"  we read {n + 2} Parquet files of pyarrow, {data.num_columns} columns each")

    data, lines = full, expected(full)
    for compression in ["uncompressed", "lz4", "zstd"]:
        path = os.path.join(FOLDER, f"{compression}.feather")
        pyarrow.feather.write_feather(data, path, compression=compression, chunksize=211)
        expect_equal(printed(path), lines, path)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data, max_chunksize=100)
    stream = sink.getvalue().to_pybytes()
    expect_equal(printed("-", stdin=stream), lines, "a pipe")
    with open(os.path.join(FOLDER, "rows.arrows"), "wb") as file:
        file.write(stream)
    expect_equal(printed(file.name), lines, "a stream")
    print("  we read Arrow files, packed in 2 ways and not, a stream, and a pipe")


def read_by_others(data):
    """Our files hold what was read, with zeros for what was missing; no column is nullable."""
    data = data.drop_columns(["view"])
    lines = expected(data)
    source, folder = os.path.join(FOLDER, "snappy-1.0.parquet"), os.path.join(FOLDER, "ours")
    # Bytes that are not UTF-8 are in the column `bytes` alone.
    plain = data.drop_columns(["fixed"])
    pq.write_table(plain, source)
    subprocess.run([PROGRAM, "copy", source, folder], check=True)
    lines.pop("fixed")
    names = sorted(os.listdir(folder))
    assert len(names) == 9, names
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".parquet"):
            found = pq.read_table(path)
            groups = [pq.ParquetFile(path).metadata.row_group(i).num_rows for i in range(4)]
            assert groups == [300, 300, 300, 100], groups
            frame = pd.read_parquet(path)
        else:
            found = pyarrow.feather.read_table(path)
            frame = pd.read_feather(path)
        assert all(column.null_count == 0 for column in found.columns)
        expect_equal(expected(found), lines, path)
        assert list(frame["int64"]) == found["int64"].to_pylist() and list(frame["word"]) == found["word"].to_pylist()
        expect_equal(printed(path), lines, f"our own {path}")
    print(f"  pyarrow and pandas read {len(names)} files of ours")


def of_pandas(random):
    """Nullable and categorical columns, and an index, as pandas writes them."""
    frame = pd.DataFrame({
        "nullable": pd.array(nullable(random, integers(random, 16, True)), "Int64"),
        "floats": random.standard_normal(N_ROWS),
        "objects": nullable(random, [str(w) for w in random.choice(WORDS, N_ROWS)]),
        "categories": pd.Categorical(random.choice(WORDS, N_ROWS)),
        "moments": pd.to_datetime(random.integers(0, 2**40, N_ROWS), unit="us"),
    }, index=pd.Index(range(5, 5 + N_ROWS), name="row"))
    path = os.path.join(FOLDER, "pandas.parquet")
    frame.to_parquet(path)
    expect_equal(printed(path), expected(pq.read_table(path)), path)
    print("  we read a table of pandas")


def real():
    root = os.environ.get("ESTIMAND_DATA")
    if not root:
        left_out("adult.parquet and california_housing.parquet", "ESTIMAND_DATA is not set")
        return
    for name in ["adult", "california_housing"]:
        path = os.path.join(root, name, f"{name}.parquet")
        data = pq.read_table(path)
        expect_equal(printed(path), expected(data), path)
        codec = pq.ParquetFile(path).metadata.row_group(0).column(0).compression
        print(f"  we read {name}.parquet: {data.num_rows} rows of {data.num_columns} columns, {codec}")


random = np.random.default_rng(7)
rows = table(random)
read_by_us(rows)
read_by_others(rows)
of_pandas(random)
real()
