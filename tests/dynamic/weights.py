# SPDX-License-Identifier: MIT OR Apache-2.0
"""Convolutions whose weights are inputs of any size, as cases.py: ahead and transposed, with the paddings that follow
from sizes, of one to three spatial axes, in groups; windows that lie apart; convolutions with a state, deformed ones,
and columns back to images."""
import math
from itertools import product

from cases import F, case
from onnx_wire import FLOAT, INT32, INT64, UINT8, node
from tensors import Tensor, build, concat, each, numbers, whole


def same(places, stride, kernel, image, upper, dilation=1):
    """The padding before the image."""
    total = max((places - 1) * stride + (kernel - 1) * dilation + 1 - image, 0)
    return total // 2 if upper else total - total // 2


def conv(x, w, strides, before, out, dilations=(1, 1, 1), group=1):
    inside = w.shape[1]

    def element(n, c, *place):
        total, first = 0, c // (w.shape[0] // group) * inside
        for u in product(*map(range, w.shape[2:])):
            at = tuple(p * s + k * d - b for p, s, k, d, b in zip(place, strides, u, dilations, before))
            if all(0 <= p < size for p, size in zip(at, x.shape[2:])):
                total += sum(x[(n, first + k) + at] * w[(c, k) + u] for k in range(inside))
        return total
    return build([x.shape[0], w.shape[0]] + list(out), element)


