#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Gradients of random graphs of differentiable ONNX operators, against PyTorch in double precision and against central
differences (`burncc verify --gradients`).

usage: random_graphs.py BURNCC [--models N] [--first SEED] [--graphs 20] [--torch PYTHON] [--no-differences] [--cc CC]
A model is GRAPHS small graphs side by side, each with parameters of its own, whose results are concatenated; everything
follows from its seed. Without --models two are drawn; BURNCC_TEST_ALL=1 draws 100, 2,000 graphs. PyTorch is asked
with BURNCC_TEST_ALL=1 where this interpreter has it, or the one that --torch names.
What passes beside PyTorch: 1e-4 of a parameter's largest gradient, or eight times what single precision can do to it,
for some gradients are zero but for rounding (a bias in front of a batch normalization) or sums that cancel. That is
found by computing in double precision and rounding what each elementary operation gives, and each addition of a sum,
forwards and backwards, to one of its two neighbours in single precision by chance, eight times over: the furthest from
the gradient that was not rounded. Values are drawn with 22 bits after the point: with few, a parameter of Min equals a
value of the input, and there any share of the gradient is right. Needs the standard library only. Prints TAP."""
import argparse
import array
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import onnx_wire as wire        # noqa: E402
from run import read_safetensors, floats        # noqa: E402

BATCH, BOUND, ROUNDING, DRAWN = 2, 1e-4, 8, 1 << 22


# ---------------------------------------------------------------- drawing
def count(shape):
    n = 1
    for d in shape:
        n *= d
    return n


class Model:
    """Nodes for ONNX, and lines of Python for PyTorch that compute the same."""

    def __init__(self, seed, graphs):
        self.random, self.nodes, self.constants, self.lines = random.Random(seed), [], [], []
        self.params, self.count = {}, 0
        self.inputs, self.used, self.results, ends = {}, {}, 0, []
        for graph in range(graphs):
            self.prefix = f"g{graph}_"
            ends.append(self.graph())
        self.emit("Concat", ends, f"torch.cat([{', '.join(ends)}], 1)", "y", axis=1)

    def fresh(self, what="v"):
        self.count += 1
        return f"{self.prefix}{what}{self.count}"

    def emit(self, op, inputs, line, out=None, **attributes):
        out = out or self.fresh()
        self.nodes.append(wire.node(op, inputs, [out], **attributes))
        self.lines.append(f"{out} = {line}")
        self.used[op] = self.used.get(op, 0) + 1
        return out

    def ints(self, values):
        name = self.fresh("i")
        self.constants.append(wire.tensor(name, wire.INT64, values))
        return name

    def number(self, value):
        """Written by a node, for an initializer would be trained."""
        out = self.fresh("c")
        self.nodes.append(wire.node("Constant", [], [out], value=("tensor", wire.tensor("", wire.FLOAT, value))))
        return out

    def parameter(self, shape, low=-1.0, high=1.0):
        name = self.fresh("p")
        values = [round(self.random.uniform(low, high) * DRAWN) / DRAWN for _ in range(count(shape))]
        self.params[name] = (shape, values)
        self.constants.append(wire.tensor(name, wire.FLOAT, values, shape))
        return name

    def graph(self):
        r = self.random
        shape = [BATCH] + r.choice([[5], [3, 4], [4, 6], [2, 5, 6], [3, 6, 5], [4, 4, 4]])
        x = f"{self.prefix}x"
        self.inputs[x] = shape
        values = [(x, shape)]
        for _ in range(r.randint(3, 7)):
            at, shape = r.choice(values[-2:])
            out = r.choice(DRAWS)(self, at, shape, values)
            if out:
                values.append(out)
        if len(values) == 1:
            values.append(product(self, *values[0], values))
        return self.finish(*values[-1])

    def finish(self, v, shape):
        self.results += count(shape)
        v = self.emit("Reshape", [v, self.ints([1, -1])], f"{v}.reshape(1, -1)")
        return self.emit("Tanh", [v], f"torch.tanh({v})") if self.random.random() < 0.5 else v

    def onnx(self):
        inputs = [wire.value_info(k, wire.FLOAT, v) for k, v in self.inputs.items()]
        return wire.model(wire.graph(self.nodes, inputs, [wire.value_info("y", wire.FLOAT, None)], self.constants))


def unary(m, v, shape, values):
    op, line, attributes = m.random.choice([
        ("Tanh", "torch.tanh({})", {}), ("Sigmoid", "torch.sigmoid({})", {}), ("Relu", "torch.relu({})", {}),
        ("LeakyRelu", "F.leaky_relu({}, 0.25)", {"alpha": 0.25}), ("Elu", "F.elu({}, 0.5)", {"alpha": 0.5}),
        ("Softplus", "F.softplus({})", {}), ("Softsign", "F.softsign({})", {}), ("Sin", "torch.sin({})", {}),
        ("Cos", "torch.cos({})", {}), ("Atan", "torch.atan({})", {}), ("Erf", "torch.erf({})", {}),
        ("Abs", "torch.abs({})", {}), ("Neg", "-{}", {}), ("Selu", "F.selu({})", {}),
        ("Celu", "F.celu({}, 0.5)", {"alpha": 0.5}), ("HardSwish", "F.hardswish({})", {}), ("Mish", "F.mish({})", {}),
        ("Asinh", "torch.asinh({})", {}), ("ThresholdedRelu", "F.threshold({}, 0.25, 0)", {"alpha": 0.25})])
    return m.emit(op, [v], line.format(v), **attributes), shape


def positive(m, v, shape, values):
    u = m.emit("Softplus", [v], f"F.softplus({v})")
    op, line = m.random.choice([("Sqrt", "torch.sqrt({})"), ("Log", "torch.log({})"), ("Reciprocal", "1 / ({} + 1)")])
    if op == "Reciprocal":
        one = m.number(1.0)
        u, line = m.emit("Add", [u, one], f"{u} + 1"), "1 / {}"
    return m.emit(op, [u], line.format(u)), shape


def bounded_exp(m, v, shape, values):
    u = m.emit("Tanh", [v], f"torch.tanh({v})")
    return m.emit("Exp", [u], f"torch.exp({u})"), shape


def with_parameter(m, v, shape, values):
    """A parameter that is broadcast, of fewer axes or with axes of one."""
    own = [d if m.random.random() < 0.6 else 1 for d in shape[m.random.randint(0, len(shape) - 1):]]
    p = m.parameter(own)
    op, sign = m.random.choice([("Add", "+"), ("Sub", "-"), ("Mul", "*"), ("Max", "max"), ("Min", "min")])
    if sign in "+-*" and m.random.random() < 0.3:
        return m.emit(op, [p, v], f"{p} {sign} {v}"), shape
    return m.emit(op, [v, p], f"{v} {sign} {p}" if sign in "+-*" else f"torch.{sign}imum({v}, {p})"), shape


def divide(m, v, shape, values):
    p = m.parameter([shape[-1]], 0.5, 2.0)
    return m.emit("Div", [v, p], f"{v} / {p}"), shape


def power(m, v, shape, values):
    u = m.emit("Sigmoid", [v], f"torch.sigmoid({v})")
    p = m.parameter([1], 0.5, 2.5)
    return m.emit("Pow", [u, p], f"{u} ** {p}"), shape


def together(m, v, shape, values):
    others = [u for u in values if u[1] == shape]
    u = m.random.choice(others)[0]
    op, line = m.random.choice([("Add", "{} + {}"), ("Mul", "{} * {}"), ("Sub", "{} - {}"),
                                ("Max", "torch.maximum({}, {})")])
    if u == v and op != "Mul":
        op, line = "Add", "{} + {}"
    return m.emit(op, [v, u], line.format(v, u)), shape


def product(m, v, shape, values):
    n = m.random.randint(1, 6)
    p = m.parameter([shape[-1], n])
    return m.emit("MatMul", [v, p], f"{v} @ {p}"), shape[:-1] + [n]


def batched_product(m, v, shape, values):
    if len(shape) < 3:
        return gemm(m, v, shape, values)
    axes = list(range(len(shape) - 2)) + [len(shape) - 1, len(shape) - 2]
    turned = m.emit("Transpose", [v], f"{v}.permute({axes})", perm=axes)
    out = m.emit("MatMul", [v, turned], f"{v} @ {turned}")
    return out, shape[:-1] + [shape[-2]]


def gemm(m, v, shape, values):
    if len(shape) != 2:
        return product(m, v, shape, values)
    n = m.random.randint(1, 5)
    w, b = m.parameter([n, shape[1]]), m.parameter([n])
    return m.emit("Gemm", [v, w, b], f"0.5 * ({v} @ {w}.T) + {b}", transB=1, alpha=0.5), [shape[0], n]


def einsum(m, v, shape, values):
    if len(shape) != 3:
        return product(m, v, shape, values)
    n = m.random.randint(1, 4)
    p = m.parameter([shape[1], n])
    return m.emit("Einsum", [v, p], f"torch.einsum('abc,bd->acd', {v}, {p})", equation="abc,bd->acd"), [
        shape[0], shape[2], n]


def reduce(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    keep = m.random.randint(0, 1) or int(len(shape) == 2)
    op, line = m.random.choice([("ReduceMean", "{}.mean({}, keepdim={})"), ("ReduceSum", "{}.sum({}, keepdim={})"),
                                ("ReduceMax", "{}.amax({}, keepdim={})"), ("ReduceMin", "{}.amin({}, keepdim={})"),
                                ("ReduceLogSumExp", "{}.logsumexp({}, keepdim={})"),
                                ("ReduceSumSquare", "({} ** 2).sum({}, keepdim={})"),
                                ("ReduceL2", "({} ** 2).sum({}, keepdim={}).sqrt()")])
    out = m.emit(op, [v, m.ints([axis])], line.format(v, axis, bool(keep)), keepdims=keep)
    return out, shape[:axis] + ([1] if keep else []) + shape[axis + 1:]


def softmax(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    op, line = m.random.choice([("Softmax", "softmax"), ("LogSoftmax", "log_softmax")])
    return m.emit(op, [v], f"F.{line}({v}, {axis})", axis=axis), shape


def layer_norm(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    w, b = m.parameter(shape[axis:]), m.parameter(shape[axis:])
    return m.emit("LayerNormalization", [v, w, b], f"F.layer_norm({v}, {shape[axis:]}, {w}, {b}, 0.125)", axis=axis,
                  epsilon=0.125), shape


def instance_norm(m, v, shape, values):
    if len(shape) < 3 or count(shape[2:]) == 1:
        return layer_norm(m, v, shape, values)
    w, b = m.parameter([shape[1]]), m.parameter([shape[1]])
    return m.emit("InstanceNormalization", [v, w, b], f"F.instance_norm({v}, None, None, {w}, {b}, True, 0.1, 0.125)",
                  epsilon=0.125), shape


def batch_norm(m, v, shape, values):
    w, b = m.parameter([shape[1]]), m.parameter([shape[1]])
    mean, var = m.number([0.0] * shape[1]), m.number([1.0] * shape[1])
    line = f"F.batch_norm({v}, None, None, {w}, {b}, True, 0, 0.125)"
    return m.emit("BatchNormalization", [v, w, b, mean, var], line, epsilon=0.125), shape


def transpose(m, v, shape, values):
    axes = [0] + m.random.sample(range(1, len(shape)), len(shape) - 1)
    return m.emit("Transpose", [v], f"{v}.permute({axes})", perm=axes), [shape[i] for i in axes]


def flatten(m, v, shape, values):
    return m.emit("Flatten", [v], f"{v}.flatten(1)", axis=1), [shape[0], count(shape[1:])]


def slices(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    if shape[axis] < 3:
        return None
    start, step = m.random.randint(0, 1), m.random.randint(1, 2)
    stop = shape[axis] - m.random.randint(0, 1)
    index = ", ".join([":"] * axis + [f"{start}:{stop}:{step}"])
    inputs = [v, *(m.ints([k]) for k in (start, stop, axis, step))]
    return m.emit("Slice", inputs, f"{v}[{index}]"), shape[:axis] + [len(range(start, stop, step))] + shape[axis + 1:]


def pad(m, v, shape, values):
    low, high = m.random.randint(0, 2), m.random.randint(0, 2)
    rank, reflects = len(shape), shape[-1] > 2 and len(shape) > 2
    mode = m.random.choice(["constant", "reflect"] if reflects else ["constant"])
    pads = [0] * (rank - 1) + [low] + [0] * (rank - 1) + [high]
    line = f"F.pad({v}, ({low}, {high}), '{mode}')"
    if rank == 4 and mode == "reflect":
        line = f"F.pad({v}, ({low}, {high}, 0, 0), 'reflect')"
    return m.emit("Pad", [v, m.ints(pads)], line, mode=mode), shape[:-1] + [shape[-1] + low + high]


def concat(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    p = m.parameter(shape[:axis] + [2] + shape[axis + 1:])
    return m.emit("Concat", [v, p], f"torch.cat([{v}, {p}], {axis})", axis=axis), shape[:axis] + [
        shape[axis] + 2] + shape[axis + 1:]


def gather(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    index = [m.random.randrange(shape[axis]) for _ in range(m.random.randint(1, 4))]
    return m.emit("Gather", [v, m.ints(index)], f"{v}.index_select({axis}, torch.tensor({index}))", axis=axis), shape[
        :axis] + [len(index)] + shape[axis + 1:]


def gather_parameter(m, v, shape, values):
    """An embedding, which is added."""
    table = m.parameter([4, shape[-1]])
    index = [m.random.randrange(4) for _ in range(shape[-2])]
    rows = m.emit("Gather", [table, m.ints(index)], f"{table}[torch.tensor({index})]", axis=0)
    return m.emit("Add", [v, rows], f"{v} + {rows}"), shape


def cumulate(m, v, shape, values):
    axis = m.random.randint(1, len(shape) - 1)
    name = m.fresh("i")
    m.constants.append(wire.tensor(name, wire.INT64, axis))
    return m.emit("CumSum", [v, name], f"{v}.cumsum({axis})"), shape


def clip(m, v, shape, values):
    low, high = m.number(-0.75), m.number(0.5)
    return m.emit("Clip", [v, low, high], f"{v}.clamp(-0.75, 0.5)"), shape


def where(m, v, shape, values):
    zero, p = m.number(0.125), m.parameter([1])
    chosen = m.fresh()
    m.nodes.append(wire.node("Greater", [v, zero], [chosen]))
    m.lines.append(f"{chosen} = {v} > 0.125")
    return m.emit("Where", [chosen, v, p], f"torch.where({chosen}, {v}, {p})"), shape


def prelu(m, v, shape, values):
    p = m.parameter([shape[1]] + [1] * (len(shape) - 2))
    slope = f"{p}.reshape(-1)"
    return m.emit("PRelu", [v, p], f"F.prelu({v}, {slope})"), shape


def convolution(m, v, shape, values):
    if len(shape) < 3 or min(shape[2:]) < 3:
        return product(m, v, shape, values)
    rank, c = len(shape) - 2, shape[1]
    group = m.random.choice([1, 1, c])
    out = group * m.random.randint(1, 2) if group > 1 else m.random.randint(1, 5)
    kernel, stride, pads = m.random.randint(1, 3), m.random.randint(1, 2), m.random.randint(0, 1)
    dilation = m.random.randint(1, 2) if kernel > 1 and min(shape[2:]) + 2 * pads > 2 * (kernel - 1) else 1
    w, b = m.parameter([out, c // group] + [kernel] * rank), m.parameter([out])
    line = f"F.conv{rank}d({v}, {w}, {b}, {stride}, {pads}, {dilation}, {group})"
    new = [(d + 2 * pads - dilation * (kernel - 1) - 1) // stride + 1 for d in shape[2:]]
    return m.emit("Conv", [v, w, b], line, strides=[stride] * rank, pads=[pads] * 2 * rank, group=group,
                  dilations=[dilation] * rank), [shape[0], out] + new


def transposed(m, v, shape, values):
    if len(shape) < 3:
        return product(m, v, shape, values)
    rank, out, kernel, stride = len(shape) - 2, m.random.randint(1, 3), m.random.randint(1, 3), m.random.randint(1, 2)
    w = m.parameter([shape[1], out] + [kernel] * rank)
    new = [(d - 1) * stride + kernel for d in shape[2:]]
    return m.emit("ConvTranspose", [v, w], f"F.conv_transpose{rank}d({v}, {w}, None, {stride})",
                  strides=[stride] * rank), [shape[0], out] + new


def pool(m, v, shape, values):
    if len(shape) < 3 or min(shape[2:]) < 3:
        return None
    rank, kernel, stride = len(shape) - 2, m.random.randint(2, 3), m.random.randint(1, 2)
    op, line = m.random.choice([("MaxPool", "max_pool"), ("AveragePool", "avg_pool")])
    new = [(d - kernel) // stride + 1 for d in shape[2:]]
    return m.emit(op, [v], f"F.{line}{rank}d({v}, {kernel}, {stride})", kernel_shape=[kernel] * rank,
                  strides=[stride] * rank), shape[:2] + new


def global_pool(m, v, shape, values):
    if len(shape) != 4:
        return None
    return m.emit("GlobalAveragePool", [v], f"{v}.mean((2, 3), keepdim=True)"), shape[:2] + [1, 1]


DRAWS = [unary, unary, unary, positive, bounded_exp, with_parameter, with_parameter, divide, power, together, together,
         product, product, batched_product, gemm, einsum, reduce, reduce, softmax, layer_norm, instance_norm,
         batch_norm, transpose, flatten, slices, pad, concat, gather, gather_parameter, cumulate, clip, where, prelu,
         convolution, convolution, convolution, transposed, pool, pool, global_pool]


# ---------------------------------------------------------------- PyTorch
TORCH = """import contextlib, json, math, sys, torch, torch.nn.functional as F
from torch._decomp import core_aten_decompositions
from torch.utils._python_dispatch import TorchDispatchMode
torch.set_num_threads(1)
torch.set_default_dtype(torch.double)
job = json.load(sys.stdin)
parts = core_aten_decompositions()

