#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every loss with every option: its value, and the gradient by central differences in double precision.

usage: losses.py BURNCC [--cc CC] [--only RE]
The models add a parameter to each input, so that the parameters' gradients are those of the predictions. The formulas
stand here once more, row by row. Needs the standard library only. Prints TAP."""
import argparse
import collections
import itertools
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import onnx_wire as wire        # noqa: E402
from tap import run_checks      # noqa: E402

BOUND = 1e-5
FLAGS = "-std=c99 -O1 -Wall -Wextra -Wconversion -Wshadow -Werror -pedantic".split()
# shapes, draw: of the model's outputs; targets: (how they are drawn, shape) as the program takes them; of: outputs and
# targets, flat -> the loss
Case = collections.namedtuple("Case", "name options shapes draw targets of")


def f32(v):
    return struct.unpack("f", struct.pack("f", v))[0]


# ---------------------------------------------------------------- formulas
def rows(flat, shape, axis):
    """Lists along an axis, in the order of the other indices."""
    ranges = [range(n) for n in shape]
    ranges[axis] = range(1)
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    for index in itertools.product(*ranges):
        at = sum(i * s for i, s in zip(index, strides))
        yield [flat[at + k * strides[axis]] for k in range(shape[axis])]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def log_softmax(row):
    top = max(row)
    total = top + math.log(sum(math.exp(v - top) for v in row))
    return [v - total for v in row]


def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def classes(shape, axis=-1, weight=None, ignored=None, smoothing=0, reduce="mean", logits=True):
    weight = weight or [1.0] * shape[axis]

    def loss(x, t):
        total = count = 0.0
        for row, c in zip(rows(x, shape, axis % len(shape)), t):
            if c == ignored:
                continue
            logs = log_softmax(row) if logits else row
            total -= (1 - smoothing) * weight[c] * logs[c]
            total -= smoothing / len(row) * sum(w * v for w, v in zip(weight, logs))
            count += weight[c]
        return total / (count if reduce == "mean" else shape[0] if reduce == "batchmean" else 1)
    return loss


def soft_classes(shape, axis, smoothing=0, weight=None):
    weight = weight or [1.0] * shape[axis]

    def loss(x, t):
        pairs = zip(rows(x, shape, axis), rows(t, shape, axis))
        return mean(-sum(w * ((1 - smoothing) * q + smoothing / len(p)) * v
                         for w, q, v in zip(weight, q_row, log_softmax(p))) for p, q_row in pairs)
    return loss


def multi_margin(shape, margin=1, p=1, weight=None):
    weight = weight or [1.0] * shape[-1]

    def loss(x, t):
        return mean(weight[c] / len(row) * sum(max(margin - row[c] + v, 0) ** p for i, v in enumerate(row) if i != c)
                    for row, c in zip(rows(x, shape, len(shape) - 1), t))
    return loss


def each(f, reduce=mean):
    """Of one output and targets, element by element."""
    return lambda x, t: reduce(f(a, b) for a, b in zip(x, t))


def gaussian(full, eps):
    def loss(x, v, t):
        v = [max(a, eps) for a in v]
        return mean(0.5 * (math.log(b) + (a - c) ** 2 / b) + (0.5 * math.log(2 * math.pi) if full else 0)
                    for a, b, c in zip(x, v, t))
    return loss


def cosine(width, margin):
    def loss(x, y, t):
        each_row = []
        for i, side in enumerate(t):
            a, b = x[i * width:][:width], y[i * width:][:width]
            dot = sum(u * v for u, v in zip(a, b))
            c = dot / math.sqrt((sum(u * u for u in a) + 1e-12) * (sum(v * v for v in b) + 1e-12))
            each_row.append(1 - c if side > 0 else max(c - margin, 0))
        return mean(each_row)
    return loss


def triplet(width, margin=1, p=2, eps=1e-6, swap=False, reduce=mean):
    def apart(a, b):
        return sum(abs(u - v + eps) ** p for u, v in zip(a, b)) ** (1 / p)

    def loss(x, near, far):
        each_row = []
        for i in range(0, len(x), width):
            a, b, c = (v[i:i + width] for v in (x, near, far))
            away = min(apart(a, c), apart(b, c)) if swap else apart(a, c)
            each_row.append(max(apart(a, b) - away + margin, 0))
        return reduce(each_row)
    return loss


def gram(shape):
    n, c, places = shape[0], shape[1], math.prod(shape[2:])

    def of(x):
        for i in range(n):
            planes = [x[(i * c + k) * places:][:places] for k in range(c)]
            for a, b in itertools.product(planes, planes):
                yield sum(u * v for u, v in zip(a, b)) / (c * places)
    return lambda x, t: mean((a - b) ** 2 for a, b in zip(of(x), of(t)))


def bce(x, t, weight=1):
    return (1 - t) * softplus(x) + weight * t * softplus(-x)


def poisson(log_input=True, full=False, eps=1e-8):
    def loss(x, t):
        stirling = t * math.log(t) - t + 0.5 * math.log(2 * math.pi * t) if full and t > 1 else 0
        return (math.exp(x) - t * x if log_input else x - t * math.log(x + eps)) + stirling
    return loss


def huber(d, delta):
    return 0.5 * d * d if abs(d) <= delta else delta * (abs(d) - 0.5 * delta)


def smooth_l1(d, beta):
    return 0.5 * d * d / beta if abs(d) < beta else abs(d) - 0.5 * beta


# ---------------------------------------------------------------- the cases
def chance(r):
    return r.uniform(0.05, 0.95)


def side(r):
    return r.choice((-1.0, 1.0))


def any_number(r):
    return r.uniform(-2, 2)


def positive(r):
    return r.uniform(0.1, 4)


def negative(r):
    return r.uniform(-4, -0.1)


def klass(n):
    return lambda r: r.randrange(n)


def or_else(n, ignored):
    """Classes, of which many are ignored and the first is not."""
    drawn = iter([1, ignored] * 1000)
    return lambda r: next(drawn) if r.random() < 0.5 else r.randrange(n)


def alignments(logs, steps, target):
    """CTC's alignments of the target with so many steps: lists of classes with blanks (0)."""
    for path in itertools.product(range(len(logs[0])), repeat=steps):
        if [k for k, _ in itertools.groupby(path) if k] == target:
            yield sum(logs[i][k] for i, k in enumerate(path))


