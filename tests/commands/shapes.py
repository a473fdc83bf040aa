# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models whose inputs have fixed sizes, each with constants computed from them, and data of other sizes: shapes.py DIR.

NAME/model.onnx with NAME/test_data_set_0, whose outputs are computed here; NAME/shape: what --shape is to say. With a
folder of trained models behind DIR also joined/NAME: a link to its model, and three recorded items as a batch.
Standard library only."""
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from onnx_wire import FLOAT, INT64, encode, fields, graph, integer, model, node, tensor, value_info  # noqa: E402


def numbers(*shape):
    if not shape:
        numbers.next = (numbers.next * 5 + 3) % 17
        return (numbers.next - 8) / 4
    return [numbers(*shape[1:]) for _ in range(shape[0])]


def sizes(values):
    return ([len(values)] + sizes(values[0])) if isinstance(values, list) else []


def ints(name, *values):
    return tensor(name, INT64, list(values))


def flat_():
    w = numbers(6, 2)
    x = numbers(3, 2, 3)
    y = [[sum(v * w[i][j] for i, v in enumerate(a + b)) for j in range(2)] for a, b in x]
    nodes = [node("Reshape", ["x", "to"], ["row"]), node("MatMul", ["row", "w"], ["y"])]
    return nodes, [ints("to", 1, 6), tensor("w", FLOAT, w)], [1, 2, 3], "batch,2,3", x, y


def flat_old():
    w = numbers(6, 2)
    x = numbers(3, 2, 3)
    y = [[sum(v * w[i][j] for i, v in enumerate(a + b)) for j in range(2)] for a, b in x]
    nodes = [node("Reshape", ["x"], ["row"], shape=[1, 6]), node("MatMul", ["row", "w"], ["y"])]
    return nodes, [tensor("w", FLOAT, w)], [1, 2, 3], "3,2,3", x, y, 4


def shuffled():
    x = numbers(3, 4, 2)
    nodes = [node("Reshape", ["x", "pairs"], ["a"]), node("Transpose", ["a"], ["b"], perm=[1, 0, 2]),
             node("Reshape", ["b", "halves"], ["c"]), node("Gather", ["c", "first"], ["y"], axis=0)]
    inits = [ints("pairs", 2, 2, 2), ints("halves", 2, -1, 2, 2), tensor("first", INT64, 0, [])]
    return nodes, inits, [1, 4, 2], "batch,4,2", x, [[row[0], row[2]] for row in x]


def token():
    x, c = numbers(2, 3, 2), numbers(1, 1, 2)
    nodes = [node("Concat", ["c", "x"], ["y"], axis=1)]
    return nodes, [tensor("c", FLOAT, c)], [1, 3, 2], "batch,3,2", x, [c[0] + row for row in x]


def state():
    x, w, r = numbers(2, 3, 1), 0.5, -0.25
    y = [[[0.0] for _ in range(3)] for _ in range(2)]
    for b in range(3):
        h = 0.125
        for t in range(2):
            h = y[t][b][0] = math.tanh(w * x[t][b][0] + r * h)
    nodes = [node("RNN", ["x", "w", "r", "", "", "h"], ["out"], hidden_size=1),
             node("Squeeze", ["out", "one"], ["y"])]
    inits = [tensor("w", FLOAT, [[[w]]]), tensor("r", FLOAT, [[[r]]]), tensor("h", FLOAT, [[[0.125]]]), ints("one", 1)]
    return nodes, inits, [2, 1, 1], "2,batch,1", x, y


def resized():
    x = numbers(2, 1, 3, 4)
    y = [[[[row[j // 2] for j in range(8)] for row in c for _ in range(2)] for c in item] for item in x]
    nodes = [node("Resize", ["x", "", "", "to"], ["y"], mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor")]
    return nodes, [ints("to", 1, 1, 4, 6)], [1, 1, 2, 3], "2,1,h,w", x, y


def pooled():
    """An average over the image, as large as the image again."""
    x = numbers(1, 1, 3, 4)
    mean = sum(map(sum, x[0][0])) / 12
    nodes = [node("GlobalAveragePool", ["x"], ["a"]), node("Resize", ["a", "", "", "to"], ["b"], mode="nearest"),
             node("Concat", ["x", "b"], ["y"], axis=1)]
    return nodes, [ints("to", 1, 1, 2, 3)], [1, 1, 2, 3], "1,1,3,4", x, [[x[0][0], [[mean] * 4] * 3]]


def whole():
    x = numbers(1, 4, 3)
    nodes = [node("Slice", ["x", "from", "to", "axis"], ["y"])]
    inits = [ints("from", 1), ints("to", 3), ints("axis", 1)]
    return nodes, inits, [1, 3, 3], "1,4,3", x, [x[0][1:]]


def same_rows():
    x, c = numbers(3, 2), numbers(2)
    nodes = [node("Add", ["x", "c"], ["y"])]
    return nodes, [tensor("c", FLOAT, [c, c])], [2, 2], "batch,2", x, [[a + b for a, b in zip(row, c)] for row in x]


def unfolded():
    """Two axes in one, and apart again."""
    x = numbers(1, 3, 5)
    nodes = [node("Reshape", ["x", "line"], ["a"]), node("Neg", ["a"], ["b"]), node("Reshape", ["b", "image"], ["y"])]
    return (nodes, [ints("line", 1, 16), ints("image", 1, 4, 4)], [1, 4, 4], "1,3,5", x,
            [[[-v for v in row] for row in x[0]]])


def halves():
    x = numbers(1, 6)
    nodes = [node("Split", ["x", "two"], ["a", "b"], axis=1), node("Sub", ["a", "b"], ["y"])]
    return nodes, [ints("two", 2, 2)], [1, 4], "1,6", x, [[x[0][i] - x[0][i + 3] for i in range(3)]]


def expanded():
    x = numbers(3, 1)
    nodes = [node("Expand", ["x", "to"], ["y"])]
    return nodes, [ints("to", 2, 2)], [2, 1], "3,1", x, [[v[0], v[0]] for v in x]


# What cannot be told: a diagnostic.
def windows():
    nodes = [node("Reshape", ["x", "to"], ["y"])]
    return nodes, [ints("to", 1, 4, 7, 2)], [1, 28, 2], "1,35,2", numbers(1, 35, 2), numbers(1, 5, 7, 2)


def moved():
    nodes = [node("Reshape", ["x", "to"], ["y"])]
    return nodes, [ints("to", 3, 1, 2)], [1, 3, 2], "2,3,2", numbers(2, 3, 2), numbers(3, 2, 2)


def dropped():
    nodes = [node("Squeeze", ["x", "at"], ["y"])]
    return nodes, [ints("at", 0)], [1, 2], "2,2", numbers(2, 2), numbers(2)


def parts():
    nodes = [node("Split", ["x", "two"], ["y", "z"], axis=1)]
    return nodes, [ints("two", 1, 3)], [1, 4], "1,6", numbers(1, 6), numbers(1, 1)


def first():
    """Item 0 of a batch of one is all of it: a warning."""
    x = numbers(2, 3)
    nodes = [node("Gather", ["x", "zero"], ["y"], axis=0)]
    return nodes, [tensor("zero", INT64, 0, [])], [1, 3], "2,3", x, x[0]


CASES = (flat_, flat_old, shuffled, token, state, resized, pooled, whole, same_rows, unfolded, halves, expanded,
         windows, moved, dropped, parts, first)


def write(folder, nodes, inits, dims, shape, x, y, opset=18):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    ends = [value_info("x", FLOAT, dims)], [value_info("y", FLOAT, [None] * len(sizes(y)))]
    (folder / "model.onnx").write_bytes(model(graph(nodes, *ends, inits), opset=opset))
    (folder / "shape").write_text(f"x={shape}\n")
    (data / "input_0.pb").write_bytes(tensor("x", FLOAT, x))
    (data / "output_0.pb").write_bytes(tensor("y", FLOAT, y))


# ---------------------------------------------------------------- trained models: model, input and its sizes
TRAINED = (("cifar10_samplenet_omz", "data=batch,3,32,32"), ("mnist_cnn_cntk8", "Input3=batch,1,28,28"),
           ("mnist_gru_gapsdk", "input.1=batch,28,28"), ("wakeword_hey_snips", "inputs_0=batch,16,96"),
           ("rl_go1_locomotion", "obs=batch,48"), ("extra_cct_vit_deeploy", "input=batch,3,32,32"),
           ("mnist_burn_bn", "input.1=batch,1,28,28"), ("micro_kws_fp32", "serving_default_input:0=batch,1960"))


def raw(message):
    """A TensorProto's elements, f32; small ones may stand in float_data."""
    data = {n: v for n, v in fields(message)}
    return data.get(9) or data[4]


