# SPDX-License-Identifier: MIT OR Apache-2.0
"""Operators on tensors in general."""
import numpy as np

from cases import Draw, add

r = Draw(7)
EXACT = (0, 0)

# ---- older forms of what ai.onnx has now
for k in (-1, 0, 2):
    for upper in (0, 1):
        add(f"{upper}_{k}", "Trilu", [r.f(2, 5, 4), np.array(k)], upper=upper, tolerance=EXACT)
add("no_k", "Trilu", [r.i64(5, 7)], tolerance=EXACT)
add("rows", "GatherND", [r.f(3, 4, 5), r.i64(2, 3, 1, hi=3)], tolerance=EXACT)
add("elements", "GatherND", [r.f(3, 4, 5), r.i32(2, 3, hi=3)], tolerance=EXACT)
for mode in ("bilinear", "nearest", "bicubic"):
    for outside in ("zeros", "reflection") + (("border",) if mode != "bicubic" else ()):
        add(f"{mode}_{outside}", "GridSample", [r.f(2, 3, 6, 5), r.f(2, 4, 7, 2, lo=-1.3, hi=1.3)], mode=mode,
            padding_mode=outside, align_corners=int(outside == "border"))
for mode in ("constant", "reflect", "edge"):
    add(mode, "Pad", [r.f(3, 5), np.array([1, 2, 0, 3]), np.float32(0.5)], mode=mode, constant=(1,), tolerance=EXACT)
add("matrix", "Pad", [r.f(3, 5), np.array([[1, 0, 2, 1]])], constant=(1,), tolerance=EXACT)
add("crop", "Pad", [r.f(3, 5), np.array([0, -1, 1, -2])], constant=(1,), tolerance=EXACT)
add("i32", "Range", [np.int32(2), np.int32(17), np.int32(3)], constant=(0, 1, 2), tolerance=EXACT)
add("f32", "Range", [np.float32(0.5), np.float32(4), np.float32(0.75)], constant=(0, 1, 2))
add("no_step", "Range", [np.int64(2), np.int64(9)], constant=(0, 1), tolerance=EXACT)
for axis in (0, 1, -1, -2):
    add(f"{axis}", "ExpandDims", [r.f(3, 5), np.int32(axis)], constant=(1,), tolerance=EXACT)
add("plain", "TorchEmbedding", [r.f(9, 5), r.i64(2, 3, hi=9)], tolerance=EXACT, expect=lambda w, i: [w[i]])
add("padding", "TorchEmbedding",
    [r.f(9, 5), r.i64(2, 3, hi=9), np.array(2), np.array(False)], tolerance=EXACT, expect=lambda w, i, *_: [w[i]])
add("plain", "SampleOp", [r.f(3, 5)], tolerance=EXACT)
for name, pads, more in (("pads", [1, 0, 1, 1], {}), ("strides", [0, 1, 1,
                                                                  0], {"strides": [2, 2], "output_padding": [1, 0]})):
    add(name, "ConvTransposeWithDynamicPads",
        [r.f(1, 4, 5, 6), r.f(4, 3, 3, 2), np.array(pads), r.f(3)], constant=(2, ), kernel_shape=[3, 2], **more)
    add(f"{name}_run", "ConvTransposeWithDynamicPads",
        [r.f(1, 4, 5, 6), r.f(4, 3, 3, 2), np.array(pads), r.f(3)], kernel_shape=[3, 2], **more)

# ---- what ai.onnx had before its first version was settled
add("plain", "Affine", [r.f(3, 5)], domain="", opset=9, alpha=2.0, beta=0.5, expect=lambda x: [2 * x + np.float32(0.5)])
add("plain", "ScaledTanh", [r.f(3, 5)], domain="", opset=9, alpha=2.0, beta=0.5)
add("plain", "ParametricSoftplus", [r.f(3, 5)], domain="", opset=9, alpha=2.0, beta=0.5)
add("alpha", "ThresholdedRelu", [r.f(3, 5)], domain="", opset=9, alpha=0.25)
add("plain", "ImageScaler", [r.f(2, 3, 4, 5)], domain="", opset=9, scale=0.5, bias=[0.1, 0.2, 0.3])
add("border", "Crop", [r.f(2, 3, 7, 8)], domain="", opset=9, border=[1, 2, 3, 1])
add("scale", "Crop", [r.f(2, 3, 7, 8)], domain="", opset=9, border=[1, 2, 1, 1], scale=[3, 4])

# ---- windows and n-grams


def unfold(x, dim, size, step):
    count = (x.shape[dim] - size) // step + 1
    return [np.stack([np.moveaxis(x.take(range(i * step, i * step + size), dim), dim, -1) for i in range(count)], dim)]


for dim in (0, 1, 2):
    x = r.f(7, 8, 9)
    add(f"{dim}", "UnfoldTensor", [x], dim=dim, attributes={"size": 3}, step=2, tolerance=EXACT,
        expect=lambda x, d=dim: unfold(x, d, 3, 2))
add("last", "UnfoldTensor", [r.f(7, 8)], attributes={"size": 4}, tolerance=EXACT, expect=lambda x: unfold(x, 1, 4, 1))


