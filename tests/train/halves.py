#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Training with --precision bf16 and f16: what is kept for the backward pass has 16 bits, and with bf16 so do the
factors of forward products and of both of their gradients; the rest is f32.

usage: halves.py BURNCC [--cc CC] [--flags FLAGS] [--target T]
Each case is one program over two modules of a model, in f32 and in 16 bits:
- exact: two layers whose numbers 16 bits hold, in gradients, too: both modules give the same bits, for sizes that
  fill no tile, no panel and no pair, and for sums in several blocks.
- curves: a small GPT, an MLP with dropout, a convolutional net with batch norm. A number rounded to bf16 is off by
  2^-9 of itself at most, a product of two by 2^-8 of the sum of its terms' magnitudes; over the layers of the model the
  error of a parameter's gradient stays below 2^-6 of its norm, and is there; of f16, 2^-12 and 2^-9. With bf16's
  factors some 2^-9 of a layer's rectifiers change sides, and with each a whole gradient goes or comes: 2^-4.5 of the
  norm a layer. 40 steps of adam: each loss is within 1 % of f32's (of the first loss, where it falls to next to
  nothing), and falls to a half. Code for 1, 2, 3 and 4 threads, with shares in any order, gives a step the same bits.
  The workspace takes no more than a share of f32's for as many threads.
- maxima: what is compared for equality is kept as it is, so the gradient of a maximum finds it again.
Needs the standard library only. Prints TAP."""
import argparse, os, random, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(HERE, "..")]
import onnx_wire as wire        # noqa: E402

HEAD = """#include "f32.h"
#include "half.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static f32_gradients_workspace f32_work;
static half_gradients_workspace half_work;
static f32_params params, grads;
static half_params params16, grads16;

/* Shares from the last to the first: on no more than one thread, in another order than without any. */
static void backwards(void *pool, int parts, void (*task)(void *argument, int part), void *argument)
{
    (void)pool;
    while (parts-- > 0) task(argument, parts);
}
static const burn_threads turned = {NULL, backwards};
"""

EXACT = HEAD + """
int main(void)
{
    static float x[%(m)d * %(i)d], target[%(m)d * %(n)d], loss[1], loss16[1];
    for (int i = 0; i < %(m)d * %(i)d; i++) x[i] = (float)(i * 7919 %% 17 == 0) - (float)(i * 7919 %% 17 == 3);
    for (int i = 0; i < %(m)d * %(n)d; i++) target[i] = (float)(i * 7919 %% 61) / 7 - 4;
    const float *const from = (const float *)&grads, *const to = (const float *)&grads16;
    f32_params_init(&params);
    half_params_init(&params16);
    if (f32_gradients(&f32_work, x, &params, target, loss, &grads)) return 2;
    if (half_gradients(&half_work, x, &params16, target, loss16, &grads16, &turned)) return 3;
    if (memcmp(loss, loss16, sizeof loss)) return puts("the loss differs"), 1;
    for (size_t i = 0; i < sizeof grads / sizeof *from; i++)
        if (from[i] < to[i] || from[i] > to[i])
            return printf("gradient %%d: %%g, not %%g\\n", (int)i, to[i], from[i]), 1;
    return 0;
}
"""

CURVES = HEAD + """
#include "half1.h"
#include "half2.h"
#include "half4.h"

static f32_state state;
static half_state state16;
static half_params again;
static half1_gradients_workspace half1_work;
static half2_gradients_workspace half2_work;
static half4_gradients_workspace half4_work;

