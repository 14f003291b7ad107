"""The k-means of `crates/estimand/benches/kmeans.rs` in TensorFlow or scikit-learn. Prints milliseconds of one pass.

    peer_kmeans.py tensorflow|scikit_learn

TensorFlow reads batches that are cut before the pass, and its time begins after its first step: building the graph does not count.
scikit-learn is given the batches one by one (partial_fit), or fits with its own sampling; the faster one counts.
"""

import shutil
import sys
import tempfile
import time

import numpy as np

BATCH, WIDTH, CLUSTERS = 1_024, 64, 100
ROWS = 977 * BATCH
rng = np.random.default_rng(0)
places = rng.random((CLUSTERS, WIDTH), dtype=np.float32) * 4
x = places[np.arange(ROWS) % CLUSTERS] + rng.random((ROWS, WIDTH), dtype=np.float32)


def tensorflow():
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")

    class Clock(tf.compat.v1.train.SessionRunHook):
        def __init__(self):
            self.times = []

        def after_run(self, context, values):
            self.times.append(time.perf_counter())

    def batches():
        # Batches that are cut already: rows one by one would take longer than the steps.
        return tf.data.Dataset.from_tensor_slices(x.reshape(-1, BATCH, WIDTH)).prefetch(4)

    folder, clock = tempfile.mkdtemp(), Clock()
    config = tf.estimator.RunConfig(save_summary_steps=10_000, log_step_count_steps=10_000)
    kmeans = tf.compat.v1.estimator.experimental.KMeans(CLUSTERS, folder, initial_clusters=x[:CLUSTERS], config=config)
    kmeans.train(batches, hooks=[clock])
    shutil.rmtree(folder)
    steps = len(clock.times) - 1
    return (clock.times[-1] - clock.times[0]) / steps * (ROWS / BATCH)


def scikit_learn():
    from sklearn.cluster import MiniBatchKMeans

    def make():
        return MiniBatchKMeans(CLUSTERS, init=x[:CLUSTERS], n_init=1, batch_size=BATCH, max_iter=1, tol=0.0, max_no_improvement=None,
                               reassignment_ratio=0.0, compute_labels=False)

    def in_turn():
        kmeans = make()
        for first in range(0, ROWS, BATCH):
            kmeans.partial_fit(x[first:first + BATCH])

    def timed(run):
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    return min(timed(in_turn), timed(lambda: make().fit(x)), timed(in_turn), timed(lambda: make().fit(x)))


name = sys.argv[1]
print(f"{name} = {globals()[name]() * 1e3:.1f}", flush=True)
