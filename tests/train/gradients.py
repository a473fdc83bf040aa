#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every differentiable operator of ONNX over random shapes in double precision: gradients by its inputs and tangents of
its outputs against central differences.

usage: gradients.py CHECK [--count N] [--only OPERATOR] [--keep DIR]
CHECK is build/tests/check_gradients, which differentiates and compares (gradients/check.c). --count: models an operator
(default 2). Each operator of ONNX's own domain that the compiler knows, and where Python has onnx each that its schemas
let take and give floats, must be a case here or in NONE with the reason. Needs the standard library only. Prints TAP
and how many of how many are reached."""
import argparse, math, pathlib, random, re, struct, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import onnx_wire as wire        # noqa: E402

ROWS = HERE.parents[1] / "compiler/import/onnx/onnx_ops.def"

# Nothing to differentiate, and why.
NONE = {op: why for why, ops in {
    "draws": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "reads a shape or numbers alone": "BlackmanWindow Constant ConstantOfShape EyeLike HammingWindow HannWindow Shape "
                                      "Size",
    "its size is computed from its inputs": "Range", "of a table": "MelWeightMatrix",
    "its size is found out": "NonZero Unique",
    "gives booleans": "Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual", "of booleans": "And Not Or Xor",
    "of integers": "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor ConvInteger MatMulInteger QLinearConv "
                   "QLinearMatMul",
    "gives places": "ArgMax ArgMin NonMaxSuppression", "reads bits": "BitCast",
    "rounds to bytes": "DynamicQuantizeLinear QuantizeLinear", "of strings": "RegexFullMatch StringConcat "
    "StringNormalizer StringSplit TfIdfVectorizer", "of a file": "ImageDecoder",
    "passes a value on, or not": "Optional OptionalGetElement OptionalHasElement",
    "of a sequence's length": "SequenceEmpty SequenceLength",
}.items() for op in ops.split()}


class Draw:
    """Random shapes, values and choices of one model. Values are at least a step from each other and from 0, where
    functions have kinks."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.inputs, self.tensors = [], []

    def size(self, lo=1, hi=4):
        return self.r.randint(lo, hi)

    def shape(self, rank=None, lo=1, hi=4):
        return [self.size(lo, hi) for _ in range(self.size(1, 3) if rank is None else rank)]

    def one(self, *of):
        return self.r.choice(of)

    def x(self, shape, lo=-1.0, hi=1.0, name=None):
        """An input of doubles."""
        n = math.prod(shape)
        places = [lo + (hi - lo) * (i + 0.2 + 0.6 * self.r.random()) / n for i in range(n)]
        self.r.shuffle(places)
        values = [v if abs(v) > 1e-3 else 0.01 for v in places]
        name = name or f"x{len(self.inputs)}"
        self.inputs.append((name, wire.DOUBLE, shape, values))
        return name

    def k(self, values, dtype=wire.INT64, shape=None, name=None):
        """A constant."""
        name = name or f"k{len(self.tensors)}"
        self.tensors.append(wire.tensor(name, dtype, values, shape))
        return name

    def numbers(self, values):
        return self.k(values, wire.DOUBLE)

    def indices(self, shape, below):
        return self.k([self.r.randrange(-below, below) for _ in range(math.prod(shape))], shape=shape)


def unary(lo=-1.0, hi=1.0, **attributes):
    return lambda d, op: wire.node(op, [d.x(d.shape(), lo, hi)], ["y"], **{k: v(d) for k, v in attributes.items()})


def real(lo, hi):
    return lambda d: d.r.uniform(lo, hi)


def broadcast(d, shape):
    shape = [n if d.r.random() < 0.7 else 1 for n in shape]
    return shape[d.size(0, len(shape) - 1):] if d.r.random() < 0.4 else shape


def binary(lo=-1.0, hi=1.0):
    def build(d, op):
        shape = d.shape()
        return wire.node(op, [d.x(shape, lo, hi), d.x(broadcast(d, shape), lo, hi)], ["y"])
    return build


def variadic(d, op):
    shape = d.shape()
    return wire.node(op, [d.x(shape if i == 0 else broadcast(d, shape)) for i in range(d.size(1, 3))], ["y"])


def modulus(d, op):
    shape = d.shape()
    return wire.node(op, [d.x(shape, -3, 3), d.x(shape, 1, 2)], ["y"], fmod=1)


