# SPDX-License-Identifier: MIT OR Apache-2.0
"""Hostile files that are written by hand: what each is refused for.

cases() gives (name, bytes of the model, other files beside it by name, exit status, what the diagnostic says as a
regular expression). What a file may hold that is not refused stands here too, with status 0; None: any status."""
import pathlib
import re

import onnx_wire as w

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "compiler" / "import" / "onnx"
ROW = re.compile(r'^ONNX\( *(\w+), *"([^"]*)", *(\d+), *(\d+), *(\d+), *(\w+), *(\d+), *(\w+), *(\w+),', re.M)
INVALID, LIMIT = 1, 3

_cases = []


def case(name, model, status, says="", files=None):
    _cases.append((name, model, files or {}, status, says))


def graph(nodes, inputs, outputs, initializers=(), opset=18, **more):
    infos = [[w.value_info(n, t, d) for n, t, d in ends] for ends in (inputs, outputs)]
    return w.model(w.graph(nodes, *infos, initializers), opset=opset, **more)


def one(op, inputs, outputs, shape=(2, 3), opset=18, domain="", dtype=w.FLOAT, version=1, constants=(), **attributes):
    """A model of one node whose inputs all have that shape; constants: tensors of inputs that are given here."""
    given = {name for name, _ in constants}
    ends = [(n, dtype, list(shape)) for n in dict.fromkeys(inputs) if n and n not in given]
    return graph([w.node(op, inputs, outputs, domain=domain, **attributes)], ends, [(outputs[0], dtype, None)],
                 [t for _, t in constants], opset, domains=[(domain, version)] if domain else [])


# ---------------------------------------------------------------- how many inputs and outputs
def counts():
    """Every row of the table, in its first and its last version, with one input or output too few and too many."""
    for op, domain, since, until, in_least, in_most, out_least, out_most in table():
        for version in sorted({since, until}):
            def at(n_in, n_out):
                return one(op, [f"x{i}" for i in range(n_in)], [f"y{i}" for i in range(n_out)],
                           opset=28 if domain else version, domain=domain, version=version)

            name = f"counts/{domain or 'ai.onnx'}.{op}-{version}"
            for what, (least, most) in (("input", (in_least, in_most)), ("output", (out_least, out_most))):
                for n in (least - 1, most + 1 if most is not None else -1):
                    if n < 0 or (what == "output" and n == 0):
                        continue
                    few, bound = n < least, least if n < least else most
                    n_in, n_out = (n, max(out_least, 1)) if what == "input" else (in_least, n)
                    case(f"{name}_{n}_{what}s", at(n_in, n_out), INVALID,
                         rf"at {'least' if few else 'most'} {bound} {what}s? in version {version}, this node has {n}$")


def table():
    rows = "".join((SOURCE / name).read_text() for name in ("onnx_ops.def", "onnx_ms_ops.def"))
    for m in ROW.finditer(rows):
        yield m[1], m[2], *(None if n == "MANY" else int(n) for n in m.groups()[2:8])


def absent():
    """Every operator without one of the inputs that it must have: refused, or another meaning, but no end of burncc."""
    for op, domain, _, version, n_in, _, n_out, _ in table():
        for i in range(n_in):
            names = [f"x{k}" if k != i else "" for k in range(n_in)]
            model = one(op, names, [f"y{k}" for k in range(n_out or 1)], opset=28 if domain else version,
                        domain=domain, version=version)
            case(f"absent/{domain or 'ai.onnx'}.{op}-{version}_{i}", model, None)
    case("counts/absent_at_the_end", one("Relu", ["x", "", ""], ["y", ""]), 0)
    case("counts/absent_in_the_middle", one("Add", ["x", ""], ["y"]), INVALID, "input 1 is missing")


