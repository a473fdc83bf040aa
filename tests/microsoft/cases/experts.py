# SPDX-License-Identifier: MIT OR Apache-2.0
"""Mixtures of experts, biases by relative position, attention over packed sequences."""
import numpy as np

from cases import Draw, add
from cases.attention import attend

r = Draw(8)

# ---- MoE
op = "MoE"
E, HIDDEN, INNER, TOKENS = 4, 6, 10, 7
x, scores = r.f(TOKENS, HIDDEN), r.f(TOKENS, E, lo=-2, hi=2)
fc1, fc2, fc3 = r.f(E, INNER, HIDDEN), r.f(E, HIDDEN, INNER), r.f(E, INNER, HIDDEN)
b1, b2, b3 = r.f(E, INNER), r.f(E, HIDDEN), r.f(E, INNER)
for kind in ("relu", "gelu", "silu", "identity"):
    add(kind, op, [x, scores, fc1, b1, fc2, b2], k=2, activation_type=kind)
    add(f"{kind}_normalized", op, [x, scores, fc1, b1, fc2, b2], k=2, activation_type=kind, normalize_routing_weights=1)
add("one", op, [x, scores, fc1, None, fc2], k=1)
add("all", op, [x, scores, fc1, b1, fc2, b2], k=4, normalize_routing_weights=1)
add("batch", op, [r.f(2, 3, HIDDEN), r.f(6, E), fc1, b1, fc2, b2], k=2, constant=(2, 3, 4, 5))
wide, bias = r.f(E, 2 * INNER, HIDDEN), r.f(E, 2 * INNER)
for fusion in (1,):
    add(f"swiglu_{fusion}", op, [x, scores, wide, bias, fc2, b2], k=2, activation_type="swiglu", swiglu_fusion=fusion,
        normalize_routing_weights=1)
    add(f"swiglu_{fusion}_limit", op, [x, scores, wide, bias, fc2, b2], k=2, activation_type="swiglu",
        swiglu_fusion=fusion, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.7)


def experts(fusion=0, limit=np.inf, alpha=1, beta=0, normalized=False, silu=False):
    """The same with two of four experts in numpy, for forms that the CPU has no kernel for."""
    def f(x, scores, w1, b1, w2, b2, w3=None, b3=None):
        e = np.exp(scores - scores.max(1, keepdims=True))
        p, y = e / e.sum(1, keepdims=True), np.zeros_like(x)
        for t in range(len(x)):
            best = np.argsort(-p[t])[:2]
            for i in best:
                h = w1[i] @ x[t] + b1[i]
                if silu:
                    h = h / (1 + np.exp(-h)) * (w3[i] @ x[t] + b3[i])
                else:
                    g, l = (h, w3[i] @ x[t] + b3[i]) if fusion == 0 else np.split(h, 2)
                    g, l = np.minimum(g, limit), np.clip(l, -limit, limit)
                    h = g / (1 + np.exp(-alpha * g)) * (l + beta)
                y[t] += p[t, i] / (p[t, best].sum() if normalized else 1) * (w2[i] @ h + b2[i])
        return [y]
    return f


add("swiglu_2", op, [x, scores, wide, bias, fc2, b2], k=2, activation_type="swiglu", swiglu_fusion=2,
    normalize_routing_weights=1, kernel=False, expect=experts(2, normalized=True))
add("swiglu_2_limit", op, [x, scores, wide, bias, fc2, b2], k=2, activation_type="swiglu", swiglu_fusion=2,
    activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.7, kernel=False, expect=experts(2, 0.7, 1.702, 1))
add("swiglu_fc3", op, [x, scores, fc1, b1, fc2, b2, fc3, b3], k=2, activation_type="swiglu", swiglu_fusion=0,
    kernel=False, expect=experts())
add("silu_fc3", op, [x, scores, fc1, b1, fc2, b2, fc3, b3], k=2, activation_type="silu", kernel=False,
    expect=experts(silu=True))

# ---- QMoE
op = "QMoE"
HIDDEN, INNER = 32, 32
x, scores, b1, b2 = r.f(TOKENS, HIDDEN), r.f(TOKENS, E, lo=-2, hi=2), r.f(E, INNER), r.f(E, HIDDEN)


def by_blocks(x, scores, q1, s1, b1, q2, s2, *zeros):
    """Two of four experts, 8 bits in blocks of 16: there ONNX Runtime rounds its inputs to 8 bits, too."""
    z = [a for a in zeros if a is not None] or [np.uint8(128).reshape(1, 1, 1)] * 2
    w1, w2 = (((q.reshape(*q.shape[:2], 2, 16).astype(np.float32) - o[..., None]) * s[..., None]).reshape(q.shape)
              for q, s, o in ((q1, s1, z[0]), (q2, s2, z[1])))
    y = np.zeros_like(x)
    for t in range(len(x)):
        best = np.argsort(-scores[t])[:2]
        p = np.exp(scores[t][best]) / np.exp(scores[t][best]).sum()
        for weight, i in zip(p, best):
            h = w1[i] @ x[t]
            y[t] += weight * (w2[i] @ (h / (1 + np.exp(-h))))
    return [y]


