#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hostile files: cases.py has those written by hand, with what each is refused for.

In: burncc. Out: a TAP line a file. Each file is compiled in a process of its own with SECONDS of time and BYTES of
memory; none may crash, run late, end in an internal error or leave an output when it is refused."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import cases        # noqa: E402

SECONDS, BYTES = 5, 2 << 30
SLACK = float(os.environ.get("BURNCC_TEST_SLACK", "4"))     # of the time: other tests run beside this one


def limited(burncc):
    """How burncc is started: with the limits; a sanitizer wants more address space than any."""
    for memory in (BYTES >> 10, "unlimited"):
        command = ["sh", "-c", f'ulimit -c 0 && ulimit -t {SECONDS} && ulimit -v {memory} && exec "$@"', "sh"]
        if subprocess.run([*command, burncc, "--version"], capture_output=True).returncode == 0:
            return [*command, burncc]
    sys.exit(f"{burncc} --version fails")


def compile_one(start, folder, options=()):
    """What is wrong with how burncc takes the file folder/model.onnx, its status and what it said."""
    command = [*start, str(folder / "model.onnx"), "-o", str(folder / "out.c"), *options]
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         start_new_session=True)
    try:
        said = p.communicate(timeout=SECONDS * SLACK)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        p.communicate()
        return "no end", None, ""
    left = sorted(f.name for f in folder.iterdir() if f.name.startswith("out"))
    temporary = [name for name in left if not re.fullmatch(r"out\.(c|h|bin)", name)]
    wrong = f"ended by signal {-p.returncode}" if p.returncode < 0 else \
        "internal error" if "bug at" in said else \
        f"status {p.returncode}" if p.returncode > 5 else \
        f"refused, yet left {left}" if p.returncode and left else \
        f"left {temporary}" if temporary else \
        "refused without a diagnostic" if p.returncode and "error: " not in said else ""
    return wrong, p.returncode, said


def check(start, root, number, made):
    name, model, files, status, says = made
    folder = root / str(number)
    folder.mkdir()
    for file, data in {**files, "model.onnx": model}.items():
        (folder / file).write_bytes(data)
    wrong, was, said = compile_one(start, folder)
    if not wrong and was != status:
        wrong = f"status {was}, not {status}"
    if not wrong and says and not re.search(says, said, re.M):
        wrong = f"does not say {says}"
    for file in folder.iterdir():
        file.unlink()
    return wrong, said


def share(made):
    """One in BURNCC_TEST_SHARE of those that come from the table, and all others."""
    one_in = int(os.environ.get("BURNCC_TEST_SHARE", "1"))
    many = [m for m in made if m[0].startswith("counts/ai") or m[0].startswith("counts/com")]
    kept = {m[0] for m in many[::one_in]}
    return [m for m in made if m not in many or m[0] in kept]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("--filter", default="", help="regular expression on the names")
    p.add_argument("--jobs", type=int, default=2)
    args = p.parse_args()
    made = cases.cases()
    made = [m for m in made if re.search(args.filter, m[0])] if args.filter else share(made)
    bad, start = 0, limited(args.burncc)
    print(f"1..{len(made)}")
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda at: check(start, pathlib.Path(root), *at), enumerate(made))
        for n, (m, (wrong, said)) in enumerate(zip(made, results), 1):
            bad += bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {n} {m[0]}" + (f": {wrong}" if wrong else ""), flush=True)
            if wrong:
                print("".join(f"# {line[:300]}\n" for line in said.splitlines()[:8]), end="")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
