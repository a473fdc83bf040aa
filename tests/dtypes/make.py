# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes models of one operator with one element type each, for every type that its newest schema allows, in ONNX's
test layout.

usage: make.py DIR NODE_TESTS [REGEX]
From the first of ONNX's node tests of each operator, with its inputs cast to the type; outputs are the reference
evaluator's or ONNX Runtime's. Where
neither runs, the outputs are those of the widest type that one of them runs, cast: the model has to compile, and be
near.
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
from onnx import TensorProto, helper, numpy_helper

# The test's own attributes or inputs do not fit other types; the reference evaluator wraps where integers have no such
# number; it and ONNX Runtime give
# other indices than the recordings.
APART = {"BitCast", "CastLike", "MaxUnpool"}
# Its attributes hold numbers, which no strings are found among.
NO_STRINGS = {"TfIdfVectorizer"}
# The reference evaluator rounds to integers, ONNX Runtime cuts (linear, uint8, int8, int32), the standard is silent;
# burncc cuts: what is expected is the result on floats, cut.
CUT = {"Resize"}
# ONNX Runtime saturates pairs of products of bytes on some processors (tests/microsoft/exact.py).
EXACT = {"MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv"}
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
DTYPES = {f"tensor({n.lower()})": v for n, v in TensorProto.DataType.items()}
LIMITS = {
    TensorProto.UINT2: (0, 3), TensorProto.INT2: (-2, 1), TensorProto.UINT4: (0, 15), TensorProto.INT4: (-8, 7),
    TensorProto.FLOAT4E2M1: (-6, 6), TensorProto.FLOAT8E4M3FN: (-448, 448), TensorProto.FLOAT8E4M3FNUZ: (-240, 240),
    TensorProto.FLOAT8E5M2: (-57344, 57344), TensorProto.FLOAT8E5M2FNUZ: (-57344, 57344),
    TensorProto.FLOAT8E8M0: (2**-20, 2**20)
}
EPSILON = {
    TensorProto.BFLOAT16: 2e-2, TensorProto.FLOAT16: 4e-3, TensorProto.FLOAT8E4M3FN: 0.15,
    TensorProto.FLOAT8E4M3FNUZ: 0.15, TensorProto.FLOAT8E5M2: 0.3, TensorProto.FLOAT8E5M2FNUZ: 0.3,
    TensorProto.FLOAT4E2M1: 0.6, TensorProto.FLOAT8E8M0: 1.0, TensorProto.FLOAT: 1e-3, TensorProto.DOUBLE: 1e-6
}
CLOSEST = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE)


def read(path):
    t = onnx.TensorProto()
    t.ParseFromString(path.read_bytes())
    return t


def cast(a, dtype):
    if dtype == TensorProto.STRING:
        return a.astype(str).astype(object)
    to = helper.tensor_dtype_to_np_dtype(dtype)
    if dtype in LIMITS:
        a = np.clip(a.astype(np.float64), *LIMITS[dtype])
    elif np.dtype(to).kind in "iu" and a.dtype.kind == "f":
        a = np.clip(a, np.iinfo(to).min, np.iinfo(to).max)
    if np.dtype(to).kind == "u" and a.dtype.kind in "fi":
        a = np.abs(a)
    return a.astype(to)


def formals(schema, count, parameters):
    parameters = list(parameters)
    while parameters and len(parameters) < count:
        parameters.append(parameters[-1])
    return parameters[:count]


def retyped(model, schema, variable, dtype, arrays):
    """The model with every input of the type variable cast, and the arrays."""
    node, new, out = model.graph.node[0], onnx.ModelProto(), []
    new.CopyFrom(model)
    kinds = {n: f.type_str for n, f in zip(node.input, formals(schema, len(node.input), schema.inputs)) if n}
    for value, a in zip(new.graph.input, arrays):
        if kinds.get(value.name) == variable:
            value.type.tensor_type.elem_type = dtype
            a = cast(a, dtype)
        out.append(a)
    for init in new.graph.initializer:
        if kinds.get(init.name) == variable:
            init.CopyFrom(numpy_helper.from_array(cast(numpy_helper.to_array(init), dtype), init.name))
    results = {n: f.type_str for n, f in zip(node.output, formals(schema, len(node.output), schema.outputs)) if n}
    for value in new.graph.output:
        if results.get(value.name) == variable:
            value.type.tensor_type.elem_type = dtype
    return new, out


