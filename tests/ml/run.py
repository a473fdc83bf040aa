#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The operators of ai.onnx.ml against ONNX Runtime, each in several configurations.

In: models with inputs and outputs that make.py writes in the interpreter that --python names (it has numpy, onnx and
onnxruntime). Out: a state per case, compared with status.txt. Floats may differ by 1e-5 + 1e-4 of the value, integers
not at all unless the case says why."""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    harness.add_python(p)
    p.add_argument("--keep", action="store_true", help="use the models of the last run")
    args = harness.parse(p)
    harness.require_reference(args)
    root = pathlib.Path(args.cache) / "ml"
    if not args.keep:
        subprocess.run([args.python, str(HERE / "make.py"), str(root), args.filter], check=True)
    cases = harness.made_cases(root, args)
    return harness.run(cases, args, HERE / "status.txt",
                       "Operators of ai.onnx.ml: name, state, reason. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
