"""Random programs of ours as ONNX models: the checker accepts them, and onnxruntime computes what our reference does.

    onnx_programs.py PROGRAM_EXCHANGE FOLDER [FIRST_SEED COUNT]

Numbers are equal within 1e-4 of the largest of a result, or of 1. A program on text that is not UTF-8 is only checked.
"""

import collections
import pathlib
import re
import subprocess
import sys

import onnx_packages  # noqa: F401
import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

FIRST, COUNT = 0, 600
TOLERANCE = 1e-4
# onnxruntime has no kernel for these; the files are right by the standard.
MISSING = re.compile(r"NOT_IMPLEMENTED|not implemented|not supported")


def read(path):
    """A tensor; `None` if it is not text."""
    if not path.stat().st_size:
        return None
    tensor = onnx.load_tensor(str(path))
    return onnx.numpy_helper.to_array(tensor).reshape(tuple(tensor.dims))


def tensors(folder, kind):
    """The tensors of a kind by name."""
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
    return {path.stem: read(path) for path in paths}


def text(values):
    return np.array([v.decode() if isinstance(v, bytes) else str(v) for v in values.ravel()], dtype=object).reshape(values.shape)


def different(found, wanted):
    if found.shape != wanted.shape:
        return f"{found.shape} instead of {wanted.shape}"
    if wanted.dtype.kind in "OUS":
        return None if (text(found) == text(wanted)).all() else f"{found} instead of {wanted}"
    if found.dtype != wanted.dtype:
        return f"{found.dtype} instead of {wanted.dtype}"
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(1, finite.max(initial=0))
    with np.errstate(invalid="ignore"):
        same = (np.abs(found - wanted) <= TOLERANCE * scale) | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    return None if same.all() else f"{found[~same][0]} instead of {wanted[~same][0]}, {(~same).sum()} of {same.size}"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    first, count = map(int, sys.argv[3:] or (FIRST, COUNT))
    subprocess.run([program, str(folder), str(first), str(count)], check=True)
    complaints, missing, n_outputs, ops = [], collections.Counter(), 0, collections.Counter()
    for seed in range(first, first + count):
        path = folder / str(seed) / "model.onnx"
        model = onnx.load(str(path))
        ops.update(node.op_type for node in model.graph.node)
        try:
            onnx.checker.check_model(model, full_check=True)
            given, wanted = tensors(path.parent, "input"), tensors(path.parent, "output")
            if not wanted or any(value is None for value in [*given.values(), *wanted.values()]):
                continue
            given = {name: text(value) if value.dtype.kind in "OUS" else value for name, value in given.items()}
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            # Its fused products fail for batches without rows.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            found = dict(zip(wanted, session.run(list(wanted), given)))
        except Exception as error:
            if MISSING.search(str(error)):
                missing[re.sub(r"\(node:? ?[^)]*\)|Node [^ ]*|name '.*?'", "", str(error))[:120]] += 1
            else:
                complaints.append(f"program {seed}: {str(error).strip()[:300]}")
            continue
        for name, value in wanted.items():
            n_outputs += 1
            difference = different(np.asarray(found[name]), value)
            if difference:
                complaints.append(f"program {seed}, {name}: {difference}")
    refused = (folder / "refused.txt").read_text().splitlines()
    kinds = collections.Counter(re.search(r"in node `[^`]*` \((\w+)\)", line + " in node `` (other)").group(1) for line in refused)
    print(f"  {count} programs, {n_outputs} outputs equal, {len(ops)} operators; refused: {dict(kinds.most_common())}")
    for error, n in missing.most_common():
        print(f"  not in onnxruntime, {n} programs: {error}")
    if n_outputs < count:
        complaints.append(f"only {n_outputs} outputs were compared")
    for complaint in complaints[:20]:
        print(f"  {complaint}")
    sys.exit(bool(complaints))


main()
