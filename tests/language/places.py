# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls that put or take elements at computed places, losses, transformer layers."""
import itertools

import numpy as np
from case import Case
from elements import gelu, softplus
from layers import convolve, normalised
from moves import softmax
from sequences import multi_head, recurrent


def along(x, index, from_, axis, of):
    y = x.copy()
    for at in np.ndindex(index.shape):
        place = list(at)
        place[axis] = index[at]
        y[tuple(place)] = of(y[tuple(place)], from_[at])
    return y


def scattered():
    c = Case("scattered")
    x, u = c.drawn("x", 4, 5), c.drawn("u", 4, 2)
    i, few = c.given("i", np.array([[4, 0], [1, 2], [3, 1], [0, 4]])), c.given("few", np.array([3, 0, 3]))
    same = c.given("same", np.zeros((4, 2), np.int64))
    part, pairs = c.drawn("part", 3, 5), c.given("pairs", np.array([[0, 1], [3, 3], [0, 4]]))
    three, square = c.drawn("three", 3), c.drawn("square", 2, 4, 4)
    two, four = c.drawn("two", 2, 3), c.drawn("four", 2, 4)
    add, copy = x.copy(), x.copy()
    np.add.at(add, few, part)
    copy[[1, 2]] = part[:2]
    put = x.copy()
    put[tuple(pairs.T)] = three
    c.line("int64_t rows[2] = { 1, 2 };")
    for text, want in (
            ("scatter(x, 1, i, u)", along(x, i, u, 1, lambda a, b: b)),
            ("scatter(x, -1, i, 7)", along(x, i, 7 * np.ones_like(u), 1, lambda a, b: b)),
            ("scatter_add(x, 1, same, u)", along(x, same, u, 1, lambda a, b: a + b)),
            ('scatter_reduce(x, 1, same, u, "sum")', along(x, same, u, 1, lambda a, b: a + b)),
            ('scatter_reduce(x, 1, same, u, "prod")', along(x, same, u, 1, lambda a, b: a * b)),
            ('scatter_reduce(x, 1, same, u, "amax")', along(x, same, u, 1, max)),
            ('scatter_reduce(x, 1, same, u, "amin")', along(x, same, u, 1, min)),
            ("index_add(x, 0, few, part)", add),
            ("index_copy(x, 0, constant(I64, rows, 2), narrow(part, 0, 0, 2))", copy),
            ("index_add(transpose(x, 0, 1), -1, few, transpose(part, 0, 1))", add.T),
            ("gather_nd(x, pairs)", x[tuple(pairs.T)]), ("scatter_nd(x, pairs, three)", put),
            ("roll(x, 2, 1)", np.roll(x, 2, 1)), ("roll(x, -1, 0)", np.roll(x, -1, 0)),
            ("roll(x, 5, 1)", x), ("diagonal(x, 0)", x.diagonal()), ("diagonal(x, -2)", x.diagonal(-2)),
            ("diagonal(square, 1)", square.diagonal(1, 1, 2)), ("diag_embed(three)", np.diag(three)),
            ("eye(F32, 3)", np.eye(3)), ("linspace(F32, -1, 2, 7)", np.linspace(-1, 2, 7)),
            ("argsort(x, 1, false)", np.argsort(x, 1)), ("std(x, 1)", x.std(1, ddof=1)),
            ("outer(three, narrow(three, 0, 0, 2))", np.outer(three, three[:2])),
            ("cross(two, flip(two, 0), -1)", np.cross(two, two[::-1])),
            ("cosine_similarity(four, flip(four, 0), 1)",
             (four * four[::-1]).sum(1) / np.linalg.norm(four, axis=1) / np.linalg.norm(four[::-1], axis=1))):
        c.gives(text, want)
    spectrum = np.fft.rfft(x, axis=1)
    c.gives("rfft(x, -1, 0)", np.stack((spectrum.real, spectrum.imag), -1))
    c.gives("irfft(rfft(x, 0, 0), 0, 4)", x)
    return c


