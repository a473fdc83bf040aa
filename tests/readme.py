#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The README is true: its commands run, its excerpts stand in what they write, its table is that of `burncc ops`.

usage: readme.py BURNCC
Every line `$ COMMAND` of a ```console block is run, in order, in a folder that holds the README's models, examples and runtime. A block after
`<!-- excerpt: FILE -->` must have its lines in that order in FILE, numbers aside; `...` stands for whatever is left out.
With BLESS=1 in the environment the table and what now stands between the first and the last line of each piece of an excerpt are written
into the README. Prints TAP.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(<!-- burncc ops --markdown: begin -->\n)(.*)(<!-- burncc ops --markdown: end -->)", re.S)
count = failures = 0


def result(ok, what, detail=""):
    global count, failures
    count += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}", flush=True)
    for line in [] if ok else detail.splitlines()[-20:]:
        print(f"# {line}")


def plain(line):
    return re.sub(r"\d+", "0", line.strip())


def excerpt_missing(block, text):
    """The first line of the block that does not follow in the text, or None."""
    lines = iter([plain(line) for line in text.splitlines()])
    for line in block.splitlines():
        if line.strip() not in ("", "...") and plain(line) not in lines:      # `in` uses the iterator up to the line
            return line
    return None


def excerpt_now(block, text):
    """The block with each of its pieces (between `...`) as the text has it; pieces whose ends are not found stay."""
    lines, at, now = text.splitlines(), 0, []
    for piece in block.split("...\n"):
        ends = [plain(line) for line in piece.strip("\n").splitlines()]
        first = next((i for i in range(at, len(lines)) if plain(lines[i]) == ends[0]), None)
        last = None if first is None else next((i for i in range(first, len(lines)) if plain(lines[i]) == ends[-1] and lines[i][:1] != " "), None)
        now.append(piece if last is None else "\n".join(lines[first:last + 1]) + "\n")
        at = at if last is None else last + 1
    return "...\n".join(now)


def main():
    burncc = pathlib.Path(sys.argv[1]).resolve()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = subprocess.run([burncc, "ops", "--markdown"], check=True, capture_output=True, text=True).stdout.replace("\n## ", "\n### ").replace("## ", "### ", 1)
    if os.environ.get("BLESS"):
        readme = TABLE.sub(lambda m: m[1] + table + m[3], readme)
        (ROOT / "README.md").write_text(readme, encoding="utf-8")
    found = TABLE.search(readme)
    result(found and found[2] == table, "the table is that of `burncc ops --markdown`", "BLESS=1 tests/readme.py build/burncc writes it")

    links = [name for name in re.findall(r"\]\(([^)#:]+)\)", readme) if not (ROOT / name).exists()]
    result(not links, "what is linked to exists", "\n".join(links))

    has_vulkan = not re.search(r"(Vulkan|SPIR-V) +no\b", subprocess.run([burncc, "--version"], capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name in ("models", "examples", "runtime"):
            (work / name).symlink_to(ROOT / name)
        (work / "bin").mkdir()
        (work / "bin" / "burncc").symlink_to(burncc)
        cc = shutil.which(os.environ.get("CC", "cc").split()[0])
        if cc:
            (work / "bin" / "cc").symlink_to(cc)
        env = dict(os.environ, PATH=f"{work / 'bin'}:{os.environ['PATH']}")
        for command in re.findall(r"^\$ (.*)$", "".join(re.findall(r"^```console\n(.*?)^```", readme, re.S | re.M)), re.M):
            if not has_vulkan and re.search("vulkan|gpu", command):
                continue
            run = subprocess.run(command, shell=True, cwd=work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            result(run.returncode == 0, command, run.stdout)
        for name, block in re.findall(r"^<!-- excerpt: (\S+) -->\n```c\n(.*?)^```", readme, re.S | re.M):
            path = work / name
            if os.environ.get("BLESS") and path.exists():
                now = excerpt_now(block, path.read_text(encoding="utf-8"))
                readme, block = readme.replace(block, now), now
                (ROOT / "README.md").write_text(readme, encoding="utf-8")
            missing = excerpt_missing(block, path.read_text(encoding="utf-8")) if path.exists() else name
            result(missing is None, f"excerpt of {name}", f"not there, or not in this order: {missing}")
    print(f"1..{count}")
    return failures > 0


sys.exit(main())
