# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a benchmark needs to know of a model, and the tensors it runs on.

In: an ONNX file and sizes for its symbolic dimensions. Out: its inputs drawn from a fixed seed, as raw files that
every contestant reads; its multiply-adds counted from the file's own nodes (macs.py; so a compiler that needs fewer
gets the same credit); and, of two contestants' outputs, how far they are apart."""
import dataclasses
import pathlib
import sys

import numpy as np
import onnx

import macs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "architectures"))

DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}


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
    macs: int                                           # multiply-adds; None: not known
    bytes: int
    nodes: list                                         # operator types, in order
    dims: dict


def tensor_of(value, dims):
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise ValueError(f"{value.name} is no tensor")
    shape = [d.dim_value if d.HasField("dim_value") else dims.get(d.dim_param, 1) for d in kind.shape.dim]
    return Tensor(value.name, kind.elem_type, shape)


def read(path, dims, name):
    proto = onnx.load(str(path), load_external_data=False)
    weights = {i.name for i in proto.graph.initializer}
    inputs = [tensor_of(v, dims) for v in proto.graph.input if v.name not in weights]
    outputs = [tensor_of(v, dims) for v in proto.graph.output]
    nodes = [n.op_type for n in proto.graph.node]
    symbols = {d.dim_param for v in proto.graph.input for d in v.type.tensor_type.shape.dim if d.HasField("dim_param")}
    size = sum(f.stat().st_size for f in [path, *(path.parent / n for n in external_files(proto)) ] if f.exists())
    return Model(path, name, inputs, outputs, macs.count(proto, path, dims, lambda: values(inputs)), size, nodes,
                 {s: dims[s] for s in symbols if s in dims})


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


def values(inputs):
    """The same each time."""
    rng = np.random.default_rng(7)
    return {tensor.name: draw(rng, tensor) for tensor in inputs}


def write(model, folder):
    """inputs.txt, in_N.bin and wanted.txt (the outputs) in the contestants' folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, array in enumerate(values(model.inputs).values()):
        array.tofile(folder / f"in_{i}.bin")
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
    """As array_distance; outputs that are rows of findings in the order of their scores may change places where
    scores are equal."""
    found = array_distance(want, got)
    lists = [list(x.values()) for x in (want, got)]
    if found < 1e-3 or len(want) < 2 or want.keys() != got.keys() or len({a.shape[:1] for x in lists
                                                                          for a in x}) > 1 or not lists[0][0].ndim:
        return found
    import one
    worst = one.same_findings(*lists)
    return found if worst is None else max(w / (one.scale_of(a) or 1) for w, a in zip(worst, lists[0]))


def array_distance(want, got):
    """The largest difference of any output over that output's largest element; infinite where shapes, integers or
    NaNs differ."""
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
