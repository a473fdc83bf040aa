#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws handwritten-looking digits, trains a small CNN on them and writes it as ONNX.

In:   nothing but a fixed seed (and, with --mnist DIR, real digits to measure on, never to train on).
Out:  digits.onnx, digits_batch.onnx, images/0.pgm .. 9.pgm, test_data_set_0/{input_0,output_0}.pb beside this file.
Idea: a digit is a few strokes through control points; jitter on the points, a smooth warp, an affine
map, pen width, blur and noise turn it into a data set that needs no download and no licence.

The network, its gradients and Adam are written out in numpy, channels last (n h w c); the ONNX file
has the usual n c h w layout.
"""
import argparse
import gzip
import os
import struct
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 28  # image side, pixels
SEGMENTS = 64  # every drawing is padded to so many line segments, so that a batch is one array

# --- strokes ---------------------------------------------------------------------------------
# digit -> variants -> strokes; a stroke is ("line" | "curve", control points), x to the right and
# y downwards in the unit square. A curve is a Catmull-Rom spline through its points.

EIGHT_LOOPS = [(.5, .47), (.2, .3), (.25, .08), (.5, 0), (.75, .08), (.8, .3), (.5, .47),
               (.15, .68), (.2, .92), (.5, 1), (.8, .92), (.85, .68), (.5, .47)]
EIGHT_S = [(.8, .15), (.5, 0), (.2, .15), (.3, .4), (.7, .6), (.8, .85), (.5, 1), (.2, .85),
           (.3, .6), (.7, .4), (.8, .15)]
NINE_LOOP = [(.82, .2), (.6, .02), (.3, .05), (.15, .28), (.3, .5), (.6, .46), (.82, .2)]
THREE_BELLY = [(.38, .46), (.7, .53), (.88, .75), (.7, .95), (.4, 1), (.1, .88)]
FIVE_BELLY = [(.2, .44), (.5, .36), (.8, .48), (.85, .72), (.65, .95), (.35, 1), (.1, .88)]

DIGITS = [
    [[("curve", [(.5, 0), (.2, .12), (.08, .5), (.2, .88), (.5, 1), (.8, .88), (.92, .5),
                 (.8, .12), (.5, 0)])],
     [("curve", [(.7, .05), (.35, .05), (.1, .45), (.2, .9), (.5, 1), (.85, .8), (.9, .35),
                 (.7, .08), (.45, .1)])]],
    [[("line", [(.5, 0), (.5, 1)])],
     [("line", [(.5, 0), (.5, 1)])],
     [("line", [(.32, .2), (.5, 0), (.5, 1)])],
     [("line", [(.3, .18), (.5, 0), (.5, 1)]), ("line", [(.25, 1), (.75, 1)])]],
    [[("curve", [(.1, .25), (.25, .05), (.5, 0), (.8, .1), (.85, .32), (.65, .6), (.1, 1)]),
      ("line", [(.1, 1), (.92, 1)])],
     [("curve", [(.1, .22), (.3, .03), (.6, .02), (.8, .2), (.7, .55), (.35, .9), (.12, .95),
                 (.15, .78), (.35, .8), (.6, .95), (.95, .92)])],
     [("curve", [(.1, .2), (.4, 0), (.75, .1), (.75, .4), (.4, .8), (.1, .98), (.4, .92),
                 (.95, .98)])]],
    [[("curve", [(.12, .12), (.4, 0), (.75, .08), (.8, .27), (.6, .43), (.38, .46)]),
      ("curve", THREE_BELLY)],
     [("curve", [(.1, .1), (.45, 0), (.8, .15), (.7, .38), (.4, .47), (.75, .56), (.85, .8),
                 (.5, 1), (.08, .92)])],
     [("line", [(.15, 0), (.85, 0), (.4, .45)]), ("curve", THREE_BELLY)]],
    [[("line", [(.2, 0), (.12, .5), (.88, .5)]), ("line", [(.8, 0), (.75, 1)])],
     [("line", [(.68, 0), (.08, .66), (.95, .66)]), ("line", [(.68, 0), (.68, 1)])],
     [("curve", [(.15, 0), (.1, .3), (.2, .52), (.5, .53), (.8, .4)]),
      ("line", [(.85, .02), (.75, .5), (.7, 1)])],
     [("line", [(.3, .05), (.08, .6), (.92, .58)]), ("line", [(.65, .25), (.6, 1)])],
     [("curve", [(.12, .05), (.1, .4), (.3, .5), (.6, .42), (.82, .3)]),
      ("line", [(.85, 0), (.78, .5), (.72, 1)])]],
    [[("line", [(.88, 0), (.25, 0), (.2, .44)]), ("curve", FIVE_BELLY)],
     [("line", [(.92, .02), (.35, .04), (.25, .42)]),
      ("curve", [(.25, .42), (.6, .45), (.75, .68), (.55, .94), (.1, 1)])],
     [("curve", [(.98, 0), (.6, .04), (.35, .1), (.3, .38), (.55, .48), (.68, .7), (.5, .95),
                 (.05, .95)])]],
    [[("curve", [(.75, .03), (.4, .2), (.15, .55), (.15, .8), (.4, 1), (.75, .95), (.85, .72),
                 (.65, .55), (.4, .55), (.18, .74)])],
     [("curve", [(.5, 0), (.25, .35), (.12, .72), (.3, .98), (.65, .97), (.75, .75), (.55, .6),
                 (.2, .75)])],
     [("curve", [(.85, 0), (.4, .3), (.1, .7), (.2, .95), (.5, 1), (.7, .85), (.6, .68),
                 (.3, .75), (.15, .85)])]],
    [[("line", [(.08, 0), (.9, 0), (.35, 1)])],
     [("line", [(.08, .02), (.9, 0), (.4, 1)]), ("line", [(.3, .5), (.82, .48)])],
     [("curve", [(.05, .2), (.25, .1), (.6, .12), (.9, .04)]), ("line", [(.9, .04), (.4, 1)]),
      ("line", [(.35, .52), (.85, .46)])],
     [("line", [(.1, .16), (.12, .02), (.85, .02)]),
      ("curve", [(.85, .02), (.65, .35), (.5, .65), (.45, 1)])],
     [("curve", [(.08, .12), (.4, .04), (.75, .04), (.82, .2), (.6, .6), (.42, 1)])]],
    [[("curve", EIGHT_LOOPS)], [("curve", EIGHT_S)],
     [("curve", [(.85, .1), (.5, 0), (.25, .15), (.45, .42), (.7, .65), (.6, .95), (.3, .98),
                 (.2, .75), (.5, .48), (.8, .25), (.9, .05)])]],
    [[("curve", NINE_LOOP), ("curve", [(.82, .2), (.8, .6), (.72, 1)])],
     [("curve", NINE_LOOP), ("curve", [(.82, .2), (.84, .62), (.62, .94), (.3, 1), (.14, .9)])],
     [("curve", [(.8, .1), (.5, 0), (.2, .2), (.25, .45), (.6, .42), (.8, .12)]),
      ("line", [(.8, .1), (.6, 1)])],
     [("curve", [(.8, .15), (.45, .02), (.12, .25), (.3, .45), (.65, .35), (.82, .12), (.75, .5),
                 (.55, 1)])]],
]


def spline(points, steps=5):
    """The Catmull-Rom spline through `points` [p,2] as a polyline."""
    p = np.vstack([2 * points[0] - points[1], points, 2 * points[-1] - points[-2]])
    t = (np.arange(steps) / steps)[:, None]
    out = []
    for a, b, c, d in zip(p[:-3], p[1:-2], p[2:-1], p[3:]):
        out.append(.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2
                         + (3 * b - a - 3 * c + d) * t**3))
    return np.vstack(out + [points[-1:]])


def strokes_of(digit, rng):
    """Line segments [SEGMENTS,2 ends,2] of one drawing of `digit`, before any warp."""
    variants = DIGITS[digit]
    pieces = []
    for kind, points in variants[rng.integers(len(variants))]:
        points = np.array(points, float) + rng.normal(0, .028, (len(points), 2))
        if kind == "curve":
            points = spline(points)
        else:  # cut in three, so that the warp can bend it
            cuts = np.linspace(0, 1, 4)[:3, None]
            points = np.vstack([a + (b - a) * cuts for a, b in zip(points, points[1:])]
                               + [points[-1:]])
        pieces.append(np.stack([points[:-1], points[1:]], 1))
    segments = np.concatenate(pieces)
    dot = np.broadcast_to(segments[-1, 1], (SEGMENTS - len(segments), 2, 2))  # no length, no ink
    return np.concatenate([segments, dot])


def warp(s, rng):
    """Bends (elastic), slants, rotates, scales and places drawings s [n,SEGMENTS,2,2], in pixels."""
    n = len(s)
    u = lambda lo, hi, *shape: rng.uniform(lo, hi, (n, 1, 1) + shape)
    for _ in range(2):  # low-frequency sine displacement, at most about half a wave over the digit
        phase, freq, amp = u(0, 2 * np.pi, 2), u(1, 5, 2), u(-.05, .05, 2)
        s = s + amp * np.sin(freq * s[..., ::-1] + phase)
    x, y = s[..., 0] - .5, s[..., 1] - .5
    x = x * u(.4, 1.05) - y * u(-.2, .6)
    angle = u(-.22, .22)
    s = np.stack([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)], -1)
    extent = (s.max((1, 2)) - s.min((1, 2))).max(-1)
    s = s / extent[:, None, None, None] * u(16, 20, 1)
    mid, length = s.mean(2), np.linalg.norm(s[:, :, 1] - s[:, :, 0], axis=-1)
    centre = (mid * length[..., None]).sum(1) / length.sum(1)[:, None]  # the ink's centre of mass
    return s - centre[:, None, None, :] + (SIZE + 1) / 2 + u(-1.3, 1.3, 2)


def draw(s, rng):
    """Grey images [n,SIZE,SIZE] in 0..1 of the placed segments: ink by distance to the nearest one."""
    n = len(s)
    grid = np.arange(SIZE, dtype=np.float32) + np.float32(.5)
    gx, gy = grid[None, None, :], grid[None, :, None]
    nearest = np.full((n, SIZE, SIZE), 1e9, np.float32)
    s = s.astype(np.float32)
    for k in range(SEGMENTS):
        ax, ay = s[:, k, 0, 0, None, None], s[:, k, 0, 1, None, None]
        dx, dy = s[:, k, 1, 0, None, None] - ax, s[:, k, 1, 1, None, None] - ay
        t = np.clip(((gx - ax) * dx + (gy - ay) * dy) / (dx * dx + dy * dy + 1e-9), 0, 1)
        np.minimum(nearest, (gx - ax - t * dx)**2 + (gy - ay - t * dy)**2, out=nearest)
    u = lambda lo, hi: rng.uniform(lo, hi, (n, 1, 1)).astype(np.float32)
    image = np.clip((u(.5, 2.0) - np.sqrt(nearest)) / u(.6, 1.5) + np.float32(.5), 0, 1)
    noise = rng.standard_normal(image.shape, dtype=np.float32)
    image = image * u(.8, 1.0) + noise * u(0, .08) * (u(0, 1) < .5)
    return np.clip(image, 0, 1)


def make_set(count, seed):
    """(pixels uint8 [count,SIZE,SIZE], labels [count]), classes in turn."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 10
    images = np.empty((count, SIZE, SIZE), np.uint8)
    for i in range(0, count, 500):
        part = np.stack([strokes_of(d, rng) for d in labels[i:i + 500]])
        images[i:i + 500] = np.rint(draw(warp(part, rng), rng) * 255)
    return images, labels


