#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What learns: --train-only, --train-last, --freeze, --replace-head, and how:
--clip-value, --clip-norm, --group, --lora. The models are those of owned.py; what a run with
a selection must give is computed there in double precision, with the parameters left out that it leaves out.

usage: learn.py BURNCC [--cc CC] [--target T]
Needs the standard library only. Prints TAP."""
import argparse
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import onnx_wire as wire        # noqa: E402
import owned                    # noqa: E402
import run                      # noqa: E402


class StillNorm(owned.Norm):
    """Batch normalization by its running statistics, in training too."""
    name, training = "norm", property(lambda self: False, lambda self, on: None)


class Wide(owned.Mlp):
    """The MLP with another head: the model has three classes, training is by five."""
    name, classes = "wide", 5
    shapes = {**owned.Mlp.shapes, "b.weight": [5, 5], "b.bias": [5]}

    def model(self):
        return owned.Mlp().model()


def adapters(*layers):
    """Of (module, in, out), with rank 2."""
    return {f"base_model.model.{m}.lora_{k}.weight": s for m, i, o in layers for k, s in (("A", [2, i]), ("B", [o, 2]))}


class Lora(owned.Mlp):
    """The MLP with matrices of rank 2 beside its layers, twice what they give."""
    name = "lora"
    shapes = {**owned.Mlp.shapes, **adapters(("a", 3, 5), ("b", 5, 3))}

    def model(self):
        return owned.Mlp().model()

    def layer(self, p, name, row):
        low, high = (p.get(f"base_model.model.{name}.lora_{k}.weight") for k in "AB")
        wide = owned.linear(row, p[f"{name}.weight"], p[f"{name}.bias"])
        if not low:
            return wide
        return [y + owned.total(u * w for u, w in zip(owned.linear(row, low, [0.0] * 2), line)) * 2.0
                for y, line in zip(wide, high)]

    def run(self, p, x):
        return [self.layer(p, "b", [owned.tanh(v) for v in self.layer(p, "a", row)]) for row in x]


class LoraOfOne(Lora):
    shapes = {**owned.Mlp.shapes, **adapters(("b", 5, 3))}


class LoraOfWide(Lora):
    """Beside the first layer, before a new head."""
    classes = 5
    shapes = {**Wide.shapes, **adapters(("a", 3, 5))}


# ---------------------------------------------------------------- references
def write_weights(path, params):
    """With their shapes, as a file of weights has them."""
    head, data = {}, b""
    for name, v in params.items():
        raw = struct.pack(f"<{len(wire.flatten(v)[0])}f", *wire.flatten(v)[0])
        head[name] = {"dtype": "F32", "shape": shape(v), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def shape(v):
    return [len(v)] + shape(v[0]) if isinstance(v, list) else []


class Selected:
    """A case of which only some parameters learn."""

    def __init__(self, case, learns, options, runs=owned.RUNS[:2], clip_value=None, clip_norm=None, groups={}):
        self.case, self.learns, self.options, self.runs = case(), learns.split(), options, runs
        self.clip_value, self.clip_norm, self.groups = clip_value, clip_norm, groups

    def clipped(self, grads):
        """As torch.nn.utils.clip_grad_value_ and then clip_grad_norm_ have it."""
        grads = {k: grads[k] for k in self.learns}
        if self.clip_value:
            grads = {k: [min(max(g, -self.clip_value), self.clip_value) for g in v] for k, v in grads.items()}
        if self.clip_norm:
            norm = math.sqrt(math.fsum(g * g for v in grads.values() for g in v))
            grads = {k: [g * min(1, self.clip_norm / (norm + 1e-6)) for g in v] for k, v in grads.items()}
        return grads

    def hyper(self, name, hyper):
        """Of a parameter's group: numbers, or factors after "*"."""
        own = dict(hyper)
        for k, v in self.groups.get(name, {}).items():
            own[k] = own[k] * float(v[1:]) if isinstance(v, str) else v
        return own

    @property
    def name(self):
        return f"{self.case.name} {' '.join(self.options)}"

    def fields(self):
        """Of the struct: what learns, and the statistics that go on."""
        running = [k for k in self.case.statistics if not isinstance(self.case, StillNorm)]
        return self.learns + running + (["batches"] if running else [])

    def train(self, update, hyper):
        case = self.case
        values, losses, case.running = case.params, [], dict(case.statistics)
        state = {k: [[0.0] * 4 for _ in wire.flatten(values[k])[0]] for k in self.learns}
        for t, (x, y) in enumerate(case.batches, 1):
            case.at = t
            loss, grads = owned.step(case, values, x, y)
            losses.append(loss)
            grads = self.clipped(grads)
            for k in self.learns:
                elements, own = zip(wire.flatten(values[k])[0], grads[k], state[k]), self.hyper(k, hyper)
                values = {**values, k: owned.shaped([update(p, g, s, t, **own) for p, g, s in elements], values[k])}
        return losses, {**{k: values[k] for k in self.learns}, **({} if isinstance(case, StillNorm) else case.running)}

    def write(self, folder):
        """What run.py reads."""
        case = self.case
        os.makedirs(folder)
        pathlib.Path(folder, "model.onnx").write_bytes(case.model())
        tensors = {"eval_output": ("F32", owned.predict(case, case.params, case.batches[0][0]))}
        case.at = 1
        grads = owned.step(case, case.params, *case.batches[0])[1]
        tensors.update({f"grad.{k}": ("F32", grads[k]) for k in self.learns})
        for i, (x, y) in enumerate(case.batches):
            tensors[f"x{i}"] = ("F32", wire.flatten(x)[0])
            tensors[f"y{i}"] = ("I64" if case.classes else "F32", wire.flatten(y)[0])
        runs = {}
        for update, hyper in self.runs:
            losses, final = self.train(update, hyper)
            runs[update.__name__] = {"hyper": hyper, "losses": losses}
            tensors.update({f"final.{update.__name__}.{k}": ("F32", wire.flatten(v)[0]) for k, v in final.items()})
        owned.safetensors(os.path.join(folder, "reference.safetensors"), tensors)
        write_weights(os.path.join(folder, "weights.safetensors"), case.params)
        options = [o.replace("FOLDER", folder) for o in case.options + self.options]
        clips = [c for c in (self.clip_value, self.clip_norm) if c]
        return {"loss": case.loss, "options": options, "drops": case.drops, "runs": runs, "more": clips}


