#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Register tiles in machine code: what the innermost loops of products do beside multiplying.

Out: one case per kernel, target and compiler. The cost model (tiles_cost.c) counts on a step of a tile of r rows by v
vectors that loads r + v times and keeps its sums in registers. Compilers have other ideas: they read a vector again
for each row, or find no register for a sum. Here each kernel's C is compiled to assembly for a target, and of the loop
that has the chosen tile's multiply-adds every load is counted. And where sums become results, which a function of
their own does, vectors are stored as they lie: no instruction moves their elements. Compilers that are missing here
are left out; `gcc=gcc-13` puts another in a compiler's place.

usage: run.py BURNCC [COMPILER=OTHER...]"""
import concurrent.futures
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import onnx_wire as w  # noqa: E402


def constant(name, *dims):
    return w.tensor(name, w.FLOAT, [0.5] * math.prod(dims), dims)


def net(node, x, y, *constants):
    return w.model(w.graph([node], [w.value_info("x", w.FLOAT, x)], [w.value_info("y", w.FLOAT, y)], constants))


def product(m, n, k):
    return net(w.node("MatMul", ["x", "w"], ["y"]), [m, k], [m, n], constant("w", k, n))


def convolution(c, size, kernel, to=None, **attributes):
    out, to = size // attributes.get("strides", [1])[0], to or c
    return net(w.node("Conv", ["x", "w"], ["y"], kernel_shape=[kernel] * 2, **attributes), [1, c, size, size],
               [1, to, out, out], constant("w", to, c, kernel, kernel))


def pointwise(c, size):
    """With a bias for each channel: that of a row, since channels are the rows of the product."""
    nodes = [w.node("Conv", ["x", "w", "b"], ["z"], kernel_shape=[1, 1]), w.node("Relu", ["z"], ["y"])]
    ends = [w.value_info(name, w.FLOAT, [1, c, size, size]) for name in "xy"]
    bias = w.tensor("b", w.FLOAT, [float(i) for i in range(c)], [c])
    return w.model(w.graph(nodes, ends[:1], ends[1:], [constant("w", c, c, 1, 1), bias]))


def attention(queries, keys, depth):
    tensors = [w.value_info(name, w.FLOAT, [1, 2, n, depth]) for name, n in zip("qkvy", (queries, keys, keys, queries))]
    return w.model(w.graph([w.node("Attention", ["q", "k", "v"], ["y"])], tensors[:3], tensors[3:]), opset=23, ir=11)


KERNELS = {
    "product_128": product(128, 192, 64),
    "product_14": product(14, 32, 64),
    "direct": convolution(32, 28, 3, pads=[1] * 4, strides=[2, 2]),
    "taps": convolution(64, 28, 3, pads=[12] * 4, dilations=[12, 12]),
    "pairs": convolution(32, 28, 3, to=2, pads=[1] * 4),
    "attention": attention(14, 64, 64),
    "winograd": convolution(64, 28, 3, pads=[1] * 4),
}

FINISHED = {"row_bias": pointwise(64, 28)}

# target, compiler, its flags, vector registers
COMPILERS = [
    ("x86-64-v2", "gcc", "-march=x86-64-v2", 16),
    ("x86-64-v2", "clang", "-march=x86-64-v2", 16),
    ("x86-64-v3", "gcc", "-march=x86-64-v3", 16),
    ("x86-64-v3", "gcc", "-march=x86-64-v3 -mtune=znver3", 16),
    ("x86-64-v3", "gcc", "-march=x86-64-v3 -mtune=skylake", 16),
    ("x86-64-v3", "clang", "-march=x86-64-v3", 16),
    ("x86-64-v4", "gcc", "-march=x86-64-v4", 32),
    ("x86-64-v4", "gcc", "-march=x86-64-v4 -mtune=znver3", 32),
    ("x86-64-v4", "clang", "-march=x86-64-v4", 32),
    ("aarch64", "aarch64-linux-gnu-gcc", "", 32),
]


def loops(text):
    """The innermost loops of assembly: lists of (mnemonic, operands)."""
    lines, label, found = text.splitlines(), {}, []
    for i, line in enumerate(lines):
        if begins := re.match(r"(\.L\w+):", line):
            label[begins[1]] = i
        if (jump := re.match(r"\s+(?:j|b\.?|cb|tb)\w*\s+(?:.*\s)?(\.L\w+)$", line)) and jump[1] in label:
            found.append((label[jump[1]], i))
    for first, last in found:
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in found):
            body = (re.match(r"\s+([a-z][\w.]*)\s*(.*)", re.split(r"[#/]|//", line)[0]) for line in lines[first:last])
            yield [(m[1], m[2].strip()) for m in body if m]


def counts(loop, frame):
    """Multiply-adds, loads, and vectors that go to and from the stack; frame: %rbp is its frame."""
    stack = r"%rsp|\[sp" + (r"|-\d+\(%rbp\)" if frame else "")
    multiplies = loads = spilt = 0
    for name, operands in loop:
        arm = "[" in operands and name.startswith(("ld", "st"))
        multiplies += bool(re.match(r"vfmadd|fmla$|v?mulps$", name))
        stores = name.startswith("st") if arm else operands.endswith(")")
        memory = arm or ("(" in operands and not name.startswith(("prefetch", "lea", "cmp", "test", "prfm")))
        loads += bool(memory and not stores) or (name.startswith("cmp") and "(" in operands)
        spilt += bool(memory and re.search(r"%[xyz]mm|\b[qvs]\d", operands) and re.search(stack, operands))
    return multiplies, loads, spilt


def tile(choice, registers):
    value = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", choice)}
    many = value["mr"]
    if choice.startswith("pairs"):
        return many, 1
    few = value.get("mf", (many + 1) // 2)
    return (many if registers == 32 else few), value.get("nv", 2)


def shuffles(assembly):
    """How often vectors change places in the functions that turn sums into results; None without such a function. The
    first element in all places is what adds a row's bias."""
    found = re.findall(r"^(\w+_finish[\w.]*):.*?\n(.*?)^\s+\.size\s+\1", assembly, re.M | re.S)
    moves = r"^\s+(?:v?(?:unpck|perm|p?shuf|insert|extract|movhl|movlh)\w*\s+(?!\$0,)|(?:zip|uzp|trn)[12]\s|tbl\s)"
    return sum(len(re.findall(moves, text, re.M)) for _, text in found) if found else None