def transposed(x, w, strides, before, out, dilations=(1, 1, 1), group=1):
    per, inside = w.shape[1], w.shape[0] // group
    result = dict.fromkeys(product(range(x.shape[0]), range(group * per), *map(range, out)), 0.0)
    for n, c, *place in product(*map(range, x.shape)):
        for o, *u in product(range(per), *map(range, w.shape[2:])):
            at = [p * s + k * d - b for p, s, k, d, b in zip(place, strides, u, dilations, before)]
            if all(0 <= p < size for p, size in zip(at, out)):
                result[(n, c // inside * per + o, *at)] += x[(n, c, *place)] * w[(c, o, *u)]
    return Tensor([x.shape[0], group * per, *out], result.values())


def spread(size, stride, kernel, dilation=1, pads=0, more=0):
    return (size - 1) * stride + (kernel - 1) * dilation + 1 + more - pads


@case({"n": (1, 2), "c": (1, 4), "o": (1, 3), "k": (1, 4), "l": (2, 3), "h": (1, 5)}, [
    node("ConvTranspose", ["x", "w", "b"], ["whole"], strides=[2, 3], dilations=[2, 1], output_padding=[1, 2]),
    node("ConvTranspose", ["x", "w"], ["cut"], strides=[2, 1], pads=[0, 1, 0, 1], auto_pad="NOTSET"),
    node("ConvTranspose", ["x", "w"], ["upper"], strides=[2, 2], auto_pad="SAME_UPPER"),
    node("ConvTranspose", ["x", "w"], ["lower"], strides=[1, 3], dilations=[1, 2], auto_pad="SAME_LOWER"),
    node("ConvTranspose", ["x", "w"], ["asked"], strides=[2, 2], output_shape=[9, 10])
], [F("x", "n", "c", "h", 4), F("w", "c", "o", "k", "l"), F("b", "o")],
      [F(name, "n", "o", None, None) for name in ("whole", "cut", "upper", "lower", "asked")])
def transposed_weights(n, c, o, k, l, h):
    x, w, b = numbers(901, n, c, h, 4), numbers(902, c, o, k, l), numbers(903, o)
    full = transposed(x, w, (2, 3), (0, 0), (spread(h, 2, k, 2, more=1), spread(4, 3, l, more=2)), (2, 1))
    full = build(full.shape, lambda *i: full[i] + b[i[1]])
    cut = transposed(x, w, (2, 1), (0, 1), (spread(h, 2, k), spread(4, 1, l, pads=2)))
    upper = transposed(x, w, (2, 2), [same(p, 2, q, 2 * p, True) for p, q in ((h, k), (4, l))], (2 * h, 8))
    lower = transposed(x, w, (1, 3), (same(h, 1, k, h, False), same(4, 3, l, 12, False, 2)), (h, 12), (1, 2))
    asked = transposed(x, w, (2, 2), (same(h, 2, k, 9, False), same(4, 2, l, 10, False)), (9, 10))
    return [x, w, b], [full, cut, upper, lower, asked]


@case({"n": (1, 2), "c": (1, 2), "o": (1, 2), "k": (1, 3), "t": (1, 4)}, [
    node("ConvTranspose", ["line", "v"], ["a"], strides=[3], group=2, pads=[0, 0], output_padding=[1]),
    node("ConvTranspose", ["block", "w"], ["b"], strides=[2, 1, 2], pads=[0, 0, 1, 0, 1, 0]),
    node("ConvTranspose", ["image", "u"], ["c1"], strides=[2, 2], output_shape=[7, 9], auto_pad="SAME_UPPER")
], [F("line", "n", 4, "t"), F("v", 4, "o", "k"), F("block", 1, "c", "t", 2, 3), F("w", "c", 2, "k", 2, 3),
    F("image", "n", 2, "t", 4)], [F("a", "n", None, None), F("b", 1, 2, None, None, None), F("c1", "n", 3, 7, 9)],
      [("u", FLOAT, numbers(911, 2, 3, 3, 2))])
def transposed_axes(n, c, o, k, t):
    line, v, block, w = numbers(912, n, 4, t), numbers(913, 4, o, k), numbers(914, 1, c, t, 2, 3), numbers(
        915, c, 2, k, 2, 3)
    image, u = numbers(916, n, 2, t, 4), numbers(911, 2, 3, 3, 2)
    a = transposed(line, v, (3, ), (0, ), (spread(t, 3, k, more=1), ), group=2)
    b = transposed(block, w, (2, 1, 2), (0, 0, 1), (spread(t, 2, k), spread(2, 1, 2, pads=1), spread(3, 2, 3, pads=1)))
    y = transposed(image, u, (2, 2), (same(t, 2, 3, 7, True), same(4, 2, 2, 9, True)), (7, 9))
    return [line, v, block, w, image], [a, b, y]


@case({"n": (1, 2), "c": (1, 3), "o": (1, 3), "k": (1, 4), "h": (1, 7)}, [
    node("Conv", ["x", "w", "b"], ["upper"], strides=[2, 3], auto_pad="SAME_UPPER"),
    node("Conv", ["x", "w"], ["lower"], dilations=[2, 1], auto_pad="SAME_LOWER"),
    node("Conv", ["line", "v"], ["pairs"], strides=[3], group=2, auto_pad="SAME_LOWER"),
    node("ConvInteger", ["bytes", "r", "zx", "zr"], ["sums"], strides=[3, 1], auto_pad="SAME_UPPER"),
    node("QLinearConv", ["bytes", "sx", "zx", "r", "sr", "zr", "sy", "zy"], ["steps"], strides=[2, 2],
         auto_pad="SAME_LOWER")
], [F("x", "n", "c", "h", 5), F("w", "o", "c", "k", 2), F("b", "o"), F("line", "n", 4, "h"), F("v", 6, 2, "k"),
    ("bytes", UINT8, ["n", "c", "h", 5]), ("r", UINT8, ["o", "c", "k", 2])], [
        F("upper", "n", "o", None, 2), F("lower", "n", "o", "h", 5), F("pairs", "n", 6, None),
        ("sums", INT32, ["n", "o", None, 5]), ("steps", UINT8, ["n", "o", None, 3])
    ], [("zx", UINT8, Tensor([], [100])), ("zr", UINT8, Tensor([], [130])), ("sx", FLOAT, Tensor([], [0.5])),
        ("sr", FLOAT, Tensor([], [0.25])), ("sy", FLOAT, Tensor([], [256.0])), ("zy", UINT8, Tensor([], [120]))])
def same_weights(n, c, o, k, h):
    x, w, b = numbers(921, n, c, h, 5), numbers(922, o, c, k, 2), numbers(923, o)
    line, v = numbers(924, n, 4, h), numbers(925, 6, 2, k)
    bytes_, r = whole(926, n, c, h, 5, high=255), whole(927, o, c, k, 2, high=255)

    def places(stride):
        return -(-h // stride)

    upper = conv(x, w, (2, 3), (same(places(2), 2, k, h, True), same(2, 3, 2, 5, True)), (places(2), 2))
    upper = build(upper.shape, lambda *i: upper[i] + b[i[1]])
    lower = conv(x, w, (1, 1), (same(h, 1, k, h, False, 2), same(5, 1, 2, 5, False)), (h, 5), (2, 1))
    pairs = conv(line, v, (3, ), (same(places(3), 3, k, h, False), ), (places(3), ), group=2)
    p, q = each(lambda e: e - 100, bytes_), each(lambda e: e - 130, r)
    sums = conv(p, q, (3, 1), (same(places(3), 3, k, h, True), same(5, 1, 2, 5, True)), (places(3), 5))
    steps = conv(p, q, (2, 2), (same(places(2), 2, k, h, False), same(3, 2, 2, 5, False)), (places(2), 3))
    steps = each(lambda e: min(max(round(e * 0.125 / 256) + 120, 0), 255), steps)
    return [x, w, b, line, v, bytes_, r], [upper, lower, pairs, sums, steps]


@case({"n": (1, 2), "h": (1, 12), "w": (1, 9)}, [
    node("Conv", ["x", "f"], ["apart"], strides=[5, 3], auto_pad="SAME_LOWER"),
    node("Conv", ["x", "g"], ["points"], strides=[3, 2], auto_pad="SAME_UPPER"),
    node("MaxPool", ["x"], ["most"], kernel_shape=[2, 3], strides=[3, 4], auto_pad="SAME_UPPER"),
    node("AveragePool", ["x"], ["mean"], kernel_shape=[3, 1], strides=[4, 2], auto_pad="SAME_LOWER")
], [F("x", "n", 2, "h", "w")], [F(name, "n", None, None, None) for name in ("apart", "points", "most", "mean")],
      [("f", FLOAT, numbers(931, 3, 2, 2, 2)), ("g", FLOAT, numbers(932, 3, 2, 1, 1))])
def windows_apart(n, h, w):
    """SAME with strides beyond the windows: where the last one ends inside the image there is no padding."""
    x, f, g = numbers(933, n, 2, h, w), numbers(931, 3, 2, 2, 2), numbers(932, 3, 2, 1, 1)

    def laid(strides, kernel, upper):
        out = [-(-size // s) for size, s in zip((h, w), strides)]
        return [same(p, s, k, size, upper) for p, s, k, size in zip(out, strides, kernel, (h, w))], out

    def pool(function, strides, kernel, upper):
        before, out = laid(strides, kernel, upper)

        def element(b, c, *place):
            rows = [[p * s + i - lo for i in range(k)] for p, s, k, lo in zip(place, strides, kernel, before)]
            return function([x[b, c, i, j] for i, j in product(*rows) if 0 <= i < h and 0 <= j < w])
        return build([n, 2, *out], element)

    return [x], [conv(x, f, (5, 3), *laid((5, 3), (2, 2), False)), conv(x, g, (3, 2), *laid((3, 2), (1, 1), True)),
                 pool(max, (3, 4), (2, 3), True), pool(lambda v: sum(v) / len(v), (4, 2), (3, 1), False)]


@case({"n": (1, 2), "c": (1, 4), "k": (1, 4), "t": (1, 6)}, [
    node("CausalConvWithState", ["x", "w", "b"], ["y", "kept"]),
    node("CausalConvWithState", ["x", "three", "", "past"], ["z", "last"], activation="silu")
], [F("x", "n", "c", "t"), F("w", "c", 1, "k"), F("b", "c"), F("three", "c", 1, 3), F("past", "n", "c", 2)],
      [F("y", "n", "c", "t"), F("kept", "n", "c", None), F("z", "n", "c", "t"), F("last", "n", "c", 2)], opset=27)
def causal_states(n, c, k, t):
    x, w, b = numbers(941, n, c, t), numbers(942, c, 1, k), numbers(943, c)
    three, past = numbers(944, c, 1, 3), numbers(945, n, c, 2)

    def along(before, taps):
        whole = concat(2, before, x)
        lost = taps.shape[2] - 1
        y = build([n, c, t], lambda i, j, p: sum(whole[i, j, p + q] * taps[j, 0, q] for q in range(lost + 1)))
        return y, build([n, c, lost], lambda i, j, p: whole[i, j, whole.shape[2] - lost + p])

    y, kept = along(Tensor([n, c, k - 1], [0.0] * (n * c * (k - 1))), w)
    z, last = along(past, three)
    return [x, w, b, three, past], [
        build(y.shape, lambda *i: y[i] + b[i[1]]), kept, each(lambda v: v / (1 + math.exp(-v)), z), last]


@case({"n": (1, 2), "c": (1, 3), "o": (1, 4)}, [
    node("DeformConv", ["x", "w", "offset"], ["y"], kernel_shape=[2, 2], strides=[1, 2]),
    node("Col2Im", ["columns", "image", "block"], ["z"], strides=[1, 1], pads=[0, 1, 0, 0])
], [F("x", "n", "c", 4, 5), F("w", "o", "c", 2, 2), F("offset", "n", 8, 3, 2), F("columns", "n", 12, 12)],
      [F("y", "n", "o", 3, 2), F("z", "n", 3, 4, 4)], [("image", INT64, Tensor([2], [4, 4])),
                                                       ("block", INT64, Tensor([2], [2, 2]))], opset=19)
def moved_taps(n, c, o):
    x, w, offset = numbers(951, n, c, 4, 5), numbers(952, o, c, 2, 2), numbers(953, n, 8, 3, 2, low=-1.5, high=1.5)
    columns = numbers(954, n, 12, 12)

    def sample(i, j, at):
        total, corner = 0.0, [math.floor(p) for p in at]
        for u in product(range(2), range(2)):
            y, z = (p + q for p, q in zip(corner, u))
            if 0 <= y < 4 and 0 <= z < 5:
                total += x[i, j, y, z] * (1 - abs(at[0] - y)) * (1 - abs(at[1] - z))
        return total

    def element(i, q, y, z):
        total = 0.0
        for u, v in product(range(2), range(2)):
            at = [y + u + offset[i, 4 * u + 2 * v, y, z], 2 * z + v + offset[i, 4 * u + 2 * v + 1, y, z]]
            total += sum(sample(i, j, at) * w[q, j, u, v] for j in range(c))
        return total

    image = dict.fromkeys(product(range(n), range(3), range(4), range(4)), 0.0)
    for i, j, u, v, y, z in product(range(n), range(3), range(2), range(2), range(3), range(4)):
        if z + v >= 1:
            image[i, j, y + u, z + v - 1] += columns[i, 4 * j + 2 * u + v, 4 * y + z]
    return [x, w, offset, columns], [build([n, o, 3, 2], element), Tensor([n, 3, 4, 4], image.values())]
