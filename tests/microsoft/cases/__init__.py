# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cases: one operator of com.microsoft each, with drawn inputs. A file of cases is a family; importing it adds
them to CASES."""
import importlib
import pathlib

import numpy as np

CASES = []


class Case:
    def __init__(self, name, op, inputs, attributes, outputs, domain, constant, tolerance, expect, opset, shapes,
                 kernel, types):
        self.name, self.op, self.inputs, self.attributes = name, op, inputs, attributes
        self.outputs, self.domain = outputs, domain
        self.constant, self.tolerance, self.expect, self.opset, self.shapes = constant, tolerance, expect, opset, shapes
        self.kernel, self.types = kernel, types


def add(name, op, inputs, outputs=1, domain="com.microsoft", constant=(), tolerance=(1e-4, 1e-5), expect=None,
        opset=20, shapes=None, kernel=True, types=None, attributes=None, **more):
    """outputs: their number, or which of them are asked for. expect: the outputs from the inputs, where ONNX Runtime
    has no kernel;
    kernel=False: nor is it asked. types: of outputs that it cannot infer, by number. attributes: those whose names
    are taken here."""
    wanted = [True] * outputs if isinstance(outputs, int) else outputs
    if any(c.name == f"{op}/{name}" for c in CASES):
        raise ValueError(f"{op}/{name} is there twice")
    inputs = [a if a is None else np.asarray(a) for a in inputs]
    CASES.append(
        Case(f"{op}/{name}", op, inputs, {**(attributes or {}), **more}, wanted, domain, constant, tolerance, expect,
             opset, shapes or {}, kernel, types or {}))


class Draw:
    """Arrays from a seed of the family's own, so that a case more changes no other family."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def f(self, *shape, lo=-1, hi=1):
        return self.rng.uniform(lo, hi, shape).astype(np.float32)

    def u8(self, *shape):
        return self.rng.integers(0, 256, shape).astype(np.uint8)

    def i8(self, *shape, lo=-128):
        return self.rng.integers(lo, 128, shape).astype(np.int8)

    def i7(self, *shape):
        """Second factors of products that ONNX Runtime does alike on all machines (exact.py)."""
        return self.rng.integers(-64, 65, shape).astype(np.int8)

    def i32(self, *shape, lo=0, hi=10):
        return self.rng.integers(lo, hi, shape).astype(np.int32)

    def i64(self, *shape, lo=0, hi=10):
        return self.rng.integers(lo, hi, shape).astype(np.int64)


for family in sorted(pathlib.Path(__file__).parent.glob("[a-z]*.py")):
    importlib.import_module(f"cases.{family.stem}")