for bits in (4, 8):
    w1, w2 = r.u8(E, INNER, HIDDEN * bits // 8), r.u8(E, HIDDEN, INNER * bits // 8)
    s1, s2, block1, block2 = (r.f(*shape, lo=0.003, hi=0.01)
                              for shape in ((E, INNER), (E, HIDDEN), (E, INNER, 2), (E, HIDDEN, 2)))
    for kind in ("silu", "identity"):
        add(f"{kind}_{bits}", op, [x, scores, w1, s1, b1, w2, s2, b2], k=2, activation_type=kind,
            expert_weight_bits=bits, normalize_routing_weights=1, constant=(2, 3, 4, 5, 6, 7))
    add(f"blocks_{bits}", op, [x, scores, w1, block1, None, w2, block2], k=2, activation_type="silu",
        expert_weight_bits=bits, normalize_routing_weights=1, block_size=16, constant=(2, 3, 5, 6), kernel=bits == 4,
        expect=by_blocks)
    z1, z2 = r.u8(E, INNER, 2 * bits // 8), r.u8(E, HIDDEN, 2 * bits // 8)
    add(f"zero_blocks_{bits}", op, [x, scores, w1, block1, None, w2, block2] + [None] * 4 + [z1, z2], k=2,
        activation_type="silu", expert_weight_bits=bits, normalize_routing_weights=1, block_size=16,
        constant=(2, 3, 5, 6, 11, 12), kernel=bits == 4, expect=by_blocks)
    z1, z2 = r.u8(E, INNER * bits // 8), r.u8(E, HIDDEN * bits // 8)
    add(f"zero_{bits}", op, [x, scores, w1, s1, b1, w2, s2, b2] + [None] * 3 + [z1, z2], k=2, activation_type="silu",
        expert_weight_bits=bits, normalize_routing_weights=1, constant=(2, 3, 4, 5, 6, 7, 11, 12))
    w3, s3 = r.u8(E, 2 * INNER, HIDDEN * bits // 8), r.f(E, 2 * INNER, lo=0.003, hi=0.01)
    add(f"swiglu_{bits}", op, [x, scores, w3, s3, r.f(E, 2 * INNER), w2, s2, b2], k=2, activation_type="swiglu",
        swiglu_fusion=1, expert_weight_bits=bits, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0,
        normalize_routing_weights=1, constant=(2, 3, 4, 5, 6, 7))
    add(f"mixing_{bits}", op, [x, scores, w1, s1, b1, w2, s2, b2] + [None] * 6 + [r.f(TOKENS, E, lo=0)], k=2,
        activation_type="silu", expert_weight_bits=bits, constant=(2, 3, 4, 5, 6, 7))


# ---- biases by relative position
def buckets(queries, keys, count, most, both):
    d = np.arange(keys)[None] - np.arange(queries)[:, None]
    base = np.zeros_like(d)
    if both:
        count //= 2
        base, d = (d > 0) * count, np.abs(d)
    else:
        d = -np.minimum(d, 0)
    exact = count // 2
    far = exact + (np.log(np.maximum(d, 1).astype(np.float32) / np.float32(exact)) / np.float32(np.log(most / exact)) *
                   (count - exact)).astype(int)
    return base + np.where(d < exact, d, np.minimum(far, count - 1))


for both in (0, 1):
    for queries, keys in ((9, 9), (40, 40), (1, 30)):
        table = r.f(16, 3)
        add(f"{both}_{queries}_{keys}", "RelativePositionBias",
            [table, np.array([queries]), np.array([keys])], constant=(1, 2), max_distance=20, is_bidirectional=both,
            expect=lambda t, q, k, b=both: [t[buckets(q[0], k[0], 16, 20, b)].transpose(2, 0, 1)[None]])


def gated(q, bias, position, weight, offset, a):
    heads = position.shape[1]
    v = (q + bias).reshape(*q.shape[:2], heads, -1).transpose(0, 2, 1, 3)
    u = (v @ weight + offset).reshape(*v.shape[:3], 2, -1).sum(-1)
    u, s = np.split(1 / (1 + np.exp(-u)), 2, -1)
    return [((u * (s * a - 1) + 2) * position).astype(np.float32)]


add("plain", "GatedRelativePositionBias",
    [r.f(2, 5, 12), r.f(12), r.f(1, 3, 5, 5),
     r.f(4, 8), r.f(8), r.f(1, 3, 1, 1)], num_heads=3, expect=gated)

# ---- PackedAttention
B, S, H, D, IN = 3, 4, 2, 4, 5
lengths = np.array([1, 2, 4])


def packed(x, w, b, offsets, begins, bias=None):
    p, y = x @ w + b, np.zeros((len(x), H * D), np.float32)
    for i in range(B):
        q, k, v = (p[begins[i]:begins[i + 1], j * H * D:][:, :H * D].reshape(1, -1, H, D).transpose(0, 2, 1, 3)
                   for j in range(3))
        n = q.shape[2]
        y[begins[i]:begins[i + 1]] = attend(q, k, v, 0 if bias is None else bias[i % len(bias)][None, :, :n, :n])[0]
    return [y]


real = [i * S + j for i in range(B) for j in range(lengths[i])]
offsets = np.array(real + [i for i in range(B * S) if i not in real], np.int32).reshape(B, S)
begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
feeds = [r.f(lengths.sum(), IN), r.f(IN, 3 * H * D), r.f(3 * H * D), offsets, begins]
add("plain", "PackedAttention", feeds, num_heads=H, expect=packed)
add("bias", "PackedAttention", feeds + [r.f(B, H, S, S)], num_heads=H, expect=packed)
