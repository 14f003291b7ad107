"""Training and evaluation graphs of ours in stock TensorFlow: it trains them and computes their metrics as we do.

    export_modes.py EXPORT_MODES_EXCHANGE FOLDER

Each export has three graphs and one set of variables. TensorFlow trains the graph `train` for 10 steps; the result must be that of our 10 steps, within
4 times what TensorFlow itself moves when all weights begin one ulp higher, or when the rows of each batch come in reverse. It adds ten batches to the metrics of the graph `eval`, as loaders of
evaluation graphs do: update ops over batches, then values, and again after the metric variables were set from outside. The graph `serve` answers.
"""

import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import tensorflow as tf

from export import N_ROWS, SEED, feature, row

tf.get_logger().setLevel("ERROR")
v1 = tf.compat.v1
BATCH, STEPS_BEFORE, STEPS = 100, 5, 10
OPTIMIZERS = ["SGD", "momentum", "nesterov", "Adagrad", "Adam", "amsgrad", "weight_decay", "lazy", "Ftrl", "regularized", "scheduled", "RMSProp",
              "centered", "rmsprop_v1", "Adadelta", "Adamax", "Nadam", "Adafactor"]
CASES = ["baseline", "linear", "linear_classes", "linear_regressor", "dnn", "dnn_classes", "dropout", "dnn_batch_norm", "combined", "weighted", "row_weights", "terms",
         "multi_label", "poisson", "logistic", "heads", "sequential", "metrics", "analysis"] + ["optimizer_" + name for name in OPTIMIZERS]
# The training draws random numbers, which are not ours.
RANDOM = ["dropout"]
# A label that the model does not have, which TensorFlow must refuse: in our graphs it is an `Assert`.
BAD_LABELS = {"linear": ("binary", [2]), "linear_classes": ("class", [3]), "dnn_classes": ("class", [-1]), "terms": ("term", [b"middle"]),
              "multi_label": ("ids", [1001]), "poisson": ("class", [-1]), "heads": ("class", [3])}
# The fields of TensorFlow's own exports: the collections that loaders look for, and the method of the signature.
METHODS = {"train": "tensorflow/supervised/training", "eval": "tensorflow/supervised/eval"}


def examples(folder):
    """Rows as those of export.py, with labels that are terms, and sequences of three steps."""
    dice, rng = random.Random(SEED), np.random.default_rng(SEED)
    rows = [row(dice, rng) for _ in range(N_ROWS)]
    more = lambda row: {"term": [b"high" if row["binary"] == [1] else b"low"], "mask": dice.choices([0, 1], k=3), "row_weight": [dice.choice([0.0, 0.5, 1.0, 3.0])], "steps": [float(v) for v in rng.normal(size=3)]}
    rows = [{**row, **more(row)} for row in rows]
    serialized = [tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in row.items()})).SerializeToString()
                  for row in rows]
    path = folder / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for one in serialized:
            writer.write(one)
    return path, serialized


def loaded(export, tag):
    """A session with the graph of a tag, and its message."""
    session = v1.Session(graph=tf.Graph(), config=v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    with session.graph.as_default():
        return session, v1.saved_model.load(session, [tag], export)


def signature_of(meta, name):
    signature = meta.signature_def[name]
    assert signature.method_name == METHODS[name], signature.method_name
    fed = set(signature.inputs) & {"examples", "inputs/examples"}
    assert len(fed) == 1, set(signature.inputs)
    return signature.inputs[fed.pop()].name, {key: info.name for key, info in signature.outputs.items()}


def check_analysis(session, meta, batch, case):
    """The inputs that the loader of TensorFlow Model Analysis asks for: those that it feeds, and those that it reads to slice by them."""
    signature = meta.signature_def["eval"]
    found = session.run({key: info.name for key, info in signature.inputs.items()}, {signature.inputs["inputs/examples"].name: batch})
    rows = [tf.train.Example.FromString(one).features.feature for one in batch]
    complaints = []
    if not np.array_equal(found["input_refs"], np.arange(len(batch))) or not found["tfma/version"]:
        complaints.append(f"{case}: eval: input_refs {found['input_refs']}, version {found['tfma/version']}")
    if found["labels"].tolist() != [row["binary"].int64_list.value[0] for row in rows]:
        complaints.append(f"{case}: eval: labels {found['labels']}")
    if found["features/job"].tolist() != [row["job"].bytes_list.value[0] for row in rows]:
        complaints.append(f"{case}: eval: features/job {found['features/job']}")
    return complaints


def trained(export, batches, folder, moved):
    """All variables after ten steps of TensorFlow, and the losses. With `moved`, weights begin one ulp higher."""
    session, meta = loaded(export, "train")
    with session, session.graph.as_default():
        examples, outputs = signature_of(meta, "train")
        (train_op,) = meta.collection_def["saved_model_train_op"].node_list.value
        step = v1.train.get_global_step()
        assert session.run(step) == STEPS_BEFORE, session.run(step)
        if moved:
            for variable in v1.trainable_variables():
                value = session.run(variable)
                session.run(variable.assign(np.nextafter(value, np.float32(np.inf)).astype(value.dtype)))
        losses = [session.run([train_op, outputs["loss"]], {examples: batch})[1] for batch in batches]
        assert session.run(step) == STEPS_BEFORE + STEPS, session.run(step)
        prefix = v1.train.Saver.from_proto(meta.saver_def).save(session, str(folder / "trained"), write_meta_graph=False)
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}, losses


