#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The book's pages, ready for MkDocs: what scripts/book builds HTML from.

usage: book.py FOLDER
In: README.md, whose tables under "The book" say which chapters there are and in which order, and docs/. Out:
FOLDER/mkdocs.yml and FOLDER/src. README.md is the first page. What pages link to beside the chapters goes along: other
pages, source files as text, folders as a list of their files. So no link leads out of the book."""
import json
import os
import pathlib
import posixpath
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^):\s#]*)(#[^)\s]*)?(\))")
CODE = re.compile(r"(^```.*?^```\n|`[^`\n]*`)", re.S | re.M)
PLAIN = (".png", ".svg")                                # what a browser shows as it is


def chapters():
    """(part, title, path) of the README's tables, in their order."""
    book = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## The book\n")[1].split("\n## ")[0]
    part = ""
    for line in book.splitlines():
        heading, row = re.match(r"([A-Z].*):$", line), re.match(r"\| \[([^\]]+)\]\(([^)]+\.md)\) \|", line)
        part = heading[1] if heading else part
        if row:
            yield part, row[1], row[2]


class Book:
    def __init__(self, folder):
        self.source = folder / "src"
        self.pages = {}                                 # where in the book each page of the repository is
        self.waiting = []

    def place(self, path):
        """The place of a page, file or folder of the repository; pages and folders are still to be written."""
        if path in self.pages:
            return self.pages[path]
        if path == "README.md":
            name = "index.md"
        elif path.startswith("docs/") and path.endswith(".md"):
            name = path[len("docs/"):]
        elif (ROOT / path).is_dir():
            name = f"files/{path}/index.md"
        elif path.endswith(".md") and not path.startswith("templates/"):      # those have holes: no pages
            name = f"files/{path}"
        elif path.startswith("docs/") and path.endswith(PLAIN):
            name = path[len("docs/"):]
        else:
            name = f"files/{path}" if path.endswith(PLAIN) else f"files/{path}.txt"
        self.pages[path] = name
        if name.endswith(".md"):
            self.waiting.append(path)
        else:
            target = self.source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)
        return name

    def link(self, page, target):
        """A link of a page of the repository, as it is in the book."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if path.startswith("..") or not (ROOT / path).exists():
            sys.exit(f"{page} links to {target}, which is not there")
        return posixpath.relpath(self.place(path), posixpath.dirname(self.pages[page]) or ".")

    def text(self, path):
        if (ROOT / path).is_dir():
            return self.listing(path)
        parts = CODE.split((ROOT / path).read_text(encoding="utf-8"))
        for i in range(0, len(parts), 2):               # between code
            parts[i] = LINK.sub(lambda m: m[0] if not m[2] else m[1] + self.link(path, m[2]) + (m[3] or "") + m[4],
                                parts[i])
        return "".join(parts)

    def listing(self, path):
        own = sorted(p.name for p in (ROOT / path).iterdir() if not p.name.startswith((".", "__")))
        lines = [f"- {name}/" for name in own if (ROOT / path / name).is_dir()]
        for name in own:
            if (ROOT / path / name).is_file():
                lines.append(f"- [{name}]({posixpath.relpath(self.place(f'{path}/{name}'), f'files/{path}')})")
        return f"# {path}/\n\n" + "\n".join(lines) + "\n"

    def write(self):
        while self.waiting:
            path = self.waiting.pop(0)
            target = self.source / self.pages[path]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.text(path), encoding="utf-8")


def navigation(book):
    parts = {}
    for part, title, path in chapters():
        parts.setdefault(part, []).append({title: book.place(path)})
    return [{"burncc": book.place("README.md")}, *({part: rows} for part, rows in parts.items())]


def stage(folder):
    book = Book(folder)
    if book.source.exists():
        shutil.rmtree(book.source)
    book.source.mkdir(parents=True)
    settings = {
        "site_name": "burncc", "docs_dir": "src", "site_dir": "html", "use_directory_urls": False,
        "nav": navigation(book), "not_in_nav": "files/", "markdown_extensions": ["attr_list"],
        "theme": {"name": "mkdocs", "color_mode": "auto", "user_color_mode_toggle": True, "highlightjs": False,
                  "navigation_depth": 3},
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn"},
            "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
        },
    }
    book.write()
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")    # JSON is YAML
    return book


if __name__ == "__main__":
    os.umask(0o022)
    stage(pathlib.Path(sys.argv[1]))
