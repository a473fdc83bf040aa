# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models with sizes known at run time only, and the outputs they must give at some sizes, computed here in plain
Python.

A case is a function of its sizes that returns (inputs, outputs) as Tensors, under `@case(bounds, nodes, inputs,
outputs, ...)`, which says what the model is: a size that stands in the bounds is a dimension's name in inputs and
outputs (`"t"`, or None where an output's is no name). It runs at its least, its largest and middle sizes, and at
mixed ones."""
import math

from onnx_wire import (BOOL, FLOAT, FLOAT16, INT32, INT64, UINT8, graph, model, node, tensor, value_info)
from tensors import (Tensor, along, build, concat, conv, each, matmul, numbers, over, pool, reshape, softmax, take,
                     transpose, whole)

ALL = []


class Case:
    """sets(): a list of (sizes, inputs, outputs). `found`: bounds of dimensions that the run finds out;
    compute.beyond, where there is one, gives
    sizes and inputs for which they are too small."""

    def __init__(self, compute, bounds, nodes, inputs, outputs, constants, found, options):
        self.name, self.bounds, self.found, self.compute = compute.__name__, bounds, found or {}, compute
        self.inputs, self.outputs = inputs, outputs
        initializers = [tensor(n, d, list(t.flat), list(t.shape)) for n, d, t in constants]
        self.bytes = model(
            graph(nodes, [value_info(*i) for i in inputs], [value_info(*o) for o in outputs], initializers), **options)

    def sizes(self):
        """Least, largest, middle; then with each size in turn at another end than its neighbour."""
        names = list(self.bounds)
        low, high = ({n: self.bounds[n][k] for n in names} for k in (0, 1))
        middle = {n: (2 * lo + hi) // 3 for n, (lo, hi) in self.bounds.items()}
        mixed = [{n: (low, high, middle)[(i + k) % 3][n] for i, n in enumerate(names)} for k in range(3)]
        found = []
        for s in [low, high, middle] + mixed:
            if s not in found:
                found.append(s)
        return found

    def sets(self):
        return [(s, *self.compute(**s)) for s in self.sizes()]


def case(bounds, nodes, inputs, outputs, constants=(), found=None, **options):
    def add(compute):
        ALL.append(Case(compute, bounds, nodes, inputs, outputs, constants, found, options))
        return compute
    return add


def F(name, *dims):
    return name, FLOAT, list(dims)


def I64(name, *dims):
    return name, INT64, list(dims)


def constant(name, *values):
    return name, INT64, Tensor([len(values)], values)


def relu(v):
    return max(v, 0.0)


# ---------------------------------------------------------------- elementwise, broadcasting
@case({"b": (0, 4), "t": (1, 70)},
      [node("Relu", ["x"], ["r"]),
       node("Mul", ["r", "x"], ["m"]),
       node("Sub", ["m", "x"], ["y"])], [F("x", "b", "t")], [F("y", "b", "t")])
def elementwise(b, t):
    x = numbers(1, b, t)
    return [x], [each(lambda v: relu(v) * v - v, x)]


@case({"a": (1, 5), "b": (0, 7), "c": (1, 9)}, [node("Add", ["x", "y"], ["s"]), node("Mul", ["s", "z"], ["o"])],
      [F("x", "a", 1, "c"), F("y", "b", 1), F("z")], [F("o", "a", "b", "c")])
def broadcasting(a, b, c):
    x, y, z = numbers(2, a, 1, c), numbers(3, b, 1), numbers(4)
    return [x, y, z], [each(lambda u, v, w: (u + v) * w, x, y, z)]


@case({"b": (1, 6), "t": (0, 19)}, [node("Sub", ["x", "row"], ["d"]), node("Div", ["d", "column"], ["y"])],
      [F("x", "b", "t"), F("row", "t"), F("column", "b", 1)], [F("y", "b", "t")])
def shared_symbols(b, t):
    x, row, column = numbers(5, b, t), numbers(6, t), numbers(7, b, 1, low=1, high=2)
    return [x, row, column], [each(lambda u, v, w: (u - v) / w, x, row, column)]


@case({"n": (1, 33)}, [
    node("Mod", ["x", "y"], ["m"]),
    node("Less", ["m", "y"], ["l"]),
    node("Where", ["l", "x", "m"], ["w"]),
    node("Cast", ["w"], ["f"], to=FLOAT)
], [I64("x", "n"), I64("y", 1)], [I64("m", "n"), F("f", "n")])
def integers(n):
    x, y = whole(8, n, low=-50, high=50), Tensor([1], [7])
    m = each(lambda v: v % 7, x)
    return [x, y], [m, each(float, x)]


@case({"b": (1, 3), "t": (1, 40)}, [
    node("Cast", ["x"], ["h"], to=FLOAT16),
    node("Cast", ["h"], ["f"], to=FLOAT),
    node("QuantizeLinear", ["f", "s", "z"], ["q"]),
    node("DequantizeLinear", ["q", "s", "z"], ["y"])
], [F("x", "b", "t")], [F("y", "b", "t")], [("s", FLOAT, Tensor([], [0.25])), ("z", UINT8, Tensor([], [128]))])
def narrow_types(b, t):
    x = each(lambda v: round(v * 8) / 8 + 1 / 32, numbers(9, b, t, low=-5, high=5))        # no halves of a step
    return [x], [each(lambda v: round(v / 0.25) * 0.25, x)]


@case({"b": (0, 3), "t": (2, 11)},
      [node("Identity", ["x"], ["y"]),
       node("Shape", ["x"], ["s"]),
       node("Size", ["x"], ["n"])], [F("x", "b", "t", 2)],
      [F("y", "b", "t", 2), I64("s", 3), I64("n")])
def sizes_as_values(b, t):
    x = numbers(10, b, t, 2)
    return [x], [x, Tensor([3], [b, t, 2]), Tensor([], [b * t * 2])]


# ---------------------------------------------------------------- reductions
@case({"b": (1, 4), "t": (0, 37)}, [
    node("ReduceSum", ["x", "one"], ["s"], keepdims=0),
    node("ReduceSum", ["x"], ["all"], keepdims=0),
    node("ReduceSumSquare", ["x", "first"], ["q"]),
    node("ReduceL1", ["x", "both"], ["l"], keepdims=0)
], [F("x", "b", "t", 3)],
      [F("s", "b", 3), F("all"), F("q", 1, "t", 3), F("l", 3)],
      [constant("one", 1), constant("first", 0), constant("both", 0, 1)])
def sums(b, t):
    x = numbers(11, b, t, 3)
    absolute = over(over(each(abs, x), 0, sum, False), 0, sum, False)
    return [x], [over(x, 1, sum, False), Tensor([], [sum(x.flat)]), over(each(lambda v: v * v, x), 0, sum), absolute]


@case({"b": (1, 5), "t": (1, 41)}, [
    node("ReduceMean", ["x", "one"], ["m"]),
    node("ReduceMax", ["x", "one"], ["h"], keepdims=0),
    node("ReduceMin", ["x", "first"], ["l"]),
    node("ReduceProd", ["x", "last"], ["p"], keepdims=0),
    node("ReduceLogSumExp", ["x", "one"], ["e"])
], [F("x", "b", "t", 3)],
      [F("m", "b", 1, 3), F("h", "b", 3),
       F("l", 1, "t", 3), F("p", "b", "t"),
       F("e", "b", 1, 3)],
      [constant("one", 1), constant("first", 0), constant("last", 2)])
def reductions(b, t):
    x = numbers(12, b, t, 3)
    return [x], [
        over(x, 1, lambda v: sum(v) / len(v)),
        over(x, 1, max, False),
        over(x, 0, min),
        over(x, 2, math.prod, False),
        over(x, 1, lambda v: math.log(sum(map(math.exp, v))))
    ]


@case({"b": (1, 4), "t": (1, 70)}, [
    node("Softmax", ["x"], ["a"], axis=1),
    node("LogSoftmax", ["x"], ["c"], axis=-1),
    node("Softmax", ["x"], ["d"], axis=0)
], [F("x", "b", "t", 5)],
      [F("a", "b", "t", 5), F("c", "b", "t", 5), F("d", "b", "t", 5)])
def softmaxes(b, t):
    x = numbers(13, b, t, 5, low=-9, high=9)
    return [x], [along(x, 1, softmax), along(x, 2, lambda v: [math.log(p) for p in softmax(v)]), along(x, 0, softmax)]


def normalized(v, epsilon=1e-5):
    m = sum(v) / len(v)
    s = math.sqrt(sum((a - m) ** 2 for a in v) / len(v) + epsilon)
    return [(a - m) / s for a in v]


@case(
    {"b": (0, 3), "t": (1, 23)},
    [node("LayerNormalization", ["x", "g", "h"], ["y"], axis=-1),
     node("LpNormalization", ["x"], ["z"], axis=1, p=2)], [F("x", "b", "t", 19)],
    [F("y", "b", "t", 19), F("z", "b", "t", 19)], [("g", FLOAT, numbers(14, 19)), ("h", FLOAT, numbers(15, 19))])
def layer_norm(b, t):
    x = numbers(16, b, t, 19, low=-3, high=5)
    g, h = numbers(14, 19), numbers(15, 19)
    unit = along(x, 1, lambda v: [a / math.sqrt(sum(w * w for w in v)) for a in v])
    return [x], [each(lambda v, s, o: v * s + o, along(x, 2, normalized), g, h), unit]


@case({"n": (1, 3), "h": (1, 9), "w": (2, 7)}, [
    node("InstanceNormalization", ["x", "g", "o"], ["a"]),
    node("GroupNormalization", ["x", "g", "o"], ["c"], num_groups=2),
    node("BatchNormalization", ["x", "g", "o", "m", "v"], ["d"])
], [F("x", "n", 4, "h", "w")], [F(k, "n", 4, "h", "w") for k in "acd"],
      [(k, FLOAT, numbers(20 + i, 4, low=0.5, high=2)) for i, k in enumerate("gomv")], opset=21)
def spatial_norms(n, h, w):
    x = numbers(17, n, 4, h, w, low=-2, high=4)
    g, o, m, v = (reshape(numbers(20 + i, 4, low=0.5, high=2), 4, 1, 1) for i in range(4))
    scale = lambda t: each(lambda e, s, b: e * s + b, reshape(t, n, 4, h, w), g, o)     # noqa: E731
    batch = each(lambda e, s, b, c, d: (e - c) / math.sqrt(d + 1e-5) * s + b, x, g, o, m, v)
    return [x], [
        scale(along(reshape(x, n, 4, h * w), 2, normalized)),
        scale(along(reshape(x, n, 2, 2 * h * w), 2, normalized)), batch
    ]


@case({"b": (1, 3), "t": (1, 29)},
      [node("CumSum", ["x", "axis"], ["a"]),
       node("CumSum", ["x", "axis"], ["c"], exclusive=1, reverse=1)], [F("x", "b", "t", 2)],
      [F("a", "b", "t", 2), F("c", "b", "t", 2)], [("axis", INT64, Tensor([], [1]))])
def cumulative_sums(b, t):
    x = numbers(24, b, t, 2)
    return [x], [
        along(x, 1, lambda v: [sum(v[:i + 1]) for i in range(len(v))]),
        along(x, 1, lambda v: [sum(v[i + 1:]) for i in range(len(v))])
    ]


@case({"b": (1, 4), "t": (1, 31)}, [
    node("ArgMax", ["x"], ["a"], axis=1),
    node("ArgMin", ["x"], ["c"], axis=0, keepdims=0),
    node("ArgMax", ["x"], ["d"], axis=1, select_last_index=1, keepdims=0)
], [F("x", "b", "t")], [I64("a", "b", 1), I64("c", "t"), I64("d", "b")])
def arg_max(b, t):
    x = whole(25, b, t, high=5)
    x = Tensor(x.shape, map(float, x.flat))
    return [x], [over(x, 1, lambda v: v.index(max(v))), over(x, 0, lambda v: v.index(min(v)), False),
                 over(x, 1, lambda v: len(v) - 1 - v[::-1].index(max(v)), False)]


@case({"b": (0, 3), "t": (4, 50)},
      [node("TopK", ["x", "k"], ["v", "i"], axis=1),
       node("TopK", ["x", "all"], ["w", "j"], axis=2, largest=0)], [F("x", "b", "t", 3)],
      [F("v", "b", 4, 3), I64("i", "b", 4, 3),
       F("w", "b", "t", 3), I64("j", "b", "t", 3)], [constant("k", 4), constant("all", 3)])
def top_k(b, t):
    x = numbers(26, b, t, 3)

    def largest(v):
        return sorted(range(len(v)), key=lambda i: -v[i])[:4]

    def smallest(v):
        return sorted(range(len(v)), key=lambda i: v[i])

    return [x], [
        along(x, 1, lambda v: [v[i] for i in largest(v)]),
        along(x, 1, largest),
        along(x, 2, sorted),
        along(x, 2, smallest)
    ]


# ---------------------------------------------------------------- products
@case({"b": (0, 3), "m": (1, 35)},
      [node("MatMul", ["x", "w"], ["p"]),
       node("Add", ["p", "c"], ["a"]),
       node("Relu", ["a"], ["y"])], [F("x", "b", "m", 17)], [F("y", "b", "m", 21)], [("w", FLOAT, numbers(30, 17, 21)),
                                                                                     ("c", FLOAT, numbers(31, 21))])
def matmul_rows(b, m):
    x = numbers(32, b, m, 17)
    return [x], [each(lambda v, c: relu(v + c), matmul(x, numbers(30, 17, 21)), numbers(31, 21))]


@case({"m": (1, 20), "k": (0, 18), "n": (1, 37)}, [node("MatMul", ["x", "y"], ["z"])],
      [F("x", "m", "k"), F("y", "k", "n")], [F("z", "m", "n")])
def matmul_all(m, k, n):
    x, y = numbers(33, m, k), numbers(34, k, n)
    return [x, y], [matmul(x, y)]


@case({"a": (1, 3), "b": (1, 4), "m": (1, 9), "k": (1, 11), "n": (0, 10)},
      [node("Transpose", ["y"], ["t"], perm=[0, 1, 3, 2]), node("MatMul", ["x", "t"], ["z"])],
      [F("x", "a", "b", "m", "k"), F("y", 1, "b", "n", "k")], [F("z", "a", "b", "m", "n")])
def matmul_batches(a, b, m, k, n):
    x, y = numbers(35, a, b, m, k), numbers(36, 1, b, n, k)
    return [x, y], [matmul(x, transpose(y, 0, 1, 3, 2))]


@case({"b": (1, 13), "k": (1, 22)},
      [node("Gemm", ["x", "w", "c"], ["g"], alpha=0.5, beta=2.0, transB=1),
       node("Gemm", ["x", "u"], ["h"], transA=1)], [F("x", "b", 12), F("u", "b", "k")],
      [F("g", "b", 10), F("h", 12, "k")], [("w", FLOAT, numbers(37, 10, 12)), ("c", FLOAT, numbers(38, 10))])
def gemms(b, k):
    x, u, w = numbers(39, b, 12), numbers(40, b, k), numbers(37, 10, 12)
    g = each(lambda v, c: 0.5 * v + 2 * c, matmul(x, transpose(w, 1, 0)), numbers(38, 10))
    return [x, u], [g, matmul(transpose(x, 1, 0), u)]


@case({"k": (1, 40), "n": (1, 17)}, [node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["w", "v"], ["z"])],
      [F("x", "k"), F("w", "k", "n"), F("v", "n")], [F("y", "n"), F("z", "k")])
def matmul_vectors(k, n):
    x, w, v = numbers(41, k), numbers(42, k, n), numbers(43, n)
    return [x, w, v], [reshape(matmul(reshape(x, 1, k), w), n), reshape(matmul(w, reshape(v, n, 1)), k)]


@case({"b": (1, 3), "s": (1, 12), "t": (1, 15)}, [node("Einsum", ["q", "k"], ["y"], equation="bshd,bthd->bhst")],
      [F("q", "b", "s", 2, 4), F("k", "b", "t", 2, 4)], [F("y", "b", 2, "s", "t")])
def einsum(b, s, t):
    q, k = numbers(44, b, s, 2, 4), numbers(45, b, t, 2, 4)
    return [q, k], [matmul(transpose(q, 0, 2, 1, 3), transpose(k, 0, 2, 3, 1))]


@case({"m": (1, 9), "k": (1, 30), "n": (1, 12)}, [node("MatMulInteger", ["x", "y", "zx", "zy"], ["z"])],
      [("x", UINT8, ["m", "k"]),
       ("y", UINT8, ["k", "n"])], [("z", INT32, ["m", "n"])], [("zx", UINT8, Tensor([], [3])),
                                                               ("zy", UINT8, Tensor([], [120]))])
def matmul_integer(m, k, n):
    x, y = whole(46, m, k, high=255), whole(47, k, n, high=255)
    return [x, y], [matmul(each(lambda v: v - 3, x), each(lambda v: v - 120, y))]


@case({"b": (1, 3), "s": (1, 17), "t": (1, 20)}, [node("Attention", ["q", "k", "v"], ["y"])],
      [F("q", "b", 2, "s", 8), F("k", "b", 2, "t", 8), F("v", "b", 2, "t", 8)], [F("y", "b", 2, "s", 8)], opset=23)
def attention(b, s, t):
    q, k, v = numbers(48, b, 2, s, 8), numbers(49, b, 2, t, 8), numbers(50, b, 2, t, 8)
    p = along(each(lambda x: x / math.sqrt(8), matmul(q, transpose(k, 0, 1, 3, 2))), 3, softmax)
    return [q, k, v], [matmul(p, v)]


# ---------------------------------------------------------------- convolutions, pools, resizing
def filters(seed, *shape):
    return ("w", FLOAT, numbers(seed, *shape)), ("c", FLOAT, numbers(seed + 1, shape[0]))


@case({"n": (0, 3)}, [node("Conv", ["x", "w", "c"], ["y"], pads=[1, 1, 1, 1])], [F("x", "n", 5, 7, 6)],
      [F("y", "n", 6, 7, 6)], filters(60, 6, 5, 3, 3))
def conv_batch(n):
    x = numbers(62, n, 5, 7, 6)
    return [x], [conv(x, numbers(60, 6, 5, 3, 3), numbers(61, 6), pad=1)]


@case({"n": (1, 2), "h": (3, 14), "w": (3, 11)},
      [node("Conv", ["x", "w", "c"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2]),
       node("Relu", ["y"], ["z"])], [F("x", "n", 5, "h", "w")], [F("z", "n", 6, None, None)], filters(63, 6, 5, 3, 3))
def conv_space(n, h, w):
    x = numbers(65, n, 5, h, w)
    return [x], [each(relu, conv(x, numbers(63, 6, 5, 3, 3), numbers(64, 6), stride=2, pad=1))]


@case({"n": (1, 2), "h": (1, 20), "w": (1, 9)}, [node("Conv", ["x", "w", "c"], ["y"])], [F("x", "n", 16, "h", "w")],
      [F("y", "n", 24, "h", "w")], filters(66, 24, 16, 1, 1))
def conv_pointwise(n, h, w):
    x = numbers(68, n, 16, h, w)
    return [x], [conv(x, numbers(66, 24, 16, 1, 1), numbers(67, 24))]


@case({"n": (1, 2), "h": (1, 12), "w": (5, 13)},
      [node("Conv", ["x", "w", "c"], ["y"], group=6, pads=[2, 2, 2, 2], dilations=[2, 2])], [F("x", "n", 6, "h", "w")],
      [F("y", "n", 6, "h", "w")], filters(70, 6, 1, 3, 3))
def conv_depthwise(n, h, w):
    x = numbers(72, n, 6, h, w)
    return [x], [conv(x, numbers(70, 6, 1, 3, 3), numbers(71, 6), pad=2, dilation=2, group=6)]


@case({"n": (1, 3), "t": (4, 60)}, [node("Conv", ["x", "w", "c"], ["y"], strides=[3])], [F("x", "n", 4, "t")],
      [F("y", "n", 5, None)], filters(73, 5, 4, 4))
def conv_1d(n, t):
    x = numbers(75, n, 4, t)
    return [x], [conv(x, numbers(73, 5, 4, 4), numbers(74, 5), stride=3)]


@case({"n": (1, 2), "h": (1, 6), "w": (1, 7)},
      [node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])],
      [F("x", "n", 3, "h", "w")], [F("y", "n", 4, None, None)], [("w", FLOAT, numbers(76, 3, 4, 3, 3))])
def conv_transpose(n, h, w):
    x, f = numbers(77, n, 3, h, w), numbers(76, 3, 4, 3, 3)

    def element(b, c, i, j):
        total = 0.0
        for k in range(3):
            for u in range(3):
                for v in range(3):
                    p, q = i + 1 - u, j + 1 - v
                    if p % 2 == q % 2 == 0 and 0 <= p // 2 < h and 0 <= q // 2 < w:
                        total += x[b, k, p // 2, q // 2] * f[k, c, u, v]
        return total
    return [x], [build([n, 4, 2 * h, 2 * w], element)]


@case({"n": (1, 2), "h": (2, 15), "w": (3, 12)}, [
    node("MaxPool", ["x"], ["a"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    node("AveragePool", ["x"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
    node("AveragePool", ["x"], ["d"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    node("GlobalAveragePool", ["x"], ["e"]),
    node("GlobalMaxPool", ["x"], ["f"])
], [F("x", "n", 3, "h", "w")], [
    F("a", "n", 3, None, None),
    F("c", "n", 3, None, None),
    F("d", "n", 3, "h", "w"),
    F("e", "n", 3, 1, 1),
    F("f", "n", 3, 1, 1)
])
def pools(n, h, w):
    x = numbers(78, n, 3, h, w)
    flat = reshape(x, n, 3, h * w, 1)
    return [x], [pool(x, max, 3, 2, 1), pool(x, lambda v: sum(v) / 4, 2, 2, 0), pool(x, lambda v: sum(v) / 9, 3, 1, 1),
                 over(flat, 2, lambda v: sum(v) / len(v)), over(flat, 2, max)]


@case({"n": (1, 2), "h": (1, 6), "w": (1, 9)}, [
    node("Resize", ["x", "", "scales"], ["a"], mode="nearest", nearest_mode="floor",
         coordinate_transformation_mode="asymmetric"),
    node("Resize", ["x", "", "scales"], ["c"], mode="linear", coordinate_transformation_mode="half_pixel")
], [F("x", "n", 2, "h", "w")], [F("a", "n", 2, None, None), F("c", "n", 2, None, None)],
      [("scales", FLOAT, Tensor([4], [1, 1, 2, 2]))])
def resize(n, h, w):
    x = numbers(79, n, 2, h, w)

    def at(i, size):
        p = min(max((i + 0.5) / 2 - 0.5, 0), size - 1)
        low = int(p)
        return ((low, 1 - (p - low)), (min(low + 1, size - 1), p - low))
    return [x], [
        build([n, 2, 2 * h, 2 * w], lambda b, c, i, j: x[b, c, i // 2, j // 2]),
        build([n, 2, 2 * h, 2 * w],
              lambda b, c, i, j: sum(x[b, c, p, q] * u * v for p, u in at(i, h) for q, v in at(j, w)))
    ]


@case({"n": (1, 2), "h": (1, 4), "w": (1, 5)},
      [node("DepthToSpace", ["x"], ["y"], blocksize=2),
       node("SpaceToDepth", ["y"], ["z"], blocksize=2)], [F("x", "n", 8, "h", "w")],
      [F("y", "n", 2, None, None), F("z", "n", 8, "h", "w")])
def depth_to_space(n, h, w):
    x = numbers(80, n, 8, h, w)
    y = build([n, 2, 2 * h, 2 * w], lambda b, c, i, j: x[b, (i % 2 * 2 + j % 2) * 2 + c, i // 2, j // 2])
    return [x], [y, build([n, 8, h, w], lambda b, c, i, j: y[b, c % 2, 2 * i + c // 4, 2 * j + c // 2 % 2])]


# ---------------------------------------------------------------- views
@case({"s": (0, 9), "t": (1, 12)}, [
    node("Concat", ["x", "y", "c"], ["j"], axis=1),
    node("Neg", ["j"], ["z"]),
    node("Concat", ["z", "z"], ["u"], axis=0)
], [F("x", 2, "s", 3), F("y", 2, "t", 3)], [F("z", 2, None, 3), F("u", 4, None, 3)],
      [("c", FLOAT, numbers(90, 2, 2, 3))])
def concats(s, t):
    x, y = numbers(91, 2, s, 3), numbers(92, 2, t, 3)
    z = each(lambda v: -v, concat(1, x, y, numbers(90, 2, 2, 3)))
    return [x, y], [z, concat(0, z, z)]


@case({"b": (1, 3), "t": (2, 21)}, [
    node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2),
    node("Split", ["x", "sizes"], ["u", "v"], axis=2),
    node("Mul", ["u", "v"], ["w"])
], [F("x", "b", "t", 6)],
      [F("p", "b", None, 6), F("q", "b", None, 6), F("w", "b", "t", 3)], [constant("sizes", 3, 3)])
def splits(b, t):
    x = numbers(93, b, t, 6)
    half = (t + 1) // 2
    return [x], [
        take(x, 1, range(half)),
        take(x, 1, range(half, t)),
        each(lambda u, v: u * v, take(x, 2, range(3)), take(x, 2, range(3, 6)))
    ]


SLICES = {
    "a": (1, 2**40, 1), "c": (-3, 2**40, 1), "d": (0, -1, 1), "e": (0, 2**40, 3), "f": (-1, -2**40, -1),
    "g": (-2, 0, -2), "h": (2, 5, 1)
}


@case({"b": (0, 3), "t": (3, 23)}, [node("Slice", ["x", "s" + k, "e" + k, "axis", "p" + k], [k]) for k in SLICES],
      [F("x", "b", "t", 2)], [F(k, "b", None, 2) for k in SLICES],
      [constant("axis", 1)] + [constant(p + k, v[i]) for k, v in SLICES.items() for i, p in enumerate("sep")])
def slices(b, t):
    x = numbers(94, b, t, 2)

    def rows(start, stop, step):
        return range(t)[slice(start, None if stop < -t else stop, step)]
    return [x], [take(x, 1, rows(*v)) for v in SLICES.values()]


@case({"b": (1, 3), "t": (2, 9)}, [
    node("Pad", ["x", "pads", "fill"], ["a"]),
    node("Pad", ["x", "pads"], ["c"], mode="edge"),
    node("Pad", ["x", "small"], ["d"], mode="reflect")
], [F("x", "b", "t")],
      [F("a", None, None), F("c", None, None), F("d", "b", None)],
      [constant("pads", 1, 2, 2, 1),
       constant("small", 0, 1, 0, 1), ("fill", FLOAT, Tensor([], [1.5]))])
def pads(b, t):
    x = numbers(95, b, t)
    inside = lambda i, j: 0 <= i < b and 0 <= j < t         # noqa: E731
    return [x], [build([b + 3, t + 3], lambda i, j: x[i - 1, j - 2] if inside(i - 1, j - 2) else 1.5),
                 build([b + 3, t + 3], lambda i, j: x[min(max(i - 1, 0), b - 1), min(max(j - 2, 0), t - 1)]),
                 take(x, 1, [1, *range(t), t - 2])]


@case({"b": (0, 4), "t": (1, 15)}, [
    node("Reshape", ["x", "rows"], ["a"]),
    node("Relu", ["a"], ["r"]),
    node("Reshape", ["x", "heads"], ["h"]),
    node("Transpose", ["h"], ["p"], perm=[0, 2, 1, 3]),
    node("Flatten", ["x"], ["f"]),
    node("Unsqueeze", ["x", "one"], ["u"]),
    node("Transpose", ["x"], ["t3"], perm=[2, 1, 0])
], [F("x", "b", "t", 6)],
      [F("r", None, 6),
       F("p", "b", 2, "t", 3),
       F("f", "b", None),
       F("u", "b", 1, "t", 6),
       F("t3", 6, "t", "b")],
      [constant("rows", -1, 6), constant("heads", 0, 0, 2, 3),
       constant("one", 1)])
def reshapes(b, t):
    x = numbers(96, b, t, 6)
    return [x], [
        each(relu, reshape(x, b * t, 6)),
        transpose(reshape(x, b, t, 2, 3), 0, 2, 1, 3),
        reshape(x, b, t * 6),
        reshape(x, b, 1, t, 6),
        transpose(x, 2, 1, 0)
    ]


@case({"b": (1, 4), "t": (1, 15)}, [
    node("Shape", ["x"], ["s"]),
    node("Gather", ["s", "i0"], ["nb"], axis=0),
    node("Gather", ["s", "i1"], ["nt"], axis=0),
    node("Mul", ["nb", "nt"], ["rows"]),
    node("Unsqueeze", ["rows", "zero"], ["rows1"]),
    node("Concat", ["rows1", "six"], ["target"], axis=0),
    node("Reshape", ["x", "target"], ["m"]),
    node("Add", ["m", "m"], ["y"]),
    node("ConstantOfShape", ["s"], ["z"]),
    node("Expand", ["row", "s"], ["e"])
], [F("x", "b", "t", 6)],
      [F("y", None, 6), F("z", "b", "t", 6), F("e", "b", "t", 6)], [("i0", INT64, Tensor([], [0])),
                                                                    ("i1", INT64, Tensor([], [1])),
                                                                    constant("zero", 0),
                                                                    constant("six", 6),
                                                                    ("row", FLOAT, numbers(97, 6))])
def shapes_computed(b, t):
    x = numbers(98, b, t, 6)
    return [x], [
        each(lambda v: 2 * v, reshape(x, b * t, 6)),
        Tensor([b, t, 6], [0.0] * (6 * b * t)),
        build([b, t, 6], lambda i, j, k: numbers(97, 6)[k])
    ]


@case({"t": (0, 21), "b": (1, 3)}, [
    node("Shape", ["x"], ["s"]),
    node("Gather", ["s", "i1"], ["n"], axis=0),
    node("Range", ["zero", "n", "one"], ["r"]),
    node("Unsqueeze", ["r", "ax"], ["column"]),
    node("LessOrEqual", ["r", "column"], ["mask"]),
    node("Cast", ["mask"], ["f"], to=FLOAT),
    node("Cast", ["r"], ["rf"], to=FLOAT),
    node("Mul", ["x", "rf"], ["y"]),
    node("Trilu", ["f"], ["u"], upper=0)
], [F("x", "b", "t")], [F("y", "b", "t"), F("f", "t", "t"), F("u", "t", "t")], [("i1", INT64, Tensor([], [1])),
                                                                                ("zero", INT64, Tensor([], [0])),
                                                                                ("one", INT64, Tensor([], [1])),
                                                                                constant("ax", 1)])
def ranges_and_masks(t, b):
    x = numbers(99, b, t)
    lower = build([t, t], lambda i, j: float(j <= i))
    return [x], [build([b, t], lambda i, j: x[i, j] * j), lower, lower]


@case({"b": (1, 4), "t": (1, 10)}, [
    node("Gather", ["table", "ids"], ["e"], axis=0),
    node("Shape", ["ids"], ["s"]),
    node("Slice", ["s", "one", "two"], ["n"]),
    node("Slice", ["places", "zero", "n", "zero"], ["p"]),
    node("Add", ["e", "p"], ["y"])
], [I64("ids", "b", "t")], [F("y", "b", "t", 5)], [("table", FLOAT, numbers(100, 30, 5)),
                                                   ("places", FLOAT, numbers(101, 10, 5)),
                                                   constant("zero", 0),
                                                   constant("one", 1),
                                                   constant("two", 2)])
def embedding(b, t):
    ids, table, places = whole(102, b, t, low=-30, high=29), numbers(100, 30, 5), numbers(101, 10, 5)
    return [ids], [build([b, t, 5], lambda i, j, k: table[ids[i, j] % 30, k] + places[j, k])]


@case({"b": (1, 4), "t": (2, 13), "n": (0, 6)}, [
    node("Gather", ["x", "i"], ["a"], axis=1),
    node("GatherElements", ["x", "j"], ["c"], axis=1),
    node("Gather", ["x", "last"], ["d"], axis=1),
    node("GatherND", ["x", "p"], ["e"])
], [F("x", "b", "t"), I64("i", "n"), I64("j", "b", 3),
    I64("p", "n", 2)],
      [F("a", "b", "n"), F("c", "b", 3), F("d", "b"), F("e", "n")], [("last", INT64, Tensor([], [-1]))])
def gathers(b, t, n):
    x, i, j = numbers(103, b, t), whole(104, n, low=-t, high=t - 1), whole(105, b, 3, low=-t, high=t - 1)
    p = build([n, 2], lambda r, c: (r * 7 + 3) % (t if c else b))
    return [x, i, j, p], [
        build([b, n], lambda u, v: x[u, i[v] % t]),
        build([b, 3], lambda u, v: x[u, j[u, v] % t]),
        build([b], lambda u: x[u, t - 1]),
        build([n], lambda r: x[p[r, 0], p[r, 1]])
    ]


@case({"t": (2, 17), "n": (0, 9)}, [
    node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add"),
    node("ScatterND", ["x", "p", "v"], ["z"])
], [F("x", "t", 3), I64("i", "n", 3), F("u", "n", 3),
    I64("p", 2, 1), F("v", 2, 3)], [F("y", "t", 3), F("z", "t", 3)])
def scatters(t, n):
    x, i, u, v = numbers(106, t, 3), whole(107, n, 3, low=-t, high=t - 1), numbers(108, n, 3), numbers(109, 2, 3)
    p = Tensor([2, 1], [t - 1, 0])
    y = build([t, 3], lambda r, c: x[r, c] + sum(u[k, c] for k in range(n) if i[k, c] % t == r))
    return [x, i, u, p, v], [y, build([t, 3], lambda r, c: v[0, c] if r == t - 1 else v[1, c] if r == 0 else x[r, c])]


@case({"b": (1, 3), "t": (1, 9)}, [
    node("Tile", ["x", "two"], ["a"]),
    node("OneHot", ["ids", "depth", "values"], ["o"]),
    node("EyeLike", ["x"], ["e"])
], [F("x", "b", "t"), I64("ids", "t")],
      [F("a", None, None), F("o", "t", 6), F("e", "b", "t")],
      [constant("two", 2, 3), constant("depth", 6), ("values", FLOAT, Tensor([2], [-1.0, 2.0]))])
def tiles(b, t):
    x, ids = numbers(110, b, t), whole(111, t, high=5)
    return [x, ids], [
        build([2 * b, 3 * t], lambda i, j: x[i % b, j % t]),
        build([t, 6], lambda i, k: 2.0 if ids[i] == k else -1.0),
        build([b, t], lambda i, j: float(i == j))
    ]


# ---------------------------------------------------------------- control flow, recurrence
@case({"b": (1, 3), "t": (1, 12)}, [
    node(
        "If", ["c"], ["y"],
        then_branch=("graph", graph([node("Exp", ["x"], ["p"])], [], [value_info(*F("p", "b", "t"))], name="then")),
        else_branch=("graph",
                     graph([node("ReduceSum", ["x", "one"], ["s"]),
                            node("Sub", ["x", "s"], ["q"])], [], [value_info(*F("q", "b", "t"))], name="else")))
], [("c", BOOL, []), F("x", "b", "t")], [F("y", "b", "t")], [constant("one", 1)])
def choice(b, t):
    x, c = numbers(120, b, t), (b + t) % 2 == 0
    return [Tensor([], [c]), x], [each(math.exp, x) if c else each(lambda v, s: v - s, x, over(x, 1, sum))]


@case({"n": (0, 7), "t": (1, 11)}, [
    node("Shape", ["x"], ["s"]),
    node("Gather", ["s", "zero"], ["trips"], axis=0),
    node("ReduceMax", ["x", "first"], ["m"], keepdims=0),
    node("Relu", ["m"], ["start"]),
    node(
        "Loop", ["trips", "", "start"], ["last", "all"],
        body=("graph",
              graph([
                  node("Mul", ["state", "half"], ["h"]),
                  node("Gather", ["x", "i"], ["row"], axis=0),
                  node("Add", ["h", "row"], ["next"]),
                  node("Identity", ["c"], ["go"]),
                  node("Neg", ["next"], ["seen"])
              ], [value_info("i", INT64, []),
                  value_info("c", BOOL, []),
                  value_info(*F("state", "t"))],
                    [value_info("go", BOOL, []),
                     value_info(*F("next", "t")),
                     value_info(*F("seen", "t"))], name="body")))
], [F("x", "n", "t")], [F("last", "t"), F("all", "n", "t")], [("zero", INT64, Tensor([], [0])),
                                                              constant("first", 0),
                                                              ("half", FLOAT, Tensor([], [0.5]))])
def loop(n, t):
    x, seen = numbers(121, n, t), []
    state = each(relu, over(x, 0, lambda v: max(v, default=0.0), False))
    for i in range(n):
        state = each(lambda s, v: s * 0.5 + v, state, reshape(take(x, 0, [i]), t))
        seen += [-v for v in state.flat]
    return [x], [state, Tensor([n, t], seen)]


@case({"b": (1, 3), "t": (0, 14)}, [
    node(
        "Scan", ["start", "x"], ["last", "all"], num_scan_inputs=1,
        body=("graph",
              graph([
                  node("Mul", ["s", "half"], ["h"]),
                  node("Add", ["h", "v"], ["next"]),
                  node("Tanh", ["next"], ["seen"])
              ], [value_info(*F("s", "b", 2)), value_info(*F("v", "b", 2))],
                    [value_info(*F("next", "b", 2)), value_info(*F("seen", "b", 2))], name="body")))
], [F("start", "b", 2), F("x", "t", "b", 2)], [F("last", "b", 2), F("all", "t", "b", 2)],
      [("half", FLOAT, Tensor([], [0.5]))])
def scan(b, t):
    start, x = numbers(122, b, 2), numbers(123, t, b, 2)
    state, seen = start, []
    for i in range(t):
        state = each(lambda s, v: s * 0.5 + v, state, reshape(take(x, 0, [i]), b, 2))
        seen += each(math.tanh, state).flat
    return [start, x], [state, Tensor([t, b, 2], seen)]


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


@case({"b": (1, 3), "t": (1, 13)}, [node("LSTM", ["x", "w", "r", "c"], ["y", "yh", "yc"], hidden_size=3)],
      [F("x", "t", "b", 4)],
      [F("y", "t", 1, "b", 3), F("yh", 1, "b", 3), F("yc", 1, "b", 3)], [("w", FLOAT, numbers(124, 1, 12, 4)),
                                                                         ("r", FLOAT, numbers(125, 1, 12, 3)),
                                                                         ("c", FLOAT, numbers(126, 1, 24))])
def lstm(b, t):
    x, w, r, c = numbers(127, t, b, 4), numbers(124, 1, 12, 4), numbers(125, 1, 12, 3), numbers(126, 1, 24)
    h, state, seen = Tensor([b, 3], [0.0] * 3 * b), Tensor([b, 3], [0.0] * 3 * b), []
    for s in range(t):
        gate = build([b, 12], lambda i, g: sum(x[s, i, k] * w[0, g, k]
                                               for k in range(4)) + sum(h[i, k] * r[0, g, k]
                                                                        for k in range(3)) + c[0, g] + c[0, 12 + g])
        state = build(
            [b, 3],
            lambda i, k: sigmoid(gate[i, 6 + k]) * state[i, k] + sigmoid(gate[i, k]) * math.tanh(gate[i, 9 + k]))
        h = build([b, 3], lambda i, k: sigmoid(gate[i, 3 + k]) * math.tanh(state[i, k]))
        seen += h.flat
    return [x], [Tensor([t, 1, b, 3], seen), reshape(h, 1, b, 3), reshape(state, 1, b, 3)]


@case({"b": (1, 3), "t": (1, 9)},
      [node("GRU", ["x", "w", "r", "", "n"], ["y", "yh"], hidden_size=2, direction="bidirectional")],
      [F("x", "t", "b", 3),
       ("n", INT32, ["b"])], [F("y", "t", 2, "b", 2), F("yh", 2, "b", 2)], [("w", FLOAT, numbers(128, 2, 6, 3)),
                                                                            ("r", FLOAT, numbers(129, 2, 6, 2))])
def gru_lengths(b, t):
    x, w, r = numbers(130, t, b, 3), numbers(128, 2, 6, 3), numbers(129, 2, 6, 2)
    n = build([b], lambda i: max(t - i, 1))
    y, last = {}, {}
    for d in range(2):
        for i in range(b):
            h = [0.0, 0.0]
            for step in range(n[i]):
                s = n[i] - 1 - step if d else step
                gate = [sum(x[s, i, k] * w[d, g, k] for k in range(3)) for g in range(6)]
                past = [sum(h[k] * r[d, g, k] for k in range(2)) for g in range(4)]
                z, q = ([sigmoid(gate[2 * m + k] + past[2 * m + k]) for k in range(2)] for m in range(2))
                new = [math.tanh(gate[4 + k] + sum(q[m] * h[m] * r[d, 4 + k, m] for m in range(2))) for k in range(2)]
                h = [(1 - z[k]) * new[k] + z[k] * h[k] for k in range(2)]
                for k in range(2):
                    y[s, d, i, k] = h[k]
            last[d, i] = h
    return [x, n], [build([t, 2, b, 2], lambda *i: y.get(i, 0.0)), build([2, b, 2], lambda d, i, k: last[d, i][k])]


# ---------------------------------------------------------------- sizes that the run finds out
@case(
    {"b": (1, 3), "t": (0, 9)},
    [node("NonZero", ["x"], ["i"]),
     node("Transpose", ["i"], ["j"], perm=[1, 0]),
     node("GatherND", ["x", "j"], ["v"])], [F("x", "b", "t")], [I64("i", 2, None), F("v", None)])
def non_zero(b, t):
    x = each(lambda v, w: v * w, numbers(131, b, t, low=1, high=2), whole(132, b, t, high=1))
    found = [(i, j) for i in range(b) for j in range(t) if x[i, j]]
    return [x], [build([2, len(found)], lambda a, k: found[k][a]), build([len(found)], lambda k: x[found[k]])]


@case({"b": (1, 3), "t": (1, 9)}, [
    node("Compress", ["x", "c"], ["y"], axis=1),
    node("Mul", ["y", "y"], ["z"]),
    node("ReduceSum", ["z", "one"], ["s"], keepdims=0)
], [F("x", "b", "t"), ("c", BOOL, ["t"])], [F("z", "b", None), F("s", "b")], [constant("one", 1)])
def compress(b, t):
    x, c = numbers(133, b, t), Tensor([t], [(i * 5 + t) % 3 == 0 for i in range(t)])
    z = each(lambda v: v * v, take(x, 1, [i for i in range(t) if c[i]]))
    return [x, c], [z, over(z, 1, sum, False)]


@case({"t": (0, 23)}, [node("Unique", ["x"], ["y", "first", "place", "count"]), node("Mul", ["y", "y"], ["z"])],
      [I64("x", "t")], [I64("y", None), I64("first", None), I64("place", "t"), I64("count", None), I64("z", None)])
def unique(t):
    x = whole(134, t, low=-4, high=4)
    y = sorted(set(x.flat))
    return [x], [
        Tensor([len(y)], y),
        Tensor([len(y)], [x.flat.index(v) for v in y]),
        Tensor([t], [y.index(v) for v in x.flat]),
        Tensor([len(y)], [x.flat.count(v) for v in y]),
        Tensor([len(y)], [v * v for v in y])
    ]


@case({"n": (1, 12)}, [
    node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["chosen"]),
    node("Gather", ["chosen", "two"], ["c"], axis=1),
    node("Gather", ["table", "c"], ["b"], axis=1)
], [F("boxes", 1, "n", 4), F("scores", 1, 1, "n"), F("table", 2, "n")],
      [I64("chosen", None, 3), F("b", 2, None)],
      [constant("most", 5), ("iou", FLOAT, Tensor([1], [0.4])), ("two", INT64, Tensor([], [2]))])
def boxes(n):
    place, table = whole(135, n, high=3), numbers(136, 2, n)
    corners = build([1, n, 4], lambda _, i, k: place[i] + i / 64 + (k > 1))
    scores = Tensor([1, 1, n], [(7 * i % n + 1) / (n + 1) for i in range(n)])
    chosen = []
    for i in sorted(range(n), key=lambda i: -scores[0, 0, i]):
        side = [max(0.0, 1 - abs(corners[0, i, 0] - corners[0, j, 0])) for j in chosen]
        if all(s * s / (2 - s * s) <= 0.4 for s in side) and len(chosen) < 5:
            chosen.append(i)
    return [corners, scores,
            table], [Tensor([len(chosen), 3], [v for i in chosen for v in (0, 0, i)]),
                     take(table, 1, chosen)]


@case({"b": (1, 4), "t": (1, 12)}, [
    node("Reshape", ["x", "shape"], ["y"]),
    node("Add", ["y", "y"], ["z"]),
    node("ReduceSum", ["z", "zero"], ["s"], keepdims=0)
], [F("x", "b", "t", 2), I64("shape", 3)], [F("z", None, None, None), F("s", None, None)], [constant("zero", 0)])
def shape_given(b, t):
    x = numbers(137, b, t, 2)
    z = each(lambda v: 2 * v, reshape(x, t, 2, b))
    return [x, Tensor([3], [t, -1, b])], [z, over(z, 0, sum, False)]


@case({"b": (1, 3), "t": (1, 14)},
      [node("Slice", ["x", "from", "to", "axis"], ["y"]),
       node("Softmax", ["y"], ["z"], axis=1)],
      [F("x", "b", "t"), I64("from", 1), I64("to", 1)], [F("z", "b", None)], [constant("axis", 1)])
def slice_given(b, t):
    x, start, stop = numbers(138, b, t), t // 3, t - t // 4
    return [x, Tensor([1], [start]), Tensor([1], [stop])], [along(take(x, 1, range(start, stop)), 1, softmax)]


@case({"t": (0, 9)}, [
    node("Range", ["a", "n", "d"], ["r"]),
    node("Unsqueeze", ["r", "one"], ["c"]),
    node("Cast", ["c"], ["f"], to=FLOAT),
    node("Add", ["f", "x"], ["y"])
], [F("x", "t"), ("a", INT64, []), ("n", INT64, []), ("d", INT64, [])], [F("y", None, "t")], [constant("one", 1)],
      found={"r_dim_0": (0, 20)})
def range_given(t):
    x, r = numbers(139, t), range(3, 3 + 2 * t, 2) if t % 2 else range(2 * t, 0, -3)
    return [x] + [Tensor([], [v]) for v in (r.start, r.stop, r.step)], [build([len(r), t], lambda i, j: r[i] + x[j])]


range_given.beyond = lambda: ({"t": 4}, [numbers(139, 4)] + [Tensor([], [v]) for v in (0, 21, 1)])


@case({"b": (1, 3), "t": (3, 17)},
      [node("TopK", ["x", "k"], ["v", "i"], axis=1),
       node("ReduceSum", ["v", "one"], ["s"])], [F("x", "b", "t"), I64("k", 1)],
      [F("v", "b", None), I64("i", "b", None), F("s", "b", 1)], [constant("one", 1)])
def top_k_given(b, t):
    x, k = numbers(161, b, t), (t + 1) // 2
    order = along(x, 1, lambda v: sorted(range(t), key=lambda i: -v[i])[:k])
    v = build([b, k], lambda i, j: x[i, order[i, j]])
    return [x, Tensor([1], [k])], [v, order, over(v, 1, sum)]


@case({"t": (1, 8)}, [
    node("Expand", ["x", "shape"], ["e"]),
    node("Tile", ["x", "times"], ["u"]),
    node("ConstantOfShape", ["shape"], ["z"]),
    node("Add", ["e", "z"], ["y"])
], [F("x", "t", 1), I64("shape", 2), I64("times", 2)], [F("y", None, None), F("u", None, None)],
      found={"e_dim_1": (0, 9), "u_dim_0": (0, 16), "u_dim_1": (0, 3)})
def shapes_given(t):
    x, wide = numbers(162, t, 1), 1 + t % 3 * 4
    return [x, Tensor([2], [t, wide]),
            Tensor([2],
                   [2, 3])], [build([t, wide], lambda i, j: x[i, 0]),
                              build([2 * t, 3], lambda i, j: x[i % t, 0])]


# ---------------------------------------------------------------- a network: a layer of a transformer with a mask
def linear(x, w, b):
    return [node("MatMul", [x, w], [w + "_m"]), node("Add", [w + "_m", b], [w + "_o"])]


WEIGHTS = {"wq": (8, 8), "wk": (8, 8), "wv": (8, 8), "wo": (8, 8), "w1": (8, 20), "w2": (20, 8)}


def weight(name):
    return numbers(140 + list(WEIGHTS).index(name), *WEIGHTS[name], low=-0.6, high=0.6)


def offset(name):
    return numbers(150 + list(WEIGHTS).index(name), WEIGHTS[name][1])


def transformer_nodes():
    nodes = []
    for n in "qkv":
        nodes += linear("x", "w" + n, "b" + n)
        nodes += [
            node("Reshape", [f"w{n}_o", "heads"], [n + "4"]),
            node("Transpose", [n + "4"], [n], perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3])
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["s0"]),
        node("Mul", ["s0", "scale"], ["s1"]),
        node("Unsqueeze", ["mask", "places"], ["m4"]),
        node("Where", ["m4", "s1", "low"], ["s2"]),
        node("Softmax", ["s2"], ["p"]),
        node("MatMul", ["p", "v"], ["o0"]),
        node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "joined"], ["o2"])
    ]
    nodes += linear("o2", "wo", "bo") + [
        node("Add", ["x", "wo_o"], ["r1"]),
        node("LayerNormalization", ["r1", "ones"], ["n1"], axis=-1)
    ]
    nodes += linear("n1", "w1", "b1") + [node("Relu", ["w1_o"], ["f"])] + linear("f", "w2", "b2")
    return nodes + [node("Add", ["n1", "w2_o"], ["y"])]


@case({"b": (1, 4), "t": (1, 18)}, transformer_nodes(), [F("x", "b", "t", 8),
                                                         ("mask", BOOL, ["b", "t"])], [F("y", "b", "t", 8)],
      [(n, FLOAT, weight(n)) for n in WEIGHTS] + [("b" + n[1], FLOAT, offset(n)) for n in WEIGHTS] + [
          constant("heads", 0, 0, 2, 4),
          constant("joined", 0, 0, 8),
          constant("places", 1, 2), ("scale", FLOAT, Tensor([], [0.5])), ("low", FLOAT, Tensor([], [-1e4])),
          ("ones", FLOAT, Tensor([8], [1.0] * 8))
      ])
def transformer(b, t):
    x, mask = numbers(160, b, t, 8), build([b, t], lambda i, j: j == 0 or (i + j) % 3 != 0)

    def apply(v, name):
        return each(lambda p, q: p + q, matmul(v, weight(name)), offset(name))
    q, k, v = (transpose(reshape(apply(x, "w" + n), b, t, 2, 4), 0, 2, 1, 3) for n in "qkv")
    scores = matmul(q, transpose(k, 0, 1, 3, 2))
    p = along(build(scores.shape, lambda i, h, s, u: scores[i, h, s, u] * 0.5 if mask[i, u] else -1e4), 3, softmax)
    joined = reshape(transpose(matmul(p, v), 0, 2, 1, 3), b, t, 8)
    n1 = along(each(lambda u, w: u + w, x, apply(joined, "wo")), 2, normalized)
    return [x, mask], [each(lambda u, w: u + w, n1, apply(each(relu, apply(n1, "w1")), "w2"))]
