#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a training loop in C meets: the descriptor, sizes that the run says, sums of gradients, refused arguments.

usage: api.py BURNCC [--cc CC]
Each check is a C program in api/ over the generated code of a tiny model of owned.py: it says what is wrong and fails.
Needs the standard library only. Prints TAP."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import onnx_wire as wire        # noqa: E402
import owned        # noqa: E402

FLAGS = "-std=c99 -O2 -Wall -Wextra -Wconversion -Wshadow -Werror -pedantic".split()


def built(args, folder, case, program, options=(), defines=()):
    """The program of api/, built in `folder` over the generated code m.c of a case."""
    owned.write(case(), folder)
    subprocess.run([args.burncc, "-q", folder / "model.onnx", "--train", *options, "-o", folder / "m.c"], check=True)
    subprocess.run([*args.cc.split(), *FLAGS, *defines, "-I", folder, HERE / "api" / program, folder / "m.c", "-lm",
                    "-o", folder / "check"], check=True)
    return folder / "check"


def linked(args, folder, modules, program, flags=()):
    """The program of api/ over several modules: names, cases and options."""
    files = []
    for name, case, options in modules:
        owned.write(case(), folder)
        files.append(folder / f"{name}.c")
        subprocess.run([args.burncc, "-q", folder / "model.onnx", "--train", "--name", name, *options, "-o", files[-1]],
                       check=True)
    subprocess.run([*args.cc.split(), *FLAGS, *flags, "-I", folder, HERE / "api" / program, *files, "-lm", "-o",
                    folder / "check"], check=True)
    return folder / "check"


