#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# The report of a run (runtime/learn/watch_report.c): what stands in it, and how a browser draws it.
#
# usage: report.py LIBRARY    LIBRARY: runtime/learn as a shared library
#
# In: runs that never were (watching.py). Out: TAP. Pictures are read by a reader of this file's own; a Chromium draws
# the page where there is one.
import base64
import ctypes
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import watching             # noqa: E402
from tap import Tap         # noqa: E402
from watching import NAN, Run, make      # noqa: E402

EFORMAT, EIO = -6, -3
BROWSERS = "chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome-headless-shell"
ODD = "a/b </script><b> \"d\" \\, ü"


def runs_of(path):
    """The runs of a report; that nothing in them ends their element is what makes this expression enough."""
    text = path.read_text()
    found = re.findall(r'<script class="run" type="application/json">(.*?)</script>', text, re.S)
    return [json.loads(j) for j in found]


def pixels(png):
    """Rows of bytes of a PNG of 8 bits, and the bytes of a pixel."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, head = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        head = png[at + 8:at + 8 + size] if kind == b"IHDR" else head
        data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    width, height, bits, colour = struct.unpack(">IIBB", head[:10])
    each = {0: 1, 2: 3, 6: 4}[colour]
    raw, rows, before = zlib.decompress(data), [], bytearray(width * each)
    for y in range(height):
        kind, *row = raw[y * (width * each + 1):(y + 1) * (width * each + 1)]
        for i in range(len(row)):
            a, b, c = (row[i - each], before[i], before[i - each]) if i >= each else (0, before[i], 0)
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, near)[kind]) & 255
        rows.append(row)
        before = row
    assert bits == 8
    return rows, each


def check_content(c, t, folder):
    names = ("accuracy", ODD)
    run = Run(c, make(c, ["report"]), folder / "one", names=names, name="<net>", image=(3, 4, 6),
              settings=(("loss", "cross_entropy"), ("odd", ODD)),
              curve=lambda s, e, x: {"loss": NAN if e == 2 and not s else e + x, ODD: 1 / 3})
    run.go()
    path = folder / "one" / "report.html"
    (r,) = runs_of(path)
    t.check("names and settings stand as they are", r["name"] == "<net>" and r["settings"][1] == ["odd", ODD], r)
    t.check("no file of before is left", [p.name for p in path.parent.iterdir()] == ["report.html"])
    t.check("nothing comes over a network", not re.search(r"(src|href|url)\W*https?:|@import|fetch\(",
                                                          path.read_text()))
    curves = {(x["split"], x["name"]): x for x in r["curves"]}
    t.check("curves: means of epochs", curves["valid", "loss"]["epochs"] == [[1, 2], [2, 3], [3, 4]]
            and curves["train", ODD]["epochs"][2] == [3, 0.3333333], curves)
    t.check("curves: NaN is a gap", curves["train", "loss"]["epochs"][1] == [2, None], curves["train", "loss"])
    t.check("curves: batches", curves["train", "loss"]["batches"][:4]
            == [[0.25, 1.25], [0.5, 1.5], [0.75, 1.75], [1, 2]])
    counts, items = r["confusion"]["counts"], 4 * 5
    accuracy = sum(counts[i][i] for i in range(3)) / items
    t.check("confusion matrix: of the last validation", sum(map(sum, counts)) == items
            and abs(accuracy - curves["valid", "accuracy"]["epochs"][-1][1]) < 1e-6
            and r["confusion"]["classes"] == ["class 0", "class 1", "class 2"], r["confusion"])
    worst = sorted(enumerate(run.losses), key=lambda x: -x[1])[:12]
    t.check("worst items: the greatest losses of the last validation",
            all(w["item"] == i and abs(w["loss"] - loss) < 1e-5 for w, (i, loss) in zip(r["worst"], worst))
            and len(r["worst"]) == 12, (r["worst"], worst))
    t.check("worst items: how sure it was", all(1 / 3 < w["sure"] <= 1 and w["wanted"].startswith("class")
                                                for w in r["worst"]), r["worst"])
    if not r["worst"][0]["image"]:
        t.skip("worst items: pictures", "libpng was not there")
        return
    rows, each = pixels(base64.b64decode(r["worst"][0]["image"].split(",")[1]))
    wanted = [[round(255 * (k * 24 + y * 6 + x) / 72) for x in range(6) for k in range(3)] for y in range(4)]
    t.check("worst items: pictures", each == 3 and all(abs(a - b) <= 1 for p, q in zip(rows, wanted)
                                                       for a, b in zip(p, q)), (rows, wanted))


def check_edges(c, t, folder):
    run = Run(c, make(c, ["report"]), folder / "named", epochs=1, names=("accuracy",), classes=5)
    run.class_names = 3
    run.go()
    (r,) = runs_of(folder / "named" / "report.html")
    t.check("a model with room for more classes than there are", r["confusion"]["classes"]
            == ["class 0", "class 1", "class 2", "3", "4"], r["confusion"]["classes"])
    Run(c, make(c, ["report"]), folder / "few", epochs=1, batches=1, names=(), valid=False).go()
    (r,) = runs_of(folder / "few" / "report.html")
    t.check("one epoch of one batch, no validation, no metrics", r["state"] == "epochs done" and not r["worst"]
            and "confusion" not in r and [x["epochs"] for x in r["curves"]] == [[[1, 1]]], r)
    how = {"names": ("accuracy",), "curve": lambda s, e, x: {"loss": float(e)}}
    Run(c, make(c, ["report", "logs"]), folder / "on", epochs=2, batches=600, **how).go()
    Run(c, make(c, ["report", "logs"]), folder / "on", epochs=3, batches=600, resumed=2, **how).go()
    (r,) = runs_of(folder / "on" / "report.html")
    loss = r["curves"][0]
    t.check("a run that goes on: epochs and batches of before are in its curves", [p[1] for p in loss["epochs"]]
            == [1, 2, 3] and [loss["batches"][0][1], loss["batches"][-1][1]] == [1, 3], loss["epochs"])
    t.check("many batches become means of several", 256 <= len(loss["batches"]) <= 512, len(loss["batches"]))
    text, image = folder / "no" / "text", (ctypes.c_char_p * 2)
    text.parent.mkdir()
    text.write_text("no report")
    both = image(*[str(folder / d / "report.html").encode() for d in ("one", "few")])
    said, to = watching.Said(), str(folder / "both.html").encode()
    error = c.burn_report_join(2, both, to, ctypes.byref(said))
    t.check("several runs in one page", not error and [r["label"] for r in runs_of(folder / "both.html")]
            == ["one", "few"], said.text)
    error = c.burn_report_join(1, image(str(text).encode()), to, ctypes.byref(said))
    t.check("what is no report is told, and what was there stays", error == EFORMAT and b"is no report" in said.text
            and len(runs_of(folder / "both.html")) == 2 and not (folder / "both.html.tmp").exists(), said.text)
    error = c.burn_report_join(1, both, str(folder / "none" / "x.html").encode(), ctypes.byref(said))
    t.check("a page that cannot be written", error == EIO and b"none/x.html" in said.text, said.text)


# ---------------------------------------------------------------- in a browser
def browse(browser, page, folder, *options):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
               "--enable-logging=stderr", "--window-size=560,460", "--hide-scrollbars", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, "\n".join(x for x in done.stderr.split("\n") if "CONSOLE" in x)


def check_page(t, browser, page, folder, curves, charts, images):
    dom, said = browse(browser, page, folder, "--dump-dom")
    t.check(f"browser, {page.parent.name}/{page.name}: no script error", not said, said)
    lines = [d for d in re.findall(r'<path d="([^"]*)"[^>]*class="curve"', dom) if d.startswith("M")]
    t.check(f"browser, {page.parent.name}/{page.name}: charts, curves and pictures are there",
            dom.count('class="card chart"') == charts and len(lines) == curves and dom.count("<img") == images
            and "NaN" not in dom.split("<script")[0], (dom.count('class="card chart"'), lines, dom.count("<img")))
    return dom


def check_browser(c, t, folder):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        t.skip("browser", "there is no Chromium")
        return
    how = {"names": ("accuracy",), "epochs": 6, "image": (1, 8, 8)}
    Run(c, make(c, ["report"]), folder / "drawn", **how).go()
    Run(c, make(c, ["report"]), folder / "other", curve=lambda s, e, x: {"loss": math.exp(-e)}, **how).go()
    page = folder / "drawn" / "report.html"
    check_page(t, browser, page, folder, 4, 2, 12)
    dom = check_page(t, browser, folder / "one" / "report.html", folder, 6, 3, 12)
    t.check("browser: names do not become elements", "&lt;net&gt;" in dom and "<b>" in dom
            and ODD.replace("<", "&lt;").replace(">", "&gt;") in dom)
    check_page(t, browser, folder / "few" / "report.html", folder, 1, 1, 0)
    reports = (ctypes.c_char_p * 2)(*[str(folder / d / "report.html").encode() for d in ("drawn", "other")])
    assert not c.burn_report_join(2, reports, str(folder / "runs.html").encode(), None)
    check_page(t, browser, folder / "runs.html", folder, 8, 2, 24)
    for name, options, colours in (("light", (), ((0x2b, 0x6c, 0xb8), (0xc8, 0x57, 0x1b))),
                                   ("dark", ("--blink-settings=preferredColorScheme=0",),
                                    ((0x6a, 0xa9, 0xee), (0xf0, 0x91, 0x5a)))):
        browse(browser, page, folder, f"--screenshot={folder}/{name}.png", *options)
        rows, each = pixels((folder / f"{name}.png").read_bytes())
        seen = [sum(max(abs(row[i + k] - colour[k]) for k in range(3)) < 24 for row in rows
                    for i in range(0, len(row), each)) for colour in colours]
        t.check(f"browser: both curves are seen in {name} colours", min(seen) > 200, seen)


def main():
    c, t = watching.library(sys.argv[1]), Tap()
    with tempfile.TemporaryDirectory() as folder:
        check_content(c, t, pathlib.Path(folder))
        check_edges(c, t, pathlib.Path(folder))
        check_browser(c, t, pathlib.Path(folder))
    return t.end()


if __name__ == "__main__":
    sys.exit(main())
