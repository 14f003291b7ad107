"""KServe's gRPC client asks our server. A program of its own: the client needs another protobuf than TensorFlow.

    kserve_grpc.py PORT NAME INPUTS.npz OUTPUTS.npz
"""

import json
import sys

import grpc
import numpy as np
import tritonclient.grpc as triton
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from tritonclient.grpc import service_pb2


def same_fields(ours, real):
    """Whether each field that we describe is a field of the real message: its name, number and type."""
    for field in ours.fields:
        known = real.fields_by_number.get(field.number)
        if known is None or (known.name, known.type, known.is_repeated) != (field.name, field.type, field.is_repeated):
            raise SystemExit(f"reflection: {ours.full_name}.{field.name} is not the client's field")


def check_reflection(address):
    database = ProtoReflectionDescriptorDatabase(grpc.insecure_channel(address))
    services = sorted(database.get_services())
    expected = {"inference.GRPCInferenceService", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService",
                "grpc.health.v1.Health"}
    if not expected <= set(services):
        raise SystemExit(f"reflection: the services are {services}")
    pool = DescriptorPool(database)
    service = pool.FindServiceByName("inference.GRPCInferenceService")
    real = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    for method in service.methods:
        other = real.methods_by_name[method.name]
        if (method.input_type.full_name, method.output_type.full_name) != (other.input_type.full_name, other.output_type.full_name):
            raise SystemExit(f"reflection: {method.name} takes {method.input_type.full_name}")
        same_fields(method.input_type, other.input_type)
        same_fields(method.output_type, other.output_type)
    # A client that knows nothing but the description can ask.
    method = pool.FindMethodByName("tensorflow.serving.ModelService.GetModelStatus")
    request = message_factory.GetMessageClass(method.input_type)()
    request.model_spec.name = sys.argv[2]
    call = grpc.insecure_channel(address).unary_unary(
        "/tensorflow.serving.ModelService/GetModelStatus", request_serializer=lambda r: r.SerializeToString(),
        response_deserializer=message_factory.GetMessageClass(method.output_type).FromString)
    states = [one.state for one in call(request).model_version_status]
    if states != [30]:
        raise SystemExit(f"reflection: the states are {states}")
    return len(services)


def main():
    address, name = f"127.0.0.1:{sys.argv[1]}", sys.argv[2]
    given = np.load(sys.argv[3], allow_pickle=True)
    client = triton.InferenceServerClient(address)
    if not (client.is_server_live() and client.is_server_ready() and client.is_model_ready(name)):
        raise SystemExit("the client finds nothing ready")
    metadata = client.get_model_metadata(name)
    inputs = {one.name: (one.datatype, list(one.shape)) for one in metadata.inputs}
    if inputs != {"age": ("FP32", [-1]), "job": ("BYTES", [-1])}:
        raise SystemExit(f"the inputs are {inputs}")
    if client.get_server_metadata().name != "estimand-serve":
        raise SystemExit("the server has another name")
    tensors = []
    for key, datatype in (("age", "FP32"), ("job", "BYTES")):
        tensor = triton.InferInput(key, [len(given[key])], datatype)
        tensor.set_data_from_numpy(given[key])
        tensors.append(tensor)
    names = ["probabilities", "logits", "class_ids", "classes"]
    result = client.infer(name, tensors, outputs=[triton.InferRequestedOutput(one) for one in names], request_id="9")
    if result.get_response().id != "9":
        raise SystemExit("the answer has another id")
    np.savez(sys.argv[4], **{one: result.as_numpy(one) for one in names})
    client.unload_model(name)
    if client.is_model_ready(name):
        raise SystemExit("the model is ready after it was unloaded")
    client.load_model(name)
    if not client.is_model_ready(name) or client.get_model_repository_index().models[0].state != "READY":
        raise SystemExit("the model is not ready after it was loaded")
    print(json.dumps({"services": check_reflection(address)}))


main()
