"""Writes oracles/fixtures/example.jsonl: what TensorFlow's parsers make of tf.Examples and tf.SequenceExamples.

Run as `python oracles/gen/example.py` in an environment with tensorflow 2.15. A case is of the kind
example, sequence, damaged (a reader may refuse it), or rewritten (a writer must give the same bytes), and has

    name        what is special
    features    specs: name, length (dense, ragged or padded), dtype, dims, default
    lists       of a sequence, specs: name, length (fixed, optional or ragged), dtype, dims
    rows        serialized messages
    results     of features, then of lists, each its `splits` and `values`, null if the batch is refused: no splits if it is dense, those
                of rows, or those of rows and of steps. Floats are the bits of an f32 as a u32, so that each NaN is itself.

Where we differ on purpose, a case says so here: `read_as_protobuf` where TensorFlow's quick parser refuses what protobuf
allows (the expectation is then TensorFlow's for the message as protobuf rewrites it), `refused` where TensorFlow reads
broken bytes, or reads them otherwise than protobuf does.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture, strings as string_array

random = np.random.default_rng(21)
fixture = Fixture(seed=21)

Fixed, Padded, Ragged = tf.io.FixedLenFeature, tf.io.FixedLenSequenceFeature, tf.io.RaggedFeature
DTYPES = {tf.float32: "f32", tf.int64: "i64", tf.string: "string"}


# --- protobuf by hand, since Python's writer knows only one encoding of a message

def varint(n):
    n &= 2**64 - 1
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def delimited(number, payload):
    return bytes([number << 3 | 2]) + varint(len(payload)) + payload


def entry(key, feature):
    return delimited(1, delimited(1, key) + delimited(2, feature))


def example(*entries):
    return delimited(1, b"".join(entries))


def ints(values, packed=True):
    if packed:
        return delimited(3, delimited(1, b"".join(map(varint, values))) if len(values) else b"")
    return delimited(3, b"".join(b"\x08" + varint(v) for v in values))


def floats(values, packed=True):
    numbers = [number.tobytes() for number in np.asarray(values, "<f4")]
    if packed:
        return delimited(2, delimited(1, b"".join(numbers)) if numbers else b"")
    return delimited(2, b"".join(b"\x0d" + number for number in numbers))


def strings(values):
    return delimited(1, b"".join(delimited(1, v) for v in values))


# --- what is written

def array(value, dtype):
    value = np.asarray(value)
    if dtype == tf.string:
        return string_array([tf.compat.as_bytes(v) for v in value.ravel()]).reshape(value.shape)
    return value.astype("<f4").view("<u4") if dtype == tf.float32 else value.astype(np.int64)


def described(name, spec):
    length = {Fixed: "dense", Ragged: "ragged", Padded: "padded"}[type(spec)]
    feature = {"name": name, "length": length, "dtype": DTYPES[spec.dtype]}
    if length != "ragged":
        feature["dims"] = list(spec.shape)
    default = getattr(spec, "default_value", None)
    if default is not None:
        feature["default"] = array(default, spec.dtype)
    return feature


def result(value, dtype, *splits):
    return {"splits": [np.asarray(s).tolist() for s in splits], "values": array(value, dtype)}


def feature_result(spec, value):
    if isinstance(value, tf.RaggedTensor):
        return result(value.flat_values, spec.dtype, value.row_splits)
    return result(value, spec.dtype)


def parse(rows, features):
    """The features, or None if TensorFlow refuses."""
    try:
        result = tf.io.parse_example(tf.constant(rows, tf.string), features)
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # its message quotes the bytes
        return None
    # Sparse and ragged features are the same rows in two forms.
    sparse = {n: tf.io.VarLenFeature(s.dtype) for n, s in features.items() if isinstance(s, Ragged)}
    for name, value in (tf.io.parse_example(tf.constant(rows, tf.string), sparse) if sparse else {}).items():
        again = tf.RaggedTensor.from_sparse(value)
        dtype = features[name].dtype
        assert (array(again.flat_values, dtype) == array(result[name].flat_values, dtype)).all()
        assert (again.row_splits.numpy() == result[name].row_splits.numpy()).all()
    return result


def case(name, rows, features, read_as_protobuf=False, refused=False, kind="example"):
    result = parse(rows, features)
    if read_as_protobuf:
        assert result is None, name
        messages = [tf.train.Example.FromString(row) for row in rows]
        for message in messages:
            message.DiscardUnknownFields()
        result = parse([message.SerializeToString() for message in messages], features)
        assert result is not None, name
    if refused:
        assert result is not None, name
        result = None
    results = None if result is None else [feature_result(spec, result[key]) for key, spec in features.items()]
    specs = [described(key, spec) for key, spec in features.items()]
    fixture.case(kind, name=name, features=specs, rows=string_array(rows), results=results)


# --- odd encodings, one value each

def odd():
    three = {
        "dense": Fixed([], tf.int64, default_value=7),
        "ragged": Ragged(tf.int64),
        "padded": Padded([], tf.int64, allow_missing=True),
    }

    def each(name, *rows, only=("dense", "ragged", "padded"), **options):
        for length in only:
            case(f"{name}/{length}", list(rows), {"a": three[length]}, **options)

    one, two = ints([1]), ints([2])
    each("no_features", b"")
    each("empty_map", example())
    each("other_keys_only", example(entry(b"b", one), entry(b"", two), entry(b"aa", two)))
    each("no_list", example(entry(b"a", b"")))
    each("empty_list", example(entry(b"a", ints([]))))
    each("empty_packed_list", example(entry(b"a", delimited(3, delimited(1, b"")))))
    each("twice", example(entry(b"a", one), entry(b"a", two)))
    each("twice_then_no_list", example(entry(b"a", one), entry(b"a", b"")))
    each("twice_no_list_first", example(entry(b"a", b""), entry(b"a", one)))
    each("twice_then_empty_list", example(entry(b"a", one), entry(b"a", ints([]))))
    each("twice_wrong_kind_first", example(entry(b"a", floats([1.0])), entry(b"a", two)))
    each("twice_wrong_kind_last", example(entry(b"a", one), entry(b"a", floats([1.0]))))
    each("twice_wrong_count_first", example(entry(b"a", ints([1, 2])), entry(b"a", two)))
    each("joined", example(entry(b"a", one)) + example(entry(b"b", one)) + example(entry(b"a", two)))
    each("unknown_fields", b"\x28\x05" + example(entry(b"a", one)) + b"\x31" + b"\0" * 8 + b"\x3d" + b"\0" * 4 + b"\x42\x01x")
    each("first_field_of_another_type", b"\x08\x01")
    each("a_group", example(entry(b"a", one)) + b"\x2b\x2c")
    each("value_before_key", example(delimited(1, delimited(2, one) + delimited(1, b"a"))))
    each("unpacked", example(entry(b"a", ints([5], packed=False))))
    each("unpacked_two", example(entry(b"a", ints([5, -6], packed=False))))
    each("wrong_kind", example(entry(b"a", strings([b"x"]))))
    each("wrong_kind_empty", example(entry(b"a", strings([]))))
    each("list_field_of_another_type", example(entry(b"a", b"\x18\x01")))
    each("numbers_of_another_type", example(entry(b"a", delimited(3, b"\x0d\0\0\0\0"))))
    each("two_values", example(entry(b"a", ints([1, 2]))))
    each("long_integer", example(entry(b"a", delimited(3, delimited(1, b"\x80\x80\x00")))))
    each("ten_byte_integer", example(entry(b"a", delimited(3, delimited(1, b"\xff" * 9 + b"\x7f")))))
    each("eleven_byte_integer", example(entry(b"a", delimited(3, delimited(1, b"\xff" * 10 + b"\x01")))))
    each("truncated_integer", example(entry(b"a", delimited(3, delimited(1, b"\xff")))))
    each("length_in_two_bytes", example(b"\x0a\x8a\x00" + delimited(1, b"a") + delimited(2, one)))
    each("entry_of_another_type", delimited(1, b"\x08\x01" + entry(b"a", one)))
    each("unknown_field_in_entry", example(delimited(1, delimited(1, b"a") + delimited(2, one) + b"\x28\x05")))
    each("unpacked_then_packed", example(entry(b"a", delimited(3, b"\x08\x02" + delimited(1, b"\x01")))))

    each("unknown_field_in_map", delimited(1, entry(b"a", one) + b"\x28\x05"), read_as_protobuf=True)
    each("unknown_field_in_feature", example(entry(b"a", b"\x28\x05" + one)), read_as_protobuf=True)
    each("entry_without_value", example(delimited(1, delimited(1, b"a"))), read_as_protobuf=True)
    case("entry_without_key", [example(delimited(1, delimited(2, one)), entry(b"a", two))],
         {"a": Fixed([], tf.int64)}, read_as_protobuf=True)

    each("two_packed_lists", example(entry(b"a", delimited(3, delimited(1, b"\1") + delimited(1, b"\2")))), refused=True)
    each("packed_then_unpacked", example(entry(b"a", delimited(3, delimited(1, b"\1") + b"\x08\2"))), refused=True)
    each("two_lists", example(entry(b"a", one + two)), refused=True)
    each("list_longer_than_its_feature", example(entry(b"a", b"\x1a\x7f\x0a\x01\x05")), refused=True)
    case("float_and_a_half", [example(entry(b"a", delimited(2, delimited(1, b"\0\0\x80\x3f\1\2"))))],
         {"a": Ragged(tf.float32)}, refused=True)

    required = {"a": Fixed([], tf.int64)}
    case("required/missing", [example(entry(b"a", one)), example()], required)
    case("required/no_list", [example(entry(b"a", b""))], required)
    case("no_values_wanted", [example(entry(b"a", ints([]))), example(entry(b"a", ints([])))], {"a": Fixed([0], tf.int64)})
    case("no_values_wanted/missing", [example()], {"a": Fixed([0], tf.int64, default_value=[])})
    case("padding", [example(entry(b"a", ints([1, 2]))), example(), example(entry(b"a", ints([1, 2, 3, 4])))],
         {"a": Padded([2], tf.int64, allow_missing=True, default_value=-1)})
    case("padding_strings", [example(entry(b"a", strings([b"x"]))), example(entry(b"a", strings([b"", b"yz"])))],
         {"a": Padded([], tf.string, allow_missing=True, default_value=b"pad")})
    case("padding_no_multiple", [example(entry(b"a", ints([1, 2, 3]))), example(entry(b"a", ints([4])))],
         {"a": Padded([2], tf.int64, allow_missing=True)})
    case("padding_nothing", [example(), example()], {"a": Padded([2, 3], tf.float32, allow_missing=True)})
    case("no_rows", [], {"a": Fixed([2], tf.int64), "b": Ragged(tf.string), "c": Padded([], tf.float32, allow_missing=True)})
    case("no_features_wanted_of_odd_rows", [example(entry(b"a", one)) + b"\x28\x05"], {"b": Ragged(tf.string)})


# --- random rows

def value(dtype, n):
    """A feature of n random values: its encodings to choose from."""
    if dtype == tf.int64:
        magnitudes = random.integers(0, 64, n)
        values = [int(random.integers(-(2**62), 2**62)) >> int(m) for m in magnitudes]
        return [ints(values), ints(values, packed=False)]
    if dtype == tf.float32:
        # Any bits, so among them are NaNs, infinities and subnormal numbers.
        values = random.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
        return [floats(values), floats(values, packed=False)]
    return [strings([random.bytes(int(random.integers(0, 6))) for _ in range(n)])]


def choose(options):
    return options[int(random.integers(len(options)))]


def random_spec(i):
    dtype = choose(list(DTYPES))
    dims = choose([[], [], [1], [3], [2, 2]])
    size = int(np.prod(dims, dtype=int))
    length = choose(["dense", "default", "ragged", "padded"])
    if length == "ragged":
        return Ragged(dtype), None
    if length == "padded":
        return Padded(dims, dtype, allow_missing=True), size
    if length == "dense":
        return Fixed(dims, dtype), size
    default = {tf.int64: list(range(size)), tf.float32: [0.5] * size, tf.string: [b"\xff%d" % k for k in range(size)]}[dtype]
    return Fixed(dims, dtype, default_value=np.array(default, object if dtype == tf.string else None).reshape(dims)), size


def random_row(features, faults, longest):
    entries = []
    for name, (spec, size) in features.items():
        missing = not isinstance(spec, Fixed) or spec.default_value is not None or random.random() < faults
        if missing and random.random() < 0.25:
            if random.random() < 0.5:
                entries.append(entry(name.encode(), b""))
            continue
        if isinstance(spec, Fixed):
            n = size if random.random() >= faults else size + 1
        else:
            n = int(random.integers(0, longest + 1)) * (size or 1)
        dtype = spec.dtype if random.random() >= faults else choose(list(DTYPES))
        if random.random() < 0.1:
            entries.append(entry(name.encode(), choose(value(choose(list(DTYPES)), 2))))  # overridden by what follows
        feature = choose(value(dtype, n))
        pair = [delimited(1, name.encode()), delimited(2, feature)]
        entries.append(delimited(1, b"".join(pair if random.random() < 0.9 else pair[::-1])))
    for _ in range(int(random.integers(0, 3))):
        entries.insert(int(random.integers(len(entries) + 1)), entry(b"unasked%d" % random.integers(3), ints([1])))
    return example(*entries)


def random_examples():
    for n in range(60):
        features = {f"f{i}": random_spec(i) for i in range(int(random.integers(1, 7)))}
        faults = 0.02 if n % 4 == 0 else 0.0
        rows = [random_row(features, faults, 4) for _ in range(int(random.integers(1, 8)))]
        case(f"random{n}", rows, {name: spec for name, (spec, _) in features.items()})
    # Long rows: lengths between 0 and 1,000.
    features = {"i": (Ragged(tf.int64), None), "f": (Ragged(tf.float32), None), "s": (Ragged(tf.string), None)}
    rows = [random_row(features, 0.0, longest) for longest in [1000, 0, 300, 1]]
    case("long", rows, {name: spec for name, (spec, _) in features.items()})


def damaged():
    """Random damage. A reader may refuse more than TensorFlow or less, but what both read must be the same."""
    features = {"a": Ragged(tf.int64), "b": Padded([], tf.float32, allow_missing=True), "c": Fixed([], tf.string, default_value=b"")}
    for n in range(200):
        row = bytearray(example(
            entry(b"a", choose(value(tf.int64, 2))), entry(b"b", choose(value(tf.float32, 1))), entry(b"c", strings([b"xy"])),
            entry(b"a", choose(value(tf.int64, 1)))))
        at = int(random.integers(len(row)))
        byte = choose([0, 1, 2, 8, 10, 13, 18, 26, 127, 128, 255])
        match random.integers(8):
            case 0:
                del row[at]
            case 1:
                row.insert(at, byte)
            case 2 | 3:
                row[at] = byte
            case _:
                row[at] ^= 1 << int(random.integers(8))
        case(f"{n}", [bytes(row)], features, kind="damaged")


def rewritten():
    """Rows that have all features, each with a list: what a writer makes of the parsed features must be the same bytes."""
    rows = []
    for _ in range(6):
        message = tf.train.Example()
        feature = message.features.feature
        feature["ints"].int64_list.value.extend(int(v) for v in random.integers(-5, 300, random.integers(0, 5)))
        feature["ints"].int64_list.SetInParent()
        feature["Floats"].float_list.value.extend(random.standard_normal(random.integers(0, 5)))
        feature["Floats"].float_list.SetInParent()
        feature["größe"].bytes_list.value.extend(random.bytes(200) for _ in range(random.integers(0, 3)))
        feature["größe"].bytes_list.SetInParent()
        rows.append(message.SerializeToString(deterministic=True))
    case("rows", rows, {"ints": Ragged(tf.int64), "Floats": Ragged(tf.float32), "größe": Ragged(tf.string)}, kind="rewritten")


# --- sequences

def steps(*features):
    return b"".join(delimited(1, feature) for feature in features)


def sequence(context, lists):
    return delimited(1, b"".join(context)) + delimited(2, b"".join(lists))


def sequence_case(name, rows, context, lists, refused=False):
    specs = []
    for key, spec in lists.items():
        specs.append({"name": key, "length": "ragged", "dtype": DTYPES[spec.dtype]})
        if not isinstance(spec, Ragged):
            specs[-1] |= {"length": "optional" if spec.allow_missing else "fixed", "dims": list(spec.shape)}
    features = [described(key, spec) for key, spec in context.items()]
    fixture.case("sequence", name=name, features=features, lists=specs, rows=string_array(rows))
    try:
        contexts, sequences, lengths = tf.io.parse_sequence_example(
            tf.constant(rows, tf.string), context_features=context, sequence_features=lists)
    except tf.errors.InvalidArgumentError:
        fixture.put("results", None)
        return
    assert not refused
    results = [feature_result(spec, contexts[key]) for key, spec in context.items()]
    for key, spec in lists.items():
        found = sequences[key]
        if isinstance(spec, Ragged):
            results.append(result(found.flat_values, spec.dtype, *found.nested_row_splits))
        else:
            counts = lengths[key].numpy()
            values = np.concatenate([np.asarray(found[i, :count]).ravel() for i, count in enumerate(counts)])
            results.append(result(values, spec.dtype, np.concatenate([[0], np.cumsum(counts)])))
    fixture.put("results", results)


def sequences():
    a = {"a": Ragged(tf.int64)}
    fixed = {"a": Padded([2], tf.int64)}
    optional = {"a": Padded([2], tf.int64, allow_missing=True)}

    def each(name, *rows, only=(("ragged", a), ("fixed", fixed), ("optional", optional)), context=None):
        for kind, lists in only:
            sequence_case(f"{name}/{kind}", list(rows), context or {}, lists)

    pair = ints([1, 2])
    each("empty", b"")
    each("no_list", sequence([], [entry(b"b", steps(pair))]))
    each("no_steps", sequence([], [entry(b"a", b"")]))
    each("two_steps", sequence([], [entry(b"a", steps(pair, ints([3, 4], packed=False)))]), b"")
    each("twice", sequence([], [entry(b"a", steps(pair, pair)), entry(b"a", steps(pair))]))
    each("twice_then_no_steps", sequence([], [entry(b"a", steps(pair)), entry(b"a", b"")]))
    each("step_without_list", sequence([], [entry(b"a", steps(b"", pair))]))
    each("step_with_empty_list", sequence([], [entry(b"a", steps(ints([]), pair))]))
    each("step_with_one_value", sequence([], [entry(b"a", steps(pair, ints([1])))]))
    each("step_of_another_kind", sequence([], [entry(b"a", steps(pair, floats([1.0, 2.0])))]))
    each("empty_step_of_another_kind", sequence([], [entry(b"a", steps(floats([])))]))
    each("step_of_another_type", sequence([], [entry(b"a", steps(pair) + b"\x08\x01")]))
    each("unknown_field", sequence([], [entry(b"a", steps(pair))]) + b"\x28\x05")
    each("joined", sequence([], [entry(b"a", steps(pair))]) + sequence([], [entry(b"a", steps(pair, pair))]))
    context = {"c": Fixed([], tf.int64, default_value=3), "d": Ragged(tf.string), "e": Fixed([2], tf.float32)}
    given = [entry(b"c", ints([1])), entry(b"d", strings([b"x", b""])), entry(b"e", floats([0.5, -0.0]))]
    each("context", sequence(given, [entry(b"a", steps(pair))]), sequence(given[2:], [entry(b"a", steps(pair))]), context=context)
    each("context_missing", sequence(given[:2], [entry(b"a", steps(pair))]), context=context)
    each("context_of_another_kind", sequence([given[2], entry(b"c", floats([1.0]))], [entry(b"a", steps(pair))]), context=context)

    for n in range(20):
        specs = {}
        for i in range(int(random.integers(1, 4))):
            dtype = choose(list(DTYPES))
            dims = choose([[], [1], [2, 2]])
            missing = bool(random.random() < 0.5)
            specs[f"l{i}"] = Ragged(dtype) if random.random() < 0.5 else Padded(dims, dtype, allow_missing=missing)
        rows = []
        for _ in range(int(random.integers(1, 6))):
            lists = []
            for name, spec in specs.items():
                optional = isinstance(spec, Ragged) or spec.allow_missing
                if optional and random.random() < 0.2:
                    continue
                size = None if isinstance(spec, Ragged) else int(np.prod(spec.shape, dtype=int))
                count = int(random.integers(0, 5))
                all_steps = [choose(value(spec.dtype, int(random.integers(0, 4)) if size is None else size)) for _ in range(count)]
                lists.append(entry(name.encode(), steps(*all_steps)))
            context = [entry(b"c", ints([int(random.integers(100))]))] if random.random() < 0.7 else []
            rows.append(sequence(context, lists))
        sequence_case(f"random{n}", rows, {"c": Fixed([], tf.int64, default_value=-1)}, specs)


if __name__ == "__main__":
    odd()
    random_examples()
    damaged()
    rewritten()
    sequences()
    fixture.write("example", tf, np)
