#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole networks with sizes known at run time only, and ONNX Runtime's outputs at several sizes. usage: networks.py DIR

In: numpy, onnx, onnxruntime. Out: in ONNX's test layout DIR/NAME/model.onnx and its data sets, and bounds.json, the
bounds of its dimensions."""
import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
SETS = 4


class Network:
    """Nodes in the making; weights are drawn in the order of use."""

    def __init__(self, seed):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def add(self, op, *inputs, out=None, **attributes):
        name = out or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        return name

    def constant(self, values, dtype=np.int64):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def weight(self, *shape):
        return self.constant(
            self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:] if len(shape) == 4 else shape[:1])),
            np.float32)

    def linear(self, x, n, m):
        return self.add("Add", self.add("MatMul", x, self.weight(n, m)), self.weight(m))

    def norm(self, x, n):
        return self.add("LayerNormalization", x, self.weight(n), self.weight(n), axis=-1)

    def size(self, x, axis):
        """A list of one number."""
        return self.add("Gather", self.add("Shape", x), self.constant([axis]), axis=0)

    def conv(self, x, n, m, kernel=3, stride=1, group=1, act="Relu"):
        y = self.add("Conv", x, self.weight(m, n // group, kernel, kernel), self.weight(m), strides=[stride] * 2,
                     pads=[kernel // 2] * 4, group=group)
        y = self.add("BatchNormalization", y, self.weight(m), self.weight(m), self.weight(m),
                     self.constant(self.rng.uniform(0.5, 2, m), np.float32))
        return self.add(act, y) if act else y

    def model(self, inputs, outputs):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "network", [info(*i) for i in inputs], [info(*o) for o in outputs],
                                  self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def heads(t, x, d, parts, perm):
    return t.add("Transpose", t.add("Reshape", x, t.constant([0, 0, parts, d // parts])), perm=perm)


def attend(t, q, k, v, d, parts, bias):
    s = t.add("Mul", t.add("MatMul", q, k), t.constant((d / parts) ** -0.5, np.float32))
    o = t.add("MatMul", t.add("Softmax", t.add("Add", s, bias), axis=-1), v)
    return t.add("Reshape", t.add("Transpose", o, perm=[0, 2, 1, 3]), t.constant([0, 0, d]))


def encoder():
    """Two layers over token numbers with a mask, as BERT's are exported."""
    t, d, f, parts = Network(1), 64, 192, 4
    places = t.add("Slice", t.weight(128, d), t.constant([0]), t.size("ids", 1), t.constant([0]))
    x = t.norm(t.add("Add", t.add("Gather", t.weight(100, d), "ids"), places), d)
    mask = t.add("Cast", t.add("Unsqueeze", "mask", t.constant([1, 2])), to=FLOAT)
    bias = t.add("Mul", t.add("Sub", t.constant(1, np.float32), mask), t.constant(-1e4, np.float32))
    for _ in range(2):
        q, k, v = (heads(t, t.linear(x, d, d), d, parts, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        x = t.norm(t.add("Add", x, t.linear(attend(t, q, k, v, d, parts, bias), d, d)), d)
        h = t.linear(x, d, f)
        h = t.add(
            "Mul", t.add("Mul", h, t.constant(0.5, np.float32)),
            t.add("Add", t.add("Erf", t.add("Div", h, t.constant(2**0.5, np.float32))), t.constant(1, np.float32)))
        x = t.norm(t.add("Add", x, t.linear(h, f, d)), d)
    first = t.add("Gather", x, t.constant(0), axis=1)
    t.add("Tanh", t.linear(first, d, d), out="pooled")
    t.add("Identity", x, out="hidden")
    return t.model([("ids", INT64, ["batch", "seq"]), ("mask", INT64, ["batch", "seq"])],
                   [("hidden", FLOAT, ["batch", "seq", d]),
                    ("pooled", FLOAT, ["batch", d])]), {"batch": (1, 4), "seq": (1, 80)}


def decoder():
    """A layer with a causal mask and the keys and values of earlier calls, whose number may be 0."""
    t, d, parts = Network(2), 32, 4
    q, k, v = (heads(t, t.linear("x", d, d), d, parts, [0, 2, 1, 3]) for _ in range(3))
    k, v = t.add("Concat", "past_k", k, axis=2, out="present_k"), t.add("Concat", "past_v", v, axis=2, out="present_v")
    past, scalar = t.size("past_k", 2), t.constant([], np.int64)
    total = t.add("Add", past, t.size("x", 1))
    column = t.add("Range", t.add("Reshape", past, scalar), t.add("Reshape", total, scalar), t.constant(1))
    row = t.add("Range", t.constant(0), t.add("Reshape", total, scalar), t.constant(1))
    seen = t.add("LessOrEqual", row, t.add("Unsqueeze", column, t.constant([1])))
    bias = t.add("Where", seen, t.constant(0, np.float32), t.constant(-1e9, np.float32))
    o = attend(t, q, t.add("Transpose", k, perm=[0, 1, 3, 2]), v, d, parts, bias)
    t.add("Add", "x", t.linear(o, d, d), out="y")
    cache = ["batch", parts, "past", d // parts]
    present = ["batch", parts, "past + seq", d // parts]
    return t.model([("x", FLOAT, ["batch", "seq", d]), ("past_k", FLOAT, cache), ("past_v", FLOAT, cache)],
                   [("y", FLOAT, ["batch", "seq", d]), ("present_k", FLOAT, present),
                    ("present_v", FLOAT, present)]), {"batch": (1, 3), "seq": (1, 20), "past": (0, 40)}


def classifier():
    """Convolutions, a depthwise block with squeeze and excitation, pools; any batch and image size."""
    t = Network(3)
    x = t.add("MaxPool", t.conv("x", 3, 16, stride=2), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = t.conv(t.conv(x, 16, 48, kernel=1), 48, 48, group=48)
    gate = t.add("Conv", t.add("ReduceMean", y, t.constant([2, 3])), t.weight(48, 48, 1, 1), t.weight(48))
    y = t.conv(t.add("Mul", y, t.add("HardSigmoid", gate)), 48, 16, kernel=1, act=None)
    x = t.conv(t.add("Add", x, y), 16, 32, stride=2)
    x = t.add("Flatten", t.add("GlobalAveragePool", x))
    t.add("Gemm", x, t.weight(32, 10), t.weight(10), out="y")
    return t.model([("x", FLOAT, ["batch", 3, "height", "width"])],
                   [("y", FLOAT, ["batch", 10])]), {"batch": (1, 3), "height": (17, 70), "width": (8, 50)}


def segmenter():
    """Down, up to exactly the size of what was above, joined: a step of a U-Net, for odd sizes too."""
    t = Network(4)
    a = t.conv("x", 3, 8)
    b = t.conv(a, 8, 16, stride=2)
    target = t.add("Concat", t.add("Slice", t.add("Shape", b), t.constant([0]), t.constant([2])),
                   t.add("Slice", t.add("Shape", a), t.constant([2]), t.constant([4])), axis=0)
    up = t.add("Resize", b, "", "", target, mode="linear", coordinate_transformation_mode="half_pixel")
    y = t.conv(t.add("Concat", a, up, axis=1), 24, 4, act=None)
    t.add("ArgMax", y, axis=1, keepdims=0, out="classes")
    t.add("Softmax", y, axis=1, out="p")
    outputs = [("p", FLOAT, ["batch", 4, "height", "width"]), ("classes", INT64, ["batch", "height", "width"])]
    return t.model([("x", FLOAT, ["batch", 3, "height", "width"])], outputs), \
        {"batch": (1, 2), "height": (4, 40), "width": (5, 33)}


def feed(end, sizes, rng):
    shape = [sizes.get(d, d) for d in end.shape]
    if end.type == "tensor(float)":
        return rng.standard_normal(shape).astype(np.float32)
    if end.name == "mask":
        return (np.arange(shape[1]) < rng.integers(1, shape[1] + 1, (shape[0], 1))).astype(np.int64)
    return rng.integers(0, 100, shape)


def write(folder, model, bounds):
    rng, session = np.random.default_rng(5), onnxruntime.InferenceSession(model.SerializeToString(),
                                                                          providers=["CPUExecutionProvider"])
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    (folder / "bounds.json").write_text(json.dumps(bounds))
    for k in range(SETS):
        sizes = {n: (lo, hi, int(rng.integers(lo, hi + 1)))[min(k, 2)] for n, (lo, hi) in bounds.items()}
        feeds = {i.name: feed(i, sizes, rng) for i in session.get_inputs()}
        data = folder / f"test_data_set_{k}"
        data.mkdir(exist_ok=True)
        for kind, arrays in (("input", feeds.values()), ("output", session.run(None, feeds))):
            for i, a in enumerate(arrays):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(a)).SerializeToString())


def main():
    for make in (encoder, decoder, classifier, segmenter):
        write(pathlib.Path(sys.argv[1]) / make.__name__, *make())


if __name__ == "__main__":
    main()
