# SPDX-License-Identifier: MIT OR Apache-2.0
"""The steps by which a random graph grows: functions of a Maker that add one node or a few, and STEPS, how often each
is tried.

A step chooses operands and attributes; whether they fit is for ONNX Runtime to say (Maker.emit raises Skip). What is
left out is what no two implementations agree on: which of equal elements a sort puts first, which of two writes to
one place wins, floats that no integer holds."""
import numpy as np
from onnx import TensorProto as T, helper

from maker import Skip, Value, captured_names, info     # noqa: F401

FLOAT_UNARY = (
    "Relu Sigmoid Tanh Neg Abs Sqrt Exp Log Erf Softplus Softsign Floor Ceil Round Sign HardSwish HardSigmoid "
    "LeakyRelu Elu Selu Celu "
    "ThresholdedRelu Mish Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Reciprocal Identity Gelu Swish Shrink"
).split()
EXACT = {"Relu", "Neg", "Abs", "Floor", "Ceil", "Round", "Sign", "Identity", "Max", "Min"}
TAME = {
    "Sqrt": "Abs", "Log": "Abs", "Exp": "NegAbs", "Acosh": "Abs", "Sinh": "Tanh", "Cosh": "Tanh", "Asin": "Tanh",
    "Acos": "Tanh", "Atanh": "Sigmoid", "Tan": "Tanh"
}
DTYPES = {
    "f": (np.float32, np.float64, np.float16), "i": (np.int32, np.int64, np.int8, np.int16),
    "u": (np.uint8, np.uint32, np.uint64, np.uint16), "b": (np.bool_, )
}


def unary(m):
    v, op = m.pick(), m.rng.choice(FLOAT_UNARY)
    way = TAME.get(op) if m.chance(0.8) else None
    if way == "NegAbs":
        v = m.emit("Neg", [m.emit("Abs", [v], exact=True)], exact=True)
    elif way:
        v = m.emit(way, [v], exact=way == "Abs")
    attributes = {}
    if op in ("LeakyRelu", "Elu", "ThresholdedRelu", "Celu") and m.chance(0.6):
        attributes["alpha"] = m.rng.choice((0.1, 0.5, 1.5))
    if op == "Gelu" and m.chance(0.5):
        attributes["approximate"] = "tanh"
    if op == "Shrink":
        attributes = {"lambd": 0.3, "bias": 0.1}
    m.emit(op, [v], exact=op in EXACT, **attributes)


def whole_unary(m):
    v = m.pick(kinds="iu")
    m.emit(m.rng.choice(("Abs", "Neg", "Sign", "BitwiseNot", "Identity")), [v])


def tests(m):
    m.emit(m.rng.choice(("IsNaN", "IsInf")), [m.pick()], exact=True)


def partner(m, v, low=-2.0, high=2.0):
    """A value that broadcasts with v: of the graph where one fits, else new."""
    if m.chance(0.6):
        fits = [
            w for w in m.values
            if w.dtype == v.dtype and w is not v and w.name[0] != "c" and broadcasts(w.shape, v.shape)
        ]
        if fits:
            return fits[-1 - min(int(m.rng.expovariate(0.5)), len(fits) - 1)]
    shape = [d if m.chance(0.6) else 1 for d in v.shape][m.rng.randrange(v.rank + 1):]
    if m.chance(0.1):
        shape = [m.rng.randint(1, 3)] + [d if m.chance(0.5) else 1 for d in v.shape]
    a = m.data(shape, v.dtype, low, high)
    return m.constant(a) if m.chance(0.7) else input_of(m, a)


def input_of(m, a):
    v = Value("x" + m.name(), a, a, "input")
    m.values.append(v)
    return v


def broadcasts(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))


