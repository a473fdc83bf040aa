// SPDX-License-Identifier: MIT OR Apache-2.0
// The tab with the graph: a stage's picture laid out (layout.js) and drawn, with pan, zoom and search.
"use strict";

const view = { x: 0, y: 0, scale: 1, drawn: null, hits: [], at: -1 };
const HEIGHT = 44, LETTERS = 28;

const cut = s => Array.from(s).length > LETTERS ? Array.from(s).slice(0, LETTERS - 1).join("") + "…" : s;

function boxSizes(picture) {
  for (const box of picture.boxes) {
    box.label = cut(box.kind === "input" || box.kind === "output" ? box.name || box.kind : box.op);
    box.below = cut(box.kind === "input" || box.kind === "output" ? box.lines[0] : box.name);
    box.width = 22 + 7 * Math.max(box.label.length, box.below.length, 6);
  }
}

// Hot kernels are red where times were measured; else a colour for each operator.
function hueOf(box) {
  const kernel = box.kernel >= 0 ? kernelOf(box) : null, longest = box.kernel >= 0 ? longestOf(box.program) : 0;
  if (kernel && longest > 0) return 210 - 210 * Math.sqrt(kernel.ms / longest);
  let hash = 7;
  for (const c of box.op) hash = (hash * 31 + c.charCodeAt(0)) % 360;
  return hash;
}

function wayPath(way) {
  let path = "";
  way.forEach((p, i) => {
    const y = p.y + (i === 0 ? HEIGHT / 2 : i === way.length - 1 ? -HEIGHT / 2 : 0);
    if (!i) path = `M${p.x.toFixed(1)} ${y}`;
    else {
      const q = way[i - 1], from = q.y + (i === 1 ? HEIGHT / 2 : 0), middle = (from + y) / 2;
      path += `C${q.x.toFixed(1)} ${middle} ${p.x.toFixed(1)} ${middle} ${p.x.toFixed(1)} ${y}`;
    }
  });
  return path;
}

function drawBox(box, place) {
  const end = box.kind === "input" || box.kind === "output";
  const group = make("g", { class: end ? "box end" : "box", transform: `translate(${place.x.toFixed(1)} ${place.y})`,
    style: `--hue:${hueOf(box).toFixed(0)}`, tabindex: 0 });
  group.append(
    make("title", {}, [box.op, box.name, ...box.lines].filter(s => s).join("\n")),
    make("rect", { x: -box.width / 2, y: -HEIGHT / 2, width: box.width, height: HEIGHT, rx: end ? 20 :
      box.kind === "kernel" ? 10 : 3 }),
    make("text", { y: -3, "text-anchor": "middle" }, box.label),
    make("text", { y: 13, "text-anchor": "middle", class: "name" }, box.below));
  group.addEventListener("click", () => choose(box));
  group.addEventListener("keydown", e => { if (e.key === "Enter") choose(box); });
  return group;
}

function drawPicture(number) {
  const picture = data.pictures[number];
  boxSizes(picture);
  const { places, ways } = layOut(picture.boxes, picture.arrows), root = make("g", {});
  const arrows = picture.arrows.map((arrow, i) => {
    const far = ways[i].length === 2 && ways[i][1].rank - ways[i][0].rank > 1;
    const path = make("path", { class: far ? "arrow far" : "arrow", d: wayPath(ways[i]), "marker-end": "url(#tip)" });
    path.append(make("title", {}, `${arrow.name} ${arrow.type}`.trim()));
    return path;
  });
  const boxes = picture.boxes.map((box, i) => drawBox(box, places[i]));
  root.append(...arrows, ...boxes);
  const tip = make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    markerUnits: "userSpaceOnUse", orient: "auto" });
  tip.append(make("path", { d: "M0 0L8 4L0 8z", fill: "currentColor" }));
  const drawing = make("svg", { role: "img", "aria-label": "the graph" });
  drawing.append(make("defs", {}), root);
  drawing.firstChild.append(tip);
  byId("canvas").replaceChildren(drawing);
  view.drawn = { picture, root, boxes, arrows, places };
  search();
  fit();
  document.documentElement.dataset.boxes = boxes.length;
  document.documentElement.dataset.arrows = arrows.length;
}

function show() {
  view.drawn.root.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
}

