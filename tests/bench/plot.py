# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots as SVG, written by hand: no library to fetch, the same bytes for the same numbers.

ratios(report): a dot for each model and peer on a logarithmic axis, the peer's time over ours, a panel per thread
count. curves(panels): lines over a logarithmic axis, for the cost as work grows."""
import html
import math

import table

COLOURS = ["#1f6fb4", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#00838f", "#7f5539", "#5c677d"]
GREY, INK, FAINT = "#8a8a8a", "#222222", "#e4e4e4"


class Svg:
    def __init__(self, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>'
        ]

    def text(self, x, y, text, anchor="start", colour=INK, size=12):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
            f'font-size="{size}">{html.escape(str(text))}</text>'
        )

    def line(self, x1, y1, x2, y2, colour=FAINT, width=1.0):
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'
        )

    def dot(self, x, y, colour, radius=4.0):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>')

    def path(self, points, colour):
        self.parts.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" '
            f'stroke-width="2"/>'
        )

    def end(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def tick(value):
    return f"{value:g}" if 0.01 <= value < 1e5 else f"{value:.0e}"


class Axis:
    """A logarithmic axis from `low` to `high` of values to `begin` to `end` of the picture; ticks at powers of two or
    ten."""
    def __init__(self, values, begin, end):
        low, high = min(values), max(values)
        self.base = 2 if high / low <= 2 ** 11 else 10
        self.low, self.high = math.floor(math.log(low, self.base) + 1e-9), math.ceil(math.log(high, self.base) - 1e-9)
        self.high += self.low == self.high
        self.begin, self.end = begin, end

    def at(self, value):
        return self.begin + (math.log(value, self.base) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        return [(self.base ** e, self.at(self.base ** e)) for e in range(self.low, self.high + 1)]


def legend(svg, names, x, y):
    for i, name in enumerate(names):
        svg.dot(x + 5, y - 4, COLOURS[i % len(COLOURS)])
        svg.text(x + 14, y, name)
        x += 30 + 7.2 * len(name)


ROW, LEFT, PLOT, TOP = 18, 210, 520, 74


def ratio_panel(svg, report, threads, top, target):
    rows = [(table.ratio(r, target, report["peers"][0]) or 0, r) for r in report["rows"]
            if r["threads"] == threads and "failed" not in r]
    rows = [
        r for x, r in sorted(rows, key=lambda pair: pair[0]) if any(
            table.ratio(r, target, p) for p in report["peers"])
    ]
    known = [table.ratio(r, target, p) for r in rows for p in report["peers"] if table.ratio(r, target, p)]
    axis = Axis(known + [0.5, 2], LEFT, LEFT + PLOT)
    bottom = top + ROW * len(rows) + 6
    svg.text(LEFT, top - 26, table.thread_text(threads), size=14)
    for value, x in axis.ticks():
        svg.line(x, top - 6, x, bottom, GREY if value == 1 else FAINT, 1.5 if value == 1 else 1)
        svg.text(x, top - 10, tick(value), "middle", GREY, 10)
    for i, row in enumerate(rows):
        y = top + ROW * i + ROW / 2
        svg.text(LEFT - 8, y + 4, row["model"], "end")
        svg.line(LEFT, y, LEFT + PLOT, y, "#f2f2f2")
        for p, peer in enumerate(report["peers"]):
            ratio = table.ratio(row, target, peer)
            if ratio:
                svg.line(axis.at(1), y, axis.at(ratio), y, COLOURS[p % len(COLOURS)], 1)
                svg.dot(axis.at(ratio), y, COLOURS[p % len(COLOURS)])
    return bottom


def ratios(report):
    """Time of each peer over that of the first target; to the right of 1 we are ahead."""
    target, counts = report["targets"][0], table.threads_of(report)
    height = TOP + sum(ROW * sum(r["threads"] == t for r in report["rows"]) + 70 for t in counts)
    svg = Svg(LEFT + PLOT + 40, height)
    svg.text(16, 24, f"Time of the peer / time of burncc ({target})", size=15)
    legend(svg, [table.title(p) for p in report["peers"]], LEFT, 44)
    top = TOP + 20
    for threads in counts:
        top = ratio_panel(svg, report, threads, top, target) + 60
    return svg.end()


# ---------------------------------------------------------------- lines over growing work

WIDE, HIGH, GAP = 330, 230, 80


def curve_panel(svg, panel, left, top, names):
    points = [point for line in panel["lines"].values() for point in line]
    svg.text(left, top - 14, panel["title"], size=13)
    if not points:
        return
    across, up = Axis([x for x, _ in points], left, left + WIDE), Axis([y for _, y in points], top + HIGH, top)
    for value, x in across.ticks():
        svg.line(x, top, x, top + HIGH)
        svg.text(x, top + HIGH + 16, tick(value), "middle", GREY, 10)
    for value, y in up.ticks():
        svg.line(left, y, left + WIDE, y)
        svg.text(left - 6, y + 4, tick(value), "end", GREY, 10)
    svg.text(left + WIDE / 2, top + HIGH + 32, panel["across"], "middle", GREY, 11)
    for name, line in panel["lines"].items():
        colour = COLOURS[names.index(name) % len(COLOURS)]
        svg.path([(across.at(x), up.at(y)) for x, y in line], colour)
        for x, y in line:
            svg.dot(across.at(x), up.at(y), colour, 3)


def curves(title, panels, per_row=2):
    """panels: {"title", "across", "lines": {name: [(x, y), ...]}}, all values above 0."""
    names = list(dict.fromkeys(name for p in panels for name in p["lines"]))
    rows = -(-len(panels) // per_row)
    svg = Svg(per_row * (WIDE + GAP) + 20, 70 + rows * (HIGH + GAP) + 10)
    svg.text(16, 24, title, size=15)
    legend(svg, names, 16, 44)
    for i, panel in enumerate(panels):
        curve_panel(svg, panel, GAP - 10 + i % per_row * (WIDE + GAP), 86 + i // per_row * (HIGH + GAP), names)
    return svg.end()
