#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels that a GPU program shares out in ways of its own, beside the same graphs for the processor.

Each case is a graph as text and its inputs, run for both targets. Outputs have the same bits, or where the order of a
sum may differ are within the bound of the case. Skips where there is no Vulkan device."""
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

DTYPES = {"f32": ("<f4", "f"), "f64": ("<f8", "d"), "i64": ("<i8", "q"), "i32": ("<i4", "i"), "u8": ("|u1", "B"),
    "i8": ("|i1", "b"), "u32": ("<u4", "I"), "u64": ("<u8", "Q")}
TYPE_OF = {descr: code for descr, code in DTYPES.values()}
NAN, INF = float("nan"), float("inf")


def write_npy(path, dtype, shape, values):
    descr, code = DTYPES[dtype]
    head = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def read_npy(path):
    data = path.read_bytes()
    size, = struct.unpack_from("<H", data, 8)
    head = eval(data[10:10 + size].decode(), {"__builtins__": {}})
    code = TYPE_OF.get(head["descr"], "B")
    body = data[10 + size:]
    return head["shape"], struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body)


class Case:
    def __init__(self, name, graph, inputs, close=None, options=()):
        self.name, self.graph, self.inputs, self.close, self.options = name, graph, inputs, close, options


def floats(r, n, spread=1.0):
    return [struct.unpack("<f", struct.pack("<f", r.uniform(-spread, spread)))[0] for _ in range(n)]


def scatters(r):
    """Rows, elements along each axis, two coordinates at a time, every reduction; places that are outside, negative,
    and often the same."""
    graph = """graph g(%0 x: f32[40,24], %1 rows: i64[300,1], %2 u: f32[300,24], %3 e: i64[40,300], %4 v: f32[40,300], \
%5 f: i64[200,24], %6 w: f32[200,24], %7 pairs: i64[500,2], %8 p: f32[500], %9 n: i32[100], %10 at: i64[4000], \
%11 ones: i32[4000]) {
  %12 = ScatterND(%0, %1, %2) {reduction="add"}
  %13 = ScatterND(%0, %1, %2) {reduction="none"}
  %14 = ScatterElements(%0, %3, %4) {axis=1, reduction="add"}
  %15 = ScatterElements(%0, %5, %6) {axis=0, reduction="mul"}
  %16 = ScatterElements(%0, %5, %6) {axis=0, reduction="max"}
  %17 = ScatterND(%0, %7, %8) {reduction="add"}
  %18 = ScatterElements(%9, %10, %11) {axis=0, reduction="add"}
  return %12 a, %13 b, %14 c, %15 d, %16 e2, %17 f2, %18 h
}
"""
    def at(n, size):
        return [r.choice([r.randrange(-size - 2, size + 2), r.randrange(3)]) for _ in range(n)]
    pairs = [x for _ in range(500) for x in (at(1, 40)[0], at(1, 24)[0])]
    return Case("scatters", graph, {
        "x": ("f32", (40, 24), floats(r, 960)), "rows": ("i64", (300, 1), at(300, 40)),
        "u": ("f32", (300, 24), floats(r, 7200)), "e": ("i64", (40, 300), at(12000, 24)),
        "v": ("f32", (40, 300), floats(r, 12000)), "f": ("i64", (200, 24), at(4800, 40)),
        "w": ("f32", (200, 24), floats(r, 4800, 2.0)), "pairs": ("i64", (500, 2), pairs),
        "p": ("f32", (500,), floats(r, 500)), "n": ("i32", (100,), [r.randrange(9) for _ in range(100)]),
        "at": ("i64", (4000,), at(4000, 100)), "ones": ("i32", (4000,), [1] * 4000)})


ALL = [scatters]


def run(burncc, folder, case, target):
    to = folder / target
    command = [burncc, "run", str(folder / "g.txt"), "-q", "--target", target, "-o", str(to), *case.options]
    for name in case.inputs:
        command += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{target}: {done.stderr.strip()}")
    return {p.name: read_npy(p) for p in sorted(to.glob("*.npy"))}


def differs(x, y, close):
    if close is None:
        same = struct.pack(f"<{len(x)}d", *x) == struct.pack(f"<{len(y)}d", *y) if isinstance(x[0], float) else x == y
        return None if same else next(i for i in range(len(x)) if repr(x[i]) != repr(y[i]))
    scale = max([abs(v) for v in x if v == v and abs(v) != INF] + [1e-30])
    for i, (a, b) in enumerate(zip(x, y)):
        if not (a == b or (a != a and b != b) or abs(a - b) <= close * scale):
            return i
    return None


def check(burncc, case):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "g.txt").write_text(case.graph)
        for name, (dtype, shape, values) in case.inputs.items():
            write_npy(folder / f"{name}.npy", dtype, shape, values)
        c, gpu = run(burncc, folder, case, "generic"), run(burncc, folder, case, "vulkan")
    assert c and c.keys() == gpu.keys(), (sorted(c), sorted(gpu))
    for name, (shape, x) in c.items():
        assert gpu[name][0] == shape and len(x) > 0, (name, shape, gpu[name][0])
        i = differs(x, gpu[name][1], case.close)
        assert i is None, f"{name}[{i}] is {gpu[name][1][i]}, not {x[i]}"


def main():
    burncc, wanted = sys.argv[1], sys.argv[2:]
    if not harness.vulkan_runtime(burncc, os.environ.get("CC", "cc")):
        print(f"1..0 # SKIP {harness.NO_VULKAN}")
        return
    cases = [make(random.Random(i + 1)) for i, make in enumerate(ALL)]
    cases = [c for c in cases if not wanted or any(w in c.name for w in wanted)]
    print(f"1..{len(cases)}")
    for i, case in enumerate(cases):
        try:
            check(burncc, case)
            print(f"ok {i + 1} - {case.name}", flush=True)
        except AssertionError as e:
            print(f"not ok {i + 1} - {case.name}\n# " + str(e).replace("\n", "\n# "), flush=True)


main()
