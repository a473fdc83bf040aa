# SPDX-License-Identifier: MIT OR Apache-2.0
"""A random graph, grown node by node, each node computed by ONNX Runtime as it is added.

In: a seed. Out: a model, its inputs, what its outputs should be, and how far another order of rounding may take them.
The idea: every value is carried twice, once as it is and once with a rounding error planted at each inexact node; how
far the two drift apart is what the graph does to errors, whatever its operators. A node that ONNX Runtime does not
take, or at which the two fall apart (an integer that differs, an infinity in one alone), is not added: so what is
compared is well defined. Graphs are of single operators (steps.py) or networks of blocks (nets.py), which operators
come between."""
import random

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
OPTIONS = onnxruntime.SessionOptions()
OPTIONS.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
OPTIONS.intra_op_num_threads = 1
OPTIONS.inter_op_num_threads = 1
OPTIONS.log_severity_level = 4

IR = 10
EPSILON = {np.dtype(np.float32): 2.0 ** -23, np.dtype(np.float64): 2.0 ** -52, np.dtype(np.float16): 2.0 ** -10}
OPSETS = (17, 18, 20, 21, 22, 23)
MAX_COUNT = 4000                    # elements of a value; four times as many in a network
NETWORKS = 0.4                      # of the graphs
ROUGH = 2.0 ** -9                   # by how much --precision bf16 rounds weights at most, relatively
# What sums products may leave out those with zero, or add in another order: what becomes of infinities is open.
LINEAR = set(
    "MatMul Gemm Einsum Conv ConvTranspose Resize GridSample LSTM GRU RNN LayerNormalization "
    "InstanceNormalization BatchNormalization GroupNormalization "
    "LpNormalization MeanVarianceNormalization RMSNormalization LRN CumSum LpPool AveragePool GlobalAveragePool "
    "ReduceLogSumExp"
    .split())
# What a maximum with NaN is differs: NaN (numpy, the standard's reference) or the other (ONNX Runtime, in some).
ORDERED = set("MaxPool GlobalMaxPool ReduceMax ReduceMin ArgMax ArgMin Hardmax ScatterElements ScatterND TopK".split())


class Skip(Exception):
    """This step has nothing to work on, or made something that cannot be compared."""


def dtype_of(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def info(name, array, dims=None):
    return helper.make_tensor_value_info(name, dtype_of(array), list(array.shape) if dims is None else dims)


def session(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])


def model_of(graph, opset):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR)


class Value:
    def __init__(self, name, array, noisy, kind):
        self.name, self.array, self.noisy, self.kind = name, array, noisy, kind     # kind: input, constant or node

    dtype = property(lambda self: self.array.dtype)
    shape = property(lambda self: list(self.array.shape))
    rank = property(lambda self: self.array.ndim)
    count = property(lambda self: self.array.size)
    is_float = property(lambda self: self.array.dtype.kind == "f")


