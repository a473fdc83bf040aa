# SPDX-License-Identifier: MIT OR Apache-2.0
"""What older versions of operators write or mean otherwise than the newest: attributes that became inputs, other
defaults, other broadcasting.

cases() gives (name, model, input tensors, output tensors); outputs are computed here, in numpy, from the words of
each version's schema."""
import numpy as np
from onnx import GraphProto, TensorProto, helper, numpy_helper

_cases = []


def draw(seed, *shape, low=-1.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def add(name, inputs, outputs, node_inputs=None, node_outputs=None, ir=3, **attributes):
    """name: Operator/version_rest. Inputs that are constants in the model: ("constant", array); absent ones: None."""
    op, rest = name.split("/")
    version = int(rest.split("_")[0])
    constants, feeds, names = [], [], []
    for i, a in enumerate(inputs):
        names.append("" if a is None else f"x{i}")
        if a is not None:
            (constants if isinstance(a, tuple) else feeds).append(
                numpy_helper.from_array(np.asarray(a[1] if isinstance(a, tuple) else a), f"x{i}"))
    results = [numpy_helper.from_array(np.asarray(a), f"y{i}") for i, a in enumerate(outputs) if a is not None]
    node = helper.make_node(op, names, ["" if a is None else f"y{i}" for i, a in enumerate(outputs)], **attributes)
    graph = helper.make_graph([node], op,
                              [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in feeds + constants],
                              [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in results], constants)
    _cases.append((name, helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)],
                                           ir_version=ir), feeds, results))


# ---------------------------------------------------------------- elementwise
def placed(x, y, axis):
    """y as it meets x: its dimensions stand at `axis`, or last."""
    if y.size == 1:
        return y.reshape(())
    at = x.ndim - y.ndim if axis is None else axis
    return y.reshape(y.shape + (1,) * (x.ndim - at - y.ndim))


def elementwise():
    functions = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Less": np.less,
        "Greater": np.greater, "Equal": np.equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor
    }
    shapes = {
        "same": ((2, 3, 4), (2, 3, 4), None), "last": ((2, 3, 4), (4, ), None), "middle": ((2, 3, 4), (3, ), 1),
        "first": ((2, 3, 4), (2, 3), 0), "one": ((2, 3, 4), (1, 1), None), "scalar": ((2, 3, 4), (), None)
    }
    for op, f in functions.items():
        for version in (1, 6) if op in ("Add", "Sub", "Mul", "Div") else (1,):
            for how, (a, b, axis) in shapes.items():
                x, y = draw(1, *a, low=0.2, high=2), draw(2, *b, low=0.2, high=2)
                if op in ("And", "Or", "Xor"):
                    x, y = x > 1, y > 1
                elif op == "Equal":
                    x, y = np.floor(x * 3).astype(np.int64), np.floor(y * 3).astype(np.int64)
                attributes = {} if how == "same" else {"broadcast": 1}
                if axis is not None:
                    attributes["axis"] = axis
                if version == 1 and op in ("Add", "Sub", "Mul", "Div"):
                    attributes["consumed_inputs"] = [0, 0]
                add(f"{op}/{version}_{how}", [x, y], [f(x, placed(x, np.asarray(y), axis))], **attributes)
    x = draw(3, 2, 3, 4, low=-2, high=2)
    for op, f in {
            "Elu": lambda v: np.where(v < 0,
                                      np.exp(v) - 1, v), "Relu": lambda v: np.maximum(v, 0),
            "LeakyRelu": lambda v: np.where(v < 0, 0.01 * v, v), "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
            "Tanh": np.tanh, "Exp": np.exp, "Abs": np.abs, "Neg": np.negative, "Floor": np.floor, "Ceil": np.ceil,
            "HardSigmoid": lambda v: np.clip(0.2 * v + 0.5, 0, 1),
            "Selu": lambda v: 1.0507 * np.where(v > 0, v, 1.6732 * (np.exp(v) - 1))
    }.items():
        add(f"{op}/1_consumed", [x], [f(x).astype(np.float32)], consumed_inputs=[0])
    for op, f in {"Sqrt": np.sqrt, "Log": np.log, "Reciprocal": np.reciprocal}.items():
        add(f"{op}/1_consumed", [np.abs(x) + 0.1], [f(np.abs(x) + 0.1).astype(np.float32)], consumed_inputs=[0])
    for op, f in {
            "Sum": sum, "Mean": lambda v: sum(v) / len(v), "Max": lambda v: np.max(v, 0),
            "Min": lambda v: np.min(v, 0)
    }.items():
        values = [draw(i, 2, 3) for i in range(4, 7)]
        add(f"{op}/1_consumed", values, [f(values)], consumed_inputs=[0, 0, 0])
        add(f"{op}/6_three", values, [f(values)])
    for version in (1, 6):
        for size in (1, 3):
            slope = draw(7, size)
            add(f"PRelu/{version}_slopes_{size}", [x, slope], [np.where(x < 0, slope.reshape(-1, 1) * x, x)])
        add(f"Clip/{version}_both", [x], [np.clip(x, -0.5, 0.75)], min=-0.5, max=0.75)
        add(f"Clip/{version}_least", [x], [np.maximum(x, -0.5)], min=-0.5)
        add(f"Clip/{version}_default", [x], [x])
        add(f"Dropout/{version}_test", [x], [x], ratio=0.3, is_test=1)
    for version in (7, 10):
        add(f"Dropout/{version}_inference", [x], [x], ratio=0.3)
    add("Cast/1_double", [x], [x.astype(np.float64)], to="DOUBLE")
    add("Cast/1_int32", [x], [x.astype(np.int32)], to="INT32")
    add("Cast/1_bool", [x], [x.astype(bool)], to="BOOL")


