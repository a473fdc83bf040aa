# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models of attention: written out and as operators, with masks, caches and few heads of keys.

As cases.py says: each function makes one Model."""
import math
from itertools import product

from onnx_wire import BOOL, FLOAT, INT64, node, tensor
from small_model import Model, build, numbers


def attention_written_out():
    """softmax(q k^T / sqrt(d) + mask) v over two heads, with the reshapes an exporter writes."""
    t, heads, d = 6, 2, 4
    x, w = numbers(71, 1, t, 8), [numbers(72 + i, 8, 8) for i in range(3)]
    q, k, v = ([[sum(x[0][i][c] * m[c][o] for c in range(8)) for o in range(8)] for i in range(t)] for m in w)
    out = build((1, t, 8), lambda *_: 0.0)
    for h, i in product(range(heads), range(t)):
        s = [sum(q[i][h * d + c] * k[j][h * d + c] for c in range(d)) / 2 if j <= i else -1e9 for j in range(t)]
        e = [math.exp(a - max(s)) for a in s]
        for c in range(d):
            out[0][i][h * d + c] = sum(e[j] / sum(e) * v[j][h * d + c] for j in range(t))
    nodes = []
    for n in "qkv":
        nodes += [node("MatMul", ["x", "w" + n], [n + "0"]), node("Reshape", [n + "0", "split"], [n + "1"]),
                  node("Transpose", [n + "1"], [n], perm=[0, 2, 3, 1] if n == "k" else [0, 2, 1, 3])]
    nodes += [
        node("MatMul", ["q", "k"], ["s0"]),
        node("Div", ["s0", "root"], ["s1"]),
        node("Where", ["mask", "s1", "low"], ["s2"]),
        node("Softmax", ["s2"], ["p"]),
        node("MatMul", ["p", "v"], ["o0"]),
        node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "join"], ["y"])
    ]
    constants = [tensor("w" + n, FLOAT, m) for n, m in zip("qkv", w)]
    constants += [
        tensor("split", INT64, [0, 0, heads, d]),
        tensor("join", INT64, [1, t, -1]),
        tensor("root", FLOAT, 2.0),
        tensor("low", FLOAT, -1e9),
        tensor("mask", BOOL, build((t, t), lambda i, j: j <= i))
    ]
    return Model(nodes, [("x", FLOAT, [1, t, 8])], [("y", FLOAT, [1, t, 8])], [([x], [out])], constants)


def attention_of(queries, keys, heads, key_heads, d, seen):
    """Heads that share keys, a mask of -inf, and rows that see nothing give 0, as PyTorch writes it. seen(i, j): may
    query i see key j?"""
    t, group = (queries, keys), heads // key_heads
    q, k, v = numbers(75, 1, queries, heads * d), numbers(76, 1, keys,
                                                          key_heads * d), numbers(77, 1, keys, key_heads * d)
    mask = build((queries, keys), lambda i, j: 0.0 if seen(i, j) else -math.inf)
    out = build((1, queries, heads * d), lambda *_: 0.0)
    for h, i in product(range(heads), range(queries)):
        at = h // group * d
        js = [j for j in range(keys) if seen(i, j)]
        s = [sum(q[0][i][h * d + c] * k[0][j][at + c] for c in range(d)) * 3 for j in js]
        e = [math.exp(a - max(s)) for a in s]
        for c in range(d):
            out[0][i][h * d + c] = sum(a * v[0][j][at + c] for a, j in zip(e, js)) / sum(e) if js else 0.0
    nodes = [node("Reshape", ["q", "heads"], ["q1"]), node("Transpose", ["q1"], ["q2"], perm=[0, 2, 1, 3])]
    for n in "kv":
        nodes += [node("Reshape", [n, "split"], [n + "1"]), node("Transpose", [n + "1"], [n + "2"], perm=[0, 2, 1, 3]),
                  node("Unsqueeze", [n + "2", "two"], [n + "3"]), node("Expand", [n + "3", "groups"], [n + "4"]),
                  node("Reshape", [n + "4", "merge"], [n + "5"])]
    nodes += [
        node("Transpose", ["k5"], ["k6"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q2", "k6"], ["s0"]),
        node("Mul", ["s0", "scale"], ["s1"]),
        node("Add", ["s1", "mask"], ["s2"]),
        node("Softmax", ["s2"], ["p0"]),
        node("IsNaN", ["p0"], ["none"]),
        node("Where", ["none", "zero", "p0"], ["p"]),
        node("MatMul", ["p", "v5"], ["o0"]),
        node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["o1", "join"], ["y"])
    ]
    constants = [
        tensor("heads", INT64, [0, 0, heads, d]),
        tensor("split", INT64, [0, 0, key_heads, d]),
        tensor("join", INT64, [0, 0, -1]),
        tensor("two", INT64, [2]),
        tensor("groups", INT64, [1, key_heads, group, keys, d]),
        tensor("merge", INT64, [1, heads, keys, d]),
        tensor("scale", FLOAT, 3.0),
        tensor("zero", FLOAT, 0.0)
    ]
    ins = [("q", FLOAT, [1, t[0], heads * d])] + [(n, FLOAT, [1, t[1], key_heads * d])
                                                  for n in "kv"] + [("mask", FLOAT, list(t))]
    return Model(nodes, ins, [("y", FLOAT, [1, t[0], heads * d])], [([q, k, v, mask], [out])], constants)


def attention_blocks():
    """More keys than one block holds; a query that sees only the last of them, one that sees none."""
    return attention_of(15, 600, 4, 2, 7, lambda i, j: j < 580 + i if i < 13 else j > 590 and i == 13)


def attention_decode():
    """One query against a cache."""
    return attention_of(1, 45, 6, 2, 20, lambda i, j: j != 3)


def attention_causal():
    """Masks that hide the keys behind a query, as exporters write them: chosen or added, -inf or the least float; keys
    behind those are not computed. One row of a finite mask hides all keys, which then all count the same."""
    n, d, least = 70, 8, -3.4028234663852886e38
    q, k, v = (numbers(seed, 2, n, d) for seed in (231, 232, 233))

    def attend(mask, turn):
        scores = [[[math.fsum(a * b for a, b in zip(x[turn:] + x[:turn], y)) for y in k[h]] for x in q[h]]
                  for h in range(2)]

        def row(h, i):
            line = [mask(i, j, s) for j, s in enumerate(scores[h][i])]
            e = [math.exp(s - max(line)) for s in line]
            return [math.fsum(p * v[h][j][c] for j, p in enumerate(e)) / math.fsum(e) for c in range(d)]
        return [[row(h, i) for i in range(n)] for h in range(2)]

    seen = build((n, n), lambda i, j: j <= i + 3)
    holed = build((n, n), lambda i, j: j <= i and i != 5)
    added = build((n, n), lambda i, j: 0.25 if j <= i else -math.inf)
    least_added = build((n, n), lambda i, j: 0.0 if j <= i else least)
    nodes, outputs = [node("Transpose", ["k"], ["t"], perm=[0, 2, 1])], []
    for turn, (name, op, inputs) in enumerate((
            ("a", "Where", ["seen", "s", "inf"]), ("b", "Where", ["seen", "s", "least"]),
            ("c", "Where", ["holed", "s", "least"]), ("d", "Add", ["s", "added"]), ("e", "Add", ["s", "least_added"]))):
        nodes += [node("Gather", ["q", f"turn{turn}"], ["q" + name], axis=2),
                  node("MatMul", ["q" + name, "t"], ["s" + name]),
                  node(op, ["s" + name if i == "s" else i for i in inputs], ["m" + name]),
                  node("Softmax", ["m" + name], ["p" + name], axis=-1), node("MatMul", ["p" + name, "v"], ["y" + name])]
        outputs.append(("y" + name, FLOAT, [2, n, d]))
    masks = [lambda i, j, s: s if seen[i][j] else -math.inf, lambda i, j, s: s if seen[i][j] else least,
             lambda i, j, s: s if holed[i][j] else least, lambda i, j, s: s + added[i][j],
             lambda i, j, s: s + least_added[i][j]]
    results = [attend(mask, turn) for turn, mask in enumerate(masks)]
    return Model(nodes, [(name, FLOAT, [2, n, d]) for name in "qkv"], outputs, [([q, k, v], results)],
                 [tensor("seen", BOOL, seen), tensor("holed", BOOL, holed), tensor("inf", FLOAT, -math.inf),
                  tensor("least", FLOAT, least), tensor("added", FLOAT, added),
                  tensor("least_added", FLOAT, least_added)] +
                 [tensor(f"turn{i}", INT64, [(i + j) % d for j in range(d)]) for i in range(len(masks))])


ALL = (attention_written_out, attention_blocks, attention_decode, attention_causal)
