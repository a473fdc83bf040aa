# SPDX-License-Identifier: MIT OR Apache-2.0
"""Typical networks to measure where no model files are at hand: the shapes of well-known ones, weights drawn from a
seed.

NETS names a function for each; it makes the ONNX model, some of them for any batch, image or sequence (growth.py asks
for
those). `op_` models are one operator, to see a kernel alone.
usage: models.py FOLDER [NAME...]    writes them (all)
"""
import pathlib
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Net:
    """A graph in the making: methods append nodes and return the name of the result."""
    def __init__(self, name, shape, dtype=TensorProto.FLOAT):
        self.name, self.count = name, 0
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.weights = [], []
        self.inputs = [helper.make_tensor_value_info("input", dtype, shape)]

    def fresh(self, what):
        self.count += 1
        return f"{what.lower()}{self.count}"

    def constant(self, array):
        name = self.fresh("w")
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, *shape, scale=1.0, about=0.0):
        return self.constant((about + scale * self.rng.standard_normal(shape)).astype(np.float32))

    def scalar(self, value):
        return self.constant(np.float32(value))

    def sizes(self, *values):
        return self.constant(np.array(values, np.int64))

    def node(self, op, *inputs, outputs=1, **attributes):
        made = [self.fresh(op) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, made, name=made[0], **attributes))
        return made[0] if outputs == 1 else made

    def conv(self, x, channels, filters, size=1, stride=1, groups=1, act=None, gain=2.0):
        high, wide = size if isinstance(size, tuple) else (size, size)
        fan = channels // groups * high * wide
        y = self.node("Conv", x, self.drawn(filters, channels // groups, high, wide, scale=(gain / fan)**0.5),
                      self.drawn(filters, scale=0.05), kernel_shape=[high, wide], strides=[stride, stride],
                      pads=[high // 2, wide // 2] * 2, group=groups)
        return self.activate(y, act)

    def activate(self, x, act):
        if act == "relu6":
            return self.node("Clip", x, self.scalar(0), self.scalar(6))
        if act == "silu":
            return self.node("Mul", x, self.node("Sigmoid", x))
        return self.node("Relu", x) if act == "relu" else x

    def dense(self, x, width, out, act=None, gain=2.0):
        y = self.node("Gemm", x, self.drawn(out, width, scale=(gain / width)**0.5), self.drawn(out, scale=0.05),
                      transB=1)
        return self.activate(y, act)

    def linear(self, x, width, out):
        return self.node("Add", self.node("MatMul", x, self.drawn(width, out, scale=width**-0.5)),
                         self.drawn(out, scale=0.02))

    def norm(self, x, width):
        return self.node("LayerNormalization", x, self.drawn(width, scale=0.1, about=1), self.drawn(width, scale=0.05),
                         axis=-1, epsilon=1e-5)

    def classify(self, x, channels, classes):
        return self.dense(self.node("Flatten", self.node("GlobalAveragePool", x), axis=1), channels, classes, gain=1)

    def model(self, *results):
        outputs = [helper.make_empty_tensor_value_info(r) for r in results]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, outputs, self.weights)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        proto.ir_version = 8
        shapes = {v.name: v for v in onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.output}
        for v in proto.graph.output:
            v.CopyFrom(shapes[v.name])
        onnx.checker.check_model(proto)
        return proto


# ---------------------------------------------------------------- vision

def resnet(name, blocks, batch=1, image=224):
    """Bottlenecks 1x1, 3x3, 1x1 around a shortcut (He et al., 2015)."""
    net = Net(name, [batch, 3, image, image])
    x = net.node("MaxPool", net.conv("input", 3, 64, 7, 2, act="relu"), kernel_shape=[3, 3], strides=[2, 2],
                 pads=[1, 1, 1, 1])
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for i in range(count):
            stride = 2 if stage and not i else 1
            y = net.conv(net.conv(x, channels, width, act="relu"), width, width, 3, stride, act="relu")
            y = net.conv(y, width, 4 * width, gain=0.2)
            x = net.activate(net.node("Add", y, x if i else net.conv(x, channels, 4 * width, 1, stride, gain=1)),
                             "relu")
            channels = 4 * width
    return net.model(net.classify(x, channels, 1000))


def mobilenet(name, batch=1, image=224, act="relu6"):
    """Inverted residuals: widen, depthwise 3x3, narrow (Sandler et al., 2018)."""
    net = Net(name, [batch, 3, image, image])
    x, channels = net.conv("input", 3, 32, 3, 2, act=act), 32
    for widen, filters, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(count):
            step, wide = (1 if i else stride), widen * channels
            y = net.conv(x, channels, wide, act=act) if widen > 1 else x
            y = net.conv(net.conv(y, wide, wide, 3, step, wide, act=act), wide, filters, gain=0.5)
            x, channels = (net.node("Add", x, y) if step == 1 and channels == filters else y), filters
    return net.model(net.classify(net.conv(x, channels, 1280, act=act), 1280, 1000))


def densenet(name, blocks=(6, 12, 24, 16), grow=32):
    """Every layer reads all before it (Huang et al., 2017): concatenations, and normalization before the
    convolutions."""
    net = Net(name, [1, 3, 224, 224])

    def normalized(x, channels):
        shape = (channels,)
        return net.activate(
            net.node("BatchNormalization", x, net.drawn(*shape, scale=0.1, about=1), net.drawn(*shape, scale=0.05),
                     net.drawn(*shape, scale=0.1),
                     net.constant(net.rng.uniform(0.6, 1.4, channels).astype(np.float32))), "relu")

    x, channels = net.node("MaxPool", net.conv("input", 3, 64, 7, 2, act="relu"), kernel_shape=[3, 3], strides=[2, 2],
                           pads=[1, 1, 1, 1]), 64
    for b, count in enumerate(blocks):
        for _ in range(count):
            y = net.conv(normalized(net.conv(normalized(x, channels), channels, 4 * grow), 4 * grow), 4 * grow, grow, 3)
            x, channels = net.node("Concat", x, y, axis=1), channels + grow
        if b + 1 < len(blocks):
            x, channels = net.conv(normalized(x, channels), channels, channels // 2), channels // 2
            x = net.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    return net.model(net.classify(normalized(x, channels), channels, 1000))


# ---------------------------------------------------------------- text

def attention(net, x, width, heads, sequence):
    def split(y, order):
        return net.node("Transpose", net.node("Reshape", y, net.sizes(0, sequence, heads, width // heads)), perm=order)
    q, k, v = (split(net.linear(x, width, width), order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = net.node("Mul", net.node("MatMul", q, k), net.scalar((width // heads) ** -0.5))
    mixed = net.node("Transpose", net.node("MatMul", net.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return net.linear(net.node("Reshape", mixed, net.sizes(0, sequence, width)), width, width)


def encoder(name, layers=6, width=384, heads=12, sequence=128, batch=1):
    """A transformer's encoder, normalization after each half (Vaswani et al., 2017), GELU by erf."""
    net = Net(name, [batch, sequence, width])
    x = "input"
    for _ in range(layers):
        x = net.norm(net.node("Add", x, attention(net, x, width, heads, sequence)), width)
        h = net.linear(x, width, 4 * width)
        h = net.node("Mul", net.node("Mul", h, net.scalar(0.5)),
                     net.node("Add", net.node("Erf", net.node("Mul", h, net.scalar(0.5**0.5))), net.scalar(1)))
        x = net.norm(net.node("Add", x, net.linear(h, 4 * width, width)), width)
    return net.model(x)


def lstm(name, sequence=64, width=64, hidden=128):
    net = Net(name, [sequence, 1, width])
    scale = hidden ** -0.5
    y, last, _ = net.node("LSTM", "input", net.drawn(1, 4 * hidden, width, scale=scale),
                          net.drawn(1, 4 * hidden, hidden, scale=scale), net.drawn(1, 8 * hidden, scale=scale),
                          outputs=3, hidden_size=hidden)
    return net.model(net.dense(net.node("Squeeze", last, net.sizes(0)), hidden, 10, gain=1))


# ---------------------------------------------------------------- small

def keywords(name):
    """Depthwise-separable convolutions over a spectrogram."""
    net = Net(name, [1, 1, 49, 10])
    x = net.conv("input", 1, 64, (9, 3), 2, act="relu")
    for _ in range(4):
        x = net.conv(net.conv(x, 64, 64, 3, 1, 64, act="relu"), 64, 64, act="relu")
    return net.model(net.node("Softmax", net.classify(x, 64, 12), axis=1))


def digits(name):
    net = Net(name, [1, 1, 28, 28])
    x = net.conv(net.conv("input", 1, 8, 3, act="relu"), 8, 16, 3, act="relu")
    x = net.node("Flatten", net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    return net.model(net.dense(x, 16 * 14 * 14, 10, gain=1))


def autoencoder(name):
    net = Net(name, [1, 640])
    x, widths = "input", [640, 128, 128, 128, 8, 128, 128, 128, 640]
    for i in range(len(widths) - 1):
        x = net.dense(x, widths[i], widths[i + 1], act="relu" if i + 2 < len(widths) else None)
    return net.model(x)


# ---------------------------------------------------------------- one operator

def one_conv(name, channels, filters, size, image, groups=1):
    net = Net(name, [1, channels, image, image])
    return net.model(net.conv("input", channels, filters, size, groups=groups))


def one_matmul(name, m, n, k):
    net = Net(name, [m, k])
    return net.model(net.node("MatMul", "input", net.drawn(k, n, scale=k ** -0.5)))


NETS = {
    "resnet50": lambda n, **o: resnet(n, (3, 4, 6, 3), **o),
    "mobilenet": mobilenet,
    "mobilenet_silu": lambda n: mobilenet(n, act="silu"),
    "densenet121": densenet,
    "encoder_l6": encoder,
    "lstm": lstm,
    "tiny_keywords": keywords,
    "tiny_digits": digits,
    "tiny_autoencoder": autoencoder,
    "op_conv3x3_64_56": lambda n: one_conv(n, 64, 64, 3, 56),
    "op_conv3x3_128_28": lambda n: one_conv(n, 128, 128, 3, 28),
    "op_conv1x1_256_64_56": lambda n: one_conv(n, 256, 64, 1, 56),
    "op_depthwise_144_56": lambda n: one_conv(n, 144, 144, 3, 56, 144),
    "op_matmul_1024": lambda n: one_matmul(n, 1024, 1024, 1024),
    "op_matmul_128x1536x384": lambda n: one_matmul(n, 128, 1536, 384),
    "op_matvec_768x3072": lambda n: one_matmul(n, 1, 3072, 768),
}


def write(folder, name, net=None, **options):
    """Makes `net` (the one called `name`) as FOLDER/NAME.onnx unless a newer file than this one is there; the path."""
    path = pathlib.Path(folder) / f"{name}.onnx"
    if not path.exists() or path.stat().st_mtime < pathlib.Path(__file__).stat().st_mtime:
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(NETS[net or name](name, **options), str(path))
    return path


if __name__ == "__main__":
    for each in sys.argv[2:] or NETS:
        print(write(sys.argv[1], each))
