#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random graphs against ONNX Runtime: what no recorded test has, the ways in which operators meet.

In: a seed. Out: `count` small models of 5 to 25 nodes over odd sizes, each with inputs and the outputs of ONNX Runtime, run through
`burncc verify`. Fusion, views, epilogues, shared buffers and in-place updates are what such graphs shake. A model that differs stays in
the cache; its name holds the seed. Wants an interpreter with numpy, onnx and onnxruntime.
"""
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness                                                  # noqa: E402
from onnx_wire import BOOL, DOUBLE, FLOAT, FLOAT16, INT32, INT64, graph, model, node, tensor, value_info   # noqa: E402

UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Sqrt+", "Exp-", "Erf", "Softplus", "Floor", "Gelu", "HardSwish", "LeakyRelu")
BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Div+")
REDUCE = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceMin")
FLOATS = (FLOAT, DOUBLE)


class Maker:
    """Grows a graph: a list of values (name, dtype, shape), and a step that appends nodes over some of them."""

    def __init__(self, seed, half):
        self.rng = random.Random(seed)
        self.nodes, self.inputs, self.weights, self.values, self.count = [], [], [], [], 0
        self.half = half

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def emit(self, op, inputs, dtype, shape, **attributes):
        out = self.name()
        self.nodes.append(node(op, inputs, [out], **attributes))
        self.values.append((out, dtype, list(shape)))
        return out

    def constant(self, dtype, values, shape=None):
        name = self.name()
        self.weights.append(tensor(name, dtype, values, shape))
        return name

    def numbers(self, shape, dtype=FLOAT):
        count = 1
        for d in shape:
            count *= d
        return self.constant(dtype, [self.rng.uniform(-1, 1) for _ in range(count)], list(shape))

    def size(self):
        return self.rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33))

    def fresh(self, dtype=FLOAT, shape=None):
        shape = shape or [self.size() for _ in range(self.rng.choice((1, 2, 2, 3, 3, 4)))]
        while len(shape) > 1 and _count(shape) > 4000:
            shape[shape.index(max(shape))] = 2
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, dtype, shape))
        self.values.append((name, dtype, list(shape)))
        return self.values[-1]

    def pick(self, want=lambda v: True, dtypes=FLOATS):
        """Recent values are likelier, so that graphs are deep."""
        found = [v for v in self.values if v[1] in dtypes and _count(v[2]) > 0 and want(v)]
        if not found or self.rng.random() < 0.05:
            v = self.fresh()
            if want(v):
                return v
        if not found:
            raise LookupError
        return found[-1 - min(int(self.rng.expovariate(0.5)), len(found) - 1)]

    # ---- steps
    def unary(self):
        x, t, s = self.pick()
        op = self.rng.choice(UNARY)
        if op[-1] in "+-":                              # keeps the argument where the function is tame
            x = self.emit("Abs", [x], t, s)
            if op[-1] == "-":
                x = self.emit("Neg", [x], t, s)
        elif t == DOUBLE and op in ("Gelu", "HardSwish", "Softplus", "Erf", "LeakyRelu"):
            op = "Tanh"
        self.emit(op.rstrip("+-"), [x], t, s)

    def binary(self):
        x, t, s = self.pick()
        y = self.rng.random()
        other = next((v for v in reversed(self.values) if v[1] == t and v[0] != x and _broadcast(v[2], s) == s), None) if y < 0.6 else None
        if other is None:
            shape = [d if self.rng.random() < 0.6 else 1 for d in s][self.rng.randrange(len(s) + 1):]
            other = (self.numbers(shape, t), t, shape)
        op = self.rng.choice(BINARY)
        z = other[0]
        if op == "Div+":
            z = self.emit("Abs", [z], t, other[2])
            z = self.emit("Add", [z, self.constant(t, 1.5)], t, other[2])
        self.emit(op.rstrip("+"), [x, z] if self.rng.random() < 0.8 or op == "Div+" else [z, x], t, s)

    def choose(self):
        x, t, s = self.pick()
        c = self.emit(self.rng.choice(("Greater", "LessOrEqual")), [x, self.constant(t, self.rng.uniform(-0.5, 0.5))], BOOL, s)
        self.emit("Where", [c, x, self.constant(t, self.rng.uniform(-1, 1))], t, s)

    def reduce(self):
        x, t, s = self.pick(lambda v: v[2])
        axes = sorted(self.rng.sample(range(len(s)), self.rng.randint(1, len(s))))
        keep = self.rng.randrange(2)
        shape = [1 if i in axes else d for i, d in enumerate(s)] if keep else [d for i, d in enumerate(s) if i not in axes]
        self.emit(self.rng.choice(REDUCE), [x, self.constant(INT64, axes)], t, shape, keepdims=keep)

    def normalize(self):
        x, t, s = self.pick(lambda v: v[2] and v[1] == FLOAT)
        axis = self.rng.randrange(len(s))
        kind = self.rng.choice(("Softmax", "LogSoftmax", "LayerNormalization"))
        if kind == "LayerNormalization":
            self.emit(kind, [x, self.numbers(s[axis:]), self.numbers(s[axis:])], t, s, axis=axis)
        else:
            self.emit(kind, [x], t, s, axis=axis)

    def transpose(self):
        x, t, s = self.pick(lambda v: len(v[2]) > 1)
        perm = list(range(len(s)))
        self.rng.shuffle(perm)
        self.emit("Transpose", [x], t, [s[p] for p in perm], perm=perm)

    def reshape(self):
        x, t, s = self.pick(lambda v: v[2])
        shape = list(s)
        if len(shape) > 1 and self.rng.random() < 0.6:
            i = self.rng.randrange(len(shape) - 1)
            shape[i:i + 2] = [shape[i] * shape[i + 1]]
        else:
            i = self.rng.randrange(len(shape))
            part = self.rng.choice([d for d in range(1, shape[i] + 1) if shape[i] % d == 0])
            shape[i:i + 1] = [part, shape[i] // part]
        if len(shape) <= 6:
            self.emit("Reshape", [x, self.constant(INT64, shape)], t, shape)

    def slice(self):
        x, t, s = self.pick(lambda v: v[2])
        axis = self.rng.randrange(len(s))
        step = self.rng.choice((1, 1, 2, -1, -2))
        lo, hi = sorted((self.rng.randrange(s[axis]), self.rng.randrange(s[axis])))
        length = (hi - lo) // abs(step) + 1
        start, end = (lo, hi + 1) if step > 0 else (hi, lo - 1 if lo else -s[axis] - 1)
        shape = s[:axis] + [length] + s[axis + 1:]
        self.emit("Slice", [x] + [self.constant(INT64, [v]) for v in (start, end, axis, step)], t, shape)

    def pad(self):
        x, t, s = self.pick(lambda v: v[2] and _count(v[2]) < 3000)
        lo, hi = ([self.rng.randrange(3) for _ in s] for _ in range(2))
        mode = self.rng.choice(("constant", "edge"))
        shape = [d + a + b for d, a, b in zip(s, lo, hi)]
        self.emit("Pad", [x, self.constant(INT64, lo + hi)] + ([self.constant(t, 0.25)] if mode == "constant" else []), t, shape, mode=mode)

    def concat(self):
        x, t, s = self.pick(lambda v: v[2])
        axis = self.rng.randrange(len(s))
        fits = [v for v in self.values if v[1] == t and len(v[2]) == len(s) and all(a == b for i, (a, b) in enumerate(zip(v[2], s)) if i != axis)]
        parts = [(x, t, s)] + [self.rng.choice(fits) for _ in range(self.rng.randint(1, 2))]
        self.emit("Concat", [p[0] for p in parts], t, s[:axis] + [sum(p[2][axis] for p in parts)] + s[axis + 1:], axis=axis)

    def split(self):
        x, t, s = self.pick(lambda v: v[2] and max(v[2]) > 1)
        axis = self.rng.choice([i for i, d in enumerate(s) if d > 1])
        at = self.rng.randint(1, s[axis] - 1)
        outs = [self.name(), self.name()]
        self.nodes.append(node("Split", [x, self.constant(INT64, [at, s[axis] - at])], outs, axis=axis))
        for out, size in zip(outs, (at, s[axis] - at)):
            self.values.append((out, t, s[:axis] + [size] + s[axis + 1:]))

    def expand(self):
        x, t, s = self.pick(lambda v: _count(v[2]) < 300)
        shape = [self.rng.randint(2, 4) if d == 1 else d for d in s]
        shape = [self.rng.randint(1, 3)] * (len(s) < 4 and self.rng.randrange(2)) + shape
        self.emit("Expand", [x, self.constant(INT64, shape)], t, shape)

    def gather(self):
        x, t, s = self.pick(lambda v: v[2])
        axis = self.rng.randrange(len(s))
        index = [self.rng.randrange(-s[axis], s[axis]) for _ in range(self.rng.randint(1, 6))]
        self.emit("Gather", [x, self.constant(INT64, index)], t, s[:axis] + [len(index)] + s[axis + 1:], axis=axis)

    def matmul(self):
        x, t, s = self.pick(lambda v: len(v[2]) > 1 and v[1] == FLOAT)
        n = self.size()
        batch = self.rng.random() < 0.3 and len(s) > 2
        fits = [v for v in self.values if v[1] == t and len(v[2]) == 2 and v[2][0] == s[-1]]
        w, n = (self.rng.choice(fits)[0], None) if fits and self.rng.random() < 0.4 else (None, n)
        if w:
            n = next(v for v in self.values if v[0] == w)[2][1]
        else:
            w = self.numbers((s[:-2] if batch else []) + [s[-1], n])
        y = self.emit("MatMul", [x, w], t, s[:-1] + [n])
        if self.rng.random() < 0.6:
            y = self.emit("Add", [y, self.numbers([n])], t, s[:-1] + [n])

    def conv(self):
        images = [v for v in self.values if len(v[2]) == 4 and v[1] == FLOAT and min(v[2][2:]) > 2]
        shape = [self.rng.randint(1, 2), self.rng.choice((2, 4, 6)), self.rng.randint(5, 13), self.rng.randint(5, 13)]
        x, t, s = images[-1] if images else self.fresh(shape=shape)
        group = self.rng.choice([g for g in (1, 1, 2, s[1]) if s[1] % g == 0])
        out = group * self.rng.randint(1, 6)
        k = self.rng.choice((1, 2, 3))
        stride, pad = self.rng.choice((1, 1, 2)), self.rng.randrange(k)
        shape = [s[0], out] + [(d + 2 * pad - k) // stride + 1 for d in s[2:]]
        weights = [self.numbers([out, s[1] // group, k, k])] + ([self.numbers([out])] if self.rng.random() < 0.7 else [])
        self.emit("Conv", [x] + weights, t, shape, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group)

    def pool(self):
        x, t, s = self.pick(lambda v: len(v[2]) == 4 and v[1] == FLOAT and min(v[2][2:]) > 2)
        k, stride = self.rng.choice((2, 3)), self.rng.choice((1, 2))
        shape = s[:2] + [(d - k) // stride + 1 for d in s[2:]]
        self.emit(self.rng.choice(("MaxPool", "AveragePool")), [x], t, shape, kernel_shape=[k, k], strides=[stride] * 2)

    def cast(self):
        x, t, s = self.pick()
        if t == FLOAT:
            way = self.rng.choice((DOUBLE, INT32) + ((FLOAT16,) if self.half else ()))
            if way == DOUBLE:
                self.emit("Cast", [x], DOUBLE, s, to=DOUBLE)
                return
            scaled = self.emit("Mul", [x, self.constant(FLOAT, 7.3)], t, s) if way == INT32 else x
            x = self.emit("Cast", [scaled], way, s, to=way)
        self.emit("Cast", [x], FLOAT, s, to=FLOAT)

    def scan(self):
        x, t, s = self.pick(lambda v: v[2])
        axis = self.rng.randrange(len(s))
        self.emit("CumSum", [x, self.constant(INT64, axis)], t, s, reverse=self.rng.randrange(2))

    def order(self):
        x, t, s = self.pick(lambda v: v[2])
        axis = self.rng.randrange(len(s))
        i = self.emit(self.rng.choice(("ArgMax", "ArgMin")), [x], INT64, s[:axis] + [1] + s[axis + 1:], axis=axis)
        self.emit("GatherElements", [x, i], t, s[:axis] + [1] + s[axis + 1:], axis=axis)

    def top(self):
        x, t, s = self.pick(lambda v: v[2])
        axis = self.rng.randrange(len(s))
        k = self.rng.randint(1, s[axis])
        shape = s[:axis] + [k] + s[axis + 1:]
        values, places = self.name(), self.name()       # places of equal elements are open, so nothing uses them
        self.nodes.append(node("TopK", [x, self.constant(INT64, [k])], [values, places], axis=axis, largest=self.rng.randrange(2)))
        self.values.append((values, t, shape))

    def scatter(self):
        x, t, s = self.pick(lambda v: v[2] and _count(v[2]) < 2000)
        axis = self.rng.randrange(len(s))
        rows = self.rng.sample(range(s[axis]), self.rng.randint(1, s[axis]))     # each once: which of two writes wins is open
        shape = s[:axis] + [len(rows)] + s[axis + 1:]
        inner = _count(s[axis + 1:])
        index = self.constant(INT64, [rows[i // inner % len(rows)] for i in range(_count(shape))], shape)
        self.emit("ScatterElements", [x, index, self.numbers(shape, t)], t, s, axis=axis, reduction=self.rng.choice(("none", "add")))

    def conv_transpose(self):
        x, t, s = self.pick(lambda v: len(v[2]) == 4 and v[1] == FLOAT and _count(v[2]) < 1500)
        group = self.rng.choice([g for g in (1, 1, 2) if s[1] % g == 0])
        out, k, stride = self.rng.randint(1, 4), self.rng.choice((2, 3)), self.rng.choice((1, 2))
        pad = self.rng.randrange(2) if min(s[2:]) > 1 else 0
        shape = [s[0], out * group] + [(d - 1) * stride + k - 2 * pad for d in s[2:]]
        if min(shape) > 0:
            self.emit("ConvTranspose", [x, self.numbers([s[1], out, k, k])], t, shape, kernel_shape=[k, k], strides=[stride] * 2,
                      pads=[pad] * 4, group=group)

    def resize(self):
        x, t, s = self.pick(lambda v: len(v[2]) == 4 and v[1] == FLOAT and _count(v[2]) < 1500)
        up = [self.rng.choice((1, 2, 3)) for _ in range(2)]
        mode = self.rng.choice(("nearest", "linear"))
        scales = self.constant(FLOAT, [1.0, 1.0] + [float(u) for u in up])
        self.emit("Resize", [x, "", scales], t, s[:2] + [d * u for d, u in zip(s[2:], up)], mode=mode)


def _count(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def _broadcast(a, b):
    a = [1] * (len(b) - len(a)) + a
    return b if len(a) == len(b) and all(x in (1, y) for x, y in zip(a, b)) else None


STEPS = ((Maker.unary, 6), (Maker.binary, 6), (Maker.choose, 2), (Maker.reduce, 3), (Maker.normalize, 2), (Maker.transpose, 3), (Maker.reshape, 3),
         (Maker.slice, 3), (Maker.pad, 2), (Maker.concat, 3), (Maker.split, 2), (Maker.expand, 1), (Maker.gather, 2), (Maker.matmul, 4),
         (Maker.conv, 3), (Maker.pool, 1), (Maker.cast, 1), (Maker.scan, 1), (Maker.order, 1), (Maker.top, 1), (Maker.scatter, 1),
         (Maker.conv_transpose, 1), (Maker.resize, 1))


def make(seed, half):
    """Model bytes and inputs. Every value that nothing uses is an output, and now and then one that is used."""
    m = Maker(seed, half)
    m.fresh()
    steps = m.rng.randint(5, 25)
    while len(m.nodes) < steps:
        if _count(m.values[-1][2]) > 8000:
            m.values.append(m.values.pop(0))
        step, = m.rng.choices([s for s, _ in STEPS], [w for _, w in STEPS])
        try:
            step(m)
        except LookupError:                             # no value that this step could take
            pass
    used = {i.decode() for n in m.nodes for i in _inputs(n)}
    made = [v for v in m.values if not v[0].startswith("x")]
    outputs = [v for v in made if v[0] not in used or m.rng.random() < 0.05]
    fed = [i for i in m.inputs if i[0] in used]
    return model(graph(m.nodes, [value_info(*i) for i in fed], [value_info(*o) for o in outputs], m.weights), opset=20), fed


def _inputs(n):
    from onnx_wire import fields
    return [v for k, v in fields(n) if k == 1]


def write(folder, seed, half):
    """False when ONNX Runtime does not take the model or its outputs are not finite."""
    import numpy as np
    import onnxruntime
    from onnx import numpy_helper
    data, fed = make(seed, half)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    rng = np.random.default_rng(seed)
    feeds = {name: rng.uniform(-2, 2, shape).astype(np.float32) for name, _, shape in fed}
    try:
        outputs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception as e:
        print(f"seed {seed}: not taken by the reference: {str(e)[:160]}", file=sys.stderr)
        return False
    if not all(np.isfinite(o).all() and np.abs(o, dtype=float).max(initial=0) < 1e6 for o in outputs if o.dtype != bool):
        return False
    sets = folder / "test_data_set_0"
    shutil.rmtree(folder, ignore_errors=True)
    sets.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(data)
    for kind, arrays in (("input", feeds.values()), ("output", outputs)):
        for i, a in enumerate(arrays):
            (sets / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(a).SerializeToString())
    return True


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    p.add_argument("--seed", type=int, default=1, help="the first seed")
    p.add_argument("--count", type=int, default=200, help="how many")
    p.add_argument("--half", action="store_true", help="with float16, whose rounding another order of operations may move by a step")
    p.add_argument("--verify", default="", help="more options for burncc verify")
    args = harness.parse(p)
    try:
        import numpy, onnx, onnxruntime     # noqa: E401, F401
    except ImportError:
        harness.skip_all(args, "wants numpy, onnx and onnxruntime")
    cases = []
    for seed in range(args.seed, args.seed + args.count):
        folder = pathlib.Path(args.cache) / "fuzz" / f"seed{seed}"
        if write(folder, seed, args.half):
            command = [args.burncc, "verify", str(folder / "model.onnx"), "--target", args.target, "--quiet", "--rtol", "1e-3", "--atol", "2e-5"]
            cases.append(harness.Case(folder.name, "graphs", command + args.verify.split()))
    return harness.run(cases, args)


if __name__ == "__main__":
    sys.exit(main())
