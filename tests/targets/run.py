#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Targets that this machine may not be: small models, and those of ONNX's node tests that have templates, under
emulators.

Out: one case per model and target. aarch64 wants gcc-aarch64-linux-gnu and qemu-user; wasm-simd128 wants clang, lld,
wasi-libc, libclang-rt-dev-wasm32 and node. A target whose tools are missing here is left out, with a line that says
so. Files of several targets run here, once as the processor is and once under qemu's processors that have less."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "small")]
import cases        # noqa: E402
import harness      # noqa: E402
import run as small # noqa: E402

NODES = re.compile(
    r"^test_(conv_with_(strides_padding|autopad_same)|convtranspose(_pads|_dilations)?|basic_conv_with_padding|"
    r"matmul_[234]d|gemm_(all_attributes|transposeB)"
    r"|averagepool_2d_(pads|same_upper)|maxpool_2d_(dilations|pads)|softmax_axis_[01]|"
    r"layer_normalization_4d_axis[12]|lstm_defaults|gru_defaults|attention_4d(_causal)?"
    r"|resize_upsample_scales_linear|batchnorm_example|instancenorm_example|erf|exp|tanh|"
    r"qlinearmatmul_2D_uint8_float32|reduce_sum_square_do_not_keepdims_random|top_k)$"
)
SEVERAL = "x86-64-v2,x86-64-v3,x86-64-v4"

# target, C compiler, what runs its programs; aarch64 and wasm-simd128 run the small models too
TARGETS = [
    ("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    ("wasm-simd128", "clang --target=wasm32-wasi", f"node --no-warnings {HERE / 'wasi.mjs'}"),
    ("generic", "aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    ("x86-64-v2", "cc", ""),
    (SEVERAL, "gcc", ""),
    (SEVERAL, "clang", ""),
    (SEVERAL, "gcc", "qemu-x86_64 -cpu max"),
    (SEVERAL, "gcc", "qemu-x86_64 -cpu Nehalem"),
]


def works(cc, runner):
    """Do the tools build and run a program that says 0?"""
    command = [*cc.split(), "-x", "c", "-", "-lm", "-o"]
    if not shutil.which(command[0]) or (runner and not shutil.which(runner.split()[0])):
        return False
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        built = subprocess.run(
            [*command, program],
            input=b"#include <math.h>\n#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n",
            capture_output=True)
        return built.returncode == 0 and subprocess.run([*runner.split(), program], capture_output=True).returncode == 0


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1", timeout=120)
    p.add_argument("--archives", type=pathlib.Path, default=harness.shared("conformance"),
                   help="where onnx-*-node.tar.xz lies")
    p.add_argument("--only", default="", help="regular expression on the targets")
    args = harness.parse(p)
    root = pathlib.Path(args.cache) / "small"
    small_models, nodes = [], []
    for f in cases.EVERYWHERE:
        small.write(root / f.__name__, f())
        small_models.append((f.__name__, root / f.__name__, ["--rtol", "1e-5", "--atol", "1e-6"]))
    if list(args.archives.glob("onnx-*-node.tar.xz")):
        nodes = [(node.name, node, ["--ulp", "4"]) for node in sorted(harness.node_tests(args).iterdir())
                 if NODES.search(node.name)]
    runs = []
    for target, cc, runner in TARGETS:
        family = " ".join(
            filter(None, [target, cc.split()[0], *runner.split()[:1], *re.findall(r"-cpu (\S+)", runner)]))
        if not re.search(args.only, family):
            continue
        if not works(cc, runner):
            print(f"# left out: {family}: the tools are not here")
            continue
        for name, folder, options in nodes + (small_models if target in ("aarch64", "wasm-simd128") else []):
            command = [
                "env", f"CC={cc}", args.burncc, "verify",
                str(folder / "model.onnx"), "--target", target, "--quiet", *options
            ]
            if runner:
                command += ["--runner", runner]
            runs.append(harness.Case(f"{name}:{family}", family, command))
    if not runs:
        harness.skip_all(args, "no target that the tools here can build and run")
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
