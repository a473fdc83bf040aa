# SPDX-License-Identifier: MIT OR Apache-2.0
"""Quantised models for integers.sh, as quantisers of ONNX write them: each tensor by way of QuantizeLinear and
DequantizeLinear, weights of signed bytes with a scale for each channel, biases of 32 bits.

Out: NAME.onnx, and NAME.sizes for the C compiler: -DIN -DOUT.
"""
import random

from onnx_wire import FLOAT, INT8, INT16, INT32, UINT8, UINT16, graph, model, node, tensor, value_info

rng = random.Random(7)


def nest(flat, shape):
    if len(shape) < 2:
        return flat
    step = len(flat) // shape[0]
    return [nest(flat[i:i + step], shape[1:]) for i in range(0, len(flat), step)]


class Net:
    """Quantised tensors by name; scale and zero point of each."""

    def __init__(self, dtype=INT8, most=127):
        self.most = most
        self.dtype, self.nodes, self.given, self.steps = dtype, [], [], {}

    def const(self, name, dtype, values):
        self.given.append(tensor(name, dtype, values))
        return name

    def quantised(self, name, real, scale, zero):
        self.const(name + "_s", FLOAT, scale)
        self.const(name + "_z", self.dtype, zero)
        self.nodes.append(node("QuantizeLinear", [real, name + "_s", name + "_z"], [name]))
        self.steps[name] = scale, zero
        return name

    def real(self, name):
        out = f"{name}_f{len(self.nodes)}"
        self.nodes.append(node("DequantizeLinear", [name, name + "_s", name + "_z"], [out]))
        return out

    def weights(self, name, x, shape, axis):
        """They and the bias, dequantised; a channel's weights reach from -most to most."""
        count, channels = 1, shape[axis]
        for d in shape:
            count *= d
        w = [rng.randint(-self.most, self.most) for _ in range(count)]
        scale = [rng.uniform(0.6, 1.4) / self.most / (count / channels)**0.5 for _ in range(channels)]
        bias = [rng.randint(-3000, 3000) for _ in range(channels)]
        self.const(name + "_w", INT8, nest(w, shape))
        self.const(name + "_ws", FLOAT, scale)
        self.const(name + "_wz", INT8, [0] * channels)
        self.const(name + "_b", INT32, bias)
        self.const(name + "_bs", FLOAT, [s * self.steps[x][0] for s in scale])
        self.const(name + "_bz", INT32, [0] * channels)
        self.nodes += [
            node("DequantizeLinear", [name + "_w", name + "_ws", name + "_wz"], [name + "_wf"], axis=axis),
            node("DequantizeLinear", [name + "_b", name + "_bs", name + "_bz"], [name + "_bf"], axis=0)
        ]
        return [name + "_wf", name + "_bf"]

    def conv(self, name, x, shape, scale, zero, **attributes):
        self.nodes.append(node("Conv", [self.real(x)] + self.weights(name, x, shape, 0), [name + "_y"], **attributes))
        return self.quantised(name, name + "_y", scale, zero)

    def layer(self, op, name, inputs, scale, zero, more=(), **attributes):
        self.nodes.append(node(op, [self.real(x) for x in inputs] + list(more), [name + "_y"], **attributes))
        return self.quantised(name, name + "_y", scale, zero)

    def write(self, file, in_shape, out, out_shape):
        ends = [value_info("x", FLOAT, in_shape)], [value_info(out, self.dtype, out_shape)]
        with open(file + ".onnx", "wb") as f:
            f.write(model(graph(self.nodes, *ends, self.given), opset=21))
        count = [1, 1]
        for i, shape in enumerate((in_shape, out_shape)):
            for d in shape:
                count[i] *= d
        with open(file + ".sizes", "w") as f:
            f.write(f"-DIN={count[0]} -DOUT={count[1]} -DTYPE=int{16 if self.dtype == INT16 else 8}_t")


def network():
    """A residual block between strided, depthwise and point convolutions, pools, a dense layer."""
    n = Net()
    n.quantised("q", "x", 1 / 127, 3)
    n.conv("c1", "q", [8, 3, 3, 3], 0.013, -128, strides=[2, 2], pads=[1, 1, 1, 1])
    n.conv("c2", "c1", [8, 1, 3, 3], 0.02, -7, group=8, pads=[1, 1, 1, 1])
    n.conv("c3", "c2", [13, 8, 1, 1], 0.019, 11)
    n.conv("c4", "c3", [13, 13, 3, 2], 0.021, -3, pads=[1, 0, 1, 1])
    n.layer("Add", "sum", ["c3", "c4"], 0.033, -10)
    n.layer("Relu", "relu", ["sum"], 0.016, -128)
    n.layer("MaxPool", "max", ["relu"], 0.016, -128, kernel_shape=[2, 2], strides=[1, 2])
    n.layer("AveragePool", "mean", ["max"], 0.016, -128, kernel_shape=[2, 2], strides=[2, 1])
    n.layer("GlobalAveragePool", "all", ["mean"], 0.011, -128)
    n.layer("Flatten", "flat", ["all"], 0.011, -128)
    n.nodes.append(node("Gemm", [n.real("flat")] + n.weights("fc", "flat", [5, 13], 0), ["fc_y"], transB=1))
    n.quantised("y", "fc_y", 0.01, 4)
    n.write("network", [1, 3, 13, 11], "y", [1, 5])


