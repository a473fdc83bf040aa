#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The zoo, models/*.c, against the networks themselves in PyTorch: torchvision's, Hugging Face's, and for those that
have no package the ones of networks.py.

usage: torch_refs.py BURNCC [NAME]... [--target T] [--record]

For each: the network is built with the parameters of recorded.py, its state_dict is saved as its library saves it,
`burncc run --weights FILE --strict` loads that into the description, and every output must be within 1e-4 of the
largest element. --record writes recorded.json of them. Sizes are reduced where the arithmetic stays the same.
Prints TAP; skips what torch,
torchvision or transformers would have to be there for."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402
import recorded     # noqa: E402
from tap import Tap, skip_all   # noqa: E402


def draw(torch, case):
    """The network with the parameters and statistics of recorded.py, by the description's names."""
    module = case.make()
    kept = module.state_dict()
    for name, p in list(module.named_parameters()) + list(module.named_buffers()):
        if name not in kept or not p.dtype.is_floating_point:
            continue
        for rename in case.maps:
            name = re.sub(*rename.split("=", 1), name)
        data = recorded.parameter(name, p.shape)
        p.data.copy_(torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(p.shape))
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
    """The largest difference, as a share of the largest element, over all outputs, and what recorded.py needs."""
    import numpy as np
    module = draw(torch, case)
    given = case.inputs(torch.Generator().manual_seed(5))
    with torch.no_grad():
        want = (case.call or (lambda m, x: m(*x.values())))(module, given)
    want = [w.numpy() for w in (want if isinstance(want, (list, tuple)) else [want])]
    with tempfile.TemporaryDirectory(prefix="burncc-refs-") as tmp:
        folder = pathlib.Path(tmp)
        got = run(burncc, case, folder, save(torch, module, folder), {k: v.numpy() for k, v in given.items()}, target)
    worst, outputs = 0.0, {}
    for name, w in zip(case.outputs, want, strict=True):
        same = got[name].shape == w.shape and np.isfinite(w).all()
        largest = float(np.abs(w).max())
        worst = max(worst, float(np.abs(got[name] - w).max() / largest) if same else np.inf)
        outputs[name] = {"shape": list(w.shape), "largest": float(f"{largest:.7g}"),
            "values": [float(f"{v:.7g}") for v in recorded.samples(w.ravel().tolist())]}
    given = {k: {"shape": list(v.shape)} if v.dtype.is_floating_point else v.tolist() for k, v in given.items()}
    return worst, {"model": case.model, "settings": case.settings, "given": given, "outputs": outputs}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("names", nargs="*")
    p.add_argument("--target", default="generic")
    p.add_argument("--record", action="store_true", help="write recorded.json")
    args = p.parse_args()
    try:
        import torch
        import networks
    except ImportError as missing:
        return skip_all(missing)
    torch.set_num_threads(1)
    cases = {n: c for n, c in networks.cases().items() if not args.names or n in args.names}
    tap, known = Tap(), {}
    for name, case in cases.items():
        if isinstance(case, str):
            tap.skip(name, case)
            continue
        try:
            differ, known[name] = check(torch, args.burncc, case, args.target)
            said, ok = f"{differ:.1e} of the largest", differ <= recorded.BOUND
        except subprocess.CalledProcessError as e:
            said, ok = e.stderr.strip().replace("\n", "; "), False
        tap.check(f"{name}: {said}", ok)
    if args.record:
        lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in known.items()]
        (HERE / "recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
