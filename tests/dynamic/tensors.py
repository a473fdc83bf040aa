# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tensors in plain Python, for expected outputs: a shape and a flat list, so that a size may be 0.

`build(shape, f)` is the tensor whose element at index i is f(*i); `x[i, j]` is an element. Numbers are double
precision."""
import math
import random
import struct
from itertools import product


class Tensor:
    def __init__(self, shape, flat):
        self.shape, self.flat = tuple(shape), list(flat)
        assert len(self.flat) == math.prod(self.shape), (self.shape, len(self.flat))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        at = 0
        for i, n in zip(index, self.shape, strict=True):
            if not 0 <= i < n:
                raise IndexError(index)
            at = at * n + i
        return self.flat[at]


def build(shape, f):
    return Tensor(shape, [f(*i) for i in product(*map(range, shape))])


def each(f, *tensors):
    """Element by element, broadcasting as ONNX does."""
    rank = max(len(t.shape) for t in tensors)
    shapes = [(1,) * (rank - len(t.shape)) + t.shape for t in tensors]
    shape = [next((n for n in ns if n != 1), 1) for ns in zip(*shapes)]

    def element(*i):
        return f(*(t[tuple(0 if n == 1 else k for k, n in zip(i, s))[rank - len(t.shape):]]
                   for t, s in zip(tensors, shapes)))
    return build(shape, element)


def numbers(seed, *shape, low=-1.0, high=1.0):
    """Repeatable values that float32 holds."""
    rng = random.Random(f"{seed} {shape}")
    return Tensor(shape,
                  [struct.unpack("f", struct.pack("f", rng.uniform(low, high)))[0] for _ in range(math.prod(shape))])


def whole(seed, *shape, low=0, high=9):
    """Repeatable integers of low..high."""
    rng = random.Random(f"{seed} {shape}")
    return Tensor(shape, [rng.randint(low, high) for _ in range(math.prod(shape))])


def over(x, axis, f, keep=True):
    """f of the list of elements along an axis gives one element."""
    outer, inner = x.shape[:axis], x.shape[axis + 1:]
    t = build(outer + inner, lambda *i: f([x[i[:axis] + (k,) + i[axis:]] for k in range(x.shape[axis])]))
    return Tensor(outer + (1,) + inner, t.flat) if keep else t


def along(x, axis, f):
    """f of the list of elements along an axis gives a list that takes its place."""
    outer, inner = x.shape[:axis], x.shape[axis + 1:]
    rows = {
        i: f([x[i[:axis] + (k, ) + i[axis:]] for k in range(x.shape[axis])])
        for i in product(*map(range, outer + inner))
    }
    size = len(next(iter(rows.values()))) if rows else len(f([1.0] * x.shape[axis]))
    return build(outer + (size,) + inner, lambda *i: rows[i[:axis] + i[axis + 1:]][i[axis]])


def reshape(x, *shape):
    return Tensor(shape, x.flat)


def transpose(x, *perm):
    def element(*i):
        source = [0] * len(perm)
        for k, p in zip(i, perm):
            source[p] = k
        return x[tuple(source)]
    return build([x.shape[p] for p in perm], element)


def concat(axis, *xs):
    ends, total = [], 0
    for x in xs:
        ends.append((total, x))
        total += x.shape[axis]

    def element(*i):
        start, x = next((s, x) for s, x in reversed(ends) if s <= i[axis] and i[axis] - s < x.shape[axis])
        return x[i[:axis] + (i[axis] - start,) + i[axis + 1:]]
    return build(xs[0].shape[:axis] + (total,) + xs[0].shape[axis + 1:], element)


def take(x, axis, indices):
    """The entries along an axis with these numbers, in this order."""
    indices = list(indices)
    return build(x.shape[:axis] + (len(indices), ) + x.shape[axis + 1:],
                 lambda *i: x[i[:axis] + (indices[i[axis]], ) + i[axis + 1:]])


def matmul(a, b):
    batch = max(len(a.shape), len(b.shape)) - 2
    wide = [(1,) * (batch + 2 - len(t.shape)) + t.shape for t in (a, b)]
    a, b = Tensor(wide[0], a.flat), Tensor(wide[1], b.flat)
    outer = [max(n, m) if 0 not in (n, m) else 0 for n, m in zip(a.shape[:-2], b.shape[:-2])]

    def element(*i):
        p = tuple(0 if n == 1 else k for k, n in zip(i, a.shape[:-2])) + (i[-2],)
        q = tuple(0 if n == 1 else k for k, n in zip(i, b.shape[:-2]))
        return sum(a[p + (k,)] * b[q + (k, i[-1])] for k in range(a.shape[-1]))
    return build(outer + [a.shape[-2], b.shape[-1]], element)


def softmax(row):
    if not row:
        return []
    top = max(row)
    e = [math.exp(v - top) for v in row]
    return [v / sum(e) for v in e]


def window_size(size, kernel, stride, before, after, dilation=1):
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def conv(x, w, b, stride=1, pad=0, dilation=1, group=1):
    """Of any number of spatial axes, with one stride, dilation and padding for all."""
    axes, inside = len(x.shape) - 2, w.shape[1]
    spatial = [window_size(x.shape[2 + d], w.shape[2 + d], stride, pad, pad, dilation) for d in range(axes)]

    def element(n, c, *i):
        first, total = c // (w.shape[0] // group) * inside, b[c] if b else 0.0
        for u in product(*map(range, w.shape[2:])):
            at = tuple(p * stride + v * dilation - pad for p, v in zip(i, u))
            if all(0 <= p < s for p, s in zip(at, x.shape[2:])):
                total += sum(x[(n, first + k) + at] * w[(c, k) + u] for k in range(inside))
        return total
    return build([x.shape[0], w.shape[0]] + spatial, element)


def pool(x, f, kernel, stride, pad):
    """f of the list of the elements inside a window of two axes."""
    def element(n, c, i, j):
        cells = product(range(i * stride - pad, i * stride - pad + kernel),
                        range(j * stride - pad, j * stride - pad + kernel))
        return f([x[n, c, u, v] for u, v in cells if 0 <= u < x.shape[2] and 0 <= v < x.shape[3]])
    return build(x.shape[:2] + tuple(window_size(s, kernel, stride, pad, pad) for s in x.shape[2:]), element)