def log_sum(values):
    values = list(values)
    return math.log(sum(map(math.exp, values))) if values else -math.inf


def ctc(shape, length, batch_first=False, logits=False, reduce=mean):
    batch, steps = shape[:2] if batch_first else shape[1::-1]

    def of(x, target, times, lengths):
        each = []
        for b in range(batch):
            at = [(b * steps + t if batch_first else t * batch + b) * shape[2] for t in range(steps)]
            logs = [x[i:i + shape[2]] for i in at]
            logs = [log_softmax(row) for row in logs] if logits else logs
            want = list(target[b * length:b * length + lengths[b]])
            loss = -log_sum(alignments(logs, times[b], want))
            each.append(loss / max(1, lengths[b]) if reduce is mean else loss)
        return reduce(each)
    return of


def rnnt(shape, logits=True, reduce=mean):
    batch, steps, states, n = shape

    def of(x, target, times, lengths):
        each = []
        for b in range(batch):
            def log(t, u, k):
                at = ((b * steps + t) * states + u) * n
                row = x[at:at + n]
                return (log_softmax(row) if logits else row)[k]
            t1, u1 = times[b], lengths[b]
            # a path: where among the steps the classes come
            paths = []
            for ups in itertools.combinations_with_replacement(range(t1), u1):
                s, u = 0, 0
                for t in range(t1):
                    while u < u1 and ups[u] == t:
                        s += log(t, u, target[b * (states - 1) + u])
                        u += 1
                    s += log(t, u, 0)
                paths.append(s)
            each.append(-log_sum(paths))
        return reduce(each)
    return of


def listed(*values):
    drawn = itertools.cycle(values)
    return lambda r: next(drawn)


FLAT, IMAGE, ROWS, WEIGHT = [4, 5], [2, 3, 4, 2], [6, 7], [0.5, 2.0, 1.25, 0.75, 3.0]
WEIGHTS = "weight=[0.5, 2, 1.25 0.75,3]"
PLACES = [2, 4, 2]
N = any_number


def case(name, loss, *rest):
    return Case(name, loss if isinstance(loss, list) else ["--loss", loss], *rest)


