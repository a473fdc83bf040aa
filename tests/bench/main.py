# SPDX-License-Identifier: MIT OR Apache-2.0
"""scripts/bench: options, the models one after the other, and what is written at the end, also after Ctrl-C."""
import datetime
import json
import os
import shutil
import subprocess
import sys

import data
import growth
import machine
import measure
import ours
import peers
import plot
import sets
import table
from machine import cores_for, say, write_files
from workers import Failed, Worker


def read_bandwidth(options):
    """GB/s that one core reads from memory."""
    worker = Worker("stream", [ours.helper("stream", options.cache)], {max(cores_for(options, 1))})
    try:
        worker.slice(1)
        return worker.ready[0] / min(worker.samples)
    finally:
        worker.stop()


def one_line(row, options):
    """What happened to a model, for the progress."""
    if "failed" in row:
        return f"failed: {row['failed']}"
    words = []
    for name, found in row["contestants"].items():
        if "failed" in found:
            words.append(f"{name} failed ({found['failed']})")
        elif "median_ms" in found:
            words.append(f"{name} {table.figure(found['median_ms'])} ms" + (
                f" ({table.figure(found['ratio'])})" if name not in options.target and "ratio" in found else "") +
                         (f" DIFFERS by {found['error']:.2g}" if found.get("differs") else ""))
    return ", ".join(words)


def run_model(name, make, threads, options, here, peak, launch, where):
    """A row: the model made or found, then its contest; what goes wrong is said in the row."""
    row = {"model": name, "threads": threads}
    folder = options.cache / "work" / f"{name}-{threads}"
    try:
        model = data.read(make(), options.dims, name)
        contest = measure.Contest(model, threads, cores_for(options, threads), options, here, peak, launch, folder,
                                  lambda what: say(f"{where}: {what}"))
        row = contest.run()
    except Exception as e:                              # whatever a model's file makes a library raise
        row["failed"] = f"{type(e).__name__}: {e}" if not isinstance(e, Failed) else str(e)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return row


def write_results(report, options):
    text = table.markdown(report)
    files = {"bench.md": text, "bench.json": json.dumps(report, indent=1)}
    if any(
            table.ratio(r, report["targets"][0], p) for r in report["rows"] if "failed" not in r
            for p in report["peers"]):
        files["bench.svg"] = plot.ratios(report)
    write_files(options, files, text)
    if options.into:
        table.put_between(options.into, "scripts/bench", table.page(report))
        say(f"wrote the table into {options.into}")


def write_growth(report, options):
    text = growth.markdown(report)
    picture = growth.picture(report)
    write_files(options, {"growth.md": text, "growth.json": json.dumps(report, indent=1), "growth.svg": picture}, text)
    if options.into:
        (options.into.parent / growth.PLOT).write_text(picture)
        table.put_between(options.into, "scripts/bench --growth", growth.page(report))
        say(f"wrote the tables into {options.into}, the plot beside it into {growth.PLOT}")


def run_models(report, wanted, options, here, launch):
    """Appends a row for each model and number of threads, as they come."""
    for threads in options.threads:
        cores = cores_for(options, threads)
        if not cores:
            say(f"no {threads} cores to pin {threads} threads to: left out")
            continue
        os.environ[
            # the calling thread's time says nothing of the others
            "BENCH_CLOCK"] = options.clock if threads == 1 else "wall"
        peak = machine.Peak(options.cache, {min(cores)})
        try:
            for i, (name, make) in enumerate(wanted, 1):
                where = f"[{i}/{len(wanted)}] {name}, {table.thread_text(threads)}"
                row = run_model(name, make, threads, options, here, peak, launch, where)
                report["rows"].append(row)
                say(f"{where}: {one_line(row, options)}")
        finally:
            peak.worker.stop()


def run(options):
    here = peers.find(options)
    wanted = growth.models_of(options) if options.growth else sets.find(options)
    if not wanted:
        sys.exit("scripts/bench: no models")
    launch = ours.helper("launch", options.cache)
    os.environ["BENCH_CLOCK"] = options.clock           # workers read it
    report = {
        "date": datetime.date.today().isoformat(),
        "machine": {**machine.described(options), "read_gbs": read_bandwidth(options)}, "targets": options.target,
        "peers": [p.name for p in here], "versions": {p.name: p.version for p in here}, "seconds": options.seconds,
        "clock": options.clock, "rows": []
    }
    try:
        run_models(report, wanted, options, here, launch)
    except KeyboardInterrupt:
        say("stopped; what is there:")
    (write_growth if options.growth else write_results)(report, options)
    wrong = any(
        f.get("differs") for r in report["rows"] for n, f in r.get("contestants", {}).items() if n in options.target)
    failed = any("failed" in r or any("failed" in r["contestants"].get(t, {}) for t in options.target)
                 for r in report["rows"])
    return 1 if wrong or failed else 0
