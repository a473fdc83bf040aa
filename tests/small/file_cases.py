# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models of what a file can hold beside plain nodes: external data, functions, bodies, training, images.

As cases.py says: each function makes one Model."""
import math

from onnx_wire import (BOOL, FLOAT, INT64, UINT8, attribute, blob, flatten, function, graph, integer, node, pack,
                       tensor, value_info)
from small_model import Model, build, nest, numbers


def external_data():
    w = numbers(161, 6, 4)
    x = numbers(162, 2, 6)
    out = build((2, 4), lambda i, j: sum(x[i][k] * w[k][j] for k in range(6)))
    return Model([node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [2, 6])], [("y", FLOAT, [2, 4])], [([x], [out])],
                 [tensor("w", FLOAT, w, external=("weights.bin", 64))],
                 files=[("weights.bin", bytes(64) + pack(FLOAT,
                                                         flatten(w)[0]))])


NAMES = ("linux unix typeof int wchar_t ws weights INFINITY NAN INT64_MIN CHAR_BIT M_PI BURN_KERNEL BURN_VF_LANES main "
         "NULL size_t uint8_t int64_t ptrdiff_t memcpy floorf fmaxf expf isnan names_of_c_model names_of_c_run "
         "names_of_c_k0_add names-of-c names.of.c work v0 i0 t0 acc scratch burn_f16 burn_model restrict new class k "
         "threads").split()


def names_of_c():
    """Inputs and outputs that have the names of what C, its headers, compilers and generated code have; the kernels use
    some of these."""
    x = [-1.5, 0.25, 300.0]
    nodes, ends = [], []
    for i, name in enumerate(NAMES):
        nodes += [node("Floor", [name], [f"f{i}"]), node("Exp", ["zeros"], [f"e{i}"]),
                  node("Clip", [f"f{i}", "", "most"], [f"c{i}"]), node("Cast", [f"c{i}"], [f"b{i}"], to=INT64),
                  node("Cast", [f"b{i}"], [f"g{i}"], to=FLOAT), node("Add", [f"g{i}", f"e{i}"], [f"{name}/"])]
        ends.append((name, FLOAT, [3]))
    out = [min(math.floor(v), 200.0) + 1.0 for v in x]
    return Model(nodes, [*ends, ("zeros", FLOAT, [3])], [(f"{name}/", FLOAT, [3]) for name in NAMES],
                 [([x] * len(NAMES) + [[0.0] * 3], [out] * len(NAMES))], [tensor("most", FLOAT, 200.0)])


def model_function():
    """A function of the model's own, called twice with different attributes."""
    x = numbers(171, 7)
    scaled = blob(5, blob(1, "value_float") + blob(21, "by") + integer(20, 1))
    body = [
        node("Constant", [], ["k"]) + scaled,
        node("Mul", ["a", "k"], ["m"]),
        node("Sigmoid", ["m"], ["s"]),
        node("Mul", ["a", "s"], ["r"])
    ]
    calls = [
        node("ScaledSwish", ["x"], ["t"], domain="own", by=2.0),
        node("ScaledSwish", ["t"], ["y"], domain="own", by=0.5)
    ]

    def swish(v, k):
        return v / (1 + math.exp(-k * v))
    return Model(calls, [("x", FLOAT, [7])], [("y", FLOAT, [7])], [([x], [[swish(swish(v, 2), 0.5) for v in x]])],
                 functions=[function("ScaledSwish", "own", ["a"], ["r"], body, ["by"])], domains=["own"])


def shape_arithmetic():
    """What exporters write for x.view(x.shape[0], -1) and for x + arange(n): all of it folds away."""
    x = numbers(181, 3, 2, 4)
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "first"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]),
        node("Shape", ["r"], ["rs"]),
        node("Gather", ["rs", "one"], ["w"], axis=0),
        node("Range", ["zero", "w", "one"], ["i"]),
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Add", ["r", "f"], ["y"])
    ]
    out = [[v + i for i, v in enumerate(flatten(m)[0])] for m in x]
    return Model(
        nodes, [("x", FLOAT, [3, 2, 4])], [("y", FLOAT, [3, 8])], [([x], [out])],
        [tensor("zero", INT64, 0),
         tensor("one", INT64, 1),
         tensor("first", INT64, [0]),
         tensor("rest", INT64, [-1])])


