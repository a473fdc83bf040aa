#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--blas openblas: products of every shape, against sums in double precision, and what is called for them.

In: models written here. Out: for each a case for the plan (which cblas_ functions the code calls, in order; a model
that calls none is the same bytes as without the option) and one per target and C compiler. All skip where OpenBLAS is
not there to link with."""
import math
import pathlib
import shlex
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "small")]
import harness      # noqa: E402
from small_model import Model, numbers  # noqa: E402
from onnx_wire import DOUBLE, FLOAT, INT64, node, tensor    # noqa: E402
from run import write   # noqa: E402

ROUNDING = {FLOAT: 2 ** -22, DOUBLE: 2 ** -50}          # allowed, of the sum of the terms' magnitudes
WARNINGS = "-std=c99 -pedantic -Wall -Wextra -Wconversion -Wshadow -Wvla -Werror"


def transposed(x):
    return [list(c) for c in zip(*x)]


def times(x, w):
    """x [m][k] by w [k][n]."""
    columns = transposed(w)
    return [[math.fsum(a * b for a, b in zip(r, c)) for c in columns] for r in x]


def relu(y, bias):
    return [[max(v + b, 0.0) for v, b in zip(r, bias)] for r in y]


def gelu(v):
    return 0.5 * v * (1 + math.erf(v / math.sqrt(2)))


def dense(m, k, n, kind=FLOAT, swapped=False, rows=None):
    """A product with constant weights, bias and ReLU."""
    x, w, bias = numbers(m, m, k), numbers(k, k, n), numbers(n, n)
    nodes = [node("Gemm", ["x", "w", "b"], ["p"], transB=int(swapped)), node("Relu", ["p"], ["y"])]
    weights = [tensor("w", kind, transposed(w) if swapped else w), tensor("b", kind, bias)]
    sets = [([x[:some]], [relu(times(x[:some], w), bias)]) for some in rows or [m]]
    return Model(nodes, [("x", kind, ["rows" if rows else m, k])], [("y", kind, [None if rows else m, n])], sets,
                 weights), k


def both_turned():
    x, w = numbers(1, 70, 65), numbers(2, 66, 70)
    y = times(transposed(x), transposed(w))
    nodes = [node("Gemm", ["x", "w"], ["y"], transA=1, transB=1)]
    return Model(nodes, [("x", FLOAT, [70, 65]), ("w", FLOAT, [66, 70])], [("y", FLOAT, [65, 66])], [([x, w], [y])]), 70


def batch(kind=FLOAT, sizes=None):
    x, w = numbers(1, 3, 40, 90), numbers(2, 3, 90, 80)
    name = "batch" if sizes else 3
    sets = [([x[:n], w[:n]], [[times(a, b) for a, b in zip(x[:n], w)]]) for n in sizes or [3]]
    return Model([node("MatMul", ["x", "w"], ["y"])], [("x", kind, [name, 40, 90]), ("w", kind, [name, 90, 80])],
                 [("y", kind, [None, 40, 80])], sets), 90


def heads(kind=FLOAT, softmax=False):
    """Scores of two heads, whose rows lie between each other; with softmax the whole of attention."""
    q, k, v = (numbers(i, 1, 64, 2, 64) for i in range(3))

    def of(x, h):
        return [row[h] for row in x[0]]
    scores = [times(of(q, h), transposed(of(k, h))) for h in range(2)]
    nodes = [
        node("Transpose", ["q"], ["qt"], perm=[0, 2, 1, 3]),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 3, 1]),
        node("MatMul", ["qt", "kt"], ["s"])
    ]
    inputs = [(n, kind, [1, 64, 2, 64]) for n in "qk"]
    if not softmax:
        return Model(nodes, inputs, [("s", kind, [1, 2, 64, 64])], [([q, k], [[scores]])]), 64
    mixed = []
    for h, score in enumerate(scores):
        weights = [[math.exp(s - max(r)) for s in r] for r in score]
        mixed.append(times([[w / math.fsum(r) for w in r] for r in weights], of(v, h)))
    nodes += [
        node("Softmax", ["s"], ["p"], axis=-1),
        node("Transpose", ["v"], ["vt"], perm=[0, 2, 1, 3]),
        node("MatMul", ["p", "vt"], ["y"])
    ]
    return Model(nodes, inputs + [("v", kind, [1, 64, 2, 64])], [("y", kind, [1, 2, 64, 64])],
                 [([q, k, v], [[mixed]])]), 64


def residual():
    """What follows the product reads another tensor."""
    x, w, r = numbers(1, 130, 32), numbers(2, 32, 70), numbers(3, 130, 70)
    y = [[gelu(v) + b for v, b in zip(row, other)] for row, other in zip(times(x, w), r)]
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Gelu", ["p"], ["g"]), node("Add", ["g", "r"], ["y"])]
    return Model(nodes, [("x", FLOAT, [130, 32]), ("r", FLOAT, [130, 70])], [("y", FLOAT, [130, 70])], [([x, r], [y])],
                 [tensor("w", FLOAT, w)], opset=20), 32


def column(kind=FLOAT):
    x, w = numbers(1, 90, 80), numbers(2, 80)
    y = [max(math.fsum(a * b for a, b in zip(r, w)), 0.0) for r in x]
    return Model([node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["y"])], [("x", kind, [90, 80]),
                                                                                   ("w", kind, [80])],
                 [("y", kind, [90])], [([x, w], [y])]), 80


def pointwise():
    """A convolution of one tap, channels first."""
    x, w, bias = numbers(1, 1, 40, 12, 12), numbers(2, 50, 40), numbers(3, 50)
    pixels = transposed([[v for line in plane for v in line] for plane in x[0]])
    y = transposed(relu(times(pixels, transposed(w)), bias))
    planes = [[plane[i:i + 12] for i in range(0, 144, 12)] for plane in y]
    weights = [tensor("w", FLOAT, [[[[v]] for v in r] for r in w]), tensor("b", FLOAT, bias)]
    return Model(
        [node("Conv", ["x", "w", "b"], ["c"]), node("Relu", ["c"], ["y"])], [("x", FLOAT, [1, 40, 12, 12])],
        [("y", FLOAT, [1, 50, 12, 12])], [([x], [[planes]])], weights), 40


def side_by_side():
    """Two products as parts of one tensor: rows of the result are longer than a product's."""
    x, v, w = numbers(1, 70, 80), numbers(2, 80, 60), numbers(3, 80, 50)
    y = [a + b for a, b in zip(times(x, v), times([[-e for e in r] for r in x], w))]
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("MatMul", ["x", "v"], ["p"]),
        node("MatMul", ["n", "w"], ["q"]),
        node("Concat", ["p", "q"], ["y"], axis=1)
    ]
    return Model(nodes, [("x", FLOAT, [70, 80])], [("y", FLOAT, [70, 110])], [([x], [y])],
                 [tensor("v", FLOAT, v), tensor("w", FLOAT, w)]), 80


