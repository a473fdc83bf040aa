# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls that move elements, make them from nothing, or work along axes; products; sizes that are symbols."""
import math

import numpy as np
from case import Case


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def placed(x, from_, at):
    y = x.copy()
    y[at] = from_
    return y


def shapes():
    c = Case("shapes")
    x, y = c.drawn("x", 2, 3, 4), c.drawn("y", 2, 3, 4)
    row = c.drawn("row", 1, 4)
    c.line("float table[6] = { 1, 2, 3, 4, 5, 6 };")
    c.line("Tensor pair[2] = { x, y };")
    for text, want in (
            ("reshape(x, 4, -1)", x.reshape(4, 6)), ("reshape(x, -1)", x.reshape(-1)),
            ("flatten(x, 1)", x.reshape(2, 12)),
            ("flatten_range(x, 0, 1)", x.reshape(6, 4)), ("flatten_range(x, -3, -2)", x.reshape(6, 4)),
            ("expand(row, 3, -1)", np.broadcast_to(row, (3, 4))),
            ("expand(row, 2, 3, 4)", np.broadcast_to(row, (2, 3, 4))),
            ("permute(x, 2, 0, 1)", x.transpose(2, 0, 1)), ("permute(x, 0, -1, 1)", x.transpose(0, 2, 1)),
            ("transpose(x, -1, 0)", x.swapaxes(-1, 0)), ("squeeze(row, 0)", row[0]),
            ("unsqueeze(x, -1)", x[..., None]),
            ("unsqueeze(x, 1)", x[:, None]), ("narrow(x, -1, 1, 2)", x[..., 1:3]),
            ("slice(x, 2, 0, INT64_MAX, 2)", x[..., ::2]),
            ("slice(x, -1, -3, -1, 1)", x[..., -3:-1]), ("slice(x, 1, 1, 100, 1)", x[:, 1:]),
            ("select(x, 1, -1)", x[:, -1]),
            ("select(x, -1, 0)", x[..., 0]), ("chunk(x, 2, 2, 1)", x[..., 2:]),
            ("cat(1, x, y)", np.concatenate((x, y), 1)),
            ("cat(-1, x, y, x)", np.concatenate((x, y, x), -1)), ("stack(0, x, y)", np.stack((x, y))),
            ("stack(-1, x, y)", np.stack((x, y), -1)), ("cat_list(0, 2, pair)", np.concatenate((x, y), 0)),
            ("stack_list(1, 2, pair)", np.stack((x, y), 1)), ("flip(x, 0, -1)", x[::-1, :, ::-1]),
            ("repeat(x, 1, 2, 3)", np.tile(x, (1, 2, 3))), ("repeat(row, 2, 1, 2)", np.tile(row, (2, 1, 2))),
            ("pad(x, .pads = { 1, 2 })", np.pad(x, ((0, 0), (0, 0), (1, 2)))),
            ("pad(x, .pads = { 0, 1, 2, 0 }, .value = 3)", np.pad(x, ((0, 0), (2, 0), (0, 1)), constant_values=3)),
            ("pad(x, .pads = { 2, 1 }, .mode = \"reflect\")", np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="reflect")),
            ("pad(x, .pads = { 2, 1 }, .mode = \"replicate\")", np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="edge")),
            ("pad(x, .pads = { 2, 1 }, .mode = \"circular\")", np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="wrap")),
            ("tril(x, 0)", np.tril(x)), ("tril(x, -1)", np.tril(x, -1)), ("triu(x, 1)", np.triu(x, 1)),
            ("add(x, constant(F32, table + 1, 4))", x + np.arange(2, 6)), ("add(x, full(F32, 2.5, 3, 1))", x + 2.5),
            ("squeeze(unsqueeze(x, 0, -2), 0, 3)", x), ("unsqueeze(x, 0, -1)", x[None, ..., None]),
            ("movedim(x, 0, -1)", np.moveaxis(x, 0, -1)), ("movedim(x, 2, 0)", np.moveaxis(x, 2, 0)),
            ("chunk(x, 3, 2, 1)", x[..., 2:4]), ("chunk(x, 3, -1, 0)", x[..., :2]),
            ("split(x, 3, 2, 0)", x[..., :3]), ("split(x, 3, 2, 1)", x[..., 3:]),
            ("split_sizes(x, 2, 1, 1, 2, 1)", x[..., 1:3]), ("split_sizes(x, -2, 0, 2, 1)", x[:, :2]),
            ("tile(x, 2)", np.tile(x, 2)), ("tile(x, 2, 1, 1, 2)", np.tile(x, (2, 1, 1, 2))),
            ("repeat_interleave(x, 3, 1)", np.repeat(x, 3, 1)),
            ("slice_scatter(x, narrow(y, 2, 0, 2), 2, 1, 3, 1)", placed(x, y[..., :2], np.s_[..., 1:3])),
            ("slice_scatter(x, narrow(y, 2, 0, 2), 2, 0, INT64_MAX, 2)", placed(x, y[..., :2], np.s_[..., ::2])),
            ("slice_scatter(x, narrow(y, 1, 0, 2), 1, 0, 3, 2)", placed(x, y[:, :2], np.s_[:, ::2])),
            ("slice_scatter(x, 7, -1, -3, -1, 1)", placed(x, 7, np.s_[..., -3:-1])),
            ("select_scatter(x, select(y, 1, 0), 1, -1)", placed(x, y[:, 0], np.s_[:, -1])),
            ("select_scatter(x, 0.5, 2, 1)", placed(x, 0.5, np.s_[..., 1])),
            ("unfold_axis(x, 2, 2, 1)", np.stack((x[..., :3], x[..., 1:]), -1)),
            ("unfold_axis(x, 1, 2, 1)", np.stack((x[:, :2], x[:, 1:]), -1)),
            ("unfold_axis(x, -1, 2, 2)", x.reshape(2, 3, 2, 2)),
            ("zeros_like(x)", 0 * x), ("ones_like(row)", np.ones((1, 4))), ("full_like(x, 2.5)", 0 * x + 2.5),
            ("zeros(I64, 2, 2)", np.zeros((2, 2), np.int64)), ("ones(F32, 3)", np.ones(3)),
            ("arange(I64, 5)", np.arange(5)), ("arange(F32, 3)", np.arange(3.0))):
        c.gives(text, want)
    return c


