#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Losses and optimizers beside PyTorch's own, in double precision: the loss and gradients of a linear layer, parameters
after ten updates of given gradients. (losses.py and optimizers.py have the formulas, and need no PyTorch.)

usage: torch_refs.py BURNCC [--only REGEX] [--cc CC]
Muon may be 1e-3 apart: PyTorch orthogonalises in bfloat16. Needs PyTorch and numpy, skips everything where they are
not. Prints TAP."""
import argparse
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import Tap, skip_all       # noqa: E402

try:
    import numpy as np
    import torch
    F, O = torch.nn.functional, torch.optim
except ImportError:
    torch = None

ROWS, FEATURES, CLASSES, STEPS = 4, 6, 5, 7
BOUND, ROUGH = 2e-6, 1e-3
MODEL = """#include <burncc/model.h>
MODEL(m)
{
    Tensor x = linear(input("x", F32, %s), "fc", 5);
    output("out", %s);
}
"""


def losses():
    """Text of --loss, the targets of these names, the same in PyTorch."""
    w = torch.tensor([1, 2, .5, 1.5, 3]).double()
    weight = "weight=[1,2,0.5,1.5,3]"
    ce, logits = F.cross_entropy, F.binary_cross_entropy_with_logits
    return [
        ("cross_entropy", "classes", ce),
        (f"cross_entropy(label_smoothing=0.1,{weight})", "classes", lambda y, t: ce(y, t, w, label_smoothing=.1)),
        (f"cross_entropy(label_smoothing=0.1,{weight},ignore_index=2)", "some",
         lambda y, t: ce(y, t, w, ignore_index=2, label_smoothing=.1)),
        ("cross_entropy(reduction=sum,ignore_index=2)", "some", lambda y, t: ce(y, t, ignore_index=2, reduction="sum")),
        (f"nll({weight})", "classes", lambda y, t: F.nll_loss(y, t, w)),
        ("soft_cross_entropy(label_smoothing=0.2)", "shares", lambda y, t: ce(y, t, label_smoothing=.2)),
        (f"soft_cross_entropy({weight})", "shares", lambda y, t: ce(y, t, w)),
        ("multi_margin", "classes", F.multi_margin_loss),
        (f"multi_margin(p=2,margin=0.7,{weight})", "classes", lambda y, t: F.multi_margin_loss(y, t, 2, .7, w)),
        ("mse*0.25", "numbers", lambda y, t: .25 * F.mse_loss(y, t)),
        ("l1(reduction=sum)", "numbers", lambda y, t: F.l1_loss(y, t, reduction="sum")),
        ("huber(delta=0.5)", "numbers", lambda y, t: F.huber_loss(y, t, delta=.5)),
        ("smooth_l1(beta=0.3)", "numbers", lambda y, t: F.smooth_l1_loss(y, t, beta=.3)),
        ("binary_cross_entropy", "shares", logits),
        ("binary_cross_entropy(pos_weight=3)", "shares", lambda y, t: logits(y, t, pos_weight=torch.tensor(3.0))),
        ("kl_div(reduction=batchmean)", "shares", lambda y, t: F.kl_div(y, t, reduction="batchmean")),
        ("kl_div(log_target=1,reduction=sum)", "numbers",
         lambda y, t: F.kl_div(y, t, log_target=True, reduction="sum")),
        ("poisson_nll(full=1)", "counts", lambda y, t: F.poisson_nll_loss(y, t, full=True)),
        ("gaussian_nll(full=1)", "shares numbers", lambda y, v, t: F.gaussian_nll_loss(y, t, v, full=True)),
        ("soft_margin", "signs", F.soft_margin_loss),
        ("hinge_embedding(margin=0.5)", "signs", lambda y, t: F.hinge_embedding_loss(y, t, margin=.5)),
        ("margin_ranking(margin=0.2)", "numbers signs", lambda y, o, t: F.margin_ranking_loss(y, o, t, margin=.2)),
        ("cosine_embedding(margin=0.1)", "numbers rows", lambda y, o, t: F.cosine_embedding_loss(y, o, t, margin=.1)),
        ("triplet_margin(swap=1)", "numbers counts", lambda y, a, b: F.triplet_margin_loss(y, a, b, swap=True)),
    ] + [(f"ctc(length=3{more})", "words steps lengths",
          lambda y, *t, given=given: F.ctc_loss(torch.log_softmax(y, -1), *t, **given))
         for more, given in (("", {}), (",reduction=sum", {"reduction": "sum"}),
                             (",zero_infinity=1", {"zero_infinity": True}))]


def muon(values, **more):
    return [O.Muon(values[:1], lr=.02, momentum=.95, weight_decay=.1, **more),
            O.AdamW(values[1:], lr=1e-3, betas=(.9, .95), weight_decay=.01)]


def optimizers():
    """Text of --optimizer, its arguments, the same in PyTorch."""
    decay = {"learning_rate": .1, "momentum": .9, "weight_decay": .02}
    adam = {"learning_rate": .01, "beta1": .8, "beta2": .99, "epsilon": 1e-7, "weight_decay": .02}
    rms = {"learning_rate": .01, "alpha": .9, "epsilon": 1e-6, "momentum": .7}
    of_muon = {"learning_rate": .02, "momentum": .95, "weight_decay": .1, "adamw_learning_rate": 1e-3,
               "adamw_beta1": .9, "adamw_beta2": .95, "adamw_epsilon": 1e-8, "adamw_weight_decay": .01}
    like = (.01, (.8, .99), 1e-7, .02)
    return [
        ("sgd", decay, lambda v: [O.SGD(v, .1)]),
        ("sgd(weight_decay=0.01)", decay, lambda v: [O.SGD(v, .1, weight_decay=.01)]),
        ("momentum", decay, lambda v: [O.SGD(v, .1, .9, weight_decay=.02)]),
        ("dampened_momentum", {**decay, "dampening": .3}, lambda v: [O.SGD(v, .1, .9, .3, .02)]),
        ("nesterov", decay, lambda v: [O.SGD(v, .1, .9, weight_decay=.02, nesterov=True)]),
        ("adam", adam, lambda v: [O.Adam(v, *like)]),
        ("amsgrad", adam, lambda v: [O.Adam(v, *like, amsgrad=True)]),
        ("adam(decoupled=1)", adam, lambda v: [O.AdamW(v, *like)]),
        ("adamw", adam, lambda v: [O.AdamW(v, *like)]),
        ("rmsprop", rms, lambda v: [O.RMSprop(v, .01, .9, 1e-6, 0, .7, True)]),
        ("uncentered_rmsprop", {**rms, "weight_decay": .02}, lambda v: [O.RMSprop(v, .01, .9, 1e-6, .02, .7)]),
        ("adagrad", {"learning_rate": .05, "epsilon": 1e-6}, lambda v: [O.Adagrad(v, .05, eps=1e-6)]),
        ("decayed_adagrad", {"learning_rate": .05, "epsilon": 1e-6, "learning_rate_decay": .1, "weight_decay": .02},
         lambda v: [O.Adagrad(v, .05, .1, .02, eps=1e-6)]),
        ("muon", of_muon, muon),
        ("muon(match_rms=1)", of_muon, lambda v: muon(v, adjust_lr_fn="match_rms_adamw")),
    ]


def given():
    r = np.random.default_rng(3)
    numbers = r.standard_normal((ROWS, CLASSES))
    shares = np.exp(r.standard_normal((ROWS, CLASSES)))
    floats = {"numbers": numbers, "shares": shares / shares.sum(1, keepdims=True),
              "signs": np.where(numbers > 0, 1, -1),
              "counts": r.integers(0, 5, (ROWS, CLASSES)), "rows": np.array([1, -1, -1, 1])}
    whole = {"classes": [0, 3, 4, 1], "some": [0, 3, 2, 1], "words": [[1, 2, 2], [3, 1, 0], [4, 4, 4], [1, 0, 0]],
             "steps": [7, 6, 7, 2], "lengths": [3, 2, 3, 1]}
    return {**{k: v.astype("f") for k, v in floats.items()}, **{k: np.array(v, "i8") for k, v in whole.items()}}


def built(args, folder, function, options, shape, out="x"):
    """The generated function and the names and types of its arguments."""
    (folder / "m.c").write_text(MODEL % (shape, out))
    subprocess.run([args.burncc, folder / "m.c", "-q", "--train", "--name", "m", *options, "-o", folder / "t.c"],
                   check=True)
    subprocess.run([*args.cc.split(), "-O1", "-shared", "-fPIC", "-w", folder / "t.c", "-o", folder / "t.so", "-lm"],
                   check=True)
    text = re.search(rf"int m_{function}\((.*?)\);", (folder / "t.h").read_text())[1]
    words = [(re.search(r"(\w+)(\[.*\])?$", part)[1], part) for part in text.split(", ")]
    call = getattr(ctypes.CDLL(str(folder / "t.so")), f"m_{function}")

    def run(**values):
        """Arrays by the arguments' names; the others in order from values["rest"]."""
        rest, filled = iter(values.pop("rest", ())), []
        for name, part in words:
            v = values[name] if name in values else next(rest)
            filled.append(ctypes.c_float(v) if re.fullmatch(r"float \w+", part) else v.ctypes.data_as(ctypes.c_void_p))
        return call(*filled)
    return run


