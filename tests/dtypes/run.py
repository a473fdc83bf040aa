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
    harness.add_python(p)
    p.add_argument("--archives", type=pathlib.Path, default=harness.shared("conformance"),
                   help="folder of ONNX's tests, as for conformance/run.py")
    args = harness.parse(p)
    harness.require_reference(args)
    node_tests = harness.node_tests(args)
    root = pathlib.Path(args.cache) / "dtypes"
    subprocess.run([args.python, str(HERE / "make.py"), str(root), str(node_tests), args.filter], check=True)
    cases = harness.made_cases(root, args)
    return harness.run(cases, args, HERE / "status.txt",
                       "Operators and element types: name, state, reason. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