def binary(m):
    v = m.pick()
    op = m.rng.choice(("Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "Pow", "Mod", "PRelu", "Sum", "Mean"))
    w = partner(m, v)
    if op == "Pow":
        v, w = m.emit("Abs", [v], exact=True), m.constant(np.array(m.rng.choice(
            (0.5, 2.0, 3.0, -1.0, 1.5)), v.dtype)) if m.chance(0.8) else w
    if op in ("Div", "Mod") and m.chance(0.9):
        w = m.emit("Add", [m.emit("Abs", [w], exact=True), m.constant(np.array(1.25, v.dtype))])
    if op in ("Sum", "Mean", "Max", "Min"):
        m.emit(op, [v, w, partner(m, v)][:m.rng.randint(2, 3)], exact=op in EXACT)
    else:
        swap = op in ("Add", "Sub", "Mul") and m.chance(0.3)
        m.emit(op, [w, v] if swap else [v, w], **({"fmod": 1} if op == "Mod" else {}))


def whole_binary(m):
    v = m.pick(kinds="iu")
    w = partner(m, v)
    op = m.rng.choice(
        ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "Pow"))
    if op in ("Div", "Mod", "Pow", "BitShift"):
        a = np.where(w.array == 0, 1, w.array) if op in ("Div", "Mod") else w.array % 4
        w = m.constant(a.astype(w.dtype))
        if op in ("Div", "Mod") and (v.dtype.kind == "i" and (w.array == -1).any()):
            raise Skip
        if op == "Pow" and (np.abs(v.array.astype(float)) ** w.array > 2 ** 31 - 1).any():
            raise Skip
    m.emit(
        op, [v, w],
        **({"direction": m.rng.choice(
            ("LEFT", "RIGHT"))} if op == "BitShift" else {"fmod": 1} if op == "Mod" and m.chance(0.3) else {}))


def logic(m):
    v = m.pick(kinds="b")
    if m.chance(0.2):
        m.emit("Not", [v])
    else:
        m.emit(m.rng.choice(("And", "Or", "Xor", "Equal")), [v, partner(m, v)])


def compare(m):
    v = m.pick(kinds="fiu")
    m.emit(m.rng.choice(("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")), [v, partner(m, v)], exact=True)


def where(m):
    c, v = m.pick(kinds="b"), m.pick(kinds="fiub")
    if not broadcasts(c.shape, v.shape):
        c = m.constant(m.data([d if m.chance(0.7) else 1 for d in v.shape], np.bool_))
    w = partner(m, v)
    if v.is_float and any((np.signbit(x.array) & (x.array == 0)).any() for x in (v, w)):
        raise Skip                                              # ONNX Runtime's Where loses the sign of a zero
    m.emit("Where", [c, v, w], exact=True)


def clip(m):
    v = m.pick(kinds="fiu")
    lo, hi = (m.constant(np.array(x, v.dtype)) if m.chance(0.8) else None for x in (1, 3))
    if v.is_float and np.isinf(v.array).any() and not (lo and hi):
        raise Skip  # ONNX Runtime takes the largest number for a bound that is not there
    m.emit("Clip", [v, lo, hi], exact=True)


def cast(m):
    v = m.pick(kinds="fiub")
    to = np.dtype(
        m.rng.choice([np.float32] * 3 +
                     [np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_, np.int16, np.uint16, np.uint32] +
                     [np.float16] * (3 * m.half)))
    if v.dtype.kind == "f" and to.kind in "iu":
        bounds = np.iinfo(to)
        if not np.isfinite(v.array).all() or v.count and not (bounds.min <= v.array.min()
                                                              and v.array.max() <= min(bounds.max, 2**31)):
            raise Skip
    m.emit("Cast", [v], exact=to.kind != "f" or v.dtype.kind != "f" or to.itemsize >= v.dtype.itemsize,
           to=helper.np_dtype_to_tensor_dtype(to))


def axes_of(m, v, low=0):
    axes = m.rng.sample(range(v.rank), m.rng.randint(min(low, v.rank), v.rank))
    return [a - v.rank if m.chance(0.3) else a for a in axes]


def reduce(m):
    op = m.rng.choice(
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
        "ReduceSumSquare"
        .split())
    whole = m.chance(0.2) and op in ("ReduceMax", "ReduceMin") + (
        () if m.wild else ("ReduceSum", "ReduceL1", "ReduceSumSquare", "ReduceMean", "ReduceProd"))
    v = m.pick(lambda v: v.rank, kinds="i" if whole else "f")
    if whole and op in ("ReduceProd", "ReduceMean", "ReduceSumSquare") and np.abs(v.array).sum(initial=0) > 30:
        raise Skip                                              # ONNX Runtime multiplies in floating point
    if op in ("ReduceLogSum", "ReduceProd") and v.is_float and m.chance(0.8):
        v = m.emit("Sigmoid", [v])
    axes, attributes = axes_of(m, v, 1), {"keepdims": m.rng.randrange(2)}
    inputs = [v]
    if m.opset >= 18 or op == "ReduceSum":
        if m.chance(0.85):
            inputs.append(m.ints(*axes))
        if m.chance(0.1):
            attributes["noop_with_empty_axes"] = 1
    elif m.chance(0.85):
        attributes["axes"] = axes
    m.emit(op, inputs, exact=op in ("ReduceMax", "ReduceMin"), **attributes)


def arg(m):
    v = m.pick(lambda v: v.rank and v.count)
    attributes = {"axis": m.rng.randrange(-v.rank, v.rank), "keepdims": m.rng.randrange(2)}
    if m.chance(0.3):
        attributes["select_last_index"] = 1
    m.emit(m.rng.choice(("ArgMax", "ArgMin")), [v], exact=True, **attributes)


def softmax(m):
    v = m.pick(lambda v: v.rank)
    op = m.rng.choice(("Softmax", "Softmax", "LogSoftmax", "Hardmax"))
    m.emit(op, [v], exact=op == "Hardmax", axis=m.rng.randrange(-v.rank, v.rank))


def normalize(m):
    op = m.rng.choice(
        ("LayerNormalization", "LayerNormalization", "InstanceNormalization", "BatchNormalization",
         "GroupNormalization", "LpNormalization", "MeanVarianceNormalization", "RMSNormalization", "LRN"))
    v = m.pick(lambda v: v.rank >= 2 and v.dtype == np.float32)    # doubles are normalised in f32, in some places
    c = v.shape[1]

    def weights(*shape):
        return m.constant(m.data(shape, v.dtype, 0.5, 1.5))
    if op in ("LayerNormalization", "RMSNormalization"):
        axis = m.rng.randrange(v.rank)
        inputs = [v, weights(*v.shape[axis:])] + [weights(*v.shape[axis:])] * (op[0] == "L" and m.chance(0.7))
        m.emit(op, inputs, axis=axis - (v.rank if m.chance(0.3) else 0))
    elif op == "InstanceNormalization":
        if np.prod(v.shape[2:]) == 1:
            raise Skip  # ONNX Runtime's a x + b leaves a difference of large numbers
        m.emit(op, [v, weights(c), weights(c)])
    elif op == "BatchNormalization":
        m.emit(op, [v, weights(c), weights(c), weights(c), weights(c)], epsilon=1e-3)
    elif op == "GroupNormalization":
        g = m.rng.choice([g for g in range(1, c + 1) if c % g == 0])
        per = c if m.opset >= 21 else g
        m.emit(op, [v, weights(per), weights(per)], num_groups=g)
    elif op == "LpNormalization":
        m.emit(op, [v], axis=m.rng.randrange(v.rank), p=m.rng.randint(1, 2))
    elif op == "LRN":
        m.emit(op, [v], size=m.rng.choice((1, 3, 5)), alpha=0.1, beta=0.75, bias=1.0)
    else:
        m.emit(op, [v], axes=[a % v.rank for a in axes_of(m, v, 1)])


def transpose(m):
    v = m.pick(lambda v: v.rank > 1, kinds="fiub")
    m.emit("Transpose", [v], exact=True, **({"perm": m.rng.sample(range(v.rank), v.rank)} if m.chance(0.9) else {}))


def reshape(m):
    v = m.pick(lambda v: v.rank, kinds="fiub")
    way = m.rng.randrange(5)
    shape = v.shape
    if way == 0:
        m.emit("Flatten", [v], exact=True, axis=m.rng.randint(0, v.rank))
    elif way == 1:
        m.emit("Unsqueeze", [v, m.ints(*m.rng.sample(range(v.rank + 1), 1))], exact=True)
    elif way == 2 and 1 in shape:
        m.emit("Squeeze", [v, m.ints(shape.index(1))] if m.chance(0.7) else [v], exact=True)
    else:
        i = m.rng.randrange(v.rank)
        if v.rank > 1 and m.chance(0.5):
            i = m.rng.randrange(v.rank - 1)
            shape[i:i + 2] = [shape[i] * shape[i + 1]]
        else:
            part = m.rng.choice([d for d in range(1, shape[i] + 1) if shape[i] % d == 0])
            shape[i:i + 1] = [part, shape[i] // part]
        if v.count and m.chance(0.3):
            shape[m.rng.randrange(len(shape))] = -1
        m.emit("Reshape", [v, m.ints(*shape)], exact=True)


def expand(m):
    v = m.pick(lambda v: v.count < 500, kinds="fiub")
    if m.chance(0.5):
        m.emit("Tile", [v, m.ints(*[m.rng.choice((1, 1, 2, 3)) for _ in v.shape])], exact=True)
    else:
        shape = [m.rng.randint(2, 4) if d == 1 and m.chance(0.6) else 1 if m.chance(0.2) else d for d in v.shape]
        m.emit("Expand", [v, m.ints(*([m.rng.randint(1, 3)] * m.rng.randrange(2) + shape))], exact=True)


def slice_(m):
    v = m.pick(lambda v: v.rank, kinds="fiub")
    axes = m.rng.sample(range(v.rank), m.rng.randint(1, min(v.rank, 3)))
    starts, ends, steps = [], [], []
    for a in axes:
        d = v.shape[a]
        step = m.rng.choice((1, 1, 1, 2, 3, -1, -2))
        lo, hi = sorted((m.rng.randint(0, d), m.rng.randint(0, d)))
        lo, hi = (lo, hi) if hi > lo or m.empty else (0, d)
        if step < 0:
            lo, hi = hi - 1, lo - 1 if lo else -2 ** 40
        elif m.chance(0.2):
            hi = 2 ** 60
        starts.append(lo)
        ends.append(hi)
        steps.append(step)
    m.emit("Slice", [v, m.ints(*starts), m.ints(*ends), m.ints(*axes), m.ints(*steps)], exact=True)


def pad(m):
    v = m.pick(lambda v: v.rank and v.count < 1500, kinds="fi")
    mode = m.rng.choice(("constant", "constant", "edge", "reflect", "wrap"))
    lo, hi = ([
        m.rng.randint(-1 if mode == "constant" and m.chance(0.2) else 0, min(2, max(d - 1, 0))) for d in v.shape
    ] for _ in range(2))
    fill = [m.constant(np.array(3, v.dtype))] if mode == "constant" and m.chance(0.6) else []
    m.emit("Pad", [v, m.ints(*lo, *hi)] + fill, exact=True, mode=mode)


def concat(m):
    v = m.pick(lambda v: v.rank, kinds="fiub")
    axis = m.rng.randrange(v.rank)
    fits = [
        w for w in m.values
        if w.dtype == v.dtype and w.rank == v.rank and all(i == axis or a == b
                                                           for i, (a, b) in enumerate(zip(w.shape, v.shape)))
    ]
    m.emit("Concat", [v] + [m.rng.choice(fits) for _ in range(m.rng.randint(1, 3))], exact=True,
           axis=axis - (v.rank if m.chance(0.3) else 0))


def split(m):
    v = m.pick(lambda v: v.rank and max(v.shape) > 1, kinds="fiub")
    axis = m.rng.choice([i for i, d in enumerate(v.shape) if d > 1])
    n = m.rng.randint(2, min(4, v.shape[axis]))
    if m.opset >= 18 and m.chance(0.4):
        m.emit("Split", [v], n, exact=True, axis=axis, num_outputs=n)
    else:
        cuts = sorted(m.rng.sample(range(1, v.shape[axis]), n - 1))
        m.emit("Split", [v, m.ints(*np.diff([0] + cuts + [v.shape[axis]]))], n, exact=True, axis=axis)


def indices(m, bound, shape):
    return m.constant(m.np.integers(-bound, bound, shape).astype(m.rng.choice((np.int64, np.int32))))


def gather(m):
    v = m.pick(lambda v: v.rank and v.count, kinds="fiub")
    axis = m.rng.randrange(v.rank)
    way = m.rng.randrange(4)
    if way == 0:
        found = [
            w for w in m.values if w.dtype == np.int64 and w.kind == "node" and w.count
            and w.array.min() >= -v.shape[axis] and w.array.max() < v.shape[axis]
        ]
        m.emit("Gather", [v, m.rng.choice(found)], exact=True, axis=axis)
    elif way == 1:
        m.emit("Gather", [v, indices(m, v.shape[axis], m.shape(0, 2))], exact=True, axis=axis)
    elif way == 2:
        shape = [d if i == axis else m.rng.randint(1, d) for i, d in enumerate(v.shape)]
        shape[axis] = m.rng.randint(1, 5)
        m.emit("GatherElements", [v, indices(m, v.shape[axis], shape)], exact=True, axis=axis)
    else:
        depth = m.rng.randint(1, v.rank)
        rows = np.stack([m.np.integers(-d, d, 4) for d in v.shape[:depth]], -1)
        m.emit("GatherND", [v, m.constant(rows.astype(np.int64))], exact=True)


def scatter(m):
    v = m.pick(lambda v: v.rank and v.count and v.count < 2000, kinds="fi")
    reduction = m.rng.choice(("none", "add", "mul") + (("max", "min") if m.opset >= 18 else ()))
    if m.chance(0.6):
        axis = m.rng.randrange(v.rank)
        n = m.rng.randint(1, v.shape[axis])
        shape = [n if i == axis else m.rng.randint(1, d) for i, d in enumerate(v.shape)]
        lines = np.stack([m.np.permutation(v.shape[axis])[:n]
                          for _ in range(max(1,
                                             int(np.prod(shape)) // n))], -1)  # each place once
        index = np.moveaxis(lines.reshape([n] + shape[:axis] + shape[axis + 1:]), 0, axis)
        m.emit("ScatterElements", [v, m.constant(index.astype(np.int64)),
                                   m.constant(m.data(shape, v.dtype))], axis=axis, reduction=reduction)
    else:
        depth = m.rng.randint(1, v.rank)
        places = m.np.permutation(int(np.prod(v.shape[:depth])))[:m.rng.randint(1, 5)]
        rows = np.stack(np.unravel_index(places, v.shape[:depth]), -1).astype(np.int64)
        m.emit("ScatterND",
               [v, m.constant(rows), m.constant(m.data([len(places)] + v.shape[depth:], v.dtype))],
               reduction=reduction)


def one_hot(m):
    v = m.pick(lambda v: v.count < 300, kinds="iu")
    m.emit("OneHot", [v, m.constant(np.array(m.rng.randint(1, 6), np.int64)),
                      m.constant(m.data([2]))], axis=m.rng.choice((-1, 0)))


def top(m):
    v = m.pick(lambda v: v.rank and v.count, kinds="fi")
    axis = m.rng.randrange(v.rank)
    if np.isnan(v.array).any() if v.is_float else False:
        raise Skip
    values, places = m.emit("TopK", [v, m.ints(m.rng.randint(1, v.shape[axis]))], 2, exact=True, axis=axis,
                            largest=m.rng.randrange(2))
    ordered = np.sort(v.array, axis)
    if (np.diff(ordered, axis=axis) == 0).any():            # places of equal elements are open
        m.values.remove(places)
        m.nodes[-1].output[1] = ""


def cumulate(m):
    v = m.pick(lambda v: v.rank, kinds="fi")
    m.emit("CumSum", [v, m.constant(np.array(m.rng.randrange(-v.rank, v.rank), np.int64))],
           exclusive=m.rng.randrange(2), reverse=m.rng.randrange(2))


def triangle(m):
    v = m.pick(lambda v: v.rank > 1, kinds="fi")
    m.emit("Trilu", [v] + ([m.constant(np.array(m.rng.randint(-2, 2), np.int64))] if m.chance(0.5) else []),
           exact=True, upper=m.rng.randrange(2))


def rearrange(m):
    v = m.pick(
        lambda v: v.rank == 4, kinds="f", fresh=lambda:
        (np.float32, [m.rng.randint(1, 2), 4 * m.rng.randint(1, 2), 2 * m.rng.randint(1, 3), 2 * m.rng.randint(1, 3)]))
    if m.chance(0.5):
        m.emit("DepthToSpace", [v], exact=True, blocksize=2, mode=m.rng.choice(("DCR", "CRD")))
    else:
        m.emit("SpaceToDepth", [v], exact=True, blocksize=2)


def reverse_sequence(m):
    v = m.pick(lambda v: v.rank >= 2 and v.count)
    a = m.rng.randrange(2)
    m.emit("ReverseSequence", [v, m.constant(m.np.integers(1, v.shape[a] + 1, v.shape[1 - a]).astype(np.int64))],
           exact=True, time_axis=a, batch_axis=1 - a)


def sizes(m):
    v = m.pick(kinds="fiub")
    way = m.rng.randrange(4)
    if way == 0:
        m.emit("Shape", [v], exact=True, **({"start": m.rng.randint(-2, 2)} if m.chance(0.5) else {}))
    elif way == 1:
        m.emit("Size", [v], exact=True)
    elif way == 2 and v.count:
        shape = m.emit("Shape", [v], exact=True)
        m.emit("ConstantOfShape", [shape], exact=True, value=helper.make_tensor("v", T.FLOAT, [1], [0.5]))
    elif v.rank == 2:
        m.emit("EyeLike", [v], exact=True, k=m.rng.randint(-1, 1))


def matmul(m):
    v = m.pick(lambda v: v.rank >= 1 and v.dtype != np.float16)
    k = v.shape[-1]
    fits = [
        w for w in m.values
        if w.dtype == v.dtype and w.name[0] != "c" and w.rank >= 1 and (w.shape[-2] if w.rank > 1 else w.shape[0]) == k
    ]
    if fits and m.chance(0.4):
        w = m.rng.choice(fits)
    else:
        batch = [d if m.chance(0.7) else 1
                 for d in v.shape[:-2]][m.rng.randrange(max(1, v.rank - 1)):] if m.chance(0.4) else []
        a = m.data(batch + ([k, m.size()] if m.chance(0.9) else [k]), v.dtype, -1, 1)
        w = m.constant(a) if m.chance(0.7) else input_of(m, a)
    y = m.emit("MatMul", [v, w])
    if y.rank and m.chance(0.5):
        y = m.emit("Add", [y, m.constant(m.data([y.shape[-1]], y.dtype))])
    if m.chance(0.3):
        m.emit(m.rng.choice(("Relu", "Sigmoid", "Tanh")), [y])


def gemm(m):
    v = m.pick(lambda v: v.rank == 2 and v.dtype != np.float16, fresh=lambda: (np.float32, m.shape(2, 2)))
    ta, tb, n = m.rng.randrange(2), m.rng.randrange(2), m.size()
    k, rows = (v.shape[0], v.shape[1]) if ta else (v.shape[1], v.shape[0])
    if not k:
        raise Skip                                              # ONNX Runtime forgets beta
    w = m.constant(m.data([n, k] if tb else [k, n], v.dtype, -1, 1))
    c = [m.constant(m.data(m.rng.choice(([n], [1, n], [rows, 1], [rows, n], [])), v.dtype))] if m.chance(0.7) else []
    m.emit("Gemm", [v, w] + c, transA=ta, transB=tb, alpha=m.rng.choice((1.0, 0.5)), beta=m.rng.choice((1.0, 2.0)))


def einsum(m):
    v = m.pick(lambda v: v.rank in (2, 3) and v.count and v.dtype != np.float16)
    letters = "bij"[3 - v.rank:]
    n = m.rng.randint(1, 6)
    way = m.rng.randrange(5)
    if way == 0:
        m.emit("Einsum", [v, m.constant(m.data([v.shape[-1], n], v.dtype, -1, 1))],
               equation=f"{letters},jk->{letters[:-1]}k")
    elif way == 1:
        m.emit("Einsum", [v, v], equation=f"{letters},{letters[:-2]}kj->{letters[:-2]}ik")
    elif way == 2:
        m.emit("Einsum", [v], equation=f"{letters}->{letters[::-1]}")
    elif way == 3:
        m.emit("Einsum", [v], equation=f"{letters}->{m.rng.choice(letters)}")
    else:
        m.emit("Einsum", [v, v], equation=f"{letters},{letters}->{letters[:-1]}")


def image(m, low=1):
    return m.pick(
        lambda v: v.rank in (3, 4, 5) and v.dtype == np.float32 and v.count and min(v.shape[2:]) >= low, fresh=lambda:
        (np.float32, [m.rng.randint(1, 2), m.rng.choice(
            (1, 2, 3, 4, 6, 8))] + [m.rng.randint(3, 11) for _ in range(m.rng.choice(
                (1, 2, 2, 2, 2)))] + [m.rng.randint(3, 5)] * m.chance(0.1)))


def window(m, v, largest=3):
    n = v.rank - 2
    kernel = [m.rng.randint(1, min(largest, d)) for d in v.shape[2:]]
    attributes = {"strides": [m.rng.choice((1, 1, 2, 3)) for _ in range(n)]} if m.chance(0.7) else {}
    if m.chance(0.2) and all(
            s <= k
            for s, k in zip(attributes.get("strides", [1] * n), kernel)):  # else SAME asks for less than no padding
        attributes["auto_pad"] = m.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif m.chance(0.7):
        attributes["pads"] = [m.rng.randrange(k) for k in kernel] + [m.rng.randrange(k) for k in kernel]
    return kernel, attributes


def conv(m):
    v = image(m)
    kernel, attributes = window(m, v)
    c = v.shape[1]
    group = m.rng.choice([g for g in (1, 1, 1, 2, c) if c % g == 0])
    if m.chance(0.25) and "auto_pad" not in attributes:
        attributes["dilations"] = [m.rng.randint(1, 2) for _ in kernel]
    out = group * m.rng.randint(1, 6)
    w = [m.constant(m.data([out, c // group] + kernel, np.float32, -1, 1))
         ] + ([m.constant(m.data([out]))] if m.chance(0.6) else [])
    y = m.emit("Conv", [v] + w, group=group, kernel_shape=kernel, **attributes)
    if m.chance(0.3):
        y = m.emit("BatchNormalization", [y] + [m.constant(m.data([out], np.float32, 0.5, 1.5)) for _ in range(4)])
    if m.chance(0.3):
        m.emit(m.rng.choice(("Relu", "HardSwish", "Sigmoid")), [y], exact=False)


def conv_transpose(m):
    v = image(m)
    if v.count > 800:
        raise Skip
    kernel, attributes = window(m, v)
    attributes.pop("auto_pad", None)
    c = v.shape[1]
    group = m.rng.choice([g for g in (1, 1, 2) if c % g == 0])
    if m.chance(0.2):
        attributes["output_padding"] = [m.rng.randrange(s) for s in attributes.get("strides", [1] * len(kernel))]
    if m.chance(0.2):
        attributes["dilations"] = [m.rng.randint(1, 2) for _ in kernel]
    out = m.rng.randint(1, 4)
    m.emit("ConvTranspose", [v, m.constant(m.data([c, out] + kernel, np.float32, -1, 1))] +
           ([m.constant(m.data([out * group]))] if m.chance(0.5) else []), group=group, kernel_shape=kernel,
           **attributes)


def pool(m):
    v = image(m)
    op = m.rng.choice(
        ("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"))
    if op[0] == "G":
        m.emit(op, [v], exact=op == "GlobalMaxPool")
        return
    kernel, attributes = window(m, v)
    if op == "AveragePool" and m.chance(0.5):
        attributes["count_include_pad"] = 1
    if op != "LpPool" and m.chance(0.3) and "auto_pad" not in attributes:
        attributes["ceil_mode"] = 1
    if (op == "MaxPool" or m.opset >= 19 and op == "AveragePool") and m.chance(0.2) and "auto_pad" not in attributes:
        attributes["dilations"] = [m.rng.randint(1, 2) for _ in kernel]
    m.emit(op, [v], 2 if op == "MaxPool" and m.chance(0.2) else 1, exact=op == "MaxPool", kernel_shape=kernel,
           **attributes)


def resize(m):
    v = image(m)
    mode = m.rng.choice(("nearest", "linear", "linear", "cubic"))
    if v.count > 800 or mode == "cubic" and v.rank != 4:
        raise Skip
    attributes = {
        "mode": mode, "coordinate_transformation_mode": m.rng.choice(
            ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    }
    if mode == "nearest":
        attributes["nearest_mode"] = m.rng.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        attributes["cubic_coeff_a"] = m.rng.choice((-0.75, -0.5))
        attributes["exclude_outside"] = m.rng.randrange(
            2) if attributes["coordinate_transformation_mode"] != "align_corners" else 0
    if m.chance(0.5) and attributes[
            # ONNX Runtime takes the rounded size for the scaled one
            "coordinate_transformation_mode"] != "align_corners":
        m.emit("Resize", [
            v, None,
            m.constant(np.array([1, 1] + [m.rng.choice((0.5, 1, 1.5, 2, 3)) for _ in v.shape[2:]], np.float32))
        ], **attributes)
    else:
        m.emit("Resize",
               [v, None, None, m.ints(*v.shape[:2], *[m.rng.randint(1, 2 * d) for d in v.shape[2:]])], **attributes)


def grid_sample(m):
    v = image(m)
    if v.rank != 4:
        raise Skip
    grid = m.constant(m.data([v.shape[0], m.rng.randint(1, 5), m.rng.randint(1, 5), 2], np.float32, -1.2, 1.2))
    new = m.opset >= 20
    mode = m.rng.choice(("linear", "nearest", "cubic") if new else ("bilinear", "nearest", "bicubic"))
    m.emit("GridSample", [v, grid], mode=mode, padding_mode=m.rng.choice(
        ("zeros", "border", "reflection")) if "cubic" not in mode else "zeros", align_corners=m.rng.randrange(2))


def recurrent(m):
    op = m.rng.choice(("LSTM", "GRU", "RNN"))
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    v = m.pick(lambda v: v.rank == 3 and v.dtype == np.float32 and v.count, fresh=lambda:
               (np.float32, [m.rng.randint(1, 5), m.rng.randint(1, 3),
                             m.rng.randint(1, 7)]))
    direction = m.rng.choice(("forward", "reverse", "bidirectional"))
    d, h, (t, b, i) = 1 + (direction == "bidirectional"), m.rng.randint(1, 6), v.shape
    if t > 12 or b * i > 400:
        raise Skip

    def data(*shape):
        return m.constant(m.data(list(shape), np.float32, -0.7, 0.7))
    inputs = [v, data(d, gates * h, i), data(d, gates * h, h), data(d, 2 * gates * h) if m.chance(0.6) else None]
    if m.chance(0.3):
        inputs += [m.constant(m.np.integers(1, t + 1, b).astype(np.int32)),
                   data(d, b, h)] + [data(d, b, h)] * (op == "LSTM")
    attributes = {"linear_before_reset": m.rng.randrange(2)} if op == "GRU" else {}
    if m.chance(0.2) and op != "LSTM":  # ONNX Runtime does not clip what the last activation gets
        attributes["clip"] = 0.5
    m.emit(op, inputs, m.rng.randint(1, 3 if op == "LSTM" else 2), hidden_size=h, direction=direction, **attributes)


def quantize(m):
    v = m.pick(lambda v: v.dtype == np.float32 and np.isfinite(v.array).all())
    way = m.rng.randrange(3)
    if way == 0:
        if not v.array.any():
            raise Skip                                          # a scale of 0, for which ONNX Runtime says 1
        m.emit("DynamicQuantizeLinear", [v], 3)
        return
    kind = m.rng.choice((np.uint8, np.int8))
    axis = m.rng.randrange(v.rank) if v.rank and m.chance(0.4) else None
    shape = [] if axis is None else [v.shape[axis]]
    scale, zero = m.constant(np.maximum(m.data(shape, np.float32, 0.01, 0.1),
                                        np.float32(0.01))), m.constant(m.np.integers(0, 10, shape).astype(kind))
    attributes = {} if axis is None else {"axis": axis}
    q = m.emit("QuantizeLinear", [v, scale, zero], **attributes)
    if m.chance(0.7):
        m.emit("DequantizeLinear", [q, scale, zero], **attributes)


def whole_matmul(m):
    v = m.pick(lambda v: v.rank >= 2 and v.dtype in (np.uint8, np.int8) and v.count, kinds="iu", fresh=lambda:
               (np.uint8, m.shape(2, 3)))
    n = m.size() or 1
    w = m.constant(
        m.np.integers(0, 20,
                      [v.shape[-1], n]).astype(m.rng.choice((np.uint8, np.int8)) if v.dtype == np.uint8 else np.int8))
    if m.chance(0.5):
        m.emit("MatMulInteger", [v, w] +
               ([m.constant(np.array(3, v.dtype)), m.constant(np.array(2, w.dtype))] if m.chance(0.6) else []))
    else:
        one = [m.constant(np.array(x, np.float32)) for x in (0.05, 0.03, 0.2)]
        m.emit("QLinearMatMul", [
            v, one[0],
            m.constant(np.array(3, v.dtype)), w, one[1],
            m.constant(np.array(2, w.dtype)), one[2],
            m.constant(np.array(4, v.dtype))
        ])


def whole_conv(m):
    v = m.pick(lambda v: v.rank == 4 and v.dtype == np.uint8 and v.count and min(v.shape[2:]) > 1, kinds="u",
               fresh=lambda: (np.uint8, [1, m.rng.randint(1, 4), m.rng.randint(3, 8), m.rng.randint(3, 8)]))
    kernel, attributes = window(m, v)
    out = m.rng.randint(1, 4)
    w = m.constant(m.np.integers(0, 20, [out, v.shape[1]] + kernel).astype(np.uint8))
    zero = m.constant(np.array(3, np.uint8))
    if m.chance(0.5):
        m.emit("ConvInteger", [v, w] + [zero, m.constant(np.array(2, np.uint8))] * m.chance(0.5), kernel_shape=kernel,
               **attributes)
    else:
        one = [m.constant(np.array(x, np.float32)) for x in (0.05, 0.03, 0.2)]
        m.emit("QLinearConv", [v, one[0], zero, w, one[1],
                               m.constant(np.array(2, np.uint8)), one[2], zero], kernel_shape=kernel, **attributes)


def attention(m):
    """softmax(q k^T / sqrt(d) + mask) v, as exporters write it."""
    v = m.pick(lambda v: v.rank == 3 and v.dtype == np.float32 and v.count and v.shape[2] > 1, fresh=lambda:
               (np.float32, [m.rng.randint(1, 2), m.rng.randint(2, 9),
                             m.rng.choice((4, 8, 12))]))
    b, t, d = v.shape
    heads = m.rng.choice([h for h in (1, 2, 4) if d % h == 0])
    parts = []
    for k in range(3):
        w = m.emit("MatMul", [v, m.constant(m.data([d, d], np.float32, -0.5, 0.5))])
        w = m.emit("Reshape", [w, m.ints(b, t, heads, d // heads)], exact=True)
        parts.append(m.emit("Transpose", [w], exact=True, perm=[0, 2, 3, 1] if k == 1 else [0, 2, 1, 3]))
    s = m.emit("MatMul", parts[:2])
    s = m.emit(m.rng.choice(("Div", "Mul")), [s, m.constant(np.array(0.5, np.float32))])
    if m.chance(0.5):
        mask = m.np.integers(0, 2, [b, 1, 1, t])
        s = m.emit("Add", [s, m.constant((mask * -10000.0).astype(np.float32))])
    y = m.emit("MatMul", [m.emit("Softmax", [s], axis=-1), parts[2]])
    y = m.emit("Transpose", [y], exact=True, perm=[0, 2, 1, 3])
    y = m.emit("Reshape", [y, m.ints(b, t, d)], exact=True)
    if m.chance(0.6):
        m.emit("Add", [v, y])


def twin(m):
    """A node again: shared subexpressions."""
    n = m.rng.choice(m.nodes)
    if any(a.name in ("then_branch", "body") for a in n.attribute) or "" in n.output:
        raise Skip
    named = {v.name: v for v in m.values}
    plain, made = [named.get(i) for i in n.input], []
    fresh = helper.make_node(n.op_type, list(n.input), [m.name() for _ in n.output])
    fresh.attribute.extend(n.attribute)
    for old, new in zip(n.output, fresh.output):
        v = named[old]
        made.append(Value(new, v.array, v.noisy, "node"))
    if None in [p for p, i in zip(plain, n.input) if i]:
        raise Skip
    m.nodes.append(fresh)
    m.values += made


# ---------------------------------------------------------------- control flow

def inner(m, names, count, tag):
    """A few elementwise nodes over the names given, all of one shape; (nodes, the last name)."""
    nodes, known = [], list(names)
    for i in range(count):
        out = f"{tag}{i}"
        op = m.rng.choice(("Add", "Mul", "Sub", "Tanh", "Sigmoid", "Max", "Abs"))
        ins = [known[-1]] if op in ("Tanh", "Sigmoid", "Abs") else [known[-1], m.rng.choice(known)]
        nodes.append(helper.make_node(op, ins, [out]))
        known.append(out)
    return nodes, known[-1]


def shaped(name, v):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), None)


def branch(m):
    v = m.pick(lambda v: v.dtype == np.float32)
    others = [w.name for w in m.values if w.dtype == v.dtype and w.shape == v.shape and w.name[0] != "c"]
    if m.chance(0.6):
        c = m.emit("Greater", [m.emit("ReduceSum", [v], keepdims=0), m.constant(np.array(0, np.float32))])
    else:
        c = input_of(m, np.array(m.chance(0.5)))
    bodies, seen = {}, set()
    for key in ("then_branch", "else_branch"):
        tag = m.name() + "_"
        nodes, last = inner(m, [v.name] + [m.rng.choice(others) for _ in range(2)], m.rng.randint(1, 4), tag)
        bodies[key] = helper.make_graph(nodes, key, [], [shaped(last, v)])
        seen |= {i for n in nodes for i in n.input if not i.startswith(tag)}
    m.emit("If", [c], captured=sorted(seen), **bodies)


def loop(m):
    v = m.pick(lambda v: v.dtype == np.float32 and v.count < 500)
    others = [w.name for w in m.values if w.dtype == v.dtype and w.shape == v.shape and w.name[0] != "c"]
    tag = m.name() + "_"
    outer = [m.rng.choice(others) for _ in range(2)]
    nodes, last = inner(m, [*outer, tag + "x"], m.rng.randint(1, 3), tag)
    if last == tag + "x" or not nodes:
        raise Skip
    trips = m.rng.randint(0 if m.empty else 1, 4)
    nodes = [helper.make_node("Identity", [tag + "c"], [tag + "go"])] + nodes
    ins = [
        helper.make_tensor_value_info(tag + "i", T.INT64, []),
        helper.make_tensor_value_info(tag + "c", T.BOOL, []),
        shaped(tag + "x", v)
    ]
    outs = [helper.make_tensor_value_info(tag + "go", T.BOOL, []), shaped(last, v)]
    scans = trips > 0 and m.chance(0.5)
    if scans:
        nodes.append(helper.make_node("Neg", [last], [tag + "scan"]))
        outs.append(shaped(tag + "scan", v))
    m.emit("Loop", [m.constant(np.array(trips, np.int64)), None, v], 2 if scans else 1, captured=sorted(set(outer)),
           body=helper.make_graph(nodes, "body", ins, outs))


def scan(m):
    v = m.pick(lambda v: v.dtype == np.float32 and v.rank >= 1 and v.count and v.shape[0] < 12 and v.count < 1000)
    tag = m.name() + "_"
    start = m.constant(m.data(v.shape[1:]))
    nodes = [
        helper.make_node(m.rng.choice(("Add", "Mul", "Max")), [tag + "s", tag + "x"], [tag + "t"]),
        helper.make_node("Tanh", [tag + "t"], [tag + "u"])
    ]
    body = helper.make_graph(nodes, "body",
                             [info(tag + "s", start.array), info(tag + "x", start.array)],
                             [info(tag + "t", start.array), info(tag + "u", start.array)])
    m.emit("Scan", [start, v], 2, body=body, num_scan_inputs=1, scan_input_directions=[m.rng.randrange(2)],
           scan_output_directions=[m.rng.randrange(2)])


STEPS = ((unary, 8), (whole_unary, 2), (tests, 1), (binary, 8), (whole_binary, 4), (logic, 2), (compare, 2),
         (where, 3), (clip, 2), (cast, 4), (reduce, 5), (arg, 2), (softmax, 3), (normalize, 4), (transpose, 4),
         (reshape, 4), (expand, 2), (slice_, 4), (pad, 3), (concat, 3), (split, 3), (gather, 4), (scatter, 3),
         (one_hot, 1), (top, 2), (cumulate, 2), (triangle, 1), (rearrange, 1), (reverse_sequence, 1), (sizes, 2),
         (matmul, 5), (gemm, 3), (einsum, 2), (conv, 5), (conv_transpose, 2), (pool, 4), (resize, 2), (grid_sample, 1),
         (recurrent, 2), (quantize, 3), (whole_matmul,
                                         1), (whole_conv, 1), (attention, 1), (twin, 2), (branch, 1), (loop, 1), (scan,
                                                                                                                  1))
