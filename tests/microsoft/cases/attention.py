# SPDX-License-Identifier: MIT OR Apache-2.0
"""Attention, MultiHeadAttention and their quantised and decoding forms. Letters: b batch, s queries, t keys, h heads,
d size of a head."""
import numpy as np

from cases import Draw, add

r = Draw(3)
B, S, H, D, IN = 2, 5, 3, 4, 7
HD = H * D


def attend(q, k, v, added=0, scale=None):
    """[b, h, s, d] each."""
    x = np.einsum("bhsd,bhtd->bhst", q, k) * (scale or 1 / np.sqrt(q.shape[-1])) + added
    e = np.exp(x - x.max(-1, keepdims=True))
    y = np.einsum("bhst,bhtd->bhsd", e / e.sum(-1, keepdims=True), v)
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1).astype(np.float32)


def heads(x):
    return x.reshape(x.shape[0], x.shape[1], H, -1).transpose(0, 2, 1, 3)


lengths = np.array([5, 3], np.int32)
ranges = np.array([5, 4, 0, 1], np.int32)                                       # ends, then beginnings
right = (np.arange(S) < lengths[:, None]).astype(np.int32)
left = (np.arange(S) >= np.array([[0], [2]])).astype(np.int32)
square = r.i32(B, S, S, hi=2) | np.eye(S, dtype=np.int32)
past = r.f(2, B, H, 6, D)
long = np.concatenate([np.ones((B, 6), np.int32), right], 1)

# ---- Attention
op = "Attention"
x, w, b = r.f(B, S, IN), r.f(IN, 3 * HD), r.f(3 * HD)
add("plain", op, [x, w, b], num_heads=H)
add("no_bias", op, [x, w], num_heads=H, kernel=False,
    expect=lambda x, w: [attend(*(heads(x @ w[:, i * HD:][:, :HD]) for i in range(3)))])
add("constant", op, [x, w, b], num_heads=H, constant=(1, 2))
add("scale", op, [x, w, b], num_heads=H, scale=0.3)
add("present", op, [x, w, b], outputs=2, num_heads=H)
for name, mask in (("lengths", lengths), ("ranges", ranges), ("right", right), ("left", left), ("square", square),
                   ("nothing", np.zeros((B, S), np.int32))):
    add(f"mask_{name}", op, [x, w, b, mask], num_heads=H)
    add(f"mask_{name}_filter", op, [x, w, b, mask], num_heads=H,
        mask_filter_value=-3.4028234663852886e38 if name != "nothing" else -1.0)
    add(f"mask_{name}_causal", op, [x, w, b, mask], num_heads=H, unidirectional=1)
add("mask_left_filter_causal", op, [x, w, b, left], num_heads=H, unidirectional=1,
    mask_filter_value=-3.4028234663852886e38)
add("mask_square_filter_causal", op, [x, w, b, square], num_heads=H, unidirectional=1,
    mask_filter_value=-3.4028234663852886e38)
add("mask_end_only", op, [x, w, b, np.array([1, 5], np.int32)], num_heads=H, mask_filter_value=-2.0)
add("causal", op, [x, w, b], num_heads=H, unidirectional=1)
add("past", op, [x, w, b, None, past], outputs=2, num_heads=H)
add("past_causal", op, [x, w, b, None, past], outputs=2, num_heads=H, unidirectional=1)
add("past_mask", op, [x, w, b, long, past], outputs=2, num_heads=H, unidirectional=1)
add("past_square", op, [x, w, b, r.i32(B, S, S + 6, hi=2), past], outputs=2, num_heads=H)
add("past_step", op, [r.f(B, 1, IN), w, b, long[:, :7], past], outputs=2, num_heads=H, unidirectional=1)
add("bias", op, [x, w, b, None, None, r.f(B, H, S, S)], num_heads=H)
add("bias_broadcast", op, [x, w, b, None, None, r.f(1, H, S, S)], num_heads=H)
add("bias_heads", op, [x, w, b, right, None, r.f(B, 1, S, S)], num_heads=H, unidirectional=1)
add("values", op, [x, r.f(IN, 2 * HD + 2 * H), r.f(2 * HD + 2 * H)], num_heads=H, qkv_hidden_sizes=[HD, HD, 2 * H])
add("one", op, [r.f(1, 1, IN), w, b], num_heads=H, unidirectional=1)
add("symbols", op, [x, w, b, right], num_heads=H, unidirectional=1, constant=(1, 2),
    shapes={"x0": ["b", "s", IN], "x3": ["b", "s"]})