CASES = [
    case("cross_entropy", "cross_entropy", [FLAT], N, [(klass(5), [4])], classes(FLAT)),
    case("cross_entropy, sum", "cross_entropy(reduction=sum)", [FLAT], N, [(klass(5), [4])],
         classes(FLAT, reduce="sum")),
    case("cross_entropy, batchmean", "cross_entropy(reduction=batchmean)", [[2, 3, 5]], N, [(klass(5), [2, 3])],
         classes([2, 3, 5], reduce="batchmean")),
    case("cross_entropy, smoothed", "cross_entropy(label_smoothing=0.2)", [FLAT], N, [(klass(5), [4])],
         classes(FLAT, smoothing=0.2)),
    case("cross_entropy, weights", f"cross_entropy({WEIGHTS})", [FLAT], N, [(klass(5), [4])],
         classes(FLAT, weight=WEIGHT)),
    case("cross_entropy, weights in a file", "cross_entropy(weight=weights.txt)", [FLAT], N, [(klass(5), [4])],
         classes(FLAT, weight=WEIGHT)),
    case("cross_entropy, ignored", "cross_entropy(ignore_index=-100)", [ROWS], N, [(or_else(7, -100), [6])],
         classes(ROWS, ignored=-100)),
    case("cross_entropy, a class ignored", "cross_entropy(ignore_index=3)", [ROWS], N, [(or_else(7, 3), [6])],
         classes(ROWS, ignored=3)),
    case("cross_entropy, all of it", f"cross_entropy({WEIGHTS}, ignore_index=2, label_smoothing=0.1)", [[8, 5]], N,
         [(or_else(5, 2), [8])], classes([8, 5], weight=WEIGHT, ignored=2, smoothing=0.1)),
    case("cross_entropy, images", ["--loss", "cross_entropy", "--class-axis", "1"], [IMAGE], N, [(klass(3), PLACES)],
         classes(IMAGE, axis=1)),
    case("cross_entropy, images, all of it",
         "cross_entropy(class_axis=1, weight=[1,2,0.5], ignore_index=255, label_smoothing=0.3)", [IMAGE], N,
         [(or_else(3, 255), PLACES)], classes(IMAGE, axis=1, weight=[1, 2, 0.5], ignored=255, smoothing=0.3)),
    case("cross_entropy, last axis", ["--loss", "cross_entropy", "--class-axis", "-1"], [IMAGE], N,
         [(klass(2), [2, 3, 4])], classes(IMAGE)),
    case("nll", f"nll({WEIGHTS})", [FLAT], negative, [(klass(5), [4])], classes(FLAT, weight=WEIGHT, logits=False)),
    case("soft_cross_entropy", f"soft_cross_entropy(label_smoothing=0.1,{WEIGHTS})", [FLAT], N, [(chance, FLAT)],
         soft_classes(FLAT, 1, 0.1, WEIGHT)),
    case("soft_cross_entropy, images", ["--loss", "soft_cross_entropy", "--class-axis", "1"], [IMAGE], N,
         [(chance, IMAGE)], soft_classes(IMAGE, 1)),
    case("multi_margin", "multi_margin", [FLAT], N, [(klass(5), [4])], multi_margin(FLAT)),
    case("multi_margin, all of it", f"multi_margin(p=2, margin=0.5, {WEIGHTS})", [FLAT], N, [(klass(5), [4])],
         multi_margin(FLAT, 0.5, 2, WEIGHT)),
    case("mse", "mse", [FLAT], N, [(N, FLAT)], each(lambda x, t: (x - t) ** 2)),
    case("mse, sum", "mse(reduction=sum)", [FLAT], N, [(N, FLAT)], each(lambda x, t: (x - t) ** 2, sum)),
    case("l1", "l1", [FLAT], N, [(N, FLAT)], each(lambda x, t: abs(x - t))),
    case("lp", "lp(p=3)", [FLAT], N, [(N, FLAT)], each(lambda x, t: abs(x - t) ** 3)),
    case("lp, no integer", "lp(p=2.3)", [FLAT], N, [(N, FLAT)], each(lambda x, t: abs(x - t) ** 2.3)),
    case("huber", "huber", [FLAT], N, [(N, FLAT)], each(lambda x, t: huber(x - t, 1))),
    case("huber, delta", "huber(delta=0.3)", [FLAT], N, [(N, FLAT)], each(lambda x, t: huber(x - t, 0.3))),
    case("smooth_l1", "smooth_l1", [FLAT], N, [(N, FLAT)], each(lambda x, t: smooth_l1(x - t, 1))),
    case("smooth_l1, beta", "smooth_l1(beta=0.4)", [FLAT], N, [(N, FLAT)], each(lambda x, t: smooth_l1(x - t, 0.4))),
    case("binary_cross_entropy", "binary_cross_entropy", [FLAT], N, [(chance, FLAT)], each(bce)),
    case("binary_cross_entropy, weight", "binary_cross_entropy(pos_weight=3)", [FLAT], N, [(chance, FLAT)],
         each(lambda x, t: bce(x, t, 3))),
    case("binary_cross_entropy, weights", "binary_cross_entropy(pos_weight=[0.5,2,1.25,0.75,3])", [FLAT], N,
         [(chance, FLAT)], lambda x, t: mean(bce(a, b, WEIGHT[i % 5]) for i, (a, b) in enumerate(zip(x, t)))),
    case("binary_cross_entropy, probabilities", "binary_cross_entropy(logits=0)", [FLAT], chance, [(chance, FLAT)],
         each(lambda x, t: -t * math.log(x) - (1 - t) * math.log(1 - x))),
    case("kl_div", "kl_div(reduction=batchmean)", [FLAT], negative, [(chance, FLAT)],
         lambda x, t: sum(b * (math.log(b) - a) for a, b in zip(x, t)) / 4),
    case("kl_div, logarithms", "kl_div(log_target=1)", [FLAT], negative, [(negative, FLAT)],
         each(lambda x, t: math.exp(t) * (t - x))),
    case("poisson_nll", "poisson_nll", [FLAT], N, [(positive, FLAT)], each(poisson())),
    case("poisson_nll, full", "poisson_nll(full=1)", [FLAT], N, [(positive, FLAT)], each(poisson(full=True))),
    case("poisson_nll, of rates", "poisson_nll(log_input=0, eps=0.01)", [FLAT], positive, [(positive, FLAT)],
         each(poisson(False, False, 0.01))),
    case("gaussian_nll", "gaussian_nll", [FLAT, FLAT], positive, [(N, FLAT)], gaussian(False, 1e-6)),
    case("gaussian_nll, full", "gaussian_nll(full=1, eps=0.5)", [FLAT, FLAT], positive, [(N, FLAT)],
         gaussian(True, 0.5)),
    case("gaussian_nll, variances are known", "gaussian_nll", [FLAT], N, [(positive, FLAT), (N, FLAT)],
         gaussian(False, 1e-6)),
    case("soft_margin", "soft_margin", [FLAT], N, [(side, FLAT)], each(lambda x, t: softplus(-x * t))),
    case("hinge_embedding", "hinge_embedding(margin=0.7)", [FLAT], N, [(side, FLAT)],
         each(lambda x, t: x if t > 0 else max(0.7 - x, 0))),
    case("margin_ranking", "margin_ranking(margin=0.3)", [FLAT, FLAT], N, [(side, FLAT)],
         lambda x, y, t: mean(max(0.3 - s * (a - b), 0) for a, b, s in zip(x, y, t))),
    case("cosine_embedding", "cosine_embedding(margin=0.2)", [ROWS, ROWS], N, [(side, [6])], cosine(7, 0.2)),
    case("triplet_margin", "triplet_margin", [ROWS] * 3, N, [], triplet(7)),
    case("triplet_margin, all of it", "triplet_margin(p=3, margin=2, swap=1, reduction=sum)", [ROWS] * 3, N, [],
         triplet(7, 2, 3, 1e-6, True, sum)),
    case("triplet_margin, of what is given", "triplet_margin", [ROWS], N, [(N, ROWS), (N, ROWS)], triplet(7)),
    case("gram_matrix", "gram_matrix", [IMAGE], N, [(N, IMAGE)], gram(IMAGE)),
    case("ctc", "ctc(length=2)", [[4, 3, 4]], negative,
         [(listed(1, 2, 3, 3, 2, 0), [3, 2]), (listed(4, 3, 2), [3]), (listed(2, 2, 1), [3])], ctc([4, 3, 4], 2)),
    case("ctc, of logits, batch first", "ctc(length=2, logits=1, batch_first=1, reduction=sum)", [[2, 5, 3]], N,
         [(listed(1, 1, 2, 0), [2, 2]), (listed(5, 4), [2]), (listed(2, 0), [2])],
         ctc([2, 5, 3], 2, True, True, sum)),
    case("ctc, nothing is said of the length", "ctc(logits=1)", [[3, 2, 3]], N,
         [(listed(1, 2, 0, 2, 0, 0), [2, 3]), (listed(3, 3), [2]), (listed(2, 1), [2])],
         ctc([3, 2, 3], 3, logits=True)),
    case("rnnt", "rnnt", [[3, 4, 3, 3]], N,
         [(listed(1, 2, 2, 2, 1, 1), [3, 2]), (listed(4, 3, 1), [3]), (listed(2, 1, 2), [3])], rnnt([3, 4, 3, 3])),
    case("rnnt, of logarithms", "rnnt(logits=0, reduction=sum)", [[2, 3, 3, 4]], negative,
         [(listed(3, 2, 1, 1), [2, 2]), (listed(3, 2), [2]), (listed(2, 0), [2])],
         rnnt([2, 3, 3, 4], False, sum)),
    case("several outputs", ["--loss", "y0=cross_entropy*0.25", "--loss", "y1=mse(reduction=sum)*2"], [FLAT, ROWS], N,
         [(klass(5), [4]), (N, ROWS)],
         lambda x, y, t, u: 0.25 * classes(FLAT)(x, t) + 2 * sum((a - b) ** 2 for a, b in zip(y, u))),
    case("outputs out of order", "y1,y0=margin_ranking", [FLAT, FLAT], N, [(side, FLAT)],
         lambda x, y, t: mean(max(-s * (b - a), 0) for a, b, s in zip(x, y, t))),
    case("the model's own loss", ["--loss", "output:y1*0.5", "--loss", "y0=l1"], [FLAT, [1]], N, [(N, FLAT)],
         lambda x, y, t: 0.5 * y[0] + mean(abs(a - b) for a, b in zip(x, t))),
]
REFUSED = [
    ("cross_entropy(reduction=none)", "one loss per target is nothing to descend"),
    ("cross_entropy(reduction=most)", "no reduction 'most'"),
    ("cross_entropy(margin=1)", "no option is called 'margin'"),
    ("mse(weight=[1,2])", "no option is called 'weight'"),
    ("cross_entropy(weight=[1,2])", "not one for each class"),
    ("cross_entropy(ignore_index=x)", "wants an integer"),
    ("cross_entropy(label_smoothing=much)", "wants a number"),
    ("cross_entropy(label_smoothing=0.1", "cannot be read"),
    ("mse*2x", "cannot be read at '*2x'"),
    ("loss=mse", "no output 'loss'"),
    ("output:nothing", "no output 'nothing'"),
    ("output:y0", "expected a single number, got f32[4,5]"),
    ("y0,y0=mse", "takes fewer outputs"),
    ("cross_entropy(class_axis=2)", "has 2 axes"),
    ("ctc", "wants an output [time, batch, classes], \"y0\" is f32[4,5]"),
    ("rnnt", "wants an output [batch, time, length + 1, classes], \"y0\" is f32[4,5]"),
    ("ctc(weight=[1,2])", "no option is called 'weight'"),
]