def check_training(export, batches, place, case):
    found, losses = trained(export, batches, place, moved=False)
    moved, _ = trained(export, batches, place, moved=True)
    turned, _ = trained(export, [batch[::-1] for batch in batches], place, moved=False)
    complaints = []
    if not np.all(np.isfinite(losses)):
        complaints.append(f"{case}: train: the losses are {losses}")
    ours = tf.train.load_checkpoint(str(place / "model" / f"model.ckpt-{STEPS_BEFORE + STEPS}"))
    start = tf.train.load_checkpoint(str(place / "model" / f"model.ckpt-{STEPS_BEFORE}"))
    n_moved, worst = 0, 0.0
    for name, value in found.items():
        expected = ours.get_tensor(name)
        size = max(np.max(np.abs(expected), initial=0), 1e-30)
        drifts = [np.max(np.abs(value - other[name]), initial=0) for other in (moved, turned)]
        # A variable that does not drift may still be rounded.
        allowed = 4 * max(*drifts, np.spacing(np.float32(size)))
        off = np.max(np.abs(value - expected), initial=0)
        worst = max(worst, off / allowed if case not in RANDOM else 0)
        if not off <= allowed and case not in RANDOM:
            complaints.append(f"{case}: train: {name} is off by {off:.3g} of {size:.3g}; allowed {allowed:.3g}")
        n_moved += not np.array_equal(value, start.get_tensor(name))
    if n_moved < 2:
        complaints.append(f"{case}: train: {n_moved} of {len(found)} variables have moved")
    return complaints, worst


def measured(session, outputs, examples, batches):
    """The values of all metrics after some batches."""
    updates = [name for key, name in outputs.items() if key.endswith("/update_op")]
    for batch in batches:
        last = session.run(updates, {examples: batch})
    values = {key[len("metrics/"):-len("/value")]: name for key, name in outputs.items() if key.startswith("metrics/") and key.endswith("/value")}
    return session.run(values), last


def check_evaluation(export, batches, place, case):
    expected = dict(line.split("\t") for line in (place / "metrics.txt").read_text("utf-8").splitlines())
    expected = {name: np.array([float(number) for number in text.split()]) for name, text in expected.items()}
    session, meta = loaded(export, "eval")
    complaints = []
    with session, session.graph.as_default():
        examples, outputs = signature_of(meta, "eval")
        variables = v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)
        reset = v1.local_variables_initializer()
        places = [v1.placeholder(v.dtype, v.shape) for v in variables]
        assign = [v1.assign(v, place) for v, place in zip(variables, places)]
        # The loader has initialized the metric variables.
        values, last = measured(session, outputs, examples, batches)
        # The last update returns the value.
        for name, updated in zip((key[len("metrics/"):-len("/update_op")] for key in outputs if key.endswith("/update_op")), last):
            if not np.allclose(updated, values[name], 1e-6, equal_nan=True):
                complaints.append(f"{case}: eval: the last update of {name} is {updated}; the value is {values[name]}")
        if [v.name for v in variables] != [v.name for v in v1.local_variables()] or (not variables and values):
            complaints.append(f"{case}: eval: {len(variables)} metric variables, {len(v1.local_variables())} local ones")
        if "input_refs" in meta.signature_def["eval"].inputs:
            complaints += check_analysis(session, meta, batches[0], case)
        # Half of the batches, then the state is taken away and put back, then the other half.
        session.run(reset)
        measured(session, outputs, examples, batches[:5])
        state = session.run(variables)
        session.run(reset)
        session.run(assign, dict(zip(places, state)))
        again, _ = measured(session, outputs, examples, batches[5:])
        losses = [session.run(outputs["loss"], {examples: batch}) for batch in batches]
    if set(values) != set(expected) - {"loss"}:
        complaints.append(f"{case}: eval: the metrics {sorted(values)}; expected {sorted(expected)}")
    for name, want in expected.items():
        for found in [np.mean(losses)] if name == "loss" else [values[name], again[name]]:
            found = np.asarray(found, np.float64).reshape(-1)
            if found.shape != want.shape or not np.allclose(found, want, 1e-5, 1e-6, equal_nan=True):
                complaints.append(f"{case}: eval: {name} is {found}; ours is {want}")
    return complaints, len(values)