GIVEN = ["--weights", "FOLDER/weights.safetensors"]
EVERY = "a.weight a.bias b.weight b.bias"
CASES = [
    Selected(owned.Mlp, "b.weight b.bias", ["--train-only", "^b[.]"], owned.RUNS),
    Selected(owned.Mlp, "a.bias b.bias", ["--train-only", "biases"]),
    Selected(owned.Mlp, "b.weight", ["--freeze", "^a,b.bias"]),
    Selected(owned.Mlp, "a.bias", ["--train-only", "^a", "--freeze", "weight"]),
    Selected(owned.Mlp, "b.weight b.bias", ["--train-last", "1"]),
    Selected(owned.Dropped, "b.weight b.bias", ["--train-last", "1"]),
    Selected(owned.Conv, "n.weight n.bias", ["--train-only", "norms"]),
    Selected(owned.Conv, "c.bias n.bias l.bias", ["--train-only", "biases"]),
    Selected(owned.Norm, "l.weight m.weight m.bias n.weight n.bias", ["--freeze", "c.weight"]),
    Selected(StillNorm, "l.weight", ["--train-only", "l.weight"]),
    Selected(StillNorm, "c.weight m.weight", ["--train-only", "c.weight,m.weight"]),
    Selected(owned.Windows, "p.weight l.weight l.bias", ["--train-last", "2"]),
    Selected(owned.Windows, "g.weight", ["--train-only", "^g[.]"]),
    Selected(owned.Lstm, "r.w r.r r.b", ["--freeze", "^l[.]"]),
    Selected(owned.Lstm, "r.b l.bias", ["--train-only", "biases"]),
    Selected(Wide, "b.weight b.bias", ["--replace-head", "5", "--weights", "FOLDER/weights.safetensors",
                                       "--train-last", "1"]),
    Selected(owned.Mlp, EVERY, ["--clip-value"], owned.RUNS[:4], clip_value=0.05),
    Selected(owned.Mlp, EVERY, ["--clip-norm"], owned.RUNS[:4], clip_norm=0.2),
    Selected(owned.Mlp, EVERY, ["--clip-norm"], owned.RUNS[:1], clip_norm=20.0),
    Selected(owned.Mlp, EVERY, ["--clip-value", "--clip-norm"], owned.RUNS[:4], clip_value=0.1, clip_norm=0.2),
    Selected(owned.Norm, "c.weight n.weight n.bias l.weight m.weight m.bias", ["--clip-norm"], clip_norm=0.1),
    Selected(owned.Mlp, EVERY, ["--group", "biases,norms:weight_decay=0"], owned.RUNS[1:5],
             groups={"a.bias": {"weight_decay": 0}, "b.bias": {"weight_decay": 0}}),
    Selected(owned.Mlp, EVERY, ["--group", "^b[.]bias:learning_rate=0.25,weight_decay=0.5",
                                "--group", "^b[.]:learning_rate*0.1"], owned.RUNS[1:5],
             groups={"b.bias": {"lr": 0.25, "weight_decay": 0.5}, "b.weight": {"lr": "*0.1"}}),
    Selected(owned.Mlp, "a.weight b.weight", ["--freeze", "biases", "--clip-norm", "--group", "^a:learning_rate*0.5"],
             clip_norm=0.2, groups={"a.weight": {"lr": "*0.5"}}),
    Selected(Lora, " ".join(adapters(("a", 3, 5), ("b", 5, 3))), ["--lora", "2:4", *GIVEN], owned.RUNS[:5]),
    Selected(LoraOfOne, " ".join(adapters(("b", 5, 3))), ["--lora", "2:4", "--lora-on", "^b[.]", *GIVEN]),
    Selected(LoraOfWide, "b.weight b.bias " + " ".join(adapters(("a", 3, 5))),
             ["--lora", "2:4", "--replace-head", "5", *GIVEN, "--clip-norm"], clip_norm=0.5),
    Selected(owned.Mlp, "b.weight b.bias", ["--train-last", "1", "--target", "portable"]),
    Selected(Lora, " ".join(adapters(("a", 3, 5), ("b", 5, 3))), ["--lora", "2:4", *GIVEN, "--target", "portable"]),
    Selected(owned.Conv, "c.bias n.bias l.bias", ["--train-only", "biases", "--untie", "all", "--target", "portable"]),
]


