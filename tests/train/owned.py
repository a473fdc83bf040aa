#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Training cases that need nothing beside the checkout: tiny models, and what training them must give, in double
precision.

usage: owned.py FOLDER
Writes FOLDER/NAME/{model.onnx,case.json,reference.safetensors} for run.py. Gradients come from a tape of scalar
operations and the optimizers are written out here once more, so nothing is shared with the compiler. Needs the standard
library only."""
import json, math, os, struct, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import onnx_wire as wire        # noqa: E402

STEPS = 10


# ---------------------------------------------------------------- a tape of scalars
class Var:
    """A number, what it was computed from, and the derivative by each of those."""
    __slots__ = ("v", "of", "grad")
    tape = []

    def __init__(self, v, of=()):
        self.v, self.of, self.grad = v, of, 0.0
        Var.tape.append(self)

    def __add__(self, o):
        return Var(self.v + o.v, ((self, 1.0), (o, 1.0))) if isinstance(o, Var) else Var(self.v + o, ((self, 1.0),))

    def __mul__(self, o):
        return Var(self.v * o.v, ((self, o.v), (o, self.v))) if isinstance(o, Var) else Var(self.v * o, ((self, o),))

    def __sub__(self, o):
        return self + o * -1.0

    def map(self, y, d):
        return Var(y, ((self, d),))


def tanh(x):
    y = math.tanh(x.v)
    return x.map(y, 1 - y * y)


def sigmoid(x):
    y = 1 / (1 + math.exp(-x.v))
    return x.map(y, y * (1 - y))


def softplus(x):
    return x.map(math.log1p(math.exp(x.v)), 1 / (1 + math.exp(-x.v)))


def relu(x):
    return x.map(max(x.v, 0.0), 1.0 if x.v > 0 else 0.0)


def largest(values):
    return max(values, key=lambda x: x.v)


def total(values):
    values = list(values)
    return Var(math.fsum(x.v for x in values), tuple((x, 1.0) for x in values))


def log_softmax(row):
    top = max(x.v for x in row)
    exps = [math.exp(x.v - top) for x in row]
    whole = sum(exps)
    log = Var(top + math.log(whole), tuple((x, e / whole) for x, e in zip(row, exps)))
    return [x - log for x in row]


def backward(loss):
    loss.grad = 1.0
    for node in reversed(Var.tape):
        for x, d in node.of:
            x.grad += node.grad * d


# ---------------------------------------------------------------- layers, losses, optimizers
def linear(row, weight, bias):
    return [total(x * w for x, w in zip(row, line)) + b for line, b in zip(weight, bias)]


def convolve(image, weight, bias):
    """image [c][h][w], weight [o][c][3][3], one row and column of zeros around the image."""
    h, w = len(image[0]), len(image[0][0])
    taps = [(c, i, j) for c in range(len(image)) for i in range(3) for j in range(3)]
    return [[[total(image[c][y + i - 1][x + j - 1] * weight[o][c][i][j]
                    for c, i, j in taps if 0 <= y + i - 1 < h and 0 <= x + j - 1 < w) + bias[o]
              for x in range(w)] for y in range(h)] for o in range(len(weight))]


def products(terms):
    """The sum of the products of pairs, as one step of the tape."""
    terms = list(terms)
    return Var(math.fsum(x.v * w.v for x, w in terms),
               tuple((x, w.v) for x, w in terms) + tuple((w, x.v) for x, w in terms))


def window(image, weight, stride=1, dilation=1, pad=0, group=1):
    """Any convolution: image [c][h][w], weight [o][c/group][k][k]."""
    h, w, k, depth, per = len(image[0]), len(image[0][0]), len(weight[0][0]), len(weight[0]), len(weight) // group
    reach = dilation * (k - 1) - 2 * pad
    taps = [(c, i, j) for c in range(depth) for i in range(k) for j in range(k)]

    def at(o, y, x):
        for c, i, j in taps:
            u, v = y * stride + i * dilation - pad, x * stride + j * dilation - pad
            if 0 <= u < h and 0 <= v < w:
                yield image[o // per * depth + c][u][v], weight[o][c][i][j]

    return [[[products(at(o, y, x)) for x in range((w - reach - 1) // stride + 1)]
             for y in range((h - reach - 1) // stride + 1)] for o in range(len(weight))]


def mean(values):
    return total(values) * (1 / len(values))


def rsqrt(x):
    y = x.v ** -0.5
    return x.map(y, -0.5 * y ** 3)


def pairs(rows, targets):
    return [(x, t) for row, line in zip(rows, targets) for x, t in zip(row, line)]


LOSSES = {
    "cross_entropy": lambda rows, targets: mean([log_softmax(r)[t] * -1.0 for r, t in zip(rows, targets)]),
    "nll": lambda rows, targets: mean([r[t] * -1.0 for r, t in zip(rows, targets)]),
    "mse": lambda rows, targets: mean([(x - t) * (x - t) for x, t in pairs(rows, targets)]),
    "l1": lambda rows, targets: mean([x.map(abs(x.v - t), math.copysign(1, x.v - t)) for x, t in pairs(rows, targets)]),
    "binary_cross_entropy": lambda rows, targets: mean([softplus(x) - x * t for x, t in pairs(rows, targets)]),
}


def sgd(p, g, s, t, lr):
    return p - lr * g


def momentum(p, g, s, t, lr, momentum, weight_decay):
    s[0] = momentum * s[0] + g + weight_decay * p
    return p - lr * s[0]


def nesterov(p, g, s, t, lr, momentum, weight_decay):
    g += weight_decay * p
    s[0] = momentum * s[0] + g
    return p - lr * (g + momentum * s[0])


def moments(g, s, t, betas):
    for i, power in ((0, 1), (1, 2)):
        s[i] = betas[i] * s[i] + (1 - betas[i]) * g ** power
    return s[0] / (1 - betas[0] ** t), s[1] / (1 - betas[1] ** t)


def adam(p, g, s, t, lr, betas, eps, weight_decay):
    m, v = moments(g + weight_decay * p, s, t, betas)
    return p - lr * m / (math.sqrt(v) + eps)


def adamw(p, g, s, t, lr, betas, eps, weight_decay):
    m, v = moments(g, s, t, betas)
    return p * (1 - lr * weight_decay) - lr * m / (math.sqrt(v) + eps)


def rmsprop(p, g, s, t, lr, alpha, eps, momentum):
    s[0] = alpha * s[0] + (1 - alpha) * g * g
    s[1] = alpha * s[1] + (1 - alpha) * g
    s[2] = momentum * s[2] + g / (math.sqrt(s[0] - s[1] * s[1]) + eps)
    return p - lr * s[2]


def adagrad(p, g, s, t, lr, eps):
    s[0] += g * g
    return p - lr * g / (math.sqrt(s[0]) + eps)


def dampened_momentum(p, g, s, t, lr, momentum, dampening, weight_decay):
    g += weight_decay * p
    s[0] = momentum * s[0] + (1 - dampening) * g if t > 1 else g
    return p - lr * s[0]


def amsgrad(p, g, s, t, lr, betas, eps, weight_decay):
    moments(g + weight_decay * p, s, t, betas)
    s[2] = max(s[2], s[1])
    return p - lr * s[0] / (1 - betas[0] ** t) / (math.sqrt(s[2] / (1 - betas[1] ** t)) + eps)


def uncentered_rmsprop(p, g, s, t, lr, alpha, eps, momentum, weight_decay):
    g += weight_decay * p
    s[0] = alpha * s[0] + (1 - alpha) * g * g
    s[1] = momentum * s[1] + g / (math.sqrt(s[0]) + eps)
    return p - lr * s[1]


def decayed_adagrad(p, g, s, t, lr, lr_decay, eps, weight_decay):
    g += weight_decay * p
    s[0] += g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (math.sqrt(s[0]) + eps)


def adan(p, g, s, t, lr, betas, eps, weight_decay):
    """Algorithm 1 of the paper, without restarts; s: m, v, n, the gradient before."""
    change = g - s[3] if t > 1 else 0.0
    s[0] = betas[0] * s[0] + (1 - betas[0]) * g
    s[1] = betas[1] * s[1] + (1 - betas[1]) * change
    s[2] = betas[2] * s[2] + (1 - betas[2]) * (g + betas[1] * change) ** 2
    s[3] = g
    m, v, n = (x / (1 - b ** t) for x, b in zip(s, betas))
    return (p - lr / (math.sqrt(n) + eps) * (m + betas[1] * v)) / (1 + lr * weight_decay)


RUNS = [
    (sgd, {"lr": 0.1}),
    (momentum, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    (nesterov, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    (adam, {"lr": 0.01, "betas": [0.9, 0.99], "eps": 1e-4, "weight_decay": 0.01}),
    (adamw, {"lr": 0.01, "betas": [0.9, 0.99], "eps": 1e-4, "weight_decay": 0.1}),
    (rmsprop, {"lr": 0.01, "alpha": 0.9, "eps": 1e-2, "momentum": 0.5}),
    (adagrad, {"lr": 0.05, "eps": 1e-4}),
]
MORE_RUNS = [
    (dampened_momentum, {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    (amsgrad, {"lr": 0.01, "betas": [0.9, 0.5], "eps": 1e-4, "weight_decay": 0.01}),
    (uncentered_rmsprop, {"lr": 0.01, "alpha": 0.9, "eps": 1e-2, "momentum": 0.5, "weight_decay": 0.01}),
    (decayed_adagrad, {"lr": 0.05, "lr_decay": 0.1, "eps": 1e-4, "weight_decay": 0.01}),
    (adan, {"lr": 0.01, "betas": [0.9, 0.8, 0.95], "eps": 1e-4, "weight_decay": 0.1}),
]


# ---------------------------------------------------------------- models
def numbers(seed):
    """Evenly spread in -1..1 and exact in f32; the same everywhere."""
    while True:
        seed = (seed * 1103515245 + 12345) % 2**31
        yield (seed >> 12) / 2**18 - 1


def in_f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def filled(shape, source, scale=1.0):
    if not shape:
        return in_f32(next(source) * scale)
    return [filled(shape[1:], source, scale) for _ in range(shape[0])]


def nested(f, x):
    return [nested(f, v) for v in x] if isinstance(x, list) else f(x)


class Case:
    """name, loss, input and target shape, classes (0: targets are numbers), shapes of parameters by name, constants,
    nodes, optimizers, options; run: the predictions. statistics: running ones by name, with their begin, which a run
    in training mode replaces. drops: by the step's number, which is in `at`."""
    x_shape, y_shape, classes, constants, axes, runs, options, statistics = [4, 3], [4], 3, {}, [], RUNS, [], {}
    training, drops, at = False, False, 0

    def __init__(self):
        source = numbers(7)
        self.running = dict(self.statistics)
        self.params = {k: filled(s, source, 0.6) for k, s in self.shapes.items()}
        self.batches = [(filled(self.x_shape, source),
                         nested(self.target, filled(self.y_shape, source))) for _ in range(STEPS)]

    def target(self, v):
        return int((v + 1) * self.classes / 2) if self.classes else (v + 1) / 2

    def model(self):
        tensors = [wire.tensor(k, wire.FLOAT, v) for k, v in {**self.params, **self.constants}.items()] + self.axes
        return wire.model(wire.graph(self.nodes, [wire.value_info("x", wire.FLOAT, self.x_shape)],
                                     [wire.value_info("y", wire.FLOAT, None)], tensors))


