"""The load model in onnxruntime behind FastAPI.

    peer_onnx.py MODEL PORT PACKAGES       serves POST /predict with TensorFlow Serving's JSON until it is ended
"""

import pathlib
import sys

sys.path.insert(0, sys.argv[3])
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "oracles/live"))
import onnx_packages  # noqa: F401, E402

import fastapi  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import uvicorn  # noqa: E402

session = onnxruntime.InferenceSession(sys.argv[1])
inputs = {value.name: (object if "string" in value.type else np.float32, len(value.shape)) for value in session.get_inputs()}
names = [value.name for value in session.get_outputs()]
app = fastapi.FastAPI()


def column(instances, name):
    dtype, rank = inputs[name]
    values = np.array([row[name] for row in instances], dtype)
    return values.reshape(-1, 1) if rank == 2 else values


@app.post("/predict")
def predict(body: dict):
    instances = body["instances"]
    outputs = session.run(names, {name: column(instances, name) for name in inputs})
    plain = dict(zip(names, (value.tolist() for value in outputs)))
    return {"predictions": [{name: values[i] for name, values in plain.items()} for i in range(len(instances))]}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
