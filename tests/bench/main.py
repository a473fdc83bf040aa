# SPDX-License-Identifier: MIT OR Apache-2.0
"""scripts/bench: options, the models one after the other, and what is written at the end, also after Ctrl-C."""
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys

import data
import measure
import ours
import peers
import plot
import table
from workers import Failed


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def find_models(options):
    """Paths of the models: files and folders as given, by name, those of --only."""
    paths = []
    for given in options.models:
        path = pathlib.Path(given)
        if path.is_dir():
            paths += sorted(path.glob("*.onnx"))
        elif path.is_file():
            paths.append(path)
        else:
            sys.exit(f"scripts/bench: {path} is not there")
    only = options.only.split(",") if options.only else []
    return [p for p in paths if not only or any(o in p.stem for o in only)]


def cores_for(options, threads):
    """The cores that contestants with so many threads are pinned to, or None where there are too few."""
    usable = options.cores or sorted(os.sched_getaffinity(0))
    return set(usable[-threads:]) if len(usable) >= threads else None


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def machine(options):
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": names[0] if names else os.uname().machine, "cores": len(os.sched_getaffinity(0)), "system": os.uname().release,
            "compiler": first_line([*ours.compiler(), "--version"]), "c_flags": " ".join(ours.c_flags(options.target[0])),
            "burncc": first_line([options.burncc, "--version"])}


def one_line(row, options):
    """What happened to a model, for the progress."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    words = []
    for name, found in row["contestants"].items():
        if "failed" in found:
            words.append(f"{name} failed ({found['failed']})")
        elif "median_ms" in found:
            words.append(f"{name} {table.figure(found['median_ms'])} ms" + (f" ({table.figure(found['ratio'])})" if name not in options.target and "ratio" in found else "")
                         + (f" DIFFERS by {found['error']:.2g}" if found.get("differs") else ""))
    return ", ".join(words)


def run_model(path, threads, options, here, peak, launch, where):
    row = {"model": path.stem, "threads": threads}
    folder = options.cache / "work" / f"{path.stem}-{threads}"
    try:
        model = data.read(path, options.dims)
        contest = measure.Contest(model, threads, cores_for(options, threads), options, here, peak, folder, lambda what: say(f"{where}: {what}"))
        row = contest.run(launch)
    except (Failed, ValueError, KeyError, OSError, MemoryError) as e:
        row["failed"] = f"{type(e).__name__}: {e}" if not isinstance(e, Failed) else str(e)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return row


def write_results(report, options):
    options.output.mkdir(parents=True, exist_ok=True)
    text = table.markdown(report)
    (options.output / "bench.md").write_text(text)
    (options.output / "bench.json").write_text(json.dumps(report, indent=1))
    if any(table.ratio(r, report["targets"][0], p) for r in report["rows"] if "failed" not in r for p in report["peers"]):
        (options.output / "bench.svg").write_text(plot.ratios(report))
    print(text, end="")
    say(f"wrote bench.md, bench.json and bench.svg to {options.output}")


def run(options):
    here = peers.find(options.peers, options.cache)
    paths = find_models(options)
    if not paths:
        sys.exit("scripts/bench: no models")
    launch = ours.helper("launch", options.cache)
    os.environ["BENCH_CLOCK"] = options.clock           # the workers read it
    report = {"date": datetime.date.today().isoformat(), "machine": machine(options), "targets": options.target, "peers": [p.name for p in here],
              "versions": {p.name: p.version for p in here}, "seconds": options.seconds, "clock": options.clock, "rows": []}
    try:
        for threads in options.threads:
            if not cores_for(options, threads):
                say(f"no {threads} cores to pin {threads} threads to: left out")
                continue
            peak = measure.Peak(options.cache, set(list(cores_for(options, threads))[:1]))
            try:
                for i, path in enumerate(paths, 1):
                    where = f"[{i}/{len(paths)}] {path.stem}, {table.thread_text(threads)}"
                    row = run_model(path, threads, options, here, peak, launch, where)
                    report["rows"].append(row)
                    say(f"{where}: {one_line(row, options)}")
            finally:
                peak.worker.stop()
    except KeyboardInterrupt:
        say("stopped; what is there:")
    write_results(report, options)
    wrong = any(f.get("differs") for r in report["rows"] for n, f in r.get("contestants", {}).items() if n in options.target)
    failed = any("failed" in r or any("failed" in r["contestants"].get(t, {}) for t in options.target) for r in report["rows"])
    return 1 if wrong or failed else 0
