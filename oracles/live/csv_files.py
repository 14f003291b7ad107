"""Random CSV files: what tf.data.experimental.make_csv_dataset reads from them, and what we do.

    python csv_files.py PROGRAM FOLDER

Every file that TensorFlow can read, we must read alike: names, types and values. Files that it refuses we may read or refuse; where they
are malformed by our own rules (docs/data.md) we must refuse too.
"""
import random
import subprocess
import sys

import numpy as np
import tensorflow as tf

program, folder = sys.argv[1:3]
N = 300

TYPES = {"int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64", "string": "string"}


def number(rng):
    return rng.choice([
        lambda: str(rng.randrange(-1000, 1000)),
        lambda: str(rng.randrange(-(2**62), 2**62)),
        lambda: repr(rng.uniform(-1e3, 1e3)),
        lambda: f"{rng.uniform(-1, 1):.3e}",
        lambda: " 7",
    ])()


def text(rng, delimiter, quoting):
    letters = ["a", "B", "é", " ", "?", "-", ";" if delimiter != ";" else ",", "0"]
    if quoting:
        letters += [delimiter, '"', "\n"]
    return "".join(rng.choice(letters) for _ in range(rng.randrange(6)))


def case(number_, rng):
    delimiter = rng.choice([",", ",", ";", "\t", "|"])
    quoting = rng.random() < 0.8
    na = rng.choice(["", "", "?", "NA"])
    n_columns = rng.randrange(2, 6)
    names = [f"c{i}" for i in range(n_columns)]
    kinds = [rng.choice(["int", "long", "float", "any", "text"]) for _ in names]
    end = rng.choice(["\n", "\n", "\r\n"])

    def value(kind):
        if rng.random() < 0.1:
            return rng.choice(["", na])
        if kind == "int":
            return str(rng.randrange(-1000, 1000))
        if kind == "long":
            return str(rng.randrange(-(2**62), 2**62))
        if kind == "float":
            return repr(round(rng.uniform(-1e3, 1e3), rng.randrange(6)))
        made = number(rng) if kind == "any" and rng.random() < 0.8 else text(rng, delimiter, quoting)
        # Ours ignores white space around the text of a missing value; TensorFlow does not.
        return na if na and made.strip() == na else made

    def field(s):
        if quoting and (any(c in s for c in (delimiter, '"', "\n", "\r")) or rng.random() < 0.1):
            return '"' + s.replace('"', '""') + '"'
        return s

    rows = [[value(kind) for kind in kinds] for _ in range(rng.randrange(1, 40))]
    lines = [delimiter.join(names)] + [delimiter.join(field(v) for v in row) for row in rows]
    damage = rng.random()
    if damage < 0.06:
        i = rng.randrange(1, len(lines))
        lines[i] += delimiter + "1"
    elif damage < 0.12 and quoting:
        i = rng.randrange(1, len(lines))
        lines[i] = 'x"y' + lines[i]
    elif damage < 0.16 and quoting:
        i = rng.randrange(1, len(lines))
        lines[i] = '"a" b' + delimiter + delimiter.join(["1"] * (n_columns - 1))
    select = rng.random() < 0.2 and sorted(rng.sample(names, 2))
    data = end.join(lines) + ("" if rng.random() < 0.2 else end)
    with open(f"{folder}/case_{number_}.csv", "w", newline="", encoding="utf-8") as file:
        file.write(data)
    with open(f"{folder}/case_{number_}.options", "w") as file:
        file.write(f"delimiter={delimiter}\nquoting={int(quoting)}\nna={na}\n")
        if select:
            file.write(f"select={','.join(select)}\n")
    return dict(field_delim=delimiter, use_quote_delim=quoting, na_value=na, select_columns=select or None), damage < 0.16


def peer(number_, options):
    try:
        data = tf.data.experimental.make_csv_dataset(
            f"{folder}/case_{number_}.csv", batch_size=1000, num_epochs=1, shuffle=False, **options)
        columns = []
        for batch in data:
            for name, values in batch.items():
                values = values.numpy()
                kind = "string" if values.dtype == object else str(values.dtype)
                columns.append((name, TYPES[kind], list(values)))
        return columns
    except (tf.errors.InvalidArgumentError, ValueError):
        return None


def ours(number_):
    columns = []
    with open(f"{folder}/case_{number_}.found") as file:
        for line in file.read().splitlines():
            if line == "error":
                return None
            if " " in line:
                name, kind = line.split()
                columns.append((name, kind, []))
            elif line.startswith("x"):
                columns[-1][2].append(bytes.fromhex(line[1:]))
            else:
                columns[-1][2].append(float(line))
    return columns


def equal(a, b):
    if [c[:2] for c in a] != [c[:2] for c in b] or [len(c[2]) for c in a] != [len(c[2]) for c in b]:
        return False
    for (_, kind, x), (_, _, y) in zip(a, b):
        if kind == "string" and x != y or kind != "string" and not np.array_equal(np.float64(x), np.float64(y)):
            return False
    return True


rng = random.Random(7)
cases = [case(i, rng) for i in range(N)]
subprocess.run([program, folder], check=True, stdout=subprocess.DEVNULL)
n_read = n_refused = n_more = 0
for i, (options, damaged) in enumerate(cases):
    theirs, found = peer(i, options), ours(i)
    if theirs is None:
        if damaged and found is not None:
            sys.exit(f"case {i}: TensorFlow refuses a damaged file, we read it")
        n_refused += found is None
        n_more += found is not None
    elif found is None:
        sys.exit(f"case {i}: TensorFlow reads it, we do not: {folder}/case_{i}.csv {options}")
    elif not equal(theirs, found):
        sys.exit(f"case {i}: TensorFlow reads\n{theirs}\nwe read\n{found}\n{options}")
    else:
        n_read += 1
if n_read < N // 2 or n_refused < N // 20:
    sys.exit(f"only {n_read} files read and {n_refused} refused: the cases are too easy or too hard")
print(f"{n_read} files read alike, {n_refused} refused by both, {n_more} that TensorFlow refuses and we read, 0 failed")
