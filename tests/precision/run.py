#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Matrix products with weights of few bits: --precision bf16, and weights that come quantised in blocks of 2, 4 or 8
bits.

In: models written here, outputs computed in double precision. Out: one case per model, target and C compiler.
Rounding a weight to bfloat16 (8 bits of mantissa) changes it by at most 2^-8 of itself, and by half of that or less in
the mean: a product changes by at most 2^-9 of the sum of its terms' magnitudes, which is what is allowed. Products of
more than 4 rows round the other factor as well, and may differ by twice that. Numbers that bfloat16 holds exactly must
give float32's results."""
import math
import pathlib
import random
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "small")]
import harness      # noqa: E402
from small_model import Model, numbers  # noqa: E402
from onnx_wire import FLOAT, UINT8, node, tensor    # noqa: E402
from run import write   # noqa: E402

FEW_ROWS = 4
FLOAT32 = 1e-5          # relative to a result, and
SUMS = 2 ** -20         # to the sum of the terms' magnitudes: float32's own rounding


def times(x, w):
    """x [m][k] by w [k][n], and the largest sum of the terms' magnitudes."""
    columns = list(zip(*w))
    y = [[math.fsum(a * b for a, b in zip(r, c)) for c in columns] for r in x]
    most = max(math.fsum(abs(a * b) for a, b in zip(r, c)) for r in x for c in columns)
    return y, most


def floats(m, k, n, exact, swapped=False):
    """A product with bias and ReLU; its weights in the model's order or (Gemm) transposed."""
    x, bias = numbers(m, m, k), numbers(n, n)
    w = numbers(k, k, n)
    if exact:
        x, w = ([[round(v * 64) / 64 for v in r] for r in matrix] for matrix in (x, w))
    y, most = times(x, w)
    y = [[max(v + b, 0.0) for v, b in zip(r, bias)] for r in y]
    stored = [list(c) for c in zip(*w)] if swapped else w
    nodes = [node("Gemm", ["x", "w", "b"], ["p"], transB=int(swapped)), node("Relu", ["p"], ["y"])]
    model = Model(nodes, [("x", FLOAT, ["rows" if m == 11 else m, k])], [("y", FLOAT, [None, n])], [([x], [y])],
                  [tensor("w", FLOAT, stored), tensor("b", FLOAT, bias)])
    return model, ["--precision", "bf16"], FLOAT32, most * (SUMS + (0 if exact else 2**-9 if m <= FEW_ROWS else 2**-8))


def packed(values, bits):
    """Low bits first, whole bytes."""
    per = 8 // bits
    values = values + [0] * (-len(values) % per)
    return [sum(v << bits * i for i, v in enumerate(values[at:at + per])) for at in range(0, len(values), per)]


def blocks(bits, m, k, n, size, zeros, turned=False):
    rng, count = random.Random(bits * 1000 + m), -(-k // size)
    q = [[rng.randrange(1 << bits) for _ in range(count * size)] for _ in range(n)]
    scale = numbers(7, n, count, low=0.01, high=0.1)
    zero = [[rng.randrange(1 << bits) if zeros else 1 << (bits - 1) for _ in range(count)] for _ in range(n)]
    x = numbers(8, m, k)
    w = [[(q[j][i] - zero[j][i // size]) * scale[j][i // size] for j in range(n)] for i in range(k)]
    y, most = times(x, w)
    step = size * bits // 8
    rows = [packed(r, bits) for r in q]
    weights = [
        tensor("q", UINT8, [[r[i * step:(i + 1) * step] for i in range(count)] for r in rows]),
        tensor("s", FLOAT, [s for r in scale for s in r])
    ]
    if zeros:
        weights.append(tensor("z", UINT8, [b for r in zero for b in packed(r, bits)]))
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0])] if turned else []
    nodes.append(
        node("MatMulNBits", ["t" if turned else "x", "q", "s", "z"][:4 if zeros else 3], ["y"], domain="com.microsoft",
             N=n, K=k, bits=bits, block_size=size))
    given, shape = (list(zip(*x)), [k, m]) if turned else (x, [m, k])
    model = Model(nodes, [("x", FLOAT, shape)], [("y", FLOAT, [m, n])], [([given], [y])], weights,
                  domains=["com.microsoft"])
    return model, [], FLOAT32, most * SUMS


CASES = {
    "bf16_1x77x50": lambda: floats(1, 77, 50, False),
    "bf16_1x300x130_exact": lambda: floats(1, 300, 130, True),
    "bf16_3x65x49_swapped": lambda: floats(3, 65, 49, True, True),
    "bf16_30x70x45": lambda: floats(30, 70, 45, False),
    "bf16_29x64x35_exact": lambda: floats(29, 64, 35, True, True),
    "bf16_5x33x20": lambda: floats(5, 33, 20, False),
    "bf16_70x2001x35_blocks": lambda: floats(70, 2001, 35, True),
    "bf16_rows_11x40x33": lambda: floats(11, 40, 33, True),
    "bits4_1x100x70": lambda: blocks(4, 1, 100, 70, 32, False),
    "bits4_3x128x70_zeros": lambda: blocks(4, 3, 128, 70, 32, True),
    "bits4_19x100x50_zeros": lambda: blocks(4, 19, 100, 50, 16, True),
    "bits8_1x90x40_zeros": lambda: blocks(8, 1, 90, 40, 32, True),
    "bits8_13x66x35": lambda: blocks(8, 13, 66, 35, 16, False),
    "bits4_7x96x50_turned": lambda: blocks(4, 7, 96, 50, 32, True, True),
    "bits2_2x70x40_zeros": lambda: blocks(2, 2, 70, 40, 32, True),
}


# dot products of bfloat16
ARM = "aarch64-linux-gnu-gcc -march=armv8.6-a+bf16", "qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu"


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    p.add_argument("--targets", default="portable,generic,native", help="burncc targets, comma-separated")
    p.add_argument("--ccs", default="gcc,clang", help="C compilers, comma-separated; those missing are left out")
    args = harness.parse(p)
    root = pathlib.Path(args.cache) / "precision"
    ccs = [c for c in args.ccs.split(",") if shutil.which(c)] or [args.cc]
    runs = []
    for name, make in CASES.items():
        model, options, rtol, atol = make()
        write(root / name, model)
        if name.startswith("bf16_rows"):
            options = options + ["--dim", "rows=1..40"]
        tools = [(target, cc, None) for target in args.targets.split(",") for cc in ccs]
        if name.startswith("bf16") and all(shutil.which(tool.split()[0]) for tool in ARM):
            tools.append(("aarch64", *ARM))
        for target, cc, runner in tools:
            command = [
                "env", f"CC={cc}", args.burncc, "verify",
                str(root / name / "model.onnx"), "--target", target, "--rtol",
                str(rtol), "--atol",
                str(atol), "--quiet", *options, *(["--runner", runner] if runner else [])
            ]
            runs.append(harness.Case(f"{name}:{target}:{cc.split()[0]}", f"{target} {cc.split()[0]}", command))
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
