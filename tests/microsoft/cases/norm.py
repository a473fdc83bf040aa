# SPDX-License-Identifier: MIT OR Apache-2.0
"""Normalisations with the sums before them, embeddings, groups of channels."""
import numpy as np

from cases import Draw, add

d = Draw(2)

# ---- skip connections
for op, beta in (("SkipLayerNormalization", True), ("SkipSimplifiedLayerNormalization", False)):
    x, skip, gamma = d.f(2, 5, 33), d.f(2, 5, 33), d.f(33)
    rest = [d.f(33)] if beta else []
    add("plain", op, [x, skip, gamma] + rest)
    add("epsilon", op, [x, skip, gamma] + rest, epsilon=0.1)
    add("bias", op, [x, skip, gamma] + rest + [d.f(33)])
    add("sum", op, [x, skip, gamma] + rest + [d.f(33)], outputs=[True, False, False, True])
    add("sum_no_bias", op, [x, skip, gamma] + rest, outputs=[True, False, False, True])
    add("rows", op, [d.f(7, 33), d.f(7, 33), gamma] + rest)
    add("constant", op, [x, skip, gamma] + rest, constant=tuple(range(2, 3 + len(rest))))
    add("f16", op, [a.astype(np.float16) for a in [x, skip, gamma] + rest], tolerance=(1e-2, 4e-3))
add("skip_rows", "SkipLayerNormalization", [d.f(2, 5, 33), d.f(5, 33), d.f(33), d.f(33)])
add("skip_one_batch", "SkipLayerNormalization",
    [d.f(2, 5, 33), d.f(1, 5, 33), d.f(33), d.f(33)], outputs=[True, False, False, True])
add("no_beta", "SkipLayerNormalization", [d.f(2, 5, 33), d.f(2, 5, 33), d.f(33), None, d.f(33)])


def skip_statistics(x, skip, gamma, beta):
    s = (x + skip).astype(np.float64)
    mean = s.mean(-1, keepdims=True)
    r = 1 / np.sqrt(((s - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    return [a.astype(np.float32) for a in ((s - mean) * r * gamma + beta, mean, r)]


# ---- without a mean
for domain in ("",):
    op = "SimplifiedLayerNormalization"
    add("plain", op, [d.f(2, 5, 33), d.f(33)], domain=domain)
    add("epsilon", op, [d.f(2, 5, 33), d.f(33)], domain=domain, epsilon=0.1, axis=-1)
    add("axis", op, [d.f(2, 5, 33), d.f(5, 33)], domain=domain, axis=1)
    add("statistics", op, [d.f(2, 5, 33), d.f(33)], domain=domain, outputs=2)
    add("f16", op, [d.f(2, 5, 33).astype(np.float16), d.f(33).astype(np.float16)], domain=domain, stash_type=1,
        tolerance=(1e-2, 4e-3))
    add("opset11", op, [d.f(2, 5, 33), d.f(33)], domain=domain, opset=11)

for opset in (11, 16):
    add(f"opset{opset}", "LayerNormalization", [d.f(2, 5, 33), d.f(33), d.f(33)], domain="", opset=opset, epsilon=0.01)
    add(f"opset{opset}_no_bias", "LayerNormalization", [d.f(2, 5, 33), d.f(5, 33)], domain="", opset=opset, axis=1)

# ---- embeddings
ids, segments = d.i32(2, 7, hi=50), d.i32(2, 7, hi=2)
word, position, segment, gamma, beta = d.f(50, 33), d.f(16, 33), d.f(2, 33), d.f(33), d.f(33)
mask = (np.arange(7) < np.array([[5], [7]])).astype(np.int32)
op = "EmbedLayerNormalization"
add("plain", op, [ids, segments, word, position, segment, gamma, beta], epsilon=1e-5, outputs=2)
add("mask", op, [ids, segments, word, position, segment, gamma, beta, mask], epsilon=1e-5, outputs=2)
add("sum", op, [ids, segments, word, position, segment, gamma, beta, mask], outputs=3)
add("no_segment", op, [ids, None, word, position, None, gamma, beta], outputs=2)
add("places", op, [ids, segments, word, position, segment, gamma, beta, mask, d.i32(2, 7, hi=16)], outputs=2)
add("places_one", op, [ids, None, word, position, None, gamma, beta, None,
                       d.i32(1, 7, hi=16)], outputs=[True, False, True])
add("mask_type", op, [ids, segments, word, position, segment, gamma, beta], mask_index_type=0)
add("constant", op, [ids, segments, word, position, segment, gamma, beta, mask], outputs=2, constant=(2, 3, 4, 5, 6))

scales = [np.float32(s).reshape(()) for s in (0.01, 0.02, 0.015, 0.011, 0.007)]
zeros = [np.uint8(z).reshape(()) for z in (128, 120, 100, 3, 130)]
tables = [d.u8(50, 33), d.u8(16, 33), d.u8(2, 33), d.u8(33), d.u8(33)]
op = "QEmbedLayerNormalization"
add("plain", op, [ids, segments] + tables + [mask] + scales + zeros, epsilon=1e-5, outputs=2,
    constant=tuple(range(2, 7)))
add("no_mask", op, [ids, segments] + tables + [None] + scales + zeros, outputs=2)
add("no_segment", op, [ids, None] + tables[:2] + [None] + tables[3:] + [mask] + scales[:2] + [None] + scales[3:] +
    zeros[:2] + [None] + zeros[3:], outputs=2)


# ---- groups of channels, last or second
def group_norm(groups, last, silu, epsilon=1e-5):
    def f(x, gamma, beta, skip=None, bias=None):
        if skip is not None:
            skip = skip if skip.ndim == 4 else skip[:, None, None] if last else skip[:, :, None, None]
            x = x + skip
        if bias is not None:
            x = x + (bias if last else bias[:, None, None])
        s = x if last else x.transpose(0, 2, 3, 1)
        n, h, w, c = s.shape
        v = s.reshape(n, h * w, groups, c // groups).astype(np.float64)
        mean = v.mean((1, 3), keepdims=True)
        v = (v - mean) / np.sqrt(((v - mean) ** 2).mean((1, 3), keepdims=True) + epsilon)
        y = v.reshape(s.shape) * gamma + beta
        y = (y / (1 + np.exp(-y)) if silu else y).astype(np.float32)
        return [y if last else y.transpose(0, 3, 1, 2), x]
    return f


for last in (0, 1):
    shape = (2, 3, 5, 8) if last else (2, 8, 3, 5)
    for silu in (0, 1):
        e = group_norm(4, last, silu)
        add(f"{last}{silu}", "GroupNorm", [d.f(*shape), d.f(8), d.f(8)], groups=4, activation=silu, channels_last=last,
            expect=lambda *a, e=e: e(*a)[:1])
        add(f"{last}{silu}", "SkipGroupNorm",
            [d.f(*shape), d.f(8), d.f(8), d.f(*shape), d.f(8)], outputs=2, groups=4, activation=silu,
            channels_last=last, expect=e)
    e = group_norm(2, last, 0, 0.01)
    wide = (2, 1, 1, 8) if last else (2, 8, 1, 1)
    add(f"{last}_rows", "SkipGroupNorm", [d.f(*shape), d.f(8), d.f(8), d.f(2, 8)], outputs=2, groups=2, activation=0,
        channels_last=last, epsilon=0.01, expect=e)
    add(f"{last}_wide", "SkipGroupNorm", [d.f(*shape), d.f(8), d.f(8), d.f(*wide)], groups=2, activation=0,
        channels_last=last, epsilon=0.01, expect=lambda *a, e=e: e(*a)[:1])
