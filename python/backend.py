# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `pip install .` calls (PEP 517), without packages of its own: meson builds the compiler, and a wheel is a zip
file of python/burncc, that binary and the runtime's sources which compiled models may link. $BURNCC names a binary that
is already there and spares the build."""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNTIME = ["burn.h", "threads.c", "threads.h"]


def version():
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)


def metadata():
    return (f"Metadata-Version: 2.1\nName: burncc\nVersion: {version()}\n"
            "Summary: Compiles neural networks ahead of time to C that stands alone\n"
            "License: MIT OR Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy\n")


def compiler(folder):
    given = os.environ.get("BURNCC")
    if given:
        return pathlib.Path(given)
    subprocess.run(["meson", "setup", folder, ROOT, "--buildtype", "release"], check=True)
    subprocess.run(["ninja", "-C", folder, "burncc"], check=True)
    return pathlib.Path(folder) / "burncc"


def tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


class Wheel:
    def __init__(self, path):
        self.zip, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))         # the same bytes each time
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, info):
        self.zip.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)),
                          "".join(self.record) + f"{info}/RECORD,,\n")
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info, name = f"burncc-{version()}.dist-info", f"burncc-{version()}-{tag()}.whl"
    wheel = Wheel(pathlib.Path(wheel_directory) / name)
    for path in sorted((ROOT / "python/burncc").glob("*.py")):
        wheel.add(f"burncc/{path.name}", path.read_bytes())
    for file in RUNTIME:
        wheel.add(f"burncc/runtime/{file}", (ROOT / "runtime" / file).read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        wheel.add("burncc/bin/burncc", compiler(folder).read_bytes(), 0o755)
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/WHEEL",
              f"Wheel-Version: 1.0\nGenerator: burncc\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode())
    wheel.add(f"{info}/entry_points.txt", b"[console_scripts]\nburncc = burncc.__main__:main\n")
    wheel.close(info)
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = f"burncc-{version()}"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with tarfile.open(pathlib.Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as tar:
        for file in filter(None, files.split("\0")):
            tar.add(ROOT / file, f"{base}/{file}")
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(metadata())
            f.flush()
            tar.add(f.name, f"{base}/PKG-INFO")
    return f"{base}.tar.gz"
