"""Writes oracles/fixtures/clusters.jsonl: what TensorFlow's RunConfig makes of TF_CONFIG.

TensorFlow 2.15.1, Python 3.11, no randomness.  Run: python oracles/gen/clusters.py
A case has the `tf_config`, as JSON or as a text that is none, and the `run_config` or the `error`.
"""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

from fixture import Fixture

ONE = {"chief": ["c:1"], "ps": ["p:1", "p:2"], "worker": ["w:1", "w:2", "w:3"]}
OLD = {"master": ["m:1"], "worker": ["w:1", "w:2"], "ps": ["p:1"], "zebra": ["z:1"]}
HOLES = {"chief": ["c:1"], "worker": {"0": "w:1", "3": "w:3"}, "ps": {"1": "p:1"}}
INSIDE = {"chief": ["c:1"], "worker": ["w:1"], "evaluator": ["e:1"]}
MASTERS = {"session_master": "grpc://s", "eval_session_master": "grpc://e"}


def task(cluster, kind, index, **more):
    return {"cluster": cluster, "task": {"type": kind, "index": index}, **more}


CASES = [
    {},
    {"task": {"type": "worker", "index": 0}},
    {"task": {"type": "worker"}},
    {"task": {"index": "0"}},
    {"cluster": {}, "task": {"type": "worker", "index": 0}},
    {"model_dir": "there"},
    {"service": {"name": "x"}},
    {"environment": "cloud", "job": {"main": 1}},
    MASTERS,
    *(task(ONE, kind, index) for kind, n in [("chief", 1), ("worker", 3), ("ps", 2)] for index in range(n)),
    *(task(ONE, kind, 0, **MASTERS) for kind in ["chief", "worker", "ps", "evaluator"]),
    task(ONE, "evaluator", 0),
    task(ONE, "evaluator", 5),
    task(ONE, "worker", "1"),
    task(ONE, "worker", 1, model_dir="there"),
    *(task(OLD, kind, 0) for kind in OLD),
    task(OLD, "worker", 1),
    task(OLD, "evaluator", 0),
    task(HOLES, "chief", 0),
    task(HOLES, "worker", 0),
    task(HOLES, "worker", 3),
    task(HOLES, "ps", 1),
    *(task(INSIDE, kind, 0) for kind in INSIDE),
    task({"chief": ["c:1"]}, "chief", 0),
    task({"chief": ["c:1"]}, "chief", 0, **MASTERS),
    task({"master": ["m:1"]}, "master", 0),
    task({"chief": ["c:1"]}, "evaluator", 0),
    # Refused.
    "",
    "{",
    "[]",
    "5",
    {"task": 5},
    {"service": []},
    {"task": {"type": "chief", "index": 0}},
    {"task": {"type": "evaluator", "index": 0}},
    {"task": {"index": 1}},
    {"cluster": "x", "task": {"type": "worker", "index": 0}},
    task({"chief": "c:1"}, "chief", 0),
    task({"chief": [5]}, "chief", 0),
    task({"chief": ["c:1"], "worker": {"x": "w:1"}}, "chief", 0),
    task({"worker": ["w:1"]}, "worker", 0),
    task({"ps": ["p:1"]}, "ps", 0),
    task({"chief": ["c:1", "c:2"]}, "chief", 0),
    task({"master": ["c:1", "c:2"]}, "master", 0),
    task({"chief": ["c:1"], "master": ["m:1"]}, "chief", 0),
    {"cluster": ONE},
    {"cluster": ONE, "task": {"index": 0}},
    {"cluster": ONE, "task": {"type": "worker"}},
    task(ONE, "", 0),
    task(ONE, "worker", -1),
    task(ONE, "worker", 3),
    task(ONE, "worker", "x"),
    task(ONE, "chief", 1),
    task(ONE, "reader", 0),
    task(ONE, "evaluator", -1),
    task(HOLES, "worker", 1),
    task(HOLES, "worker", 4),
]


def jobs(cluster_spec):
    return {job: {str(i): cluster_spec.task_address(job, i) for i in cluster_spec.task_indices(job)} for job in sorted(cluster_spec.jobs)}


def run_config(text):
    os.environ["TF_CONFIG"] = text
    config = tf.estimator.RunConfig()
    same = ["task_type", "task_id", "is_chief", "master", "evaluation_master", "num_ps_replicas", "num_worker_replicas", "global_id_in_cluster"]
    return {name: getattr(config, name) for name in same} | {
        "cluster_spec": jobs(config.cluster_spec), "model_dir": config.model_dir, "service": config.service,
    }


if __name__ == "__main__":
    fixture = Fixture()
    for case in CASES:
        fixture.case("cluster", tf_config=case)
        try:
            fixture.put("run_config", run_config(case if isinstance(case, str) else json.dumps(case)))
        except Exception as error:
            fixture.put("error", type(error).__name__)
    fixture.write("clusters", tf)
