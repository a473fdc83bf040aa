# SPDX-License-Identifier: MIT OR Apache-2.0
"""A small model with the outputs it must give, and what those are computed with: plain Python, double precision."""
import math
import random
import struct
from itertools import product

from onnx_wire import graph, model, value_info


class Model:
    """inputs and outputs of a set: lists of (name, dtype, nested list)."""

    def __init__(self, nodes, inputs, outputs, sets, initializers=(), files=(), **options):
        self.bytes = model(
            graph(nodes, [value_info(*i) for i in inputs], [value_info(*o) for o in outputs], initializers), **options)
        types = [(n, d) for n, d, _ in inputs], [(n, d) for n, d, _ in outputs]
        self.sets = [([t + (v, ) for t, v in zip(types[0], ins)], [t + (v, ) for t, v in zip(types[1], outs)])
                     for ins, outs in sets]
        self.files = dict(files)


def numbers(seed, *shape, low=-1.0, high=1.0):
    """Repeatable values that float32 holds exactly enough: rounded to it."""
    rng = random.Random(seed)
    flat = [struct.unpack("f", struct.pack("f", rng.uniform(low, high)))[0] for _ in range(math.prod(shape))]
    return nest(flat, shape)


def nest(flat, shape):
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [nest(flat[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def at(x, index):
    for i in index:
        x = x[i]
    return x


def build(shape, f):
    """The tensor whose element at index i is f(*i)."""
    return nest([f(*i) for i in product(*map(range, shape))], shape)


def relu(v):
    return max(v, 0.0)
