"""The load model in TensorFlow: its signature called in process, or behind FastAPI.

    peer_serve.py EXPORT                     prints `tensorflow_in_process_us`, `tensorflow_1000_rows_per_s`
    peer_serve.py EXPORT PORT PACKAGES       serves POST /predict with TensorFlow Serving's JSON until it is ended
"""

import sys
import time

import tensorflow as tf

WORDS, NUMBERS = ("job", "city", "school", "state"), ("age", "hours", "gain", "loss")


def rows(n):
    columns = {name: [f"{name}-{i * (k + 5) % 17}" for i in range(n)] for k, name in enumerate(WORDS)}
    columns |= {name: [i * (k + 3) % 90 + 0.5 for i in range(n)] for k, name in enumerate(NUMBERS)}
    return columns


def tensors(columns):
    return {name: tf.constant(values, tf.string if name in WORDS else tf.float32) for name, values in columns.items()}


def measure(call):
    one = rows(1)
    for _ in range(200):
        call(**tensors(one))
    start, n = time.perf_counter(), 1000
    for _ in range(n):
        call(**tensors(one))["probabilities"].numpy()
    print(f"tensorflow_in_process_us = {(time.perf_counter() - start) * 1e6 / n:.1f}")
    thousand = rows(1000)
    call(**tensors(thousand))
    start, n = time.perf_counter(), 50
    for _ in range(n):
        call(**tensors(thousand))["probabilities"].numpy()
    print(f"tensorflow_1000_rows_per_s = {n * 1000 / (time.perf_counter() - start):.0f}")


def serve(call, port):
    import fastapi
    import uvicorn

    app = fastapi.FastAPI()

    @app.post("/predict")
    def predict(body: dict):
        instances = body["instances"]
        outputs = call(**tensors({name: [row[name] for row in instances] for name in WORDS + NUMBERS}))
        arrays = {name: value.numpy().tolist() for name, value in outputs.items()}
        plain = {name: [[v.decode() if isinstance(v, bytes) else v for v in row] for row in rows] for name, rows in arrays.items()}
        return {"predictions": [{name: values[i] for name, values in plain.items()} for i in range(len(instances))]}

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def main():
    if len(sys.argv) > 3:
        sys.path.insert(0, sys.argv[3])
    model = tf.saved_model.load(sys.argv[1])
    call = model.signatures["serving_default"]
    if len(sys.argv) > 3:
        serve(call, int(sys.argv[2]))
    else:
        measure(call)


main()