def to_input(pixels):
    return (pixels.astype(np.float32) / np.float32(255))[..., None]


# --- network ---------------------------------------------------------------------------------
# conv 3x3 -> batch norm -> relu -> max pool 2x2, twice, then a full layer.

CHANNELS = [1, 8, 16]
FLAT = 7 * 7 * CHANNELS[2]
BN_EPS, BN_KEEP = 1e-5, .95


def im2col(x):
    """x [n,h,w,c] -> [n,h,w,9*c]: the 3x3 neighbourhood of each pixel, zero padded."""
    h, w = x.shape[1:3]
    p = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.concatenate([p[:, i:i + h, j:j + w] for i in range(3) for j in range(3)], -1)


def col2im(dcols, c):
    """The transpose of im2col."""
    n, h, w, _ = dcols.shape
    p = np.zeros((n, h + 2, w + 2, c), dcols.dtype)
    for k in range(9):
        p[:, k // 3:k // 3 + h, k % 3:k % 3 + w] += dcols[..., k * c:(k + 1) * c]
    return p[:, 1:-1, 1:-1]


class Network:
    def __init__(self, rng):
        self.p, self.mean, self.var = {}, {}, {}
        for l in (1, 2):
            fan_in = 9 * CHANNELS[l - 1]
            self.p[f"conv{l}.w"] = rng.standard_normal((fan_in, CHANNELS[l])) * (2 / fan_in)**.5
            self.p[f"bn{l}.g"], self.p[f"bn{l}.b"] = np.ones(CHANNELS[l]), np.zeros(CHANNELS[l])
            self.mean[l] = np.zeros(CHANNELS[l], np.float32)
            self.var[l] = np.ones(CHANNELS[l], np.float32)
        self.p["fc.w"], self.p["fc.b"] = rng.standard_normal((FLAT, 10)) * FLAT**-.5, np.zeros(10)
        self.p = {k: v.astype(np.float32) for k, v in self.p.items()}

    def forward(self, x, training=False):
        """Logits [n,10]; with `training`, batch statistics, and what backward needs in self.kept."""
        self.kept = {}
        for l in (1, 2):
            cols = im2col(x)
            y = cols @ self.p[f"conv{l}.w"]
            if training:
                mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
                self.mean[l] = BN_KEEP * self.mean[l] + (1 - BN_KEEP) * mean
                self.var[l] = BN_KEEP * self.var[l] + (1 - BN_KEEP) * var
            else:
                mean, var = self.mean[l], self.var[l]
            rstd = 1 / np.sqrt(var + np.float32(BN_EPS))
            z = (y - mean) * rstd
            a = np.maximum(z * self.p[f"bn{l}.g"] + self.p[f"bn{l}.b"], 0)
            n, h, w, c = a.shape
            windows = a.reshape(n, h // 2, 2, w // 2, 2, c)
            x = windows.max((2, 4))
            if training:
                self.kept[l] = cols, rstd, z, a, windows, x
        self.kept["flat"] = x.reshape(len(x), FLAT)
        return self.kept["flat"] @ self.p["fc.w"] + self.p["fc.b"]

    def backward(self, dlogits):
        """Gradients by parameter name."""
        g = {"fc.w": self.kept["flat"].T @ dlogits, "fc.b": dlogits.sum(0)}
        dx = dlogits @ self.p["fc.w"].T
        for l in (2, 1):
            cols, rstd, z, a, windows, pooled = self.kept[l]
            n, h, w, c = a.shape
            spread = lambda v: v.reshape(n, h // 2, 1, w // 2, 1, c)
            da = ((windows == spread(pooled)) * spread(dx)).reshape(a.shape) * (a > 0)
            g[f"bn{l}.g"], g[f"bn{l}.b"] = (da * z).sum((0, 1, 2)), da.sum((0, 1, 2))
            count = n * h * w
            dy = self.p[f"bn{l}.g"] * rstd * (da - g[f"bn{l}.b"] / count - z * g[f"bn{l}.g"] / count)
            g[f"conv{l}.w"] = cols.reshape(-1, cols.shape[-1]).T @ dy.reshape(-1, c)
            if l > 1:
                dx = col2im(dy @ self.p[f"conv{l}.w"].T, CHANNELS[l - 1])
        return g


def train(network, pixels, labels, epochs, rng, batch=64):
    """Adam with cosine decay on softmax cross-entropy."""
    m = {k: np.zeros_like(v) for k, v in network.p.items()}
    v = {k: np.zeros_like(p) for k, p in network.p.items()}
    total, step = epochs * (len(pixels) // batch), 0
    for epoch in range(epochs):
        order, loss_sum = rng.permutation(len(pixels)), 0.
        for i in range(0, len(order) - batch + 1, batch):
            pick = order[i:i + batch]
            logits = network.forward(to_input(pixels[pick]), training=True)
            e = np.exp(logits - logits.max(1, keepdims=True))
            prob = e / e.sum(1, keepdims=True)
            hot = np.arange(batch), labels[pick]
            loss_sum += -np.log(prob[hot] + 1e-12).mean()
            prob[hot] -= 1
            step += 1
            rate = 3e-3 * .5 * (1 + np.cos(np.pi * step / total))
            for k, grad in network.backward(prob / batch).items():
                m[k] = .9 * m[k] + .1 * grad
                v[k] = .999 * v[k] + .001 * grad**2
                network.p[k] -= (rate * m[k] / (1 - .9**step)
                                 / (np.sqrt(v[k] / (1 - .999**step)) + 1e-8)).astype(np.float32)
        print(f"epoch {epoch + 1}: loss {loss_sum / (len(pixels) // batch):.4f}", flush=True)


def accuracy(network, pixels, labels):
    hits = [(network.forward(to_input(pixels[i:i + 500])).argmax(1) == labels[i:i + 500]).sum()
            for i in range(0, len(pixels), 500)]
    return float(np.sum(hits)) / len(pixels)


# --- files -----------------------------------------------------------------------------------


def to_onnx(network, batch):
    nodes, weights, x = [], [], "image"

    def weight(name, array):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def node(op, name, inputs, output=None, **attributes):
        nodes.append(helper.make_node(op, inputs, [output or name + "_out"], name=name, **attributes))
        return nodes[-1].output[0]

    for l in (1, 2):
        w = network.p[f"conv{l}.w"].reshape(3, 3, CHANNELS[l - 1], CHANNELS[l]).transpose(3, 2, 0, 1)
        x = node("Conv", f"conv{l}", [x, weight(f"conv{l}.weight", w)],
                 kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
        x = node("BatchNormalization", f"bn{l}",
                 [x, weight(f"bn{l}.scale", network.p[f"bn{l}.g"]),
                  weight(f"bn{l}.bias", network.p[f"bn{l}.b"]),
                  weight(f"bn{l}.mean", network.mean[l]), weight(f"bn{l}.var", network.var[l])],
                 epsilon=BN_EPS)
        x = node("Relu", f"relu{l}", [x])
        x = node("MaxPool", f"pool{l}", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = node("Flatten", "flatten", [x], axis=1)
    w = network.p["fc.w"].reshape(7, 7, CHANNELS[2], 10).transpose(3, 2, 0, 1).reshape(10, FLAT)
    node("Gemm", "fc", [x, weight("fc.weight", w), weight("fc.bias", network.p["fc.b"])],
         output="logits", transB=1)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "digits", [info("image", TensorProto.FLOAT, [batch, 1, SIZE, SIZE])],
                              [info("logits", TensorProto.FLOAT, [batch, 10])], weights)
    model = helper.make_model(graph, producer_name="make_digits", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    return model


def write(path, data):
    path = os.path.join(HERE, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def tensor_bytes(name, array):
    return numpy_helper.from_array(array, name).SerializeToString(deterministic=True)


def load_mnist(folder):
    """The MNIST test set in its own idx format."""
    def idx(name):
        with gzip.open(os.path.join(folder, name)) as f:
            data = f.read()
        dims = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
        return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)
    return idx("t10k-images-idx3-ubyte.gz"), idx("t10k-labels-idx1-ubyte.gz")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--mnist", metavar="DIR", help="also measure on the MNIST test set in DIR")
    options.add_argument("--count", type=int, default=30000, help="training images (%(default)s)")
    options.add_argument("--epochs", type=int, default=5, help="passes over them (%(default)s)")
    args = options.parse_args()

    start = time.monotonic()
    pixels, labels = make_set(args.count, seed=1)
    print(f"drew {args.count} digits in {time.monotonic() - start:.0f} s", flush=True)
    network = Network(np.random.default_rng(2))
    train(network, pixels, labels, args.epochs, np.random.default_rng(3))
    print(f"trained after {time.monotonic() - start:.0f} s")

    held_out = accuracy(network, *make_set(5000, seed=4))
    print(f"held-out accuracy {100 * held_out:.2f} %")
    if args.mnist:
        print(f"MNIST test accuracy {100 * accuracy(network, *load_mnist(args.mnist)):.2f} %")

    model = to_onnx(network, 1)
    write("digits.onnx", model.SerializeToString(deterministic=True))
    write("digits_batch.onnx", to_onnx(network, "batch").SerializeToString(deterministic=True))
    reference = ReferenceEvaluator(model)
    run = lambda image: reference.run(None, {"image": image})[0]
    shipped, names = make_set(10, seed=14)
    wrong = 0
    for image, digit in zip(shipped, names):
        write(f"images/{digit}.pgm", b"P5\n%d %d\n255\n" % (SIZE, SIZE) + image.tobytes())
        x = to_input(image).reshape(1, 1, SIZE, SIZE)
        logits = run(x)
        np.testing.assert_allclose(logits, network.forward(to_input(image[None])), atol=1e-3)
        wrong += int(logits.argmax() != digit)
        if digit == 7:
            write("test_data_set_0/input_0.pb", tensor_bytes("image", x))
            write("test_data_set_0/output_0.pb", tensor_bytes("logits", logits))
    print(f"shipped images: {10 - wrong} of 10 right")
    return 0 if held_out > .98 and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
