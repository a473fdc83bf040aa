#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""NAME_update of optimizers with options and of those for matrices: parameters after five steps of given gradients,
against the formulas in double precision. (Rows with their usual options train the cases of owned.py.)

usage: optimizers.py BURNCC [--cc CC]
Needs the standard library only. Prints TAP."""
import argparse
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

STEPS, BOUND = 5, 1e-6
SHAPES = {"tall": [6, 3], "wide": [3, 7], "row": [7], "kernel": [2, 3, 1, 2]}
FLAGS = "-std=c99 -O1 -Wall -Wextra -Wconversion -Wshadow -Werror -pedantic".split()


def f32(v):
    return struct.unpack("f", struct.pack("f", v))[0]


# ---------------------------------------------------------------- steps of one number: p, g, its state, t
def adam(p, g, s, t, lr, b1, b2, eps, decay, decoupled=False, most=False, cautious=False):
    d = g if decoupled else g + decay * p
    s[0], s[1] = b1 * s[0] + (1 - b1) * d, b2 * s[1] + (1 - b2) * d * d
    s[2] = max(s[2], s[1]) if most else s[1]
    if decoupled and not (cautious and s[0] * p < 0):
        p *= 1 - lr * decay
    return p - lr / (1 - b1 ** t) * s[0] / (math.sqrt(s[2]) / math.sqrt(1 - b2 ** t) + eps)


def sgd(p, g, s, t, lr, decay):
    return p - lr * (g + decay * p)


def rmsprop(p, g, s, t, lr, alpha, eps, momentum, decay):
    g += decay * p
    s[0], s[1] = alpha * s[0] + (1 - alpha) * g * g, s[1] + (1 - alpha) * (g - s[1])
    s[2] = momentum * s[2] + g / (math.sqrt(s[0] - s[1] * s[1]) + eps)
    return p - lr * s[2]


def adagrad(p, g, s, t, lr, eps, decay):
    g += decay * p
    s[0] += g * g
    return p - lr * g / (math.sqrt(s[0]) + eps)


def by_element(step, *args, **options):
    def of_tensor(name, p, g, state, t):
        return [step(a, b, s, t, *args, **options) for a, b, s in zip(p, g, state)]
    return of_tensor


# ---------------------------------------------------------------- of matrices
def product(a, b):
    return [[sum(u * v for u, v in zip(row, column)) for column in zip(*b)] for row in a]


def orthogonal(flat, rows, columns):
    x = [flat[i * columns:][:columns] for i in range(rows)]
    x = [list(c) for c in zip(*x)] if rows > columns else x
    norm = max(math.sqrt(sum(v * v for v in flat)), 1e-7)
    x = [[v / norm for v in row] for row in x]
    for _ in range(5):
        a = product(x, [list(c) for c in zip(*x)])
        b = [[2.0315 * u - 4.775 * v for u, v in zip(*pair)] for pair in zip(product(a, a), a)]
        x = [[3.4445 * u + v for u, v in zip(*pair)] for pair in zip(x, product(b, x))]
    x = [list(c) for c in zip(*x)] if rows > columns else x
    return [v for row in x for v in row]


def muon(lr, momentum, decay, nesterov=True, match=False):
    def of_tensor(name, p, g, state, t):
        if len(SHAPES[name]) != 2:
            return by_element(adam, 0.02, 0.9, 0.99, 1e-8, 0.05, decoupled=True)(name, p, g, state, t)
        for s, v in zip(state, g):
            s[0] = momentum * s[0] + (1 - momentum) * v
        u = [momentum * s[0] + (1 - momentum) * v if nesterov else s[0] for s, v in zip(state, g)]
        rows, columns = SHAPES[name]
        size = 0.2 * math.sqrt(max(rows, columns)) if match else math.sqrt(max(1, rows / columns))
        return [a * (1 - lr * decay) - lr * size * o for a, o in zip(p, orthogonal(u, rows, columns))]
    return of_tensor


REST = {"adamw_learning_rate": 0.02, "adamw_beta1": 0.9, "adamw_beta2": 0.99, "adamw_epsilon": 1e-8,
        "adamw_weight_decay": 0.05}
ADAM = {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weight_decay": 0.3}
MUON = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.1}
CASES = [           # --optimizer, the arguments, what a step makes of a tensor
    ("sgd(weight_decay=0.1)", {"learning_rate": 0.05}, by_element(sgd, 0.05, 0.1)),
    ("rmsprop(weight_decay=0.1)", {"learning_rate": 0.01, "alpha": 0.9, "epsilon": 1e-8, "momentum": 0.5},
     by_element(rmsprop, 0.01, 0.9, 1e-8, 0.5, 0.1)),
    ("adagrad(weight_decay=0.1, epsilon=1e-10)", {"learning_rate": 0.05}, by_element(adagrad, 0.05, 1e-10, 0.1)),
    ("adam", ADAM, by_element(adam, 0.02, 0.9, 0.99, 1e-8, 0.3)),
    ("adam(beta1=0.8, epsilon=0.001)", ADAM, by_element(adam, 0.02, 0.8, 0.99, 0.001, 0.3)),
    ("adam(decoupled=1)", ADAM, by_element(adam, 0.02, 0.9, 0.99, 1e-8, 0.3, decoupled=True)),
    ("amsgrad(decoupled=1)", ADAM, by_element(adam, 0.02, 0.9, 0.99, 1e-8, 0.3, decoupled=True, most=True)),
    ("adamw(cautious=1)", ADAM, by_element(adam, 0.02, 0.9, 0.99, 1e-8, 0.3, decoupled=True, cautious=True)),
    ("muon", {**MUON, **REST}, muon(0.05, 0.9, 0.1)),
    ("muon(nesterov=0)", {**MUON, **REST}, muon(0.05, 0.9, 0.1, nesterov=False)),
    ("muon(match_rms=1, momentum=0.5, adamw_beta2=0.99)", {**MUON, **REST}, muon(0.05, 0.5, 0.1, match=True)),
]
REFUSED = {
    "adamm": "no optimizer is called 'adamm'",
    "adam(beta=1)": "it has the numbers learning_rate=0.001 beta1=0.9",
    "adam(beta1=x)": "it has the numbers",
    "adam(0.9)": "it has the numbers",
    "adam(step=2)": "it has the numbers",
    "adam(beta1=0.9": "cannot be read",
}


def model(params):
    """y = x and a bit of every parameter."""
    def shaped(flat, shape):
        flat = iter(flat)

        def make(dims):
            return [make(dims[1:]) for _ in range(dims[0])] if dims else next(flat)
        return make(shape)
    nodes, last = [], "x"
    for k in SHAPES:
        nodes += [wire.node("ReduceSum", [k], [f"{k}_sum"], keepdims=0),
                  wire.node("Add", [last, f"{k}_sum"], [f"{k}_y"])]
        last = f"{k}_y"
    return wire.model(wire.graph(
        nodes, [wire.value_info("x", wire.FLOAT, [2, 3])], [wire.value_info(last, wire.FLOAT, None)],
        [wire.tensor(k, wire.FLOAT, shaped(v, SHAPES[k])) for k, v in params.items()]))


def arguments(header, numbers):
    """The numbers in the order of the prototype."""
    names = re.search(r"int m_update\(([^)]*)\)", header).group(1)
    return "".join(f"{name}, " if name == "step" else f"{numbers[name]!r}f, "
                   for name in re.findall(r"float (\w+)[,)]", names))


def program(header, numbers, grads):
    lines = []
    for k, steps in grads.items():
        rows = ", ".join("{" + ", ".join(f"{v!r}f" for v in row) + "}" for row in steps)
        lines.append(f"static const float {k}[][{len(steps[0])}] = {{{rows}}};")
    copies = "".join(f"        memcpy(grads.{k}, {k}[i], sizeof grads.{k});\n" for k in SHAPES)
    prints = "".join(f'    for (size_t i = 0; i < sizeof params.{k} / 4; i++) printf("%.9g\\n", '
                     f'(double)params.{k}[i]);\n' for k in SHAPES)
    works = "m_update_workspace" in header
    work = "    static m_update_workspace ws;\n" if works else ""
    return "\n".join(['#include "m.h"', "#include <stdio.h>", "#include <string.h>", *lines, "int main(void)", "{",
                      f"""{work}    static m_params params, grads;
    static m_state state;
    m_params_init(&params);
    for (int i = 0; i < {STEPS}; i++) {{
        float step = (float)(i + 1);
        (void)step;
{copies}        int code = m_update({"&ws, " if works else ""}{arguments(header, numbers)}&params, &grads, &state);
        if (code) return code < 0 ? -code : code;
    }}
{prints}    return 0;
}}
"""])


def run(args, folder, options, numbers, step):
    r = random.Random(7)
    sizes = {k: math.prod(s) for k, s in SHAPES.items()}
    params = {k: [f32(r.uniform(-1, 1)) for _ in range(n)] for k, n in sizes.items()}
    grads = {k: [[f32(r.uniform(-1, 1)) for _ in range(n)] for _ in range(STEPS)] for k, n in sizes.items()}
    (folder / "m.onnx").write_bytes(model(params))
    subprocess.run([args.burncc, "-q", folder / "m.onnx", "--train", "--loss", "mse", "--optimizer", *options, "-o",
                    folder / "m.c"], check=True, capture_output=True, text=True)
    header = (folder / "m.h").read_text()
    stateless = "this optimizer keeps none" in header
    text = program(header, numbers, grads)
    if stateless:
        text = text.replace("    static m_state state;\n", "").replace(", &state)", ")")
    (folder / "main.c").write_text(text)
    subprocess.run([*args.cc.split(), *FLAGS, "-I", folder, folder / "main.c", folder / "m.c", "-lm", "-o",
                    folder / "m"], check=True)
    out = subprocess.run([folder / "m"], check=True, capture_output=True, text=True).stdout
    got, want = [float(v) for v in out.split()], []
    for k, p in params.items():
        state = [[0.0] * 3 for _ in p]
        for t in range(STEPS):
            p = step(k, p, grads[k][t], state, t + 1)
        want += p
    worst = max(abs(a - b) for a, b in zip(got, want, strict=True)) / max(map(abs, want))
    return worst <= BOUND, f"max_rel={worst:.1e}"


# What PyTorch 2.15 does in double precision: LBFGS(lr=1, history_size=3, line_search_fn="strong_wolfe"), three steps on
# Rosenbrock's function from -1.2 1 0.5 -0.3 2 0.1. Evaluations, loss before the step, first and last number after it.
LBFGS = [[23, 1968.2, -0.857024827293, 0.0132396016703], [48, 5.11591511724833, -0.984316283831, 0.75783946745],
         [59, 3.9754986187656, -0.986587801765, 0.807921526039]]


def lbfgs(args, folder, defines):
    runtime = HERE.parent.parent / "runtime"
    subprocess.run([*args.cc.split(), *FLAGS, *defines, "-I", folder, "-I", runtime, HERE / "lbfgs.c",
                    runtime / "lbfgs.c", *folder.glob("m.c"), "-lm", "-o", folder / "lbfgs"], check=True)
    out = subprocess.run([folder / "lbfgs"], check=True, capture_output=True, text=True).stdout
    return [[float(v) for v in line.split()] for line in out.splitlines()]


def lbfgs_in_double(args, folder):
    got = lbfgs(args, folder, ["-DBURN_LBFGS_REAL=double"])
    worst = max(abs(a - b) / max(abs(b), 1) for row, want in zip(got, LBFGS, strict=True) for a, b in zip(row, want))
    return worst <= 1e-8, f"max_rel={worst:.1e}"


def lbfgs_of_a_model(args, folder):
    """The parameters' sums are added to x: one number is fitted, whose best is the mean of target - x."""
    (folder / "m.onnx").write_bytes(model({k: [0.125] * math.prod(s) for k, s in SHAPES.items()}))
    subprocess.run([args.burncc, "-q", folder / "m.onnx", "--train", "--loss", "mse", "-o", folder / "m.c"], check=True)
    got = lbfgs(args, folder, ["-DMODEL"])
    x, target = [1, -2, 3, 0.5, 0, 2], [0, 1, -1, 2, 0.25, 1]
    apart = [b - a for a, b in zip(x, target)]
    best = sum((v - sum(apart) / 6) ** 2 for v in apart) / 6
    return abs(got[-1][1] - best) <= 1e-5 * best, f"loss {got[0][1]} -> {got[-1][1]}, best {best:.6g}"


def refused(args, folder, text, reason):
    (folder / "m.onnx").write_bytes(model({k: [0.0] * math.prod(s) for k, s in SHAPES.items()}))
    done = subprocess.run([args.burncc, "-q", folder / "m.onnx", "--train", "--loss", "mse", "--optimizer", text, "-o",
                           folder / "m.c"], capture_output=True, text=True)
    return done.returncode == 2 and reason in done.stderr, f"exit {done.returncode}, {done.stderr.strip()}"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    args = p.parse_args()
    checks = [(name, lambda folder, c=(name, *rest): run(args, folder, [c[0]], *c[1:])) for name, *rest in CASES]
    checks += [(f"{name}, portable", lambda folder, c=(name, *rest): run(args, folder, [c[0], "--target", "portable"],
                                                                         *c[1:])) for name, *rest in CASES[7:9]]
    checks += [("lbfgs, in double precision, as PyTorch", lambda folder: lbfgs_in_double(args, folder)),
               ("lbfgs of generated code", lambda folder: lbfgs_of_a_model(args, folder))]
    checks += [(f"{text} is refused", lambda folder, x=(text, why): refused(args, folder, *x))
               for text, why in REFUSED.items()]
    return run_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
