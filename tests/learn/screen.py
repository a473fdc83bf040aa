#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# The dashboard (runtime/learn/watch_screen.c) in a terminal emulator, tmux: what it draws, keys, other sizes, and that
# the terminal is itself again whatever ends the run.
#
# usage: screen.py LIBRARY [BURNCC]    LIBRARY: runtime/learn as a shared library; BURNCC: its fit is driven, too
#
# In: runs that never were (watching.py) and one that is, driven by keys. Out: TAP. Skipped without tmux, or where the
# library was built without ncurses.
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import watching                     # noqa: E402
from tap import Tap, skip_all       # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BRAILLE = re.compile("[\u2801-\u28ff]")
PATIENCE = 20


class Terminal:
    """A shell in a terminal of its own; leaving ends it."""

    def __init__(self, library, folder, columns=100, rows=30, **environment):
        self.library, self.folder = library, folder
        self.name = f"burncc-{os.getpid()}-{folder.name}"
        self.environment = {**os.environ, "LC_ALL": "C.UTF-8", "PS1": "$ ", **environment}
        for name in ("NO_COLOR", "TMUX"):
            if name not in environment:
                self.environment.pop(name, None)
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh")
        folder.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-u", "-L", self.name, "-f", "/dev/null", *arguments], env=self.environment,
                              capture_output=True, text=True)
        return done.stdout

    def start(self, *options, before="", epochs=40, batches=25, pause=0.004):
        program = [sys.executable, HERE / "watching.py", self.library, "screen", "--artifacts", self.folder,
                   "--epochs", epochs, "--batches", batches, "--pause", pause, *options]
        command = " ".join(shlex.quote(str(p)) for p in program)
        self.keys(f"{before} {command}; echo status=$?", "Enter")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def seen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def wait(self, holds, *options):
        """What is seen once this holds, or at last."""
        end = time.time() + PATIENCE
        while not holds(text := self.seen(*options)) and time.time() < end:
            time.sleep(0.05)
        return text

    def is_itself(self):
        """The usual screen, a cursor, and modes as a shell has them."""
        self.keys("stty -a", "Enter")
        text = self.wait(lambda x: "icanon" in x.split("stty -a")[-1])
        modes = text.split("stty -a")[-1].split()
        flags = self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{keypad_cursor_flag}").split()
        return "icanon" in modes and "echo" in modes and flags == ["0", "1", "0"], (flags, text)


def plot_rows(text):
    return sum(len(BRAILLE.findall(line)) > 3 for line in text.split("\n"))


def is_drawn(text):
    return plot_rows(text) >= 5 and " 3/40" in text


def check_drawn(t, library, folder):
    with Terminal(library, folder / "drawn") as at:
        at.start("--say")
        text = at.wait(is_drawn)
        t.check("plots are drawn, with axes", plot_rows(text) >= 5 and re.search(r"^ +\d\S* \u2502", text, re.M)
                and "epoch 3" in text, text)
        head = r"lenet +epoch 3/40 +\w+ \d+/25 +0:\d+, 0:\d+ left"
        t.check("progress, time left, figures and messages", re.search(head, text)
                and re.search(r"^ loss( +\d\S*){6}", text, re.M) and "12 images cannot be read" in text, text)
        colours = at.seen("-e")
        t.check("training and validation have colours of their own", "\033[36m" in colours and "\033[33m" in colours)
        at.keys("Right")
        text = at.wait(lambda x: "\033[7maccuracy" in x, "-e")
        t.check("an arrow chooses the next figure", "\033[7maccuracy" in text, text)
        at.keys("4")
        text = at.wait(lambda x: "\033[7mlearning_rate" in x, "-e")
        t.check("a digit chooses a figure", "\033[7mlearning_rate" in text, text)
        at.keys("Tab")
        text = at.wait(lambda x: "batches ago" in x)
        t.check("tab shows the last batches", "recent" in text and re.search(r"\d+ batches ago", text), text)
        for columns, rows in ((60, 20), (20, 6), (3, 1), (120, 40)):
            at.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            time.sleep(0.3)
        text = at.wait(lambda x: plot_rows(x) > 15 and "stop" in x.rstrip().split("\n")[-1])
        t.check("other sizes are drawn anew", plot_rows(text) > 15 and max(map(len, text.split("\n"))) > 105, text)
        at.keys("s")
        text = at.wait(lambda x: "is kept in" in x)
        t.check("s saves, and the run goes on", "checkpoint.txt" in text and (at.folder / "checkpoint.txt").exists(),
                text)
        at.keys("q")
        text = at.wait(lambda x: "Stop?" in x)
        at.keys("c")
        again = at.wait(lambda x: "Stop?" not in x)
        t.check("q asks first", "q: quit" in text and "Stop?" not in again and "left" in again, (text, again))
        (at.folder / "checkpoint.txt").unlink()
        at.keys("q", "q")
        text = at.wait(lambda x: "status=0" in x)
        t.check("quit without saving", "lenet: quit after" in text and "warning: 12 images" in text
                and not (at.folder / "checkpoint.txt").exists(), text)


