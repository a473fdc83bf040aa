# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models of element types: casts, halves, complex numbers, integers, quantized numbers.

As cases.py says: each function makes one Model."""
import cmath
import math
import struct
from itertools import product

from onnx_wire import (BFLOAT16, BOOL, COMPLEX64, COMPLEX128, DOUBLE, FLOAT, FLOAT16, INT8, INT32, INT64, UINT8,
                       flatten, node, tensor)
from small_model import Model, build, nest, numbers


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


def half_ties():
    """Single numbers on, just below and just above the middle of two neighbours in f16, stored and rounded in passing:
    subnormal ones, what becomes zero, the largest, and what becomes infinite."""
    single = struct.Struct("<f")
    values = []
    for bits in (0, 1, 2, 511, 1022, 1023, 1024, 1025, 2047, 2048, 15359, 15360, 20001, 31742, 31743):
        low, = struct.unpack("<e", struct.pack("<H", bits))
        step = 2.0**(max(bits >> 10, 1) - 25)
        middle, = struct.unpack("<I", single.pack(low + step / 2))
        values += [single.unpack(struct.pack("<I", middle + k))[0] for k in (-1, 0, 1)]
    values = [sign * v for v in values + [0.0, 1e-12, 65519.0, 65536.0, 1e9] for sign in (1, -1)]

    def half(v):
        return math.copysign(math.inf, v) if abs(v) >= 65520 else struct.unpack("e", struct.pack("e", v))[0]

    n = len(values)
    nodes = [node("Cast", ["x"], ["stored"], to=FLOAT16), node("Mul", ["x", "one"], ["y"]),
             node("Cast", ["y"], ["half"], to=FLOAT16), node("Cast", ["half"], ["wide"], to=FLOAT),
             node("Mul", ["wide", "scale"], ["passed"])]
    return Model(nodes, [("x", FLOAT, [n]), ("one", FLOAT, [])], [("stored", FLOAT16, [n]), ("passed", FLOAT, [n])],
                 [([values, 1.0], [[half(v) for v in values], [half(v) * 2.0**24 for v in values]])],
                 [tensor("scale", FLOAT, 2.0**24)])


def complex_moves():
    """Complex numbers are moved and chosen."""
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


def complex_parts():
    """What is linear in its input, and what puts elements in order: of real and imaginary parts."""
    inputs, nodes, outputs, values, results = [], [], [], [], []
    for tag, dtype in (("single", COMPLEX64), ("double", COMPLEX128)):
        x, columns = [1 + 2j, 3 - 2j, -1 + 0j], [[1 + 1j, 2j, 3], [4, 5 - 1j, 6j]]
        nodes += [
            node("Resize", [f"{tag}_x", "", "scales"], [f"{tag}_r"], mode="linear",
                 coordinate_transformation_mode="asymmetric"),
            node("GridSample", [f"{tag}_x", "grid"], [f"{tag}_g"], mode="nearest", align_corners=1),
            node("Col2Im", [f"{tag}_c", "image", "block"], [f"{tag}_i"]),
            node("Unique", [f"{tag}_u"], [f"{tag}_s", "", f"{tag}_of", f"{tag}_n"])
        ]
        inputs += [(f"{tag}_x", dtype, [1, 1, 1, 3]), (f"{tag}_c", dtype, [1, 2, 3]), (f"{tag}_u", dtype, [6])]
        outputs += [(f"{tag}_r", dtype, [1, 1, 1, 6]), (f"{tag}_g", dtype, [1, 1, 1, 4]),
                    (f"{tag}_i", dtype, [1, 1, 4]), (f"{tag}_s", dtype, [None]), (f"{tag}_of", INT64, [6]),
                    (f"{tag}_n", INT64, [None])]
        unsorted = [2 + 1j, 1 + 5j, 2 - 1j, 1 + 5j, -3j, 2 + 1j]
        ordered = sorted(set(unsorted), key=lambda v: (v.real, v.imag))
        values += [[[[x]]], [columns], unsorted]
        middle = [(a + b) / 2 for a, b in zip(x, x[1:] + x[2:])]
        results += [[[[[v for pair in zip(x, middle) for v in pair]]]], [[[[x[2], x[0], x[1], 0]]]],
                    [[[sum(columns[k][i - k] for k in range(2) if 0 <= i - k < 3) for i in range(4)]]],
                    ordered, [ordered.index(v) for v in unsorted], [unsorted.count(v) for v in ordered]]
    constants = [
        tensor("scales", FLOAT, [1.0, 1.0, 1.0, 2.0]),
        tensor("grid", FLOAT, [[[[1.0, 0.0], [-1.0, 0.0], [0.1, 0.0], [3.0, 0.0]]]]),
        tensor("image", INT64, [4]),
        tensor("block", INT64, [2])
    ]
    return Model(nodes, inputs, outputs, [(values, results)], constants)


def transforms(lengths, dtype):
    """Of real and complex numbers, both ways, halves of spectra."""
    nodes, inputs, outputs, values, results = [], [], [], [], []

    def transform(x, sign):
        n = len(x)
        turn = [cmath.exp(sign * 2j * math.pi * k / n) for k in range(n)]
        return [sum(v * turn[i * k % n] for i, v in enumerate(x)) for k in range(n)]

    def pairs(z):
        return [[v.real, v.imag] for v in z]
    for n in lengths:
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
            inputs.append((f"x_{name}{n}", dtype, [1, *flatten(x_in)[1]]))
            outputs.append((f"y_{name}{n}", dtype, [1, *flatten(y)[1]]))
            values.append([x_in])
            results.append([y])
    sizes = [tensor(f"n{n}", INT64, n) for n in lengths]
    return Model(nodes, inputs, outputs, [(values, results)], [tensor("axis", INT64, 1), *sizes], opset=20)


def fourier():
    """Lengths of one stage and of several, a prime that goes by a matrix."""
    return transforms((5, 8, 12, 17, 30), FLOAT)


def fourier_chirp():
    """A prime and twice a prime, too long for matrices; tests/signals.py has the errors of f32."""
    return transforms((739, 746), DOUBLE)


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


def half_losses():
    """A loss is of the scores' type."""
    inputs, nodes, outputs, values, results = [("at", INT64, [2])], [], [], [[1, 0]], []
    for tag, dtype in (("half", FLOAT16), ("brain", BFLOAT16)):
        nodes += [node("NegativeLogLikelihoodLoss", [f"{tag}_x", "at"], [f"{tag}_nll"], reduction="sum"),
                  node("SoftmaxCrossEntropyLoss", [f"{tag}_x", "at"], [f"{tag}_ce"])]
        inputs += [(f"{tag}_x", dtype, [2, 2])]
        outputs += [(f"{tag}_nll", dtype, []), (f"{tag}_ce", dtype, [])]
        values += [[[0.5, 0.5], [-1.25, -1.25]]]
        results += [0.75, {"half": 0.693359375, "brain": 0.69140625}[tag]]
    return Model(nodes, inputs, outputs, [(values, results)])


