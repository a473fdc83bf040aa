# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the cases, and the files of files.py, as models with inputs and expected outputs, in ONNX's test layout.

usage: make.py DIR [REGEX]
The outputs are ONNX Runtime's, of products that no machine saturates (exact.py). Where its CPU has no kernel for an
operator, and for products of all bytes, they come from the case's own formula in numpy.
"""
import pathlib
import re
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import exact                # noqa: E402
import files                # noqa: E402
from cases import CASES     # noqa: E402


def build(c):
    """Model and feeds. Inputs are x0, x1...; those listed as constant become initializers."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(c.inputs)]
    arrays = {n: numpy_helper.from_array(a, n) for n, a in zip(names, c.inputs) if n}
    feeds = {n: a for i, (n, a) in enumerate(zip(names, c.inputs)) if n and i not in c.constant}
    wanted = [f"y{i}" if w else "" for i, w in enumerate(c.outputs)]
    node = helper.make_node(c.op, names, wanted, name=c.name, domain=c.domain, **c.attributes)
    graph = helper.make_graph(
        [node], c.name.replace("/", "_"),
        [helper.make_tensor_value_info(n, arrays[n].data_type, c.shapes.get(n, arrays[n].dims)) for n in feeds], [
            helper.make_tensor_value_info(n, c.types[i], None) if i in c.types else onnx.ValueInfoProto(name=n)
            for i, n in enumerate(wanted) if n
        ], [arrays[n] for i, n in enumerate(names) if n and i in c.constant])
    opsets = [helper.make_opsetid("", c.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), {n: a for n, a in feeds.items() if n}


def reference(model, feeds, c):
    if not c.kernel:
        return [np.asarray(a) for a in c.expect(*c.inputs)]
    wrong = exact.saturates(model, feeds)
    if wrong:
        raise SystemExit(f"{c.name}: ONNX Runtime's result depends on the machine: {wrong}")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as e:                              # its exceptions share no base of their own
        if not c.expect or not re.search("not.implemented", str(e), re.I):
            raise RuntimeError(f"{c.name}: {e}") from None
    return [np.asarray(a) for a in c.expect(*c.inputs)]


def write(c, folder):
    model, feeds = build(c)
    outputs = reference(model, feeds, c)
    data = folder / "test_data_set_0"
    shutil.rmtree(folder, ignore_errors=True)
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, arrays in (("input", feeds.values()), ("output", outputs)):
        for i, a in enumerate(arrays):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(a)).SerializeToString())
    (folder / "tolerance.txt").write_text("{} {}\n".format(*c.tolerance))


def main():
    root = pathlib.Path(sys.argv[1])
    pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    for c in CASES:
        if not pattern.search(c.name):
            continue
        try:
            write(c, root / c.name)
        except RuntimeError as e:
            print(e, file=sys.stderr)
            shutil.rmtree(root / c.name, ignore_errors=True)
    files.write_all(root, pattern)


if __name__ == "__main__":
    main()