class Maker:
    def __init__(self, seed, rough=False, sized=False):
        self.rng = random.Random(seed)
        self.np = np.random.default_rng(seed)
        self.rough, self.sized = rough, sized  # the program rounds weights; its batch is a size at run time
        self.network = sized or random.Random(f"network {seed}").random() < NETWORKS
        self.nodes, self.values, self.opset, self.names = [], [], self.rng.choice(OPSETS), 0
        self.wild = self.rng.random(
        ) < 0.12  # NaN, infinities, zeros of both signs, subnormal numbers among the inputs
        self.empty = self.rng.random() < 0.04                   # sizes of zero
        self.half = self.rng.random() < 0.15
        if self.network:
            self.wild = self.empty = self.half = False
        self.prefix = "v"

    # ---- values
    def name(self):
        self.names += 1
        return f"{self.prefix}{self.names}"

    def chance(self, p):
        return self.rng.random() < p

    def size(self):
        return 0 if self.empty and self.chance(0.1) else self.rng.choice(
            (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 33))

    def shape(self, low=0, high=4):
        shape = [
            self.size()
            for _ in range(self.rng.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5) if low <= r <= high]))
        ]
        while np.prod(shape) > MAX_COUNT / 2:
            shape[shape.index(max(shape))] = self.rng.randint(1, 4)
        return shape

    def data(self, shape, dtype=np.float32, low=-2.0, high=2.0):
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.np.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            if self.wild and self.chance(0.3):
                return self.np.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
            return self.np.integers(max(bounds.min, -9), 10, shape).astype(dtype)
        a = np.asarray(self.np.uniform(low, high, shape)).astype(dtype)
        if self.chance(0.15):
            a = np.round(a * 4) / 4                             # ties
        return a.astype(dtype)

    def make_wild(self, a):
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30, -1e30], a.dtype)
        where = self.np.random(a.shape) < 0.15
        return np.where(where, odd[self.np.integers(0, len(odd), a.shape)], a).astype(a.dtype)

    def fresh(self, dtype=None, shape=None):
        if dtype is None:
            pool = [np.float32] * 8 + [np.float64, np.int64, np.int32, np.int32, np.bool_, np.uint8, np.int8
                                       ] + [np.float16] * (4 * self.half)
            dtype = self.rng.choice(pool)
        a = self.data(self.shape() if shape is None else shape, dtype)
        if self.wild and a.dtype.kind == "f" and a.dtype != np.float16:
            with np.errstate(all="ignore"):
                a = self.make_wild(a)
        if not self.chance(0.7):
            return self.constant(a)
        v = Value("x" + self.name(), a, a, "input")
        self.values.append(v)
        return v

    def begin(self, shape):
        """What a network reads."""
        a = self.data(shape)
        self.values.append(Value("x" + self.name(), a, a, "input"))

    def constant(self, array):
        a = np.asarray(array)
        v = Value("c" + self.name(), a, self.rounded(a) if self.rough else a, "constant")
        self.values.append(v)
        return v

    def rounded(self, a):
        return (a * (1 + ROUGH * self.np.choice((-1.0, 1.0), a.shape))).astype(a.dtype) if a.dtype == np.float32 else a

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def pick(self, want=lambda v: True, kinds="f", fresh=None):
        """A value of a dtype kind that fits; recent ones are likelier, so that graphs are deep."""
        found = [
            v for v in self.values
            if v.dtype.kind in kinds and v.name[0] != "c" and (v.count or self.empty) and want(v)
        ]
        if fresh and (not found or self.chance(0.1)):
            return self.fresh(*fresh())
        if self.network and not found:
            raise Skip
        if not found or not self.network and self.chance(0.04):
            v = self.fresh(
                self.rng.choice([
                    d for d in (np.float32, np.float32, np.int32, np.int64, np.bool_, np.uint8)
                    if np.dtype(d).kind in kinds
                ] or [np.float32]))
            if want(v) and v.dtype.kind in kinds:
                return v
            self.values.remove(v)
            if not found:
                raise Skip
        return found[-1 - min(int(self.rng.expovariate(0.4)), len(found) - 1)]

    # ---- nodes
    def compute(self, node, captured, exact):
        """The outputs of a node, plain and noisy, from a model of this node alone. Inexact: its inputs are off by a
        rounding error each."""
        used = [v for v in self.values if v.name in set(node.input) | set(captured)]
        outs = [o for o in node.output if o]
        inputs, constants = [v for v in used if v.kind != "constant"], [v for v in used if v.kind == "constant"]

        def session_of(arrays):
            graph = helper.make_graph([node], "g", [info(v.name, v.array) for v in inputs],
                                      [helper.make_empty_tensor_value_info(o) for o in outs],
                                      [numpy_helper.from_array(a, v.name) for v, a in zip(constants, arrays)])
            return session(model_of(graph, self.opset))
        try:
            s = session_of([v.array for v in constants])
            plain = s.run(None, {v.name: v.array for v in inputs})
            s = session_of([v.noisy for v in constants]) if self.rough else s
            noisy = s.run(None, {v.name: v.noisy if exact else self.shake(v.noisy, 1) for v in inputs})
        except Exception as e:
            raise Skip from e
        return plain, noisy

    def emit(self, op, inputs, outputs=1, exact=False, captured=(), **attributes):
        """Adds a node; returns its first output, or all of them as a list if outputs is more than 1."""
        floats = [v.array for v in inputs if v and v.is_float]
        if op in LINEAR and not all(np.isfinite(a).all()
                                    for a in floats) or op in ORDERED and any(np.isnan(a).any() for a in floats):
            raise Skip
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(op, [v.name if v else "" for v in inputs], names, f"n_{names[0]}", **attributes)
        plain, noisy = self.compute(node, captured, exact)
        if op in LINEAR and not all(np.isfinite(a).all() for a in plain if a.dtype.kind == "f"):
            raise Skip
        made = []
        for name, a, b in zip(names, plain, noisy):
            if not isinstance(a, np.ndarray) or a.size > MAX_COUNT * (4 if self.network else 1):
                raise Skip
            made.append(Value(name, a, self.noise(a, b, exact), "node"))
        self.nodes.append(node)
        self.values += made
        return made[0] if outputs == 1 else made

    def shake(self, a, steps):
        if a.dtype.kind != "f":
            return a
        with np.errstate(all="ignore"):
            return np.asarray(a * (1 + steps * EPSILON[a.dtype] * self.np.choice((-1.0, 1.0), a.shape))).astype(a.dtype)

    def noise(self, a, b, exact):
        """b with a rounding error planted; Skip where a and b are not alike."""
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Skip
        if a.dtype.kind != "f":
            if not np.array_equal(a, b):
                raise Skip
            return a
        with np.errstate(all="ignore"):
            if not exact:
                b = self.shake(b, 2)
            fine = np.isfinite(a)
            if not np.array_equal(fine, np.isfinite(b)) or not np.array_equal(a[~fine], b[~fine], equal_nan=True):
                raise Skip
            off, scale = np.abs(a[fine].astype(float) - b[fine]).max(initial=0), np.abs(
                a[fine].astype(float)).max(initial=0)
        if off > (0.05 if self.rough else 0.02 if a.dtype == np.float16 else 1e-3) * scale:
            raise Skip                                          # nothing is left to compare
        return b

    # ---- the whole
    def finish(self):
        used = {i for n in self.nodes for i in n.input} | {name for n in self.nodes for name in captured_names(n)}
        made = [v for v in self.values if v.kind == "node"]
        outputs = [v for v in made if v.name not in used or self.chance(0.05)]
        needed = {v.name: v for v in self.values}
        keep = [needed[i] for i in used if i in needed and needed[i].kind != "node"]
        keep.sort(key=lambda v: self.values.index(v))
        graph = helper.make_graph(self.nodes, "g",
                                  [info(v.name, v.array, self.dims(v)) for v in keep if v.kind == "input"],
                                  [info(v.name, v.array, self.dims(v)) for v in outputs],
                                  [numpy_helper.from_array(v.array, v.name) for v in keep if v.kind == "constant"])
        return model_of(graph, self.opset), [v for v in keep if v.kind == "input"], outputs


    def dims(self, v):
        return ["batch"] + v.shape[1:] if self.sized else v.shape


