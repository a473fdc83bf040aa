#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What integers cost trained networks, by `burncc quantize` and by ONNX Runtime's quantizer: the table of quantize.md.

usage: accuracy.py BURNCC SHARED [--only RE] [--most 0.01]

Out: a table, a row for each network: its accuracy on the test items in floats, by ONNX Runtime; of what burncc wrote
(two methods, and one scale for all weights), by ONNX Runtime and by burncc's own code, which may differ in an item or
two; of what ONNX Runtime's quantizer wrote by its three methods, from the same items. The exit status is 1 if burncc's
default loses more than --most, or burncc's code and ONNX Runtime differ in more than one item of a thousand.

SHARED has models/NAME/model.onnx, datasets/mnist (the four files, .gz) and datasets/iris/Iris.csv. Of MNIST 256 items
of the training set give the ranges and the 10,000 of the test set the accuracy; of iris all 150 do both. Python with
numpy, onnx and onnxruntime; some minutes."""
import argparse
import contextlib
import gzip
import io
import itertools
import json
import logging
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CALIBRATE = 256
OURS = {"mse": [], "minmax": ["--method", "minmax"], "one scale": ["--per-tensor"]}
THEIRS = ("MinMax", "Entropy", "Percentile")


def unit(x):
    return x / np.float32(255)


def raw(x):
    return x


def standard(x):
    return (x / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)


def halved(x):
    """14 x 14: means of four."""
    return x.reshape(-1, 1, 14, 2, 14, 2).mean((3, 5), dtype=np.float32)


def petals_first(x):
    return x[:, [2, 3, 0, 1]]


# title, model (None: models/digits), what becomes of an item, items
NETWORKS = [
    ("mnist-8 (CNTK)", "mnist_cnn_cntk8", raw, "mnist"),
    ("CNN with batch normalization (Burn)", "mnist_burn_bn", standard, "mnist"),
    ("MLP (onnx-mlir)", "mnist_mlp_onnxmlir", standard, "mnist"),
    ("CNN (Tribuo)", "mnist_cnn_dynbatch_tribuo", unit, "mnist"),
    ("CNN of 14x14 (onnx2c)", "mnist_tiny14_onnx2c", halved, "mnist"),
    ("MLP with batch normalization (onnx2c)", "mnist_mlp_bn_onnx2c", unit, "mnist"),
    ("GRU, its last layer alone", "mnist_gru_gapsdk", unit, "mnist"),
    ("[digits](../models/digits/)", None, unit, "mnist"),
    ("iris, MLP (WinML)", "iris_mlp_winml", raw, "iris"),
    ("iris, logistic regression (Tribuo)", "iris_logreg_tribuo", petals_first, "iris"),
]


def idx(path, offset):
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=offset)


def mnist(folder):
    """Items and labels to take ranges from, and to test on."""
    for part in ("train", "t10k"):
        labels = idx(folder / f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int64)
        images = idx(folder / f"{part}-images-idx3-ubyte.gz", 16).astype(np.float32).reshape(-1, 1, 28, 28)
        some = np.linspace(0, len(labels) - 1, CALIBRATE).astype(int) if part == "train" else slice(None)
        yield images[some], labels[some]


def iris(folder):
    rows = [line.split(",") for line in (folder / "Iris.csv").read_text().split()[1:]]
    kinds = sorted({row[5] for row in rows})
    items = np.array([row[1:5] for row in rows], np.float32), np.array([kinds.index(row[5]) for row in rows])
    return [items, items]


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, name, items):
        self.feeds = iter([{name: item[None]} for item in items])

    def get_next(self):
        return next(self.feeds, None)


def predictions(path, items):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.array([session.run(None, {name: item[None]})[0].reshape(-1).argmax() for item in items])


def accuracy(guesses, labels):
    return float((guesses == labels).mean())


def in_their_order(labels, guesses):
    """Labels numbered as the network numbers its classes, which of iris nothing says."""
    n = labels.max() + 1
    if n > 4:
        return labels
    orders = (np.array(order)[labels] for order in itertools.permutations(range(n)))
    return max(orders, key=lambda order: accuracy(guesses, order))


def by_burncc(args, model, out, files, options):
    """The accuracy of burncc's own code, of the file that it writes."""
    done = subprocess.run([args.burncc, "quantize", model, "--data", f"npz:{files[0]}", "--valid", f"npz:{files[1]}",
                           "--calibrate", str(CALIBRATE), "--quiet", "--json", "-f", "-o", out, *options],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{model}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["accuracy"]


def of_13(model, out):
    """The same model in operator set 13, the first that has scales by channel."""
    graph = onnx.load(str(model))
    if next(o.version for o in graph.opset_import if o.domain in ("", "ai.onnx")) < 13:
        graph.ir_version = max(graph.ir_version, 7)
        graph = onnx.version_converter.convert_version(graph, 13)
    constants = {tensor.name for tensor in graph.graph.initializer}
    inputs = [value for value in graph.graph.input if value.name not in constants]
    del graph.graph.input[:]
    graph.graph.input.extend(inputs)
    onnx.save(graph, str(out))
    return out


def by_onnxruntime(model, out, items, method):
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])

    def write(**extra):
        quantization.quantize_static(
            model, out, Calibration(session.get_inputs()[0].name, items), per_channel=True, extra_options=extra,
            quant_format=quantization.QuantFormat.QDQ, weight_type=quantization.QuantType.QInt8,
            activation_type=quantization.QuantType.QInt8,
            calibrate_method=getattr(quantization.CalibrationMethod, method))

    with contextlib.redirect_stdout(io.StringIO()):
        try:
            write()
        except ValueError:      # 1.32 compares arrays of scales as if they were numbers (mnist-8)
            write(QDQDisableWeightAdjustForInt32Bias=True)


