#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The zoo, models/*.c, against the networks themselves in PyTorch: torchvision's, Hugging Face's, and for those that
have no package the ones of networks.py.

usage: torch_refs.py BURNCC [NAME]... [--target T]

For each: the network is built with drawn parameters (batch norms' statistics too), its state_dict is saved as its
library saves it, `burncc run --weights FILE --strict` loads that into the description, and every output must be within
1e-4 of the largest element. Sizes are reduced where the arithmetic stays the same. Prints TAP; skips what torch,
torchvision or transformers would have to be there for."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402

BOUND = 1e-4


def draw(torch, module, seed=3):
    """Parameters and statistics that leave nothing without effect: norms of neither 1 nor 0, no bias of 0, embeddings
    so small that an epsilon shows."""
    g = torch.Generator().manual_seed(seed)
    for name, p in list(module.named_parameters()) + list(module.named_buffers()):
        if not p.dtype.is_floating_point or name.endswith("inv_freq"):
            continue
        noise = torch.randn(p.shape, generator=g)
        if name.endswith("running_var"):
            value = 0.5 + noise.abs()
        elif p.dim() > 1:
            table = any(word in name for word in ("embed", "shared", "wte", "wpe"))
            value = noise * (0.03 if table else 1.4 * p[0].numel()**-0.5)
        else:
            value = 0.1 * noise + (1 if "norm" in name.lower() and "weight" in name else 0)
        p.data.copy_(value)
    return module.eval()


class Case:
    """A network, how the description is told its sizes, what it is given, and what it gives."""

    def __init__(self, make, model, settings, inputs, outputs, call=None, maps=()):
        self.make, self.model, self.settings, self.inputs = make, model, settings, inputs
        self.outputs, self.call, self.maps = outputs, call, maps


def run(burncc, case, folder, weights, given, target):
    import numpy as np
    command = [burncc, "run", str(harness.ROOT / "models" / f"{case.model}.c"), "--quiet", "--target", target,
        "--weights", str(weights), "--strict", "--output", str(folder / "out")]
    for setting in case.settings.split():
        command += ["--set", setting]
    for rename in case.maps:
        command += ["--map", rename]
    for name, array in given.items():
        np.save(folder / f"{name}.npy", array)
        command += ["--input", f"{name}={folder / name}.npy"]
    (folder / "out").mkdir()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return {p.stem: np.load(p) for p in (folder / "out").glob("*.npy")}


def save(torch, module, folder):
    """As the library does: Hugging Face's into model.safetensors, without the names that share a tensor."""
    if hasattr(module, "save_pretrained"):
        module.save_pretrained(folder)
        return folder / "model.safetensors"
    torch.save(module.state_dict(), folder / "weights.pt")
    return folder / "weights.pt"


def check(torch, burncc, case, target):
    """The largest difference, as a share of the largest element, over all outputs."""
    import numpy as np
    module = draw(torch, case.make())
    given = case.inputs(torch.Generator().manual_seed(5))
    with torch.no_grad():
        want = (case.call or (lambda m, x: m(*x.values())))(module, given)
    want = [w.numpy() for w in (want if isinstance(want, (list, tuple)) else [want])]
    with tempfile.TemporaryDirectory(prefix="burncc-refs-") as tmp:
        folder = pathlib.Path(tmp)
        got = run(burncc, case, folder, save(torch, module, folder), {k: v.numpy() for k, v in given.items()}, target)
    worst = 0.0
    for name, w in zip(case.outputs, want, strict=True):
        if got[name].shape != w.shape or not np.isfinite(w).all():
            return np.inf
        worst = max(worst, float(np.abs(got[name] - w).max() / np.abs(w).max()))
    return worst


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("names", nargs="*")
    p.add_argument("--target", default="generic")
    args = p.parse_args()
    try:
        import torch
        import networks
    except ImportError as missing:
        print(f"1..0 # SKIP {missing}")
        return 0
    torch.set_num_threads(1)
    cases = {n: c for n, c in networks.cases().items() if not args.names or n in args.names}
    bad = 0
    for i, (name, case) in enumerate(cases.items(), 1):
        if isinstance(case, str):
            print(f"ok {i} - {name} # SKIP {case}")
            continue
        try:
            differ = check(torch, args.burncc, case, args.target)
            said, ok = f"{differ:.1e} of the largest", differ <= BOUND
        except subprocess.CalledProcessError as e:
            said, ok = e.stderr.strip().replace("\n", "; "), False
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {i} - {name}: {said}", flush=True)
    print(f"1..{len(cases)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