def captured_names(node):
    """Names that the bodies of a node use."""
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            for n in a.g.node:
                yield from n.input
                yield from captured_names(n)
            for o in a.g.output:
                yield o.name


def allowance(v, rough=False):
    """How far an output's elements may be off. What was planted for rounded weights is more than what rounding does
    to them."""
    if v.dtype.kind != "f":
        return 0.0
    fine = np.isfinite(v.array)
    a, b = v.array[fine].astype(float), v.noisy[fine].astype(float)
    scale = np.abs(a).max(initial=0)
    if rough and v.dtype == np.float32:
        return 4 * np.abs(a - b).max(initial=0) + 2 * ROUGH * scale + 1e-36
    return 40 * np.abs(a - b).max(initial=0) + 8 * EPSILON[v.dtype] * scale + (
        1e-36 if v.dtype == np.float32 else 1e-300 if v.dtype == np.float64 else 1e-6)


def make(seed, rough=False, sized=False):
    """(model, inputs, outputs): Values; the outputs' arrays are what ONNX Runtime computes."""
    from nets import BLOCKS, begin
    from steps import STEPS
    m = Maker(seed, rough, sized)
    if m.network:
        begin(m)
    else:
        m.fresh(np.float32 if m.chance(0.7) else None)
    want = m.rng.randint(3, 24 if m.network else 18)
    tries = 0
    while len(m.nodes) < want and tries < 80:
        tries += 1
        functions, weights = zip(*(BLOCKS if m.network and (sized or m.chance(0.8)) else STEPS))
        step, = m.rng.choices(functions, weights)
        before = len(m.nodes), len(m.values)
        try:
            step(m)
        except (Skip, IndexError, ValueError):  # what a step added before it gave up stays: it is a graph too
            if len(m.nodes) == before[0]:
                m.values = [v for i, v in enumerate(m.values) if i < before[1] or v.kind == "input"]
    return m.finish()
