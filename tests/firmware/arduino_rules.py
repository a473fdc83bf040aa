#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The rules of Arduino's library linter that need no network, by their published identifiers, over a library's folder.

    arduino_rules.py FOLDER...

Out: a line for each rule broken, `FOLDER: LP056 error: ...`; exit 1 where one of them is an error at the linter's
default level ("specification"). Before that the rules are tried on broken copies of the first folder: each has to find
its own. Rules: arduino.github.io/arduino-lint/latest/rules/library; the format: Arduino's library specification,
revision 2.2. Left out are what asks the network (LP017, LP018, LP042, LP048), spelling (LP033, LP035) and releases
(LP022)."""
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.parse

FIELDS = ("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures",
          "depends", "dot_a_linkage", "includes", "precompiled", "ldflags", "license", "email")
MISSING = {"name": "LP007", "version": "LP019", "author": "LP023", "maintainer": "LP025", "sentence": "LP031",
           "paragraph": "LP034", "category": "LP037", "url": "LP040", "architectures": "LP043"}
EMPTY = {"name": "LP008", "author": "LP024", "maintainer": "LP026", "sentence": "LP032", "url": "LP056",
         "architectures": "LP044", "includes": "LP051"}
CATEGORIES = ("Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage",
              "Data Processing", "Other")
SKETCHES = (".ino", ".pde")
LICENCES = re.compile(r"(?i)^(licen[sc]e|copying|unlicense)([.-].*)?$")
FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
LONGEST = 63


def read_properties(path):
    """(fields in order, whether each line is one)"""
    lines = [line for line in path.read_text().split("\n") if line.strip() and not line.startswith("#")]
    pairs = [line.split("=", 1) for line in lines]
    return {p[0]: p[1].strip() for p in pairs if len(p) == 2}, all(len(p) == 2 for p in pairs)


def name_rules(name):
    if len(name) > LONGEST:
        yield "LP009", True, "the name is longer than 63 characters"
    elif len(name) > 32:
        yield "LP010", False, "the name is longer than 32 characters"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", name) or not re.search("[A-Za-z]", name):
        yield "LP011", True, "the name has characters that are not allowed"
    if name.lower().startswith("arduino"):
        yield "LP012", True, "the name begins as Arduino's own"
    elif "arduino" in name.lower():
        yield "LP014", False, "the name says Arduino"
    if " " in name:
        yield "LP015", False, "the name has spaces"
    if "library" in name.lower():
        yield "LP016", False, "the name says library"


def field_rules(folder, fields):
    for field, rule in MISSING.items():
        if field not in fields:
            yield rule, True, f"there is no {field}"
    for field, rule in EMPTY.items():
        if fields.get(field) == "":
            yield rule, True, f"{field} is empty"
    for field in fields:
        if field not in FIELDS:
            yield "LP006", False, f"{field} is no field"
    if not re.fullmatch(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?", fields.get("version", "0.0.0")):
        yield "LP021", False, "the version is none of three numbers"
    if fields.get("maintainer", "").lower().startswith("arduino"):
        yield "LP027", False, "the maintainer is Arduino"
    if "email" in fields:
        yield "LP028", False, "email stands for maintainer"
    if fields.get("sentence") and fields["sentence"] in fields.get("paragraph", ""):
        yield "LP036", False, "the paragraph says the sentence again"
    category = fields.get("category", CATEGORIES[0])
    if category == "Uncategorized":
        yield "LP039", False, "there is no category"
    elif category not in CATEGORIES:
        yield "LP038", False, f"{category} is no category"
    url = urllib.parse.urlparse(fields.get("url") or "https://example.com/")
    if url.scheme not in ("http", "https") or not url.netloc:
        yield "LP041", True, "url is none"
    for header in filter(None, (h.strip() for h in fields.get("includes", "").split(","))):
        if not (folder / "src" / header).is_file():
            yield "LP052", True, f"{header} is not in the library"
    if fields.get("includes") and fields.get("name", "") + ".h" not in fields["includes"].split(","):
        yield "LS008", False, "no header is named as the library is"


def text_rules(folder):
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_symlink():
            yield "LS005", True, f"{path.name} is a link"
        if path.name == ".development":
            yield "LS006", True, "it is marked as being worked on"
        if path.suffix == ".exe":
            yield "LS007", True, f"{path.name} is a program"
        if path.suffix in SKETCHES and inside[0] not in ("examples", "extras"):
            yield "LD003", False, f"{path.name} is a sketch outside examples"
        if path.suffix in SKETCHES and path.stem != path.parent.name:
            yield "SS001", True, f"{path.name} is not named as its folder is"
        if path.suffix in (".c", ".cpp", ".h", ".ino") and re.search(
                r'#include\s+[<"](?!Arduino\.h)(?i:arduino\.h)', path.read_text(errors="replace")):
            yield "LC001", True, f"{path.name} spells Arduino.h otherwise"


def layout_rules(folder):
    names = {p.name for p in folder.iterdir()}
    if len(folder.name) > LONGEST:
        yield "LS002", True, "the folder's name is longer than 63 characters"
    if not FOLDER.fullmatch(folder.name):
        yield "LS003", True, "the folder's name has characters that are not allowed"
    for right, rule in (("src", "LS009"), ("extras", "LS012"), ("examples", "LD006")):
        if any(n.lower() == right and n != right for n in names):
            yield rule, True, f"{right} is spelled otherwise"
    if "src" in names and "utility" in names:
        yield "LS010", True, "utility beside src"
    if "extra" in names:
        yield "LS011", False, "extra is called extras"
    if "example" in names:
        yield "LD005", True, "example is called examples"
    if not any(n.lower().startswith("readme") for n in names):
        yield "LD001", False, "there is no README"
    if not any(LICENCES.match(n) for n in names):
        yield "LD002", False, "there is no licence"
    if not any(p.suffix in SKETCHES for p in (folder / "examples").rglob("*")):
        yield "LD004", False, "there is no example"


def broken(folder):
    """(rule, is it an error, why) of each that is."""
    if not (folder / "src").is_dir() or not list((folder / "src").glob("*.h")):
        yield "LS001", True, "there is no library"
        return
    if not (folder / "library.properties").is_file():
        yield "LP001", True, "there is no library.properties"
        return
    fields, whole = read_properties(folder / "library.properties")
    if not whole:
        yield "LP005", True, "a line has no field"
    yield from layout_rules(folder)
    yield from text_rules(folder)
    yield from field_rules(folder, fields)
    yield from name_rules(fields.get("name", ""))


def edit(pattern, new):
    def apply(folder):
        path = folder / "library.properties"
        path.write_text(re.sub(pattern, new, path.read_text(), flags=re.M))
    return apply


SPOILED = {
    "LP001": lambda f: (f / "library.properties").unlink(), "LP005": edit("^version=", "version "),
    "LP006": edit("^category=", "categories="), "LP011": edit("^name=", "name=!"),
    "LP012": edit("^name=", "name=Arduino_"),
    "LP009": edit("^name=", "name=" + "n" * 63), "LP021": edit("^version=.*", "version=1.2"),
    "LP023": edit("^author=.*\n", ""), "LP036": edit("^sentence=.*", "sentence=no allocation"),
    "LP038": edit("^category=.*", "category=AI"),
    "LP041": edit("^url=.*", "url=nowhere"), "LP044": edit("^architectures=.*", "architectures="),
    "LP052": edit("^includes=.*", "includes=none.h"), "LP056": edit("^url=.*", "url="),
    "LS006": lambda f: (f / ".development").touch(), "LS007": lambda f: (f / "run.exe").touch(),
    "LS005": lambda f: (f / "link").symlink_to("src"), "LD001": lambda f: (f / "README.md").unlink(),
    "LD003": lambda f: (f / "src" / "src.ino").touch(), "LD004": lambda f: shutil.rmtree(f / "examples"),
    "LS010": lambda f: (f / "utility").mkdir(), "LS009": lambda f: (f / "SRC").mkdir(),
    "LS001": lambda f: shutil.rmtree(f / "src"), "SS001": lambda f: (f / "examples" / "other.ino").touch(),
    "LC001": lambda f: (f / "src" / "x.h").write_text("#include <arduino.h>\n"),
}


def main():
    folders = [pathlib.Path(a) for a in sys.argv[1:]]
    failed = False
    for rule, spoil in SPOILED.items():
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch) / folders[0].name
            shutil.copytree(folders[0], copy)
            spoil(copy)
            if rule not in {b[0] for b in broken(copy)}:
                print(f"{rule} does not find what it is for")
                failed = True
    for folder in folders:
        for rule, error, why in broken(folder):
            print(f"{folder.name}: {rule} {'error' if error else 'warning'}: {why}")
            failed |= error
    return failed


if __name__ == "__main__":
    sys.exit(main())
