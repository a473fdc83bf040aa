# SPDX-License-Identifier: MIT OR Apache-2.0
"""The machine that is measured on: its cores, its peak, what a report says of it, and where reports are written."""
import os
import subprocess
import sys

import ours
from workers import Worker


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def cores_for(options, threads):
    """The cores that contestants with so many threads are pinned to, or None where there are too few."""
    usable = options.cores or sorted(os.sched_getaffinity(0))
    return set(usable[-threads:]) if len(usable) >= threads else None


def first_line(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def described(options):
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "cpu": names[0] if names else os.uname().machine, "cores": len(os.sched_getaffinity(0)),
        "system": os.uname().release, "compiler": first_line([*ours.compiler(), "--version"]),
        "c_flags": " ".join(ours.c_flags(options.target[0])), "burncc": first_line([options.burncc, "--version"])
    }


class Peak:
    """The multiply-add peak of one core, in GFLOP/s, measured beside the models."""
    def __init__(self, cache, cores):
        self.worker = Worker("peak", [ours.helper("peak", cache, ["-ffp-contract=fast"])], cores)

    def begin(self):
        self.worker.samples, self.worker.rounds = [], []

    def gflops(self):
        return self.worker.ready[0] / min(self.worker.samples) if self.worker.samples else 0.0


def write_files(options, files, text):
    """The files of --output, and on standard output the table."""
    options.output.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (options.output / name).write_text(content)
    print(text, end="")
    say(f"wrote {', '.join(files)} to {options.output}")
