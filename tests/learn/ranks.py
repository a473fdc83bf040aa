#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Several processes that learn one model, by MPI: the bits of one that accumulates the same batches, a rank that is
killed, and what a step sends.

usage: ranks.py BURNCC LIBRARY [--cc CC]    LIBRARY: runtime/learn as a shared library
Needs the standard library and Open MPI. Prints TAP."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from learner import Programs, ROOT, Run, arguments     # noqa: E402
from tap import Tap, skip_all               # noqa: E402

OPTIONS = dict(items=100, valid=40, batch=8, epochs=3, metrics=1, learning_rate=0.02)
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --mca odls_base_sigkill_timeout 5 -n".split()
PIECE, REPORT = 64, 544         # a piece's bytes are a multiple of the one, a report's at most the other


def lines(run):
    return sorted(re.findall(r"^(?:train|valid) .*", run.text, re.M))


def mpi_flags():
    """How programs over MPI are compiled; None where they cannot be."""
    try:
        done = subprocess.run(["pkg-config", "--cflags", "--libs", "ompi-c"], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.split() if done.returncode == 0 and shutil.which("mpirun") else None


def check_bits(tap, one, ranks):
    whole = Run(one, accumulate=4, **OPTIONS)
    for count in (1, 2, 4):
        run = ranks(count, accumulate=4 // count, **OPTIONS)
        tap.check(f"{count} ranks: figures and bits of one that accumulates four batches", lines(run) == lines(whole)
                  and set(run.bits) == set(whole.bits) and len(run.bits) == count, whole.text + run.text)
        sent, params = map(int, re.search(r"^sent (\d+) of (\d+)", run.text, re.M).groups())
        steps, rounds = 12, 3 * -(-13 // count)
        most = (rounds + steps) * (count - 1) * ((params // count + PIECE) // PIECE * PIECE)
        most += (rounds + 3 * 3) * (count - 1) * REPORT
        tap.check(f"{count} ranks: {sent} bytes sent for {params} of parameters in {steps} steps", sent <= most, most)


def check_data(tap, one, ranks):
    whole = Run(one, accumulate=2, broken=17, bad_label=20, skip_bad=1, **OPTIONS)
    run = ranks(2, broken=17, bad_label=20, skip_bad=1, **OPTIONS)
    tap.check("bad items of all ranks are counted", lines(run) == lines(whole) and "items=98 skipped=2" in run.text,
              whole.text + run.text)
    run = ranks(2, broken=17, **OPTIONS)
    tap.check("one rank's bad row ends all", run.text.count("points.txt: row 17 is broken") >= 2 and run.status,
              run.text)


def check_stops(tap, one, ranks, folder):
    whole = Run(one, accumulate=4, **OPTIONS)
    first = ranks(4, artifacts=folder / "stopped", stop_at=9, **OPTIONS)
    run = ranks(2, accumulate=2, artifacts=folder / "stopped", resume=1, **OPTIONS)
    tap.check("stopped by rank 0 between two steps, and resumed by fewer", "steps=4 " in first.end
              and "goes on after step 4, 0 epochs" in run.text and set(run.bits) == set(whole.bits),
              first.text + run.text)
    for lost, fewer in ((2, 2), (0, 1)):
        where = folder / f"lost {lost}"
        first = ranks(4, artifacts=where, interrupts=1, dies=lost, dies_at=19, **OPTIONS)
        options = dict(OPTIONS, accumulate=4 // fewer, artifacts=where, resume=1)
        run = ranks(fewer, **options) if fewer > 1 else Run(one, **options)
        tap.check(f"rank {lost} killed in the middle of a step: all but the step is there, for {fewer}",
                  "another rank is lost" in first.text and "goes on after step 5, 1 epochs done" in run.text
                  and set(run.bits) == set(whole.bits), first.text + run.text)


def main():
    args = arguments()
    flags = mpi_flags()
    if flags is None:
        return skip_all("Open MPI is not installed")
    os.environ["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"     # containers forbid it, loudly
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        built = [pathlib.Path(folder) / name for name in ("one", "ranks")]
        for where in built:
            where.mkdir()
        one = Programs(args, built[0])("2..16", "--optimizer", "adam")
        many = Programs(args, built[1])("2..16", "--optimizer", "adam",
                                        more=["-DRANKS", ROOT / "runtime" / "learn" / "ranks_mpi.c", *flags])

        def ranks(count, **options):
            return Run(many, before=[*MPIRUN, str(count)], **options)

        check_bits(tap, one, ranks)
        check_data(tap, one, ranks)
        check_stops(tap, one, ranks, pathlib.Path(folder))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
