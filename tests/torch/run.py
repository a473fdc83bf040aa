#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real files of weights against the tensors that PyTorch reads in them.

In: a folder of folders with files and beside each FILE.expected.json, its tensors' names, types, shapes and the SHA-256
of their elements in row-major order. Out: TAP. `burncc inspect FILE --output FOLDER` writes the tensors; every one must
be there, none besides, and bytes are compared. A file without expectations is one that must be refused."""
import argparse
import ast
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402

ENDINGS = {".pt", ".pth", ".th", ".safetensors"}
NAMES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
         "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "complex64": "c64", "complex128": "c128",
         "F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "I64": "i64", "I32": "i32", "U32": "u32"}


def read_npy(path):
    data = path.read_bytes()
    end = 10 + int.from_bytes(data[8:10], "little")
    return ast.literal_eval(data[10:end].decode()), data[end:]


def upper_halves(data):
    """bfloat16 of float32, which .npy has in its place."""
    return b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))


def wrong_tensor(want, got, folder):
    if got["dtype"] != NAMES.get(want["dtype"]) or got["shape"] != want["shape"]:
        return f"{want['name']} is {got['dtype']}{got['shape']}, not {want['dtype']}{want['shape']}"
    header, data = read_npy(folder / (want["name"] + ".npy"))
    if got["dtype"] == "bf16":
        data = upper_halves(data)
    if list(header["shape"]) != want["shape"] or hashlib.sha256(data).hexdigest() != want["sha256"]:
        return f"{want['name']} has other elements"
    return None


def wrong_file(burncc, path, expected):
    with tempfile.TemporaryDirectory() as folder:
        command = [burncc, "inspect", str(path), "--json", "--output", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not expected.exists():
            return None if done.returncode == 1 and "error:" in done.stderr else "it is not refused"
        if done.returncode:
            return done.stderr.strip()
        got = {t["name"]: t for t in json.loads(done.stdout)["tensors"]}
        want = json.loads(expected.read_text())["tensors"]
        if set(got) != {t["name"] for t in want}:
            return f"other names: {sorted(set(got) ^ {t['name'] for t in want})[:4]}"
        for tensor in want:
            why = wrong_tensor(tensor, got[tensor["name"]], pathlib.Path(folder))
            if why:
                return why
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("--files", type=pathlib.Path, default=harness.shared("torch"))
    args = p.parse_args()
    files = sorted(f for f in args.files.glob("*/*") if f.suffix in ENDINGS)
    if not files:
        print(f"1..0 # SKIP no files in {args.files}")
        return 0
    failed = 0
    for i, path in enumerate(files, 1):
        why = wrong_file(args.burncc, path, path.with_name(path.name + ".expected.json"))
        failed += why is not None
        print(f"{'not ok' if why else 'ok'} {i} - {path.parent.name}/{path.name}{': ' + why if why else ''}")
    print(f"1..{len(files)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
