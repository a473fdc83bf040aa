# SPDX-License-Identifier: MIT OR Apache-2.0
"""Small models on strings, with the outputs they must give, computed here by Python's own string functions.

As cases.py: each function makes one Model. Text in several scripts, empty strings, strings that a run makes and
strings that it moves."""
import re

from small_model import Model, nest
from onnx_wire import BOOL, DOUBLE, FLOAT, INT64, STRING, UINT8, graph, node, tensor, value_info

ML = "ai.onnx.ml"
WORDS = [
    "monday", "Tuesday", "", "Übergröße", "ΣΊΣΥΦΟΣ", "съешь", "日本", "a \"quoted\" \\ word??/", "0", "ÿ", "Ǆ and ǆ",
    "zz"
]


def views():
    """Elements are addresses: they are moved, chosen and compared like numbers."""
    x = nest(WORDS, (3, 4))
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("Slice", ["t", "from", "to", "axes", "steps"], ["s"]),
        node("Concat", ["s", "other"], ["y"], axis=0),
        node("Gather", ["x", "at"], ["g"], axis=1),
        node("Equal", ["x", "word"], ["e"]),
        node("Where", ["e", "word", "x"], ["w0"]),
        node("Where", ["e", "none", "w0"], ["w"]),
        node("Pad", ["g", "pads", "word"], ["p"]),
        node("Pad", ["g", "pads"], ["p0"]),
        node("Expand", ["word", "shape"], ["x2"]),
        node("Reshape", ["x2", "flat"], ["r"]),
        node("ScatterElements", ["x", "at2", "new"], ["sc"], axis=1),
        node("Identity", ["x"], ["same"])
    ]
    fixed = [
        tensor("from", INT64, [3]),
        tensor("to", INT64, [-10]),
        tensor("axes", INT64, [0]),
        tensor("steps", INT64, [-2]),
        tensor("other", STRING, [["p", "q", "r"]]),
        tensor("at", INT64, [-1, 0]),
        tensor("word", STRING, "zz"),
        tensor("none", STRING, [["-", "+", "", "end"]]),
        tensor("pads", INT64, [0, 1, 1, 0]),
        tensor("shape", INT64, [2, 2]),
        tensor("flat", INT64, [4]),
        tensor("at2", INT64, [[1], [-1], [0]]),
        tensor("new", STRING, [["one"], ["two"], ["three"]])
    ]
    t = [list(c) for c in zip(*x)]
    g = [[r[-1], r[0]] for r in x]
    w = [[n if v == "zz" else v for v, n in zip(r, ["-", "+", "", "end"])] for r in x]
    scattered = [list(r) for r in x]
    scattered[0][1], scattered[1][-1], scattered[2][0] = "one", "two", "three"
    out = [
        t[3::-2] + [["p", "q", "r"]], w, [["zz"] + r for r in g] + [["zz"] * 3], [[""] + r for r in g] + [[""] * 3],
        ["zz"] * 4, scattered, x
    ]
    shapes = [("y", (3, 3)), ("w", (3, 4)), ("p", (4, 3)), ("p0", (4, 3)), ("r", (4, )), ("sc", (3, 4)),
              ("same", (3, 4))]
    return Model(nodes, [("x", STRING, (3, 4))], [(n, STRING, s) for n, s in shapes], [([x], out)], fixed)