def half_ranges():
    """stash_type says what elements are rounded from: element 29 lies just above the middle of two halves."""
    start, limit, step = 2.0, 2 + 2.0**-9, 565 * 2.0**-24

    def half(v):
        return struct.unpack("e", struct.pack("e", v))[0]

    exact = [start + i * step for i in range(math.ceil((limit - start) / step))]
    once = [half(v) for v in exact]
    twice = [half(struct.unpack("f", struct.pack("f", v))[0]) for v in exact]
    assert once[29] != twice[29]
    nodes = [node("Range", [a, "limit", "step"], [b], **stash)
             for a, b, stash in (("start", "float", {}), ("start", "double", {"stash_type": DOUBLE}),
                                 ("from", "given", {"stash_type": DOUBLE}))]
    return Model(nodes, [("from", FLOAT16, [])], [("float", FLOAT16, [58]), ("double", FLOAT16, [58]),
                                                  ("given", FLOAT16, [None])], [([start], [twice, once, once])],
                 [tensor(k, FLOAT16, v) for k, v in (("start", start), ("limit", limit), ("step", step))], opset=27)


def quantize_round_trip():
    """Rounds half to even and saturates."""
    x, scale = [-200.0, -1.25, -0.25, 0.0, 0.25, 0.75, 1.25, 63.0, 64.0, 500.0], 0.5
    q = [max(-128, min(127, round(v / scale) + 3)) for v in x]
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    return Model(nodes, [("x", FLOAT, [10])], [("q", INT8, [10]),
                                               ("y", FLOAT, [10])], [([x], [q, [(v - 3) * scale for v in q]])],
                 [tensor("s", FLOAT, scale), tensor("z", INT8, 3)])


ALL = (casts, brain_steps, half_steps, half_rows, half_ties, complex_moves, complex_parts, fourier, fourier_chirp,
       half_losses, half_ranges, integer_arithmetic, quantize_round_trip)