def sampled(x, grid):
    """Bilinear, zeros outside, align_corners false."""
    n, ch, h, w = x.shape
    y = np.zeros((n, ch, *grid.shape[1:3]))
    for b, i, j in np.ndindex(grid.shape[:3]):
        at = [((grid[b, i, j, k] + 1) * s - 1) / 2 for k, s in ((1, h), (0, w))]
        low = [int(np.floor(v)) for v in at]
        for r, q in np.ndindex(2, 2):
            row, col = low[0] + r, low[1] + q
            if 0 <= row < h and 0 <= col < w:
                y[b, :, i, j] += (1 - abs(at[0] - row)) * (1 - abs(at[1] - col)) * x[b, :, row, col]
    return y


def deformed(x, offset, k):
    """What taps of a kernel of k see, moved by the offsets: [n, c, taps, h, w]; zeros outside."""
    n, ch, h, w = x.shape
    y = np.zeros((n, ch, k * k, *offset.shape[2:]))
    for b, t, i, j in np.ndindex(n, k * k, *offset.shape[2:]):
        at = i + t // k + offset[b, 2 * t, i, j], j + t % k + offset[b, 2 * t + 1, i, j]
        low = [int(np.floor(v)) for v in at]
        for r, q in np.ndindex(2, 2):
            row, col = low[0] + r, low[1] + q
            if 0 <= row < h and 0 <= col < w:
                y[b, :, t, i, j] += (1 - abs(at[0] - row)) * (1 - abs(at[1] - col)) * x[b, :, row, col]
    return y


def patches():
    c = Case("patches")
    x, grid = c.drawn("x", 2, 3, 5, 6), c.drawn("grid", 2, 4, 3, 2, scale=0.6)
    theta = c.drawn("theta", 2, 2, 3)
    taps = np.stack([x[:, :, r:r + 4, q:q + 5] for r in range(2) for q in range(2)], 2).reshape(2, 12, 20)
    c.gives("unfold(x, 2)", taps)
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    strided = np.stack([wide[:, :, r:r + 5:2, q:q + 6:2] for r in range(3) for q in range(3)], 2).reshape(2, 27, 9)
    c.gives("unfold(x, 3, .stride = 2, .padding = 1)", strided)
    back = np.zeros_like(x)
    for tap, (r, q) in enumerate(np.ndindex(2, 2)):
        back[:, :, r:r + 4, q:q + 5] += taps.reshape(2, 3, 4, 4, 5)[:, :, tap]
    c.gives("fold(unfold(x, 2), hw(5, 6), 2)", back)
    c.gives("grid_sample(x, grid)", sampled(x, grid))
    base = np.stack(np.broadcast_arrays((2 * np.arange(3) + 1) / 3 - 1, ((2 * np.arange(4) + 1) / 4 - 1)[:, None],
                                        1.0), -1)
    c.gives("affine_grid(theta, hw(4, 3))", np.einsum("hwk,nok->nhwo", base, theta))
    w, b = c.parameter("dc.weight", 4, 3, 2, 2), c.parameter("dc.bias", 4)
    offset, seen = c.drawn("offset", 2, 8, 4, 5, scale=0.7), c.drawn("seen", 2, 4, 4, 5)
    taps = deformed(x, offset, 2)
    c.gives('deform_conv2d(x, offset, "dc", 4, 2)', np.einsum("nctij,oct->noij", taps, w.reshape(4, 3, 4))
            + b[:, None, None])
    w = c.parameter("dm.weight", 4, 3, 2, 2)
    c.gives('deform_conv2d(x, offset, "dm", 4, 2, .mask = seen, .bias = NO)',
            np.einsum("nctij,oct->noij", taps * seen[:, None], w.reshape(4, 3, 4)))
    for mode, numpy in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        w = c.parameter(f"{mode}.weight", 2, 3, 3, 3)
        c.gives(f'conv2d(x, "{mode}", 2, 3, .padding = 1, .padding_mode = "{mode}", .bias = NO)',
                convolve(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode=numpy), w))
    return c


