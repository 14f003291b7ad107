"""Writes oracles/fixtures/statistics.txt: what NumPy and pandas say about columns of 20,000 rows.

Run as `python oracles/gen/statistics.py` in an environment with numpy and pandas. The rows are not in the fixture: they come from SplitMix64 with the
seed 4, row by row in the order of the columns below; crates/data/tests/laws/statistics.rs makes the same. Missing and infinite values stay out of mean and
deviation. The fixture's lines:

    numbers <name> <n_values> <n_missing> <n_infinite> <n_zeros> <n_distinct> <mean> <std> <min> <max>
    quantiles <name> <value>...          at the shares of QUANTILES
    terms <name> <n_missing> <n_distinct> <mean length of those present>
    top <name> <term>=<count>...         most frequent first, equally frequent ones in their own order
"""

import pathlib

import numpy as np
import pandas as pd

N_ROWS = 20_000
QUANTILES = [0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0]
OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "statistics.txt"
state = 4


def below(n):
    global state
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return (z ^ (z >> 31)) % n


def row(i):
    uniform = below(2**53) / 2**53
    shifted = 1e9 + below(1000) / 8
    gaps = np.float32(below(50)) - np.float32(10)
    gaps = np.float32(np.nan) if i % 7 == 3 else np.float32(-np.inf) if i % 1001 == 5 else gaps
    age = 17 + below(1 + below(74))
    large = below(2**62) - 2**61
    word = "" if i % 9 == 1 else f"w{below(1 + below(40))}"
    return uniform, shifted, gaps, age, large, word


columns = list(zip(*(row(i) for i in range(N_ROWS))))
frame = pd.DataFrame({
    "uniform": np.array(columns[0], np.float64),
    "shifted": np.array(columns[1], np.float64),
    "gaps": np.array(columns[2], np.float32),
    "age": np.array(columns[3], np.int64),
    "large": np.array(columns[4], np.int64),
    "word": columns[5],
})

lines = []
for name in ["uniform", "shifted", "gaps", "age", "large"]:
    values = frame[name].dropna().to_numpy()
    finite = values[np.isfinite(values)].astype(np.float64)
    counts = [len(values), frame[name].isna().sum(), len(values) - len(finite), (values == 0).sum(), frame[name].nunique()]
    moments = [finite.mean(), finite.std(), values.min(), values.max()]
    lines.append(" ".join(["numbers", name] + [str(n) for n in counts] + [repr(float(m)) for m in moments]))
    # Quantiles of infinite values: NumPy would make NaN of them.
    ordered = np.sort(values.astype(np.float64))
    ordered[np.isinf(ordered)] = -1e308
    quantiles = np.quantile(ordered, QUANTILES)
    lines.append(" ".join(["quantiles", name] + ["-inf" if q < -1e300 else repr(float(q)) for q in quantiles]))

words = frame["word"][frame["word"] != ""]
lines.append(f"terms word {N_ROWS - len(words)} {words.nunique()} {words.str.len().mean()!r}")
for name, terms in [("word", words), ("age", frame["age"])]:
    counts = terms.value_counts()
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines.append(" ".join(["top", name] + [f"{term}={count}" for term, count in ranked]))
OUT.write_text("\n".join(lines) + "\n")
