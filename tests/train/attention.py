#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gradients of attention by queries, keys and values, whose scores a kernel computes again: beside the same graph
with a kernel per operation and in double precision, and in double precision beside central differences. Odd sizes,
causal and given masks, rows without a key, scales, heads that share keys, keys that lie transposed, dropout; with
short vectors, without any, and in parts: there the same bits. What has to keep its scores, as a bias on them that
learns, is told by the plan. And the loss over many classes beside it, whose memory is planned here.

usage: attention.py BURNCC
Needs the standard library only. Prints TAP."""
import math
import os
import pathlib
import platform
import random
import re
import struct
import subprocess
import sys
import tempfile

CODES = {"f32": ("<f4", "f", 4), "f64": ("<f8", "d", 8), "i64": ("<i8", "q", 8)}
TOLERANCE = 2e-5


def write_npy(path, dtype, shape, values):
    descr, code, _ = CODES[dtype]
    sizes = "".join(f"{n}, " for n in shape)
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                     + struct.pack(f"<{len(values)}{code}", *values))


def read_npy(path, dtype):
    data, (_, code, size) = path.read_bytes(), CODES[dtype]
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return list(struct.unpack(f"<{(len(data) - start) // size}{code}", data[start:]))


class Case:
    """Attention over [batch, heads, m or n, dk or dv] with what `how` asks for."""

    def __init__(self, name, batch, heads, m, n, dk, dv, plan=True, **how):
        self.name, self.plan, self.how = name, plan, how
        self.sizes = batch, heads, m, n, dk, dv
        kept = heads // how.get("shared", 1)
        keys = [batch, kept, n, dk] if not how.get("turned") else [batch, kept, dk, n]
        if how.get("split"):
            self.shapes = {"q": [batch, m, heads * dk], "k": [batch, n, heads * dk], "v": [batch, n, heads * dv]}
        elif how.get("flat"):
            self.shapes = {"q": [m, dk], "k": [n, dk], "v": [n, dv]}
        else:
            self.shapes = {"q": [batch, heads, m, dk], "k": keys, "v": [batch, kept, n, dv]}
        if how.get("bias"):
            self.shapes["b"] = [heads, m, n]
        draw = random.Random(name)
        self.given = {x: [draw.gauss(0, 1) for _ in range(math.prod(s))] for x, s in self.shapes.items()}
        out = self.shapes["q"][:-1] + [heads * dv if how.get("split") else dv]
        self.constant = {"d": (out, [draw.gauss(0, 1) for _ in range(math.prod(out))])}
        if how.get("mask"):
            seen = [float(draw.random() < 0.7) for _ in range(batch * n)]
            if how.get("empty"):
                seen[:n] = [0.0] * n
            self.constant["mask"] = ([batch, 1, 1, n], seen)
        if how.get("dropout"):
            self.constant["step"] = ([], [3])

    def graph(self, t, gradients):
        """As text: the loss, or the gradients by all that is given."""
        batch, heads, m, n, dk, dv = self.sizes
        how, lines, number = self.how, [], [100]

        def add(type_, text):
            number[0] += 1
            lines.append(f"  %{number[0]}: {type_} = {text}")
            return f"%{number[0]}"

        def put(shape, text, of=t):
            return add(f"{of}[{','.join(map(str, shape))}]", text)

        inputs = {x: f"%{i}" for i, x in enumerate([*self.given, *self.constant])}
        ends = [f"{inputs[x]} {x}: {t}{s}" for x, s in self.shapes.items()]
        ends += [f"{inputs[x]} {x}: {'i64' if x == 'step' else t}{s[0]}" for x, s in self.constant.items()]
        q, k, v = inputs["q"], inputs["k"], inputs["v"]
        rows, kept = [batch, heads, m], heads // how.get("shared", 1)
        if how.get("flat"):
            rows, kept = [m], None
        if how.get("split"):
            q = put([batch, m, heads, dk], f"Reshape({q}) {{shape=[{batch},{m},{heads},{dk}]}}")
            k = put([batch, n, heads, dk], f"Reshape({k}) {{shape=[{batch},{n},{heads},{dk}]}}")
            v = put([batch, n, heads, dv], f"Reshape({v}) {{shape=[{batch},{n},{heads},{dv}]}}")
            q = put([batch, heads, m, dk], f"Transpose({q}) {{perm=[0,2,1,3]}}")
            k = put([batch, heads, dk, n], f"Transpose({k}) {{perm=[0,2,3,1]}}")
            v = put([batch, heads, n, dv], f"Transpose({v}) {{perm=[0,2,1,3]}}")
        elif how.get("flat"):
            k = put([dk, n], f"Transpose({k}) {{perm=[1,0]}}")
        elif not how.get("turned"):
            k = put([batch, kept, dk, n], f"Transpose({k}) {{perm=[0,1,3,2]}}")
        if "scale" in how:
            q = put([*rows, dk], f"Mul({q}, %90)")
        seen = rows
        if kept and kept != heads:
            seen = [batch, kept, heads // kept * m]
            q = put([*seen, dk], f"Reshape({q}) {{shape=[{','.join(map(str, [*seen, dk]))}]}}")
        s = put([*seen, n], f"MatMul({q}, {k})")
        full = [*rows, n]
        if seen != rows:
            s = put(full, f"Reshape({s}) {{shape=[{','.join(map(str, full))}]}}")
        if how.get("divided"):
            s = put(full, f"Div({s}, %91)")
        if how.get("bias"):
            s = put(full, f"Add({s}, {inputs['b']})")
        if how.get("causal"):
            at = [put([m, n], f"Iota() {{shape=[{m},{n}], axis={axis}, dtype=i64}}", "i64") for axis in (0, 1)]
            allowed = put([m, n], f"LessOrEqual({at[1]}, {at[0]})", "bool")
            s = put(full, f"Where({allowed}, {s}, %92)")
        if how.get("mask"):
            allowed = put([batch, 1, 1, n], f"Greater({inputs['mask']}, %93)", "bool")
            s = put(full, f"Where({allowed}, {s}, {'%94' if how.get('finite') else '%92'})")
        p = put(full, f"Softmax({s}) {{axis={len(full) - 1}{', empty=1' if how.get('empty') else ''}}}")
        if how.get("dropout"):
            p = put(full, f"Dropout({p}, {inputs['step']}) {{ratio={how['dropout']}, seed=7}}")
        if seen != rows:
            p = put([*seen, n], f"Reshape({p}) {{shape=[{','.join(map(str, [*seen, n]))}]}}")
        y = put([*seen, dv], f"MatMul({p}, {v})")
        if seen != rows:
            y = put([*rows, dv], f"Reshape({y}) {{shape=[{','.join(map(str, [*rows, dv]))}]}}")
        if how.get("split"):
            y = put([batch, m, heads, dv], f"Transpose({y}) {{perm=[0,2,1,3]}}")
            y = put([batch, m, heads * dv], f"Reshape({y}) {{shape=[{batch},{m},{heads * dv}]}}")
        weighted = put(self.constant["d"][0], f"Mul({y}, {inputs['d']})")
        loss = put([], f"ReduceSum({weighted}) {{keepdims=0}}")
        by = list(self.given)
        if gradients:
            names = [f"%{200 + i}: {t}{self.shapes[x]}" for i, x in enumerate(by)]
            lines.append(f"  {', '.join(names)} = Gradient({loss}, {', '.join(inputs[x] for x in by)})")
        constants = [f"  %{90 + i} = const {t}[] {{{c}}}" for i, c in enumerate(
            [how.get("scale", 1), 4, "-inf", 0.5, -1e30])]
        ends_out = ", ".join(f"%{200 + i} g{x}" for i, x in enumerate(by)) if gradients else f"{loss} loss"
        return "\n".join([f"graph m({', '.join(ends)}) {{", *constants, *lines, f"  return {ends_out}", "}"]) + "\n"

    def run(self, burncc, folder, t, options=(), given=None, flags="-O1"):
        """The gradients, or with `given` the loss at other values."""
        model = folder / "m.txt"
        model.write_text(self.graph(t, given is None))
        command = [burncc, "run", "-q", model, *options, "-o", folder]
        for x, shape in self.shapes.items():
            write_npy(folder / f"{x}.npy", t, shape, (given or self.given)[x])
            command += ["--input", f"{x}={folder}/{x}.npy"]
        for x, (shape, values) in self.constant.items():
            write_npy(folder / f"{x}.npy", "i64" if x == "step" else t, shape, values)
            command += ["--input", f"{x}={folder}/{x}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "BURNCC_CFLAGS": flags})
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"exit {done.returncode}")
        names = [f"g{x}" for x in self.given] if given is None else ["loss"]
        return {x: read_npy(folder / f"{x}.npy", t) for x in names}

    def has_kernel(self, burncc, folder):
        model = folder / "m.txt"
        model.write_text(self.graph("f32", True))
        done = subprocess.run([burncc, model, "--dump", "plan"], capture_output=True, text=True, check=True)
        return "attention_grad k" in done.stdout


def distance(found, true):
    """Of all that is wrong the largest part of the largest element; NaN is no distance to anything."""
    worst = 0
    for name, values in true.items():
        largest = max(map(abs, values)) or 1
        for x, y in zip(found[name], values, strict=True):
            worst = max(worst, abs(x - y) / largest if not math.isnan(x) else math.inf)
    return worst


def slope(case, burncc, folder, true):
    """How far gradients in double precision are from central differences along a random direction each."""
    draw, worst = random.Random(1), 0
    for x in case.given:
        direction = [draw.gauss(0, 1) for _ in case.given[x]]
        step, losses = 1e-5, []
        for sign in (1, -1):
            there = dict(case.given)
            there[x] = [a + sign * step * b for a, b in zip(case.given[x], direction)]
            losses.append(case.run(burncc, folder, "f64", given=there)["loss"][0])
        along = sum(a * b for a, b in zip(true[f"g{x}"], direction))
        norm = math.sqrt(sum(a * a for a in true[f"g{x}"]))
        worst = max(worst, abs((losses[0] - losses[1]) / (2 * step) - along) / max(norm, 1e-3))
    return worst


CASES = [
    Case("plain", 2, 3, 64, 64, 32, 32),
    Case("odd sizes", 4, 2, 67, 45, 20, 36, scale=0.25),
    Case("few queries, many keys", 8, 3, 13, 300, 16, 16),
    Case("heads split from rows", 2, 3, 50, 70, 32, 16, split=1, scale=0.5),
    Case("causal", 2, 2, 100, 100, 32, 32, causal=1, scale=0.5),
    Case("causal, more keys", 3, 2, 83, 130, 32, 32, causal=1, divided=1),
    Case("a mask", 3, 2, 40, 64, 32, 32, mask=1),
    Case("a mask of finite numbers", 4, 2, 60, 64, 32, 32, mask=1, finite=1, causal=1),
    Case("rows without a key", 4, 2, 60, 64, 32, 32, mask=1, empty=1),
    Case("heads share keys", 2, 6, 40, 64, 32, 32, shared=3, causal=1, scale=0.5),
    Case("one key for all heads", 1, 4, 64, 64, 32, 32, shared=4, mask=1),
    Case("keys transposed", 4, 2, 64, 48, 32, 32, turned=1),
    Case("two dimensions", 1, 1, 150, 140, 32, 24, flat=1, plan=False),
    Case("dropout", 4, 2, 64, 70, 32, 32, dropout=0.25, causal=1),
    Case("dropout, keys shared", 2, 4, 40, 64, 32, 32, dropout=0.25, shared=2),
    Case("a bias that learns", 2, 2, 64, 64, 32, 32, bias=1, plan=False),
    Case("too small to gain", 2, 2, 8, 8, 4, 4, plan=False),
]


def check(case, burncc, folder):
    if case.has_kernel(burncc, folder) != case.plan:
        return f"the plan has {'no' if case.plan else 'a'} kernel for it"
    found, true = case.run(burncc, folder, "f32"), case.run(burncc, folder, "f64")
    plain = case.run(burncc, folder, "f32", ["--no-fuse"])
    if distance(found, true) > TOLERANCE or distance(plain, true) > TOLERANCE:
        return f"off by {distance(found, true):.2g}, one operation at a time by {distance(plain, true):.2g}"
    if slope(case, burncc, folder, true) > 1e-6:
        return f"{slope(case, burncc, folder, true):.2g} from central differences"
    if not case.plan:
        return None
    for options in (["--threads", "2:0"], ["--threads", "4:0"]):
        if case.run(burncc, folder, "f32", options) != found:
            return f"other bits with {' '.join(options)}"
    narrow = ["-O1 -march=x86-64-v3"] if platform.machine() == "x86_64" else []
    for flags in [*narrow, "-O1 -DBURN_PORTABLE"]:
        other = case.run(burncc, folder, "f32", flags=flags)
        if distance(other, true) > TOLERANCE:
            return f"off by {distance(other, true):.2g} with {flags}"
    return None


def logits_once(burncc, folder):
    """The loss over many classes: logits, their logarithms of a softmax and their gradient lie in the same bytes."""
    model = folder / "wide.c"
    model.write_text("""#include <burncc/model.h>
MODEL(wide) { output("y", linear(input("x", F32, 128, 8), "out", 8192)); }
""")
    done = subprocess.run([burncc, "inspect", model, "--train"], capture_output=True, text=True, check=True)
    most = max(int(n) for n in re.findall(r"^memory +workspace .*?\((\d+) bytes;", done.stdout, re.M))
    logits = 4 * 128 * 8192
    return None if logits <= most < 1.5 * logits else f"{most} bytes where logits are {logits}"


def main():
    bad = 0
    for i, case in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong = check(case, sys.argv[1], pathlib.Path(folder))
            except RuntimeError as e:
                wrong = str(e).replace("\n", " ")
        bad += wrong is not None
        print(f"not ok {i} - {case.name}: {wrong}" if wrong else f"ok {i} - {case.name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong = logits_once(sys.argv[1], pathlib.Path(folder))
    bad += wrong is not None
    print(f"{'not ' if wrong else ''}ok {len(CASES) + 1} - logits are there once{': ' + wrong if wrong else ''}")
    print(f"1..{len(CASES) + 1}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
