// SPDX-License-Identifier: MIT OR Apache-2.0
// The page of `burncc inspect --html`: tabs, and what a click shows. Text from the model enters the page as text alone
// (textContent), never as markup.
"use strict";

window.addEventListener("error", e => { document.documentElement.dataset.error = e.message; });

const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const DRAWN = new Set(["svg", "g", "rect", "text", "path", "title", "marker", "defs", "circle", "line"]);

// An element, of SVG where its name is of that, with a text or children.
function make(tag, attributes, ...inside) {
  const made = DRAWN.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) :
    document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function scaled(n, base, units) {
  let unit = 0;
  for (; n >= base && unit + 1 < units.length; unit++) n /= base;
  return `${unit && n < 100 ? n.toPrecision(3) : Math.round(n)} ${units[unit]}`;
}
const bytesText = n => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const countText = n => scaled(n, 1000, ["", "k", "M", "G", "T"]).trim();
const timeText = ms => ms >= 1 ? `${ms.toPrecision(4)} ms` : `${(ms * 1000).toPrecision(4)} µs`;

const kernelOf = box => data.programs[box.program].kernels[box.kernel];
const timed = program => program.kernels.some(kernel => kernel.ms > 0);
const longestOf = number => Math.max(0, ...data.programs[number].kernels.map(kernel => kernel.ms || 0));

// ---------------------------------------------------------------- what a click shows

function rows(pairs) {
  const table = make("table", {});
  for (const [key, value] of pairs)
    if (value !== "" && value !== undefined) table.append(make("tr", {}, make("th", {}, key), make("td", {}, value)));
  return table;
}

function list(title, lines) {
  return lines.length ? [make("h3", {}, title), ...lines.map(line => make("div", {}, line))] : [];
}

function timeRows(kernel) {
  const total = data.programs[kernel.program].kernels.reduce((sum, k) => sum + (k.ms || 0), 0);
  if (!(kernel.ms > 0)) return [];
  return [["time", `${timeText(kernel.ms)}, ${(100 * kernel.ms / total).toFixed(1)} %`],
    ["rates", `${(kernel.flops / kernel.ms * 1e-6).toFixed(2)} GFLOP/s, ` +
      `${(kernel.bytes / kernel.ms * 1e-6).toFixed(2)} GB/s`]];
}

function chooseKernel(kernel) {
  const code = kernel.code >= 0 ? data.code[kernel.code] : null;
  byId("details").replaceChildren(make("h2", {}, kernel.name),
    rows([["kind", kernel.kind], ["operations", countText(kernel.flops)], ["traffic", bytesText(kernel.bytes)],
      ...timeRows(kernel)]),
    ...list("Nodes", kernel.nodes.map(node => node.filter(s => s).join(" "))),
    ...(code ? [make("h3", {}, `C: ${code.name}`), make("pre", {}, code.text)] : []));
}

// Kernels that a node's work is in, by its name.
function kernelsWith(name) {
  if (!name) return [];
  return data.programs.flatMap(p => p.kernels).filter(k => k.nodes.some(node => node[1] === name)).map(kernel => {
    const link = make("button", { class: "link", type: "button" }, kernel.name);
    link.addEventListener("click", () => chooseKernel(kernel));
    return link;
  });
}

function choose(box) {
  markChosen(box);
  if (box.kernel >= 0) return chooseKernel(kernelOf(box));
  const place = box.inside >= 0 ? view.drawn.picture.boxes[box.inside] : null;
  byId("details").replaceChildren(make("h2", {}, box.name || box.op),
    rows([["operator", box.op], ["in", place ? `${box.body} of ${place.op} ${place.name}` : ""]]),
    ...list("What it is given", box.lines), ...list("Kernels", kernelsWith(box.name)));
}

// ---------------------------------------------------------------- tabs

function heading(program) {
  return data.programs.length > 1 ? [make("h2", {}, program.name)] : [];
}

// The address behind #: a tab; graph/STAGE/WORDS is a stage by its number, and what is searched for in it.
function openTab() {
  const [tab, stage, words] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const name = tabs[tab] ? tab : "graph";

  for (const section of document.querySelectorAll("section")) section.classList.toggle("shown", section.id === name);
  for (const button of byId("tabs").children) button.setAttribute("aria-selected", button.dataset.tab === name);
  if (name !== "graph") return;
  goTo(stage ? Number(stage) : -1, words);
}

const tabs = { graph: "Graph", memory: "Memory", kernels: "Kernels", roofline: "Roofline", weights: "Weights" };

function start() {
  document.title = `${data.model} — burncc`;
  byId("model").textContent = data.model;
  byId("facts").textContent = [`target ${data.target}`, ...data.programs.map(p =>
    `${data.programs.length > 1 ? `${p.name}: ` : ""}${p.kernels.length} kernels, ` +
    `${countText(p.kernels.reduce((sum, k) => sum + k.flops, 0))} operations, workspace ${bytesText(p.workspace)}, ` +
    `weights ${bytesText(p.weight_bytes)}`), data.median_ms ? `a run ${timeText(data.median_ms)}` : ""]
    .filter(s => s).join(" · ");
  for (const [name, title] of Object.entries(tabs)) {
    const button = make("button", { type: "button", role: "tab", "data-tab": name }, title);
    button.addEventListener("click", () => { location.hash = name; });
    byId("tabs").append(button);
  }
  window.addEventListener("hashchange", openTab);
  data.programs.forEach((program, i) => program.kernels.forEach(kernel => { kernel.program = i; }));
  startGraph();
  openTab();
  drawMemory(byId("memory"));
  drawKernels(byId("kernels"));
  drawRoofline(byId("roofline"));
  drawWeights(byId("weights"));
  document.documentElement.dataset.ready = "yes";
}

start();
