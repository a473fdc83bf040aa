# SPDX-License-Identifier: MIT OR Apache-2.0
"""Operators on 8-bit tensors. The scales of pools are such that no mean lies halfway between two integers, where the
order of a sum would decide."""
import numpy as np

from cases import Draw, add

r = Draw(6)
EXACT = (0, 0)
F = np.float32


def kinds():
    """Draws of both element types, with scale and zero point."""
    yield "u8", r.u8, [F(0.021), np.uint8(121)], [F(0.034), np.uint8(99)], [F(0.043), np.uint8(130)]
    yield "i8", r.i8, [F(0.021), np.int8(-7)], [F(0.034), np.int8(9)], [F(0.043), np.int8(4)]


def no_zero(op):
    def f(a, sa, za, b, sb, zb, sc):
        x, y = a * np.float64(sa), b * np.float64(sb)
        return [np.clip(np.rint((x * y if op == "QLinearMul" else x + y) / sc), 0, 255).astype(np.uint8)]
    return f


for name, q, a, b, c in kinds():
    # ---- elementwise
    for op in ("QLinearAdd", "QLinearMul"):
        add(name, op, [q(3, 17), *a, q(3, 17), *b, *c], tolerance=EXACT)
        add(f"{name}_broadcast", op, [q(2, 3, 5), *a, q(3, 1), *b, *c], tolerance=EXACT)
        add(f"{name}_number", op, [q(3, 17), *a, q(), *b, *c], tolerance=EXACT)
        add(f"{name}_constant", op, [q(3, 17), *a, q(17), *b, *c], tolerance=EXACT, constant=(1, 2, 3, 4, 5, 6, 7))
        if name == "u8":
            add("no_zero", op, [q(3, 17), a[0], None, q(17), b[0], None, c[0]], tolerance=EXACT, kernel=False,
                expect=no_zero(op))
        add(f"{name}_saturate", op, [q(3, 17), F(0.5), a[1], q(17), F(0.4), b[1], F(0.01), c[1]], tolerance=EXACT)
    small = [F(1 / 256), type(a[1])(0 if name == "u8" else -128)]
    add(name, "QLinearSigmoid", [q(3, 67), *a, *small], tolerance=EXACT)
    add(f"{name}_constant", "QLinearSigmoid", [q(3, 67), *a, *small], tolerance=EXACT, constant=(1, 2, 3, 4))
    add(name, "QLinearLeakyRelu", [q(3, 67), *a, *c], tolerance=EXACT)
    add(f"{name}_alpha", "QLinearLeakyRelu", [q(3, 67), *a, *c], tolerance=EXACT, alpha=0.3, constant=(1, 2, 3, 4))
    add(name, "QLinearWhere", [r.rng.random((3, 7)) < 0.5, q(3, 7), *a, q(3, 7), *b, *c], tolerance=EXACT)
    add(f"{name}_broadcast", "QLinearWhere", [r.rng.random(
        (2, 1, 7)) < 0.5, q(3, 1), *a, q(2, 3, 7), *b, *c], tolerance=EXACT)
    add(name, "QLinearConcat", [*c, q(2, 3, 5), *a, q(2, 4, 5), *b, q(2, 1, 5), *c], tolerance=EXACT, axis=1)
    add(f"{name}_constant", "QLinearConcat", [*c, q(2, 5), *a, q(2, 4), *b], tolerance=EXACT, axis=-1,
        constant=(0, 1, 3, 4, 6, 7))
    for opset, axis in ((13, -1), (13, 1), (12, 1), (9, 2)):
        attributes = {"axis": axis, "opset": opset}
        add(f"{name}_{opset}_{axis}", "QLinearSoftmax", [q(3, 4, 9), F(0.05), a[1], *small], tolerance=EXACT,
            attributes=attributes)
    # ---- means
    a[0], b[0] = F(0.02), F(0.033)
    add(name, "QLinearGlobalAveragePool", [q(2, 3, 5, 7), *a, *b], tolerance=EXACT)
    add(f"{name}_last", "QLinearGlobalAveragePool", [q(2, 5, 7, 3), *a, *b], tolerance=EXACT, channels_last=1)
    add(name, "QLinearAveragePool", [q(2, 3, 9, 7), *a, *b], tolerance=EXACT, kernel_shape=[3, 3])
    add(f"{name}_pads", "QLinearAveragePool", [q(2, 3, 9, 7), *a, *b], tolerance=EXACT, kernel_shape=[3, 2],
        pads=[1, 0, 1, 1], strides=[2, 2])
    add(f"{name}_include", "QLinearAveragePool", [q(2, 3, 9, 7), *a, *b], tolerance=EXACT, kernel_shape=[3, 3],
        pads=[1, 1, 1, 1], count_include_pad=1)
    add(f"{name}_last", "QLinearAveragePool", [q(2, 9, 7, 3), *a, *b], tolerance=EXACT, kernel_shape=[2, 3],
        channels_last=1, ceil_mode=1, strides=[2, 2])
    add(f"{name}_1d", "QLinearAveragePool", [q(2, 3, 19), *a, *b], tolerance=EXACT, kernel_shape=[4],
        auto_pad="SAME_UPPER")

    def mean(axes, keep):
        def f(x, sx, zx, sy, zy):
            y = ((x.astype(np.float64) - zx) * sx).mean(axes, keepdims=bool(keep)) / sy
            return [np.clip(np.rint(y) + zy, np.iinfo(x.dtype).min, np.iinfo(x.dtype).max).astype(x.dtype)]
        return f

    add(name, "QLinearReduceMean", [q(2, 3, 5, 7), *a, *b], tolerance=EXACT, axes=[2, 3], keepdims=1, expect=mean(
        (2, 3), 1))
    add(f"{name}_drop", "QLinearReduceMean", [q(2, 3, 5), *a, *b], tolerance=EXACT, axes=[-1], keepdims=0, expect=mean(
        (2, ), 0))

    # ---- contractions; a number or a vector for the weights' scales and zero points
    other = r.i7 if name == "i8" else r.u8
    zeros = (r.i8 if name == "i8" else r.u8)(9)
    add(f"{name}_float", "MatMulIntegerToFloat", [q(2, 5, 7), other(7, 9), a[0], b[0], a[1], b[1]])
    add(f"{name}_columns", "MatMulIntegerToFloat",
        [q(5, 7), other(7, 9), a[0], r.f(9, lo=0.01, hi=0.02), a[1], zeros,
         r.f(9)], constant=(1, 3, 5, 6))
    add(f"{name}_no_zero", "MatMulIntegerToFloat", [q(5, 7), other(7, 9), a[0], b[0], None, None, r.f(9)])
    add(name, "QGemm", [q(5, 7), *a, other(7, 9), *b, None, F(0.3), c[1]], tolerance=EXACT)
    add(f"{name}_bias", "QGemm",
        [q(5, 7), *a, other(7, 9), *b, r.i32(9, lo=-5000, hi=5000),
         F(0.3), c[1]], tolerance=EXACT)
    add(f"{name}_swapped", "QGemm",
        [q(7, 5), *a, other(9, 7), *b, r.i32(5, 9, lo=-5000, hi=5000),
         F(0.3), c[1]], tolerance=EXACT, transA=1, transB=1, alpha=0.7)
    add(f"{name}_columns", "QGemm",
        [q(5, 7), *a,
         other(7, 9),
         r.f(9, lo=0.01, hi=0.02), zeros,
         r.i32(9, lo=-5000, hi=5000),
         F(0.3), c[1]], tolerance=EXACT, constant=(3, 4, 5, 6, 7, 8))
    add(f"{name}_float", "QGemm", [q(5, 7), *a, other(9, 7), *b, r.i32(9, lo=-5000, hi=5000)], transB=1, alpha=1.5)
    add(f"{name}", "DynamicQuantizeMatMul", [r.f(2, 5, 7), other(7, 9), b[0], b[1]])
    add(f"{name}_no_zero", "DynamicQuantizeMatMul", [r.f(5, 7, lo=0.2), other(7, 9), b[0]])
    add(f"{name}_columns", "DynamicQuantizeMatMul",
        [r.f(2, 5, 7), other(7, 9), r.f(9, lo=0.01, hi=0.02), zeros,
         r.f(9)], constant=(1, 2, 3, 4))
    add(f"{name}_batch", "DynamicQuantizeMatMul", [r.f(2, 5, 7), other(2, 7, 9), b[0], b[1]])
    add(f"{name}_zeros", "DynamicQuantizeMatMul", [np.zeros((2, 3), F), other(3, 4), b[0], b[1]])
    add(name, "QLinearConv",
        [q(2, 9, 7, 4), *a,
         other(6, 4, 3, 3),
         F(0.01), b[1], F(0.3), c[1],
         r.i32(6, lo=-500, hi=500)], tolerance=EXACT, channels_last=1)
    add(f"{name}_first", "QLinearConv",
        [q(2, 4, 9, 7), *a, other(6, 4, 3, 3), F(0.01), b[1],
         F(0.3), c[1]], tolerance=EXACT, pads=[1, 1, 1, 1])

    # ---- integers
    add(name, "MulInteger", [q(3, 17), a[1], q(17), b[1]], tolerance=EXACT, kernel=False,
        expect=lambda x, zx, y, zy: [(x.astype(np.int32) - zx) * (y.astype(np.int32) - zy)])
    add(f"{name}_no_zero", "MulInteger", [q(3, 17), None, q(3, 1)], tolerance=EXACT, kernel=False,
        expect=lambda x, z, y: [x.astype(np.int32) * y])
    add(
        name, "ReduceSumInteger", [q(3, 17, 5)], tolerance=EXACT, axes=[1], keepdims=1,
        types={0: 12 if name == "u8" else 6}, expect=lambda x: [
            x.astype(np.uint32
                     if x.dtype == np.uint8 else np.int32).sum(1, keepdims=True, dtype=np.uint32
                                                               if x.dtype == np.uint8 else np.int32)
        ])
