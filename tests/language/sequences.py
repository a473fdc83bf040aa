# SPDX-License-Identifier: MIT OR Apache-2.0
"""Layers over sequences: attention, rotary positions, recurrent layers."""
import numpy as np
from case import Case
from elements import sigmoid
from moves import softmax


def attend(q, k, v, mask=None, scale=None):
    """mask: bool or added; heads of q may be a multiple of those of k and v."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return softmax(scores, -1) @ v


def scaled():
    c = Case("scaled")
    q, k, v = c.drawn("q", 2, 4, 5, 8), c.drawn("k", 2, 4, 7, 8), c.drawn("v", 2, 4, 7, 6)
    few, values = c.drawn("few", 2, 2, 5, 8), c.drawn("values", 2, 2, 5, 8)
    seen = c.random.random((5, 7)) > 0.3
    seen[:, 0] = True
    seen, plus = c.given("seen", seen), c.drawn("plus", 2, 1, 5, 7)
    causal = np.tril(np.ones((5, 5), bool))
    for text, want in (
            ("q, k, v", attend(q, k, v)), ("q, k, v, .scale = 0.2", attend(q, k, v, None, 0.2)),
            ("q, k, v, .mask = seen", attend(q, k, v, seen)), ("q, k, v, .mask = plus", attend(q, k, v, plus)),
            ("q, few, values", attend(q, few, values)),
            ("q, few, values, .causal = YES", attend(q, few, values, causal))):
        c.gives(f"scaled_dot_product_attention({text})", want)
    turn = np.arange(5)[:, None] * 100.0 ** (-np.arange(0, 8, 2) / 8)
    cosine, sine = np.cos(turn), np.sin(turn)
    a, b = q[..., :4], q[..., 4:]
    c.line("Tensor at = unsqueeze(arange(I64, 5), 0);")
    c.gives("rotary(q, at, 100)", np.concatenate((a * cosine - b * sine, b * cosine + a * sine), -1))
    a, b = q[..., ::2], q[..., 1::2]
    c.gives("rotary_interleaved(q, at, 100)", np.stack((a * cosine - b * sine, b * cosine + a * sine),
        -1).reshape(q.shape))
    return c


def heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).swapaxes(1, 2)


def multi_head(c, name, n, q, k, v, mask=None, bias=True):
    e = q.shape[2]
    w, out = c.parameter(f"{name}.in_proj_weight", 3 * e, e), c.parameter(f"{name}.out_proj.weight", e, e)
    b = c.parameter(f"{name}.in_proj_bias", 3 * e) if bias else np.zeros(3 * e)
    c0 = c.parameter(f"{name}.out_proj.bias", e) if bias else 0
    q, k, v = (heads(x @ w[i * e:(i + 1) * e].T + b[i * e:(i + 1) * e], n) for i, x in enumerate((q, k, v)))
    y = attend(q, k, v, mask).swapaxes(1, 2)
    return y.reshape(*y.shape[:2], e) @ out.T + c0


def attention():
    c = Case("attention")
    x, m, o = c.drawn("x", 2, 5, 12, t=1), c.drawn("m", 2, 3, 12), c.drawn("o", 2, 3, 12)
    causal = np.tril(np.ones((5, 5), bool))
    c.gives("split_heads(x, 3)", heads(x, 3))
    c.gives("join_heads(split_heads(x, 3))", x)
    c.gives('multi_head_attention(x, "a", 3)', multi_head(c, "a", 3, x, x, x))
    c.gives('multi_head_attention(x, "b", 2, .causal = YES, .bias = NO)', multi_head(c, "b", 2, x, x, x, causal,
        False))
    c.gives('multi_head_attention(x, "c", 4, .key = m, .value = o)', multi_head(c, "c", 4, x, m, o))
    c.gives('multi_head_attention(x, "d", 4, .key = m)', multi_head(c, "d", 4, x, m, m))
    return c


def step(kind, gates_x, gates_h, h, state):
    if kind == "rnn":
        return np.tanh(gates_x + gates_h), state
    if kind == "relu":
        return np.maximum(gates_x + gates_h, 0), state
    if kind == "gru":
        (r, z, n), (hr, hz, hn) = np.split(gates_x, 3, -1), np.split(gates_h, 3, -1)
        r, z = sigmoid(r + hr), sigmoid(z + hz)
        return (1 - z) * np.tanh(n + r * hn) + z * h, state
    i, f, g, o = np.split(gates_x + gates_h, 4, -1)
    state = sigmoid(f) * state + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(state), state


def recurrent(c, name, kind, x, hidden, layers=1, directions=1, bias=True, h0=None, c0=None):
    """x [time, batch, features] -> all outputs, last h, last c."""
    gates, last_h, last_c = {"lstm": 4, "gru": 3}.get(kind, 1) * hidden, [], []
    for layer in range(layers):
        outs = []
        for d in range(directions):
            end = f"_l{layer}{'_reverse' * d}"
            w, u = c.parameter(f"{name}.weight_ih{end}", gates, x.shape[2]), c.parameter(f"{name}.weight_hh{end}",
                gates, hidden)
            b, bh = (c.parameter(f"{name}.bias_{k}h{end}", gates) if bias else 0 for k in "ih")
            at = layer * directions + d
            h, state = (np.zeros((x.shape[1], hidden)) if s is None else s[at] for s in (h0, c0))
            ys = []
            for row in x[::-1] if d else x:
                h, state = step(kind, row @ w.T + b, h @ u.T + bh, h, state)
                ys.append(h)
            outs.append(np.stack(ys[::-1] if d else ys))
            last_h.append(h)
            last_c.append(state)
        x = np.concatenate(outs, -1)
    return x, np.stack(last_h), np.stack(last_c)


def cells():
    c = Case("cells")
    x, t = c.drawn("x", 5, 2, 3), c.drawn("t", 2, 6, 3)
    h0, c0 = c.drawn("h0", 4, 2, 4), c.drawn("c0", 4, 2, 4)
    c.line('Tensor h = NULL, cell = NULL, y = lstm(x, "a", 4, .layers = 2, .bidirectional = YES, '
           '.h0 = h0, .c0 = c0, .h = &h, .c = &cell);')
    for text, want in zip(("y", "h", "cell"), recurrent(c, "a", "lstm", x, 4, 2, 2, True, h0, c0)):
        c.gives(text, want)
    c.line('Tensor gh = NULL, gy = gru(t, "b", 4, .batch_first = YES, .bidirectional = YES, .layers = 2, .h = &gh);')
    y, h, _ = recurrent(c, "b", "gru", t.swapaxes(0, 1), 4, 2, 2)
    c.gives("gy", y.swapaxes(0, 1))
    c.gives("gh", h)
    for kind in ("lstm", "gru", "rnn"):
        c.gives(f'{kind}(x, "{kind}", 5)', recurrent(c, kind, kind, x, 5)[0])
        c.gives(f'{kind}(x, "{kind}0", 5, .bias = NO)', recurrent(c, kind + "0", kind, x, 5, bias=False)[0])
    return c


ALL = [scaled, attention, cells]
