#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models out as ONNX and back (round.py): the zoo in small, the small models, and with BURNCC_TEST_ALL trained ones
where they are.

In: the interpreter that --python names has numpy, onnx and onnxruntime. Out: a state per model, compared with
status.txt, which says why where something is missing."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402

BLOCK = "width=64 heads=2 layers=1 "
ZOO = {
    "albert": BLOCK + "embedding=16 vocabulary=50 positions=32",
    "bert": BLOCK + "vocabulary=50 positions=32",
    "densenet": "size=32 classes=10",
    "distilbert": BLOCK + "vocabulary=50 positions=32",
    "efficientnet_b0": "size=32 classes=10",
    "gpt2": BLOCK + "vocabulary=50 positions=32",
    "gru_classifier": "hidden=8",
    "lenet": "",
    "llama": BLOCK + "kv_heads=1 inner=96 vocabulary=50",
    "lstm_classifier": "vocabulary=50 features=16 hidden=16",
    "mlp": "",
    "mobilenet_v2": "size=32 classes=10",
    "resnet": "size=32 classes=10",
    "squeezenet": "size=64 classes=10",
    "t5_encoder": BLOCK + "size=16 inner=96 vocabulary=50",
    "unet": "width=8 size=32",
    "vgg": "depth=11 batch_norm=1 size=32 classes=10",
    "vit_b_16": BLOCK + "size=32 classes=10",
    "whisper": BLOCK + "vocabulary=50 mels=8 frames=40",
    "yolox_nano": "",
}


def zoo_case(args, name):
    settings = [word for one in ZOO[name].split() for word in ("--set", one)]
    return [args.burncc, str(harness.ROOT / "models" / f"{name}.c"), *settings]


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    harness.add_python(p)
    args = harness.parse(p)
    harness.require_reference(args)
    root = pathlib.Path(args.cache) / "export"
    subprocess.run([sys.executable, str(HERE.parent / "small/run.py"), "--only-write", str(root)], check=True)
    models = [("zoo", n, zoo_case(args, n)) for n in sorted(ZOO)]
    models.append(("zoo", "digits", [args.burncc, str(harness.ROOT / "models/digits/digits.onnx")]))
    trained = [("trained", harness.shared("models"))] if os.environ.get("BURNCC_TEST_ALL") else []
    for family, folder in [("small", root), *trained]:
        models += [(family, m.parent.name, [args.burncc, str(m)]) for m in sorted(folder.glob("*/model.onnx"))]
    cases = [harness.Case(f"{family}/{name}:{what}", f"{family} {what}",
                          [args.python, str(HERE / "round.py"), what, *command])
             for what in ("values", "code") for family, name, command in models]
    return harness.run(cases, args, HERE / "status.txt",
                       "Models out as ONNX and back: name, state, reason. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
