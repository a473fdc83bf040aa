#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""One model out as ONNX and back.

usage: round.py values|code BURNCC MODEL [OPTION...]            OPTION: of burncc, such as --set layers=1

The model is written as ONNX. values: onnx.checker takes the file, with its inference of shapes, and ONNX Runtime
computes with it what burncc's own C of the model does, within 1e-5 of each output's largest element, 1e-3 of 16-bit
floats, which it rounds elsewhere; integers are equal. Inputs are those recorded beside the model (test_data_set_0),
else random; sizes that nothing fixes are 2, or as recorded. code: read again, the file gives the same C: the same
tokens, comments aside, but for names of values and kernels, which one renaming takes to one another in each function,
and the same weights. Prints `pass`, or `FAIL` and why; where there is no such file, burncc's diagnostics."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

BOUND, BOUND_16 = 1e-5, 1e-3
TOKEN = re.compile(r'/\*.*?\*/|[A-Za-z_]\w*|\.?[0-9](?:[eEpP][-+]|[\w.])*|"(?:[^"\\]|\\.)*"|\S', re.S)
KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
         "tensor(bool)": np.bool_, "tensor(string)": np.object_}


class Fault(Exception):
    pass


class Refused(Exception):
    pass


def run(*command):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if p.returncode:
        raise Fault(f"`{' '.join(map(str, command[1:]))}` ends with {p.returncode}: {(p.stderr or p.stdout)[-600:]}")
    return p.stdout


# ---------------------------------------------------------------- values


def recorded(model, inputs):
    """The first data set beside the model, by the inputs' names; None: there is none of plain tensors."""
    folder, found = pathlib.Path(model).parent / "test_data_set_0", {}
    for i, end in enumerate(inputs):
        path = folder / f"input_{i}.pb"
        if not path.exists():
            return None
        found[end.name] = numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
    return found


def drawn(end, random):
    """A small tensor of the input's type: indices are 0 or 1, as any vocabulary has."""
    shape = [d if isinstance(d, int) else 2 for d in end.shape]
    if end.type == "tensor(string)":
        return np.array(["a"] * int(np.prod(shape)), dtype=object).reshape(shape)
    kind = KINDS.get(end.type)
    if kind in (np.float32, np.float64, np.float16):
        return random.standard_normal(shape).astype(kind)
    return random.integers(0, 2, shape).astype(kind or np.dtype(end.type[7:-1]))


def sizes(inputs, feeds):
    """--dim for the symbols of the inputs' shapes, as the data has them."""
    named = {d: n for end in inputs for d, n in zip(end.shape, feeds[end.name].shape) if isinstance(d, str)}
    return [word for d, n in named.items() for word in ("--dim", f"{d}={n}")]


def differs(want, got):
    if want.shape != got.shape:
        return f"{got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        return "" if (want == got).all() else "other integers"
    a, b = want.astype(np.float64), got.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    largest = np.max(np.abs(a[np.isfinite(a)]), initial=0)
    off = np.abs(np.where(same, 0, a) - np.where(same, 0, b))
    if (off <= (BOUND_16 if want.dtype.itemsize < 4 else BOUND) * largest).all():
        return ""
    return f"off by {np.max(off) / (largest or 1):.1e} of the largest"


def opened(model, out):
    """A session, and what it is fed."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    # As the file says: products of 16-bit integers its optimizer turns into others, up to 825 steps off.
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(out), settings)
    random = np.random.default_rng(1)
    return session, recorded(model, session.get_inputs()) or {i.name: drawn(i, random) for i in session.get_inputs()}


def compare(burncc, model, options, out, folder):
    session, feeds = opened(model, out)
    command = [burncc, "run", model, "-q", "--output", folder / "values", *options, *sizes(session.get_inputs(), feeds)]
    for i, (name, value) in enumerate(feeds.items()):
        if value.dtype == object:
            raise Fault("inputs are strings, which files of numpy's hold as objects")
        np.save(folder / f"{i}.npy", value)
        command += ["--input", f"{name}={folder / f'{i}.npy'}"]
    run(*command)
    for end, got in zip(session.get_outputs(), session.run(None, feeds)):
        path = folder / "values" / (re.sub(r"[^A-Za-z0-9._-]", "_", end.name) + ".npy")
        why = differs(np.load(path), got) if got.dtype != object else ""
        if why:
            raise Fault(f"output {end.name}: {why}")


# ---------------------------------------------------------------- the same C


def functions(text):
    """Its tokens without comments, cut behind what ends at file level."""
    part, depth = [], 0
    for token in TOKEN.findall(text):
        if token.startswith("/*"):
            continue
        part.append(token)
        depth += {"{": 1, "}": -1}.get(token, 0)
        if not depth and token in ";}":
            yield part
            part = []
    yield part


def other_code(first, second):
    """Where two C files differ by more than names; "" where they do not."""
    a, b = list(functions(first)), list(functions(second))
    kernels = {}
    for x, y in zip(a, b):
        there, back = {}, {}
        for i, (s, t) in enumerate(zip(x, y)):
            name = s[0].isalpha() or s[0] == "_"
            one = there.setdefault(s, t) == t and back.setdefault(t, s) == s
            if (s != t and not name) or not one or (s.startswith("m_k") and kernels.setdefault(s, t) != t):
                return f"{' '.join(x[max(0, i - 6):i + 6])} became {' '.join(y[max(0, i - 6):i + 6])}"
        if len(x) != len(y):
            return f"a function of {len(x)} tokens has {len(y)}"
    return "" if len(a) == len(b) else f"{len(a)} functions became {len(b)}"


def without_metadata(text):
    """What a file says of itself, who made it for one, is not the model's."""
    text = re.sub(r"^static const char \*const m_run_metadata\[\] = \{.*?^\};$", "", text, flags=re.S | re.M)
    return re.sub(r"^    m_run_metadata, ", "    (const char *const *)0, ", text, flags=re.M)


def same_code(burncc, model, options, out, folder):
    texts, weights = [], []
    for name, source, more in (("a", model, options), ("b", out, [])):
        (folder / name).mkdir()
        run(burncc, source, "-o", folder / name / "m.c", "-q", "--embed-limit", "16K", *more)
        texts.append(without_metadata((folder / name / "m.c").read_text()))
        packed = folder / name / "m.bin"
        weights.append(packed.read_bytes() if packed.exists() else b"")
    why = other_code(*texts)
    if why or weights[0] != weights[1]:
        raise Fault(f"read again it gives other code: {why or 'other weights'}")


def main():
    what, burncc, model, *options = sys.argv[1:]
    folder = pathlib.Path(tempfile.mkdtemp())
    out = folder / "out.onnx"
    try:
        p = subprocess.run([burncc, model, "-o", out, "-q", *options], capture_output=True, text=True)
        if p.returncode:
            raise Refused(p.stderr)
        if what == "values":
            onnx.checker.check_model(str(out), full_check=True)
            compare(burncc, model, options, out, folder)
        else:
            same_code(burncc, model, options, out, folder)
        print("pass")
    except Refused as why:
        print(why, file=sys.stderr)
        return 1
    except Exception as fault:      # whatever the checker and ONNX Runtime raise
        print(f"FAIL {type(fault).__name__}: {' '.join(str(fault).split())[:600]}")
        return 1
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
