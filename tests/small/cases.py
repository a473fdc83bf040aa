# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models with the outputs they must give, computed here in plain Python double precision.

Each function makes one Model: ONNX bytes, data sets of inputs and outputs (one for most, several for dynamic shapes),
and files that lie beside the model. They cover the operator families once, so that a clone without any other test
data tests import to run."""
import cmath
import math
import random
import struct
from itertools import product

from onnx_wire import (BFLOAT16, BOOL, COMPLEX64, COMPLEX128, FLOAT, FLOAT16, INT8, INT32, INT64, STRING, UINT8,
                       attribute, blob, flatten, function, graph, integer, model, node, pack, tensor, value_info)


class Model:
    """inputs and outputs of a set: lists of (name, dtype, nested list)."""

    def __init__(self, nodes, inputs, outputs, sets, initializers=(), files=(), **options):
        self.bytes = model(
            graph(nodes, [value_info(*i) for i in inputs], [value_info(*o) for o in outputs], initializers), **options)
        types = [(n, d) for n, d, _ in inputs], [(n, d) for n, d, _ in outputs]
        self.sets = [([t + (v, ) for t, v in zip(types[0], ins)], [t + (v, ) for t, v in zip(types[1], outs)])
                     for ins, outs in sets]
        self.files = dict(files)


def numbers(seed, *shape, low=-1.0, high=1.0):
    """Repeatable values that float32 holds exactly enough: rounded to it."""
    rng = random.Random(seed)
    flat = [struct.unpack("f", struct.pack("f", rng.uniform(low, high)))[0] for _ in range(math.prod(shape))]
    return nest(flat, shape)


def nest(flat, shape):
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [nest(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def at(x, index):
    for i in index:
        x = x[i]
    return x


def build(shape, f):
    """The tensor whose element at index i is f(*i)."""
    return nest([f(*i) for i in product(*map(range, shape))], shape)


def relu(v):
    return max(v, 0.0)


# ---------------------------------------------------------------- networks' building blocks
def conv_bn_relu_add():
    x, w, b = numbers(1, 2, 4, 9, 7), numbers(2, 4, 4, 3, 3), numbers(3, 4)
    scale, bias, mean, var = numbers(4, 4, low=0.5), numbers(5, 4), numbers(6, 4), numbers(7, 4, low=0.5, high=2)

    def element(n, c, i, j):
        total = b[c]
        for k, u, v in product(range(4), range(3), range(3)):
            if 0 <= i + u - 1 < 9 and 0 <= j + v - 1 < 7:
                total += x[n][k][i + u - 1][j + v - 1] * w[c][k][u][v]
        return relu((total - mean[c]) / math.sqrt(var[c] + 1e-5) * scale[c] + bias[c]) + x[n][c][i][j]
    nodes = [node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
             node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], epsilon=1e-5),
             node("Relu", ["n"], ["r"]), node("Add", ["r", "x"], ["y"])]
    weights = [tensor(n, FLOAT, v) for n, v in
               (("w", w), ("b", b), ("scale", scale), ("bias", bias), ("mean", mean), ("var", var))]
    return Model(nodes, [("x", FLOAT, [2, 4, 9, 7])], [("y", FLOAT, [2, 4, 9, 7])],
                 [([x], [build((2, 4, 9, 7), element)])], weights)


def conv_strided_grouped():
    """Depthwise with stride and dilation, then a pointwise convolution with asymmetric padding before it."""
    x, d, p = numbers(11, 1, 6, 11, 10), numbers(12, 6, 1, 3, 2), numbers(13, 5, 6, 1, 1)

    def depthwise(n, c, i, j):
        total = 0.0
        for u, v in product(range(3), range(2)):
            row, col = 2 * i + u - 1, j + 2 * v - 1
            if 0 <= row < 11 and 0 <= col < 10:
                total += x[n][c][row][col] * d[c][0][u][v]
        return total
    mid = build((1, 6, 5, 9), depthwise)
    out = build((1, 5, 5, 9), lambda n, c, i, j: sum(mid[n][k][i][j] * p[c][k][0][0] for k in range(6)))
    nodes = [node("Conv", ["x", "d"], ["m"], pads=[1, 1, 0, 0], strides=[2, 1], dilations=[1, 2], group=6),
             node("Conv", ["m", "p"], ["y"])]
    return Model(nodes, [("x", FLOAT, [1, 6, 11, 10])], [("y", FLOAT, [1, 5, 5, 9])], [([x], [out])],
                 [tensor("d", FLOAT, d), tensor("p", FLOAT, p)])


def conv_planes():
    """Depthwise with weights that only the run knows and two results a channel, then one whose weights are constant,
    joined along a row."""
    x, w, k = numbers(14, 2, 3, 13, 21), numbers(15, 6, 1, 3, 3), numbers(16, 6, 1, 5, 5)

    def first(n, c, i, j):
        total = 0.0
        for u, v in product(range(3), range(3)):
            row, col = 2 * i + u - 1, j + v - 1
            if 0 <= row < 13 and 0 <= col < 21:
                total += x[n][c // 2][row][col] * w[c][0][u][v]
        return relu(total)
    mid = build((2, 6, 7, 21), first)

    def second(n, c, i, j):
        total = 0.0
        for u, v in product(range(5), range(5)):
            if 0 <= i + u - 2 < 7 and 0 <= j + v - 2 < 21:
                total += mid[n][c][i + u - 2][j + v - 2] * k[c][0][u][v]
        return total
    out = build((2, 6, 7, 42), lambda n, c, i, j: mid[n][c][i][j] if j < 21 else second(n, c, i, j - 21))
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 1], group=3), node("Relu", ["c"], ["r"]),
             node("Conv", ["r", "k"], ["d"], pads=[2, 2, 2, 2], group=6), node("Concat", ["r", "d"], ["y"], axis=3)]
    return Model(nodes, [("x", FLOAT, [2, 3, 13, 21]), ("w", FLOAT, [6, 1, 3, 3])], [("y", FLOAT, [2, 6, 7, 42])],
                 [([x, w], [out])], [tensor("k", FLOAT, k)])


def conv_windows():
    """Windows whose products are fewer than their taps times their pixels: 5x5, 1x5, 3x1, a 3x3 most of whose taps
    lie in the padding."""
    x, sizes = numbers(17, 2, 16, 12, 12), {"a": (5, 5, 1), "b": (1, 5, 1), "c": (3, 1, 1), "d": (3, 3, 9)}
    weights = {
        name: numbers(18 + i, 18, 16, h, w, low=-1 / 256, high=1 / 256)
        for i, (name, (h, w, _)) in enumerate(sizes.items())
    }

    def conv(k, high, wide, apart):
        up, left = high // 2 * apart, wide // 2 * apart

        def element(n, c, i, j):
            taps = [(u, v, i + u * apart - up, j + v * apart - left) for u, v in product(range(high), range(wide))]
            return relu(
                sum(x[n][q][r][s] * k[c][q][u][v] for u, v, r, s in taps if 0 <= r < 12 and 0 <= s < 12
                    for q in range(16)))
        return build((2, 18, 12, 12), element)
    nodes, outs = [], []
    for name, (high, wide, apart) in sizes.items():
        up, left = high // 2 * apart, wide // 2 * apart
        nodes += [
            node("Conv", ["x", name], [name + "c"], pads=[up, left, up, left], dilations=[apart, apart]),
            node("Relu", [name + "c"], [name + "y"])
        ]
        outs.append(conv(weights[name], high, wide, apart))
    return Model(nodes, [("x", FLOAT, [2, 16, 12, 12])], [(name + "y", FLOAT, [2, 18, 12, 12]) for name in sizes],
                 [([x], outs)], [tensor(name, FLOAT, w) for name, w in weights.items()])


def conv_few_channels():
    """A window over 9 channels, fewer than a vector: still fewer products than taps."""
    x, w = numbers(41, 1, 9, 12, 14), numbers(42, 17, 9, 3, 3, low=-1 / 64, high=1 / 64)

    def element(n, c, i, j):
        taps = product(range(9), range(3), range(3))
        return relu(sum(x[n][q][i + u - 1][j + v - 1] * w[c][q][u][v] for q, u, v in taps
                        if 0 <= i + u - 1 < 12 and 0 <= j + v - 1 < 14))
    out = build((1, 17, 12, 14), element)
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["y"])]
    return Model(nodes, [("x", FLOAT, [1, 9, 12, 14])], [("y", FLOAT, [1, 17, 12, 14])], [([x], [out])],
                 [tensor("w", FLOAT, w)])


def matmul_bias():
    x, w, b = numbers(21, 3, 5, 17), numbers(22, 17, 33), numbers(23, 33)
    out = build((3, 5, 33), lambda i, j, n: math.tanh(sum(x[i][j][k] * w[k][n] for k in range(17)) + b[n]))
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["a"]), node("Tanh", ["a"], ["y"])]
    return Model(nodes, [("x", FLOAT, [3, 5, 17])], [("y", FLOAT, [3, 5, 33])], [([x], [out])],
                 [tensor("w", FLOAT, w), tensor("b", FLOAT, b)])


def row_times_computed():
    """A product of one row whose matrix is no constant, of few columns and many terms."""
    x, w = numbers(31, 1, 300, low=0), numbers(32, 300, 5, low=0)
    out = build((1, 5), lambda _, n: sum(x[0][k] * w[k][n] for k in range(300)))
    return Model([node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [1, 300]), ("w", FLOAT, [300, 5])],
                 [("y", FLOAT, [1, 5])], [([x, w], [out])])


def rows_of_products():
    """Products of one row: few columns, vectors along their 300 terms; 200 and 130 columns in wide panels, the last
    not full."""
    x, b = numbers(26, 1, 300, low=0), numbers(30, 5)
    w = [numbers(27, 300, 5, low=0),
         numbers(28, 5, 200, low=0),
         numbers(29, 200, 130, low=0)]  # no sum is a small rest of large terms

    def product(row, m):
        return [sum(row[k] * m[k][n] for k in range(len(m))) for n in range(len(m[0]))]
    few = [max(v + b[n], 0.0) for n, v in enumerate(product(x[0], w[0]))]
    out = [product(product(few, w[1]), w[2])]
    nodes = [
        node("MatMul", ["x", "w0"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Relu", ["a"], ["r"]),
        node("MatMul", ["r", "w1"], ["s"]),
        node("MatMul", ["s", "w2"], ["y"])
    ]
    return Model(nodes, [("x", FLOAT, [1, 300])], [("y", FLOAT, [1, 130]), ("r", FLOAT, [1, 5])], [([x], [out, [few]])],
                 [tensor(f"w{i}", FLOAT, v) for i, v in enumerate(w)] + [tensor("b", FLOAT, b)])


def gemm_dynamic_batch():
    """One model for batches of 1, 4 and 13; alpha, beta, transposed weights."""
    w, b = numbers(31, 10, 12), numbers(32, 10)

    def case(n):
        x = numbers(33 + n, n, 12)
        return [x], [build((n, 10), lambda i, j: 0.5 * sum(x[i][k] * w[j][k] for k in range(12)) + 2 * b[j])]
    return Model([node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=2.0, transB=1)], [("x", FLOAT, ["batch", 12])],
                 [("y", FLOAT, ["batch", 10])], [case(1), case(4), case(13)],
                 [tensor("w", FLOAT, w), tensor("b", FLOAT, b)])


def softmax_both_axes():
    x = numbers(41, 3, 7, 5, low=-30, high=30)

    def soft(v):
        e = [math.exp(a - max(v)) for a in v]
        return [a / sum(e) for a in e]
    last = [[soft(row) for row in m] for m in x]
    columns = [[soft([m[i][j] for i in range(7)]) for j in range(5)] for m in x]
    middle = build((3, 7, 5), lambda n, i, j: math.log(columns[n][j][i]))
    nodes = [node("Softmax", ["x"], ["y"], axis=-1), node("LogSoftmax", ["x"], ["z"], axis=1)]
    return Model(nodes, [("x", FLOAT, [3, 7, 5])], [("y", FLOAT, [3, 7, 5]), ("z", FLOAT, [3, 7, 5])],
                 [([x], [last, middle])])


def layer_norm():
    x, g, b = numbers(51, 4, 19, low=-3, high=5), numbers(52, 19), numbers(53, 19)

    def row(v):
        m = sum(v) / 19
        s = math.sqrt(sum((a - m) ** 2 for a in v) / 19 + 1e-5)
        return [(a - m) / s * g[i] + b[i] for i, a in enumerate(v)]
    return Model([node("LayerNormalization", ["x", "g", "b"], ["y"], epsilon=1e-5)], [("x", FLOAT, [4, 19])],
                 [("y", FLOAT, [4, 19])], [([x], [[row(v) for v in x]])],
                 [tensor("g", FLOAT, g), tensor("b", FLOAT, b)])


def pooling():
    x = numbers(61, 1, 3, 9, 8)

    def window(c, i, j, stride, size, pad):
        cells = product(range(i * stride - pad, i * stride - pad + size),
                        range(j * stride - pad, j * stride - pad + size))
        return [x[0][c][u][v] for u, v in cells if 0 <= u < 9 and 0 <= v < 8]
    largest = build((1, 3, 5, 4), lambda n, c, i, j: max(window(c, i, j, 2, 3, 1)))

    def average(n, c, i, j):
        w = window(c, i, j, 2, 2, 0)
        return sum(w) / len(w)
    means = build((1, 3, 1, 1), lambda n, c, i, j: sum(sum(r) for r in x[0][c]) / 72)
    nodes = [
        node("MaxPool", ["x"], ["a"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("AveragePool", ["x"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["x"], ["c"])
    ]
    return Model(nodes, [("x", FLOAT, [1, 3, 9, 8])],
                 [("a", FLOAT, [1, 3, 5, 4]), ("b", FLOAT, [1, 3, 4, 4]), ("c", FLOAT, [1, 3, 1, 1])],
                 [([x], [largest, build((1, 3, 4, 4), average), means])])


def attention_written_out():
    """softmax(q k^T / sqrt(d) + mask) v over two heads, with the reshapes an exporter writes."""
    t, heads, d = 6, 2, 4
    x, w = numbers(71, 1, t, 8), [numbers(72 + i, 8, 8) for i in range(3)]
    q, k, v = ([[sum(x[0][i][c] * m[c][o] for c in range(8)) for o in range(8)] for i in range(t)] for m in w)
    out = build((1, t, 8), lambda *_: 0.0)
    for h, i in product(range(heads), range(t)):
        s = [sum(q[i][h * d + c] * k[j][h * d + c] for c in range(d)) / 2 if j <= i else -1e9 for j in range(t)]
        e = [math.exp(a - max(s)) for a in s]
        for c in range(d):
            out[0][i][h * d + c] = sum(e[j] / sum(e) * v[j][h * d + c] for j in range(t))
    nodes = []
    for n in "qkv":
        nodes += [node("MatMul", ["x", "w" + n], [n + "0"]), node("Reshape", [n + "0", "split"], [n + "1"]),
                  node("Transpose", [n + "1"], [n], perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3])]
    nodes += [
        node("MatMul", ["q", "k"], ["s0"]),
        node("Div", ["s0", "root"], ["s1"]),
        node("Where", ["mask", "s1", "low"], ["s2"]),
        node("Softmax", ["s2"], ["p"]),
        node("MatMul", ["p", "v"], ["o0"]),
        node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "join"], ["y"])
    ]
    constants = [tensor("w" + n, FLOAT, m) for n, m in zip("qkv", w)]
    constants += [
        tensor("split", INT64, [0, 0, heads, d]),
        tensor("join", INT64, [1, t, -1]),
        tensor("root", FLOAT, 2.0),
        tensor("low", FLOAT, -1e9),
        tensor("mask", BOOL, build((t, t), lambda i, j: j <= i))
    ]
    return Model(nodes, [("x", FLOAT, [1, t, 8])], [("y", FLOAT, [1, t, 8])], [([x], [out])], constants)


def attention_of(queries, keys, heads, key_heads, d, seen):
    """Heads that share keys, a mask of -inf, and rows that see nothing give 0, as PyTorch writes it. seen(i, j): may
    query i see key j?"""
    t, group = (queries, keys), heads // key_heads
    q, k, v = numbers(75, 1, queries, heads * d), numbers(76, 1, keys,
                                                          key_heads * d), numbers(77, 1, keys, key_heads * d)
    mask = build((queries, keys), lambda i, j: 0.0 if seen(i, j) else -math.inf)
    out = build((1, queries, heads * d), lambda *_: 0.0)
    for h, i in product(range(heads), range(queries)):
        at = h // group * d
        js = [j for j in range(keys) if seen(i, j)]
        s = [sum(q[0][i][h * d + c] * k[0][j][at + c] for c in range(d)) * 3 for j in js]
        e = [math.exp(a - max(s)) for a in s]
        for c in range(d):
            out[0][i][h * d + c] = sum(a * v[0][j][at + c] for a, j in zip(e, js)) / sum(e) if js else 0.0
    nodes = [node("Reshape", ["q", "heads"], ["q1"]), node("Transpose", ["q1"], ["q2"], perm=[0, 2, 1, 3])]
    for n in "kv":
        nodes += [node("Reshape", [n, "split"], [n + "1"]), node("Transpose", [n + "1"], [n + "2"], perm=[0, 2, 1, 3]),
                  node("Unsqueeze", [n + "2", "two"], [n + "3"]), node("Expand", [n + "3", "groups"], [n + "4"]),
                  node("Reshape", [n + "4", "merge"], [n + "5"])]
    nodes += [
        node("Transpose", ["k5"], ["k6"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q2", "k6"], ["s0"]),
        node("Mul", ["s0", "scale"], ["s1"]),
        node("Add", ["s1", "mask"], ["s2"]),
        node("Softmax", ["s2"], ["p0"]),
        node("IsNaN", ["p0"], ["none"]),
        node("Where", ["none", "zero", "p0"], ["p"]),
        node("MatMul", ["p", "v5"], ["o0"]),
        node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "join"], ["y"])
    ]
    constants = [
        tensor("heads", INT64, [0, 0, heads, d]),
        tensor("split", INT64, [0, 0, key_heads, d]),
        tensor("join", INT64, [0, 0, -1]),
        tensor("two", INT64, [2]),
        tensor("groups", INT64, [1, key_heads, group, keys, d]),
        tensor("merge", INT64, [1, heads, keys, d]),
        tensor("scale", FLOAT, 3.0),
        tensor("zero", FLOAT, 0.0)
    ]
    ins = [("q", FLOAT, [1, t[0], heads * d])] + [(n, FLOAT, [1, t[1], key_heads * d])
                                                  for n in "kv"] + [("mask", FLOAT, list(t))]
    return Model(nodes, ins, [("y", FLOAT, [1, t[0], heads * d])], [([q, k, v, mask], [out])], constants)


def attention_blocks():
    """More keys than one block holds; a query that sees only the last of them, one that sees none."""
    return attention_of(15, 600, 4, 2, 7, lambda i, j: j < 580 + i if i < 13 else j > 590 and i == 13)


def attention_decode():
    """One query against a cache."""
    return attention_of(1, 45, 6, 2, 20, lambda i, j: j != 3)


def tied_words():
    """A table that is looked up and multiplied with; large enough to be stored once. The products are less than the
    one that is added, so that
    none is the small rest of large terms, which no order of 512 additions in f32 gets right to 1e-5."""
    words, d, at = 520, 512, 519
    table = [[v / 16 for v in row] for row in numbers(78, words, d)]
    y = [[sum(a * b for a, b in zip(table[at], row)) + 1.0 for row in table]]
    return Model([node("Gather", ["table", "id"], ["x"]),
                  node("Gemm", ["x", "table", "one"], ["y"], transB=1)], [("id", INT64, [1])],
                 [("y", FLOAT, [1, words])], [([[at]], [y])],
                 [tensor("table", FLOAT, table), tensor("one", FLOAT, 1.0)])


def few_columns():
    """One row times few columns that are no constants, as they lie and transposed."""
    k, n = 300, 10
    x, w, v = numbers(81, 1, k), numbers(82, k, n), numbers(83, n, k)
    return Model([node("MatMul", ["x", "w"], ["y"]),
                  node("Gemm", ["x", "v"], ["z"], transB=1)], [("x", FLOAT, [1, k]), ("w", FLOAT, [k, n]),
                                                               ("v", FLOAT, [n, k])], [("y", FLOAT, [1, n]),
                                                                                       ("z", FLOAT, [1, n])],
                 [([x, w, v], [[[sum(x[0][i] * w[i][j] for i in range(k))
                                 for j in range(n)]], [[sum(a * b for a, b in zip(x[0], v[j])) for j in range(n)]]])])


def softmax_of_large():
    """Scaled by a factor, all the same and so large that a product which is not rounded before the maximum is
    subtracted gives e^100."""
    n = 72
    return Model(
        [node("Mul", ["x", "scale"], ["s"]), node("Softmax", ["s"], ["y"], axis=1)], [("x", FLOAT, [2, n])],
        [("y", FLOAT, [2, n])], [([[[2.72305e12] * n, [-7.1e9] * n]], [[[1 / n] * n] * 2])],
        [tensor("scale", FLOAT, 0.00591716)])


# ---------------------------------------------------------------- views
def response_norm():
    """LRN with the channels first and, between transposes, last, where the window's ends have loops of their own."""
    first, last = numbers(45, 2, 37, 3), numbers(46, 2, 3, 37)

    def norm(x, c):
        return x[c] / (2 + 0.5 / 5 * sum(v * v for v in x[max(c - 2, 0):c + 3])) ** 0.75

    outs = [
        build((2, 37, 3), lambda n, c, i: norm([first[n][k][i] for k in range(37)], c)),
        build((2, 3, 37), lambda n, i, c: norm(last[n][i], c))
    ]
    settings = {"size": 5, "alpha": 0.5, "beta": 0.75, "bias": 2.0}
    nodes = [
        node("LRN", ["x"], ["y"], **settings),
        node("Transpose", ["u"], ["t"], perm=[0, 2, 1]),
        node("LRN", ["t"], ["l"], **settings),
        node("Transpose", ["l"], ["v"], perm=[0, 2, 1])
    ]
    return Model(nodes, [("x", FLOAT, [2, 37, 3]), ("u", FLOAT, [2, 3, 37])], [("y", FLOAT, [2, 37, 3]),
                                                                               ("v", FLOAT, [2, 3, 37])],
                 [([first, last], outs)])


