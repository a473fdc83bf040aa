# SPDX-License-Identifier: MIT OR Apache-2.0
"""A step of training in PyTorch as a contestant of scripts/bench --training: speaks the words of worker.h.

usage: training_torch.py NETWORK write FOLDER     writes init.safetensors (the parameters), inputs.txt and in_N.bin, and
                                                  the first loss and gradients, in double precision and in single:
                                                  f64_ and f32_loss.bin (an f64), _grads.safetensors
       training_torch.py NETWORK eager|compile THREADS LEARNING_RATE
Networks are those of models/, module by module and under the same names; every process draws the same numbers.
"""
import json
import os
import pathlib
import struct
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

SAMPLES, WARM = 4096, 2


class Named(nn.Module):
    """Modules under names that may have dots and digits, called by forward as m[name]."""
    def __init__(self, modules):
        super().__init__()
        self.found = {}
        for name, module in modules.items():
            at, *rest = self, *name.split(".")
            for word in rest[:-1]:
                if word not in at._modules:
                    at.add_module(word, nn.Module())
                at = at._modules[word]
            at.add_module(rest[-1], module)
            self.found[name] = module

    def __getitem__(self, name):
        return self.found[name]


class MLP(Named):
    def __init__(self, features, width, classes):
        super().__init__({"0": nn.Linear(features, width), "3": nn.Linear(width, width), "6": nn.Linear(width, width),
                          "9": nn.Linear(width, classes)})

    def forward(self, x):
        for name in ("0", "3", "6"):
            x = F.relu(self[name](x))
        return self["9"](x)


class MnistCNN(Named):
    def __init__(self):
        super().__init__({"conv1": nn.Conv2d(1, 8, 3), "conv2": nn.Conv2d(8, 16, 3), "linear1": nn.Linear(1024, 64),
                          "linear2": nn.Linear(64, 10)})

    def forward(self, x):
        x = F.relu(self["conv2"](self["conv1"](x)))
        x = torch.flatten(F.adaptive_avg_pool2d(x, 8), 1)
        return self["linear2"](F.relu(self["linear1"](x)))


