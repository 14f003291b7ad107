"""The real clients of TensorFlow Serving and KServe ask our server, and get what TensorFlow's own signature call gives.

    serve.py SERVE_EXCHANGE FOLDER

Two models: one that TensorFlow's Estimator exported, and one of ours. Requests come through gRPC by the stubs of tensorflow-serving-api,
through REST by Python's own HTTP client and by curl, in row and column format, and through KServe's REST and gRPC by tritonclient. Rows are random,
with unknown, empty and odd strings, and with values left out. Explanations show the ids that TensorFlow's own op gives.
"""

import base64
import http.client
import json
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import tensorflow as tf

CACHE = pathlib.Path(os.environ.get("ESTIMAND_CLIENTS", pathlib.Path.home() / ".cache/estimand"))


def install(name, version, others=()):
    """Makes a client importable. It lies beside TensorFlow, without its dependencies: they would replace this TensorFlow."""
    folder = CACHE / f"{name}-{version}"
    if not folder.is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        subprocess.run(pip + [f"{name}=={version}", *others], check=True)
    sys.path.insert(0, str(folder))


install("tensorflow-serving-api", "2.15.1")
install("tritonclient", "2.73.0", ["geventhttpclient", "gevent", "greenlet", "zope.event", "zope.interface", "brotli", "certifi",
                                   "urllib3", "python-rapidjson"])

import grpc  # noqa: E402
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2,  # noqa: E402
                                     model_service_pb2_grpc, predict_pb2, prediction_service_pb2_grpc, regression_pb2)
import tritonclient.http as triton  # noqa: E402

SEED = 3
N_ROWS = 1000
JOBS = [b"nurse", b"cook", b"clerk", b"pilot", "König".encode(), b"", b"\xff\xfe", b"a", b"x" * 300]
TOLERANCE = 1e-5
ROUNDING = 5e-7


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def example(row):
    return tf.train.Example(features=tf.train.Features(feature={name: feature(value) for name, value in row.items()}))


def make_rows():
    dice = random.Random(SEED)
    rows = []
    for _ in range(N_ROWS):
        age = float(np.float32(dice.uniform(-5, 100) * dice.choice([1, 1, 1, 1e-3, 1e3])))
        rows.append({"age": age, "job": dice.choice(JOBS), "label": int(age > 40)})
    return rows


def tensorflow_export(rows, folder):
    """A classifier of TensorFlow's Estimator, exported over Examples. Returns the size of the terms that add up to each logit."""
    columns = tf.feature_column
    job = columns.categorical_column_with_hash_bucket("job", 20)
    all_columns = [columns.numeric_column("age"), columns.embedding_column(job, 4)]
    config = tf.estimator.RunConfig(tf_random_seed=SEED)
    model = tf.estimator.DNNClassifier([16, 8], all_columns, model_dir=str(folder / "tf-model"), config=config)

    def input_fn():
        arrays = {"age": np.float32([row["age"] for row in rows]), "job": np.array([row["job"] for row in rows], dtype=object)}
        return tf.data.Dataset.from_tensor_slices((arrays, [row["label"] for row in rows])).repeat(3).batch(50)

    model.train(input_fn)
    parsing = tf.estimator.export.build_parsing_serving_input_receiver_fn(tf.feature_column.make_parse_example_spec(all_columns))
    model.export_saved_model(str(folder / "tf"), parsing)
    embedding = np.abs(model.get_variable_value("dnn/input_from_feature_columns/input_layer/job_embedding/embedding_weights")).max(0)
    sizes = np.array([[abs(row["age"]), *embedding] for row in rows])
    for layer in ("hiddenlayer_0", "hiddenlayer_1", "logits"):
        sizes = sizes @ np.abs(model.get_variable_value(f"dnn/{layer}/kernel")) + np.abs(model.get_variable_value(f"dnn/{layer}/bias"))
    return sizes