def joined(messages):
    """TensorProtos of one item each as one of them all."""
    parts = list(fields(messages[0]))
    dims = [v for n, v in parts if n == 1]
    head = b"".join(integer(1, d) for d in [len(messages)] + dims[1:])
    rest = b"".join(encode(n, v) for n, v in parts if n not in (1, 4, 9))
    return head + rest + encode(9, b"".join(map(raw, messages)))


def join_recorded(root, models):
    for name, shape in TRAINED:
        sets = sorted((models / name).glob("test_data_set_*"))[:3]
        if len(sets) < 2:
            continue
        data = root / "joined" / name / "test_data_set_0"
        data.mkdir(parents=True)
        os.symlink((models / name / "model.onnx").resolve(), data.parent / "model.onnx")
        (data.parent / "shape").write_text(shape + "\n")
        for file in sets[0].glob("*.pb"):
            (data / file.name).write_bytes(joined([(s / file.name).read_bytes() for s in sets]))


def main(root, models=None):
    numbers.next = 1
    for case in CASES:
        write(pathlib.Path(root) / case.__name__.strip("_"), *case())
    if models and pathlib.Path(models).is_dir():
        join_recorded(pathlib.Path(root), pathlib.Path(models))


if __name__ == "__main__":
    main(*sys.argv[1:])