def power(d, op):
    shape = d.shape()
    return wire.node(op, [d.x(shape, 0.3, 2), d.x(broadcast(d, shape), -2, 2)], ["y"])


def along(lo=-1.0, hi=1.0):
    def build(d, op):
        shape = d.shape()
        return wire.node(op, [d.x(shape, lo, hi)], ["y"], axis=d.size(0, len(shape) - 1) - d.one(0, len(shape)))
    return build


def reduction(lo=-1.0, hi=1.0):
    def build(d, op):
        shape = d.shape(d.size(1, 4))
        axes = d.r.sample(range(len(shape)), d.size(1, len(shape)))
        return wire.node(op, [d.x(shape, lo, hi), d.k(axes)], ["y"], keepdims=d.one(0, 1))
    return build


def cumulative(d, op):
    shape = d.shape(lo=2)
    return wire.node(op, [d.x(shape), d.k(d.size(0, len(shape) - 1))], ["y"], exclusive=d.one(0, 1),
                     reverse=d.one(0, 1))


def window(d, rank):
    kernel = [d.size(1, 3) for _ in range(rank)]
    pads = [d.r.randrange(k) for k in kernel] + [d.r.randrange(k) for k in kernel]
    return kernel, dict(kernel_shape=kernel, strides=d.shape(rank, 1, 2), pads=pads)


def pool(d, op):
    rank = d.size(1, 2)
    _, attributes = window(d, rank)
    return wire.node(op, [d.x(d.shape(2, 1, 2) + d.shape(rank, 4, 6))], ["y"], **attributes)


def conv(d, op):
    rank, group, a, b = d.size(1, 2), d.size(1, 2), d.size(1, 2), d.size(1, 2)
    kernel, attributes = window(d, rank)
    weight = [group * a, b] if op == "ConvTranspose" else [group * b, a]
    if op == "ConvTranspose":
        attributes["pads"] = [0] * 2 * rank
    x = d.x([d.size(1, 2), group * a] + d.shape(rank, 4, 6))
    return wire.node(op, [x, d.x(weight + kernel), d.x([group * b])], ["y"], group=group,
                     dilations=[d.one(1, 2) if k < 3 else 1 for k in kernel], **attributes)


def deformed(d, op):
    kernel, h, w = d.shape(2, 1, 2), 5, 4
    out = [h - kernel[0] + 1, w - kernel[1] + 1]
    x, weight = d.x([1, 2, h, w]), d.x([3, 2, *kernel])
    return wire.node(op, [x, weight, d.x([1, 2 * math.prod(kernel), *out], -0.9, 0.9), d.x([3])], ["y"],
                     kernel_shape=kernel)


