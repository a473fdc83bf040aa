#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# The watchers of runtime/learn/watchers.h over runs that never were (watching.py): lines, logs, reports.
#
# usage: watch.py LIBRARY    LIBRARY: runtime/learn as a shared library
#
# In: nothing. Out: TAP. Needs the standard library only; event files are read by a reader of this file's own.
import csv
import fcntl
import math
import os
import pathlib
import pty
import struct
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import watching             # noqa: E402
from tap import Tap         # noqa: E402
from watching import NAN, NOTE, WARNING, Run, make      # noqa: E402

NAMES = ("accuracy", "a/b <c> \"d\", e")        # the second one is no metric that there is


def lines_of(c, folder, watcher="lines", say=(), **how):
    path = folder / "lines.txt"
    to = c.fopen(str(path).encode(), b"w")
    watchers = make(c, [watcher], to)
    for level, text in say:
        watchers[0].say(watchers[0].own, level, text.encode())
    Run(c, watchers, **how).go()
    c.fclose(to)
    return path.read_text()


def on_terminal(c, columns, term="xterm", no_color=None, **how):
    """What a run writes on a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.environ["TERM"] = term
    os.environ.pop("NO_COLOR", None)
    if no_color:
        os.environ["NO_COLOR"] = no_color
    to = c.fdopen(slave, b"w")
    Run(c, make(c, ["lines"], to), **how).go()
    os.set_blocking(master, False)
    seen = b""
    try:
        while part := os.read(master, 65536):
            seen += part
    except OSError:
        pass
    c.fclose(to)
    os.close(master)
    return seen.decode()


def check_lines(c, t):
    with tempfile.TemporaryDirectory() as f:
        folder = pathlib.Path(f)
        text = lines_of(c, folder, names=NAMES, curve=lambda s, e, x: {"loss": 1 / e, NAMES[1]: 2.5})
        rows = [r for r in text.split("\n") if r.startswith("epoch")]
        t.check("lines: one an epoch where nothing is a terminal", len(rows) == 3 and "\r" not in text, text)
        t.check("lines: both splits, and the best epoch is told",
                "train  loss 1.0000" in rows[0] and "valid  loss 1.0000" in rows[0] and rows[2].endswith("best"), text)
        t.check("lines: names stand as they are", NAMES[1] + " 2.5000" in text, text)
        table = [r.split("|")[1:-1] for r in text.split("\n") if r.startswith("| ")]
        loss = [x.strip() for x in next(r for r in table if r[0].strip() == "valid" and r[1].strip() == "loss")]
        t.check("lines: the table has first, last, best and its epoch", loss[2:] == ["1.0000", "0.3333", "0.3333", "3"],
                loss)
        text = lines_of(c, folder, names=(), epochs=1, valid=False)
        t.check("lines: one epoch, no validation", "epoch 1/1  train" in text and "valid" not in text, text)
        text = lines_of(c, folder, names=(), curve=lambda s, e, x: {"loss": NAN})
        t.check("lines: a loss that is no number is shown", "loss nan" in text and "| nan      | nan      | - " in text,
                text)
        text = lines_of(c, folder, "quiet", say=((NOTE, "a note"), (WARNING, "a warning")))
        t.check("lines: quiet ones are warnings alone", text == "warning: a warning\n", repr(text))
        text = lines_of(c, folder, epochs=0)
        t.check("lines: no epoch at all", "epochs done after 0 epochs" in text and "|" not in text, text)


def check_terminal(c, t):
    how = {"names": ("accuracy",), "epochs": 2, "batches": 5, "pause": 0.06}
    text = on_terminal(c, 70, **how)
    t.check("terminal: the progress line is written anew", "\r\033[K" in text and "left" in text, repr(text))
    shown = [p for p in text.replace("\n", "\r").split("\r") if "[" in p and "/5" in p]
    t.check("terminal: no line is longer than the terminal is wide",
            len(shown) > 2 and max(len(s.replace("\033[K", "")) for s in shown) <= 69, shown)
    t.check("terminal: the best epoch is bold", "\033[1mepoch" in text, repr(text))
    t.check("terminal: NO_COLOR", "\033[1m" not in on_terminal(c, 70, no_color="1", **how))
    t.check("terminal: TERM=dumb has plain lines", "\033" not in on_terminal(c, 70, term="dumb", **how))


# ---------------------------------------------------------------- logs
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """{number: last value} of a protobuf message."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            found[key >> 3], at = varint(data, at)
            continue
        size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        raw, at = data[at:at + size], at + size
        found[key >> 3] = raw if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", raw)[0]
    return found


def events(folder):
    """(tag, step, value) of all scalars, and the steps at which runs went on; checksums must be right."""
    scalars, restarts = [], []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            size, of_size = struct.unpack_from("<QI", data, at)
            body = data[at + 12:at + 12 + size]
            assert of_size == crc32c(data[at:at + 8])
            assert struct.unpack_from("<I", data, at + 12 + size)[0] == crc32c(body)
            event, at = fields(body), at + 16 + size
            if 3 in event:
                assert event[3] == b"brain.Event:2"
            elif 7 in event:
                restarts.append(event[2])
            else:
                value = fields(fields(event[5])[1])
                scalars.append((value[1].decode(), event[2], value[2]))
    return scalars, restarts


