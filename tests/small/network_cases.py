# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models of what networks are built of: convolutions, products, norms, pools, and chains of them.

As cases.py says: each function makes one Model."""
import math
from itertools import product

from onnx_wire import FLOAT, INT64, node, tensor
from small_model import Model, build, numbers, relu


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
    """A window over 9 channels, fewer than a vector: still fewer products than taps, in rows of more tiles than go
    together."""
    x, w = numbers(41, 1, 9, 12, 31), numbers(42, 17, 9, 3, 3, low=-1 / 64, high=1 / 64)

    def element(n, c, i, j):
        taps = product(range(9), range(3), range(3))
        return relu(sum(x[n][q][i + u - 1][j + v - 1] * w[c][q][u][v] for q, u, v in taps
                        if 0 <= i + u - 1 < 12 and 0 <= j + v - 1 < 31))
    out = build((1, 17, 12, 31), element)
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["y"])]
    return Model(nodes, [("x", FLOAT, [1, 9, 12, 31])], [("y", FLOAT, [1, 17, 12, 31])], [([x], [out])],
                 [tensor("w", FLOAT, w)])


def conv_halves():
    """Windows of few output channels: where they fill half of a vector, pixels of the upper half of the rows go with
    those of the lower half. From planes to five channels, of an odd number of rows, and on to three with taps apart."""
    x, w, k = numbers(43, 2, 3, 21, 38), numbers(44, 5, 3, 3, 4), numbers(45, 3, 5, 3, 2, low=-1 / 8, high=1 / 8)

    def first(n, c, i, j):
        taps = product(range(3), range(3), range(4))
        return relu(sum(x[n][q][2 * i + u - 1][j + v - 2] * w[c][q][u][v] for q, u, v in taps
                        if 0 <= 2 * i + u - 1 < 21 and 0 <= j + v - 2 < 38))
    mid = build((2, 5, 11, 38), first)

    def second(n, c, i, j):
        taps = product(range(5), range(3), range(2))
        return sum(mid[n][q][i + 2 * u - 2][j + 3 * v - 1] * k[c][q][u][v] for q, u, v in taps
                   if 0 <= i + 2 * u - 2 < 11 and 0 <= j + 3 * v - 1 < 38) + x[n][c][i][j]
    out = build((2, 3, 11, 38), second)
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 2, 1, 1], strides=[2, 1]), node("Relu", ["c"], ["r"]),
             node("Conv", ["r", "k"], ["d"], pads=[2, 1, 2, 2], dilations=[2, 3]),
             node("Slice", ["x", "from", "to", "axes"], ["s"]), node("Add", ["d", "s"], ["y"])]
    return Model(nodes, [("x", FLOAT, [2, 3, 21, 38])], [("y", FLOAT, [2, 3, 11, 38])], [([x], [out])],
                 [tensor("w", FLOAT, w), tensor("k", FLOAT, k), tensor("from", INT64, [0]), tensor("to", INT64, [11]),
                  tensor("axes", INT64, [2])])


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


def softmax_of_large():
    """Scaled by a factor, all the same and so large that a product which is not rounded before the maximum is
    subtracted gives e^100."""
    n = 72
    return Model(
        [node("Mul", ["x", "scale"], ["s"]), node("Softmax", ["s"], ["y"], axis=1)], [("x", FLOAT, [2, n])],
        [("y", FLOAT, [2, n])], [([[[2.72305e12] * n, [-7.1e9] * n]], [[[1 / n] * n] * 2])],
        [tensor("scale", FLOAT, 0.00591716)])


def softmax_of_no_number():
    """A NaN anywhere in a row is all of that row, and of no other; what is infinite is nothing beside what is not."""
    n, none = 40, float("nan")
    rows = [[none if j == at else 0.25 * j for j in range(n)] for at in (0, 17, n - 1)]
    rows += [[none] * n, [-math.inf] * (n - 2) + [3, 3], [math.inf] + [1] * (n - 1)]
    want = [[none] * n] * 4 + [[0] * (n - 2) + [0.5, 0.5], [none] * n]
    return Model(
        [node("Softmax", ["x"], ["y"], axis=1)], [("x", FLOAT, [6, n])], [("y", FLOAT, [6, n])], [([rows], [want])])


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


ALL = (conv_bn_relu_add, conv_strided_grouped, conv_planes, conv_windows, conv_few_channels, conv_halves, matmul_bias,
       row_times_computed, rows_of_products, gemm_dynamic_batch, softmax_both_axes, softmax_of_large,
       softmax_of_no_number, layer_norm,
       pooling, response_norm, tied_words, few_columns, strips, strips_of_planes, lstm_step)