# ---------------------------------------------------------------- versions
def versions():
    newer = r"operator set 29 is newer than 28, the newest known; export the model for that version"
    case("versions/opset_29", one("Relu", ["x"], ["y"], opset=29), INVALID, newer)
    case("versions/opset_28", one("Relu", ["x"], ["y"], opset=28), 0)
    case("versions/opset_0", one("Relu", ["x"], ["y"], opset=0), INVALID, "has the version 0")
    case("versions/opset_negative", one("Relu", ["x"], ["y"], opset=-5), INVALID, "has the version -5")
    case("versions/opset_int64", one("Relu", ["x"], ["y"], opset=2**63 - 1), INVALID, "is newer than 28")
    case("versions/ml_99", one("Scaler", ["x"], ["y"], domain="ai.onnx.ml", version=99), INVALID,
         'version 99 of "ai.onnx.ml" is newer than 5, the newest known; export')
    inner = w.function("f", "own", ["x"], ["y"], [w.node("Relu", ["x"], ["y"])], opset=77)
    call = [w.node("f", ["x"], ["y"], domain="own")]
    ends = [("x", w.FLOAT, [2])], [("y", w.FLOAT, [2])]
    case("versions/function_77", graph(call, *ends, functions=[inner], domains=["own"]), INVALID,
         'version 77 of "ai.onnx" is newer than 28')


# ---------------------------------------------------------------- functions
def chain(levels, width, last="Relu"):
    """Functions f0, f1, ... of which each calls the next `width` times."""
    made = []
    for level in range(levels):
        op, domain = (last, "") if level == levels - 1 else (f"f{level + 1}", "own")
        names = ["x"] + [f"t{i}" for i in range(width - 1)] + ["y"] if domain else ["x", "y"]
        nodes = [w.node(op, [a], [b], domain=domain) for a, b in zip(names, names[1:])]
        made.append(w.function(f"f{level}", "own", ["x"], ["y"], nodes) + w.blob(9, w.blob(1, "own") + w.integer(2, 1)))
    return calls(made)


def calls(functions):
    return graph([w.node("f0", ["x"], ["y"], domain="own")], [("x", w.FLOAT, [2])], [("y", w.FLOAT, [2])],
                 functions=functions, domains=["own"])


def own(name, *called):
    names = ["x"] + [f"t{i}" for i in range(len(called) - 1)] + ["y"]
    nodes = [w.node(op, [a], [b], domain="own") for op, a, b in zip(called, names, names[1:])]
    return w.function(name, "own", ["x"], ["y"], nodes) + w.blob(9, w.blob(1, "own") + w.integer(2, 1))


def functions():
    case("functions/20_levels_of_10", chain(20, 10), LIMIT,
         r"node 0 .*the calls of functions come to 2.11e\+19 nodes, more than \d+: f0 > f1 > .* > f19$")
    case("functions/63_levels_of_2", chain(63, 2), LIMIT, "come to 1.38e\\+19 nodes")
    case("functions/65_levels", chain(65, 1), LIMIT, "functions are nested more than 64 deep: f0 > f1 > ")
    case("functions/64_levels", chain(64, 1), 0)
    case("functions/4_levels_of_10", chain(4, 10), 0)
    case("functions/itself", calls([own("f0", "f0")]), INVALID, 'function "f0" calls itself: f0 > f0$')
    case("functions/each_other", calls([own("f0", "f1"), own("f1", "f2"), own("f2", "f1", "f1")]), INVALID,
         'function "f1" calls itself: f0 > f1 > f2 > f1$')
    case("functions/itself_unused", calls([w.function("f0", "own", ["x"], ["y"], [w.node("Relu", ["x"], ["y"])]),
                                           own("f1", "f1")]), 0)


# ---------------------------------------------------------------- large tensors
def constant(name, values, shape=None, dtype=w.INT64):
    return name, w.tensor(name, dtype, values, shape)


