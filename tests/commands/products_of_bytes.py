# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models whose products are of bytes, as waves.py makes them of floats: NAME/model.onnx and NAME/x.npy, for a run in
each of two ways, whose results are the same integers, written as floats. As a program: writes them all here."""
import pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from onnx_wire import FLOAT, INT32, INT8, UINT8, node, tensor
from waves import nest, write


def numbers(shape, low, high, step):
    count = 1
    for n in shape:
        count *= n
    return nest([low + (i * i * step + i * 7919 >> 5) % (high + 1 - low) for i in range(count)], shape)


def quantized(dtype, zero, scale=0.01):
    return [node("QuantizeLinear", ["x", "sx", "zx"], ["q"])], [tensor("sx", FLOAT, scale), tensor("zx", dtype, zero)]


def product(name, m, k, n, dtype, zero, kind=INT8, zeros=None):
    """kind: of the weights; zeros: a zero point for each column."""
    nodes, given = quantized(dtype, zero)
    low, high = (-128, 127) if kind == INT8 else (0, 255)
    given += [tensor("w", kind, numbers([k, n], low, high, 37)),
              tensor("zw", kind, numbers([n], low // 4 + 1, high // 4, 7) if zeros else [3] * n)]
    nodes += [node("MatMulInteger", ["q", "w", "zx", "zw"], ["s"]), node("Cast", ["s"], ["y"], to=FLOAT)]
    write(name, nodes, [m, k], [m, n], {}, given)


def scores(name, batch, t, d):
    """Both factors are computed."""
    nodes, given = quantized(UINT8, 131)
    nodes += [node("Transpose", ["q"], ["t"], perm=[0, 2, 1]), node("MatMulInteger", ["q", "t", "zx", "zx"], ["s"]),
              node("Cast", ["s"], ["y"], to=FLOAT)]
    write(name, nodes, [batch, t, d], [batch, t, t], {}, given)


def conv(name, x, oc, k, dtype, out=8, stride=1, pad=0, gap=1, group=1):
    """A convolution between two others, so that its channels lie last and it reads and stores bytes."""
    n, ic, h, w = x
    side = lambda s: (s + 2 * pad - gap * (k - 1) - 1) // stride + 1
    nodes, given = quantized(dtype, 117 if dtype == UINT8 else -11)
    shapes = {"u": [ic, ic, 1, 1], "w": [oc, ic // group, k, k], "v": [out, oc, 1, 1]}
    for i, (weight, shape) in enumerate(shapes.items()):
        scales = [0.001 + 0.00005 * (j % 9) for j in range(shape[0])]
        given += [tensor(weight, INT8, numbers(shape, -127, 127, 37 + 4 * i)), tensor("s" + weight, FLOAT, scales),
                  tensor("z" + weight, INT8, [0] * shape[0])]
    given += [tensor("b", INT32, numbers([oc], -3000, 3000, 977)), tensor("sy", FLOAT, 0.01)]
    of = lambda x, s, w: [x, s, "zx", w, "s" + w, "z" + w, "sy", "zx"]
    nodes += [node("QLinearConv", of("q", "sx", "u"), ["h"], kernel_shape=[1, 1]),
              node("QLinearConv", of("h", "sy", "w") + ["b"], ["c"], kernel_shape=[k, k], strides=[stride] * 2,
                   pads=[pad] * 4, dilations=[gap] * 2, group=group),
              node("QLinearConv", of("c", "sy", "v"), ["o"], kernel_shape=[1, 1]),
              node("Cast", ["o"], ["y"], to=FLOAT)]
    write(name, nodes, x, [n, out, side(h), side(w)], {}, given)


def write_all():
    product("ints", 40, 128, 96, UINT8, 131)
    product("ints_signed", 40, 256, 96, INT8, -5)
    product("ints_zeros", 37, 52, 45, UINT8, 131, UINT8, True)
    product("ints_odd", 37, 83, 45, INT8, 7)
    product("ints_shares", 40, 2048, 48, INT8, 0)
    product("ints_large", 300, 136, 264, INT8, 3)
    product("ints_row", 1, 320, 96, UINT8, 120)
    product("ints_rows", 5, 250, 97, INT8, 120)
    scores("ints_scores", 3, 40, 72)
    conv("ints_window", [2, 16, 9, 9], 24, 3, UINT8, pad=1)
    conv("ints_strided", [1, 32, 11, 9], 40, 3, INT8, stride=2, pad=1)
    conv("ints_dilated", [1, 16, 12, 10], 24, 3, INT8, pad=2, gap=2)
    conv("ints_groups", [1, 64, 9, 9], 64, 3, INT8, pad=1, group=2)
    conv("ints_colours", [1, 3, 20, 20], 16, 7, INT8, stride=2, pad=3)
    conv("ints_depthwise", [1, 32, 9, 9], 32, 3, UINT8, pad=1, group=32)


if __name__ == "__main__":
    write_all()
