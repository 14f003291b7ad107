"""String ops and bucketize for text.py."""

import numpy as np
import tensorflow as tf

from text_cases import answer, case, random, random_texts, random_words, write


def formats():
    settings = [{}, dict(precision=0), dict(precision=2), dict(precision=17), dict(precision=60), dict(precision=-2)]
    settings += [dict(s, scientific=True) for s in settings] + [dict(s, shortest=True) for s in settings]
    settings += [dict(s, fill=f, width=w) for s in [{}, dict(shortest=True), dict(scientific=True, precision=0)]
                 for f, w in [("", 12), ("0", 12), ("-", 12), ("+", -1), (" ", 3), ("#", 9), ("0", 0)]]
    settings += [dict(fill="x"), dict(fill="00"), dict(scientific=True, shortest=True)]
    doubles = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 0.25, 0.35, 0.125, 1e-4, 9.9999e-5, 0.00012345, 123456.0, 999999.5, 1e6,
               1e15, 1e17, 1e22, 1e300, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, float("nan"), -float("nan"),
               float("inf"), -float("inf")]
    doubles += (random.standard_normal(12) * 10.0 ** random.integers(-12, 12, 12)).tolist()
    for s in settings:
        # glibc writes 999999.5 as 1.e+06 if asked to keep the zeros.
        values = [x for x in doubles if x != 999999.5 or s.get("fill") != "#"]
        answer("as_string", dict(values=values),
               lambda: dict(strings=tf.strings.as_string(tf.constant(values, tf.float64), **s)), **s)
    singles = np.array([x for x in doubles if abs(x) < 1e38 or not np.isfinite(x)], np.float32)
    for s in [{}, dict(shortest=True), dict(precision=9, scientific=True)]:
        case("as_string", dict(values=singles, strings=tf.strings.as_string(tf.constant(singles), **s)), **s)
    for s in [{}, dict(width=6), dict(width=6, fill="0"), dict(width=6, fill="-"), dict(fill="+"), dict(fill=" ", width=3),
              dict(fill="#"), dict(precision=1), dict(scientific=True), dict(shortest=True)]:
        for dtype, values in [(tf.int64, [0, 1, -1, 2**63 - 1, -(2**63), 12345]), (tf.int32, [0, -7, 2**31 - 1]),
                              (tf.uint8, [0, 7, 255]), (tf.bool, [1, 0])]:
            values = np.array(values).astype(dtype.as_numpy_dtype)
            answer("as_string", dict(values=values), lambda: dict(strings=tf.strings.as_string(tf.constant(values), **s)), **s)


def numbers():
    texts = ["1", "-1", "+1", " 1 ", "\t1\n", "1\v", "1.5", ".5", "5.", "1e3", "1E3", "1e", "1e+", "1e+5", "1e-3", "e5", "", ".",
             "-", "+", "inf", "-inf", "+inf", "INF", "iNf", "infinity", "nan", "NaN", "-nan", "nan(1)", "0x10", "0X1f", "0x", "0x1.8",
             "0x1p3", "-0x10", "+0x1F", "1_000", "1,5", "1f", "1.0f", "1 2", b"1\0", b"\0", b"\xa01", b"1\xff", "1e400", "-1e400", "1e-400",
             "0.1", "123456789012345678901234567890", "00012", "0x1g", "0xfffffffffffffffffff", "16777217", "+.5", "-.5", "..5",
             "5..", "e", "+ 1", "- 1", "  ", "\n", "1.e5", ".e5", "1e99999999999", "0e99999999999", "1e-99999999999", "0x8000008",
             "0x8000018", "0x80000080", "0x800000800000001", "0x20000000000001", "0x20000000000003", "-0", "-0x0", "0e", "00x1",
             "1e 5", "i nf", "1.00000005960464477540", "1.00000005960464477539", "2147483647", "2147483648", "-2147483648",
             "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
             " -12 ", "--1", "+-1", "0x-1", "1-", "1+1", "٣", "１"]
    texts += [repr(float(x)) for x in random.standard_normal(20) * 10.0 ** random.integers(-30, 30, 20)]
    texts += [str(x) for x in random.integers(-10**6, 10**6, 10)]
    for text in texts:
        text = text if isinstance(text, bytes) else text.encode()
        arrays = {}
        for dtype in [tf.float32, tf.float64, tf.int32, tf.int64]:
            try:
                arrays[dtype.name] = tf.strings.to_number([text], dtype)
            except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
                arrays[dtype.name] = np.zeros(0, dtype.as_numpy_dtype)
        case("to_number", arrays, text=text)