def losses():
    c = Case("losses")
    x, y, p = c.drawn("x", 4, 5), c.drawn("y", 4, 5), c.random.random((4, 5)).astype(np.float32)
    p, t = c.given("p", p), c.given("t", np.array([1, 4, -100, 0]))
    weight = c.given("weight", np.linspace(0.5, 1.5, 5).astype(np.float32))
    z = c.given("z", (c.random.random((4, 5)) > 0.5).astype(np.float32))
    c.line("int64_t signs[4] = { 1, -1, 1, -1 };")
    logs, kept = np.log(softmax(x, 1)), np.array([0, 1, 3])
    picked = -logs[kept, t[kept]]
    apart = abs(x - y)
    for text, want in (
            ("cross_entropy(x, t)", picked.mean()), ('cross_entropy(x, t, .reduction = "sum")', picked.sum()),
            ("cross_entropy(x, t, .weight = weight)", (picked * weight[t[kept]]).sum() / weight[t[kept]].sum()),
            ("nll_loss(log_softmax(x, 1), t)", picked.mean()), ("mse_loss(x, y)", ((x - y) ** 2).mean()),
            ('mse_loss(x, y, .reduction = "none")', (x - y) ** 2), ("l1_loss(x, y)", apart.mean()),
            ("smooth_l1_loss(x, y)", np.where(apart < 1, apart ** 2 / 2, apart - 0.5).mean()),
            ("binary_cross_entropy(p, z)", -(z * np.log(p) + (1 - z) * np.log(1 - p)).mean()),
            ("binary_cross_entropy_with_logits(x, z)", (softplus(x) - x * z).mean()),
            ("kl_div(log_softmax(x, 1), p)", (p * (np.log(p) - logs)).mean()),
            ("poisson_nll_loss(x, p)", (np.exp(x) - p * x).mean()),
            ("soft_margin_loss(x, y)", softplus(-x * y).mean())):
        c.gives(text, want)
    even, own = -logs[kept].mean(1), weight[t[kept]]
    smooth = 0.8 * picked + 0.2 * even
    soft = softmax(y, 1)
    for text, want in (
            ("cross_entropy(x, t, .label_smoothing = 0.2)", smooth.mean()),
            ('cross_entropy(x, t, .label_smoothing = 0.2, .reduction = "none")',
             np.array([smooth[0], smooth[1], 0, smooth[2]])),
            ("cross_entropy(x, t, .label_smoothing = 0.2, .weight = weight)",
             (0.8 * picked * own - 0.2 * (logs[kept] * weight).mean(1)).sum() / own.sum()),
            ("cross_entropy(x, relu(t), .ignore_index = 4)", -logs[[0, 2, 3], [1, 0, 0]].mean()),
            ("cross_entropy(x, relu(t), .ignore_index = ZERO)", -logs[[0, 1], [1, 4]].mean()),
            ("cross_entropy(x, softmax(y, 1))", -(soft * logs).sum(1).mean()),
            ("cross_entropy(x, softmax(y, 1), .label_smoothing = 0.1, .weight = weight)",
             -((0.9 * soft + 0.02) * logs * weight).sum(1).mean()),
            ("lp_loss(x, y, .p = 3)", (apart ** 3).mean()), ("lp_loss(x, y)", (apart ** 2).mean()),
            ("smooth_l1_loss(x, y, .beta = 0.5)", np.where(apart < 0.5, apart ** 2, apart - 0.25).mean()),
            ("huber_loss(x, y, .delta = 0.5)", np.where(apart < 0.5, apart ** 2 / 2, apart / 2 - 0.125).mean()),
            ("binary_cross_entropy(p, z, .weight = weight)",
             -((z * np.log(p) + (1 - z) * np.log(1 - p)) * weight).mean()),
            ("binary_cross_entropy_with_logits(x, z, .pos_weight = weight)",
             (weight * z * softplus(-x) + (1 - z) * softplus(x)).mean()),
            ('kl_div(log_softmax(x, 1), p, .reduction = "batchmean")', (p * (np.log(p) - logs)).sum() / 4),
            ("kl_div(log_softmax(x, 1), log_softmax(y, 1), .log_target = YES)",
             (soft * (np.log(soft) - logs)).mean()),
            ("poisson_nll_loss(x, mul(p, 4), .full = YES)",
             (np.exp(x) - 4 * p * x + np.where(4 * p > 1, 4 * p * np.log(4 * p) - 4 * p
                                               + 0.5 * np.log(8 * np.pi * p), 0)).mean()),
            ("poisson_nll_loss(p, z, .log_input = NO)", (p - z * np.log(p + 1e-8)).mean()),
            ("hinge_embedding_loss(x, sub(mul(z, 2), 1), .margin = 0.5)",
             np.where(z > 0.5, x, np.maximum(0.5 - x, 0)).mean()),
            ("gaussian_nll_loss(x, y, p)", (0.5 * (np.log(p) + (x - y) ** 2 / p)).mean()),
            ("gaussian_nll_loss(x, y, p, .full = YES, .eps = 0.5)",
             (0.5 * (np.log(np.maximum(p, 0.5)) + (x - y) ** 2 / np.maximum(p, 0.5) + np.log(2 * np.pi))).mean()),
            ("margin_ranking_loss(x, y, sub(mul(z, 2), 1), .margin = 0.1)",
             np.maximum(0, -(2 * z - 1) * (x - y) + 0.1).mean()),
            ('cosine_embedding_loss(x, y, constant(I64, signs, 4), .margin = 0.1, .reduction = "none")',
             np.where(np.array([1, -1, 1, -1]) > 0, 1 - cosine(x, y), np.maximum(cosine(x, y) - 0.1, 0))),
            ("triplet_margin_loss(x, y, p)", np.maximum(far(x, y) - far(x, p) + 1, 0).mean()),
            ("triplet_margin_loss(x, y, p, .margin = 2, .p = 1, .swap = YES)",
             np.maximum(far(x, y, 1) - np.minimum(far(x, p, 1), far(y, p, 1)) + 2, 0).mean()),
            ("multi_margin_loss(x, relu(t))", margins(x, t.clip(0), 1).mean()),
            ('multi_margin_loss(x, relu(t), .p = 2, .weight = weight, .reduction = "sum")',
             (margins(x, t.clip(0), 2) * weight[t.clip(0)]).sum())):
        c.gives(text, want)
    return c


