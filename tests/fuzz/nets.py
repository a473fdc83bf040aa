# SPDX-License-Identifier: MIT OR Apache-2.0
"""The blocks of which networks are made, as exporters write them: what layout, merged siblings, pairs of convolutions,
epilogues and templates of the compiler look for, at odd sizes. In: a Maker. Out: nodes added to it, block upon block,
each reading what the last ones made.

All values of a network keep the batch as their first axis and no shape names it: so a network runs with any.
"""
import numpy as np

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 16, 17, 20, 24, 31, 32, 32, 33, 48, 64)
MAX_COUNT = 12000                   # elements of a feature map


def weights(m, *shape, scale=None):
    """Such that sums of products stay as large as their terms."""
    depth = int(np.prod(shape[1:])) if scale is None else 1
    limit = scale or (3.0 / depth) ** 0.5
    return m.constant(m.data(shape, np.float32, -limit, limit))


def planes(m, low=1):
    """A feature map: batch, channels, height, width."""
    return m.pick(lambda v: v.rank == 4 and v.dtype == np.float32 and v.count and min(v.shape[2:]) >= low)


def fits(m, count):
    if count > MAX_COUNT:
        raise ValueError("larger than is quickly compared")


def activation(m, x):
    way = m.rng.choice(("", "", "Relu", "Relu", "Relu6", "HardSwish", "Swish", "LeakyRelu", "PRelu", "Sigmoid",
                        "HardSigmoid", "Gelu"))
    if way == "Relu6":
        return m.emit("Clip", [x, m.constant(np.array(0, np.float32)), m.constant(np.array(6, np.float32))], exact=True)
    if way == "Swish":
        return m.emit("Mul", [x, m.emit("Sigmoid", [x])])
    if way == "PRelu":
        return m.emit("PRelu", [x, m.constant(m.data([x.shape[1]] + [1] * (x.rank - 2), np.float32, 0.1, 0.4))])
    if way == "Gelu":
        half = m.emit("Mul", [x, m.constant(np.array(0.70710677, np.float32))])
        half = m.emit("Add", [m.emit("Erf", [half]), m.constant(np.array(1, np.float32))])
        return m.emit("Mul", [m.emit("Mul", [x, half]), m.constant(np.array(0.5, np.float32))])
    return m.emit(way, [x], exact=way == "Relu") if way else x


def normal(m, y, p=0.4):
    if not m.chance(p):
        return y
    c = y.shape[1]
    return m.emit("BatchNormalization", [y] +
                  [m.constant(m.data([c], np.float32, *r)) for r in ((0.5, 1.5), (-1, 1), (-0.5, 0.5), (0.5, 1.5))])


