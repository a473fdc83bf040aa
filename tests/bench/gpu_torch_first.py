#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch's first result, for gpu_first.py.

usage: gpu_torch_first.py save FOLDER KEY ...     the parameters of each network into FOLDER/NAME_PRECISION.pt
       gpu_torch_first.py run FOLDER KEY          builds the network on the device, loads them and runs once, eager

A key is NAME:BATCH:PRECISION, as in gpu_torch.py. Of a run one line: `first IMPORT LOAD RUN`, seconds since the
interpreter began this file; the result is on the host then."""
import pathlib
import sys
import time

BEGAN = time.perf_counter()
import torch                                        # noqa: E402
from gpu_torch import DEVICE, DTYPES, NETWORKS      # noqa: E402


def build(key):
    name, batch, precision = key.split(":")
    with torch.device(DEVICE):
        module, inputs, words = NETWORKS[name](int(batch))
        dtype = DTYPES[precision]
        inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
        return module.eval().to(dtype), inputs, words


def path_of(folder, key):
    name, _, precision = key.split(":")
    return pathlib.Path(folder) / f"{name}_{precision}.pt"


def first_tensor(result):
    return result if isinstance(result, torch.Tensor) else first_tensor(result[0])


def run(folder, key):
    imported = time.perf_counter()
    module, inputs, words = build(key)
    module.load_state_dict(torch.load(path_of(folder, key), map_location=DEVICE, mmap=True, weights_only=True))
    loaded = time.perf_counter()
    first_tensor(module(*inputs, **words)).cpu()
    print("first", *(f"{t - BEGAN:.3f}" for t in (imported, loaded, time.perf_counter())), flush=True)


def main():
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    what, folder, *keys = sys.argv[1:]
    for key in keys:
        if what == "save":
            torch.save(build(key)[0].state_dict(), path_of(folder, key))
        else:
            run(folder, key)


if __name__ == "__main__":
    main()
