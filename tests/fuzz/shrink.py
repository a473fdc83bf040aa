# SPDX-License-Identifier: MIT OR Apache-2.0
"""A failing graph made small: as long as one of these steps leaves it failing in the same way, it is taken.

  one output         the others go, and every node that nothing needs
  cut                a value becomes an input, with the number that ONNX Runtime computes for it; what made it goes
  skip               a node gives way to one of its operands of the same type
  halve              a size that inputs and constants share becomes smaller
  plain              an input or a constant becomes small whole numbers, then ones

In: a Case and its Verdict. Out: a smaller Case and its Verdict. Every candidate is computed anew by ONNX Runtime.
"""
import shutil

import numpy as np
import onnx
from onnx import numpy_helper

from batch import Batch, Case, Verdict
from maker import EPSILON, ROUGH, captured_names, info, session

LIMIT = 150                         # candidates


def operators(data):
    return [n.op_type for n in onnx.ModelProto.FromString(data).graph.node]


class Graph:
    """A model that is easy to change: nodes, constants and inputs by name, names of outputs."""

    def __init__(self, model, inputs, wanted=None):
        g = model.graph
        self.model, self.nodes = model, list(g.node)
        self.constants = {t.name: numpy_helper.to_array(t) for t in g.initializer}
        self.inputs = dict(zip([i.name for i in g.input], inputs))
        self.outputs = wanted or [o.name for o in g.output]
        first = [i.type.tensor_type.shape.dim for i in g.input]
        self.sized = any(d and d[0].dim_param for d in first)   # the first axis of every value is the batch

    def copy(self, **changes):
        g = object.__new__(Graph)
        g.model, g.nodes, g.constants, g.inputs, g.outputs, g.sized = self.model, list(self.nodes), dict(
            self.constants), dict(self.inputs), list(self.outputs), self.sized
        for key, value in changes.items():
            setattr(g, key, value)
        return g

    def trimmed(self):
        """Without what the outputs do not need."""
        need, nodes = set(self.outputs), []
        for n in reversed(self.nodes):
            if need & set(n.output):
                nodes.append(n)
                need |= set(n.input) | set(captured_names(n))
        return self.copy(nodes=nodes[::-1], constants={k: v for k, v in self.constants.items() if k in need},
                         inputs={k: v for k, v in self.inputs.items() if k in need})

    def proto(self, outputs):
        m = onnx.ModelProto()
        m.CopyFrom(self.model)
        del m.graph.node[:], m.graph.initializer[:], m.graph.input[:], m.graph.output[:]
        m.graph.node.extend(self.nodes)
        m.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in self.constants.items())
        m.graph.input.extend(self.info(k, v) for k, v in self.inputs.items())
        m.graph.output.extend(outputs)
        return m

    def info(self, name, a):
        return info(name, a, ["batch"] + list(a.shape[1:]) if self.sized and a.ndim else None)

    def compute(self, names):
        """name: array, by ONNX Runtime; raises what it raises."""
        known = {**self.inputs, **self.constants}
        wanted = [n for n in names if n not in known]
        s = session(self.proto([onnx.helper.make_empty_tensor_value_info(n) for n in wanted]))
        return {**known, **dict(zip(wanted, s.run(None, self.inputs)))}

    def case(self, rough):
        values = self.compute(self.outputs)
        outputs = [values[n] for n in self.outputs]
        data = self.proto([self.info(n, values[n]) for n in self.outputs]).SerializeToString()
        return Case(data, list(self.inputs.values()), outputs, [tolerance(o, rough) for o in outputs])


def tolerance(a, rough):
    if a.dtype.kind != "f":
        return 0.0
    scale = np.abs(a[np.isfinite(a)].astype(float)).max(initial=0)
    if rough:
        return 16 * ROUGH * scale
    return (2000 if a.dtype == np.float32 else 16) * EPSILON[a.dtype] * scale + 1e-30


def produced(g):
    return [o for n in g.nodes for o in n.output if o]


