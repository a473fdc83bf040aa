#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each step of recorded training runs by itself, beside double precision. Ten steps from one start need not end at one
place: an input of a ReLU that is zero but for rounding has its gradient or has not, and an optimizer that divides by
the size of a gradient makes a step of the sign of noise; two runs of PyTorch differ so too. What can be held to the
bound is each step: gradients beside double precision's at the same parameters, and the ends beside the optimizer's, in
double precision, of the same gradients.

usage: each_step.py BURNCC [FOLDER] [--optimizer NAME]... [--cc CC] [--target T] [--bound 2e-5]
FOLDER: the case mnist_cnn as recorded. Needs PyTorch with safetensors, skips everything where it is not.
Prints TAP; a line says how far from a whole run in double precision both this run's end and the recorded one are."""
import argparse, json, os, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import run      # noqa: E402

try:
    import torch
    from safetensors.torch import load_file
except (ImportError, AttributeError):      # safetensors without PyTorch
    torch = None


def forward(p, x):
    """The case's model: convolutions, average pool, two linear layers."""
    f = torch.nn.functional
    x = f.conv2d(f.conv2d(x, p["conv1.weight"], p["conv1.bias"]), p["conv2.weight"], p["conv2.bias"])
    x = f.adaptive_avg_pool2d(f.relu(x), (8, 8)).flatten(1)
    return f.linear(f.relu(f.linear(x, p["linear1.weight"], p["linear1.bias"])), p["linear2.weight"],
                    p["linear2.bias"])


def gradients(p, x, y):
    p = {k: v.detach().double().clone().requires_grad_() for k, v in p.items()}
    torch.nn.functional.cross_entropy(forward(p, x.double()), y).backward()
    return {k: v.grad for k, v in p.items()}


def distance(a, b):
    return max(((a[k].double() - b[k]).abs().max() / b[k].abs().max()).item() for k in b)


def optimizer_of(name, values, h):
    o = torch.optim
    if name in ("sgd", "momentum", "nesterov"):
        return o.SGD(values, **{k: h[k] for k in ("lr", "momentum", "dampening", "weight_decay", "nesterov")})
    if name in ("adam", "adamw"):
        make = o.Adam if name == "adam" else o.AdamW
        return make(values, h["lr"], tuple(h["betas"]), h["eps"], h["weight_decay"])
    if name == "rmsprop":
        return o.RMSprop(values, h["lr"], h["alpha"], h["eps"], h["weight_decay"], h["momentum"], h["centered"])
    return o.Adagrad(values, h["lr"], h["lr_decay"], h["weight_decay"], eps=h["eps"])


def ends(name, hyper, start, gradient):
    """The parameters after ten steps in double precision; gradient: of a step's number and the parameters."""
    p = {k: v.double().clone() for k, v in start.items()}
    optimizer = optimizer_of(name, list(p.values()), hyper)
    for i in range(10):
        for k, g in gradient(i, p).items():
            p[k].grad = g.double()
        optimizer.step()
    return p


def worst_gradient(folder, data):
    """Of ten steps: the largest distance from double precision's gradients at the parameters that the step has."""
    worst = 0
    for i in range(10):
        got, p = (load_file(os.path.join(folder, f"{what}{i}.safetensors")) for what in ("gradients", "params"))
        worst = max(worst, distance(got, gradients(p, data[f"x{i}"], data[f"y{i}"])))
    return worst


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("burncc"), p.add_argument("folder", nargs="?", default="")
    p.add_argument("--optimizer", action="append"), p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    p.add_argument("--target", default="generic"), p.add_argument("--bound", type=float, default=2e-5)
    args = p.parse_args()
    if torch is None or not os.path.isdir(args.folder):
        print(f"1..0 # SKIP {'no PyTorch' if torch is None else 'no recorded runs'}")
        return 0
    torch.set_num_threads(1)
    args.blas, args.apart, args.described, args.cflags, args.runtime = None, False, False, "", []
    case = json.load(open(os.path.join(args.folder, "case.json")))
    data, start = (load_file(os.path.join(args.folder, f)) for f in ("reference.safetensors", "weights.safetensors"))
    names = args.optimizer or list(case["runs"])
    bad = 0
    for count, name in enumerate(names, 1):
        hyper = case["runs"][name]["hyper"]
        with tempfile.TemporaryDirectory() as kept:
            run.run_case(args, args.folder, name, case["runs"][name], case, kept)
            worst = worst_gradient(kept, data)
            ours = load_file(os.path.join(kept, "final.safetensors"))
            same = ends(name, hyper, start, lambda i, _: load_file(os.path.join(kept, f"gradients{i}.safetensors")))
        whole = ends(name, hyper, start, lambda i, q: gradients(q, data[f"x{i}"], data[f"y{i}"]))
        recorded = {k: data[f"final.{name}.{k}"] for k in ours}
        update = distance(ours, same)
        ok = max(worst, update) <= args.bound
        bad += not ok
        print(f"{'ok' if ok else 'not ok'} {count} - {name}: gradients={worst:.1e} update={update:.1e}")
        print(f"# ends from double's: here {distance(ours, whole):.1e}, recorded {distance(recorded, whole):.1e}; "
              f"here from recorded {distance(ours, {k: v.double() for k, v in recorded.items()}):.1e}", flush=True)
    print(f"1..{len(names)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