def channel_shuffle():
    """Four groups of nine channels change places with the channels, and back: loops over both, without divisions."""
    x = numbers(47, 2, 3, 36)
    sizes = {"a": [2, 3, 4, 9], "b": [2, 3, 36], "c": [2, 3, 9, 4]}
    nodes = [
        node("Reshape", ["x", "a"], ["x4"]),
        node("Transpose", ["x4"], ["x9"], perm=[0, 1, 3, 2]),
        node("Reshape", ["x9", "b"], ["s"]),
        node("Relu", ["s"], ["y"]),
        node("Reshape", ["x", "c"], ["z9"]),
        node("Transpose", ["z9"], ["z4"], perm=[0, 1, 3, 2]),
        node("Reshape", ["z4", "b"], ["z"])
    ]
    outs = [
        build((2, 3, 36), lambda n, i, c: relu(x[n][i][c % 4 * 9 + c // 4])),
        build((2, 3, 36), lambda n, i, c: x[n][i][c % 9 * 4 + c // 9])
    ]
    return Model(nodes, [("x", FLOAT, [2, 3, 36])], [("y", FLOAT, [2, 3, 36]), ("z", FLOAT, [2, 3, 36])], [([x], outs)],
                 [tensor(n, INT64, v) for n, v in sizes.items()])


def view_chain():
    """Channel shuffle, then a flatten: no element changes, only its place."""
    x = numbers(81, 2, 6, 3, 4)
    shuffled = build((2, 6, 3, 4), lambda n, c, i, j: x[n][(c % 2) * 3 + c // 2][i][j])
    flat = [flatten(s)[0] for s in shuffled]
    nodes = [
        node("Reshape", ["x", "five"], ["a"]),
        node("Transpose", ["a"], ["b"], perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["b", "four"], ["c"]),
        node("Flatten", ["c"], ["d"]),
        node("Unsqueeze", ["d", "one"], ["e"]),
        node("Neg", ["e"], ["y"])
    ]
    return Model(
        nodes, [("x", FLOAT, [2, 6, 3, 4])], [("y", FLOAT, [2, 1, 72])], [([x], [[[[-v for v in f]] for f in flat]])],
        [tensor("five", INT64, [2, 2, 3, 3, 4]),
         tensor("four", INT64, [0, -1, 3, 4]),
         tensor("one", INT64, [1])])


def slice_negative_steps():
    x = numbers(91, 5, 8)
    out = [[x[i][j] for j in range(7, 0, -3)] for i in (3, 2, 1)]
    nodes = [node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"])]
    return Model(nodes, [("x", FLOAT, [5, 8])], [("y", FLOAT, [3, 3])], [([x], [out])],
                 [tensor("starts", INT64, [-2, 100]), tensor("ends", INT64, [0, 0]), tensor("axes", INT64, [0, -1]),
                  tensor("steps", INT64, [-1, -3])])


def pad_modes():
    x = numbers(101, 3, 4)

    def pick(index, size, mode):
        if mode == "edge":
            return min(max(index, 0), size - 1)
        period = 2 * size - 2
        index %= period
        return index if index < size else period - index
    outs = [build((6, 7), lambda i, j: x[i - 1][j - 2] if 0 <= i - 1 < 3 and 0 <= j - 2 < 4 else 1.5)]
    outs += [build((6, 7), lambda i, j, m=m: x[pick(i - 1, 3, m)][pick(j - 2, 4, m)]) for m in ("edge", "reflect")]
    nodes = [node("Pad", ["x", "pads", "fill"], ["a"]), node("Pad", ["x", "pads"], ["b"], mode="edge"),
             node("Pad", ["x", "pads"], ["c"], mode="reflect")]
    return Model(nodes, [("x", FLOAT, [3, 4])], [(n, FLOAT, [6, 7]) for n in "abc"], [([x], outs)],
                 [tensor("pads", INT64, [1, 2, 2, 1]), tensor("fill", FLOAT, 1.5)])


def dense_block():
    """Each layer reads all maps before it. The concatenations are columns of the last one, also to whoever reads them
    in windows, flat or as a product."""
    h, wide, first, growth, depth = 5, 6, 8, 4, 4
    maps = numbers(61, 2, first, h, wide)
    x, nodes, weights, names, outs, kinds = maps, [], [], ["x"], [], []

    def convolved(of, w, size):
        def element(n, o, i, j):
            taps = [(u - size // 2, v - size // 2) for u, v in product(range(size), repeat=2)]
            return sum(of[n][c][i + u][j + v] * w[o][c][u + size // 2][v + size // 2] for c in range(len(w[0]))
                       for u, v in taps if 0 <= i + u < h and 0 <= j + v < wide)
        return build((2, len(w), h, wide), element)

    def output(name, value, shape):
        outs.append(value)
        kinds.append((name, FLOAT, shape))
    for k in range(depth):
        count = first + k * growth
        w = numbers(62 + k, growth, count, 3, 3, low=-0.1, high=0.1)
        read = names[0] if k == 0 else f"c{k}"
        if k:
            nodes.append(node("Concat", list(names), [read], axis=1))
        if k % 2:
            nodes += [node("Relu", [read], [f"r{k}"]), node("Conv", [f"r{k}", f"w{k}"], [f"y{k}"], pads=[1, 1, 1, 1])]
        else:
            nodes.append(node("Conv", [read, f"w{k}"], [f"y{k}"], pads=[1, 1, 1, 1]))
        weights.append(tensor(f"w{k}", FLOAT, w))
        new = convolved([[[[relu(v) for v in r] for r in m] for m in n] for n in maps] if k % 2 else maps, w, 3)
        if k == 1:
            nodes.append(node("MaxPool", [read], ["pooled"], kernel_shape=[2, 2]))
            output(
                "pooled",
                build((2, count, h - 1, wide - 1),
                      lambda n, c, i, j, m=maps: max(m[n][c][i + u][j + v] for u in (0, 1) for v in (0, 1))),
                [2, count, h - 1, wide - 1])
        if k == 2:
            nodes += [
                node("Transpose", [read], ["last"], perm=[0, 2, 3, 1]),
                node("Reshape", ["last", "rows"], ["flat"]),
                node("Neg", ["flat"], ["minus"])
            ]
            weights.append(tensor("rows", INT64, [-1, count]))
            output("minus", [[-maps[n][c][i][j] for c in range(count)]
                             for n, i, j in product(range(2), range(h), range(wide))], [2 * h * wide, count])
        if k == 3:
            point = numbers(71, 5, count, 1, 1)
            nodes.append(node("Conv", [read, "point"], ["product"]))
            weights.append(tensor("point", FLOAT, point))
            output("product", convolved(maps, point, 1), [2, 5, h, wide])
        maps = [m + n for m, n in zip(maps, new)]
        names.append(f"y{k}")
    nodes += [node("Concat", list(names), ["all"], axis=1), node("Relu", ["all"], ["y"])]
    output("y", [[[[relu(v) for v in r] for r in m] for m in n] for n in maps], [2, first + depth * growth, h, wide])
    return Model(nodes, [("x", FLOAT, [2, first, h, wide])], kinds, [([x], outs)], weights)


def concat_split():
    x, y = numbers(111, 2, 3), numbers(112, 2, 4)
    joined = [a + b for a, b in zip(x, y)]
    nodes = [node("Concat", ["x", "y"], ["j"], axis=1), node("Split", ["j", "sizes"], ["a", "b", "c"], axis=1),
             node("Mul", ["a", "c"], ["z"])]
    return Model(nodes, [("x", FLOAT, [2, 3]), ("y", FLOAT, [2, 4])], [("b", FLOAT, [2, 3]), ("z", FLOAT, [2, 2])],
                 [([x, y], [[r[2:5] for r in joined], [[r[0] * r[5], r[1] * r[6]] for r in joined]])],
                 [tensor("sizes", INT64, [2, 3, 2])])


def broadcasting():
    x, y, z = numbers(121, 3, 1, 5), numbers(122, 4, 1), numbers(123)
    out = build((3, 4, 5), lambda i, j, k: (x[i][0][k] - y[j][0]) * z)
    nodes = [node("Sub", ["x", "y"], ["d"]), node("Mul", ["d", "z"], ["e"])]
    return Model(nodes, [("x", FLOAT, [3, 1, 5]), ("y", FLOAT, [4, 1]), ("z", FLOAT, [])], [("e", FLOAT, [3, 4, 5])],
                 [([x, y, z], [out])])


# ---------------------------------------------------------------- indices, reductions, choices
def gather_family():
    x, index = numbers(131, 5, 4), [[0, -1, 3], [4, 2, -5]]
    rows = [[x[i] for i in line] for line in index]
    picked = build((5, 2), lambda i, j: x[i][[1, 3][j] if i % 2 else 0])
    chosen = build((5, 2), lambda i, j: [1, 3][j] if i % 2 else 0)
    nodes = [node("Gather", ["x", "i"], ["y"], axis=0), node("GatherElements", ["x", "e"], ["z"], axis=1)]
    return Model(nodes, [("x", FLOAT, [5, 4]), ("i", INT64, [2, 3]), ("e", INT64, [5, 2])],
                 [("y", FLOAT, [2, 3, 4]), ("z", FLOAT, [5, 2])], [([x, index, chosen], [rows, picked])])


def reductions():
    x = numbers(141, 3, 4, 5)
    total = [[sum(x[i][j][k] for j in range(4)) for k in range(5)] for i in range(3)]
    mean = [[[sum(flatten(m)[0]) / 20]] for m in x]
    nodes = [node("ReduceSum", ["x", "one"], ["a"], keepdims=0), node("ReduceMean", ["x", "both"], ["b"]),
             node("ReduceMax", ["x"], ["c"], keepdims=0), node("ReduceL2", ["x", "one"], ["d"], keepdims=0)]
    norm = [[math.sqrt(sum(x[i][j][k] ** 2 for j in range(4))) for k in range(5)] for i in range(3)]
    return Model(nodes, [("x", FLOAT, [3, 4, 5])], [("a", FLOAT, [3, 5]), ("b", FLOAT, [3, 1, 1]), ("c", FLOAT, []),
                                                    ("d", FLOAT, [3, 5])],
                 [([x], [total, mean, max(flatten(x)[0]), norm])],
                 [tensor("one", INT64, [1]), tensor("both", INT64, [1, 2])])


def reductions_of_reductions():
    """The largest log-probability of each row and of a whole vector: three reductions, each over terms that need the
    one before."""
    x, v = numbers(145, 5, 9, low=-4, high=4), numbers(146, 21, low=-4, high=4)

    def peak(row):
        m = max(row)
        return max(a - m - math.log(sum(math.exp(b - m) for b in row)) for a in row)
    nodes = [node("LogSoftmax", ["x"], ["l"], axis=1), node("ReduceMax", ["l", "one"], ["y"], keepdims=0),
             node("LogSoftmax", ["v"], ["k"], axis=0), node("ReduceMax", ["k"], ["z"], keepdims=0)]
    return Model(nodes, [("x", FLOAT, [5, 9]), ("v", FLOAT, [21])], [("y", FLOAT, [5]), ("z", FLOAT, [])],
                 [([x, v], [[peak(r) for r in x], peak(v)])], [tensor("one", INT64, [1])])


def where_compare():
    x, y = numbers(151, 4, 6), numbers(152, 6)
    out = build((4, 6), lambda i, j: x[i][j] if x[i][j] > y[j] and not x[i][j] < -0.5 else y[j] * y[j])
    nodes = [
        node("Greater", ["x", "y"], ["g"]),
        node("Less", ["x", "half"], ["l"]),
        node("Not", ["l"], ["n"]),
        node("And", ["g", "n"], ["c"]),
        node("Mul", ["y", "y"], ["s"]),
        node("Where", ["c", "x", "s"], ["z"])
    ]
    return Model(nodes, [("x", FLOAT, [4, 6]), ("y", FLOAT, [6])], [("z", FLOAT, [4, 6])], [([x, y], [out])],
                 [tensor("half", FLOAT, -0.5)])


def argmax_ties():
    x = [[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 0.0, 5.0], [-1.0, -4.0, -4.0, -2.0]]
    nodes = [
        node("ArgMax", ["x"], ["a"], axis=1, keepdims=0),
        node("ArgMax", ["x"], ["b"], axis=1, select_last_index=1),
        node("ArgMin", ["x"], ["c"], axis=0, keepdims=0)
    ]
    return Model(nodes, [("x", FLOAT, [3, 4])], [("a", INT64, [3]), ("b", INT64, [3, 1]), ("c", INT64, [4])],
                 [([x], [[1, 0, 0], [[2], [3], [0]], [2, 2, 2, 2]])])


# ---------------------------------------------------------------- types
def top_k():
    """Lines longer than a run of insertion sort, with ties: equal elements come in their order, both ways."""
    n = 41
    x = build((2, n, 3), lambda *i: float(round(at(numbers(221, 2, n, 3, low=-9, high=9), i))))
    order = build((2, 3), lambda b, c: sorted(range(n), key=lambda i: -x[b][i][c]))
    z = nest([int(v) % 251 - 125 for v in numbers(222, 2 * n, low=0, high=1000)], (2, n))
    low = [sorted(range(n), key=lambda i: z[b][i]) for b in range(2)]
    nodes = [
        node("TopK", ["x", "few"], ["v", "i"], axis=1),
        node("TopK", ["z", "all"], ["unused", "j"], axis=-1, largest=0)
    ]
    return Model(nodes, [("x", FLOAT, [2, n, 3]), ("z", INT8, [2, n])],
                 [("v", FLOAT, [2, 20, 3]), ("i", INT64, [2, 20, 3]), ("j", INT64, [2, n])], [([x, z], [
                     build((2, 20, 3), lambda b, k, c: x[b][order[b][c][k]][c]),
                     build((2, 20, 3), lambda b, k, c: order[b][c][k]), low
                 ])], [tensor("few", INT64, [20]), tensor("all", INT64, [n])])


def attention_causal():
    """Masks that hide the keys behind a query, as exporters write them: chosen or added, -inf or the least float; keys
    behind those are not computed. One row of a finite mask hides all keys, which then all count the same."""
    n, d, least = 70, 8, -3.4028234663852886e38
    q, k, v = (numbers(seed, 2, n, d) for seed in (231, 232, 233))

    def attend(mask, turn):
        scores = [[[math.fsum(a * b for a, b in zip(x[turn:] + x[:turn], y)) for y in k[h]] for x in q[h]]
                  for h in range(2)]

        def row(h, i):
            line = [mask(i, j, s) for j, s in enumerate(scores[h][i])]
            e = [math.exp(s - max(line)) for s in line]
            return [math.fsum(p * v[h][j][c] for j, p in enumerate(e)) / math.fsum(e) for c in range(d)]
        return [[row(h, i) for i in range(n)] for h in range(2)]

    seen = build((n, n), lambda i, j: j <= i + 3)
    holed = build((n, n), lambda i, j: j <= i and i != 5)
    added = build((n, n), lambda i, j: 0.25 if j <= i else -math.inf)
    least_added = build((n, n), lambda i, j: 0.0 if j <= i else least)
    nodes, outputs = [node("Transpose", ["k"], ["t"], perm=[0, 2, 1])], []
    for turn, (name, op, inputs) in enumerate((
            ("a", "Where", ["seen", "s", "inf"]), ("b", "Where", ["seen", "s", "least"]),
            ("c", "Where", ["holed", "s", "least"]), ("d", "Add", ["s", "added"]), ("e", "Add", ["s", "least_added"]))):
        nodes += [node("Gather", ["q", f"turn{turn}"], ["q" + name], axis=2),
                  node("MatMul", ["q" + name, "t"], ["s" + name]),
                  node(op, ["s" + name if i == "s" else i for i in inputs], ["m" + name]),
                  node("Softmax", ["m" + name], ["p" + name], axis=-1), node("MatMul", ["p" + name, "v"], ["y" + name])]
        outputs.append(("y" + name, FLOAT, [2, n, d]))
    masks = [lambda i, j, s: s if seen[i][j] else -math.inf, lambda i, j, s: s if seen[i][j] else least,
             lambda i, j, s: s if holed[i][j] else least, lambda i, j, s: s + added[i][j],
             lambda i, j, s: s + least_added[i][j]]
    results = [attend(mask, turn) for turn, mask in enumerate(masks)]
    return Model(nodes, [(name, FLOAT, [2, n, d]) for name in "qkv"], outputs, [([q, k, v], results)],
                 [tensor("seen", BOOL, seen), tensor("holed", BOOL, holed), tensor("inf", FLOAT, -math.inf),
                  tensor("least", FLOAT, least), tensor("added", FLOAT, added),
                  tensor("least_added", FLOAT, least_added)] +
                 [tensor(f"turn{i}", INT64, [(i + j) % d for j in range(d)]) for i in range(len(masks))])


def top_few():
    """Few of many, both ways: ties in their order, zeros of both signs tie, NaN is above every number; of f16, of
    integers with and without a sign, along another axis than the last, up to half and all but one."""
    n = 211
    odd = {5: math.nan, 17: -0.0, 18: 0.0, 60: math.inf, 61: math.inf, 90: -math.inf, 150: math.nan, 160: -0.0}
    x = build((2, n, 3), lambda b, i, c: odd.get(i - b, round(numbers(i * 7 + c, 1, low=-5, high=5)[0] * 2) / 2))
    z = nest([int(v) for v in numbers(223, 2 * n, low=-128, high=127.99)], (2, n))
    u = nest([int(v) % 256 for v in numbers(224, n, low=0, high=9999)], (n, ))

    def first(line, k, largest):
        def key(i):
            return (not largest, 0) if math.isnan(line[i]) else (largest, -line[i] if largest else line[i])
        return sorted(range(len(line)), key=key)[:k]

    nodes, outputs, results = [node("Cast", ["x"], ["h"], to=FLOAT16)], [], []
    counts = (1, 4, 9, 105, 210)
    for k in counts:
        for source, dtype, largest in (("x", FLOAT, 1), ("x", FLOAT, 0), ("h", FLOAT16, 0), ("z", INT8, 0),
                                       ("z", INT8, 1), ("u", UINT8, 1)):
            name = f"{source}{k}{largest}"
            nodes.append(node("TopK", [source, f"k{k}"], [f"v{name}", f"i{name}"], axis=0 if source == "u" else 1,
                              largest=largest))
            lines = z if source == "z" else [[[x[b][i][c] for i in range(n)] for c in range(3)] for b in range(2)]
            if source == "u":
                at = first(u, k, largest)
                values, shape = [u[i] for i in at], [k]
            elif source == "z":
                at = [first(line, k, largest) for line in lines]
                values, shape = [[line[i] for i in order] for line, order in zip(z, at)], [2, k]
            else:
                order = [[first(line, k, largest) for line in block] for block in lines]
                at = [[[order[b][c][j] for c in range(3)] for j in range(k)] for b in range(2)]
                values = [[[x[b][at[b][j][c]][c] for c in range(3)] for j in range(k)] for b in range(2)]
                shape = [2, k, 3]
            outputs += [(f"v{name}", dtype, shape), (f"i{name}", INT64, shape)]
            results += [values, at]
    return Model(nodes, [("x", FLOAT, [2, n, 3]), ("z", INT8, [2, n]), ("u", UINT8, [n])], outputs,
                 [([x, z, u], results)], [tensor(f"k{k}", INT64, [k]) for k in counts])


def casts():
    x = [[-2.7, -0.5, 0.0, 0.5], [1.5, 99.9, 3.0e2, -1.0e2]]
    x = nest(list(struct.unpack("8f", struct.pack("8f", *flatten(x)[0]))), (2, 4))
    ints = [[int(v) for v in r] for r in x]
    nodes = [
        node("Cast", ["x"], ["i"], to=INT32),
        node("Cast", ["x"], ["b"], to=BOOL),
        node("Cast", ["i"], ["l"], to=INT64),
        node("Cast", ["b"], ["f"], to=FLOAT)
    ]
    return Model(nodes, [("x", FLOAT, [2, 4])], [("i", INT32, [2, 4]), ("b", BOOL, [2, 4]), ("l", INT64, [2, 4]),
                                                 ("f", FLOAT, [2, 4])],
                 [([x], [ints, [[v != 0 for v in r] for r in x], ints, [[float(v != 0) for v in r] for r in x]])])


def brain_steps():
    """Each tensor of bf16 is rounded to it, in loops alone: no kernel of a template is there."""
    def brain(v):
        bits, = struct.unpack("<I", struct.pack("<f", v))
        return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000))[0]
    x, y = ([brain(v) for v in numbers(seed, 24)] for seed in (94, 95))
    nodes = [node("Mul", ["x", "y"], ["a"]), node("Add", ["a", "x"], ["b"]), node("Cast", ["b"], ["wide"], to=FLOAT)]
    b = [brain(brain(u * v) + u) for u, v in zip(x, y)]
    return Model(nodes, [("x", BFLOAT16, [24]), ("y", BFLOAT16, [24])], [("b", BFLOAT16, [24]), ("wide", FLOAT, [24])],
                 [([x, y], [b, b])])


def half_steps():
    """Each tensor of f16 is rounded to it, stored or fused, a product of matrices and a softmax's steps as well."""
    n = 24

    def half(v):
        return struct.unpack("e", struct.pack("e", v))[0]

    x, y, w = (nest([half(v) for v in numbers(seed, size)], shape)
               for seed, size, shape in ((91, n, (n, )), (92, n, (n, )), (93, n * 4, (n, 4))))
    chain = [half(half(half(half(a * b) + a) - b) * b) for a, b in zip(x, y)]
    product = [half(math.fsum(x[k] * w[k][j] for k in range(n))) for j in range(4)]
    e = [half(math.exp(half(v - max(x)))) for v in x]
    total = half(math.fsum(e))
    nodes = [
        node("Mul", ["x", "y"], ["a"]),
        node("Add", ["a", "x"], ["b"]),
        node("Sub", ["b", "y"], ["c"]),
        node("Mul", ["c", "y"], ["chain"]),
        node("MatMul", ["x", "w"], ["p"]),
        node("Mul", ["p", "p"], ["square"]),
        node("Softmax", ["x"], ["soft"], axis=0)
    ]
    return Model(nodes, [("x", FLOAT16, [n]), ("y", FLOAT16, [n])], [("chain", FLOAT16, [n]), ("square", FLOAT16, [4]),
                                                                     ("soft", FLOAT16, [n])],
                 [([x, y], [chain, [half(v * v) for v in product], [half(v / total) for v in e]])],
                 [tensor("w", FLOAT16, w)])


def half_rows():
    """Long chains of f16, whose results are f16 and f32, from subnormal numbers to infinity; and one along columns."""
    n = 317

    def half(v):
        return math.copysign(math.inf, v) if abs(v) >= 65520 else struct.unpack("e", struct.pack("e", v))[0]

    x, y = ([half(v * 2.0**(i % 37 - 20)) for i, v in enumerate(numbers(seed, n))] for seed in (96, 97))
    square = [half(a * a) for a in x]
    total = [half(a + b) for a, b in zip(square, y)]
    grid = nest(x[:300], (15, 20))
    nodes = [node("Mul", ["x", "x"], ["square"]), node("Add", ["square", "y"], ["total"]),
             node("Cast", ["square"], ["wide"], to=FLOAT), node("Mul", ["y", "total"], ["last"]),
             node("Transpose", ["g"], ["t"], perm=[1, 0]), node("Add", ["t", "t"], ["turned"])]
    return Model(nodes, [("x", FLOAT16, [n]), ("y", FLOAT16, [n]), ("g", FLOAT16, [15, 20])],
                 [("total", FLOAT16, [n]), ("wide", FLOAT, [n]), ("last", FLOAT16, [n]), ("turned", FLOAT16, [20, 15])],
                 [([x, y, grid], [total, square, [half(a * b) for a, b in zip(y, total)],
                                  [[half(2 * grid[i][j]) for i in range(15)] for j in range(20)]])])


def complex_moves():
    """Complex numbers are moved and chosen; no operator computes with them."""
    inputs, nodes, outputs, values, results = [], [], [], [], []
    for tag, dtype in (("single", COMPLEX64), ("double", COMPLEX128)):
        x = build((2, 3), lambda i, j: complex(i + 1, j - 1))
        y = build((2, 3), lambda i, j: complex(j, 0 if i else 0.5))
        choice = [[True, False, True], [False, True, False]]
        nodes += [
            node("Transpose", [f"{tag}_x"], [f"{tag}_t"]),
            node("Concat", [f"{tag}_t", f"{tag}_t"], [f"{tag}_c"], axis=0),
            node("Gather", [f"{tag}_c", "at"], [f"{tag}_g"], axis=0),
            node("Pad", [f"{tag}_x", "pads"], [f"{tag}_p"]),
            node("Where", ["choice", f"{tag}_x", f"{tag}_y"], [f"{tag}_w"]),
            node("Reshape", [f"{tag}_w", "flat"], [f"{tag}_f"])
        ]
        inputs += [(f"{tag}_x", dtype, [2, 3]), (f"{tag}_y", dtype, [2, 3])]
        outputs += [(f"{tag}_g", dtype, [3, 2]), (f"{tag}_p", dtype, [2, 5]), (f"{tag}_f", dtype, [6])]
        t = [list(c) for c in zip(*x)]
        values += [x, y]
        results += [[t[0], t[2], t[1]], [[0, *row, 0] for row in x],
                    [(x if choice[i][j] else y)[i][j] for i, j in product(range(2), range(3))]]
    constants = [
        tensor("at", INT64, [3, 5, 1]),
        tensor("pads", INT64, [0, 1, 0, 1]),
        tensor("flat", INT64, [-1]),
        tensor("choice", BOOL, choice)
    ]
    return Model(nodes, inputs, outputs, [(values, results)], constants)


def fourier():
    """Lengths of one stage and of several, a prime that goes by a matrix, real and complex, both ways, halves of
    spectra."""
    nodes, inputs, outputs, values, results = [], [], [], [], []

    def transform(x, sign):
        n = len(x)
        return [sum(v * cmath.exp(sign * 2j * math.pi * (i * k % n) / n) for i, v in enumerate(x)) for k in range(n)]

    def pairs(z):
        return [[v.real, v.imag] for v in z]
    for n in (5, 8, 12, 17, 30):
        x, z = numbers(230 + n, n), [complex(*v) for v in numbers(260 + n, n, 2)]
        half = [complex(v.real, v.imag * (0 < k < n / 2)) for k, v in enumerate(z[:n // 2 + 1])]
        whole = half + [half[n - k].conjugate() for k in range(n // 2 + 1, n)]
        for name, x_in, y, attributes in (("real", [[v] for v in x], pairs(transform(x, -1)),
                                           {}), ("half", [[v] for v in x], pairs(transform(x, -1)[:n // 2 + 1]),
                                                 {"onesided": 1}), ("complex", pairs(z), pairs(transform(z, -1)), {}),
                                          ("inverse", pairs(z), pairs([v / n for v in transform(z, 1)]),
                                           {"inverse": 1}), ("back", pairs(half), [[v.real / n]
                                                                                   for v in transform(whole, 1)],
                                                             {"inverse": 1, "onesided": 1})):
            nodes.append(node("DFT", [f"x_{name}{n}", f"n{n}", "axis"], [f"y_{name}{n}"], **attributes))
            inputs.append((f"x_{name}{n}", FLOAT, [1, *flatten(x_in)[1]]))
            outputs.append((f"y_{name}{n}", FLOAT, [1, *flatten(y)[1]]))
            values.append([x_in])
            results.append([y])
    sizes = [tensor(f"n{n}", INT64, n) for n in (5, 8, 12, 17, 30)]
    return Model(nodes, inputs, outputs, [(values, results)], [tensor("axis", INT64, 1), *sizes], opset=20)


def integer_arithmetic():
    """Truncating division, both remainders, wrapping bytes."""
    x, y = [-7, 7, -8, 100, -2147483647], [2, -2, 3, 7, 10]
    u, v = [250, 3, 128, 255], [10, 200, 128, 255]
    div = [int(math.copysign(abs(a) // abs(b), a * b)) if a else 0 for a, b in zip(x, y)]
    nodes = [node("Div", ["x", "y"], ["d"]), node("Mod", ["x", "y"], ["m"]), node("Mod", ["x", "y"], ["f"], fmod=1),
             node("Add", ["u", "v"], ["s"])]
    return Model(nodes, [("x", INT32, [5]), ("y", INT32, [5]), ("u", UINT8, [4]), ("v", UINT8, [4])],
                 [("d", INT32, [5]), ("m", INT32, [5]), ("f", INT32, [5]), ("s", UINT8, [4])],
                 [([x, y, u, v], [div, [a % b for a, b in zip(x, y)], [a - b * q for a, b, q in zip(x, y, div)],
                                  [(a + b) % 256 for a, b in zip(u, v)]])])


def strips():
    """Two images through a wide convolution, a depthwise, a narrow product and a convolution: large enough to go by
    strips."""
    wide, height, width = 48, 21, 36
    x, e, d, p = numbers(14, 2, 2, height, width), numbers(15, wide, 2, 3,
                                                           1), numbers(16, wide, 3, 3,
                                                                       low=0), numbers(17, 5, wide, low=0)
    q = numbers(18, 3, 5, 3, 3, low=0)

    def wider(n, c, i, j):
        return relu(
            sum(x[n][k][i + u - 1][j] * e[c][k][u][0] for k in range(2) for u in range(3) if 0 <= i + u - 1 < height))
    first = build((2, wide, height, width), wider)

    def depthwise(n, c, i, j):
        rows, taps = first[n][c], d[c]
        return sum(rows[2 * i + u - 1][2 * j + v - 1] * taps[u][v] for u in range(3) for v in range(3)
                   if 0 <= 2 * i + u - 1 < height and 0 <= 2 * j + v - 1 < width)
    second = build((2, wide, 11, 18), depthwise)
    third = build((2, 5, 11, 18), lambda n, c, i, j: sum(second[n][k][i][j] * p[c][k] for k in range(wide)))
    out = build((2, 3, 9, 16), lambda n, c, i, j: sum(third[n][k][i + u][j + v] * q[c][k][u][v]
                                                      for k in range(5) for u in range(3) for v in range(3)))
    nodes = [node("Conv", ["x", "e"], ["a"], pads=[1, 0, 1, 0]), node("Relu", ["a"], ["b"]),
             node("Conv", ["b", "d"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], group=wide),
             node("Conv", ["c", "p"], ["f"]), node("Conv", ["f", "q"], ["y"])]
    weights = [tensor("e", FLOAT, e), tensor("d", FLOAT, [[m] for m in d]),
               tensor("p", FLOAT, [[[[v]] for v in row] for row in p]), tensor("q", FLOAT, q)]
    return Model(nodes, [("x", FLOAT, [2, 2, height, width])], [("y", FLOAT, [2, 3, 9, 16])], [([x], [out])], weights)


def strips_of_planes():
    """Two images through depthwise convolutions that keep their channels first and go plane by plane."""
    groups, height, width = 24, 40, 38
    x, v, b, w = numbers(21, 2, groups, height, width), numbers(22, groups, 3, 3), numbers(23, groups), \
        numbers(24, groups, 2, 5, low=0)

    def first(n, c, i, j):
        rows, taps = x[n][c], v[c]
        return relu(b[c] + sum(rows[i + u - 1][j + k - 1] * taps[u][k] for u in range(3) for k in range(3)
                               if 0 <= i + u - 1 < height and 0 <= j + k - 1 < width))
    mid = build((2, groups, height, width), first)

    def second(n, c, i, j):
        rows, taps = mid[n][c], w[c]
        return sum(rows[i + u][j + k - 3] * taps[u][k] for u in range(2) for k in range(5) if 0 <= j + k - 3 < width)
    out = build((2, groups, height - 1, width), second)
    nodes = [node("Conv", ["x", "v", "b"], ["c"], pads=[1, 1, 1, 1], group=groups), node("Relu", ["c"], ["r"]),
             node("Conv", ["r", "w"], ["y"], pads=[0, 3, 0, 1], group=groups)]
    return Model(nodes, [("x", FLOAT, [2, groups, height, width])], [("y", FLOAT, [2, groups, height - 1, width])],
                 [([x], [out])], [tensor("v", FLOAT, [[m] for m in v]), tensor("b", FLOAT, b),
                                  tensor("w", FLOAT, [[m] for m in w])])


def quantize_round_trip():
    """Rounds half to even and saturates."""
    x, scale = [-200.0, -1.25, -0.25, 0.0, 0.25, 0.75, 1.25, 63.0, 64.0, 500.0], 0.5
    q = [max(-128, min(127, round(v / scale) + 3)) for v in x]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    return Model(nodes, [("x", FLOAT, [10])], [("q", INT8, [10]),
                                               ("y", FLOAT, [10])], [([x], [q, [(v - 3) * scale for v in q]])],
                 [tensor("s", FLOAT, scale), tensor("z", INT8, 3)])


# ---------------------------------------------------------------- what a file can hold
def external_data():
    w = numbers(161, 6, 4)
    x = numbers(162, 2, 6)
    out = build((2, 4), lambda i, j: sum(x[i][k] * w[k][j] for k in range(6)))
    return Model([node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [2, 6])], [("y", FLOAT, [2, 4])], [([x], [out])],
                 [tensor("w", FLOAT, w, external=("weights.bin", 64))],
                 files=[("weights.bin", bytes(64) + pack(FLOAT,
                                                         flatten(w)[0]))])


def model_function():
    """A function of the model's own, called twice with different attributes."""
    x = numbers(171, 7)
    scaled = blob(5, blob(1, "value_float") + blob(21, "by") + integer(20, 1))
    body = [
        node("Constant", [], ["k"]) + scaled,
        node("Mul", ["a", "k"], ["m"]),
        node("Sigmoid", ["m"], ["s"]),
        node("Mul", ["a", "s"], ["r"])
    ]
    calls = [
        node("ScaledSwish", ["x"], ["t"], domain="own", by=2.0),
        node("ScaledSwish", ["t"], ["y"], domain="own", by=0.5)
    ]

    def swish(v, k):
        return v / (1 + math.exp(-k * v))
    return Model(calls, [("x", FLOAT, [7])], [("y", FLOAT, [7])], [([x], [[swish(swish(v, 2), 0.5) for v in x]])],
                 functions=[function("ScaledSwish", "own", ["a"], ["r"], body, ["by"])], domains=["own"])


def shape_arithmetic():
    """What exporters write for x.view(x.shape[0], -1) and for x + arange(n): all of it folds away."""
    x = numbers(181, 3, 2, 4)
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "first"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]),
        node("Shape", ["r"], ["rs"]),
        node("Gather", ["rs", "one"], ["w"], axis=0),
        node("Range", ["zero", "w", "one"], ["i"]),
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Add", ["r", "f"], ["y"])
    ]
    out = [[v + i for i, v in enumerate(flatten(m)[0])] for m in x]
    return Model(
        nodes, [("x", FLOAT, [3, 2, 4])], [("y", FLOAT, [3, 8])], [([x], [out])],
        [tensor("zero", INT64, 0),
         tensor("one", INT64, 1),
         tensor("first", INT64, [0]),
         tensor("rest", INT64, [-1])])


def lstm_step():
    """One direction, three steps, gates in ONNX's order i o f c."""
    t, n, d, h = 3, 2, 3, 4
    x, w, r, b = numbers(191, t, n, d), numbers(192, 1, 4 * h, d), numbers(193, 1, 4 * h, h), numbers(194, 1, 8 * h)

    def sigmoid(v):
        return 1 / (1 + math.exp(-v))
    hidden, cell = build((n, h), lambda *_: 0.0), build((n, h), lambda *_: 0.0)
    steps = []
    for s in range(t):
        def gate(k, i, j):
            row = k * h + j
            return (sum(x[s][i][c] * w[0][row][c]
                        for c in range(d)) + sum(hidden[i][c] * r[0][row][c]
                                                 for c in range(h)) + b[0][row] + b[0][4 * h + row])

        cell = build(
            (n, h),
            lambda i, j: sigmoid(gate(2, i, j)) * cell[i][j] + sigmoid(gate(0, i, j)) * math.tanh(gate(3, i, j)))
        hidden = build((n, h), lambda i, j: sigmoid(gate(1, i, j)) * math.tanh(cell[i][j]))
        steps.append([hidden])
    return Model([node("LSTM", ["x", "w", "r", "b"], ["y", "yh", "yc"], hidden_size=h)],
                 [("x", FLOAT, [t, n, d])], [("y", FLOAT, [t, 1, n, h]), ("yh", FLOAT, [1, n, h]),
                                             ("yc", FLOAT, [1, n, h])], [([x], [steps, [hidden], [cell]])],
                 [tensor("w", FLOAT, w), tensor("r", FLOAT, r),
                  tensor("b", FLOAT, b)])


def branch():
    """If on an input: control flow that has to stay in the code."""
    x = numbers(201, 4)
    out = value_info("o", FLOAT, [4])
    then = graph([node("Exp", ["x"], ["o"])], [], [out], name="then")
    other = graph([node("Neg", ["x"], ["o"])], [], [out], name="else")
    nodes = [
        node("If", ["c"], ["y"]) + blob(5, attribute("then_branch", ("graph", then))) +
        blob(5, attribute("else_branch", ("graph", other)))
    ]
    return Model(nodes, [("c", BOOL, []), ("x", FLOAT, [4])], [("y", FLOAT, [4])],
                 [([True, x], [[math.exp(v) for v in x]]), ([False, x], [[-v for v in x]])])


def branch_captures():
    """What a branch copies from outside: a view, a constant, zeros, and parts of a concatenation."""
    x, k, w = numbers(202, 2, 3), numbers(203, 2, 2), numbers(204, 3, 2)
    outs = [value_info("o", FLOAT, [5, 2]), value_info("p", FLOAT, [3, 2])]
    then = graph([node("Concat", ["t", "k"], ["o"], axis=0), node("Identity", ["t"], ["p"])], [], outs, name="then")
    other = graph([node("Identity", ["zeros"], ["o"]), node("Identity", ["w"], ["p"])], [], outs, name="else")
    nodes = [
        node("Transpose", ["x"], ["t"]),
        node("If", ["c"], ["y", "q"], then_branch=("graph", then), else_branch=("graph", other)),
        node("Add", ["q", "t"], ["z"])
    ]
    t = build((3, 2), lambda i, j: x[j][i])
    zeros = build((5, 2), lambda *_: 0.0)

    def sets(y, q):
        return [y, build((3, 2), lambda i, j: q[i][j] + t[i][j])]
    return Model(nodes, [("c", BOOL, []), ("x", FLOAT, [2, 3])], [("y", FLOAT, [5, 2]), ("z", FLOAT, [3, 2])],
                 [([True, x], sets(t + k, t)), ([False, x], sets(zeros, w))],
                 [tensor("k", FLOAT, k), tensor("w", FLOAT, w), tensor("zeros", FLOAT, zeros)])


def loop_while():
    """No trip count, a condition computed in the body, and carried values that change places."""
    def run(a, b, limit):
        while True:
            a, b = b, [u + v for u, v in zip(a, b)]
            if not max(b) < limit:
                return [a, b]

    body = graph([
        node("Add", ["a", "b"], ["s"]),
        node("Identity", ["b"], ["t"]),
        node("ReduceMax", ["s"], ["m"], keepdims=0),
        node("Less", ["m", "limit"], ["more"])
    ], [
        value_info("i", INT64, []),
        value_info("go", BOOL, []),
        value_info("a", FLOAT, [4]),
        value_info("b", FLOAT, [4])
    ], [value_info("more", BOOL, []),
        value_info("t", FLOAT, [4]),
        value_info("s", FLOAT, [4])], name="body")
    x, y = numbers(205, 4, low=0.1), numbers(206, 4, low=0.1)
    return Model([node("Loop", ["", "", "x", "y"], ["p", "q"], body=("graph", body))],
                 [("x", FLOAT, [4]), ("y", FLOAT, [4]), ("limit", FLOAT, [])], [("p", FLOAT, [4]), ("q", FLOAT, [4])],
                 [([x, y, limit], run(x, y, limit)) for limit in (0.0, 5.0, 200.0)])


def loop_cache():
    """Rows are written into a carried table at the iteration's number and read back; the carried values are stacked
    too."""
    n, w = 20, 6
    x, row = numbers(207, n, w), numbers(208, w)
    body = graph([
        node("Unsqueeze", ["i", "axis"], ["u"]),
        node("Unsqueeze", ["u", "axis"], ["at"]),
        node("Unsqueeze", ["r", "axis"], ["update"]),
        node("ScatterND", ["table", "at", "update"], ["next"]),
        node("ReduceSum", ["next", "axis"], ["sum"], keepdims=0),
        node("Tanh", ["sum"], ["q"]),
        node("Identity", ["go"], ["on"]),
        node("Neg", ["r"], ["before"])
    ], [
        value_info("i", INT64, []),
        value_info("go", BOOL, []),
        value_info("table", FLOAT, [n, w]),
        value_info("r", FLOAT, [w])
    ], [
        value_info("on", BOOL, []),
        value_info("next", FLOAT, [n, w]),
        value_info("q", FLOAT, [w]),
        value_info("before", FLOAT, [w])
    ], name="body")
    table, rows, r = [list(line) for line in x], [], row
    for i in range(n):
        table[i] = r
        rows.append([-v for v in r])
        r = [math.tanh(sum(table[k][j] for k in range(n))) for j in range(w)]
    return Model([node("Loop", ["n", "", "x", "row"], ["last", "r", "rows"], body=("graph", body))],
                 [("x", FLOAT, [n, w]), ("row", FLOAT, [w])], [("last", FLOAT, [n, w]),
                                                               ("rows", FLOAT, [n, w])], [([x, row], [table, rows])],
                 [tensor("n", INT64, n), tensor("axis", INT64, [0])])


def scan_backwards():
    """A symbolic length, the input read from its end along axis 1, the output written from its end along the last."""
    n, w = 2, 3
    body = graph([node("Add", ["h", "x"], ["s"]),
                  node("Tanh", ["s"], ["t"]),
                  node("Neg", ["t"], ["o"])],
                 [value_info("h", FLOAT, [n, w]), value_info("x", FLOAT, [n, w])],
                 [value_info("t", FLOAT, [n, w]), value_info("o", FLOAT, [n, w])], name="body")

    def run(x, h):
        steps = []
        for t in reversed(range(len(x[0]))):
            h = build((n, w), lambda i, j: math.tanh(h[i][j] + x[i][t][j]))
            steps.insert(0, h)
        return [h, build((n, w, len(steps)), lambda i, j, t: -steps[t][i][j])]
    sets = []
    for length in (1, 5, 30):
        x, h = numbers(209, n, length, w), numbers(210, n, w)
        sets.append(([h, x], run(x, h)))
    scan = node("Scan", ["h", "x"], ["last", "y"], body=("graph", body), num_scan_inputs=1, scan_input_axes=[1],
                scan_input_directions=[1], scan_output_axes=[-1], scan_output_directions=[1])
    return Model([scan], [("h", FLOAT, [n, w]), ("x", FLOAT, [n, "length", w])], [("last", FLOAT, [n, w]),
                                                                                  ("y", FLOAT, [n, w, "length"])],
                 sets)


# ---------------------------------------------------------------- training
TRAINING = "ai.onnx.preview.training"


def gradients():
    """Of y = x^3: the first and second derivative, at x and at other values; of y = h x with h = x + 1 taken as
    independent of x."""
    x, u = [0.5, -1.5, 2.0], [3.0, 0.25, -1.0]
    nodes = [node("Mul", ["x", "x"], ["x2"]), node("Mul", ["x2", "x"], ["y"])]
    nodes += [node("Gradient", [at], [out], TRAINING, xs=["x"], y=y) for at, out, y in
              (("x", "dy", "y"), ("x", "ddy", "dy"), ("u", "dy_u", "y"), ("u", "ddy_u", "dy"))]
    nodes += [node("Add", ["x", "one"], ["h"]), node("Mul", ["h", "u"], ["hu"]), node("Mul", ["hu", "x"], ["z"]),
              node("Gradient", ["h", "x", "u"], ["dh", "dx"], TRAINING, xs=["h", "x"], zs=["u"], y="z")]
    out = [[3 * v * v for v in x], [6 * v for v in x], [3 * v * v for v in u], [6 * v for v in u],
           [v * w for v, w in zip(x, u)], [(v + 1) * w for v, w in zip(x, u)]]
    return Model(nodes, [("x", FLOAT, [3]),
                         ("u", FLOAT, [3])], [(n, FLOAT, [3]) for n in ("dy", "ddy", "dy_u", "ddy_u", "dh", "dx")],
                 [([x, u], out)], [tensor("one", FLOAT, 1.0)], domains=[TRAINING])


def optimizers():
    """A step of each of ONNX's optimizers on two tensors of different shapes, at the first update and at a later
    one."""
    shapes = ((2, 3), (4,))
    rate, norm, decay, eps, a, b, post = 0.1, 0.01, 0.3, 1e-3, 0.9, 0.7, 0.05
    names = [f"{k}{i}" for k in "xgvh" for i in range(2)]
    steps = {
        "Adagrad": ("xgh", "xh", dict(norm_coefficient=norm, decay_factor=decay, epsilon=eps)),
        "Adam": ("xgvh", "xvh", dict(norm_coefficient=norm, norm_coefficient_post=post, alpha=a, beta=b, epsilon=eps)),
        "Momentum": ("xgv", "xv", dict(norm_coefficient=norm, alpha=a, beta=b, mode="standard")),
        "Nesterov": ("xgv", "xv", dict(norm_coefficient=norm, alpha=a, beta=b, mode="nesterov"))
    }

    def step(which, t, x, g, v, h):
        g = norm * x + g
        if which == "Adagrad":
            h = h + g * g
            return [x - rate / (1 + t * decay) * g / (math.sqrt(h) + eps), h]
        if which == "Adam":
            v, h = a * v + (1 - a) * g, b * h + (1 - b) * g * g
            r = rate * math.sqrt(1 - b ** t) / (1 - a ** t) if t else rate
            return [(1 - post) * (x - r * v / (math.sqrt(h) + eps)), v, h]
        v = a * v + (b if t else 1) * g
        return [x - rate * (g + a * v if which == "Nesterov" else v), v]
    nodes, outputs, sets = [], [], []
    for which, (ins, outs, attributes) in steps.items():
        made = [f"{which}_{k}{i}" for k in outs for i in range(2)]
        nodes.append(
            node("Momentum" if which == "Nesterov" else which, ["r", "t"] + [f"{k}{i}" for k in ins for i in range(2)],
                 made, TRAINING, **attributes))
        outputs += [(n, FLOAT, list(shapes[j % 2])) for j, n in enumerate(made)]
    for t in (0, 3):
        values = [numbers(220 + j, *shapes[j % 2], low=0.1 if j > 3 else -1.0) for j in range(8)]
        results = []
        for which, (_, outs, _) in steps.items():
            each = [[step(which, t, *e) for e in zip(*(flatten(values[2 * k + i])[0] for k in range(4)))]
                    for i in range(2)]
            results += [nest([e[k] for e in each[i]], shapes[i]) for k in range(len(outs)) for i in range(2)]
        sets.append(([rate, t] + values, results))
    inputs = [("r", FLOAT, []), ("t", INT64, [])] + [(n, FLOAT, list(shapes[j % 2])) for j, n in enumerate(names)]
    return Model(nodes, inputs, outputs, sets, domains=[TRAINING])


# ---------------------------------------------------------------- sequences and optionals
def sequence_positions():
    """A sequence of any length, elements of one shape; the position is known when the program runs."""
    nodes = [
        node("SequenceAt", ["x", "p"], ["y"]),
        node("SequenceErase", ["x", "p"], ["rest"]),
        node("ConcatFromSequence", ["rest"], ["z"], axis=0),
        node("Neg", ["y"], ["minus"]),
        node("SequenceInsert", ["x", "minus", "p"], ["w"]),
        node("SequenceLength", ["w"], ["n"])
    ]
    sets = []
    for count, p in (3, 1), (2, -1), (4, 3):
        x = [numbers(80 + 10 * count + i, 2, 3) for i in range(count)]
        at = p % count
        minus = build((2, 3), lambda i, j: -x[at][i][j])
        sets.append(
            ([x, p],
             [x[at], [row for i, e in enumerate(x) if i != at for row in e], x[:at] + [minus] + x[at:], count + 1]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", several, (2, "k")), ("p", INT64, ())], [("y", FLOAT, (2, 3)), ("z", FLOAT, (None, 3)),
                                                                       ("w", several, None), ("n", INT64, ())], sets)


def sequence_ragged():
    """Elements of different shapes, mapped, with a tensor that is the same for all."""
    body = graph(
        [node("Mul", ["e", "t"], ["m"]), node("ReduceSum", ["m"], ["s"], keepdims=0)],
        [value_info("e", FLOAT, ("k", )), value_info("t", FLOAT, (1, ))],
        [value_info("m", FLOAT, ("k", )), value_info("s", FLOAT, ())], name="body")
    nodes = [node("SequenceMap", ["x", "t"], ["y", "sums"], body=("graph", body))]
    sets = []
    for lengths in (4, 1, 2), (), (3,):
        x, t = [numbers(90 + n, n) for n in lengths], [1.5]
        y = [[v * 1.5 for v in e] for e in x]
        sets.append(([x, t], [y, [sum(e) for e in y]]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", several, ("k", )), ("t", FLOAT, (1, ))], [("y", several, ("k", )),
                                                                         ("sums", several, ())], sets)


def sequence_grown():
    """A loop over a sequence that makes another one, beside a sum that it carries and numbers that it stacks."""
    body = graph([
        node("SequenceAt", ["x", "i"], ["e"]),
        node("Add", ["sum", "e"], ["sum_out"]),
        node("Mul", ["e", "e"], ["square"]),
        node("SequenceInsert", ["grown", "square"], ["grown_out"]),
        node("ReduceMax", ["e"], ["top"], keepdims=0),
        node("Identity", ["go"], ["go_out"])
    ], [
        value_info("i", INT64, ()),
        value_info("go", BOOL, ()),
        value_info("grown", ("sequence", FLOAT), None),
        value_info("sum", FLOAT, (3, ))
    ], [
        value_info("go_out", BOOL, ()),
        value_info("grown_out", ("sequence", FLOAT), None),
        value_info("sum_out", FLOAT, (3, )),
        value_info("top", FLOAT, ())
    ], name="body")
    nodes = [
        node("SequenceLength", ["x"], ["n"]),
        node("SequenceEmpty", [], ["none"], dtype=FLOAT),
        node("Loop", ["n", "", "none", "zero"], ["y", "s", "tops"], body=("graph", body)),
        node("ConcatFromSequence", ["y"], ["all"], axis=1, new_axis=1)
    ]
    sets = []
    for count in 3, 1, 20:
        x = [numbers(200 + 30 * count + i, 3) for i in range(count)]
        y = [[v * v for v in e] for e in x]
        sets.append(([x], [y, [sum(c) for c in zip(*x)], [max(e) for e in x], [list(c) for c in zip(*y)]]))
    zero = tensor("zero", FLOAT, [0.0] * 3)
    return Model(nodes, [("x", ("sequence", FLOAT), (3, ))], [("y", ("sequence", FLOAT), None), ("s", FLOAT, (3, )),
                                                              ("tops", FLOAT, (None, )), ("all", FLOAT, (3, None))],
                 sets, initializers=[zero])


def sequence_branches():
    """Which of two sequences it is, is known when the program runs."""
    def branch(name, ops):
        nodes = [node(op, ["x"], [f"{name}{i}"])
                 for i, op in enumerate(ops)] + [node("SequenceConstruct", [f"{name}0", f"{name}1"], [name])]
        return ("graph", graph(nodes, [], [value_info(name, ("sequence", FLOAT), None)], name=name))

    nodes = [
        node("If", ["c"], ["y"], then_branch=branch("yes", ("Neg", "Abs")),
             else_branch=branch("no", ("Relu", "Identity")))
    ]
    x = numbers(97, 5)
    sets = [([True, x], [[[-v for v in x], [abs(v) for v in x]]]), ([False, x], [[[relu(v) for v in x], x]])]
    return Model(nodes, [("c", BOOL, ()), ("x", FLOAT, (5,))], [("y", ("sequence", FLOAT), None)], sets)


def sequence_ragged_positions():
    """Elements of different shapes, at a position that is known when the program runs."""
    nodes = [
        node("SequenceAt", ["x", "p"], ["y"]),
        node("SequenceErase", ["x", "p"], ["rest"]),
        node("ConcatFromSequence", ["rest"], ["z"], axis=0),
        node("SequenceInsert", ["x", "v", "p"], ["w"])
    ]
    sets = []
    v = numbers(500, 1, 2)
    for p in 1, -1, 0:
        x = [numbers(501 + n, n, 2) for n in (2, 3, 1)]
        at = p % 3
        sets.append(([x, v, p], [x[at], [row for i, e in enumerate(x) if i != at for row in e], x[:at] + [v] + x[at:]]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", several, (None, 2)), ("v", FLOAT, (1, 2)), ("p", INT64, ())],
                 [("y", FLOAT, (None, 2)), ("z", FLOAT, (None, 2)), ("w", several, (None, 2))], sets)


def sequence_unequal_branches():
    """Sequences of another length in each branch."""
    def branch(name, ops):
        nodes = [node(op, ["x"], [f"{name}{i}"]) for i, op in enumerate(ops)]
        nodes.append(
            node("SequenceConstruct", [f"{name}{i}" for i in range(len(ops))], [name]
                 ) if ops else node("SequenceEmpty", [], [name], dtype=FLOAT))
        return ("graph", graph(nodes, [], [value_info(name, ("sequence", FLOAT), None)], name=name))

    nodes = [
        node("If", ["c"], ["y"], then_branch=branch("yes", ("Neg", "Abs", "Relu")),
             else_branch=branch("no", ("Identity", ))),
        node("SequenceLength", ["y"], ["n"]),
        node("If", ["c"], ["z"], then_branch=branch("some", ("Abs", "Neg")), else_branch=branch("none", ()))
    ]
    x = numbers(96, 5)
    absolute, minus = [abs(v) for v in x], [-v for v in x]
    sets = [([True, x], [[minus, absolute, [relu(v) for v in x]], 3, [absolute, minus]]), ([False, x], [[x], 1, []])]
    return Model(nodes, [("c", BOOL, ()), ("x", FLOAT, (5, ))], [("y", ("sequence", FLOAT), None), ("n", INT64, ()),
                                                                 ("z", ("sequence", FLOAT), None)], sets)


def sequence_split():
    """Parts whose sizes the program computes, and single rows of an axis whose size it is told."""
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0),
        node("SequenceInsert", ["parts", "sum"], ["more"]),
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
        node("ConcatFromSequence", ["rows"], ["again"], axis=0)
    ]
    nodes = nodes[:1] + nodes[2:3] + nodes[1:2] + nodes[3:]
    sets = []
    for a, b in (2, 3), (4, 1):
        x = [numbers(400 + 10 * a + i, 2) for i in range(a + b)]
        sets.append(([x, [a, b]], [[x[:a], x[a:], sum(map(sum, x))], x, [v for row in x for v in row]]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", FLOAT, ("rows", 2)), ("sizes", INT64, (2, ))], [("more", several, None),
                                                                               ("rows", several, (2, )),
                                                                               ("again", FLOAT, (None, ))], sets)


def sequence_strings():
    """Sequences of strings, at a position that is known when the program runs."""
    nodes = [
        node("SequenceAt", ["x", "p"], ["y"]),
        node("StringConcat", ["y", "y"], ["twice"]),
        node("SequenceInsert", ["x", "twice", "p"], ["z"]),
        node("ConcatFromSequence", ["z"], ["all"], axis=0)
    ]
    sets = []
    for p, x in (1, [["a", "bc"], ["", "def"]]), (-1, [["\u00e4", "x"], ["y", "z"], ["long", "longer"]]):
        y, at = x[p], p % len(x)
        z = x[:at] + [[v + v for v in y]] + x[at:]
        sets.append(([x, p], [y, z, sum(z, [])]))
    several = ("sequence", STRING)
    return Model(nodes, [("x", several, (2, )), ("p", INT64, ())], [("y", STRING, (2, )), ("z", several, (2, )),
                                                                    ("all", STRING, (None, ))], sets, opset=20)


def optional_ends():
    """Optional inputs that are there or not, and what is made of them."""
    yes = graph([node("OptionalGetElement", ["o"], ["inside"])], [], [value_info("inside", FLOAT, (3,))], name="yes")
    no = graph([node("Neg", ["x"], ["outside"])], [], [value_info("outside", FLOAT, (3,))], name="no")
    nodes = [
        node("OptionalHasElement", ["o"], ["has"]),
        node("If", ["has"], ["y"], then_branch=("graph", yes), else_branch=("graph", no)),
        node("Identity", ["o"], ["same"]),
        node("OptionalHasElement", ["s"], ["has_s"])
    ]
    x, o = numbers(98, 3), numbers(99, 3)
    sets = [([x, o, [[1, 2], [3]]], [o, o, True]), ([x, None, None], [[-v for v in x], None, False])]
    maybe = ("optional", FLOAT)
    return Model(nodes, [("x", FLOAT, (3,)), ("o", maybe, (3,)), ("s", ("optional", ("sequence", INT64)), (None,))],
                 [("y", FLOAT, (3,)), ("same", maybe, (3,)), ("has_s", BOOL, ())], sets)


# ---------------------------------------------------------------- images
def image_decoder():
    """Images of sizes that only their files tell: colors reversed, and their mean."""
    nodes = [node("ImageDecoder", ["file"], ["pixels"], pixel_format="BGR"), node("Cast", ["pixels"], ["f"], to=FLOAT),
             node("ReduceMean", ["f"], ["mean"], axes=[0, 1], keepdims=0)]
    sets = []
    for h, w in (3, 5), (1, 1), (7, 2):
        pixels = build((h, w, 3), lambda y, x, c: (y * 31 + x * 17 + c * 50 + h) % 256)
        reversed_ = [[p[::-1] for p in row] for row in pixels]
        mean = [sum(p[c] for row in reversed_ for p in row) / (h * w) for c in range(3)]
        flat, _ = flatten(pixels)
        sets.append(([list(f"P6 {w} {h} 255\n".encode() + bytes(flat))], [reversed_, mean]))
    return Model(nodes, [("file", UINT8, ("bytes", ))], [("pixels", UINT8, ("height", "width", 3)),
                                                         ("mean", FLOAT, (3, ))], sets, opset=20)


ALL = (conv_bn_relu_add, conv_strided_grouped, conv_planes, matmul_bias, row_times_computed, rows_of_products,
       gemm_dynamic_batch, softmax_both_axes, layer_norm, pooling, attention_written_out, attention_blocks,
       attention_decode, attention_causal, tied_words, few_columns, softmax_of_large, response_norm, channel_shuffle,
       view_chain,
       slice_negative_steps, pad_modes, dense_block, concat_split, broadcasting, gather_family, reductions,
       reductions_of_reductions, where_compare, argmax_ties, top_k, top_few, casts, half_steps, half_rows, brain_steps,
       complex_moves, fourier, strips, strips_of_planes, conv_windows, conv_few_channels,
       integer_arithmetic, quantize_round_trip,
       external_data, model_function,
       shape_arithmetic, lstm_step, branch, branch_captures, loop_while, loop_cache, scan_backwards, gradients,
       optimizers, sequence_positions, sequence_ragged, sequence_branches, sequence_ragged_positions, sequence_strings,
       sequence_grown, sequence_unequal_branches, sequence_split, optional_ends, image_decoder)

# Once more with all of the C compiler's optimisations: what goes wrong only there.
OPTIMIZED = (softmax_of_large,)