# ---------------------------------------------------------------- running
def model(shapes, params):
    nodes = [wire.node("Add", [f"x{i}", f"p{i}"], [f"y{i}"]) for i in range(len(shapes))]
    return wire.model(wire.graph(
        nodes, [wire.value_info(f"x{i}", wire.FLOAT, s) for i, s in enumerate(shapes)],
        [wire.value_info(f"y{i}", wire.FLOAT, None) for i in range(len(shapes))],
        [wire.tensor(f"p{i}", wire.FLOAT, p) for i, p in enumerate(params)]))


def shaped(flat, shape):
    flat = iter(flat)

    def make(dims):
        return [make(dims[1:]) for _ in range(dims[0])] if dims else next(flat)
    return make(shape)


def c_array(name, values):
    whole = all(isinstance(v, int) for v in values)
    text = ", ".join(str(v) if whole else f"{v!r}f" for v in values)
    return f"static const {'int64_t' if whole else 'float'} {name}[] = {{{text}}};"


def program(inputs, targets, sizes, header):
    arrays = [c_array(f"x{i}", v) for i, v in enumerate(inputs)] + [c_array(f"t{i}", v) for i, v in enumerate(targets)]
    works = "m_gradients_workspace" in header
    given = ", ".join((["&ws"] if works else []) + [f"x{i}" for i in range(len(inputs))] + ["&params"]
                      + [f"t{i}" for i in range(len(targets))])
    prints = "\n".join(f'    for (int i = 0; i < {n}; i++) printf("%.9g\\n", (double)grads.p{k}[i]);'
                       for k, n in enumerate(sizes))
    return "\n".join(['#include "m.h"', "#include <stdio.h>", *arrays, f"""
int main(void) {{
    {"static m_gradients_workspace ws;" if works else ""}
    static m_params params, grads;
    float loss[1];
    m_params_init(&params);
    int code = m_gradients({given}, loss, &grads);
    if (code) return code < 0 ? -code : code;
    printf("%.9g\\n", (double)loss[0]);
{prints}
    return 0;
}}
"""])


