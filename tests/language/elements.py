# SPDX-License-Identifier: MIT OR Apache-2.0
"""Elementwise calls, activations, promotion of element types."""
import math

import numpy as np
from case import Case

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def gelu(x):
    return x * (1 + erf(x / math.sqrt(2))) / 2


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def arithmetic():
    c = Case("arithmetic")
    x, y = c.drawn("x", 3, 4, n=0), c.drawn("y", 4)
    p = c.given("p", np.abs(x).astype(np.float32) + np.float32(0.5), n=0)
    for text, want in (
            ("add(x, y)", x + y), ("sub(x, 2)", x - 2), ("sub(2, x)", 2 - x), ("mul(x, y)", x * y),
            ("div(x, p)", x / p),
            ("remainder(x, 1.5)", np.mod(x, 1.5)), ("remainder(x, -1.5)", np.mod(x, -1.5)),
            ("fmod(x, 0.7)", np.fmod(x, 0.7)),
            ("pow(p, 1.5)", p ** 1.5), ("pow(p, x)", p ** x), ("pow(2, x)", 2 ** x),
            ("atan2(x, y)", np.arctan2(x, y)),
            ("atan2(x, neg(p))", np.arctan2(x, -p)), ("hypot(x, y)", np.hypot(x, y)),
            ("minimum(x, y)", np.minimum(x, y)),
            ("maximum(x, 0.25)", np.maximum(x, 0.25)), ("clamp(x, -0.5, 0.25)", np.clip(x, -0.5, 0.25)),
            ("lerp(x, y, 0.25)", x + 0.25 * (y - x)), ("where(gt(x, 0), x, y)", np.where(x > 0, x, y)),
            ("where(lt(x, y), 1, 0.5)", np.where(x < y, 1, 0.5)),
            ("masked_fill(x, lt(x, 0), -7)", np.where(x < 0, -7, x)),
            ("eq(x, x)", x == x), ("ne(x, 0)", x != 0), ("lt(x, y)", x < y), ("le(x, 0)", x <= 0),
            ("gt(x, y)", x > y),
            ("ge(x, y)", x >= y), ("logical_and(gt(x, 0), lt(x, 1))", (x > 0) & (x < 1)),
            ("logical_or(x, y)", np.logical_or(x, y)), ("logical_xor(gt(x, 0), gt(y, 0))", (x > 0) ^ (y > 0)),
            ("logical_not(gt(x, 0))", ~(x > 0)), ("neg(x)", -x), ("sign(x)", np.sign(x)), ("square(x)", x * x),
            ("reciprocal(p)", 1 / p), ("rsqrt(p)", p ** -0.5), ("absolute(x)", abs(x)), ("fabs(x)", abs(x)),
            ("is_nan(div(sub(x, x), 0))", np.ones_like(x, bool)), ("is_inf(div(p, 0))", np.ones_like(x, bool)),
            ("is_close(x, mul(x, 1.000001))", np.ones_like(x, bool)), ("is_close(x, add(x, 0.001))",
             abs(0.001) <= 1e-8 + 1e-5 * abs(x + 0.001)), ("is_close(x, div(p, 0))", np.zeros_like(x, bool)),
            ("all_close(x, x)", np.bool_(True)), ("all_close(x, y)", np.bool_(False)),
            ("deg2rad(x)", np.deg2rad(x)), ("rad2deg(x)", np.rad2deg(x)),
            ("is_finite(x)", np.ones_like(x, bool)), ("is_finite(div(p, 0))", np.zeros_like(x, bool)),
            ("mul(x, exp(0.5) + pow(2, 3))", x * (math.exp(0.5) + 8))):
        c.gives(text, want)
    return c


def functions():
    c = Case("functions")
    x = c.drawn("x", 5, 7)
    u, p = c.given("u", np.tanh(x).astype(np.float32)), c.given("p", (np.abs(x) + 1.1).astype(np.float32))
    for name in "exp exp2 expm1 sin cos tan sinh cosh tanh floor ceil trunc".split():
        c.gives(f"{name}(x)", getattr(np, name)(x))
    c.gives("round(mul(x, 4))", np.rint(4 * x))
    c.gives("atan(x)", np.arctan(x))
    c.gives("asinh(x)", np.arcsinh(x))
    c.gives("erf(x)", erf(x))
    for name in "sqrt log log2 log10 log1p".split():
        c.gives(f"{name}(p)", getattr(np, name)(p))
    c.gives("asin(u)", np.arcsin(u))
    c.gives("acos(u)", np.arccos(u))
    c.gives("atanh(u)", np.arctanh(u))
    c.gives("acosh(p)", np.arccosh(p))
    return c


