# SPDX-License-Identifier: MIT OR Apache-2.0
"""Layers with parameters, pools, norms, images: as PyTorch's documentation defines them."""
import itertools

import numpy as np
from case import Case


def convolve(x, w, stride=1, padding=0, dilation=1, groups=1):
    """[n, c, space...] by [out, c / groups, kernel...]; numbers or one per axis, padding also (before,
        behind) pairs."""
    space = x.ndim - 2
    stride, dilation = (np.broadcast_to(v, space) for v in (stride, dilation))
    padding = np.broadcast_to(padding, (space, 2)) if np.ndim(padding) != 1 else np.stack((padding, padding), 1)
    x = np.pad(x, [(0, 0), (0, 0), *map(tuple, padding)])
    out = [(x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(space)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for g in range(groups):
        for tap in itertools.product(*map(range, w.shape[2:])):
            part = [slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, out, stride)]
            seen = x[(slice(None), slice(g * per_in, (g + 1) * per_in), *part)]
            rows = slice(g * per_out, (g + 1) * per_out)
            y[:, rows] += np.einsum("nc...,oc->no...", seen, w[(rows, slice(None), *tap)])
    return y


def convolve_transposed(x, w, stride=1, padding=0, extra=0, dilation=1, groups=1):
    """[n, c, space...] by [c, out / groups, kernel...]: the adjoint of convolve."""
    n, space = [s for s in x.shape[2:]], x.ndim - 2
    full = [(s - 1) * stride + dilation * (k - 1) + 1 + extra for s, k in zip(n, w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    per_in, per_out = w.shape[0] // groups, w.shape[1]
    for g in range(groups):
        rows, columns = slice(g * per_in, (g + 1) * per_in), slice(g * per_out, (g + 1) * per_out)
        for tap in itertools.product(*map(range, w.shape[2:])):
            part = tuple(slice(t * dilation, t * dilation + (s - 1) * stride + 1, stride) for t, s in zip(tap, n))
            y[(slice(None), columns, *part)] += np.einsum("nc...,co->no...", x[:, rows], w[(rows, slice(None), *tap)])
    return y[(slice(None), slice(None), *[slice(padding, s - padding) for s in full])] if space else y


def pool(x, kernel, stride, of, padding=0, fill=0.0, dilation=1, ceil=False):
    space = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding + (stride if ceil else 0))] * space, constant_values=fill)
    extent = dilation * (kernel - 1) + 1
    n = [(s - extent) // stride + 1 for s in x.shape[2:]]
    return np.stack([of(x[(slice(None), slice(None), *[slice(i * stride, i * stride + extent,
        dilation) for i in at])],
                        axis=tuple(range(2, 2 + space)))
                     for at in itertools.product(*map(range, n))], -1).reshape(*x.shape[:2], *n)


def adaptive(x, sizes, of):
    for axis, size in enumerate(sizes, 2):
        n = x.shape[axis]
        x = np.stack([of(x.take(range(i * n // size, -(-(i + 1) * n // size)), axis),
            axis=axis) for i in range(size)], axis)
    return x


def cubic(t, a=-0.75):
    t = abs(t)
    return ((a + 2) * t - (a + 3)) * t * t + 1 if t <= 1 else (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


def resize(x, sizes, mode, align=False, scale=0):
    for axis, out in enumerate(sizes, 2):
        n, w = x.shape[axis], np.zeros((out, x.shape[axis]))
        for o in range(out):
            ratio = 1 / scale if scale else n / out
            at = o * (n - 1) / max(out - 1, 1) if align else (o + 0.5) * ratio - 0.5
            if mode == "nearest":
                w[o, min(int(o * ratio), n - 1)] = 1
            elif mode == "exact":
                w[o, min(int((o + 0.5) * ratio), n - 1)] = 1
            elif mode == "linear":
                at = max(at, 0)
                low = min(int(at), n - 1)
                w[o, low] += 1 - (at - low)
                w[o, min(low + 1, n - 1)] += at - low
            else:
                low = int(np.floor(at))
                for k in range(low - 1, low + 3):
                    w[o, min(max(k, 0), n - 1)] += cubic(at - k)
        x = np.moveaxis(np.tensordot(w, x, (1, axis)), 0, axis)
    return x


def channels(v, x):
    return v.reshape(-1, *[1] * (x.ndim - 2))


def normalised(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def dense():
    c = Case("dense")
    x, ids = c.drawn("x", 2, 3, 4, b=0), c.given("ids", np.array([[1, 0], [6, 6]]))
    w, b = c.parameter("fc.weight", 5, 4), c.parameter("fc.bias", 5)
    c.gives('linear(x, "fc", 5)', x @ w.T + b)
    w2 = c.parameter("block.0.plain.weight", 6, 4)
    c.line('Tensor inner = NULL;')
    c.line('scope("block") scope("%d", 0) inner = linear(x, "plain", 6, .bias = NO);')
    c.gives("inner", x @ w2.T)
    w3 = c.parameter("named1.weight", 4, 4)
    c.line("Tensor twice = x;")
    c.line('for (int i = 0; i < 2; i++) shared() twice = linear(twice, named("named%d", 1), 4, .bias = NO);')
    c.gives("twice", x @ w3.T @ w3.T)
    table = c.parameter("emb.weight", 7, 4)
    c.gives('embedding(ids, "emb", 7, 4)', table[ids])
    c.gives('linear(x, "head", 7, .share = "emb.weight", .bias = NO)', x @ table.T)
    c.gives("dropout(x, 0.5)", x)
    return c


def convolutions():
    c = Case("convolutions")
    s, x, v = c.drawn("s", 2, 4, 9, n=0), c.drawn("x", 2, 4, 7, 8), c.drawn("v", 1, 2, 5, 4, 6)

    def conv(name, call, of, shape, bias=True):
        w = c.parameter(f"{name}.weight", *shape)
        y = of(w)
        if bias:
            b = c.parameter(f"{name}.bias", y.shape[1])
            y = y + channels(b, y)
        c.gives(call, y)
    conv("a", 'conv1d(s, "a", 6, 3)', lambda w: convolve(s, w), (6, 4, 3))
    conv("b", 'conv1d(s, "b", 6, 3, .stride = 2, .padding = 2, .dilation = 2, .groups = 2)',
         lambda w: convolve(s, w, 2, 2, 2, 2), (6, 2, 3))
    conv("c", 'conv2d(x, "c", 3, 3, .padding = 1, .bias = NO)', lambda w: convolve(x, w, 1, 1), (3, 4, 3, 3), False)
    conv("d", 'conv2d(x, "d", 3, hw(1, 3), .stride = hw(2, 1), .padding = hw(0, 1))',
         lambda w: convolve(x, w, (2, 1), (0, 1)), (3, 4, 1, 3))
    conv("e", 'conv2d(x, "e", 8, 3, .groups = 4, .pads = { 0, 1, 2, 0 })',
         lambda w: convolve(x, w, 1, ((0, 2), (1, 0)), 1, 4), (8, 1, 3, 3))
    conv("f", 'conv2d(x, "f", 2, 4, .padding = SAME)', lambda w: convolve(x, w, 1, ((1, 2), (1, 2))), (2, 4, 4, 4))
    conv("g", 'conv3d(v, "g", 3, dhw(2, 1, 3))', lambda w: convolve(v, w), (3, 2, 2, 1, 3))
    conv("h", 'conv_transpose1d(s, "h", 3, 3, .stride = 2, .padding = 1, .output_padding = 1)',
         lambda w: convolve_transposed(s, w, 2, 1, 1), (4, 3, 3))
    conv("i", 'conv_transpose2d(x, "i", 6, 3, .stride = 2, .groups = 2)',
         lambda w: convolve_transposed(x, w, 2, 0, 0, 1, 2), (4, 3, 3, 3))
    conv("j", 'conv_transpose2d(x, "j", 3, 2, .dilation = 2, .padding = 1, .bias = NO)',
         lambda w: convolve_transposed(x, w, 1, 1, 0, 2), (4, 3, 2, 2), False)
    conv("k", 'conv_transpose3d(v, "k", 2, 2, .stride = 2)', lambda w: convolve_transposed(v, w, 2), (2, 2, 2, 2, 2))
    conv("l", 'conv_transpose2d(x, "l", 6, 3, .stride = 3, .groups = 2, .padding = 1, .output_padding = 2)',
         lambda w: convolve_transposed(x, w, 3, 1, 2, 1, 2), (4, 3, 3, 3))
    conv("m", 'conv_transpose2d(x, "m", 3, 4, .stride = 2, .padding = 1)',
         lambda w: convolve_transposed(x, w, 2, 1), (4, 3, 4, 4))
    return c


def pools():
    c = Case("pools")
    s, x, v = c.drawn("s", 2, 3, 11), c.drawn("x", 2, 3, 8, 9), c.drawn("v", 1, 2, 4, 6, 5)
    low = -np.inf
    count = pool(np.ones_like(x), 3, 2, np.sum, 1)
    for text, want in (
            ("adaptive_max_pool1d(s, 4)", adaptive(s, (4,), np.max)),
            ("adaptive_max_pool3d(v, dhw(2, 3, 2))", adaptive(v, (2, 3, 2), np.max)),
            ("max_pool1d(s, 3)", pool(s, 3, 3, np.max)), ("max_pool2d(x, 2)", pool(x, 2, 2, np.max)),
            ("max_pool2d(x, 3, .stride = 2, .padding = 1)", pool(x, 3, 2, np.max, 1, low)),
            ("max_pool2d(x, 3, .stride = 2, .ceil = YES)", pool(x, 3, 2, np.max, 0, low, 1, True)[:, :, :4, :4]),
            ("max_pool2d(x, 2, .stride = 1, .dilation = 2)", pool(x, 2, 1, np.max, 0, low, 2)),
            ("max_pool3d(v, 2)", pool(v, 2, 2, np.max)), ("avg_pool1d(s, 4, .stride = 3)", pool(s, 4, 3, np.mean)),
            ("avg_pool2d(x, 3, .stride = 2, .padding = 1)", pool(x, 3, 2, np.mean, 1)),
            ("avg_pool2d(x, 3, .stride = 2, .padding = 1, .count_padding = NO)", pool(x, 3, 2, np.sum, 1) / count),
            ("avg_pool3d(v, 2)", pool(v, 2, 2, np.mean)), ("adaptive_avg_pool1d(s, 4)", adaptive(s, (4,), np.mean)),
            ("adaptive_avg_pool2d(x, 1)", x.mean((2, 3), keepdims=True)), ("adaptive_avg_pool2d(x, hw(4, 3))",
                adaptive(x, (4, 3), np.mean)), ("adaptive_avg_pool2d(x, hw(3, 7))", adaptive(x, (3, 7), np.mean)),
            ("adaptive_avg_pool2d(x, hw(8, 2))", adaptive(x, (8, 2), np.mean)),
            ("adaptive_avg_pool3d(v, 3)", adaptive(v, (3, 3, 3), np.mean)),
            ("adaptive_max_pool2d(x, 5)", adaptive(x, (5, 5), np.max)), ("adaptive_max_pool2d(x, hw(4, 3))",
                adaptive(x, (4, 3), np.max))):
        c.gives(text, want)
    return c


def norms():
    c = Case("norms")
    x, s = c.drawn("x", 3, 4, 5, 6), c.drawn("s", 2, 7, 6, t=1)

    def affine(name, *shape, bias=True):
        return c.parameter(f"{name}.weight", *shape), c.parameter(f"{name}.bias", *shape) if bias else 0
    w, b = affine("bn", 4)
    mean, var = c.parameter("bn.running_mean", 4), c.parameter("bn.running_var", 4, positive=True)
    c.gives('batch_norm(x, "bn")', (x - channels(mean, x)) / np.sqrt(channels(var, x) + 1e-5) * channels(w,
        x) + channels(b, x))
    mean, var = c.parameter("bare.running_mean", 4), c.parameter("bare.running_var", 4, positive=True)
    c.gives('batch_norm(x, "bare", .affine = NO, .eps = 0.1)', (x - channels(mean, x)) / np.sqrt(channels(var,
        x) + 0.1))
    w, b = affine("ln", 6)
    c.gives('layer_norm(s, "ln")', normalised(s, -1, 1e-5) * w + b)
    w, b = affine("ln2", 5, 6)
    c.gives('layer_norm(x, "ln2", .axes = 2, .eps = 0.01)', normalised(x, (-2, -1), 0.01) * w + b)
    w, _ = affine("ln3", 6, bias=False)
    c.gives('layer_norm(s, "ln3", .bias = NO)', normalised(s, -1, 1e-5) * w)
    c.gives('layer_norm(s, "", .affine = NO)', normalised(s, -1, 1e-5))
    w, _ = affine("rms", 6, bias=False)
    c.gives('rms_norm(s, "rms")', s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-6) * w)
    w, b = affine("in", 4)
    c.gives('instance_norm(x, "in")', normalised(x, (2, 3), 1e-5) * channels(w, x) + channels(b, x))
    c.gives('instance_norm(x, "", .affine = NO)', normalised(x, (2, 3), 1e-5))
    w, b = affine("gn", 4)
    grouped = normalised(x.reshape(3, 2, -1), 2, 1e-5).reshape(x.shape)
    c.gives('group_norm(x, "gn", 2)', grouped * channels(w, x) + channels(b, x))
    c.gives('group_norm(x, "", 2, .affine = NO)', grouped)
    around = [np.maximum(0, i - 1) for i in range(4)], [min(4, i + 2) for i in range(4)]
    squares = np.stack([(x[:, a:b] ** 2).sum(1) for a, b in zip(*around)], 1)
    c.gives("local_response_norm(x, 3)", x / (1 + 1e-4 / 3 * squares) ** 0.75)
    c.gives("local_response_norm(x, 3, .alpha = 0.1, .beta = 0.5, .k = 2)", x / np.sqrt(2 + 0.1 / 3 * squares))
    return c


def images():
    c = Case("images")
    x, s = c.drawn("x", 1, 4, 4, 6), c.drawn("s", 1, 2, 5)
    up = x.reshape(1, 1, 2, 2, 4, 6).transpose(0, 1, 4, 2, 5, 3).reshape(1, 1, 8, 12)
    down = x.reshape(1, 4, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 16, 2, 3)
    for text, want in (
            ("interpolate(x, .scale = 2)", resize(x, (8, 12), "nearest")),
            ("interpolate(x, .size = hw(3, 7))", resize(x, (3, 7), "nearest")),
            ('interpolate(x, .size = hw(3, 7), .mode = "nearest-exact")', resize(x, (3, 7), "exact")),
            ('interpolate(s, .scale = 2, .mode = "nearest-exact")', resize(s, (10,), "exact")),
            ("interpolate(s, .size = 8)", resize(s, (8,), "nearest")),
            ('interpolate(s, .size = 8, .mode = "linear")', resize(s, (8,), "linear")),
            ('interpolate(x, .scale = 2, .mode = "bilinear")', resize(x, (8, 12), "linear")),
            ('interpolate(x, .scale = 1.7, .mode = "bilinear")', resize(x, (6, 10), "linear", scale=1.7)),
            ('interpolate(x, .size = hw(7, 3), .mode = "bilinear", .align_corners = YES)', resize(x, (7, 3),
            "linear", True)),
            ('interpolate(x, .size = hw(7, 9), .mode = "bicubic")', resize(x, (7, 9), "cubic")),
            ('interpolate(x, .size = hw(7, 9), .mode = "bicubic", .align_corners = YES)', resize(x, (7, 9),
            "cubic", True)),
            ("pixel_shuffle(x, 2)", up), ("pixel_unshuffle(x, 2)", down)):
        c.gives(text, want)
    return c


ALL = [dense, convolutions, pools, norms, images]