class ResNet(Named):
    def __init__(self, depth):
        modules = {"conv1": nn.Conv2d(3, 64, 7, 2, 3, bias=False), "bn1": nn.BatchNorm2d(64)}
        plan, channels = [], 64
        for stage, blocks in enumerate({18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth]):
            width = 64 << stage
            for i in range(blocks):
                stride, name = 2 if i == 0 and stage else 1, f"layer{stage + 1}.{i}"
                sizes = [(channels, width, 3, stride), (width, width, 3, 1)] if depth < 50 else \
                    [(channels, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)]
                for n, (a, b, kernel, s) in enumerate(sizes, 1):
                    modules[f"{name}.conv{n}"] = nn.Conv2d(a, b, kernel, s, kernel // 2, bias=False)
                    modules[f"{name}.bn{n}"] = nn.BatchNorm2d(b)
                down = stride != 1 or channels != sizes[-1][1]
                if down:
                    modules[f"{name}.downsample.0"] = nn.Conv2d(channels, sizes[-1][1], 1, stride, bias=False)
                    modules[f"{name}.downsample.1"] = nn.BatchNorm2d(sizes[-1][1])
                channels = sizes[-1][1]
                plan.append((name, len(sizes), down))
        modules["fc"] = nn.Linear(channels, 1000)
        super().__init__(modules)
        self.plan = plan

    def forward(self, x):
        x = F.max_pool2d(F.relu(self["bn1"](self["conv1"](x))), 3, 2, 1)
        for name, convolutions, down in self.plan:
            y = x
            for n in range(1, convolutions + 1):
                y = self[f"{name}.bn{n}"](self[f"{name}.conv{n}"](y))
                y = F.relu(y) if n < convolutions else y
            x = F.relu(y + (self[f"{name}.downsample.1"](self[f"{name}.downsample.0"](x)) if down else x))
        return self["fc"](torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class MobileNetV2(Named):
    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self):
        modules, plan, channels, number = {}, [], 32, 1

        def unit(name, a, b, kernel, stride, groups, last=False):
            convolution, norm = (name, f"{name[:-1]}{int(name[-1]) + 1}") if last else (f"{name}.0", f"{name}.1")
            modules[convolution] = nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False)
            modules[norm] = nn.BatchNorm2d(b)
            return convolution, norm, not last
        first = unit("features.0", 3, 32, 3, 2, 1)
        for expand, width, blocks, stride in self.STAGES:
            for i in range(blocks):
                name, s, inner, units = f"features.{number}.conv", stride if i == 0 else 1, channels * expand, []
                if expand > 1:
                    units.append(unit(f"{name}.0", channels, inner, 1, 1, 1))
                units.append(unit(f"{name}.{len(units)}", inner, inner, 3, s, inner))
                units.append(unit(f"{name}.{len(units)}", inner, width, 1, 1, 1, last=True))
                plan.append((units, s == 1 and channels == width))
                channels, number = width, number + 1
        last = unit("features.18", channels, 1280, 1, 1, 1)
        modules["classifier.1"] = nn.Linear(1280, 1000)
        super().__init__(modules)
        self.plan = [([first], False), *plan, ([last], False)]

    def forward(self, x):
        for units, adds in self.plan:
            y = x
            for convolution, norm, bends in units:
                y = self[norm](self[convolution](y))
                y = F.relu6(y) if bends else y
            x = x + y if adds else y
        return self["classifier.1"](torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class LSTM(Named):
    def __init__(self, vocabulary, width):
        super().__init__({"embedding": nn.Embedding(vocabulary, width), "lstm": nn.LSTM(width, width, batch_first=True),
                          "fc": nn.Linear(width, 2)})

    def forward(self, tokens):
        return self["fc"](self["lstm"](self["embedding"](tokens))[1][0][-1])


class Dense(nn.Module):
    """A linear layer whose weight is [in, out], as GPT-2's files have it."""
    def __init__(self, a, b):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(a, b) * 0.02), nn.Parameter(torch.zeros(b))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def heads_of(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


class GPT2(Named):
    def __init__(self, layers, width, heads, vocabulary, positions):
        modules = {"wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(positions, width)}
        for e in modules.values():
            nn.init.normal_(e.weight, std=0.02)
        for i in range(layers):
            modules |= {
                f"h.{i}.ln_1": nn.LayerNorm(width), f"h.{i}.attn.c_attn": Dense(width, 3 * width),
                f"h.{i}.attn.c_proj": Dense(width, width), f"h.{i}.ln_2": nn.LayerNorm(width),
                f"h.{i}.mlp.c_fc": Dense(width, 4 * width), f"h.{i}.mlp.c_proj": Dense(4 * width, width)
            }
        modules["ln_f"] = nn.LayerNorm(width)
        super().__init__(modules)
        self.layers, self.heads = layers, heads

    def forward(self, tokens):
        x = self["wte"](tokens) + self["wpe"](torch.arange(tokens.shape[1]))
        for i in range(self.layers):
            q, k, v = (heads_of(p, self.heads)
                       for p in self[f"h.{i}.attn.c_attn"](self[f"h.{i}.ln_1"](x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
            x = x + self[f"h.{i}.attn.c_proj"](y)
            y = F.gelu(self[f"h.{i}.mlp.c_fc"](self[f"h.{i}.ln_2"](x)), approximate="tanh")
            x = x + self[f"h.{i}.mlp.c_proj"](y)
        return F.linear(self["ln_f"](x), self["wte"].weight)


class Bert(Named):
    def __init__(self, layers, width, heads):
        def norm():
            return nn.LayerNorm(width, eps=1e-12)
        modules = {
            "embeddings.word_embeddings": nn.Embedding(30522, width),
            "embeddings.position_embeddings": nn.Embedding(512, width),
            "embeddings.token_type_embeddings": nn.Embedding(2, width), "embeddings.LayerNorm": norm()
        }
        for i in range(layers):
            at = f"encoder.layer.{i}"
            modules |= {f"{at}.attention.self.{n}": nn.Linear(width, width) for n in ("query", "key", "value")}
            modules |= {
                f"{at}.attention.output.dense": nn.Linear(width, width), f"{at}.attention.output.LayerNorm": norm(),
                f"{at}.intermediate.dense": nn.Linear(width, 4 * width),
                f"{at}.output.dense": nn.Linear(4 * width, width), f"{at}.output.LayerNorm": norm()
            }
        modules["pooler.dense"] = nn.Linear(width, width)       # the loss does not read it
        super().__init__(modules)
        self.layers, self.heads = layers, heads

    def forward(self, tokens, seen):
        mask = (seen != 0)[:, None, None, :]
        x = self["embeddings.word_embeddings"](tokens)
        x = x + self["embeddings.position_embeddings"](torch.arange(tokens.shape[1]))
        x = self["embeddings.LayerNorm"](x + self["embeddings.token_type_embeddings"].weight[0])
        for i in range(self.layers):
            at = f"encoder.layer.{i}"
            q, k, v = (heads_of(self[f"{at}.attention.self.{n}"](x), self.heads) for n in ("query", "key", "value"))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(x.shape)
            x = self[f"{at}.attention.output.LayerNorm"](self[f"{at}.attention.output.dense"](y) + x)
            y = self[f"{at}.output.dense"](F.gelu(self[f"{at}.intermediate.dense"](x)))
            x = self[f"{at}.output.LayerNorm"](y + x)
        return x


def images(*shape):
    return lambda: torch.randn(shape)


def tokens(most, *shape):
    return lambda: torch.randint(0, most, shape)


# name: (the module, its inputs, the targets)
NETWORKS = {
    "mlp": (lambda: MLP(784, 512, 10), [images(64, 784)], tokens(10, 64)),
    "mnist_cnn": (MnistCNN, [images(8, 1, 28, 28)], tokens(10, 8)),
    "resnet18": (lambda: ResNet(18), [images(8, 3, 64, 64)], tokens(1000, 8)),
    "resnet50": (lambda: ResNet(50), [images(4, 3, 224, 224)], tokens(1000, 4)),
    "mobilenet_v2": (MobileNetV2, [images(8, 3, 96, 96)], tokens(1000, 8)),
    "lstm": (lambda: LSTM(1000, 128), [tokens(1000, 8, 64)], tokens(2, 8)),
    "gpt_block": (lambda: GPT2(4, 256, 4, 4096, 128), [tokens(4096, 8, 128)], tokens(4096, 8, 128)),
    "gpt2": (lambda: GPT2(12, 768, 12, 50257, 1024), [tokens(50257, 4, 64)], tokens(50257, 4, 64)),
    "bert_base": (lambda: Bert(12, 768, 12), [tokens(30522, 8, 128), lambda: torch.ones(8, 128, dtype=torch.int64)],
                  tokens(768, 8, 128)),
}


def loss_of(model, inputs, target):
    logits = model(*inputs)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))


def save(path, tensors):
    """A .safetensors file of 32-bit floats."""
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + 4 * t.numel()]}
        at += 4 * t.numel()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.detach().contiguous().numpy().tobytes())


