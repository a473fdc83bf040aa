#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The numbers of inputs and outputs in the rows of onnx_ops.def and onnx_ms_ops.def, against the schemas of the
installed packages: onnx, and onnxruntime for com.microsoft and what ai.onnx once had.

In: the two tables. Out: a TAP line a row, or with --write the tables with these numbers put in; a row whose versions
differ in them is split. Rows whose package is not there count as skipped."""
import argparse
import bisect
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "compiler" / "import" / "onnx"
TABLES = ("onnx_ops.def", "onnx_ms_ops.def")
ROW = re.compile(r'^ONNX\( *(\w+), *"([^"]*)", *(\d+), *(\d+), *((?:\w+, *){4})?(\w+), *("[^"]*") \)(.*)$')
MANY = 2**31 - 1


def counts(schema):
    return schema.min_input, schema.max_input, schema.min_output, schema.max_output


def schemas():
    """(domain, operator) -> its versions, each with its numbers; deprecated ones are the version before."""
    found = {}
    try:
        import onnx
        all_ = [s for s in onnx.defs.get_all_schemas_with_history() if not s.deprecated]
    except ImportError:
        all_ = []
    known = {(s.domain, s.name) for s in all_}
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as ort
        all_ += [s for s in ort.get_all_operator_schema() if (s.domain, s.name) not in known]
    except (ImportError, AttributeError):
        pass
    for s in all_:
        found.setdefault((s.domain, s.name), {})[s.since_version] = counts(s)
    return found


def in_version(history, version):
    since = sorted(history)
    return history[since[max(bisect.bisect_right(since, version) - 1, 0)]]


def ranges(history, since, until):
    """The versions since..until in runs of equal numbers: (first, last, numbers)."""
    runs = []
    for version in range(since, until + 1):
        numbers = in_version(history, version)
        if runs and runs[-1][2] == numbers:
            runs[-1] = (runs[-1][0], version, numbers)
        else:
            runs.append((version, version, numbers))
    return runs


def rows(path):
    """(line, its match or None)"""
    return [(line, ROW.match(line)) for line in path.read_text().splitlines()]


def text_of(numbers):
    return "{},{}, {},{}".format(*("MANY" if n == MANY else n for n in numbers))


def numbers_of(match):
    return tuple(MANY if n == "MANY" else int(n) for n in re.findall(r"\w+", match[5] or ""))


def write(path, found):
    lines = []
    for line, m in rows(path):
        history = m and found.get((m[2], m[1]))
        if not history:
            lines.append(line)
            continue
        for first, last, numbers in ranges(history, int(m[3]), int(m[4])):
            name = f"{m[1]},".ljust(18)
            lines.append(f'ONNX( {name} "{m[2]}", {first}, {last}, {text_of(numbers)}, {m[6]}, {m[7]} ){m[8]}')
    path.write_text("\n".join(lines) + "\n")


def check(match, found):
    """What is wrong with a row, "" when nothing is, None when no package knows the operator."""
    history = found.get((match[2], match[1]))
    if not history:
        return None
    wrong = [f"{text_of(numbers)} in versions {first} to {last}"
             for first, last, numbers in ranges(history, int(match[3]), int(match[4])) if numbers != numbers_of(match)]
    return "; ".join(wrong)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--write", action="store_true", help="put the numbers into the tables")
    args = p.parse_args()
    found, bad, at = schemas(), 0, 0
    if args.write:
        for name in TABLES:
            write(SOURCE / name, found)
        return 0
    all_ = [m for name in TABLES for _, m in rows(SOURCE / name) if m]
    print(f"1..{len(all_)}")
    for at, m in enumerate(all_, 1):
        wrong = check(m, found)
        bad += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {at} {m[2] or 'ai.onnx'} {m[1]} {m[3]}..{m[4]}" +
              (" # SKIP no schema of it is installed" if wrong is None else ""))
        if wrong:
            print(f"# the table says {text_of(numbers_of(m))}; the schema says {wrong}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
