#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every operation of the intermediate representation by itself: graphs of one operation, in the compiler's text, in
double precision; gradients and tangents against central differences.

usage: operations.py CHECK [--count N] [--only OPERATION] [--keep DIR]
CHECK is build/tests/check_gradients, which also lists the rows of ops.def and exprs.def: each is a case here or in NONE
with the reason why there is nothing to differentiate, and a scalar operation that has a derivative must be one that
some case's expression has. --count: graphs an operation (default 3), of random shapes and values. Needs the standard
library only. Prints TAP and how many of how many are reached."""
import argparse, math, pathlib, re, struct, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import gradients        # noqa: E402
import onnx_wire as wire        # noqa: E402
from gradients import broadcast, real       # noqa: E402

COMPILER = HERE.parents[1] / "compiler"
DOUBLE, INT = "f64", "i64"

# Nothing to differentiate: floats do not go in, do not come out, or the operation stands for something else.
NONE = {reason: ops.split() for reason, ops in {
    "compares: gives booleans": "Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf",
    "of booleans": "And Or Xor Not", "of integers": "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot ShiftLeft ShiftRight",
    "of no tensor": "Iota RandomUniform", "gives sizes": "Shape",
    "gives places": "ArgMax ArgMin WindowArgMax Positions Unique Suppress",
    "of strings or of bytes": "StringFind StringMatch StringConcat StringCase StringParts StringSplit StringFormat "
                              "StringParse NGrams ImageSize ImageDecode",
    "asks for derivatives itself (derivatives.py has those of second order)": "Gradient Tangent",
}.items()}


class Draw(gradients.Draw):
    """The same in the compiler's text: operands are its words for values, and there is one operation."""

    def __init__(self, seed):
        super().__init__(seed)
        self.count, self.lines, self.results = 0, [], []

    def value(self):
        self.count += 1
        return f"%{self.count - 1}"

    def x(self, shape, lo=-1.0, hi=1.0, name=None):
        name = super().x(shape, lo, hi)
        word = self.value()
        self.inputs[-1] = (word, shape, self.inputs[-1][3])
        return word

    def k(self, values, dtype=INT, shape=None, name=None):
        flat, found = wire.flatten(values)
        shape = found if shape is None else shape
        word = self.value()
        numbers = ", ".join(str(int(v)) if dtype != DOUBLE else repr(float(v)) for v in flat)
        self.lines.append(f"  {word} = const {dtype}{bracket(shape)} {{{numbers}}}")
        return word

    def op(self, op, operands, results=1, bodies=(), **attributes):
        words = [self.value() for _ in range(results)]
        more = ", ".join(f"{k}={spelled(v)}" for k, v in attributes.items())
        self.lines.append(f"  {', '.join(words)} = {op}({', '.join(operands)})" + (f" {{{more}}}" if more else ""))
        self.lines += bodies
        self.results += words


def bracket(values):
    return "[" + ",".join(map(str, values)) + "]"


class Word(str):
    """Of a type, which stands without quotes."""


def spelled(v):
    if isinstance(v, (list, tuple)):
        return bracket(v)
    return f'"{v}"' if isinstance(v, str) and not isinstance(v, Word) else repr(v) if isinstance(v, float) else str(v)


# ---------------------------------------------------------------- scalar maps
def map1(lo=-1.0, hi=1.0, **attributes):
    return lambda d, op: d.op(op, [d.x(d.shape(), lo, hi)], **{k: v(d) for k, v in attributes.items()})


def map2(lo=-1.0, hi=1.0, lo2=None, hi2=None):
    def build(d, op):
        shape = d.shape()
        d.op(op, [d.x(shape, lo, hi), d.x(broadcast(d, shape), lo if lo2 is None else lo2, hi if hi2 is None else hi2)])
    return build


def where(d, op):
    n = d.size()
    d.op(op, [d.k([d.one(0, 1) for _ in range(n)], "bool"), d.x([2, n]), d.x([n])])


FORMULAS = ["x * y - z / 3", "x < y ? sin(x) * z : y * y", "max(x * y, z) % 0.75",
            "pow(abs(x) + 0.5, y) + floormod(z, 2)"]