def rounded(x):
    if not isinstance(x, torch.Tensor) or x.dtype != torch.double:
        return x
    near = x.float()
    far = torch.nextafter(near, torch.where(x > near, torch.inf, -torch.inf).float())
    other = (torch.rand_like(x) < 0.5) & (near != x)
    return torch.where(other, far, near).double()

def added(x, dims, keepdim):
    # a sum that rounds after each addition, as a loop does: where addends are alike, so are errors
    dims = sorted(d % x.dim() for d in (dims or range(x.dim())))
    kept = [n for i, n in enumerate(x.shape) if i not in dims]
    last = torch.movedim(x, dims, list(range(-len(dims), 0))).reshape(kept + [-1])
    sum = torch.zeros_like(last[..., 0])
    for i in range(last.shape[-1]):
        sum = rounded(sum + last[..., i])
    return sum.reshape([1 if i in dims else n for i, n in enumerate(x.shape)]) if keepdim else sum

def normalized(x, dims, w, b, eps):
    n = math.prod(x.shape[d] for d in dims)
    mean = x.sum(dims, True) / n
    c = x - mean
    rstd = ((c * c).sum(dims, True) / n + eps).rsqrt()
    return c * rstd * w + b, mean, rstd

def batch_norm(x, w, b, training, momentum, eps):
    beside = [1, -1] + [1] * (x.dim() - 2)
    out, mean, rstd = normalized(x, [0, *range(2, x.dim())], w.reshape(beside), b.reshape(beside), eps)
    return out, mean.flatten(), rstd.flatten()

