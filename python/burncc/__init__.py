# SPDX-License-Identifier: MIT OR Apache-2.0
"""Neural networks compiled ahead of time, called with NumPy arrays.

    import burncc
    digits = burncc.compile("digits.onnx")
    logits = digits(image)

What is compiled stays in the user's cache folder, by the model's content, the options and the compilers.
"""
from .build import CompileError, compile, compiler
from .model import Model, RunError, TensorInfo

__all__ = ["CompileError", "Model", "RunError", "TensorInfo", "compile", "compiler"]