def close(found, expected, what, terms=0):
    """Large terms may cancel: their rounding, a few units of 6e-8, is then larger than that of their sum."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return [f"{what}: the shape is {found.shape}; expected {expected.shape}"]
    if expected.dtype.kind in "SO":
        wrong = sum(a != b for a, b in zip(found.ravel().tolist(), expected.ravel().tolist()))
        return [f"{what}: {wrong} of {expected.size} values differ"] if wrong else []
    error = np.abs(found - expected) / np.maximum(np.maximum(1, np.abs(expected)), terms * ROUNDING / TOLERANCE)
    return [f"{what}: off by {error.max():.3g}"] if not error.max() <= TOLERANCE else []


def compare_outputs(found, expected, what, terms):
    """Classes are compared where the probabilities are not equal but for their rounding."""
    complaints = []
    if sorted(found) != sorted(expected):
        return [f"{what}: the outputs are {sorted(found)}; expected {sorted(expected)}"]
    clear = np.abs(expected["probabilities"][:, 1] - 0.5) > 1e-4
    for name, value in expected.items():
        if name in ("classes", "class_ids"):
            complaints += close(np.asarray(found[name])[clear], value[clear], f"{what}: {name}")
        else:
            complaints += close(found[name], value, f"{what}: {name}", terms if name == "logits" else 0)
    return complaints


class Server:
    def __init__(self, program, models):
        self.process = subprocess.Popen([program, "serve"] + models, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.grpc_port, self.rest_port = (int(port) for port in self.process.stdout.readline().split())
        channel = grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}")
        self.predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(channel)

    def rest(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port)
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())

    def stop(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def predict_request(name, signature, inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(value)
    return request


def check_predict(server, name, inputs, expected, signature, terms):
    """gRPC with the tensors that TensorFlow makes; REST by row and by column."""
    complaints = []
    protos = {key: tf.make_tensor_proto(value) for key, value in inputs.items()}
    request = predict_request(name, signature, protos)
    answer = server.predictions.Predict(request, 30)
    if server.predictions.Predict(request, 30, compression=grpc.Compression.Gzip) != answer:
        complaints.append(f"{name}: a packed message has another answer")
    found = {key: tf.make_ndarray(value) for key, value in answer.outputs.items()}
    complaints += compare_outputs(found, expected, f"{name} gRPC {signature}", terms)
    if list(answer.outputs["logits"].float_val) != found["logits"].ravel().tolist():
        complaints.append(f"{name}: float_val is not filled")
    if answer.model_spec.version.value <= 0 or answer.model_spec.signature_name != (signature or "serving_default"):
        complaints.append(f"{name}: the answer is of {answer.model_spec}")

    def plain(value):
        if not isinstance(value, bytes):
            return float(value)
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}

    columns = {key: [plain(v) for v in value] for key, value in inputs.items()}
    rows = [{key: columns[key][i] for key in columns} for i in range(len(next(iter(columns.values()))))]
    if len(inputs) == 1:
        key = next(iter(inputs))
        columns[key] = [{"b64": base64.b64encode(v).decode()} for v in inputs[key]]
        rows = columns[key]
    body = {"signature_name": signature} if signature else {}
    for form, key, values in (("rows", "instances", rows), ("columns", "inputs", columns)):
        code, reply = server.rest("POST", f"/v1/models/{name}:predict", json.dumps({**body, key: values}))
        if code != 200:
            complaints.append(f"{name} REST {form}: {code} {str(reply)[:300]}")
            continue
        if form == "rows":
            outputs = {out: np.array([row[out] for row in reply["predictions"]]) for out in reply["predictions"][0]}
        else:
            outputs = {out: np.array(value) for out, value in reply["outputs"].items()}
        outputs = {out: np.char.encode(v, "utf8") if v.dtype.kind == "U" else v for out, v in outputs.items()}
        complaints += compare_outputs(outputs, expected, f"{name} REST {form}", terms)
    return complaints


def check_examples(server, name, rows, expected):
    complaints = []
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name, request.model_spec.signature_name = name, "classification"
    request.input.example_list.examples.extend(rows)
    result = server.predictions.Classify(request, 30).result
    scores = [[one.score for one in row.classes] for row in result.classifications]
    complaints += close(scores, expected["probabilities"], f"{name} Classify")
    labels = [[one.label for one in row.classes] for row in result.classifications]
    if labels != [["0", "1"]] * len(rows):
        complaints.append(f"{name} Classify: the labels are {labels[0]}")
    request = regression_pb2.RegressionRequest()
    request.model_spec.name, request.model_spec.signature_name = name, "regression"
    request.input.example_list.examples.extend(rows)
    values = [[one.value] for one in server.predictions.Regress(request, 30).result.regressions]
    complaints += close(values, expected["logistic"], f"{name} Regress")
    request = inference_pb2.MultiInferenceRequest()
    for signature, method in (("classification", "classify"), ("regression", "regress")):
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = name, signature
    request.input.example_list.examples.extend(rows)
    results = server.predictions.MultiInference(request, 30).results
    complaints += close([[one.score for one in row.classes] for row in results[0].classification_result.classifications],
                        expected["probabilities"], f"{name} MultiInference")
    complaints += close([[one.value] for one in results[1].regression_result.regressions], expected["logistic"], f"{name} MultiInference")
    return complaints


def check_information(server, name, export):
    complaints = []
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = name
    answer = server.predictions.GetModelMetadata(request, 30)
    found = get_model_metadata_pb2.SignatureDefMap()
    answer.metadata["signature_def"].Unpack(found)
    from tensorflow.python.saved_model import loader_impl
    expected = dict(loader_impl.parse_saved_model(str(export)).meta_graphs[0].signature_def)
    if {key: value for key, value in found.signature_def.items()} != expected:
        complaints.append(f"{name}: the metadata differ")
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = name
    status = server.models.GetModelStatus(request, 30).model_version_status
    if [(one.version, one.state) for one in status] != [(int(export.name), get_model_status_pb2.ModelVersionStatus.AVAILABLE)]:
        complaints.append(f"{name}: the status is {status}")
    # REST's answers are those of protobuf's own JSON printer, but for the Any of the metadata.
    from google.protobuf import json_format
    code, reply = server.rest("GET", f"/v1/models/{name}")
    if json_format.ParseDict(reply, get_model_status_pb2.GetModelStatusResponse()).model_version_status[0] != status[0]:
        complaints.append(f"{name}: REST's status is {reply}")
    code, reply = server.rest("GET", f"/v1/models/{name}/metadata")
    parsed = json_format.ParseDict(reply["metadata"]["signature_def"], get_model_metadata_pb2.SignatureDefMap())
    if {key: value for key, value in parsed.signature_def.items()} != expected:
        complaints.append(f"{name}: REST's metadata differ")
    return complaints


def is_text(value):
    try:
        value.decode()
        return True
    except UnicodeDecodeError:
        return False


def check_kserve(server, name, raw, expected):
    """KServe's client asks with binary values, and with those that JSON can hold."""
    client = triton.InferenceServerClient(f"127.0.0.1:{server.rest_port}")
    complaints = []
    if not (client.is_server_live() and client.is_server_ready() and client.is_model_ready(name)):
        complaints.append(f"{name}: KServe's client finds nothing ready")
    if client.is_model_ready("no"):
        complaints.append("KServe's client finds a model that is not there")
    metadata = client.get_model_metadata(name)
    inputs = {one["name"]: (one["datatype"], [int(size) for size in one["shape"]]) for one in metadata["inputs"]}
    if inputs != {"age": ("FP32", [-1]), "job": ("BYTES", [-1])}:
        complaints.append(f"{name}: KServe's metadata are {metadata}")
    names = ["probabilities", "logits", "class_ids", "classes"]
    for is_binary in (True, False):
        rows = np.array([is_binary or is_text(job) for job in raw["job"]])
        age, job = raw["age"][rows], raw["job"][rows]
        given = [triton.InferInput("age", [len(age)], "FP32"), triton.InferInput("job", [len(job)], "BYTES")]
        given[0].set_data_from_numpy(age, binary_data=is_binary)
        given[1].set_data_from_numpy(job, binary_data=is_binary)
        outputs = [triton.InferRequestedOutput(one, binary_data=is_binary) for one in names]
        result = client.infer(name, given, outputs=outputs, request_id="7")
        if result.get_response().get("id") != "7":
            complaints.append(f"{name}: KServe's id is {result.get_response().get('id')}")
        clear = np.abs(expected["probabilities"][rows][:, 1] - 0.5) > 1e-4
        for one in names:
            found, wanted = result.as_numpy(one), expected[one][rows]
            if one in ("classes", "class_ids"):
                found, wanted = found[clear], wanted[clear]
            if one == "classes" and not is_binary:
                found = np.array([str(v).encode() for v in found.ravel()], dtype=object).reshape(found.shape)
            complaints += close(found, wanted, f"{name} KServe {'binary' if is_binary else 'JSON'} {one}")
    client.close()
    return complaints