def layers():
    """Unsigned bytes, groups, a window along one axis, products of tensors, slices side by side."""
    n = Net(UINT8)
    n.quantised("q", "x", 1 / 127, 131)
    n.conv("c1", "q", [6, 2, 5, 1], 0.02, 117, group=2, pads=[2, 0, 2, 0])
    n.conv("c2", "q", [6, 4, 1, 1], 0.015, 90, strides=[1, 1])
    n.layer("Mul", "mul", ["c1", "c2"], 0.02, 121)
    n.layer("Concat", "both", ["mul", "c1"], 0.02, 117, axis=1)
    n.const("ends", FLOAT, -0.4)
    n.const("top", FLOAT, 0.9)
    n.layer("Clip", "clip", ["both"], 0.02, 90, more=["ends", "top"])
    n.layer("Transpose", "turned", ["clip"], 0.02, 90, perm=[0, 2, 3, 1])
    # signed for the driver, by whole steps
    n.dtype = INT8
    n.layer("Identity", "y", ["turned"], 0.02, -38)
    n.write("layers", [1, 4, 9, 7], "y", [1, 9, 7, 12])


def functions():
    """Functions of one byte, two of them the same, behind one another and of products; a softmax."""
    n = Net()
    n.quantised("q", "x", 1 / 127, 3)
    n.conv("c1", "q", [8, 3, 3, 3], 0.03, -10, pads=[1, 1, 1, 1])
    n.layer("Sigmoid", "s1", ["c1"], 1 / 256, -128)
    n.layer("Mul", "swish", ["c1", "s1"], 0.02, -100)
    n.conv("c2", "swish", [8, 8, 1, 1], 0.03, -10)
    n.layer("Sigmoid", "s2", ["c2"], 1 / 256, -128)
    n.layer("Add", "sum", ["s1", "s2"], 0.008, -120)
    n.layer("Tanh", "tanh", ["sum"], 0.0078, 0)
    n.layer("HardSigmoid", "hard", ["tanh"], 0.004, -128)
    n.layer("Elu", "elu", ["hard"], 0.01, -20)
    n.layer("GlobalAveragePool", "all", ["elu"], 0.01, -20)
    n.layer("Exp", "exp", ["all"], 0.02, -128)
    n.layer("Flatten", "flat", ["exp"], 0.02, -128)
    n.nodes.append(node("Gemm", [n.real("flat")] + n.weights("fc", "flat", [9, 8], 0), ["fc_y"], transB=1))
    n.quantised("fc", "fc_y", 0.06, 4)
    n.layer("Softmax", "y", ["fc"], 1 / 256, -128, axis=1)
    n.write("functions", [1, 3, 6, 5], "y", [1, 9])


def fours():
    """Weights of 4 bits: columns of 27, 13, 37 and 64 weights, and depthwise ones."""
    n = Net(most=7)
    n.quantised("q", "x", 1 / 127, 3)
    n.conv("c1", "q", [13, 3, 3, 3], 0.02, -7, pads=[1, 1, 1, 1])
    n.conv("c2", "c1", [37, 13, 1, 1], 0.02, 11)
    n.conv("c3", "c2", [16, 37, 1, 1], 0.02, -3)
    n.conv("c4", "c3", [16, 1, 3, 3], 0.02, -3, group=16, pads=[1, 1, 1, 1])
    n.conv("c5", "c4", [7, 16, 2, 2], 0.02, 5)
    n.layer("GlobalAveragePool", "all", ["c5"], 0.01, 0)
    n.layer("Flatten", "flat", ["all"], 0.01, 0)
    n.nodes.append(node("Gemm", [n.real("flat")] + n.weights("fc", "flat", [5, 7], 0), ["fc_y"], transB=1))
    n.quantised("y", "fc_y", 0.01, 4)
    n.write("fours", [1, 3, 7, 6], "y", [1, 5])