# ---------------------------------------------------------------- what is generated
def generate(args, tmp, model, options):
    """The generated text, and what burncc said."""
    c = os.path.join(tmp, "m.c")
    said = subprocess.run([args.burncc, model, "--train", "--target", args.target, *options, "-o", c],
                          capture_output=True, text=True)
    if said.returncode:
        return None, said
    return pathlib.Path(c).read_text() + pathlib.Path(tmp, "m.h").read_text(), said


def fields(text):
    struct = re.search(r"typedef struct m_params \{(.*?)\} m_params;", text, re.S)[1]
    return re.findall(r"^ +\w+ (\w+)\[", struct, re.M)


def size(text):
    """Of the gradients: kernels that are called, and bytes of workspace."""
    body = re.search(r"^int m_gradients\(.*?^\{(.*?)^\}", text, re.S | re.M)[1]
    room = re.search(r"unsigned char bytes\[(\d+)\][^}]*\} m_gradients_workspace", text)
    return len(re.findall(r"^ +m_\w+\(|^ +burn_\w+\(", body, re.M)), int(room[1]) if room else 0


def check_cases(args, tap):
    rooms = []
    for i, case in enumerate(CASES):
        with tempfile.TemporaryDirectory() as tmp:
            folder = os.path.join(tmp, "case")
            about = case.write(folder)
            model = os.path.join(folder, "model.onnx")
            how = ["--loss", about["loss"], "--optimizer", next(iter(about["runs"]))]
            text, said = generate(args, tmp, model, about["options"] + how)
            wanted = {f.replace(".", "_") for f in case.fields()}
            if text is None or set(fields(text)) != wanted:
                tap(False, case.name, said.stderr if text is None else f"{sorted(fields(text))}, not {sorted(wanted)}")
                continue
            still = ["--frozen-norm"] if isinstance(case.case, StillNorm) else []
            whole, _ = generate(args, tmp, model, case.case.options + still + how)
            (less, room), (all_of, most) = size(text), size(whole)
            for word in [o[2:].replace("-", "_") for o in case.options if o.startswith("--clip")]:
                tap(f'{{"{word}", ' in text, f"{case.name}: the descriptor has {word}")
            if len(case.learns) < len(case.case.shapes) and "--lora" not in case.options:
                rooms.append((room, most))
                tap(less < all_of, f"{case.name}: kernels {less} of {all_of}, workspace {room} of {most}")
            for optimizer, of in about["runs"].items():
                errors = run.run_case(args, folder, optimizer, of, about)
                tap(max(errors.values()) <= 1e-5, f"{case.name} {optimizer}",
                    " ".join(f"{k}={v:.2e}" for k, v in errors.items()))
    # of one model a few bytes may go the other way, as constants are packed for other kernels
    room, most = map(sum, zip(*rooms))
    tap(room < 0.7 * most, f"workspace {room} of {most}")