def numbers():
    """Numbers as text, the shortest that gives them back, and text as numbers."""
    floats = {
        0.1: "0.1", -2.5: "-2.5", 100000.0: "100000", 1.5e20: "1.5e+20", 1e-7: "1e-07", 0.0: "0",
        float("inf"): "INF",
        float("-inf"): "-INF", 314.15926: "314.15927", 16777216.0: "16777216"
    }
    text = [
        "3.14", "1e-5", "+1E8", " 42 ", "-INF", "inf", ".5", "5.", "1.7976931348623157e308", "4.9e-324",
        "123456789012345678901234567890", "0.30000000000000004"
    ]
    ints = [-2**63, 2**63 - 1, 0, -7, 1000000]
    whole = ["-9223372036854775808", "9223372036854775807", "0", "-7", " 12", "3.9", "1e3"]
    nodes = [
        node("Cast", ["f"], ["fs"], to=STRING),
        node("Cast", ["d"], ["ds"], to=STRING),
        node("Cast", ["i"], ["is"], to=STRING),
        node("Cast", ["u"], ["us"], to=STRING),
        node("Cast", ["t"], ["td"], to=DOUBLE),
        node("Cast", ["t"], ["tf"], to=FLOAT),
        node("Cast", ["n"], ["ni"], to=INT64),
        node("Cast", ["fs"], ["back"], to=FLOAT)
    ]
    doubles = [0.1 + 0.2, 5e-324, 1e22, 123456.789]
    f32 = [float(s) for s in text]
    f32 = [float("inf") if abs(v) > 3.5e38 else v for v in f32]
    f32[4] = float("-inf")
    return Model(nodes, [("f", FLOAT, (10, )), ("d", DOUBLE, (4, )), ("i", INT64, (5, )), ("u", UINT8, (2, )),
                         ("t", STRING, (12, )), ("n", STRING, (7, ))], [("fs", STRING, (10, )), ("ds", STRING, (4, )),
                                                                        ("is", STRING, (5, )), ("us", STRING, (2, )),
                                                                        ("td", DOUBLE, (12, )), ("tf", FLOAT, (12, )),
                                                                        ("ni", INT64, (7, )), ("back", FLOAT, (10, ))],
                 [([list(floats), doubles, ints, [0, 255], text, whole], [
                     list(floats.values()), ["0.30000000000000004", "5e-324", "1e+22", "123456.789"],
                     [str(v)
                      for v in ints], ["0", "255"], [float(s)
                                                     for s in text], f32, [-2**63, 2**63 - 1, 0, -7, 12, 3, 1000],
                     list(floats)
                 ])])


def join_split():
    """Joining broadcasts; the number of parts is known when the program runs."""
    x, y = [["a,b", "c"], ["", ",x,,y,"]], ["-", "é,"]
    joined = [[a + b for a, b in zip(r, y)] for r in x]
    nodes = [
        node("StringConcat", ["x", "y"], ["z"]),
        node("StringSplit", ["z"], ["p", "n"], delimiter=","),
        node("StringSplit", ["z"], ["q", "m"], delimiter=",", maxsplit=1),
        node("StringSplit", ["s"], ["w", "k"])
    ]

    def parts(rows, split):
        cut = [[split(v) for v in r] for r in rows]
        most = max(len(c) for r in cut for c in r)
        return [[c + [""] * (most - len(c)) for c in r] for r in cut], [[len(c) for c in r] for r in cut]
    sets = []
    for s in ["  two  words ", "one"], ["", "\tthree \n more words", "x"]:
        words = [v.split() for v in s]
        most = max(map(len, words))
        sets.append(([x, y, s], [
            joined, *parts(joined, lambda v: v.split(",")), *parts(joined, lambda v: v.split(",", 1)),
            [w + [""] * (most - len(w)) for w in words], [len(w) for w in words]
        ]))
    return Model(nodes, [("x", STRING, (2, 2)), ("y", STRING, (2, )),
                         ("s", STRING, ("count", ))], [("z", STRING, (2, 2)), ("p", STRING, (2, 2, None)),
                                                       ("n", INT64, (2, 2)), ("q", STRING, (2, 2, None)),
                                                       ("m", INT64, (2, 2)), ("w", STRING, ("count", None)),
                                                       ("k", INT64, ("count", ))], sets, opset=20)


def simple_case(s, upper):
    """One character to one character, as in Unicode's simple mappings."""
    changed = [(c.upper() if upper else c.lower()) for c in s]
    return "".join(n if len(n) == 1 else c for c, n in zip(s, changed))


