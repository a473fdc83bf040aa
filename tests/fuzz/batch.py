# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models in, what their generated code computes out: many models to one program, so that the C compiler starts once.

In: cases (a model, inputs, expected outputs). Out: for each a Verdict: pass, differs, refused (a diagnostic), crash
(of burncc, of the C compiler, of the generated code)."""
import collections
import os
import pathlib
import shutil
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
RUNTIME = HERE.parent.parent / "runtime"
Case = collections.namedtuple("Case",
                              "model inputs outputs allowed")  # bytes, arrays, arrays, an absolute error for each
Way = collections.namedtuple("Way",
                             "target options")  # how it is compiled; a batch dimension is a size at run time in some
Verdict = collections.namedtuple("Verdict", "state why")


class Batch:
    def __init__(self, args, folder, way):
        self.args, self.way, self.folder = args, way, pathlib.Path(folder)
        self.threads, self.sized = "--threads" in way.options, "--dim" in way.options
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def generate(self, n, case):
        """None, or what burncc said instead."""
        path = self.folder / f"g{n}.onnx"
        path.write_bytes(case.model)
        command = [
            self.args.burncc,
            str(path), "-o",
            str(self.folder / f"g{n}.c"), "--name", f"g{n}", "--target", self.way.target, "--embed-limit", "64M",
            "--quiet"
        ]
        try:
            p = subprocess.run(command + self.way.options.split(), capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            return Verdict("crash", "burncc: no end")
        said = p.stderr.decode(errors="replace")
        if p.returncode == 0:
            return None
        lines = [line for line in said.splitlines() if "error" in line or "bug at" in line or "ERROR" in line
                 ] or said.splitlines()[-1:] or ["said nothing"]
        bad = p.returncode < 0 or p.returncode > 5 or "bug at" in said or "Sanitizer" in said
        return Verdict("crash" if bad else "refused", f"burncc: {lines[0].split('onnx: ', 1)[-1][:300]}")

    def compile(self, which):
        """The program of these models; None when the C compiler refuses one, whose Verdict the caller finds by trying
        fewer."""
        text = "".join(f'#include "g{n}.h"\n'
                       for n in which) + "static const burn_model *const models[] = {" + ", ".join(
                           f"&g{n}_model" for n in which) + "};\n"
        if self.threads:
            text += "#define THREADS 1\n"
        (self.folder / "models.h").write_text(text)
        program = self.folder / "batch"
        flags = self.args.cflags.split() + (["-march=native"] if self.way.target == "native" else [])
        sources = [str(HERE / "driver.c"), *[str(self.folder / f"g{n}.c") for n in which]
                   ] + ([str(RUNTIME / "threads.c"), "-pthread"] if self.threads else [])
        p = subprocess.run([
            self.args.cc, "-w", *flags, "-I",
            str(self.folder), "-I",
            str(RUNTIME), *sources, "-lm", "-o",
            str(program)
        ], capture_output=True)
        self.said = p.stderr.decode(errors="replace")
        return program if p.returncode == 0 else None

    def run(self, cases):
        verdicts = {n: v for n, c in enumerate(cases) if (v := self.generate(n, c))}
        which = [n for n in range(len(cases)) if n not in verdicts]
        self.run_some(cases, which, verdicts)
        return [verdicts[n] for n in range(len(cases))]

    def run_some(self, cases, which, verdicts):
        if not which:
            return
        program = self.compile(which)
        if not program:
            if len(which) == 1:
                verdicts[which[0]] = Verdict(
                    "crash", "C compiler: " + next(
                        (l for l in self.said.splitlines() if "error" in l), self.said[:200])[:300])
                return
            for half in (which[:len(which) // 2], which[len(which) // 2:]):
                self.run_some(cases, half, verdicts)
            return
        for place, n in enumerate(which):
            write_tensors(self.folder / f"{place}.in", cases[n].inputs,
                          [o.nbytes if self.sized else -1 for o in cases[n].outputs])
            (self.folder / f"{place}.out").unlink(missing_ok=True)
        p = subprocess.run([str(program), str(self.folder)], capture_output=True,
                           env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
        said = dict(line.split(" ", 1) for line in p.stdout.decode().splitlines())
        errors = next(
            (l for l in p.stderr.decode(errors="replace").splitlines() if "ERROR" in l or "runtime error" in l), "")
        for place, n in enumerate(which):
            what = said.get(str(place), "the program ended early")
            verdicts[n] = compare(cases[n], self.folder / f"{place}.out") if what == "ok" else Verdict(
                "crash", f"generated code: {what} {errors}".strip()[:300])


def write_tensors(path, arrays, room):
    """And how many bytes the buffer of each output has; -1: as the model says."""
    with open(path, "wb") as f:
        for a in arrays:
            a = np.ascontiguousarray(a).reshape(a.shape)
            f.write(np.array([a.ndim, *a.shape, a.nbytes], np.int64).tobytes() + a.tobytes())
        f.write(np.array(room, np.int64).tobytes())


def read_tensors(path, dtypes):
    data = path.read_bytes()
    at = 0
    for dtype in dtypes:
        rank, = np.frombuffer(data, np.int64, 1, at)
        *shape, size = np.frombuffer(data, np.int64, int(rank) + 1, at + 8)
        at += 8 * (int(rank) + 2)
        count = int(np.prod(shape, dtype=np.int64))
        yield np.frombuffer(data, dtype, count, at).reshape(shape)
        at += int(size)


def compare(case, path):
    for i, (got, want,
            allowed) in enumerate(zip(read_tensors(path, [o.dtype for o in case.outputs]), case.outputs,
                                      case.allowed)):
        if got.shape != want.shape:
            return Verdict("differs", f"output {i} is {got.dtype}{list(got.shape)}, expected {list(want.shape)}")
        if want.dtype.kind == "f":
            with np.errstate(all="ignore"):
                good = (np.abs(got.astype(float) - want.astype(float))
                        <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want))
        else:
            good = got == want
        if not good.all():
            at = np.unravel_index(np.argmin(good), good.shape) if good.ndim else ()
            return Verdict(
                "differs",
                f"output {i} {want.dtype}{list(want.shape)} at {[int(x) for x in at]}: {got[at]!r}, expected "
                f"{want[at]!r} (allowed {allowed:.3g}; "
                f"{int((~good).sum())} of {good.size} differ)")
    return Verdict("pass", "")