def check_logs(c, t):
    with tempfile.TemporaryDirectory() as f:
        folder = pathlib.Path(f) / "a" / "run"
        how = {"names": NAMES, "artifacts": folder}
        Run(c, make(c, ["logs"]), curve=lambda s, e, x: {"loss": NAN if e == 2 else e + x, NAMES[1]: 7}, **how).go()
        log = (folder / "train/epoch-1/loss.log").read_text()
        t.check("logs: a line of value and items for each batch", log == "1.25,5\n1.5,5\n1.75,5\n2,5\n", log)
        t.check("logs: NaN as Rust reads it", (folder / "valid/epoch-2/loss.log").read_text() == "NaN,5\n" * 4)
        log = (folder / "train/epoch-1/accuracy.log").read_text()
        t.check("logs: a metric of whole epochs has one line", log.count("\n") == 1 and 0 <= float(log) <= 1, log)
        t.check("logs: / and blanks are no part of names of files",
                (folder / "valid/epoch-3/a_b_<c>_\"d\",_e.log").is_file(), sorted(folder.rglob("*")))
        rows = list(csv.DictReader((folder / "history.csv").open()))
        t.check("logs: history.csv", len(rows) == 3 * 2 * 3 and rows[2]["metric"] == NAMES[1]
                and math.isnan(float(rows[6]["value"])) and float(rows[0]["value"]) == 2, rows[:7])
        log = (folder / "experiment.log").read_text()
        t.check("logs: what happened and when", "fake: 44426 parameters" in log and "lr: 0.1" in log
                and "epochs done; 3 epochs, 12 steps" in log and all(r[10:20:9] == "TZ" for r in log.split("\n") if r),
                log)
        scalars, _ = events(folder / "tensorboard" / "train")
        t.check("events: means of epochs at their steps", [(s, v) for n, s, v in scalars if n == NAMES[1]]
                == [(4, 7), (8, 7), (12, 7)], scalars)
        batches = [(s, v) for n, s, v in scalars if n == "batch/loss"]
        t.check("events: batches", batches[:4] == [(1, 1.25), (2, 1.5), (3, 1.75), (4, 2)] and len(batches) == 12
                and math.isnan(batches[5][1]), batches)
        scalars, _ = events(folder / "tensorboard" / "valid")
        t.check("events: validation", len(scalars) == 9 and scalars[0][:2] == ("loss", 4), scalars)
        # on from the third batch of epoch 3, of 4 now
        Run(c, make(c, ["logs"]), epochs=4, resumed=2, start=2, curve=lambda s, e, x: {"loss": 50.0}, **how).go()
        rows = list(csv.DictReader((folder / "history.csv").open()))
        t.check("resume: epochs done before stay, others are new", len(rows) == 24 and rows[0]["value"] == "2"
                and [r["value"] for r in rows if r["split"] == "valid" and r["metric"] == "loss"][2:] == ["50", "50"],
                rows)
        log = (folder / "train/epoch-3/loss.log").read_text()
        t.check("resume: batches before stay", log == "3.25,5\n3.5,5\n50,5\n50,5\n", log)
        log = (folder / "experiment.log").read_text()
        t.check("resume: the log goes on", log.count("fake: 44426 parameters") == 2 and "2 of them done before" in log)
        scalars, restarts = events(folder / "tensorboard" / "train")
        t.check("resume: events after the step count no more", restarts == [11], restarts)
        Run(c, make(c, ["logs"]), epochs=3, resumed=2, start=4, curve=lambda s, e, x: {"loss": 9.0}, **how).go()
        logs = [(folder / split / "epoch-3" / "loss.log").read_text() for split in ("train", "valid")]
        t.check("resume: behind the last batch of an epoch", logs == ["3.25,5\n3.5,5\n50,5\n50,5\n", "9,5\n" * 4], logs)
        check_no_room(c, t, pathlib.Path(f))


def check_no_room(c, t, folder):
    """Files that cannot be written: told once, and the run goes on."""
    at = folder / "file"
    at.write_text("")
    to = c.fopen(str(folder / "said.txt").encode(), b"w")
    Run(c, make(c, ["lines", "logs"], to), artifacts=at / "run", names=()).go()
    c.fclose(to)
    text = (folder / "said.txt").read_text()
    t.check("logs: what cannot be written is told once", text.count("warning: ") == 1 and "file/run" in text
            and "epochs done" in text, text)
    if not os.path.exists("/dev/full"):
        t.skip("a full disk", "there is no /dev/full")
        return
    full = folder / "full"
    (full / "train" / "epoch-1").mkdir(parents=True)
    for name in ("experiment.log", "report.html.tmp", "train/epoch-1/loss.log"):
        (full / name).symlink_to("/dev/full")
    to = c.fopen(str(folder / "said.txt").encode(), b"w")
    Run(c, make(c, ["lines", "logs", "report"], to), artifacts=full, names=()).go()
    c.fclose(to)
    text = (folder / "said.txt").read_text()
    t.check("a full disk: a line for logs, one for the report, and the run goes on", text.count("warning: ") == 2
            and text.count("No space left") == 2 and "epochs done" in text
            and (full / "history.csv").stat().st_size > 99, text)


def main():
    c, t = watching.library(sys.argv[1]), Tap()
    c.fdopen = watching.ctypes.CDLL(None).fdopen
    c.fdopen.restype = watching.Pointer
    check_lines(c, t)
    check_terminal(c, t)
    check_logs(c, t)
    return t.end()


if __name__ == "__main__":
    sys.exit(main())