def normalizer():
    stop = ["monday", "ÜBERGRÖSSE", "σίσυφοσ", "日本"]
    nodes = [
        node("StringNormalizer", ["x"], ["up"], case_change_action="UPPER"),
        node("StringNormalizer", ["x"], ["low"], case_change_action="LOWER", stopwords=stop),
        node("StringNormalizer", ["x"], ["kept"], is_case_sensitive=1, stopwords=stop)
    ]
    sets = []
    for x in WORDS[:9], ["monday"] * 9:
        folded = {simple_case(s, False) for s in stop}
        sets.append(([x], [[simple_case(s, True) for s in x],
                           [simple_case(s, False) for s in x if simple_case(s, False) not in folded] or [""],
                           [s for s in x if s not in stop] or [""]]))
    return Model(nodes, [("x", STRING, (9, ))], [("up", STRING, (9, )), ("low", STRING, (None, )),
                                                 ("kept", STRING, (None, ))], sets)


PATTERNS = [
    r"a*b+c?", r"(ab|cd)*", r"[^a-c]+", r"\d{2,4}-\d+", r"(?i)hello\s\w+", r".*x.*", r"^\w+$", r"\bfoo\b.*", r"a.c",
    r"(?s)a.c", r"[\w.]+@[\w.]+\.(com|org)", r"é{2}", r"[α-ω]+", r"(a|b)*a(a|b){3}", r"", r"x{0}", r"(a?){5}a{5}",
    r"\x41\+\*", r"[]a]+", r"[a\]-]*", r".{3}", r"\D\S\W", r"(foo|)bar\B.", r"a{3,}"
]
SUBJECTS = [
    "", "b", "aabbc", "abcdab", "xyz", "12-3", "1234-56", "12345-6", "Hello world", "HELLO  x", "a\nx", "foo bar",
    "food", "abc", "a\nc", "aéc", "me.x@site.com", "a@b.org.", "éé", "αβγ", "abab", "aabba", "baaaa", "aaaaa",
    "aaaaaaaaaa", "A+*", "]a]", "]-a", "日本語", "日本", "x y", "barn", "bar", "foobars", "aaa", "aaaa"
]


def patterns():
    nodes = [node("RegexFullMatch", ["x"], [f"y{i}"], pattern=p) for i, p in enumerate(PATTERNS)]
    hits = [[re.fullmatch(p, s, re.ASCII) is not None for s in SUBJECTS] for p in PATTERNS]
    assert all(any(h) for h in hits)
    return Model(nodes, [("x", STRING, (len(SUBJECTS), ))],
                 [(f"y{i}", BOOL, (len(SUBJECTS), )) for i in range(len(PATTERNS))], [([SUBJECTS], hits)], opset=20)


def labels():
    x, i, f = ["b", "a", "zz", "é", "b"], [3, 1, 2], [0.5, float("nan"), 1.0]
    nodes = [
        node("LabelEncoder", ["x"], ["ss"], ML, keys_strings=["é", "b", "a", "b"],
             values_strings=["accent", "bee", "ay", "never"], default_string="?"),
        node("LabelEncoder", ["x"], ["sf"], ML, keys_strings=["a", "b"], values_floats=[1.5, 2.5], default_float=-1.0),
        node("LabelEncoder", ["i"], ["is"], ML, keys_int64s=[1, 3], values_strings=["one", "three"]),
        node("LabelEncoder", ["f"], ["fs"], ML, keys_floats=[0.5, float("nan")], values_strings=["half", "none"],
             default_string="other"),
        node("LabelEncoder", ["x"], ["st"], ML, keys_tensor=("tensor", tensor("k", STRING, ["a", "é"])),
             values_tensor=("tensor", tensor("v", STRING,
                                             ["A", "É"])), default_tensor=("tensor", tensor("d", STRING, ["-"]))),
        node("CategoryMapper", ["x"], ["ci"], ML, cats_strings=["a", "b"], cats_int64s=[10, 20], default_int64=-5),
        node("CategoryMapper", ["i"], ["cs"], ML, cats_strings=["a", "b"], cats_int64s=[1, 2]),
        node("OneHotEncoder", ["x"], ["hot"], ML, cats_strings=["a", "b", "c"]),
        node("ArrayFeatureExtractor", ["x", "at"], ["pick"], ML),
        node("LinearClassifier", ["m"], ["label", "score"], ML, coefficients=[1.0, 0.0, 0.0, 1.0, -1.0, -1.0],
             intercepts=[0.0, 0.0, 0.5], classlabels_strings=["left", "up", "away"])
    ]
    m = [[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]]
    score = [[a, b, 0.5 - a - b] for a, b in m]
    out = [["bee", "ay", "?", "accent", "bee"], [2.5, 1.5, -1.0, -1.0, 2.5], ["three", "one", "_Unused"],
           ["half", "none", "other"], ["-", "A", "-", "É", "-"], [20, 10, -5, -5, 20], ["_Unused", "a", "b"],
           [[float(c == s) for c in "abc"] for s in x], [["é", "b"]], ["left", "up", "away"], score]
    kinds = [("ss", STRING, (5, )), ("sf", FLOAT, (5, )), ("is", STRING, (3, )), ("fs", STRING, (3, )),
             ("st", STRING, (5, )), ("ci", INT64, (5, )), ("cs", STRING, (3, )), ("hot", FLOAT, (5, 3)),
             ("pick", STRING, (1, 2)), ("label", STRING, (3, )), ("score", FLOAT, (3, 3))]
    return Model(nodes, [("x", STRING, (5, )), ("i", INT64, (3, )), ("f", FLOAT, (3, )), ("m", FLOAT, (3, 2))], kinds,
                 [([x, i, f, m], out)], [tensor("at", INT64, [3, 0])], domains=[(ML, 4)])