def write(folder, model, inputs, target):
    save(folder / "init.safetensors", {n: t for n, t in model.state_dict().items() if t.dtype == torch.float32})
    lines = []
    for i, t in enumerate([*inputs, target]):
        a = t.numpy()
        (folder / f"in_{i}.bin").write_bytes(a.tobytes())
        lines.append(" ".join(map(str, [1 if t.dtype == torch.float32 else 7, a.nbytes, a.ndim, *a.shape, f"in{i}"])))
    (folder / "inputs.txt").write_text("\n".join(lines) + "\n")
    for kind, dtype in (("f32", torch.float32), ("f64", torch.float64)):
        model.zero_grad()
        model.to(dtype)
        loss = loss_of(model, [t.to(dtype) if t.is_floating_point() else t for t in inputs], target)
        loss.backward()
        (folder / f"{kind}_loss.bin").write_bytes(struct.pack("<d", float(loss)))
        save(folder / f"{kind}_grads.safetensors",
             {n: p.grad.float() for n, p in model.named_parameters() if p.grad is not None})


def steps(model, inputs, target, compiled, rate):
    """A function that does one step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    forward = torch.compile(loss_of) if compiled else loss_of

    def step():
        optimizer.zero_grad()
        forward(model, inputs, target).backward()
        optimizer.step()
    return step


def peak_kib():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))


def times(step, seconds):
    """What steps took, ns, over about so long; an eighth of it is to warm up."""
    begin, found = time.monotonic(), []
    clock = time.process_time_ns if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter_ns
    while time.monotonic() - begin < seconds / 8:
        step()
    while True:
        at = clock()
        step()
        found.append(clock() - at)
        if time.monotonic() - begin >= seconds or len(found) == SAMPLES:
            return found


def serve(step, out):
    began = time.perf_counter_ns()
    step()
    loaded = time.perf_counter_ns()
    for _ in range(WARM):
        step()
    print("ready", loaded - began, (time.perf_counter_ns() - loaded) // WARM, file=out, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "slice":
            print("times", *times(step, float(words[1])), file=out, flush=True)
        else:
            print("memory", peak_kib(), file=out, flush=True)


def main():
    name, mode, *rest = sys.argv[1:]
    out, sys.stdout = sys.stdout, sys.stderr            # what libraries print is no answer
    torch.manual_seed(0)
    make, inputs, target = NETWORKS[name]
    model, inputs, target = make().train(), [make() for make in inputs], target()
    if mode == "write":
        write(pathlib.Path(rest[0]), model, inputs, target)
        return
    torch.set_num_threads(int(rest[0]))
    serve(steps(model, inputs, target, mode == "compile", float(rest[1])), out)


if __name__ == "__main__":
    main()