def matmul(d, op):
    m, k, n = d.shape(3)
    batch = d.shape(d.size(0, 2))
    return wire.node(op, [d.x(batch + [m, k]), d.x(batch[len(batch) // 2:] + [k, n])], ["y"])


def gemm(d, op):
    m, k, n = d.shape(3)
    a, b = d.one(0, 1), d.one(0, 1)
    return wire.node(op, [d.x([k, m] if a else [m, k]), d.x([n, k] if b else [k, n]), d.x(d.one([m, n], [n], [m, 1]))],
                     ["y"], transA=a, transB=b, alpha=d.r.uniform(0.5, 2), beta=d.r.uniform(0.5, 2))


EQUATIONS = ["ij,jk->ik", "bij,bjk", "ii->i", "ij->ji", "i,j->ij", "bhid,bhjd->bhij", "ijk->", "ij,ij,ij->i"]


def einsum(d, op):
    equation = d.one(*EQUATIONS)
    sizes = {c: d.size(1, 3) for c in "abcdefghijklmnop"}
    terms = equation.split("->")[0].split(",")
    return wire.node(op, [d.x([sizes[c] for c in t]) for t in terms], ["y"], equation=equation)


def matrix(d, op):
    n = d.size(1, 3)
    return wire.node(op, [d.x([2, n, n], 0.5, 2)], ["y"])


def norm_channels(d, op):
    c, groups = 2 * d.size(1, 2), 2
    x = d.x([2, c] + d.shape(d.size(1, 2), 2, 3))
    more = dict(num_groups=groups, stash_type=wire.DOUBLE) if op == "GroupNormalization" else {}
    return wire.node(op, [x, d.x([c]), d.x([c])], ["y"], epsilon=0.01, **more)


def batch_norm(d, op):
    c = d.size()
    return wire.node(op, [d.x([2, c, 3]), d.x([c]), d.x([c]), d.x([c]), d.x([c], 0.5, 1.5)], ["y"], epsilon=0.01)


def norm_last(d, op):
    shape = d.shape(2, 2, 4)
    more = [d.x(shape[-1:])] if op == "LayerNormalization" else []
    return wire.node(op, [d.x(shape), d.x(shape[-1:])] + more, ["y"], epsilon=0.01, axis=-1, stash_type=wire.DOUBLE)


def lrn(d, op):
    return wire.node(op, [d.x([1, 5, 2, 2])], ["y"], size=d.one(1, 3, 5), alpha=0.5, beta=0.75, bias=1.5)


def recurrent(gates):
    def build(d, op):
        t, b, i, h, two = d.size(1, 3), d.size(1, 2), d.size(1, 3), d.size(1, 2), d.one(1, 2)
        inputs = [d.x([t, b, i]), d.x([two, gates * h, i]), d.x([two, gates * h, h]), d.x([two, 2 * gates * h]), "",
                  d.x([two, b, h])] + ([d.x([two, b, h]), d.x([two, 3 * h])] if op == "LSTM" else [])
        more = dict(linear_before_reset=d.one(0, 1)) if op == "GRU" else {}
        return wire.node(op, inputs, ["y", "h"] + (["c"] if op == "LSTM" else []), hidden_size=h,
                         direction="bidirectional" if two == 2 else d.one("forward", "reverse"), **more)
    return build


def attention(d, op):
    b, h, t, s, k, v = d.shape(6, 1, 3)
    return wire.node(op, [d.x([b, h, t, k]), d.x([b, h, s, k]), d.x([b, h, s, v])], ["y"])


def gather(d, op):
    shape = d.shape(2, 2, 4)
    axis = d.size(0, 1)
    if op == "GatherND":
        return wire.node(op, [d.x(shape), d.indices([3, 1], shape[0])], ["y"])
    want = [shape[0], 2] if axis == 1 else [2, shape[1]]
    x, at = d.x(shape), d.indices(want if op == "GatherElements" else [2, 2], shape[axis])
    return wire.node(op, [x, at], ["y"], axis=axis)


def scatter(d, op):
    """Without a reduction each place is written once."""
    how = d.one("none", "add", "mul", "min", "max")
    n, c = d.size(2, 4), d.size(1, 3)
    m = d.size(1, n) if how == "none" else d.size(1, 5)
    at = d.r.sample(range(n), m) if how == "none" else [d.r.randrange(n) for _ in range(m)]
    if op == "ScatterND":
        return wire.node(op, [d.x([n, c]), d.k([[i] for i in at]), d.x([m, c])], ["y"], reduction=how)
    return wire.node(op, [d.x([n, c]), d.k([[i] * c for i in at]), d.x([m, c])], ["y"], axis=0, reduction=how)


def tensor_scatter(d, op):
    return wire.node(op, [d.x([2, 5, 3]), d.x([2, 2, 3]), d.k([0, 2])], ["y"], axis=1)


def top(d, op):
    shape = d.shape(2, 3, 5)
    return wire.node(op, [d.x(shape), d.k([2])], ["y", "i"], axis=d.size(0, 1), largest=d.one(0, 1))


def resize(d, op):
    mode = d.one("nearest", "linear", "cubic")
    return wire.node(op, [d.x([1, 2, 4, 5]), "", d.k([1.0, 1.0, d.one(0.5, 2.0), d.one(1.5, 2.0)], wire.FLOAT)],
                     ["y"], mode=mode,
                     coordinate_transformation_mode=d.one("half_pixel", "align_corners", "asymmetric"))


def grid_sample(d, op):
    return wire.node(op, [d.x([1, 2, 4, 5]), d.x([1, 2, 3, 2], -0.93, 0.91)], ["y"], mode=d.one("linear", "cubic"),
                     padding_mode=d.one("zeros", "border", "reflection"), align_corners=d.one(0, 1))


def affine_grid(d, op):
    return wire.node(op, [d.x([2, 2, 3]), d.k([2, 1, 3, 4])], ["y"], align_corners=d.one(0, 1))


def roi_align(d, op):
    rois = d.numbers([[0.3, 0.4, 3.6, 4.1], [1.2, 0.1, 4.3, 3.7]])
    return wire.node(op, [d.x([1, 2, 6, 6]), rois, d.k([0, 0])], ["y"], output_height=2, output_width=3,
                     mode=d.one("avg", "max"), sampling_ratio=2)


def roi_pool(d, op):
    rois = d.numbers([[0.0, 0, 1, 4, 5], [0.0, 2, 0, 5, 3]])
    return wire.node(op, [d.x([1, 2, 6, 6]), rois], ["y"], pooled_shape=[2, 2])


def slices(d, op):
    n = d.size(3, 5)
    return wire.node(op, [d.x([n, 3]), d.k([1]), d.k([n]), d.k([0]), d.k([d.one(1, 2)])], ["y"])


def pads(d, op):
    return wire.node(op, [d.x([3, 4]), d.k([1, 0, 2, 1])], ["y"], mode=d.one("constant", "reflect", "edge", "wrap"))


def split(d, op):
    return wire.node(op, [d.x([2, 5]), d.k([2, 3])], ["y", "z"], axis=1)


def reshaped(*at, **attributes):
    return lambda d, op: wire.node(op, [d.x([2, 3, 4])] + [d.k(v) for v in at], ["y"], **attributes)


def choice(d, op):
    return wire.node(op, [d.k([[d.one(0, 1) == 1] for _ in range(3)], wire.BOOL), d.x([3, 2]), d.x([2])], ["y"])


def clip(d, op):
    return wire.node(op, [d.x(d.shape()), d.x([], -0.7, -0.3), d.x([], 0.3, 0.7)], ["y"])


def loss(d, op):
    n, c = d.size(1, 3), d.size(2, 4)
    targets = d.k([d.r.randrange(c) for _ in range(n * 2)], shape=[n, 2])
    return wire.node(op, [d.x([n, c, 2]), targets, d.x([c], 0.5, 1.5)], ["y"], reduction=d.one("none", "sum", "mean"))


def swiglu(d, op):
    return wire.node(op, [d.x([2, 6]), d.x([2, 6])], ["y"], alpha=1.5)


def causal(d, op):
    b, c, t, k = d.shape(4, 1, 3)
    return wire.node(op, [d.x([b, c, t + 1]), d.x([c, 1, k + 1]), d.x([c]), d.x([b, c, k])], ["y", "z"],
                     activation=d.one("none", "silu"))


def linear_attention(d, op):
    b, t, h, k, v = d.shape(5, 1, 2)
    rule, scale = d.one("linear", "gated", "delta", "gated_delta"), 0.5
    decay = d.x([b, t, h]) if "gated" in rule else ""
    more = [decay, d.x([b, t, h], 0.2, 1)] if "delta" in rule else [decay]
    return wire.node(op, [d.x([b, t, h * k]), d.x([b, t, h * k]), d.x([b, t, h * v]), d.x([b, h, k, v]), *more],
                     ["y", "z"], update_rule=rule, q_num_heads=h, kv_num_heads=h, scale=scale)


def fourier(d, op):
    if op == "STFT":
        return wire.node(op, [d.x([1, 12, 1]), d.k(4), d.x([8]), d.k(8)], ["y"])
    return wire.node(op, [d.x([2, d.size(2, 6), d.one(1, 2)])], ["y"], axis=1)


def unpool(d, op):
    return wire.node(op, [d.x([1, 1, 2, 2]), d.k([0, 3, 9, 14], shape=[1, 1, 2, 2])], ["y"], kernel_shape=[2, 2],
                     strides=[2, 2])


def compress(d, op):
    return wire.node(op, [d.x([4, 2]), d.k([True, False, True, True], wire.BOOL)], ["y"], axis=0)


def one_hot(d, op):
    return wire.node(op, [d.k([0, 2, 1]), d.k(4), d.x([2])], ["y"])


def rotary(d, op):
    b, t, h, s = 1, 3, 2, 4
    return wire.node(op, [d.x([b, h, t, s]), d.x([b, t, s // 2]), d.x([b, t, s // 2])], ["y"], interleaved=d.one(0, 1))


def reversed_sequence(d, op):
    return wire.node(op, [d.x([4, 3, 2]), d.k([1, 4, 2])], ["y"])


def columns(d, op):
    return wire.node(op, [d.x([1, 2 * 4, 9]), d.k([4, 4]), d.k([2, 2])], ["y"])


def dequantize(d, op):
    return wire.node(op, [d.k([[1, 5], [7, 2]], wire.INT8), d.x([2], 0.5, 1)], ["y"], axis=1)


def dropout(d, op):
    return wire.node(op, [d.x([2, 3])], ["y"])


def body(name, nodes, inputs, outputs):
    return "graph", wire.graph(nodes, inputs, outputs, name=name)


def info(name, dtype, shape):
    return wire.value_info(name, dtype, shape)


def branch(d, op):
    shape = d.shape()
    a, b = d.x(shape), d.x(shape)
    yes = body("yes", [wire.node("Mul", [a, b], ["u"])], [], [info("u", wire.DOUBLE, shape)])
    no = body("no", [wire.node("Sin", [a], ["v"])], [], [info("v", wire.DOUBLE, shape)])
    return [wire.node("ReduceSum", [a], ["s"], keepdims=0),
            wire.node("Less", ["s", d.numbers(d.one(-9.0, 9.0))], ["c"]),
            wire.node(op, ["c"], ["y"], then_branch=yes, else_branch=no)]


def loop(d, op):
    shape = d.shape()
    a, w = d.x(shape), d.x(shape)
    step = body("step", [wire.node("Identity", ["go"], ["on"]), wire.node("Mul", ["h", w], ["u"]),
                         wire.node("Tanh", ["u"], ["n"]), wire.node("Identity", ["n"], ["s"])],
                [info("i", wire.INT64, []), info("go", wire.BOOL, []), info("h", wire.DOUBLE, shape)],
                [info("on", wire.BOOL, []), info("n", wire.DOUBLE, shape), info("s", wire.DOUBLE, shape)])
    return wire.node(op, [d.k(d.size(1, 4)), d.k(True, wire.BOOL), a], ["y", "z"], body=step)


def sequence(d, op):
    """One way through them all."""
    return [wire.node("SplitToSequence", [d.x([3, 2]), d.k([1, 2])], ["parts"], axis=0),
            wire.node("SequenceAt", ["parts", d.k(1)], ["part"]),
            wire.node("SequenceConstruct", [d.x([2, 2]), "part"], ["two"]),
            wire.node("SequenceInsert", ["two", d.x([1, 2]), d.k(1)], ["three"]),
            wire.node("SequenceErase", ["three", d.k(0)], ["left"]),
            wire.node("SequenceMap", ["left"], ["squares"], body=body(
                "square", [wire.node("Mul", ["u", "u"], ["v"])], [info("u", wire.DOUBLE, ["n", 2])],
                [info("v", wire.DOUBLE, ["n", 2])])),
            wire.node("ConcatFromSequence", ["squares"], ["y"], axis=0)]


def upsample(d, op):
    scales = d.k([1.0, 1.0, 2.0, 1.5], wire.FLOAT)
    return wire.node(op, [d.x([1, 2, 3, 2]), scales], ["y"], mode=d.one("nearest", "linear"))


def scan(d, op):
    t, n = d.size(2, 4), d.size()
    step = body("step", [wire.node("Mul", ["h", "x"], ["u"]), wire.node("Sin", ["u"], ["n"]),
                         wire.node("Add", ["n", "x"], ["s"])],
                [info("h", wire.DOUBLE, [n]), info("x", wire.DOUBLE, [n])],
                [info("n", wire.DOUBLE, [n]), info("s", wire.DOUBLE, [n])])
    return wire.node(op, [d.x([n]), d.x([t, n])], ["y", "z"], body=step, num_scan_inputs=1,
                     scan_input_directions=[d.one(0, 1)], scan_output_directions=[d.one(0, 1)])


# Since these versions of the operator set.
NEW = "AffineGrid DeformConv Gelu GroupNormalization DFT".split()
NEWEST = ("CumProd CausalConvWithState LinearAttention Attention RMSNormalization RotaryEmbedding Swish TensorScatter "
          "SwiGLU").split()
OLD = {"Scatter": 9, "Upsample": 9}

MORE = lambda *rows: {op: build for ops, build in rows for op in ops.split()}      # noqa: E731
CASES = MORE(
    ("Abs Ceil Cos Erf Exp Floor Identity Neg Round Sign Sin Sinh Cosh Softplus Softsign Tanh Atan Asinh Sigmoid Relu "
     "Mish HardSwish Selu Tan Flatten Swish Gelu", unary()),
    ("Asin Acos Atanh", unary(-0.9, 0.9)), ("Acosh", unary(1.2, 3)), ("Log Sqrt Reciprocal", unary(0.3, 2)),
    ("Elu Celu LeakyRelu ThresholdedRelu", unary(-2, 2, alpha=real(0.2, 0.8))),
    ("HardSigmoid", unary(-2, 2, alpha=real(0.2, 0.8), beta=real(0.2, 0.8))),
    ("Shrink", unary(-2, 2, lambd=real(0.3, 0.8), bias=real(0.1, 0.5))),
    ("Add Sub Mul PRelu", binary()), ("Div", binary(0.4, 2)), ("Pow", power), ("Mod", modulus),
    ("Max Min Sum Mean", variadic), ("Where", choice), ("Clip", clip),
    ("Softmax LogSoftmax Hardmax", along()), ("LpNormalization", along(0.2, 1)),
    ("ReduceSum ReduceMean ReduceMax ReduceMin ReduceSumSquare ReduceLogSumExp ReduceProd ReduceL1 ReduceL2",
     reduction()),
    ("ReduceLogSum", reduction(0.3, 1)), ("CumSum CumProd", cumulative),
    ("MaxPool AveragePool LpPool", pool), ("GlobalAveragePool GlobalMaxPool GlobalLpPool MeanVarianceNormalization",
     lambda d, op: wire.node(op, [d.x(d.shape(2, 1, 2) + d.shape(2, 2, 3))], ["y"])),
    ("Conv ConvTranspose", conv), ("DeformConv", deformed), ("MatMul", matmul), ("Gemm", gemm), ("Einsum", einsum),
    ("Det", matrix), ("InstanceNormalization GroupNormalization", norm_channels), ("BatchNormalization", batch_norm),
    ("LayerNormalization RMSNormalization", norm_last), ("LRN", lrn), ("RNN", recurrent(1)), ("GRU", recurrent(3)),
    ("LSTM", recurrent(4)), ("Attention", attention), ("Gather GatherElements GatherND", gather),
    ("SplitToSequence SequenceAt SequenceConstruct SequenceInsert SequenceErase SequenceMap ConcatFromSequence",
     sequence), ("Upsample", upsample), ("Scatter", lambda d, op: wire.node(
         op, [d.x([4, 2]), d.k([[1, 3], [2, 0]]), d.x([2, 2])], ["y"], axis=0)),
    ("ScatterElements ScatterND", scatter), ("TensorScatter", tensor_scatter), ("TopK", top), ("Resize", resize),
    ("GridSample", grid_sample), ("AffineGrid", affine_grid), ("RoiAlign", roi_align), ("MaxRoiPool", roi_pool),
    ("Slice", slices), ("Pad", pads), ("Split", split), ("Reshape", reshaped([4, 6])),
    ("Expand", reshaped([2, 2, 3, 4])),
    ("Transpose", reshaped(perm=[2, 0, 1])), ("Tile", reshaped([1, 2, 2])), ("Unsqueeze", reshaped([1])),
    ("Squeeze", lambda d, op: wire.node(op, [d.x([2, 1, 3]), d.k([1])], ["y"])), ("Trilu", reshaped(upper=1)),
    ("Concat", lambda d, op: wire.node(op, [d.x([2, 3]), d.x([2, 2])], ["y"], axis=1)),
    ("DepthToSpace", lambda d, op: wire.node(op, [d.x([1, 4, 2, 3])], ["y"], blocksize=2, mode=d.one("DCR", "CRD"))),
    ("SpaceToDepth", lambda d, op: wire.node(op, [d.x([1, 2, 4, 2])], ["y"], blocksize=2)),
    ("CenterCropPad", reshaped([3, 2, 4])), ("Cast", unary(to=lambda d: wire.DOUBLE)), ("Compress", compress),
    ("CastLike", lambda d, op: wire.node(op, [d.x([2, 3]), d.numbers([1.0])], ["y"])), ("OneHot", one_hot),
    ("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", loss), ("DFT STFT", fourier), ("MaxUnpool", unpool),
    ("RotaryEmbedding", rotary), ("ReverseSequence", reversed_sequence), ("Col2Im", columns), ("Dropout", dropout),
    ("DequantizeLinear", dequantize), ("SwiGLU", swiglu),
    ("CausalConvWithState", causal), ("LinearAttention", linear_attention), ("If", branch), ("Loop", loop),
    ("Scan", scan),
)


# ---------------------------------------------------------------- models
def outputs_of(nodes):
    return [o.decode() for number, o in wire.fields(nodes[-1]) if number == 2]


def write(op, seed, path):
    """The model of one case, and its inputs' values beside it."""
    d = Draw(f"{op} {seed}")
    nodes = CASES[op](d, op)
    nodes = nodes if isinstance(nodes, list) else [nodes]
    ends = [wire.value_info(n, t, shape) for n, t, shape, _ in d.inputs]
    graph = wire.graph(nodes, ends, [wire.value_info(o, wire.DOUBLE if o != "i" else wire.INT64, None)
                                     for o in outputs_of(nodes)], d.tensors)
    opset = OLD.get(op, 28 if op in NEWEST else 22 if op in NEW else 18)
    path.write_bytes(wire.model(graph, opset=opset, ir=10))
    values = [v for _, _, _, flat in d.inputs for v in flat]
    path.with_suffix(".data").write_bytes(struct.pack(f"<{len(values)}d", *values))


def missing():
    """Operators of ONNX that the compiler knows, or that the installed schemas let take and give floats, and that are
    neither a case nor in NONE; and names there that nobody knows."""
    known = set(re.findall(r'^ONNX\( (\w+), +"",', ROWS.read_text(), re.M))
    wrong = (known - set(CASES) - set(NONE)) | ((set(CASES) | set(NONE)) - known) | (set(CASES) & set(NONE))
    try:
        from onnx import defs
    except ImportError:
        return sorted(wrong)
    floats = lambda ends: any("tensor(float)" in e.types for e in ends)       # noqa: E731
    names = {s.name for s in defs.get_all_schemas()
             if s.domain == "" and not s.deprecated and floats(s.inputs) and floats(s.outputs)}
    return sorted(wrong | (names - set(CASES) - set(NONE)))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("check"), p.add_argument("--count", type=int, default=2), p.add_argument("--only")
    p.add_argument("--keep", type=pathlib.Path)
    args = p.parse_args()
    ops = [op for op in CASES if not args.only or op == args.only]
    bad = models = derivatives = 0
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        folder = args.keep or pathlib.Path(folder)
        for i, op in enumerate(ops, 1):
            paths = [folder / f"{op}_{k}.onnx" for k in range(args.count)]
            for k, path in enumerate(paths):
                write(op, k, path)
            done = subprocess.run([args.check, *paths], capture_output=True, text=True)
            good = [line.split() for line in done.stdout.splitlines() if line.startswith("ok ")]
            numbers = [dict(word.split("=") for word in line[2:]) for line in good]
            models += len(good)
            derivatives += sum(int(n["derivatives"]) for n in numbers)
            worst = max([worst, *(float(n["worst"]) for n in numbers)])
            ok = done.returncode == 0 and len(good) == len(paths)
            bad += not ok
            said = (done.stdout + done.stderr).replace(str(folder), "").strip()[-600:].replace("\n", " | ")
            print(f"{'ok' if ok else 'not ok'} {i} - {op}{'' if ok else ': ' + said}", flush=True)
    left = [] if args.only else missing()
    more = len(ops) + 1
    print(f"{'not ok' if left else 'ok'} {more} - every operator {' '.join(left)}".rstrip())
    print(f"1..{more}")
    for why in sorted(set(NONE.values())):
        print(f"# not differentiated, {why}: {' '.join(op for op in NONE if NONE[op] == why)}")
    print(f"# {len(ops) - bad} of {len(CASES)} operators ({len(CASES) + len(NONE)} known, {len(NONE)} with nothing to "
          f"differentiate), {models} models, {derivatives} derivatives, worst {worst:.1e} off; {bad} fail")
    return 1 if bad or left else 0


if __name__ == "__main__":
    sys.exit(main())
