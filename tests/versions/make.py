# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes models of one operator in an older version each, in ONNX's test layout.

usage: make.py DIR NODE_TESTS [REGEX]
From each of ONNX's node tests that an older version of the operator accepts too (its inputs, attributes and element
types), that version is made, with
ONNX Runtime's outputs, or the reference evaluator's where it has none; and those of legacy.py, of what the newest
version does otherwise.
"""
import collections
import pathlib
import re
import shutil
import sys
import warnings

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import helper, numpy_helper

import legacy

PER_VERSION = 3         # tests made of one version
# Not the old meaning: slopes were per channel; neither reference has a pool whose padding does not count.
OTHERWISE = {("PRelu", 1), ("PRelu", 6), ("AveragePool", 1)}
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}


def read(path):
    t = onnx.TensorProto()
    t.ParseFromString(path.read_bytes())
    return t


def types_of(value):
    """Of an input as a schema writes it; None when it is no tensor."""
    if not value.type.HasField("tensor_type"):
        return None
    name = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    return f"tensor({name})" if name != "float" else "tensor(float)"


def accepts(schema, node, types):
    if not schema.min_input <= len(node.input) <= schema.max_input or not schema.min_output <= len(
            node.output) <= schema.max_output:
        return False
    if any(a.name not in schema.attributes or int(schema.attributes[a.name].type) != a.type
           for a in node.attribute) or any(a.required and a.name not in {b.name for b in node.attribute}
                                           for a in schema.attributes.values()):
        return False
    formal = list(schema.inputs)
    while formal and len(formal) < len(node.input):
        formal.append(formal[-1])
    return all(not n or types.get(n) in f.types for n, f in zip(node.input, formal))


def run_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                            providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception:                                   # its exceptions share no base of their own
        return None


def run_reference(model, feeds):
    try:
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        return None


def agree(outputs, recorded):
    return outputs is not None and all(
        np.shape(a) == b.shape and
        (b.dtype.kind not in "fiub" or np.allclose(np.asarray(a).astype(b.dtype), b, 1e-3, 1e-5, equal_nan=True))
        for a, b in zip(outputs, recorded))


def outputs_of(model, newest, feeds, recorded):
    """Of a judge that is right about the newest version; None when there is none."""
    for run in (run_onnxruntime, run_reference):
        outputs = run(model, feeds)
        if outputs is not None and agree(run(newest, feeds), recorded):
            return outputs
    return None


def write(folder, model, inputs, outputs, tolerance="0.001 1e-05\n"):
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, t in enumerate(tensors):
            (data / f"{kind}_{i}.pb").write_bytes(t.SerializeToString())
    (folder / "tolerance.txt").write_text(tolerance)


def older(root, test, schemas, made, wanted):
    """The test's operator in each of its older versions."""
    model = onnx.load(test / "model.onnx")
    node = model.graph.node[0]
    opset = next((o.version for o in model.opset_import if o.domain == node.domain), 0)
    if len(model.graph.node) != 1 or "_expanded" in test.name or node.op_type in RANDOM:
        return
    types = {v.name: types_of(v) for v in model.graph.input}
    if not opset or None in types.values() or any(types_of(v) is None for v in model.graph.output):
        return
    versions = sorted(v for v in schemas[node.domain, node.op_type] if v <= opset)
    for version in versions[:-1]:
        name = f"{node.op_type}/{version}_{test.name.removeprefix('test_')}"
        if (node.op_type, version) in OTHERWISE or made[node.op_type, version] >= PER_VERSION or not re.search(
                wanted, name) or not accepts(schemas[node.domain, node.op_type][version], node, types):
            continue
        old = onnx.ModelProto()
        old.CopyFrom(model)
        old.ir_version = 8
        del old.opset_import[:]
        old.opset_import.extend([helper.make_opsetid(node.domain, version)] +
                                ([helper.make_opsetid("", 17)] if node.domain else []))
        inputs = [read(test / "test_data_set_0" / f"input_{i}.pb") for i in range(len(old.graph.input))]
        feeds = {v.name: numpy_helper.to_array(t) for v, t in zip(old.graph.input, inputs)}
        recorded = [
            numpy_helper.to_array(read(test / "test_data_set_0" / f"output_{i}.pb"))
            for i in range(len(old.graph.output))
        ]
        outputs = outputs_of(old, model, feeds, recorded)
        if outputs is None or any(not isinstance(a, (np.ndarray, np.generic)) for a in outputs):
            continue
        for v, a in zip(old.graph.output, outputs):
            v.type.tensor_type.ClearField("shape")
            v.type.tensor_type.shape.CopyFrom(helper.make_tensor_type_proto(1, np.shape(a)).tensor_type.shape)
        made[node.op_type, version] += 1
        write(root / name, old, inputs,
              [numpy_helper.from_array(np.asarray(a), v.name) for v, a in zip(old.graph.output, outputs)])


def main():
    warnings.simplefilter("ignore")
    root, tests, wanted = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
    schemas = collections.defaultdict(dict)
    for s in onnx.defs.get_all_schemas_with_history():
        if not s.deprecated:
            schemas[s.domain, s.name][s.since_version] = s
    made = collections.Counter()
    shutil.rmtree(root, ignore_errors=True)
    for test in sorted(tests.glob("test_*")):
        older(root, test, schemas, made, wanted)
    for name, model, inputs, outputs in legacy.cases():
        made[name.split("/")[0], int(name.split("/")[1].split("_")[0])] += 1
        if re.search(wanted, name):
            write(root / name, model, inputs, outputs)
    missing = [
        f"{op}-{v}" for (domain, op), all_versions in sorted(schemas.items()) for v in sorted(all_versions)[:-1]
        if domain in ("", "ai.onnx.ml") and not made[op, v]
    ]
    if not wanted:
        print(f"{sum(made.values())} models; older versions without one: " + " ".join(missing), file=sys.stderr)


if __name__ == "__main__":
    main()
