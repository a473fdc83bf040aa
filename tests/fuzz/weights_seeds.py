#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Seeds for the fuzzer of files of weights: the files that tests/commands writes, a folder for each form of bytes.

In: a folder to fill, and real files, whose weights are left out. Out: the folders safetensors, index, legacy, pickle,
zip (PyTorch's archives), script (TorchScript's), npz and tar, and whole (all of the files); weights.c says what
BURN_FUZZ makes of their bytes. Wants the standard library only."""
import argparse
import io
import pathlib
import pickletools
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

COMMANDS = pathlib.Path(__file__).resolve().parent.parent / "commands"
LIMIT = 6000        # bytes of the largest seed


def packed(parts):
    """What pack.c unpacks."""
    return b"".join(bytes([len(name)]) + name.encode() + struct.pack("<H", len(data)) + data for name, data in parts)


def legacy_body(data):
    """What follows the first three pickles."""
    f = io.BytesIO(data)
    for _ in range(3):
        for _ in pickletools.genops(f):
            pass
    return f.read()


def archive(data):
    """Folder and bytes of a zip archive; weights are cut to what a seed may hold."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        parts = [(i.filename, z.read(i)) for i in z.infolist() if not i.filename.endswith("/")]
    names = [name for name, _ in parts]
    kind = "npz" if any(n.endswith(".npy") for n in names) else (
        "script" if any(n.endswith("constants.pkl") for n in names) else "zip")
    return kind, packed([(name[:255], content[:LIMIT]) for name, content in parts])


def seeds(path):
    """Pairs of folder and bytes that a file gives."""
    data = path.read_bytes()
    if "cut_" not in path.name:
        yield "whole", data
    try:
        if path.suffix == ".safetensors":
            yield "safetensors", data
        elif path.suffix == ".json":
            yield "index", data.replace(b"part-1.safetensors", b"p").replace(b"part-2.safetensors", b"q")
        elif data[:4] == b"PK\3\4" and "cut_" not in path.name:
            yield archive(data)
        elif data[257:262] == b"ustar":
            with tarfile.open(path) as t:
                yield "tar", packed([(m.name, t.extractfile(m).read()) for m in t.getmembers()])
        elif data[:2] in (b"\x80\2", b"\x80\4") and "cut_" not in path.name:
            yield "legacy", data
            yield "pickle", legacy_body(data)
    except (zipfile.BadZipFile, tarfile.TarError, ValueError):
        return


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("into", type=pathlib.Path)
    p.add_argument("files", type=pathlib.Path, nargs="*", help="more files, such as real ones")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        for script in ("torch.py", "safetensors.py"):
            subprocess.run([sys.executable, COMMANDS / script], cwd=tmp, check=True)
        for path in sorted(pathlib.Path(tmp).iterdir()) + args.files:
            for folder, data in seeds(path):
                if len(data) <= LIMIT:
                    (args.into / folder).mkdir(parents=True, exist_ok=True)
                    (args.into / folder / path.name).write_bytes(data)


if __name__ == "__main__":
    main()
