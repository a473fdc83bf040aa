#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels that a GPU program shares out in ways of its own, beside the same graphs for the processor.

Each case is a graph as text and its inputs, run for both targets. Outputs have the same bits, or where the order of a
sum may differ are within the bound of the case. Skips where there is no Vulkan device."""
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
from npy import read_npy, write_npy

NAN, INF = float("nan"), float("inf")


class Case:
    def __init__(self, name, graph, inputs, close=None, options=(), groups=()):
        self.name, self.graph, self.inputs, self.close, self.options = name, graph, inputs, close, options
        self.groups = groups                            # of kernels of its program: how many workgroups


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


SPECIAL = [NAN, -NAN, INF, -INF, 0.0, -0.0, 1e-40, -1e-40]


def many(r, dtype, n):
    """Numbers of which many are equal; of floats every kind there is."""
    if dtype in ("f32", "f64"):
        return [r.choice([r.choice(SPECIAL), float(r.randrange(-20, 20)), r.uniform(-1, 1)]) for _ in range(n)]
    bits = {"8": 8, "2": 32, "4": 64}[dtype[-1]]
    low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-2**(bits - 1), 2**(bits - 1) - 1)
    return [r.choice([r.randint(low, high), low, high, r.randrange(9)]) for _ in range(n)]


SORTS = [  # dtype, shape, axis, how many are wanted (0: all), largest
    ("f32", (3, 1), 1, 0, 0), ("f32", (2, 7, 5), 1, 0, 1), ("f32", (300, 33), 1, 4, 1), ("f32", (2, 2048), 1, 0, 0),
    ("f32", (2, 2049), 1, 0, 1), ("f32", (1, 9001), 1, 0, 0), ("f32", (5000, 3), 0, 20, 1), ("f32", (40000,), 0, 3, 0),
    ("f32", (3, 6000), 1, 1500, 1), ("f64", (2, 3000), 1, 0, 0), ("f64", (5000,), 0, 10, 1), ("i64", (4, 300), 1, 0, 1),
    ("i64", (3000,), 0, 7, 0), ("u64", (1500, 2), 0, 0, 0), ("i32", (2500,), 0, 0, 1), ("u32", (700,), 0, 9, 0),
    ("u8", (3, 3000), 1, 0, 0), ("i8", (3, 3000), 1, 100, 1)]


def sorts(r, steps=False):
    """Lines of a block, of many, along any axis; all or the first few, either way; equal keys and NaN."""
    ends = [f"%{i} x{i}: {d}[{','.join(map(str, s))}]" for i, (d, s, *_) in enumerate(SORTS)]
    at, nodes, out = len(SORTS) + 1, [], []
    for i, (_, shape, axis, count, largest) in enumerate(SORTS):
        sizes = f", sizes=[{count}]" if count else ""
        nodes.append(f"  %{at}, %{at + 1} = Sort(%{i}) {{axis={axis}, largest={largest}{sizes}}}")
        out += [f"%{at} v{i}"] * (i % 4 != 0) + [f"%{at + 1} p{i}"] * (i % 4 != 2)
        at += 2
    if steps:  # a size that only the run knows makes it a program with control on the host
        ends.append(f"%{len(SORTS)} n: f32[n]")
        nodes.insert(0, "  dim n 1..4")
        nodes.append(f"  %{at} = Neg(%{len(SORTS)})")
        out.append(f"%{at} neg")
    graph = f"graph g({', '.join(ends)}) {{\n" + "\n".join(nodes) + f"\n  return {', '.join(out)}\n}}\n"
    inputs = {f"x{i}": (d, s, many(r, d, math.prod(s))) for i, (d, s, *_) in enumerate(SORTS)}
    if steps:
        inputs["n"] = ("f32", (3,), floats(r, 3))
    return Case("sorts, steps" if steps else "sorts", graph, inputs)


def scans(r):
    """Running sums, products and extremes along lines of every length, forwards and backwards, with and without the
    element itself; of integers, and floats with NaN, are they exact."""
    nodes, out, inputs, ends = [], [], {}, []
    kinds = [("Sum", "f32", (3, 5000), 1, 0, 0), ("Sum", "f32", (257, 4), 0, 1, 0), ("Sum", "f32", (20000,), 0, 1, 1),
             ("Sum", "i64", (1000, 3), 0, 0, 1), ("Max", "f32", (2, 700), 1, 0, 0), ("Min", "i32", (4097,), 0, 1, 1),
             ("Prod", "f32", (2, 300), 1, 0, 1), ("Prod", "i32", (900,), 0, 0, 0), ("Sum", "f32", (2, 256), 1, 0, 1)]
    for i, (op, dtype, shape, axis, exclusive, reverse) in enumerate(kinds):
        ends.append(f"%{i} x{i}: {dtype}[{','.join(map(str, shape))}]")
        at = len(kinds) + i
        nodes.append(f"  %{at} = Cum{op}(%{i}) {{axis={axis}, exclusive={exclusive}, reverse={reverse}}}")
        out.append(f"%{at} y{i}")
        n = math.prod(shape)
        some = many(r, dtype, n) if op in ("Max", "Min") or dtype[0] != "f" else floats(r, n)
        if (op, dtype) == ("Prod", "f32"):
            some = [0.99 + 0.02 * abs(v) for v in some]
        inputs[f"x{i}"] = (dtype, shape, some)
    graph = f"graph g({', '.join(ends)}) {{\n" + "\n".join(nodes) + f"\n  return {', '.join(out)}\n}}\n"
    return Case("scans", graph, inputs, close=2e-6)


def loops(r):
    """Loops of small steps: recurrent nets of one and two directions, lines of several lengths; carried values that
    change places, what each step gives, and bools."""
    graph = """graph g(%0 x: f32[9,3,8], %1 w: f32[2,48,8], %2 r: f32[2,48,12], %3 b: f32[2,96], %4 w3: f32[1,36,8], \
%5 r3: f32[1,36,12], %6 w1: f32[1,12,8], %7 r1: f32[1,12,12], %8 long: i32[3], %9 u: f32[5], %10 v: f32[5]) {
  %13, %14, %15 = LSTM(%0, %1, %2, %3, %8) {direction="bidirectional", \
activations="Sigmoid Tanh Tanh Sigmoid Tanh Tanh"}
  %16, %17 = GRU(%0, %4, %5) {direction="reverse", activations="Sigmoid Tanh"}
  %18, %19 = RNN(%0, %6, %7) {direction="forward", activations="Tanh"}
  %20 = const i64[] {11}
  %21 even = const bool[5] {1, 0, 1, 0, 1}
  %22, %23, %24, %25, %26 = Loop(%20, _, %9, %10, %21)
    body step(%30 i: i64[], %31 c: bool[], %32 p: f32[5], %33 q: f32[5], %34 e: bool[5]) {
      %35 = Cast(%30) {to=f32}
      %36 = Mul(%32, %35)
      %37 = Sin(%36)
      %38 = Where(%34, %33, %37)
      %39 = Not(%34)
      return %31, %33, %38, %39, %37, %33
    }
  return %13 a, %14 a1, %15 a2, %16 d, %17 d1, %18 f, %22 l0, %23 l1, %24 l2, %25 l3, %26 l4
}
"""
    ends = [("x", (9, 3, 8)), ("w", (2, 48, 8)), ("r", (2, 48, 12)), ("b", (2, 96)), ("w3", (1, 36, 8)),
            ("r3", (1, 36, 12)), ("w1", (1, 12, 8)), ("r1", (1, 12, 12)), ("u", (5,)), ("v", (5,))]
    inputs = {name: ("f32", shape, floats(r, math.prod(shape))) for name, shape in ends}
    inputs["long"] = ("i32", (3,), [9, 4, 1])
    return Case("loops", graph, inputs, close=3e-6)


def transposes(r, halves=False):
    """Tiles of 32 x 32, whole and at the ends, of two axes that are neighbours or not; several tensors in one kernel,
    one turned and not, broadcast ones; elements of one byte, of four and of eight, which go one by one."""
    graph = """graph g(%0 x: f32[3,70,130], %1 y: f32[3,130,70], %2 i: i32[256,160], %3 b: u8[64,260], \
%4 z: f32[130,3,70], %5 w: f32[40,5,6,33], %6 c: f32[33], %7 d: f64[150,160], %8 s: f32[160,160], %9 n: f32[5000,17]) {
  %10 = Transpose(%0) {perm=[0,2,1]}
  %11 = Mul(%10, %1)
  %12 = Relu(%11)
  %13 = Transpose(%2) {perm=[1,0]}
  %14 = Transpose(%3) {perm=[1,0]}
  %15 = Transpose(%4) {perm=[1,0,2]}
  %16 = Add(%15, %12)
  %17 = Transpose(%16) {perm=[0,2,1]}
  %18 = Sub(%17, %0)
  %19 = Transpose(%5) {perm=[1,3,2,0]}
  %20 = Transpose(%7) {perm=[1,0]}
  %21 = Transpose(%8) {perm=[1,0]}
  %22 = Add(%21, %8)
  %23 = Transpose(%9) {perm=[1,0]}
  %24 = Neg(%23)
  return %12 a, %13 b1, %14 c1, %18 d1, %19 e1, %20 f1, %22 g1, %24 h1
}
"""
    shapes = {"x": (3, 70, 130), "y": (3, 130, 70), "z": (130, 3, 70), "w": (40, 5, 6, 33), "c": (33,), "s": (160, 160),
              "n": (5000, 17)}
    inputs = {name: ("f32", shape, floats(r, math.prod(shape))) for name, shape in shapes.items()}
    inputs.update(i=("i32", (256, 160), [r.randrange(-9999, 9999) for _ in range(256 * 160)]),
                  b=("u8", (64, 260), [r.randrange(256) for _ in range(64 * 260)]),
                  d=("f64", (150, 160), [r.uniform(-1, 1) for _ in range(150 * 160)]))
    tiles = ["{45, 1, 1}", "{40, 1, 1}", "{18, 1, 1}", "{120, 1, 1}", "{157, 1, 1}"]
    if halves:
        return Case("transposes, f16", graph, inputs, close=1e-3, options=["--precision", "f16"], groups=tiles)
    return Case("transposes", graph, inputs, groups=tiles)


def bytes_far(r):
    """More elements of one byte than a piece of a view has, in a program with control on the host: one by one, four at
    a time, behind a guard, in a sort."""
    graph = """graph g(%0 n: f32[n], %1 b: u8[300,301], %2 c: i8[301,300], %3 x: f32[301,300], %4 s: u8[70000], \
%5 w: i8[300,256], %6 y: f32[8,256], %7 t: f32[300]) {
  dim n 1..4
  %10 = Neg(%0)
  %11 = Transpose(%1) {perm=[1,0]}
  %12 = Cast(%2) {to=f32}
  %13 = Mul(%12, %3)
  %14 = Greater(%13, %7)
  %15 = Pad(%11, _) {lo=[1,2], hi=[3,0]}
  %16, %17 = Sort(%4) {axis=0, largest=1}
  %18 = Cast(%5) {to=f32}
  %19 = Transpose(%18) {perm=[1,0]}
  %20 = MatMul(%6, %19)
  %21 = Not(%14)
  return %10 neg, %11 turned, %13 product, %14 more, %15 padded, %16 sorted, %17 places, %20 rows, %21 less
}
"""
    def some(n, low):
        return [r.randrange(low, low + 256) for _ in range(n)]
    return Case("bytes", graph, {
        "n": ("f32", (3,), floats(r, 3)), "b": ("u8", (300, 301), some(90300, 0)),
        "c": ("i8", (301, 300), some(90300, -128)), "x": ("f32", (301, 300), floats(r, 90300)),
        "s": ("u8", (70000,), some(70000, 0)), "w": ("i8", (300, 256), some(76800, -128)),
        "y": ("f32", (8, 256), floats(r, 2048)), "t": ("f32", (300,), floats(r, 300))}, close=2e-6)


def few_queries(r, halves=False):
    """Attention of few queries: of so many keys as the run says, more than one workgroup has; heads that share keys;
    lengths that are no whole vectors; masks, which may hide all keys of a query."""
    graph = """graph g(%0 q: f32[2,3,1,20], %1 k: f32[2,3,n,20], %2 v: f32[2,3,n,12], %3 gq: f32[1,2,4,1,64], \
%4 gk: f32[1,2,1,n,64], %5 gv: f32[1,2,1,n,64], %6 cq: f32[2,5,7], %7 ck: f32[2,300,7], %8 cv: f32[2,300,5], \
%9 mask: f32[5,300], %10 few: f32[3,1,8,16], %11 keys: f32[3,1,m,16], %12 values: f32[3,1,m,130], %13 scale: f32[1]) {
  dim n 1..1200
  dim m 1..600
  %20 = Transpose(%1) {perm=[0,1,3,2]}
  %21 = MatMul(%0, %20)
  %22 = Mul(%21, %13)
  %23 = Softmax(%22) {axis=3}
  %24 = MatMul(%23, %2)
  %25 = Transpose(%4) {perm=[0,1,2,4,3]}
  %26 = MatMul(%3, %25)
  %27 = Softmax(%26) {axis=4}
  %28 = MatMul(%27, %5)
  %29 = Transpose(%7) {perm=[0,2,1]}
  %30 = MatMul(%6, %29)
  %31 = Add(%30, %9)
  %32 = Softmax(%31) {axis=2}
  %33 = MatMul(%32, %8)
  %34 = Transpose(%11) {perm=[0,1,3,2]}
  %35 = MatMul(%10, %34)
  %36 = Softmax(%35) {axis=3}
  %37 = MatMul(%36, %12)
  %38 = Neg(%37)
  return %24 a, %28 b, %33 c, %38 d
}
"""
    n, m = 1001, 33
    mask = [0.5 if j < 260 + i and i != 2 else -INF for i in range(5) for j in range(300)]
    mask[3 * 300:3 * 300 + 2] = [-INF, -INF]
    return Case("few queries" + (" f16" if halves else ""), graph, {
        "q": ("f32", (2, 3, 1, 20), floats(r, 120)), "k": ("f32", (2, 3, n, 20), floats(r, 120 * n)),
        "v": ("f32", (2, 3, n, 12), floats(r, 72 * n)), "gq": ("f32", (1, 2, 4, 1, 64), floats(r, 512)),
        "gk": ("f32", (1, 2, 1, n, 64), floats(r, 128 * n)), "gv": ("f32", (1, 2, 1, n, 64), floats(r, 128 * n)),
        "cq": ("f32", (2, 5, 7), floats(r, 70, 3.0)), "ck": ("f32", (2, 300, 7), floats(r, 4200)),
        "cv": ("f32", (2, 300, 5), floats(r, 3000)), "mask": ("f32", (5, 300), mask),
        "few": ("f32", (3, 1, 8, 16), floats(r, 384, 2.0)), "keys": ("f32", (3, 1, m, 16), floats(r, 48 * m)),
        "values": ("f32", (3, 1, m, 130), floats(r, 390 * m)), "scale": ("f32", (1,), [0.25])},
        close=1e-3 if halves else 2e-6, options=["--precision", "f16"] if halves else [])


def norms(r, halves=False):
    """Products of few rows: of norms, which their workgroups make themselves, for one reader or two, of one row or
    some, of a length that is no whole vectors; and what is made of some of their columns, which they store."""
    graph = """graph g(%0 x: f32[1,768], %1 g: f32[768], %2 w: f32[768,96], %3 u: f32[3,301], %4 w1: f32[301,40], \
%5 w2: f32[301,66], %6 p: f32[5,1000], %7 w3: f32[1000,64], %10 old: f32[1,4,9,8]) {
  %20 = ReduceMean(%0) {axes=[1], keepdims=1}
  %21 = Sub(%0, %20)
  %22 = Mul(%21, %21)
  %23 = ReduceMean(%22) {axes=[1], keepdims=1}
  %24 = Sqrt(%23)
  %25 = Div(%21, %24)
  %26 = Mul(%25, %1)
  %27 = MatMul(%26, %2)
  %30 = Mul(%3, %3)
  %31 = ReduceMean(%30) {axes=[1], keepdims=1}
  %32 = Sqrt(%31)
  %33 = Div(%3, %32)
  %34 = MatMul(%33, %4)
  %35 = MatMul(%33, %5)
  %36 = Tanh(%35)
  %40 = ReduceMax(%6) {axes=[1], keepdims=1}
  %41 = Sub(%6, %40)
  %42 = Exp(%41)
  %43 = ReduceSum(%42) {axes=[1], keepdims=1}
  %44 = Div(%42, %43)
  %45 = MatMul(%44, %7)
  %50 = Slice(%36) {starts=[0,11], sizes=[3,11], steps=[1,1]}
  %51 = Reshape(%50) {shape=[3,1,11]}
  %52 = Mul(%51, %51)
  %53 = Slice(%27) {starts=[0,32], sizes=[1,32], steps=[1,1]}
  %54 = Reshape(%53) {shape=[1,4,1,8]}
  %55 = SliceScatter(%10, %54) {axis=2, starts=[7]}
  return %27 a, %34 b, %36 c, %45 d, %52 e, %55 f
}
"""
    return Case("norms" + (" f16" if halves else ""), graph, {
        "x": ("f32", (1, 768), floats(r, 768)), "g": ("f32", (768,), floats(r, 768)),
        "w": ("f32", (768, 96), floats(r, 768 * 96)), "u": ("f32", (3, 301), floats(r, 903, 2.0)),
        "w1": ("f32", (301, 40), floats(r, 12040)), "w2": ("f32", (301, 66), floats(r, 19866, 0.1)),
        "p": ("f32", (5, 1000), floats(r, 5000, 3.0)), "w3": ("f32", (1000, 64), floats(r, 64000)),
        "old": ("f32", (1, 4, 9, 8), floats(r, 288))},
        close=2e-3 if halves else 2e-6, options=["--precision", "f16"] if halves else [])


ALL = [scatters, transposes, lambda r: transposes(r, True), loops, scans, sorts, lambda r: sorts(r, True), bytes_far,
       few_queries, lambda r: few_queries(r, True), norms, lambda r: norms(r, True)]


def run(burncc, folder, case, target):
    to = folder / target
    options = case.options if target == "vulkan" else []
    command = [burncc, "run", str(folder / "g.txt"), "-q", "--target", target, "-o", str(to), *options]
    for name in case.inputs:
        command += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{target}: {done.stderr.strip()}")
    return {p.name: read_npy(p) for p in sorted(to.glob("*.npy"))}


def differs(x, y, close):
    if close is None or isinstance(x[0], int):
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
        if case.groups:
            subprocess.run([burncc, str(folder / "g.txt"), "-q", "--target", "vulkan", *case.options, "-o",
                            str(folder / "g.c")], check=True)
            text = (folder / "g.c").read_text()
            missing = [g for g in case.groups if f"/ 4, {g}" not in text]
            assert not missing, f"no kernel has the workgroups {missing}"
    assert c and c.keys() == gpu.keys(), (sorted(c), sorted(gpu))
    for name, (shape, x) in c.items():
        assert gpu[name][0] == shape and len(x) > 0, (name, shape, gpu[name][0])
        i = differs(x, gpu[name][1], case.close)
        assert i is None, f"{name}[{i}] is {gpu[name][1][i]}, not {x[i]}"


def main():
    burncc, wanted = sys.argv[1], sys.argv[2:]
    _, lacks = harness.vulkan_runtime(burncc, os.environ.get("CC", "cc"))
    if lacks:
        print(f"1..0 # SKIP {lacks}")
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