# ---- MultiHeadAttention
op = "MultiHeadAttention"
T = 8
q, k, v, b = r.f(B, S, HD), r.f(B, T, HD), r.f(B, T, HD), r.f(3 * HD)
kmask = (np.arange(T) < np.array([[8], [5]])).astype(np.int32)
add("plain", op, [q, k, v], num_heads=H)
add("self", op, [q, q + 0, r.f(B, S, HD)], num_heads=H)
add("bias", op, [q, k, v, b], num_heads=H)
add("bias_constant", op, [q, k, v, b], num_heads=H, constant=(3,))
add("scale", op, [q, k, v], num_heads=H, scale=0.7)
add("values", op, [q, k, r.f(B, T, 2 * H)], num_heads=H)
add("values_bias", op, [q, k, r.f(B, T, 2 * H), r.f(2 * HD + 2 * H)], num_heads=H)
add("lengths", op, [q, k, v, None, np.array([8, 5], np.int32)], num_heads=H)
add("mask", op, [q, k, v, b, kmask], num_heads=H)
add("mask_filter", op, [q, k, v, b, kmask], num_heads=H, mask_filter_value=-3.4028234663852886e38)
add("mask_square", op, [q, k, v, None, r.i32(B, S, T, hi=2)], num_heads=H)
add("added", op, [q, k, v, b, None, r.f(B, H, S, T)], num_heads=H)
add("added_broadcast", op, [q, k, v, None, None, r.f(1, 1, S, T)], num_heads=H)
add("added_mask", op, [q, k, v, None, kmask, r.f(1, H, S, T)], num_heads=H)
add("causal", op, [q, r.f(B, S, HD), r.f(B, S, HD)], num_heads=H, unidirectional=1)
add("causal_mask", op, [q, r.f(B, S, HD), r.f(B, S, HD), None, left], num_heads=H, unidirectional=1)
add("present", op, [q, k, v, b], outputs=3, num_heads=H)
add("scores", op, [q, k, v, b, kmask], outputs=[True, False, False, True], types={3: 1}, num_heads=H)
pk, pv = r.f(B, H, 6, D), r.f(B, H, 6, D)
add("past", op, [q, r.f(B, S, HD), r.f(B, S, HD), b, None, None, pk, pv], outputs=3, num_heads=H)
add("past_causal", op, [q, r.f(B, S, HD), r.f(B, S, HD), b, None, None, pk, pv], outputs=3, num_heads=H,
    unidirectional=1)
add("past_mask", op, [q, r.f(B, S, HD), r.f(B, S, HD), None, long,
                      r.f(B, H, S, S + 6), pk, pv], outputs=3, num_heads=H, unidirectional=1)
add("past_step", op,
    [r.f(B, 1, HD), r.f(B, 1, HD), r.f(B, 1, HD), b, long[:, :7], None, pk, pv], outputs=3, num_heads=H,
    unidirectional=1)
free = {
    "x0": ["b", "s", HD], "x1": ["b", "s", HD], "x2": ["b", "s", HD], "x4": ["b", "t"], "x6": ["b", H, "p", D],
    "x7": ["b", H, "p", D]
}
add("symbols", op, [q, r.f(B, S, HD), r.f(B, S, HD), None, long, None, pk, pv], outputs=3, num_heads=H,
    unidirectional=1, shapes=free)
add("cached", op, [q, r.f(B, H, T, D), r.f(B, H, T, D)], num_heads=H)
add("cached_bias", op, [q, r.f(B, H, T, D), r.f(B, H, T, D), b], num_heads=H,
    expect=lambda q, k, v, b: [attend(heads(q + b[:HD]), k, v)])
