#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every operator with every element type that its schema allows, against ONNX Runtime or the reference evaluator.

In: models with inputs and outputs that make.py writes from ONNX's node tests in the interpreter that --python names (it
has numpy, onnx and onnxruntime). Out: a state per case, compared with status.txt.
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O0")
    p.add_argument("--python", default=sys.executable, help="an interpreter with numpy, onnx and onnxruntime")
    p.add_argument("--archives", type=pathlib.Path, default=harness.shared("conformance"), help="folder of ONNX's tests, as for conformance/run.py")
    args = harness.parse(p)
    if subprocess.run([args.python, "-c", "import numpy, onnx, onnxruntime"], capture_output=True).returncode:
        harness.skip_all(args, f"{args.python} lacks numpy, onnx or onnxruntime; name another with --python")
    found = sorted(args.archives.glob("onnx-*-node.tar.xz"))
    if not found:
        harness.skip_all(args, f"no onnx-*-node.tar.xz in {args.archives}")
    tests = harness.unpack(found[-1], args.cache)
    first = next(tests.glob("**/test_abs/model.onnx")).parent.parent
    root = pathlib.Path(args.cache) / "dtypes"
    subprocess.run([args.python, str(HERE / "make.py"), str(root), str(first), args.filter], check=True)
    cases = []
    for model in sorted(root.glob("*/*/model.onnx")):
        name = str(model.parent.relative_to(root))
        cases.append(harness.Case(name, name.split("/")[0], [args.burncc, "verify", str(model), "--target", args.target, "--quiet"]))
    return harness.run(cases, args, HERE / "status.txt", "Operators and element types: name, state, reason. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
