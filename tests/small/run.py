#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models from nothing but Python's standard library: import, compile with each target and C compiler, run,
compare.

Out: one case per model, target and compiler found on this machine. The tolerances are float32's: rtol 1e-5, atol 1e-6.
"""
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import cases        # noqa: E402
import harness      # noqa: E402
import onnx_wire    # noqa: E402


def write(folder, made):
    """The model in ONNX's test layout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(made.bytes)
    for name, data in made.files.items():
        (folder / name).write_bytes(data)
    for k, (ins, outs) in enumerate(made.sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir(exist_ok=True)
        for what, tensors in (("input", ins), ("output", outs)):
            for i, (name, dtype, values) in enumerate(tensors):
                (data / f"{what}_{i}.pb").write_bytes(onnx_wire.value(name, dtype, values))


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    p.add_argument("--targets", default="portable,generic,native", help="burncc targets, comma-separated")
    p.add_argument("--ccs", default="gcc,clang", help="C compilers, comma-separated; those missing are left out")
    p.add_argument("--only-write", type=pathlib.Path, metavar="DIR", help="write the models there and stop")
    args = harness.parse(p)
    root = args.only_write or pathlib.Path(args.cache) / "small"
    made = [(f.__name__, f()) for f in cases.ALL]
    for name, m in made:
        write(root / name, m)
    if args.only_write:
        return 0
    ccs = [c for c in args.ccs.split(",") if shutil.which(c)] or [args.cc]
    runs = []
    for target in args.targets.split(","):
        for cc in ccs:
            def add(name, suffix, *flags):
                command = [
                    "env", f"CC={cc}", *flags, args.burncc, "verify",
                    str(root / name / "model.onnx"), "--target", target, "--rtol", "1e-5", "--atol", "1e-6", "--quiet"
                ]
                runs.append(harness.Case(f"{name}:{target}:{cc}{suffix}", f"{target} {cc}", command))
            for name, _ in made:
                add(name, "")
            for f in () if args.sanitize else cases.OPTIMIZED:
                add(f.__name__, ":-O3", "BURNCC_CFLAGS=-O3")
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
