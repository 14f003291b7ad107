"""From opening an export to its first answer in TensorFlow, in milliseconds. Usage: peer_export.py FOLDER

The import of TensorFlow is not counted, and a first model is loaded before the clock starts."""
import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402


def first_answer(folder):
    start = time.perf_counter()
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    _, inputs = signature.structured_input_signature
    row = {name: tf.zeros([1] + spec.shape.as_list()[1:], spec.dtype) if spec.dtype != tf.string else tf.constant([""])
           for name, spec in inputs.items()}
    answers = signature(**row)
    next(iter(answers.values())).numpy()
    return 1e3 * (time.perf_counter() - start)


first_answer(sys.argv[1])
print("tensorflow_load_ms = %.1f" % statistics.median(first_answer(sys.argv[1]) for _ in range(5)))