def activations():
    c = Case("activations")
    x = c.drawn("x", 2, 3, 8, scale=2)
    slope = c.parameter("slope", 1, 3, 1)
    c.line('Tensor slope = parameter("slope", (1, 3, 1), .init = init_constant(0.25));')
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    below = np.minimum(x, 0)
    for text, want in (
            ("relu(x)", np.maximum(x, 0)), ("relu6(mul(x, 4))", np.clip(4 * x, 0, 6)), ("sigmoid(x)", sigmoid(x)),
            ("silu(x)", x * sigmoid(x)), ("gelu(x)", gelu(x)), ("gelu_tanh(x)", gelu_tanh(x)),
            ("quick_gelu(x)", x * sigmoid(1.702 * x)), ("mish(x)", x * np.tanh(softplus(x))),
            ("softplus(x)", softplus(x)),
            ("softsign(x)", x / (1 + abs(x))), ("log_sigmoid(x)", -softplus(-x)), ("hardtanh(x)", np.clip(x, -1, 1)),
            ("hardsigmoid(x)", np.clip(x / 6 + 0.5, 0, 1)), ("hardswish(x)", x * np.clip(x / 6 + 0.5, 0, 1)),
            ("tanhshrink(x)", x - np.tanh(x)), ("selu(x)", scale * np.where(x > 0, x, alpha * np.expm1(below))),
            ("elu(x, 0.7)", np.where(x > 0, x, 0.7 * np.expm1(below))),
            ("celu(x, 0.7)", np.where(x > 0, x, 0.7 * np.expm1(below / 0.7))),
            ("leaky_relu(x, 0.1)", np.where(x > 0, x, 0.1 * x)), ("prelu(x, slope)", np.where(x > 0, x, slope * x)),
            ("hardshrink(x, 0.5)", np.where(abs(x) > 0.5, x, 0)),
            ("softshrink(x, 0.5)", np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
            ("threshold(x, 0.1, 20)", np.where(x > 0.1, x, 20.0)),
            ("elu(x)", np.where(x > 0, x, np.expm1(below))), ("celu(x)", np.where(x > 0, x, np.expm1(below))),
            ("leaky_relu(x)", np.where(x > 0, x, 0.01 * x)), ("hardshrink(x)", np.where(abs(x) > 0.5, x, 0)),
            ("softshrink(x)", np.sign(x) * np.maximum(abs(x) - 0.5, 0)), ("softplus(x, 3)", softplus(3 * x) / 3),
            ("hardtanh(x, -2, 0.5)", np.clip(x, -2, 0.5)), ("hardtanh(x, -2)", np.clip(x, -2, 1)),
            ("thresholded_relu(x)", np.where(x > 1, x, 0)),
            ("thresholded_relu(x, 0.25)", np.where(x > 0.25, x, 0)),
            ("shrink(x)", np.sign(x) * np.where(abs(x) > 0.5, abs(x), 0)),
            ("shrink(x, 0.3, 0.2)", np.where(x > 0.3, x - 0.2, np.where(x < -0.3, x + 0.2, 0))),
            ("rrelu(x)", np.where(x > 0, x, x * (1 / 8 + 1 / 3) / 2)),
            ("rrelu(x, 0.1, 0.3)", np.where(x > 0, x, 0.2 * x))):
        c.gives(text, want)
    return c


def integers():
    c = Case("integers")
    i = c.given("i", np.array([[7, -7, 3], [-2, 12, 5]], np.int64))
    j = c.given("j", np.array([3, 2, -4], np.int64))
    s, b = c.given("s", np.array([1, 2, 3], np.int32)), c.given("b", np.array([True, False, True]))
    u = c.given("u", np.array([1, 4, 200], np.uint8))
    f, d = c.given("f", np.array([0.5, -1.5, 2], np.float32)), np.array([0.5, -1.5, 2])
    for text, want in (
            ("add(i, j)", i + j), ("sub(i, 1)", i - 1), ("mul(i, s)", i * s), ("div(i, 2)", i / 2),
            ("div(i, j)", i / j),
            ("add(i, 0.5)", i + 0.5), ("add(i, f)", i + d), ("add(b, b)", b + b),
            ("add(b, 1)", b.astype(np.int64) + 1),
            ("add(b, f)", b + d), ("add(u, s)", u + s), ("mul(b, i)", b * i), ("remainder(i, j)", np.mod(i, j)),
            ("fmod(i, j)", np.fmod(i, j)), ("pow(i, 2)", i ** 2), ("square(i)", i * i), ("neg(i)", -i),
            ("absolute(i)", abs(i)),
            ("sign(i)", np.sign(i)), ("maximum(i, j)", np.maximum(i, j)), ("clamp(i, -2, 5)", np.clip(i, -2, 5)),
            ("where(b, i, 0)", np.where(b, i, 0)), ("relu(i)", np.maximum(i, 0)), ("sqrt(s)", np.sqrt(s)),
            ("eq(i, 7)", i == 7), ("lt(s, f)", s < d), ("logical_and(i, b)", np.logical_and(i, b)),
            ("bitwise_and(i, j)", i & j), ("bitwise_or(i, 6)", i | 6), ("bitwise_xor(b, b)", b ^ b),
            ("bitwise_not(u)", ~u), ("bitwise_left_shift(u, 1)", (u << 1).astype(np.uint8)),
            ("bitwise_right_shift(u, 2)", u >> 2), ("cast(f, I64)", d.astype(np.int64)), ("cast(i, F32)", i + 0.0),
            ("cast(i, BOOL)", i != 0), ("cast(b, I32)", b.astype(np.int32)), ("cast(f, F16)", d.astype(np.float16)),
            ("sum(i, 0)", i.sum(0)), ("sum(b, 0)", np.int64(2)), ("mean(i, 1)", i.mean(1)), ("amax(i, -1)", i.max(1)),
            ("prod(s, 0)", np.prod(s.astype(np.int64)))):
        c.gives(text, want)
    return c


def doubles():
    c = Case("doubles", floats=np.float64)
    x = c.given("x", c.random.standard_normal((3, 4)))
    c.given("f", x.astype(np.float32))
    for text, want in (("add(x, 0.1)", x + 0.1), ("mul(x, f)", x * x.astype(np.float32)), ("exp(x)", np.exp(x)),
                       ("mean(x, 0)", x.mean(0)), ("gelu(x)", gelu(x)), ("matmul(x, transpose(x, 0, 1))", x @ x.T)):
        c.gives(text, want, 1e-13)
    return c


ALL = [arithmetic, functions, activations, integers, doubles]