# ---------------------------------------------------------------- shapes and places
def shapes():
    x = draw(10, 2, 3, 4)
    add("Reshape/1_attribute", [x], [x.reshape(2, 12)], shape=[0, -1], consumed_inputs=[0])
    add("Concat/1_default_axis", [x, draw(11, 2, 1, 4)], [np.concatenate([x, draw(11, 2, 1, 4)], 1)])
    add("Concat/1_axis", [x, x], [np.concatenate([x, x], 2)], axis=2)
    add("Slice/1_axes", [x], [x[:, 1:, 1:3]], axes=[1, 2], starts=[1, -3], ends=[1000, 3])
    add("Slice/1_all", [x], [x[1:, :2, :-1]], starts=[1, 0, 0], ends=[2, 2, -1])
    add("Split/1_input", [draw(12, 6, 2), ("constant", np.array([2, 4], np.float32))],
        [draw(12, 6, 2)[:2], draw(12, 6, 2)[2:]], axis=0)
    for version in (1, 2, 11):
        add(f"Split/{version}_attribute", [draw(12, 6, 2)],
            [draw(12, 6, 2)[:1], draw(12, 6, 2)[1:]], axis=0, split=[1, 5])
        add(f"Split/{version}_equal", [draw(12, 6, 2)], [draw(12, 6, 2)[:3], draw(12, 6, 2)[3:]], axis=0)
    for version in (1, 11):
        add(f"Squeeze/{version}_axes", [draw(13, 1, 3, 1)], [draw(13, 1, 3, 1)[0]], axes=[0])
        add(f"Squeeze/{version}_all", [draw(13, 1, 3, 1)], [draw(13, 1, 3, 1)[0, :, 0]])
        add(f"Unsqueeze/{version}_axes", [x], [x[None, :, None]], axes=[0, 2])
    add("Tile/1_axis", [x, ("constant", np.array(3, np.float32)), ("constant", np.array(1, np.float32))],
        [np.tile(x, (1, 3, 1))])
    add("TopK/1_attribute", [x], [-np.sort(-x, axis=1)[:, :2], np.argsort(-x, axis=1)[:, :2]], k=2, axis=1)
    add("DepthToSpace/1_blocks", [draw(14, 1, 8, 2, 3)],
        [draw(14, 1, 8, 2, 3).reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)], blocksize=2)
    padded = np.pad(x, ((0, 0), (1, 0), (2, 1)), constant_values=1.5)
    add("Pad/1_constant", [x], [padded], paddings=[0, 1, 2, 0, 0, 1], value=1.5)
    add("Pad/2_constant", [x], [padded], pads=[0, 1, 2, 0, 0, 1], value=1.5)
    for mode in ("reflect", "edge"):
        add(f"Pad/1_{mode}", [x], [np.pad(x, ((0, 0), (1, 0), (2, 1)), mode=mode)], paddings=[0, 1, 2, 0, 0, 1],
            mode=mode)
        add(f"Pad/2_{mode}", [x], [np.pad(x, ((0, 0), (1, 0), (2, 1)), mode=mode)], pads=[0, 1, 2, 0, 0, 1], mode=mode)
    image = draw(15, 1, 2, 3, 2)
    doubled = image.repeat(2, 2).repeat(3, 3)
    add("Upsample/1_nearest", [image], [doubled], height_scale=2.0, width_scale=3.0)
    add("Upsample/7_nearest", [image], [doubled], scales=[1.0, 1.0, 2.0, 3.0])
    add("Upsample/9_nearest", [image, ("constant", np.array([1, 1, 2, 3], np.float32))], [doubled])
    add("Resize/10_nearest", [image, ("constant", np.array([1, 1, 2, 3], np.float32))], [doubled])
    at = np.minimum(np.arange(6) / 2, 2)
    low = np.floor(at).astype(int)
    high, part = np.minimum(low + 1, 2), (at - low).reshape(-1, 1).astype(np.float32)
    linear = image[:, :, low] * (1 - part) + image[:, :, high] * part
    add("Upsample/1_bilinear", [image], [linear], height_scale=2.0, width_scale=1.0, mode="bilinear")
    add("Upsample/7_linear", [image], [linear], scales=[1.0, 1.0, 2.0, 1.0], mode="linear")
    add("Upsample/9_linear", [image, ("constant", np.array([1, 1, 2, 1], np.float32))], [linear], mode="linear")
    add("Resize/10_linear", [image, ("constant", np.array([1, 1, 2, 1], np.float32))], [linear], mode="linear")