def ngrams():
    """Words and pairs of words, weighted; pairs may have a word between them."""
    pool = ["the", "cat", "sat", "the", "cat", "cat", "sat", "the", "mat"]
    grams = [("the",), ("cat",), ("sat",), ("the", "cat"), ("cat", "sat"), ("the", "mat")]
    columns, weights = [2, 0, 3, 1, 5, 4], [0.5, 2.0, 3.0, 1.5, 4.0, 0.25]
    x = [["the", "cat", "sat", "on", "the", "mat"], ["the", "red", "cat", "sat", "sat", "cat"],
         ["none", "of", "these", "words", "is", "known"]]

    def count(row, gram):
        steps = (1,) if len(gram) == 1 else (1, 2)
        return sum(tuple(row[at:at + (len(gram) - 1) * s + 1:s]) == gram for s in steps for at in range(len(row)))
    counts = [[0.0] * 6 for _ in x]
    for r, row in enumerate(x):
        for g, c in zip(grams, columns):
            counts[r][c] += count(row, g)
    nodes = [
        node("TfIdfVectorizer", ["x"], [m.lower()], mode=m, min_gram_length=1, max_gram_length=2, max_skip_count=1,
             ngram_counts=[0, 3], ngram_indexes=columns, pool_strings=pool, weights=weights)
        for m in ("TF", "IDF", "TFIDF")
    ]
    out = [
        counts, [[w * (c > 0) for c, w in zip(r, weights)] for r in counts],
        [[w * c for c, w in zip(r, weights)] for r in counts]
    ]
    return Model(nodes, [("x", STRING, (3, 6))], [(n, FLOAT, (3, 6)) for n in ("tf", "idf", "tfidf")], [([x], out)])


def control_flow():
    """Strings through a loop that makes them longer, collects them, and through two branches."""
    body = graph([
        node("StringConcat", ["s", "dot"], ["longer"]),
        node("Identity", ["longer"], ["each"]),
        node("Identity", ["go"], ["on"])
    ], [value_info("i", INT64,
                   ()), value_info("go", BOOL, ()),
        value_info("s", STRING, ("count", ))],
                 [value_info("on", BOOL, ()),
                  value_info("longer", STRING, (2, )),
                  value_info("each", STRING, (2, ))], name="body")
    yes = graph([node("StringNormalizer", ["x"], ["loud"], case_change_action="UPPER")], [],
                [value_info("loud", STRING, (2, ))], name="yes")
    no = graph([node("Identity", ["x"], ["still"])], [], [value_info("still", STRING, (2,))], name="no")
    nodes = [
        node("Loop", ["three", "", "x"], ["last", "all"], body=("graph", body)),
        node("If", ["c"], ["y"], then_branch=("graph", yes), else_branch=("graph", no)),
        node("Equal", ["last", "y"], ["e"])
    ]
    x = ["ab", "é"]
    grown = [[s + "." * k for s in x] for k in (1, 2, 3)]
    sets = [([x, True], [grown[2], grown, ["AB", "É"], [False, False]]),
            ([x, False], [grown[2], grown, x, [False, False]])]
    return Model(nodes, [("x", STRING, (2, )), ("c", BOOL, ())], [("last", STRING, (2, )), ("all", STRING, (3, 2)),
                                                                  ("y", STRING, (2, )), ("e", BOOL, (2, ))], sets,
                 [tensor("three", INT64, 3), tensor("dot", STRING, ["."])], opset=20)