def compare(args, work, title, model, become, data):
    """A row's cells, and what is wrong."""
    (calibrate, seen), (test, labels) = data
    shape = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).get_inputs()[0].shape[1:]
    calibrate, test = (np.ascontiguousarray(become(x).reshape(-1, *shape)) for x in (calibrate, test))
    floats = predictions(model, test)
    numbered = in_their_order(labels, floats)
    seen = numbered[:len(seen)] if len(seen) == len(labels) else seen
    files = work / "calibrate.npz", work / "test.npz"
    for path, items, of in zip(files, (calibrate, test), (seen, numbered)):
        np.savez(path, image=items, label=of.astype(np.int64))
    base, cells, wrong = accuracy(floats, numbered), [], []
    for name, options in OURS.items():
        own = by_burncc(args, model, work / "q.onnx", files, options)
        got = accuracy(predictions(work / "q.onnx", test), numbered)
        if name == "mse" and base - got > args.most:
            wrong.append(f"{title}: loses {base - got:.4f}")
        if abs(own - got) > 0.001:
            wrong.append(f"{title}, {name}: burncc {own}, ONNX Runtime {got}")
        cells.append(f"{got:.4f}" if f"{own:.4f}" == f"{got:.4f}" else f"{got:.4f} ({own:.4f})")
    quant_pre_process(str(model), str(work / "folded.onnx"), skip_symbolic_shape=True)
    ready = of_13(work / "folded.onnx", work / "ready.onnx")
    for method in THEIRS:
        by_onnxruntime(ready, work / "theirs.onnx", calibrate, method)
        cells.append(f"{accuracy(predictions(work / 'theirs.onnx', test), numbered):.4f}")
    return [title, f"{base:.4f}", *cells], wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("shared", type=pathlib.Path)
    p.add_argument("--only", default="", metavar="RE")
    p.add_argument("--most", type=float, default=0.01)
    args = p.parse_args()
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(3)
    sets = {"mnist": list(mnist(args.shared / "datasets/mnist")), "iris": iris(args.shared / "datasets/iris")}
    head = ["network", "floats", *(f"burncc, {name}" if name == "mse" else name for name in OURS),
            *(f"ONNX Runtime, {m}" if m == "MinMax" else m for m in THEIRS)]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    faults = []
    for title, name, become, of in NETWORKS:
        model = args.shared / "models" / name / "model.onnx" if name else ROOT / "models/digits/digits.onnx"
        if not re.search(args.only, title):
            continue
        with tempfile.TemporaryDirectory() as folder:
            cells, wrong = compare(args, pathlib.Path(folder), title, model, become, sets[of])
        print(f"| {' | '.join(cells)} |", flush=True)
        faults += wrong
    for fault in faults:
        print(f"WRONG: {fault}", flush=True)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
