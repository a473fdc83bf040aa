# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cost as work grows: batch 1 to 32, images of 64 to 512 pixels, sequences of 16 to 2048 tokens.

Each point is a model of its own, compiled for that size and measured like any other. Out: time per item (image, pixel,
token) and peak memory for every contestant, as a table and as curves. Attention's part grows with the square of the
sequence, so its time per token may rise as the share of that part does; the GFLOP/s tell that apart from a slower
program.
"""
import models
import plot
import table

SERIES = {
    "batch": ("mobilenet", "batch", [1, 2, 4, 8, 16, 32], lambda n: n, "image", "images in a batch"),
    "image": ("mobilenet", "image", [64, 96, 128, 192, 256, 384,
                                     512], lambda n: n * n / 1e6, "megapixel", "pixels a side"),
    "sequence": ("encoder_l6", "sequence", [16, 32, 64, 128, 256, 512, 1024, 2048], lambda n: n, "token", "tokens"),
}


PLOT = "growth.svg"                                     # beside the page that --into names


def models_of(options):
    wanted = options.only.split(",") if options.only else []
    found = []
    for series, (net, option, sizes, *_) in SERIES.items():
        for size in sizes[::2] if options.quick else sizes:
            name = f"{series}_{size}"
            if not wanted or any(w in name for w in wanted):
                found.append((name, lambda name=name, net=net, option=option, size=size:
                              models.write(options.cache / "models" / "growth", name, net, **{option: size})))
    return found


def points(report, series, threads, contestant, key):
    """(size, value) of one contestant in one series."""
    found = []
    for row in report["rows"]:
        kind, _, size = row["model"].partition("_")
        value = row.get("contestants", {}).get(contestant, {}).get(key)
        if kind == series and row["threads"] == threads and value:
            found.append((int(size), value))
    return found


def per_item(report, series, threads, contestant):
    items = SERIES[series][3]
    return [(size, ms / items(size)) for size, ms in points(report, series, threads, contestant, "median_ms")]


def contestants(report):
    return [*report["targets"], *report["peers"]]


def markdown(report):
    lines = [table.heading(report), ""]
    names = contestants(report)
    for threads in table.threads_of(report):
        for series, (net, _, _, _, item, across) in SERIES.items():
            times = {n: dict(per_item(report, series, threads, n)) for n in names}
            sizes = sorted({size for line in times.values() for size in line})
            if not sizes:
                continue
            heads = [across] + [f"{table.title(n)} ms per {item}"
                                for n in names] + [f"{table.title(n)} GFLOP/s"
                                                   for n in names] + [f"{table.title(n)} RSS MB" for n in names]
            lines += [
                f"**{net}, {table.thread_text(threads)}**", "", "| " + " | ".join(heads) + " |",
                "|" + "---|" * len(heads)
            ]
            speeds, memory = ({n: dict(points(report, series, threads, n, key)) for n in names}
                              for key in ("gflops", "rss_bytes"))
            for size in sizes:
                cells = [table.figure(times[n].get(size))
                         for n in names] + [table.figure(speeds[n].get(size))
                                            for n in names] + [table.mega(memory[n].get(size)) for n in names]
                lines.append("| " + " | ".join([str(size), *cells]) + " |")
            lines.append("")
    lines += [f"{row['model']} failed: {row['failed']}" for row in report["rows"] if "failed" in row]
    return "\n".join(lines).rstrip() + "\n"


def planned(report, series, threads, target):
    """(size, bytes): weights, workspace, inputs and outputs, which are what a run needs."""
    found = []
    for row in report["rows"]:
        kind, _, size = row["model"].partition("_")
        mine = row.get("contestants", {}).get(target, {})
        if kind == series and row["threads"] == threads and "median_ms" in mine:
            found.append((int(size),
                          mine["weights_bytes"] + mine["workspace_bytes"] + row["input_bytes"] + row["output_bytes"]))
    return found


def page(report):
    """A small table a series, of the first number of threads: what one item takes, and the memory that was planned
    and used."""
    lines, threads, target = [table.filled(table.heading(report))], table.threads_of(report)[0], report["targets"][0]
    for series, (net, _, _, _, item, across) in SERIES.items():
        names = [target, *report["peers"]]
        rows = [(f"{table.title(n)}, ms per {item}", dict(per_item(report, series, threads, n)), table.figure)
                for n in names]
        rows += [(f"{table.title(n)}, GFLOP/s", dict(points(report, series, threads, n, "gflops")), table.figure)
                 for n in names]
        rows += [("weights, workspace, ends, MB", dict(planned(report, series, threads, target)), table.mega)]
        rows += [(f"{table.title(n)}, peak memory MB", dict(points(report, series, threads, n,
                                                                   "rss_bytes")), table.mega) for n in names]
        sizes = sorted(rows[0][1])
        if sizes:
            lines += [
                "", "| " + " | ".join([f"{net}: {across}", *map(str, sizes)]) + " |", "|" + "---|" * (len(sizes) + 1)
            ]
            lines += [
                "| " + " | ".join([what, *(show(found.get(size)) for size in sizes)]) + " |"
                for what, found, show in rows
            ]
    return "\n".join([*lines, "", f"![Time per item and peak memory as work grows]({PLOT})"])


def picture(report):
    panels = []
    for threads in table.threads_of(report):
        for series, (net, _, _, _, item, across) in SERIES.items():
            times = {table.title(n): per_item(report, series, threads, n) for n in contestants(report)}
            memory = {
                table.title(n): [(s, b / 1e6) for s, b in points(report, series, threads, n, "rss_bytes")]
                for n in contestants(report)
            }
            memory[f"{table.title(report['targets'][0])}, planned"] = [
                (s, b / 1e6) for s, b in planned(report, series, threads, report["targets"][0])
            ]
            panels.append(
                {"title": f"{net}, {table.thread_text(threads)}: ms per {item}", "across": across, "lines": times})
            panels.append({"title": f"{net}: peak memory, MB", "across": across, "lines": memory})
    return plot.curves("Cost as work grows", [p for p in panels if any(p["lines"].values())])