def check(burncc, folder, case):
    """None, or what the loops of this kernel have instead."""
    name, target, cc, flags, registers = case
    c = f"{folder}/{re.sub('[^a-z0-9_]', '_', f'{name}_{target}_{cc}_{flags}')}.c"
    report = subprocess.run([burncc, f"{folder}/{name}.onnx", "--target", target, "--report", "-o", c],
                            capture_output=True, text=True).stdout
    assembly = subprocess.run([cc, "-std=c99", "-O3", *flags.split(), "-S", "-w", "-o", "-", c], capture_output=True,
                              text=True).stdout
    if name in FINISHED:
        moved = shuffles(assembly)
        return None if moved == 0 else f"shuffles between sums and results: {moved}"
    choice = re.search(r"(gemm|direct|taps|pairs|winograd|attention) [a-z]+=.*", report)
    if not choice or not assembly:
        return "burncc or the compiler failed"
    rows, vectors = tile(choice[0], registers)
    frame = re.search(r"mov\w*\s+%rsp, %rbp", assembly)
    found = [counts(loop, frame) for loop in loops(assembly)]
    for multiplies, loaded, spilt in found:
        steps, rest = divmod(multiplies, rows * vectors)        # several where the compiler unrolls
        if steps and not rest and not spilt and loaded <= steps * (rows + vectors):
            return None
    return f"{choice[0]}: {rows} x {vectors}; (multiply-adds, loads, stack) of loops: {found}"


def main():
    burncc = sys.argv[1]
    other = dict(word.split("=") for word in sys.argv[2:])
    cases = [(name, target, other.get(cc, cc), flags, registers) for name in [*KERNELS, *FINISHED]
             for target, cc, flags, registers in COMPILERS if shutil.which(other.get(cc, cc))]
    print(f"TAP version 14\n1..{len(cases)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, model in [*KERNELS.items(), *FINISHED.items()]:
            pathlib.Path(folder, f"{name}.onnx").write_bytes(model)
        for i, fault in enumerate(pool.map(lambda case: check(burncc, folder, case), cases)):
            print(f"{'not ok' if fault else 'ok'} {i + 1} - {' '.join(cases[i][:4])}")
            if fault:
                print(f"# {fault}")
            failed += fault is not None
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