class Mlp(Case):
    """Two layers."""
    name, loss, runs = "mlp", "cross_entropy", RUNS + MORE_RUNS
    shapes = {"a.weight": [5, 3], "a.bias": [5], "b.weight": [3, 5], "b.bias": [3]}
    nodes = [wire.node("Gemm", ["x", "a.weight", "a.bias"], ["a"], transB=1), wire.node("Tanh", ["a"], ["h"]),
             wire.node("Gemm", ["h", "b.weight", "b.bias"], ["y"], transB=1)]

    def run(self, p, x):
        hidden = [[tanh(v) for v in linear(row, p["a.weight"], p["a.bias"])] for row in x]
        return [linear(row, p["b.weight"], p["b.bias"]) for row in hidden]


class Nll(Mlp):
    """The loss of log-probabilities."""
    name, loss, runs = "mlp_nll", "nll", RUNS[:1]
    nodes = Mlp.nodes[:2] + [wire.node("Gemm", ["h", "b.weight", "b.bias"], ["z"], transB=1),
                             wire.node("LogSoftmax", ["z"], ["y"], axis=1)]

    def run(self, p, x):
        return [log_softmax(row) for row in super().run(p, x)]


def mix(x):
    """32 bits to 32 bits, as compiler/ops/random.c has it."""
    for shift, factor in (17, 0xed5ad4bb), (11, 0xac4c1b51), (15, 0x31848bab), (14, 1):
        x = (x ^ x >> shift) * factor & 0xffffffff
    return x


