#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real trained models against the outputs that were recorded with them.

In: a folder of models in ONNX's test layout, each with its data sets; where a reference runtime gives two valid
answers, optall_output_N.pb is the second. Sets of stateful models carry their own state inputs, so each set stands
alone. Out: a state per model, compared with status.txt. Each model is compiled as it would be for use: -O3, all
fusions."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="", timeout=300)
    p.add_argument("--models", type=pathlib.Path, default=harness.shared("models"), help="folder of the models")
    args = harness.parse(p)
    cases = []
    for model in sorted(args.models.glob("*/model.onnx")):
        command = [args.burncc, "verify", str(model), "--target", args.target, "--ulp", "4", "--quiet"]
        cases.append(harness.Case(model.parent.name, model.parent.name.split("_")[0], command))
    if not cases:
        harness.skip_all(args, f"no models in {args.models}")
    return harness.run(cases, args, HERE / "status.txt",
                       "Trained models: name, state, reason. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
