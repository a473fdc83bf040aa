#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Networks that were trained before get new heads and learn from real data with `burncc fit`, beside PyTorch: 4,000
images of MNIST to learn from, 2,000 of its test images to be measured on, three epochs of Adam, batches of 32, three
seeds each, which draw their own order and their own head. The table of docs/training.md, by hand.

usage: heads.py BURNCC MNIST MODELS [--only REGEX] [--seeds N] [--python FILE]
MNIST: the folder of its files. MODELS: one of folders, of which it takes cifar10_winml (an image's classifier, of
CIFAR-10) and mnist_gru_gapsdk (two GRUs over an image's rows). --python: with onnxruntime, where it is not this one.
Needs PyTorch, onnx and numpy. Ends with 1 where ONNX Runtime makes another loss or accuracy of a model that was
learnt than burncc did, where one, two and four threads learn other bits, or where the accuracy is more than a
hundredth below the worst of PyTorch's."""
import argparse
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
import torch

EPOCHS, BATCH, LEARN, MEASURE = 3, 32, 4000, 2000
JUDGE = """
import sys, numpy as np, onnxruntime as ort
data = np.load(sys.argv[2])
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
given = session.get_inputs()[0]
batch = given.shape[0] if isinstance(given.shape[0], int) else len(data["x"])
out = np.concatenate([session.run(None, {given.name: data["x"][i:i + batch].reshape([batch] + given.shape[1:])})[0]
                      for i in range(0, len(data["x"]), batch)]).astype(np.float64)
out -= out.max(1, keepdims=True)
logs = out - np.log(np.exp(out).sum(1, keepdims=True))
print(-logs[np.arange(len(out)), data["y"]].mean(), (out.argmax(1) == data["y"]).mean())
"""


def mnist(folder, part, count):
    def read(name, header):
        return np.frombuffer(gzip.open(pathlib.Path(folder) / name).read(), np.uint8, offset=header)
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:count]
    return images, read(f"{part}-labels-idx1-ubyte.gz", 8)[:count].astype(np.int64)


def folder_of_images(path, images, classes):
    for i, (image, c) in enumerate(zip(images, classes)):
        at = path / str(c)
        at.mkdir(parents=True, exist_ok=True)
        (at / f"{i:05}.pgm").write_bytes(b"P5 %d %d 255\n" % image.shape[::-1] + image.tobytes())


class Images(torch.nn.Module):
    """cifar10_winml: four convolutions and a linear layer."""

    def __init__(self, weights, classes):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            torch.nn.Conv2d(weights[w].shape[1], weights[w].shape[0], 5, padding=1) for w in ("48", "51", "54", "57"))
        for conv, name in zip(self.convs, ("48", "51", "54", "57")):
            conv.weight.data, conv.bias.data = weights[name].clone(), weights[str(int(name) + 1)].clone()
        self.head = torch.nn.Linear(2400, classes)

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = torch.relu(conv(x))
            if i == 1:
                x = torch.nn.functional.max_pool2d(x, 2)
        return self.head(x.flatten(1))


class Rows(torch.nn.Module):
    """mnist_gru_gapsdk: two GRUs and a linear layer over the last state. What they begin with are parameters."""

    def __init__(self, weights, classes):
        super().__init__()
        self.gru = torch.nn.GRU(28, 128, 2, batch_first=True)
        order = torch.cat([torch.arange(128, 256), torch.arange(0, 128), torch.arange(256, 384)])    # ONNX: z r h
        for layer, first in enumerate((101, 123)):
            w, r, b = (weights[str(first + i)][0] for i in range(3))
            for name, value in ("weight_ih", w[order]), ("weight_hh", r[order]), ("bias_ih", b[:384][order]), (
                    "bias_hh", b[384:][order]):
                getattr(self.gru, f"{name}_l{layer}").data = value.clone()
        self.begin = torch.nn.Parameter(torch.cat([weights["104"], weights["126"]]).clone())
        self.head = torch.nn.Linear(128, classes)

    def forward(self, x):
        return self.head(self.gru(x, self.begin.expand(2, len(x), 128).contiguous())[0][:, -1])


class Case:
    def __init__(self, name, model, kind, classes, rate, options, head_only):
        self.name, self.model, self.kind, self.classes, self.rate = name, model, kind, classes, rate
        self.options, self.head_only = options, head_only


CASES = [
    Case("four convolutions, all", "cifar10_winml", Images, 10, 0.001, [], False),
    Case("the same, its head", "cifar10_winml", Images, 10, 0.001, ["--train-last", "1"], True),
    Case("two GRUs, all", "mnist_gru_gapsdk", Rows, 2, 0.001, [], False),
    Case("the same, the head", "mnist_gru_gapsdk", Rows, 2, 0.01, ["--train-last", "1"], True),
]