def formula(d, op):
    shape = d.shape()
    d.op(op, [d.x(shape), d.x(broadcast(d, shape), 0.4, 2), d.x(broadcast(d, shape))], expr=d.one(*FORMULAS))


# ---------------------------------------------------------------- views
def reshape(d, op):
    a, b, c = d.shape(3)
    d.op(op, [d.x([a, b, c])], shape=d.one([a * b, c], [a * b * c], [c, 1, b, a]))


def transpose(d, op):
    shape = d.shape()
    d.op(op, [d.x(shape)], perm=d.r.sample(range(len(shape)), len(shape)))


def expand(d, op):
    shape = d.shape()
    d.op(op, [d.x(broadcast(d, shape))], shape=shape)


def slices(d, op):
    shape = d.shape(2, 2, 5)
    starts, steps, sizes = [], [], []
    for n in shape:
        step, start = d.one(1, 2, -1, -2), d.size(0, n - 1)
        starts.append(start), steps.append(step)
        sizes.append(d.size(1, (n - 1 - start) // step + 1 if step > 0 else start // -step + 1))
    d.op(op, [d.x(shape)], starts=starts, steps=steps, sizes=sizes)


def pad(d, op):
    mode = d.one("constant", "constant", "reflect", "edge", "wrap")
    shape = d.shape(2, 3, 5)
    if mode != "constant":
        return d.op(op, [d.x(shape)], lo=[1, 0], hi=[2, d.size(0, 2)], interior=[0, 0], mode=mode)
    fill = [d.x([])] if d.one(0, 1) else []
    return d.op(op, [d.x(shape), *fill], lo=[d.size(-1, 2), 0], hi=[d.size(-1, 2), 1], interior=[d.size(0, 2), 0],
                mode=mode)


def concat(d, op):
    a, b = d.shape(2)
    d.op(op, [d.x([a, d.size(), b]) for _ in range(d.size(1, 3))], axis=1)


# ---------------------------------------------------------------- reductions, windows, products
def reduction(lo=-1.0, hi=1.0):
    def build(d, op):
        shape = d.shape(d.size(1, 4))
        axes = sorted(d.r.sample(range(len(shape)), d.size(1, len(shape))))
        d.op(op, [d.x(shape, lo, hi)], axes=axes, keepdims=d.one(0, 1))
    return build


def along(d, op, **more):
    shape = d.shape()
    d.op(op, [d.x(shape)], axis=d.size(0, len(shape) - 1), **more)


def cumulative(d, op):
    along(d, op, exclusive=d.one(0, 1) if op in ("CumSum", "CumProd") else 0, reverse=d.one(0, 1))


def window_of(d, rank):
    kernel = d.shape(rank, 1, 3)
    return dict(kernel=kernel, strides=d.shape(rank, 1, 2), dilations=[d.one(1, 2) if n < 3 else 1 for n in kernel],
                pads=[d.r.randrange(n) for n in kernel * 2])


def window(d, op):
    rank = d.size(1, 2)
    more = dict(count_include_pad=d.one(0, 1)) if op == "AveragePool" else {}
    d.op(op, [d.x(d.shape(2, 1, 2) + d.shape(rank, 5, 7))], **window_of(d, rank), ceil_mode=d.one(0, 1), **more)


def window_spread(d, op):
    places = [d.r.randrange(-1, 6) for _ in range(4)]
    d.op(op, [d.k(places, shape=[1, 1, 4]), d.x([1, 1, 4])], kernel=[3], strides=[1], dilations=[1], before=[0],
         sizes=[6])


def window_max_grad(d, op):
    """By what it spreads: where the maxima are does not move."""
    n = d.size(4, 6)
    x = d.k([d.r.random() for _ in range(n)], DOUBLE, [1, 1, n])
    d.op(op, [x, d.x([1, 1, n - 1])], kernel=[2], strides=[1], dilations=[1], pads=[0, 0])


def matmul(d, op):
    m, k, n = d.shape(3)
    batch = d.shape(d.size(0, 2))
    a, b = d.one(([m, k], [k, n]), ([k], [k, n]), ([m, k], [k]))
    at = len(batch) // 2
    d.op(op, [d.x((batch if len(a) > 1 else []) + a), d.x((broadcast(d, batch[at:]) if len(b) > 1 and batch[at:]
                                                           else []) + b)])


def conv(d, op):
    rank, group, a, b = d.size(1, 2), d.size(1, 2), d.size(1, 2), d.size(1, 2)
    w = window_of(d, rank)
    kernel = w.pop("kernel")
    weight = [group * a, b] if op == "ConvTranspose" else [group * b, a]
    if op == "ConvTranspose":
        w["pads"] = [d.r.randrange(n) for n in kernel * 2]
        w["output_padding"] = [0] * rank
    d.op(op, [d.x([d.size(1, 2), group * a] + d.shape(rank, 5, 7)), d.x(weight + kernel)], group=group, **w)


# ---------------------------------------------------------------- places, order
def gather(d, op):
    shape = d.shape(2, 2, 4)
    axis = d.size(0, 1)
    if op == "GatherND":
        if d.one(0, 1):
            return d.op(op, [d.x([2, 3, 2]), d.indices([2, 2, 1], 3)], batch_dims=1)
        return d.op(op, [d.x(shape), d.indices([3, d.size(1, 2)], min(shape))], batch_dims=0)
    want = [shape[0], 3] if axis == 1 else [3, shape[1]]
    return d.op(op, [d.x(shape), d.indices(want if op == "GatherElements" else [2, 3], shape[axis])], axis=axis)


def scatter(d, op):
    """Without a reduction each place is written once."""
    how, n, c = d.one("none", "add", "mul", "min", "max"), d.size(2, 4), d.size(1, 3)
    m = d.size(1, n) if how == "none" else d.size(1, 5)
    at = d.r.sample(range(n), m) if how == "none" else [d.r.randrange(n) for _ in range(m)]
    if op == "ScatterND":
        return d.op(op, [d.x([n, c]), d.k([[i] for i in at]), d.x([m, c])], reduction=how)
    return d.op(op, [d.x([n, c]), d.k([[i] * c for i in at]), d.x([m, c])], axis=0, reduction=how)


def slice_scatter(d, op):
    n, m = d.size(3, 6), d.size(1, 3)
    d.op(op, [d.x([2, n, 3]), d.x([2, m, 3])], axis=1, starts=[d.size(0, n - m)])


def sort(d, op):
    shape = d.shape(2, 2, 5)
    axis = d.size(0, 1)
    more = dict(sizes=[d.size(1, shape[axis])]) if d.one(0, 1) else {}
    d.op(op, [d.x(shape)], 2, axis=axis, largest=d.one(0, 1), **more)


# ---------------------------------------------------------------- bodies
def branch(d, op):
    n = d.size()
    x, y, c = d.x([n]), d.x([n]), d.k(d.one(0, 1), "bool")
    u, v = d.value(), d.value()
    d.op(op, [c], bodies=["    body then() {", f"      {u} = Mul({x}, {y})", f"      return {u}", "    }",
                          "    body else() {", f"      {v} = Sin({x})", f"      return {v}", "    }"])


def loop(d, op):
    n = d.size()
    x, w, trips, yes = d.x([n]), d.x([n]), d.k(d.size(1, 4)), d.k(1, "bool")
    i, go, h, u, t = (d.value() for _ in range(5))
    d.op(op, [trips, "_", x], 2, [
        f"    body step({i} iteration: i64[], {go} condition: bool[], {h} h: f64[{n}]) {{",
        f"      {u} = Mul({h}, {w})", f"      {t} = Tanh({u})", f"      return {yes}, {t}, {u}", "    }"])


def custom(d, op):
    """With a gradient of its own; one that has a formula alone is taken apart before."""
    n = d.size()
    x, y = d.x([n]), d.x([n])
    ends = lambda *words: ", ".join(f"{w}: f64[{n}]" for w in words)        # noqa: E731
    a, b, c, e, f, h, u, v, w = (d.value() for _ in range(9))
    d.op(op, [x, y], dtypes=[TYPES["f64"]], ranks=[1], shape=[n], bodies=[
        f"    body formula({ends(a, b)}) {{", f"      {c} = Mul({a}, {b})", f"      return {c}", "    }",
        f"    body gradient({ends(e, f, h, u)}) {{", f"      {v} = Mul({f}, {u})", f"      {w} = Mul({e}, {u})",
        f'      return {v} "0", {w} "1"', "    }"])


# ---------------------------------------------------------------- composites
def softmax_grad(d, op):
    """What it is of stands for a softmax: the formula is y * (dy - sum(y * dy)), whatever y is."""
    shape = d.shape(2, 2, 4)
    d.op(op, [d.x(shape, 0.1, 1), d.x(shape)])


def attention_grad(d, op):
    b, m, n, k, v = d.shape(5, 1, 3)
    d.op(op, [d.x([b, m, n]), d.x([b, m, n]), d.x([b, m, k]), d.x([b, k, n]), d.x([b, m, v])], 3, scale0=0.5)


def batch_norm(d, op):
    c = d.size()
    x = d.x([2, c, 3])
    if op == "BatchNorm":
        return d.op(op, [x, d.x([c]), d.x([c]), d.x([c]), d.x([c], 0.5, 1.5)], epsilon=0.01)
    return d.op(op, [x, d.x([c]), d.x([c])], 3, epsilon=0.01)


def channel_norm(d, op):
    c = 2 * d.size(1, 2)
    more = dict(num_groups=2) if op == "GroupNorm" else {}
    d.op(op, [d.x([2, c] + d.shape(d.size(1, 2), 2, 3)), d.x([c]), d.x([c])], epsilon=0.01, **more)


def last_norm(d, op):
    shape = d.shape(3, 2, 3)
    axis = d.size(1, 2)
    bias = [d.x(shape[axis:])] if op == "LayerNorm" and d.one(0, 1) else []
    d.op(op, [d.x(shape), d.x(shape[axis:]), *bias], axis=axis, epsilon=0.01)


def dropout(d, op):
    d.op(op, [d.x([3, 4]), d.k(7)], ratio=0.25, seed=5)


def recurrent(gates):
    def build(d, op):
        t, b, i, h, two = d.size(1, 3), d.size(1, 2), d.size(1, 3), d.size(1, 2), d.one(1, 2)
        operands = [d.x([t, b, i]), d.x([two, gates * h, i]), d.x([two, gates * h, h]), d.x([two, 2 * gates * h]), "_",
                    d.x([two, b, h])] + ([d.x([two, b, h]), d.x([two, 3 * h])] if op == "LSTM" else [])
        functions = dict(RNN="Tanh", GRU="Sigmoid Tanh", LSTM="Sigmoid Tanh Tanh")[op]
        more = dict(linear_before_reset=d.one(0, 1)) if op == "GRU" else {}
        d.op(op, operands, 3 if op == "LSTM" else 2, activations=" ".join([functions] * two),
             direction="bidirectional" if two == 2 else d.one("forward", "reverse"), **more)
    return build


def matmul_bits(d, op):
    bits, n, k, block = d.one(2, 4, 8), d.size(), 20, 16
    packed = d.k([d.r.randrange(256) for _ in range(n * 2 * block * bits // 8)], "u8", [n, 2, block * bits // 8])
    d.op(op, [d.x([2, k]), packed, d.x([n, 2], 0.05, 0.1)], bits=bits, block=block, k=k)


def loss_rows():
    """Name, operands, targets of each row of losses.def."""
    text = (COMPILER / "losses.def").read_text()
    return {m[1]: (m[2].split(), m[3]) for m in re.finditer(r'^LOSS\( (\w+), +\w+, +"([^"]*)", +(\w+),', text, re.M)}


def loss(d, op):
    """Of probabilities, logarithms and variances where a row wants such."""
    operands, targets = LOSSES[op]
    n, c = d.size(1, 3), d.size(2, 4)
    shape = [n, c, 3] if op == "GramMatrix" else [n, c]
    xs = [d.x(shape, *(0.3, 1.5) if name == "variance" else (-1.0, 1.0)) for name in operands]
    positive = op in ("SoftCrossEntropy", "BinaryCrossEntropy", "KlDivergence", "PoissonNll")
    signs = op in ("SoftMargin", "HingeEmbedding", "MarginRanking", "CosineEmbedding")
    last = {"VALUES": lambda: [d.k([d.one(-1, 1) for _ in range(n * c)], DOUBLE, shape) if signs else
                               d.x(shape, *(0.1, 0.9) if positive else (-1.0, 1.0))],
            "DISTRIBUTIONS": lambda: [d.x(shape, 0.1, 0.9)], "NONE": list,
            "CLASSES": lambda: [d.k([d.r.randrange(c) for _ in range(n)], shape=[n])],
            "ROWS": lambda: [d.k([d.one(-1, 1) for _ in range(n)], DOUBLE, [n])]}[targets]()
    d.op(op, xs + last, reduction=d.one("sum", "mean"))


def optimizer_rows():
    """How many tensors of state each row of optimizers.def has."""
    text = (COMPILER / "optimizers.def").read_text()
    return {m[1]: len(m[2].split()) for m in re.finditer(r'^OPTIMIZER\( (\w+), \w+, "([^"]*)"', text, re.M)}


def optimizer(d, op):
    """The parameter and the state after a step, by those before it and the gradient. What is below a root is away
    from 0."""
    shape = [3, 2] if op == "Muon" else d.shape()
    state = [d.x(shape, 0.5, 1.5) for _ in range(OPTIMIZERS[op])]
    if op == "RmsProp":         # the mean of squares is above the square of the mean
        state[:2] = [d.x(shape, 2, 3), d.x(shape, 0.1, 0.5)]
    d.op(op, [d.x(shape, 0.5, 1.5), d.x(shape, 0.5, 1.5), *state], 1 + len(state))


LOSSES, OPTIMIZERS = loss_rows(), optimizer_rows()
TYPES = {}                      # the numbers of element types, by name: as the compiler says

ROWS = lambda *rows: {op: build for ops, build in rows for op in ops.split()}      # noqa: E731
CASES = ROWS(
    ("Map", formula), ("Cast", lambda d, op: d.op(op, [d.x(d.shape())], to=Word("f64"))),
    ("Add Sub Mul Min Max PRelu", map2()), ("Div", map2(0.4, 2)), ("Mod FMod", map2(-3, 3, 1.1, 1.9)),
    ("Pow", map2(0.3, 2, -2, 2)), ("Sqrt Reciprocal Rsqrt Log", map1(0.3, 2)), ("Log1p", map1(-0.7, 2)),
    ("Neg Abs Sign Square Exp Expm1 Sin Cos Tan Atan Sinh Cosh Tanh Asinh Erf Floor Ceil Round Trunc Relu Sigmoid "
     "HardSwish Softplus Softsign Mish Swish Gelu GeluTanh Selu", map1(-1.4, 1.4)),
    ("Asin Acos Atanh", map1(-0.9, 0.9)), ("Acosh", map1(1.2, 3)),
    ("LeakyRelu ThresholdedRelu Elu Celu", map1(-2, 2, alpha=real(0.2, 0.8))),
    ("HardSigmoid", map1(-2, 2, alpha=real(0.2, 0.8), beta=real(0.2, 0.8))),
    ("Shrink", map1(-2, 2, lambd=real(0.3, 0.8), bias=real(0.1, 0.5))), ("Where", where),
    ("Identity", map1()), ("Reshape", reshape), ("Transpose", transpose), ("Expand", expand), ("Slice", slices),
    ("Pad", pad), ("Concat", concat),
    ("ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp",
     reduction()), ("ReduceLogSum", reduction(0.3, 1)), ("CumSum CumProd CumMax CumMin", cumulative),
    ("Softmax LogSoftmax Hardmax", along), ("WindowSum WindowMax AveragePool", window), ("WindowSpread", window_spread),
    ("WindowMaxGrad", window_max_grad), ("MatMul", matmul), ("Conv ConvTranspose", conv),
    ("Gather GatherElements GatherND", gather), ("ScatterElements ScatterND", scatter), ("SliceScatter", slice_scatter),
    ("Sort", sort), ("If", branch), ("Loop", loop), ("Custom", custom), ("SoftmaxGrad", softmax_grad),
    ("AttentionGrad", attention_grad), ("BatchNorm BatchNormTraining", batch_norm),
    ("InstanceNorm GroupNorm", channel_norm), ("LayerNorm RMSNorm", last_norm), ("Dropout", dropout),
    ("RNN", recurrent(1)), ("GRU", recurrent(3)), ("LSTM", recurrent(4)), ("MatMulBits", matmul_bits),
    (" ".join(LOSSES), loss), (" ".join(OPTIMIZERS), optimizer),
)


def write(op, seed, path):
    d = Draw(f"{op} {seed}")
    CASES[op](d, op)
    ends = ", ".join(f"{word} x{i}: f64{bracket(shape)}" for i, (word, shape, _) in enumerate(d.inputs))
    path.write_text("\n".join([f"graph g({ends}) {{", *d.lines, "  return " + ", ".join(d.results), "}", ""]))
    values = [v for _, _, flat in d.inputs for v in flat]
    path.with_suffix(".data").write_bytes(struct.pack(f"<{len(values)}d", *values))


def rows(check):
    """What the compiler's tables have: operations, and the scalar operations with a derivative. Sets TYPES."""
    said = subprocess.run([check, "--operations"], capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.split() for line in said]
    TYPES.update((w[1], w[2]) for w in words if w[0] == "type")
    operations = [w for w in words if w[0] not in ("scalar", "type")]
    return operations, [w[1] for w in words if w[0] == "scalar" and len(w) == 2]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("check"), p.add_argument("--count", type=int, default=3), p.add_argument("--only")
    p.add_argument("--keep", type=pathlib.Path)
    args = p.parse_args()
    table, scalars = rows(args.check)
    reasons = {op: why for why, ops in NONE.items() for op in ops}
    names = [w[1] for w in table]
    wrong = [f"{op} has no case" for op in names if op not in CASES and op not in reasons]
    wrong += [f"{op} is no operation" for op in [*CASES, *reasons] if op not in names]
    wrong += [f"{w[1]} is declared to have no gradient" for w in table if "zero" in w and w[1] in CASES]
    bad = number = derivatives = 0
    worst, used, reached = 0.0, set(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = args.keep or pathlib.Path(folder)
        for op in [op for op in names if op in CASES and (not args.only or op == args.only)]:
            number += 1
            paths = [folder / f"{op}_{k}.txt" for k in range(args.count)]
            for k, path in enumerate(paths):
                write(op, k, path)
            done = subprocess.run([args.check, *paths], capture_output=True, text=True)
            good = [dict(word.split("=") for word in line.split()[2:])
                    for line in done.stdout.splitlines() if line.startswith("ok ")]
            ok = done.returncode == 0 and len(good) == len(paths) and all(n["alone"] == op for n in good)
            for n in good:
                derivatives += int(n["derivatives"])
                worst = max(worst, float(n["worst"]))
                used.update(n["scalars"].split(","))
            reached += [op] * ok
            bad += not ok
            said = (done.stdout + done.stderr).replace(str(folder), "").strip()[-600:].replace("\n", " | ")
            print(f"{'ok' if ok else 'not ok'} {number} - {op}{'' if ok else ': ' + said}", flush=True)
    if not args.only:
        wrong += [f"the derivative of {s} is not reached" for s in scalars if s not in used]
        number += 1
        print(f"{'not ok' if wrong else 'ok'} {number} - every row of the tables {'; '.join(wrong)}".rstrip())
    print(f"1..{number}")
    for why, ops in NONE.items():
        print(f"# not differentiated, {why}: {' '.join(ops)}")
    of = len(names) - len(reasons)
    print(f"# {len(reached)} of {of} operations by themselves ({len(names)} rows, {len(reasons)} with nothing to "
          f"differentiate), {len(used & set(scalars))} of {len(scalars)} scalar derivatives; {derivatives} numbers "
          f"compared, worst {worst:.1e} off; {bad} fail")
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
