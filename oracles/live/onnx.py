"""Exports of ours to ONNX: its checker accepts them, and onnxruntime answers 1,000 random rows as we do.

    onnx.py ONNX_EXCHANGE FOLDER

Rows are random, with unknown, empty and odd strings, ids out of range, and rows without values. The rows that we store beside
each model (`test_data_set_0`, ..) get the stored answers too. Numbers are equal within 1e-5 of their size, or within 4 times
the difference that onnxruntime makes between batches of 1 and of all rows, if that is larger; at most within 1e-5 of the largest number
of the output. What was allowed is printed. Models with hashes are refused.
"""

import json
import pathlib
import subprocess
import sys

import onnx_packages  # noqa: F401
import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

SEED = 11
N_ROWS = 1000
TOLERANCE = 1e-5
# The most that may be allowed to numbers near 0 for what onnxruntime does, as a part of the largest number.
SLACK = 1e-5
WORDS = ["nurse", "cook", "clerk", "pilot", "König", "", "a", "b", "c", "d", "e", " a", "x" * 300, "Ünbekannt", "日本"]
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(string)": object}
rng = np.random.default_rng(SEED)


def floats(*sizes):
    return rng.normal(size=(N_ROWS, *sizes)).astype(np.float32)


def words(*sizes, among=WORDS):
    return rng.choice(np.array(among, dtype=object), size=(N_ROWS, *sizes))


def ragged(values, nothing, lengths):
    """Rows of these lengths, padded. A row has no value that stands for nothing."""
    values = values.copy()
    for row, n in enumerate(lengths):
        values[row, n:] = nothing
    return values


def ids(low, high, *sizes):
    return rng.integers(low, high, size=(N_ROWS, *sizes), dtype=np.int64)


def census():
    named = [word for word in WORDS if word]
    lengths, others = rng.integers(0, 4, N_ROWS), rng.integers(0, 5, N_ROWS)
    weights = rng.uniform(0.1, 2, (N_ROWS, 3)).astype(np.float32)
    scale = rng.choice(np.array([1, 1, 1, 1000, 1e-30], dtype=np.float32), N_ROWS)
    return {
        "height": floats() * scale, "age": ids(-5, 100), "job": words(), "vec": floats(3),
        "tags": ragged(words(3, among=named), "", lengths), "weights": ragged(weights, 0, lengths),
        "words": ragged(words(4, among=named), "", others), "ids": ragged(rng.choice([0, 1, 5, 19, 20, 1000], (N_ROWS, 3)), -1, lengths),
        "binary": ids(0, 2), "class": ids(0, 3), "target": floats(),
    }


def sequences():
    lengths = rng.integers(0, 6, N_ROWS)
    named = [word for word in WORDS if word]
    return {"words": ragged(words(5, among=named), "", lengths), "steps": ragged(floats(5), 0, lengths),
            "binary": ids(0, 2), "class": ids(0, 3), "target": floats()}


def only(rows, *names):
    return {name: rows[name] for name in names}


IRIS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
COLUMNS = ["height", "age", "job", "vec", "tags", "weights", "words", "ids"]
RAGGED = ["tags", "weights", "words", "ids", "steps"]


def rows_of(case):
    if case == "iris":
        return {**{name: np.abs(floats()) * 3 for name in IRIS}, "species": words(among=["setosa", "versicolor", "virginica"])}
    if case == "census":
        return only(census(), *COLUMNS, "binary")
    if case == "census_regressor":
        return only(census(), *COLUMNS, "target")
    if case == "linear":
        return only(census(), "height", "age", "job", "vec", "tags", "weights", "ids", "class")
    if case == "cnn":
        return {"pixels": floats(28, 28, 1), "class": ids(0, 3)}
    if case in ("lstm", "recurrent", "attention"):
        return only(sequences(), "words", "steps", {"lstm": "binary", "recurrent": "target", "attention": "class"}[case])
    if case == "ops":
        return {"x": floats(6), "n": ids(-9, 9), "target": floats()}
    if case == "layers":
        return {"pixels": floats(8, 8, 4), "texts": words(3, among=["a", "d", "e", "zz"]), "target": floats()}
    if case == "keras_sequential":
        return {"conv2d_input": floats(8, 8, 2), "dense": floats(3)}
    if case == "keras_functional":
        return {"left": floats(6), "right": floats(4), "price": floats(1), "kind": floats(3)}
    if case == "keras_gru":
        return {"embedding_input": ids(0, 10, 7), "dense": floats(1)}
    if case == "keras_dilated":
        given = {"sound": floats(9, 3), "image": floats(7, 8, 2), "volume": floats(4, 5, 6, 2)}
        return {**given, "heard": floats(2), "seen": floats(4), "inside": floats(3)}
    if case == "keras_windows":
        return {"sound": floats(20, 3), "image": floats(29, 37, 2), "heard": floats(2), "seen": floats(4)}
    return {"x": floats(6, 4), "dense": floats(2)}