def check_kserve_grpc(server, name, raw, expected, folder):
    """KServe's gRPC client, and reflection: in another process, with another protobuf."""
    packages = CACHE / "tritonclient-grpc-2.73.0"
    if not packages.is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "tritonclient[grpc]==2.73.0", "grpcio-reflection"]
        subprocess.run(pip, check=True)
    given, answered = folder / "inputs.npz", folder / "outputs.npz"
    np.savez(given, **raw)
    program = pathlib.Path(__file__).with_name("kserve_grpc.py")
    ran = subprocess.run([sys.executable, str(program), str(server.grpc_port), name, str(given), str(answered)],
                         env={**os.environ, "PYTHONPATH": str(packages)}, capture_output=True, text=True)
    if ran.returncode != 0:
        return [f"{name} KServe gRPC: {ran.stdout} {ran.stderr[-2000:]}"]
    complaints, outputs = [], np.load(answered, allow_pickle=True)
    clear = np.abs(expected["probabilities"][:, 1] - 0.5) > 1e-4
    for one in outputs.files:
        found, wanted = outputs[one], expected[one]
        if one in ("classes", "class_ids"):
            found, wanted = found[clear], wanted[clear]
        complaints += close(found, wanted, f"{name} KServe gRPC {one}")
    return complaints


