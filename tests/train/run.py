#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Training against reference runs: predictions, first-step gradients, ten losses and final weights per optimizer.

usage: run.py BURNCC [FOLDER] [--case NAME]... [--cc CC] [--target T] [--blas openblas] [--apart]
              [--bound 1e-5] [--described]
FOLDER holds cases (model.onnx, reference.safetensors, case.json) recorded with PyTorch; without it the cases are those
of owned.py, all of them. --described: the models are those of described/, with the case's weights.safetensors. Errors
are relative to the largest value of each tensor. Needs the standard library only.
Prints TAP; skips everything when FOLDER is given and absent."""
import argparse, array, contextlib, json, os, struct, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import harness      # noqa: E402
import owned        # noqa: E402

HYPER = {
    "sgd": "NAME(_update)({h[lr]}f, p, g)",
    "momentum": "NAME(_update)({h[lr]}f, {h[momentum]}f, {h[weight_decay]}f, p, g, s)",
    "nesterov": "NAME(_update)({h[lr]}f, {h[momentum]}f, {h[weight_decay]}f, p, g, s)",
    "adam": "NAME(_update)({h[lr]}f, {h[betas][0]}f, {h[betas][1]}f, {h[eps]}f, {h[weight_decay]}f, t, p, g, s)",
    "adamw": "NAME(_update)({h[lr]}f, {h[betas][0]}f, {h[betas][1]}f, {h[eps]}f, {h[weight_decay]}f, t, p, g, s)",
    "rmsprop": "NAME(_update)({h[lr]}f, {h[alpha]}f, {h[eps]}f, {h[momentum]}f, p, g, s)",
    "adagrad": "NAME(_update)({h[lr]}f, {h[eps]}f, p, g, s)",
    "dampened_momentum":
        "NAME(_update)({h[lr]}f, {h[momentum]}f, {h[dampening]}f, {h[weight_decay]}f, t, p, g, s)",
    "amsgrad": "NAME(_update)({h[lr]}f, {h[betas][0]}f, {h[betas][1]}f, {h[eps]}f, {h[weight_decay]}f, t, p, g, s)",
    "uncentered_rmsprop":
        "NAME(_update)({h[lr]}f, {h[alpha]}f, {h[eps]}f, {h[momentum]}f, {h[weight_decay]}f, p, g, s)",
    "decayed_adagrad": "NAME(_update)({h[lr]}f, {h[lr_decay]}f, {h[eps]}f, {h[weight_decay]}f, t, p, g, s)",
    "adan": "NAME(_update)({h[lr]}f, {h[betas][0]}f, {h[betas][1]}f, {h[betas][2]}f, {h[eps]}f, {h[weight_decay]}f,"
            " t, p, g, s)",
}
CTYPE = {"F32": ("float", "f", 4), "I64": ("int64_t", "q", 8)}


def read_safetensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {
        k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
        for k, v in head.items() if k != "__metadata__"
    }


def floats(raw):
    a = array.array("f")
    a.frombytes(raw)
    return a


def error(got, want, gradient=None):
    """Largest difference relative to the largest wanted magnitude; infinite when lengths differ or a NaN is there.
    gradient: where it is zero but for rounding (a bias of keys under softmax), Adam divides noise by noise."""
    if len(got) != len(want):
        return float("inf")
    top = max((abs(w) for w in want), default=0) or 1
    noise = 1e-6 * max(abs(g) for g in gradient) if gradient else -1
    worst = max((abs(a - b) for a, b, g in zip(got, want, gradient or want) if abs(g) > noise), default=0)
    return worst / top if worst == worst else float("inf")


def number(v):
    return repr(float(v)) if not isinstance(v, (list, tuple)) else [number(x) for x in v]


def run_case(args, folder, optimizer, run, case, kept=None):
    """kept: a folder for what the run leaves, with the gradients and parameters of each step."""
    ref = read_safetensors(os.path.join(folder, "reference.safetensors"))
    with contextlib.nullcontext(kept) if kept else tempfile.TemporaryDirectory() as tmp:
        for k, (_, _, raw) in ref.items():
            if len(k) == 2 and k[0] in "xy":
                open(os.path.join(tmp, k), "wb").write(raw)
        model, c = os.path.join(folder, "model.onnx"), os.path.join(tmp, "m.c")
        options = ["--loss", case["loss"], "--optimizer", optimizer, "--target", args.target] + case.get("options", [])
        options += (["--blas", args.blas] if args.blas else []) + (["--embed-limit", "0"] if args.apart else [])
        if args.described:
            model = os.path.join(HERE, "described", os.path.basename(folder) + ".c")
            options += ["--weights", os.path.join(folder, "weights.safetensors"), "--strict"]
        subprocess.run([args.burncc, model, "--train", "--quiet", "--untie", "merged", *options, "-o", c], check=True)
        (xt, _, xsize), (yt, _, ysize) = CTYPE[ref["x0"][0]], CTYPE[ref["y0"][0]]
        hyper = {k: number(v) for k, v in run["hyper"].items()}
        call = HYPER[optimizer].replace("p, g", "".join(f"{v}f, " for v in case.get("more", [])) + "p, g")
        define = {
            "MODEL": "m", "MODEL_HEADER": '"m.h"', "X_TYPE": xt, "X_COUNT": len(ref["x0"][2]) // xsize, "Y_TYPE": yt,
            "Y_COUNT": len(ref["y0"][2]) // ysize, "OUT_COUNT": len(ref["eval_output"][2]) // 4,
            "UPDATE(p,g,s,t)": "((void)(s),(void)(t)," + call.format(h=hyper) + ")"
        }
        if "m_update_workspace" in open(os.path.join(tmp, "m.h")).read():
            define["UPDATE_WORK"] = 1
            define["UPDATE(p,g,s,t)"] = define["UPDATE(p,g,s,t)"].replace("_update)(", "_update)(&update_work, ")
        if case.get("drops"):
            define["DROPS"] = 1
        header = open(os.path.join(tmp, "m.h")).read()
        for program in ("predict", "gradients"):
            if f"int m_{program}(m_{program}_workspace *ws, const void *weights" in header:
                define[f"{program.upper()}_WEIGHTS"], define["WEIGHTS"] = "weights,", f'"{tmp}/m.bin"'
        if args.target == "vulkan":
            define["ON_GPU"] = 1
        if kept:
            define["EACH"] = 1
        if args.apart:
            define["INITIAL"] = f'"{tmp}/m.safetensors"'
        here = os.path.dirname(os.path.abspath(__file__))
        flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pedantic", "-I", tmp,
                 "-I", str(harness.ROOT / "runtime")] + args.cflags.split()
        subprocess.run([
            args.cc, *flags, *[f"-D{k}={v}" for k, v in define.items()],
            os.path.join(here, "step.c"), c, "-lm", *([f"-l{args.blas}"] if args.blas else []), *args.runtime, "-o",
            os.path.join(tmp, "step")
        ], check=True)
        out = subprocess.run([os.path.join(tmp, "step"), tmp, tmp], check=True, capture_output=True, text=True).stdout
        errors = {"prediction": error(floats(open(os.path.join(tmp, "eval_output"), "rb").read()),
                                      floats(ref["eval_output"][2])),
                  "losses": error([float(v) for v in out.split()], run["losses"])}
        grads, final = read_safetensors(os.path.join(tmp, "gradients.safetensors")), read_safetensors(
            os.path.join(tmp, "final.safetensors"))
        errors["gradients"] = max(
            error(floats(grads[k[5:]][2]), floats(v[2])) for k, v in ref.items() if k.startswith("grad."))
        prefix, wrong = f"final.{optimizer}.", []
        for k, v in ref.items():
            name = k[len(prefix):]
            if not k.startswith(prefix) or name.endswith("num_batches_tracked"):
                continue
            noisy = optimizer.startswith("adam") and f"grad.{name}" in ref
            wrong.append(error(floats(final[name][2]), floats(v[2]), noisy and floats(ref[f"grad.{name}"][2])))
        errors["final"] = max(wrong)
        return errors


def run_cases(args, where, names):
    count = bad = 0
    for name in names:
        folder = os.path.join(where, name)
        case = json.load(open(os.path.join(folder, "case.json")))
        for optimizer, run in case["runs"].items():
            if args.optimizer and optimizer not in args.optimizer:
                continue
            count += 1
            try:
                errors = run_case(args, folder, optimizer, run, case)
                text, ok = " ".join(f"{k}={v:.2e}" for k, v in errors.items()), max(errors.values()) <= args.bound
            except (subprocess.CalledProcessError, KeyError) as e:
                text, ok = f"{type(e).__name__}: {e}", False
            bad += not ok
            print(f"{'ok' if ok else 'not ok'} {count} - {name} {optimizer} {args.target}: {text}", flush=True)
    print(f"1..{count}")
    return 1 if bad else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("burncc"), p.add_argument("folder", nargs="?")
    p.add_argument("--case", action="append"), p.add_argument("--optimizer", action="append")
    p.add_argument("--cc", default=os.environ.get("CC", "cc")), p.add_argument("--cflags", default="")
    p.add_argument("--target", default="generic")
    p.add_argument("--blas", help="the BLAS that products call")
    p.add_argument("--apart", action="store_true", help="initial weights in a file beside the C")
    p.add_argument("--described", action="store_true", help="the models are described in C")
    p.add_argument("--bound", type=float, default=1e-5)
    args = p.parse_args()
    if args.folder and not os.path.isdir(args.folder):
        print(f"1..0 # SKIP no recorded runs at {args.folder}")
        return 0
    if args.blas and not harness.has_blas(args.cc):
        print(f"1..0 # SKIP {harness.NO_BLAS}")
        return 0
    args.runtime = []
    if args.target == "vulkan":
        args.runtime, lacks = harness.vulkan_runtime(args.burncc, args.cc)
        if lacks:
            print(f"1..0 # SKIP {lacks}")
            return 0
    if args.folder:
        return run_cases(args, args.folder, args.case or ["mnist_cnn"])
    with tempfile.TemporaryDirectory() as tmp:
        names = owned.write_all(tmp)
        return run_cases(args, tmp, args.case or names)


if __name__ == "__main__":
    sys.exit(main())
