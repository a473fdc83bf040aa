// SPDX-License-Identifier: MIT OR Apache-2.0
// The other tabs: memory over time, the kernels as a table, operations beside bytes, the weights by size.
"use strict";

const WIDE = 1000, TALL = 460, MARGIN = { left: 76, right: 20, top: 18, bottom: 40 };
const hueOfText = s => Array.from(s).reduce((hash, c) => (hash * 31 + c.charCodeAt(0)) % 360, 7);

function chart(height, label) {
  return make("svg", { viewBox: `0 0 ${WIDE} ${height}`, style: "width:100%;max-width:1400px", role: "img",
    "aria-label": label });
}

function tick(x, y, text, anchor) {
  return make("text", { x, y, class: "tick", "text-anchor": anchor }, text);
}

// ---------------------------------------------------------------- memory

// The spans in which a buffer's bytes are wanted: its life without its gaps.
function livesOf(buffer) {
  const lives = [];
  let first = buffer.first;
  for (const [from, to] of buffer.gaps) { lives.push([first, from - 1]); first = to + 1; }
  lives.push([first, buffer.last]);
  return lives;
}

function aliveAt(program) {
  const alive = program.steps.map(() => 0);
  for (const buffer of program.buffers)
    for (const [first, last] of livesOf(buffer))
      for (let i = first; i <= last && i < alive.length; i++) alive[i] += buffer.bytes;
  return alive;
}

function chooseBuffer(program, buffer) {
  const step = i => i < program.steps.length ? program.kernels[program.steps[i]].name : "the end";
  byId("details").replaceChildren(make("h2", {}, buffer.name || "scratch memory"),
    rows([["type", buffer.type], ["bytes", `${buffer.bytes} (${bytesText(buffer.bytes)})`], ["offset", buffer.offset],
      ["from", step(buffer.first)], ["to", step(buffer.last)]]));
}

function drawProgramMemory(program) {
  const steps = Math.max(1, program.steps.length), most = Math.max(1, program.workspace), drawing = chart(TALL,
    "memory over time");
  const across = (WIDE - MARGIN.left - MARGIN.right) / steps, down = TALL - MARGIN.top - MARGIN.bottom;
  const x = i => MARGIN.left + i * across, y = bytes => MARGIN.top + down * (1 - bytes / most);
  for (let i = 0; i <= 4; i++) {
    drawing.append(make("line", { x1: x(0), x2: x(steps), y1: y(most * i / 4), y2: y(most * i / 4), class: "grid" }),
      tick(MARGIN.left - 6, y(most * i / 4) + 4, bytesText(most * i / 4), "end"));
  }
  for (const buffer of program.buffers)
    for (const [first, last] of livesOf(buffer)) {
      const mark = make("rect", { x: x(first), width: Math.max(1, (Math.min(last, steps - 1) - first + 1) * across - 0.5),
        y: y(buffer.offset + buffer.bytes), height: Math.max(1, down * buffer.bytes / most), class: "mark",
        style: `--hue:${hueOfText(buffer.name + buffer.type)}` });
      mark.append(make("title", {}, `${buffer.name} ${buffer.type}\n${bytesText(buffer.bytes)} at ${buffer.offset}`));
      mark.addEventListener("click", () => chooseBuffer(program, buffer));
      drawing.append(mark);
    }
  const alive = aliveAt(program), peak = Math.max(0, ...alive), worst = alive.indexOf(peak);
  if (worst >= 0) {
    drawing.append(make("line", { x1: x(worst + 0.5), x2: x(worst + 0.5), y1: MARGIN.top - 6, y2: y(0), class: "peak" }),
      tick(Math.min(x(worst + 0.5) + 5, WIDE - 330), MARGIN.top - 6,
        `most alive: ${bytesText(peak)} at ${program.kernels[program.steps[worst]].name}`, "start"));
  }
  drawing.append(tick(x(0), TALL - 12, "first kernel", "start"), tick(x(steps), TALL - 12, "last kernel", "end"));
  return drawing;
}

function drawMemory(section) {
  for (const program of data.programs)
    section.append(...heading(program), make("p", {}, `Workspace ${bytesText(program.workspace)}; ` +
      `at least ${bytesText(program.live)} in this order of kernels. A rectangle is a buffer: its place, and how long ` +
      "its bytes are wanted."), drawProgramMemory(program));
}

// ---------------------------------------------------------------- the kernels as a table

function drawKernels(section) {
  for (const program of data.programs) {
    const all = program.kernels.reduce((sum, k) => sum + (k.ms || 0), 0), with_time = timed(program);
    const heads = ["kernel", "kind", "nodes", "operations", "traffic", ...(with_time ? ["time", "share"] : [])];
    const body = make("tbody", {}), table = make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((h, i) =>
      make("th", { class: i > 2 ? "n" : "" }, h)))), body);
    for (const kernel of program.kernels) {
      const cells = [kernel.name, kernel.kind, kernel.nodes.map(node => node[1] || node[0]).filter((name, i, names) =>
        names.indexOf(name) === i).join(" + "), countText(kernel.flops), bytesText(kernel.bytes),
        ...(with_time ? [timeText(kernel.ms), `${(100 * kernel.ms / all).toFixed(1)} %`] : [])];
      const row = make("tr", {}, ...cells.map((cell, i) => make("td", { class: i > 2 ? "n" : "" }, cell)));
      row.addEventListener("click", () => chooseKernel(kernel));
      body.append(row);
    }
    section.append(...heading(program), table);
  }
}