# what PyTorch leaves whole: their sums round, too
parts[torch.ops.aten._native_batch_norm_legit.no_stats] = batch_norm
parts[torch.ops.aten.native_layer_norm.default] = lambda x, shape, w, b, eps: normalized(
    x, list(range(x.dim() - len(shape), x.dim())), w, b, eps)
parts[torch.ops.aten.mean.dim] = lambda x, dims, keepdim=False: x.sum(dims, keepdim) / math.prod(
    x.shape[d] for d in dims)

class Rounding(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op is torch.ops.aten.sum.dim_IntList and args[0].dim():
            return added(args[0], args[1], len(args) > 2 and args[2])
        with self:
            out = (parts[op] if op in parts else op.decompose)(*args, **(kwargs or {}))
        if out is not NotImplemented:
            return out
        out = op(*args, **(kwargs or {}))
        if op.is_view or op._schema.is_mutable:
            return out
        return type(out)(map(rounded, out)) if isinstance(out, (tuple, list)) else rounded(out)

def run(mode):
    env = {"torch": torch, "F": F}
    for name, (shape, values) in {**job["inputs"], **job["params"]}.items():
        env[name] = torch.tensor(values).reshape(shape)
    for name in job["params"]:
        env[name].requires_grad_()
    target = torch.tensor(job["target"])
    with mode:
        exec("\\n".join(job["lines"]), env)
        loss = ((env["y"].reshape(-1) - target) ** 2).mean()
        loss.backward()
    zeros = lambda p: torch.zeros_like(p) if p.grad is None else p.grad
    return {"loss": loss.detach().reshape(-1), **{k: zeros(env[k]).reshape(-1) for k in job["params"]}}

want = run(contextlib.nullcontext())
torch.manual_seed(1)
draws = [run(Rounding()) for _ in range(8)]
print(json.dumps([{k: v.tolist() for k, v in want.items()},
                  {k: max((d[k] - v).abs().max().item() for d in draws) for k, v in want.items()}]))
"""

DRIVER = """#include "m.h"
#include <stdio.h>
#include <stdlib.h>
static m_gradients_workspace work;
static m_params params, grads;
static float in[%(total)d];
int main(int argc, char **argv)
{
    float loss[1];
    FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!f || fread(in, sizeof in, 1, f) != 1)
        return 1;
    m_params_init(&params);
    if (m_gradients(&work, %(arguments)s, loss, &grads) || m_params_save(&grads, argv[2]))
        return 2;
    printf("%%.9g", (double)loss[0]);
    return 0;
}
"""


def floats_of(r, n):
    return [round(r.uniform(-1, 1) * DRAWN) / DRAWN for _ in range(n)]


def ours(args, folder, job):
    total, arguments, data = 0, [], array.array("f")
    for values in [v for _, v in job["inputs"].values()]:
        arguments.append(f"in + {total}")
        data.extend(values)
        total += len(values)
    target = f"in + {total}"
    data.extend(job["target"])
    (folder / "in").write_bytes(data.tobytes())
    arguments += ["&params", target]
    (folder / "main.c").write_text(DRIVER % {"total": len(data), "arguments": ", ".join(arguments)})
    subprocess.run([args.burncc, "-q", folder / "m.onnx", "--train", "--loss", "mse", "--target", args.target, "-o",
                    folder / "m.c"], check=True, capture_output=True, text=True)
    subprocess.run([*args.cc.split(), "-O1", "-w", "-I", folder, folder / "main.c", folder / "m.c", "-lm", "-o",
                    folder / "m"], check=True, capture_output=True, text=True)
    command = [folder / "m", folder / "in", folder / "g"]
    loss = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    grads = {k: floats(v[2]) for k, v in read_safetensors(folder / "g").items()}
    return {"loss": [float(loss)], **grads}


def beside_torch(args, model, folder, seed):
    """The worst error as a share of what passes and of the noise of single precision, and of which parameter; how many
    parameters were compared."""
    r = random.Random(seed + 1)
    inputs = {k: (shape, floats_of(r, count(shape))) for k, shape in model.inputs.items()}
    job = {"inputs": inputs, "params": model.params, "lines": model.lines,
           "target": floats_of(r, model.results)}
    want, noise = json.loads(subprocess.run([args.torch, "-c", TORCH], input=json.dumps(job), check=True,
                                            capture_output=True, text=True).stdout)
    got = ours(args, folder, job)
    worst = (0.0, 0.0, "")
    for name, values in want.items():
        mine = got.get(name) or [0.0] * len(values)             # no loss depends on it
        error = max(abs(x - y) if math.isfinite(x) else math.inf for x, y in zip(mine, values, strict=True))
        allowed = max(BOUND * max(map(abs, values)), ROUNDING * noise[name])
        if error > 0:
            worst = max(worst, (error / allowed if allowed else math.inf, error / (noise[name] or error), name))
    return worst, len(model.params)


# ---------------------------------------------------------------- differences
def by_differences(args, folder):
    done = subprocess.run([args.burncc, "verify", folder / "m.onnx", "--gradients", "--loss", "mse", "--json", "-q",
                           "--target", args.target, "--elements", "3"], capture_output=True, text=True)
    if not done.stdout:
        return f"status {done.returncode}: {done.stderr.strip()}", None
    said = json.loads(done.stdout)
    return said.get("fault", ""), said


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("--models", type=int), p.add_argument("--first", type=int, default=1)
    p.add_argument("--graphs", type=int, default=20), p.add_argument("--target", default="generic")
    p.add_argument("--torch"), p.add_argument("--no-differences", action="store_true")
    p.add_argument("--cc", default=os.environ.get("CC", "cc"))
    args = p.parse_args()
    every = bool(os.environ.get("BURNCC_TEST_ALL"))
    models = args.models or (100 if every else 2)
    torch, bad, tests, compared, ops = bool(args.torch) or every and has_torch(), 0, 0, 0, {}
    args.torch = args.torch or sys.executable
    for seed in range(args.first, args.first + models):
        model = Model(seed, args.graphs)
        for op, n in model.used.items():
            ops[op] = ops.get(op, 0) + n
        for kind in ["differences"] * (not args.no_differences) + ["torch"] * torch:
            with tempfile.TemporaryDirectory() as tmp:
                folder = pathlib.Path(tmp)
                (folder / "m.onnx").write_bytes(model.onnx())
                try:
                    if kind == "torch":
                        (share, noise, name), n = beside_torch(args, model, folder, seed)
                        ok, said = share <= 1, f"{n} parameters, worst {share:.1e} of what passes, {noise:.1f} of " \
                                               f"the noise, {name}"
                        compared += n
                    else:
                        said, numbers = by_differences(args, folder)
                        ok = not said
                        said = said or f"{numbers['gradients']} elements, worst {numbers['worst']:.1e}, " \
                                       f"{numbers['kinks']} at kinks"
                except (subprocess.CalledProcessError, KeyError) as e:
                    ok, said = False, f"{e} {getattr(e, 'stderr', '') or ''}".strip().replace("\n", "; ")[-600:]
            tests += 1
            bad += not ok
            print(f"{'ok' if ok else 'not ok'} {tests} - {args.graphs} graphs of seed {seed} by {kind}: {said}",
                  flush=True)
    print(f"# {models * args.graphs} graphs, {sum(ops.values())} nodes of {len(ops)} operators, "
          f"{compared} parameters beside PyTorch")
    print(f"1..{tests}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