def candidates(g):
    if len(g.outputs) > 1:
        for o in g.outputs:
            yield g.copy(outputs=[o])
    names = produced(g)
    try:
        values = g.compute(names)
    except Exception:
        return
    for i in range(len(names) - 1, -1, -1):                     # late cuts first: they take most away
        if names[i] in g.outputs:
            continue
        nodes = [n for n in g.nodes if names[i] not in n.output]
        broken = {o for n in g.nodes if names[i] in n.output for o in n.output} - {names[i]}
        if broken & {x for n in nodes for x in list(n.input) + list(captured_names(n))}:
            continue
        yield g.copy(nodes=nodes, inputs={**g.inputs, names[i]: values[names[i]]})
    for n in g.nodes:
        for i in n.input:
            if i in values and len(n.output) == 1 and values[i].shape == values[
                    n.output[0]].shape and values[i].dtype == values[n.output[0]].dtype:
                yield without(g, n, i)
    for name in g.outputs:                                      # an operand of the last node instead
        for n in g.nodes:
            if name in n.output:
                for i in n.input:
                    if i and i not in g.constants and i not in g.inputs:
                        yield g.copy(outputs=[i])
    yield from smaller(g)
    yield from plainer(g)


def without(g, node, operand):
    nodes = []
    for n in g.nodes:
        if n is node:
            continue
        fresh = onnx.NodeProto()
        fresh.CopyFrom(n)
        fresh.input[:] = [operand if i == node.output[0] else i for i in n.input]
        nodes.append(fresh)
    return g.copy(nodes=nodes, outputs=[operand if o == node.output[0] else o for o in g.outputs])


def smaller(g):
    tensors = {**g.inputs, **g.constants}
    for d in sorted({d for a in tensors.values() for d in a.shape if d > 1}, reverse=True):
        for to in sorted({1, d // 2, d - 1} - {0}):
            def cut(a):
                a = np.asarray(a)
                if a.dtype == np.int64 and a.ndim == 1 and a.size <= 8:
                    a = np.where(a == d, to, a)                 # shapes among the constants
                return a[tuple(slice(0, to if s == d else s) for s in a.shape)] if a.ndim else a

            yield g.copy(inputs={k: cut(v) for k, v in g.inputs.items()},
                         constants={k: cut(v) for k, v in g.constants.items()})


def plainer(g):
    for kind in ("inputs", "constants"):
        for k, a in getattr(g, kind).items():
            if a.dtype.kind == "f" and a.size:
                with np.errstate(all="ignore"):
                    for b in (np.round(a), np.ones_like(a)):
                        if not np.array_equal(a, b, equal_nan=True) and not np.array_equal(a, np.ones_like(a)):
                            yield g.copy(**{kind: {**getattr(g, kind), k: b}})


def size(g):
    tensors = [*g.inputs.values(), *g.constants.values()]
    return (len(g.nodes), len(g.outputs), sum(a.size for a in tensors),
            sum(a.size - int((a == 1).sum()) - int((a == np.round(a)).sum()) for a in tensors if a.dtype.kind == "f"))


def alike(a, b):
    head = [
        v.why.split(":")[0].split(" at ")[0].split(" u")[0].split(" f")[0].split(" i")[0].split(" output")[0]
        for v in (a, b)
    ]
    return a.state == b.state and (a.state == "differs" or head[0] == head[1])


def shrink(args, case, verdict, folder, way):
    model = onnx.ModelProto.FromString(case.model)
    best, tried = Graph(model, case.inputs).trimmed(), 0
    answer = case, verdict
    progress = True
    while progress and tried < LIMIT:
        progress = False
        for g in candidates(best):
            tried += 1
            if tried > LIMIT:
                break
            g = g.trimmed()
            if not g.nodes or size(g) >= size(best):
                continue
            try:
                small = g.case("bf16" in way.options)
            except Exception:
                continue
            got, = Batch(args, folder / "shrink", way).run([small])
            if alike(got, verdict):
                best, answer, progress = g, (small, got), True
                break
    return answer


def save(case, folder, note):
    """As ONNX's node tests are kept, for burncc verify."""
    sets = folder / "test_data_set_0"
    shutil.rmtree(folder, ignore_errors=True)
    sets.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model)
    model = onnx.ModelProto.FromString(case.model)
    (folder / "note.txt").write_text(note + onnx.printer.to_text(model) if len(case.model) < 20000 else note)
    for kind, names, arrays in (("input", model.graph.input, case.inputs), ("output", model.graph.output,
                                                                            case.outputs)):
        for i, (name, a) in enumerate(zip(names, arrays)):
            (sets / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(a), name.name).SerializeToString())
