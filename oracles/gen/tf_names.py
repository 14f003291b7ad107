"""Writes oracles/fixtures/tf_names.jsonl: the public names of tf.estimator and tf.feature_column, their arguments, and the files of a model.

Run as `python oracles/gen/tf_names.py` in an environment with tensorflow 2.15. Cases:

    name    the `name` of a class, a function, a method, a property or a constant, without the leading `tf.`; the `arguments` that it
            takes, without `self`, and the `defaults` of some
    file    the `path` of a file that an Estimator writes below its model folder; N is a step, T a time, H a host

Of Keras, names alone are listed: layers, losses, metrics, initializers, regularizers, constraints, applications.

What is listed: all of tf.estimator (with `experimental` and `export`) and tf.feature_column; what only their version 1 has; the Keras
bridge; the names of Keras' callbacks, optimizers, schedules and of what its Model defines; and of tf.compat.v1.train what an Estimator's user meets: hooks, what they are given, Scaffold, warm starts, the global step.
"""

import inspect
import os
import pathlib
import re
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

from fixture import Fixture

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
fixture = Fixture()
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
    return kept


def put(name, function=None):
    """A name, and what it takes if it is called."""
    taken = arguments(function) if function else []
    defaults = {p.name: default(p.default) for p in taken if p.default is not p.empty}
    fixture.case("name", name=name, arguments=[p.name for p in taken], defaults=defaults)


def describe(name, value):
    """A name, and what belongs to it."""
    if inspect.ismodule(value):
        for member in public(value):
            describe(f"{name}.{member}", getattr(value, member))
        return
    put(name, value if callable(value) else None)
    if inspect.isclass(value) and not issubclass(value, Exception):
        taken = {p.name for p in arguments(value)}
        inherited = {member for base in BASES if issubclass(value, base[1:]) and value is not base[0] for member in public(base[0])}
        for member in public(value):
            # A field that is an argument of the same name is listed once.
            if member not in taken and member not in inherited:
                attribute = inspect.getattr_static(value, member)
                function = getattr(value, member) if inspect.isfunction(attribute) else None
                put(f"{name}.{member}", function)


def names():
    describe("estimator", tf.estimator)
    describe("feature_column", tf.feature_column)
    for old, new in [("compat.v1.estimator", tf.estimator), ("compat.v1.estimator.experimental", tf.estimator.experimental),
                     ("compat.v1.feature_column", tf.feature_column)]:
        module = tf
        for part in old.split("."):
            module = getattr(module, part)
        for member in public(module):
            if not hasattr(new, member) and member != "tpu":
                describe(f"{old}.{member}", getattr(module, member))
    put("compat.v1.estimator.tpu")
    describe("keras.estimator.model_to_estimator", tf.keras.estimator.model_to_estimator)
    # Of Keras' training, the names alone.
    for module in ["callbacks", "optimizers", "optimizers.schedules"]:
        value = tf.keras
        for part in module.split("."):
            value = getattr(value, part)
        for member in public(value):
            put(f"keras.{module}.{member}")
    for member in vars(tf.keras.Model):
        if not member.startswith("_"):
            put(f"keras.Model.{member}")
    for member in public(tf.compat.v1.train):
        if TRAIN.fullmatch(member):
            value = getattr(tf.compat.v1.train, member)
            if getattr(tf.estimator, member, None) is value:
                put(f"compat.v1.train.{member}")
            else:
                describe(f"compat.v1.train.{member}", value)


def keras_names():
    """Names without arguments: layers are read from Keras' JSON, which has their arguments."""
    for part in ["layers", "losses", "metrics", "initializers", "regularizers", "constraints"]:
        module = getattr(tf.keras, part)
        for member in public(module):
            value = getattr(module, member)
            inner = [f"{member}.{name}" for name in public(value)] if inspect.ismodule(value) else [member]
            # Of the old place of layers, those that have no other place.
            if inspect.ismodule(value) and part == "layers":
                inner = [member] + [f"{member}.{name}" for name in public(value) if not hasattr(module, name)]
            for name in inner:
                fixture.case("name", name=f"keras.{part}.{name}", arguments=[], defaults={})
    # Modules of applications have these functions again.
    applications = tf.keras.applications
    names = [name for name in public(applications) if not inspect.ismodule(getattr(applications, name))]
    for name in names + [f"imagenet_utils.{name}" for name in public(applications.imagenet_utils)]:
        fixture.case("name", name=f"keras.applications.{name}", arguments=[], defaults={})


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
    for name in sorted(found):
        fixture.case("file", path=name)


if __name__ == "__main__":
    names()
    keras_names()
    files()
    fixture.write("tf_names", tf)
