#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hostile files: written.py has those written by hand, with what each is refused for; mutate.py makes others of the
small models and of one model for each operator.

In: burncc. Out: a TAP line a file. Each file is compiled in a process of its own with SECONDS of time and BYTES of
memory; none may crash, run late, end in an internal error or leave an output when it is refused. --keep DIR keeps the
files that did."""
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
import written      # noqa: E402
import mutate       # noqa: E402

COUNT, COUNT_OF_ALL = 2400, 20000                           # of changed files, with BURNCC_TEST_ALL

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


def small_models():
    sys.path.insert(1, str(HERE.parent / "small"))
    import cases as small
    return [f().bytes for f in small.ALL]


def changed(seed, count):
    """(name, model, files, status, says) as written.py has them, with nothing said of the last two."""
    of_ops = [written.one(op, [f"x{i}" for i in range(least_in or 1)], [f"y{i}" for i in range(least_out or 1)],
                        opset=28 if domain else until, domain=domain, version=until)
              for op, domain, _, until, least_in, _, least_out, _ in written.table()]
    ops = sorted({op for op, *_ in written.table()})
    small = small_models()
    models = [m for pair in zip(small * (len(of_ops) // len(small) + 1), of_ops) for m in pair]
    beside = {"data.bin": bytes(range(256)) * 16}
    return [(name, model, beside, None, "") for name, model in mutate.files(seed, count, models, ops)]


def check(start, keep, root, number, made):
    name, model, files, status, says = made
    folder = root / str(number)
    folder.mkdir()
    for file, data in {**files, "model.onnx": model}.items():
        (folder / file).write_bytes(data)
    wrong, was, said = compile_one(start, folder)
    if wrong and keep:
        (keep / (name.replace("/", "_") + ".onnx")).write_bytes(model)
    if not wrong and status is not None and was != status:
        wrong = f"status {was}, not {status}"
    if not wrong and says and not re.search(says, said, re.M):
        wrong = f"does not say {says}"
    for file in folder.iterdir():
        file.unlink()
    return wrong, said


def share(made):
    """One in BURNCC_TEST_SHARE of those that are made by rule, and all others."""
    one_in = int(os.environ.get("BURNCC_TEST_SHARE", "1"))
    by_rule = "counts/ai", "counts/com", "absent/", "changed/"
    return [m for m in made if not m[0].startswith(by_rule)] + [m for m in made if m[0].startswith(by_rule)][::one_in]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("--filter", default="", help="regular expression on the names")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--seed", type=int, default=1, help="of the changed files")
    p.add_argument("--count", type=int, default=COUNT_OF_ALL if os.environ.get("BURNCC_TEST_ALL") else COUNT,
                   help="of the changed files, of which BURNCC_TEST_SHARE takes its share")
    p.add_argument("--keep", type=pathlib.Path, help="a folder for the files of what fails")
    args = p.parse_args()
    made = written.cases() + changed(args.seed, args.count)
    made = [m for m in made if re.search(args.filter, m[0])] if args.filter else share(made)
    bad, start = 0, limited(args.burncc)
    print(f"1..{len(made)}")
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda at: check(start, args.keep, pathlib.Path(root), *at), enumerate(made))
        for n, (m, (wrong, said)) in enumerate(zip(made, results), 1):
            bad += bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {n} {m[0]}" + (f": {wrong}" if wrong else ""), flush=True)
            if wrong:
                print("".join(f"# {line[:300]}\n" for line in said.splitlines()[:8]), end="")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
