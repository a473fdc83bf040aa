# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models of views, indices, reductions and choices.

As cases.py says: each function makes one Model."""
import math
from itertools import product

from onnx_wire import FLOAT, FLOAT16, INT8, INT64, UINT8, flatten, node, tensor
from small_model import Model, at, build, nest, numbers, relu


# ---------------------------------------------------------------- views
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


ALL = (channel_shuffle, view_chain, slice_negative_steps, pad_modes, dense_block, concat_split, broadcasting,
       gather_family, reductions, reductions_of_reductions, where_compare, argmax_ties, top_k, top_few)
