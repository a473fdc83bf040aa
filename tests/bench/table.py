# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows as Markdown, and what they come to: geometric means, and the models on which burncc is behind.

In: the JSON that main.py gathers. The first target is the one that ratios are of: a peer's time over ours, so above 1
we
are ahead. `*` marks outputs that differ by more than the tolerance.
"""
import math
import textwrap

MUCH_MEMORY = 0.6                                       # of the peer's: models above it are listed
TITLES = {
    "ort": "ORT", "openvino": "OpenVINO", "tvm": "TVM", "iree": "IREE", "openblas": "OpenBLAS",
    "onednn-direct": "oneDNN direct", "onednn-winograd": "oneDNN Winograd"
}


def figure(x, digits=3):
    """Three digits, no exponent."""
    if x is None:
        return "–"
    if x == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(x))))
    return f"{x:.{min(places, 7)}f}"


def mega(x):
    return "–" if x is None else figure(x / 1e6) if x >= 1e5 else f"{x / 1e6:.3f}"


def title(name):
    return TITLES.get(name, name)


def get(name, key, show=figure):
    return lambda row: show(row["contestants"].get(name, {}).get(key))


def other_columns(report):
    """Memory and starts of the peers after the first, a table of their own."""
    found = [("model", lambda row: row["model"])]
    for what, key, show in (("RSS MB", "rss_bytes", mega), ("load ms", "load_ms", figure), ("cold ms", "cold_ms",
                                                                                            figure)):
        found += [(f"{title(p)} {what}", get(p, key, show)) for p in report["peers"][1:]]
    return found


def columns(report):
    """(heading, cell of a row) for every column."""
    targets, peers = report["targets"], report["peers"]
    first = targets[0]

    found = [("model", lambda row: row["model"])]
    for peer in peers:
        found.append((f"{title(peer)} ms", marked(peer)))
    for target in targets:
        found.append((f"{target} ms", marked(target)))
        for peer in peers:
            found.append((f"{title(peer)} / {target}" if len(targets) > 1 or len(peers) > 1 else "ratio",
                          lambda row, t=target, p=peer: figure(ratio(row, t, p))))
    found += [("GFLOP/s", get(first, "gflops")),
              ("% of peak", get(first, "share_of_peak", lambda x: figure(None if x is None else 100 * x, 2))),
              ("% of read", lambda row: figure(share_of_bandwidth(report, row), 2)),
              ("workspace MB", get(first, "workspace_bytes", mega)), ("RSS MB", get(first, "rss_bytes", mega))]
    found += [(f"{title(p)} RSS", get(p, "rss_bytes", mega)) for p in peers[:1]]
    found += [("load ms", get(first, "load_ms"))] + [(f"{title(p)} load", get(p, "load_ms")) for p in peers[:1]]
    found += [("cold ms", get(first, "cold_ms"))] + [(f"{title(p)} cold", get(p, "cold_ms")) for p in peers[:1]]
    return found + [("burncc s", get(first, "burncc_s")), ("cc s", get(first, "cc_s")),
                    ("code KB", get(first, "text_bytes", lambda x: figure(None if x is None else x / 1e3)))]


def marked(name):
    def cell(row):
        found = row["contestants"].get(name, {})
        return "failed" if "failed" in found else figure(found.get("median_ms")) + ("*" if found.get("differs") else "")
    return cell


def ratio(row, target, peer):
    mine, theirs = (row["contestants"].get(n, {}).get("median_ms") for n in (target, peer))
    return theirs / mine if mine and theirs else None


def markdown_rows(report, threads, cells):
    lines = ["| " + " | ".join(c[0] for c in cells) + " |", "|" + "---|" * len(cells)]
    for row in report["rows"]:
        if row["threads"] == threads:
            lines.append(f"| {row['model']} | failed: {row['failed']} |" + " |" *
                         (len(cells) - 2) if "failed" in row else "| " + " | ".join(c[1](row) for c in cells) + " |")
    return lines


def share_of_bandwidth(report, row):
    """The bytes that a run reads at least (weights, inputs) over the time, in % of what the cores read from memory.
    Caches that hold the
    weights from run to run let it pass 100."""
    found = row["contestants"].get(report["targets"][0], {})
    if "median_ms" not in found:
        return None
    return 100 * (found["weights_bytes"] +
                  row["input_bytes"]) / (found["median_ms"] * 1e6) / (report["machine"]["read_gbs"] * row["threads"])


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def is_operator(row):
    """Models of one operator, or of one repeated, go by such names; they have a mean of their own."""
    return row["model"].startswith(("op_", "opx"))


def thread_text(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def is_tiny(row):
    """Networks of the kind that microcontrollers run."""
    return row["model"].startswith(("tiny_", "mnist"))


def listed(known):
    return ", ".join(f"{name} ({figure(x)})" for x, name in known)


def means(rows, target, peer, threads):
    """One sentence: the geometric mean over all models, over parts of them, and those on which the peer is ahead."""
    known = [(x, r) for r in rows if (x := ratio(r, target, peer))]
    if not known:
        return []
    kinds = (("network", lambda r: not is_operator(r)), ("single operator", is_operator), ("tiny network", is_tiny))
    parts = [f"{figure(geometric([x for x, _ in known]))} over all {len(known)} models"]
    for kind, belongs in kinds:
        of_it = [(x, r["model"]) for x, r in known if belongs(r)]
        if of_it and len(of_it) < len(known):
            least = f" (the least is {listed([min(of_it)])})" if belongs is is_tiny else ""
            parts.append(
                f"{figure(geometric([x for x, _ in of_it]))} over {len(of_it)} "
                f"{kind}{'s' if len(of_it) > 1 else ''}{least}"
            )
    behind = sorted((x, r["model"]) for x, r in known if x < 1)
    return [
        f"{target} against {title(peer)}, {thread_text(threads)}, geometric means: {', '.join(parts)}; " +
        (f"below 1: {listed(behind)}." if behind else "none below 1.")
    ]


def summary(report, threads):
    """Sentences under a table."""
    rows = [r for r in report["rows"] if r["threads"] == threads and "failed" not in r]
    lines = []
    for target in report["targets"]:
        for peer in report["peers"]:
            lines += means(rows, target, peer, threads)
    lines += [
        f"{other} against {report['targets'][0]}, {thread_text(threads)}: its time is {figure(mean)} times as "
        f"long (geometric mean)."
        for other in report["targets"][1:]
        if (mean := geometric([1 / x for r in rows if (x := ratio(r, other, report["targets"][0]))]))
    ]
    lines += extremes(report, threads)
    for row in rows:
        for name, found in row["contestants"].items():
            if "failed" in found:
                lines.append(f"{row['model']}: {title(name)} failed: {found['failed']}")
            elif found.get("differs"):
                lines.append(
                    f"{row['model']}: outputs of {title(name)} differ from those of {title(row['reference'])} by "
                    f"{found['error']:.2g} of the largest element."
                )
    return lines


def extremes(report, threads):
    """The worst of what else counts, each with its model."""
    target, peer = report["targets"][0], next(iter(report["peers"]), None)
    rows = [
        r for r in report["rows"] if r["threads"] == threads and "cold_ms" in r.get("contestants", {}).get(target, {})
    ]

    def worst(text, value, pick=max):
        known = [(x, r["model"]) for r in rows
                 if (x := value(r["contestants"][target], r["contestants"].get(peer, {}), r))]
        return [text.format(figure(pick(known)[0]), pick(known)[1])] if known else []

    def memory(ours, theirs, row):
        return ours["rss_bytes"] / theirs["rss_bytes"] if theirs.get("rss_bytes") else None

    def sooner(ours, theirs, row):
        return theirs["cold_ms"] / ours["cold_ms"] if theirs.get("cold_ms") else None
    parts = worst("peak memory at most {} of " + title(peer or "") + "'s ({})", memory)
    much = [(x, r["model"]) for r in rows
            if (x := memory(r["contestants"][target], r["contestants"].get(peer, {}), r)) and x > MUCH_MEMORY]
    parts += [f"above {MUCH_MEMORY} of it: {listed(sorted(much, reverse=True))}"] if much else []
    parts += worst("first result at least {} times as soon ({})", sooner, min)
    parts += worst("of tiny networks {} times ({})", lambda o, t, r: sooner(o, t, r) if is_tiny(r) else None, min)
    parts += worst(
        "workspace at most {} of the live bytes ({})", lambda o, t, r: o["workspace_bytes"] / o["workspace_bound"]
        if o["workspace_bound"] > 4096 else None)
    parts += worst("burncc at most {} s ({})", lambda o, t, r: o["burncc_s"])
    parts += worst("its memory at most {} times the file, of files above 10 MB ({})",
                   lambda o, t, r: o["burncc_rss"] / r["file_bytes"] if r["file_bytes"] > 1e7 else None)
    parts += worst("the C compiler at most {} s ({})", lambda o, t, r: o["cc_s"])
    return [f"{target}, {thread_text(threads)}: {'; '.join(parts)}."] if parts else []


def heading(report):
    m = report["machine"]
    return (
        f"{m['cpu']}, {m['cores']} cores; {m['compiler']}; {m['burncc']}; " +
        ", ".join(f"{title(n)} {v}" for n, v in report["versions"].items()) +
        f"; {report['date']}. Medians of interleaved rounds in one run, pinned; ratio: the peer's time over ours." +
        (" At one thread processor time." if report["clock"] == "cpu" else ""))


def threads_of(report):
    return sorted({r["threads"] for r in report["rows"]})


def markdown(report):
    lines = [heading(report), ""]
    for threads in threads_of(report):
        peak = [r["peak_gflops"] for r in report["rows"] if r["threads"] == threads and r.get("peak_gflops")]
        lines += [
            f"**{thread_text(threads)}**; multiply-add peak of a core {figure(max(peak, default=None))} GFLOP/s, "
            f"it reads {figure(report['machine']['read_gbs'])} GB/s from memory",
            ""
        ]
        lines += markdown_rows(report, threads, columns(report)) + [""]
        if len(report["peers"]) > 1:
            lines += markdown_rows(report, threads, other_columns(report)) + [""]
        for line in summary(report, threads):
            lines += [line, ""]
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------- the table of docs/measurements.md


def filled(text):
    return textwrap.fill(text, 116, break_long_words=False, break_on_hyphens=False)


def page(report):
    """One table for all thread counts, narrower: times and ratios, then what one thread says of memory, starts and
    code."""
    counts, peers = threads_of(report), report["peers"]
    heads = ["model"]
    for threads in counts:
        heads += [f"{t} ms, {thread_text(threads)}"
                  for t in report["targets"]] + [h for p in peers for h in (f"{title(p)} ms", "ratio")]
    heads += ["% of peak", "workspace MB", "RSS MB", *(f"{title(p)} RSS" for p in peers[:1])]
    heads += ["first result ms", *(f"{title(p)} first" for p in peers[:1]), "burncc s", "cc s", "code KB"]
    lines = [filled(heading(report)), "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for name in dict.fromkeys(r["model"] for r in report["rows"]):
        rows = {r["threads"]: r for r in report["rows"] if r["model"] == name and "failed" not in r}
        if rows:
            lines.append("| " + " | ".join([name, *time_cells(report, rows), *size_cells(report, rows[min(rows)])]) +
                         " |")
    for threads in counts:
        lines += [text for sentence in summary(report, threads) for text in ("", filled(sentence))]
    return "\n".join(lines)


def time_cells(report, rows):
    for threads in threads_of(report):
        row = rows.get(threads, {"contestants": {}})
        yield from (marked(target)(row) for target in report["targets"])
        for peer in report["peers"]:
            yield from (marked(peer)(row), figure(ratio(row, report["targets"][0], peer)))


def size_cells(report, row):
    mine = row["contestants"].get(report["targets"][0], {})
    theirs = [row["contestants"].get(p, {}) for p in report["peers"][:1]]
    share, text = mine.get("share_of_peak"), mine.get("text_bytes")
    return [
        figure(share and 100 * share, 2),
        mega(mine.get("workspace_bytes")),
        mega(mine.get("rss_bytes")), *(mega(f.get("rss_bytes")) for f in theirs),
        figure(mine.get("cold_ms")), *(figure(f.get("cold_ms")) for f in theirs),
        figure(mine.get("burncc_s"), 2),
        figure(mine.get("cc_s"), 2),
        figure(text and text / 1e3)
    ]


def put_between(path, command, text):
    """Replaces what stands between the command's two markers in a file."""
    first, last = f"<!-- {command}: begin -->", f"<!-- {command}: end -->"
    old = path.read_text()
    before, begin, rest = old.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SystemExit(f"scripts/bench: {path} lacks the lines {first} and {last}")
    path.write_text(f"{before}{first}\n{text}\n{last}{after}")
