#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What models take on microcontrollers, as docs/firmware.md and docs/memory.md have it, beside the figures of other
compilers and libraries: instructions of a run in QEMU, workspace, code.

usage: figures.py BURNCC --models DIR [--only float,size,int8,budgets]

Out: a table for each part, a row for each model; where there is a figure to stay below it stands beside with `ok` or
`ABOVE`, and the exit status is 1 if any is above. DIR has tiny_dscnn_kws.onnx, tiny_resnet8.onnx, tiny_mbv1_vww.onnx,
tiny_ae_toycar.onnx and mnist_cnn.onnx, the first four also as integers by ONNX Runtime's quantizer (NAME_qdq.onnx), and
micro_kws_qdq.onnx. What is not there is left out. Bits are bits.py's. MobileNetV2 is made of models/mobilenet_v2.c.
Needs the cross compilers and QEMU as run.py does; some ten minutes."""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KWS, RESNET, VWW, AE, MNIST = ("tiny_dscnn_kws", "tiny_resnet8", "tiny_mbv1_vww", "tiny_ae_toycar", "mnist_cnn")
# instructions a multiply-add at most; bytes of what is alive in a run of one operation after the other, each with a
# tensor of its own; .data of the C file by onnx2c (its tensors); and its .text and instructions with -Os (AE: -O2)
FLOATS = {KWS: (2.5, 64000, 64000, 1028, 28542047), RESNET: (2.5, 196608, 196608, 2240, 250037866),
          VWW: (2.5, 221184, 294912, 3668, 76460586), AE: (4.0, 1024, 1024, 1004, 1344339),
          MNIST: (2.5, 73728, 73728, 668, 9891466)}
# instructions of the layers by CMSIS-NN on a Cortex-M4 and an M55; multiply-adds; bytes alive
MICRO = "micro_kws"
BYTES = {KWS: (7839595, 1779254, 2656768, 16000), RESNET: (29846401, 4803455, 12501632, 49152),
         VWW: (24712415, 6425085, 7489664, 55296), AE: (579650, 147497, 264192, 1280),
         MICRO: (17698364, 4191913, 5712352, 43008)}
TARGETS = {"cortex-m4": "qemu-system-arm", "cortex-m55": "qemu-system-arm", "cortex-m0": "qemu-system-arm",
           "rv32imc": "qemu-system-riscv32"}


class Figures:
    def __init__(self, args):
        self.args, self.above = args, 0
        self.work = pathlib.Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)

    def run(self, *words, flags="", fails=False):
        env = {**os.environ, "BURNCC_CFLAGS": flags}
        done = subprocess.run([self.args.burncc, *map(str, words)], capture_output=True, text=True, env=env)
        if done.returncode and not fails:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout + done.stderr

    def model(self, name):
        path = pathlib.Path(self.args.models) / f"{name}.onnx"
        return path if path.exists() else None

    def bench(self, model, target, *options):
        said = self.run("bench", model, "--quiet", "--json", "--target", target, "--runner", TARGETS[target], *options)
        return json.loads(said.splitlines()[-1])

    def report(self, model, *options, flags=""):
        return self.run(model, "--report", "-f", "-o", self.work / "m.c", *options, flags=flags)

    def goal(self, value, most):
        good = value <= most
        self.above += not good
        return f"{value:,} of {most:,} {'ok' if good else 'ABOVE'}"

    def table(self, title, columns):
        print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)

    def row(self, *cells):
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def floats(f):
    f.table("Floats, Cortex-M4, -O2",
            ["", "instructions", "a multiply-add", "workspace", "with --ram, of onnx2c's half"])
    for name, (most, alive, theirs, _, _) in FLOATS.items():
        if not (model := f.model(name)):
            continue
        got = f.bench(model, "cortex-m4")
        half = "-"
        if name in (VWW, RESNET):
            made = f.run(model, "--target", "cortex-m4", "--ram", theirs // 2, "-f", "-o", f.work / "m.c", "--report")
            half = f.goal(int(re.search(r"workspace (\d+)", made)[1]), theirs // 2)
        f.row(name, f"{got['instructions']:,}", f.goal(round(got["per_multiply_add"], 2), most),
              f.goal(got["workspace_bytes"], alive), half)


def sizes(f):
    f.table("Floats, Cortex-M4, --optimize size, -Os", ["", ".text", "instructions"])
    for name, (_, _, _, text, instructions) in FLOATS.items():
        if not (model := f.model(name)):
            continue
        said = f.report(model, "--target", "cortex-m4", "--optimize", "size", flags="-Os")
        run = f.run("bench", model, "--quiet", "--json", "--target", "cortex-m4", "--runner", TARGETS["cortex-m4"],
                    "--optimize", "size", flags="-Os")
        f.row(name, f.goal(int(re.search(r"\.text (\d+)", said)[1]), int(1.2 * text)),
              f.goal(json.loads(run.splitlines()[-1])["instructions"], instructions))


def integer_models(f):
    for name in BYTES:
        if model := f.model(f"{name}_qdq"):
            yield name, model


def integers(f):
    f.table("int8 with --io int8, of CMSIS-NN's instructions (M55: 1.3 times)",
            ["", "Cortex-M4", "M55", "M0, a multiply-add", "workspace", "with input and output"])
    for name, model in integer_models(f):
        m4, m55, macs, alive = BYTES[name]
        got = {t: f.bench(model, t, "--io", "int8") for t in ("cortex-m4", "cortex-m55", "cortex-m0")}
        inside = "-"
        if name != MICRO:
            said = f.report(model, "--target", "cortex-m4", "--io", "int8", "--io-in-workspace")
            inside = int(re.search(r"workspace (\d+)", said)[1])
            inside = f.goal(inside, 65536) if name == VWW else f"{inside:,}"
        f.row(name, f.goal(got["cortex-m4"]["instructions"], m4),
              f.goal(got["cortex-m55"]["instructions"], int(1.3 * m55)),
              f.goal(round(got["cortex-m0"]["instructions"] / macs, 2), 12),
              f.goal(got["cortex-m4"]["workspace_bytes"], alive), inside)


def mobilenet(f):
    """MobileNetV2 of 0.35 at 96 x 96, of floats, and of integers with ranges from noise."""
    floats, bytes_ = f.work / "mobilenet_v2.onnx", f.work / "mobilenet_v2_bytes.onnx"
    for label in range(2):
        where = f.work / "noise" / str(label)
        where.mkdir(parents=True, exist_ok=True)
        (where / "a.ppm").write_bytes(b"P6 96 96 255\n" + random.Random(label).randbytes(3 * 96 * 96))
    f.run(ROOT / "models" / "mobilenet_v2.c", "--set", "width=0.35", "--set", "size=96", "--quiet", "-f", "-o", floats)
    f.run("quantize", floats, "--data", f"images:{f.work / 'noise'},size=96x96", "-f", "-o", bytes_, "--quiet")
    return {"MobileNetV2 0.35, float": floats, "MobileNetV2 0.35, int8": bytes_}


def budgets(f):
    f.table("Workspace within shares of the plan, bytes; moved; instructions (Cortex-M4)",
            ["", "100 %", "75 %", "50 %", "25 %", "the least"])
    models = {f"{name}, {kind}": f.model(name + end) for name in (VWW, RESNET)
              for kind, end in (("float", ""), ("int8", "_qdq"))}
    for name, model in {**models, **mobilenet(f)}.items():
        if not model:
            continue
        plan = None
        cells = []
        for share in (100, 75, 50, 25, 0):
            ram = "64M" if share == 100 else str(plan * share // 100) if share else "64"
            options = ["--target", "cortex-m4", "--embed-limit", "64M", "--ram"]
            said = f.run(model, *options, ram, "-f", "-o", f.work / "m.c", "--dump", "schedule", fails=True)
            least = re.search(r"needs a workspace of (\d+) bytes", said)
            if least and share:
                cells.append("")
                continue
            if least:
                ram = least[1]
                said = f.run(model, *options, ram, "-f", "-o", f.work / "m.c", "--dump", "schedule")
            bytes_ = int(re.search(r"workspace (\d+)", said)[1])
            plan = plan or bytes_
            moved = sum(int(n) for n in re.findall(r"that move (\d+)", said))
            count = f.bench(model, "cortex-m4", "--ram", ram)["instructions"]
            cells.append(f"{bytes_:,}; {moved:,}; {count / 1e6:.2f} M")
        f.row(name, *cells)


PARTS = {"float": floats, "size": sizes, "int8": integers, "budgets": budgets}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("--models", required=True, metavar="DIR")
    p.add_argument("--work", metavar="DIR", help="where files go (default: a folder that is removed)")
    p.add_argument("--only", default=",".join(PARTS))
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.work = args.work or folder
        f = Figures(args)
        for part in args.only.split(","):
            PARTS[part](f)
    return f.above > 0


if __name__ == "__main__":
    sys.exit(main())