def every_other():
    """Doubles whose view no BLAS can read: they are copied first."""
    x, w = numbers(1, 70, 160), numbers(2, 80, 60)
    nodes = [node("Slice", ["x", "from", "to", "axes", "steps"], ["s"]), node("MatMul", ["s", "w"], ["y"])]
    sizes = [tensor(n, INT64, [v]) for n, v in (("from", 0), ("to", 160), ("axes", 1), ("steps", 2))]
    return Model(nodes, [("x", DOUBLE, [70, 160])], [("y", DOUBLE, [70, 60])],
                 [([x], [times([r[::2] for r in x], w)])], sizes + [tensor("w", DOUBLE, w)]), 80


# name: model and longest sum, element type, called functions, options
CASES = {
    "dense": (dense(70, 80, 60), FLOAT, "sgemm", []),
    "dense_turned": (dense(70, 80, 60, swapped=True), FLOAT, "sgemm", []),
    "dense_small": (dense(20, 30, 20), FLOAT, "", []),
    "both_turned": (both_turned(), FLOAT, "sgemm", []),
    "batch": (batch(), FLOAT, "sgemm", []),
    "heads": (heads(), FLOAT, "sgemm", []),
    "residual": (residual(), FLOAT, "sgemm", []),
    "row": (dense(1, 300, 70), FLOAT, "sgemv", []),
    "row_turned": (dense(1, 300, 70, swapped=True), FLOAT, "sgemv", []),
    "row_small": (dense(1, 30, 70), FLOAT, "", []),
    "column": (column(), FLOAT, "sgemv", []),
    "pointwise": (pointwise(), FLOAT, "sgemm", []),
    "side_by_side": (side_by_side(), FLOAT, "sgemm sgemm", []),
    "any_rows": (dense(100, 80, 60, rows=[1, 33, 100]), FLOAT, "sgemm", ["--dim", "rows=1..100"]),
    "any_batch": (batch(sizes=[1, 3]), FLOAT, "sgemm", ["--dim", "batch=1..3"]),
    "doubles": (dense(70, 80, 60, DOUBLE), DOUBLE, "dgemm", []),
    "doubles_small": (dense(20, 30, 20, DOUBLE), DOUBLE, "", []),
    "doubles_row": (dense(1, 300, 70, DOUBLE), DOUBLE, "dgemv", []),
    "doubles_column": (column(DOUBLE), DOUBLE, "dgemv", []),
    "doubles_batch": (batch(DOUBLE, [1, 3]), DOUBLE, "dgemm", ["--dim", "batch=1..3"]),
    "doubles_heads": (heads(DOUBLE), DOUBLE, "dgemm", []),
    "doubles_attention": (heads(DOUBLE, softmax=True), DOUBLE, "dgemm dgemm", []),
    "doubles_every_other": (every_other(), DOUBLE, "dgemm", []),
}