def ngrams(size):
    def f(ids, scores):
        out = scores.copy()
        for b, row in enumerate(ids):
            for i in range(len(row) - size + 1):
                if all(row[i + j] == row[len(row) - size + 1 + j] for j in range(size - 1)):
                    out[b, row[i + size - 1]] = -np.inf
        return [out]
    return f


for size in (1, 2, 3):
    add(f"{size}", "NGramRepeatBlock", [r.i64(3, 12, hi=3), r.f(3, 5)], ngram_size=size, tolerance=EXACT,
        expect=ngrams(size))
words = r.i32(6, 9, lo=1, hi=20)
words[np.arange(9)[None] >= np.array([9, 4, 3, 2, 1, 1])[:, None]] = 0
add("plain", "WordConvEmbedding", [words, r.f(5, 1, 3, 4), r.f(5), r.f(20, 4)])
add("attributes", "WordConvEmbedding",
    [words[:3], r.f(5, 1, 2, 4), r.f(5), r.f(20, 4)], embedding_size=5, conv_window_size=2, char_embedding_size=4)

# ---- numbers
holes = [r.f(3, 5), r.f(4)]
add("finite", "IsAllFinite", holes, expect=lambda *a: [np.array(all(np.isfinite(x).all() for x in a))])
for name, value in (("nan", np.nan), ("inf", np.inf)):
    bad = holes[0].copy()
    bad[1, 2] = value
    add(name, "IsAllFinite", [holes[1], bad], expect=lambda *a: [np.array(False)])
    add(f"{name}_nan_only", "IsAllFinite", [bad], isnan_only=1, expect=lambda x: [np.array(not np.isnan(x).any())])
    add(f"{name}_inf_only", "IsAllFinite", [bad], isinf_only=1, expect=lambda x: [np.array(not np.isinf(x).any())])
for metric in ("sqeuclidean", "euclidean"):
    add(metric, "CDist", [r.f(5, 7), r.f(9, 7)], metric=metric)
    add(f"{metric}_f64", "CDist", [r.f(5, 7).astype(np.float64), r.f(9, 7).astype(np.float64)], metric=metric)
for name, values in (("i32", r.i32(3, 5, lo=-9999, hi=9999)), ("u32", r.i32(7).astype(np.uint32)),
                     ("i64", r.i64(3, 5, lo=-1 << 40, hi=1 << 40)), ("u64", r.i64(7, hi=1 << 60).astype(np.uint64)),
                     ("f32", r.f(3, 5)), ("f64", r.f(7).astype(np.float64))):
    add(name, "MurmurHash3", [values], tolerance=EXACT)
    add(f"{name}_signed", "MurmurHash3", [values], tolerance=EXACT, positive=0, seed=42)

# ---- complex numbers


def complex_mul(a, b, conjugate):
    x, y = a[..., 0] + 1j * a[..., 1], b[..., 0] + 1j * b[..., 1]
    z = x * (y.conj() if conjugate else y)
    return [np.stack([z.real, z.imag], -1).astype(np.float32)]


for op in ("ComplexMul", "ComplexMulConj"):
    add("plain", op, [r.f(3, 5, 2), r.f(3, 5, 2)], expect=lambda a, b, op=op: complex_mul(a, b, op.endswith("Conj")))
    add("broadcast", op, [r.f(3, 5, 2), r.f(5, 2)], expect=lambda a, b, op=op: complex_mul(a, b, op.endswith("Conj")))


def spectrum(x):
    y = np.fft.rfft(x)
    return [np.stack([y.real, y.imag], -1).astype(np.float32)]


for size in (8, 12, 30):
    add(f"{size}", "Rfft", [r.f(2, 3, size)], onesided=1, normalized=0, signal_ndim=1, expect=spectrum)
    add(f"{size}", "Irfft", [r.f(2, 3, size // 2 + 1, 2)], onesided=1, normalized=0, signal_ndim=1,
        expect=lambda x: [np.fft.irfft(x[..., 0] + 1j * x[..., 1]).astype(np.float32)])

# ---- matrices and images
for size in (1, 2, 3, 4, 7):
    add(f"{size}", "Inverse", [r.f(2, 3, size, size) + 2 * np.eye(size, dtype=np.float32)])
add("pivots", "Inverse", [np.array([[0, 2, 1], [1, 0, 3], [4, 1, 0]], np.float32)])
boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.9, 0.8, 0.1, 0.2], [-0.3, 0.2, 1.2, 0.6]], np.float32)
for mode in ("bilinear", "nearest"):
    add(mode, "CropAndResize",
        [r.f(2, 3, 9, 7), boxes, np.array([0, 1, 1, 0], np.int32),
         np.array([4, 5], np.int32)], constant=(3, ), mode=mode)
    add(f"{mode}_one", "CropAndResize",
        [r.f(2, 3, 9, 7), boxes, np.array([0, 1, 1, 0], np.int32),
         np.array([1, 3], np.int32)], constant=(3, ), mode=mode, extrapolation_value=0.25)