// All of it if that can be read, else from its top.
function fit() {
  const frame = byId("canvas").getBoundingClientRect(), places = view.drawn.places, boxes = view.drawn.picture.boxes;
  const left = Math.min(...places.map((p, i) => p.x - boxes[i].width / 2));
  const right = Math.max(...places.map((p, i) => p.x + boxes[i].width / 2));
  const top = Math.min(...places.map(p => p.y)) - HEIGHT, bottom = Math.max(...places.map(p => p.y)) + HEIGHT;
  const whole = Math.min(frame.width / (right - left + 40), frame.height / (bottom - top));
  view.scale = Math.min(1.2, Math.max(whole, Math.min(0.75, frame.width / (right - left + 40))));
  view.x = frame.width / 2 - view.scale * (left + right) / 2;
  view.y = whole < view.scale ? 10 - view.scale * top : frame.height / 2 - view.scale * (top + bottom) / 2;
  show();
}

function zoom(factor, x, y) {
  const scale = Math.min(4, Math.max(0.02, view.scale * factor));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  show();
}

function centre(box) {
  const i = view.drawn.picture.boxes.indexOf(box), frame = byId("canvas").getBoundingClientRect();
  if (i < 0) return;
  view.scale = Math.max(view.scale, 0.8);
  view.x = frame.width / 2 - view.scale * view.drawn.places[i].x;
  view.y = frame.height / 2 - view.scale * view.drawn.places[i].y;
  show();
}

function search() {
  const words = byId("search").value.toLowerCase().trim();
  view.hits = [];
  view.at = -1;
  view.drawn.picture.boxes.forEach((box, i) => {
    const text = [box.op, box.name, ...box.lines].join(" ").toLowerCase(), hit = words !== "" && text.includes(words);
    view.drawn.boxes[i].classList.toggle("hit", hit);
    if (hit) view.hits.push(box);
  });
  byId("found").textContent = words ? `${view.hits.length} found` : "";
}

function nextHit() {
  if (!view.hits.length) return;
  view.at = (view.at + 1) % view.hits.length;
  choose(view.hits[view.at]);                           // which may take room from the graph
  centre(view.hits[view.at]);
}

function markChosen(box) {
  const drawn = view.drawn, chosen = drawn.picture.boxes.indexOf(box);
  drawn.boxes.forEach((group, i) => group.classList.toggle("chosen", i === chosen));
  drawn.arrows.forEach((path, i) => {
    const arrow = drawn.picture.arrows[i];
    path.classList.toggle("chosen", chosen >= 0 && (arrow.from === chosen || arrow.to === chosen));
  });
}

function startGraph() {
  const canvas = byId("canvas"), stage = byId("stage");
  let grip = null;
  data.pictures.forEach((picture, i) =>
    stage.append(make("option", { value: i }, `${picture.stage}: ${picture.title} (${picture.boxes.length})`)));
  stage.addEventListener("change", () => drawPicture(Number(stage.value)));
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", e => { if (e.key === "Enter") nextHit(); });
  byId("fit").addEventListener("click", fit);
  const middle = factor => () => zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
  byId("in").addEventListener("click", middle(1.4));
  byId("out").addEventListener("click", middle(1 / 1.4));
  canvas.addEventListener("wheel", e => {
    const frame = canvas.getBoundingClientRect();
    e.preventDefault();
    zoom(Math.exp(-e.deltaY / 400), e.clientX - frame.left, e.clientY - frame.top);
  }, { passive: false });
  canvas.addEventListener("pointerdown", e => { grip = { x: e.clientX - view.x, y: e.clientY - view.y }; });
  window.addEventListener("pointermove", e => {
    if (!grip) return;
    view.x = e.clientX - grip.x;
    view.y = e.clientY - grip.y;
    show();
  });
  window.addEventListener("pointerup", () => { grip = null; });
}

// The place in a page's address: which stage, and what is searched for there.
function goTo(number, words) {
  const first = Math.max(0, data.pictures.findIndex(picture => picture.stage === "kernels"));
  const wanted = data.pictures[number] ? number : view.drawn ? Number(byId("stage").value) : first;
  byId("stage").value = wanted;
  if (!view.drawn || view.drawn.picture !== data.pictures[wanted]) drawPicture(wanted);
  if (!words) return;
  byId("search").value = words;
  search();
  nextHit();
}
