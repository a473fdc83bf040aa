# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests of this folder look at: a model whose names are meant to break out of where they are printed, with a
body in a body."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from onnx_wire import BOOL, FLOAT, graph, model, node, tensor, value_info  # noqa: E402

SCRIPT = "</script><script>document.title='owned'</script>"
QUOTES = "\"q'\\ &amp; <!-- \\N"
LETTERS = "Größe \u4e2d\u6587 \u2028 \U0001f600"


def branch(op, result):
    return "graph", graph([node(op, ["a"], [result])], [], [value_info(result, FLOAT, [4])])


def hostile():
    """x f32[4], c bool -> (if c then exp(relu(x)) * w else, if c then neg, else abs) of the same."""
    inner = node("If", ["c"], ["inner"], then_branch=branch("Neg", "n"), else_branch=branch("Abs", "b"))
    nodes = [
        node("Relu", [SCRIPT], ["a0"]),
        node("Mul", ["a0", QUOTES], ["a"]),
        node("If", ["c"], [LETTERS], then_branch=branch("Exp", "e"),
             else_branch=("graph", graph([inner], [], [value_info("inner", FLOAT, [4])]))),
    ]
    ends = [value_info(SCRIPT, FLOAT, [4]), value_info("c", BOOL, [])], [value_info(LETTERS, FLOAT, [4])]
    return model(graph(nodes, *ends, [tensor(QUOTES, FLOAT, [1.0, 2.0, 3.0, 4.0])], name=SCRIPT))