def constants():
    """What is known while compiling gives what the program would."""
    fixed = [
        tensor("a", STRING, ["Straße", "xyz", ""]),
        tensor("b", STRING, ["-1,5", "7.25", "NaN?"]),
        tensor("n", FLOAT, [0.1, 1e21, -3.0]),
        tensor("t", STRING, ["2.5", "-4", "x"])
    ]
    nodes = [
        node("StringConcat", ["a", "b"], ["ab"]),
        node("StringNormalizer", ["a"], ["up"], case_change_action="UPPER"),
        node("StringSplit", ["b"], ["parts", "count"], delimiter=","),
        node("Cast", ["n"], ["text"], to=STRING),
        node("Cast", ["t"], ["number"], to=FLOAT),
        node("RegexFullMatch", ["a"], ["hit"], pattern="[x-z]*"),
        node("Equal", ["a", "x"], ["same"]),
        node("Gather", ["ab", "at"], ["one"], axis=0)
    ]
    out = [["Straße-1,5", "xyz7.25", "NaN?"], ["STRAßE", "XYZ", ""], [["-1", "5"], ["7.25", ""], ["NaN?", ""]],
           [2, 1, 1], ["0.1", "1e+21", "-3"], [2.5, -4.0, 0.0], [False, True, True], [False, True, False], "xyz7.25"]
    kinds = [("ab", STRING, (3, )), ("up", STRING, (3, )), ("parts", STRING, (3, 2)), ("count", INT64, (3, )),
             ("text", STRING, (3, )), ("number", FLOAT, (3, )), ("hit", BOOL, (3, )), ("same", BOOL, (3, )),
             ("one", STRING, ())]
    return Model(nodes, [("x", STRING, (1,)), ("at", INT64, ())], kinds, [([["xyz"], 1], out)], fixed, opset=20)


def found():
    """How many there are is known when the program runs."""
    x, keep = ["b", "a", "", "é", "b", "a", "zz"], [True, False, True, False, True, False, True]
    unique = sorted(set(x), key=str.encode)
    nodes = [
        node("NonZero", ["x"], ["some"]),
        node("Unique", ["x"], ["y", "first", "which", "often"]),
        node("Compress", ["x", "keep"], ["z"], axis=0),
        node("OneHot", ["at", "depth", "values"], ["h"])
    ]
    out = [
        [[i for i, s in enumerate(x) if s]],
        unique, [x.index(s) for s in unique], [unique.index(s) for s in x], [x.count(s) for s in unique], x[::2],
        [["off", "on", "off"], ["off", "off", "on"]]
    ]
    kinds = [("some", INT64, (1, None)), ("y", STRING, (None, )), ("first", INT64, (None, )), ("which", INT64, (7, )),
             ("often", INT64, (None, )), ("z", STRING, (None, )), ("h", STRING, (2, 3))]
    return Model(nodes, [("x", STRING, (7, )), ("keep", BOOL, (7, )),
                         ("at", INT64, (2, ))], kinds, [([x, keep, [1, 2]], out)],
                 [tensor("depth", INT64, 3), tensor("values", STRING, ["off", "on"])])


def named(prefix, made):
    made.__name__ = f"{prefix}_{made.__name__}"
    return made


ALL = tuple(
    named("string", f)
    for f in (views, numbers, join_split, normalizer, patterns, labels, ngrams, control_flow, constants, found))
