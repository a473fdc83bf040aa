#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
# Layers call down only: no file includes a header of a higher layer, and none calls a function or reads a table that a
# higher layer defines.
#
# usage: layers.py SOURCE LIBRARY    SOURCE: the folder of meson.build; LIBRARY: libburncc.a, whose objects are asked
#                                    (by $NM, else nm) what they define and what they lack
#
# In: the order of the folders below. Out: TAP, a line for includes, one for symbols, and one for exceptions that
# nothing needs any more, each with the places that are wrong.
import collections
import os
import pathlib
import re
import subprocess
import sys

# From the lowest to the highest. What stands beside one another, with commas between, does not know the other either.
ORDER = """
runtime templates language
compiler/base
compiler/*.def                          # rows: whoever includes them says what they are
compiler/ir compiler/ir.h
compiler/target
compiler/build                          # makes nodes; expansions and gradients, columns of the op table, use it
compiler/ops
compiler/options.h
compiler/grad
compiler/import                         # names that training saves parameters by
compiler/passes                         # GRAD differentiates
compiler/quantize
compiler/export                         # a graph as a file again
compiler/schedule compiler/plan.h
compiler/compile.c compiler/compile.h
codegen/spell                           # text of expressions and sizes, whatever kernel they are of
codegen
compiler/command
compiler/main.c
"""

# (file or folder, what it reaches up to): why.
EXCEPTIONS = {
    ("compiler/ir", "compiler/ops/table.c"):
        "graphs ask the op table for names, arities and rules: a table of functions, filled from ops.def",
    ("compiler/ops/control_grad.c", "compiler/grad"):
        "a column of the op table: the gradient of a node with bodies is made of its bodies' gradients",
    ("compiler/ops/if_grad.c", "compiler/grad"): "the same",
}

Layer = collections.namedtuple("Layer", "name height patterns")


def layers():
    lines = [line.split("#")[0].strip() for line in ORDER.strip().splitlines()]
    return [Layer(group.split()[0], height, group.split())
            for height, line in enumerate(lines) for group in line.split(",")]


LAYERS = layers()


def matches(path, pattern):
    if "*" in pattern:
        head, tail = pattern.split("*")
        return path.startswith(head) and path.endswith(tail) and "/" not in path[len(head):]
    return path == pattern or path.startswith(pattern + "/")


def layer_of(path):
    found = [layer for layer in LAYERS if any(matches(path, p) for p in layer.patterns)]
    if not found:
        sys.exit(f"{path} is in no layer: add its folder to the order in {sys.argv[0]}")
    return found[0]


def reaches_up(user, used):
    a, b = layer_of(user), layer_of(used)
    return a != b and b.height >= a.height


def files(source):
    """C files and headers of the compiler, as paths from the source folder."""
    return sorted(str(p.relative_to(source)) for folder in ("compiler", "codegen") for kind in ("*.c", "*.h")
                  for p in (source / folder).rglob(kind))


# ---------------------------------------------------------------- what files include
def includes(source, path):
    """Headers and tables of the tree that a file includes: beside it, or from the folders that the build names."""
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', (source / path).read_text(), re.M):
        for folder in (os.path.dirname(path), "compiler", ".", "runtime"):
            at = os.path.normpath(os.path.join(folder, name))
            if (source / at).is_file():
                yield at
                break


def include_faults(source, paths):
    return [(path, used, used) for path in paths for used in includes(source, path) if reaches_up(path, used)]


# ---------------------------------------------------------------- what objects define and lack
def symbols(source, library, paths):
    """Who defines each global symbol, and (user, symbol) of those that objects lack."""
    tool = os.environ.get("NM", "nm")
    lines = subprocess.run([tool, "-A", library], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    by_object = {path.replace("/", "_") + ".o": path for path in paths}     # as the build names objects
    defined, lacked = {}, []
    for line in lines:
        at, _, rest = line.rpartition(":")
        path = by_object.get(re.split(r"[:/]", at)[-1])
        fields = rest.split()
        if not path or len(fields) < 2:
            continue
        kind, name = fields[-2:]
        if kind == "U":
            lacked.append((path, name))
        elif kind.isupper():
            defined[name] = path
    return defined, lacked


def symbol_faults(source, library, paths):
    defined, lacked = symbols(source, library, paths)
    if len(defined) < 100:
        sys.exit(f"{library}: only {len(defined)} symbols of the sources are found in it")
    return [(user, name, defined[name]) for user, name in lacked if name in defined and reaches_up(user, defined[name])]


# ---------------------------------------------------------------- TAP
def exception_for(user, used):
    return [e for e in EXCEPTIONS if matches(user, e[0]) and matches(used, e[1])]


def report(number, what, wrong):
    print(f"{'not ok' if wrong else 'ok'} {number} - {what}")
    for line in wrong:
        print(f"#   {line}")
    return not wrong


def main():
    source, library = pathlib.Path(sys.argv[1]), sys.argv[2]
    paths = files(source)
    include, symbol = include_faults(source, paths), symbol_faults(source, library, paths)
    needed = {e for user, _, used in include + symbol for e in exception_for(user, used)}
    print("1..3")
    ok = report(1, "no file includes a higher layer's",
                [f"{user} includes {name}" for user, name, used in include if not exception_for(user, used)])
    ok &= report(2, "no file uses a higher layer's symbols",
                 [f"{user} uses {name} of {used}" for user, name, used in symbol if not exception_for(user, used)])
    ok &= report(3, "every exception is needed", [f"{user} -> {used}" for user, used in EXCEPTIONS.keys() - needed])
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