def reductions():
    c = Case("reductions")
    x = c.drawn("x", 3, 4, 5)
    axes = (("0", (0,)), ("-1", (2,)), ("0, -1", (0, 2)))
    for text, a in axes:
        for call, of in (("sum", np.sum), ("mean", np.mean), ("prod", np.prod), ("amax", np.max), ("amin", np.min)):
            c.gives(f"{call}(x, {text})", of(x, axis=a))
        c.gives(f"var(x, {text})", x.var(axis=a, ddof=1))
        c.gives(f"logsumexp(x, {text})", np.log(np.exp(x).sum(axis=a)))
        c.gives(f"norm(x, {text})", np.sqrt((x * x).sum(axis=a)))
    for call, of in (("sum", np.sum), ("mean", np.mean), ("amax", np.max), ("amin", np.min)):
        c.gives(f"{call}_keep(x, 1)", of(x, axis=1, keepdims=True))
    c.gives("var_keep(x, 1)", x.var(axis=1, ddof=1, keepdims=True))
    c.gives("norm_keep(x, 1)", np.sqrt((x * x).sum(axis=1, keepdims=True)))
    for text, want in (
            ("sum(x)", x.sum()), ("mean(x)", x.mean()), ("amax(x)", x.max()), ("any(gt(x, 100))", np.bool_(False)),
            ("var(x)", x.var(ddof=1)), ("var_biased(x, 0)", x.var(0)),
            ("std_keep(x, 0)", x.std(0, ddof=1, keepdims=True)),
            ("prod_keep(x, 0)", x.prod(0, keepdims=True)), ("norm(x)", np.sqrt((x * x).sum()))):
        c.gives(text, want)
    c.gives("any(gt(x, 1), 0)", (x > 1).any(0))
    c.gives("all(x, 0)", x.all(0))
    for p, of in (("0", lambda v: (v != 0).sum(1)), ("1", lambda v: abs(v).sum(1)),
                  ("2", lambda v: np.sqrt((v * v).sum(1))), ("3", lambda v: (abs(v) ** 3).sum(1) ** (1 / 3)),
                  ("INFINITY", lambda v: abs(v).max(1)), ("-INFINITY", lambda v: abs(v).min(1))):
        c.gives(f"vector_norm(relu(x), {p}, 1)", of(np.maximum(x, 0)).astype(np.float64))
    c.gives("vector_norm(x, 1)", abs(x).sum())
    c.gives("vector_norm_keep(x, 1, 0, 2)", abs(x).sum((0, 2), keepdims=True))
    c.gives("normalize(x, 2, -1)", x / np.sqrt((x * x).sum(-1, keepdims=True)))
    c.gives("normalize(mul(x, 0), 1, 0)", 0 * x)
    for axis in (1, -1):
        sigmoids = 1 / (1 + np.exp(-np.split(x[:, :, :4], 2, axis)[1]))
        order = np.argsort(x, axis)
        highest = np.maximum.accumulate(x, axis)
        place = np.indices(x.shape)[axis]
        for text, want in (
                ("median(x, {}).values", np.sort(x, axis).take((x.shape[axis] - 1) // 2, axis)),
                ("median(x, {}).indices", order.take((x.shape[axis] - 1) // 2, axis)),
                ("max_with_indices(x, {}).values", x.max(axis)),
                ("max_with_indices(x, {}).indices", x.argmax(axis)),
                ("min_with_indices(x, {}).values", x.min(axis)),
                ("min_with_indices(x, {}).indices", x.argmin(axis)), ("cummax(x, {}).values", highest),
                ("cummax(x, {}).indices", np.maximum.accumulate(np.where(x == highest, place, 0), axis)),
                ("cummin(x, {}).values", np.minimum.accumulate(x, axis)),
                ("quiet_softmax(x, {})", np.exp(x) / (1 + np.exp(x).sum(axis, keepdims=True))),
                ("topk_smallest(x, 2, {}).values", np.sort(x, axis).take([0, 1], axis)),
                ("argtopk(x, 3, {})", np.argsort(-x, axis).take([0, 1, 2], axis))):
            c.gives(text.format(axis), want)
        a, b = np.split(x[:, :, :4], 2, axis)
        for text, want in (("reglu", a * np.maximum(b, 0)), ("swiglu", a * b * sigmoids),
                           ("geglu", a * b * (1 + np.vectorize(math.erf)(b / math.sqrt(2))) / 2)):
            c.gives(f"{text}(narrow(x, 2, 0, 4), {axis})", want)
    for axis in (1, -1):
        halves = np.split(x[:, :, :4], 2, axis)
        for text, want in (
                ("argmax(x, {})", x.argmax(axis)), ("argmin(x, {})", x.argmin(axis)),
                ("softmax(x, {})", softmax(x, axis)),
                ("log_softmax(x, {})", np.log(softmax(x, axis))), ("softmin(x, {})", softmax(-x, axis)),
                ("glu(narrow(x, 2, 0, 4), {})", halves[0] / (1 + np.exp(-halves[1]))),
                ("cumsum(x, {})", x.cumsum(axis)),
                ("cumprod(x, {})", x.cumprod(axis)), ("sort(x, {}, false).values", np.sort(x, axis)),
                ("sort(x, {}, true).indices", np.argsort(-x, axis)),
                ("topk(x, 2, {}).values", np.flip(np.sort(x, axis), axis)
                    .take([0, 1], axis)), ("topk(x, 2, {}).indices", np.argsort(-x, axis).take([0, 1], axis))):
            c.gives(text.format(axis), want)
    return c


def indices():
    c = Case("indices")
    x = c.drawn("x", 4, 5)
    i, few = c.given("i", c.random.integers(0, 4, (2, 5))), c.given("few", np.array([3, 0, 3]))
    c.gives("gather(x, 0, i)", np.take_along_axis(x, i, 0))
    c.gives("gather(x, -1, narrow(i, 1, 0, 3))", np.take_along_axis(x[:2], i[:, :3], 1))
    c.gives("index_select(x, 0, few)", x[few])
    c.gives("index_select(x, -1, few)", x[:, few])
    c.gives("one_hot(few, 5)", np.eye(5, dtype=np.int64)[few])
    c.gives("one_hot_fill(few, 4, 0.5, -1)", np.where(np.eye(4)[few], 0.5, -1))
    c.gives("take(x, i)", x.reshape(-1)[i])
    filled = x.copy()
    filled[:, [3, 0]] = 9
    c.gives("index_fill(x, 1, few, 9)", filled)
    return c


def products():
    c = Case("products")
    a, b = c.drawn("a", 2, 3, 4), c.drawn("b", 2, 4, 5)
    w, v = c.drawn("w", 4, 6), c.drawn("v", 4)
    for text, want in (
            ("matmul(a, b)", a @ b), ("matmul(a, w)", a @ w), ("matmul(a, v)", a @ v), ("matmul(v, w)", v @ w),
            ("matmul(v, v)", v @ v), ("dot(v, v)", v @ v), ("trace(a)", np.trace(a, axis1=1, axis2=2)),
            ("det(narrow(w, 1, 0, 4))", np.linalg.det(w[:, :4])), ("cov(w)", np.cov(w)),
            ("inverse(add(narrow(w, 1, 0, 4), mul(eye(F32, 4), 3)))", np.linalg.inv(w[:, :4] + 3 * np.eye(4))),
            ("pairwise_distance(a, select(a, 0, 1), 2)", np.sqrt(((a - a[1] + 1e-6) ** 2).sum(-1))),
            ("cdist(a, transpose(b, 1, 2), 1)", abs(a[:, :, None] - b.swapaxes(1, 2)[:, None]).sum(-1)),
            ("gram_matrix(a)", a @ a.swapaxes(1, 2) / 12),
            ("einsum(\"bij,bjk->bki\", a, b)", np.einsum("bij,bjk->bki", a, b)),
            ("einsum(\"bij,j->bi\", a, v)", a @ v)):
        c.gives(text, want)
    return c


def symbols():
    """Sizes that only the running program knows."""
    c = Case("symbols")
    x = c.drawn("x", 3, 5, 4, n=0, t=1)
    c.line("Dim n = dim(x, 0), t = dim(x, -2);")
    for text, want in (
            ("reshape(x, n, -1)", x.reshape(3, 20)), ("reshape(x, dim_mul(n, t), 4)", x.reshape(15, 4)),
            ("reshape(x, n, t, 2, 2)", x.reshape(3, 5, 2, 2)), ("flatten(x, 0)", x.reshape(-1)),
            ("transpose(x, 0, 1)", x.swapaxes(0, 1)),
            ("expand(select(x, 0, 0), n, t, 4)", np.broadcast_to(x[0], x.shape)), ("select(x, 1, -1)", x[:, -1]),
            ("slice(x, 1, 1, INT64_MAX, 1)", x[:, 1:]), ("slice(x, 1, 0, -1, 1)", x[:, :-1]),
            ("narrow(x, 1, dim_sub(t, 2), 2)", x[:, -2:]), ("cat(1, x, x)", np.concatenate((x, x), 1)),
            ("zeros(F32, n, 2)", np.zeros((3, 2))), ("arange(I64, t)", np.arange(5)), ("mean(x, 1)", x.mean(1)),
            ("var(x, 1)", x.var(1, ddof=1)), ("softmax(x, 1)", softmax(x, 1)), ("tril(transpose(x, 0, 2), 0)",
                np.tril(x.swapaxes(0, 2))), ("pad(x, .pads = { 0, 0, 1, 0 })", np.pad(x, ((0, 0), (1, 0), (0, 0)))),
            ("matmul(x, transpose(x, 1, 2))", x @ x.swapaxes(1, 2)), ("argmax(x, 1)", x.argmax(1)),
            ("cumsum(x, 1)", x.cumsum(1)), ("cummax(x, 1).values", np.maximum.accumulate(x, 1)),
            ("median(x, 1).values", np.sort(x, 1)[:, 2]), ("repeat_interleave(x, 2, 0)", np.repeat(x, 2, 0)),
            ("unfold_axis(x, 1, 2, 1)", np.stack((x[:, :-1], x[:, 1:]), -1)),
            ("tril_mask(n, t, 1)", np.tri(3, 5, 1, bool)), ("split_sizes(x, 1, 1, dim_sub(t, 2), 2)", x[:, -2:]),
            ("quiet_softmax(x, 1)", np.exp(x) / (1 + np.exp(x).sum(1, keepdims=True)))):
        c.gives(text, want)
    return c


ALL = [shapes, reductions, indices, products, symbols]
