#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a training loop in C meets: the descriptor, sums of gradients, refused arguments.

usage: api.py BURNCC [--cc CC]
Each check is a C program in api/ over the generated code of a tiny model of owned.py: it says what is wrong and fails.
Needs the standard library only. Prints TAP."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
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
        for options, flags in (([], []), (["--target", "portable"], []), (["--threads", "2"], ["-DTHREADS"])))))


CHECKS = {
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