# ---------------------------------------------------------------- reductions
def reductions():
    x = draw(20, 2, 3, 4, low=0.1)
    functions = {
        "ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min,
        "ReduceL1": lambda v, **k: np.abs(v).sum(**k), "ReduceL2": lambda v, **k: np.sqrt((v * v).sum(**k)),
        "ReduceSumSquare": lambda v, **k: (v * v).sum(**k), "ReduceLogSum": lambda v, **k: np.log(v.sum(**k)),
        "ReduceLogSumExp": lambda v, **k: np.log(np.exp(v).sum(**k))
    }
    for op, f in functions.items():
        for version in (1, 11) if op == "ReduceSum" else (1, 11, 12, 13) if op in ("ReduceMax",
                                                                                   "ReduceMin") else (1, 11, 13):
            for axes, keep in ((None, 1), ((1,), 1), ((0, 2), 0)):
                tag = "all" if axes is None else "_".join(map(str, axes))
                attributes = {} if axes is None else {"axes": list(axes)}
                add(f"{op}/{version}_{tag}", [x], [f(x, axis=axes, keepdims=bool(keep)).astype(np.float32)],
                    keepdims=keep, **attributes)
    rows = x.reshape(2, 12)
    soft = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    hard = (rows == rows.max(1, keepdims=True)).astype(np.float32)
    rows2 = x.reshape(6, 4)
    for version in (1, 11):
        add(f"Softmax/{version}_flat", [x], [soft.reshape(x.shape)])
        add(f"LogSoftmax/{version}_flat", [x], [np.log(soft).reshape(x.shape)])
        add(f"Hardmax/{version}_flat", [x], [hard.reshape(x.shape)])
        add(f"Softmax/{version}_axis_2", [x], [(np.exp(rows2) / np.exp(rows2).sum(1, keepdims=True)).reshape(x.shape)],
            axis=2)
        add(f"Softmax/{version}_axis_0", [x], [np.exp(x) / np.exp(x).sum()], axis=0)
        add(f"Hardmax/{version}_axis_2", [x],
            [(rows2 == rows2.max(1, keepdims=True)).astype(np.float32).reshape(x.shape)], axis=2)