CASES = ["iris", "census", "census_regressor", "linear", "cnn", "lstm", "recurrent", "attention", "ops", "layers", "keras_sequential",
         "keras_functional", "keras_gru", "keras_attention", "keras_dilated", "keras_windows"]


# Cases that are also asked for no rows. onnxruntime divides by zero in a loop or an image without rows.
WITHOUT_ROWS = ["iris", "census", "linear", "ops", "keras_functional"]


def write(rows, path):
    kinds = {"f": "float32", "i": "int64", "O": "string"}
    plain = {}
    for name, values in rows.items():
        plain[name] = {"sizes": values.shape, "dtype": kinds[values.dtype.kind], "values": values.ravel().tolist(),
                       "ragged": name in RAGGED}
    path.write_text(json.dumps(plain))


def close(found, wanted, own, what):
    """Complaints about numbers that differ; `own` are the same answers, computed one row at a time."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return [f"{what}: {found.shape}, we have {wanted.shape}"]
    if found.dtype.kind in "OU":
        wrong = [(a, b) for a, b in zip(found.ravel(), wanted.ravel()) if str(a) != str(b)]
        return [f"{what}: {len(wrong)} texts differ, such as {wrong[0]}"] if wrong else []
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    allowed = TOLERANCE * np.maximum(1, np.abs(wanted))
    if own is not None and own.shape == found.shape:
        allowed = np.maximum(allowed, 4 * np.abs(own.astype(np.float64) - found))
    with np.errstate(invalid="ignore"):
        differ = ~((np.abs(found - wanted) <= allowed) | (found == wanted) | (np.isnan(found) & np.isnan(wanted)))
    if not differ.any():
        return []
    place = tuple(int(i[0]) for i in np.nonzero(differ))
    return [f"{what}: {differ.sum()} of {differ.size} differ, such as {found[place]} at {place}, we have {wanted[place]}"]


def is_class(name):
    return name.split("/")[-1] in ("classes", "class_ids")


def near_ties(answers):
    """Rows whose class depends on rounding."""
    for name in ("probabilities", "logits"):
        if name in answers:
            ordered = np.sort(np.asarray(answers[name]), axis=-1)
            if ordered.shape[-1] > 1:
                return ordered[..., -1] - ordered[..., -2] < 1e-4
    return None


def compare(found, wanted, own, what):
    complaints = []
    ties = near_ties(wanted)
    for name, value in wanted.items():
        value, answer = np.asarray(value), np.asarray(found[name])
        one = None if own is None else own[name]
        if is_class(name) and ties is not None and len(value) == len(ties):
            value, answer, one = value[~ties], answer[~ties], None
        complaints += close(answer, value, one, f"{what} {name}")
    return complaints


def stored_rows(session, folder):
    """The rows beside a model get the answers beside them."""
    complaints, n = [], 0
    for folder in sorted(folder.glob("test_data_set_*")):
        def tensors(kind, names):
            read = lambda i: onnx.numpy_helper.to_array(onnx.load_tensor(str(folder / f"{kind}_{i}.pb")))
            return {name: read(i) for i, name in enumerate(names)}
        given = tensors("input", [i.name for i in session.get_inputs()])
        wanted = tensors("output", [o.name for o in session.get_outputs()])
        given = {name: text(value) if value.dtype.kind in "OUS" else value for name, value in given.items()}
        wanted = {name: text(value) if value.dtype.kind in "OUS" else value for name, value in wanted.items()}
        found = dict(zip(wanted, session.run(None, given)))
        complaints += compare(found, wanted, None, f"{folder.name}:")
        n += 1
    if n < 1:
        complaints.append(f"there are {n} folders of stored rows")
    return complaints


def text(values):
    return np.array([v.decode() if isinstance(v, bytes) else str(v) for v in values.ravel()], dtype=object).reshape(values.shape)


def check(program, case, folder):
    folder.mkdir()
    rows = rows_of(case)
    write(rows, folder / "rows.json")
    ran = subprocess.run([program, case, str(folder / "rows.json"), str(folder)], capture_output=True, text=True)
    if ran.returncode != 0:
        return [f"{case}: {ran.stderr.strip()}"]
    export = pathlib.Path(ran.stdout.strip().split(" = ")[1])
    model = onnx.load(str(export / "model.onnx"))
    onnx.checker.check_model(model, full_check=True)
    opsets = {one.domain: one.version for one in model.opset_import}
    if opsets.get("") != 17 or opsets.get("ai.onnx.ml", 3) != 3:
        return [f"{case}: the opsets are {opsets}"]
    session = onnxruntime.InferenceSession(str(export / "model.onnx"), providers=["CPUExecutionProvider"])
    given = {i.name: rows[i.name].astype(TYPES[i.type]) for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    found = dict(zip(names, session.run(names, given)))
    answers = json.loads((folder / "answers.json").read_text())
    if set(answers) - set(names):
        return [f"{case}: the model has no outputs {sorted(set(answers) - set(names))}; it has {names}"]
    wanted = {name: np.array(one["values"]).reshape(one["sizes"]) for name, one in answers.items()}
    # A row of our predictions has no axis of size 1.
    wanted = {name: value.reshape(found[name].shape) if found[name].shape == (*value.shape, 1) else value for name, value in wanted.items()}
    few = min(N_ROWS, 50)
    alone = [session.run(names, {name: value[i:i + 1] for name, value in given.items()}) for i in range(few)]
    own, slack = {}, {}
    for i, name in enumerate(names):
        one = np.concatenate([answer[i] for answer in alone]) if alone[0][i].shape[:1] == (1,) else None
        # The largest difference of a row stands for all of them.
        if one is not None and one.dtype.kind == "f" and one.shape[1:] == found[name].shape[1:]:
            largest = np.nanmax(np.abs(one - found[name][:few]), initial=0)
            size = np.max(np.abs(found[name])[np.isfinite(found[name])], initial=0)
            slack[name] = min(4 * float(largest), SLACK * float(size))
            own[name] = found[name].astype(np.float64) + slack[name] / 4
    own = {name: own.get(name) for name in names}
    complaints = compare(found, wanted, own, case)
    if case in WITHOUT_ROWS:
        empty = session.run(names, {name: value[:0] for name, value in given.items()})
        if any(len(answer) for answer in empty):
            complaints.append(f"{case}: a batch without rows has answers")
    complaints += [f"{case}: {complaint}" for complaint in stored_rows(session, export)]
    n_nodes = len(model.graph.node)
    allowed = max((value for value in slack.values() if value), default=0)
    print(f"  {case}: {n_nodes} nodes, {len(names)} outputs, {N_ROWS} rows; the slack is at most {allowed:.1e}")
    return complaints


def check_refused(program, folder):
    folder.mkdir()
    ran = subprocess.run([program, "refused", "-", str(folder)], capture_output=True, text=True)
    if ran.returncode != 0:
        return [f"refused: {ran.stderr.strip()}"]
    lines = ran.stdout.strip().splitlines()
    column = {"hash": "`job`", "embedding": "`job_embedding`", "cross": "`city_X_job`", "oov": "`job`"}
    wanted = ["three choices", "categorical_column_with_identity", "categorical_column_with_vocabulary_list", "export_saved_model"]
    complaints = [f"refused: {len(lines)} lines"] if len(lines) != len(column) else []
    for line in lines:
        name, error = line.split(":", 1)
        complaints += [f"refused: {line} does not say {part}" for part in [f"column {column[name]}", *wanted] if part not in error]
        if any(folder.glob(f"{name}_onnx/*")):
            complaints.append(f"refused: {name} leaves a file")
    print(f"  {len(lines)} models with hashes are refused by the names of their columns")
    return complaints


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    cases = sys.argv[3:] or CASES
    complaints = []
    for case in cases:
        complaints += check(program, case, folder / case)
    complaints += check_refused(program, folder / "refused")
    for complaint in complaints:
        print(f"  {complaint}")
    sys.exit(bool(complaints))


main()
