#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Attributes that are written out although they are at their defaults, as PyTorch's exporter does: no "not known".

In: burncc; the node tests of the installed onnx package, one for each operator, version and set of attributes. Each
gets all attributes that its schema has defaults for. Out: a TAP line an operator. Without the package it skips."""
import pathlib
import re
import subprocess
import sys
import tempfile


def spelled_out(defs, model):
    """The model with all defaults in it, and what tells it from others; None where it has all already."""
    versions = {o.domain: o.version for o in model.opset_import}
    kind, added = [], False
    for node in model.graph.node:
        if not defs.has(node.op_type, versions.get(node.domain, 1), node.domain):
            return None, ()
        schema = defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        present = sorted(a.name for a in node.attribute)
        kind.append((node.op_type, schema.since_version, len(node.input), *present))
        for name, attribute in schema.attributes.items():
            if name not in present and attribute.default_value.name:
                node.attribute.add().CopyFrom(attribute.default_value)
                added = True
    return (model if added else None), tuple(kind)


def cases():
    """operator -> its models; of nodes alone, since functions' bodies are nodes of others"""
    try:
        import onnx.defs
        from onnx.backend.test.case.node import collect_testcases
        made = collect_testcases(None)
    except ImportError:
        return None
    found, seen = {}, set()
    for case in made:
        if case.kind != "node" or case.model is None or len(case.model.graph.node) != 1:
            continue
        model, kind = spelled_out(onnx.defs, case.model)
        if model is not None and kind not in seen:
            seen.add(kind)
            found.setdefault(kind[0][0], []).append((case.name, model))
    return found


def unknown(burncc, folder, model):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    run = subprocess.run([burncc, path, "-o", folder / "model.c", "-f"], capture_output=True, text=True)
    return re.findall(r'attribute "(\w+)" is not known', run.stderr), run


def main():
    burncc = sys.argv[1]
    found = cases()
    if found is None:
        print("1..0 # SKIP no package onnx")
        return 0
    print(f"1..{len(found) + 1}")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for at, (op, models) in enumerate(sorted(found.items()), 1):
            wrong = [f"{name}: {', '.join(names)}" for name, model in models
                     for names, _ in [unknown(burncc, folder, model)] if names]
            bad += bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {at} {op} with its defaults spelled out, {len(models)} models")
            for line in wrong:
                print(f"# {line}")
        model = next(iter(found["LeakyRelu"]))[1]
        model.graph.node[0].attribute.add(name="slope", f=1.0, type=1)
        names, run = unknown(burncc, folder, model)
        ok = names == ["slope"] and run.returncode == 0
        print(f"{'ok' if ok else 'not ok'} {len(found) + 1} an attribute that the operator does not have is named")
    return bad > 0 or not ok


if __name__ == "__main__":
    sys.exit(main())
