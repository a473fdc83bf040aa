#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The book as scripts/book stages it: every chapter of docs/ has its place, once, and no link leads nowhere or out.

usage: book.py
In: README.md and docs/. Out: TAP. HTML is made of it where MkDocs is installed (MKDOCS names it); links are checked
without it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
sys.dont_write_bytecode = True
import book         # noqa: E402
from tap import Tap  # noqa: E402

CODE = re.compile(r"^```.*?^```\n|`[^`\n]*`", re.S | re.M)
tap = Tap()


def dead_links(source):
    for page in source.rglob("*.md"):
        for link in re.findall(r"\]\(([^):\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
            target = (page.parent / link.split("#")[0]).resolve() if not link.startswith("#") else page
            if not target.is_file() or source not in target.parents:
                yield f"{page.relative_to(source)}: {link}"


def main():
    rows = list(book.chapters())
    paths = [path for _, _, path in rows]
    own = sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))
    tap.check("every chapter is in README's tables, once", sorted(p for p in paths if p.startswith("docs/")) == own,
              sorted(set(own).symmetric_difference(paths)))
    tap.check("in two parts, each with a title", len({part for part, _, _ in rows}) == 2 and all(t for _, t, _ in rows))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        staged = book.stage(folder)
        tap.check("every chapter is a page", all((folder / "src" / staged.pages[path]).is_file() for path in paths))
        dead = list(dead_links(folder / "src"))
        tap.check("every link resolves inside the book", not dead, dead[:5])
        mkdocs = shutil.which(os.environ.get("MKDOCS", "mkdocs"))
        if not mkdocs:
            tap.skip("HTML", "MkDocs is not installed")
            return tap.end()
        run = subprocess.run([mkdocs, "build", "--quiet", "--strict", "-f", str(folder / "mkdocs.yml")],
                             capture_output=True, text=True)
        tap.check("HTML without a warning", run.returncode == 0, run.stderr[-800:])
        pages = {path: folder / "html" / pathlib.Path(path).with_suffix(".html").name for path in own}
        missing = [path for path, page in pages.items() if not page.exists()]
        tap.check("a page of HTML for each", not missing, missing)
    return tap.end()


sys.exit(main())
