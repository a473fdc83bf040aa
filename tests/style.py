#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How the code is set: lines of at most 120 columns, one statement a line, functions of at most 60 lines.

usage: style.py [FILE...]   Prints TAP, a test for each rule; without files, all that git knows of (none: skipped).
A `;` counts as a statement's end except in the head of a for, in strings and comments, inside a struct, union or
enum that stands on one line or is a table's row, and in the break or return of a case on one line. Macros that
go on over several lines are rows, too. Templates are kernels, each one function with its loops and holes."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, FUNCTION = 120, 60
SOURCES = (".c", ".h", ".def", ".py", ".sh", ".build", ".mjs", ".proto", ".md")
NO_SUFFIX = ("scripts/", ".ci/")
# Prose in tables of Markdown cannot be broken; the rest of a page can.
TABLE = re.compile(r"^\s*\|.*\|\s*$|^\s*\[[^]]+\]:|^!?\[.*\]\(.*\)$")


def tracked():
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.split("\n")[:-1] if found.returncode == 0 else []


def is_source(name):
    path = pathlib.PurePath(name)
    return path.suffix in SOURCES or (not path.suffix and name.startswith(NO_SUFFIX))


def long_lines(name, lines):
    page, block = name.endswith(".md"), False           # a block: what programs print and read, as it is
    for number, line in enumerate(lines, 1):
        block ^= page and line.startswith("```")
        if len(line) > COLUMNS and not (page and (block or TABLE.match(line) or line.startswith("    "))):
            yield f"{name}:{number}: {len(line)} columns"


def bare(line):
    """A line of C without strings, comments and the heads of its for loops."""
    line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'', '""', line)
    line = re.sub(r"/\*.*?\*/|//.*$", "", line)
    while (start := line.find("for (")) >= 0:
        depth, end = 0, start + 4
        for end in range(start + 4, len(line)):
            depth += (line[end] == "(") - (line[end] == ")")
            if not depth:
                break
        line = line[:start] + line[end + 1:]
    return line


def statements(name, lines):
    macro = comment = aggregate = False
    for number, line in enumerate(lines, 1):
        inside, macro = macro, line.endswith("\\")
        if comment or line.lstrip().startswith("/*"):
            comment = "*/" not in line
            continue
        if inside or macro or line.lstrip().startswith("#"):
            continue
        text = bare(line)
        if re.match(r"\s*(case\b|default:)", text):       # a row of a table: what is done, and the end of it
            text = re.sub(r"(break|continue|return [^;]*|return);\s*$", "", text)
        if re.match(r"\s*(typedef )?(static )?(const )?(struct|union|enum)\b[^;()]*\{\s*$", text):
            aggregate = True
        elif re.match(r"\s*\}", text):
            aggregate = False
        elif not aggregate and text.count(";") > 1 and not re.search(r"\b(struct|union|enum|VEC)\b.*[{(]", text):
            yield f"{name}:{number}: {text.count(';')} statements"


def functions(name, lines):
    start = None
    if name.startswith("templates/"):       # a kernel is one function: its loops, and the holes that are filled
        return
    for number, line in enumerate(lines, 1):
        if line.endswith("{") and re.match(r"(\w.*\)|.*\)) \{$|\{$", line) and not line.startswith((" ", "#")):
            start = number
        elif line.startswith("}") and start:
            if number - start + 1 > FUNCTION:
                yield f"{name}:{start}: a function of {number - start + 1} lines"
            start = None


def main():
    names = sys.argv[1:] or [n for n in tracked() if is_source(n)]
    if not names:
        print("1..0 # SKIP no git here")
        return 0
    texts = {n: (ROOT / n).read_text(encoding="utf-8").split("\n") for n in names if (ROOT / n).is_file()}
    c_texts = {n: t for n, t in texts.items() if n.endswith((".c", ".h"))}
    rules = [(f"lines of at most {COLUMNS} columns", long_lines, texts),
             ("one statement a line", statements, c_texts),
             (f"functions of at most {FUNCTION} lines", functions, c_texts)]
    print(f"1..{len(rules)}")
    failed = 0
    for number, (title, rule, of) in enumerate(rules, 1):
        faults = [fault for n, lines in of.items() for fault in rule(n, lines)]
        print(f"{'not ok' if faults else 'ok'} {number} - {title}")
        for fault in faults[:40]:
            print("# " + fault)
        if len(faults) > 40:
            print(f"# and {len(faults) - 40} more")
        failed += bool(faults)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
