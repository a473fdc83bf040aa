#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random graphs against ONNX Runtime: what no recorded test has, the ways in which operators meet.

In: a first seed and a count. Out: a line for each graph whose generated code computes something else, crashes, or
that burncc refuses, then a summary. Fusion, views, epilogues, shared buffers and in-place updates are what such
graphs shake. maker.py and steps.py make the graphs, batch.py compiles and runs them, shrink.py makes a failing one
small. Equal seeds give equal graphs (of one ONNX Runtime). Targets and options take turns, a batch each: with
--threads a run's bits must be those without threads, and where the batch is a size at run time (--dim) or weights are
rounded (--precision), the graphs are such that this can be judged. Wants an interpreter with numpy, onnx and
onnxruntime."""
import collections
import multiprocessing
import os
import pathlib
import re
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import harness                                                  # noqa: E402

WAYS = (("portable", ""), ("native", ""), ("generic", ""), ("native", "--threads 3:0"),
        ("generic", "--dim batch=1..4"), ("portable", "--threads 2:0"), ("native", ""),
        ("generic", "--precision bf16"), ("generic", "--threads 4:0"), ("native", "--dim batch=1..3 --threads 2:0"),
        ("x86-64-v2,x86-64-v3,x86-64-v4", ""), ("native", "--precision bf16"), ("generic", ""), ("portable",
                                                                                                 "--dim batch=1..5"))


def cases_of(seeds, way):
    import maker
    from batch import Case
    rough = "bf16" in way.options
    for seed in seeds:
        model, inputs, outputs = maker.make(seed, rough, "--dim" in way.options)
        if outputs:
            yield seed, Case(model.SerializeToString(), [v.array for v in inputs], [v.array for v in outputs],
                             [maker.allowance(v, rough) for v in outputs])


def way_of(args, seed):
    """Those of the command line, or the turn of this batch."""
    from batch import Way
    target, options = WAYS[seed // args.batch % len(WAYS)]
    if args.options is not None or args.target:
        options = args.options or ""
    return Way(args.target or target, options)


def run_batch(work):
    """[(seed, operators, Verdict)] of a batch of seeds; failing models stay in the cache, shrunk if asked for."""
    import batch
    import shrink
    args, seeds = work
    way = way_of(args, seeds[0])
    folder = pathlib.Path(args.cache) / "graphs" / f"batch{seeds[0]}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = list(cases_of(seeds, way))
        verdicts = batch.Batch(args, folder, way).run([c for _, c in made])
        results = []
        for (seed, case), verdict in zip(made, verdicts):
            if verdict.state in ("differs", "crash"):
                case, verdict = shrink.shrink(args, case, verdict, folder, way) if args.shrink else (case, verdict)
                shrink.save(case,
                            pathlib.Path(args.cache) / "graphs" / f"seed{seed}",
                            f"{verdict.state} ({' '.join(way).strip()}): {verdict.why}\n")
            results.append((seed, " ".join(way).strip(), shrink.operators(case.model), verdict))
    batch.shutil.rmtree(folder, ignore_errors=True)
    return results


def cause(why):
    """Without names and numbers, so that equal causes read equal."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", re.sub(r'"[^"]*"', '""', why))[:110]


def run_all(args):
    seeds = range(args.seed, args.seed + args.count)
    work = [(args, list(seeds[i:i + args.batch])) for i in range(0, len(seeds), args.batch)]
    if args.jobs == 1:
        for w in work:
            yield from run_batch(w)
        return
    with multiprocessing.Pool(args.jobs, maxtasksperchild=50) as pool:
        for results in pool.imap_unordered(run_batch, work):
            yield from results
            if args.seconds and time.monotonic() - args.begin > args.seconds:
                pool.terminate()
                return


def report(args):
    states, causes, operators, first = collections.Counter(), collections.Counter(), collections.Counter(), {}
    for seed, way, ops, verdict in run_all(args):
        states[verdict.state] += 1
        operators.update(ops)
        if verdict.state == "pass":
            continue
        key = f"{verdict.state}: {cause(verdict.why)}"
        causes[key] += 1
        first.setdefault(key, seed)
        if not args.tap and (verdict.state != "refused" or args.refused):
            print(f"seed {seed} ({way}) {verdict.state}: {verdict.why}\n    {' '.join(ops)}", flush=True)
    bad = states["differs"] + states["crash"]
    if args.tap:
        print(f"1..1\n{'not ok' if bad else 'ok'} 1 {sum(states.values())} graphs: " +
              ", ".join(f"{n} {s}" for s, n in states.items()))
        for key, n in causes.most_common():
            print(f"# {n} {key} (seed {first[key]})")
        return bad > 0
    for key, n in causes.most_common(60):
        print(f"{n:5} {key} (seed {first[key]})")
    print(f"{len(operators)} operators: " + ", ".join(f"{o} {n}" for o, n in operators.most_common()))
    print(
        f"{time.monotonic() - args.begin:.0f} s, {args.cc} {args.cflags}: {states['refused']} refused, "
        f"{states['crash']} crashed"
    )
    print(f"{states['pass']} passed, {bad} failed, {states['refused']} skipped")
    return bad > 0


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    p.set_defaults(target="")
    p.add_argument("--seed", type=int, default=1, help="the first seed")
    p.add_argument("--count", type=int, default=200, help="how many graphs")
    p.add_argument("--batch", type=int, default=16, help="models to one program")
    p.add_argument("--shrink", action="store_true", help="make failing graphs small")
    p.add_argument("--refused", action="store_true", help="print what burncc refuses too")
    p.add_argument("--seconds", type=float, default=0, help="stop after so long")
    p.add_argument("--options", help="these options for burncc, not those whose turn it is")
    args = harness.parse(p)
    try:
        import numpy, onnx, onnxruntime     # noqa: E401, F401
    except ImportError:
        harness.skip_all(args, "wants numpy, onnx and onnxruntime")
    args.begin = time.monotonic()
    args.count = -(-args.count // int(os.environ.get("BURNCC_TEST_SHARE", "1")))
    return report(args)


if __name__ == "__main__":
    sys.exit(main())