# ---------------------------------------------------------------- heads
def named(path):
    return {k: (tuple(s), list(run.floats(raw))) for k, (_, s, raw) in run.read_safetensors(path).items()}


def end_model(nodes, params):
    """A model of one output y behind these nodes."""
    tensors = [wire.tensor(k, wire.FLOAT, v) for k, v in params.items()]
    return wire.model(wire.graph(nodes, [wire.value_info("x", wire.FLOAT, [2, 3, 4, 4])],
                                 [wire.value_info("y", wire.FLOAT, None)], tensors))


def conv_head():
    """A convolution by one point, a normalization and pooling: the head's classes go through all of them."""
    source = owned.numbers(3)
    params = {"c.weight": owned.filled([6, 3, 1, 1], source), "c.bias": owned.filled([6], source),
              "n.weight": owned.filled([6], source), "n.bias": owned.filled([6], source),
              "n.mean": owned.filled([6], source), "n.var": [1.5] * 6}
    return end_model([wire.node("Conv", ["x", "c.weight", "c.bias"], ["c"]),
                      wire.node("BatchNormalization", ["c", "n.weight", "n.bias", "n.mean", "n.var"], ["n"]),
                      wire.node("Relu", ["n"], ["r"]), wire.node("GlobalAveragePool", ["r"], ["p"]),
                      wire.node("Flatten", ["p"], ["f"]), wire.node("Softmax", ["f"], ["y"])], params)


def no_head():
    source = owned.numbers(3)
    return end_model([wire.node("Conv", ["x", "c.weight"], ["c"]), wire.node("Add", ["c", "x"], ["s"]),
                      wire.node("Sigmoid", ["s"], ["y"])], {"c.weight": owned.filled([3, 3, 1, 1], source)})


def check_heads(args, tap):
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)

        def burncc(*options, check=True):
            return subprocess.run([args.burncc, *options], check=check, capture_output=True, text=True)

        (tmp / "conv.onnx").write_bytes(conv_head())
        (tmp / "mlp.onnx").write_bytes(owned.Mlp().model())
        (tmp / "none.onnx").write_bytes(no_head())
        said = burncc(tmp / "conv.onnx", "--replace-head", "4", "-o", tmp / "conv.safetensors").stderr
        got, kept = named(tmp / "conv.safetensors"), 1 / math.sqrt(3)
        tap(got["c.weight"][0] == (4, 3, 1, 1) and all(abs(v) <= kept for v in got["c.weight"][1])
            and len(set(got["c.weight"][1])) == 12 and got["n.weight"][1] == [1.0] * 4
            and got["n.mean"][1] == [0.0] * 4 and got["n.var"][1] == [1.0] * 4,
            "a head of a convolution and a normalization", str(got))
        tap("6 classes become 4: c.weight f32[4,3,1,1], c.bias f32[4], n.weight f32[4]" in said, "it is named", said)
        seeds = []
        for seed in "0", "0", "1":
            burncc(tmp / "mlp.onnx", "--replace-head", "7", "--seed", seed, "-o", tmp / "m.safetensors")
            seeds.append(named(tmp / "m.safetensors"))
        was = owned.Mlp().params
        tap(seeds[0] == seeds[1] != seeds[2] and seeds[0]["a.weight"][1] == wire.flatten(was["a.weight"])[0]
            and seeds[0]["b.weight"][0] == (7, 5) and max(map(abs, seeds[0]["b.bias"][1])) <= 1 / math.sqrt(5),
            "random by the seed, the rest as it was", str(seeds))
        burncc(tmp / "mlp.onnx", "--replace-head", "7", "--weights", tmp / "m.safetensors", "--strict",
               "-o", tmp / "back.onnx")
        burncc(tmp / "back.onnx", "-o", tmp / "again.safetensors")
        tap(named(tmp / "again.safetensors") == seeds[2], "trained weights go back into a model")
        said = burncc(tmp / "mlp.onnx", "--replace-head", "7", "--weights", tmp / "m.safetensors", "-o", tmp / "m.c")
        tap("y[4*7]" in (tmp / "m.h").read_text(), "and into code of seven classes", said.stderr)
        said = burncc(tmp / "none.onnx", "--replace-head", "7", "-o", tmp / "no.c", check=False)
        words = '"y" comes from this Add; wanted is a linear layer'
        tap(said.returncode == 1 and words in said.stderr, "no head", said.stderr)


