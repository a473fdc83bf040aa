#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A test whose recorded outputs are one draw of random numbers: everything about them that the standard does fix.

In: burncc, the model of a test of Bernoulli or of Dropout in training mode, a target. Out: a line like that of
`burncc verify`.

What is recorded fixes the outputs' types and shapes. The rest takes more numbers than these few, so the model is
copied with the first dimension MANY times as long, its inputs repeated, and a seed written into the node that draws:
what is drawn must be of the values that are possible, be as frequent as it should (within SIGMAS standard deviations:
over all, and for each element of the recorded input alone), must not tell the next element, and must be the same
again for the same seed and others for another."""
import ast
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import onnx_wire    # noqa: E402

MANY, SIGMAS = 3000, 5
DRAWS = {b"Bernoulli", b"Dropout", b"RandomUniformLike"}


class Fault(Exception):
    pass


def expect(truth, what):
    if not truth:
        raise Fault(what)


# ---------------------------------------------------------------- the model with more elements and a seed
def first_longer(dims_field):
    """For shapes and tensors, where one field repeats, a number a dimension: the first one MANY times as long."""
    def change(message):
        first = True
        out = b""
        for n, v in onnx_wire.fields(message):
            if n == dims_field and first:
                first = False
                v = v * MANY if isinstance(v, int) else onnx_wire.rewrite(v, f1=lambda d: d * MANY)
            out += onnx_wire.encode(n, v)
        return out
    return change


def longer_model(model, seed):
    def node(message):
        op = dict(onnx_wire.fields(message)).get(4)
        if op not in DRAWS:
            return message
        kept = b"".join(
            onnx_wire.encode(n, v) for n, v in onnx_wire.fields(message)
            if n != 5 or dict(onnx_wire.fields(v))[1] != b"seed")
        return kept + onnx_wire.blob(5, onnx_wire.attribute("seed", seed if op == b"Dropout" else seed / 8))

    def end(message):
        return onnx_wire.rewrite(
            message,
            f2=lambda t: onnx_wire.rewrite(t, f1=lambda tensor: onnx_wire.rewrite(tensor, f2=first_longer(1))))
    return onnx_wire.rewrite(model, f7=lambda g: onnx_wire.rewrite(g, f1=node, f11=end, f12=end))


def tensor(message):
    """(name, dtype, dims, values) of a TensorProto with raw data."""
    dims = [v for n, v in onnx_wire.fields(message) if n == 1]
    rest = dict(onnx_wire.fields(message))
    raw = rest.get(9, b"")
    code = onnx_wire.PACK[rest[2]]
    return rest[8].decode(), rest[2], dims, list(
        struct.unpack(f"<{len(raw) // struct.calcsize('<' + code)}{code}", raw))


# ---------------------------------------------------------------- running it
def npy(path):
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    code = {"f4": "f", "f8": "d", "b1": "?"}[header["descr"][1:]]
    body = data[10 + size:]
    return header["shape"], list(struct.unpack(f"<{len(body) // struct.calcsize('<' + code)}{code}", body))


def draw(burncc, target, folder, model, inputs, seed):
    """The outputs by name."""
    out = folder / "out"
    (folder / "m.onnx").write_bytes(longer_model(model, seed))
    command = [burncc, "run", str(folder / "m.onnx"), "--target", target, "--output", str(out), "--quiet"]
    for name, dtype, dims, values in inputs:
        many = MANY if dims else 1
        path = folder / f"{name}.pb"
        path.write_bytes(onnx_wire.tensor(name, dtype, values * many, dims[:1] and [dims[0] * MANY] + dims[1:]))
        command += ["--input", f"{name}={path}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.stderr.write(run.stderr)
        raise Fault(f"the longer model ends with status {run.returncode}")
    return {p.stem: npy(p) for p in out.glob("*.npy")}


# ---------------------------------------------------------------- what must hold
def check_draws(hits, chances, period):
    """0s and 1s, each with its chance of a 1; chances repeat after `period` elements."""
    def near(xs, ps, what):
        mean, variance = sum(ps), sum(p * (1 - p) for p in ps)
        expect(abs(sum(xs) - mean) <= SIGMAS * math.sqrt(variance), f"{what}: {sum(xs)} hits, {mean:.1f} expected")
    near(hits, chances, "all elements")
    for k in range(period):
        near(hits[k::period], chances[k::period], f"element {k} of {period}")
    pairs = [(h - p) * (g - q) for h, g, p, q in zip(hits, hits[1:], chances, chances[1:])]
    variance = sum(p * (1 - p) * q * (1 - q) for p, q in zip(chances, chances[1:]))
    expect(abs(sum(pairs)) <= SIGMAS * math.sqrt(variance), "neighbours depend on each other")


def check_bernoulli(inputs, outputs, expanded):
    """ONNX's function body compares the other way than the operator's text: 1 where the number drawn is greater than
    the input."""
    chances = inputs[0][3]
    hits = outputs["y"][1]
    expect(set(hits) <= {0.0, 1.0}, "values other than 0 and 1")
    check_draws(hits, [1 - p if expanded else p for p in chances] * MANY, len(chances))
    return hits


def check_dropout(inputs, outputs, expanded):
    del expanded
    values, ratio = inputs[0][3], next((v[0] for _, d, _, v in inputs[1:] if d == onnx_wire.FLOAT), 0.5)
    y = outputs["y"][1]
    kept = [v != 0 for v in y]
    for v, x in zip(y, values * MANY):
        expect(v == 0 or abs(v * (1 - ratio) - x) <= 1e-6 * abs(x), f"{x} became {v}, ratio {ratio}")
    check_draws([int(k) for k in kept], [1 - ratio] * len(y), len(values))
    for name in set(outputs) - {"y"}:
        expect(outputs[name][1] == kept, f"{name} does not say what was kept")
    return y


def check(burncc, path, target):
    command = [burncc, "verify", str(path), "--target", target, "--ulp", "4", "--quiet"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode and not re.search(r"^FAIL \S+ element ", run.stdout, re.M):  # fails in anything but the numbers
        sys.stderr.write(run.stderr)
        raise Fault(run.stdout.removeprefix("FAIL ").split(" data=")[0].strip() or f"status {run.returncode}")
    model = path.read_bytes()
    inputs = [tensor(p.read_bytes()) for p in sorted((path.parent / "test_data_set_0").glob("input_*.pb"))]
    rule = check_dropout if "Dropout" in onnx_wire.model_ops(model) else check_bernoulli
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        first, other, again = (rule(inputs, draw(burncc, target, folder, model, inputs, seed), "expanded"
                                    in path.parent.name) for seed in (6, 7, 6))
    expect(first == again, "the same seed gives other numbers")
    expect(sum(a != b for a, b in zip(first, other)) > len(first) / 20, "another seed gives the same numbers")


def main():
    burncc, path, target = sys.argv[1:]
    try:
        check(burncc, pathlib.Path(path), target)
    except Fault as fault:
        print(f"FAIL {fault} data=test_data_set_0")
        return 1
    print("pass data=test_data_set_0 note=random: shape, range, mean, independence and seeds checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
