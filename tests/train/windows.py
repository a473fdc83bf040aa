#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gradients of maxima and sums over windows against plain loops, to the last bit: equal elements, NaN and infinities,
padding, overlap, gaps and dilation, with the channels first and last, on one thread and in parts.

usage: windows.py BURNCC
Gradients that arrive are small integers, so that no sum is rounded. Needs the standard library only. Prints TAP."""
import itertools
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

# shape [n, c, ...], kernel, strides, dilations, pads
WINDOWS = [
    ([2, 6, 8, 10], [2, 2], [2, 2], [1, 1], [0, 0, 0, 0]),
    ([2, 16, 7, 5], [2, 2], [2, 2], [1, 1], [0, 0, 0, 0]),           # the last row and column are in no window
    ([3, 5, 9, 9], [3, 3], [2, 2], [1, 1], [1, 1, 1, 1]),
    ([2, 21, 6, 7], [3, 2], [1, 1], [1, 1], [1, 0, 1, 1]),
    ([2, 3, 9, 8], [2, 3], [1, 2], [3, 2], [2, 1, 0, 3]),
    ([1, 8, 9, 9], [2, 2], [4, 3], [1, 2], [1, 0, 0, 0]),            # apart, with gaps
    ([2, 37, 13], [3], [2], [1], [1, 2]),
    ([2, 4, 5, 6, 4], [2, 3, 2], [2, 1, 2], [1, 1, 1], [0, 1, 0, 1, 1, 0]),
    ([2, 9, 12, 11], [5, 6], [1, 1], [1, 1], [2, 3, 2, 2]),          # many taps
    ([1, 2, 3, 3], [3, 3], [1, 1], [1, 1], [2, 2, 2, 2]),
    ([2, 3, 7, 8], [2, 3], [2, 3], [1, 1], [1, 0, 0, 2]),            # side by side from within the padding
    ([1, 2, 4, 6, 5], [2, 2, 2], [2, 2, 2], [1, 1, 1], [0, 0, 0, 0, 0, 0]),
]
VALUES = [-1.5, -1.0, 0.0, 0.5, 0.5, 2.0, -math.inf, math.inf, math.nan]


def results(shape, kernel, strides, dilations, pads):
    rank = len(kernel)
    return [(n + pads[i] + pads[rank + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
            for i, n in enumerate(shape[2:])]


def places(shape, last):
    """The flat index of (n, c, place), as elements lie."""
    spatial = shape[2:]

    def flat(n, c, place):
        at = 0
        for i, p in enumerate(place):
            at = at * spatial[i] + p
        count = math.prod(spatial)
        return (n * count + at) * shape[1] + c if last else (n * shape[1] + c) * count + at
    return flat


def expected(window, x, dy, op, last):
    shape, kernel, strides, dilations, pads = window
    out = results(*window)
    of_x, of_y = places(shape, last), places(shape[:2] + out, last)
    dx = [0.0] * len(x)
    for n, c, place in itertools.product(range(shape[0]), range(shape[1]), itertools.product(*map(range, out))):
        best, every = None, []
        for tap in itertools.product(*map(range, kernel)):
            p = [o * s + k * d - lo for o, s, k, d, lo in zip(place, strides, tap, dilations, pads)]
            if not all(0 <= q < size for q, size in zip(p, shape[2:])):
                continue
            at = of_x(n, c, p)
            every.append(at)
            if best is None or x[at] > x[best] or (math.isnan(x[at]) and not math.isnan(x[best])):
                best = at
        for at in every if op == "WindowSum" else [best] if every else []:
            dx[at] += dy[of_y(n, c, place)]
    return dx


def turned(shape, last):
    return [shape[0], *shape[2:], shape[1]] if last else shape


def write_npy(path, shape, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                     + struct.pack(f"<{len(values)}f", *values))


def read_npy(path):
    data = path.read_bytes()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return list(struct.unpack(f"<{(len(data) - start) // 4}f", data[start:]))


def case(window, op, last, number, draw, folder):
    """Its inputs, lines of the model and what comes out."""
    shape, kernel, strides, dilations, pads = window
    sizes = turned(shape, last), turned(shape[:2] + results(*window), last)
    x = [draw.choice(VALUES[:6] if draw.random() < 0.9 else VALUES) for _ in range(math.prod(sizes[0]))]
    dy = [float(draw.randint(-8, 8)) for _ in range(math.prod(sizes[1]))]
    write_npy(folder / f"x{number}.npy", sizes[0], x), write_npy(folder / f"d{number}.npy", sizes[1], dy)
    a, b, y = 2 * number, 2 * number + 1, 100 + 10 * number
    attributes = f"{{kernel={kernel}, strides={strides}, dilations={dilations}, pads={pads}"
    if last:
        lines = [f"  %{y} = WindowMaxGrad(%{a}, %{b}) {attributes}, channels_last=1}}"]
    else:
        lines = [f"  %{y + 1} = {op}(%{a}) {attributes}}}", f"  %{y + 2} = Mul(%{y + 1}, %{b})",
                 f"  %{y + 3} = ReduceSum(%{y + 2}) {{keepdims=0}}", f"  %{y} = Gradient(%{y + 3}, %{a})"]
    inputs = [f"%{a} x{number}: f32{sizes[0]}", f"%{b} d{number}: f32{sizes[1]}"]
    return inputs, lines, f"%{y} y{number}", expected(window, x, dy, op, last)


def check(burncc, folder, op, last, options):
    """Which windows come out wrong, or None."""
    draw = random.Random(5)
    cases = [case(w, op, last, i, draw, folder) for i, w in enumerate(WINDOWS)]
    (folder / "m.txt").write_text("\n".join(
        [f"graph m({', '.join(i for c in cases for i in c[0])}) {{"] + [line for c in cases for line in c[1]]
        + [f"  return {', '.join(c[2] for c in cases)}", "}"]))
    command = [burncc, "run", "-q", folder / "m.txt", *options, "-o", folder]
    for number in range(len(cases)):
        command += ["--input", f"x{number}={folder}/x{number}.npy", "--input", f"d{number}={folder}/d{number}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip() or f"exit {done.returncode}"
    wrong = [str(n) for n, c in enumerate(cases) if read_npy(folder / f"y{n}.npy") != c[3]]
    return "wrong: " + ", ".join(wrong) if wrong else None


def main():
    runs = [("WindowMax", last, options) for options in ([], ["--threads", "3:0"], ["--target", "portable"])
            for last in (0, 1)] + [("WindowSum", 0, [])]
    bad = 0
    for i, (op, last, options) in enumerate(runs, 1):
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(sys.argv[1], pathlib.Path(folder), op, last, options)
        name = f"{op}, channels {'last' if last else 'first'} {' '.join(options)}".strip()
        bad += wrong is not None
        print(f"not ok {i} - {name}: {wrong}" if wrong else f"ok {i} - {name}")
    print(f"1..{len(runs)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