def draws(c):
    """Inputs, parameters, targets, in f32."""
    r = random.Random(c.name)
    sizes = [math.prod(s) for s in c.shapes]
    outputs = [[f32(c.draw(r)) for _ in range(n)] for n in sizes]
    params = [[f32(r.uniform(-0.02, 0.02)) for _ in range(n)] for n in sizes]
    inputs = [[f32(y - p) for y, p in zip(*pair)] for pair in zip(outputs, params)]
    targets = [[d(r) for _ in range(math.prod(shape))] for d, shape in c.targets]
    return inputs, params, [[v if isinstance(v, int) else f32(v) for v in t] for t in targets]


def wanted(c, inputs, params, targets):
    """The loss, and its derivative by every prediction."""
    outputs = [[x + p for x, p in zip(*pair)] for pair in zip(inputs, params)]
    numbers, h = [c.of(*outputs, *targets)], 1e-5
    for flat in outputs:
        for i, v in enumerate(flat):
            sides = []
            for flat[i] in v + h, v - h:
                sides.append(c.of(*outputs, *targets))
            flat[i] = v
            numbers.append((sides[0] - sides[1]) / (2 * h))
    return numbers


def run(args, c, folder, options=()):
    inputs, params, targets = draws(c)
    (folder / "m.onnx").write_bytes(model(c.shapes, [shaped(p, s) for p, s in zip(params, c.shapes)]))
    (folder / "weights.txt").write_text("\n".join(map(str, WEIGHT)))
    subprocess.run([args.burncc, "-q", "m.onnx", "--train", *c.options, *options, "-o", "m.c"], check=True, cwd=folder,
                   capture_output=True, text=True)
    (folder / "main.c").write_text(program(inputs, targets, [len(x) for x in inputs], (folder / "m.h").read_text()))
    subprocess.run([*args.cc.split(), *FLAGS, "-I", folder, folder / "main.c", folder / "m.c", "-lm", "-o",
                    folder / "m"], check=True)
    out = subprocess.run([folder / "m"], check=True, capture_output=True, text=True).stdout
    got, want = [float(v) for v in out.split()], wanted(c, inputs, params, targets)
    tops = [abs(want[0]) or 1, max(map(abs, want[1:])) or 1]
    errors = [abs(got[0] - want[0]) / tops[0], max(abs(g - w) for g, w in zip(got[1:], want[1:])) / tops[1]]
    ok = len(got) == len(want) and max(errors) <= BOUND
    return ok, f"loss={errors[0]:.1e} gradients={errors[1]:.1e}"


def refused(args, folder, loss, reason):
    (folder / "m.onnx").write_bytes(model([FLAT], [shaped([0.0] * 20, FLAT)]))
    done = subprocess.run([args.burncc, "-q", folder / "m.onnx", "--train", "--loss", loss, "-o", folder / "m.c"],
                          capture_output=True, text=True)
    return done.returncode in (1, 2) and reason in done.stderr, f"exit {done.returncode}, {done.stderr.strip()}"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("--cc", default=os.environ.get("CC", "cc")), p.add_argument("--only")
    args = p.parse_args()
    args.burncc = os.path.abspath(args.burncc)
    checks = [(c.name, lambda folder, c=c: run(args, c, folder)) for c in CASES]
    checks += [(f"{c.name}, portable", lambda folder, c=c: run(args, c, folder, ["--target", "portable"]))
               for c in CASES[7:48:8]]
    checks += [(f"{loss} is refused", lambda folder, x=(loss, reason): refused(args, folder, *x))
               for loss, reason in REFUSED]
    checks = [c for c in checks if re.search(args.only or "", c[0])]
    return run_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
