#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The derivatives of generated training programs: gradients by parameters and inputs, tangents, of first and second
order, in double precision against central differences.

usage: derivatives.py BURNCC [--cc CC]
The models are the compiler's text with weights drawn here; derivatives/check.c compares. Needs the standard library
only. Prints TAP."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import owned        # noqa: E402

FLAGS = "-std=c99 -O1 -Wall -Wextra -Wconversion -Wshadow -Werror -pedantic".split()

# A model's body, of weights by their shapes: $name is the value, numbers from 50 on are the body's own. Shapes of x, y.
PERCEPTRON = """
  %50 = MatMul(%0, $w)
  %51 = Add(%50, $b)
  %52 = Tanh(%51)
  %53 = MatMul(%52, $v)
"""
MODELS = {
    "perceptron": ([4, 3], [4, 2], {"w": [3, 5], "b": [5], "v": [5, 2]}, PERCEPTRON, "%53"),
    "convolution, normalization, pooling":
        ([2, 2, 7, 7], [2, 4], {"w": [3, 2, 3, 3], "s": [3], "b": [3], "v": [12, 4]}, """
  %50 = Conv(%0, $w) {strides=[1,1], pads=[0,0,0,0]}
  %51, %52, %53 = BatchNormTraining(%50, $s, $b) {epsilon=0.01}
  %54 = Sigmoid(%51)
  %55 = WindowMax(%54) {kernel=[2,2], strides=[3,3]}
  %56 = Reshape(%55) {shape=[2,12]}
  %57 = MatMul(%56, $v)
""", "%57"),
    "a branch in a loop": ([2, 3], [2, 3], {"w": [3, 3], "v": [3, 3]}, """
  %50, %51 = Loop(_, _, %0) {trips=[4]} body step(%52: i64[], %53: bool[], %54: f64[2,3]) {
    %55 = const bool[] {1}
    %56 = const i64[] {2}
    %57 = Less(%52, %56)
    %58 = If(%57) body yes() {
      %59 = MatMul(%54, $w)
      %60 = Tanh(%59)
      return %60
    } body no() {
      %61 = MatMul(%54, $v)
      %62 = Sin(%61)
      return %62
    }
    return %55, %58, %58
  }
  %63 = ReduceSum(%51) {axes=[0], keepdims=0}
""", "%63"),
    "running products and extremes": ([3, 6], [3, 6], {"w": [6]}, """
  %50 = Mul(%0, $w)
  %51 = CumProd(%50) {axis=1}
  %52 = CumMax(%50) {axis=1}
  %53 = CumMin(%0) {axis=0, reverse=1}
  %54 = Add(%51, %52)
  %55 = Mul(%54, %53)
""", "%55"),
    "the gradient within a model, as of a potential": ([4, 3], [4, 3], {"w": [3, 5], "b": [5], "v": [5, 2]},
        PERCEPTRON + """
  %54 = Mul(%53, %53)
  %55 = ReduceSum(%54) {keepdims=0}
  %56 = Gradient(%55, %0)
""", "%56"),
    "normalization differentiated twice": ([4, 3], [4, 3], {"s": [3], "b": [3], "w": [3, 3]}, """
  %50 = MatMul(%0, $w)
  %51, %52, %53 = BatchNormTraining(%50, $s, $b) {epsilon=0.01}
  %54 = Softmax(%51) {axis=1}
  %55 = Mul(%54, %51)
  %56 = ReduceSum(%55) {keepdims=0}
  %57 = Gradient(%56, %0)
""", "%57"),
}


def text(x, shapes, body, y):
    source = owned.numbers(11)
    lines, number = [f"graph m(%0 x: f64{x}) {{"], 10
    for name, shape in shapes.items():
        flat = owned.wire.flatten(owned.filled(shape, source, 0.8))[0]
        lines.append(f"  %{number} {name} = const trainable f64{shape} {{{', '.join(map(repr, flat))}}}")
        body = body.replace(f"${name}", f"%{number}")
        number += 1
    return "\n".join(lines + [body, f"  return {y} y", "}"])


def product(shape):
    return shape[0] * product(shape[1:]) if shape else 1


def check(args, folder, model):
    x, y, shapes, body, result = model
    (folder / "m.txt").write_text(text(x, shapes, body, result))
    subprocess.run([args.burncc, "-q", folder / "m.txt", "--train", "--loss", "mse", "--input-gradients", "all",
                    "--jvp", "-o", folder / "m.c"], check=True)
    subprocess.run([*args.cc.split(), *FLAGS, f"-DX_COUNT={product(x)}", f"-DY_COUNT={product(y)}", "-I", folder,
                    HERE / "derivatives" / "check.c", folder / "m.c", "-lm", "-o", folder / "check"], check=True)
    done = subprocess.run([folder / "check"], capture_output=True, text=True)
    return done.returncode == 0, done.stdout.strip() or f"exit {done.returncode}"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    args = p.parse_args()
    bad = 0
    for i, (name, model) in enumerate(MODELS.items(), 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                ok, said = check(args, pathlib.Path(folder), model)
            except subprocess.CalledProcessError as e:
                ok, said = False, str(e)
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {i} - {name}: {said}", flush=True)
    print(f"1..{len(MODELS)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