class Dropped(Mlp):
    """Dropout of the inputs and of the hidden values, by masks that depend on seed, node, step and place."""
    name, runs, drops, options = "dropped", RUNS[:4], True, ["--seed", "5"]
    nodes = [wire.node("Dropout", ["x", "half"], ["u"]),
             wire.node("Gemm", ["u", "a.weight", "a.bias"], ["a"], transB=1), wire.node("Tanh", ["a"], ["h"]),
             wire.node("Dropout", ["h", "third"], ["v"]),
             wire.node("Gemm", ["v", "b.weight", "b.bias"], ["y"], transB=1)]
    axes = [wire.tensor("half", wire.FLOAT, 0.5), wire.tensor("third", wire.FLOAT, 0.3)]

    def drop(self, rows, node, ratio):
        if not self.training:
            return rows
        k0 = mix(node + 0x9e3779b9 & 0xffffffff)
        key = mix(5 ^ k0) ^ mix(self.at + k0 & 0xffffffff)
        width = len(rows[0])
        return [[x * (1 / (1 - ratio) if (mix(mix(width * i + j + k0 & 0xffffffff) ^ key) >> 8) / 2**24 >= ratio else 0)
                 for j, x in enumerate(row)] for i, row in enumerate(rows)]

    def run(self, p, x):
        hidden = [[tanh(v) for v in linear(row, p["a.weight"], p["a.bias"])] for row in self.drop(x, 0, 0.5)]
        return [linear(row, p["b.weight"], p["b.bias"]) for row in self.drop(hidden, 1, in_f32(0.3))]