def check_left_out(server, name, call, raw, folder):
    """Values that are left out, by curl: TensorFlow is given the defaults. Explanations have TensorFlow's ids."""
    dice = random.Random(SEED)
    rows, age, job = [], [], []
    for one_age, one_job in zip(raw["age"], raw["job"]):
        row = {}
        kind = dice.choice(["all", "age", "job", "both", "null"])
        if kind in ("all", "job"):
            row["age"] = float(one_age)
        if kind in ("all", "age") and is_text(one_job):
            row["job"] = one_job.decode()
        if kind == "null":
            row = {"age": None, "job": None}
        rows.append(row)
        age.append(row.get("age") if row.get("age") is not None else 40.0)
        job.append((row.get("job") or "").encode())
    expected = call(age=tf.constant(age, tf.float32), job=tf.constant(job))["logits"].numpy()
    body = folder / "left_out.json"
    body.write_text(json.dumps({"instances": rows}))
    url = f"http://127.0.0.1:{server.rest_port}/v1/models/{name}:predict?explain=1"
    ran = subprocess.run(["curl", "--silent", "--show-error", "--fail-with-body", "--data", f"@{body}", url], capture_output=True)
    if ran.returncode != 0:
        return [f"{name} curl: {ran.stdout[:500]} {ran.stderr[:500]}"]
    answer = json.loads(ran.stdout)
    complaints = close([row["logits"] for row in answer["predictions"]], expected, f"{name} left out")
    ids = tf.strings.to_hash_bucket_fast(job, 20).numpy().tolist()
    for i, explained in enumerate(answer["explanations"]):
        found = explained["job_embedding"]
        wanted = {"id": ids[i] if job[i] else None, "default": rows[i].get("job") is None}
        is_default = rows[i].get("age") is None
        if found != wanted or (explained.get("age") == {"default": True, "value": 40.0}) != is_default:
            complaints.append(f"{name}: row {i} {rows[i]} is explained as {explained}; expected {wanted}")
            break
    return complaints


def check_failures(server, name):
    complaints = []
    for change, expected in ((lambda r: r.model_spec.MergeFrom(type(r.model_spec)(name="no")), grpc.StatusCode.NOT_FOUND),
                             (lambda r: setattr(r.model_spec, "signature_name", "no"), grpc.StatusCode.FAILED_PRECONDITION),
                             (lambda r: r.inputs.clear(), grpc.StatusCode.INVALID_ARGUMENT)):
        request = predict_request(name, "predict", {"examples": tf.make_tensor_proto([b""])})
        change(request)
        try:
            server.predictions.Predict(request, 30)
            complaints.append(f"{name}: {expected} was answered")
        except grpc.RpcError as error:
            if error.code() != expected:
                complaints.append(f"{name}: {error.code()} {error.details()}; expected {expected}")
    return complaints


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    rows = make_rows()
    records = folder / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(records)) as writer:
        for row in rows:
            writer.write(example(row).SerializeToString())
    terms = tensorflow_export(rows, folder)
    subprocess.run([program, "export", str(records), str(folder / "ours")], check=True)
    examples = [example({key: row[key] for key in ("age", "job")}) for row in rows]
    serialized = [one.SerializeToString() for one in examples]
    raw = {"age": np.float32([row["age"] for row in rows]), "job": np.array([row["job"] for row in rows], dtype=object)}

    server = Server(program, [f"tf={folder / 'tf'}", f"ours={folder / 'ours'}"])
    complaints = []
    for name, inputs, signature in (("tf", {"examples": np.array(serialized, dtype=object)}, "predict"), ("ours", raw, ""),
                                    ("ours", raw, "predict")):
        export = max(path for path in (folder / name).iterdir() if path.name.isdigit())
        model = tf.saved_model.load(str(export))
        call = model.signatures[signature or "serving_default"]
        expected = {key: value.numpy() for key, value in call(**{key: tf.constant(value) for key, value in inputs.items()}).items()}
        complaints += check_predict(server, name, inputs, expected, signature, terms if name == "tf" else 0)
        # An empty string is no value in a raw input, and a value in an Example: these have answers of their own.
        scores = model.signatures["classification"](inputs=tf.constant(serialized))["scores"].numpy()
        values = model.signatures["regression"](inputs=tf.constant(serialized))["outputs"].numpy()
        complaints += check_examples(server, name, examples, {"probabilities": scores, "logistic": values})
        complaints += check_information(server, name, export)
        if name == "ours":
            complaints += check_kserve(server, name, raw, expected)
            complaints += check_kserve_grpc(server, name, raw, expected, folder)
            complaints += check_left_out(server, name, call, raw, folder)
    complaints += check_failures(server, "tf")
    code = server.stop()
    if code != 0:
        complaints.append(f"the server ended with {code}")
    for complaint in complaints:
        print(complaint)
    print(f"serve: {N_ROWS} rows, 2 models, {len(complaints)} differences")
    sys.exit(bool(complaints))


main()