def image_decoder():
    """Images of sizes that only their files tell: colors reversed, and their mean."""
    nodes = [node("ImageDecoder", ["file"], ["pixels"], pixel_format="BGR"), node("Cast", ["pixels"], ["f"], to=FLOAT),
             node("ReduceMean", ["f"], ["mean"], axes=[0, 1], keepdims=0)]
    sets = []
    for h, w in (3, 5), (1, 1), (7, 2):
        pixels = build((h, w, 3), lambda y, x, c: (y * 31 + x * 17 + c * 50 + h) % 256)
        reversed_ = [[p[::-1] for p in row] for row in pixels]
        mean = [sum(p[c] for row in reversed_ for p in row) / (h * w) for c in range(3)]
        flat, _ = flatten(pixels)
        sets.append(([list(f"P6 {w} {h} 255\n".encode() + bytes(flat))], [reversed_, mean]))
    return Model(nodes, [("file", UINT8, ("bytes", ))], [("pixels", UINT8, ("height", "width", 3)),
                                                         ("mean", FLOAT, (3, ))], sets, opset=20)


# ---------------------------------------------------------------- control flow
def branch():
    """If on an input: control flow that has to stay in the code."""
    x = numbers(201, 4)
    out = value_info("o", FLOAT, [4])
    then = graph([node("Exp", ["x"], ["o"])], [], [out], name="then")
    other = graph([node("Neg", ["x"], ["o"])], [], [out], name="else")
    nodes = [
        node("If", ["c"], ["y"]) + blob(5, attribute("then_branch", ("graph", then))) +
        blob(5, attribute("else_branch", ("graph", other)))
    ]
    return Model(nodes, [("c", BOOL, []), ("x", FLOAT, [4])], [("y", FLOAT, [4])],
                 [([True, x], [[math.exp(v) for v in x]]), ([False, x], [[-v for v in x]])])


def branch_captures():
    """What a branch copies from outside: a view, a constant, zeros, and parts of a concatenation."""
    x, k, w = numbers(202, 2, 3), numbers(203, 2, 2), numbers(204, 3, 2)
    outs = [value_info("o", FLOAT, [5, 2]), value_info("p", FLOAT, [3, 2])]
    then = graph([node("Concat", ["t", "k"], ["o"], axis=0), node("Identity", ["t"], ["p"])], [], outs, name="then")
    other = graph([node("Identity", ["zeros"], ["o"]), node("Identity", ["w"], ["p"])], [], outs, name="else")
    nodes = [
        node("Transpose", ["x"], ["t"]),
        node("If", ["c"], ["y", "q"], then_branch=("graph", then), else_branch=("graph", other)),
        node("Add", ["q", "t"], ["z"])
    ]
    t = build((3, 2), lambda i, j: x[j][i])
    zeros = build((5, 2), lambda *_: 0.0)

    def sets(y, q):
        return [y, build((3, 2), lambda i, j: q[i][j] + t[i][j])]
    return Model(nodes, [("c", BOOL, []), ("x", FLOAT, [2, 3])], [("y", FLOAT, [5, 2]), ("z", FLOAT, [3, 2])],
                 [([True, x], sets(t + k, t)), ([False, x], sets(zeros, w))],
                 [tensor("k", FLOAT, k), tensor("w", FLOAT, w), tensor("zeros", FLOAT, zeros)])


def loop_while():
    """No trip count, a condition computed in the body, and carried values that change places."""
    def run(a, b, limit):
        while True:
            a, b = b, [u + v for u, v in zip(a, b)]
            if not max(b) < limit:
                return [a, b]

    body = graph([
        node("Add", ["a", "b"], ["s"]),
        node("Identity", ["b"], ["t"]),
        node("ReduceMax", ["s"], ["m"], keepdims=0),
        node("Less", ["m", "limit"], ["more"])
    ], [
        value_info("i", INT64, []),
        value_info("go", BOOL, []),
        value_info("a", FLOAT, [4]),
        value_info("b", FLOAT, [4])
    ], [value_info("more", BOOL, []),
        value_info("t", FLOAT, [4]),
        value_info("s", FLOAT, [4])], name="body")
    x, y = numbers(205, 4, low=0.1), numbers(206, 4, low=0.1)
    return Model([node("Loop", ["", "", "x", "y"], ["p", "q"], body=("graph", body))],
                 [("x", FLOAT, [4]), ("y", FLOAT, [4]), ("limit", FLOAT, [])], [("p", FLOAT, [4]), ("q", FLOAT, [4])],
                 [([x, y, limit], run(x, y, limit)) for limit in (0.0, 5.0, 200.0)])


