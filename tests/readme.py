#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""README.md and docs/ are true: commands run and print what is shown, excerpts stand in the files, the support table is
that of `burncc ops`, links and names of files lead somewhere.

usage: readme.py BURNCC [PAGE.md]...
Every line `$ COMMAND` of a ```console block is run, in order, in a folder of the page's own that holds the repository's
models, examples, runtime and templates. The lines below it follow in its output in that order, figures aside; `...`
stands for whatever is left out. Before a block, `<!-- exact -->` compares figures too, and `<!-- varies -->` nothing:
what is printed depends on the machine. A block after `<!-- excerpt: FILE -->` must have its lines in that order in
FILE, figures aside. One after `<!-- file: NAME -->` is written there before the page's commands run.
With BLESS=1 in the environment the table of docs/support.md, exact blocks and excerpts are written anew: of a piece
between `...`, what now stands between its first and its last line. Prints TAP.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import layers       # noqa: E402

BLESS = bool(os.environ.get("BLESS"))
README_LINES = 300
TABLE = re.compile(r"(<!-- burncc ops --markdown: begin -->\n)(.*)(<!-- burncc ops --markdown: end -->)", re.S)
CONSOLE = re.compile(r"^(?:<!-- (exact|varies) -->\n)?```console\n(.*?)^```", re.S | re.M)
EXCERPT = re.compile(r"^<!-- excerpt: (\S+) -->\n```c\n(.*?)^```", re.S | re.M)
WRITTEN = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```", re.S | re.M)
FENCED = re.compile(r"^```.*?^```\n", re.S | re.M)
FOLDERS = "codegen|compiler|docs|examples|language|models|runtime|scripts|templates|tests|tools"
count = failures = 0


def result(ok, what, detail=""):
    global count, failures
    count += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}", flush=True)
    for line in [] if ok else detail.splitlines()[-20:]:
        print(f"# {line}")


def none_of(faults, what):
    wrong = list(faults)
    result(not wrong, what, "\n".join(wrong))


# ---------------------------------------------------------------- a block beside what it shows