add("mixed", "MatMulIntegerToFloat", [r.u8(5, 7), r.i7(7, 9), F(0.02), F(0.03), np.uint8(12), np.int8(-3)])
add("mixed", "QGemm",
    [r.u8(5, 7), F(0.02),
     np.uint8(12), r.i7(7, 9),
     F(0.03), np.int8(-3), None,
     F(0.3), np.uint8(120)], tolerance=EXACT)
add("mixed", "QLinearConv",
    [r.u8(2, 9, 7, 4),
     F(0.02), np.uint8(12),
     r.i7(6, 4, 3, 3),
     F(0.03), np.int8(0),
     F(0.3), np.uint8(120)], tolerance=EXACT, channels_last=1)


# ---- all bytes, where pairs of products do not fit 16 bits: in integers
def whole_gemm(a, sa, za, b, sb, zb, bias, sy, zy):
    y = (a.astype(np.int64) - za) @ (b.astype(np.int64) - zb) * (np.float64(sa) * sb / sy)
    return [np.clip(np.rint(y) + zy, 0, 255).astype(np.uint8)]


def whole_conv(x, sx, zx, w, sw, zw, sy, zy):
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64) - zx, w.shape[2:], (2, 3))
    y = np.einsum("ncyxij,ocij->noyx", windows, w.astype(np.int64) - zw) * (np.float64(sx) * sw / sy)
    return [np.clip(np.rint(y) + zy, 0, 255).astype(np.uint8)]


