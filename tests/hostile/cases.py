# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hostile files that are written by hand: what each is refused for.

cases() gives (name, bytes of the model, other files beside it by name, exit status, what the diagnostic says as a
regular expression). What a file may hold that is not refused stands here too, with status 0."""
import pathlib
import re

import onnx_wire as w

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "compiler" / "import" / "onnx"
ROW = re.compile(r'^ONNX\( *(\w+), *"([^"]*)", *(\d+), *(\d+), *(\d+), *(\w+), *(\d+), *(\w+), *(\w+),', re.M)
INVALID, LIMIT = 1, 3

_cases = []


def case(name, model, status, says="", files=None):
    _cases.append((name, model, files or {}, status, says))


def graph(nodes, inputs, outputs, initializers=(), opset=18, **more):
    infos = [[w.value_info(n, t, d) for n, t, d in ends] for ends in (inputs, outputs)]
    return w.model(w.graph(nodes, *infos, initializers), opset=opset, **more)


def one(op, inputs, outputs, shape=(2, 3), opset=18, domain="", dtype=w.FLOAT, version=1, constants=(), **attributes):
    """A model of one node whose inputs all have that shape; constants: tensors of inputs that are given here."""
    given = {name for name, _ in constants}
    ends = [(n, dtype, list(shape)) for n in dict.fromkeys(inputs) if n and n not in given]
    return graph([w.node(op, inputs, outputs, domain=domain, **attributes)], ends, [(outputs[0], dtype, None)],
                 [t for _, t in constants], opset, domains=[(domain, version)] if domain else [])


# ---------------------------------------------------------------- how many inputs and outputs
def counts():
    """Every row of the table, in its first and its last version, with one input or output too few and too many."""
    for op, domain, since, until, in_least, in_most, out_least, out_most in table():
        for version in sorted({since, until}):
            def at(n_in, n_out):
                return one(op, [f"x{i}" for i in range(n_in)], [f"y{i}" for i in range(n_out)],
                           opset=28 if domain else version, domain=domain, version=version)

            name = f"counts/{domain or 'ai.onnx'}.{op}-{version}"
            for what, (least, most) in (("input", (in_least, in_most)), ("output", (out_least, out_most))):
                for n in (least - 1, most + 1 if most is not None else -1):
                    if n < 0 or (what == "output" and n == 0):
                        continue
                    few, bound = n < least, least if n < least else most
                    n_in, n_out = (n, max(out_least, 1)) if what == "input" else (in_least, n)
                    case(f"{name}_{n}_{what}s", at(n_in, n_out), INVALID,
                         rf"at {'least' if few else 'most'} {bound} {what}s? in version {version}, this node has {n}$")


def table():
    rows = "".join((SOURCE / name).read_text() for name in ("onnx_ops.def", "onnx_ms_ops.def"))
    for m in ROW.finditer(rows):
        yield m[1], m[2], *(None if n == "MANY" else int(n) for n in m.groups()[2:8])


def absent():
    case("counts/absent_at_the_end", one("Relu", ["x", "", ""], ["y", ""]), 0)
    case("counts/absent_in_the_middle", one("Add", ["x", ""], ["y"]), INVALID, "input 1 is missing")


# ---------------------------------------------------------------- versions
def versions():
    newer = r"operator set 29 is newer than 28, the newest known; export the model for that version"
    case("versions/opset_29", one("Relu", ["x"], ["y"], opset=29), INVALID, newer)
    case("versions/opset_28", one("Relu", ["x"], ["y"], opset=28), 0)
    case("versions/opset_0", one("Relu", ["x"], ["y"], opset=0), INVALID, "has the version 0")
    case("versions/opset_negative", one("Relu", ["x"], ["y"], opset=-5), INVALID, "has the version -5")
    case("versions/opset_int64", one("Relu", ["x"], ["y"], opset=2**63 - 1), INVALID, "is newer than 28")
    case("versions/ml_99", one("Scaler", ["x"], ["y"], domain="ai.onnx.ml", version=99), INVALID,
         'version 99 of "ai.onnx.ml" is newer than 5, the newest known; export')
    inner = w.function("f", "own", ["x"], ["y"], [w.node("Relu", ["x"], ["y"])], opset=77)
    call = [w.node("f", ["x"], ["y"], domain="own")]
    ends = [("x", w.FLOAT, [2])], [("y", w.FLOAT, [2])]
    case("versions/function_77", graph(call, *ends, functions=[inner], domains=["own"]), INVALID,
         'version 77 of "ai.onnx" is newer than 28')


def cases():
    counts()
    absent()
    versions()
    return _cases
