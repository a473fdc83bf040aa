# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where models come from: files and folders that are named, and sets that are made when they are wanted.

own            typical networks (models.py)
bench          the performance models of the test data beside the repository
architectures  networks as PyTorch exports them, from the same place, weights drawn
Out: a list of (name, function that makes the file where it is missing and returns its path).
"""
import pathlib
import subprocess
import sys

import models

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402


def own(cache):
    return [(name, lambda name=name: models.write(cache / "models" / "own", name)) for name in models.NETS]


def bench(cache):
    folder, script = cache / "models" / "bench", harness.shared("bench") / "gen_models.py"
    archives = sorted(harness.shared("conformance").glob("onnx-*-models.tar.xz"))
    if not (folder / "meta.json").exists():             # written last
        if not script.exists() or not archives:
            raise SystemExit(f"scripts/bench: the set 'bench' wants {script} and an archive of ONNX's models")
        light = next(harness.unpack(archives[-1], cache).glob("**/light"))
        print("bench: making the set 'bench'", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, str(script), str(folder), str(light)], check=True, stdout=subprocess.DEVNULL)
    return files(folder)


def architectures(cache):
    """One of the two exports of each network."""
    root, fill = harness.shared("architectures"), harness.shared("architectures") / "fill_weights.py"
    if not fill.exists():
        raise SystemExit(f"scripts/bench: the set 'architectures' wants {fill}")
    stripped = {}
    for path in sorted(harness.unpack(root / "architectures.tar.xz", cache).glob("**/*.onnx")):
        stripped[path.name.split(".")[0]] = path        # "script" comes after "dynamo"
    into = cache / "models" / "architectures"

    def make(name, source):
        path = into / f"{name}.onnx"
        if not path.exists():
            into.mkdir(parents=True, exist_ok=True)
            part = into / f"{name}.part"
            subprocess.run([sys.executable, str(fill), str(source), str(part)], check=True)
            part.rename(path)
        return path
    return [(name, lambda name=name, source=source: make(name, source)) for name, source in stripped.items()]


def files(*given):
    found = []
    for each in map(pathlib.Path, given):
        if not each.exists():
            raise SystemExit(f"scripts/bench: {each} is not there")
        found += [(path.stem, lambda path=path: path)
                  for path in (sorted(each.glob("*.onnx")) if each.is_dir() else [each])]
    return found


SETS = {"own": own, "bench": bench, "architectures": architectures}


def find(options):
    """What the command line asks for; names that occur twice get the set's as a prefix."""
    found = files(*options.models)
    for name in options.sets or ([] if options.models else ["own"]):
        if name not in SETS:
            raise SystemExit(f"scripts/bench: no set '{name}'; there are {', '.join(SETS)}")
        taken = {n for n, _ in found}
        found += [(f"{name}_{n}" if n in taken else n, make) for n, make in SETS[name](options.cache)]
    wanted = options.only.split(",") if options.only else []
    return [(n, make) for n, make in found if not wanted or any(w in n for w in wanted)]
