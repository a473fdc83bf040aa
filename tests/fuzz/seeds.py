#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Seeds for the fuzzer: small models of ONNX's node tests, each as it is and with its recorded inputs as constants,
and the texts that the cases begin with.

In: a folder of node tests (unpacked) and a folder to fill. Out: files of at most --limit bytes. With all inputs
constant a model is folded away, which drives the evaluators; with its integer inputs constant, shapes and indices are
known. Wants an interpreter with onnx."""
import argparse
import pathlib

import onnx
from onnx import TensorProto, helper


def variants(model, folder):
    yield "", model.SerializeToString()
    inputs = []
    for i, info in enumerate(model.graph.input):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if not path.exists() or not info.type.HasField("tensor_type"):
            return
        t = TensorProto.FromString(path.read_bytes())
        t.name = info.name
        inputs.append(t)
    whole = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING}
    for kind, some in (("_const", inputs), ("_ints", [t for t in inputs if t.data_type in whole])):
        if some and (kind == "_const" or len(some) < len(inputs)):
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            changed.graph.initializer.extend(some)
            yield kind, changed.SerializeToString()


def external(into):
    """A model whose weight lies in the file data.bin, which the target keeps beside it."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data.bin"), ("offset", "16"), ("length", "24")):
        weight.external_data.add(key=key, value=value)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "external", [x], [y], [weight])
    (into / "external").write_bytes(helper.make_model(graph).SerializeToString())


def texts(into):
    """Graphs as text, which the importer reads too."""
    for case in pathlib.Path(__file__).resolve().parent.parent.glob("cases/*/*.txt"):
        graph = case.read_text().split("before:\n", 1)[1]
        (into / ("text_" + case.stem)).write_text(graph[:graph.index("\n}") + 3])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("tests", type=pathlib.Path, help="folder of node tests")
    p.add_argument("into", type=pathlib.Path, help="folder of seeds")
    p.add_argument("--limit", type=int, default=3000, help="bytes of the largest seed")
    args = p.parse_args()
    args.into.mkdir(parents=True, exist_ok=True)
    external(args.into)
    texts(args.into)
    for folder in sorted(args.tests.iterdir()):
        path = folder / "model.onnx"
        if path.exists() and path.stat().st_size <= args.limit:
            for kind, data in variants(onnx.ModelProto.FromString(path.read_bytes()), folder):
                if len(data) <= args.limit:
                    (args.into / (folder.name.removeprefix("test_") + kind)).write_bytes(data)


if __name__ == "__main__":
    main()
