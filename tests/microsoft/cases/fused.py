# SPDX-License-Identifier: MIT OR Apache-2.0
"""Merged products, convolutions, biases and activations."""
import math

import numpy as np

from cases import Draw, add

d = Draw(1)


def erf(x):
    return np.vectorize(math.erf)(x.astype(np.float64)).astype(x.dtype)


def gelu(x):
    return (x * 0.5 * (1 + erf(x / np.float32(math.sqrt(2))))).astype(x.dtype)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# ---- matrix products
for op in ("FusedMatMul", "TransposeMatMul"):
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = d.f(*((7, 5) if ta else (5, 7))), d.f(*((9, 7) if tb else (7, 9)))
            add(f"{ta}{tb}", op, [a, b], transA=ta, transB=tb, alpha=0.5)
    add("batched", op, [d.f(2, 3, 5, 7), d.f(2, 3, 9, 7)], transB=1, alpha=1.25)
    add("broadcast", op, [d.f(2, 3, 7, 5), d.f(3, 7, 4)], transA=1)
    add("constant", op, [d.f(2, 5, 7), d.f(33, 7)], transB=1, constant=(1,), alpha=0.125)
    add("vector", op, [d.f(7), d.f(7, 3)])
    add("vector_b", op, [d.f(2, 5, 7), d.f(7)])
    add("vector_transposed", op, [d.f(7), d.f(3, 7)], transA=1, transB=1)
add("f64", "FusedMatMul", [d.f(5, 7).astype(np.float64), d.f(9, 7).astype(np.float64)], transB=1, alpha=0.3)
for ta in (0, 1):
    for tb in (0, 1):
        a = d.f(*((7, 3, 4, 5) if ta else (5, 3, 4, 7)))
        b = d.f(*((9, 3, 4, 7) if tb else (7, 3, 4, 9)))
        add(f"batch_{ta}{tb}", "FusedMatMul", [a, b], transBatchA=1, transBatchB=1, transA=ta, transB=tb)
add("batch_a", "FusedMatMul", [d.f(5, 3, 7), d.f(3, 7, 4)], transBatchA=1)
for name, f, p in (("Relu", lambda x: np.maximum(x, 0),
                    {}), ("LeakyRelu", lambda x: np.where(x < 0, x * np.float32(0.2), x), {"activation_alpha": 0.2}),
                   ("Tanh", np.tanh, {})):
    add(name, "FusedMatMulActivation", [d.f(5, 7), d.f(9, 7)], transB=1, alpha=0.5, activation=name,
        expect=lambda a, b, f=f: [f(np.float32(0.5) * (a @ b.T))], **p)
add("plain", "GemmFastGelu", [d.f(2, 5, 7), d.f(7, 9), d.f(9)],
    expect=lambda a, b, c: [(lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3))))(a @ b + c)])

# ---- Gemm and Conv with an activation
for name, p in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Softplus", {}), ("Softsign", {}),
                ("LeakyRelu", {"activation_alpha": 0.3}), ("Elu", {"activation_alpha": 0.7}),
                ("HardSigmoid", {"activation_alpha": 0.3,
                                 "activation_beta": 0.4}), ("ThresholdedRelu", {"activation_alpha": 0.25}),
                ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1})):
    add(name, "FusedGemm", [d.f(5, 7), d.f(9, 7), d.f(9)], transB=1, alpha=0.5, beta=2.0, activation=name, **p)