def ran(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {(done.stdout + done.stderr).strip()}"


def sums(args, folder):
    return ran([built(args, folder, owned.Mlp, "sums.c")])


def evaluation(args, folder):
    """By running statistics, without dropout, of losses of classes and of numbers."""
    cases = [(owned.Mlp, ["-DSAME"]), (owned.Dropped, ["-DDROPS"]), (owned.Norm, ["-DNUMBERS"])]
    return " ".join(filter(None, (
        ran([built(args, folder, case, "evaluate.c", ["--loss", case.loss, *case.options, *options], defines)])
        for case, defines in cases for options in ([], ["--target", "portable"]))))


def learner(args, folder):
    mlp = ["--optimizer", "adam", "--schedule", "cosine"]
    return " ".join(filter(None, (
        ran([linked(args, folder, [("mlp", owned.Dropped, [*mlp, *options]),
                                   ("norm", owned.Norm, ["--loss", "mse", *options])], "learner.c", flags)])
        for options, flags in (([], []), (["--target", "portable"], ["-DBURN_NO_FILES"]),
                               (["--threads", "2"], ["-DTHREADS"])))))


class Attention(owned.Case):
    """A block of a transformer over rows of any length: attention, layer normalization, a layer each."""
    x_shape, loss, options = [2, 5, 6], "cross_entropy", ["--class-axis", "-1"]
    shapes = {"q.weight": [6, 6], "k.weight": [6, 6], "v.weight": [6, 6], "n.weight": [6], "n.bias": [6],
              "l.weight": [6, 3], "l.bias": [3]}
    nodes = [*(wire.node("MatMul", ["x", f"{k}.weight"], [k]) for k in "qkv"),
             wire.node("Transpose", ["k"], ["t"], perm=[0, 2, 1]), wire.node("MatMul", ["q", "t"], ["s"]),
             wire.node("Softmax", ["s"], ["p"], axis=-1), wire.node("MatMul", ["p", "v"], ["a"]),
             wire.node("Add", ["a", "x"], ["r"]),
             wire.node("LayerNormalization", ["r", "n.weight", "n.bias"], ["n"], axis=-1),
             wire.node("MatMul", ["n", "l.weight"], ["l"]), wire.node("Add", ["l", "l.bias"], ["y"])]


class Merged(owned.Case):
    """Two layer normalizations that an exporter gave one scale and one shift."""
    x_shape, loss = [4, 6], "mse"
    shapes = {"a.weight": [6, 6], "b.weight": [6, 3]}
    constants = {"ones": [1.0] * 6, "zeros": [0.0] * 6}
    nodes = [wire.node("LayerNormalization", ["x", "ones", "zeros"], ["n"]),
             wire.node("MatMul", ["n", "a.weight"], ["a"]), wire.node("Tanh", ["a"], ["t"]),
             wire.node("LayerNormalization", ["t", "ones", "zeros"], ["m"]),
             wire.node("MatMul", ["m", "b.weight"], ["y"])]


class Kernels(owned.Case):
    """Convolutions, and back, by kernels that are computed, of a size that the run says."""
    x_shape, loss = [4, 5], "mse"
    shapes = {"image": [1, 2, 7], "scale": [4, 1]}
    axes = [wire.tensor("kernel", wire.INT64, [2, 2, -1]), wire.tensor("rows", wire.INT64, [4, 8])]
    nodes = [wire.node("Mul", ["x", "scale"], ["s"]), wire.node("Reshape", ["s", "kernel"], ["w"]),
             wire.node("Conv", ["image", "w"], ["a"], strides=[2], auto_pad="SAME_UPPER"),
             wire.node("Tanh", ["a"], ["t"]),
             wire.node("ConvTranspose", ["t", "w"], ["b"], strides=[2], auto_pad="SAME_LOWER"),
             wire.node("ConvTranspose", ["b", "w"], ["c"], strides=[2], group=2, output_shape=[8]),
             wire.node("Reshape", ["c", "rows"], ["y"])]


class Open:
    """A case whose input has names for sizes: {axis: name}."""

    def __init__(self, case, names):
        self.case, self.names = case, names

    def write(self, folder):
        case = self.case()
        shape = [self.names.get(i, d) for i, d in enumerate(case.x_shape)]
        tensors = [wire.tensor(k, wire.FLOAT, v) for k, v in {**case.params, **case.constants}.items()] + case.axes
        graph = wire.graph(case.nodes, [wire.value_info("x", wire.FLOAT, shape)],
                           [wire.value_info("y", wire.FLOAT, None)], tensors)
        (folder / "model.onnx").write_bytes(wire.model(graph))


BATCHES = [{"batch": n} for n in (1, 3, 8)]
OPEN = [        # case, the axes that are open, their bounds, the sizes that are tried
    (owned.Mlp, {0: "batch"}, ["batch=1..8"], BATCHES),
    (owned.Dropped, {0: "batch"}, ["batch=1..8"], BATCHES),
    (owned.L1, {0: "batch"}, ["batch=1..8"], BATCHES),
    (owned.Norm, {0: "batch"}, ["batch=2..8"], [{"batch": n} for n in (2, 5, 8)]),
    (owned.Windows, {0: "batch"}, ["batch=1..8"], BATCHES),
    (owned.Point, {0: "batch"}, ["batch=1..8"], BATCHES),
    (owned.Lstm, {1: "batch"}, ["batch=1..8"], BATCHES),
    (Kernels, {1: "taps"}, ["taps=1..5"], [{"taps": n} for n in (1, 2, 5)]),
    (Attention, {0: "batch", 1: "length"}, ["batch=1..4", "length=1..40"],
     [{"batch": 1, "length": 1}, {"batch": 3, "length": 17}, {"batch": 4, "length": 40}]),
]


def built_sizes(args, folder, number, case, options, flags):
    """The check of one row of OPEN."""
    of, axes, bounds, sizes = case
    modules = [("open", [f"--dim={b}" for b in bounds])]
    modules += [(f"fixed{i}", [f"--dim={k}={v}" for k, v in size.items()]) for i, size in enumerate(sizes)]
    folder = folder / str(number)
    folder.mkdir()
    Open(of, axes).write(folder)
    for name, dims in modules:
        subprocess.run([args.burncc, "-q", folder / "model.onnx", "--train", "--loss", of.loss, "--name", name, *dims,
                        *of.options, *options, "-o", folder / f"{name}.c"], check=True)
    (folder / "all.h").write_text("".join(f'#include "{name}.h"\n' for name, _ in modules))
    fixed = ",".join(f"&{name}_training" for name, _ in modules[1:])
    subprocess.run([*args.cc.split(), *FLAGS, *flags, f"-DFIXED={fixed}", '-DHEADERS="all.h"', "-DBOUND=2e-6", "-I",
                    folder, HERE / "api" / "sizes.c", *(folder / f"{name}.c" for name, _ in modules), "-lm", "-o",
                    folder / "check"], check=True)
    return folder / "check"


def sizes(*options):
    """Modules whose sizes the run says have the numbers of those of fixed sizes."""
    return lambda args, folder: " ".join(filter(None, (
        ran([built_sizes(args, folder, i, case, options, [])]) for i, case in enumerate(OPEN))))


def threads(args, folder):
    """Everything that can goes in parts, of convolutions, batch normalization, a recurrent layer, attention."""
    runtime = HERE.parent.parent / "runtime"
    flags = ["-pthread", "-I", runtime, runtime / "threads.c"]
    said = []
    for case, loss in (owned.Windows, "mse"), (owned.Norm, "mse"), (owned.Lstm, "mse"), (Attention, "mse"):
        Open(case, {}).write(folder)
        subprocess.run([args.burncc, "-q", folder / "model.onnx", "--train", "--loss", loss, "--threads", "4:0",
                        "--optimizer", "momentum", "-o", folder / "m.c"], check=True)
        parts = (folder / "m.c").read_text().count("burn_parts(threads")
        subprocess.run([*args.cc.split(), "-std=c11", "-O2", "-I", folder, *flags, HERE / "api" / "threads.c",
                        folder / "m.c", "-lm", "-o", folder / "check"], check=True)
        said.append(ran([folder / "check"]) or ("" if parts > 4 else f"{case.__name__}: {parts} kernels go in parts"))
    return " ".join(filter(None, said))


def files(args, folder):
    """Also as safetensors has them elsewhere: the header is JSON, offsets are in order and end with the file."""
    said = ran([built(args, folder, owned.Mlp, "files.c", ["--optimizer", "adam"]), folder])
    data = (folder / "checkpoint.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + length])
    ends = [v["data_offsets"] for k, v in head.items() if k != "__metadata__"]
    whole = [0] + [at for end in ends for at in end] + [len(data) - 8 - length]
    bad = whole[::2] != whole[1::2] or length % 8 or head["optimizer.step"] != {
        "dtype": "I64", "shape": [], "data_offsets": ends[-1]}
    return said or ("header" if bad else "")


def back(args, folder):
    """What was trained, in inference: code, a model, code of that; weights of one's own, merged, of statistics."""
    said, c, flags = [], folder / "inf.c", [*FLAGS, "-I", folder, HERE / "api" / "back.c", folder / "m.c"]
    for case, untie in (owned.Norm, []), (owned.Norm, ["--untie", "merged"]), (Merged, ["--untie", "merged"]):
        Open(case, {}).write(folder)
        model, trained = folder / "model.onnx", folder / "trained.safetensors"
        again = [model, "--weights", trained, "--strict", "--untie", "merged"]
        subprocess.run([args.burncc, "-q", model, "--train", "--loss", "mse", *untie, "-o", folder / "m.c"], check=True)
        subprocess.run([*args.cc.split(), *flags, "-lm", "-o", folder / "check"], check=True)
        said.append(ran([folder / "check", trained]))
        subprocess.run([args.burncc, "-q", *again, "-o", folder / "new.onnx"], check=True)
        subprocess.run([args.burncc, "-q", *again, "--train", "--loss", "mse", "-o", folder / "m.c"], check=True)
        for source in again, [folder / "new.onnx"]:
            subprocess.run([args.burncc, "-q", *source, "-o", c], check=True)
            subprocess.run([*args.cc.split(), "-DAFTER", *flags, c, "-lm", "-o", folder / "check"], check=True)
            said.append(ran([folder / "check", trained]))
    return " ".join(filter(None, said))


CHECKS = {
    "trained parameters back in inference": back,
    "the same bits on any number of threads": threads,
    "files: damaged, and killed while saving": files,
    "sizes of the run": sizes(),
    "sizes of the run, portable, momentum": sizes("--target", "portable", "--optimizer", "momentum"),
    "sizes of the run, threads, adam": sizes("--threads", "2", "--optimizer", "adam"),
    "one learner, any module": learner,
    "evaluation": evaluation,
    "sums of gradients, refused arguments": sums,
}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    args = p.parse_args()
    bad = 0
    for i, (name, check) in enumerate(CHECKS.items(), 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = check(args, pathlib.Path(folder))
            except subprocess.CalledProcessError as e:
                said = str(e)
        bad += bool(said)
        print(f"{'not ok' if said else 'ok'} {i} - {name}{': ' + said if said else ''}", flush=True)
    print(f"1..{len(CHECKS)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
