# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Test Anything Protocol for programs that check one thing after another: a line each as it is done, the count at
the end."""
import pathlib
import subprocess
import tempfile


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, ok, why=""):
        """One check; why: what there is to know where it failed."""
        self.count += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name}", flush=True)
        if not ok and why != "":
            print(f"# {why}", flush=True)

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def end(self):
        """Prints the count; the exit status."""
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    return 0


def run_checks(checks):
    """Checks (name, function of a folder that is gone afterwards, which gives (whether it holds, what was seen)); the
    exit status."""
    tap = Tap()
    for name, check in checks:
        with tempfile.TemporaryDirectory() as folder:
            try:
                ok, said = check(pathlib.Path(folder))
            except subprocess.CalledProcessError as e:
                ok, said = False, f"{e} {e.stderr or ''}"
        tap.check(f"{name}: {said}", ok)
    return tap.end()
