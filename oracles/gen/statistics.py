"""Writes oracles/fixtures/statistics.jsonl: what NumPy and pandas say about columns of 20,000 rows.

Run as `python oracles/gen/statistics.py` in an environment with numpy and pandas. The rows are not in the fixture: they come from SplitMix64 with the
seed 4, row by row in the order of the columns below; crates/data/tests/laws/statistics.rs makes the same. Missing and infinite values stay out of mean and
deviation. Cases, each with the `name` of a column:

    numbers      `counts`: values, missing, infinite, zero and distinct ones; `moments`: mean, deviation, minimum, maximum
    quantiles    `values` at the shares of QUANTILES
    terms        `counts`: missing and distinct ones; `mean_length` of those present
    top          `terms` with their counts, most frequent first, equally frequent ones in their own order
"""

import numpy as np
import pandas as pd

from fixture import Fixture

N_ROWS = 20_000
QUANTILES = [0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1.0]
SEED = 4
fixture = Fixture(SEED)
state = SEED


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

for name in ["uniform", "shifted", "gaps", "age", "large"]:
    values = frame[name].dropna().to_numpy()
    finite = values[np.isfinite(values)].astype(np.float64)
    counts = [len(values), frame[name].isna().sum(), len(values) - len(finite), (values == 0).sum(), frame[name].nunique()]
    moments = [finite.mean(), finite.std(), values.min(), values.max()]
    fixture.case("numbers", name=name, counts=counts, moments=[float(m) for m in moments])
    # Quantiles of infinite values: NumPy would make NaN of them.
    ordered = np.sort(values.astype(np.float64))
    ordered[np.isinf(ordered)] = -1e308
    quantiles = np.quantile(ordered, QUANTILES)
    fixture.case("quantiles", name=name, values=[-np.inf if q < -1e300 else q for q in quantiles])

words = frame["word"][frame["word"] != ""]
fixture.case("terms", name="word", counts=[N_ROWS - len(words), words.nunique()], mean_length=words.str.len().mean())
for name, terms in [("word", words), ("age", frame["age"])]:
    counts = terms.value_counts()
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    fixture.case("top", name=name, terms=[[str(term), count] for term, count in ranked])
fixture.write("statistics", np, pd)