def large():
    """10^12 elements, by everything that makes a tensor from numbers."""
    side, long, big = 10**6, 10**12, "is too large"

    def refused(name, model, status=LIMIT, says=big):
        case(f"large/{name}", model, status, says)

    shape = constant("s", [side, side])
    refused("Expand", one("Expand", ["x", "s"], ["y"], (1, 1), constants=[shape]))
    refused("ConstantOfShape", one("ConstantOfShape", ["s"], ["y"], constants=[shape]))
    refused("Tile", one("Tile", ["x", "s"], ["y"], constants=[shape]))
    refused("Pad", one("Pad", ["x", "s"], ["y"], constants=[constant("s", [0, 0, side, side])]))
    refused("Reshape", one("Relu", ["x"], ["y"], (side, side)))
    refused("EyeLike", one("EyeLike", ["x"], ["y"], (side, side)))
    for random in ("RandomNormal", "RandomUniform"):
        refused(random, graph([w.node(random, [], ["y"], shape=[side, side])], [], [("y", w.FLOAT, None)]))
    scales = constant("s", [1e6, 1e6], dtype=w.FLOAT)
    refused("Resize", one("Resize", ["x", "", "s"], ["y"], constants=[scales]), says="too many for a constant")
    refused("Upsample", one("Upsample", ["x", "s"], ["y"], opset=9, constants=[scales]),
            says="too many for a constant")
    several = constant("n", [1500, 1500, 1500, 1500])
    refused("resized_axes", one("Resize", ["x", "", "", "n"], ["y"], (6000, 6000, 6000, 6000), opset=19, antialias=1,
                                mode="cubic", constants=[several]))
    refused("resized_wide", one("Resize", ["x", "", "s"], ["y"], (1, 10**7), opset=19, antialias=1, mode="linear",
                                constants=[constant("s", [1.0, 1e-3], dtype=w.FLOAT)]), says="too many for a constant")
    refused("Range", one("Range", ["a", "b", "c"], ["y"], constants=[
        constant("a", 0, []), constant("b", long, []), constant("c", 1, [])]))
    refused("OneHot", one("OneHot", ["x", "d", "v"], ["y"], dtype=w.INT64, constants=[
        constant("d", long, []), constant("v", [0.0, 1.0], dtype=w.FLOAT)]))
    for window in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        refused(window, one(window, ["n"], ["y"], constants=[constant("n", long, [])]),
                says=r"too large: f64\[1000000000000\]")
    refused("MelWeightMatrix", one("MelWeightMatrix", list("abcde"), ["y"], constants=[
        constant("a", side, []), constant("b", side, []), constant("c", 16000, []),
        constant("d", 0.0, [], w.FLOAT), constant("e", 8000.0, [], w.FLOAT)]), says=r"too large: f64\[500001,1000000\]")
    refused("DFT", one("DFT", ["x", "n"], ["y"], (1, 8, 1), constants=[constant("n", long, [])], axis=1),
            says=r"1e\+12 elements; at most 2147483647")
    refused("STFT", one("STFT", ["x", "st", "", "n"], ["y"], (1, 10**7, 1), constants=[
        constant("st", 1, []), constant("n", side, [])]), says="elements; at most")
    lists = [f"s{i}" for i in range(600)]
    refused("measured", graph([w.node("Reshape", ["x", s], [f"y{s}"]) for s in lists], [
        ("x", w.FLOAT, [2, 3, 4]), *[(s, w.INT64, [3]) for s in lists]], [(f"y{s}", w.FLOAT, None) for s in lists]),
            says="more than 1024 sizes of this model depend on the values of inputs")
    refused("dimension_0", one("Relu", ["x"], ["y"], (2**62, 2**62, 0)))


# ---------------------------------------------------------------- many of a kind
def branches(levels):
    """Functions of which each calls the next in both branches of an If."""
    made = []
    for level in range(levels):
        op, domain = (f"f{level + 1}", "own") if level < levels - 1 else ("Relu", "")
        body = w.graph([w.node(op, ["x"], ["q"], domain=domain)], [], [w.value_info("q", w.FLOAT, [2])])
        nodes = [w.node("ReduceMax", ["x"], ["m"], keepdims=0), w.node("Cast", ["m"], ["b"], to=w.BOOL),
                 w.node("If", ["b"], ["y"], then_branch=("graph", body), else_branch=("graph", body))]
        made.append(w.function(f"f{level}", "own", ["x"], ["y"], nodes) + w.blob(9, w.blob(1, "own") + w.integer(2, 1)))
    return calls(made)