def check_merging(args, tap):
    """Adapters go back into the weights beside which they were trained."""
    case = Lora()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "mlp.onnx").write_bytes(case.model())
        write_weights(tmp / "adapter.safetensors", {k: v for k, v in case.params.items() if "lora" in k})
        given = [args.burncc, tmp / "mlp.onnx", "--lora", "2:4", "--weights", tmp / "adapter.safetensors", "--quiet"]
        for out in "merged.onnx", "merged.safetensors":
            subprocess.run([*given, "-o", tmp / out], check=True, capture_output=True)
        subprocess.run([args.burncc, tmp / "merged.onnx", "-o", tmp / "again.safetensors"], check=True)
        got, off = named(tmp / "merged.safetensors"), 0
        for name in "ab":
            low, high = (case.params[f"base_model.model.{name}.lora_{k}.weight"] for k in "AB")
            want = [w + 2 * math.fsum(h * row[i] for h, row in zip(high[o], low))
                    for o, line in enumerate(case.params[f"{name}.weight"]) for i, w in enumerate(line)]
            off = max(off, *(abs(x - y) for x, y in zip(got[f"{name}.weight"][1], want)))
        tap(off < 1e-6 and sorted(got) == sorted(owned.Mlp.shapes), "adapters are merged", f"{off} {sorted(got)}")
        tap(named(tmp / "again.safetensors") == got, "and leave nothing in the ONNX model but the weights")


# ---------------------------------------------------------------- what is said
SAID = [
    (owned.Mlp, ["--train-only", "b.weigth"], 2, "matches no parameter and none of their nodes; there is b.weight"),
    (owned.Mlp, ["--freeze", "b["], 2, "--freeze wants biases, norms or a regular expression, not 'b['"),
    (owned.Mlp, ["--train-last", "3"], 2, "--train-last 3: the model has 2 layers with weights"),
    (owned.Mlp, ["--freeze", "."], 2, "leave no parameter that learns"),
    (owned.Mlp, ["--train-last", "1"], 0, "note: 2 of 4 parameters learn (18 of 38 numbers): b.weight, b.bias"),
    (owned.Mlp, ["--lora", "0"], 2, "--lora wants a rank, or RANK:ALPHA, not '0'"),
    (owned.Mlp, ["--lora", "2", "--lora-on", "c"], 2, "--lora: no linear layer of constant weights matches c"),
    (owned.Mlp, ["--group", "b:decay=1"], 2, "--optimizer sgd has learning_rate=0.01"),
    (owned.Mlp, ["--group", "b:learning_rate="], 2, "--group wants WHAT:name=NUMBER or name*FACTOR"),
    (owned.Mlp, ["--group", "weights:learning_rate=1"], 2, "--group weights: matches no parameter"),
]


def check_said(args, tap):
    for case, options, status, words in SAID:
        with tempfile.TemporaryDirectory() as tmp:
            model = os.path.join(tmp, "model.onnx")
            pathlib.Path(model).write_bytes(case().model())
            _, said = generate(args, tmp, model, options)
            tap(said.returncode == status and words in said.stderr, f"said of {' '.join(options)}", said.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc")
    p.add_argument("--cc", default=os.environ.get("CC", "cc")), p.add_argument("--cflags", default="")
    p.add_argument("--target", default="generic")
    args = p.parse_args()
    args.blas = args.apart = args.described = None
    args.runtime = []
    count = bad = 0

    def tap(ok, name, why=""):
        nonlocal count, bad
        count, bad = count + 1, bad + (not ok)
        print(f"{'ok' if ok else 'not ok'} {count} - {name}" + ("" if ok else f": {why.strip()}"), flush=True)

    check_cases(args, tap)
    check_heads(args, tap)
    check_merging(args, tap)
    check_said(args, tap)
    print(f"1..{count}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
