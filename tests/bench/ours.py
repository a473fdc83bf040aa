# SPDX-License-Identifier: MIT OR Apache-2.0
"""burncc's side: a model compiled for one target into a program that holds the generated code, its weights and
nothing else.

Out: the program, how long burncc and the C compiler took and the memory they needed, the bytes of machine code,
workspace and weights. The C compiler is $CC, with the flags that `burncc bench` gives it."""
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess

from fetch import last_line
from workers import Failed

HERE = pathlib.Path(__file__).resolve().parent
RUNTIME = HERE.parent.parent / "runtime"
WARM_STARTS = 11                                        # of the program, for the time to the first result


@dataclasses.dataclass
class Program:
    target: str
    path: pathlib.Path
    burncc_s: float
    burncc_rss: int
    cc_s: float
    cc_rss: int
    text_bytes: int
    workspace: int
    lower_bound: int
    weights: int
    kernels: int


def call(command, what):
    """Runs a command; its output."""
    try:
        p = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as e:
        raise Failed(f"{what}: {e}") from None
    if p.returncode:
        errors = [line for line in p.stdout.splitlines() if "error:" in line or "bug " in line or "undefined" in line]
        raise Failed(f"{what}: {errors[0][:200] if errors else last_line(p.stdout)}")
    return p.stdout


def call_measured(launch, folder, command, what):
    """Runs a command: its output, seconds (of the clock that the runs are measured with), and peak resident set in
    bytes."""
    text = call([launch, "usage", folder / "usage.txt", *command], what)
    wall, cpu, kib = map(int, (folder / "usage.txt").read_text().split())
    return text, (cpu if os.environ.get("BENCH_CLOCK") == "cpu" else wall) * 1e-9, kib * 1024


def compiler():
    return shlex.split(os.environ.get("CC") or "cc")


def c_flags(target):
    """As compiler/command/build.c has them."""
    if target == "portable":
        return ["-O2"]
    return ["-O3", f"-march={target}" if target.startswith("x86-64-") else "-march=native"]


def section_bytes(path, pattern):
    text = call(["size", "-A", path], "size")
    return sum(int(size) for name, size in re.findall(r"^(\S+)\s+(\d+)\s", text, re.M) if re.match(pattern, name))


def number(pattern, text, otherwise=0):
    found = re.search(pattern, text)
    return int(found[1]) if found else otherwise


def helper(name, cache, extra=()):
    """A C program of this folder, built once per version of its source."""
    source, program = HERE / f"{name}.c", cache / "helpers" / name
    newest = max(source.stat().st_mtime, (HERE / "worker.h").stat().st_mtime)
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        call([*compiler(), "-O3", "-march=native", source, "-o", program, *extra], f"building {name}.c")
    return program


def link(folder, program, threads):
    """Static where the libraries allow it: a program that starts has nothing to look for. A model whose kernels are
    too small to be shared has
    no parts, and runs on one thread whatever was asked for."""
    command = [*compiler(), "-O2", "-I", folder, HERE / "runner.c", folder / "model.o", "-o", program]
    if "BURN_THREADS_TYPES" in (folder / "model.h").read_text():
        command += [f"-DTHREADS={threads}", "-I", RUNTIME, RUNTIME / "threads.c"]
    libraries = [*re.findall(r"link with (-l\w+)", (folder / "model.h").read_text()), "-lm", "-pthread"]
    try:
        call([*command, "-static", *libraries], "linking")
    except Failed:
        call([*command, *libraries], "linking")


def build(burncc, model, target, threads, folder, extra, launch):
    folder.mkdir(parents=True, exist_ok=True)
    dims = [word for name, size in model.dims.items() for word in ("--dim", f"{name}={size}")]
    threading = ["--threads", str(threads)] if threads > 1 else []
    report, burncc_s, burncc_rss = call_measured(launch, folder, [
        burncc, model.path, "--target", target, "--name", "model", "-o", folder / "model.c", "--report", "--quiet",
        *dims, *threading, *extra
    ], "burncc")
    flags = ["-std=c99", *c_flags(target), "-ffp-contract=off", "-w", *shlex.split(os.environ.get("BURNCC_CFLAGS", ""))]
    _, cc_s, cc_rss = call_measured(launch, folder,
                                    [*compiler(), *flags, "-c", folder / "model.c", "-o", folder / "model.o"],
                                    "the C compiler")
    link(folder, folder / "program", threads)
    header = (folder / "model.h").read_text()
    stored = folder / "model.bin"
    weights = stored.stat().st_size if stored.exists() else section_bytes(folder / "model.o", r"\.rodata")
    return Program(target, folder / "program", burncc_s, burncc_rss, cc_s, cc_rss,
                   section_bytes(folder / "model.o", r"\.text"),
                   number(r"unsigned char bytes\[(\d+)\];\s*\} model_workspace", header),
                   number(r"planned, (\d+) bytes alive", report), weights,
                   number(r"^(\d+) kernels", report[report.rfind("\n", 0, report.rfind(" kernels,")) + 1:]))


def cold(program, folder, launch, cores, times=WARM_STARTS):
    """Seconds from starting the program to its first result, the median of some starts."""
    p = subprocess.run([str(launch), str(times), str(program), str(folder), "--cold"], capture_output=True, text=True,
                       preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if p.returncode:
        raise Failed("starting the program anew: " + last_line(p.stderr))
    return int(p.stdout) * 1e-9