int main(void)
{
    static %(x)s;
    static int64_t y[%(targets)s];
    float loss[1], loss16[1], begin = 0;
    double worst = 0;
    for (int i = 0; i < (int)(sizeof x / sizeof *x); i++) x[i] = %(value)s;
    for (int i = 0; i < (int)(sizeof y / sizeof *y); i++) y[i] = %(target)s;
    f32_params_init(&params);
    half_params_init(&params16);
    for (int64_t step = 1; step <= 40; step++) {
        if (f32_gradients(&f32_work, x, &params, y, %(step)sloss, &grads)) return 2;
        if (half_gradients(&half_work, x, &params16, y, %(step)sloss16, &grads16, NULL)) return 3;
        if (half_gradients(&half_work, x, &params16, y, %(step)sloss16, &again, &turned)) return 3;
        if (memcmp(&again, &grads16, sizeof again)) return puts("shares in another order have other bits"), 1;
        if (half1_gradients(&half1_work, x, (const half1_params *)&params16, y, %(step)sloss16, (half1_params *)&again))
            return 4;
        if (memcmp(&again, &grads16, sizeof again)) return puts("one thread has other bits"), 1;
        if (half2_gradients(&half2_work, x, (const half2_params *)&params16, y, %(step)sloss16, (half2_params *)&again,
                            &turned)) return 5;
        if (memcmp(&again, &grads16, sizeof again)) return puts("two threads have other bits"), 1;
        if (half4_gradients(&half4_work, x, (const half4_params *)&params16, y, %(step)sloss16, (half4_params *)&again,
                            &turned)) return 6;
        if (memcmp(&again, &grads16, sizeof again)) return puts("four threads have other bits"), 1;
        if (step == 1) begin = *loss;
        if (fabsf(*loss16 - *loss) > 0.01f * (%(relative)d ? *loss : begin))
            return printf("step %%d: %%g, not %%g\\n", (int)step, *loss16, *loss), 1;
        if (step == 1) {
%(norms)s
            if (worst > %(most)s || worst < %(least)s) return printf("gradients differ by %%g\\n", worst), 1;
        }
        f32_update(0.003f, 0.9f, 0.999f, 1e-8f, 0, (float)step, &params, &grads, &state);
        half_update(0.003f, 0.9f, 0.999f, 1e-8f, 0, (float)step, &params16, &grads16, &state16, NULL);
    }
    if (*loss > begin / 2) return printf("%%g after %%g: nothing is learnt\\n", *loss, begin), 1;
    return 0;
}
"""
NORM = """            {
                double sum = 0, off = 0;
                for (size_t i = 0; i < sizeof grads.%(f)s / sizeof *grads.%(f)s; i++) {
                    const double a = grads.%(f)s[i], b = grads16.%(f)s[i];
                    sum += a * a;
                    off += (a - b) * (a - b);
                }
                if (off > 0x1p-40 * sum && sqrt(off / sum) > worst && sum > 1e-12) worst = sqrt(off / sum);
            }"""


def two_layers(path, m, i, k, n):
    """y = (x A) B: four numbers of a column of A and of a row of B are not 0, multiples of 1/8 up to 1."""
    rng = random.Random(k)
    a, b = [[0.0] * k for _ in range(i)], [[0.0] * n for _ in range(k)]
    for j in range(k):
        for _ in range(4):
            a[rng.randrange(i)][j] = rng.randrange(-8, 9) / 8
            b[j][rng.randrange(n)] = rng.randrange(-8, 9) / 8
    nodes = [wire.node("MatMul", ["x", "a"], ["h"]), wire.node("MatMul", ["h", "b"], ["y"])]
    graph = wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [m, i])], [wire.value_info("y", wire.FLOAT, [m, n])],
                       [wire.tensor("a", wire.FLOAT, a), wire.tensor("b", wire.FLOAT, b)])
    with open(path, "wb") as file:
        file.write(wire.model(graph))


THREADS = ["--threads", "3:0"]
RANDOM = "(float)(i * 7919 % 1009) / 505 - 1"
# name: the model, its options, the input and its numbers, the targets and theirs, whether dropout wants the step,
# whether losses stay far from nothing, the most that bf16's gradients are off, the most of f32's workspace
MODELS = {
    "GPT": ("models/gpt2.c", "layers=2 width=64 heads=4 vocabulary=97 positions=32", "--dim batch=4 --dim length=32",
            "int64_t x[4 * 32]", "i * 7919 % 97", "4 * 32", "(i * 7919 + 5) % 97", False, True, "0x1p-6", 0.75),
    "MLP": ("models/mlp.c", "layers=3 width=96 features=70 classes=5 dropout=0.1", "--dim batch=256",
            "float x[256 * 70]", RANDOM + " + (float)(i % 5 == i / 70 % 5)", "256", "i % 5",
            True, False, "0x1p-3", 0.9),
    "convolutions": ("tests/train/pairs_net.c", "", "--dim batch=24 --no-dropout", "float x[24 * 162]",
                     RANDOM + " + (float)(i % 4 == i / 162 % 4)", "24", "i % 4",
                     False, False, "0x1p-3", 1),
}


def module(args, tmp, name, model, options):
    subprocess.run([args.burncc, model, "--train", "--quiet", "--target", args.target, *options,
                    "-o", os.path.join(tmp, name + ".c")], check=True)
    return open(os.path.join(tmp, name + ".h")).read()


def workspace(header):
    return int(re.search(r"bytes\[(\d+)\];\n} \w+_gradients_workspace;", header).group(1))


def ran(args, tmp, model, options, program, more=()):
    module(args, tmp, "f32", model, options)
    module(args, tmp, "half", model, [*options, "--precision", args.precision, *THREADS, "--loss-scale", "none"])
    with open(os.path.join(tmp, "main.c"), "w") as file:
        file.write(program(open(os.path.join(tmp, "f32.h")).read()))
    flags = "-std=c11 -O1 -Wall -Wconversion -Wshadow -Werror".split() + args.flags.split()
    subprocess.run([args.cc, *flags, "-I", tmp, "-I", os.path.join(ROOT, "runtime"),
                    *(os.path.join(tmp, c) for c in ("main.c", "f32.c", "half.c", *more)), "-lm",
                    "-o", os.path.join(tmp, "main")], check=True)
    done = subprocess.run([os.path.join(tmp, "main")], capture_output=True, text=True)
    return done.returncode == 0, done.stdout.strip() or f"exit {done.returncode}"


def exact(args, tmp, m, i, k, n):
    model = os.path.join(tmp, "two.onnx")
    two_layers(model, m, i, k, n)
    return ran(args, tmp, model, ["--loss", "l1"], lambda _: EXACT % {"m": m, "i": i, "k": k, "n": n})


def curves(args, tmp, model):
    path, settings, sizes, x, value, targets, target, drops, relative, most, share = MODELS[model]

    def program(header):
        fields = header[header.index("typedef struct f32_params"):header.index("} f32_params;")].split("\n")[1:-1]
        names = [line.split("[")[0].split()[-1] for line in fields]
        bounds = (most, "0x1p-12") if args.precision == "bf16" else ("0x1p-9", "0x1p-15")
        return CURVES % {
            "norms": "\n".join(NORM % {"f": name} for name in names), "most": bounds[0], "least": bounds[1], "x": x,
            "value": value, "targets": targets, "target": target, "step": "step, " if drops else "",
            "relative": relative
        }
    path = os.path.join(ROOT, path)
    options = ["--optimizer", "adam", "--seed", "7", *sizes.split(),
               *(word for setting in settings.split() for word in ("--set", setting))]
    half = [*options, "--precision", args.precision, "--loss-scale", "none"]
    module(args, tmp, "half1", path, half)
    for threads in ("2", "4"):
        module(args, tmp, "half" + threads, path, [*half, "--threads", threads + ":0"])
    ok, said = ran(args, tmp, path, options, program, ["half1.c", "half2.c", "half4.c"])
    kept = workspace(open(os.path.join(tmp, "half.h")).read())
    full = workspace(module(args, tmp, "full", path, [*options, *THREADS]))
    return (ok, said) if kept <= share * full else (False, f"{said} {kept} bytes of workspace, of f32 {full}")


MAXIMA = HEAD + """
int main(void)
{
    static float x[64 * 32], target[64], loss[1], loss16[1];
    for (int i = 0; i < 64 * 32; i++) x[i] = (float)(i * 7919 %% 1009) / 1009 - 0.5f;
    for (int i = 0; i < 64; i++) target[i] = 3;
    f32_params_init(&params);
    half_params_init(&params16);
    if (f32_gradients(&f32_work, x, &params, target, loss, &grads)) return 2;
    if (half_gradients(&half_work, x, &params16, target, loss16, &grads16, &turned)) return 3;
    if (fabsf(*loss - *loss16) > 0.01f * *loss) return printf("loss %%g, not %%g\\n", *loss16, *loss), 1;
    double sum = 0, off = 0;
    for (size_t i = 0; i < sizeof grads.a / sizeof *grads.a; i++) {
        sum += (double)grads.a[i] * (double)grads.a[i];
        off += ((double)grads.a[i] - (double)grads16.a[i]) * ((double)grads.a[i] - (double)grads16.a[i]);
    }
    return sum > 1e-6 && off < 0x1p-12 * sum ? 0 : (printf("gradients differ by %%g of %%g\\n", off, sum), 1);
}
"""


def maxima(args, tmp):
    """y = the largest of each row of tanh(x A)."""
    rng = random.Random(3)
    a = [[rng.uniform(-1, 1) for _ in range(48)] for _ in range(32)]
    nodes = [wire.node("MatMul", ["x", "a"], ["h"]), wire.node("Tanh", ["h"], ["t"]),
             wire.node("ReduceMax", ["t"], ["y"], axes=[1], keepdims=0)]
    graph = wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [64, 32])], [wire.value_info("y", wire.FLOAT, [64])],
                       [wire.tensor("a", wire.FLOAT, a)])
    model = os.path.join(tmp, "maxima.onnx")
    with open(model, "wb") as file:
        file.write(wire.model(graph, opset=13))
    return ran(args, tmp, model, ["--loss", "mse"], lambda _: MAXIMA % {})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("burncc"), p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--flags", default=""), p.add_argument("--target", default="generic")
    args = p.parse_args()
    cases = []
    for precision in ("bf16", "f16"):
        of = argparse.Namespace(**vars(args), precision=precision)
        cases += [(f"{precision}: exact {m}x{i}x{k}x{n}", lambda tmp, of=of, s=(m, i, k, n): exact(of, tmp, *s))
                  for m, i, k, n in ((32, 40, 51, 64), (64, 17, 99, 128), (16, 33, 2100, 64))]
        cases += [(f"{precision}: {name}, curves of f32", lambda tmp, of=of, n=name: curves(of, tmp, n))
                  for name in MODELS]
        cases.append((f"{precision}: maxima", lambda tmp, of=of: maxima(of, tmp)))
    bad = 0
    for at, (name, run) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as tmp:
            ok, text = run(tmp)
        bad += not ok
        print(f"ok {at} - {name}" if ok else f"not ok {at} - {name}: {text}", flush=True)
    print(f"1..{len(cases)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