def pieces():
    texts = random_texts(15) + [b"a b  c ", b" a b", b"a ", b"a", b"", b"  ", b"a,b,,c", b",a,", b"aaa", b"aaaa", b"a, b, c", b"\0 \0"]
    for separator in ["", ",", "aa", ", ", "é", b"\x80"]:
        for max_split in [-1, 0, 1, 2, 5, -7]:
            out = tf.raw_ops.StringSplitV2(input=texts, sep=separator, maxsplit=max_split)
            counts = np.bincount(out.indices[:, 0].numpy(), minlength=len(texts))
            arrays = dict(pieces=out.values, splits=np.concatenate([[0], np.cumsum(counts)]))
            if max_split == -1 and separator == "":
                arrays["strings"] = texts
            case("split", arrays, separator=separator, max_split=max_split)


def simple():
    texts = random_texts(80) + [b"", b"a\0B", b"\0", "ΑΣ ΑΣΒ Σ.".encode(), "ΟΔΥΣΣΕΥΣ".encode()]
    case("simple", dict(
        strings=texts, strip=tf.strings.strip(texts), bytes=tf.strings.length(texts),
        chars=tf.strings.length(texts, unit="UTF8_CHAR"), lower=tf.strings.lower(texts), upper=tf.strings.upper(texts),
        lower_utf8=tf.strings.lower(texts, encoding="utf-8"), upper_utf8=tf.strings.upper(texts, encoding="utf-8")))


def parts_of():
    texts = random_texts(30) + [b"hello", b"", b"\x80\x80a", "héllo😀".encode()]
    positions = [0, 1, -1, 2, -2, 5, -5, 100, -100, 2**62, -(2**63)]
    lengths = [0, 1, 2, 100, -1, -5, 2**63 - 1]
    for _ in range(150):
        text, position, length = (list(x)[random.integers(0, len(x))] for x in (texts, positions, lengths))
        for unit in ["BYTE", "UTF8_CHAR"]:
            def compute():
                return dict(part=tf.strings.substr([text], tf.constant(position, tf.int64), tf.constant(length, tf.int64), unit=unit))
            try:
                answer("substr", {}, compute, text=text, position=position, length=length, unit=unit)
            except UnicodeDecodeError:  # TensorFlow's message shows the text
                case("substr", {}, text=text, position=position, length=length, unit=unit, error="")


def joins():
    a, b = random_texts(5), random_texts(5)
    for separator in ["", "-", "é"]:
        case("join", dict(a=a, b=b, strings=tf.strings.join([a, "x", b], separator)), separator=separator)
    words = random_words(24, 3)
    for shape, axes in [([24], [0]), ([4, 6], [0]), ([4, 6], [1]), ([4, 6], [0, 1]), ([4, 6], [1, 0]), ([4, 6], [-1]), ([4, 6], []),
                        ([2, 3, 4], [1]), ([2, 3, 4], [2, 0]), ([2, 3, 4], [0, 2]), ([2, 3, 4], [-1, -2, -3]), ([2, 3, 4], [0, 1, 2]),
                        ([24], [1]), ([4, 6], [0, 0]), ([4, 6], [0, -2]), ([4, 6], [-3]), ([3, 0], [1]), ([3, 0], [0]), ([0], [0]),
                        ([3, 0], [0, 1]), ([], [])]:
        for keep in [False, True]:
            x = tf.reshape(tf.constant((words * 2)[:int(np.prod(shape))], tf.string), shape)
            def compute():
                out = tf.raw_ops.ReduceJoin(inputs=x, reduction_indices=tf.constant(axes, tf.int32), keep_dims=keep, separator="-")
                return dict(strings=out, left=np.array(list(out.shape), np.int64))
            answer("reduce_join", dict(x=x), compute, axes=axes, keep_dims=keep)


def buckets():
    few = [-1.5, 0.0, 0.1, 10.0, 10.0, 100.0, 16777216.0, 16777218.0]
    many = sorted(float(x) for x in random.standard_normal(50).astype(np.float32) * 100)
    for boundaries in [few, many, [], [float("-inf"), float("inf")]]:
        middle = [b for b in boundaries if np.isfinite(b)] or [0.0]
        for dtype in [tf.int32, tf.int64, tf.float32, tf.float64]:
            values = [-(2**31), 2**31 - 1, 16777215, 16777216, 16777217, 16777218, 0, 1, -1] + random.integers(-200, 200, 30).tolist()
            if dtype.is_floating:
                exact = np.array(middle, np.float32).astype(dtype.as_numpy_dtype)
                # TensorFlow takes subnormal numbers for 0.
                normal = exact[exact != 0]
                values += [*exact, *np.nextafter(normal, -np.inf), *np.nextafter(normal, np.inf)]
                values += [float("nan"), float("inf"), float("-inf"), 0.1, 0.10000000149011612]
            values = np.array(values).astype(dtype.as_numpy_dtype)
            out = tf.raw_ops.Bucketize(input=values, boundaries=boundaries)
            case("bucketize", dict(boundaries=np.array(boundaries, np.float32), values=values, buckets=out))


def main():
    for make in [formats, numbers, pieces, simple, parts_of, joins, buckets]:
        make()
    write("ops")
