# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models whose shapes follow from values: what is found, and lists of bounds, sizes and axes that are inputs.

As cases.py: each function makes one Model. Every model has several data sets whose outputs differ in shape, the empty
and the largest among them."""
import math
from itertools import product

from small_model import Model, at, build, nest, numbers
from onnx_wire import BOOL, FLOAT, INT64, node, tensor


def positions():
    """The elements above a limit, where they are, how many and their sum."""
    x = numbers(11, 4, 5)
    nodes = [
        node("Greater", ["x", "limit"], ["above"]),
        node("NonZero", ["above"], ["where"]),
        node("Transpose", ["where"], ["rows"], perm=[1, 0]),
        node("GatherND", ["x", "rows"], ["y"]),
        node("Shape", ["y"], ["count"]),
        node("ReduceSum", ["y"], ["sum"], keepdims=0)
    ]

    def found(limit):
        places = [i for i in product(range(4), range(5)) if at(x, i) > limit]
        y = [at(x, i) for i in places]
        return [[x, limit], [[[i[k] for i in places] for k in range(2)], y, [len(y)], sum(y)]]

    outputs = [("where", INT64, (2, None)), ("y", FLOAT, (None,)), ("count", INT64, (1,)), ("sum", FLOAT, ())]
    return Model(nodes, [("x", FLOAT, (4, 5)), ("limit", FLOAT, ())], outputs,
                 [found(v) for v in (0.2, 2.0, -2.0, 0.8)])


def chosen_rows():
    """A condition along an axis and one over all elements, and what is computed from the rest."""
    x = numbers(12, 3, 6)
    nodes = [
        node("Compress", ["x", "keep"], ["some"], axis=1),
        node("ReduceSumSquare", ["some", "last"], ["squares"], keepdims=0),
        node("Compress", ["x", "flags"], ["few"]),
        node("Transpose", ["some"], ["other"], perm=[1, 0]),
        node("MatMul", ["some", "other"], ["product"])
    ]

    def sets(keep, flags):
        some = [[v for v, k in zip(r, keep) if k] for r in x]
        flat = [v for r in x for v in r]
        return [[x, keep, flags],
                [
                    some, [sum(v * v for v in r) for r in some], [v for v, f in zip(flat, flags) if f],
                    [[sum(a * b for a, b in zip(r, q)) for q in some] for r in some]
                ]]

    outputs = [("some", FLOAT, (3, None)), ("squares", FLOAT, (3, )), ("few", FLOAT, (None, )),
               ("product", FLOAT, (3, 3))]
    return Model(nodes, [("x", FLOAT, (3, 6)), ("keep", BOOL, (6, )), ("flags", BOOL, (4, ))], outputs,
                 [sets([1, 0, 1, 1, 0, 1], [0, 1, 0, 1]),
                  sets([0] * 6, [0] * 4),
                  sets([1] * 6, [1] * 4)], [tensor("last", INT64, [1])])


def unique_all():
    """Elements and rows that differ, in order and as they come, with all four outputs."""
    nodes = [
        node("Unique", ["v"], ["y", "first", "of", "counts"]),
        node("Unique", ["v"], ["y2", "first2", "of2", "counts2"], sorted=0),
        node("Unique", ["rows"], ["y3", "first3", "of3", "counts3"], axis=0),
        node("Unique", ["rows"], ["y4", "", "", "counts4"], axis=1, sorted=0)
    ]

    def unique(x, in_order):
        kinds = sorted(set(map(tuple, x))) if in_order else list(dict.fromkeys(map(tuple, x)))
        rows = list(map(tuple, x))
        return [list(k) for k in kinds], [rows.index(k) for k in kinds], [kinds.index(r) for r in rows
                                                                          ], [rows.count(k) for k in kinds]

    def sets(v, rows):
        lists, columns = [[e] for e in v], [list(c) for c in zip(*rows)]
        out = []
        for in_order in (True, False):
            y, *rest = unique(lists, in_order)
            out += [[e[0] for e in y]] + rest
        y4, _, _, counts4 = unique(columns, False)
        return [[v, rows], out + list(unique(rows, True)) + [[list(r) for r in zip(*y4)], counts4]]

    outputs = [(n + s, FLOAT if n == "y" else INT64, (7, ) if n == "of" else (None, )) for s in ("", "2")
               for n in ("y", "first", "of", "counts")]
    outputs += [("y3", INT64, (None, 3)), ("first3", INT64, (None, )), ("of3", INT64, (4, )),
                ("counts3", INT64, (None, )), ("y4", INT64, (4, None)), ("counts4", INT64, (None, ))]
    return Model(nodes, [("v", FLOAT, (7,)), ("rows", INT64, (4, 3))], outputs, [
        sets([2.0, -1.5, 2.0, 0.0, 7.0, -1.5, 2.0], [[1, 2, 1], [0, 5, 0], [1, 2, 1], [-3, 0, -3]]),
        sets([1.0] * 7, [[4, 4, 4]] * 4),
        sets([6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0], [[9, 1, 2], [3, 1, 2], [3, 0, 2], [3, 0, -2]])])


def suppressed(boxes, scores, most, limit, least):
    """NonMaxSuppression of one image: boxes [n][4], scores [classes][n]."""
    def overlap(a, b):
        low, high = [max(min(a[i], a[i + 2]), min(b[i], b[i + 2]))
                     for i in range(2)], [min(max(a[i], a[i + 2]), max(b[i], b[i + 2])) for i in range(2)]
        shared = math.prod(max(h - l, 0) for l, h in zip(low, high))
        area = [abs(c[2] - c[0]) * abs(c[3] - c[1]) for c in (a, b)]
        return shared / (sum(area) - shared)

    out = []
    for c, score in enumerate(scores):
        taken = []
        for i in sorted(range(len(boxes)), key=lambda i: -score[i]):
            if score[i] > least and len(taken) < most and all(overlap(boxes[i], boxes[j]) <= limit for j in taken):
                taken.append(i)
        out += [[0, c, i] for i in taken]
    return out


def suppression_model(boxes, scores, runs):
    n = len(boxes)
    return Model([node("NonMaxSuppression", ["boxes", "scores", "most", "limit", "least"], ["found"])],
                 [("boxes", FLOAT, (1, n, 4)), ("scores", FLOAT, (1, len(scores), n)), ("most", INT64, (1, )),
                  ("limit", FLOAT, (1, )), ("least", FLOAT, (1, ))], [("found", INT64, (None, 3))],
                 [[[[boxes], [scores], [most], [limit], [least]], [suppressed(boxes, scores, most, limit, least)]]
                  for most, limit, least in runs])


def suppression():
    """The best boxes without those that overlap them, as many as a run asks for."""
    boxes = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1], [0, 100, 1, 101]]
    scores = [[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.1, 0.9, 0.9, 0.2, 0.0, 0.85]]
    return suppression_model(boxes, scores, [(3, 0.5, 0.05), (100, 0.9, -1.0), (1, 0.1, 0.4)])


def suppression_of_many():
    """More boxes taken than are compared at a time, on both sides of the origin; a limit that nothing is above, and
    one that all are."""
    corners, sizes = numbers(51, 150, 2, low=-4.0, high=4.0), numbers(52, 150, 2, low=0.3, high=1.5)
    boxes = [[y, x, y + h, x + w] if i % 3 else [y + h, x, y, x + w]
             for i, ((y, x), (h, w)) in enumerate(zip(corners, sizes))]
    return suppression_model(boxes, numbers(53, 2, 150, low=0.0), [(200, 0.3, 0.1), (200, 1.0, -1.0), (70, 0.05, 0.0),
                                                                   (33, 0.9, 0.0), (200, 0.0, 0.0)])


def suppression_in_cells():
    """So many that those taken lie in cells: groups one beside the other, boxes of every length, two that reach over
    all and scores of which many are equal, -0 and 0 among them."""
    n = 1100
    corners, sizes = numbers(54, n, 2, low=0.0, high=4.0), numbers(55, n, 2, low=0.1, high=1.5)
    places = [[c + 5 * (i % 23) for c in corner] for i, corner in enumerate(corners)]
    boxes = [[y, x, y + h * h, x + w] for (y, x), (h, w) in zip(places, sizes)]
    boxes[7], boxes[8] = [-3.0, -3.0, 120.0, 120.0], [130.0, 50.0, -200.0, 50.5]
    scores = [round(8 * s) / 8 * (-1) ** i for i, s in enumerate(numbers(56, n, low=0.0))]
    return suppression_model(boxes, [scores], [(n, 0.3, -2.0), (n, 0.02, -0.5), (150, 0.5, -2.0)])


def cuts():
    """Bounds, axes and steps of a slice, and the sizes of a split, are inputs."""
    x = numbers(13, 8, 5)
    nodes = [
        node("Slice", ["x", "starts", "ends", "axes", "steps"], ["y"]),
        node("Shape", ["y"], ["s"]),
        node("Split", ["x", "parts"], ["p", "q"], axis=0)
    ]

    def sets(starts, ends, axes, steps, first):
        rows, columns = slice(None), slice(None)
        for a, b, axis, step in zip(starts, ends, axes, steps):
            cut = slice(a, None if b < -100 else b, step)
            rows, columns = (cut, columns) if axis % 2 == 0 else (rows, cut)
        y = [r[columns] for r in x[rows]]
        return [[x, starts, ends, axes, steps, [first, 8 - first]],
                [y, [len(x[rows]), len(x[0][columns])], x[:first], x[first:]]]

    ints = [(n, INT64, (2,)) for n in ("starts", "ends", "axes", "steps", "parts")]
    return Model(nodes, [("x", FLOAT, (8, 5))] + ints, [("y", FLOAT, (None, None)), ("s", INT64, (2, )),
                                                        ("p", FLOAT, (None, 5)), ("q", FLOAT, (None, 5))], [
                                                            sets([1, 0], [7, 4], [0, 1], [2, 1], 3),
                                                            sets([-1, 6], [-1000, 1], [-1, 0], [-2, -1], 1),
                                                            sets([0, 0], [8, 5], [1, 0], [1, 1], 7)
                                                        ])


def shapes():
    """Target shapes of views are inputs."""
    x = numbers(14, 4, 6)
    flat = [v for r in x for v in r]
    nodes = [
        node("Reshape", ["x", "shape"], ["r"]),
        node("Transpose", ["r"], ["y"], perm=[2, 0, 1]),
        node("Expand", ["one", "wide"], ["e"]),
        node("Tile", ["row", "times"], ["t"]),
        node("ConstantOfShape", ["wide"], ["zeros"]),
        node("Pad", ["row", "pads", "fill"], ["p"]),
        node("Unsqueeze", ["row", "axes"], ["u"]),
        node("Range", ["from", "to", "by"], ["n"])
    ]
    fixed = [tensor("one", FLOAT, [[3.5]]), tensor("row", FLOAT, [1.0, 2.0, 3.0]), tensor("fill", FLOAT, -1.0)]

    def sets(shape, target, wide, times, pads, axes, bounds):
        r = nest(flat, target)
        u = [[[1.0, 2.0, 3.0]]
             ] if sorted(axes) == [0, 1] else [[[v] for v in (1.0, 2.0,
                                                              3.0)]] if sorted(axes) == [0, 2] else [[[1.0, 2.0, 3.0]]]
        return [[x, shape, wide, [times], pads, axes] + bounds,
                [
                    build([target[2], target[0], target[1]], lambda k, i, j: r[i][j][k]), [[3.5] * wide[1]] * wide[0],
                    [1.0, 2.0, 3.0] * times, [[0.0] * wide[1]] * wide[0],
                    [-1.0] * pads[0] + [1.0, 2.0, 3.0] + [-1.0] * pads[1], u,
                    list(range(*bounds))
                ]]

    ints = [("shape", INT64, (3, )), ("wide", INT64, (2, )), ("times", INT64, (1, )), ("pads", INT64, (2, )),
            ("axes", INT64, (2, )), ("from", INT64, ()), ("to", INT64, ()), ("by", INT64, ())]
    outputs = [("y", FLOAT, (None, None, None)), ("e", FLOAT, (None, None)), ("t", FLOAT, (None, )),
               ("zeros", FLOAT, (None, None)), ("p", FLOAT, (None, )), ("u", FLOAT, (None, None, None)),
               ("n", INT64, (None, ))]
    return Model(nodes, [("x", FLOAT, (4, 6))] + ints, outputs, [
        sets([2, -1, 3], [2, 4, 3], [2, 3], 2, [1, 2], [0, 1], [0, 6, 1]),
        sets([0, 3, 2], [4, 3, 2], [1, 6], 1, [0, 0], [2, 0], [5, -1, -2]),
        sets([24, 1, 1], [24, 1, 1], [6, 1], 2, [3, 0], [1, 0], [3, 3, 1])
    ], fixed)


def axes():
    """Reduced, summed and searched axes are inputs."""
    x = numbers(15, 2, 3, 4)
    nodes = [
        node("ReduceSum", ["x", "over"], ["kept"]),
        node("ReduceMax", ["x", "over"], ["most"], keepdims=0),
        node("ReduceLogSumExp", ["x", "over"], ["lse"]),
        node("CumSum", ["x", "along"], ["sums"]),
        node("TopK", ["x", "k"], ["top", "places"], axis=2),
        node("OneHot", ["which", "k", "values"], ["hot"])
    ]
    dims = (2, 3, 4)

    def reduce(over, f):
        over = [a % 3 for a in over]
        return lambda *i: f(
            [at(x, j) for j in product(*map(range, dims)) if all(j[d] == i[d] for d in range(3) if d not in over)])

    def sets(over, along, k):
        kept = [1 if d in [a % 3 for a in over] else n for d, n in enumerate(dims)]
        left = [d for d in range(3) if d not in [a % 3 for a in over]]
        most = reduce(over, max)
        whole = lambda i: tuple(i[left.index(d)] if d in left else 0 for d in range(3))
        order = build((2, 3), lambda a, b: sorted(range(4), key=lambda c: -x[a][b][c])[:k])
        axis = along % 3
        return [[x, over, along, [k]],
                [
                    build(kept, reduce(over, sum)),
                    build([dims[d] for d in left], lambda *i: most(*whole(i))),
                    build(kept, reduce(over, lambda v: math.log(sum(map(math.exp, v))))),
                    build(dims, lambda *i: sum(at(x, i[:axis] + (j, ) + i[axis + 1:]) for j in range(i[axis] + 1))),
                    build((2, 3, k), lambda a, b, c: x[a][b][order[a][b][c]]), order,
                    build((2, k), lambda a, c: 5.0 if [1, -1][a] % k == c else 2.0)
                ]]

    ints = [("over", INT64, (2,)), ("along", INT64, ()), ("k", INT64, (1,))]
    outputs = [("kept", FLOAT, (None, None, None)), ("most", FLOAT, (None, )), ("lse", FLOAT, (None, None, None)),
               ("sums", FLOAT, (2, 3, 4)), ("top", FLOAT, (2, 3, None)), ("places", INT64, (2, 3, None)),
               ("hot", FLOAT, (2, None))]
    return Model(
        nodes, [("x", FLOAT, (2, 3, 4))] + ints, outputs,
        [sets([0, 2], 1, 2), sets([1, -1], -1, 4), sets([-3, 1], 0, 3)],
        [tensor("which", INT64, [1, -1]), tensor("values", FLOAT, [2.0, 5.0])])


ALL = (positions, chosen_rows, unique_all, suppression, suppression_of_many, suppression_in_cells, cuts, shapes, axes)