def check_serving(export, batches, case):
    """The graph for serving has the variables that the others share. An alternative `raw` is fed the numbers in place of Examples."""
    session, meta = loaded(export, "serve")
    answers, complaints = {}, []
    with session, session.graph.as_default():
        for name, signature in meta.signature_def.items():
            ((key, info),) = signature.inputs.items()
            fed = batches[0]
            if name.startswith("raw:"):
                fed = np.array([tf.train.Example.FromString(one).features.feature["vec"].float_list.value for one in fed], np.float32)
            answers[name] = session.run({key: info.name for key, info in signature.outputs.items()}, {info.name: fed})
    for name, found in answers.items():
        if not found or any(len(value) != BATCH for value in found.values()):
            complaints.append(f"{case}: serve: {name} answers {found}")
        for key, value in found.items() if ":" in name else ():
            if not np.array_equal(value, answers[name.removeprefix("raw:")][key]):
                complaints.append(f"{case}: serve: {name}: {key} differs")
    if (case == "metrics") != any(":" in name for name in answers):
        complaints.append(f"{case}: serve: the signatures are {sorted(answers)}")
    # The other loader takes seconds. It cannot feed tensors that an op computes from another input.
    for tag in ["train", "eval", "serve"] if not case.startswith("optimizer_") else []:
        if (case, tag) != ("analysis", "eval"):
            signatures = tf.saved_model.load(export, tags=[tag]).signatures
            complaints += [] if signatures else [f"{case}: {tag}: no signatures"]
    return complaints


def check_bad_label(export, batch, case):
    """One row of the batch has a label that the model does not have. Whole batches were accepted before."""
    if case not in BAD_LABELS:
        return []
    name, values = BAD_LABELS[case]
    row = tf.train.Example.FromString(batch[-1])
    row.features.feature[name].CopyFrom(feature(values))
    complaints = []
    for tag in ["train", "eval"]:
        session, meta = loaded(export, tag)
        with session, session.graph.as_default():
            examples, outputs = signature_of(meta, tag)
            try:
                loss = session.run(outputs["loss"], {examples: batch[:-1] + [row.SerializeToString()]})
                complaints.append(f"{case}: {tag}: the label {values} is accepted; the loss is {loss}")
            except tf.errors.InvalidArgumentError:
                pass
    return complaints


def check_case(program, folder, case, path, serialized):
    place = folder / case
    place.mkdir()
    done = subprocess.run([program, case, path, place], capture_output=True, text=True)
    if done.returncode:
        return [f"{case}: {done.stderr[-1500:]}"], 0, 0.0
    export = done.stdout.strip()
    batches = [serialized[i * BATCH:(i + 1) * BATCH] for i in range(len(serialized) // BATCH)]
    # A training goes on in its input.
    later = [batches[(STEPS_BEFORE + i) % len(batches)] for i in range(STEPS)]
    complaints, worst = check_training(export, later, place, case)
    more, n = check_evaluation(export, batches, place, case)
    return complaints + more + check_serving(export, batches, case) + check_bad_label(export, batches[0], case), n, worst


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    path, serialized = examples(folder)
    complaints, n_metrics, worst = [], 0, (0.0, "")
    cases = os.environ.get("CASES", " ".join(CASES)).split()
    for case in cases:
        found, n, off = check_case(program, folder, case, path, serialized)
        complaints += found
        n_metrics += n
        worst = max(worst, (off, case))
    for complaint in complaints:
        print(complaint)
    print(f"{len(cases)} models trained, {n_metrics} metrics, {len(complaints)} differences; "
          f"the largest difference of a training is {worst[0]:.2f} of what is allowed ({worst[1]})")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
