# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models with sequences and optionals.

As cases.py says: each function makes one Model."""
from onnx_wire import BOOL, FLOAT, INT64, STRING, graph, node, tensor, value_info
from small_model import Model, build, numbers, relu


def sequence_positions():
    """A sequence of any length, elements of one shape; the position is known when the program runs."""
    nodes = [
        node("SequenceAt", ["x", "p"], ["y"]),
        node("SequenceErase", ["x", "p"], ["rest"]),
        node("ConcatFromSequence", ["rest"], ["z"], axis=0),
        node("Neg", ["y"], ["minus"]),
        node("SequenceInsert", ["x", "minus", "p"], ["w"]),
        node("SequenceLength", ["w"], ["n"])
    ]
    sets = []
    for count, p in (3, 1), (2, -1), (4, 3):
        x = [numbers(80 + 10 * count + i, 2, 3) for i in range(count)]
        at = p % count
        minus = build((2, 3), lambda i, j: -x[at][i][j])
        sets.append(
            ([x, p],
             [x[at], [row for i, e in enumerate(x) if i != at for row in e], x[:at] + [minus] + x[at:], count + 1]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", several, (2, "k")), ("p", INT64, ())], [("y", FLOAT, (2, 3)), ("z", FLOAT, (None, 3)),
                                                                       ("w", several, None), ("n", INT64, ())], sets)


def sequence_ragged():
    """Elements of different shapes, mapped, with a tensor that is the same for all."""
    body = graph(
        [node("Mul", ["e", "t"], ["m"]), node("ReduceSum", ["m"], ["s"], keepdims=0)],
        [value_info("e", FLOAT, ("k", )), value_info("t", FLOAT, (1, ))],
        [value_info("m", FLOAT, ("k", )), value_info("s", FLOAT, ())], name="body")
    nodes = [node("SequenceMap", ["x", "t"], ["y", "sums"], body=("graph", body))]
    sets = []
    for lengths in (4, 1, 2), (), (3,):
        x, t = [numbers(90 + n, n) for n in lengths], [1.5]
        y = [[v * 1.5 for v in e] for e in x]
        sets.append(([x, t], [y, [sum(e) for e in y]]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", several, ("k", )), ("t", FLOAT, (1, ))], [("y", several, ("k", )),
                                                                         ("sums", several, ())], sets)


def sequence_grown():
    """A loop over a sequence that makes another one, beside a sum that it carries and numbers that it stacks."""
    body = graph([
        node("SequenceAt", ["x", "i"], ["e"]),
        node("Add", ["sum", "e"], ["sum_out"]),
        node("Mul", ["e", "e"], ["square"]),
        node("SequenceInsert", ["grown", "square"], ["grown_out"]),
        node("ReduceMax", ["e"], ["top"], keepdims=0),
        node("Identity", ["go"], ["go_out"])
    ], [
        value_info("i", INT64, ()),
        value_info("go", BOOL, ()),
        value_info("grown", ("sequence", FLOAT), None),
        value_info("sum", FLOAT, (3, ))
    ], [
        value_info("go_out", BOOL, ()),
        value_info("grown_out", ("sequence", FLOAT), None),
        value_info("sum_out", FLOAT, (3, )),
        value_info("top", FLOAT, ())
    ], name="body")
    nodes = [
        node("SequenceLength", ["x"], ["n"]),
        node("SequenceEmpty", [], ["none"], dtype=FLOAT),
        node("Loop", ["n", "", "none", "zero"], ["y", "s", "tops"], body=("graph", body)),
        node("ConcatFromSequence", ["y"], ["all"], axis=1, new_axis=1)
    ]
    sets = []
    for count in 3, 1, 20:
        x = [numbers(200 + 30 * count + i, 3) for i in range(count)]
        y = [[v * v for v in e] for e in x]
        sets.append(([x], [y, [sum(c) for c in zip(*x)], [max(e) for e in x], [list(c) for c in zip(*y)]]))
    zero = tensor("zero", FLOAT, [0.0] * 3)
    return Model(nodes, [("x", ("sequence", FLOAT), (3, ))], [("y", ("sequence", FLOAT), None), ("s", FLOAT, (3, )),
                                                              ("tops", FLOAT, (None, )), ("all", FLOAT, (3, None))],
                 sets, initializers=[zero])


def sequence_branches():
    """Which of two sequences it is, is known when the program runs."""
    def branch(name, ops):
        nodes = [node(op, ["x"], [f"{name}{i}"])
                 for i, op in enumerate(ops)] + [node("SequenceConstruct", [f"{name}0", f"{name}1"], [name])]
        return ("graph", graph(nodes, [], [value_info(name, ("sequence", FLOAT), None)], name=name))

    nodes = [
        node("If", ["c"], ["y"], then_branch=branch("yes", ("Neg", "Abs")),
             else_branch=branch("no", ("Relu", "Identity")))
    ]
    x = numbers(97, 5)
    sets = [([True, x], [[[-v for v in x], [abs(v) for v in x]]]), ([False, x], [[[relu(v) for v in x], x]])]
    return Model(nodes, [("c", BOOL, ()), ("x", FLOAT, (5,))], [("y", ("sequence", FLOAT), None)], sets)


def sequence_ragged_positions():
    """Elements of different shapes, at a position that is known when the program runs."""
    nodes = [
        node("SequenceAt", ["x", "p"], ["y"]),
        node("SequenceErase", ["x", "p"], ["rest"]),
        node("ConcatFromSequence", ["rest"], ["z"], axis=0),
        node("SequenceInsert", ["x", "v", "p"], ["w"])
    ]
    sets = []
    v = numbers(500, 1, 2)
    for p in 1, -1, 0:
        x = [numbers(501 + n, n, 2) for n in (2, 3, 1)]
        at = p % 3
        sets.append(([x, v, p], [x[at], [row for i, e in enumerate(x) if i != at for row in e], x[:at] + [v] + x[at:]]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", several, (None, 2)), ("v", FLOAT, (1, 2)), ("p", INT64, ())],
                 [("y", FLOAT, (None, 2)), ("z", FLOAT, (None, 2)), ("w", several, (None, 2))], sets)


def sequence_unequal_branches():
    """Sequences of another length in each branch."""
    def branch(name, ops):
        nodes = [node(op, ["x"], [f"{name}{i}"]) for i, op in enumerate(ops)]
        nodes.append(
            node("SequenceConstruct", [f"{name}{i}" for i in range(len(ops))], [name]
                 ) if ops else node("SequenceEmpty", [], [name], dtype=FLOAT))
        return ("graph", graph(nodes, [], [value_info(name, ("sequence", FLOAT), None)], name=name))

    nodes = [
        node("If", ["c"], ["y"], then_branch=branch("yes", ("Neg", "Abs", "Relu")),
             else_branch=branch("no", ("Identity", ))),
        node("SequenceLength", ["y"], ["n"]),
        node("If", ["c"], ["z"], then_branch=branch("some", ("Abs", "Neg")), else_branch=branch("none", ()))
    ]
    x = numbers(96, 5)
    absolute, minus = [abs(v) for v in x], [-v for v in x]
    sets = [([True, x], [[minus, absolute, [relu(v) for v in x]], 3, [absolute, minus]]), ([False, x], [[x], 1, []])]
    return Model(nodes, [("c", BOOL, ()), ("x", FLOAT, (5, ))], [("y", ("sequence", FLOAT), None), ("n", INT64, ()),
                                                                 ("z", ("sequence", FLOAT), None)], sets)


def sequence_split():
    """Parts whose sizes the program computes, and single rows of an axis whose size it is told."""
    nodes = [
        node("SplitToSequence", ["x", "sizes"], ["parts"], axis=0),
        node("SequenceInsert", ["parts", "sum"], ["more"]),
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("SplitToSequence", ["x"], ["rows"], axis=0, keepdims=0),
        node("ConcatFromSequence", ["rows"], ["again"], axis=0)
    ]
    nodes = nodes[:1] + nodes[2:3] + nodes[1:2] + nodes[3:]
    sets = []
    for a, b in (2, 3), (4, 1):
        x = [numbers(400 + 10 * a + i, 2) for i in range(a + b)]
        sets.append(([x, [a, b]], [[x[:a], x[a:], sum(map(sum, x))], x, [v for row in x for v in row]]))
    several = ("sequence", FLOAT)
    return Model(nodes, [("x", FLOAT, ("rows", 2)), ("sizes", INT64, (2, ))], [("more", several, None),
                                                                               ("rows", several, (2, )),
                                                                               ("again", FLOAT, (None, ))], sets)


def sequence_strings():
    """Sequences of strings, at a position that is known when the program runs."""
    nodes = [
        node("SequenceAt", ["x", "p"], ["y"]),
        node("StringConcat", ["y", "y"], ["twice"]),
        node("SequenceInsert", ["x", "twice", "p"], ["z"]),
        node("ConcatFromSequence", ["z"], ["all"], axis=0)
    ]
    sets = []
    for p, x in (1, [["a", "bc"], ["", "def"]]), (-1, [["\u00e4", "x"], ["y", "z"], ["long", "longer"]]):
        y, at = x[p], p % len(x)
        z = x[:at] + [[v + v for v in y]] + x[at:]
        sets.append(([x, p], [y, z, sum(z, [])]))
    several = ("sequence", STRING)
    return Model(nodes, [("x", several, (2, )), ("p", INT64, ())], [("y", STRING, (2, )), ("z", several, (2, )),
                                                                    ("all", STRING, (None, ))], sets, opset=20)


def optional_ends():
    """Optional inputs that are there or not, and what is made of them."""
    yes = graph([node("OptionalGetElement", ["o"], ["inside"])], [], [value_info("inside", FLOAT, (3,))], name="yes")
    no = graph([node("Neg", ["x"], ["outside"])], [], [value_info("outside", FLOAT, (3,))], name="no")
    nodes = [
        node("OptionalHasElement", ["o"], ["has"]),
        node("If", ["has"], ["y"], then_branch=("graph", yes), else_branch=("graph", no)),
        node("Identity", ["o"], ["same"]),
        node("OptionalHasElement", ["s"], ["has_s"])
    ]
    x, o = numbers(98, 3), numbers(99, 3)
    sets = [([x, o, [[1, 2], [3]]], [o, o, True]), ([x, None, None], [[-v for v in x], None, False])]
    maybe = ("optional", FLOAT)
    return Model(nodes, [("x", FLOAT, (3,)), ("o", maybe, (3,)), ("s", ("optional", ("sequence", INT64)), (None,))],
                 [("y", FLOAT, (3,)), ("same", maybe, (3,)), ("has_s", BOOL, ())], sets)


ALL = (sequence_positions, sequence_ragged, sequence_grown, sequence_branches, sequence_ragged_positions,
       sequence_unequal_branches, sequence_split, sequence_strings, optional_ends)
