# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the models and data that the command tests use into a folder: models.py DIR. Standard library only.

scores.onnx   image f32[batch,1,2,2] -> scores f32[batch,5]: Flatten, MatMul; with data sets 0, 2 and 10 (batch 1, 3,
1) wrong/        the same model, a data set whose output is wrong, and one whose tolerance.txt is wide enough
pair.onnx     x f32[3], y i64[3] -> sum f32[3], twice i64[3] large.onnx    64 KiB of weights unknown.onnx  two nodes
of an operator that does not exist convs.onnx    x f32[1,16,8,8] -> y f32[1,20]: convolutions 3x3, depthwise 3x3 and
1x1, and a matrix columns.onnx  x f32[6,5] -> y f32[10]: the two largest of each column; columns/ has it with a data
set bytes.onnx    x u8[9,40] -> y i32[9,35], image u8[1,16,6,6] -> z i32[1,24,4,4]: a product and a convolution with
weights i8 layers.onnx   x f32[1,4] -> y f32[1,4]: three times a product with another matrix and Relu; layers/ has it
with a data set near/TYPE/    y = x, recorded with an error near zero: in data set 0 within what is usual for the
type, in 1 beyond reshape.onnx  x f32[6], shape i64[2] -> y: a shape that depends on an input's value;  expand.onnx: the
same without a bound on its size mismatch.onnx two matrices that cannot be multiplied, at a node "product" maps.onnx
words: map from string to f32, numbers: map from i64 to f32 -> row f32[1,4], dense string[1,n], sparse i64[1,5]
absent.onnx   weights in a file that is not there;  short.onnx: in a file of 7 bytes cut.onnx      scores.onnx without
its last 40 bytes;  text.onnx: not protobuf"""
import math
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from onnx_wire import BFLOAT16, DOUBLE, FLOAT, FLOAT16, INT8, INT32, INT64, STRING, UINT8  # noqa: E402
from onnx_wire import blob, graph, integer, model, node, tensor, type_proto, value_info  # noqa: E402

WEIGHTS = [[(3 * i + 5 * j) % 7 - 3.0 for j in range(5)] for i in range(4)]


def scores(batch):
    return [[sum(row[i] * WEIGHTS[i][j] for i in range(4)) for j in range(5)] for row in batch]


def image(row):
    return [[row[0:2], row[2:4]]]


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def data_set(folder, batch, outputs):
    write(folder / "input_0.pb", tensor("image", FLOAT, [image(row) for row in batch]))
    write(folder / "output_0.pb", tensor("scores", FLOAT, outputs))


def npy(descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def columns(root):
    x, nodes, rows = [[float((7 * i + 5 * j) % 11) for j in range(5)] for i in range(6)], [], []
    sizes = [tensor("axis", INT64, [1]), tensor("line", INT64, [6]), tensor("two", INT64, [2])]
    for c in range(5):
        sizes += [tensor(f"from{c}", INT64, [c]), tensor(f"to{c}", INT64, [c + 1])]
        nodes += [
            node("Slice", ["x", f"from{c}", f"to{c}", "axis"], [f"column{c}"]),
            node("Reshape", [f"column{c}", "line"], [f"line{c}"]),
            node("TopK", [f"line{c}", "two"], [f"top{c}", f"at{c}"])
        ]
        rows += sorted((x[i][c] for i in range(6)), reverse=True)[:2]
    nodes.append(node("Concat", [f"top{c}" for c in range(5)], ["y"], axis=0))
    write(root / "columns" / "test_data_set_0" / "input_0.pb", tensor("x", FLOAT, x))
    write(root / "columns" / "test_data_set_0" / "output_0.pb", tensor("y", FLOAT, rows))
    write(root / "columns" / "columns.onnx",
          model(graph(nodes, [value_info("x", FLOAT, [6, 5])], [value_info("y", FLOAT, [10])], sizes)))


def layers(root):
    row, nodes, weights, last = [1.0, 2.0, -1.0, 0.5], [], [], "x"
    write(root / "layers" / "test_data_set_0" / "input_0.pb", tensor("x", FLOAT, [row]))
    for layer in range(3):
        matrix = [[(3 * i + 5 * j + layer) % 7 - 3.0 for j in range(4)] for i in range(4)]
        row = [max(0.0, sum(row[i] * matrix[i][j] for i in range(4))) for j in range(4)]
        weights.append(tensor(f"w{layer}", FLOAT, matrix))
        nodes += [
            node("MatMul", [last, f"w{layer}"], [f"p{layer}"]),
            node("Relu", [f"p{layer}"], [last := "y" if layer == 2 else f"r{layer}"])
        ]
    write(root / "layers" / "test_data_set_0" / "output_0.pb", tensor("y", FLOAT, [row]))
    write(root / "layers" / "layers.onnx",
          model(graph(nodes, [value_info("x", FLOAT, [1, 4])], [value_info("y", FLOAT, [1, 4])], weights)))


SIZES = {"f32": 2.0**20, "f64": 2.0**40}  # of the largest element, so that 1e-7 does not count


def near_zero(root):
    types = {"f32": (FLOAT, 2.0**-23, 128), "f64": (DOUBLE, 2.0**-52, 128), "f16": (FLOAT16, 2.0**-10, 4),
             "bf16": (BFLOAT16, 2.0**-7, 4), "i32": (INT32, 1, 0)}
    for name, (dtype, epsilon, ulps) in types.items():
        number, folder, largest = int if name == "i32" else float, root / "near" / name, SIZES.get(name, 1.0)
        for k, share in enumerate((0.5, 2)):
            x, error = [[number(0), number(-largest)]], number(share * ulps * epsilon * largest or k)
            write(folder / f"test_data_set_{k}" / "input_0.pb", tensor("x", dtype, x))
            write(folder / f"test_data_set_{k}" / "output_0.pb", tensor("y", dtype, [[error, x[0][1]]]))
        ends = [value_info("x", dtype, [1, 2])], [value_info("y", dtype, [1, 2])]
        write(folder / "model.onnx", model(graph([node("Identity", ["x"], ["y"])], *ends)))


def main(root):
    nodes = [node("Flatten", ["image"], ["flat"]), node("MatMul", ["flat", "w"], ["scores"])]
    weights = tensor("w", FLOAT, WEIGHTS)
    text = model(
        graph(nodes, [value_info("image", FLOAT, ["batch", 1, 2, 2])], [value_info("scores", FLOAT, ["batch", 5])],
              [weights]))
    write(root / "scores.onnx", text)
    write(root / "cut.onnx", text[:-40])
    layers(root)
    columns(root)
    near_zero(root)
    write(root / "text.onnx", b"this is no model\n")
    one, three = [[0.5, 1.0, -1.0, 2.0]], [[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 1.0], [-1.0, 0.25, 0.0, 0.0]]
    data_set(root / "test_data_set_0", one, scores(one))
    data_set(root / "test_data_set_2", three, scores(three))
    data_set(root / "test_data_set_10", one, scores(one))

    write(root / "wrong" / "scores.onnx", text)
    near = [[v * 1.01 for v in row] for row in scores(one)]
    data_set(root / "wrong" / "test_data_set_0", one, near)
    data_set(root / "wrong" / "test_data_set_1", one, near)
    write(root / "wrong" / "test_data_set_1" / "tolerance.txt", b"0.05 0.01\n")
    write(root / "wrong" / "test_data_set_2" / "input_0.pb", b"\xff\xff\xff")
    write(root / "wrong" / "test_data_set_2" / "output_0.pb", b"")

    write(root / "seven.pgm", b"P5\n# a comment\n2 2\n255\n\x00\x80\xff\x40")
    write(root / "wide.pgm", b"P5 3 2 255\n\x00\x80\xff\x40\x00\x00")
    write(root / "image.npy", npy("<f4", (1, 1, 2, 2), struct.pack("<4f", *one[0])))
    write(root / "image64.npy", npy(">f8", (1, 1, 2, 2), struct.pack(">4d", *one[0])))
    write(root / "flat.npy", npy("<f4", (4,), struct.pack("<4f", *one[0])))
    write(root / "bomb.npy", npy("<f4", (1000000, 1000000, 1000000), b""))
    write(root / "image.txt", b"0.5, 1.0\n-1.0 2.0\n")
    write(root / "odd.txt", b"0.5 one\n-1.0 2.0\n")

    nodes = [node("Add", ["x", "x"], ["sum"]), node("Mul", ["y", "two"], ["twice"])]
    ends = [value_info("x", FLOAT, [3]),
            value_info("y", INT64, [3])], [value_info("sum", FLOAT, [3]),
                                           value_info("twice", INT64, [3])]
    write(root / "pair.onnx", model(graph(nodes, *ends, [tensor("two", INT64, [2])])))
    write(root / "x.txt", b"1 2.5 -3\n")
    write(root / "y.txt", b"[10, 20, 9007199254740993]\n")

    square = tensor("w", FLOAT, [[(i * j % 11 - 5.0) / 8 for j in range(128)] for i in range(128)])
    ends = [value_info("x", FLOAT, [1, 128])], [value_info("y", FLOAT, [1, 128])]
    write(root / "large.onnx", model(graph([node("MatMul", ["x", "w"], ["y"])], *ends, [square])))

    def weights(name, *shape):
        size = 1
        for n in shape:
            size *= n
        return tensor(name, FLOAT, [(i * i % 23 - 11.0) / 64 for i in range(size)], shape)

    nodes = [
        node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], group=32),
        node("Conv", ["c", "w3"], ["d"]),
        node("Flatten", ["d"], ["e"]),
        node("MatMul", ["e", "w4"], ["y"])
    ]
    ends = [value_info("x", FLOAT, [1, 16, 8, 8])], [value_info("y", FLOAT, [1, 20])]
    constants = [
        weights("w1", 32, 16, 3, 3),
        weights("w2", 32, 1, 3, 3),
        weights("w3", 24, 32, 1, 1),
        weights("w4", 24 * 64, 20)
    ]
    write(root / "convs.onnx", model(graph(nodes, *ends, constants)))
    write(root / "convs.txt", " ".join(str(i * 7 % 13 - 6) for i in range(1024)).encode())

    def small(name, *dims):
        return tensor(name, INT8, [(i * 37 + 11) % 255 - 127 for i in range(math.prod(dims))], list(dims))

    nodes = [node("MatMulInteger", ["x", "w1"], ["y"]), node("ConvInteger", ["image", "w2"], ["z"])]
    ends = [value_info("x", UINT8, [9, 40]),
            value_info("image", UINT8,
                       [1, 16, 6, 6])], [value_info("y", INT32, [9, 35]),
                                         value_info("z", INT32, [1, 24, 4, 4])]
    write(root / "bytes.onnx", model(graph(nodes, *ends, [small("w1", 40, 35), small("w2", 24, 16, 3, 3)])))
    write(root / "rows.txt", " ".join(str(i * 29 % 256) for i in range(9 * 40)).encode())
    write(root / "maps.txt", " ".join(str(i * 31 % 256) for i in range(16 * 6 * 6)).encode())

    maps = [
        blob(1, n) + blob(2, blob(5,
                                  integer(1, key) + blob(2, type_proto(FLOAT, None))))
        for n, key in (("words", STRING), ("numbers", INT64))
    ]
    nodes = [node("DictVectorizer", ["words"], ["row"], "ai.onnx.ml", string_vocabulary=["b", "a", "none", "é"]),
             node("CastMap", ["numbers"], ["dense"], "ai.onnx.ml", cast_to="TO_STRING"),
             node("CastMap", ["numbers"], ["sparse"], "ai.onnx.ml", cast_to="TO_INT64", map_form="SPARSE", max_map=5)]
    ends = maps, [
        value_info("row", FLOAT, [1, 4]),
        value_info("dense", STRING, [1, None]),
        value_info("sparse", INT64, [1, 5])
    ]
    write(root / "maps.onnx", model(graph(nodes, *ends), domains=["ai.onnx.ml"]))
    for name, text in ("word_keys", "é b zz"), ("word_values", "1.5 2 7"), ("number_keys", "3 1"), ("number_values",
                                                                                                    "2.5 4"):
        write(root / (name + ".txt"), text.encode())

    nodes = [node("Frobnicate", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Defrobnicate", ["b"], ["y"])]
    ends = [value_info("x", FLOAT, [4])], [value_info("y", FLOAT, [4])]
    write(root / "unknown.onnx", model(graph(nodes, *ends)))

    ends = [value_info("x", FLOAT, [2, 3])], [value_info("y", FLOAT, [2, 5])]
    nodes = [node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["product"]), node("Neg", ["product"], ["y"])]
    write(root / "mismatch.onnx", model(graph(nodes, *ends, [tensor("w", FLOAT, [[1.0] * 5] * 4)])))
    write(root / "short.bin", bytes(7))
    for name in "absent", "short":
        outside = tensor("w", FLOAT, [[1.0] * 5] * 3, external=(name + ".bin", 0))
        write(root / (name + ".onnx"), model(graph([node("MatMul", ["x", "w"], ["y"])], *ends, [outside])))

    ends = [value_info("x", FLOAT, [6]), value_info("shape", INT64, [2])], [value_info("y", FLOAT, [None, None])]
    write(root / "reshape" / "reshape.onnx",
          model(graph([node("Reshape", ["x", "shape"], ["r"]),
                       node("Neg", ["r"], ["y"])], *ends)))
    folder = root / "reshape" / "test_data_set_0"
    write(folder / "input_0.pb", tensor("x", FLOAT, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    write(folder / "input_1.pb", tensor("shape", INT64, [2, 3]))
    write(folder / "output_0.pb", tensor("y", FLOAT, [[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]]))

    ends = [value_info("x", FLOAT, [1]), value_info("shape", INT64, [1])], [value_info("y", FLOAT, [None])]
    write(root / "expand" / "expand.onnx", model(graph([node("Expand", ["x", "shape"], ["y"])], *ends)))
    folder = root / "expand" / "test_data_set_0"
    write(folder / "input_0.pb", tensor("x", FLOAT, [2.0]))
    write(folder / "input_1.pb", tensor("shape", INT64, [3]))
    write(folder / "output_0.pb", tensor("y", FLOAT, [2.0, 2.0, 2.0]))


main(pathlib.Path(sys.argv[1]))