add("no_bias", "FusedGemm", [d.f(7, 5), d.f(7, 9)], transA=1, activation="Relu")
add("constant", "FusedGemm", [d.f(6, 7), d.f(7, 34), d.f(34)], activation="Relu", constant=(1, 2))
for name, p in (("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.2]), ("Clip", [-0.25, 0.5]),
                ("HardSigmoid", [0.3, 0.4])):
    more = {"activation_params": p} if p else {}
    add(name, "FusedConv", [d.f(2, 4, 9, 7), d.f(6, 4, 3, 3), d.f(6)], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
        activation=name, **more)
add("plain", "FusedConv", [d.f(1, 4, 9, 7), d.f(6, 4, 3, 3)], strides=[2, 1])
add("sum", "FusedConv",
    [d.f(1, 4, 9, 7), d.f(6, 4, 3, 3), d.f(6), d.f(1, 6, 7, 5)], kernel_shape=[3,
                                                                               3], activation="Relu", constant=(1, 2))
add("sum_no_bias", "FusedConv", [d.f(1, 4, 9, 7), d.f(6, 2, 3, 3), None, d.f(1, 6, 7, 5)], kernel_shape=[3, 3], group=2)
add("one_d", "FusedConv", [d.f(2, 4, 19), d.f(6, 4, 5), d.f(6)], kernel_shape=[5], auto_pad="SAME_UPPER",
    activation="Relu")


def nhwc_conv(x, w, b=None, stride=1):
    """w [M, kh, kw, C], no padding."""
    h, v = (x.shape[1] - w.shape[1]) // stride + 1, (x.shape[2] - w.shape[2]) // stride + 1
    y = np.stack([
        np.stack([
            np.tensordot(x[:, i * stride:i * stride + w.shape[1], j * stride:j * stride + w.shape[2]], w,
                         ([1, 2, 3], [1, 2, 3])) for j in range(v)
        ], 1) for i in range(h)
    ], 1)
    return [y if b is None else y + b]


add("bias", "NhwcConv", [d.f(2, 9, 7, 4), d.f(6, 3, 3, 4), d.f(6)], kernel_shape=[3, 3], expect=nhwc_conv)
add("stride", "NhwcConv", [d.f(1, 9, 7, 4), d.f(6, 3, 2, 4)], strides=[2, 2],
    expect=lambda x, w: nhwc_conv(x, w, None, 2))
add("relu", "NhwcFusedConv", [d.f(2, 9, 7, 4), d.f(6, 4, 3, 3), d.f(6)], kernel_shape=[3, 3], activation="Relu",
    expect=lambda x, w, b: [np.maximum(nhwc_conv(x, w.transpose(0, 2, 3, 1), b)[0], 0)])
add("u8", "NhwcMaxPool", [d.u8(2, 9, 7, 4)], kernel_shape=[3, 3], strides=[2, 2])
add("i8_pads", "NhwcMaxPool", [d.i8(1, 9, 7, 5)], kernel_shape=[3, 2], pads=[1, 0, 1, 1])

# ---- activations
for dtype in (np.float32, np.float64):
    add(dtype.__name__, "Gelu", [d.f(3, 17, lo=-4, hi=4).astype(dtype)], expect=lambda x: [gelu(x)])
add("plain", "FastGelu", [d.f(3, 17, lo=-4, hi=4)])
add("bias", "FastGelu", [d.f(2, 3, 17, lo=-4, hi=4), d.f(17)])
add("bias", "BiasGelu", [d.f(2, 3, 17, lo=-4, hi=4), d.f(17)])
add("default", "QuickGelu", [d.f(3, 17, lo=-4, hi=4)])
add("alpha", "QuickGelu", [d.f(3, 17, lo=-4, hi=4)], alpha=0.8)
add("silu", "QuickGelu", [d.f(3, 17, lo=-4, hi=4)], alpha=1.0)
add("plain", "BiasSplitGelu", [d.f(2, 5, 34), d.f(34)], expect=lambda x, b: [(x + b)[..., :17] * gelu(
    (x + b)[..., 17:])])
add("plain", "BiasAdd", [d.f(2, 5, 8), d.f(8), d.f(2, 5, 8)], expect=lambda x, b, s: [x + b + s])
add("plain", "BiasDropout", [d.f(2, 5, 8), d.f(8), d.f(2, 5, 8)], expect=lambda x, b, s: [x + b + s])
add("mask", "BiasDropout", [d.f(2, 5, 8), d.f(8), None, np.float32(0.3).reshape(())], outputs=2,
    expect=lambda x, b, s, r: [x + b, np.ones(x.shape, bool)])
add("inference", "BiasDropout",
    [d.f(2, 5, 8), d.f(2, 5, 8), None, np.float32(0.3).reshape(
        ()), np.array(False)], constant=(4, ), expect=lambda x, b, *_: [x + b])
add("inner", "BiasSoftmax", [d.f(2, 3, 4, 5), d.f(2, 1, 1, 5)], axis=3, is_inner_broadcast=1,
    expect=lambda x, b: [softmax(x + b)])
add("outer", "BiasSoftmax", [d.f(2, 3, 4, 5), d.f(1, 1, 4, 5)], axis=3, is_inner_broadcast=0,
    expect=lambda x, b: [softmax(x + b)])
add("outer_flat", "BiasSoftmax", [d.f(2, 3, 4, 5), d.f(4, 5)], axis=2, is_inner_broadcast=0,
    expect=lambda x, b: [softmax((x + b).reshape(6, 20)).reshape(x.shape)])
