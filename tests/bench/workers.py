# SPDX-License-Identifier: MIT OR Apache-2.0
"""A contestant's process: started on given cores, spoken to over its pipes (worker.h tells the words), stopped for
good."""
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time

from fetch import last_line

MOST_SPINNING_S = 1                                     # that a contestant's threads are waited for
LOOK_S = 0.001


class Failed(Exception):
    """A contestant that cannot go on; the text says why."""


class Declined(Failed):
    """A contestant that does not take part: the model is not for it."""


class Worker:
    def __init__(self, name, command, cores, timeout=300, env=None):
        self.name, self.timeout = name, timeout
        self.errors = tempfile.TemporaryFile()
        self.samples, self.rounds = [], []
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, start_new_session=True,
                                        env={**os.environ,
                                             **(env or {})}, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        try:
            self.ready = [int(w) for w in self.answer("ready", self.timeout)]
        except BaseException:
            self.stop()
            raise

    def answer(self, word, timeout):
        """The next line, which begins with `word`: the words after it."""
        watch = threading.Timer(timeout, lambda: os.killpg(self.process.pid, signal.SIGKILL))
        watch.start()
        try:
            line = self.process.stdout.readline()
            while line and line.split(" ", 1)[0].strip() != word:    # peers print what they like
                line = self.process.stdout.readline()
        finally:
            late = not watch.is_alive()
            watch.cancel()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().decode("utf-8", "replace")
            raise Failed(f"no answer within {timeout:.0f} s" if late else last_line(said))
        return line.split()[1:]

    def ask(self, request, word, timeout=None):
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except OSError:
            pass                                        # it has died; answer() finds out why
        return self.answer(word, timeout or self.timeout)

    def slice(self, seconds):
        """Runs for about that long; remembers every sample and the round's median (ns)."""
        times = [int(w) for w in self.ask(f"slice {seconds:.6f}", "times")]
        self.samples += times
        self.rounds.append(statistics.median(times))
        self.settle()

    def settle(self):
        """Until all its threads sleep: those of a pool look for work for up to tens of milliseconds after the last,
        and would take that time from who comes next on their cores."""
        end = time.monotonic() + MOST_SPINNING_S
        while self.is_busy() and time.monotonic() < end:
            time.sleep(LOOK_S)

    def is_busy(self):
        for stat in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/stat"):
            try:
                if stat.read_text().rsplit(")", 1)[1].split()[0] == "R":
                    return True
            except OSError:
                pass                                    # a thread that has ended
        return False

    def memory(self):
        return int(self.ask("memory", "memory")[0]) * 1024

    def write(self):
        self.ask("write", "done")

    def stop(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
                self.process.wait(timeout=5)
            except (OSError, subprocess.TimeoutExpired):
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.process.stdout.close()
        self.errors.close()