def run_reference(model, feeds):
    if model.graph.node[0].op_type in CUT and any(a.dtype.kind in "iu" for a in feeds.values()):
        return None
    try:
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        return None


def run_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                            providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception:
        return None


def wide(a):
    return a.astype(np.float64)


# Where the reference evaluator does not do what the standard says; inputs in float64 or as they are -> the output in
# float64. The zero points of small floats: "usually not used [...], but the formula remains the same" (QuantizeLinear,
# DequantizeLinear), while the evaluator leaves them out. Scales of f16: their product and quotient are rounded to f16
# there, which the formula does not ask for; here, nothing is rounded before the result.
FORMULAS = {
    "QuantizeLinear": lambda x, scale, zero: wide(x) / wide(scale) + wide(zero),
    "DequantizeLinear": lambda x, scale, zero: (wide(x) - wide(zero)) * wide(scale),
    "QLinearMatMul": lambda a, sa, za, b, sb, zb, sy, zy: np.clip(
        np.rint((wide(a) - wide(za)) @ (wide(b) - wide(zb)) * (wide(sa) * wide(sb) / wide(sy))) + wide(zy),
        np.iinfo(zy.dtype).min, np.iinfo(zy.dtype).max)
}
SMALL = {getattr(TensorProto, n) for n in TensorProto.DataType.keys() if re.match("FLOAT[468]", n)}


def by_formula(model, schema, arrays):
    """What FORMULAS says, where a zero point is a small float."""
    f = FORMULAS.get(model.graph.node[0].op_type)
    kinds = {v.type.tensor_type.elem_type for v in model.graph.input if "zero_point" in v.name}
    if not f or not kinds & SMALL or f.__code__.co_argcount != len(arrays) or (len(arrays) == 8
                                                                               and arrays[7].dtype.kind not in "iu"):
        return None
    return [cast(f(*arrays), declared(model, schema)[model.graph.output[0].name])]


def positive(model, schema, arrays):
    """Zero and less are undefined in a type that has no such numbers: none are made where the result is of one."""
    if model.graph.node[0].op_type == "DequantizeLinear" and TensorProto.FLOAT8E8M0 in declared(model, schema).values():
        arrays[0], arrays[2] = np.maximum(arrays[0], 1), np.zeros_like(arrays[2])


def judged(model, arrays):
    feeds = {v.name: a for v, a in zip(model.graph.input, arrays)}
    evaluator = any(a.dtype == object for a in arrays) or model.graph.node[0].op_type in EXACT
    for run in (run_reference, run_onnxruntime) if evaluator else (run_onnxruntime, run_reference):
        outputs = run(model, feeds)
        if outputs is not None and all(isinstance(a, (np.ndarray, np.generic)) for a in outputs):
            return [np.asarray(a) for a in outputs]
    return None


def expected(model, schema, variable, dtype, arrays):
    new, values = retyped(model, schema, variable, dtype, arrays)
    positive(new, schema, values)
    outputs = by_formula(new, schema, values)
    if outputs is None:
        outputs = judged(new, values)
    if outputs is not None:
        return new, values, outputs
    for wide in CLOSEST:                                # the same numbers in another type
        other, wide_values = retyped(new, schema, variable, wide, values)
        outputs = judged(other, wide_values) if dtype not in (TensorProto.STRING, TensorProto.COMPLEX64,
                                                              TensorProto.COMPLEX128) else None
        if outputs is not None:
            return new, values, [cast(a, v.type.tensor_type.elem_type) for a, v in zip(outputs, new.graph.output)]
    return new, values, None


