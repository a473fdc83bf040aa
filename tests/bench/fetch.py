# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gets what takes part in the benchmark into a private folder: Python environments from PyPI, unpacked Debian packages.

Nothing is installed into the system. What is there already is used without asking the network. Only the standard
library: this runs before there is a numpy."""
import pathlib
import subprocess
import sys


class Missing(Exception):
    """It cannot be had; the text says why."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def call(command, **options):
    try:
        p = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, **options)
    except OSError as e:
        raise Missing(str(e)) from None
    if p.returncode:
        raise Missing(f"{pathlib.Path(command[0]).name} failed: {last_line(p.stdout)}")
    return p.stdout


def environment(cache, name, packages):
    """The Python of an environment that has these packages; made once."""
    folder = cache / "python" / name
    python, made = folder / "bin" / "python", folder / "packages.txt"
    if not (made.exists() and made.read_text() == "\n".join(packages)):
        say(f"fetching {' '.join(packages)} into {folder}")
        if not python.exists():
            call([sys.executable, "-m", "venv", folder])
        call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        made.write_text("\n".join(packages))
    return python


def debian(cache, package):
    """The folder where a Debian package's files lie, as usr/include and so on; made once."""
    folder = cache / "debian" / package
    if not (folder / "usr").exists():
        say(f"fetching {package} from Debian")
        into = cache / "debian" / "archives"
        into.mkdir(parents=True, exist_ok=True)
        call(["apt-get", "-q", "download", package], cwd=into)
        archives = sorted(into.glob(f"{package}_*.deb"))
        if not archives:
            raise Missing(f"apt-get downloaded no {package}")
        call(["dpkg-deb", "-x", archives[-1], folder])
    return folder
