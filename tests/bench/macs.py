# SPDX-License-Identifier: MIT OR Apache-2.0
"""The multiply-adds of a model's file: its convolutions, matrix products and recurrent cells, as its own nodes say
them.

They are counted from inferred shapes. Where these leave a node open (shapes that are computed, bodies of loops), ONNX
Runtime runs the file once with every optimization off, and its profile tells the shapes of each node that ran, as
often as it ran. Out: a number, None where neither knows."""
import json
import math
import pathlib
import tempfile

import onnx
from onnx import shape_inference

LARGE = 4096  # bytes from which a float tensor is a weight, no shape inference needs
COUNTED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN")


def of_node(op, shapes, out):
    """shapes: of the inputs. A convolution's kernel is [filters, channels of a group, ...]."""
    first, second = shapes[:2]
    if op in ("LSTM", "GRU", "RNN"):
        return math.prod(first[:2]) * math.prod(second[:2]) * (second[2] + shapes[2][2])
    if op == "Conv":
        return math.prod(out) * math.prod(second[1:])
    if op == "ConvTranspose":
        return math.prod(first) * math.prod(second[1:])
    return math.prod(first) * out[-1] if op == "Gemm" else math.prod(out) * first[-1]


def bind(graph, dims):
    """Symbolic dimensions of inputs become numbers, so that shapes can be inferred."""
    for value in graph.input:
        for d in value.type.tensor_type.shape.dim:
            if not d.HasField("dim_value"):
                d.dim_value = dims.get(d.dim_param, 1)


def bodies(node):
    return [g for a in node.attribute for g in ([a.g] if a.HasField("g") else [*a.graphs])]


def holds(graph):
    return any(n.op_type in COUNTED or any(map(holds, bodies(n))) for n in graph.node)


def inferred(proto, dims):
    """None when a shape that counts is not known."""
    graph = proto.graph
    shapes = {i.name: list(i.dims) for i in graph.initializer}
    for i in graph.initializer:
        if len(i.raw_data) > LARGE and i.data_type == onnx.TensorProto.FLOAT:
            i.ClearField("raw_data")
    bind(graph, dims)
    graph = shape_inference.infer_shapes(proto, data_prop=True).graph
    for v in [*graph.value_info, *graph.input, *graph.output]:
        known = v.type.tensor_type.HasField("shape") and all(
            d.HasField("dim_value") for d in v.type.tensor_type.shape.dim)
        if known:
            shapes.setdefault(v.name, [d.dim_value for d in v.type.tensor_type.shape.dim])
    total = 0
    for n in graph.node:
        if any(map(holds, bodies(n))):
            return None
        if n.op_type in COUNTED:
            wanted = [
                shapes.get(name)
                for name in [*n.input[:3 if n.op_type in COUNTED[4:] else 2], n.output[0] or n.output[1]]
            ]
            if None in wanted:
                return None
            total += of_node(n.op_type, wanted[:-1], wanted[-1])
    return total


def profiled(path, feeds):
    """From one run. feeds: the inputs' values by name."""
    import onnxruntime
    with tempfile.TemporaryDirectory(prefix="burncc-bench-") as folder:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.disable_prepacking",
                                         "1")  # packed weights have no shape in the profile
        options.log_severity_level = 3
        options.enable_profiling, options.profile_file_prefix = True, str(pathlib.Path(folder) / "profile")
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session.run(None, feeds)
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    total = 0
    for event in events:
        args = event.get("args", {})
        if event["name"].endswith("_kernel_time") and args.get("op_name") in COUNTED:
            ins, outs = ([shape for each in args[key] for shape in each.values()]
                         for key in ("input_type_shape", "output_type_shape"))
            total += of_node(args["op_name"], ins, outs[0])
    return total


def count(proto, path, dims, feeds):
    """feeds: a function that gives them."""
    known = inferred(proto, dims)
    if known is not None:
        return known
    try:
        return profiled(path, feeds())
    except Exception:  # whatever a model's file makes the library raise: there is a figure less
        return None