def cosine(x, y):
    return (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)


def far(x, y, p=2):
    return (abs(x - y + 1e-6) ** p).sum(-1) ** (1 / p)


def margins(x, t, p):
    rows = np.arange(len(x))
    over = np.maximum(0, 1 - x[rows, t][:, None] + x) ** p
    over[rows, t] = 0
    return over.mean(1)


def aligned(logs, target, blank=0):
    """Minus the logarithm of the sum over all paths of one sequence, each tried."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        kept = [k for i, k in enumerate(path) if k != blank and (i == 0 or path[i - 1] != k)]
        if kept == list(target):
            total += np.exp(sum(row[k] for row, k in zip(logs, path)))
    return -np.log(total) if total else np.inf


def transduced(logs, target, steps, length, blank=0):
    """Minus the logarithm of the sum over all ways to the last blank, in probabilities."""
    a = np.zeros((steps, length + 1))
    a[0, 0] = 1
    for t, u in np.ndindex(steps, length + 1):
        if t:
            a[t, u] += a[t - 1, u] * np.exp(logs[t - 1, u, blank])
        if u:
            a[t, u] += a[t, u - 1] * np.exp(logs[t, u - 1, target[u - 1]])
    return -np.log(a[-1, -1]) - logs[steps - 1, length, blank]


def alignments():
    c = Case("alignments")
    x = c.drawn("x", 5, 4, 3)
    logs = np.log(softmax(x, 2))
    targets = c.given("targets", np.array([[1, 2], [2, 2], [1, 0], [2, 2]]))
    times, lengths = c.given("times", np.array([5, 4, 3, 2])), c.given("lengths", np.array([2, 2, 1, 2]))
    each = np.array([aligned(logs[:n, i], targets[i, :k]) for i, (n, k) in enumerate(zip(times, lengths))])
    finite = np.where(np.isfinite(each), each, 0)
    none = np.array([aligned(logs[:n, i], []) for i, n in enumerate(times)])
    ends = [aligned(logs[:n, i], [0], 2) for i, n in enumerate(times)]
    for text, want in (
            ('targets, times, lengths, .reduction = "none"', each),
            ("targets, times, lengths, .zero_infinity = YES", (finite / lengths).mean()),
            ('targets, times, mul(lengths, 0), .reduction = "none"', none),
            ('zeros(I64, 4, 1), times, ones(I64, 4), .blank = 2, .reduction = "sum"', sum(ends))):
        c.gives(f"ctc_loss(log_softmax(x, 2), {text})", want)
    pairs = c.drawn("pairs", 2, 3, 3, 3)
    labels, seen, few = c.given("labels", np.array([[1, 2], [2, 1]])), c.given("seen", np.array([3, 2])), c.given(
        "few", np.array([2, 1]))
    each = np.array([transduced(np.log(softmax(pairs[i], 2)), labels[i], *n) for i, n in enumerate(((3, 2), (2, 1)))])
    c.gives('rnnt_loss(pairs, labels, seen, few, .reduction = "none")', each)
    c.gives("rnnt_loss(pairs, labels, seen, few)", each.mean())
    return c


def slopes():
    c = Case("slopes")
    x, y = c.drawn("x", 3, 4), c.drawn("y", 3, 4)
    w = c.parameter("w", 4, 4)
    c.line('Tensor w = parameter("w", (4, 4)), a = tanh(matmul(x, w)), b = mul(x, x);')
    a = np.tanh(x @ w)
    once = ((1 - a**2) * y) @ w.T
    for text, want in (
            ("gradient(mul(a, y), x)", once),
            ("gradient(sum(mul(a, y), 1), x)", once),
            ("gradient(sum(mul(a, y)), a)", y),
            ("gradient(gradient(mul(a, y), x), x)", ((-2 * a * (1 - a**2)) * y * w.sum(0)) @ w.T),
            ("gradient(mul(b, b), b)", 2 * x**2),
            ("gradient(x, y)", np.zeros((3, 4))),
            ("neg(gradient(sum(pow(x, 4)), x))", -4 * x**3)):
        c.gives(text, want)
    return c


def transformers():
    c = Case("transformers")
    x, memory = c.drawn("x", 2, 5, 8, t=1), c.drawn("memory", 2, 3, 8)

    def norm(name, v):
        return normalised(v, -1, 1e-5) * c.parameter(f"{name}.weight", 8) + c.parameter(f"{name}.bias", 8)

    def dense(name, v, out):
        return v @ c.parameter(f"{name}.weight", out, v.shape[-1]).T + c.parameter(f"{name}.bias", out)

    def forward(name, v, wide, of):
        return dense(f"{name}.linear2", of(dense(f"{name}.linear1", v, wide)), 8)
    y = norm("a.norm1", x + multi_head(c, "a.self_attn", 2, x, x, x))
    c.gives('transformer_encoder_layer(x, "a", 2, 16)',
            norm("a.norm2", y + forward("a", y, 16, lambda v: np.maximum(v, 0))))
    z = norm("b.norm1", x)
    y = x + multi_head(c, "b.self_attn", 4, z, z, z)
    c.gives('transformer_encoder_layer(x, "b", 4, 12, "gelu", .norm_first = YES)',
            y + forward("b", norm("b.norm2", y), 12, gelu))
    causal = np.tril(np.ones((5, 5), bool))
    y = norm("d.norm1", x + multi_head(c, "d.self_attn", 2, x, x, x, causal))
    y = norm("d.norm2", y + multi_head(c, "d.multihead_attn", 2, y, memory, memory))
    c.gives('transformer_decoder_layer(x, "d", 2, 16, .causal = YES, .memory = memory)',
            norm("d.norm3", y + forward("d", y, 16, lambda v: np.maximum(v, 0))))
    turn = np.arange(5)[:, None] * 10000.0 ** (-np.arange(0, 8, 2) / 8)
    c.gives("positional_encoding(x)", x + np.stack((np.sin(turn), np.cos(turn)), -1).reshape(5, 8))
    c.gives('rnn(x, "rnn", 4, .activation = "relu")', recurrent(c, "rnn", "relu", x, 4)[0])
    return c


ALL = [scattered, patches, losses, alignments, slopes, transformers]