// ---------------------------------------------------------------- operations beside bytes

// Both axes in powers of ten, with room around what there is.
function logScale(values, from, to) {
  const low = Math.floor(Math.log10(Math.min(...values)) - 0.05), high = Math.ceil(Math.log10(Math.max(...values)) + 0.05);
  const at = v => from + (to - from) * (Math.log10(v) - low) / Math.max(1, high - low);
  return { at, powers: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)) };
}

function roofs(drawing, x, y, limits) {
  const edges = [Math.max(x.powers[0], y.powers[0] / limits.gbytes), limits.gflops / limits.gbytes,
    x.powers[x.powers.length - 1]];
  const reach = intensity => Math.min(limits.gflops, intensity * limits.gbytes);
  drawing.append(make("path", { class: "roof", d: edges.sort((a, b) => a - b).map((v, i) =>
    `${i ? "L" : "M"}${x.at(v)} ${y.at(reach(v))}`).join("") }),
    tick(WIDE - MARGIN.right, y.at(limits.gflops) - 6, `${limits.gflops.toFixed(0)} GFLOP/s`, "end"),
    tick(x.at(edges[0]) + 12, y.at(reach(edges[0])) - 22, `${limits.gbytes.toFixed(1)} GB/s from memory`, "start"));
}

function drawProgramRoofline(program) {
  const measured = timed(program) && data.limits && data.limits.gflops > 0;
  const kernels = program.kernels.filter(k => k.flops > 0 && k.bytes > 0 && (!measured || k.ms > 0));
  if (!kernels.length) return make("p", {}, "No kernel computes anything with floating point.");
  const height = kernel => measured ? kernel.flops / kernel.ms * 1e-6 : kernel.flops;
  const width = kernel => kernel.flops / kernel.bytes, drawing = chart(TALL, "operations beside bytes");
  const extremes = measured ? [data.limits.gflops, data.limits.gflops / 100] : [];
  const x = logScale([...kernels.map(width), 0.1, 10], MARGIN.left, WIDE - MARGIN.right);
  const y = logScale([...kernels.map(height), ...extremes], TALL - MARGIN.bottom, MARGIN.top);
  for (const v of x.powers)
    drawing.append(make("line", { x1: x.at(v), x2: x.at(v), y1: MARGIN.top, y2: TALL - MARGIN.bottom, class: "grid" }),
      tick(x.at(v), TALL - MARGIN.bottom + 16, v < 1 ? v.toPrecision(1) : countText(v), "middle"));
  for (const v of y.powers)
    drawing.append(make("line", { x1: MARGIN.left, x2: WIDE - MARGIN.right, y1: y.at(v), y2: y.at(v), class: "grid" }),
      tick(MARGIN.left - 6, y.at(v) + 4, v < 1 ? v.toPrecision(1) : countText(v), "end"));
  if (measured) roofs(drawing, x, y, data.limits);
  const most = Math.max(...kernels.map(k => measured ? k.ms : k.flops));
  for (const kernel of kernels) {
    const share = (measured ? kernel.ms : kernel.flops) / most;
    const mark = make("circle", { cx: x.at(width(kernel)), cy: y.at(height(kernel)), r: 3 + 9 * Math.sqrt(share),
      class: "mark", style: `--hue:${hueOfText(kernel.kind)}` });
    mark.append(make("title", {}, `${kernel.name}\n${countText(kernel.flops)} operations, ${bytesText(kernel.bytes)}` +
      (measured ? `\n${timeText(kernel.ms)}, ${height(kernel).toFixed(2)} GFLOP/s` : "")));
    mark.addEventListener("click", () => chooseKernel(kernel));
    drawing.append(mark);
  }
  drawing.append(tick(WIDE / 2, TALL - 6, "operations for each byte of traffic", "middle"),
    tick(4, 12, measured ? "GFLOP/s" : "operations", "start"));
  return drawing;
}

function drawRoofline(section) {
  for (const program of data.programs)
    section.append(...heading(program), make("p", {}, timed(program) ?
      "Each kernel's speed beside what this machine can do; a circle's area is its share of the time. Over the slope " +
      "are those whose data a cache holds: traffic counts what is read and written once." :
      "Each kernel's operations, and how many there are for each byte that it reads or writes. With --profile: its " +
      "speed, beside what this machine can do."), drawProgramRoofline(program));
}

// ---------------------------------------------------------------- weights

function drawWeights(section) {
  const MOST = 200;
  for (const program of data.programs) {
    const weights = [...program.weights].sort((a, b) => b.bytes - a.bytes), most = weights.length ? weights[0].bytes : 1;
    const body = make("tbody", {});
    for (const weight of weights.slice(0, MOST)) {
      const bar = make("div", { class: "bar", style: `width:${(300 * weight.bytes / most).toFixed(1)}px` });
      body.append(make("tr", {}, make("td", {}, weight.name || "constant"), make("td", {}, weight.type),
        make("td", {}, weight.layout), make("td", { class: "n" }, bytesText(weight.bytes)), make("td", {}, bar)));
    }
    section.append(...heading(program), make("p", {}, `${weights.length} constants, ` +
      `${bytesText(weights.reduce((sum, w) => sum + w.bytes, 0))}, as kernels read them` +
      (weights.length > MOST ? `; the largest ${MOST}` : "") + "."), make("table", {}, make("thead", {}, make("tr", {},
      ...["name", "type", "layout", "", ""].map(h => make("th", {}, h)))), body));
  }
}
