# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a benchmark needs to know of a model, and the tensors it runs on.

In: an ONNX file and sizes for its symbolic dimensions. Out: its inputs drawn from a fixed seed, as raw files that every
contestant reads; its multiply-adds counted from the file's own nodes (so a compiler that needs fewer gets the same
credit); and, of two contestants' outputs, how far they are apart.
"""
import dataclasses
import pathlib
import sys

import numpy as np
import onnx
from onnx import shape_inference

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "architectures"))

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
LARGE = 4096                                            # bytes from which a float tensor is a weight, no shape inference needs


@dataclasses.dataclass
class Tensor:
    name: str
    dtype: int                                          # ONNX's number
    shape: list

    def bytes(self):
        return int(np.prod(self.shape)) * np.dtype(DTYPES[self.dtype]).itemsize if self.dtype in DTYPES else 0

    def line(self):
        return " ".join(map(str, [self.dtype, self.bytes(), len(self.shape), *self.shape, self.name])) + "\n"


@dataclasses.dataclass
class Model:
    path: pathlib.Path
    name: str
    inputs: list
    outputs: list
    macs: int
    bytes: int
    nodes: list                                         # operator types, in order
    dims: dict


def tensor_of(value, dims):
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise ValueError(f"{value.name} is no tensor")
    shape = [d.dim_value if d.HasField("dim_value") else dims.get(d.dim_param, 1) for d in kind.shape.dim]
    return Tensor(value.name, kind.elem_type, shape)


def bind(graph, dims):
    """Symbolic dimensions of inputs become numbers, so that shapes can be inferred."""
    for value in graph.input:
        for d in value.type.tensor_type.shape.dim:
            if not d.HasField("dim_value"):
                d.dim_value = dims.get(d.dim_param, 1)


def node_macs(node, shapes):
    first, out = shapes.get(node.input[0]), shapes.get(node.output[0])
    second = shapes.get(node.input[1]) if len(node.input) > 1 else None
    if node.op_type in ("LSTM", "GRU", "RNN") and first and second:
        r = shapes[node.input[2]]
        return first[0] * first[1] * second[0] * second[1] * (second[2] + r[2])
    if out is None or second is None:
        return 0
    count = int(np.prod(out))
    if node.op_type == "Conv":
        return count * int(np.prod(second[1:]))
    if node.op_type == "ConvTranspose":
        return int(np.prod(first)) * int(np.prod(second[1:]))
    if node.op_type == "Gemm":
        transposed = any(a.name == "transA" and a.i for a in node.attribute)
        return count * first[0 if transposed else -1]
    return count * first[-1] if node.op_type == "MatMul" else 0


def count_macs(proto, dims):
    """Multiply-adds of convolutions, matrix products and recurrent cells; nodes whose shapes stay unknown count nothing."""
    graph = proto.graph
    shapes = {i.name: list(i.dims) for i in graph.initializer}
    for i in graph.initializer:
        if len(i.raw_data) > LARGE and i.data_type == onnx.TensorProto.FLOAT:
            i.ClearField("raw_data")
    bind(graph, dims)
    graph = shape_inference.infer_shapes(proto, data_prop=True).graph
    for v in [*graph.value_info, *graph.input, *graph.output]:
        shapes.setdefault(v.name, [d.dim_value for d in v.type.tensor_type.shape.dim])
    return sum(node_macs(n, shapes) for n in graph.node if n.input and n.output)


def read(path, dims, name):
    proto = onnx.load(str(path), load_external_data=False)
    weights = {i.name for i in proto.graph.initializer}
    inputs = [tensor_of(v, dims) for v in proto.graph.input if v.name not in weights]
    outputs = [tensor_of(v, dims) for v in proto.graph.output]
    nodes = [n.op_type for n in proto.graph.node]
    symbols = {d.dim_param for v in proto.graph.input for d in v.type.tensor_type.shape.dim if d.HasField("dim_param")}
    size = sum(f.stat().st_size for f in [path, *(path.parent / n for n in external_files(proto)) ] if f.exists())
    return Model(path, name, inputs, outputs, count_macs(proto, dims), size, nodes, {s: dims[s] for s in symbols if s in dims})


def external_files(proto):
    return {e.value for i in proto.graph.initializer for e in i.external_data if e.key == "location"}


def draw(rng, tensor):
    """Floats: normal. Integers: small, as token ids are; ones where the name says mask or type."""
    if tensor.dtype not in DTYPES:
        raise ValueError(f"input {tensor.name} has element type {tensor.dtype}")
    kind = np.dtype(DTYPES[tensor.dtype])
    if kind.kind == "f":
        return rng.standard_normal(tensor.shape).astype(kind)
    if kind.kind == "b" or "mask" in tensor.name or "type" in tensor.name:
        return np.ones(tensor.shape, kind)
    return rng.integers(0, 100, tensor.shape).astype(kind)


def write(model, folder):
    """inputs.txt, in_N.bin and wanted.txt (the outputs) in the contestants' folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    for i, tensor in enumerate(model.inputs):
        draw(rng, tensor).tofile(folder / f"in_{i}.bin")
    (folder / "inputs.txt").write_text("".join(t.line() for t in model.inputs))
    (folder / "wanted.txt").write_text("".join(t.line() for t in model.outputs))


def load(folder):
    """The outputs that a contestant wrote: name to array."""
    found = {}
    for i, line in enumerate((folder / "outputs.txt").read_text().splitlines()):
        words = line.split(" ")
        rank = int(words[2])
        kind = int(words[0])
        raw = np.fromfile(folder / f"out_{i}.bin", np.uint16 if kind == 16 else DTYPES[kind])
        if kind == 16:                                  # bfloat16: the upper half of a float
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        found[" ".join(words[3 + rank:])] = raw.reshape([int(w) for w in words[3:3 + rank]])
    return found


def distance(want, got):
    """As array_distance; outputs that are rows of findings in the order of their scores may change places where scores are equal."""
    found = array_distance(want, got)
    lists = [list(x.values()) for x in (want, got)]
    if found < 1e-3 or len(want) < 2 or want.keys() != got.keys() or len({a.shape[:1] for x in lists for a in x}) > 1 or not lists[0][0].ndim:
        return found
    import one
    scale = min(float(np.abs(a).max(initial=0)) for a in lists[0])
    worst = one.same_findings(*lists, 1e-4 * scale)
    return found if worst is None else worst / scale


def array_distance(want, got):
    """The largest difference of any output over that output's largest element; infinite where shapes, integers or NaNs differ."""
    worst = 0.0
    for name, a in want.items():
        b = got.get(name)
        if b is None or a.size != b.size:
            return float("inf")
        a, b = a.ravel(), b.ravel()
        if a.dtype.kind != "f":
            if not np.array_equal(a, b):
                return float("inf")
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = float(np.abs(a[np.isfinite(a)]).max(initial=0)) or 1.0
        error = np.abs(a[~same] - b[~same]).max(initial=0) / scale
        worst = max(worst, float("inf") if np.isnan(error) else float(error))
    return worst
