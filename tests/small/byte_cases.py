# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small quantised models, large enough for the kernels on bytes: every kind of operand, edges of tiles, what follows
a product.

As cases.py: each function makes one Model. Sums of integers are exact, so the expected numbers are too.
"""
import random

from small_model import Model, nest
from onnx_wire import FLOAT, INT8, INT16, INT32, UINT8, node, tensor

# of 16 bits: sums of floats stay exact, too
RANGE = {UINT8: (0, 255), INT8: (-128, 127), INT16: (-3000, 3000)}
FOUR_BITS = (-8, 7)
SMALL = (-40, 40)


def draw(seed, dtype, *shape, span=None):
    rng, (low, high) = random.Random(seed), span or RANGE[dtype]
    count = 1
    for d in shape:
        count *= d
    return nest([rng.randint(low, high) for _ in range(count)], shape)


def product(a, b, za, zb):
    """zb: a number or one for each column."""
    n = len(b[0])
    zb = zb if isinstance(zb, list) else [zb] * n
    rows, sums = [sum(r) for r in a], [sum(r[j] for r in b) for j in range(n)]
    columns = list(zip(*b))
    return [[
        sum(x * y for x, y in zip(r, columns[j])) - za * sums[j] - zb[j] * rows[i] + len(b) * za * zb[j]
        for j in range(n)
    ] for i, r in enumerate(a)]


def integer_model(m, k, n, a_type, b_type, za, zb, constant, span=None):
    a, b = draw(1, a_type, m, k), draw(2, b_type, k, n, span=span)
    zeros = [tensor("za", a_type, za), tensor("zb", b_type, zb)]
    inputs, given = [("a", a_type, [m, k])], [a]
    if constant:
        zeros.append(tensor("b", b_type, b))
    else:
        inputs.append(("b", b_type, [k, n]))
        given.append(b)
    return Model([node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])], inputs, [("y", INT32, [m, n])],
                 [(given, [product(a, b, za, zb)])], zeros)


def bytes_unsigned_signed():
    return integer_model(29, 77, 99, UINT8, INT8, 131, 0, True)


def bytes_of_columns():
    return integer_model(13, 66, 49, UINT8, UINT8, 7, [(j * 37) % 256 for j in range(49)], True)


def bytes_signed_computed():
    return integer_model(15, 39, 33, INT8, INT8, -9, 4, False)


def bytes_unsigned_computed():
    return integer_model(3, 130, 17, UINT8, UINT8, 128, 127, False)


def bytes_one_row():
    return integer_model(1, 515, 70, UINT8, INT8, 17, -3, True)


def bytes_four_bits():
    return integer_model(5, 109, 21, INT8, INT8, 17, 0, True, FOUR_BITS)


def bytes_any_batch():
    """Rows whose number is given at run time, transposed columns, and a result that is quantised anew."""
    k, n, scale = 21, 40, 0.0078125
    b = draw(4, INT8, n, k)
    nodes = [
        node("Transpose", ["b"], ["t"], perm=[1, 0]),
        node("MatMulInteger", ["a", "t", "za"], ["s"]),
        node("Cast", ["s"], ["f"], to=FLOAT),
        node("Mul", ["f", "scale"], ["g"]),
        node("QuantizeLinear", ["g", "one", "zy"], ["y"])
    ]

    def sets(m):
        a = draw(m, UINT8, m, k)
        sums = product(a, [list(c) for c in zip(*b)], 100, 0)
        return [[a], [[[min(max(round(v * scale) + 3, -128), 127) for v in r] for r in sums]]]
    return Model(nodes, [("a", UINT8, ["rows", k])], [("y", INT8, ["rows", n])],
                 [sets(1), sets(5), sets(14), sets(37)], [
                     tensor("b", INT8, b),
                     tensor("za", UINT8, 100),
                     tensor("scale", FLOAT, scale),
                     tensor("one", FLOAT, 1.0),
                     tensor("zy", INT8, 3)
                 ])


def bytes_dequantized():
    """Products of dequantised factors, as quantisers write them; scales are powers of two, so that floats are exact
    as well."""
    m, k, n = 14, 48, 36
    a, b = draw(5, UINT8, m, k), draw(6, INT8, n, k)
    scales = [2.0 ** -(7 + j % 3) for j in range(n)]
    nodes = [
        node("DequantizeLinear", ["a", "sa", "za"], ["x"]),
        node("DequantizeLinear", ["b", "sb", "zb"], ["w"], axis=0),
        node("Gemm", ["x", "w", "c"], ["y"], transB=1),
        node("Relu", ["y"], ["r"])
    ]
    c = [float(j - 20) for j in range(n)]
    sums = product(a, [list(v) for v in zip(*b)], 120, 0)
    y = [[max(s * 0.015625 * scales[j] + c[j], 0.0) for j, s in enumerate(r)] for r in sums]
    return Model(nodes, [("a", UINT8, [m, k])], [("r", FLOAT, [m, n])], [([a], [y])], [
        tensor("b", INT8, b),
        tensor("sa", FLOAT, 0.015625),
        tensor("za", UINT8, 120),
        tensor("sb", FLOAT, scales),
        tensor("zb", INT8, [0] * n),
        tensor("c", FLOAT, c)
    ])


def convolution(x, w, zx, group, stride, dilation, pad, zw):
    """One image [c][h][w], padded with its zero point. zw: of each channel of the result."""
    h, wide, kh, kw = len(x[0]), len(x[0][0]), len(w[0][0]), len(w[0][0][0])
    oh, ow = ((s + 2 * p - (k - 1) * d - 1) // t + 1
              for s, p, k, d, t in zip((h, wide), pad, (kh, kw), dilation, stride))
    per, ic = len(w) // group, len(w[0])

    def element(o, i, j):
        total = 0
        for c in range(ic):
            plane = x[o // per * ic + c]
            for u in range(kh):
                for v in range(kw):
                    a, b = i * stride[0] + u * dilation[0] - pad[0], j * stride[1] + v * dilation[1] - pad[1]
                    if 0 <= a < h and 0 <= b < wide:
                        total += (plane[a][b] - zx) * (w[o][c][u][v] - zw[o])
        return total
    return [[[element(o, i, j) for j in range(ow)] for i in range(oh)] for o in range(len(w))]


def conv_model(x_type, ic, h, wide, oc, kernel, zx, group=1, stride=(1, 1), dilation=(1, 1), pad=(0, 0), batch=1,
               w_type=INT8, zw=0, span=None):
    """zw: a number or one for each channel of the result."""
    x, w = draw(11, x_type, batch, ic, h, wide), draw(12, w_type, oc, ic // group, *kernel, span=span)
    y = [convolution(image, w, zx, group, stride, dilation, pad, zw if isinstance(zw, list) else [zw] * oc)
         for image in x]
    nodes = [
        node("ConvInteger", ["x", "w", "zx"] + (["zw"] if zw else []), ["y"], group=group, strides=list(stride),
             dilations=list(dilation), pads=list(pad) * 2, kernel_shape=list(kernel))
    ]
    return Model(nodes, [("x", x_type, [batch, ic, h, wide])],
                 [("y", INT32, [batch, oc, len(y[0][0]), len(y[0][0][0])])], [([x], [y])],
                 [tensor("w", w_type, w), tensor("zx", x_type, zx)] + ([tensor("zw", w_type, zw)] if zw else []))


def bytes_conv_image():
    return conv_model(UINT8, 3, 17, 19, 33, (5, 3), 114, stride=(2, 2), pad=(2, 1))


def bytes_conv_signed():
    return conv_model(INT8, 10, 7, 9, 20, (3, 3), -5, pad=(1, 1), batch=2)


def bytes_conv_dilated():
    return conv_model(UINT8, 9, 13, 16, 17, (3, 2), 3, dilation=(2, 3), pad=(2, 0))


def bytes_conv_groups():
    return conv_model(UINT8, 16, 9, 8, 24, (3, 3), 200, group=2, stride=(1, 2), pad=(1, 1))


def bytes_conv_depthwise():
    return conv_model(UINT8, 6, 9, 8, 6, (3, 3), 127, group=6, pad=(1, 1))


def bytes_conv_points():
    return conv_model(UINT8, 13, 9, 11, 30, (1, 1), 9, stride=(2, 2))


def bytes_conv_zero():
    """Weights around a zero point of their own."""
    return conv_model(UINT8, 5, 9, 8, 11, (3, 3), 100, stride=(2, 1), pad=(1, 1), batch=2, w_type=UINT8, zw=143)


def bytes_conv_zeros():
    """The same, one for each channel, a dilated window, signed bytes."""
    return conv_model(INT8, 6, 10, 9, 7, (3, 2), -4, dilation=(2, 1), pad=(2, 0), zw=[5 * j - 11 for j in range(7)])


def bytes_conv_depthwise_zero():
    return conv_model(UINT8, 9, 8, 7, 9, (3, 3), 17, group=9, pad=(1, 1), w_type=UINT8, zw=120)


def bytes_conv_four_bits():
    return conv_model(INT8, 10, 7, 9, 19, (3, 1), -5, stride=(1, 2), pad=(1, 0), span=FOUR_BITS)


def halves_model(op, x, w, sums, **attributes):
    """Values of 16 bits between weights of 8, in steps of powers of two: rounded half to even, and cut off."""

    def quantised(v):
        return [quantised(u) for u in v] if isinstance(v, list) else max(-32768, min(32767, round(v / 4)))

    def shape(v):
        return [len(v)] + shape(v[0]) if isinstance(v, list) else []
    nodes = [
        node("DequantizeLinear", ["x", "xs"], ["a"]),
        node("DequantizeLinear", ["w", "ws"], ["b"]),
        node(op, ["a", "b"], ["s"], **attributes),
        node("QuantizeLinear", ["s", "ys", "yz"], ["y"])
    ]
    return Model(nodes, [("x", INT16, shape(x))], [("y", INT16, shape(sums))], [([x], [quantised(sums)])],
                 [tensor("w", INT8, w), tensor("xs", FLOAT, 2.0**-9), tensor("ws", FLOAT, 2.0**-5),
                  tensor("ys", FLOAT, 2.0**-12), tensor("yz", INT16, 0)], opset=21)


def averages():
    """Averages of four bytes in a step of 0.05, as integers: exact, and halves go to the even one. By floats 0.05 has a
    remainder, and a half goes anywhere."""
    x = draw(21, INT8, 1, 3, 8, 10)
    y = [[[[round(sum(p[i + a][j + b] for a in (0, 1) for b in (0, 1)) / 4) for j in range(0, 10, 2)]
           for i in range(0, 8, 2)] for p in x[0]]]
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        node("AveragePool", ["a"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", ["m", "s", "z"], ["y"])
    ]
    return Model(nodes, [("x", INT8, [1, 3, 8, 10])], [("y", INT8, [1, 3, 4, 5])], [([x], [y])],
                 [tensor("s", FLOAT, 0.05), tensor("z", INT8, 0)])


def bytes_few_channels(channels, wide, stride, batch=2, high=5):
    """An image's planes become bytes, channels last, and twice windows on each channel alone: a vector goes over
    neighbours. Scales are powers of two: floats are exact, and halves go to the even one."""
    zero = 128

    def quantised(v, divisor):
        if isinstance(v, list):
            return [quantised(u, divisor) for u in v]
        return max(0, min(255, round(v / divisor) + zero))

    def real(v):
        return [real(u) for u in v] if isinstance(v, list) else v * 2.0**-7
    image = draw(31, INT16, batch, channels, high, wide, span=(-300, 300))
    first, second = (draw(s, INT8, channels, 1, 3, 3, span=SMALL) for s in (32, 33))
    x = quantised(image, 2)
    none = [0] * channels
    a = quantised([convolution(i, first, zero, channels, (1, 1), (1, 1), (1, 1), none) for i in x], 64)
    y = quantised([convolution(i, second, zero, channels, stride, (1, 1), (1, 1), none) for i in a], 64)
    nodes = [node("QuantizeLinear", ["x", "sx", "z"], ["qx"]), node("DequantizeLinear", ["qx", "sx", "z"], ["dx"])]
    for source, w, to, steps in (("dx", "u", "a", (1, 1)), ("da", "v", "y", stride)):
        nodes += [
            node("DequantizeLinear", [w, "sw", "zw"], ["d" + w]),
            node("Conv", [source, "d" + w], ["f" + to], group=channels, strides=list(steps), pads=[1, 1, 1, 1],
                 kernel_shape=[3, 3]),
            node("QuantizeLinear", ["f" + to, "s" + to, "z"], ["q" + to if to == "a" else to])
        ]
        if to == "a":
            nodes.append(node("DequantizeLinear", ["qa", "sa", "z"], ["da"]))
    return Model(nodes, [("x", FLOAT, [batch, channels, high, wide])],
                 [("y", UINT8, [batch, channels, len(y[0][0]), len(y[0][0][0])])], [([real(image)], [y])], [
                     tensor("u", INT8, first), tensor("v", INT8, second), tensor("z", UINT8, zero),
                     tensor("zw", INT8, 0), tensor("sx", FLOAT, 2.0**-6), tensor("sw", FLOAT, 2.0**-5),
                     tensor("sa", FLOAT, 2.0**-5), tensor("sy", FLOAT, 2.0**-4)
                 ])


def bytes_eight_channels():
    return bytes_few_channels(8, 41, (2, 1))


def bytes_three_channels():
    return bytes_few_channels(3, 67, (1, 2), 1)


def bytes_channels_strided():
    return bytes_few_channels(24, 19, (2, 2), 1)


def halves_product():
    a, b = draw(1, INT16, 5, 109), draw(2, INT8, 109, 21, span=SMALL)
    return halves_model("MatMul", a, b, product(a, b, 0, 0))


def halves_conv(ic=10, oc=19, group=1, kernel=(3, 2), stride=(1, 2), pad=(1, 1), span=SMALL):
    x, w = draw(11, INT16, 1, ic, 7, 9), draw(12, INT8, oc, ic // group, *kernel, span=span)
    y = [convolution(x[0], w, 0, group, stride, (1, 1), pad, [0] * oc)]
    return halves_model("Conv", x, w, y, group=group, strides=list(stride), pads=list(pad) * 2,
                        kernel_shape=list(kernel))


def halves_points():
    return halves_conv(kernel=(1, 1), stride=(1, 1), pad=(0, 0))


def halves_long():
    """Sums that may leave 32 bits: two pieces of the channels."""
    return halves_conv(61, 6, kernel=(3, 3), span=(100, 127))


def halves_long_groups():
    """The same of two groups, whose channels do not lie together."""
    return halves_conv(122, 6, 2, (3, 3), span=(100, 127))


def halves_depthwise():
    return halves_conv(13, 13, 13, (3, 3))


ALL = (bytes_eight_channels, bytes_three_channels, bytes_channels_strided, bytes_four_bits, halves_product,
       halves_conv, halves_long, halves_long_groups, halves_points, halves_depthwise, bytes_conv_four_bits,
       bytes_conv_zero, bytes_conv_zeros, bytes_conv_depthwise_zero, bytes_conv_image, bytes_conv_signed,
       bytes_conv_dilated, bytes_conv_groups, bytes_conv_depthwise, bytes_conv_points, bytes_unsigned_signed,
       bytes_of_columns, bytes_signed_computed, bytes_unsigned_computed, bytes_one_row, bytes_any_batch,
       bytes_dequantized)
FIXED_POINT = (averages,)       # where quantised models are integers throughout