add("cached_mask", op, [q, r.f(B, H, T, D), r.f(B, H, T, D), None, kmask], num_heads=H)
add("packed", op, [r.f(B, S, H, 3, D)], num_heads=H,
    expect=lambda p: [attend(*(p[..., i, :].transpose(0, 2, 1, 3) for i in range(3)))])
add("packed_bias", op, [r.f(B, S, H, 3, D), None, None, b], num_heads=H,
    expect=lambda p, k, v, b: [attend(*(heads(p[..., i, :].reshape(B, S, HD) + b[i * HD:][:HD]) for i in range(3)))])
add("packed_kv", op, [q, r.f(B, T, H, 2, D)], num_heads=H,
    expect=lambda q, p: [attend(heads(q), *(p[..., i, :].transpose(0, 2, 1, 3) for i in range(2)))])

# ---- DecoderMaskedMultiHeadAttention: one query; buffers with room for M keys
op = "DecoderMaskedMultiHeadAttention"
M, P = 9, 4
q, k, v = r.f(B, 1, HD), r.f(B, 1, HD), r.f(B, 1, HD)
pk, pv = r.f(B, H, M, D), r.f(B, H, M, D)
add("cross", op, [q, r.f(B, H, T, D), r.f(B, H, T, D)], num_heads=H)
add("cross_mask", op, [q, r.f(B, H, T, D), r.f(B, H, T, D), kmask], num_heads=H)
add("cross_bias", op, [q, r.f(B, H, T, D), r.f(B, H, T, D)] + [None] * 7 + [b], num_heads=H)
add("cross_scores", op, [q, r.f(B, H, T, D), r.f(B, H, T, D)], outputs=[True, False, False, True], types={3: 1},
    num_heads=H, output_qk=1)
length = np.array([P], np.int32)
add("shared", op, [q, k, v, None, None, pk, pv, length], outputs=3, num_heads=H, past_present_share_buffer=1)
add("shared_constant", op, [q, k, v, None, None, pk, pv, length], outputs=3, num_heads=H, past_present_share_buffer=1,
    constant=(7, ))
add("shared_bias", op, [q, k, v, None, None, pk, pv, length, None, None, b], outputs=3, num_heads=H,
    past_present_share_buffer=1, scale=0.4)


def shared(p, k, v, mask, added, pk, pv, length):
    """The packed query's keys and values go to place `length` of the caches."""
    fresh = [heads(p[..., i * HD:][..., :HD]) for i in range(3)]
    caches = [pk.copy(), pv.copy()]
    for cache, new in zip(caches, fresh[1:]):
        cache[:, :, length[0]] = new[:, :, 0]
    return [attend(fresh[0], *(c[:, :, :length[0] + 1] for c in caches))] + caches


add("shared_packed", op, [r.f(B, 1, 3 * HD), None, None, None, None, pk, pv, length], outputs=3, num_heads=H,
    past_present_share_buffer=1, kernel=False, expect=shared)

# ---- QAttention
op = "QAttention"
x, w, b = r.u8(B, S, IN), r.i7(IN, 3 * HD), r.f(3 * HD)
sx, sw, zx, zw = np.float32(0.01), np.float32(0.008), np.uint8(120), np.int8(3)
columns, zeros = r.f(3 * HD, lo=0.004, hi=0.01), r.i8(3 * HD)
add("plain", op, [x, w, b, sx, sw, None, zx, zw], num_heads=H)
add("no_zero", op, [x, w, b, sx, sw], num_heads=H)
add("columns", op, [x, w, b, sx, columns, None, zx, zeros], num_heads=H, constant=(1, 2, 4, 7))
add("unsigned", op, [x, r.u8(IN, 3 * HD), b, sx, sw, None, zx, np.uint8(130)], num_heads=H)
add("lengths", op, [x, w, b, sx, sw, lengths, zx, zw], num_heads=H)
add("causal", op, [x, w, b, sx, sw, right, zx, zw], num_heads=H, unidirectional=1)
add("past", op, [x, w, b, sx, sw, long, zx, zw, past], outputs=2, num_heads=H, unidirectional=1)