def plan_case(args, ccs, name, folder, called, options):
    """The calls that stand in the code, which compiles without a warning; none, and it is the same file as without
    the option."""
    burncc, model = shlex.quote(str(pathlib.Path(args.burncc).resolve())), shlex.quote(str(folder / "model.onnx"))
    compile_it = f"{burncc} {model} {' '.join(options)} --quiet --target generic"
    script = (
        f"cd {shlex.quote(str(folder))} && mkdir -p with without && {compile_it} -o with/model.c --blas openblas "
        f"&& {compile_it} -o without/model.c || exit 1\n"
        f"! grep -q cblas without/model.c without/model.h || {{ echo 'error: cblas without the option'; exit 1; }}\n"
        f"called=$(grep -o 'cblas_[sd]gem[mv](' with/model.c | tr -d '(' | sed s/cblas_// | paste -sd' ')\n"
        f"[ \"$called\" = '{called}' ] || {{ echo \"error: calls '$called', not '{called}'\"; exit 1; }}\n" + "".join(
            f"{cc} {WARNINGS} -O1 -c with/model.c -o with/model.o || {{ echo 'error: warnings of {cc}'; exit 1; }}\n"
            for cc in ccs) + ("cmp with/model.c without/model.c && cmp with/model.h without/model.h\n"
                              if not called else "grep -q 'link with -lopenblas' with/model.c with/model.h\n"))
    return harness.Case(f"{name}:plan", "plan", ["sh", "-c", script])


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    p.add_argument("--targets", default="portable,generic,native", help="burncc targets, comma-separated")
    p.add_argument("--ccs", default="gcc,clang", help="C compilers, comma-separated; those missing are left out")
    args = harness.parse(p)
    ccs = [c for c in args.ccs.split(",") if shutil.which(c)] or [args.cc]
    if not all(map(harness.has_blas, ccs)):
        harness.skip_all(args, harness.NO_BLAS)
    root, runs = pathlib.Path(args.cache).resolve() / "blas", []
    for name, ((model, length), kind, called, options) in CASES.items():
        write(root / name, model)
        runs.append(plan_case(args, ccs, name, root / name, called, options))
        for target in args.targets.split(","):
            for cc in ccs:
                command = [
                    "env", f"CC={cc}", args.burncc, "verify",
                    str(root / name / "model.onnx"), "--target", target, "--rtol",
                    str(8 * ROUNDING[kind]), "--atol",
                    str(length * ROUNDING[kind]), "--quiet", "--blas", "openblas", *options
                ]
                runs.append(harness.Case(f"{name}:{target}:{cc}", f"{target} {cc}", command))
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