def data_of(case, part, count, mnist_folder):
    images, classes = mnist(mnist_folder, part, count)
    if case.kind is Images:
        return np.pad(images, ((0, 0), (2, 2), (2, 2))), classes
    return images, classes % 2


def floats(case, images):
    x = images.astype(np.float32) / np.float32(255)
    return np.repeat(x[:, None], 3, 1) if case.kind is Images else x


def learn_in_torch(case, path, seed, data, valid):
    torch.manual_seed(seed)
    weights = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in onnx.load(path).graph.initializer}
    net = case.kind(weights, case.classes)
    learns = net.head.parameters() if case.head_only else net.parameters()
    optimizer, loss = torch.optim.Adam(learns, case.rate), torch.nn.functional.cross_entropy
    x, y = torch.from_numpy(floats(case, data[0])), torch.from_numpy(data[1])
    vx, vy = torch.from_numpy(floats(case, valid[0])), torch.from_numpy(valid[1])
    best = None
    for _ in range(EPOCHS):
        for at in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            loss(net(x[at]), y[at]).backward()
            optimizer.step()
        with torch.no_grad():
            out = net(vx)
        now = loss(out, vy).item(), (out.argmax(1) == vy).double().mean().item()
        best = min(best or now, now)
    return best


def learn(burncc, case, path, seed, folder, more=()):
    """Folder with data and valid in it. What the last line says of the best epoch."""
    target = folder / f"run-{seed}-{'-'.join(more)}"
    gray = "" if case.kind is Images else ",gray"
    command = [burncc, "fit", path, "--data", f"images:{folder / 'data'}{gray}", "--valid", folder / "valid",
               "--replace-head", str(case.classes), "--epochs", str(EPOCHS), "--batch", str(BATCH), "--lr",
               str(case.rate), "--seed", str(seed), "--target", "native", "--artifacts", target, "-q",
               *case.options, *more]
    run = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    last = run.stdout.strip().splitlines()[-1:]
    found = last and re.search(r"valid_loss=(\S+) valid_accuracy=(\S+)", last[0])
    if run.returncode or not found:
        sys.exit(f"burncc fit: {run.stdout}{run.stderr}")
    return target, float(found[1]), float(found[2])


class Watch:
    """What falls short, said as it is found."""

    def __init__(self):
        self.bad = 0

    def say(self, text):
        self.bad += 1
        print(f"# {text}", flush=True)


def run(case, args, folder, watch):
    """A row of the table: losses and accuracies of burncc and of PyTorch."""
    path = pathlib.Path(args.models) / case.model / "model.onnx"
    parts = [data_of(case, *part, args.mnist) for part in (("train", LEARN), ("t10k", MEASURE))]
    for name, part in zip(("data", "valid"), parts):
        folder_of_images(folder / name, *part)
    judged = folder / "judged.npz"
    np.savez(judged, x=floats(case, parts[1][0]), y=parts[1][1])
    ours = []
    for seed in range(args.seeds):
        at, loss, accuracy = learn(args.burncc, case, path, seed, folder)
        said = subprocess.run([args.python, "-c", JUDGE, str(at / "model.onnx"), str(judged)],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        other = [float(f) for f in said.split()]
        if abs(other[0] - loss) > 1e-5 * loss or abs(other[1] - accuracy) > 1e-9:
            watch.say(f"{case.name}, seed {seed}: ONNX Runtime {other}, burncc {loss} {accuracy}")
        ours.append((loss, accuracy))
    bits = {(learn(args.burncc, case, path, 0, folder, ("--threads", n))[0] / "model.safetensors").read_bytes()
            for n in "124"}
    if len(bits) > 1:
        watch.say(f"{case.name}: one, two and four threads learn {len(bits)} different files")
    theirs = [learn_in_torch(case, path, seed, *parts) for seed in range(args.seeds)]
    if min(a for _, a in ours) < min(a for _, a in theirs) - 0.01:
        watch.say(f"{case.name}: less accurate than PyTorch")
    return ours, theirs


def spread(figures, form):
    return ", ".join(form % f for f in sorted(figures))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("burncc")
    p.add_argument("mnist")
    p.add_argument("models")
    p.add_argument("--only", default="")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--python", default=sys.executable)
    args = p.parse_args()
    torch.set_num_threads(1)
    watch = Watch()
    print("| model, what learns | validation loss | PyTorch | accuracy, % | PyTorch |\n|---|---|---|---|---|")
    for case in CASES:
        if re.search(args.only, case.name):
            with tempfile.TemporaryDirectory() as folder:
                ours, theirs = run(case, args, pathlib.Path(folder), watch)
            columns = [spread([f[i] * scale for f in figures], form)
                       for i, scale, form in ((0, 1, "%.4f"), (1, 100, "%.2f")) for figures in (ours, theirs)]
            print(f"| {case.name} | {' | '.join(columns)} |", flush=True)
    sys.exit(watch.bad > 0)


if __name__ == "__main__":
    main()
