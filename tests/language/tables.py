# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tensors from nothing, what is found, signals, integers with a scale."""
import numpy as np
from case import Case


def tables():
    c = Case("tables")
    a, b = c.drawn("a", 3), c.given("b", np.array([4, 7], np.int64))
    grid, same = np.meshgrid(a, b, indexing="ij"), np.meshgrid(a, a[:2], indexing="ij")
    turn = 2 * np.pi * np.arange(9) / 9
    for text, want in (
            ("arange_step(I64, 2, 9, 3)", np.arange(2, 9, 3)),
            ("arange_step(F32, 1, -1, -0.25)", np.arange(1, -1, -0.25)),
            ("tril_mask(3, 4, 0)", np.tri(3, 4, 0, bool)), ("triu_mask(3, 4, 1)", ~np.tri(3, 4, 0, bool)),
            ("diag_mask(3, 4, -1)", np.eye(3, 4, -1, bool)), ("meshgrid(0, a, b)", grid[0]),
            ("meshgrid(1, a, b)", grid[1].astype(np.int64)),
            ("cartesian_prod(a, narrow(a, 0, 0, 2))", np.stack(same, -1).reshape(-1, 2)),
            ("cartesian_prod(b, b)", np.array([[4, 4], [4, 7], [7, 4], [7, 7]])),
            ("hann_window(9)", 0.5 - 0.5 * np.cos(turn)), ("hamming_window(9)", 0.54 - 0.46 * np.cos(turn)),
            ("blackman_window(9)", 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn))):
        c.gives(text, want)
    return c


def like(mean, deviation, low, high, whole=False):
    """Are these so many numbers of this distribution, by its moments and bounds?"""
    def of(x):
        n = x.size
        near = abs(x.mean() - mean) < 5 * deviation / np.sqrt(n) and abs(x.std() / deviation - 1) < 6 / np.sqrt(n)
        return near and x.min() >= low and x.max() <= high and (not whole or np.array_equal(x, np.rint(x)))
    return of


def drawn():
    c = Case("drawn")
    p = c.given("p", np.full((200, 200), 0.3, np.float32))
    rows = c.given("rows", np.array([[0.1, 0.6, 0.3]] * 2, np.float32))
    for text, want in (
            ("rand(F32, 200, 200)", like(0.5, 1 / np.sqrt(12), 0, 1)), ("randn(F32, 200, 200)", like(0, 1, -6, 6)),
            ("rand_uniform(F32, -2, 4, 40000)", like(1, 6 / np.sqrt(12), -2, 4)),
            ("rand_normal(F32, 3, 0.5, 40000)", like(3, 0.5, 0, 6)),
            ("randint(I64, -2, 4, 40000)", like(0.5, np.sqrt(35 / 12), -2, 3, True)),
            ("bernoulli(p)", like(0.3, np.sqrt(0.21), 0, 1, True)),
            ("multinomial(rows, 20000)", like(1.2, 0.6, 0, 2, True)),
            ("sub(randn(F32, 40000), randn(F32, 40000))", like(0, np.sqrt(2), -8, 8))):
        c.gives(text, want)
    return c


def found():
    c = Case("found")
    x = c.given("x", np.array([[0, 2, 0], [-1, 0, 3]], np.float32))
    c.given("boxes", np.array([[0, 0, 4, 4], [0, 0, 4, 3.9], [5, 5, 9, 9], [5, 5, 8, 9], [20, 20, 21, 21]],
                                      np.float32))
    c.given("scores", np.array([0.5, 0.9, 0.3, 0.8, 0.1], np.float32))
    for text, want in (
            ("argwhere(x).values", np.array([[0, 1], [1, 0], [1, 2], [0, 0], [0, 0], [0, 0]])),
            ("argwhere(x).count", np.array([3])),
            ("masked_select(x, ne(x, 0)).values", np.array([2.0, -1, 3, 0, 0, 0])),
            ("masked_select(x, gt(select(x, 0, 0), 1)).values", np.array([2.0, 0, 0, 0, 0, 0])),
            ("masked_select(x, gt(select(x, 0, 0), 1)).count", np.array([2])),
            ("nms(boxes, scores, 0.5).values", np.array([1, 3, 4, 0, 0])),
            ("nms(boxes, scores, 0.5).count", np.array([3]))):
        c.gives(text, want)
    return c


def pairs(z):
    return np.stack((z.real, z.imag), -1)


def spectrogram(x, n, hop, window, centre=True):
    if centre:
        x = np.pad(x, ((0, 0), (n // 2, n // 2)), mode="reflect")
    frames = np.stack([x[:, i:i + n] * window for i in range(0, x.shape[1] - n + 1, hop)], 1)
    return np.fft.rfft(frames, axis=-1).swapaxes(1, 2)


def signals():
    c = Case("signals")
    x, z = c.drawn("x", 2, 50), c.drawn("z", 3, 6, 2)
    complex_z = z[..., 0] + 1j * z[..., 1]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
    short = np.zeros(16)
    short[3:13] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(10) / 10)
    for text, want in (
            ("fft(z, 0, 0)", pairs(np.fft.fft(complex_z, axis=0))), ("ifft(z, -1, 0)", pairs(np.fft.ifft(complex_z))),
            ("fft(z, 1, 4)", pairs(np.fft.fft(complex_z, 4))),
            ("stft(x, 16)", pairs(spectrogram(x, 16, 4, np.ones(16)))),
            ("stft(x, 16, 5, hann_window(16))", pairs(spectrogram(x, 16, 5, hann))),
            ("stft(x, 16, 5, hann_window(10), .center = NO)", pairs(spectrogram(x, 16, 5, short, False))),
            ("stft(x, 16, 4, hann_window(16), .normalized = YES)", pairs(spectrogram(x, 16, 4, hann)) / 4),
            ("istft(stft(x, 16, 4, hann_window(16)), 16, 4, hann_window(16), .length = 50)",
             x),
            ("istft(stft(x, 16, 5), 16, 5, .length = 48)", x[:, :48]),
            ("istft(stft(x, 16, 4, hann_window(16), .normalized = YES), 16, 4, hann_window(16), .normalized = YES)",
             x[:, :48])):
        c.gives(text, want)
    return c


def quantized():
    c = Case("quantized")
    x, q = c.drawn("x", 3, 4, scale=3), c.given("q", np.array([[-128, 5], [127, 0]], np.int8))
    scale = c.given("scale", np.array([0.05, 0.1, 0.02], np.float32))
    zero = c.given("zero", np.array([3, 0, -7], np.int32))
    for text, want in (
            ("quantize(x, 0.05, 3, I8, 0)", np.clip(np.rint(x / np.float32(0.05)) + 3, -128, 127).astype(np.int8)),
            ("quantize(x, scale, zero, I8, 0)",
             np.clip(np.rint(x / scale[:, None]) + zero[:, None], -128, 127).astype(np.int8)),
            ("quantize(x, 0.1, 100, U8, 0)", np.clip(np.rint(x / np.float32(0.1)) + 100, 0, 255).astype(np.uint8)),
            ("dequantize(q, 0.5, -2, 0)", (q + 2.0) * 0.5),
            ("dequantize(q, narrow(scale, 0, 0, 2), 0, -1)", q * scale[:2].astype(np.float64))):
        c.gives(text, want)
    return c


ALL = [tables, drawn, found, signals, quantized]