def write(folder, model, inputs, outputs, tolerance):
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    for v, a in zip(model.graph.output, outputs):
        v.type.tensor_type.shape.CopyFrom(helper.make_tensor_type_proto(1, a.shape).tensor_type.shape)
    onnx.save(model, folder / "model.onnx")
    for kind, values, arrays in (("input", model.graph.input, inputs), ("output", model.graph.output, outputs)):
        for i, (v, a) in enumerate(zip(values, arrays)):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(a, v.name).SerializeToString())
    (folder / "tolerance.txt").write_text(f"{tolerance} {tolerance}\n")


def declared(model, schema):
    """The outputs' element types: an input's whose type variable they share, else as ONNX infers them."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for v in bare.graph.output:
        v.ClearField("type")
    out = onnx.shape_inference.infer_shapes(bare).graph.output
    node, given = model.graph.node[0], {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    variables = {f.type_str: given[n] for n, f in zip(node.input, formals(schema, len(node.input), schema.inputs))
                 if n in given and not f.type_str.startswith("tensor(")}
    shared = {n: variables[f.type_str] for n, f in zip(node.output, formals(schema, len(node.output), schema.outputs))
              if f.type_str in variables}
    return {v.name: v.type.tensor_type.elem_type for v in out if v.type.tensor_type.elem_type} | shared


def one_operator(root, test, schema, wanted):
    model = onnx.load(test / "model.onnx")
    node = model.graph.node[0]
    if any(not v.type.HasField("tensor_type") for v in list(model.graph.input) + list(model.graph.output)):
        return False
    arrays = [
        numpy_helper.to_array(read(test / "test_data_set_0" / f"input_{i}.pb")) for i in range(len(model.graph.input))
    ]
    used = {f.type_str for f in formals(schema, len(node.input), schema.inputs)}
    for constraint in schema.type_constraints:
        for kind in constraint.allowed_type_strs:
            name = f"{node.op_type}/{constraint.type_param_str}_{kind.removeprefix('tensor(').rstrip(')')}"
            if node.op_type in NO_STRINGS and kind == "tensor(string)":
                continue
            if kind not in DTYPES or constraint.type_param_str not in used or not re.search(wanted, name):
                continue
            try:
                new, values, outputs = expected(model, schema, constraint.type_param_str, DTYPES[kind], arrays)
                if outputs is None:
                    print(f"{name}: no judge", file=sys.stderr)
                    continue
                inferred = declared(new, schema)
                results = dict(zip(node.output, formals(schema, len(node.output), schema.outputs)))
                for i, (v, a) in enumerate(zip(new.graph.output, outputs)):
                    if a.dtype.kind in "OU":
                        outputs[i] = np.where(a == 0, "", a)            # what was no string
                        continue
                    if v.name in inferred:
                        v.type.tensor_type.elem_type = inferred[v.name]
                        outputs[i] = cast(a, inferred[v.name])
                    elif results[v.name].type_str in used or results[v.name].type_str.startswith("tensor("):
                        outputs[i] = cast(a, v.type.tensor_type.elem_type)      # numpy may have widened it
                    else:
                        v.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(a.dtype)
                kinds = {v.type.tensor_type.elem_type for v in list(new.graph.input) + list(new.graph.output)}
                write(root / name, new, values, outputs, max(EPSILON.get(k, 1e-5) for k in kinds))
            except Exception as e:                      # what numpy has no casts for
                print(f"{name}: {type(e).__name__} {str(e)[:100]}", file=sys.stderr)
    return True


def main():
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    root, tests, wanted = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
    done = collections.Counter()
    shutil.rmtree(root, ignore_errors=True)
    for test in sorted(tests.glob("test_*")):
        if "_expanded" in test.name:
            continue
        model = onnx.load(test / "model.onnx")
        node = model.graph.node[0]
        key = node.domain, node.op_type
        if len(model.graph.node) != 1 or done[key] or node.op_type in RANDOM | APART or any(
                a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
            continue
        opset = next((o.version for o in model.opset_import if o.domain == node.domain), 0)
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        except onnx.defs.SchemaError:
            continue
        done[key] += one_operator(root, test, schema, wanted)


if __name__ == "__main__":
    main()
