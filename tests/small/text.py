#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What --dump import prints is the model: read back it gives the same text, and compiled the same bytes.

In: the small models of run.py, or with --models the .onnx files under a folder. Out: a TAP line a model. Without
--all, one option set a model in turn; with it all of them."""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import cases        # noqa: E402

OPTIONS = ("--target generic", "--target portable", "--target x86-64-v4 --threads 4",
           "--train --loss mse --optimizer adam", "--no-fuse")


def call(args, folder):
    return subprocess.run([str(a) for a in args], cwd=folder, capture_output=True, timeout=300)


def compiled(burncc, model, options, folder):
    """What burncc writes: status and files. Both models have one name, which stands in the files."""
    folder.mkdir()
    done = call([burncc, "-q", model, "-o", "m.c", *options.split()], folder)
    return done.returncode, {f.name: f.read_bytes() for f in sorted(folder.iterdir())}


def check(burncc, model, options):
    """None, or what is wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        dumped = call([burncc, "-q", model, "--dump", "import"], scratch)
        if dumped.returncode:
            return None                         # what cannot be imported has no text
        text = scratch / model.name
        text.write_bytes(dumped.stdout)
        again = call([burncc, "-q", text, "--dump", "import"], scratch)
        if again.returncode:
            return again.stderr.decode(errors="replace").splitlines()[0]
        if again.stdout != dumped.stdout:
            return "another text"
        for i, o in enumerate(options):
            before, after = compiled(burncc, model, o,
                                     scratch / f"before{i}"), compiled(burncc, text, o, scratch / f"after{i}")
            if before != after:
                return f"other bytes with {o}" if before[0] == after[
                    0] else f"status {after[0]}, not {before[0]}, with {o}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--burncc", required=True)
    p.add_argument("--models", type=pathlib.Path, help="a folder of .onnx files")
    p.add_argument("--all", action="store_true", help="every option set for every model")
    args = p.parse_args()
    burncc = pathlib.Path(args.burncc).resolve()
    with tempfile.TemporaryDirectory() as made:
        models = sorted(args.models.rglob("*.onnx")) if args.models else []
        for f in () if args.models else cases.ALL:
            folder = pathlib.Path(made) / f.__name__
            folder.mkdir()
            m = f()
            (folder / "model.onnx").write_bytes(m.bytes)
            for name, data in m.files.items():
                (folder / name).write_bytes(data)
            models.append(folder / "model.onnx")
        print(f"1..{len(models)}", flush=True)
        failed = 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            sets = [OPTIONS if args.all else OPTIONS[i % len(OPTIONS)::len(OPTIONS)] for i in range(len(models))]
            for i, why in enumerate(pool.map(lambda j: check(burncc, *j), zip(models, sets))):
                name = models[i].parent.name
                failed += why is not None
                print(f"ok {i + 1} - {name}" if why is None else f"not ok {i + 1} - {name}: {why}", flush=True)
        return failed > 0


if __name__ == "__main__":
    sys.exit(main())