def conv(m, x, out=None, kernel=None, group=1, stride=None, act=True):
    c = x.shape[1]
    out = out or m.rng.choice(CHANNELS)
    if not kernel:
        kernel = [m.rng.choice((1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 7))] * 2
        if m.chance(0.12):
            kernel = [m.rng.choice((1, 3, 5)), m.rng.choice((1, 3, 7))]
    stride = [stride or m.rng.choice((1, 1, 1, 1, 2, 2, 3))] * 2
    dilation = [m.rng.choice((1, 1, 2, 3, 6))] * 2 if max(kernel) > 1 and m.chance(0.3) else [1, 1]
    if m.chance(0.07):
        stride, dilation = [1, 2][::m.rng.choice((1, -1))], [1, 1]
    reach = [(k - 1) * d for k, d in zip(kernel, dilation)]
    pads = [r // 2 for r in reach] + [r - r // 2 for r in reach]
    way = m.rng.random()
    if way < 0.12:
        pads = [m.rng.randint(0, r) for r in reach * 2]
    elif way < 0.2:
        pads = [0] * 4
    if any(d + a + b < r + 1 for d, a, b, r in zip(x.shape[2:], pads[:2], pads[2:], reach)):
        raise ValueError("a window larger than what it looks at")
    fits(
        m, x.shape[0] * out * np.prod([(d + a + b - r - 1) // s + 1
                                       for d, a, b, r, s in zip(x.shape[2:], pads[:2], pads[2:], reach, stride)]))
    bias = [weights(m, out, scale=0.5)] if m.chance(0.6) else []
    attributes = {"pads": pads, "strides": stride, "dilations": dilation, "group": group, "kernel_shape": kernel}
    if m.chance(0.15) and dilation == [1, 1] and all(s <= k for s, k in zip(stride, kernel)):
        attributes["auto_pad"] = m.rng.choice(("SAME_UPPER", "SAME_LOWER"))
        del attributes["pads"]
    y = normal(m, m.emit("Conv", [x, weights(m, out, c // group, *kernel)] + bias, **attributes))
    return activation(m, y) if act else y


def depthwise(m, x, act=True):
    k = m.rng.choice((2, 3, 3, 3, 5, 7))
    times = m.rng.choice((1, 1, 1, 1, 2))
    return conv(m, x, x.shape[1] * times, [k, k], x.shape[1], act=act)


def pool(m, x, stride=None):
    op, k = m.rng.choice(("MaxPool", "AveragePool")), m.rng.choice((2, 3, 3, 5))
    pads = [m.rng.randrange((k + 1) // 2 + 1) if m.chance(0.3) else k // 2 for _ in range(4)]
    if m.chance(0.3):
        pads = [0] * 4
    if any(d + a + b < k for d, a, b in zip(x.shape[2:], pads[:2], pads[2:])):
        raise ValueError("a window larger than what it looks at")
    attributes = {
        "kernel_shape": [k, k], "strides": [stride or m.rng.choice((1, 2, 2, 3))] * 2,
        "pads": [min(p, k - 1) for p in pads]
    }
    if m.chance(0.25):
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and m.chance(0.5):
        attributes["count_include_pad"] = 1
    return m.emit(op, [x], exact=op == "MaxPool", **attributes)


def same(m, x, out, k):
    """A convolution that keeps the size."""
    return activation(
        m,
        normal(
            m,
            m.emit("Conv",
                   [x, weights(m, out, x.shape[1], k, k)] + ([weights(m, out, scale=0.5)] if m.chance(0.5) else []),
                   kernel_shape=[k, k], pads=[k // 2] * 4)))


# ---------------------------------------------------------------- blocks
def plain(m):
    conv(m, planes(m))


def grouped(m):
    x = planes(m)
    g = m.rng.choice([g for g in range(1, x.shape[1] + 1) if x.shape[1] % g == 0])
    conv(m, x, g * m.rng.randint(1, 8), group=g)


def chain(m):
    """Convolution, depthwise, pool, concatenation, 1x1: each may be missing."""
    x = planes(m, 3)
    if m.chance(0.7):
        x = conv(m, x)
    y = depthwise(m, x) if m.chance(0.8) else x
    if m.chance(0.6):
        y = pool(m, y, 1 if m.chance(0.5) else None)
    if m.chance(0.6):
        others = [
            v for v in m.values if v.kind == "node" and v.rank == 4 and v.dtype == y.dtype and v.shape[0] == y.shape[0]
            and v.shape[2:] == y.shape[2:]
        ]
        y = m.emit("Concat", [y] + [m.rng.choice(others) for _ in range(m.rng.randint(1, 2))], exact=True, axis=1)
    conv(m, y, kernel=[1, 1], stride=1)


def separable(m):
    """MobileNet's: expand, depthwise, squeeze-and-excite, project, add."""
    x = planes(m, 3)
    c = x.shape[1]
    y = conv(m, x, c * m.rng.choice((2, 3, 4)), [1, 1], stride=1) if m.chance(0.6) else x
    y = depthwise(m, y)
    if m.chance(0.3):
        y = excite(m, y)
    y = conv(m, y, c if m.chance(0.6) else None, [1, 1], stride=1, act=m.chance(0.4))
    if y.shape == x.shape:
        y = m.emit("Add", [x, y] if m.chance(0.5) else [y, x])
        if m.chance(0.3):
            activation(m, y)


def excite(m, x):
    c = x.shape[1]
    s = m.emit("GlobalAveragePool", [x]) if m.chance(0.6) else m.emit(
        "ReduceMean", [x, m.ints(2, 3)] if m.opset >= 18 else [x], **({} if m.opset >= 18 else {"axes": [2, 3]}))
    s = m.emit("Relu", [m.emit("Conv", [s, weights(m, max(1, c // 2), c, 1, 1)])], exact=True)
    s = m.emit("Conv", [s, weights(m, c, max(1, c // 2), 1, 1), weights(m, c, scale=0.5)])
    return m.emit("Mul", [x, m.emit(m.rng.choice(("Sigmoid", "HardSigmoid")), [s])])


def squeeze(m):
    excite(m, planes(m, 2))


def residual(m):
    x = planes(m, 3)
    c, out = x.shape[1], x.shape[1] if m.chance(0.6) else m.rng.choice(CHANNELS)
    y = same(m, same(m, x, m.rng.choice(CHANNELS), m.rng.choice((1, 3))), out, 3)
    if out != c:
        x = m.emit("Conv", [x, weights(m, out, c, 1, 1)])
    fits(m, y.count)
    activation(m, m.emit("Add", [x, y]))


def inception(m):
    """Branches from one value, side by side in one."""
    x = planes(m, 3)
    parts = []
    for way in m.rng.sample(range(6), m.rng.randint(2, 5)):
        out = m.rng.choice(CHANNELS[:-4])
        if way < 2:
            parts.append(same(m, x, out, 1))
        elif way < 4:
            parts.append(same(m, same(m, x, m.rng.choice((4, 8, 16)), 1), out, 3 if way == 2 else 5))
        elif way == 4:
            p = m.emit(m.rng.choice(("MaxPool", "AveragePool")), [x], kernel_shape=[3, 3], pads=[1] * 4)
            parts.append(same(m, p, out, 1) if m.chance(0.7) else p)
        else:
            parts.append(x)
    fits(m, sum(p.count for p in parts))
    m.emit("Concat", parts, exact=True, axis=1)


def dense(m):
    """DenseNet's: everything before, side by side."""
    x = planes(m, 3)
    for _ in range(m.rng.randint(2, 3)):
        y = activation(m, normal(m, x, 0.8))
        x = m.emit("Concat", [x, same(m, y, m.rng.choice((4, 8, 12, 16)), m.rng.choice((1, 3)))], exact=True, axis=1)
    same(m, x, m.rng.choice(CHANNELS), 1)


def shuffle(m):
    """ShuffleNet's: halves, channels that change places."""
    x = planes(m, 2)
    b, c, h, w = x.shape
    if c % 2:
        x = same(m, x, c + 1, 1)
        c += 1
    left, right = m.emit("Split", [x, m.ints(c // 2, c // 2)], 2, exact=True, axis=1)
    right = same(m, right, c // 2, 1)
    y = m.emit("Concat", [left, right], exact=True, axis=1)
    y = m.emit("Reshape", [y, m.ints(0, 2, c // 2, h, w)], exact=True)
    y = m.emit("Transpose", [y], exact=True, perm=[0, 2, 1, 3, 4])
    same(m, m.emit("Reshape", [y, m.ints(0, c, h, w)], exact=True), m.rng.choice(CHANNELS), 1)


def upsample(m):
    x = planes(m)
    fits(m, 4 * x.count)
    way = m.rng.randrange(3)
    if way == 0:
        y = m.emit("Resize", [x, None, m.constant(np.array([1, 1, 2, 2], np.float32))], mode="nearest",
                   coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    elif way == 1:
        y = m.emit("Resize", [x, None, m.constant(np.array([1, 1, 2, 2], np.float32))], mode="linear",
                   coordinate_transformation_mode="half_pixel")
    else:
        k = m.rng.choice((2, 3, 4))
        y = m.emit("ConvTranspose", [x, weights(m, x.shape[1], m.rng.choice((1, 3, 8, 16)), k, k)], strides=[2, 2],
                   kernel_shape=[k, k])
    same(m, y, m.rng.choice((3, 8, 16)), m.rng.choice((1, 3)))


def padded(m):
    x = planes(m, 2)
    top, left, bottom, right = (m.rng.randint(0, 2) for _ in range(4))
    y = m.emit("Pad", [x, m.ints(0, 0, top, left, 0, 0, bottom, right)], exact=True, mode=m.rng.choice(
        ("constant", "reflect", "edge")) if min(x.shape[2:]) > 2 else "constant")
    k = m.rng.choice((1, 3))
    if min(y.shape[2:]) < k:
        raise ValueError("a window larger than what it looks at")
    activation(m, m.emit("Conv", [y, weights(m, m.rng.choice(CHANNELS), x.shape[1], k, k)], kernel_shape=[k, k]))


def cropped(m):
    x = planes(m, 3)
    axis = m.rng.randint(1, 3)
    if x.shape[axis] < 3:
        raise ValueError("too small")
    lo = m.rng.randint(0, 1)
    y = m.emit("Slice", [
        x,
        m.ints(lo),
        m.ints(m.rng.choice((x.shape[axis] - 1, 2**60))),
        m.ints(axis),
        m.ints(m.rng.choice((1, 1, 2)))
    ], exact=True)
    same(m, y, m.rng.choice(CHANNELS), m.rng.choice((1, 3)))


def focus(m):
    x = planes(m, 4)
    h, w = (d // 2 * 2 for d in x.shape[2:])
    parts = [
        m.emit("Slice",
               [x, m.ints(i, j), m.ints(h, w), m.ints(2, 3), m.ints(2, 2)], exact=True) for j in (0, 1) for i in (0, 1)
    ]
    same(m, m.emit("Concat", parts, exact=True, axis=1), m.rng.choice(CHANNELS), 3)


def local(m):
    m.emit("LRN", [planes(m)], size=m.rng.choice((3, 5)), alpha=1e-2, beta=0.75, bias=1.0)


def last(m):
    """ConvNeXt's: channels last in the model itself."""
    x = planes(m, 2)
    c, wide = x.shape[1], m.rng.choice((8, 16, 24, 33))
    y = m.emit("Transpose", [x], exact=True, perm=[0, 2, 3, 1])
    if m.chance(0.6):
        y = m.emit("LayerNormalization",
                   [y, m.constant(m.data([c], np.float32, 0.5, 1.5)),
                    weights(m, c, scale=0.5)], axis=-1)
    y = m.emit("Add", [m.emit("MatMul", [y, weights(m, c, wide, scale=(3 / c) ** 0.5)]), weights(m, wide, scale=0.5)])
    y = m.emit("MatMul", [m.emit("Relu", [y], exact=True), weights(m, wide, c, scale=(3 / wide) ** 0.5)])
    if m.chance(0.5):
        y = m.emit("Mul", [y, weights(m, c, scale=1)])
    m.emit("Add", [x, m.emit("Transpose", [y], exact=True, perm=[0, 3, 1, 2])])


def box(m):
    """A detector's head: places first, then what each says."""
    x = planes(m)
    c, n = x.shape[1], m.rng.choice((2, 3, 4, 6))
    parts = []
    for _ in range(m.rng.randint(1, 2)):
        k = m.rng.choice((1, 3))
        y = m.emit("Conv", [x, weights(m, n * 3, c, k, k), weights(m, n * 3, scale=0.5)], kernel_shape=[k, k],
                   pads=[k // 2] * 4)
        y = m.emit("Transpose", [y], exact=True, perm=[0, 2, 3, 1])
        parts.append(m.emit("Reshape", [y, m.ints(0, -1, n)], exact=True))
    y = m.emit("Concat", parts, exact=True, axis=1) if len(parts) > 1 else parts[0]
    y = m.emit(m.rng.choice(("Softmax", "Sigmoid")), [y])
    if m.chance(0.4):
        m.emit("Transpose", [y], exact=True, perm=[0, 2, 1])


def rows(m):
    """A matrix per item: what products read."""
    found = m.pick(lambda v: v.rank in (2, 3, 4) and v.dtype == np.float32 and v.count and v.name[0] != "c")
    if found.rank == 3:
        return found
    if found.rank == 2:
        return m.emit("Unsqueeze", [found, m.ints(1)], exact=True)
    b, c, h, w = found.shape
    return m.emit("Transpose", [m.emit("Reshape", [found, m.ints(0, c, h * w)], exact=True)], exact=True,
                  perm=[0, 2, 1])


def siblings(m):
    """Products of one value: merged, if that pays."""
    x = rows(m)
    k, parts = x.shape[2], []
    n = m.rng.choice(CHANNELS)
    for _ in range(m.rng.randint(2, 4)):
        wide = n if m.chance(0.7) else m.rng.choice(CHANNELS)
        y = m.emit("MatMul", [x, weights(m, k, wide, scale=(3 / k) ** 0.5)])
        if m.chance(0.6):
            y = m.emit("Add", [y, weights(m, wide, scale=0.5)])
        if m.chance(0.5):
            y = m.emit(m.rng.choice(("Relu", "Sigmoid", "Tanh")), [y])
        parts.append(y)
    way = m.rng.randrange(4)
    if way == 0:
        m.emit("Concat", parts, exact=True, axis=-1)
    elif way == 1 and parts[0].shape == parts[1].shape:
        m.emit(m.rng.choice(("Add", "Mul", "Sub")), parts[:2])
    elif way == 2 and parts[0].shape == parts[1].shape:
        m.emit("MatMul", [parts[0], m.emit("Transpose", [parts[1]], exact=True, perm=[0, 2, 1])])


def encoder(m):
    """A transformer's layer: norm, attention, norm, two products."""
    x = rows(m)
    _, t, d = x.shape
    fits(m, x.shape[0] * t * max(t, d) * 4)
    if d % 2:
        x, d = m.emit("MatMul", [x, weights(m, d, d + 1, scale=(3 / d) ** 0.5)]), d + 1
    heads = m.rng.choice([h for h in (1, 2, 4) if d % h == 0])

    def norm(v):
        return m.emit("LayerNormalization",
                      [v, m.constant(m.data([d], np.float32, 0.5, 1.5)),
                       weights(m, d, scale=0.5)], axis=-1)

    def dense(v, n):
        y = m.emit("MatMul", [v, weights(m, v.shape[-1], n, scale=(3 / v.shape[-1]) ** 0.5)])
        return m.emit("Add", [y, weights(m, n, scale=0.5)]) if m.chance(0.7) else y
    y = norm(x) if m.chance(0.7) else x
    parts = []
    for k in range(3):
        w = m.emit("Reshape", [dense(y, d), m.ints(0, t, heads, d // heads)], exact=True)
        parts.append(m.emit("Transpose", [w], exact=True, perm=[0, 2, 3, 1] if k == 1 else [0, 2, 1, 3]))
    s = m.emit("Mul", [m.emit("MatMul", parts[:2]), m.constant(np.array((d // heads) ** -0.5, np.float32))])
    if m.chance(0.4):
        mask = np.where(np.tri(t, dtype=bool), 0.0, -1e4) if m.chance(0.5) else m.np.integers(0, 2, [1, 1, 1, t]) * -1e4
        s = m.emit("Add", [s, m.constant(np.asarray(mask, np.float32))])
    y = m.emit("MatMul", [m.emit("Softmax", [s], axis=-1), parts[2]])
    y = m.emit("Reshape", [m.emit("Transpose", [y], exact=True, perm=[0, 2, 1, 3]), m.ints(0, t, d)], exact=True)
    x = m.emit("Add", [x, dense(y, d)])
    if m.chance(0.6):
        m.emit("Add", [x, dense(m.emit(m.rng.choice(("Relu", "Sigmoid", "Tanh")), [dense(norm(x), 2 * d)]), d)])


def head(m):
    x = planes(m)
    y = m.emit("GlobalAveragePool", [x]) if m.chance(0.7) else x
    y = m.emit("Flatten", [y], exact=True, axis=1)
    for _ in range(m.rng.randint(1, 3)):
        n, k = m.rng.choice((1, 3, 5, 10, 16, 33, 64, 100)), y.shape[1]
        y = m.emit("Gemm", [y, weights(m, n, k)] + [weights(m, n, scale=0.5)] * m.chance(0.7), transB=1)
        y = m.emit("Relu", [y], exact=True) if m.chance(0.6) else y
    if m.chance(0.5):
        m.emit("Softmax", [y], axis=-1)


BLOCKS = ((plain, 5), (grouped, 2), (chain, 5), (separable, 5), (squeeze, 2), (residual, 4), (inception, 4),
          (dense, 2), (shuffle, 2), (upsample, 2), (padded, 2), (cropped, 2), (focus, 1), (local, 1), (last, 2),
          (box, 2), (siblings, 3), (encoder, 2), (head, 2))


def begin(m):
    """The picture or the words that a network starts from."""
    b = m.rng.choice((1, 1, 1, 2, 3))
    if m.chance(0.15):
        shape = [b, m.rng.choice((1, 2, 5, 9, 16, 17)), m.rng.choice((4, 8, 12, 16, 24, 33))]
    else:
        h, w = (m.rng.choice((3, 5, 6, 7, 8, 9, 11, 13, 14, 16, 17, 20, 23)) for _ in range(2))
        shape = [b, m.rng.choice(CHANNELS), h, h if m.chance(0.5) else w]
        while np.prod(shape) > MAX_COUNT:
            shape[1] = max(1, shape[1] // 2)
    m.begin(shape)