def distance(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())


def check_loss(args, folder, text, names, reference):
    sequence = text.startswith("ctc")
    dims = (STEPS, ROWS, FEATURES) if sequence else (ROWS, FEATURES)
    run = built(args, folder, "gradients", ["--loss", text], ", ".join(map(str, dims)),
                "log_softmax(x, -1)" if sequence else "x")
    r, targets = np.random.default_rng(4), [given()[name] for name in names.split()]
    x, params = r.standard_normal(dims).astype("f"), (r.standard_normal(CLASSES * (FEATURES + 1)) / 2).astype("f")
    grads, loss, work = np.zeros_like(params), np.zeros(1, "f"), np.zeros(1 << 19)
    status = run(ws=work, x=x, params=params, loss=loss, grads=grads, rest=targets)
    p = torch.tensor(params).double().requires_grad_()
    y = F.linear(torch.tensor(x).double(), p[:CLASSES * FEATURES].view(CLASSES, FEATURES), p[CLASSES * FEATURES:])
    want = reference(y, *[torch.tensor(t) if t.dtype != np.float32 else torch.tensor(t).double() for t in targets])
    want.backward()
    return status, max(distance(loss[0], want.item()), distance(grads, p.grad.numpy())), BOUND


def check_optimizer(args, folder, text, numbers, make):
    run, r = built(args, folder, "update", ["--optimizer", text], f"{ROWS}, {FEATURES}"), np.random.default_rng(5)
    params = r.standard_normal(CLASSES * (FEATURES + 1)).astype("f")
    state, work = np.zeros(4096, "f"), np.zeros(1 << 17)

    def parts(a):
        a = torch.tensor(a).double()
        return [a[:CLASSES * FEATURES].view(CLASSES, FEATURES), a[CLASSES * FEATURES:]]
    values = [v.clone().requires_grad_() for v in parts(params)]
    others, status = make(values), 0
    for step in range(1, 11):
        grads = r.standard_normal(params.size).astype("f")
        status = status or run(ws=work, params=params, grads=grads, state=state, step=step, **numbers)
        for v, g in zip(values, parts(grads)):
            v.grad = g.clone()
        for o in others:
            o.step()
    want = np.concatenate([v.detach().numpy().ravel() for v in values])
    return status, distance(params, want), ROUGH if text.startswith("muon") else BOUND


def main():
    p = argparse.ArgumentParser()
    p.add_argument("burncc"), p.add_argument("--only", default=""), p.add_argument("--cc", default="cc")
    args = p.parse_args()
    if not torch:
        return skip_all("needs PyTorch and numpy")
    tap = Tap()
    for check, cases in ((check_loss, losses()), (check_optimizer, optimizers())):
        for case in cases:
            if not re.search(args.only, case[0]):
                continue
            with tempfile.TemporaryDirectory() as folder:
                status, off, bound = check(args, pathlib.Path(folder), *case)
            tap.check(f"{case[0]}: {off:.1e} off", not status and off <= bound, f"status {status}")
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