def loop_cache():
    """Rows are written into a carried table at the iteration's number and read back; the carried values are stacked
    too."""
    n, w = 20, 6
    x, row = numbers(207, n, w), numbers(208, w)
    body = graph([
        node("Unsqueeze", ["i", "axis"], ["u"]),
        node("Unsqueeze", ["u", "axis"], ["at"]),
        node("Unsqueeze", ["r", "axis"], ["update"]),
        node("ScatterND", ["table", "at", "update"], ["next"]),
        node("ReduceSum", ["next", "axis"], ["sum"], keepdims=0),
        node("Tanh", ["sum"], ["q"]),
        node("Identity", ["go"], ["on"]),
        node("Neg", ["r"], ["before"])
    ], [
        value_info("i", INT64, []),
        value_info("go", BOOL, []),
        value_info("table", FLOAT, [n, w]),
        value_info("r", FLOAT, [w])
    ], [
        value_info("on", BOOL, []),
        value_info("next", FLOAT, [n, w]),
        value_info("q", FLOAT, [w]),
        value_info("before", FLOAT, [w])
    ], name="body")
    table, rows, r = [list(line) for line in x], [], row
    for i in range(n):
        table[i] = r
        rows.append([-v for v in r])
        r = [math.tanh(sum(table[k][j] for k in range(n))) for j in range(w)]
    return Model([node("Loop", ["n", "", "x", "row"], ["last", "r", "rows"], body=("graph", body))],
                 [("x", FLOAT, [n, w]), ("row", FLOAT, [w])], [("last", FLOAT, [n, w]),
                                                               ("rows", FLOAT, [n, w])], [([x, row], [table, rows])],
                 [tensor("n", INT64, n), tensor("axis", INT64, [0])])


def scan_backwards():
    """A symbolic length, the input read from its end along axis 1, the output written from its end along the last."""
    n, w = 2, 3
    body = graph([node("Add", ["h", "x"], ["s"]),
                  node("Tanh", ["s"], ["t"]),
                  node("Neg", ["t"], ["o"])],
                 [value_info("h", FLOAT, [n, w]), value_info("x", FLOAT, [n, w])],
                 [value_info("t", FLOAT, [n, w]), value_info("o", FLOAT, [n, w])], name="body")

    def run(x, h):
        steps = []
        for t in reversed(range(len(x[0]))):
            h = build((n, w), lambda i, j: math.tanh(h[i][j] + x[i][t][j]))
            steps.insert(0, h)
        return [h, build((n, w, len(steps)), lambda i, j, t: -steps[t][i][j])]
    sets = []
    for length in (1, 5, 30):
        x, h = numbers(209, n, length, w), numbers(210, n, w)
        sets.append(([h, x], run(x, h)))
    scan = node("Scan", ["h", "x"], ["last", "y"], body=("graph", body), num_scan_inputs=1, scan_input_axes=[1],
                scan_input_directions=[1], scan_output_axes=[-1], scan_output_directions=[1])
    return Model([scan], [("h", FLOAT, [n, w]), ("x", FLOAT, [n, "length", w])], [("last", FLOAT, [n, w]),
                                                                                  ("y", FLOAT, [n, w, "length"])],
                 sets)


# ---------------------------------------------------------------- training
TRAINING = "ai.onnx.preview.training"