def check_ends(t, library, folder):
    with Terminal(library, folder / "ends") as at:
        for how, said in (("C-c", "interrupted"), ("qs", "interrupted")):
            at.start()
            at.wait(is_drawn)
            at.keys(*([how] if how == "C-c" else "qs"))
            text = at.wait(lambda x: "status=0" in x and "learning_rate" in x)
            ok, why = at.is_itself()
            t.check(f"{how} saves and ends: the summary is below the shell's lines", f"lenet: {said} after" in text
                    and "| valid | accuracy" in text and (at.folder / "checkpoint.txt").exists() and ok, (text, why))
            (at.folder / "checkpoint.txt").unlink(missing_ok=True)
            at.keys("clear", "Enter")
        at.start(epochs=3, batches=5)
        text = at.wait(lambda x: "status=0" in x)
        ok, why = at.is_itself()
        t.check("the end of a run", "epochs done after 3 epochs" in text and ok, (text, why))
        for name in ("SEGV", "HUP"):
            at.keys("clear", "Enter")
            at.start()
            at.wait(is_drawn)
            pid = at.tmux("display-message", "-p", "#{pane_pid}").strip()
            child = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            subprocess.run(["kill", "-" + name, *child])
            text = at.wait(lambda x: re.search(r"^.*status=\d", x, re.M))
            ok, why = at.is_itself()
            t.check(f"SIG{name}: the terminal is itself again", re.search(r"status=1\d\d", text) and ok,
                    (child, text, why))


def check_kinds(t, library, folder):
    with Terminal(library, folder / "grey", NO_COLOR="1") as at:
        at.start()
        at.wait(is_drawn)
        text = at.seen("-e")
        t.check("NO_COLOR", plot_rows(text) >= 5 and not re.search(r"\033\[[0-9;]*[34][0-7]", text), text)
    with Terminal(library, folder / "ascii") as at:
        at.start(before="LC_ALL=C")
        text = at.wait(lambda x: " 3/40" in x and "batches ago" not in x and x.count("*") > 10)
        t.check("letters where there is no UTF-8", text.isascii() and text.count("*") > 10, text)
    with Terminal(library, folder / "dumb") as at:
        at.start(before="TERM=dumb", epochs=4)
        text = at.wait(lambda x: "status=0" in x)
        t.check("TERM=dumb: plain lines", "epoch 3/4" in text and "Stop" not in text and not plot_rows(text), text)
        at.keys("clear", "Enter")
        at.start(before="TERM=no-such-terminal", epochs=4)
        text = at.wait(lambda x: "status=0" in x)
        t.check("a terminal that nobody knows: lines", "epoch 3/4" in text and not plot_rows(text), text)
        program = [sys.executable, HERE / "watching.py", library, "screen", "--epochs", "2", "--pause", "0"]
        said = subprocess.run(program, capture_output=True, text=True).stderr
        t.check("no terminal: plain lines", "epoch 2/2  train" in said and "\033" not in said, said)


def check_fit(t, burncc, folder):
    """A learner's run, on a table of flowers."""
    examples = HERE.parent.parent / "examples" / "train"
    with Terminal(None, folder / "fit", BURNCC_CFLAGS="-O0") as at:
        command = [burncc, "fit", examples / "table.c", "--data", f"csv:{examples}/iris.csv,scale",
                   "--epochs", "1000000", "--artifacts", at.folder]
        at.keys(" ".join(shlex.quote(str(p)) for p in command) + "; echo status=$?", "Enter")
        text = at.wait(lambda x: plot_rows(x) >= 5 and "accuracy" in x)
        t.check("burncc fit: the dashboard", plot_rows(text) >= 5 and re.search(r"^ accuracy +", text, re.M), text)
        at.keys("C-c")
        text = at.wait(lambda x: "status=" in x.split("$?")[-1])
        kept = sorted(p.name for p in at.folder.iterdir())
        ok, why = at.is_itself()
        t.check("burncc fit: Ctrl-C saves, and the model of the best epoch is written", "status=0" in text
                and re.search(r"^epochs=\d+ best_epoch=\d+ valid_loss", text, re.M) and "model.onnx" in kept
                and list(at.folder.glob("checkpoint/*.safetensors")) and ok, (text, kept, why))


def main():
    library = sys.argv[1]
    if not shutil.which("tmux"):
        return skip_all("tmux is not installed")
    if not hasattr(watching.library(library), "watch_hold"):
        return skip_all("built without ncurses")
    t = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_drawn, check_ends, check_kinds):
            check(t, library, pathlib.Path(folder))
        if len(sys.argv) > 2:
            check_fit(t, os.path.abspath(sys.argv[2]), pathlib.Path(folder))
    return t.end()


if __name__ == "__main__":
    sys.exit(main())
