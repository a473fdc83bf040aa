#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Well-known architectures as two PyTorch exporters write them, with drawn weights, against ONNX Runtime.

In: an archive of ONNX graphs without weights and the script that draws them. For each graph: fill it, run it in ONNX
Runtime on drawn inputs (both in the interpreter that --python names, which has numpy, onnx and onnxruntime), then
`burncc verify`. Out: a state per graph, compared with status.txt (status-gpu.txt for --target vulkan: what Mesa's
lavapipe does). The largest error of each output must be at most 1e-4 of its largest element."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402


def main():
    args, root, fill = harness.architectures(__doc__.splitlines()[0])
    cases = []
    for stripped in sorted(root.glob("*.onnx")):
        name = stripped.name.removesuffix(".onnx")
        command = [
            args.python,
            str(HERE / "one.py"),
            str(fill),
            str(stripped), args.burncc, "verify", "--target", args.target, "--quiet"
        ]
        cases.append(harness.Case(name, name.rpartition(".")[2], command))
    return harness.run(cases, args, HERE / ("status-gpu.txt" if args.target == "vulkan" else "status.txt"),
                       "PyTorch's exports: name, state, reason. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