def gradients():
    """Of y = x^3: the first and second derivative, at x and at other values; of y = h x with h = x + 1 taken as
    independent of x."""
    x, u = [0.5, -1.5, 2.0], [3.0, 0.25, -1.0]
    nodes = [node("Mul", ["x", "x"], ["x2"]), node("Mul", ["x2", "x"], ["y"])]
    nodes += [node("Gradient", [at], [out], TRAINING, xs=["x"], y=y) for at, out, y in
              (("x", "dy", "y"), ("x", "ddy", "dy"), ("u", "dy_u", "y"), ("u", "ddy_u", "dy"))]
    nodes += [node("Add", ["x", "one"], ["h"]), node("Mul", ["h", "u"], ["hu"]), node("Mul", ["hu", "x"], ["z"]),
              node("Gradient", ["h", "x", "u"], ["dh", "dx"], TRAINING, xs=["h", "x"], zs=["u"], y="z")]
    out = [[3 * v * v for v in x], [6 * v for v in x], [3 * v * v for v in u], [6 * v for v in u],
           [v * w for v, w in zip(x, u)], [(v + 1) * w for v, w in zip(x, u)]]
    return Model(nodes, [("x", FLOAT, [3]),
                         ("u", FLOAT, [3])], [(n, FLOAT, [3]) for n in ("dy", "ddy", "dy_u", "ddy_u", "dh", "dx")],
                 [([x, u], out)], [tensor("one", FLOAT, 1.0)], domains=[TRAINING])


def optimizers():
    """A step of each of ONNX's optimizers on two tensors of different shapes, at the first update and at a later
    one."""
    shapes = ((2, 3), (4,))
    rate, norm, decay, eps, a, b, post = 0.1, 0.01, 0.3, 1e-3, 0.9, 0.7, 0.05
    names = [f"{k}{i}" for k in "xgvh" for i in range(2)]
    steps = {
        "Adagrad": ("xgh", "xh", dict(norm_coefficient=norm, decay_factor=decay, epsilon=eps)),
        "Adam": ("xgvh", "xvh", dict(norm_coefficient=norm, norm_coefficient_post=post, alpha=a, beta=b, epsilon=eps)),
        "Momentum": ("xgv", "xv", dict(norm_coefficient=norm, alpha=a, beta=b, mode="standard")),
        "Nesterov": ("xgv", "xv", dict(norm_coefficient=norm, alpha=a, beta=b, mode="nesterov"))
    }

    def step(which, t, x, g, v, h):
        g = norm * x + g
        if which == "Adagrad":
            h = h + g * g
            return [x - rate / (1 + t * decay) * g / (math.sqrt(h) + eps), h]
        if which == "Adam":
            v, h = a * v + (1 - a) * g, b * h + (1 - b) * g * g
            r = rate * math.sqrt(1 - b ** t) / (1 - a ** t) if t else rate
            return [(1 - post) * (x - r * v / (math.sqrt(h) + eps)), v, h]
        v = a * v + (b if t else 1) * g
        return [x - rate * (g + a * v if which == "Nesterov" else v), v]
    nodes, outputs, sets = [], [], []
    for which, (ins, outs, attributes) in steps.items():
        made = [f"{which}_{k}{i}" for k in outs for i in range(2)]
        nodes.append(
            node("Momentum" if which == "Nesterov" else which, ["r", "t"] + [f"{k}{i}" for k in ins for i in range(2)],
                 made, TRAINING, **attributes))
        outputs += [(n, FLOAT, list(shapes[j % 2])) for j, n in enumerate(made)]
    for t in (0, 3):
        values = [numbers(220 + j, *shapes[j % 2], low=0.1 if j > 3 else -1.0) for j in range(8)]
        results = []
        for which, (_, outs, _) in steps.items():
            each = [[step(which, t, *e) for e in zip(*(flatten(values[2 * k + i])[0] for k in range(4)))]
                    for i in range(2)]
            results += [nest([e[k] for e in each[i]], shapes[i]) for k in range(len(outs)) for i in range(2)]
        sets.append(([rate, t] + values, results))
    inputs = [("r", FLOAT, []), ("t", INT64, [])] + [(n, FLOAT, list(shapes[j % 2])) for j, n in enumerate(names)]
    return Model(nodes, inputs, outputs, sets, domains=[TRAINING])


ALL = (external_data, names_of_c, model_function, shape_arithmetic, image_decoder, branch, branch_captures,
       loop_while, loop_cache, scan_backwards, gradients, optimizers)
