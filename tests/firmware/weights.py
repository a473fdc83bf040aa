#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Weights alone in few bits (quantize --weights-only) stay in few bits on a microcontroller.

In: networks with convolutions, depthwise ones, dense layers, a table, as int8 and int4. Out: a case for each and each
processor: in QEMU, and for it on this machine, they give the bits of each other and, but for rounding, what the same
file gives as plain C, where its weights become floats; and one for the sizes: constants take no more than the file says
its weights take and what stays float, workspace and stack no more than those of the model of floats.
BURNCC_TEST_ALL=1: all targets and compilers that firmware/run.py knows, else three."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "small")]
import harness          # noqa: E402
import onnx_wire        # noqa: E402
import run as firmware  # noqa: E402
from small_model import nest, numbers   # noqa: E402

MODELS = {
    "dense": """
    Tensor x = input("x", F32, 2, 100);
    x = relu(linear(x, "in", 66));
    output("y", linear(x, "out", 30));""",
    "depths": """
    Tensor x = input("x", F32, 1, 3, 24, 24);
    x = relu(conv2d(x, "stem", 8, 3, .stride = 2, .padding = 1));
    x = relu(conv2d(x, "depth", 8, 3, .padding = 1, .groups = 8));
    x = relu(conv2d(x, "points", 22, 1));
    x = relu(conv2d(x, "down", 22, 3, .stride = 2, .padding = 1, .groups = 22));
    x = relu(conv2d(x, "more", 32, 1));
    output("y", linear(flatten(adaptive_avg_pool2d(x, 1), 1), "fc", 10));""",
    "turned": """
    Tensor x = input("x", F32, 1, 2, 12, 12);
    x = relu(conv2d(x, "conv", 9, 3, .padding = 1, .stride = 2));
    output("y", linear(flatten(x, 1), "fc", 19));""",
    "words": """
    Tensor x = embedding(input("x", I64, 1, 6), "table", 100, 48);
    output("y", linear(relu(linear(x, "wide", 64)), "fc", 10));""",
}
SHAPES = {"dense": [2, 100], "depths": [1, 3, 24, 24], "turned": [1, 2, 12, 12], "words": [1, 6]}
# bytes: alignment of arrays and what is read past their ends; the prelude's own constants
LEFT = 160


def said(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def npy(path):
    """A .npy file of floats as (flat list, shape)."""
    data = path.read_bytes()
    end = 10 + struct.unpack("<H", data[8:10])[0]
    shape = [int(n) for n in re.search(rb"'shape': \(([^)]*)\)", data[:end])[1].split(b",") if n.strip()]
    return list(struct.unpack(f"<{(len(data) - end) // 4}f", data[end:])), shape


def made(burncc, folder, name, bits):
    """The model of floats and the one of few bits beside which stands what plain C gives; the bytes of its weights, and
    of what stays float."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    floats, model = folder / "floats.onnx", folder / "model.onnx"
    (folder / f"{name}.c").write_text(f"#include <burncc/model.h>\n\nMODEL({name})\n{{{MODELS[name]}\n}}\n")
    said(burncc, folder / f"{name}.c", "--seed", 3, "-f", "--quiet", "-o", floats)
    sizes = json.loads(said(burncc, "quantize", floats, "--weights-only", bits, "-f", "--json", "-o", model))
    words = name == "words"
    x = [[7, 99, 0, 7, 31, 64]] if words else numbers(9, *SHAPES[name])
    value = onnx_wire.value("x", onnx_wire.INT64 if words else onnx_wire.FLOAT, x)
    (data / "input_0.pb").write_bytes(value)
    said(burncc, "run", model, "--target", "portable", "--input", f"x={data / 'input_0.pb'}", "--output", folder)
    flat, shape = npy(folder / "y.npy")
    (data / "output_0.pb").write_bytes(onnx_wire.value("y", onnx_wire.FLOAT, nest(flat, shape)))
    parameters = json.loads(said(burncc, "inspect", floats, "--json"))["parameter_bytes"]
    return floats, model, sizes["quantized_bytes"], parameters - sizes["weights_bytes"]


def report(burncc, model, target, folder):
    """Bytes of constants, of workspace and of stack."""
    text = said(burncc, model, "--target", target, "--report", "-f", "-o", folder / "sizes.c")
    workspace = int(re.search(r"^workspace (\d+)", text, re.M)[1])
    return int(re.search(r"\.rodata (\d+)", text)[1]), workspace, int(re.search(r"^stack (\d+)", text, re.M)[1])


def compare_sizes(burncc, folder, name, bits, target):
    """Run as a case's command."""
    folder = pathlib.Path(folder)
    floats, model, stored, kept = made(burncc, folder, name, bits)
    few, plain = report(burncc, model, target, folder), report(burncc, floats, target, folder)
    # a byte holds one number of 4 bits in convolutions and tables: as many as of 8
    if bits == "int4" and name != "dense":
        stored = made(burncc, folder / "bytes", name, "int8")[2]
    good = few[0] <= stored + kept + LEFT and few[1] <= plain[1] and few[1] + few[2] <= plain[1] + plain[2]
    print(f"{'' if good else 'FAIL '}constants {few[0]} of {plain[0]} ({stored} stored, {kept} float), "
          f"workspace {few[1]} of {plain[1]}, stack {few[2]} of {plain[2]}")
    return not good


def main():
    if sys.argv[1:2] == ["--sizes"]:
        return compare_sizes(*sys.argv[2:])
    args = harness.parse(harness.arguments(__doc__.splitlines()[0], cflags="", timeout=300))
    root = pathlib.Path(args.cache) / "weights"
    runs = []
    tools = firmware.tools(bool(os.environ.get("BURNCC_TEST_ALL")), root)
    for name in MODELS:
        for bits in ("int8", "int4"):
            folder = root / f"{name}_{bits}"
            model = made(args.burncc, folder, name, bits)[1]
            for target, compiler, runner, cc, flags in tools:
                environment = ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}"]
                family = f"{target} {compiler}"
                for form, more in (("", []), (":size", ["--optimize", "size"])):
                    runs.append(harness.Case(f"{name}:{bits}:{target}:{compiler}{form}", family, [
                        *environment, args.burncc, "verify", str(model), "--quiet", "--target", target, "--runner",
                        runner, "--golden", "--rtol", "1e-5", "--atol", "1e-5", *more]))
                if (target, compiler) == ("cortex-m4", "gcc"):
                    runs.append(harness.Case(f"sizes:{name}:{bits}", family, [
                        *environment, sys.executable, __file__, "--sizes", args.burncc, str(folder / "sizes"), name,
                        bits, target]))
    if not runs:
        harness.skip_all(args, "neither Cortex-M nor RISC-V programs can be built and run here")
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