# ---------------------------------------------------------------- networks
def networks():
    a, b, c = draw(30, 3, 4), draw(31, 4, 5), draw(32, 5)
    for version in (1, 6):
        add(f"Gemm/{version}_broadcast", [a, b, c], [0.5 * a @ b + 2 * c], alpha=0.5, beta=2.0, broadcast=1)
        add(f"Gemm/{version}_transposed", [a.T.copy(), b.T.copy(), draw(33, 3, 5)], [a @ b + draw(33, 3, 5)], transA=1,
            transB=1)
    x, scale, bias, mean, var = draw(34, 2, 3, 4, 2), draw(35, 3), draw(36, 3), draw(37,
                                                                                     3), draw(38, 3, low=0.5, high=2)

    def normal(v, m, s):
        return (v - m) / np.sqrt(s + 1e-5)
    column = (3, 1, 1)
    y = normal(x, mean.reshape(column), var.reshape(column)) * scale.reshape(column) + bias.reshape(column)
    add("BatchNormalization/1_test", [x, scale, bias, mean, var], [y], is_test=1, consumed_inputs=[0, 0, 0, 1, 1])
    add("BatchNormalization/6_test", [x, scale, bias, mean, var], [y], is_test=1)
    add("BatchNormalization/7_test", [x, scale, bias, mean, var], [y])
    m, s = x.mean((0, 2, 3)), x.var((0, 2, 3))
    trained = normal(x, m.reshape(column), s.reshape(column)) * scale.reshape(column) + bias.reshape(column)
    for version in (1, 6, 7, 9):
        attributes = {"consumed_inputs": [0, 0, 0, 1, 1]} if version == 1 else {}
        add(f"BatchNormalization/{version}_training", [x, scale, bias, mean, var],
            [trained, 0.8 * mean + 0.2 * m, 0.8 * var + 0.2 * s, None, None], momentum=0.8, **attributes)
    each = [draw(39 + i, 3, 4, 2, low=0.5) for i in range(4)]
    flat = normal(x, each[2], each[3]) * each[0] + each[1]
    add("BatchNormalization/7_each", [x, *each], [flat], spatial=0)
    add("BatchNormalization/6_each", [x, *each], [flat], spatial=0, is_test=1)
    instance = normal(x, x.mean((2, 3), keepdims=True), x.var(
        (2, 3), keepdims=True)) * scale.reshape(column) + bias.reshape(column)
    add("InstanceNormalization/1_consumed", [x, scale, bias], [instance], consumed_inputs=[0, 0, 0])
    wide = draw(43, 2, 4, 3)
    grouped = wide.reshape(2, 2, 6)
    grouped = normal(grouped, grouped.mean(2, keepdims=True), grouped.var(2, keepdims=True))
    per_group = grouped * draw(44, 2).reshape(2, 1) + draw(45, 2).reshape(2, 1)
    add("GroupNormalization/18_per_group", [wide, draw(44, 2), draw(45, 2)], [per_group.reshape(wide.shape)],
        num_groups=2, ir=8)
    image = draw(46, 1, 2, 4, 4)
    windows = [[image[:, :, max(i - 1, 0):i + 2, max(j - 1, 0):j + 2] for j in range(4)] for i in range(4)]

    def pooled(f):
        return np.stack([np.stack([f(w) for w in row], -1) for row in windows], -2).astype(np.float32)
    add("AveragePool/1_pads", [image], [pooled(lambda w: w.mean((2, 3)))], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    add("MaxPool/1_pads", [image], [pooled(lambda w: w.max((2, 3)))], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    add("LpPool/1_pads", [image], [pooled(lambda w: (np.abs(w)**1.5).sum((2, 3))**(1 / 1.5))], kernel_shape=[3, 3],
        pads=[1, 1, 1, 1], p=1.5)
    add("LpPool/2_pads", [image], [pooled(lambda w: (np.abs(w)**3).sum((2, 3))**(1 / 3))], kernel_shape=[3, 3],
        pads=[1, 1, 1, 1], p=3)
    add("GlobalLpPool/1_half", [image], [(np.abs(image) ** 1.5).sum((2, 3), keepdims=True) ** (1 / 1.5)], p=1.5)
    add("GlobalLpPool/2_three", [image], [(np.abs(image) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)], p=3)
    rois = np.array([[0, 0, 0, 3, 3], [0, 1, 1, 2, 3], [0, 2, 0, 3, 1]], np.float32)
    for version in (1, 22):
        add(f"MaxRoiPool/{version}_rois", [image, rois], [max_roi_pool(image, rois, 2, 2)], pooled_shape=[2, 2],
            ir=3 if version == 1 else 10)
    add("MaxRoiPool/1_scaled", [image, rois * 2], [max_roi_pool(image, rois, 3, 2)], pooled_shape=[3, 2],
        spatial_scale=0.5)


def max_roi_pool(x, rois, rows, columns):
    """Each region, corners included, cut into rows x columns parts that may share pixels (Girshick, "Fast R-CNN",
    2015)."""
    out = np.zeros((len(rois), x.shape[1], rows, columns), np.float32)
    for r, (batch, x1, y1, x2, y2) in enumerate(rois.astype(int)):
        height, width = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i in range(rows):
            for j in range(columns):
                top, bottom = y1 + i * height // rows, y1 + -(-(i + 1) * height // rows)
                left, right = x1 + j * width // columns, x1 + -(-(j + 1) * width // columns)
                part = x[batch, :, max(top, 0):min(bottom, x.shape[2]), max(left, 0):min(right, x.shape[3])]
                out[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return out


def recurrent():
    steps, batch, size, hidden = 3, 2, 4, 5
    x, w, r, b = draw(50, steps, batch, size), draw(51, 1, hidden, size), draw(52, 1, hidden,
                                                                               hidden), draw(53, 1, 2 * hidden)
    h, out = np.zeros((batch, hidden), np.float32), []
    for t in range(steps):
        h = np.tanh(x[t] @ w[0].T + h @ r[0].T + b[0, :hidden] + b[0, hidden:])
        out.append(h)
    y = np.stack(out)[:, None]
    add("RNN/1_sequence", [x, w, r, b], [y, h[None]], hidden_size=hidden, output_sequence=1)
    add("RNN/1_last", [x, w, r, b], [None, h[None]], hidden_size=hidden)

    def gate(v):
        return 1 / (1 + np.exp(-v))
    w, r = draw(54, 1, 3 * hidden, size), draw(55, 1, 3 * hidden, hidden)
    h, out = np.zeros((batch, hidden), np.float32), []
    for t in range(steps):
        wz, wr, wh = np.split(w[0], 3)
        rz, rr, rh = np.split(r[0], 3)
        z, reset = gate(x[t] @ wz.T + h @ rz.T), gate(x[t] @ wr.T + h @ rr.T)
        h = (1 - z) * np.tanh(x[t] @ wh.T + (reset * h) @ rh.T) + z * h
        out.append(h)
    for version in (1, 3):
        add(f"GRU/{version}_sequence", [x, w, r], [np.stack(out)[:, None], h[None]], hidden_size=hidden,
            output_sequence=1)
    w, r = draw(56, 1, 4 * hidden, size), draw(57, 1, 4 * hidden, hidden)
    h, c, out = np.zeros((batch, hidden), np.float32), np.zeros((batch, hidden), np.float32), []
    for t in range(steps):
        i, o, f, g = np.split(x[t] @ w[0].T + h @ r[0].T, 4, axis=1)
        c = gate(f) * c + gate(i) * np.tanh(g)
        h = gate(o) * np.tanh(c)
        out.append(h)
    add("LSTM/1_sequence", [x, w, r], [np.stack(out)[:, None], h[None], c[None]], hidden_size=hidden, output_sequence=1)


# ---------------------------------------------------------------- others
def others():
    x = draw(70, 1, 6, 2)
    z = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=1)
    add("DFT/17_default_axis", [x], [np.stack([z.real, z.imag], -1).astype(np.float32)], ir=8)
    q = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    add("DequantizeLinear/10_tensor",
        [q, np.array(0.5, np.float32), np.array(3, np.uint8)], [(q.astype(np.float32) - 3) * 0.5], ir=8)
    scale, zero = np.array([0.5, 0.25, 2], np.float32), np.array([1, 2, 3], np.uint8)
    add("DequantizeLinear/13_axis", [q, scale, zero],
        [(q.astype(np.float32) - zero.reshape(3, 1)) * scale.reshape(3, 1)], axis=1, ir=8)
    image, box = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.array([[0, 0, 2, 2]], np.float32)
    # two bins of one pixel each way, sampled once in the middle, between pixel 0 and 1, and 1 and 2: no shift by half
    # a pixel
    add("RoiAlign/10_unshifted", [image, box, np.array([0], np.int64)],
        [np.array([[[[2.5, 3.5], [6.5, 7.5]]]], np.float32)], output_height=2, output_width=2, sampling_ratio=1, ir=8)


# ---------------------------------------------------------------- control flow
def body(nodes, inputs, outputs):
    g = GraphProto(name="body", node=nodes)
    for name, kind, shape in inputs:
        g.input.append(helper.make_tensor_value_info(name, kind, shape))
    for name, kind, shape in outputs:
        g.output.append(helper.make_tensor_value_info(name, kind, shape))
    return g


def control():
    f, b, i = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
    x = draw(60, 2, 3)
    for version in (1, 11, 13, 16, 19, 21, 23, 24):
        ir = 10 if version > 10 else 3
        branches = [body([helper.make_node(op, ["x1"], ["r"])], [], [("r", f, [2, 3])]) for op in ("Neg", "Exp")]
        for choice in (True, False):
            add(f"If/{version}_{choice}", [np.array(choice), x], [-x if choice else np.exp(x)],
                then_branch=branches[0], else_branch=branches[1], ir=ir)
            _cases[-1][1].graph.node[0].input.pop()
        step = body([
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Neg", ["w"], ["s"])
        ], [("n", i, []), ("go", b, []), ("v", f, [2, 3])], [("on", b, []), ("w", f, [2, 3]), ("s", f, [2, 3])])
        add(f"Loop/{version}_three", [("constant", np.array(3, np.int64)), ("constant", np.array(True)), x],
            [8 * x, np.stack([-2 * x, -4 * x, -8 * x])], body=step, ir=ir)
    step = body([helper.make_node("Add", ["h", "v"], ["next"]), helper.make_node("Identity", ["next"], ["o"])],
                [("h", f, [3]), ("v", f, [3])], [("next", f, [3]), ("o", f, [3])])
    sequence, start = draw(61, 4, 3), draw(62, 3)
    sums = start + np.cumsum(sequence, 0)
    for version in (9, 11, 16, 19, 21, 23, 24):
        add(f"Scan/{version}_sums", [start, sequence], [sums[-1], sums], body=step, num_scan_inputs=1,
            ir=10 if version > 10 else 4)
    many, starts = draw(63, 2, 4, 3), draw(64, 2, 3)
    sums = starts[:, None] + np.cumsum(many, 1)
    add("Scan/8_sums", [None, starts, many], [sums[:, -1], sums], body=step, num_scan_inputs=1)
    many, starts = draw(65, 40, 7, 3), draw(66, 40, 3)             # too many for a copy of the body each
    sums = starts[:, None] + np.cumsum(many[:, ::-1], 1)
    add("Scan/8_batch", [None, starts, many], [sums[:, -1], sums], body=step, num_scan_inputs=1, directions=[1])


def cases():
    for family in (elementwise, shapes, reductions, networks, recurrent, others, control):
        family()
    return _cases
