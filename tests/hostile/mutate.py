# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hostile files by change: models that are fine, each with a few fields turned into what nobody exports.

In: a seed and the bytes of models. Out: others, equal ones for equal seeds. A file is read into lists of fields by
what holds what, and written again after the change: numbers of attributes, shapes and types become negative, huge or
others, attributes change their kind or go, values get other names or none, operators others of the table, raw data
another length or a place outside of the folder, nodes a function or a body around them."""
import random
import struct

import onnx_wire as w

# message -> field number -> what it holds: a message, or the kind of a leaf
HOLDS = {
    "model": {7: "graph", 8: "opset", 25: "function"},
    "graph": {1: "node", 5: "tensor", 11: "info", 12: "info", 13: "info"},
    "function": {4: "name", 5: "name", 7: "node", 9: "opset"},
    "node": {1: "name", 2: "name", 4: "op", 5: "attribute", 7: "domain"},
    "attribute": {1: "word", 2: "real", 3: "number", 4: "word", 5: "tensor", 6: "graph", 7: "real", 8: "number",
                  20: "kind"},
    "tensor": {1: "number", 2: "dtype", 9: "raw"},
    "info": {1: "name", 2: "type"},
    "type": {1: "tensor_type", 4: "element", 9: "element"},
    "element": {1: "type"},
    "tensor_type": {1: "dtype", 2: "shape"},
    "shape": {1: "dimension"},
    "dimension": {1: "number", 2: "word"},
    "opset": {2: "version"},
}
ODD = [-1, -2, -9, 0, 1, 2, 3, 7, 64, 255, 65536, 10**6, 10**9, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -2**63]
REALS = [0.0, -1.0, 1e-40, 1e9, 1e30, -1e30, float("inf"), float("-inf"), float("nan"), 0.5]
PLACES = ["/etc/passwd", "../model.onnx", "data.bin", "", ".", "a/../../b", "model.onnx"]


class Field:
    def __init__(self, number, kind, value):
        self.number, self.kind, self.value = number, kind, value


def read(message, kind):
    out = []
    for n, v in w.fields(message):
        k = HOLDS[kind].get(n, "other")
        if k in HOLDS and isinstance(v, bytes):
            v = read(v, k)
        elif k == "real" and len(v) == 4:
            v = struct.unpack("<f", v)[0]
        out.append(Field(n, k, v))
    return out


def write(fields):
    out = b""
    for f in fields:
        v = write(f.value) if isinstance(f.value, list) else f.value
        out += w.integer(f.number, v) if isinstance(v, int) else w.real(f.number, v) if isinstance(v, float) else \
            w.blob(f.number, v)
    return out


def walk(fields):
    for f in fields:
        yield f, fields
        if isinstance(f.value, list):
            yield from walk(f.value)


class Mutator:
    def __init__(self, seed, ops):
        self.draw, self.ops = random.Random(seed), ops

    def pick(self, root, *kinds):
        found = [(f, at) for f, at in walk(root) if f.kind in kinds]
        return self.draw.choice(found) if found else (None, None)

    def number(self, root):
        f, _ = self.pick(root, "number")
        if f:
            f.value = self.draw.choice(ODD)

    def real(self, root):
        f, _ = self.pick(root, "real")
        if f:
            f.value = self.draw.choice(REALS)

    def version(self, root):
        f, _ = self.pick(root, "version")
        if f:
            f.value = self.draw.choice([*range(1, 29), *ODD])

    def dtype(self, root):
        f, _ = self.pick(root, "dtype", "kind")
        if f:
            f.value = self.draw.choice([*range(30), -1, 2**31])

    def name(self, root):
        f, _ = self.pick(root, "name")
        other, _ = self.pick(root, "name")
        if f:
            f.value = self.draw.choice([other.value, b"", b"nowhere"])

    def operator(self, root):
        f, _ = self.pick(root, "op")
        if f:
            f.value = self.draw.choice(self.ops).encode()

    def operand(self, root):
        f, _ = self.pick(root, "node")
        other, _ = self.pick(root, "name")
        if f:
            f.value.insert(self.draw.randrange(len(f.value) + 1),
                           Field(self.draw.choice([1, 1, 2]), "name", self.draw.choice([other.value, b"", b"more"])))

    def remove(self, root):
        f, at = self.pick(root, "attribute", "name", "number", "tensor", "info", "shape", "dimension", "node")
        if f:
            at.remove(f)

    def repeat(self, root):
        f, at = self.pick(root, "attribute", "name", "number", "tensor", "info", "dimension", "node", "function")
        if f:
            at.insert(self.draw.randrange(len(at) + 1), f)

    def raw(self, root):
        f, _ = self.pick(root, "raw")
        if f:
            f.value = self.draw.choice([f.value[:-1], f.value + b"\0", b"", b"\xff" * len(f.value), f.value * 2])

    def external(self, root):
        f, _ = self.pick(root, "tensor")
        if f:
            entries = (("location", self.draw.choice(PLACES)), ("offset", str(self.draw.choice(ODD))),
                       ("length", str(self.draw.choice(ODD))))
            f.value = [x for x in f.value if x.kind != "raw"] + [Field(14, "number", 1)] + [
                Field(13, "other", w.blob(1, k) + w.blob(2, v)) for k, v in entries[:self.draw.randrange(1, 4)]]

    def nest(self, root):
        """A node becomes a body of Ifs in Ifs."""
        f, at = self.pick(root, "node")
        if not f:
            return
        outputs, inner = [x.value.decode("utf-8", "replace") for x in f.value if x.number == 2], write(f.value)
        for _ in range(self.draw.choice([1, 2, 20, 70])):
            body = w.graph([inner], [], [w.value_info(o, w.FLOAT, None) for o in outputs])
            test = w.node("Constant", [], ["test"], value=("tensor", w.tensor("", w.BOOL, True, [])))
            if outputs:
                chosen = w.node("If", ["test"], outputs, then_branch=("graph", body), else_branch=("graph", body))
                if_first = w.blob(4, "If") + chosen.replace(w.blob(4, "If"), b"", 1)
                inner = if_first if self.draw.random() < 0.5 else chosen
            if len(inner) > 1 << 16:
                break
        at.insert(at.index(f), Field(f.number, "node", read(test, "node")))
        f.value = read(inner, "node")

    def called(self, root):
        """A node becomes a function that calls itself, or one that calls others very often."""
        f, _ = self.pick(root, "node")
        graph, = [x for x in root if x.kind == "graph"][:1] or [None]
        if not f or not graph:
            return
        levels, width = self.draw.choice([(1, 1), (3, 3), (30, 2), (20, 10), (70, 1)])
        ins, outs = ([x.value for x in f.value if x.number == n] for n in (1, 2))
        if not outs:
            return
        inner = write(f.value)
        for level in range(levels):
            again = [w.blob(7, inner)] * (width if level else 1)
            function = b"".join(w.blob(4, i) for i in ins) + b"".join(w.blob(5, o) for o in outs) + b"".join(again)
            function = w.blob(1, f"f{level}") + function + w.blob(9, w.integer(2, 18)) + w.blob(10, "own")
            function += w.blob(9, w.blob(1, "own") + w.integer(2, 1))
            root.append(Field(25, "function", read(function, "function")))
            inner = b"".join(w.blob(1, i) for i in ins) + b"".join(w.blob(2, o) for o in outs)
            inner += w.blob(4, f"f{level}") + w.blob(7, "own")
        root.append(Field(8, "opset", read(w.blob(1, "own") + w.integer(2, 1), "opset")))
        f.value = read(inner, "node")

    def change(self, data):
        root = read(data, "model")
        kinds = [self.number] * 5 + [self.operator] * 2 + [self.operand] * 2 + [self.remove] * 2 + [
            self.real, self.version, self.dtype, self.dtype, self.name, self.repeat, self.raw, self.external, self.nest,
            self.called]
        for _ in range(self.draw.choice([1, 1, 1, 2, 3])):
            self.draw.choice(kinds)(root)
        return write(root)


def files(seed, count, models, ops):
    """count changed files of all models in turn, as (name, bytes); each depends on the seed and its number alone."""
    for i in range(count):
        yield f"changed/{seed}_{i}", Mutator(seed * 1000003 + i, ops).change(models[i % len(models)])
