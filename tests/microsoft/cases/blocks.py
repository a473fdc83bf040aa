# SPDX-License-Identifier: MIT OR Apache-2.0
"""Weights of few bits, quantised in blocks."""
import ml_dtypes
import numpy as np

from cases import Draw, add

r = Draw(5)

# ---- MatMulNBits
op = "MatMulNBits"


def bits(name, n, k, block, width, *more, rows=(3,), constant=(1, 2, 3, 4, 5), **attributes):
    """more: zero points, group indices, bias."""
    blocks = -(-k // block)
    add(name, op, [r.f(*rows, k), r.u8(n, blocks, block * width // 8), r.f(n, blocks, lo=0.01, hi=0.05), *more],
        constant=[i for i in constant if i < 3 + len(more)], N=n, K=k, block_size=block, bits=width, **attributes)


def grouped(x, q, scale, zero, group):
    """What ONNX Runtime's documents say of zero points of groups, which its kernel leaves out."""
    def halves(bytes):
        return np.stack([bytes & 15, bytes >> 4], -1).reshape(len(bytes), -1).astype(np.float64)
    return [(x @ ((halves(q) - halves(zero)[:, group]) * scale[:, group]).T).astype(np.float32)]


bits("plain", 9, 64, 32, 4)
bits("default_bits", 9, 64, 16, 4)
bits("batch", 33, 64, 32, 4, rows=(2, 5))
bits("row", 40, 128, 32, 4, rows=(1, 1))
bits("ragged", 9, 75, 32, 4)
bits("zero", 9, 96, 32, 4, r.u8(9, 2))
bits("zero_even", 8, 64, 16, 4, r.u8(8, 2))
bits("zero_float", 9, 64, 16, 4, r.f(9, 4, lo=5, hi=9))
bits("bias", 9, 64, 32, 4, None, None, r.f(9))
bits("bias_zero", 9, 64, 32, 4, r.u8(9, 1), None, r.f(9))
bits("eight", 9, 64, 32, 8)
bits("eight_zero", 9, 64, 32, 8, r.u8(9, 2))
bits("eight_ragged", 7, 50, 16, 8, r.u8(7, 4), None, r.f(7))
bits("two", 9, 64, 32, 2)
bits("two_zero", 9, 64, 16, 2, r.u8(9, 1))
bits("accuracy", 9, 64, 32, 4, accuracy_level=1)
bits("inputs", 9, 64, 32, 4, constant=())
bits("groups", 9, 64, 16, 4, None, r.rng.permutation(np.arange(64) // 16).astype(np.int32))
bits("groups_zero", 9, 64, 16, 4, r.u8(9, 2), r.rng.permutation(np.arange(64) // 16).astype(np.int32), kernel=False,
     expect=grouped)
bits("groups_uneven", 9, 64, 16, 4, None, r.i32(64, hi=4))
bits("zero_float_ragged", 9, 75, 32, 4, r.f(9, 3, lo=5, hi=9), rows=(2, 5))

# ---- MatMulBnb4
op = "MatMulBnb4"
for kind in (0, 1):
    for n, k, block in ((9, 64, 16), (5, 48, 32), (4, 128, 64)):
        add(f"{kind}_{n}", op, [r.f(3, k), r.u8(
            (n * k + 1) // 2), r.f(-(-n * k // block), lo=0.1)], constant=(1, 2), N=n, K=k, block_size=block,
            quant_type=kind)
add("batch", op, [r.f(2, 3, 64), r.u8(9 * 32), r.f(18, lo=0.1)], N=9, K=64, block_size=32, quant_type=1)
NF4 = np.array([
    -1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.091050036, 0, 0.0795803, 0.1609302,
    0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1
], np.float32)
add("straight", op, [r.f(3, 9), r.u8(9 * 32), r.f(18, lo=0.1)], N=9, K=64, block_size=32, quant_type=1, transB=0,
    kernel=False,
    expect=lambda a, q, s: [a @ (NF4[np.stack([q >> 4, q & 15], 1).ravel()] * np.repeat(s, 32)).reshape(9, 64)])

# ---- GatherBlockQuantized
op = "GatherBlockQuantized"
ids = r.i64(2, 5, lo=-11, hi=11)
add("u8", op, [r.u8(11, 32), ids, r.f(11, 4, lo=0.01, hi=0.1)], constant=(0, 2), block_size=16, bits=4, quantize_axis=1)
add("u8_zero", op,
    [r.u8(11, 32), ids, r.f(11, 4, lo=0.01, hi=0.1), r.u8(11, 2)], constant=(0, 2, 3), block_size=16, bits=4,
    quantize_axis=1)
add("u8_eight", op,
    [r.u8(11, 64), ids.astype(np.int32), r.f(11, 4, lo=0.01, hi=0.1),
     r.u8(11, 4)], constant=(0, 2, 3), block_size=16, bits=8, quantize_axis=1)
add("u8_eight_middle", op, [r.u8(11, 64), ids[0], r.f(11, 2, lo=0.01, hi=0.1)], constant=(0, 2), block_size=32, bits=8,
    quantize_axis=-1)
for name, dtype, lo, hi in (("u4", ml_dtypes.uint4, 0, 16), ("i4", ml_dtypes.int4, -8, 8)):
    q = r.i32(11, 64, lo=lo, hi=hi).astype(dtype)
    scale = r.f(11, 4, lo=0.01, hi=0.1)
    add(name, op, [q, ids, scale], constant=(0, 2), block_size=16)
    add(f"{name}_zero", op, [q, ids, scale, r.i32(11, 4, lo=lo, hi=hi).astype(dtype)], constant=(0, 2, 3),
        block_size=16)
    add(f"{name}_ragged", op, [q[:, :50], ids, scale], constant=(0, 2), block_size=16)
    add(f"{name}_columns", op, [q, r.i64(3, hi=64), scale], constant=(0, 2), block_size=16, gather_axis=1)
    add(f"{name}_across", op, [q, r.i64(3, 2, hi=64), r.f(1, 64, lo=0.01, hi=0.1)], constant=(0, 2), block_size=16,
        gather_axis=1, quantize_axis=0)
add("rank3", op,
    [r.i32(5, 32, 3, lo=0, hi=16).astype(ml_dtypes.uint4),
     r.i64(2, 2, hi=5), r.f(5, 2, 3, lo=0.01)], constant=(0, 2), block_size=16, quantize_axis=1)
