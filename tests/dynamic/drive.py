#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compiles one model, its tables and drive.c under the sanitizers, and runs it. usage: drive.py BURNCC FOLDER TARGET CC

In: FOLDER as run.py writes it. Out: a line like those of `burncc verify`. The generated file must compile as C99
without a warning."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WARNINGS = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wvla -Werror"
SANITIZE = "-O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"


def table(values):
    return "{" + ", ".join(table(v) if isinstance(v, (list, tuple)) else str(v) for v in values) + "}"


def padded(shapes, rank):
    return [list(s) + [0] * (rank - len(s)) for s in shapes]


def tables(spec, header, data):
    """spec.h and tables.h. The typed function's parameters, in order: sizes, inputs, outputs, each of a measured
    shape followed by it."""
    prototype = re.search(r"^int model_run\(([^;]*)\);", header, re.M)[1]
    names = list(spec["bounds"])
    kept = [re.sub(r"\W", "_", n) for n in names]
    arguments, passed, measured, at = [], [0] * len(names), [0] * len(spec["outputs"]), 0
    for parameter in prototype.split(", ")[1:]:
        name = re.sub(r"\[.*", "", parameter).split()[-1].lstrip("*")
        if parameter.startswith("int64_t n_"):
            passed[kept.index(name[2:])] = 1
            arguments.append(f"size[{kept.index(name[2:])}]")
        elif name.endswith("_shape"):
            measured[at - len(spec["inputs"]) - 1] = 1
            arguments.append(f"shapes[{at - len(spec['inputs']) - 1}]")
        else:
            arguments.append(f"in[{at}]" if at < len(spec["inputs"]) else f"out[{at - len(spec['inputs'])}]")
            at += 1
    rank = max([1] + [len(s) for one in spec["sets"] for s in one["in"] + one["out"]])
    dims = [d for _, ds in spec["inputs"] for d in ds]
    text = f"static const int64_t bounds[SIZES][2] = {table(list(spec['bounds'].values()))};\n"
    text += f"static const int passed[SIZES] = {table(passed)}, measured[OUTPUTS] = {table(measured)};\n"
    shared = [[int(isinstance(d, str) and dims.count(d) > 1) for d in ds] for _, ds in spec["inputs"]]
    fixed = [[int(isinstance(d, int)) for d in ds] for _, ds in spec["inputs"]]
    text += f"static const int shared[INPUTS][RANK] = {table(padded(shared, rank))};\n"
    text += f"static const int fixed[INPUTS][RANK] = {table(padded(fixed, rank))};\n"
    rows = []
    for one in spec["sets"]:
        sizes = [[(data / one["folder"] / f"{what}_{i}.bin").stat().st_size for i in range(len(one[key]))] or [0]
                 for what, key in (("input", "in"), ("output", "out"))]
        rows.append([
            f'"{one["folder"]}"', one["code"], [one["sizes"][n] for n in names],
            padded(one["in"], rank),
            padded(one["out"], rank) or [[0]], *sizes
        ])
    text += f"static const Set sets[SETS] = {table(rows)};\n"
    text += (
        "static int typed(void *ws, const int64_t *size, void *const *in, void *const *out, int64_t "
        "(*shapes)[RANK]) {\n"
        f"    (void)size; (void)in; (void)shapes;\n    return model_run(ws, {', '.join(arguments)});\n}}\n")
    counts = {
        "SETS": len(rows), "INPUTS": len(spec["inputs"]), "OUTPUTS": len(spec["outputs"]), "SIZES": len(names),
        "RANK": rank
    }
    return "#include \"model.h\"\n#define MODEL model_model\n" + "".join(f"#define {k} {v}\n"
                                                                         for k, v in counts.items()), text


def step(command, folder, what):
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if run.returncode:
        sys.stderr.write(run.stdout + run.stderr)
        print(f"FAIL {what} data=all")
        sys.exit(1)


def main():
    burncc, folder, target, cc = sys.argv[1:]
    folder = pathlib.Path(folder)
    spec = json.loads((folder / "spec.json").read_text())
    dims = [f"--dim={n}={lo}..{hi}" for n, (lo, hi) in {**spec["bounds"], **spec["found"]}.items()]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        step([burncc, str(folder / "model.onnx"), *dims, "--target", target, "-o", "model.c", "--quiet"], work,
             "the model does not compile")
        first, second = tables(spec, (work / "model.h").read_text(), folder)
        (work / "spec.h").write_text(first)
        (work / "tables.h").write_text(second)
        step([cc, *WARNINGS.split(), "-O1", "-c", "model.c"], work, "the generated C has warnings")
        step([
            cc, "-std=c99", *SANITIZE.split(), "-I.", "-include", "spec.h",
            str(HERE / "drive.c"), "model.c", "-lm", "-o", "drive"
        ], work, "the driver does not compile")
        run = subprocess.run([work / "drive"], cwd=folder, capture_output=True, text=True,
                             env={"ASAN_OPTIONS": "detect_leaks=0"})
    sys.stderr.write(run.stderr)
    sys.stdout.write(run.stdout)
    if run.returncode and "FAIL" not in run.stdout:
        print("FAIL crashed data=all")
    return 1 if run.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
