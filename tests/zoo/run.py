#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The zoo, models/*.c, against PyTorch's exports of the same networks.

In: the archive of architectures/run.py. For each network that both have: the parameters drawn once, loaded into the
description under PyTorch's names, and the outputs compared with ONNX Runtime's of the ONNX file (twin.py). Out: a state
per graph, compared with status.txt. Networks of more than 100 million parameters run only where --filter names them or
BURNCC_TEST_ALL is set."""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402

LENGTH = "--dim batch=1 --dim length=128 "
TWINS = {
    "densenet121": "densenet",
    "efficientnet_b0": "efficientnet_b0",
    "mobilenet_v2": "mobilenet_v2",
    "resnet18": "resnet --set depth=18",
    "resnet50": "resnet --set depth=50",
    "squeezenet1_1": "squeezenet",
    "vgg11_bn": "vgg --set depth=11 --set batch_norm=1",
    "vit_b_16": "vit_b_16",
    "bert_base": "bert --set pooler=0 " + LENGTH,
    "minilm_l6": "bert --set layers=6 --set width=384 --set pooler=0 " + LENGTH,
    "distilbert": "distilbert " + LENGTH,
    "t5_small_encoder": "t5_encoder " + LENGTH,
    "gpt2": "gpt2 " + LENGTH,
    "llama_tiny": "llama --set layers=8 --set width=512 --set heads=8 --set kv_heads=4 --set inner=1376 --set eps=1e-6 "
    + LENGTH,
    "whisper_tiny_encoder": "whisper --set decoder=0",
}
LARGE = ("vgg11_bn", "bert_base", "gpt2")


def main():
    args, root, fill = harness.architectures(__doc__.splitlines()[0])
    cases = []
    for stripped in sorted(root.glob("*.onnx")):
        name = stripped.name.removesuffix(".onnx")
        network = name.rpartition(".")[0]
        if network not in TWINS or (network in LARGE and not args.filter and not os.environ.get("BURNCC_TEST_ALL")):
            continue
        model, *settings = TWINS[network].split()
        command = [args.python, str(HERE / "twin.py"), str(fill), str(stripped),
            str(harness.ROOT / "models" / f"{model}.c"), args.burncc, args.target]
        cases.append(harness.Case(name, name.rpartition(".")[2], command + settings))
    return harness.run(cases, args, HERE / "status.txt", "The zoo's twins: name, state. Written by run.py --bless.")


if __name__ == "__main__":
    sys.exit(main())