class L1(Mlp):
    name, loss, classes, y_shape, runs = "mlp_l1", "l1", 0, [4, 3], RUNS[:1]


class Conv(Case):
    """A convolution, batch normalization by fixed statistics, pooling."""
    name, loss, classes, x_shape, y_shape, options = "conv", "mse", 0, [2, 1, 4, 6], [2, 2], ["--frozen-norm"]
    shapes = {"c.weight": [3, 1, 3, 3], "c.bias": [3], "n.weight": [3], "n.bias": [3], "l.weight": [2, 18],
              "l.bias": [2]}
    constants = {"n.mean": [0.25, -0.5, 0.125], "n.var": [0.5, 1.5, 0.75]}
    nodes = [wire.node("Conv", ["x", "c.weight", "c.bias"], ["c"], pads=[1, 1, 1, 1]),
             wire.node("BatchNormalization", ["c", "n.weight", "n.bias", "n.mean", "n.var"], ["n"], epsilon=0.001),
             wire.node("Relu", ["n"], ["r"]), wire.node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
             wire.node("Flatten", ["m"], ["f"]), wire.node("Gemm", ["f", "l.weight", "l.bias"], ["y"], transB=1)]

    def run(self, p, x):
        means, variances = self.constants["n.mean"], self.constants["n.var"]
        rows = []
        for image in x:
            planes = convolve(image, p["c.weight"], p["c.bias"])
            for o, plane in enumerate(planes):
                rstd = 1 / math.sqrt(variances[o] + in_f32(0.001))
                planes[o] = [[relu((v - means[o]) * rstd * p["n.weight"][o] + p["n.bias"][o]) for v in line]
                             for line in plane]
            flat = [largest([plane[2 * y + i][2 * x + j] for i in (0, 1) for j in (0, 1)])
                    for plane in planes for y in range(2) for x in range(3)]
            rows.append(linear(flat, p["l.weight"], p["l.bias"]))
        return rows