def plain(line):
    """A line without its figures: times and sizes are those of a machine and a day."""
    return re.sub(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", "0", " ".join(line.split()))


def missing(block, text, same=plain):
    """The first line of the block that does not follow in the text, or None."""
    lines = iter([same(line) for line in text.splitlines()])
    for line in block.splitlines():
        if line.strip() not in ("", "...") and same(line) not in lines:     # `in` uses the iterator up to the line
            return line
    return None


def indent(line):
    return len(line) - len(line.lstrip())


def find(line, lines, start):
    """Where a line stands, figures aside, at `start` or below; None when it does not."""
    same = (i for i in range(start, len(lines)) if plain(lines[i]) == plain(line) and indent(lines[i]) == indent(line))
    return next(same, None)


def as_now(block, text):
    """The block with each of its pieces (between `...`) as the text has it; pieces whose ends are not found stay."""
    lines, at, now = text.splitlines(), 0, []
    for piece in block.split("...\n"):
        ends = piece.strip("\n").splitlines()
        first = find(ends[0], lines, at) if ends else None
        last = None if first is None else find(ends[-1], lines, first + (len(ends) > 1))
        now.append(piece if last is None else "\n".join(lines[first:last + 1]) + "\n")
        at = at if last is None else last + 1
    return "...\n".join(now)


# ---------------------------------------------------------------- what a page shows


def has(burncc, *parts):
    """Whether burncc was built with any of these; their rows of --version say `no` where it was not."""
    version = subprocess.run([burncc, "--version"], capture_output=True, text=True).stdout
    return not re.search(rf"^ *({'|'.join(parts)}) +no\b", version, re.M)


def run_block(kind, block, work, env, skip):
    """Runs a console block's commands. Out: the block as it would be with BLESS."""
    now = []
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
        if skip and re.search(skip, command):
            now.append((command, shown))
            continue
        run = subprocess.run(command, shell=True, cwd=work, env=env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        result(run.returncode == 0, command, run.stdout)
        if BLESS and kind == "exact":
            shown = as_now(shown, run.stdout)
        gone = None if kind == "varies" else missing(shown, run.stdout, str.rstrip if kind == "exact" else plain)
        result(gone is None, f"what it prints: {command}", f"not there, or not in this order: {gone}")
        now.append((command, shown))
    return "".join(f"$ {command}\n{shown}" for command, shown in now)


def check_page(page, burncc, skip):
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name in ("models", "examples", "runtime", "templates"):
            (work / name).symlink_to(ROOT / name)
        (work / "bin").mkdir()
        (work / "bin" / "burncc").symlink_to(burncc)
        cc = shutil.which(os.environ.get("CC", "cc").split()[0])
        if cc:
            (work / "bin" / "cc").symlink_to(cc)
        env = dict(os.environ, PATH=f"{work / 'bin'}:{os.environ['PATH']}")
        for name, block in WRITTEN.findall(text):
            (work / name).write_text(block, encoding="utf-8")
        for kind, block in CONSOLE.findall(text):
            text = text.replace(block, run_block(kind, block, work, env, skip))
        for name, block in EXCERPT.findall(text):
            path = work / name
            file = path.read_text(encoding="utf-8") if path.exists() else ""
            if BLESS:
                text, block = text.replace(block, as_now(block, file)), as_now(block, file)
            gone = missing(block, file)
            result(gone is None, f"{page.name}: excerpt of {name}", f"not there, or not in this order: {gone}")
    if BLESS:
        page.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- what pages say of files, options and each other


def anchors(page):
    """The anchors of a page's headings, made as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def dead_links(page):
    for link in re.findall(r"\]\(([^):\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{page.relative_to(ROOT)}: {link}"


def absent_files(page):
    """Files that a page names and that are not there: paths from the root, and in a table's row that begins with a
    folder's link names in it or beside it (the tables of a stage). NAME and FAMILY stand for any."""
    for line in FENCED.sub("", page.read_text(encoding="utf-8")).splitlines():
        row = re.match(r"\| \[[^\]]*\]\(([^)#]+)\)", line)
        folder = page.parent / row[1] if row else page
        for name in re.findall(r"`([\w./-]+)`", line):
            if re.match(rf"({FOLDERS})/", name):
                found = (ROOT / name).exists()
            else:
                is_file = folder.is_dir() and re.search(r"\.(c|h|def|py)$", name)
                found = not is_file or any((place / name).exists() for place in (folder, folder.parent))
            if not found and not re.search(r"[A-Z]{3}", name):
                yield f"{page.relative_to(ROOT)}: {name}"


def walk_faults(page):
    """Tables of `function()` and file: the function is in the file, and its layer is not above that of its caller, the
    nearest function above it with fewer dots."""
    callers = {}
    for dots, name, link in re.findall(r"^\| (·*) ?`(\w+)\(\)` \| \[[^\]]*\]\(\.\./([^)]+)\) \|", page, re.M):
        text = (ROOT / link).read_text(encoding="utf-8") if (ROOT / link).exists() else ""
        if not re.search(rf"^[^\s/#].*\b{name}\(", text, re.M):
            yield f"{name}() is not in {link}"
        depth = len(dots)
        callers[depth] = link
        if depth and layers.reaches_up(callers[depth - 1], link):
            yield f"{name}() of {link} is above {callers[depth - 1]}"


def check_pages(pages):
    none_of([line for page in pages for line in dead_links(page)], "what is linked to exists")
    none_of([line for page in pages for line in absent_files(page)], "files that are named exist")

    walk = (ROOT / "docs" / "walk.md").read_text(encoding="utf-8")
    none_of(walk_faults(walk), "the newcomer's walk names functions where they are, and goes down the layers")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    result(readme.count("\n") <= README_LINES, f"README.md has at most {README_LINES} lines")
    chapters = [page.name for page in pages if page.parent == ROOT / "docs"]
    none_of([name for name in chapters if f"(docs/{name})" not in readme], "README.md links to every chapter")
    steps = re.findall(r"^    (scripts/\w+)$", readme, re.M)
    runs = all(os.access(ROOT / step, os.X_OK) for step in steps)
    result(len(steps) == 2 and runs, "two commands set up a fresh machine")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    result(f" {steps[-1]} " in ci, "continuous integration runs the second of them")


def check_options(burncc):
    chapter = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    names = set()
    for command in ("compile", "ops", *re.findall(r"`burncc (\w+) ", chapter)):
        text = subprocess.run([burncc, command, "--help"], check=True, capture_output=True, text=True).stdout
        names.update(re.findall(r"^ .{0,6}(--[\w-]+)", text, re.M))
    none_of([name for name in sorted(names) if f"`{name}" not in chapter], "docs/commands.md has every option")


def check_language():
    header = (ROOT / "language" / "model.h").read_text(encoding="utf-8")
    names = [name for name in re.findall(r"^#define (\w+)", header, re.M) if not name.startswith("BURN")]
    chapter = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    none_of([name for name in names if f"`{name}`" not in chapter], "docs/language.md has every call")


def check_table(burncc):
    page = ROOT / "docs" / "support.md"
    text = page.read_text(encoding="utf-8")
    table = subprocess.run([burncc, "ops", "--markdown"], check=True, capture_output=True, text=True).stdout
    if BLESS:
        text = TABLE.sub(lambda m: m[1] + table + m[3], text)
        page.write_text(text, encoding="utf-8")
    found = TABLE.search(text)
    result(found and found[2] == table, "the table of docs/support.md is that of `burncc ops --markdown`",
           "BLESS=1 tests/readme.py build/burncc writes it")


def main():
    burncc = pathlib.Path(sys.argv[1]).resolve()
    others = ROOT / "tests" / "README.md", ROOT / "models" / "digits" / "README.md"
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *others]
    needs = {"vulkan|gpu": ("SPIR-V", "Vulkan"), "blas": ("OpenBLAS",)}
    skip = [words for words, parts in needs.items() if not has(burncc, *parts)]
    tools = {"dot -T": "dot", "clang --target=|ld.lld|qemu-arm|node main": "ld.lld", "qemu-arm": "qemu-arm",
             "node main": "node", "llvm-size|llvm-nm": "llvm-size", "qemu-system-arm": "qemu-system-arm",
             "arm-none-eabi-|qemu-system-arm": "arm-none-eabi-gcc"}
    skip += [words for words, tool in tools.items() if not shutil.which(tool)]
    check_table(burncc)
    check_options(burncc)
    check_language()
    check_pages(pages)
    for page in [pathlib.Path(name).resolve() for name in sys.argv[2:]] or pages:
        check_page(page, burncc, "|".join(skip))
    print(f"1..{count}")
    return failures > 0


sys.exit(main())
