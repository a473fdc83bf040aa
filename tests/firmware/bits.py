#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models of integers: the same bits on every microcontroller as here, and each layer beside ONNX Runtime's.

usage: bits.py BURNCC MODEL... [--only targets,layers]

Out: a table for each part. targets: whole models on two inputs, run here and in QEMU (verify --golden), and the whole
model's output beside ONNX Runtime's, in steps of its scale. layers: the model is cut at each tensor of integers, every
piece takes what ONNX Runtime (its own optimizations off) has there, and all that pieces give is compared element by
element; `ties` are those of the differences where the number that is rounded is within 1e-4 of a half. The exit status
is 1 where bits differ or a layer's element is off by more than one.

MODEL.onnx (QDQ, QLinearConv and its like, ConvInteger) or a folder with model.onnx; symbolic sizes are 3. Needs
onnxruntime, onnx and numpy, QEMU and the compilers of run.py; by hand, some ten minutes for ten small models."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import boards

TARGETS = {**dict.fromkeys(("cortex-m0", "cortex-m4", "cortex-m55"), "qemu-system-arm"),
           **{target: boards.qemu_of(target) for target in (*boards.RISCV, *boards.VECTORS)}}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32")
SIZE = 3                                                # of a symbolic dimension
SETS = 2


def size_of(dim):
    return dim.dim_value if dim.dim_value > 0 else SIZE


class Model:
    """A model's file with sizes, and ONNX Runtime's values of every tensor on drawn inputs."""
    def __init__(self, path):
        self.path = path / "model.onnx" if path.is_dir() else path
        self.name = path.name if path.is_dir() else path.stem
        self.proto = onnx.load(str(self.path))
        graph = self.proto.graph
        fixed = {w.name for w in graph.initializer}
        self.inputs = [i for i in graph.input if i.name not in fixed]
        for value in [*self.inputs, *graph.output]:
            for dim in value.type.tensor_type.shape.dim:
                dim.dim_value = size_of(dim)
        new = {o.name: f"y{n}" for n, o in enumerate(graph.output)}    # names of files
        for names in [node.input for node in graph.node] + [node.output for node in graph.node]:
            names[:] = [new.get(name, name) for name in names]
        for o in graph.output:
            o.name = new[o.name]
        self.outputs = list(new.values())
        self.made = [name for node in graph.node for name in node.output if name]

    def draw(self, rng):
        # what images, sounds and features of these models are like is told by the first scale, if there is one
        scales = {w.name: numpy_helper.to_array(w) for w in self.proto.graph.initializer}
        first = next((n for n in self.proto.graph.node if n.op_type == "QuantizeLinear"), None)
        reach = float(np.max(scales[first.input[1]])) * 127 if first and first.input[1] in scales else 1.0
        return {i.name: rng.uniform(-reach, reach, [d.dim_value for d in i.type.tensor_type.shape.dim])
                .astype(np.float32) for i in self.inputs}

    def values(self, feeds):
        """Every tensor of a run."""
        seen = onnx.ModelProto.FromString(self.proto.SerializeToString())
        del seen.graph.output[:]
        seen.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.made)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(seen.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return {**feeds, **dict(zip(self.made, session.run(self.made, feeds)))}


def cut(model, values):
    """The model in pieces: what it computes of integers are outputs, and inputs, of their own, to which its readers
    turn. Returns the model and, by name, what its outputs are in the whole one."""
    proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
    graph = proto.graph
    fixed = {w.name for w in graph.initializer}
    depends = {i.name for i in model.inputs}            # on what comes in; the rest are constants
    for node in graph.node:
        if depends & set(node.input):
            depends |= set(node.output)
    whole = [t for t in model.made if t in depends and t not in fixed and values[t].dtype.name in INTEGERS]
    given = {t: f"given{n}" for n, t in enumerate(whole)}
    gives = {f"gives{n}": t for n, t in enumerate(whole)}
    named = {t: name for name, t in gives.items()}
    for node in graph.node:
        for n, t in enumerate(node.input):
            node.input[n] = given.get(t, t)
        for n, t in enumerate(node.output):
            node.output[n] = named.get(t, t)
    del graph.output[:]
    info = onnx.helper.make_tensor_value_info
    for t, name in given.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(values[t].dtype)
        graph.input.append(info(name, kind, values[t].shape))
        graph.output.append(info(named[t], kind, values[t].shape))
    left = [o for o in model.outputs if o not in named]
    for name in left:
        kind = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
        graph.output.append(info(name, kind, values[name].shape))
    del graph.value_info[:]
    return proto, given, gives


def ties(model, values, tensor, where):
    """How many of these elements are roundings of what is within 1e-4 of a half; none where no float is rounded."""
    node = next(n for n in model.proto.graph.node if tensor in n.output)
    if node.op_type != "QuantizeLinear" or node.input[0] not in values:
        return 0
    constants = {w.name: numpy_helper.to_array(w) for w in model.proto.graph.initializer}
    exact = values[node.input[0]].astype(np.float64)[where] / np.float64(constants[node.input[1]].ravel()[0])
    return int((np.abs(exact - np.floor(exact) - 0.5) < 1e-4).sum())


class Show:
    def __init__(self, args, work):
        self.args, self.work, self.wrong = args, work, 0
        self.riscv_clang = {target: boards.riscv_clang(work, target) for target in boards.VECTORS}

    def burncc(self, *words, cc=""):
        env = {**os.environ, "CC": cc, "BURNCC_CFLAGS": ""}
        return subprocess.run([self.args.burncc, *map(str, words), "--quiet"], capture_output=True, text=True, env=env)

    def run(self, path, feeds, outputs, target):
        """What burncc's code for a target, compiled here, gives."""
        folder = self.work / "run"
        folder.mkdir(exist_ok=True)
        given = []
        for n, (name, array) in enumerate(feeds.items()):
            np.save(folder / f"in{n}.npy", array)
            given += ["--input", f"{name}={folder}/in{n}.npy"]
        done = self.burncc("run", path, "--output", folder, "--target", target, *given)
        if done.returncode:
            sys.exit(f"{path}: {done.stderr}")
        return {name: np.load(folder / f"{name}.npy") for name in outputs}

    def table(self, title, columns):
        print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)

    def row(self, *cells):
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def layers(show, model):
    total, off, tied, more, pieces = 0, 0, 0, 0, 0
    for seed in range(SETS):
        values = model.values(model.draw(np.random.default_rng(seed)))
        proto, given, gives = cut(model, values)
        path = show.work / "cut.onnx"
        onnx.save(proto, str(path))
        feeds = {i.name: values[i.name] for i in model.inputs} | {name: values[t] for t, name in given.items()}
        got = show.run(path, feeds, gives, "cortex-m4")
        for name, tensor in gives.items():
            apart = np.abs(got[name].astype(np.int64).ravel() - values[tensor].astype(np.int64).ravel())
            total, off, more = total + apart.size, off + int((apart == 1).sum()), more + int((apart > 1).sum())
            tied += ties(model, values, tensor, (apart == 1).reshape(values[tensor].shape)) if apart.any() else 0
        pieces = len(gives)
    show.wrong += more > 0
    show.row(model.name, pieces, f"{total:,}", off, tied, more)