class Norm(Case):
    """Batch normalization by the statistics of the batch, of images and of rows; the running ones, which come out of
    the exporter as one initializer each, go on at every step, each node's on its own."""
    name, loss, classes, x_shape, y_shape, momentum = "norm", "mse", 0, [3, 1, 4, 6], [3, 4], 0.75
    shapes = {"c.weight": [4, 1, 3, 3], "n.weight": [4], "n.bias": [4], "l.weight": [4, 24], "m.weight": [4],
              "m.bias": [4]}
    constants = {"means": [0.25] * 4, "variances": [1.5] * 4}
    runs = RUNS[:4]
    statistics = {f"batchnormalization_{k}.running_{what}": v
                  for k in "ry" for what, v in (("mean", [0.25] * 4), ("var", [1.5] * 4))}
    mode = {}
    kept = {"epsilon": 0.001, "momentum": momentum}

    @property
    def nodes(self):
        norms = [wire.node("BatchNormalization", [x, f"{k}.weight", f"{k}.bias", "means", "variances"], [y],
                           **self.kept, **self.mode) for k, x, y in ("ncr", "mly")]
        return [wire.node("Conv", ["x", "c.weight"], ["c"], pads=[1, 1, 1, 1]), norms[0],
                wire.node("Tanh", ["r"], ["u"]),
                wire.node("MaxPool", ["u"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                wire.node("Flatten", ["p"], ["f"]), wire.node("Gemm", ["f", "l.weight"], ["l"], transB=1), norms[1]]

    def normalize(self, p, k, channels):
        """Lists of numbers, by channel."""
        mean_of, var_of = (f"batchnormalization_{'r' if k == 'n' else 'y'}.running_{what}" for what in ("mean", "var"))
        done = []
        for c, values in enumerate(channels):
            centre, spread = Var(self.running[mean_of][c]), Var(self.running[var_of][c])
            if self.training:
                centre = mean(values)
                spread = mean([(v - centre) * (v - centre) for v in values])
                for name, now in (mean_of, centre.v), (var_of, spread.v * len(values) / (len(values) - 1)):
                    last = self.running[name]
                    went = last[c] * self.momentum + now * (1 - self.momentum)
                    self.running[name] = last[:c] + [went] + last[c + 1:]
            a = rsqrt(spread + in_f32(0.001)) * p[f"{k}.weight"][c]
            done.append([(v - centre) * a + p[f"{k}.bias"][c] for v in values])
        return done

    def run(self, p, x):
        images = [window(image, p["c.weight"], pad=1) for image in x]
        by_channel = [[v for image in images for line in image[c] for v in line] for c in range(4)]
        channels = self.normalize(p, "n", by_channel)
        rows = []
        for i in range(len(x)):
            planes = [[channel[24 * i + 6 * y:24 * i + 6 * y + 6] for y in range(4)] for channel in channels]
            flat = [tanh(largest([plane[2 * y + u][2 * x + v] for u in (0, 1) for v in (0, 1)]))
                    for plane in planes for y in range(2) for x in range(3)]
            rows.append(linear(flat, p["l.weight"], [0.0] * 4))
        return [list(row) for row in zip(*self.normalize(p, "m", list(zip(*rows))))]


class NormExported(Norm):
    """The same, as it is exported in training mode."""
    name, runs, mode = "norm_exported", RUNS[:1], {"training_mode": 1}


class Point(Case):
    """A convolution by one point, which is a product."""
    name, loss, classes, x_shape, y_shape, runs = "point", "mse", 0, [2, 3, 2, 4], [2, 2], RUNS[:2]
    shapes = {"c.weight": [4, 3, 1, 1], "c.bias": [4], "l.weight": [2, 32], "l.bias": [2]}
    nodes = [wire.node("Conv", ["x", "c.weight", "c.bias"], ["c"]), wire.node("Tanh", ["c"], ["t"]),
             wire.node("Flatten", ["t"], ["f"]), wire.node("Gemm", ["f", "l.weight", "l.bias"], ["y"], transB=1)]

    def run(self, p, x):
        weight = [[v[0][0] for v in row] for row in p["c.weight"]]
        rows = []
        for image in x:
            points = [linear([plane[i][j] for plane in image], weight, p["c.bias"]) for i in range(2) for j in range(4)]
            flat = [tanh(point[o]) for o in range(4) for point in points]
            rows.append(linear(flat, p["l.weight"], p["l.bias"]))
        return rows


class Windows(Case):
    """Convolutions of all kinds: strided in groups, of each channel alone and dilated, by one point with a stride."""
    name, loss, classes, x_shape, y_shape, runs = "windows", "mse", 0, [2, 4, 9, 7], [2, 2], RUNS[:1]
    shapes = {"g.weight": [18, 2, 3, 3], "d.weight": [18, 1, 3, 3], "e.weight": [18, 1, 3, 3],
              "w.weight": [20, 18, 3, 3], "p.weight": [5, 20, 1, 1], "l.weight": [2, 10], "l.bias": [2]}
    nodes = [wire.node("Conv", ["x", "g.weight"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], group=2),
             wire.node("Tanh", ["a"], ["b"]),
             wire.node("Conv", ["b", "d.weight"], ["c"], pads=[1, 1, 1, 1], group=18),
             wire.node("Conv", ["c", "e.weight"], ["d"], pads=[2, 2, 2, 2], dilations=[2, 2], group=18),
             wire.node("Conv", ["d", "w.weight"], ["e"], pads=[1, 1, 1, 1], strides=[2, 2]),
             wire.node("Tanh", ["e"], ["f"]),
             wire.node("Conv", ["f", "p.weight"], ["g"], strides=[2, 2]),
             wire.node("Flatten", ["g"], ["h"]), wire.node("Gemm", ["h", "l.weight", "l.bias"], ["y"], transB=1)]

    def run(self, p, x):
        rows = []
        for image in x:
            image = nested(tanh, window(image, p["g.weight"], stride=2, pad=1, group=2))
            image = window(image, p["d.weight"], pad=1, group=18)
            image = window(image, p["e.weight"], pad=2, dilation=2, group=18)
            image = nested(tanh, window(image, p["w.weight"], pad=1, stride=2))
            image = window(image, p["p.weight"], stride=2)
            flat = [v for plane in image for line in plane for v in line]
            rows.append(linear(flat, p["l.weight"], p["l.bias"]))
        return rows


class Strides(Case):
    """Strides longer than the window, shorter, in groups and of each channel alone, over odd sizes."""
    name, loss, classes, x_shape, y_shape, runs = "strides", "mse", 0, [2, 2, 14, 12], [2, 2], RUNS[:1]
    shapes = {"a.weight": [18, 2, 3, 3], "b.weight": [18, 1, 3, 3], "c.weight": [6, 18, 2, 2], "d.weight": [4, 3, 3, 3],
              "l.weight": [2, 4], "l.bias": [2]}
    nodes = [wire.node("Conv", ["x", "a.weight"], ["a"]), wire.node("Tanh", ["a"], ["b"]),
             wire.node("Conv", ["b", "b.weight"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], group=18),
             wire.node("Tanh", ["c"], ["d"]), wire.node("Conv", ["d", "c.weight"], ["e"], strides=[3, 3]),
             wire.node("Tanh", ["e"], ["f"]),
             wire.node("Conv", ["f", "d.weight"], ["g"], pads=[1, 1, 1, 1], strides=[2, 2], group=2),
             wire.node("Flatten", ["g"], ["h"]), wire.node("Gemm", ["h", "l.weight", "l.bias"], ["y"], transB=1)]

    def run(self, p, x):
        rows = []
        for image in x:
            image = nested(tanh, window(image, p["a.weight"]))
            image = nested(tanh, window(image, p["b.weight"], pad=1, stride=2, group=18))
            image = nested(tanh, window(image, p["c.weight"], stride=3))
            image = window(image, p["d.weight"], stride=2, pad=1, group=2)
            flat = [v for plane in image for line in plane for v in line]
            rows.append(linear(flat, p["l.weight"], p["l.bias"]))
        return rows


class Lstm(Case):
    """A recurrent layer's last state."""
    name, loss, classes, x_shape, y_shape = "lstm", "binary_cross_entropy", 0, [3, 2, 3], [2, 2]
    shapes = {"r.w": [1, 16, 3], "r.r": [1, 16, 4], "r.b": [1, 32], "l.weight": [2, 4], "l.bias": [2]}
    nodes = [wire.node("LSTM", ["x", "r.w", "r.r", "r.b"], ["", "h"], hidden_size=4),
             wire.node("Squeeze", ["h", "first"], ["s"]),
             wire.node("Gemm", ["s", "l.weight", "l.bias"], ["y"], transB=1)]
    axes = [wire.tensor("first", wire.INT64, [0])]

    def run(self, p, x):
        w, r, b = p["r.w"][0], p["r.r"][0], p["r.b"][0]
        rows = []
        for item in range(2):
            h = c = [Var(0.0)] * 4
            for step in x:
                gates = [u + v for u, v in zip(linear(step[item], w, b[:16]), linear(h, r, b[16:]))]
                i, o, f, new = gates[:4], gates[4:8], gates[8:12], gates[12:]
                c = [sigmoid(f[k]) * c[k] + sigmoid(i[k]) * tanh(new[k]) for k in range(4)]
                h = [sigmoid(o[k]) * tanh(c[k]) for k in range(4)]
            rows.append(linear(h, p["l.weight"], p["l.bias"]))
        return rows


# ---------------------------------------------------------------- runs
def step(case, values, x, y):
    """Loss and gradients, flat by parameter."""
    Var.tape = []
    params = {k: nested(Var, v) for k, v in values.items()}
    case.training = True
    loss = LOSSES[case.loss](case.run(params, nested(Var, x)), y)
    backward(loss)
    return loss.v, {k: [v.grad for v in wire.flatten(p)[0]] for k, p in params.items()}


def predict(case, values, x):
    case.training = False
    rows = case.run({k: nested(Var, v) for k, v in values.items()}, nested(Var, x))
    return wire.flatten(nested(lambda v: v.v, rows))[0]


def shaped(flat, like):
    flat = iter(flat)
    return nested(lambda _: next(flat), like)


def train(case, update, hyper):
    """Losses, and what is left in the end: parameters, statistics."""
    values, losses, case.running = case.params, [], dict(case.statistics)
    state = {k: [[0.0] * 4 for _ in wire.flatten(v)[0]] for k, v in values.items()}
    for t, (x, y) in enumerate(case.batches, 1):
        case.at = t
        loss, grads = step(case, values, x, y)
        losses.append(loss)
        for k, v in values.items():
            elements = zip(wire.flatten(v)[0], grads[k], state[k])
            values = {**values, k: shaped([update(p, g, s, t, **hyper) for p, g, s in elements], v)}
    return losses, {**values, **case.running}


def safetensors(path, tensors):
    head, data = {}, b""
    for name, (dtype, flat) in tensors.items():
        raw = struct.pack(f"<{len(flat)}{'q' if dtype == 'I64' else 'f'}", *flat)
        head[name] = {"dtype": dtype, "shape": [len(flat)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def write(case, folder):
    os.makedirs(folder, exist_ok=True)
    open(os.path.join(folder, "model.onnx"), "wb").write(case.model())
    prediction = predict(case, case.params, case.batches[0][0])
    case.at = 1
    grads = step(case, case.params, *case.batches[0])[1]
    tensors = {"eval_output": ("F32", prediction), **{f"grad.{k}": ("F32", v) for k, v in grads.items()}}
    for i, (x, y) in enumerate(case.batches):
        tensors[f"x{i}"] = ("F32", wire.flatten(x)[0])
        tensors[f"y{i}"] = ("I64" if case.classes else "F32", wire.flatten(y)[0])
    runs = {}
    for update, hyper in case.runs:
        losses, final = train(case, update, hyper)
        runs[update.__name__] = {"hyper": hyper, "losses": losses}
        tensors.update({f"final.{update.__name__}.{k}": ("F32", wire.flatten(v)[0]) for k, v in final.items()})
    about = {"loss": case.loss, "options": case.options, "drops": case.drops, "runs": runs}
    json.dump(about, open(os.path.join(folder, "case.json"), "w"), indent=1)
    safetensors(os.path.join(folder, "reference.safetensors"), tensors)


CASES = [Mlp, Dropped, Nll, L1, Conv, Norm, NormExported, Point, Windows, Strides, Lstm]


def write_all(folder):
    """Every case, in a folder of its name; their names."""
    for case in CASES:
        write(case(), os.path.join(folder, case.name))
    return [case.name for case in CASES]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_all(sys.argv[1])