def halves():
    """Values of 16 bits around 0 between weights of 8; averages, a sum, a product, a function, and bytes at the end."""
    n = Net(INT16)
    n.quantised("q", "x", 1 / 32767, 0)
    n.conv("c1", "q", [8, 3, 3, 3], 5e-5, 0, strides=[2, 2], pads=[1, 1, 1, 1])
    n.conv("c2", "c1", [8, 1, 3, 3], 8e-5, 0, group=8, pads=[1, 1, 1, 1])
    n.conv("c3", "c2", [13, 8, 1, 1], 8e-5, 0)
    n.conv("c4", "c3", [13, 13, 3, 2], 8e-5, 0, pads=[1, 0, 1, 1])
    n.layer("Add", "sum", ["c3", "c4"], 1.3e-4, 0)
    n.layer("Relu", "relu", ["sum"], 6e-5, 0)
    n.layer("MaxPool", "max", ["relu"], 6e-5, 0, kernel_shape=[2, 2], strides=[1, 2])
    n.layer("AveragePool", "mean", ["max"], 6e-5, 0, kernel_shape=[2, 2], strides=[2, 1])
    n.layer("Mul", "square", ["mean", "mean"], 4e-5, 0)
    n.layer("Sigmoid", "s", ["square"], 1 / 32768, 0)
    n.layer("GlobalAveragePool", "all", ["s"], 3e-5, 0)
    n.layer("Flatten", "flat", ["all"], 3e-5, 0)
    n.nodes.append(node("Gemm", [n.real("flat")] + n.weights("fc", "flat", [50, 13], 0), ["fc_y"], transB=1))
    n.quantised("y", "fc_y", 4e-5, 0)
    n.write("halves", [1, 3, 13, 11], "y", [1, 50])


def unsigned_halves():
    """The same with a zero point, and bytes behind them."""
    n = Net(UINT16)
    n.quantised("q", "x", 1 / 32767, 32000)
    n.conv("c1", "q", [6, 2, 5, 1], 5e-5, 30000, group=2, pads=[2, 0, 2, 0])
    n.conv("c2", "q", [6, 4, 1, 1], 5e-5, 31000)
    n.layer("Mul", "mul", ["c1", "c2"], 5e-5, 32768)
    n.layer("Concat", "both", ["mul", "c1"], 6e-5, 32768, axis=1)
    n.dtype = INT8
    n.quantised("y", n.real("both"), 0.02, -38)
    n.write("unsigned_halves", [1, 4, 9, 7], "y", [1, 12, 9, 7])


def half_functions():
    """Functions of one value of 16 bits, signed and not, of products and of each other; a softmax."""
    n = Net(INT16)
    n.quantised("q", "x", 1 / 32767, 0)
    n.conv("c1", "q", [9, 3, 3, 3], 2e-4, 0, pads=[1, 1, 1, 1])
    n.layer("Sigmoid", "s1", ["c1"], 1 / 32767, 0)
    n.layer("Mul", "swish", ["c1", "s1"], 1e-4, -300)
    n.layer("Tanh", "tanh", ["swish"], 2e-4, 12)
    n.dtype = UINT16
    n.layer("Exp", "exp", ["tanh"], 1.2e-3, 0)
    n.layer("Erf", "erf", ["exp"], 2.5e-3, 7)
    n.dtype = INT16
    n.layer("GlobalAveragePool", "all", ["erf"], 2e-4, 0)
    n.layer("Flatten", "flat", ["all"], 2e-4, 0)
    n.nodes.append(node("Gemm", [n.real("flat")] + n.weights("fc", "flat", [50, 9], 0), ["fc_y"], transB=1))
    n.quantised("fc", "fc_y", 6e-5, 0)
    n.layer("Softmax", "y", ["fc"], 1 / 32768, 0, axis=1)
    n.write("half_functions", [1, 3, 6, 5], "y", [1, 50])


def kink():
    """A function that bends at once, inside of a run of 256 values."""
    n = Net(INT16)
    n.quantised("q", "x", 1 / 32767, 100)
    n.layer("LeakyRelu", "y", ["q"], 1 / 32767, 0)
    n.write("kink", [1, 60], "y", [1, 60])


def ends():
    """Floats in and out, elements moved before the one and behind the other, and an input that is read as it is."""
    n = Net(UINT8)
    n.nodes.append(node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]))
    n.quantised("q", "t", 1 / 127, 131)
    n.conv("c1", "q", [5, 3, 3, 3], 0.02, 117, pads=[1, 1, 1, 1])
    n.layer("GlobalAveragePool", "all", ["c1"], 0.01, 100)
    n.nodes += [node("Transpose", [n.real("all")], ["y"], perm=[0, 2, 3, 1]), node("Abs", ["x"], ["z"])]
    given = [value_info("x", FLOAT, [1, 6, 7, 3])]
    with open("ends.onnx", "wb") as f:
        f.write(model(graph(n.nodes, given, [value_info("y", FLOAT, [1, 1, 1, 5]),
                                             value_info("z", FLOAT, [1, 6, 7, 3])], n.given)))


network()
layers()
functions()
fours()
halves()
unsigned_halves()
half_functions()
kink()
ends()
