"""Writes oracles/fixtures/tf_names.txt: the public names of tf.estimator and tf.feature_column, their arguments, and the files of a model.

Run as `python oracles/gen/tf_names.py` in an environment with tensorflow 2.15. The first line names versions; every other line is one of

    name <name>                    a class, a function, a method, a property or a constant, without the leading `tf.`
    name <name> <argument>[=<default>] ...     the same with what it takes, without `self`
    file <path>                    a file that an Estimator writes below its model folder; N is a step, T a time, H a host

What is listed: all of tf.estimator (with `experimental` and `export`) and tf.feature_column; what only their version 1 has; the Keras
bridge; and of tf.compat.v1.train what an Estimator's user meets: hooks, what they are given, Scaffold, warm starts, the global step.
"""

import inspect
import os
import pathlib
import re
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "tf_names.txt"
# Of a named tuple, not of the Estimator world.
TUPLE = {"count", "index"}
TRAIN = re.compile(r".*Hook|CheckpointSaverListener|SessionRun.*|SecondOrStepTimer|NanLossDuringTrainingError|Scaffold|VocabInfo"
                   r"|warm_start|(get_or_create_|get_|create_|assert_)?global_step")

# Classes that are listed, and how to know what is derived from them: there, what they define is not listed again.
BASES = [(tf.estimator.Estimator, tf.compat.v1.estimator.Estimator), (tf.estimator.Head, tf.estimator.Head),
         (tf.estimator.SessionRunHook, tf.estimator.SessionRunHook), (tf.estimator.Exporter, tf.estimator.Exporter),
         (tf.estimator.export.ExportOutput, tf.estimator.export.ExportOutput)]


def public(owner):
    return sorted(n for n in dir(owner) if not n.startswith("_") and n not in TUPLE)


def default(value):
    """A default as it is short, or `...`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value).replace(" ", "")
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tuple):
        return repr(value).replace(" ", "")
    return getattr(value, "__name__", "...")


def arguments(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kept = [p for p in parameters if p.name not in ("self", "cls") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name if p.default is p.empty else f"{p.name}={default(p.default)}" for p in kept]


def describe(name, value, lines):
    """The lines of a name, and of what belongs to it."""
    if inspect.ismodule(value):
        for member in public(value):
            describe(f"{name}.{member}", getattr(value, member), lines)
        return
    lines.append(" ".join(["name", name, *(arguments(value) if callable(value) else [])]))
    if inspect.isclass(value) and not issubclass(value, Exception):
        taken = {a.split("=")[0] for a in arguments(value)}
        inherited = {member for base in BASES if issubclass(value, base[1:]) and value is not base[0] for member in public(base[0])}
        for member in public(value):
            # A field that is an argument of the same name is listed once.
            if member not in taken and member not in inherited:
                attribute = inspect.getattr_static(value, member)
                function = getattr(value, member) if inspect.isfunction(attribute) else None
                lines.append(" ".join(["name", f"{name}.{member}", *(arguments(function) if function else [])]))


def names():
    lines = []
    describe("estimator", tf.estimator, lines)
    describe("feature_column", tf.feature_column, lines)
    for old, new in [("compat.v1.estimator", tf.estimator), ("compat.v1.estimator.experimental", tf.estimator.experimental),
                     ("compat.v1.feature_column", tf.feature_column)]:
        module = tf
        for part in old.split("."):
            module = getattr(module, part)
        for member in public(module):
            if not hasattr(new, member) and member != "tpu":
                describe(f"{old}.{member}", getattr(module, member), lines)
    lines.append("name compat.v1.estimator.tpu")
    describe("keras.estimator.model_to_estimator", tf.keras.estimator.model_to_estimator, lines)
    for member in public(tf.compat.v1.train):
        if TRAIN.fullmatch(member):
            value = getattr(tf.compat.v1.train, member)
            if getattr(tf.estimator, member, None) is value:
                lines.append(f"name compat.v1.train.{member}")
            else:
                describe(f"compat.v1.train.{member}", value, lines)
    return lines


def files():
    """What training, two evaluations and an exporter leave behind."""
    column = tf.feature_column.numeric_column("x")
    data = lambda: tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [0, 1]))
    with tempfile.TemporaryDirectory() as folder:
        estimator = tf.estimator.LinearClassifier([column], model_dir=folder)
        receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(tf.feature_column.make_parse_example_spec([column]))
        exporter = tf.estimator.LatestExporter("NAME", receiver)
        tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(data, max_steps=1),
                                        tf.estimator.EvalSpec(data, exporters=exporter))
        estimator.evaluate(data, name="NAME")
        found = set()
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file():
                name = str(path.relative_to(folder))
                name = re.sub(r"tfevents\.\d+\..*", "tfevents.T.H", name)
                name = re.sub(r"ckpt-\d+", "ckpt-N", name)
                found.add(re.sub(r"/\d{10}/", "/T/", name))
    return [f"file {name}" for name in sorted(found)]


def main():
    lines = names() + files()
    header = f"# Made by oracles/gen/tf_names.py, which explains the lines; tensorflow {tf.__version__}."
    OUT.write_text("\n".join([header, *lines]) + "\n")


if __name__ == "__main__":
    main()