def many():
    case("many/branches_9_levels", branches(9), 0)
    case("many/branches_11_levels", branches(11), LIMIT, "more than 2048 bodies of If, Loop and Scan")
    x, y = [("x", w.FLOAT, [2])], [("y", w.FLOAT, None)]
    sizes = [(f"x{i}", w.FLOAT, [f"n{i}"]) for i in range(5000)]
    case("many/named_sizes", graph([w.node("Relu", ["x"], ["y"])], x + sizes, y), LIMIT,
         'input "x4096": more than 4096 sizes of inputs have names')
    case("many/products_of_sizes", graph([w.node("MatMul", [f"x{i}", f"x{i + 1}"], [f"y{i}"]) for i in range(1000)], [
        (f"x{i}", w.FLOAT, [f"n{i}", f"n{i + 1}"]) for i in range(1001)], [(f"y{i}", w.FLOAT, None)
                                                                          for i in range(1000)]), 0)
    case("many/concatenated", graph([w.node("Concat", ["x"] * 12000, ["y"], axis=0)], x, y), 0)
    case("many/operands", graph([w.node("Concat", ["x"] * 200000, ["y"], axis=0)], x, y), LIMIT,
         r"node 0 .*has 200000 inputs, at most 16384 are supported")
    case("many/outputs", graph([w.node("Relu", ["x"], [f"y{i}"]) for i in range(20000)], x, [
        (f"y{i}", w.FLOAT, None) for i in range(20000)]), LIMIT, "the model has 20000 outputs, at most 16384")
    alike = [("a" + "".join("!/"[i >> k & 1] for k in range(13)), w.FLOAT, [2]) for i in range(8000)]
    case("many/names_alike", graph([w.node("Relu", ["x"], ["y"])], x + alike, y), 0)
    for name in ("burn_model", "out_run", "work1", "linux"):
        case(f"names/{name}", one("Relu", [name], [f"{name}y"]), 0)
    case("names/comment", one("Relu", ["*/ int evil; /*"], ["??/\ny"]), 0)


# ---------------------------------------------------------------- constants that take long to compute
def loop(inner, trips=2**60, name="x"):
    """A Loop over the value `name` whose body applies the given nodes to v, which gives vo."""
    body = w.graph([w.node("Identity", ["go"], ["again"]), *inner],
                   [w.value_info("i", w.INT64, []), w.value_info("go", w.BOOL, []), w.value_info("v", w.FLOAT, [2])],
                   [w.value_info("again", w.BOOL, []), w.value_info("vo", w.FLOAT, [2])])
    return [w.node("Constant", [], ["n"], value=("tensor", w.tensor("n", w.INT64, trips, []))),
            w.node("Constant", [], ["yes"], value=("tensor", w.tensor("yes", w.BOOL, True, []))),
            w.node("Loop", ["n", "yes", name], ["vo" if name == "v" else "y"], body=("graph", body))]


def folding():
    def fine(name, nodes, *constants):
        case(f"folding/{name}", graph(nodes, [], [("y", w.FLOAT, None)], constants), 0)

    pair = w.tensor("x", w.FLOAT, [0.5, 0.25])
    fine("loop_without_end", loop([w.node("Relu", ["v"], ["vo"])]), pair)
    fine("loops_in_loops", loop(loop([w.node("Relu", ["v"], ["vo"])], 60000, "v"), 60000), pair)
    names = [f"x{i}" for i in range(31)]
    doubled = [w.node("Concat", [a, a], [b], axis=0) for a, b in zip(["x"] + names, names + ["y"])]
    fine("doubled_32_times", doubled, pair)
    square = doubled[:19] + [w.node("Reshape", ["x18", "s"], ["square"])]
    sizes = pair, w.tensor("s", w.INT64, [1, 1, 1024, 1024])
    fine("wide_windows", square + [w.node("MaxPool", ["square"], ["y"], kernel_shape=[500, 500])], *sizes)
    fine("products", square + [w.node("MatMul", ["square", "square"], ["y"])], *sizes)
    names = ["square"] + [f"e{i}" for i in range(999)] + ["y"]
    fine("many_nodes", square + [w.node("Sin", [a], [b]) for a, b in zip(names, names[1:])], *sizes)
    different = [w.node("Range", ["zero", "many", "one"], ["r"]), w.node("Mod", ["r", "prime"], ["m"]),
                 w.node("Unique", ["m"], ["y"])]
    fine("unique", different, *(w.tensor(n, w.INT64, v, []) for n, v in (
        ("zero", 0), ("many", 200000), ("one", 1), ("prime", 199999))))


# ---------------------------------------------------------------- what else was taken once
def others():
    case("others/perm_negative", one("Transpose", ["x"], ["y"], perm=[-1, -2]), INVALID, '"perm" has the axis -1')
    case("others/perm_beyond", one("Transpose", ["x"], ["y"], perm=[0, 2]), INVALID, '"perm" has the axis 2')
    case("others/perm_twice", one("Transpose", ["x"], ["y"], perm=[1, 1]), INVALID, "lists axis 1 twice")


def cases():
    counts()
    absent()
    versions()
    functions()
    large()
    many()
    folding()
    others()
    return _cases