add("whole", "QGemm",
    [r.u8(5, 64), F(0.02),
     np.uint8(12), r.i8(64, 33),
     F(0.03), np.int8(-3), None,
     F(3.1), np.uint8(120)], tolerance=EXACT, kernel=False, expect=whole_gemm)
add("whole", "QLinearConv",
    [r.u8(1, 64, 6, 6), F(0.02),
     np.uint8(12), r.i8(32, 64, 3, 3),
     F(0.03), np.int8(0),
     F(7.3), np.uint8(120)], domain="", tolerance=EXACT, kernel=False, expect=whole_conv)
i16 = r.i32(5, 7, lo=-3000, hi=3000).astype(np.int16)
add("i16", "MatMulInteger16", [i16, i16.T.copy()], tolerance=EXACT)

# ---- QuantizeLinear, DequantizeLinear
for name, dtype in (("u8", np.uint8), ("i8", np.int8), ("u16", np.uint16), ("i16", np.int16)):
    zero = np.array([3, 100, 7], dtype)
    add(name, "QuantizeLinear", [r.f(3, 17, lo=-4, hi=9), F(0.03), dtype(100)], tolerance=EXACT)
    add(f"{name}_axis", "QuantizeLinear",
        [r.f(3, 17, lo=-4, hi=9), r.f(3, lo=0.01, hi=0.1), zero], tolerance=EXACT, axis=0)
    x = r.i32(3, 17, lo=0, hi=120).astype(dtype)
    add(name, "DequantizeLinear", [x, F(0.03), dtype(100)], tolerance=EXACT)
    add(f"{name}_axis", "DequantizeLinear", [x, r.f(3, lo=0.01, hi=0.1), zero], tolerance=EXACT, axis=0)
add("i32", "DequantizeLinear", [r.i32(3, 17, lo=-9999, hi=9999), F(0.03)], tolerance=EXACT)

# ---- DynamicQuantizeLSTM: the state is quantised by the range of the whole batch
op = "DynamicQuantizeLSTM"
T, B, I, H = 5, 3, 7, 6


def lstm(name, directions=1, batch=B, columns=False, bias=True, state=True, weights=r.i7, **attributes):
    size = (directions, 4 * H) if columns else (directions,)
    zero = np.zeros(size, np.int8) if weights == r.i7 else np.full(size, 128, np.uint8)
    scales = [r.f(*size, lo=0.004, hi=0.006), zero, r.f(*size, lo=0.004, hi=0.006), zero]
    states = [r.f(directions, batch, H), r.f(directions, batch, H)] if state else [None, None]
    constants = (1, 2, 8, 9, 10, 11)
    add(name, op, [
        r.f(T, batch, I),
        weights(directions, I, 4 * H),
        weights(directions, H, 4 * H),
        r.f(directions, 8 * H) if bias else None, None, *states, None, *scales
    ], outputs=3, constant=constants, hidden_size=H, **attributes)


lstm("plain")
lstm("one", batch=1)
lstm("no_state", state=False)
lstm("no_bias", bias=False, state=False)
lstm("columns", columns=True)
lstm("unsigned", weights=r.u8)
lstm("reverse", direction="reverse")
lstm("both", directions=2, columns=True, direction="bidirectional")
