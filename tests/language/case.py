# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a case is made of: inputs and parameters with their numbers, lines of C, outputs with what they must be."""
import numpy as np


class Case:
    def __init__(self, name, seed=1, floats=np.float32):
        self.name, self.floats, self.random = name, floats, np.random.default_rng(seed)
        self.inputs, self.parameters, self.lines, self.outputs = {}, {}, [], []

    def given(self, name, x, **symbols):
        """An input; n=0: axis 0 is the symbol n. Gives it in double precision, if floats."""
        x = np.asarray(x)
        self.inputs[name] = x, {axis: symbol for symbol, axis in symbols.items()}
        return x.astype(np.float64) if x.dtype.kind == "f" else x

    def drawn(self, name, *shape, scale=1.0, **symbols):
        """An input of normal numbers in f32."""
        return self.given(name, (scale * self.random.standard_normal(shape)).astype(np.float32), **symbols)

    def parameter(self, name, *shape, positive=False):
        x = (0.5 * self.random.standard_normal(shape)).astype(np.float32)
        self.parameters[name] = np.abs(x) + np.float32(0.5) if positive else x
        return self.parameters[name].astype(np.float64)

    def line(self, text):
        self.lines.append(text)

    def gives(self, text, want, bound=2e-5):
        """text: an expression of C. want: floats in double precision, of which the type is the case's; integers
        and bools are equal. Or a function that says whether an output is right."""
        self.outputs.append((text, want, bound))
