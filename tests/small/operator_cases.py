# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models of operators in their rarer forms: what a model's data decides, sizes beyond the usual, rare element
types.

As cases.py: each function makes one Model."""
import cmath
import math
import random
from itertools import product

from small_model import Model, build, nest, numbers
from onnx_wire import (BOOL, FLOAT, FLOAT6E2M3, FLOAT6E3M2, INT32, INT64, UINT8, graph, node, six_bits, tensor,
                       value_info)


# ---------------------------------------------------------------- element types
def six_bit_floats():
    """Every code of both types, from packed bytes and from one word each; what they hold rounds to nearest even."""
    nodes, outputs, results, constants = [], [], [], []
    x = numbers(601, 40, low=-9, high=9) + [0.0, -0.0, 1e-3, 0.0625, 0.1875, 28.0, -40.0, 1e9, 7.5, 7.25, 7.75]
    for tag, dtype, mantissa, bias in (("e2m3", FLOAT6E2M3, 3, 1), ("e3m2", FLOAT6E3M2, 2, 3)):
        values = [six_bits(c, mantissa, bias) for c in range(64)]
        codes = list(range(64)) + [1, 33, 62]              # 67 of them: the last group of four is not full
        nearest = [min(range(32), key=lambda c: (abs(values[c] - abs(v)), c & 1)) for v in x]
        rounded = [math.copysign(values[c], v) for c, v in zip(nearest, x)]
        nodes += [
            node("Cast", [f"{tag}_raw"], [f"{tag}_y"], to=FLOAT),
            node("Cast", [f"{tag}_words"], [f"{tag}_z"], to=FLOAT),
            node("Cast", ["x"], [f"{tag}_small"], to=dtype),
            node("Cast", [f"{tag}_small"], [f"{tag}_back"], to=FLOAT)
        ]
        outputs += [(f"{tag}_y", FLOAT, [67]), (f"{tag}_z", FLOAT, [67]), (f"{tag}_small", dtype, [len(x)]),
                    (f"{tag}_back", FLOAT, [len(x)])]
        results += [[values[c] for c in codes]] * 2
        results += [[c | 32 * (math.copysign(1, v) < 0) for c, v in zip(nearest, x)], rounded]
        constants += [tensor(f"{tag}_raw", dtype, codes), tensor(f"{tag}_words", dtype, codes, words=True)]
    return Model(nodes, [("x", FLOAT, [len(x)])], outputs, [([x], results)], constants, opset=28)


# ---------------------------------------------------------------- matrices
def eliminated(m):
    """The determinant, with the largest pivots."""
    m, det = [list(row) for row in m], 1.0
    for k in range(len(m)):
        best = max(range(k, len(m)), key=lambda i: abs(m[i][k]))
        if m[best][k] == 0:
            return 0.0
        if best != k:
            m[k], m[best], det = m[best], m[k], -det
        det *= m[k][k]
        for i in range(k + 1, len(m)):
            factor = m[i][k] / m[k][k]
            m[i] = [a - factor * b for a, b in zip(m[i], m[k])]
    return det


def determinants():
    """Matrices of seven rows, of any number of them and of none; one has a zero where its first pivot would be, one
    has no inverse."""
    x = numbers(611, 2, 2, 7, 7)
    x[0][1][0][0] = 0.0
    for row in x[1][0]:
        row[3] = 2 * row[5]
    sets = []
    for n in (6, 2, 11):
        y = numbers(620 + n, 3, n, n)
        sets.append(([x, y], [[[eliminated(m) for m in two] for two in x], [eliminated(m) for m in y],
                                        [[1.0, 1.0], [1.0, 1.0]]]))
    return Model([node("Det", ["x"], ["d"]), node("Det", ["y"], ["e"]),
                  node("Slice", ["x", "none", "none", "rows"], ["z"]), node("Det", ["z"], ["f"])],
                 [("x", FLOAT, [2, 2, 7, 7]), ("y", FLOAT, [3, "n", "n"])],
                 [("d", FLOAT, [2, 2]), ("e", FLOAT, [3]), ("f", FLOAT, [2, 2])],
                 sets, initializers=[tensor("none", INT64, [0, 0]), tensor("rows", INT64, [2, 3])])


# ---------------------------------------------------------------- signals
def frames_of_two_dimensions():
    """STFT of a signal [batch, samples], as ONNX Runtime takes it, of a known length and of any."""
    window = [0.5 - 0.5 * math.cos(2 * math.pi * i / 8) for i in range(8)]

    def transform(x):
        out = []
        for row in x:
            frames = [[a * b for a, b in zip(row[i:i + 8], window)] for i in range(0, len(row) - 7, 4)]
            spectra = [[sum(v * cmath.exp(-2j * math.pi * k * i / 8) for i, v in enumerate(f)) for k in range(5)]
                       for f in frames]
            out.append([[[z.real, z.imag] for z in s] for s in spectra])
        return out

    sets = []
    for n in (24, 8, 17):
        x, z = numbers(630, 2, 20), numbers(631 + n, 1, n)
        sets.append(([x, z], [transform(x), transform(z)]))
    nodes = [node("STFT", ["x", "step", "window"], ["y"]), node("STFT", ["z", "step", "window"], ["w"])]
    return Model(nodes, [("x", FLOAT, [2, 20]), ("z", FLOAT, [1, "n"])], [("y", FLOAT, [2, 4, 5, 2]),
                                                                          ("w", FLOAT, [1, None, 5, 2])],
                 sets, [tensor("step", INT64, 4), tensor("window", FLOAT, window)])


# ---------------------------------------------------------------- regions of images
def region(image, box, bins, scale, half, most):
    """RoiAlign of one plane with as many samples in a bin as it has pixels."""
    h, w = len(image), len(image[0])
    x1, y1, x2, y2 = (v * scale - (0.5 if half else 0.0) for v in box)
    start, length = (y1, x1), [y2 - y1, x2 - x1] if half else [max(y2 - y1, 1.0), max(x2 - x1, 1.0)]
    count = [max(math.ceil(n / b), 0) for n, b in zip(length, bins)]

    def terms(y, x):
        if y < -1 or y > h or x < -1 or x > w:
            return [0.0]
        y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
        y0, x0 = math.floor(y), math.floor(x)
        return [image[min(y0 + i, h - 1)][min(x0 + j, w - 1)] * abs(1 - i - (y - y0)) * abs(1 - j - (x - x0))
                for i, j in product(range(2), range(2))]

    def bin_value(p, q):
        all = [
            terms(*(s + (b + (k + 0.5) / c) * n / e for s, b, k, c, n, e in zip(start, (p, q), at, count, length, bins))
                  ) for at in product(*map(range, count))
        ]
        if not all:
            return 0.0
        return max(map(max, all)) if most else sum(map(sum, all)) / len(all)

    return build(bins, bin_value)


def regions():
    """Regions of different sizes, one beyond the image, one of nothing: each has its own number of samples."""
    x = numbers(640, 2, 2, 9, 11)
    boxes = [[1.0, 2.0, 9.5, 8.25], [0.0, 0.0, 14.0, 12.0], [3.0, 3.0, 3.5, 4.0], [-5.0, -4.0, 20.0, 16.0],
             [6.0, 6.0, 5.0, 4.0]]
    image, nodes, outputs, results = [0, 1, 1, 0, 1], [], [], []
    for name, half, most in (("mean", True, False), ("most", True, True), ("old", False, False)):
        how = "half_pixel" if half else "output_half_pixel"
        nodes.append(
            node("RoiAlign", ["x", "boxes", "image"], [name], mode="max" if most else "avg", output_height=3,
                 output_width=2, spatial_scale=0.75, coordinate_transformation_mode=how))
        outputs.append((name, FLOAT, [5, 2, 3, 2]))
        results.append([[region(x[i][c], b, (3, 2), 0.75, half, most) for c in range(2)]
                        for b, i in zip(boxes, image)])
    return Model(nodes, [("x", FLOAT, [2, 2, 9, 11]), ("boxes", FLOAT, [5, 4]), ("image", INT64, [5])], outputs,
                 [([x, boxes, image], results)])


# ---------------------------------------------------------------- loops
def loop_until():
    """Loops that a condition ends, and that stack what they compute: without a number of iterations, with a constant
    one, one that is as large as can be, and one that the program is told; one also grows a sequence."""
    def body(grows):
        nodes = [
            node("Add", ["a", "x"], ["a_out"]),
            node("ReduceSum", ["a_out"], ["sum"], keepdims=0),
            node("Less", ["sum", "limit"], ["go_out"]),
            node("Mul", ["a_out", "a_out"], ["square"])
        ] + [node("SequenceInsert", ["q", "a_out"], ["q_out"])] * grows
        several = [("q", ("sequence", FLOAT), None)] * grows
        ends = [value_info(*e) for e in [("i", INT64, ()), ("go", BOOL, ()), ("a", FLOAT, (3, ))] + several]
        outs = [value_info(n + "_out", *e) for n, *e in [("go", BOOL, ()), ("a", FLOAT, (3, ))] + several]
        return ("graph", graph(nodes, ends, outs + [value_info("square", FLOAT, (3, )), value_info("sum", FLOAT, ())],
                               name="body"))

    trips = {"free": "", "nine": "nine", "most": "most", "told": "told"}
    nodes, outputs = [node("SequenceEmpty", [], ["none"], dtype=FLOAT)], []
    for name, m in trips.items():
        grows = name == "free"
        nodes.append(
            node("Loop", [m, "start" if name == "told" else "", "zero"] + ["none"] * grows,
                 [f"{name}_a"] + ["all"] * grows + [f"{name}_squares", f"{name}_sums"], body=body(grows)))
        outputs += [(f"{name}_a", FLOAT, (3, )), (f"{name}_sums", FLOAT, (None, ))]
        outputs += [(f"{name}_squares", FLOAT, (None, 3))] * (name != "told")   # which may be of none
    nodes.append(node("ConcatFromSequence", ["all"], ["rows"], axis=0, new_axis=1))
    outputs.append(("rows", FLOAT, (None, 3)))
    room, x, sets = numbers(650, 20), [1.0, 0.5, 0.25], []
    for limit, told, start in ((5.0, 8, True), (0.0, 2**62, True), (33.0, 12, True), (33.0, 0, True), (9.0, 7, False)):
        results = []
        for name in trips:
            most = {"nine": 9, "told": told if start else 0}.get(name, 2**63)
            a, steps, go = [0.0] * 3, [], True
            while go and len(steps) < most:
                a = [u + v for u, v in zip(a, x)]
                steps.append(a)
                go = sum(a) < limit
            results += [a, [sum(s) for s in steps]] + [[[v * v for v in s] for s in steps]] * (name != "told")
            rows = steps if name == "free" else rows
        sets.append(([x, limit, told, start, room], results + [rows, [v + 1 for v in room]]))
    nodes.append(node("Add", ["room", "one"], ["more_room"]))
    outputs.append(("more_room", FLOAT, (20, )))
    constants = [
        tensor("zero", FLOAT, [0.0] * 3),
        tensor("one", FLOAT, 1.0),
        tensor("nine", INT64, 9),
        tensor("most", INT64, 2**63 - 1)
    ]
    return Model(nodes, [("x", FLOAT, (3, )), ("limit", FLOAT, ()), ("told", INT64, ()), ("start", BOOL, ()),
                         ("room", FLOAT, (20, ))], outputs, sets, constants)


# ---------------------------------------------------------------- convolutions
def weights_of_any_size():
    """Convolutions whose weights are inputs: kernels and channels of any size, and groups of any number of outputs."""
    def conv(x, w, pads, strides, groups):
        size, kernel = (len(x[0]), len(x[0][0])), (len(w[0][0]), len(w[0][0][0]))
        out = [(s + p + q - k) // t + 1 for s, k, p, q, t in zip(size, kernel, pads[:2], pads[2:], strides)]
        inner, per = len(w[0]), len(w) // groups

        def element(o, *place):
            sum = 0.0
            for c, i, j in product(range(inner), *map(range, kernel)):
                y, z = (p * t + k - lo for p, t, k, lo in zip(place, strides, (i, j), pads))
                if 0 <= y < size[0] and 0 <= z < size[1]:
                    sum += x[o // per * inner + c][y][z] * w[o][c][i][j]
            return sum

        return build((len(w), *out), element)

    nodes = [
        node("Conv", ["x", "w"], ["y"], pads=[1, 1, 2, 0], strides=[2, 1]),
        node("Conv", ["g", "v", "b"], ["z"], group=2, pads=[1, 1, 1, 1])
    ]
    room, sets = numbers(670, 10), []
    for c, o, k, l, n in ((3, 4, 3, 2, 6), (5, 7, 1, 4, 2), (1, 1, 2, 1, 10)):
        x, w, v, b = numbers(671, c, 7, 8), numbers(672, o, c, k, l), numbers(673, n, 2, 3, 3), numbers(674, n)
        g = numbers(675, 4, 5, 6)
        y = conv(x, w, (1, 1, 2, 0), (2, 1), 1)
        z = conv(g, v, (1, 1, 1, 1), (1, 1), 2)
        z = [[[e + b[i] for e in row] for row in plane] for i, plane in enumerate(z)]
        sets.append(([[x], w, [g], v, b, room], [[y], [z], [-r for r in room]]))
    nodes.append(node("Neg", ["room"], ["less"]))
    return Model(nodes, [("x", FLOAT, (1, "c", 7, 8)), ("w", FLOAT, ("o", "c", "k", "l")), ("g", FLOAT, (1, 4, 5, 6)),
                         ("v", FLOAT, ("n", 2, 3, 3)), ("b", FLOAT, ("n", )), ("room", FLOAT, (10, ))],
                 [("y", FLOAT, (1, None, None, None)), ("z", FLOAT, (1, None, 5, 6)), ("less", FLOAT, (10, ))], sets)


# ---------------------------------------------------------------- weights of few bits
def packed_weights():
    """MatMulNBits of 2, 4 and 8 bits: zero points in bytes, in floats, of groups in an order of their own; and groups
    that are no blocks."""
    rng, k, n, block = random.Random(660), 72, 40, 16
    blocks, inputs = -(-k // block), numbers(661, 2, k)
    order = [i // block for i in range(k)]
    rng.shuffle(order)
    uneven = [rng.randrange(blocks) for _ in range(k)]
    nodes, outputs, results, constants = [], [], [], []
    for name, bits, zeros, groups in (("bytes", 2, "bytes", None), ("floats", 4, "floats", None),
                                      ("even", 8, None, None), ("groups", 4, "bytes", order),
                                      ("real_groups", 4, "floats", order), ("uneven", 4, None, uneven)):
        q = [[rng.randrange(1 << bits) for _ in range(blocks * block)] for _ in range(n)]
        scale = numbers(662 + bits, n, blocks, low=0.01, high=0.05)
        zero = [[1 << bits - 1] * blocks for _ in range(n)]
        if zeros == "bytes":
            zero = [[rng.randrange(1 << bits) for _ in range(blocks)] for _ in range(n)]
        elif zeros:
            zero = numbers(663, n, blocks, low=5, high=9)

        def packed(rows):
            per = 8 // bits
            return [[sum(v << bits * i for i, v in enumerate(row[at:at + per])) for at in range(0, len(row), per)]
                    for row in rows]

        of = groups or [i // block for i in range(k)]
        w = [[(q[j][i] - zero[j][of[i]]) * scale[j][of[i]] for i in range(k)] for j in range(n)]
        results.append([[sum(a * b for a, b in zip(row, column)) for column in w] for row in inputs])
        size = block * bits // 8
        constants += [
            tensor(f"{name}_q", UINT8, [[row[i:i + size] for i in range(0, len(row), size)] for row in packed(q)]),
            tensor(f"{name}_s", FLOAT, scale)
        ]
        names = ["x", f"{name}_q", f"{name}_s", f"{name}_z" if zeros else "", f"{name}_g" if groups else ""]
        if zeros:
            constants.append(tensor(f"{name}_z", *((UINT8, packed(zero)) if zeros == "bytes" else (FLOAT, zero))))
        if groups:
            constants.append(tensor(f"{name}_g", INT32, groups))
        while not names[-1]:
            names.pop()
        nodes.append(node("MatMulNBits", names, [name], "com.microsoft", N=n, K=k, block_size=block, bits=bits))
        outputs.append((name, FLOAT, [2, n]))
    return Model(nodes, [("x", FLOAT, [2, k])], outputs, [([inputs], results)], constants, domains=["com.microsoft"])


ALL = (six_bit_floats, determinants, frames_of_two_dimensions, regions, loop_until, weights_of_any_size, packed_weights)