def targets(show, model):
    folder = show.work / f"{model.name}.data"
    steps = 0.0
    for seed in range(SETS):
        where = folder / f"test_data_set_{seed}"
        where.mkdir(parents=True)
        feeds = model.draw(np.random.default_rng(seed))
        values = model.values(feeds)
        for kind, arrays in (("input", feeds.values()), ("output", (values[o] for o in model.outputs))):
            for n, a in enumerate(arrays):
                (where / f"{kind}_{n}.pb").write_bytes(numpy_helper.from_array(a).SerializeToString())
    path = folder / "model.onnx"
    onnx.save(model.proto, str(path))
    cells = []
    for target, runner in TARGETS.items():
        cc = show.riscv_clang.get(target, "")
        if cc is None:
            cells.append("no compiler")
            continue
        said = show.burncc("verify", path, "--data", folder, "--target", target, "--runner", runner, "--golden",
                           "--rtol", "0", "--atol", "1e9", cc=cc)
        lines = [line for line in said.stdout.splitlines() if line.startswith("pass ")]
        good = said.returncode == 0 and len(lines) == SETS
        show.wrong += not good
        cells.append("same" if good else f"OTHERS {(said.stdout + said.stderr)[-300:]}")
    for seed in range(SETS):
        feeds = model.draw(np.random.default_rng(seed))
        values = model.values(feeds)
        got = show.run(path, feeds, model.outputs, "cortex-m4")
        for o in model.outputs:
            levels = np.unique(values[o])
            step = np.diff(levels).min() if levels.size > 1 else 1.0
            steps = max(steps, float(np.abs(got[o] - values[o].reshape(got[o].shape)).max() / step))
    show.row(model.name, *cells, f"{steps:.2f}")


PARTS = {"targets": (targets, "The same bits as here", ["", *TARGETS, "output, steps"]),
         "layers": (layers, "Each layer beside ONNX Runtime's",
                    ["", "pieces", "elements", "off by one", "of these ties", "by more"])}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("models", nargs="+", type=pathlib.Path)
    p.add_argument("--only", default=",".join(PARTS))
    args = p.parse_args()
    args.burncc = str(pathlib.Path(args.burncc).resolve())
    with tempfile.TemporaryDirectory() as folder:
        show = Show(args, pathlib.Path(folder))
        for part in args.only.split(","):
            compute, title, columns = PARTS[part]
            show.table(title, columns)
            for path in args.models:
                compute(show, Model(path))
    return show.wrong > 0


if __name__ == "__main__":
    sys.exit(main())
