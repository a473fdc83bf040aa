# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rotary embeddings and attention over groups of heads with caches. Letters: b batch, s new tokens, p cached ones, h
heads, g key heads, d head size."""
import numpy as np

from cases import Draw, add

r = Draw(4)
B, S, H, G, D = 2, 5, 4, 2, 16


def tables(rows, half):
    angle = np.arange(rows)[:, None] / 100.0 ** (np.arange(half) / half)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


# ---- RotaryEmbedding
op = "RotaryEmbedding"
cos, sin = tables(16, D // 2)
ids = r.i64(B, S, hi=16)
for i in (0, 1):
    add(f"flat_{i}", op, [r.f(B, S, H * D), ids, cos, sin], interleaved=i)
    add(f"heads_{i}", op, [r.f(B, H, S, D), ids, cos, sin], interleaved=i)
    add(f"first_{i}", op, [r.f(B, S, H * D), np.array([3]), cos, sin], interleaved=i)
    add(f"part_{i}", op, [r.f(B, S, H * 20), ids, cos, sin], interleaved=i, rotary_embedding_dim=D, num_heads=H)
    add(f"part_heads_{i}", op, [r.f(B, H, S, 20), ids, cos, sin], interleaved=i, rotary_embedding_dim=D, num_heads=H)
add("constant", op, [r.f(B, S, H * D), ids, cos, sin], constant=(2, 3))
add("num_heads", op, [r.f(B, S, H * D), ids, cos, sin], num_heads=H)


def rotate(x, c, s):
    """x [b, h, s, d], c and s [b, s, d / 2]."""
    a, b = np.split(x, 2, -1)
    c, s = c[:, None], s[:, None]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def multi(x, ids, cos, sin, stream):
    heads = x.reshape(B, S, H, D).transpose(0, 2, 1, 3)
    c, s = (np.stack([t[ids[j]][..., i] for i, j in enumerate(stream)], -1) for t in (cos, sin))
    return [rotate(heads, c, s).transpose(0, 2, 1, 3).reshape(B, S, H * D).astype(np.float32)]


op = "MRotaryEmbedding"
ids3 = r.i64(3, B, S, hi=16)
add("chunks", op, [r.f(B, S, H * D), ids3, cos, sin], mrope_section=[4, 2, 2], mrope_layout=0, num_heads=H,
    expect=lambda *a: multi(*a, [0, 0, 0, 0, 1, 1, 2, 2]))
add("turns", op, [r.f(B, S, H * D), ids3, cos, sin], mrope_section=[4, 2, 2], mrope_layout=1, num_heads=H,
    expect=lambda *a: multi(*a, [0, 1, 2, 0, 1, 2, 0, 0]))
add("one", op, [r.f(B, S, H * D), ids3, cos, sin], mrope_section=[8, 0, 0], num_heads=H,
    expect=lambda *a: multi(*a, [0] * 8))

f16 = [r.f(B, S, D, lo=0, hi=3)] + [r.f(B, H, S, D).astype(np.float16) for _ in range(4)]
add(
    "f16", "GemmaRotaryEmbedding", f16, outputs=2, tolerance=(1e-2, 2e-3), kernel=False,
    expect=lambda e, q, qr, k, kr: [
        x * np.cos(e)[:, None].astype(np.float16) + y * np.sin(e)[:, None].astype(np.float16)
        for x, y in ((q, qr), (k, kr))
    ])

# ---- GroupQueryAttention
op = "GroupQueryAttention"
I = np.int32


def gqa(name, new, past=0, room=None, lengths=None, packed=False, inputs=(), outputs=3, batch=B, cache=True,
        constant=(6, ), **attributes):
    """past: cached tokens of the longest sequence; room: rows of the cache, when there are more; lengths: of each
    sequence."""
    qkv = [r.f(batch, new, (H + 2 * G) * D), None, None
           ] if packed else [r.f(batch, new, H *
                                 D), r.f(batch, new, G *
                                         D), r.f(batch, new, G * D)]
    rows = room if room is not None else past
    caches = [r.f(batch, G, rows, D), r.f(batch, G, rows, D)] if cache and rows else [None, None]
    lengths = np.array(lengths if lengths else [past + new] * batch, I)
    feeds = qkv + caches + [lengths - 1, np.array(past + new, I)] + list(inputs)
    attributes = {"num_heads": H, "kv_num_heads": G, **attributes}
    add(name, op, feeds, outputs=outputs, constant=constant, **attributes)


rotary = tables(32, D // 2)
gqa("prompt", 5)
gqa("prompt_one", 1)
gqa("prompt_packed", 5, packed=True)
gqa("prompt_scale", 5, scale=0.5)
gqa("prompt_total_unknown", 5, constant=())
gqa("prompt_rotary", 5, inputs=rotary, do_rotary=1)
gqa("prompt_interleaved", 5, inputs=rotary, do_rotary=1, rotary_interleaved=1)
gqa("prompt_packed_rotary", 5, packed=True, inputs=rotary, do_rotary=1)
gqa("prompt_room", 5, room=9)
gqa("prompt_window", 9, local_window_size=3)
gqa("prompt_softcap", 5, softcap=0.8)
gqa("prompt_bias", 5, inputs=[None, None, None, r.f(B, H, 5, 5)])
gqa("prompt_bias_softcap", 5, inputs=[None, None, None, r.f(1, 1, 5, 5)], softcap=0.8)
gqa("prompt_smooth", 5, smooth_softmax=1)
gqa("prompt_sink", 5, inputs=[None, None, None, None, r.f(H)])
gqa("prompt_sink_window", 9, inputs=[None, None, None, None, r.f(H)], local_window_size=4)
gqa("prompt_positions", 5, batch=1, inputs=[*rotary, np.arange(5)[None] + 2], do_rotary=1)
gqa("prompt_both_ways", 5, causal=0)
gqa("prompt_scores", 5, outputs=4, qk_output=1, softcap=0.8, types={3: 1})
gqa("prompt_probabilities", 5, outputs=4, qk_output=2, types={3: 1})
gqa("step", 1, past=6)
gqa("step_ragged", 1, past=6, lengths=[7, 4])
gqa("step_packed", 1, past=6, packed=True, lengths=[7, 5])
gqa("step_rotary", 1, past=6, inputs=rotary, do_rotary=1, lengths=[7, 3])
gqa("step_packed_rotary", 1, past=6, packed=True, inputs=rotary, do_rotary=1, rotary_interleaved=1)
gqa("step_room", 1, past=6, room=11, lengths=[7, 3])
gqa("step_window", 1, past=8, local_window_size=3, lengths=[9, 5])
gqa("step_softcap", 1, past=6, softcap=2.5)
gqa("step_bias", 1, past=6, inputs=[None, None, None, r.f(B, 1, 1, 7)])
gqa("step_bias_room", 1, past=6, room=11, inputs=[None, None, None, r.f(1, H, 1, 7)])
gqa("step_sink", 1, past=6, inputs=[None, None, None, None, r.f(H)], lengths=[7, 4])
gqa("step_positions", 1, past=6, inputs=[*rotary, np.array([[6], [3]])], do_rotary=1, lengths=[7, 4])
gqa(
    "step_symbols", 1, past=6, inputs=rotary, do_rotary=1, lengths=[7, 3], shapes={
        "x0": ["b", "s", H * D], "x1": ["b", "s", G * D], "x2": ["b", "s", G * D], "x3": ["b", G, "p", D],
        "x4": ["b", G, "p", D], "x5": ["b"]
    })
gqa("step_scores", 1, past=6, outputs=4, qk_output=1, types={3: 1})
gqa("continued", 3, past=6, batch=1)
gqa("continued_rotary", 3, past=6, batch=1, inputs=rotary, do_rotary=1, local_window_size=4)
gqa("continued_room", 3, past=6, room=12, batch=1, packed=True, inputs=rotary, do_rotary=1)
gqa("heads", 5, num_heads=H, kv_num_heads=G, outputs=1)
wide = [r.f(B, S, 64), r.f(B, S, 32), r.f(B, S, 32), None, None, np.full(B, S - 1, I), np.array(S, I), *tables(32, 8)]
add("part_rotary", op, wide, outputs=3, constant=(6,), num_heads=2, kv_num_heads=1, do_rotary=1)


def normed(q, k, v, *rest):
    """A prompt with a norm of each head of queries and keys; two query heads, one key head."""
    def norm(x, w):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6) * w
    q, k = norm(q.reshape(B, S, 2, 32), rest[-2]), norm(k, rest[-1])
    x = np.where(np.tril(np.ones((S, S), bool)), np.einsum("bshd,btd->bhst", q, k) / np.sqrt(32), -np.inf)
    e = np.exp(x - x.max(-1, keepdims=True))
    return [np.einsum("bhst,btd->bshd", e / e.sum(-1, keepdims=True), v).reshape(B, S, 64).astype(np.float32)]


add("norms", op, wide[:7] + [None] * 7 + [r.f(32), r.f(32)], constant=(6, ), num_heads=2, kv_num_heads=1, kernel=False,
    expect=normed)

# ---- operators that ai.onnx has, too
op = "LinearAttention"
for rule in ("linear", "gated", "delta", "gated_delta"):
    gates = [r.f(B, S, G) if "gated" in rule else None, r.f(B, S, G, lo=0) if "delta" in rule else None]
    add(rule, op, [r.f(B, S, G * D), r.f(B, S, G * D),
                   r.f(B, S, G * D), r.f(B, G, D, D)] + gates, outputs=2, q_num_heads=G, kv_num_heads=G,
        update_rule=rule)
add("no_state", op, [r.f(B, S, H * D), r.f(B, S, G * D), r.f(B, S, G * D)], outputs=2, q_num_heads=H, kv_num_heads=G,
    update_rule="linear", scale=0.5)
op = "CausalConvWithState"
add("state", op, [r.f(B, 6, 7), r.f(6, 1, 4), r.f(6), r.f(B, 6, 3)], outputs=2)
add("silu", op, [r.f(B, 6, 7), r.f(6, 1, 4)], outputs=2, activation="silu")
